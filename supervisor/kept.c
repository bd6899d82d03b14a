#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/exits.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "kept_private.h"

enum {
	WRITE_AGAIN_MS = 1000,
	AWAY_DOUBLINGS = 5 /* of that, for a directory that is not there */
};

void
kept_init(struct kept *k)
{
	memset(k, 0, sizeof(*k));
	TAILQ_INIT(&k->runs);
	TAILQ_INIT(&k->ends);
}

/* ---- The table ---- */

static struct kept_run *
find_run(const struct daemon *d, const char *run_id)
{
	struct kept_run *r;

	TAILQ_FOREACH(r, &d->kept.runs, entry)
	{
		if (strcmp(r->run_id, run_id) == 0)
			return r;
	}
	return NULL;
}

bool
kept_is_watched(const struct daemon *d, const char *run_id)
{
	return find_run(d, run_id) != NULL;
}

struct kept_run *
kept_run_of(struct daemon *d, const char *run_id)
{
	struct kept_run *r = find_run(d, run_id);

	if (r != NULL)
		return r;
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		log_line(LOG_ERROR, "run %s: what still runs of it is not watched: out of memory", run_id);
		return NULL;
	}
	r->daemon = d;
	r->lock_fd = -1;
	r->until_ns = INT64_MAX;
	strlcpy(r->run_id, run_id, sizeof(r->run_id));
	TAILQ_INIT(&r->ops);
	TAILQ_INIT(&r->ends);
	TAILQ_INSERT_TAIL(&d->kept.runs, r, entry);
	return r;
}

static void
run_free(struct kept_run *r)
{
	kept_forget_ends(r);
	TAILQ_REMOVE(&r->daemon->kept.runs, r, entry);
	free(r);
}

void
kept_run_look(struct kept_run *r)
{
	if (TAILQ_EMPTY(&r->ops) && TAILQ_EMPTY(&r->ends))
		run_free(r);
}

static struct kept_op *
find_op(const struct daemon *d, pid_t pid)
{
	struct kept_run *r;
	struct kept_op *o;

	TAILQ_FOREACH(r, &d->kept.runs, entry)
	{
		TAILQ_FOREACH(o, &r->ops, entry)
		{
			if (o->id.pid == pid)
				return o;
		}
	}
	return NULL;
}

struct kept_op *
kept_find(const struct daemon *d, struct proc_id id)
{
	struct kept_op *o = find_op(d, id.pid);

	return o != NULL && o->id.start_ticks == id.start_ticks ? o : NULL;
}

/* How it ended is known, and could not be written down yet. */
static bool
is_unwritten(const struct daemon *d, struct proc_id id)
{
	const struct kept_op *o = kept_find(d, id);

	return o != NULL && o->tries > 0;
}

/* ---- What the row says of them ---- */

static enum job_result
list_job(struct daemon *d, struct job *j, struct err *e)
{
	if (session_metadata(d->store, j->run_id, "running_operations", json_ref(j->value), e) != 0)
		return e->code == ERR_NOTFOUND ? JOB_DONE : JOB_FAILED;
	daemon_worked(d);
	clients_tell_changed(d, j->run_id, status_word(STATUS_CRASHED), NULL);
	d->scan_wanted = true; /* it may have kept its key */
	return JOB_DONE;
}

void
kept_store_list(struct kept_run *r)
{
	struct json *all = json_array();
	struct kept_op *o;
	struct job *j;

	TAILQ_FOREACH(o, &r->ops, entry)
	{
		all = json_append(all, json_ref(o->line));
	}
	j = all == NULL ? NULL : job_new(list_job, r->run_id, false);
	if (j == NULL) {
		json_unref(all);
		return;
	}
	j->value = all;
	jobs_add(r->daemon, j, false);
}

/* Without its end being told to anybody. */
static void
op_drop(struct kept_op *o)
{
	struct daemon *d = o->run->daemon;

	loop_close(&d->loop, &o->process);
	fd_close(&o->ops_fd);
	TAILQ_REMOVE(&o->run->ops, o, entry);
	d->kept.count--;
	json_unref(o->line);
	free(o);
}

void
kept_over(struct kept_op *o)
{
	struct kept_run *r = o->run;

	op_drop(o);
	/* While all of it is being ended there may be more than these. */
	if (!r->resumed && !r->beside_row && !kept_is_ending(r))
		kept_store_list(r);
	kept_run_look(r);
}

/* What is only to be written down does not. */
static unsigned
going_on(const struct kept_run *r)
{
	const struct kept_op *o;
	unsigned n = 0;

	TAILQ_FOREACH(o, &r->ops, entry)
	{
		n += !r->resumed && o->tries == 0;
	}
	return n;
}

bool
kept_goes_on(const struct daemon *d, unsigned *count)
{
	const struct kept_run *r;
	unsigned n = 0;
	bool any = false;

	TAILQ_FOREACH(r, &d->kept.runs, entry)
	{
		n += going_on(r);
		any = any || (!r->resumed && !TAILQ_EMPTY(&r->ends));
	}
	if (count != NULL)
		*count = n;
	return any || n > 0;
}

struct json *
kept_describe(const struct daemon *d, struct json *o)
{
	struct json *runs = json_array();
	const struct kept_run *r;
	unsigned n = 0;

	TAILQ_FOREACH(r, &d->kept.runs, entry)
	{
		if (going_on(r) > 0 && json_length(runs) < KEPT_NAMED)
			runs = json_append(runs, json_cstr(r->run_id));
		n += going_on(r);
	}
	return json_set(json_set(o, "kept_operations", json_int(n)), "kept_runs", runs);
}

void
kept_clear(struct daemon *d)
{
	struct kept_run *r;

	while ((r = TAILQ_FIRST(&d->kept.runs)) != NULL) {
		while (!TAILQ_EMPTY(&r->ops))
			/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
			op_drop(TAILQ_FIRST(&r->ops));
		run_free(r);
	}
	kept_clear_ends(d);
}

/* ---- Records ---- */

/* away (or NULL) says that the run has no directory. */
static int
open_ops(struct daemon *d, const char *run_id, bool *away, struct err *e)
{
	int run_fd = rundir_open(&d->home, run_id, e), fd;

	if (away != NULL)
		*away = run_fd < 0 && e->code == ERR_NOTFOUND;
	if (run_fd < 0)
		return -1;
	fd = fs_open_private_dir(run_fd, RUN_OPS, e);
	fd_close(&run_fd);
	return fd;
}

/* One that is there already came from somebody who saw it too. */
static int
record_in(int ops_fd, const struct kept_op *o, const char *dir, struct err *e)
{
	struct exit_record r = {.id = o->id, .end = o->end, .time = o->time}, there;

	if (exit_record_read(ops_fd, dir, o->id, &there, &(struct err){0}) == 0)
		return 0;
	strlcpy(r.by, o->by, sizeof(r.by));
	return exit_record_write(ops_fd, dir, &r, e);
}

/* Where its process has its files, wherever that was moved. False: it has no name any more. */
static bool
has_place(const struct kept_op *o)
{
	struct stat st;

	return o->ops_fd >= 0 && fstat(o->ops_fd, &st) == 0 && st.st_nlink > 0;
}

static int
record_end(struct daemon *d, const struct kept_op *o, const char *dir, bool *away, struct err *e)
{
	int ops_fd, rc;

	if (has_place(o))
		return record_in(o->ops_fd, o, dir, e);
	ops_fd = open_ops(d, o->files, away, e);
	if (ops_fd < 0)
		return -1;
	rc = record_in(ops_fd, o, dir, e);
	fd_close(&ops_fd);
	return rc;
}

/* A directory may be moved away for a while; a run without a row is not resumed any more. */
static bool
is_removed(struct daemon *d, const char *run_id)
{
	struct session s;
	struct err e = {0};

	if (session_read(d->store, run_id, &s, &e) != 0)
		return e.code == ERR_NOTFOUND;
	session_clear(&s);
	return false;
}

bool
kept_write_end(struct daemon *d, struct kept_op *o, struct err *e)
{
	char dir[ATTEMPT_DIR_TEXT];
	bool away = false;

	attempt_dir(o->op, o->attempt, dir);
	if (record_end(d, o, dir, &away, e) == 0) {
		log_line(LOG_INFO, "run %s: ops/%s, whose worker is dead, has ended: %s %d", o->files, dir,
		    o->end.signaled ? "signal" : "status", o->end.code);
		return true;
	}
	if (e->code == ERR_NOTFOUND && (!away || is_removed(d, o->files)))
		return true;
	/* As of jobs: a full disk must not fill the log as well. */
	if ((o->tries & (o->tries - 1)) == 0)
		log_line(LOG_ERROR, "run %s: how ops/%s ended is not written down yet: %s; it is tried again",
		    o->files, dir, e->msg);
	o->write_ns = clock_monotonic_ns() +
	    (WRITE_AGAIN_MS * NS_PER_MS << (!away ? 0 : o->tries < AWAY_DOUBLINGS ? o->tries : AWAY_DOUBLINGS));
	o->tries++;
	return false;
}

void
kept_set_end(struct kept_op *o, const struct proc_end *end, double time, const char *by)
{
	o->end = *end;
	o->time = time;
	o->by = by;
}

bool
kept_has_record(struct daemon *d, const struct kept_op *o)
{
	char dir[ATTEMPT_DIR_TEXT];
	struct exit_record r;
	struct err e = {0};
	int ops_fd;
	bool has;

	attempt_dir(o->op, o->attempt, dir);
	if (has_place(o))
		return exit_record_read(o->ops_fd, dir, o->id, &r, &e) == 0;
	ops_fd = open_ops(d, o->files, NULL, &e);
	has = ops_fd >= 0 && exit_record_read(ops_fd, dir, o->id, &r, &e) == 0;
	fd_close(&ops_fd);
	return has;
}

void
kept_told(struct kept_op *o, const struct proc_end *end, const char *by)
{
	kept_set_end(o, end, (double)clock_wall_ns() / (double)NS_PER_S, by);
	kept_write(o);
}

bool
kept_try(struct kept_op *o, struct err *e)
{
	if (!kept_write_end(o->run->daemon, o, e))
		return false;
	/* Only now: until then a resume finds it dead, and waits. */
	(void)proc_wait(o->process.fd, false, &o->end, &(struct err){0});
	kept_over(o);
	return true;
}

void
kept_write(struct kept_op *o)
{
	struct daemon *d = o->run->daemon;

	if (kept_try(o, &(struct err){0}))
		return;
	loop_remove(&d->loop, &o->process); /* it tells nothing any more */
	kept_arm(d);
}

static bool
last_try(struct kept_op *o)
{
	if (kept_try(o, &(struct err){0}))
		return true;
	log_line(LOG_ERROR, "run %s: how operation %s ended (attempt %u: %s %d) is not written down", o->files,
	    o->op, o->attempt, o->end.signaled ? "signal" : "status", o->end.code);
	return false;
}

unsigned
kept_last_try(struct daemon *d)
{
	struct kept_run *r, *next_run;
	struct kept_op *o, *next;
	unsigned n = 0;

	for (r = TAILQ_FIRST(&d->kept.runs); r != NULL; r = next_run) {
		next_run = TAILQ_NEXT(r, entry);
		for (o = TAILQ_FIRST(&r->ops); o != NULL; o = next) {
			next = TAILQ_NEXT(o, entry); /* r goes with its last one */
			n += o->tries > 0 && !last_try(o) ? 1 : 0;
		}
	}
	return n;
}

/* ---- Ends that came to us ---- */

bool
kept_reap(struct daemon *d, pid_t pid)
{
	struct kept_op *o = find_op(d, pid);
	struct proc_end end = {0};
	struct kept_run *r;

	TAILQ_FOREACH(r, &d->kept.runs, entry)
	{
		if (kept_helper_reap(r, pid))
			return true;
	}
	/* A stranger may have the number of one that was not our child. */
	if (o == NULL || proc_wait(o->process.fd, true, &end, &(struct err){0}) < 1)
		return false;
	if (o->tries == 0)
		kept_told(o, &end, "supervisor");
	return true;
}

bool
kept_is_unwritten(const struct daemon *d, pid_t pid)
{
	const struct kept_op *o = find_op(d, pid);

	return o != NULL && o->tries > 0;
}

/* ---- What a report says ---- */

static int64_t
milliseconds(const struct json *line, const char *name)
{
	int64_t ms;

	return json_int64(json_get(line, name), &ms) && ms > 0 && ms < INT64_MAX / NS_PER_MS
	    ? ms * NS_PER_MS : 0;
}

static bool
read_id(const struct json *line, const char *number, const char *ticks, struct proc_id *id)
{
	int64_t pid;

	*id = (struct proc_id){0};
	if (!json_int64(json_get(line, number), &pid) || pid < 1 || pid > INT32_MAX ||
	    !json_uint64(json_get(line, ticks), &id->start_ticks))
		return false;
	id->pid = (pid_t)pid;
	return true;
}

bool
kept_read_line(const struct json *line, const char *run_id, struct kept_op *o)
{
	int64_t attempt;

	*o = (struct kept_op){.process = SOURCE_INIT, .ops_fd = -1};
	o->op = json_cstr_of(json_get(line, "op"));
	o->files = json_cstr_of(json_get(line, "run"));
	if (o->files == NULL)
		o->files = run_id;
	if (o->op == NULL || strchr(o->op, '/') != NULL || !run_id_is_valid(o->files) ||
	    !json_int64(json_get(line, "attempt"), &attempt) || attempt < 1 || attempt > INT32_MAX ||
	    !read_id(line, "pid", "start", &o->id))
		return false;
	o->attempt = (unsigned)attempt;
	(void)read_id(line, "reaper", "reaper_start", &o->reaper);
	o->limit_ns = milliseconds(line, "limit_ms");
	o->silence_ns = milliseconds(line, "silence_ms");
	o->strict = json_is_true(json_get(line, "strict"));
	return true;
}

static void
on_process(void *arg)
{
	struct kept_op *o = arg;
	struct daemon *d = o->run->daemon;
	pid_t pid = o->id.pid;

	children_reap(d);
	o = find_op(d, pid);
	if (o == NULL || o->over_ns != 0 || o->tries > 0)
		return;
	/* Not our child: who has it tells how it ended, or the kernel does. */
	loop_remove(&d->loop, &o->process);
	o->over_ns = clock_monotonic_ns();
	kept_arm(d);
}

/* The same process may be known as one of the run that was resumed by this one. */
static void
forget_elsewhere(struct daemon *d, const struct kept_op *like)
{
	struct kept_op *old = find_op(d, like->id.pid);
	struct kept_run *r;

	if (old == NULL || old->id.start_ticks != like->id.start_ticks)
		return;
	r = old->run;
	op_drop(old);
	kept_run_look(r);
}

static void
watch(struct daemon *d, const char *run_id, const struct json *line, const struct kept_op *like)
{
	struct kept_op *o = calloc(1, sizeof(*o));
	struct err e = {0};
	struct kept_run *r;
	int pidfd = o != NULL && like->tries == 0 ? proc_open(like->id, &e) : -1;

	forget_elsewhere(d, like);
	r = pidfd >= 0 || (o != NULL && like->tries > 0) ? kept_run_of(d, run_id) : NULL;
	if (r == NULL) {
		fd_close(&pidfd);
		free(o);
		return; /* it has just ended, and was nobody's to reap here */
	}
	*o = *like;
	o->run = r;
	o->line = json_ref(line);
	if (json_get(line, "run") == NULL)
		o->files = r->run_id;
	o->ops_fd = open_ops(d, o->files, NULL, &(struct err){0});
	o->life.since_ns = o->look_ns = clock_monotonic_ns();
	TAILQ_INSERT_TAIL(&r->ops, o, entry);
	d->kept.count++;
	if (like->tries > 0 || loop_add(&d->loop, &o->process, pidfd, on_process, o, &e) == 0)
		return;
	log_line(LOG_ERROR, "run %s: ops/%s is not watched: %s", run_id, o->op, e.msg);
	fd_close(&pidfd);
	op_drop(o);
	kept_run_look(r);
}

static void
hear_lines(struct daemon *d, const char *run_id, const struct json *lines)
{
	struct json_iter it = json_iterate(lines);
	const struct json *line;
	struct kept_op o;

	while (json_next(&it, NULL, &line)) {
		if (!kept_read_line(line, run_id, &o))
			log_line(LOG_WARNING, "run %s: a start line is not understood", run_id);
		else if (!kept_claim(d, &o) && !is_unwritten(d, o.id))
			watch(d, run_id, line, &o); /* also what waits to be reaped by somebody */
	}
}

void
kept_report(struct daemon *d, const char *run_id, const struct json *answer, bool beside_row)
{
	struct kept_run *r;

	hear_lines(d, run_id, json_get(answer, "running_operations"));
	hear_lines(d, run_id, json_get(answer, "ended_operations"));
	r = find_run(d, run_id);
	if (r == NULL)
		return;
	r->beside_row = beside_row;
	kept_ask_policy(r, json_get(answer, "orphans_s"));
	kept_arm(d);
}

/* ---- restart ---- */

struct json *
kept_handed(const struct daemon *d)
{
	struct json *all = json_array(), *lines, *one;
	const struct kept_run *r;
	const struct kept_op *o;

	TAILQ_FOREACH(r, &d->kept.runs, entry)
	{
		lines = json_array();
		TAILQ_FOREACH(o, &r->ops, entry)
		{
			lines = json_append(lines, json_ref(o->line));
		}
		one = json_set(json_object(), "run", json_cstr(r->run_id));
		one = json_set(one, "resumed", json_bool(r->resumed));
		one = json_set(one, "until_ns", json_int(r->until_ns));
		all = json_append(all, json_set(one, "operations", lines));
	}
	return all;
}

void
kept_take(struct daemon *d, const struct json *handed)
{
	struct json_iter it = json_iterate(handed);
	const struct json *one;
	struct kept_run *r;

	while (json_next(&it, NULL, &one)) {
		const char *run_id = json_cstr_of(json_get(one, "run"));

		if (run_id == NULL || !run_id_is_valid(run_id))
			continue;
		hear_lines(d, run_id, json_get(one, "operations"));
		r = find_run(d, run_id);
		if (r == NULL)
			continue;
		r->resumed = json_is_true(json_get(one, "resumed"));
		(void)json_int64(json_get(one, "until_ns"), &r->until_ns);
	}
	kept_arm(d);
}
