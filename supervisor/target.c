#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "flowsup/fs.h"
#include <sys/stat.h>

#include "client.h"
#include "flowsup/log.h"
#include "paste.h"
#include "target.h"
#include "unwatched.h"

bool
target_lost_database(const struct home *h, struct err *e)
{
	struct stat st;

	if (fstatat(h->fd, HOME_DATABASE, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ||
	    !home_had_runs(h))
		return false;
	err_set(e, ERR_IO, "the database '%s/" HOME_DATABASE "' is gone, but there are run directories",
	    h->path);
	err_hint(e, "flowsup doctor");
	return true;
}

int
target_open(const struct cli *c, struct target *t, struct err *e)
{
	bool lost;

	*t = (struct target){.cli = c};
	if (home_open(c->home, false, &t->home, e) != 0)
		goto none;
	if (store_open(&t->home, cli_dry_run(c) ? STORE_DRY : STORE_COMMAND, false, STORE_BUSY_MS,
		&t->store, e) == 0)
		return 0;
	lost = e->code == ERR_NOTFOUND && target_lost_database(&t->home, e);
	home_close(&t->home);
	if (lost) {
		*t = (struct target){0};
		return -1;
	}
none:
	*t = (struct target){0};
	if (e->code == ERR_NOTFOUND) {
		err_set(e, ERR_NOTFOUND, "there are no runs yet");
		err_hint(e, "flowsup start -- echo hello");
	}
	return -1;
}

int
target_open_any(const struct cli *c, struct target *t, struct err *e)
{
	if (target_open(c, t, e) == 0)
		return 0;
	if (e->code != ERR_NOTFOUND)
		return -1;
	cli_note("%s", e->msg);
	if (err_has_hint(e))
		cli_hint("%s", err_hint_text(e));
	err_clear(e);
	return 1;
}

static void
drop_session(struct target *t)
{
	if (t->has_session)
		session_clear(&t->session);
	t->has_session = false;
}

void
target_close(struct target *t)
{
	drop_session(t);
	if (t->store != NULL)
		store_close(t->store);
	if (t->home.path != NULL)
		home_close(&t->home);
	*t = (struct target){0};
}

enum { RUNS_LOOKED_AT = 50 };

struct near {
	const char *name;
	char nearest[RUN_ID_TEXT];
	char named[RUN_ID_TEXT]; /* the latest that has this name */
};

static int
look_nearer(void *arg, const struct session *s)
{
	struct near *n = arg;
	const char *names[] = {n->nearest, s->run_id};
	const char *found = text_nearest(n->name, names, 2);

	if (found == s->run_id)
		memcpy(n->nearest, s->run_id, sizeof(n->nearest));
	if (s->name != NULL && strcmp(s->name, n->name) == 0) {
		memcpy(n->named, s->run_id, sizeof(n->named));
		return 1;
	}
	return 0;
}

/* The latest run of that name, or what looks like it, of the latest runs. A hint is a favour: what goes wrong here means that there is none. */
static void
hint_nearest(struct target *t, const char *name, struct err *e)
{
	static const char *const words[] = {"@last", "@last-failed"};
	static const struct session_filter latest = {.limit = RUNS_LOOKED_AT};
	const char *word = text_nearest(name, words, sizeof(words) / sizeof(words[0]));
	struct near n = {.name = name};

	/* It means none, and the error says what to do then. */
	if (word != NULL && strcmp(word, name) == 0)
		return;
	if (word == NULL)
		(void)session_list(t->store, &latest, look_nearer, &n, &(struct err){0});
	if (n.named[0] != '\0')
		word = n.named;
	if (word != NULL || n.nearest[0] != '\0')
		cli_hint_instead(t->cli, name, strlen(name), word != NULL ? word : n.nearest, e);
}

int
target_find(struct target *t, const char *name, struct err *e)
{
	drop_session(t);
	if (session_resolve(t->store, name, &t->session, e) != 0) {
		if (e->code == ERR_NOTFOUND && t->cli->argv != NULL && !cli_hint_joined(t->cli, name, e))
			hint_nearest(t, name, e);
		return -1;
	}
	t->has_session = true;
	return 0;
}

int
target_latest(const struct cli *c, struct target *t, struct err *e)
{
	struct session latest;

	if (c->this_run || t->session.resumed_as_run[0] == '\0')
		return 0;
	if (session_latest(t->store, t->session.run_id, &latest, e) != 0)
		return -1;
	if (strcmp(latest.run_id, t->session.run_id) != 0)
		cli_note("run %s was resumed; this is about %s, the latest of its chain (--this-run "
			 "stays)", t->session.run_id, latest.run_id);
	drop_session(t);
	t->session = latest;
	t->has_session = true;
	return 0;
}

int
target_reload(struct target *t, struct err *e)
{
	struct session fresh;

	if (session_read(t->store, t->session.run_id, &fresh, e) != 0)
		return -1;
	drop_session(t);
	t->session = fresh;
	t->has_session = true;
	return 0;
}

/* The command that served it has gone without a word when nobody holds its lock. */
static int
nudge_abandoned(void *arg, const struct session *s)
{
	struct target *t = arg;
	struct err e = {0};
	int run_fd = rundir_open(&t->home, s->run_id, &e);
	bool held = true;

	if (run_fd >= 0 && run_lock_held(run_fd, &held, &e) == 0 && !held)
		(void)client_nudge(&t->home, s->run_id, &e);
	fd_close(&run_fd);
	/* One that hangs is not waited for again. */
	return e.code == ERR_TIMEOUT;
}

static bool
has_unwatched(const struct target *t)
{
	struct unwatched u = {0};

	return unwatched_count(&t->home, t->store, &u, &(struct err){0}) == 0 && u.ops > 0;
}

void
target_wake(struct target *t)
{
	static const struct session_filter served = {
	    .statuses = {STATUS_QUEUED, STATUS_STARTING, STATUS_RUNNING, STATUS_PAUSED},
	    .nstatuses = 4,
	    .foreground = true};
	struct err e = {0};
	bool any = false, up = client_is_up(&t->home);

	if (store_has_work(t->store, &any, &e) != 0 || (!any && (up || !has_unwatched(t))))
		return;
	if (!up && client_ensure(&t->home, CLIENT_IDLE_DEFAULT, NULL, &e) != 0) {
		cli_note("no supervisor could be started: %s", e.msg);
		cli_hint("flowsup doctor   # what is shown may be old");
		return;
	}
	(void)session_list(t->store, &served, nudge_abandoned, t, &e);
}

int
target_check_own(const struct cli *c, const struct home *h, const struct session *s, struct err *e)
{
	const char *path = session_owner(s, h);
	struct buf show = {0};

	if (path == NULL)
		return 0;
	err_set(e, ERR_REFUSED, "run %s is here a copy: it belongs to the state directory '%s'", s->run_id, path);
	paste_command(&show, "show", path, s->run_id, NULL);
	cli_hint_whole(c, &show, e);
	buf_clear(&show);
	return -1;
}

bool
target_is_lost(const struct home *h, const struct session *s, struct buf *text)
{
	struct proc_place there, here;
	struct err ignored = {0};
	bool other_boot, held = true, lost;
	int run_fd;

	if (s->status == STATUS_QUEUED || status_is_terminal(s->status) ||
	    !proc_place_parse(s->place, &there) || proc_place_here(&here, &ignored) != 0 ||
	    proc_place_is(&there, &here, &other_boot))
		return false;
	run_fd = rundir_open(h, s->run_id, &ignored);
	lost = run_fd >= 0 && run_lock_held(run_fd, &held, &ignored) == 0 && !held;
	fd_close(&run_fd);
	if (lost)
		buf_printf(text, "run %s ran on host %s or in another pid namespace of it, and no worker of it is seen",
		    s->run_id, there.host);
	return lost;
}

void
target_lost_hint(const char *home_option, const struct session *s, struct buf *to)
{
	paste_command(to, "resume", home_option, s->run_id, NULL);
	buf_puts(to, " --take-over   # if it is dead there");
}

int
target_check_seen(const struct cli *c, const struct target *t, struct err *e)
{
	struct buf text = {0}, hint = {0};
	int rc = 0;

	if (target_is_lost(&t->home, &t->session, &text)) {
		rc = err_set(e, ERR_REFUSED, "%s", buf_text(&text));
		target_lost_hint(c->home, &t->session, &hint);
		cli_hint_whole(c, &hint, e);
	}
	buf_clear(&text);
	buf_clear(&hint);
	return rc;
}

int
target_of(const struct cli *c, const char *name, bool latest, struct target *t, struct err *e)
{
	if (target_open(c, t, e) != 0)
		return -1;
	target_wake(t);
	if (target_find(t, name == NULL ? "@last" : name, e) == 0 &&
	    (!latest || target_latest(c, t, e) == 0))
		return 0;
	target_close(t);
	return -1;
}
