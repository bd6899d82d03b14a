/* A worker's birth and death. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/heartbeat.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"
#include "daemon.h"
#include "seek.h"

/* Numbers in the worker. */
enum {
	WORKER_FD_LOCK = 3,
	WORKER_FD_CHANNEL = 4,
	WORKER_FD_HEARTBEAT = 5,
	WORKER_FD_VALUES = 6,
	WORKER_FD_GATE = 7
};

#define WORKER_LOG "worker.log"

/* ---- Birth ---- */

/* What a worker is started with; each is ours until it has been started. */
struct outfit {
	int null, log, heartbeat;
	int channel[2];
	int gate[2]; /* a pipe: the worker waits at its end */
};

static void
outfit_clear(struct outfit *o)
{
	fd_close(&o->null);
	fd_close(&o->log);
	fd_close(&o->heartbeat);
	fd_close(&o->channel[0]);
	fd_close(&o->channel[1]);
	fd_close(&o->gate[0]);
	fd_close(&o->gate[1]);
}

static int
outfit_make(struct outfit *o, int run_fd, struct proc_failure *failure, struct err *e)
{
	const struct heartbeat start = {0, clock_monotonic_ns()};

	*o = (struct outfit){-1, -1, -1, {-1, -1}, {-1, -1}};
	o->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (o->null < 0) {
		*failure = (struct proc_failure){"open /dev/null", errno};
		return err_sys(e, ERR_IO, errno, "open '/dev/null'");
	}
	o->log = openat(run_fd, WORKER_LOG,
	    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (o->log < 0) {
		*failure = (struct proc_failure){"open the log", errno};
		return err_sys(e, ERR_IO, errno, "open '%s'", WORKER_LOG);
	}
	o->heartbeat = memfd_create("flowsup-heartbeat", MFD_CLOEXEC);
	if (o->heartbeat < 0 || pwrite(o->heartbeat, &start, sizeof(start), 0) != sizeof(start)) {
		*failure = (struct proc_failure){"make the heartbeat", errno};
		return err_sys(e, ERR_IO, errno, "memfd_create");
	}
	if (ipc_pair(o->channel, e) != 0) {
		*failure = (struct proc_failure){"make a socket pair", e->sys};
		return -1;
	}
	if (pipe2(o->gate, O_CLOEXEC) != 0) {
		*failure = (struct proc_failure){"make a pipe", errno};
		return err_sys(e, ERR_IO, errno, "pipe2");
	}
	return 0;
}

static int
execute(struct daemon *d, const char *run_id, int lock_fd, const struct outfit *o,
    struct proc_child *child, struct proc_failure *failure, struct err *e)
{
	const char *argv[SEEK_WORDS];
	char *words[SEEK_WORDS];
	struct proc_spawn what = PROC_SPAWN_INIT;

	seek_words(&d->home, run_id, argv);
	memcpy(words, argv, sizeof(argv));
	what.path = d->worker_path;
	what.argv = words;
	what.envp = d->envp;
	what.new_session = true;
	/* In the foreground nothing outlives this process. */
	what.die_with = d->options.only != NULL ? getpid() : 0;
	what.fds[what.nfds++] = (struct proc_fd){o->null, STDIN_FILENO};
	what.fds[what.nfds++] = (struct proc_fd){o->log, STDOUT_FILENO};
	what.fds[what.nfds++] = (struct proc_fd){o->log, STDERR_FILENO};
	what.fds[what.nfds++] = (struct proc_fd){lock_fd, WORKER_FD_LOCK};
	what.fds[what.nfds++] = (struct proc_fd){o->channel[1], WORKER_FD_CHANNEL};
	what.fds[what.nfds++] = (struct proc_fd){o->heartbeat, WORKER_FD_HEARTBEAT};
	what.fds[what.nfds++] = (struct proc_fd){o->gate[0], WORKER_FD_GATE};
	if (secrets_of(d, run_id) >= 0)
		what.fds[what.nfds++] = (struct proc_fd){secrets_of(d, run_id), WORKER_FD_VALUES};
	return proc_start(&what, child, failure, e);
}

/* The process runs; from here on its entry must exist. What cannot be had now is got by adopting. */
static int
enter(struct daemon *d, const char *run_id, struct outfit *o, struct proc_child *child,
    struct err *e)
{
	struct err ignored = {0};
	struct worker *w = worker_new(d, run_id, e);

	if (w == NULL || worker_set_process(w, child->id, child->pidfd, e) != 0) {
		if (w == NULL)
			fd_close(&child->pidfd);
		else
			worker_free(w);
		/* Without an entry nobody would look after it. */
		(void)kill(child->id.pid, SIGKILL);
		return -1;
	}
	w->state = WORKER_STARTING;
	w->heartbeat = o->heartbeat;
	o->heartbeat = -1;
	w->gate = o->gate[1];
	o->gate[1] = -1;
	if (worker_set_channel(w, o->channel[0], &ignored) != 0)
		adopt_lost(d, w);
	o->channel[0] = -1;
	return 0;
}

int
worker_start(struct daemon *d, const char *run_id, int run_fd, int lock_fd,
    struct proc_failure *failure, struct err *e)
{
	struct proc_child child;
	struct outfit o;
	int rc = -1;

	*failure = (struct proc_failure){"", 0};
	if (outfit_make(&o, run_fd, failure, e) != 0)
		goto out;
	if (execute(d, run_id, lock_fd, &o, &child, failure, e) != 0)
		goto out;
	rc = enter(d, run_id, &o, &child, e);
	if (rc != 0)
		*failure = (struct proc_failure){"watch the worker", ENOMEM};
out:
	outfit_clear(&o);
	return rc;
}

void
worker_let_go(struct worker *w)
{
	/* It may be dead: then its exit tells more. */
	if (write(w->gate, "", 1) < 0)
		log_line(LOG_DEBUG, "run %s: %s", w->run_id, strerror(errno));
	fd_close(&w->gate);
}

void
worker_withdraw(struct worker *w)
{
	w->withdrawn = true;
	fd_close(&w->gate);
}

/* ---- Death ---- */

const char *
worker_end_text(const struct proc_end *end, char to[WORKER_END_TEXT])
{
	if (!end->known)
		snprintf(to, WORKER_END_TEXT, "%s", reason_text("run.crashed.unknown"));
	else if (end->signaled)
		snprintf(to, WORKER_END_TEXT, "the worker was killed by %s%s",
		    proc_signal_name(end->code), end->dumped ? " (core dumped)" : "");
	else
		snprintf(to, WORKER_END_TEXT,
		    "the worker left with status %d and no outcome; see " WORKER_LOG, end->code);
	return to;
}

static const char *
end_reason(const struct proc_end *end)
{
	if (!end->known)
		return "run.crashed.unknown";
	return end->signaled ? "run.crashed.signal" : "run.crashed.exit";
}

void
worker_gone(struct worker *w, const struct proc_end *end, const char *reason)
{
	struct daemon *d = w->daemon;
	char text[WORKER_END_TEXT];
	bool boot = reason != NULL;

	d->scan_wanted = true; /* its slot, its key and its descriptors may be what others wait for */
	/* It never was let go: its run still waits. */
	if (w->gate >= 0 || w->withdrawn) {
		worker_free(w);
		return;
	}
	/* Its last words may still wait in the socket. */
	worker_read_rest(w);
	if (!boot)
		reason = w->bitten ? "run.crashed.watchdog" : end_reason(end);
	/* Also after `ended`: the move is refused when the row is terminal, as it should be. */
	queue_move(d, w->run_id, STATUS_CRASHED, reason, boot || w->bitten ? NULL : worker_end_text(end, text),
	    !w->ended);
	worker_free(w);
}

/* What came to us as the subreaper: an operation whose worker has just died, or a leftover of one. */
static void
reap_stranger(struct daemon *d, pid_t pid)
{
	struct proc_id id = {0};
	struct proc_end end = {0};
	siginfo_t info;
	int pidfd = proc_identify(pid, &id, NULL) == 0 ? proc_open(id, NULL) : -1;

	if (pidfd >= 0 && proc_wait(pidfd, false, &end, NULL) == 1)
		kept_hold(d, id, &end);
	else if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG) != 0)
		log_line(LOG_WARNING, "cannot reap process %ld", (long)pid);
	fd_close(&pidfd);
}

/* By its number: it is our child, and its pidfd may not be in the loop. */
static void
reap_errand(struct errand *a)
{
	struct proc_end end = {0};
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)a->id.pid, &info, WEXITED | WNOHANG) == 0) {
		end.known = true;
		end.signaled = info.si_code != CLD_EXITED;
		end.code = info.si_status;
	}
	errand_ended(a, &end);
}

static void
reap_one(struct daemon *d, pid_t pid)
{
	struct worker *w = worker_of(d, pid);
	struct report *r = w == NULL ? report_of(d, pid) : NULL;
	struct errand *a = w == NULL && r == NULL ? errand_of(d, pid) : NULL;
	struct proc_end end = {0};
	struct err e = {0};

	if (a != NULL) {
		reap_errand(a);
		return;
	}
	/* What was below it has come to us, and what it runs next has not: the row is not written yet. */
	if (w != NULL)
		astray_look(d, w);
	if (w == NULL && r == NULL) {
		if (!kept_reap(d, pid))
			reap_stranger(d, pid);
		return;
	}
	if (proc_wait(w != NULL ? w->process.fd : r->process.fd, false, &end, &e) < 1) {
		/* A stranger with the number of an adopted worker that is not our child. */
		reap_stranger(d, pid);
		return;
	}
	if (w != NULL)
		worker_gone(w, &end, NULL);
	else
		report_ended(r, &end);
}

static void
reap_beside(void *daemon, pid_t pid)
{
	if (!kept_is_unwritten(daemon, pid))
		reap_one(daemon, pid);
}

void
children_reap(struct daemon *d)
{
	struct err e = {0};
	siginfo_t info;

	for (;;) {
		info.si_pid = 0;
		/* Looked at first, so that the number stays taken until its owner is told. */
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
			return;
		reap_one(d, info.si_pid);
		if (kept_is_unwritten(d, info.si_pid))
			break;
	}
	/* That one stays, and the kernel would name it again and again. */
	if (proc_each_ended_child(reap_beside, d, &e) != 0)
		log_line(LOG_WARNING, "%s", e.msg);
}
