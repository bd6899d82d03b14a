#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"

/* Members of the packet that are kept, in the run's metadata under their own names. */
static const char *const kept[] = {"checkpoint_recovery", "running_operations"};

void
reports_init(struct reports *reports)
{
	memset(reports, 0, sizeof(*reports));
	TAILQ_INIT(&reports->list);
}

static void
report_free(struct report *r)
{
	struct daemon *d = r->daemon;

	loop_close(&d->loop, &r->process);
	loop_close(&d->loop, &r->channel);
	TAILQ_REMOVE(&d->reports.list, r, entry);
	if (r->id.pid != 0)
		d->reports.started--;
	else
		d->reports.waiting--;
	free(r);
}

void
reports_clear(struct daemon *d)
{
	struct err e = {0};
	struct report *r;

	while ((r = TAILQ_FIRST(&d->reports.list)) != NULL) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		if (r->process.fd >= 0)
			(void)proc_signal(r->process.fd, SIGKILL, &e);
		report_free(r);
	}
}

struct report *
report_of(struct daemon *d, pid_t pid)
{
	struct report *r;

	/* At most REPORT_AT_ONCE have a process, and they come first. */
	TAILQ_FOREACH(r, &d->reports.list, entry)
	{
		if (r->id.pid == 0)
			break;
		if (r->id.pid == pid)
			return r;
	}
	return NULL;
}

/* ---- What it answers ---- */

static enum job_result
keep_job(struct daemon *d, struct job *j, struct err *e)
{
	struct json *value = json_ref(j->value);

	if (session_metadata(d->store, j->run_id, j->reason, value, e) != 0)
		return JOB_FAILED;
	daemon_worked(d);
	clients_tell_changed(d, j->run_id, status_word(STATUS_CRASHED), NULL);
	d->scan_wanted = true; /* it may have kept its key */
	return JOB_DONE;
}

static bool
is_killed(const struct session *s)
{
	return s->status == STATUS_CANCELLED && strcmp(s->reason_code, "run.cancelled.killed") == 0;
}

/* What its plan lost, where it died before it had told. */
static int
keep_plan(struct daemon *d, const struct session *s, const struct json *saved, const char *name, struct err *e)
{
	const struct json *value = json_get(saved, name);

	if (json_length(value) == 0 || json_get(s->metadata, name) != NULL)
		return 0;
	return session_metadata(d->store, s->run_id, name, json_ref(value), e);
}

/* The row's count is written at most once a second, and counts what was not saved yet: of a dead
 * worker only its checkpoint knows what will not run again, be it more or less, and what was added. */
static enum job_result
count_job(struct daemon *d, struct job *j, struct err *e)
{
	struct session s = {0};
	int rc = session_read(d->store, j->run_id, &s, e);
	bool dead = rc == 0 && (s.status == STATUS_CRASHED || is_killed(&s));

	if (dead)
		rc = keep_plan(d, &s, j->value, META_PLAN_CUT, e);
	if (dead && rc == 0)
		rc = keep_plan(d, &s, j->value, META_PLAN_EMPTY, e);
	if (dead && rc == 0)
		rc = session_counted(d->store, j->run_id, j->value, e);
	session_clear(&s);
	/* Who is told of the death is told this count, or the old one where it cannot be written. */
	notify_look(d);
	if (rc != 0)
		return JOB_FAILED;
	daemon_worked(d);
	return JOB_DONE;
}

bool
report_is_awaited(const struct daemon *d, const char *run_id)
{
	return report_is_asked(d, run_id) || jobs_has(&d->jobs, count_job, run_id);
}

static void
keep_count(struct daemon *d, const char *run_id, const struct json *saved)
{
	struct job *j = saved == NULL ? NULL : job_new(count_job, run_id, false);

	if (j == NULL)
		return;
	j->value = json_ref(saved);
	jobs_add(d, j, false);
}

static void
keep(struct daemon *d, const char *run_id, const struct json *answer, enum report_for about)
{
	const struct json *value;
	struct job *j;
	size_t i;

	if (about == REPORT_RUNNING)
		return;
	keep_count(d, run_id, json_get(answer, "saved"));
	for (i = 0; about == REPORT_CRASH && i < sizeof(kept) / sizeof(kept[0]); i++) {
		value = json_get(answer, kept[i]);
		j = value == NULL ? NULL : job_new(keep_job, run_id, false);
		if (j == NULL)
			continue;
		j->reason = kept[i];
		j->value = json_ref(value);
		jobs_add(d, j, false);
	}
}

static void
hear(struct report *r)
{
	const struct json_options options = {.max_bytes = REPORT_MOST};
	struct json *answer = NULL;
	struct buf packet = {0};
	struct err e = {0};
	int beside = -1, rc = ipc_recv(r->channel.fd, &packet, &beside, &e);

	if (rc == 0)
		goto out;
	if (rc > 0 && beside >= 0) {
		buf_reset(&packet);
		rc = ipc_memfd_read(beside, REPORT_MOST, &packet, &e) == 0 ? 1 : -1;
	}
	if (rc > 0 && json_parse(buf_view(&packet), &options, &answer, NULL, &e) == 0) {
		r->answered = true;
		/* What ended meanwhile is written down before the row says that it is known. */
		if (r->about != REPORT_COUNT)
			kept_report(r->daemon, r->run_id, answer, r->about == REPORT_RUNNING);
		keep(r->daemon, r->run_id, answer, r->about);
	} else if (!r->answered) {
		log_line(LOG_WARNING, "run %s: no report on its checkpoint: %s", r->run_id, e.msg);
	}
	/* One packet is all it says. */
	loop_close(&r->daemon->loop, &r->channel);
out:
	fd_close(&beside);
	json_unref(answer);
	buf_clear(&packet);
}

static void
on_channel(void *arg)
{
	hear(arg);
}

static void
on_process(void *arg)
{
	struct report *r = arg;

	children_reap(r->daemon);
}

/* ---- Starting ---- */

static unsigned
set_limits(struct proc_rlimit to[PROC_MAX_RLIMITS])
{
	unsigned n = 0;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/* A sanitizer's shadow is larger than any limit on addresses. */
	to[n++] = (struct proc_rlimit){RLIMIT_AS, {REPORT_MEMORY, REPORT_MEMORY}};
#endif
	to[n++] = (struct proc_rlimit){RLIMIT_CPU, {REPORT_CPU_SECONDS, REPORT_CPU_SECONDS}};
	to[n++] = (struct proc_rlimit){RLIMIT_CORE, {0, 0}};
	return n;
}

static int
execute(struct report *r, int null, int answer, struct proc_child *child, struct err *e)
{
	struct daemon *d = r->daemon;
	const char *argv[] = {"flowsup-worker", "--report", r->run_id, "--home", d->home.path, NULL};
	char *words[sizeof(argv) / sizeof(argv[0])];
	struct proc_spawn what = PROC_SPAWN_INIT;

	memcpy(words, argv, sizeof(argv));
	what.path = d->worker_path;
	what.argv = words;
	what.envp = d->envp;
	what.new_session = true;
	what.fds[what.nfds++] = (struct proc_fd){null, STDIN_FILENO};
	what.fds[what.nfds++] = (struct proc_fd){answer, STDOUT_FILENO};
	what.fds[what.nfds++] = (struct proc_fd){d->log_fd, STDERR_FILENO};
	what.nrlimits = set_limits(what.rlimits);
	return proc_start(&what, child, NULL, e);
}

static int
start(struct report *r, struct err *e)
{
	struct daemon *d = r->daemon;
	struct proc_child child;
	int pair[2] = {-1, -1};
	int rc = -1, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null < 0) {
		err_sys(e, ERR_IO, errno, "open '/dev/null'");
		goto out;
	}
	if (ipc_pair(pair, e) != 0 || execute(r, null, pair[1], &child, e) != 0)
		goto out;
	r->id = child.id;
	d->reports.waiting--;
	d->reports.started++;
	r->until_ns = clock_monotonic_ns() + REPORT_SECONDS * NS_PER_S;
	loop_set_timer(&d->loop, TIMER_REPORT, r->until_ns);
	if (loop_add(&d->loop, &r->process, child.pidfd, on_process, r, e) != 0) {
		/* Reaped by its number; the limit on its CPU time bounds it. */
		fd_close(&child.pidfd);
	}
	if (loop_add(&d->loop, &r->channel, pair[0], on_channel, r, e) != 0)
		fd_close(&pair[0]);
	pair[0] = -1;
	rc = 0;
out:
	fd_close(&null);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	return rc;
}

static void
start_next(struct daemon *d)
{
	struct report *r, *next;
	struct err e = {0};

	for (r = TAILQ_FIRST(&d->reports.list); r != NULL; r = next) {
		next = TAILQ_NEXT(r, entry);
		if (d->reports.started >= REPORT_AT_ONCE)
			return;
		if (r->id.pid != 0)
			continue;
		if (start(r, &e) != 0) {
			log_line(LOG_WARNING, "run %s: no report on its checkpoint: %s", r->run_id,
			    e.msg);
			report_free(r);
			notify_look(d);
			continue;
		}
		TAILQ_REMOVE(&d->reports.list, r, entry);
		TAILQ_INSERT_HEAD(&d->reports.list, r, entry);
	}
}

bool
report_is_asked(const struct daemon *d, const char *run_id)
{
	const struct report *r;

	TAILQ_FOREACH(r, &d->reports.list, entry)
	{
		if (strcmp(r->run_id, run_id) == 0)
			return true;
	}
	return false;
}

static bool
ask(struct daemon *d, const char *run_id, enum report_for about)
{
	struct report *r;

	if (d->phase == PHASE_LEAVING || d->reports.waiting >= REPORT_RUNS)
		return false;
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		log_line(LOG_WARNING, "run %s: no report on its checkpoint: out of memory", run_id);
		return false;
	}
	r->daemon = d;
	r->about = about;
	r->process.fd = r->channel.fd = -1;
	strlcpy(r->run_id, run_id, sizeof(r->run_id));
	TAILQ_INSERT_TAIL(&d->reports.list, r, entry);
	d->reports.waiting++;
	start_next(d);
	return true;
}

void
report_ask(struct daemon *d, const char *run_id)
{
	(void)ask(d, run_id, REPORT_CRASH);
}

void
report_ask_count(struct daemon *d, const char *run_id)
{
	(void)ask(d, run_id, REPORT_COUNT);
}

bool
report_ask_running(struct daemon *d, const char *run_id)
{
	return ask(d, run_id, REPORT_RUNNING);
}

void
report_ended(struct report *r, const struct proc_end *end)
{
	struct daemon *d = r->daemon;

	if (r->channel.fd >= 0)
		hear(r);
	if (!r->answered)
		log_line(LOG_WARNING, "run %s: no report on its checkpoint (%s %d)", r->run_id,
		    end->signaled ? "signal" : "status", end->code);
	report_free(r);
	notify_look(d);
	start_next(d);
}

void
reports_late(void *daemon)
{
	struct daemon *d = daemon;
	int64_t now = clock_monotonic_ns();
	struct err e = {0};
	struct report *r;

	TAILQ_FOREACH(r, &d->reports.list, entry)
	{
		if (r->id.pid == 0)
			break;
		if (r->until_ns > now)
			loop_set_timer(&d->loop, TIMER_REPORT, r->until_ns);
		else if (r->process.fd >= 0)
			(void)proc_signal(r->process.fd, SIGKILL, &e);
	}
}
