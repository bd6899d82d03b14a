#include "saved.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "output.h"
#include "seek.h"

enum { EXIT_RECOVERED = 6 };

static int
open_path(struct saved *s, const char *path, const struct stat *st, struct err *e)
{
	const char *slash = strrchr(path, '/');

	if (S_ISDIR(st->st_mode))
		s->directory = strdup(path);
	else {
		s->directory = slash == NULL ? strdup(".") : slash == path ? strdup("/") :
		    strndup(path, (size_t)(slash - path));
		s->file = strdup(slash == NULL ? path : slash + 1);
		s->base_name = s->file;
	}
	if (s->directory == NULL || (s->base_name == NULL && !S_ISDIR(st->st_mode)))
		return err_nomem(e);
	s->fd = fs_open_shared_dir(s->directory, e);
	return s->fd >= 0 ? 0 : -1;
}

static int
find_lock(struct saved *s, struct err *e)
{
	struct stat st;

	/* A copy has no lock and no worker, also one that lies beside the run's own pair. */
	if (s->base_name != NULL && strcmp(s->base_name, CKPT_BASE) != 0)
		return 0;
	if (fstatat(s->fd, RUN_LOCK, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : err_sys(e, ERR_IO, errno, "%s", RUN_LOCK);
	return run_lock_held(s->fd, &s->lock_held, e);
}

/* Who asks what was saved is not told to end what goes on. */
static int
open_run(struct saved *s, struct err *e)
{
	s->is_run = true;
	s->fd = rundir_open(&s->target.home, s->target.session.run_id, e);
	if (s->fd >= 0)
		return 0;
	if (!err_has_hint(e) && !status_is_terminal(s->target.session.status))
		err_advice(e, "the run is alive: move its directory back, or give the path where it is now");
	return seek_damaged(&s->target.session, e);
}

int
saved_open(struct cli *c, const char *name, struct saved *s, struct err *e)
{
	struct stat st;
	int result;

	*s = (struct saved){.fd = -1};
	if (strchr(name, '/') != NULL || stat(name, &st) == 0) {
		if (stat(name, &st) != 0)
			return err_sys(e, errno == EACCES ? ERR_PERMISSION : ERR_NOTFOUND, errno, "%s", name);
		result = open_path(s, name, &st, e);
	} else {
		result = target_of(c, name, false, &s->target, e);
		if (result != 0)
			return -1;
		result = open_run(s, e);
	}
	return result == 0 ? find_lock(s, e) : -1;
}

void
saved_close(struct saved *s)
{
	json_unref(s->state);
	if (s->is_run)
		target_close(&s->target);
	if (s->fd >= 0)
		close(s->fd);
	free(s->directory);
	free(s->file);
	*s = (struct saved){.fd = -1};
}

int
saved_tell_missing(struct saved *s, struct err *e)
{
	const struct session *run = s->is_run ? &s->target.session : NULL;

	if (s->base_name == NULL)
		(void)seek_refuse_lost(s->fd, run != NULL && run->started_at > 0, &s->report, e);
	if (e->code == ERR_CHECKPOINT)
		return run != NULL ? err_hint(e, "flowsup logs %s   # what its operations wrote", run->run_id)
				   : -1;
	return err_set(e, ERR_NOTFOUND, "there is no checkpoint%s", run == NULL ? " here" :
	    status_is_terminal(run->status) ? ": the run started no operation" :
	    ": the run started no operation yet");
}

int
saved_load(struct saved *s, struct err *e)
{
	const struct ckpt_load_options o = {.lock_held = s->lock_held, .base_name = s->base_name};

	if (ckpt_load(s->fd, &o, &s->state, &s->report, e) == 0)
		return 0;
	return e->code == ERR_NOTFOUND ? saved_tell_missing(s, e) : -1;
}

void
saved_note(const struct saved *s)
{
	struct buf line = {0};

	if (s->report.status == CKPT_CLEAN)
		return;
	ckpt_report_line(&s->report, &line);
	cli_note("%s", buf_text(&line));
	buf_clear(&line);
}

int
saved_take(struct cli *c, struct saved *s, struct err *e)
{
	if (saved_open(c, c->operands[0], s, e) == 0 && saved_load(s, e) == 0) {
		saved_note(s);
		return 0;
	}
	if (e->code == ERR_CHECKPOINT && s->report.reason[0] != '\0')
		saved_note(s);
	/* A program that asked for JSON finds the reason in the same structure. */
	if (e->code == ERR_CHECKPOINT && c->json)
		out_json(c->out, json_set(json_object(), "checkpoint_recovery",
		    ckpt_report_json(&s->report)));
	saved_close(s);
	return -1;
}

int
saved_exit(const struct ckpt_report *r)
{
	return r->status == CKPT_RECOVERED_PREFIX ? EXIT_RECOVERED : 0;
}

void
saved_print_report(struct output *out, const struct ckpt_report *r, enum ckpt_status verdict)
{
	out_printf(out, "%s: version %d", ckpt_status_name(verdict), r->format);
	if (r->generation[0] != '\0')
		out_printf(out, ", generation %s", r->generation);
	out_printf(out, ", base of %" PRId64 " bytes", r->base_bytes);
	if (r->journal_bytes >= 0)
		out_printf(out, ", journal of %" PRId64 " bytes", r->journal_bytes);
	out_puts(out, "\n");
}

bool
saved_is_pending(const struct json *entry)
{
	return slice_is(json_text(json_get(entry, "status")), "pending");
}
