/*
 * Workers that another supervisor started, or whose connection broke. Their lock is asked first,
 * always: free means dead. Held means alive, however long it does not answer.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"
#include "seek.h"

/* How often a worker that is not reached is tried: 100 ms, doubled up to 5 s. */
static void
try_later(struct worker *w)
{
	w->state = WORKER_LOST;
	w->due_ns = clock_monotonic_ns() + jobs_pause_ns(w->tries);
	w->tries++;
	loop_set_timer(&w->daemon->loop, TIMER_ADOPT, w->due_ns);
}

static int
say_hello(int fd, struct err *e)
{
	struct json *body = json_set(json_object(), "role", json_cstr("supervisor"));
	int rc;

	body = json_set(body, "major", json_int(PROTOCOL_MAJOR));
	body = json_set(body, "minor", json_int(PROTOCOL_MINOR));
	body = json_set(body, "version", json_cstr(FLOWSUP_VERSION));
	if (body == NULL)
		return err_nomem(e);
	rc = message_send(fd, MSG_HELLO, body, -1, e);
	return rc > 0 ? err_set(e, ERR_BUSY, "its queue is full") : rc;
}

static int
reach(struct worker *w, int run_fd, struct err *e)
{
	int fd = ipc_connect(run_fd, RUN_SOCKET, e);

	if (fd < 0)
		return -1;
	if (say_hello(fd, e) != 0) {
		fd_close(&fd);
		return -1;
	}
	if (worker_set_channel(w, fd, e) != 0)
		return -1;
	w->state = WORKER_GREETED;
	return 0;
}

static void
dead(struct daemon *d, struct worker *w)
{
	const struct proc_end unknown = {.known = false};

	worker_gone(w, &unknown, w->other_boot || d->booted ? "run.crashed.boot" : NULL);
}

/*
 * A run whose lock was taken away, with its directory or alone, cannot be judged by it, only by the
 * process. Frees w when there is none.
 */
static void
judge_by_process(struct daemon *d, struct worker *w, const struct err *why)
{
	struct proc_id id;
	struct err e = {0};
	int found;

	if (w->tries == 0)
		log_line(LOG_WARNING, "run %s: %s", w->run_id, why->msg);
	found = w->id.pid != 0 ? 1 : seek_worker(&d->home, w->run_id, &id, &e);
	if (found == 0) {
		dead(d, w);
		return;
	}
	if (found < 0)
		log_line(LOG_WARNING, "run %s: %s", w->run_id, e.msg);
	else if (w->id.pid == 0)
		adopt_known(d, w, id.pid);
	try_later(w);
}

/*
 * A supervisor died between "starting" and the fork, or its worker before it did anything: that one
 * would have opened its log of attempts first. Nothing was started, so the run is in the queue again.
 */
static bool
never_began(const struct worker *w, int run_fd)
{
	struct stat st;

	if (!w->only_starting)
		return false;
	if (fstatat(run_fd, RUN_ATTEMPTS, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT;
	return st.st_size == 0;
}

static void
back_to_queue(struct daemon *d, struct worker *w)
{
	log_line(LOG_INFO, "run %s: no worker came of its start: it is in the queue again", w->run_id);
	queue_move(d, w->run_id, STATUS_QUEUED, "run.queued.new", NULL, true);
	worker_free(w);
	d->scan_wanted = true;
}

/* With the run's directory open. Frees w when it is dead. */
static void
try_with(struct daemon *d, struct worker *w, int run_fd)
{
	struct err e = {0};
	bool held = true;

	if (run_lock_held(run_fd, &held, &e) != 0) {
		if (e.code == ERR_NOTFOUND) {
			judge_by_process(d, w, &e);
			return;
		}
		log_line(LOG_WARNING, "run %s: %s", w->run_id, e.msg);
	}
	/* With a pidfd the kernel tells when it ends, and how. */
	if (!held && w->id.pid == 0) {
		if (never_began(w, run_fd))
			back_to_queue(d, w);
		else
			dead(d, w);
		return;
	}
	if (!held || reach(w, run_fd, &e) != 0)
		try_later(w);
}

static void
try_to_reach(struct daemon *d, struct worker *w)
{
	struct err e = {0};
	int run_fd = rundir_open(&d->home, w->run_id, &e);

	if (run_fd >= 0)
		try_with(d, w, run_fd);
	else if (e.code == ERR_NOTFOUND)
		judge_by_process(d, w, &e);
	else
		try_later(w);
	fd_close(&run_fd);
}

enum job_result
adopt_run(struct daemon *d, const struct session *s, struct err *e)
{
	struct worker *w = worker_new(d, s->run_id, e);
	struct proc_place there;

	if (w == NULL)
		return JOB_FAILED;
	w->state = WORKER_LOST;
	w->only_starting = s->status == STATUS_STARTING;
	watchdog_set(w, s->policy);
	worker_know(w, s);
	if (proc_place_parse(s->place, &there))
		(void)proc_place_is(&there, &d->here, &w->other_boot);
	try_to_reach(d, w);
	return JOB_DONE;
}

void
adopt_again(void *daemon)
{
	struct daemon *d = daemon;
	int64_t now = clock_monotonic_ns();
	struct worker *w, *next;

	for (w = worker_after(d, ""); w != NULL; w = next) {
		next = worker_after(d, w->run_id);
		if (w->state != WORKER_LOST)
			continue;
		if (w->due_ns <= now)
			try_to_reach(d, w);
		else
			loop_set_timer(&d->loop, TIMER_ADOPT, w->due_ns);
	}
}

void
adopt_lost(struct daemon *d, struct worker *w)
{
	(void)d;
	try_later(w);
}

void
adopt_known(struct daemon *d, struct worker *w, pid_t pid)
{
	struct proc_id id;
	struct err e = {0};
	int pidfd = -1;

	if (w->id.pid != 0)
		return;
	/* It said so itself a moment ago over a live connection; when it ends between, the connection
	 * ends too, and its lock is looked at. */
	if (proc_identify(pid, &id, &e) == 0)
		pidfd = proc_open(id, &e);
	if (pidfd < 0 || worker_set_process(w, id, pidfd, &e) != 0)
		log_line(LOG_WARNING, "run %s: cannot watch its worker %ld: %s", w->run_id, (long)pid,
		    e.msg);
	else
		log_line(LOG_INFO, "run %s: adopted its worker %ld", w->run_id, (long)pid);
	(void)d;
}
