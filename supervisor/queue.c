/* Runs that wait: which may start, and what a poke means for a run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "paste.h"
#include "seek.h"

enum {
	QUEUE_LOOKS = 1024,  /* jobs made by pokes or by one scan */
	QUEUE_RESERVE = 64,  /* descriptors for everything else */
	QUEUE_A_WORKER = 3,  /* pidfd, socket, heartbeat */
	QUEUE_START_FDS = 16 /* for the moment of a start */
};

bool
queue_has_room(uint64_t descriptors, uint64_t workers, uint64_t clients)
{
	return workers * QUEUE_A_WORKER + clients + QUEUE_RESERVE + QUEUE_START_FDS <= descriptors;
}

/* ---- Moves ---- */

static void
say_crashed(struct daemon *d, const struct job *j)
{
	struct buf command = {0};

	restart_tell_command(d, j->run_id, &command);
	log_line(LOG_WARNING, "run %s crashed: %s; to go on: %s", j->run_id,
	    j->text != NULL ? j->text : reason_text(j->reason), buf_text(&command));
	buf_clear(&command);
}

/* A worker that was asked to leave has written so itself, and its operations go on too. */
static enum job_result
ask_if_crashed(struct daemon *d, const char *run_id, struct err *e)
{
	struct session s;

	if (session_read(d->store, run_id, &s, e) != 0)
		return e->code == ERR_NOTFOUND ? JOB_DONE : JOB_FAILED;
	if (s.status == STATUS_CRASHED && s.resumed_as_run[0] == '\0')
		report_ask(d, run_id);
	session_clear(&s);
	notify_look(d);
	return JOB_DONE;
}

/* A kill that could not write the row; what waits for the job is rejected as by one that could. */
static void
become_killed(struct job *j)
{
	j->to = STATUS_CANCELLED;
	j->reason = "run.cancelled.killed";
	free(j->text);
	j->text = NULL;
}

/* A full disk keeps no process alive: what runs of it is watched, and ended where that is asked for, all the same. */
static void
watch_unrecorded(struct daemon *d, const struct job *j, const struct err *e)
{
	if (j->to == STATUS_CRASHED && j->tries == 0 && e->code != ERR_BUSY && d->options.only == NULL)
		(void)report_ask_running(d, j->run_id);
}

static enum job_result
move_job(struct daemon *d, struct job *j, struct err *e)
{
	bool moved = false;

	if (j->to == STATUS_CRASHED && seek_has_mark(&d->home, j->run_id, SEEK_KILLED))
		become_killed(j);
	if (session_transition(d->store, j->run_id, j->to, j->reason, j->text, -1, &moved, e) != 0) {
		/* Removed with its row: nothing is left to be recorded. */
		if (e->code == ERR_NOTFOUND)
			return JOB_DONE;
		watch_unrecorded(d, j, e);
		if (j->to == STATUS_CRASHED || j->to == STATUS_CANCELLED)
			stop_all_mark(d, j->run_id, e);
		return JOB_FAILED;
	}
	if (!moved)
		return j->to == STATUS_CRASHED ? ask_if_crashed(d, j->run_id, e) : JOB_DONE;
	daemon_worked(d);
	clients_tell_changed(d, j->run_id, status_word(j->to), j->reason);
	if (j->to == STATUS_CRASHED) {
		say_crashed(d, j);
		if (d->options.only == NULL)
			report_ask(d, j->run_id);
		restart_consider(d, j->run_id);
	}
	/* The kill could not write the count either. */
	if (j->to == STATUS_CANCELLED && strcmp(j->reason, "run.cancelled.killed") == 0)
		report_ask_count(d, j->run_id);
	if (j->to == STATUS_CANCELLED && control_end_job(d->store, j->run_id, e) != 0)
		log_line(LOG_WARNING, "%s", e->msg);
	if (status_is_terminal(j->to)) {
		secrets_ended(d, j->run_id);
		notify_look(d);
	}
	return JOB_DONE;
}

void
queue_move(struct daemon *d, const char *run_id, enum run_status to, const char *reason,
    const char *text, bool urgent)
{
	struct job *j = job_new(move_job, run_id, true);

	if (j == NULL)
		return;
	j->to = to;
	j->reason = reason;
	if (text != NULL)
		j->text = strdup(text);
	jobs_add(d, j, urgent);
}

/* ---- Starting one ---- */

static bool
is_passing(int sys)
{
	return sys == EAGAIN || sys == ENOMEM || sys == EMFILE || sys == ENFILE;
}

static const char *
passing_reason(int sys)
{
	return sys == EMFILE || sys == ENFILE ? "run.queued.descriptors" : "run.queued.new";
}

/* It stays in the queue, and the row says why. */
static enum job_result
leave_queued(struct daemon *d, const struct session *s, const char *reason, const char *text,
    struct err *e)
{
	bool moved = false;

	if (strcmp(s->reason_code, reason) == 0 &&
	    strcmp(s->reason, text != NULL ? text : reason_text(reason)) == 0)
		return JOB_DONE;
	if (session_transition(d->store, s->run_id, STATUS_QUEUED, reason, text, -1, &moved, e) != 0)
		return JOB_FAILED;
	clients_tell_changed(d, s->run_id, status_word(STATUS_QUEUED), reason);
	return JOB_DONE;
}

/* What has the key and is a copy has it until somebody takes it away. */
static bool
tell_copy(struct daemon *d, const char *blocker, struct buf *to)
{
	struct err ignored = {0};
	struct session s;
	const char *owner;

	if (session_read(d->store, blocker, &s, &ignored) != 0)
		return false;
	owner = session_owner(&s, &d->home);
	if (owner != NULL) {
		buf_printf(to, "waits for run %s, here a copy of that of '%s', to give up the key: ", blocker, owner);
		paste_command(to, "kill", d->home.path, blocker, NULL);
	}
	session_clear(&s);
	return owner != NULL;
}

static enum job_result
leave_behind(struct daemon *d, const struct session *s, const struct queue_standing *at, struct err *e)
{
	struct buf text = {0};
	enum job_result result;

	if (tell_copy(d, at->blocker, &text)) {
		/* Nobody here ends it. */
	} else if (at->being_ended) {
		/* Q_STARTABLE knows this text. */
		buf_printf(&text, "waits for what run %s left", at->blocker);
		/* Nobody else may ask what that is: its worker may have been a command's. */
		if (!kept_is_watched(d, at->blocker) && !report_is_asked(d, at->blocker))
			report_ask(d, at->blocker);
	} else {
		buf_printf(&text, "waits for the end of run %s", at->blocker);
	}
	result = text.failed ? JOB_LATER : leave_queued(d, s, "run.queued.unique", buf_text(&text), e);
	buf_clear(&text);
	return result;
}

/* A run that never had a worker can have none. */
static void
fail_unstarted(struct daemon *d, const struct session *s, const struct err *why)
{
	struct job *j;

	log_line(LOG_ERROR, "run %s: cannot be started: %s", s->run_id, why->msg);
	/* By the moves of the table: only what was starting can have failed to. */
	j = job_new(move_job, s->run_id, true);
	if (j != NULL) {
		j->to = STATUS_STARTING;
		j->reason = "run.starting.forked";
		jobs_add(d, j, false);
		queue_move(d, s->run_id, STATUS_FAILED, reason_of_failed_start(why), why->msg, false);
	}
}

/* Its worker waits for the row. When that cannot be written now it goes on waiting, and this is done again. */
static enum job_result
let_go(struct daemon *d, const struct session *s, struct worker *w, struct err *e)
{
	char place[PROC_PLACE_TEXT];
	bool moved = false;

	proc_place_text(&d->here, place);
	if (session_starting(d->store, s->run_id, place, &moved, e) != 0)
		return JOB_FAILED;
	if (!moved) {
		worker_withdraw(w);
		return JOB_DONE;
	}
	worker_let_go(w);
	watchdog_set(w, s->policy);
	worker_know(w, s);
	clients_tell_changed(d, s->run_id, status_word(STATUS_STARTING), "run.starting.forked");
	return JOB_DONE;
}

/* Under the run's lock. The worker is loaded while the row is written. */
static enum job_result
start_locked(struct daemon *d, const struct session *s, int run_fd, int *lock_fd, struct err *e)
{
	struct proc_failure failure;
	struct err why = {0};

	daemon_worked(d);
	if (worker_start(d, s->run_id, run_fd, *lock_fd, &failure, &why) == 0) {
		fd_close(lock_fd);
		return let_go(d, s, worker_find(d, s->run_id), e);
	}
	if (is_passing(failure.sys)) {
		log_line(LOG_WARNING, "run %s: its worker cannot be started now: %s", s->run_id,
		    why.msg);
		queue_move(d, s->run_id, STATUS_QUEUED, passing_reason(failure.sys), why.msg, true);
		return JOB_LATER;
	}
	fail_unstarted(d, s, &why);
	return JOB_DONE;
}

/* The run has no directory that could be used: it can never start. */
static enum job_result
cannot_start(struct daemon *d, const struct session *s, const struct err *why)
{
	if (is_passing(why->sys))
		return JOB_LATER;
	fail_unstarted(d, s, why);
	return JOB_DONE;
}

/* One whose row could not be written when its worker was started. */
static enum job_result
start_again(struct daemon *d, const struct session *s, struct worker *w, struct err *e)
{
	if (s->status == STATUS_QUEUED && d->phase != PHASE_STOPPING && d->phase != PHASE_RESTARTING)
		return let_go(d, s, w, e);
	worker_withdraw(w);
	return JOB_DONE;
}

/* Whoever ended it could not write that. */
static bool
was_ended(struct daemon *d, const struct session *s)
{
	bool killed = seek_has_mark(&d->home, s->run_id, SEEK_KILLED);

	if (!killed && !seek_has_mark(&d->home, s->run_id, SEEK_STOPPED))
		return false;
	queue_move(d, s->run_id, STATUS_CANCELLED, killed ? "run.cancelled.killed" : "run.cancelled.queued", NULL, false);
	return true;
}

static enum job_result
start_run(struct daemon *d, const struct session *s, struct err *e)
{
	enum job_result result;
	struct queue_standing standing;
	struct err why = {0};
	int run_fd, lock_fd;

	/* The next one, or this one executed anew, scans the queue. */
	if (d->phase == PHASE_STOPPING || d->phase == PHASE_RESTARTING)
		return JOB_DONE;
	if (was_ended(d, s))
		return JOB_DONE;
	if (secrets_lack(d, s))
		return leave_queued(d, s, "run.queued.environment", NULL, e);
	if (queue_standing(d->store, s, &standing, e) != 0)
		return JOB_FAILED;
	if (standing.blocker[0] != '\0')
		return leave_behind(d, s, &standing, e);
	if (standing.no_slot)
		return leave_queued(d, s, "run.queued.slot", NULL, e);
	/* Where none runs none will make room: the start itself tells what is lacking. */
	if (d->workers.count > 0 && !queue_has_room(d->descriptors, d->workers.count, d->clients.count)) {
		d->crowded = true;
		return leave_queued(d, s, "run.queued.descriptors", NULL, e);
	}
	run_fd = rundir_open(&d->home, s->run_id, &why);
	if (run_fd < 0)
		return cannot_start(d, s, &why);
	lock_fd = run_lock_take(run_fd, 0, &why);
	if (lock_fd >= 0)
		result = start_locked(d, s, run_fd, &lock_fd, e);
	else if (why.code == ERR_BUSY)
		result = JOB_LATER; /* a command is at it: `stop`, or `start --foreground` */
	else
		result = cannot_start(d, s, &why);
	fd_close(&lock_fd);
	fd_close(&run_fd);
	return result;
}

/* ---- Looking ---- */

static bool
is_locked(const struct daemon *d, const char *run_id)
{
	struct err e = {0};
	int run_fd = rundir_open(&d->home, run_id, &e);
	bool held = false;

	if (run_fd < 0 || run_lock_held(run_fd, &held, &e) != 0)
		held = false;
	fd_close(&run_fd);
	return held;
}

/*
 * Of another pid namespace of this boot: whoever has the lock's own file, which a copy is not, learns from
 * it what he would of a run from here.
 */
static bool
is_known_dead(const struct daemon *d, const struct session *s, const struct proc_place *there)
{
	struct err e = {0};
	const char *path;
	bool held = true;
	int run_fd;

	if (s->status == STATUS_QUEUED || strcmp(there->boot_id, d->here.boot_id) != 0 ||
	    session_home(s, &d->home, &path) != SESSION_HOME_THIS)
		return false;
	run_fd = rundir_open(&d->home, s->run_id, &e);
	if (run_fd < 0 || run_lock_held(run_fd, &held, &e) != 0)
		held = true;
	fd_close(&run_fd);
	return !held;
}

bool
queue_is_left_alone(const struct daemon *d, const struct session *s)
{
	struct proc_place there;
	bool other_boot;

	if (session_is_copy(s, &d->home))
		return true;
	if (json_is_true(json_get(s->policy, "foreground")) && is_locked(d, s->run_id))
		return true;
	return s->place[0] != '\0' && proc_place_parse(s->place, &there) &&
	    !proc_place_is(&there, &d->here, &other_boot) && !is_known_dead(d, s, &there);
}

static enum job_result
look_job(struct daemon *d, struct job *j, struct err *e)
{
	enum job_result result = JOB_DONE;
	struct session s;
	struct worker *w = worker_find(d, j->run_id);

	if (w != NULL && w->gate < 0) {
		worker_poke(w);
		return JOB_DONE;
	}
	if (session_read(d->store, j->run_id, &s, e) != 0) {
		if (e->code != ERR_NOTFOUND)
			return JOB_FAILED;
		secrets_drop(d, j->run_id); /* it was removed */
		if (w != NULL)
			worker_withdraw(w);
		return JOB_DONE;
	}
	secrets_settle(d, &s);
	if (w != NULL)
		result = start_again(d, &s, w, e);
	else if (queue_is_left_alone(d, &s))
		result = JOB_DONE;
	else if (s.status == STATUS_QUEUED)
		result = start_run(d, &s, e);
	else if (!status_is_terminal(s.status))
		result = adopt_run(d, &s, e);
	/* All that were known then were told. */
	if (d->phase == PHASE_STOPPING && w == NULL && worker_find(d, j->run_id) != NULL)
		stop_all_run(d, j->run_id, d->stop_all.now);
	session_clear(&s);
	return result;
}

void
queue_rest(struct daemon *d)
{
	/* In a crowd the next worker or client that leaves asks for the rest. */
	if (d->more_queued && !d->crowded && d->phase == PHASE_WORKING &&
	    TAILQ_EMPTY(&d->jobs.ordinary))
		d->scan_wanted = true;
}

/*
 * Somebody may have committed: perhaps a run whose command could not reach this supervisor. What was
 * written is visible only after its fsync, so the look that follows counts, too.
 */
void
queue_notice(struct daemon *d)
{
	if (store_was_touched(&d->home, &d->queue_mark))
		d->queue_looks = 2;
	if (d->queue_looks == 0)
		return;
	d->queue_looks--;
	d->scan_wanted = true;
}

void
queue_look(struct daemon *d, const char *run_id)
{
	struct worker *w = worker_find(d, run_id);

	if (w != NULL && w->gate < 0)
		worker_poke(w);
	else if (jobs_has(&d->jobs, look_job, run_id))
		jobs_wake_all(d);
	else if (d->jobs.count >= QUEUE_LOOKS)
		d->scan_wanted = true; /* bounded, and finds every run that waits */
	else
		jobs_add(d, job_new(look_job, run_id, true), false);
}

struct scan {
	struct daemon *daemon;
	int64_t found, most;
};

static void
look_at(struct daemon *d, const char *run_id)
{
	const struct worker *w = worker_find(d, run_id);

	if ((w == NULL || w->gate >= 0) && !jobs_has(&d->jobs, look_job, run_id))
		jobs_add(d, job_new(look_job, run_id, true), false);
}

static int
on_live(void *arg, const struct session *s)
{
	look_at(arg, s->run_id);
	return 0;
}

/* Of a crashed run that nobody resumed: something of it may run that no supervisor watches now. */
static int
on_crashed(void *arg, const struct session *s)
{
	const struct json *running = json_get(s->metadata, "running_operations");
	struct scan *scan = arg;

	if (s->resumed_as_run[0] == '\0' && (running == NULL || json_length(running) > 0) &&
	    !session_is_copy(s, &scan->daemon->home))
		report_ask(scan->daemon, s->run_id);
	return 0;
}

static int
on_startable(void *arg, const char *run_id)
{
	struct scan *scan = arg;

	scan->found++;
	look_at(scan->daemon, run_id);
	return scan->found >= scan->most;
}

static const struct session_filter live = {
    .statuses = {STATUS_STARTING, STATUS_RUNNING, STATUS_PAUSED},
    .nstatuses = 3,
    .oldest_first = true};

static const struct session_filter crashed = {.statuses = {STATUS_CRASHED}, .nstatuses = 1};

/* After a crowd only as many as fit now, and one more, which finds the crowd again. */
static int64_t
scan_limit(struct daemon *d)
{
	int64_t room = 0;

	if (!d->crowded)
		return QUEUE_LOOKS;
	while (room < QUEUE_LOOKS - 1 &&
	    queue_has_room(d->descriptors, d->workers.count + (uint64_t)room, d->clients.count))
		room++;
	d->crowded = false;
	return room + 1;
}

enum job_result
queue_scan(struct daemon *d, bool all, struct err *e)
{
	struct scan scan = {.daemon = d};

	if (all && (session_list(d->store, &live, on_live, d, e) != 0 || restart_scan(d, e) != 0 ||
		       session_list(d->store, &crashed, on_crashed, &scan, e) != 0))
		return JOB_FAILED;
	/* After it executed itself anew its commands are still its own. */
	if (all && errands_count(d) == 0 && notice_lost(d->store, e) != 0)
		return JOB_FAILED;
	if (all)
		notify_look(d);
	scan.most = scan_limit(d);
	if (queue_startable(d->store, on_startable, &scan, e) != 0)
		return JOB_FAILED;
	/* As many as were asked for: there may be more, for when these have been looked at. */
	d->more_queued = scan.found >= scan.most;
	return JOB_DONE;
}
