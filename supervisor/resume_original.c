/*
 * resume: a directory that is no run here may be the one of a run that was moved away, a copy of it, or hold
 * its checkpoint alone. What that run has done since then counts as if it were resumed itself: this home tells
 * it where it has the run's row. Where it has none nobody can tell, but for processes that bear its marks.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "leftover.h"
#include "resuming.h"
#include "seek.h"

enum {
	VERDICT_MS = 3000, /* the supervisor, told by the kernel, says how a worker ended */
	VERDICT_LOOK_MS = 50,
	END_MOST = 4096 /* of the file of events: its last line */
};

bool
resuming_is_session(const char *id)
{
	return id != NULL && strlen(id) == UUID_TEXT - 1 && strspn(id, "0123456789abcdef") == UUID_TEXT - 1;
}

static const char *
session_of(const struct resuming *r)
{
	const char *id = r->has_launch ? r->launch.session_id : NULL;

	if (!resuming_is_session(id))
		id = json_cstr_of(json_get(r->state, "session_id"));
	return resuming_is_session(id) ? id : NULL;
}

const char *
resuming_session(const struct resuming *r)
{
	const char *id = session_of(r);

	return id != NULL ? id : json_cstr_of(json_get(r->state, "session_id"));
}

/* ---- By its row ---- */

static int
was_resumed(const struct resuming *r, const struct session *s, struct err *e)
{
	err_set(e, ERR_REFUSED, "%s is that of run %s, which was already resumed, as run %s", r->label, s->run_id,
	    s->resumed_as_run);
	return err_hint(e, "flowsup show %s", s->resumed_as_run);
}

static int
goes_on(const struct resuming *r, const struct session *s, struct err *e)
{
	err_set(e, ERR_REFUSED, "%s is that of run %s, which goes on itself", r->label, s->run_id);
	return err_hint(e, "flowsup wait %s", s->run_id);
}

/* Whoever has the lock knows that no worker lives, and that nobody else resumes it. */
static int
take_lock(struct resuming *r, const struct session *s, int run_fd, struct err *e)
{
	bool held = false;

	if (cli_flag(r->c, "dry-run")) {
		if (run_lock_held(run_fd, &held, e) != 0)
			return seek_damaged_for_good(s, e);
		return held && !status_is_terminal(s->status) ? goes_on(r, s, e) : 0;
	}
	r->lock_fd = run_lock_take(run_fd, RUN_LOCK_OVER_MS, e);
	if (r->lock_fd >= 0)
		return 0;
	if (e->code != ERR_BUSY)
		return seek_damaged_for_good(s, e);
	err_clear(e);
	return goes_on(r, s, e);
}

static int
read_again(const struct resuming *r, struct session *s, struct err *e)
{
	struct session fresh;

	if (session_read(r->t->store, s->run_id, &fresh, e) != 0)
		return -1;
	session_clear(s);
	*s = fresh;
	return 0;
}

/* Whoever watched its worker gets the time to say how that ended; then it is written here. */
static int
store_death(struct resuming *r, struct session *s, struct err *e)
{
	int64_t until = clock_monotonic_ns() + VERDICT_MS * NS_PER_MS;

	if (cli_flag(r->c, "dry-run"))
		return 0;
	while (!status_is_terminal(s->status) && clock_monotonic_ns() < until) {
		usleep(VERDICT_LOOK_MS * 1000);
		if (read_again(r, s, e) != 0)
			return -1;
	}
	return status_is_terminal(s->status)
	    ? 0
	    : session_transition(r->t->store, s->run_id, STATUS_CRASHED, "run.crashed.unknown", NULL, -1, NULL, e);
}

/* Its log tells of every attempt; that of a copy ends where it was made, and an export has none. */
static int
take_attempts(struct resuming *r, const struct session *s, int run_fd, struct err *e)
{
	struct attempts a;

	if (seek_attempts(run_fd, seek_has_started(run_fd, s->started_at), &a, e) != 0)
		return seek_damaged_for_good(s, e);
	if (resuming_check_older(r, run_fd, &a, e) != 0) {
		attempts_clear(&a);
		return -1;
	}
	attempts_clear(&r->attempts);
	r->attempts = a;
	r->has_attempts = true;
	return 0;
}

static int
judge_directory(struct resuming *r, struct session *s, int run_fd, struct err *e)
{
	if (take_lock(r, s, run_fd, e) != 0 || read_again(r, s, e) != 0)
		return -1;
	if (s->resumed_as_run[0] != '\0')
		return was_resumed(r, s, e);
	if (s->status == STATUS_QUEUED)
		return goes_on(r, s, e);
	r->original_completed = s->status == STATUS_COMPLETED;
	r->original_is_here = true;
	if (r->original_completed)
		return 0;
	if (take_attempts(r, s, run_fd, e) != 0 || resuming_at_rest(r, e) != 0)
		return -1;
	return store_death(r, s, e);
}

/* A worker's last word is its last event: what has that was not copied before. */
static bool
has_end(const struct resuming *r)
{
	static const char word[] = "{\"event\":\"RunEnded\"";
	int fd = openat(r->run_fd, RUN_EVENTS, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[END_MOST + 1];
	const char *line;
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	ssize_t n = size <= 0 ? 0 : pread(fd, text, END_MOST, size > END_MOST ? size - END_MOST : 0);

	fd_close(&fd);
	if (n <= 0 || text[n - 1] != '\n')
		return false;
	text[n - 1] = '\0';
	line = strrchr(text, '\n');
	line = line != NULL ? line + 1 : text;
	return strncmp(line, word, strlen(word)) == 0;
}

static int
judge_row(struct resuming *r, struct session *s, struct err *e)
{
	struct err why = {0};
	int run_fd, rc;

	if (s->resumed_as_run[0] != '\0')
		return was_resumed(r, s, e);
	if (target_check_own(r->c, &r->t->home, s, e) != 0)
		return -1;
	r->original_completed = s->status == STATUS_COMPLETED;
	run_fd = rundir_open(&r->t->home, s->run_id, &why);
	/* The directory that is given is all that there is of it: it was moved away, or is a copy, and then it may have
	 * been made before the end. */
	if (run_fd < 0 && why.code == ERR_NOTFOUND) {
		r->may_have_gone_on = !has_end(r);
		return resuming_at_rest(r, e);
	}
	if (run_fd < 0) {
		*e = why;
		return seek_damaged_for_good(s, e);
	}
	rc = judge_directory(r, s, run_fd, e);
	fd_close(&run_fd);
	return rc;
}

/* Its row would say what it was resumed as. */
static int
judge_unknown(const struct resuming *r, struct err *e)
{
	return resuming_check_once(r, e) == 0 ? resuming_at_rest(r, e) : -1;
}

int
resuming_find_original(struct resuming *r, struct err *e)
{
	const char *id = session_of(r);
	struct session s;
	int rc;

	r->may_have_gone_on = true;
	if (id == NULL || !r->has_home || r->t->store == NULL)
		return judge_unknown(r, e);
	if (session_resolve(r->t->store, id, &s, e) != 0) {
		if (e->code != ERR_NOTFOUND)
			return -1;
		err_clear(e);
		return judge_unknown(r, e);
	}
	r->may_have_gone_on = false;
	strlcpy(r->original, s.run_id, sizeof(r->original));
	strlcpy(r->original_session, s.session_id, sizeof(r->original_session));
	strlcpy(r->original_invocation, s.invocation_id, sizeof(r->original_invocation));
	strlcpy(r->original_origin, s.origin, sizeof(r->original_origin));
	rc = judge_row(r, &s, e);
	session_clear(&s);
	return rc;
}

int
resuming_original_completed(const struct resuming *r, struct err *e)
{
	err_set(e, ERR_REFUSED, "%s is that of run %s, which has completed", r->label, r->original);
	return err_hint(e, "flowsup show %s   # or begin anew: flowsup rerun %s", r->original, r->original);
}

/* ---- By its marks ---- */

struct running {
	const struct resuming *r;
	char op[FLOW_MAX_ID + 1];
	pid_t pid; /* 0: none */
};

/* One that has an outcome may have been allowed to leave something. */
static bool
was_left(const struct resuming *r, const char *op)
{
	size_t i = r->flow != NULL ? flow_find(r->flow, op) : SIZE_MAX;

	return i != SIZE_MAX && r->flow->ops[i].how->leave && json_get(json_get(r->state, "ops"), op) != NULL;
}

/* A leftover_visit. */
static bool
note_running(void *arg, const char *op, pid_t pid)
{
	struct running *n = arg;

	if (was_left(n->r, op))
		return false;
	strlcpy(n->op, op, sizeof(n->op));
	n->pid = pid;
	return true;
}

static int
look_for(struct running *n, const char *session, struct err *e)
{
	if (n->pid != 0 || !resuming_is_session(session))
		return 0;
	return leftover_each(session, note_running, n, e);
}

/* What a run has taken over bears the marks of the one that started it. */
int
resuming_check_marks(const struct resuming *r, struct err *e)
{
	struct json_iter it = json_iterate(json_get(json_get(r->state, "config"), "earlier_sessions"));
	const char *own = session_of(r), *last = json_cstr_of(json_get(r->state, "session_id"));
	struct running n = {.r = r};
	const struct json *one;

	if (look_for(&n, own, e) != 0)
		return -1;
	if (own != NULL && last != NULL && strcmp(own, last) != 0 && look_for(&n, last, e) != 0)
		return -1;
	while (json_next(&it, NULL, &one))
		if (look_for(&n, json_cstr_of(one), e) != 0)
			return -1;
	return n.pid != 0 ? resuming_still_running(r, n.op, n.pid, e) : 0;
}
