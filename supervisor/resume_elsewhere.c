/*
 * resume: a directory that is given by its path. It may be the one of a run here; else it holds a
 * checkpoint that came from somewhere else, of whatever version, which the new run starts from. Such
 * a directory is never written to, and nothing that may be its is ended: another state directory
 * may own both.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/endops.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "resuming.h"
#include "seek.h"

/* ---- Whose it is ---- */

static bool
is_run_here(const struct resuming *r, const char *run_id)
{
	struct stat own, given;

	return r->has_home && run_id_is_valid(run_id) && fstat(r->run_fd, &given) == 0 &&
	    fstatat(r->t->home.runs_fd, run_id, &own, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fs_same(fs_identity_of(&own), fs_identity_of(&given));
}

static const char *
last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* The state directory that a run directory lies in, by its shape; NULL when it lies in none. */
static char *
home_of(const struct resuming *r)
{
	char *home = strdup(r->run_path), *slash;
	unsigned i;

	for (i = 0; home != NULL && i < 2 && (slash = strrchr(home, '/')) != NULL; i++)
		*slash = '\0';
	if (home != NULL && run_id_is_valid(last_component(r->run_path)) &&
	    faccessat(r->run_fd, "../../" HOME_DATABASE, F_OK, 0) == 0)
		return home;
	free(home);
	return NULL;
}

static int
belongs_to(const struct resuming *r, const char *home, struct err *e)
{
	char word[SHELL_WORD_TEXT];

	err_set(e, ERR_REFUSED, "%s is a run of another state directory", r->label);
	return err_hint(e, "flowsup resume --home %s %s", shell_word(word, home), last_component(r->run_path));
}

/* ---- Whether it is at rest ---- */

int
resuming_still_running(const struct resuming *r, const char *op, pid_t pid, struct err *e)
{
	err_set(e, ERR_REFUSED, "%s: operation %s, which its worker started, still runs (process %d)", r->label, op,
	    (int)pid);
	/* The run itself takes it over. */
	if (r->original_is_here)
		return err_hint(e, "flowsup resume %s", r->original);
	return err_hint(e, "kill %d   # or wait until it has ended", (int)pid);
}

static int
still_running(const struct resuming *r, const struct attempts *a, struct err *e)
{
	size_t i;

	for (i = 0; i < a->nopen; i++)
		if (proc_is_alive(a->open[i].id))
			return resuming_still_running(r, a->open[i].op, a->open[i].id.pid, e);
	return 0;
}

/* Where its worker ran on another host, nothing here tells whether it lives. */
static int
of_elsewhere(const struct resuming *r, const char *host, struct err *e)
{
	if (cli_flag(r->c, "take-over")) {
		cli_note("%s is taken over from %s; what of it may run there is not ended", r->label, host);
		return 0;
	}
	return resuming_of_elsewhere(r, host, e);
}

int
resuming_at_rest(const struct resuming *r, struct err *e)
{
	const struct attempts *a = &r->attempts;
	bool here = true, other_boot = false;

	if (endops_is_here(a, &here, &other_boot, e) != 0)
		return -1;
	if (!here)
		return of_elsewhere(r, a->place.host, e);
	if (other_boot)
		return 0;
	if (a->has_place && proc_is_alive(a->worker)) {
		err_set(e, ERR_REFUSED, "%s: its worker is alive (process %d)", r->label, (int)a->worker.pid);
		return err_hint(e, "flowsup list   # of the state directory that its run belongs to");
	}
	return still_running(r, a, e);
}

/* Whoever has its lock may write to it. No look that comes later tells more. */
int
resuming_check_unlocked(const struct resuming *r, struct err *e)
{
	char who[SEEK_WHO_TEXT];
	bool held = false;

	if (resuming_lock_held(r, RUN_LOCK_OVER_MS, &held, e) != 0)
		return resuming_damaged(r, e);
	if (!held)
		return 0;
	err_set(e, ERR_REFUSED, "%s is being written: %s has its lock", r->label, seek_who(r->run_fd, who));
	return err_hint(e, "flowsup list   # of the state directory that its run belongs to");
}

int
resuming_lock_held(const struct resuming *r, int wait_ms, bool *held, struct err *e)
{
	struct stat lock, own;

	*held = false;
	/* A copy may have none. */
	if (fstatat(r->run_fd, RUN_LOCK, &lock, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
		return 0;
	/* What we have, be it of the original, nobody else has. */
	if (r->lock_fd >= 0 && fstat(r->lock_fd, &own) == 0 && fs_same(fs_identity_of(&lock), fs_identity_of(&own)))
		return 0;
	return seek_lock_held(r->run_fd, wait_ms, held, e);
}

/* ---- Only once ---- */

struct successor {
	const char *path, *session; /* or NULL */
	char run_id[RUN_ID_TEXT];
};

/* By its session, whatever its path is now; another program's ids may stand for several. */
static bool
is_of_same(const struct successor *to, const struct json *metadata)
{
	const struct json *session = json_get(metadata, META_RESUMED_SESSION);
	bool same_path = slice_is(json_text(json_get(metadata, META_RESUMED_DIRECTORY)), to->path);

	if (session == NULL)
		return same_path;
	if (to->session == NULL || !slice_is(json_text(session), to->session))
		return false;
	return same_path || resuming_is_session(to->session);
}

static int
look_for_successor(void *arg, const struct session *s)
{
	struct successor *to = arg;

	if (!is_of_same(to, s->metadata))
		return 0;
	strlcpy(to->run_id, s->run_id, sizeof(to->run_id));
	return 1;
}

int
resuming_check_once(const struct resuming *r, struct err *e)
{
	const struct session_filter all = {.limit = 0};
	struct successor s = {.path = r->run_path, .session = resuming_session(r)};

	if (!r->has_home || r->t->store == NULL)
		return 0;
	if (session_list(r->t->store, &all, look_for_successor, &s, e) != 0)
		return -1;
	if (s.run_id[0] == '\0')
		return 0;
	err_set(e, ERR_REFUSED, "%s was already resumed, as run %s", r->label, s.run_id);
	return err_hint(e, "flowsup show %s", s.run_id);
}

/* The directory's own lock orders resumes here; it is gone with the process and leaves no trace. */
static int
lock(struct resuming *r, struct err *e)
{
	while (flock(r->run_fd, LOCK_EX) != 0)
		if (errno != EINTR)
			return err_sys(e, ERR_IO, errno, "lock %s", r->label);
	return 0;
}

void
resuming_unlock(const struct resuming *r)
{
	if (!r->is_run)
		(void)flock(r->run_fd, LOCK_UN);
}

/* ---- All of it ---- */

static int
open_directory(struct resuming *r, const char *path, struct err *e)
{
	r->run_fd = fs_open_shared_dir(path, e);
	if (r->run_fd < 0)
		return e->sys == ENOTDIR ? err_advice(e, "name the directory that holds %s", CKPT_BASE) : -1;
	r->run_path = realpath(path, NULL);
	if (r->run_path == NULL)
		return err_sys(e, ERR_IO, errno, "'%s'", path);
	r->name = strdup(path);
	if (r->name == NULL || asprintf(&r->label, "'%s'", path) < 0) {
		r->label = NULL;
		return err_nomem(e);
	}
	return 0;
}

static bool
has_row(const struct resuming *r, const char *id)
{
	struct session s;

	if (!r->has_home || r->t->store == NULL || !run_id_is_valid(id) || session_read(r->t->store, id, &s, NULL) != 0)
		return false;
	session_clear(&s);
	return true;
}

/* Without a checkpoint there is nothing here, but its name may be known. */
static bool
is_known_by_name(const struct resuming *r, const char *id)
{
	return faccessat(r->run_fd, CKPT_BASE, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && has_row(r, id);
}

/* A link of another name leads to a run too; its launch record says which. */
static bool
find_run_id(const struct resuming *r, char run_id[RUN_ID_TEXT])
{
	struct launch_read l;
	const char *id = last_component(r->run_path);
	bool found = (is_run_here(r, id) && has_row(r, id)) || is_known_by_name(r, id);

	if (found) {
		strlcpy(run_id, id, RUN_ID_TEXT);
	} else if (launch_read(r->run_fd, &l, NULL) == 0) {
		id = json_cstr_of(json_get(l.object, "run_id"));
		found = id != NULL && is_run_here(r, id) && has_row(r, id);
		if (found)
			strlcpy(run_id, id, RUN_ID_TEXT);
		launch_read_clear(&l);
	}
	return found;
}

int
resuming_elsewhere(struct resuming *r, const char *path, char run_id[RUN_ID_TEXT], struct err *e)
{
	char *home;
	int rc;

	if (open_directory(r, path, e) != 0)
		return -1;
	if (find_run_id(r, run_id))
		return 0;
	/* One of ours that has lost its row with the database is as good as one from elsewhere. */
	home = is_run_here(r, last_component(r->run_path)) ? NULL : home_of(r);
	if (home != NULL) {
		rc = belongs_to(r, home, e);
		free(home);
		return rc;
	}
	return lock(r, e) == 0 ? 1 : -1;
}
