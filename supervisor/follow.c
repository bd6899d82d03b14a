#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "events.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "follow.h"
#include "live.h"
#include "paste.h"
#include "render.h"
#include "seek.h"
#include "target.h"
#include "view.h"
#include "waits.h"

enum { STILL_RUNNING = 3, INTERRUPTED = 130, FRAMES_MS = 200, LINES_MS = 250, QUIET_MS = 1000,
	SETTLE_STEP_MS = 10 };
/* Without a supervisor that speaks, the row is read so often, and a supervisor looked for so often. */
#define ROW_NS (NS_PER_S / 2)
#define ENSURE_NS (3 * NS_PER_S)
/* After the end the worker may still have events to write; it is not waited for longer. */
#define SETTLE_NS (2 * NS_PER_S)
/* So long a supervisor may take to record the death of a worker: it tries again every 5 s at least. */
#define UNRECORDED_NS (10 * NS_PER_S)
/* What goes on without a word that long may be kept by a full disk: then it is said, and looked at so often. */
#define HELD_UP_NS NS_PER_S
enum { HELD_UP_ASK_MS = 500 };

struct follower {
	const struct follow *f;
	const char *run_id;
	int run_fd; /* -1: its directory is gone */
	int signals, changes; /* changes: subscription, -1 when nobody speaks */
	sigset_t old_mask;
	struct tail events;
	struct tally tally;
	struct live live;
	struct session session;
	bool has_session, changed, interrupted;
	enum run_status told; /* status that was printed last */
	struct buf waits;     /* of a run in the queue: for what, by the row that was read last */
	bool waits_told;
	struct json *ending; /* view_ending() of the row that was read last; or NULL */
	const char *ending_told; /* what was printed of it last */
	struct json *asked; /* what waits for a person and was printed, by operation; or NULL */
	int64_t done;	      /* most that anybody said; the row lags behind */
	int64_t deadline_ns;  /* 0: none */
	int64_t row_at_ns, ensured_at_ns;
	int64_t free_at_ns; /* since when the lock is known to be free, 0: it is not */
	bool unrecorded;    /* for UNRECORDED_NS now */
	bool lost_told;
	bool ended;	       /* its worker has said so, in its events */
	int64_t held_up_at_ns; /* when to ask what keeps it, 0: nothing does */
	bool start_told, end_told;
	struct err nobody; /* why no supervisor could be started */
	int events_fd;
	bool restarting;	/* it crashed, and its policy was about to answer */
	char next[RUN_ID_TEXT]; /* the run that goes on with the job */
};

/* ---- Events ---- */

static int
copy_event(struct follower *w, struct slice line, struct err *e)
{
	struct buf b = {0};
	ssize_t n;

	buf_slice(&b, line);
	buf_putc(&b, '\n');
	if (buf_ok(&b, e) != 0)
		return -1;
	do
		n = write(w->events_fd, b.data, b.len);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)b.len || (n < 0 && errno == EPIPE)) {
		/* A reader that has gone wants no more; that is no error. */
		w->events_fd = n < 0 ? -1 : w->events_fd;
		buf_clear(&b);
		return 0;
	}
	err_sys(e, ERR_IO, n < 0 ? errno : ENOSPC, "--events");
	buf_clear(&b);
	return err_hint(e, "flowsup watch %s   # the run goes on", w->run_id);
}

/* The operation that waits for a person by this event; NULL: none. */
static const char *
waiting_op(const struct json *event)
{
	return slice_is(json_text(json_get(event, "event")), "NodeWaiting") && event_waits_for(event) == NULL
	    ? json_cstr_of(json_get(event, "op"))
	    : NULL;
}

/* What waits for a person is said once, with the command that answers it. */
static void
add_answer(struct follower *w, const char *op, struct buf *to)
{
	buf_puts(to, ": ");
	paste_command(to, "approve", w->f->home_option, w->run_id, op);
	w->asked = json_set(w->asked != NULL ? w->asked : json_object(), op, json_bool(true));
}

/* One that would read as the last one did. */
static bool
is_known_progress(struct follower *w, const struct json *event)
{
	const char *op = json_cstr_of(json_get(event, "op"));
	struct running *r = op != NULL && slice_is(json_text(json_get(event, "event")), "NodeProgress")
	    ? tally_running(&w->tally, op)
	    : NULL;
	bool known = r != NULL && r->progress_told;

	if (r != NULL)
		r->progress_told = true;
	return known;
}

static void
print_event(struct follower *w, struct slice line, const struct json *event)
{
	const char *op = waiting_op(event);
	struct buf b = {0};

	if (w->f->show == FOLLOW_EVENTS) {
		out_bytes(w->f->out, line);
		out_puts(w->f->out, "\n");
	} else if ((op != NULL && json_get(w->asked, op) != NULL) || is_known_progress(w, event)) {
		return;
	} else if (w->f->show == FOLLOW_LINES && event_line(&w->tally, event, w->f->utc, &b)) {
		if (op != NULL)
			add_answer(w, op, &b);
		out_text(w->f->out, buf_view(&b), false);
		out_puts(w->f->out, "\n");
	}
	buf_clear(&b);
}

static int
take_event(void *arg, struct slice line, struct err *e)
{
	struct follower *w = arg;
	struct json *event = NULL;
	struct err ignored = {0};
	int r = 0;

	if (w->events_fd >= 0 && copy_event(w, line, e) != 0)
		return -1;
	/* A line that is no JSON (a worker died while it wrote) is passed over. */
	if (json_parse(line, NULL, &event, NULL, &ignored) != 0)
		return ignored.code == ERR_NOMEM ? err_nomem(e) : 0;
	r = tally_event(&w->tally, event, e);
	w->ended = w->ended || slice_is(json_text(json_get(event, "event")), "RunEnded");
	print_event(w, line, event);
	json_unref(event);
	return r;
}

static bool
reads_events(const struct follower *w)
{
	return w->run_fd >= 0 && (w->f->show != FOLLOW_QUIET || w->events_fd >= 0);
}

static int
pump_events(struct follower *w, struct err *e)
{
	int r;

	if (!reads_events(w))
		return 0;
	r = tail_read(&w->events, take_event, w, e);
	out_flush(w->f->out);
	return r;
}

/* ---- The row ---- */

static void
note_waits(struct follower *w)
{
	struct waits *waits;

	buf_reset(&w->waits);
	if (w->session.status != STATUS_QUEUED)
		return;
	waits = waits_new(w->f->home, w->f->store);
	waits_reason(waits, &w->session, &w->waits);
	waits_free(waits);
}

static int
read_row(struct follower *w, struct err *e)
{
	struct session fresh;

	if (session_read(w->f->store, w->run_id, &fresh, e) != 0)
		return -1;
	if (w->has_session)
		session_clear(&w->session);
	w->session = fresh;
	w->has_session = true;
	w->changed = false;
	w->row_at_ns = clock_monotonic_ns();
	note_waits(w);
	json_unref(w->ending);
	if (w->f->show == FOLLOW_LIVE || w->f->show == FOLLOW_LINES)
		w->ending = view_ending(w->f->store, &w->session);
	else
		w->ending = NULL;
	return 0;
}

static bool
row_is_due(const struct follower *w)
{
	return w->changed || clock_monotonic_ns() - w->row_at_ns >= ROW_NS;
}

/* ---- The supervisor ---- */

static void
lose_changes(struct follower *w)
{
	fd_close(&w->changes);
	w->changed = true;
	w->ensured_at_ns = 0; /* look for another one at once */
}

/*
 * Somebody must be there to see the worker's death, else its row would say "running" for ever. The
 * state is read after subscribing, so that no change falls between.
 */
static void
find_supervisor(struct follower *w)
{
	struct err e = {0};
	int64_t now = clock_monotonic_ns();

	if (w->changes >= 0 || (w->ensured_at_ns != 0 && now - w->ensured_at_ns < ENSURE_NS))
		return;
	w->ensured_at_ns = now;
	err_clear(&w->nobody);
	if (!client_is_up(w->f->home) && client_ensure(w->f->home, CLIENT_IDLE_DEFAULT, NULL, &e) != 0) {
		w->nobody = e;
		return;
	}
	w->changes = client_subscribe(w->f->home, w->run_id, &e);
	w->changed = true;
}

static void
take_done(struct follower *w, int64_t done)
{
	if (done > w->done)
		w->done = done;
	if (w->has_session && w->done > w->session.done && w->done <= w->session.total)
		w->session.done = w->done;
}

static void
apply_change(struct follower *w, const struct client_change *c)
{
	int64_t done;

	if (json_int64(json_get(c->body, "done"), &done))
		take_done(w, done);
	if (!w->has_session || strcmp(c->status, status_word(w->session.status)) != 0)
		w->changed = true;
}

static void
take_changes(struct follower *w)
{
	struct client_change c;
	struct err e = {0};
	int r;

	while ((r = client_next_change(w->changes, &c, &e)) > 0) {
		apply_change(w, &c);
		client_change_clear(&c);
	}
	if (r < 0)
		lose_changes(w);
}

/* ---- Waiting ---- */

/* Ctrl-Z: the shell gets a terminal without the display. Returns when it is continued. */
static void
stop_here(struct follower *w)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	live_erase(&w->live);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	live_forget(&w->live);
}

static void
take_signals(struct follower *w)
{
	struct signalfd_siginfo info;

	while (read(w->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTSTP)
			stop_here(w);
		else if (info.ssi_signo != SIGWINCH)
			w->interrupted = true;
	}
}

static int
wait_ms(const struct follower *w)
{
	int64_t ms = w->f->show == FOLLOW_LIVE	    ? FRAMES_MS
	    : w->f->show == FOLLOW_QUIET ? QUIET_MS
					 : LINES_MS;
	int64_t left;

	if (w->changes < 0 && ms > ROW_NS / NS_PER_MS)
		ms = ROW_NS / NS_PER_MS;
	if (w->deadline_ns != 0) {
		left = (w->deadline_ns - clock_monotonic_ns()) / NS_PER_MS + 1;
		ms = left < ms ? left : ms;
	}
	return ms < 0 ? 0 : (int)ms;
}

static int
wait_for_something(struct follower *w, struct err *e)
{
	struct pollfd fds[2] = {
	    {.fd = w->signals, .events = POLLIN},
	    {.fd = w->changes, .events = POLLIN}, /* poll(2) passes over -1 */
	};

	if (poll(fds, 2, wait_ms(w)) < 0 && errno != EINTR)
		return err_sys(e, ERR_INTERNAL, errno, "poll");
	if (fds[0].revents != 0)
		take_signals(w);
	if (w->changes >= 0 && fds[1].revents != 0)
		take_changes(w);
	return 0;
}

/* ---- What is said ---- */

static void
say_status(struct follower *w)
{
	const struct session *s = &w->session;
	char progress[PROGRESS_TEXT];
	struct buf b = {0};

	bool waits = waits_are_known(s) && !w->waits_told;

	if ((s->status == w->told && !waits) || w->f->show != FOLLOW_LINES)
		return;
	w->told = s->status;
	if (status_is_terminal(s->status))
		return;
	buf_printf(&b, "run %s is %s%s", w->run_id, status_word(s->status),
	    render_done(s->done, s->total, progress));
	if (waits)
		buf_printf(&b, "; %s", buf_text(&w->waits));
	w->waits_told = waits;
	if (s->status == STATUS_PAUSED) {
		buf_puts(&b, "; to go on: ");
		paste_command(&b, "ctl resume", w->f->home_option, w->run_id, NULL);
	}
	out_text(w->f->out, buf_view(&b), false);
	out_puts(w->f->out, "\n");
	buf_clear(&b);
}

/* As the live display says it: what ends what runs does not come by itself. */
static void
say_ending(struct follower *w)
{
	const char *mode = render_member(json_get(w->ending, "stopping"), "mode"), *what = NULL;
	bool now = strcmp(mode, "now") == 0;
	char progress[PROGRESS_TEXT];
	struct buf b = {0};

	if (mode[0] != '\0')
		what = now ? "is stopping now" : "is stopping";
	else if (json_type(json_get(w->ending, "draining")) == JSON_OBJECT)
		what = "is past its deadline";
	if (w->f->show != FOLLOW_LINES || status_is_terminal(w->session.status) || what == NULL || what == w->ending_told)
		return;
	w->ending_told = what;
	buf_printf(&b, "run %s %s%s", w->run_id, what, render_done(w->session.done, w->session.total, progress));
	if (!now) {
		buf_puts(&b, "; to end what runs: ");
		paste_command(&b, "stop --now", w->f->home_option, w->run_id, NULL);
	}
	out_text(w->f->out, buf_view(&b), false);
	out_puts(w->f->out, "\n");
	buf_clear(&b);
}

/* What has waited since before it is followed is known to the row alone. */
static void
say_waiting(struct follower *w)
{
	struct json_iter it = json_iterate(json_get(w->session.metadata, "waiting"));
	const struct json *one;
	const char *op;
	struct buf b = {0};

	if (w->f->show != FOLLOW_LINES ||
	    (w->session.status != STATUS_RUNNING && w->session.status != STATUS_PAUSED))
		return;
	while (json_next(&it, NULL, &one)) {
		op = json_cstr_of(json_get(one, "op"));
		if (op == NULL || json_get(w->asked, op) != NULL)
			continue;
		buf_reset(&b);
		buf_printf(&b, "%s waits for approval", op);
		add_answer(w, op, &b);
		out_text(w->f->out, buf_view(&b), false);
		out_puts(w->f->out, "\n");
	}
	buf_clear(&b);
}

bool
follow_was_restarted(struct store *store, const struct session *s)
{
	struct err e = {0};
	struct session next;
	bool by_policy;

	if (s->status != STATUS_CRASHED || s->resumed_as_run[0] == '\0' ||
	    session_read(store, s->resumed_as_run, &next, &e) != 0)
		return false;
	by_policy = next.restarts_done > 0;
	session_clear(&next);
	return by_policy;
}

static void
note_restart(struct follower *w)
{
	const struct session *s = &w->session;

	if (w->f->this_run)
		return;
	if (s->resumed_as_run[0] != '\0' && (w->restarting || follow_was_restarted(w->f->store, s)))
		memcpy(w->next, s->resumed_as_run, sizeof(w->next));
	if (session_is_restarting(s) && !w->restarting && w->f->show != FOLLOW_EVENTS) {
		live_erase(&w->live);
		cli_note("run %s crashed (%s); its restart policy resumes it", w->run_id, s->reason);
	}
	w->restarting = session_is_restarting(s);
}

void
follow_say_end(struct output *out, const struct home *h, const char *home_option, const struct session *s)
{
	char progress[PROGRESS_TEXT];
	struct buf reason = {0};

	out_printf(out, "run %s %s", s->run_id, status_word(s->status));
	view_reason(s, &reason);
	if (s->status != STATUS_COMPLETED && reason.len > 0) {
		out_puts(out, ": ");
		out_text(out, buf_view(&reason), false);
	}
	buf_clear(&reason);
	out_printf(out, "%s\n", render_done(s->done, s->total, progress));
	out_flush(out);
	paste_end_hint(h, home_option, s);
}

/* Whoever only waits counts on the policy. */
static void
say_given_up(const struct follower *w)
{
	struct buf why = {0}, reason = {0};

	if (view_given_up(&w->session, &why)) {
		view_reason(&w->session, &reason);
		cli_note("run %s crashed: %s", w->run_id, buf_text(&reason));
		paste_end_hint(w->f->home, w->f->home_option, &w->session);
	}
	buf_clear(&why);
	buf_clear(&reason);
}

static void
say_end(struct follower *w)
{
	if (w->f->show == FOLLOW_LINES || w->f->show == FOLLOW_LIVE)
		follow_say_end(w->f->out, w->f->home, w->f->home_option, &w->session);
	else if (w->f->show == FOLLOW_QUIET)
		say_given_up(w);
}

void
follow_say_interrupted(const char *home_option, const char *run_id, const char *again, const char *op)
{
	struct buf b = {0};

	cli_note("run %s goes on", run_id);
	paste_command(&b, again, home_option, run_id, op);
	paste_hint("to return to it", buf_view(&b));
	buf_reset(&b);
	paste_command(&b, "stop", home_option, run_id, NULL);
	paste_hint("to end it", buf_view(&b));
	buf_clear(&b);
}

static void
say_unrecorded(const struct follower *w)
{
	struct buf b = {0};

	cli_note("run %s: its worker is gone, and the supervisor could not record this so far; "
		 "flowsup doctor says what is wrong",
	    w->run_id);
	paste_resume(&b, w->f->home, w->f->home_option, &w->session);
	paste_hint("once it can be", buf_view(&b));
	buf_clear(&b);
}

/* ---- The loop ---- */

static int
settle(struct follower *w, struct err *e)
{
	int64_t until = clock_monotonic_ns() + SETTLE_NS;
	struct err ignored = {0};
	bool held = true;

	if (!reads_events(w))
		return 0;
	while (held && clock_monotonic_ns() < until) {
		if (run_lock_held(w->run_fd, &held, &ignored) != 0)
			break;
		if (held)
			(void)poll(NULL, 0, SETTLE_STEP_MS);
	}
	return pump_events(w, e);
}

/*
 * Without a worker that writes its end, and where nobody can be started who would write it, waiting
 * has no end. The row is read once more behind the lock: the worker writes it before it leaves.
 */
static int
check_somebody(struct follower *w, struct err *e)
{
	bool held = true;

	if (w->nobody.code == ERR_NONE || w->nobody.code == ERR_BUSY || w->nobody.code == ERR_TIMEOUT ||
	    status_is_terminal(w->session.status) || w->run_fd < 0 ||
	    run_lock_held(w->run_fd, &held, NULL) != 0 || held)
		return 0;
	if (read_row(w, e) != 0)
		return -1;
	if (status_is_terminal(w->session.status))
		return 0;
	*e = w->nobody;
	return err_wrap(e, "run %s has no worker, and no supervisor could be started", w->run_id);
}

/* Its end may never be told here. */
static void
say_lost(struct follower *w)
{
	struct buf text = {0}, hint = {0};

	if (!w->lost_told && target_is_lost(w->f->home, &w->session, &text)) {
		w->lost_told = true;
		live_erase(&w->live);
		cli_note("%s", buf_text(&text));
		target_lost_hint(w->f->home_option, &w->session, &hint);
		cli_hint("%s", buf_text(&hint));
	}
	buf_clear(&text);
	buf_clear(&hint);
}

/* Nobody here will ever say how it goes on. */
static int
check_own(struct follower *w, struct err *e)
{
	say_lost(w);
	if (status_is_terminal(w->session.status) && !session_is_restarting(&w->session))
		return 0;
	return target_check_own(w->f->cli, w->f->home, &w->session, e);
}

/* A run that began here and whose worker has gone, by its lock. */
static bool
worker_is_gone(const struct follower *w)
{
	struct proc_place here;
	struct attempts a;
	struct err ignored = {0};
	bool held = true, other_boot, gone;

	if (w->run_fd < 0 || status_is_terminal(w->session.status) ||
	    w->session.status == STATUS_QUEUED ||
	    run_lock_held(w->run_fd, &held, &ignored) != 0 || held ||
	    attempts_read(w->run_fd, &a, &ignored) != 0)
		return false;
	gone = a.has_place && proc_place_here(&here, &ignored) == 0 &&
	    proc_place_is(&a.place, &here, &other_boot);
	attempts_clear(&a);
	return gone;
}

/* A supervisor that cannot write the row (no room) would have us wait for ever for what is over. */
static int
check_recorded(struct follower *w, struct err *e)
{
	int64_t now = clock_monotonic_ns();

	if (!worker_is_gone(w)) {
		w->free_at_ns = 0;
		return 0;
	}
	if (w->free_at_ns == 0)
		w->free_at_ns = now;
	if (now - w->free_at_ns < UNRECORDED_NS)
		return 0;
	if (read_row(w, e) != 0)
		return -1;
	w->unrecorded = worker_is_gone(w);
	return 0;
}

/* A supervisor that cannot record that a run starts does not let it begin. */
static void
say_held_start(struct follower *w)
{
	struct json *status = NULL;
	struct err ignored = {0};
	const char *why;

	if (w->start_told || client_status(w->f->home, HELD_UP_ASK_MS, &status, &ignored) != 0)
		return;
	why = json_cstr_of(json_get(status, "unwritten_why"));
	if (why != NULL && why[0] != '\0') {
		w->start_told = true;
		live_erase(&w->live);
		cli_note("run %s is not started yet: the supervisor cannot record it: %s", w->run_id, why);
		cli_hint("flowsup doctor");
	}
	json_unref(status);
}

static void
say_held_end(struct follower *w)
{
	if (w->end_told)
		return;
	w->end_told = true;
	live_erase(&w->live);
	cli_note("run %s has ended; waits until that can be recorded in '%s/" HOME_DATABASE "'", w->run_id,
	    w->f->home->path);
	cli_hint("flowsup doctor");
}

static bool
is_being_started(const struct session *s)
{
	return s->status == STATUS_STARTING ||
	    (s->status == STATUS_QUEUED && s->reason_code != NULL && strcmp(s->reason_code, "run.queued.new") == 0);
}

/* What takes a moment otherwise takes as long as the row cannot be written. */
static void
say_held_up(struct follower *w)
{
	int64_t now = clock_monotonic_ns();

	if (status_is_terminal(w->session.status) || (!w->ended && !is_being_started(&w->session))) {
		w->held_up_at_ns = 0;
		return;
	}
	if (w->held_up_at_ns == 0)
		w->held_up_at_ns = now + HELD_UP_NS;
	if (now < w->held_up_at_ns)
		return;
	w->held_up_at_ns = now + HELD_UP_NS;
	if (w->ended)
		say_held_end(w);
	else
		say_held_start(w);
}

/* A crash that the restart policy answers is no end: its successor is followed in its place. */
static bool
is_over(const struct follower *w)
{
	const struct session *s = &w->session;

	if (!status_is_terminal(s->status))
		return false;
	if (w->f->this_run)
		return true;
	return !session_is_restarting(s) && !w->restarting;
}

/* 0: go on; else the result is in *status (-1 with *e). */
static bool
turn(struct follower *w, int *status, struct err *e)
{
	find_supervisor(w);
	out_look(w->f->out);
	*status = -1;
	if (row_is_due(w) && (read_row(w, e) != 0 || check_own(w, e) != 0 || check_somebody(w, e) != 0 ||
				     check_recorded(w, e) != 0))
		return true;
	if (pump_events(w, e) != 0)
		return true;
	take_done(w, (int64_t)(w->tally.saved + w->tally.skipped));
	say_status(w);
	say_ending(w);
	say_waiting(w);
	say_held_up(w);
	out_flush(w->f->out);
	note_restart(w);
	if (is_over(w) || w->next[0] != '\0') {
		if (settle(w, e) == 0)
			*status = status_exit(w->session.status, w->session.reason_code);
		return true;
	}
	if (w->unrecorded) {
		*status = status_exit(STATUS_CRASHED, "run.crashed.unknown");
		return true;
	}
	*status = w->interrupted ? INTERRUPTED : STILL_RUNNING;
	if (w->interrupted || !out_open(w->f->out) ||
	    (w->deadline_ns != 0 && clock_monotonic_ns() >= w->deadline_ns))
		return true;
	if (w->f->show == FOLLOW_LIVE)
		live_draw(&w->live, &w->session, buf_text(&w->waits), w->ending, &w->tally);
	*status = -1;
	return wait_for_something(w, e) != 0;
}

static int
loop(struct follower *w, struct err *e)
{
	int status;

	while (!turn(w, &status, e))
		;
	live_erase(&w->live);
	if (status < 0)
		return -1;
	if (is_over(w) || w->next[0] != '\0')
		say_end(w);
	else if (w->unrecorded)
		say_unrecorded(w);
	else if (w->interrupted)
		follow_say_interrupted(w->f->home_option, w->run_id, "watch", NULL);
	/* Who reads no more (`| head`) asked for nothing else. */
	else if (!out_open(w->f->out))
		return 0;
	return status;
}

void
follow_leaving(sigset_t *set)
{
	static const int asked[] = {SIGTERM, SIGHUP};
	struct sigaction now;
	size_t i;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	/* A signal that is ignored (nohup) would be delivered all the same once it is blocked. */
	for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		if (sigaction(asked[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(set, asked[i]);
}

static int
open_signals(struct follower *w, struct err *e)
{
	sigset_t set;

	follow_leaving(&set);
	sigaddset(&set, SIGWINCH);
	/* What would end or stop us at once would leave the terminal as the display needs it. */
	if (w->f->show == FOLLOW_LIVE) {
		sigaddset(&set, SIGTSTP);
		sigaddset(&set, SIGQUIT);
	}
	sigprocmask(SIG_BLOCK, &set, &w->old_mask);
	w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->signals >= 0)
		return 0;
	err_sys(e, ERR_INTERNAL, errno, "signalfd");
	sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
	return -1;
}

/* Who only waits for the end goes by the row; what happens stands in the files. */
static int
open_files(struct follower *w, struct err *e)
{
	w->run_fd = seek_rundir(w->f->home, &w->session, e);
	if (w->run_fd >= 0)
		return 0;
	if (w->f->show == FOLLOW_EVENTS || w->f->show == FOLLOW_LINES || w->events_fd >= 0 ||
	    e->code != ERR_IO)
		return -1;
	cli_note("%s; its end is waited for by what the database says", e->msg);
	err_clear(e);
	return 0;
}

static void
follower_close(struct follower *w)
{
	fd_close(&w->signals);
	fd_close(&w->changes);
	tail_close(&w->events);
	tally_clear(&w->tally);
	json_unref(w->asked);
	fd_close(&w->run_fd);
	if (w->has_session)
		session_clear(&w->session);
	buf_clear(&w->waits);
	json_unref(w->ending);
	sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
}

/* The next run of the job goes into `next`, else "". */
static int
follow_one(const struct follow *f, const char *run_id, int64_t deadline_ns, char next[RUN_ID_TEXT],
    struct err *e)
{
	struct follower w = {
	    .f = f,
	    .run_id = run_id,
	    .run_fd = -1,
	    .changes = -1,
	    .changed = true,
	    .told = STATUS_COUNT,
	    .events_fd = f->events_fd,
	    .deadline_ns = deadline_ns,
	};
	int r;

	if (read_row(&w, e) != 0 || open_files(&w, e) != 0 || open_signals(&w, e) != 0) {
		fd_close(&w.run_fd);
		if (w.has_session)
			session_clear(&w.session);
		buf_clear(&w.waits);
		json_unref(w.ending);
		return -1;
	}
	w.live = (struct live){.out = f->out, .run_fd = w.run_fd, .home_option = f->home_option};
	tail_init(&w.events, w.run_fd, RUN_EVENTS);
	/* What counts or copies needs everything from the beginning. */
	if (!f->from_start && f->show == FOLLOW_LINES && f->events_fd < 0)
		tail_to_end(&w.events);
	r = loop(&w, e);
	memcpy(next, w.next, sizeof(w.next));
	follower_close(&w);
	return r;
}

int
follow_run(const struct follow *f, const char *run_id, struct err *e)
{
	int64_t deadline_ns = f->timeout_ns > 0 ? clock_monotonic_ns() + f->timeout_ns : 0;
	char now[RUN_ID_TEXT], next[RUN_ID_TEXT] = "";
	struct follow own = *f;
	int r;

	strlcpy(now, run_id, sizeof(now));
	while ((r = follow_one(&own, now, deadline_ns, next, e)) >= 0 && next[0] != '\0') {
		cli_note("run %s was resumed by its restart policy, as run %s", now, next);
		memcpy(now, next, sizeof(now));
		/* All of it is news. */
		own.from_start = true;
	}
	return r;
}

enum follow_show
follow_how(const struct output *out, bool json)
{
	if (json)
		return FOLLOW_EVENTS;
	return out->terminal && out->colour ? FOLLOW_LIVE : FOLLOW_LINES;
}

int
follow_open_events(const char *text, int *fd, bool *owned, struct err *e)
{
	size_t len = strlen(text);
	long n;

	*owned = false;
	if (len > 0 && len < 8 && strspn(text, "0123456789") == len) {
		n = strtol(text, NULL, 10);
		/* What nobody opened for us would be the next file that we open ourselves. */
		if (fcntl((int)n, F_GETFD) < 0)
			return err_set(e, ERR_USAGE, "--events: descriptor %ld is not open", n);
		*fd = (int)n;
		return fcntl(*fd, F_SETFD, FD_CLOEXEC) < 0
		    ? err_sys(e, ERR_INTERNAL, errno, "--events: descriptor %ld", n)
		    : 0;
	}
	*fd = open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (*fd < 0)
		return err_sys(e, ERR_CREATE, errno, "--events: \"%s\"", text);
	*owned = true;
	return 0;
}
