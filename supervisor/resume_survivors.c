/*
 * resume: what became of attempts whose worker is dead. One that still runs is taken over, and so is
 * one whose end was written down; what is neither is unknown, and its operation's own rule decides.
 * In a directory that is no run here nothing runs any more: the new run gets copies of what ended, and of
 * agents' attempts that it goes on from.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "flowsup/clock.h"
#include "flowsup/endops.h"
#include "flowsup/exits.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "in_flight.h"
#include "kept.h"
#include "resuming.h"

enum {
	END_WAIT_MS = 5000, /* for an end that has to be written down by now */
	END_LOOK_MS = 20,
	KILLED_TEXT = 32
};

/* ---- Which attempts ---- */

/* Whether it is its operation's last start. Ends of earlier attempts may stand behind it. */
static bool
is_last(const struct attempts *all, const struct attempt *a)
{
	size_t i = all->nlines;

	while (i-- > 0)
		if (all->lines[i].kind == ATTEMPT_LINE_START && strcmp(all->lines[i].op, a->op) == 0)
			return all->lines[i].json == a->line; /* which those that are kept have */
	return false;
}

/* ---- How it is ---- */

struct looking {
	struct resuming *r;
	bool same_boot; /* numbers of processes mean something */
	bool waits;	/* with the run's lock: nothing new is started meanwhile */
	int64_t until_ns;
};

int
resuming_open_ops(const struct resuming *r, const struct attempt *a)
{
	return in_flight_open_ops(r->has_home ? &r->t->home : NULL, r->run_fd, a);
}

static const char *
state_of(const struct looking *l, const struct attempt *a)
{
	return in_flight_state(l->r->has_home ? &l->r->t->home : NULL, l->r->run_fd, a, l->same_boot);
}

/* By a signal that no command sent: it has no outcome of its own making. False: not known. */
static bool
was_killed(const struct resuming *r, const struct attempt *a, char by[KILLED_TEXT])
{
	char dir[ATTEMPT_DIR_TEXT], class[STOP_CLASS_TEXT];
	struct exit_record end;
	int ops_fd = resuming_open_ops(r, a);
	bool killed;

	if (ops_fd < 0)
		return false;
	attempt_dir(a->op, a->attempt, dir);
	killed = exit_record_read(ops_fd, dir, a->id, &end, NULL) == 0 && end.end.known &&
	    end.end.signaled && stop_record_read(ops_fd, dir, a->id, class, NULL, NULL) != 0;
	if (killed)
		snprintf(by, KILLED_TEXT, "%s", proc_signal_name(end.end.code));
	fd_close(&ops_fd);
	return killed;
}

/* Of what is no run here nobody reports. */
static bool
is_reported(const struct resuming *r)
{
	return !r->is_run || json_get(r->t->session.metadata, "running_operations") != NULL;
}

static bool
is_there(const struct looking *l, const struct attempt *a)
{
	return l->same_boot && in_flight_is_there(a);
}

static int
hint_again(const struct looking *l, const char *when, struct err *e)
{
	char word[SHELL_WORD_TEXT];

	return err_hint(e, "flowsup resume %s   # %s", shell_word(word, l->r->name), when);
}

/* Whoever has to write its end down lives, and has not come to it: to call it unknown would run it again
 * although the end is known. */
static int
not_written(const struct looking *l, const struct attempt *a, struct err *e)
{
	err_set(e, ERR_BUSY, "operation %s (process %d) has ended, and process %d has not yet "
	    "written down how", a->op, (int)a->id.pid, (int)a->reaper.pid);
	return hint_again(l, "again", e);
}

enum heard { HEARD_ALL, HEARD_NOBODY, HEARD_NOTHING, HEARD_REFUSAL };

static enum heard
heard_by(const struct err *why)
{
	if (why->code == ERR_NOTFOUND)
		return HEARD_NOBODY;
	return why->code == ERR_TIMEOUT || why->code == ERR_BUSY ? HEARD_NOTHING : HEARD_REFUSAL;
}

static int
write_end(const struct looking *l, const struct attempt *a, const struct exit_record *r, struct err *e)
{
	char dir[ATTEMPT_DIR_TEXT];
	int ops_fd = resuming_open_ops(l->r, a), rc;

	if (ops_fd < 0)
		return 0;
	attempt_dir(a->op, a->attempt, dir);
	rc = exit_record_write(ops_fd, dir, r, e);
	fd_close(&ops_fd);
	return rc;
}

/* Of a directory that was moved away: the supervisor may know what it has no place for. */
static enum heard
hear_of_moved(const struct looking *l, const struct attempt *a, struct err *why)
{
	struct exit_record r = {.by = "supervisor"};
	struct json *end = NULL;
	enum heard heard = HEARD_ALL;

	if (!l->r->fork && l->r->has_home && l->r->original[0] != '\0' &&
	    client_settle(&l->r->t->home, l->r->original, a->line, &end, why) != 0)
		heard = heard_by(why) == HEARD_NOTHING ? HEARD_NOTHING : HEARD_ALL;
	if (end != NULL && kept_read_end(end, &r.id, &r.end, &r.time) && write_end(l, a, &r, why) != 0)
		heard = HEARD_REFUSAL;
	json_unref(end);
	return heard;
}

/* What the supervisor alone knows is written down by it now, if it can. */
static enum heard
hear_supervisor(const struct looking *l, const struct attempt *a, struct err *why)
{
	err_clear(why);
	if (!l->same_boot)
		return HEARD_ALL;
	if (!l->r->is_run)
		return hear_of_moved(l, a, why);
	return client_settle(&l->r->t->home, l->r->t->session.run_id, a->line, NULL, why) == 0 ? HEARD_ALL : heard_by(why);
}

/* As above: a fault of the disk passes, too, so it is no more than busy. */
static int
kept_from_us(const struct looking *l, const struct attempt *a, const struct err *why, struct err *e)
{
	err_set(e, ERR_BUSY, "operation %s (process %d) has ended, and how is not written down: %s", a->op,
	    (int)a->id.pid, why->msg);
	if (err_has_hint(why))
		return err_hint_of(e, why);
	return hint_again(l, "once that is mended", e);
}

/* What the kernel keeps of one that was watched while it was there, where nobody else has told. */
static int
write_what_kernel_knows(const struct looking *l, const struct attempt *a, int pidfd, struct err *e)
{
	struct exit_record r = {.id = a->id, .time = (double)clock_wall_ns() / (double)NS_PER_S, .by = "kernel"};
	struct err why = {0};

	if (pidfd < 0 || proc_end_of_reaped(pidfd, &r.end) <= 0 || write_end(l, a, &r, &why) == 0)
		return 0;
	return kept_from_us(l, a, &why, e);
}

static bool
may_be_told(const struct looking *l, const struct attempt *a)
{
	return l->r->is_run ? in_flight_may_be_told(&l->r->t->session, a->op) : l->r->original[0] != '\0';
}

/* A dry run asks nobody to write an end down: a resume may know more, and asks first. */
static int
end_unheard(const struct looking *l, const struct attempt *a, bool there, const char **state, struct err *e)
{
	bool stopped = false;
	pid_t supervisor = client_supervisor(&l->r->t->home, &stopped);
	struct buf who = {0};
	struct json *text;

	*state = NULL;
	if (!there && supervisor == 0)
		return 0;
	/* A fork takes nothing over. */
	if (!l->r->fork && (there || stopped || may_be_told(l, a)))
		*state = "unknown";
	if (supervisor != 0)
		buf_printf(&who, "; the supervisor, process %d, %s", (int)supervisor,
		    stopped ? "is stopped, and may know it" : "may know it, and is asked by a resume alone");
	text = json_printf("how operation %s (process %d) ended is not written down%s%s", a->op, (int)a->id.pid,
	    there ? " yet" : "", buf_text(&who));
	buf_clear(&who);
	return resuming_unheard(l->r, text, e);
}

/*
 * state_of() once it says no less than can be known. It is asked after all that would write an end down has
 * been looked at: what is not written by then will not be. What still runs may end a moment later;
 * the new run, which takes it over, sees that.
 */
static int
settle(struct looking *l, const struct attempt *a, int *pidfd, const char **state, struct err *e)
{
	bool there, reported, reaper;
	enum heard heard;
	struct err why;

	for (;;) {
		there = is_there(l, a);
		if (there && *pidfd < 0 && l->waits)
			*pidfd = proc_open(a->id, &why);
		reaper = l->same_boot && proc_is_alive(a->reaper);
		reported = is_reported(l->r);
		*state = state_of(l, a);
		if (*state == NULL && !l->waits && l->same_boot)
			return end_unheard(l, a, there, state, e);
		if (*state != NULL || !l->waits)
			return 0;
		heard = hear_supervisor(l, a, &why);
		*state = state_of(l, a);
		if (*state != NULL)
			return 0;
		if (heard == HEARD_REFUSAL)
			return kept_from_us(l, a, &why, e);
		/* One that listens no more writes what it can before it goes. */
		if (!there && heard != HEARD_NOTHING && !(reaper && (!reported || heard == HEARD_NOBODY)))
			break;
		if (clock_monotonic_ns() >= l->until_ns) {
			if (reaper && (there || heard == HEARD_NOBODY))
				return not_written(l, a, e);
			if (heard == HEARD_NOTHING)
				return kept_from_us(l, a, &why, e);
			break;
		}
		usleep(END_LOOK_MS * 1000);
		if (!reported && target_reload(l->r->t, e) != 0)
			return -1;
	}
	if (write_what_kernel_knows(l, a, *pidfd, e) != 0)
		return -1;
	*state = state_of(l, a);
	return 0;
}

static int
settled_state(struct looking *l, const struct attempt *a, const char **state, struct err *e)
{
	int pidfd = -1, rc = settle(l, a, &pidfd, state, e);

	fd_close(&pidfd);
	return rc;
}

/* ---- Whether the new worker finds what it needs of it ---- */

/* As the worker opens it; of what is no run here it gets a copy. */
static void
look_at_output(const struct resuming *r, int ops_fd, const char *dir, struct buf *why)
{
	int how = r->is_run ? O_RDWR | O_APPEND : O_RDONLY;
	char name[ATTEMPT_DIR_TEXT + 8];
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), "%s.out", dir);
	fd = openat(ops_fd, name, how | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		buf_printf(why, "its output (" RUN_OPS "/%s) %s", name, errno == ENOENT ? "is not there"
			: errno == ELOOP ? "is a symbolic link"
			: errno == EISDIR ? "is not a regular file" : strerror(errno));
	else if (!S_ISREG(st.st_mode))
		buf_printf(why, "its output (" RUN_OPS "/%s) is not a regular file", name);
	fd_close(&fd);
}

/* Whether its output is complete: then how its process ended does not matter. */
static bool
has_final_record(const struct resuming *r, const struct attempt *a)
{
	return in_flight_has_final_record(r->has_home ? &r->t->home : NULL, r->run_fd, r->flow, r->environment, a);
}

static bool
is_unusable(const struct resuming *r, const struct attempt *a, struct buf *why)
{
	size_t i = flow_find(r->flow, a->op);
	int ops_fd = resuming_open_ops(r, a);
	char dir[ATTEMPT_DIR_TEXT];
	struct json *record;
	struct err e = {0};

	if (ops_fd < 0) {
		buf_puts(why, RUN_OPS " is not there");
		return true;
	}
	attempt_dir(a->op, a->attempt, dir);
	look_at_output(r, ops_fd, dir, why);
	if (why->len == 0 && i != SIZE_MAX && r->flow->ops[i].kind == FLOW_INSTRUCTION) {
		record = agent_record_read(ops_fd, dir, &e);
		if (record == NULL)
			buf_printf(why, "the record of its start (" RUN_OPS "/%s/" AGENT_RECORD ") is not there",
			    dir);
		json_unref(record);
	}
	fd_close(&ops_fd);
	return why->len > 0;
}

/* ---- As facts ---- */

/* The run whose directory the new one's worker finds its files in. */
static const char *
run_of(const struct resuming *r, const struct attempt *a)
{
	return !r->is_run ? r->new_run : a->run != NULL ? a->run : r->t->session.run_id;
}

/* state NULL: nobody knows how it ended. What a stop or a kill ended has no end of its own either. */
static bool
was_interrupted(const char *state)
{
	return state == NULL || strcmp(state, "stopped") == 0;
}

static int
add_fact(struct resuming *r, const struct attempt *a, const char *state, struct err *e)
{
	const struct json *old = json_get(r->facts, a->op);
	struct json *of_op = old != NULL ? json_ref(old) : json_object();
	struct json *line = json_set(json_ref(a->line), "run", json_cstr(run_of(r, a)));

	if (state != NULL)
		of_op = json_set(of_op, "survivor", json_cstr(state));
	if (state != NULL && strcmp(state, "ended") == 0)
		line = json_set(line, "ended", json_bool(true));
	if (state != NULL)
		of_op = json_set(of_op, "start", json_ref(line));
	of_op = was_interrupted(state) ? json_set(of_op, "interrupted", json_ref(line)) : of_op;
	json_unref(line);
	r->facts = json_set(r->facts, a->op, of_op);
	return r->facts != NULL ? 0 : err_nomem(e);
}

static int
add_text(struct resuming *r, const char *op, const char *name, struct json *text, struct err *e)
{
	const struct json *old = json_get(r->facts, op);
	struct json *of_op = old != NULL ? json_ref(old) : json_object();

	r->facts = json_set(r->facts, op, json_set(of_op, name, text));
	return r->facts != NULL ? 0 : err_nomem(e);
}

/* Its end may be known, but not what came of it. */
static int
add_unusable(struct resuming *r, const struct attempt *a, const char *state, const struct buf *why,
    struct err *e)
{
	return add_text(r, a->op, "unusable", json_printf("%s, but %s",
	    strcmp(state, "running") == 0 ? "still runs" : "has ended without its worker", buf_text(why)), e);
}

static int
add_survivor(struct resuming *r, struct looking *l, const struct attempt *a, struct err *e)
{
	const char *state;
	char by[KILLED_TEXT];
	struct buf why = {0};
	int rc = 0;

	if (settled_state(l, a, &state, e) != 0)
		return -1;
	if (was_interrupted(state) && has_final_record(r, a))
		state = "ended";
	/* Taking a failure over and trying it again is one step where the failure is to be tried again. */
	if (state != NULL && strcmp(state, "ended") == 0 && cli_flag(r->c, "retry-failed") &&
	    was_killed(r, a, by) && !has_final_record(r, a)) {
		if (add_text(r, a->op, "killed", json_cstr(by), e) != 0)
			return -1;
		state = NULL;
	}
	if (state != NULL && strcmp(state, "stopped") != 0 && is_unusable(r, a, &why)) {
		rc = add_unusable(r, a, state, &why, e);
		state = NULL;
	}
	buf_clear(&why);
	return rc == 0 ? add_fact(r, a, state, e) : -1;
}

int
resuming_survivors(struct resuming *r, struct err *e)
{
	struct looking l = {.r = r};
	const struct attempt *a;
	bool here, other_boot;
	size_t i;

	if (r->flow == NULL)
		return 0;
	if (!r->is_run && r->attempts.nopen + r->attempts.nstopped > 0 && run_id_make(r->new_run, e) != 0)
		return -1;
	for (i = 0; i < r->attempts.nstopped; i++) {
		a = &r->attempts.stopped[i];
		if (is_last(&r->attempts, a) && add_fact(r, a, NULL, e) != 0)
			return -1;
	}
	if (r->attempts.nopen == 0)
		return 0;
	if (endops_is_here(&r->attempts, &here, &other_boot, e) != 0)
		return -1;
	l.same_boot = here && !other_boot;
	l.waits = r->lock_fd >= 0 || (!r->is_run && !cli_flag(r->c, "dry-run"));
	l.until_ns = clock_monotonic_ns() + END_WAIT_MS * NS_PER_MS;
	for (i = 0; i < r->attempts.nopen; i++) {
		a = &r->attempts.open[i];
		if (is_last(&r->attempts, a) && add_survivor(r, &l, a, e) != 0)
			return -1;
	}
	return 0;
}

static bool
is_taken(const struct resuming *r, size_t i)
{
	return i != SIZE_MAX && r->plan.rows[i].action == RESUME_TAKE_OVER;
}

bool
resuming_takes_running(const struct resuming *r)
{
	size_t i;

	for (i = 0; r->flow != NULL && i < r->plan.nrows; i++)
		if (is_taken(r, i) &&
		    slice_is(json_text(json_get(json_get(r->facts, r->flow->ops[i].id), "survivor")), "running"))
			return true;
	return false;
}

bool
resuming_repeats(const struct resuming *r)
{
	size_t i;

	for (i = 0; r->flow != NULL && i < r->attempts.nopen; i++)
		if (!is_taken(r, flow_find(r->flow, r->attempts.open[i].op)))
			return true;
	return false;
}

/* ---- The new run's attempts.log ---- */

static void
add_line(struct buf *to, const struct json *line)
{
	json_write(to, line);
	buf_putc(to, '\n');
}

int
resuming_taken_lines(const struct resuming *r, struct buf *to, struct err *e)
{
	struct attempt_line *place = attempts_worker_line(&r->attempts);
	struct json *line;
	size_t i;

	for (i = 0; i < r->plan.nrows; i++) {
		if (r->plan.rows[i].action != RESUME_TAKE_OVER)
			continue;
		if (to->len == 0 && place != NULL)
			add_line(to, attempt_line_json(place));
		/* What it rendered is marked in the state that goes with this. */
		line = json_ref(json_get(json_get(r->facts, r->flow->ops[i].id), "start"));
		if (json_get(line, "messages") != NULL)
			line = json_remove(line, slice_of("messages"));
		if (json_get(line, "more") != NULL)
			line = json_remove(line, slice_of("more"));
		if (line == NULL)
			return err_nomem(e);
		add_line(to, line);
		json_unref(line);
	}
	for (i = 0; r->strays_stay && i < r->attempts.nstrays; i++) {
		if (!attempts_stray_lives(&r->attempts, i))
			continue;
		if (to->len == 0 && place != NULL)
			add_line(to, attempt_line_json(place));
		attempts_stray_line(r->attempts.strays[i], to);
	}
	return buf_ok(to, e);
}

bool
resuming_spares(void *arg, const struct attempt *a)
{
	const struct resuming *r = arg;
	size_t i = flow_find(r->flow, a->op);
	const struct json *of_op = json_get(r->facts, a->op);

	if (i == SIZE_MAX || r->plan.rows[i].action != RESUME_TAKE_OVER)
		return false;
	return r->flow->ops[i].how->leave || slice_is(json_text(json_get(of_op, "survivor")), "running");
}
