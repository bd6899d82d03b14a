/* The files of one run, opened together; what cannot be read of them is told, and the rest is shown. */
#include "flowsup/checkpoint.h"
#include "flowsup/fs.h"
#include "seek.h"
#include "view_ops.h"

/* Only a run that resumes another has one; without it nothing in this run is a replay. */
static int
read_carry(struct run_files *f, struct err *e)
{
	if (rundir_read_json(f->fd, RUN_CARRY, &f->carry, e) != 0 && e->code != ERR_NOTFOUND)
		return -1;
	err_clear(e);
	return 0;
}

static int
read_state(struct run_files *f, const struct session *s, struct err *e)
{
	struct ckpt_load_options o = {.lock_held = f->lock_held};
	struct ckpt_report report;
	int r = ckpt_load(f->fd, &o, &f->state, &report, e);

	if (r != 0)
		(void)seek_refuse_lost(f->fd, s->started_at > 0, &report, e);
	if (r != 0 && e->code == ERR_NOTFOUND) {
		err_clear(e);
		return 0;
	}
	f->report = ckpt_report_json(&report);
	return r;
}

/* The rest is shown without what cannot be read. */
static int
add_unread(struct run_files *f, const char *file, const struct err *why, struct err *e)
{
	struct json *problem;

	if (why->code == ERR_NOMEM) {
		*e = *why;
		return -1;
	}
	problem = seek_problem(file, why->msg);
	if (err_has_hint(why))
		problem = json_set(problem, "hint", json_text_or_null(err_hint_text(why)));
	f->problems = json_append(f->problems, problem);
	return f->problems != NULL ? 0 : err_nomem(e);
}

static int
read_more(struct run_files *f, const struct session *s, struct err *e)
{
	struct err why = {0};

	if (seek_problems(f->fd, seek_has_started(f->fd, s->started_at), &f->problems, e) != 0)
		return -1;
	/* Before the state: what is read then and was not acknowledged by now may be what could not be saved. */
	if (f->lock_held)
		view_trouble(f->fd, &f->trouble);
	if (read_state(f, s, &f->state_error) != 0 && add_unread(f, CKPT_BASE, &f->state_error, e) != 0)
		return -1;
	return read_carry(f, &why) == 0 ? 0 : add_unread(f, RUN_CARRY, &why, e);
}

const struct json *
view_state(const struct run_files *f)
{
	return f->state != NULL ? f->state : f->carry;
}

/* One that does not fit is left out here; a resume says what is wrong with it. */
static void
leave_out(void *arg, const struct json *entry, const char *why)
{
	(void)arg;
	(void)entry;
	(void)why;
}

static int
add_grown(struct run_files *f, struct err *e)
{
	const struct json *state = view_state(f);

	if (f->flow == NULL || json_length(json_get(state, "spawned")) == 0)
		return 0;
	return flow_rebuild(f->flow, state, 0, leave_out, NULL, e);
}

int
run_files_open(const struct home *h, const struct session *s, bool with_state,
    struct run_files *f, struct err *e)
{
	struct err ignored = {0};

	*f = (struct run_files){.fd = -1};
	f->fd = seek_rundir(h, s, e);
	if (f->fd < 0)
		return -1;
	/* Asked before the files are read: a lock that is free now is free of any writer later. */
	f->lock_free = run_lock_held(f->fd, &f->lock_held, &ignored) == 0 && !f->lock_held;
	if (f->lock_free || ignored.code != ERR_NONE)
		f->lock_held = false;
	if (seek_flow(f->fd, &f->flow, &f->flow_error) != 0)
		f->flow = NULL;
	if (with_state && (read_more(f, s, e) != 0 || add_grown(f, e) != 0)) {
		run_files_close(f);
		return -1;
	}
	if (attempts_read(f->fd, &f->attempts, &ignored) != 0)
		f->attempts = (struct attempts){0};
	return 0;
}

void
run_files_close(struct run_files *f)
{
	flow_free(f->flow);
	json_unref(f->problems);
	json_unref(f->state);
	json_unref(f->carry);
	json_unref(f->report);
	buf_clear(&f->trouble);
	attempts_clear(&f->attempts);
	fd_close(&f->fd);
	*f = (struct run_files){.fd = -1};
}
