#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon.h"
#include "errand.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"

enum { HINT_LOOK = 4096 };

static void (*const ends[ERRAND_KINDS])(struct errand *r, const struct proc_end *end) = {
    [ERRAND_NOTIFY] = notify_ended,
    [ERRAND_RESTART] = restart_ended,
    [ERRAND_KEEP] = keep_ended,
};

void
errands_init(struct errands *errands)
{
	memset(errands, 0, sizeof(*errands));
	TAILQ_INIT(&errands->list);
}

unsigned
errands_count(const struct daemon *d)
{
	return d->errands.counts[ERRAND_NOTIFY] + d->errands.counts[ERRAND_RESTART] +
	    d->errands.counts[ERRAND_KEEP];
}

static void
errand_free(struct errand *r)
{
	struct daemon *d = r->daemon;

	loop_close(&d->loop, &r->process);
	fd_close(&r->said);
	TAILQ_REMOVE(&d->errands.list, r, entry);
	d->errands.counts[r->kind]--;
	free(r->event);
	free(r);
}

void
errands_clear(struct daemon *d)
{
	struct errand *r;

	while ((r = TAILQ_FIRST(&d->errands.list)) != NULL)
		errand_free(r); /* NOLINT(clang-analyzer-unix.Malloc): what was freed has left the list */
}

struct errand *
errand_of(struct daemon *d, pid_t pid)
{
	struct errand *r;

	TAILQ_FOREACH(r, &d->errands.list, entry)
	{
		if (r->id.pid == pid)
			return r;
	}
	return NULL;
}

struct errand *
errand_find(struct daemon *d, enum errand_kind kind, const char *run_id, const char *event)
{
	struct errand *r;

	TAILQ_FOREACH(r, &d->errands.list, entry)
	{
		if (r->kind == kind && strcmp(r->run_id, run_id) == 0 &&
		    (event == NULL || (r->event != NULL && strcmp(r->event, event) == 0)))
			return r;
	}
	return NULL;
}

/* ---- Beginning ---- */

static void
on_process(void *arg)
{
	struct errand *r = arg;

	children_reap(r->daemon);
}

int
errand_take(struct daemon *d, const struct errand *given, struct err *e)
{
	struct errand *r = malloc(sizeof(*r));
	int pidfd = given->process.fd, said = given->said;

	if (r == NULL) {
		fd_close(&pidfd);
		fd_close(&said);
		return err_nomem(e);
	}
	*r = *given;
	r->daemon = d;
	r->process = (struct source)SOURCE_INIT;
	r->event = given->event != NULL ? strdup(given->event) : NULL;
	TAILQ_INSERT_TAIL(&d->errands.list, r, entry);
	d->errands.counts[r->kind]++;
	d->astrays.errands = true;
	loop_set_timer(&d->loop, TIMER_ERRAND, r->until_ns);
	/* Without its pidfd in the loop it is still reaped, by SIGCHLD. */
	if (loop_add(&d->loop, &r->process, pidfd, on_process, r, e) != 0)
		fd_close(&pidfd);
	return 0;
}

struct ends_of {
	int input, null, said;
};

static void
close_ends(struct ends_of *f)
{
	fd_close(&f->input);
	fd_close(&f->null);
}

static int
open_ends(const struct errand_plan *plan, struct ends_of *f, struct err *e)
{
	*f = (struct ends_of){-1, -1, -1};
	f->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (f->null < 0)
		return err_sys(e, ERR_IO, errno, "open '/dev/null'");
	f->input = ipc_memfd("flowsup-input", plan->input, e);
	if (f->input < 0)
		return -1;
	if (lseek(f->input, 0, SEEK_SET) != 0)
		return err_sys(e, ERR_IO, errno, "lseek");
	if (!plan->keep_said)
		return 0;
	f->said = memfd_create("flowsup-said", MFD_CLOEXEC);
	return f->said >= 0 ? 0 : err_sys(e, ERR_IO, errno, "memfd_create");
}

static int
execute(struct daemon *d, const struct errand_plan *plan, const struct ends_of *f,
    struct proc_child *child, struct err *e)
{
	struct proc_spawn what = PROC_SPAWN_INIT;

	what.path = plan->program;
	memcpy(&what.argv, &plan->argv, sizeof(what.argv)); /* exec does not write to the words */
	what.envp = d->envp;
	what.new_session = true;
	what.fds[what.nfds++] = (struct proc_fd){f->input, STDIN_FILENO};
	what.fds[what.nfds++] = (struct proc_fd){f->null, STDOUT_FILENO};
	what.fds[what.nfds++] =
	    (struct proc_fd){f->said >= 0 ? f->said : d->log_fd, STDERR_FILENO};
	return proc_start(&what, child, NULL, e);
}

int
errand_start(struct daemon *d, const struct errand_plan *plan, struct err *e)
{
	struct errand r = {.kind = plan->kind};
	struct proc_child child;
	struct ends_of f;
	char *event = plan->event != NULL ? strdup(plan->event) : NULL;
	int rc = -1;

	if (open_ends(plan, &f, e) == 0 && execute(d, plan, &f, &child, e) == 0) {
		strlcpy(r.run_id, plan->run_id, sizeof(r.run_id));
		r.event = event;
		r.id = child.id;
		r.process.fd = child.pidfd;
		r.said = f.said;
		r.until_ns = clock_monotonic_ns() + plan->limit_ns;
		f.said = -1;
		rc = errand_take(d, &r, e);
	}
	fd_close(&f.said);
	close_ends(&f);
	free(event);
	return rc;
}

/* ---- End ---- */

/* The first line of what it said, without the program's name before it. */
static void
first_line(const struct errand *r, char *to, size_t size)
{
	static const char prefix[] = "flowsup: ";
	ssize_t n = r->said < 0 ? 0 : pread(r->said, to, size - 1, 0);

	to[n > 0 ? n : 0] = '\0';
	to[strcspn(to, "\n")] = '\0';
	if (strncmp(to, prefix, strlen(prefix)) == 0)
		memmove(to, to + strlen(prefix), strlen(to + strlen(prefix)) + 1);
}

void
errand_outcome(const struct errand *r, const struct proc_end *end, char to[ERRAND_TEXT])
{
	char line[ERRAND_TEXT / 2];

	first_line(r, line, sizeof(line));
	if (!end->known)
		snprintf(to, ERRAND_TEXT, "unknown");
	else if (r->stopped)
		snprintf(to, ERRAND_TEXT, "killed: everything was stopped");
	else if (r->late)
		snprintf(to, ERRAND_TEXT, "killed: it took too long");
	else if (end->signaled)
		snprintf(to, ERRAND_TEXT, "%s", proc_signal_name(end->code));
	else
		snprintf(to, ERRAND_TEXT, "exit %d%s%s", end->code, line[0] != '\0' ? ": " : "", line);
}

/* It stands near the end, as a line of its own; a remark may follow on it. */
bool
errand_hint(const struct errand *r, char to[ERRAND_TEXT])
{
	static const char prefix[] = "\nhint: ", remark[] = "   # ";
	char end[HINT_LOOK + 1], *line, *at;
	struct stat st;
	ssize_t n;

	if (r->said < 0 || fstat(r->said, &st) != 0)
		return false;
	n = pread(r->said, end, HINT_LOOK, st.st_size > HINT_LOOK ? st.st_size - HINT_LOOK : 0);
	end[n > 0 ? n : 0] = '\0';
	line = NULL;
	for (at = end; (at = strstr(at, prefix)) != NULL; at += strlen(prefix))
		line = at + strlen(prefix);
	if (line == NULL)
		return false;
	line[strcspn(line, "\n")] = '\0';
	at = strstr(line, remark);
	if (at != NULL)
		*at = '\0';
	return strlcpy(to, line, ERRAND_TEXT) < ERRAND_TEXT;
}

void
errand_ended(struct errand *r, const struct proc_end *end)
{
	ends[r->kind](r, end);
	errand_free(r);
}

/* Our child and not reaped: its number is its own, and its group has it. */
static void
kill_errand(struct errand *r)
{
	struct err e = {0};

	if (proc_signal_group(r->id.pid, SIGKILL, &e) != 0)
		log_line(LOG_WARNING, "run %s: %s", r->run_id, e.msg);
}

void
errands_stop_notices(struct daemon *d)
{
	struct errand *r;

	TAILQ_FOREACH(r, &d->errands.list, entry)
	{
		if (r->kind == ERRAND_NOTIFY && !r->late && !r->stopped) {
			r->stopped = true;
			kill_errand(r);
		}
	}
}

void
errands_late(void *daemon)
{
	struct daemon *d = daemon;
	int64_t now = clock_monotonic_ns();
	struct errand *r;

	TAILQ_FOREACH(r, &d->errands.list, entry)
	{
		if (r->until_ns > now) {
			loop_set_timer(&d->loop, TIMER_ERRAND, r->until_ns);
		} else if (!r->late) {
			r->late = true;
			kill_errand(r);
		}
	}
}
