#include "unique.h"

#include <string.h>

#include "client.h"
#include "elsewhere.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "leftover.h"
#include "paste.h"
#include "render.h"
#include "target.h"

enum unique_mode
unique_mode(const struct cli *c)
{
	static const char *const words[] = {"skip", "queue", "fail", "replace"};
	const char *word = cli_text(c, "if-running", "skip");
	unsigned i = 0;

	while (i < UNIQUE_REPLACE && strcmp(words[i], word) != 0)
		i++;
	return (enum unique_mode)i;
}

int
unique_usage(const struct cli *c, struct err *e)
{
	const char *key = cli_text(c, "unique", NULL), *queue = cli_text(c, "queue", NULL);

	if (cli_flag(c, "if-running") && key == NULL) {
		err_set(e, ERR_USAGE, "--if-running goes with --unique");
		return err_hint(e, "flowsup %s --help", c->command->name);
	}
	if (key != NULL && (key[0] == '\0' || strlen(key) > UNIQUE_KEY_MOST))
		return err_set(e, ERR_USAGE, "--unique: a key has 1 to %d bytes", UNIQUE_KEY_MOST);
	if (queue == NULL || queue_name_is_valid(queue))
		return 0;
	err_set(e, ERR_USAGE, "--queue: '%.80s' is no name of a queue", queue);
	return err_advice(e, "letters, digits, '.', '_' and '-', at most %d", QUEUE_NAME_MOST);
}

/* ---- Who is in the way ---- */

static double
now_seconds(void)
{
	return (double)clock_wall_ns() / (double)NS_PER_S;
}

/* A job that keeps others from running for long may hang: nobody else would say so. */
static void
report_long(const struct home *h, const char *blocker, double first, int64_t count)
{
	struct err ignored = {0};
	char text[DURATION_TEXT];
	double since = now_seconds() - first;

	if (since < UNIQUE_LONG_S)
		return;
	cli_note("run %s has kept %lld starts waiting, for %s by now: does it hang?", blocker,
	    (long long)count, render_seconds(since, text));
	cli_hint("flowsup show %s; flowsup stop %s --now", blocker, blocker);
	/* Whoever is to be told of problems of that run is told. */
	if (client_is_up(h))
		(void)client_scan(h, blocker, &ignored);
}

/* It may have died where no supervisor watched it: then one looks at it now, and a person knows the rest. */
static void
doubt_elsewhere(const struct cli *c, const struct home *h, const struct session *s)
{
	struct buf text = {0}, hint = {0};
	struct err ignored = {0};

	if (target_is_lost(h, s, &text)) {
		(void)client_nudge(h, s->run_id, &ignored);
		target_lost_hint(c->home, s, &hint);
		cli_note("%s", buf_text(&text));
		cli_hint("%s", buf_text(&hint));
	}
	buf_clear(&text);
	buf_clear(&hint);
}

/* "run R goes on with the key 'K' (running, 5m)"; of a copy what is known of it where it belongs. */
static void
tell_holder(const struct home *h, const struct session *row, struct buf *to)
{
	double began = row->started_at > 0 ? row->started_at : row->created_at;
	const char *owner = session_owner(row, h);
	char text[DURATION_TEXT];

	if (owner != NULL) {
		buf_printf(to, "run %s has the key '%s', ", row->run_id, row->unique_key);
		elsewhere_tell(row, owner, to);
	} else {
		buf_printf(to, "run %s goes on with the key '%s' (%s, %s)", row->run_id, row->unique_key,
		    status_word(row->status), render_seconds(now_seconds() - began, text));
	}
}

/* A copy keeps its key until somebody takes it away: what runs elsewhere may be what the key is for. */
static void
free_command(const struct cli *c, const struct home *h, const struct session *row, struct buf *to)
{
	if (session_owner(row, h) == NULL)
		return;
	paste_command(to, "kill", c->home, row->run_id, NULL);
	buf_puts(to, "   # frees the key here, and ends nothing there");
}

/* Counts what was kept waiting, and says so when it was for long. */
static int
count_block(const struct home *h, struct store *s, const char *blocker, struct err *e)
{
	double first = 0;
	int64_t count = 0;

	if (session_blocks(s, blocker, &first, &count, e) != 0)
		return -1;
	report_long(h, blocker, first, count);
	return 0;
}

static int
tell(const struct cli *c, const struct home *h, struct store *s, const char *blocker, const char *what,
    struct err *e)
{
	struct buf holder = {0}, hint = {0};
	struct session row;

	if (session_read(s, blocker, &row, e) != 0)
		return -1;
	tell_holder(h, &row, &holder);
	free_command(c, h, &row, &hint);
	cli_note("%s: %s", buf_text(&holder), what);
	if (hint.len > 0)
		cli_hint("%s", buf_text(&hint));
	else
		doubt_elsewhere(c, h, &row);
	buf_clear(&holder);
	buf_clear(&hint);
	session_clear(&row);
	return count_block(h, s, blocker, e);
}

/* As an error it is said once, with that. */
static int
refuse(const struct cli *c, const struct home *h, struct store *s, const char *blocker, const char *what,
    struct err *e)
{
	struct buf holder = {0}, hint = {0};
	struct session row;

	if (session_read(s, blocker, &row, e) != 0)
		return -1;
	tell_holder(h, &row, &holder);
	free_command(c, h, &row, &hint);
	if (hint.len == 0) {
		doubt_elsewhere(c, h, &row);
		paste_command(&hint, "wait", c->home, blocker, NULL);
	}
	session_clear(&row);
	if (count_block(h, s, blocker, e) == 0) {
		err_set(e, ERR_REFUSED, "%s: %s", what, buf_text(&holder));
		cli_hint_whole(c, &hint, e);
	}
	buf_clear(&holder);
	buf_clear(&hint);
	return -1;
}

int
unique_refused(const struct cli *c, const struct home *h, struct store *s, const char *blocker,
    struct err *e)
{
	err_clear(e);
	return unique_mode(c) == UNIQUE_SKIP ? tell(c, h, s, blocker, "nothing was started", e)
					     : refuse(c, h, s, blocker, "nothing was started", e);
}

/* ---- Replacing ---- */

struct replacing {
	struct store *store;
	const struct cli *cli;
	const struct home *home;
	struct err err;
};

/* The lock is had by whoever starts or resumes it just now; AGAIN: its row tells more in a moment. */
enum { LOCK_MS = 1000, TRIES = 10, AGAIN = 1 };

/* With its lock nobody starts or resumes it: still queued, or still to be resumed. */
static bool
is_without_worker(const struct session *s)
{
	return s->status == STATUS_QUEUED || session_is_restarting(s);
}

/* What it left, or has taken over, goes before its key is free. */
static int
end_locked(struct replacing *r, const struct session *s, int run_fd)
{
	bool did = false;

	if (leftover_end_all(r->home, s, run_fd, &r->err) != 0)
		return -1;
	if (s->status == STATUS_CRASHED)
		return session_give_up(r->store, s->run_id, "another run with its key replaced it", &did,
		    &r->err);
	return session_transition(r->store, s->run_id, STATUS_CANCELLED, "run.cancelled.queued",
	    "another run with its key replaced it before it started", -1, &did, &r->err);
}

static int
end_without_worker(struct replacing *r, const char *run_id)
{
	struct err why = {0};
	int run_fd = rundir_open(r->home, run_id, &why), lock = -1, rc;
	struct session s = {0};

	if (run_fd >= 0)
		lock = run_lock_take(run_fd, LOCK_MS, &why);
	if (lock < 0 && why.code == ERR_BUSY)
		rc = AGAIN;
	else if ((rc = session_read(r->store, run_id, &s, &r->err)) == 0)
		rc = is_without_worker(&s) ? end_locked(r, &s, run_fd) : AGAIN;
	session_clear(&s);
	fd_close(&lock);
	fd_close(&run_fd);
	return rc;
}

/* What ran when the new one was made has its stop by that. */
static int
send_stop(struct replacing *r, const char *run_id)
{
	struct json *payload;
	struct err ignored = {0};
	struct control_standing at;
	char id[UUID_TEXT];

	if (control_standing(r->store, run_id, &at, &r->err) != 0)
		return -1;
	if (at.stop_asked_now || at.stopped_now) {
		(void)client_poke(r->home, run_id, &ignored);
		return 0;
	}
	payload = json_set(json_object(), "mode", json_cstr("now"));
	if (control_insert(r->store, run_id, "stop", payload, id, &r->err) != 0) {
		/* It has ended meanwhile, or crashed. */
		if (r->err.code != ERR_REFUSED)
			return -1;
		err_clear(&r->err);
		return AGAIN;
	}
	(void)client_poke(r->home, run_id, &ignored);
	return 0;
}

static int
try_one(struct replacing *r, const char *run_id)
{
	struct session s = {0};
	int rc = session_latest(r->store, run_id, &s, &r->err);

	if (rc == 0)
		rc = target_check_own(r->cli, r->home, &s, &r->err);
	if (rc == 0 && is_without_worker(&s))
		rc = end_without_worker(r, s.run_id);
	else if (rc == 0 && !status_is_terminal(s.status))
		rc = send_stop(r, s.run_id);
	session_clear(&s);
	return rc;
}

/* The job may go on in another run meanwhile. A resume that holds the lock for long is left a stop, which
 * goes over to what it makes. */
static int
end_one(struct replacing *r, const char *run_id)
{
	int rc = AGAIN;
	unsigned i;

	for (i = 0; i < TRIES && rc == AGAIN; i++)
		rc = try_one(r, run_id);
	if (rc == AGAIN)
		rc = send_stop(r, run_id);
	return rc != AGAIN ? rc
			   : err_set(&r->err, ERR_BUSY, "run %s changes its status all the time", run_id);
}

enum { REPLACED_MOST = 256 };

struct others {
	char ids[REPLACED_MOST][RUN_ID_TEXT];
	size_t count;
	const char *but;
};

static int
gather(void *arg, const struct session *s)
{
	struct others *o = arg;
	bool over = status_is_terminal(s->status) && !session_is_restarting(s);

	if (!over && strcmp(s->run_id, o->but) != 0)
		memcpy(o->ids[o->count++], s->run_id, RUN_ID_TEXT);
	return o->count == REPLACED_MOST;
}

static int
replace(const struct cli *c, const struct home *h, struct store *s, const char *key, const char *run_id, struct err *e)
{
	const struct session_filter f = {.unique_key = key};
	struct replacing r = {.store = s, .cli = c, .home = h};
	struct others o = {.but = run_id};
	size_t i;

	if (session_list(s, &f, gather, &o, e) != 0)
		return -1;
	for (i = 0; i < o.count; i++) {
		if (end_one(&r, o.ids[i]) == 0)
			continue;
		*e = r.err;
		return -1;
	}
	return 0;
}

static bool
is_copy(const struct home *h, struct store *s, const char *run_id)
{
	struct err ignored = {0};
	struct session row;
	bool is = false;

	if (session_read(s, run_id, &row, &ignored) == 0) {
		is = session_owner(&row, h) != NULL;
		session_clear(&row);
	}
	return is;
}

int
unique_behind(const struct cli *c, const struct home *h, struct store *s, const char *run_id,
    const char *blocker, struct err *e)
{
	if (unique_mode(c) == UNIQUE_REPLACE) {
		if (is_copy(h, s, blocker))
			return refuse(c, h, s, blocker, "the new run waits for what it was to replace", e);
		cli_note("run %s goes on with the key '%s': it is stopped, and run %s takes its place",
		    blocker, cli_text(c, "unique", ""), run_id);
		return replace(c, h, s, cli_text(c, "unique", ""), run_id, e);
	}
	return tell(c, h, s, blocker, "the new run waits for its end", e);
}
