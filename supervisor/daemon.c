/* The supervisor's life: taking the home, the loop, leaving. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autostart.h"
#include "daemon.h"
#include "service.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"

enum { LISTEN_BACKLOG = 4096, STAMP_BYTES = 512 };

/* ---- Taking the home ---- */

static int
raise_descriptors(struct daemon *d, struct err *e)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return err_sys(e, ERR_IO, errno, "getrlimit");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0 && getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return err_sys(e, ERR_IO, errno, "setrlimit");
	d->descriptors = limit.rlim_cur;
	if (d->descriptors >= DAEMON_FILES_LEAST)
		return 0;
	err_set(e, ERR_ENVIRONMENT, "a supervisor needs %d open files, and its limit is %llu",
	    DAEMON_FILES_LEAST, (unsigned long long)d->descriptors);
	return err_advice(e, "start it where the hard limit is higher: ulimit -Hn");
}

/*
 * The lock's file says which boot and pid namespace the last supervisor saw. All runs without a worker are then from
 * an earlier boot, or from this one.
 */
static void
read_stamp(struct daemon *d)
{
	const struct json_options options = {.max_bytes = STAMP_BYTES};
	char text[STAMP_BYTES];
	ssize_t n = pread(d->lock_fd, text, sizeof(text), 0);
	struct err e = {0};
	struct json *stamp = NULL;
	const char *boot;
	int64_t pid;

	if (n <= 0 ||
	    json_parse((struct slice){text, (size_t)n}, &options, &stamp, NULL, &e) != 0)
		return;
	boot = json_cstr_of(json_get(stamp, "boot_id"));
	d->booted = boot != NULL && strcmp(boot, d->here.boot_id) != 0;
	if (boot != NULL && !d->booted && json_int64(json_get(stamp, "pid"), &pid) && pid == 1)
		(void)json_uint64(json_get(stamp, "pid_namespace"), &d->gone_namespace);
	json_unref(stamp);
}

static void
write_stamp(struct daemon *d)
{
	struct json *stamp = json_set(json_object(), "pid", json_int(getpid()));
	struct buf text = {0};
	struct err e = {0};

	stamp = json_set(stamp, "host", json_cstr(d->here.host));
	stamp = json_set(stamp, "boot_id", json_cstr(d->here.boot_id));
	stamp = json_set(stamp, "pid_namespace", json_uint(d->here.pid_namespace));
	if (stamp != NULL) {
		json_write(&text, stamp);
		buf_putc(&text, '\n');
	}
	/* Only an explanation hangs on it: "unknown" instead of "boot". */
	if (buf_ok(&text, &e) != 0 || text.len == 0 || ftruncate(d->lock_fd, 0) != 0 ||
	    pwrite(d->lock_fd, text.data, text.len, 0) != (ssize_t)text.len)
		log_line(LOG_WARNING, "cannot write to '%s'", HOME_LOCK);
	buf_clear(&text);
	json_unref(stamp);
}

static void
on_listener(void *arg)
{
	clients_on_accept(arg);
}

int
daemon_listen(struct daemon *d, struct err *e)
{
	int fd;

	/* We hold the lock: a socket that is there belongs to nobody. */
	if (unlinkat(d->home.fd, HOME_SOCKET, 0) != 0 && errno != ENOENT)
		return err_sys(e, ERR_IO, errno, "remove '%s'", HOME_SOCKET);
	fd = ipc_listen(d->home.fd, HOME_SOCKET, LISTEN_BACKLOG, e);
	if (fd < 0)
		return -1;
	if (loop_add(&d->loop, &d->listener, fd, on_listener, d, e) == 0) {
		place_note_door(d);
		return 0;
	}
	fd_close(&fd);
	return -1;
}

static int
take_home(struct daemon *d, struct err *e)
{
	d->lock_fd = home_lock_take(&d->home, e);
	if (d->lock_fd < 0 && e->code == ERR_BUSY) {
		err_set(e, ERR_BUSY, "'%s' has a supervisor already", d->home.path);
		return err_hint(e, "flowsup supervisor status");
	}
	if (d->lock_fd < 0)
		return -1;
	read_stamp(d);
	return 0;
}

int
daemon_open_store(struct daemon *d, struct err *e)
{
	if (store_open(&d->home, STORE_SUPERVISOR, true, STORE_BUSY_MS, &d->store, e) != 0)
		return -1;
	store_set_busy(d->store, DAEMON_BUSY_MS);
	return 0;
}

/* With the lock. A supervisor that executed this one hands over what it had. */
static int
take_everything(struct daemon *d, struct err *e)
{
	int listener = -1;

	if (d->options.handover_fd >= 0 && handover_take(d, d->options.handover_fd, &listener, e) != 0)
		return -1;
	if (d->lock_fd < 0 && take_home(d, e) != 0)
		return -1;
	if (daemon_open_store(d, e) != 0)
		return -1;
	if (listener < 0 && d->options.handover_fd < 0) {
		listener = service_listener(&d->home, e);
		if (listener < 0 && e->code != ERR_NONE)
			return -1;
		d->activated = listener >= 0;
	}
	if (listener < 0)
		return daemon_listen(d, e);
	if (loop_add(&d->loop, &d->listener, listener, on_listener, d, e) == 0) {
		place_note_door(d);
		return 0;
	}
	fd_close(&listener);
	return -1;
}

static void
say_ready(struct daemon *d)
{
	if (d->options.ready_fd < 0)
		return;
	/* Who started us may have gone. */
	if (write(d->options.ready_fd, AUTOSTART_READY, 1) != 1 && errno != EPIPE)
		log_line(LOG_WARNING, "cannot say that it is ready: %s", strerror(errno));
	fd_close(&d->options.ready_fd);
}

/* Of several that were started at once all but one leave, and nothing has failed. */
static void
say_failed(struct daemon *d, const struct err *e)
{
	struct buf text = {0};

	if (d->options.ready_fd < 0 || e->code == ERR_BUSY)
		return;
	buf_printf(&text, "%c%s\n%s\n%s", AUTOSTART_FAILED, err_type(e->code), e->msg, err_hint_text(e));
	/* Who started us may have gone; the log has it too. */
	(void)!write(d->options.ready_fd, buf_text(&text), text.len);
	buf_clear(&text);
	fd_close(&d->options.ready_fd);
}

/* ---- Signals ---- */

static void
on_child(struct daemon *d, int sig)
{
	(void)sig;
	children_reap(d);
}

static void
on_leave(struct daemon *d, int sig)
{
	if (d->options.only != NULL) {
		foreground_signal(d, sig);
		return;
	}
	daemon_told_to_leave(d, proc_signal_name(sig));
}

/* Its log may have been moved away, and runs may wait that it does not know of. In the foreground the
 * terminal was closed: nobody reads on. */
static void
on_hangup(struct daemon *d, int sig)
{
	if (d->options.foreground) {
		on_leave(d, sig);
		return;
	}
	if (!daemon_log_open(d))
		log_line(LOG_ERROR, "cannot open the log anew: %s", strerror(errno));
	log_line(LOG_INFO, "SIGHUP: opened the log anew, looks for runs");
	d->scan_wanted = true;
}

static void
on_meaningless(struct daemon *d, int sig)
{
	(void)d;
	log_line(LOG_INFO, "%s means nothing to it", proc_signal_name(sig));
}

static const struct {
	int sig;
	void (*act)(struct daemon *d, int sig);
} signal_acts[] = {
    {SIGCHLD, on_child},
    {SIGTERM, on_leave},
    {SIGINT, on_leave},
    {SIGQUIT, on_leave},
    {SIGHUP, on_hangup},
    {SIGUSR1, on_meaningless},
    {SIGUSR2, on_meaningless},
    {SIGALRM, on_meaningless},
};
enum { SIGNAL_ACTS = sizeof(signal_acts) / sizeof(signal_acts[0]) };

static void
on_signal(void *arg)
{
	struct daemon *d = arg;
	struct signalfd_siginfo info;
	unsigned i;

	while (read(d->signals.fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		for (i = 0; i < SIGNAL_ACTS; i++)
			if ((uint32_t)signal_acts[i].sig == info.ssi_signo)
				signal_acts[i].act(d, signal_acts[i].sig);
}

static int
init_signals(struct daemon *d, struct err *e)
{
	sigset_t set;
	unsigned i;
	int fd;

	sigemptyset(&set);
	for (i = 0; i < SIGNAL_ACTS; i++)
		sigaddset(&set, signal_acts[i].sig);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
	    signal(SIGCHLD, SIG_DFL) == SIG_ERR)
		return err_sys(e, ERR_INTERNAL, errno, "set up signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "signalfd");
	if (loop_add(&d->loop, &d->signals, fd, on_signal, d, e) == 0)
		return 0;
	fd_close(&fd);
	return -1;
}

/* ---- Work that recurs ---- */

void
daemon_worked(struct daemon *d)
{
	if (!loop_timer_is_set(&d->loop, TIMER_CHECKPOINT))
		loop_set_timer(&d->loop, TIMER_CHECKPOINT,
		    clock_monotonic_ns() + DAEMON_CHECKPOINT_MS * NS_PER_MS);
}

static void
on_checkpoint(void *arg)
{
	struct daemon *d = arg;
	struct err e = {0};

	if (store_checkpoint(d->store, &e) != 0 && e.code != ERR_BUSY)
		log_line(LOG_ERROR, "checkpoint of the database: %s", e.msg);
}

static void
on_not_busy(void *arg)
{
	/* The turn's end does the work; the timer had to end the wait. */
	(void)arg;
}

static void
on_idle(void *arg)
{
	struct daemon *d = arg;

	if (daemon_is_idle(d))
		daemon_leave(d, NULL);
}

/* An error of input would be taken for the end of the connection. */
static enum err_code
code_of_unwritten(const struct err *last)
{
	return last->code == ERR_NONE ? ERR_BUSY : last->code == ERR_IO ? ERR_UNCERTAIN : last->code;
}

/* What waits for room gets one more try; what still cannot be written is said to who asked us to leave. */
static void
write_the_rest(struct daemon *d)
{
	struct err why = {0};
	unsigned ends = kept_last_try(d), changes;

	jobs_wake_all(d);
	/* What was accepted is looked at, unless the database is busy; then the row waits. */
	while (jobs_work(d))
		;
	changes = jobs_undone(d);
	if (ends + changes == 0)
		return;
	if (ends > 0 && changes == 0)
		err_set(&why, ERR_UNCERTAIN, "it leaves, and how %u operation%s ended is not written down; see %s/"
		    HOME_LOG, ends, ends == 1 ? "" : "s", d->home.path);
	else
		err_set(&why, code_of_unwritten(&d->jobs.last), "it leaves, and %u change%s of runs and %u end%s of "
		    "operations are not recorded: %s", changes, changes == 1 ? "" : "s", ends, ends == 1 ? "" : "s",
		    d->jobs.last.msg);
	log_line(LOG_ERROR, "%s", why.msg);
	clients_failed(d, &why);
}

/* Nothing goes on, and what is to be written about it cannot be: a full disk may stay full. */
static void
leave_unwritten(struct daemon *d)
{
	const struct err *last = &d->jobs.last;
	struct err why = {0};

	if (stop_all_waits(d) || daemon_is_quiet(d))
		return;
	err_set(&why, code_of_unwritten(last),
	    "it leaves, and %u change%s of runs %s not recorded, such as ends: %s", d->jobs.count,
	    d->jobs.count == 1 ? "" : "s", d->jobs.count == 1 ? "is" : "are",
	    last->code == ERR_NONE ? "the database is busy" : last->msg);
	clients_failed(d, &why);
	daemon_leave(d, "what it could not record is left to the next one");
}

static void
on_not_quiet(void *arg)
{
	struct daemon *d = arg;

	/* Nothing is lost: what is not written yet is found again from locks and rows. */
	if (d->phase == PHASE_STOPPING)
		leave_unwritten(d);
	if (d->phase != PHASE_RESTARTING)
		return;
	jobs_clear(&d->jobs);
	reports_clear(d);
}

static void
on_first_over(void *arg)
{
	struct daemon *d = arg;

	log_line(LOG_WARNING, "%u run%s did not end in %d s", d->workers.count, d->workers.count == 1 ? "" : "s",
	    DAEMON_FIRST_MS / 1000);
	daemon_leave(d, "it has waited long enough");
}

/* Twice as often as it is expected. */
static void
tell_service(void *arg)
{
	struct daemon *d = arg;
	int64_t every = service_watchdog_ns();

	if (every <= 0)
		return;
	service_notify("WATCHDOG=1");
	loop_set_timer(&d->loop, TIMER_SERVICE, clock_monotonic_ns() + every / 2);
}

static void
init_timers(struct daemon *d)
{
	loop_on_timer(&d->loop, TIMER_SERVICE, tell_service, d);
	loop_on_timer(&d->loop, TIMER_KEEP, keep_look, d);
	loop_on_timer(&d->loop, TIMER_BUSY, on_not_busy, d);
	loop_on_timer(&d->loop, TIMER_APART, jobs_wake, d);
	loop_on_timer(&d->loop, TIMER_ADOPT, adopt_again, d);
	loop_on_timer(&d->loop, TIMER_REPORT, reports_late, d);
	loop_on_timer(&d->loop, TIMER_ERRAND, errands_late, d);
	loop_on_timer(&d->loop, TIMER_RESTART, restarts_due, d);
	loop_on_timer(&d->loop, TIMER_WATCHDOG, watchdogs_look, d);
	loop_on_timer(&d->loop, TIMER_CLIENTS, clients_silent, d);
	loop_on_timer(&d->loop, TIMER_REFUSED, clients_say_more, d);
	loop_on_timer(&d->loop, TIMER_CHECKPOINT, on_checkpoint, d);
	loop_on_timer(&d->loop, TIMER_IDLE, on_idle, d);
	loop_on_timer(&d->loop, TIMER_KEPT, kept_due, d);
	loop_on_timer(&d->loop, TIMER_QUIET, on_not_quiet, d);
	loop_on_timer(&d->loop, TIMER_PLACE, place_look, d);
	loop_on_timer(&d->loop, TIMER_FIRST, on_first_over, d);
}

static enum job_result
scan_job(struct daemon *d, struct job *j, struct err *e)
{
	return queue_scan(d, j->to == STATUS_RUNNING, e);
}

static void
want_scan(struct daemon *d, bool all)
{
	struct job *j;

	/* Of the other runs it knows nothing. */
	if (d->options.only != NULL) {
		d->scan_wanted = false;
		return;
	}
	j = job_new(scan_job, "", true);
	d->scan_wanted = j == NULL;
	if (j == NULL)
		return;
	j->to = all ? STATUS_RUNNING : STATUS_QUEUED;
	jobs_add(d, j, false);
}

/* ---- Leaving ---- */

bool
daemon_is_quiet(const struct daemon *d)
{
	return d->jobs.count == 0 && d->reports.started + d->reports.waiting == 0;
}

bool
daemon_is_idle(const struct daemon *d)
{
	return d->phase == PHASE_WORKING && d->workers.count == 0 && d->kept.count == 0 &&
	    daemon_is_quiet(d) && errands_count(d) == 0 && TAILQ_EMPTY(&d->restarts) &&
	    !d->scan_wanted && !d->crowded;
}

void
daemon_leave(struct daemon *d, const char *cause)
{
	d->cause = cause;
	d->phase = PHASE_LEAVING;
}

static void
watch_idleness(struct daemon *d)
{
	if (d->options.idle_exit_ns == 0)
		return;
	if (!daemon_is_idle(d))
		loop_stop_timer(&d->loop, TIMER_IDLE);
	else if (!loop_timer_is_set(&d->loop, TIMER_IDLE))
		loop_set_timer(&d->loop, TIMER_IDLE,
		    clock_monotonic_ns() + d->options.idle_exit_ns);
}

static void
close_door(struct daemon *d)
{
	/* Another supervisor's is not ours to remove. */
	if (d->listener.fd < 0 || d->activated || !place_has_door(d))
		return;
	if (unlinkat(d->home.fd, HOME_SOCKET, 0) != 0 && errno != ENOENT)
		log_line(LOG_WARNING, "remove '%s': %s", HOME_SOCKET, strerror(errno));
}

/*
 * From idleness: nobody can connect any more; who did is answered, and what that brought, or what
 * a command made durable before, keeps us here, with a new socket. A command that finds neither
 * answer nor socket starts the next supervisor, which waits for nothing but our lock.
 */
static bool
may_leave(struct daemon *d)
{
	struct err e = {0};
	bool work = true;

	while (clients_accept(d))
		;
	clients_serve_all(d);
	d->phase = PHASE_WORKING;
	if (daemon_is_idle(d) && store_has_work(d->store, &work, &e) == 0 && !work) {
		d->phase = PHASE_LEAVING;
		return true;
	}
	d->scan_wanted = true;
	if (d->activated)
		return false;
	loop_close(&d->loop, &d->listener);
	if (daemon_listen(d, &e) == 0)
		return false;
	log_line(LOG_ERROR, "%s", e.msg);
	d->phase = PHASE_LEAVING;
	return true;
}

/* True when the loop ends. */
static bool
leaves(struct daemon *d)
{
	unsigned left = 0;

	if (d->phase != PHASE_LEAVING)
		return false;
	close_door(d);
	if (d->cause == NULL && !may_leave(d))
		return false;
	write_the_rest(d);
	if (kept_goes_on(d, &left) && left > 0)
		log_line(LOG_WARNING, "%u operation%s without a worker: nobody sees to their limits until the next supervisor",
		    left, left == 1 ? "" : "s");
	if (d->options.only == NULL)
		service_notify("STOPPING=1");
	log_line(LOG_INFO, "leaves: %s", d->cause == NULL ? "idle" : d->cause);
	return true;
}

/* ---- Being told to ---- */

/* With process 1 everything in its pid namespace ends, by SIGKILL. What waits goes on waiting. */
void
daemon_told_to_leave(struct daemon *d, const char *cause)
{
	unsigned left = 0;
	bool any = kept_goes_on(d, &left) || d->workers.count > 0;

	if (getpid() != 1 || !any || d->phase != PHASE_WORKING) {
		daemon_leave(d, cause);
		return;
	}
	log_line(LOG_INFO, "%s: it is process 1, with which all ends: stops %u run%s and %u operation%s without a worker",
	    cause, d->workers.count, d->workers.count == 1 ? "" : "s", left, left == 1 ? "" : "s");
	stop_all_begin(d, false, true);
	loop_set_timer(&d->loop, TIMER_FIRST, clock_monotonic_ns() + DAEMON_FIRST_MS * NS_PER_MS);
}

void
daemon_stop_all(struct daemon *d, bool now)
{
	if (d->phase == PHASE_LEAVING)
		return;
	log_line(LOG_INFO, "stops every run (%s)", now ? "now" : "drain");
	stop_all_begin(d, true, now);
}

/* ---- The loop ---- */

static void
follow_stopping(struct daemon *d)
{
	if (stop_all_waits(d))
		loop_stop_timer(&d->loop, TIMER_QUIET);
	else if (daemon_is_quiet(d) && stop_all_is_over(d))
		daemon_leave(d, "every run was stopped");
	else if (!loop_timer_is_set(&d->loop, TIMER_QUIET))
		loop_set_timer(&d->loop, TIMER_QUIET,
		    clock_monotonic_ns() + DAEMON_QUIET_MS * NS_PER_MS);
}

static void
follow_phase(struct daemon *d)
{
	struct err e = {0};

	if (d->phase == PHASE_STOPPING)
		follow_stopping(d);
	if (d->options.only != NULL && foreground_is_over(d))
		daemon_leave(d, "its run has ended");
	if (d->phase != PHASE_RESTARTING || !daemon_is_quiet(d))
		return;
	handover_execute(d, &e);
	log_line(LOG_ERROR, "cannot execute itself anew: %s", e.msg);
	d->phase = PHASE_WORKING;
	d->scan_wanted = true;
	loop_stop_timer(&d->loop, TIMER_QUIET);
	clients_failed(d, &e);
}

static int
serve(struct daemon *d, struct err *e)
{
	bool more = true; /* the first scan waits already */

	while (!leaves(d)) {
		if (loop_turn(&d->loop, !more, e) != 0)
			return -1;
		if (d->scan_wanted)
			want_scan(d, false);
		more = jobs_work(d);
		queue_rest(d);
		more = more || d->scan_wanted;
		follow_phase(d);
		/* What the work has just changed may have to be looked at before sleeping. */
		more = more || d->scan_wanted || d->phase == PHASE_LEAVING;
		watch_idleness(d);
		daemon_log_bound(d);
	}
	return 0;
}

static int
init(struct daemon *d, struct err *e)
{
	struct buf path = {0};

	if (daemon_log_init(d, e) != 0 || raise_descriptors(d, e) != 0 || loop_init(&d->loop, e) != 0 ||
	    proc_place_here(&d->here, e) != 0 || init_signals(d, e) != 0)
		return -1;
	init_timers(d);
	d->envp = autostart_environment(&d->home, false, e);
	if (d->envp == NULL || proc_relative_to_self(AUTOSTART_WORKER, &path, e) != 0)
		return -1;
	d->worker_path = buf_steal(&path);
	if (d->worker_path == NULL)
		return err_nomem(e);
	if (proc_relative_to_self("flowsup", &path, e) != 0)
		return -1;
	d->own_path = buf_steal(&path);
	if (d->own_path == NULL)
		return err_nomem(e);
	/* Nothing of the place it was started from is held; paths are absolute or by handle. */
	if (chdir("/") != 0)
		return err_sys(e, ERR_IO, errno, "chdir '/'");
	return proc_set_subreaper(e);
}

static void
clear(struct daemon *d)
{
	struct worker *w;

	clients_clear(d);
	reports_clear(d);
	errands_clear(d);
	restarts_clear(d);
	stop_all_clear(d);
	secrets_clear(d);
	jobs_clear(&d->jobs);
	kept_clear(d);
	astrays_clear(d);
	while ((w = worker_after(d, "")) != NULL)
		worker_free(w);
	store_close(d->store);
	loop_close(&d->loop, &d->listener);
	loop_close(&d->loop, &d->signals);
	loop_clear(&d->loop);
	/* The last of all: whoever gets it finds everything else put away. */
	fd_close(&d->lock_fd);
	autostart_environment_free(d->envp);
	free(d->worker_path);
	free(d->own_path);
	fd_close(&d->log_fd);
	home_close(&d->home);
}

static int
begin_only(struct daemon *d, struct err *e)
{
	if (store_open(&d->home, STORE_SUPERVISOR, false, STORE_BUSY_MS, &d->store, e) != 0)
		return -1;
	return foreground_begin(d, e) == 0 ? serve(d, e) : -1;
}

/* What waits for a supervisor at this moment: adopted, judged or started. */
static int
begin(struct daemon *d, struct err *e)
{
	if (d->options.only != NULL)
		return begin_only(d, e);
	if (take_everything(d, e) != 0)
		return -1;
	log_line(LOG_INFO, "version %s, process %ld, %u run%s at hand", FLOWSUP_VERSION,
	    (long)getpid(), d->workers.count, d->workers.count == 1 ? "" : "s");
	write_stamp(d);
	want_scan(d, true);
	place_look(d);
	say_ready(d);
	loop_set_timer(&d->loop, TIMER_KEEP, clock_monotonic_ns() + KEEP_FIRST_NS);
	service_notify("READY=1");
	tell_service(d);
	return serve(d, e);
}

int
daemon_main(const struct daemon_options *o, struct err *e)
{
	struct daemon d = {.options = *o, .lock_fd = -1, .log_fd = -1};
	int rc = -1;

	d.listener.fd = d.signals.fd = d.loop.epoll_fd = -1;
	jobs_init(&d.jobs);
	reports_init(&d.reports);
	kept_init(&d.kept);
	astrays_init(&d.astrays);
	errands_init(&d.errands);
	TAILQ_INIT(&d.restarts);
	stop_all_init(&d.stop_all);
	secrets_init(&d.secrets);
	clients_init(&d.clients);
	RB_INIT(&d.workers.by_run);
	RB_INIT(&d.workers.by_pid);
	if (home_open(o->home, true, &d.home, e) != 0) {
		say_failed(&d, e);
		return -1;
	}
	if (init(&d, e) == 0)
		rc = begin(&d, e);
	if (rc != 0 && !o->foreground && e->code != ERR_BUSY)
		log_line(LOG_ERROR, "%s", e->msg);
	if (rc != 0)
		say_failed(&d, e);
	clear(&d);
	return rc;
}
