/* How a run ends. The checkpoint comes first: whether everything was saved decides the outcome. */
#include "worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"

/* The terminal status is tried for so long while the database is busy or the disk full. */
enum {
	STORE_TRIES = 160,
	STORE_TRIES_STORAGE = 300,
	STORE_TRIES_NOW = 40, /* somebody waits for the end */
	STORE_TRIES_TERMINATED = 8,
	STORE_PAUSE_MS = 200
};

static bool
may_start_more(const struct worker *w)
{
	return !admission_over(w) &&
	    (w->ready.count > 0 || w->gated.count > 0 || w->paused.count > 0 || w->retrying > 0 ||
		w->waiting > 0 || reactive_is_expanding(w));
}

static bool
is_saved(const struct worker *w)
{
	if ((w->unsaved_count == 0 && w->waits == NULL && w->planning.next == NULL) || w->writer_stopped || storage_gave_up(w))
		return true;
	return (w->closed & CLOSED_ERROR) != 0 && !w->storage.writer_fails;
}

bool
worker_is_idle(const struct worker *w)
{
	if (w->leave_now)
		return true;
	if (w->settling > 0 || w->settled.count > 0 || io_pending(w->io) > 0 || !is_saved(w))
		return false;
	if (w->closed & CLOSED_TERMINATED)
		return true;
	return w->running == 0 && !may_start_more(w);
}

static void
leave_due(void *arg)
{
	struct worker *w = arg;

	w->leave_now = true;
	w->loop.again = true;
}

void
worker_leave(struct worker *w, int sig)
{
	struct err e = {0};

	if (w->closed & CLOSED_TERMINATED)
		return;
	w->asked_by = sig;
	log_line(LOG_INFO, "asked to leave: operations that run are left running");
	admission_close(w, CLOSED_TERMINATED);
	if (timer_arm(&w->loop.timers, &w->give_up,
		clock_monotonic_ns() + WORKER_LEAVE_S * NS_PER_S, leave_due, w, &e) != 0)
		w->leave_now = true;
}

/* ---- The outcome ---- */

static void
decide(struct worker *w, enum run_status status, const char *reason_code)
{
	w->status = status;
	w->reason_code = reason_code;
}

static bool
was_withheld(const struct worker *w)
{
	return w->counts.done < w->flow->nops;
}

/* In this order: failures keep their own outcomes when a deadline or a stop came beside. */
static void
decide_outcome(struct worker *w, bool saved)
{
	if (w->closed & CLOSED_TERMINATED)
		decide(w, STATUS_CRASHED, "run.crashed.terminated");
	else if (!saved || w->storage.over || w->writer_stopped)
		decide(w, STATUS_FAILED, "run.failed.checkpoint");
	else if (w->closed & CLOSED_ERROR)
		decide(w, STATUS_FAILED, "run.failed.internal");
	else if (w->closed & CLOSED_STOP)
		decide(w, STATUS_CANCELLED, "run.cancelled.stop");
	else if (w->counts.failed > 0)
		decide(w, STATUS_FAILED, "run.failed.operation");
	else if (was_withheld(w))
		decide(w, STATUS_TIMED_OUT, "run.timed_out.deadline");
	else
		decide(w, STATUS_COMPLETED, "run.completed.all");
}

/* Whoever removed it is the cause of whatever went wrong in it. */
static bool
directory_is_gone(const struct worker *w)
{
	struct stat st;

	return fstat(w->run_fd, &st) == 0 && st.st_nlink == 0;
}

static void
add_lacking(const struct worker *w, struct buf *to)
{
	uint64_t n = w->flow->nops - w->counts.done;

	buf_printf(to, ": %llu of %zu operation%s %s no outcome", (unsigned long long)n, w->flow->nops,
	    w->flow->nops == 1 ? "" : "s", n == 1 ? "has" : "have");
}

/* What a failure did not keep from being done stands in the way of no resume. */
static void
add_withheld(const struct worker *w, struct buf *to)
{
	if (!was_withheld(w) || !(w->closed & (CLOSED_DEADLINE | CLOSED_FAIL_FAST)))
		return;
	buf_printf(to, "; %s",
	    w->closed & CLOSED_DEADLINE ? "the deadline passed" : "nothing was started any more");
	add_lacking(w, to);
}

static void
describe(struct worker *w, const struct err *why)
{
	struct buf text = {0};

	if (w->status == STATUS_FAILED && strcmp(w->reason_code, "run.failed.operation") == 0) {
		buf_printf(&text, "operation %s failed", w->flow->ops[w->first_failed].id);
		if (w->counts.failed > 1)
			buf_printf(&text, " and %llu more",
			    (unsigned long long)(w->counts.failed - 1));
		add_withheld(w, &text);
	} else if (w->status == STATUS_FAILED) {
		buf_printf(&text, "%s: %s", reason_text(w->reason_code),
		    directory_is_gone(w) ? "the run's directory was removed" : why->msg);
		if (strcmp(w->reason_code, "run.failed.checkpoint") == 0 &&
		    w->unsaved_count > w->unsaved_pending) {
			buf_puts(&text, "; ");
			storage_name_unsaved(w, &text);
		}
	}
	if (w->status == STATUS_CRASHED)
		buf_printf(&text, "%s (%s)", reason_text(w->reason_code), proc_signal_name(w->asked_by));
	if (w->status == STATUS_CANCELLED && !was_withheld(w) && w->counts.failed == 0)
		buf_printf(&text, "%s, but nothing was left undone", reason_text(w->reason_code));
	if (w->status == STATUS_TIMED_OUT) {
		buf_puts(&text, reason_text(w->reason_code));
		add_lacking(w, &text);
	}
	if (w->status == STATUS_COMPLETED && w->counts.skipped > 0)
		buf_puts(&text, "every operation completed or was skipped");
	w->reason = text.len > 0 ? buf_steal(&text) : NULL;
	buf_clear(&text);
}

/* ---- The last job ---- */

struct end_job {
	struct io_job job;
	enum run_status status;
	const char *reason_code, *reason;
	int64_t done;
	int64_t total; /* operations, when the database does not know all of them; else negative */
	unsigned tries;
	bool moved;
	bool unstored; /* that it runs was not stored either, and must come first */
	struct stamp_job *unstamped;
};

/* A control whose effect has happened is not to be swept as one that never landed. */
static int
end_once(struct end_job *j, struct store *s, const char *run_id, struct err *e)
{
	if (j->unstamped != NULL && control_write_stamp(j->unstamped, s, e) != 0)
		return -1;
	if (j->unstored && session_transition(s, run_id, STATUS_RUNNING, "run.running.started", NULL,
		-1, NULL, e) != 0)
		return -1;
	if (j->total >= 0 && session_progress(s, run_id, j->done, j->total, e) != 0)
		return -1;
	return session_transition(s, run_id, j->status, j->reason_code, j->reason, j->done, &j->moved,
	    e);
}

static void
end_work(struct io_job *job, struct io_context *c)
{
	struct end_job *j = (struct end_job *)job;
	struct store *s;
	unsigned n;

	job->result = -1;
	for (n = 0; n < j->tries && job->result != 0; n++) {
		if (n > 0)
			usleep(STORE_PAUSE_MS * 1000);
		job->error = (struct err){0};
		job->result = io_store(c, &s, &job->error);
		if (job->result == 0)
			job->result = end_once(j, s, c->run_id, &job->error);
	}
	if (job->result != 0)
		return;
	/* Controls that nobody claimed, on a connection that sees everything committed by now. */
	io_store_close(c);
	if (io_store(c, &s, &job->error) == 0)
		control_sweep(s, c->run_id, &job->error);
}

static void
end_done(struct io_job *job, void *owner)
{
	struct worker *w = owner;

	w->stored = job->result == 0;
	if (job->error.code != ERR_NONE)
		log_line(LOG_ERROR, "the end of the run: %s", job->error.msg);
	control_free_stamp(((struct end_job *)job)->unstamped, job->result == 0);
	free(job);
}

static void
store_end(struct worker *w)
{
	struct end_job *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return;
	j->job.work = end_work;
	j->job.done = end_done;
	j->status = w->status;
	j->reason_code = w->reason_code;
	j->reason = w->reason;
	j->done = (int64_t)w->counts.done;
	j->total = w->flow->nops != w->total_stored ? (int64_t)w->flow->nops : -1;
	j->unstored = !w->running_stored;
	j->unstamped = control_take_unstamped(w);
	j->tries = w->closed & CLOSED_TERMINATED ? STORE_TRIES_TERMINATED
	    : w->stop_now			 ? STORE_TRIES_NOW
	    : w->closed & CLOSED_STORAGE	 ? STORE_TRIES_STORAGE
						 : STORE_TRIES;
	events_then(w, &j->job);
}

/* ---- The last steps ---- */

static bool
leftovers_gone(struct worker *w)
{
	if (w->closed & CLOSED_TERMINATED)
		return true;
	if (strays_pass(w))
		return true;
	/* Their pidfds and timers make the next turns; none of them: only a second look is due. */
	w->loop.again = w->strays == NULL;
	return false;
}

static void
close_writer(struct worker *w)
{
	bool abandon = w->leave_now || storage_gave_up(w);
	struct err e = {0};
	bool saved;

	poller_unwatch(&w->loop, &w->acks);
	saved = ckpt_writer_close(w->writer, abandon, &e) == 0;
	w->writer = NULL;
	if (!saved) {
		log_line(LOG_ERROR, "%s", e.msg);
		w->trouble = e;
	}
	decide_outcome(w, saved);
	describe(w, &w->trouble);
}

bool
worker_finish(struct worker *w)
{
	if (!leftovers_gone(w))
		return false;
	if (!(w->closed & CLOSED_TERMINATED))
		admission_cancel_waiting(w);
	close_writer(w);
	messages_tell_unrendered(w);
	event_begin(w, "RunEnded");
	event_text(w, "status", status_word(w->status));
	event_text(w, "reason", w->reason_code);
	if (w->status == STATUS_TIMED_OUT)
		event_text(w, "error_type", "FlowTimeoutError");
	event_int(w, "turns", (int64_t)w->counts.turns);
	event_int(w, "judged", (int64_t)w->counts.judged);
	event_end(w);
	events_flush(w);
	if (!w->disowned)
		store_end(w);
	poller_unwatch(&w->loop, &w->io_events);
	io_close(w->io, w);
	w->io = NULL;
	if (w->stored)
		link_ended(w);
	w->finished = true;
	return true;
}

/* ---- A run that never began ---- */

static int
store_failed_start(struct worker *w, const struct err *why)
{
	struct store *s = NULL;
	struct err e = {0};
	bool moved;
	int rc;

	rc = store_open(&w->home, STORE_WORKER, false, STORE_BUSY_MS, &s, &e);
	if (rc == 0)
		rc = session_transition(s, w->run_id, w->status, w->reason_code, why->msg, -1, &moved, &e);
	if (rc == 0 && control_sweep(s, w->run_id, &e) != 0)
		log_line(LOG_WARNING, "%s", e.msg);
	if (rc != 0)
		log_line(LOG_ERROR, "%s", e.msg);
	store_close(s);
	return rc;
}

int
worker_abandon(struct worker *w, const struct err *why)
{
	struct err e = {0};
	int rc;

	log_line(LOG_ERROR, "the run cannot be started: %s", why->msg);
	/* Without the lock this is not the run's worker, and nothing of the run is its business. */
	if (w->run_id[0] == '\0' || w->lock_fd < 0)
		return -1;
	if (w->writer != NULL)
		ckpt_writer_close(w->writer, true, &e);
	w->writer = NULL;
	io_close(w->io, w);
	w->io = NULL;
	decide(w, STATUS_FAILED, reason_of_failed_start(why));
	rc = store_failed_start(w, why);
	if (rc == 0)
		link_ended(w);
	return rc;
}
