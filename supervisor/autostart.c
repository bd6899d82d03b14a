#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autostart.h"
#include "cli.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "service.h"
#include "withheld.h"

enum { READY_FD = 3, FIRST_FREE_FD = 4, WRAPPER_WORDS = 8, SAID_BYTES = 2048 };
#define EXECUTE_FAILED 'x'

extern char **environ;

static bool
is_ours(const char *entry)
{
	return strncmp(entry, "FLOWSUP_", strlen("FLOWSUP_")) == 0;
}

int
autostart_check_worker(struct err *e)
{
	struct buf path = {0};
	int rc = proc_relative_to_self(AUTOSTART_WORKER, &path, e);

	if (rc == 0 && access(buf_text(&path), X_OK) != 0) {
		rc = err_sys(e, ERR_ENVIRONMENT, errno, "the worker program '%s'", buf_text(&path));
		err_hint(e, "flowsup doctor");
	}
	buf_clear(&path);
	return rc;
}

char **
autostart_environment(const struct home *h, bool service, struct err *e)
{
	size_t n = 0, i, len = strlen("FLOWSUP_HOME=") + strlen(h->path) + 1;
	char **envp, *home = malloc(len);

	while (environ != NULL && environ[n] != NULL)
		n++;
	envp = calloc(n + 2, sizeof(*envp));
	if (home == NULL || envp == NULL) {
		free(home);
		free(envp);
		err_nomem(e);
		return NULL;
	}
	snprintf(home, len, "FLOWSUP_HOME=%s", h->path);
	/* The first entry is the only one that is owned. */
	envp[0] = home;
	for (i = 0, n = 1; environ != NULL && environ[i] != NULL; i++)
		if (!is_ours(environ[i]) && (service || !service_is_own(environ[i])))
			envp[n++] = environ[i];
	return envp;
}

void
autostart_environment_free(char **envp)
{
	if (envp != NULL)
		free(envp[0]);
	free(envp);
}

void
autostart_arguments(struct autostart_words *to, const char *home, bool foreground,
    int64_t idle_exit_ns, int ready_fd, int handover_fd)
{
	unsigned n = 0;

	to->argv[n++] = "flowsup";
	to->argv[n++] = "supervisor";
	to->argv[n++] = "--home";
	to->argv[n++] = home;
	if (foreground)
		to->argv[n++] = "--foreground";
	/* In the foreground never is the default. */
	if (idle_exit_ns > 0 || !foreground) {
		snprintf(to->idle, sizeof(to->idle), "--idle-exit=%" PRId64 "ms",
		    (idle_exit_ns + NS_PER_MS - 1) / NS_PER_MS);
		to->argv[n++] = to->idle;
	}
	if (ready_fd >= 0) {
		snprintf(to->ready, sizeof(to->ready), "--ready-fd=%d", ready_fd);
		to->argv[n++] = to->ready;
	}
	if (handover_fd >= 0) {
		snprintf(to->handover, sizeof(to->handover), "--handover-fd=%d", handover_fd);
		to->argv[n++] = to->handover;
	}
	assert(n < AUTOSTART_WORDS);
	to->argv[n] = NULL;
}

/* ---- The new process: only async-signal-safe calls from here to exec ---- */

struct plan {
	const char *program;
	char **argv, **envp;
	int log, null, ready;
};

static void
reset_signals(void)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t none;
	int sig;

	sigemptyset(&standard.sa_mask);
	sigemptyset(&none);
	for (sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &standard, NULL); /* KILL, STOP and libc's own refuse */
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The descriptor moved above those that are about to be given away, so that none overwrites it. */
static int
move_up(int fd)
{
	return fcntl(fd, F_DUPFD, FIRST_FREE_FD);
}

static bool
put_descriptors(const struct plan *p)
{
	int log = move_up(p->log), null = move_up(p->null), ready = move_up(p->ready);

	if (log < 0 || null < 0 || ready < 0)
		return false;
	if (dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
	    dup2(log, STDERR_FILENO) < 0 || dup2(ready, READY_FD) < 0)
		return false;
	/* Also what the caller's caller left open: a shell waits for the end of such a pipe. */
	return syscall(SYS_close_range, FIRST_FREE_FD, ~0U, 0) == 0;
}

_Noreturn static void
become_supervisor(const struct plan *p)
{
	char failure[1 + sizeof(int)] = {EXECUTE_FAILED};
	int at = p->ready;

	reset_signals();
	umask(077);
	if (put_descriptors(p)) {
		at = READY_FD;
		if (chdir("/") == 0)
			execve(p->program, p->argv, p->envp);
	}
	memcpy(failure + 1, &errno, sizeof(int));
	/* Nobody is left to hear of a failure to say this. */
	if (write(at, failure, sizeof(failure)) < 0)
		_exit(127);
	_exit(126);
}

/* The child makes the session and leaves; its child cannot get a terminal again and is nobody's. */
static int
detach(const struct plan *p, struct err *e)
{
	pid_t child = fork();
	int status = 0;

	if (child < 0)
		return err_sys(e, ERR_IO, errno, "fork");
	if (child == 0) {
		pid_t grandchild;

		if (setsid() < 0)
			_exit(125);
		grandchild = fork();
		if (grandchild == 0)
			become_supervisor(p);
		_exit(grandchild < 0 ? 125 : 0);
	}
	while (waitpid(child, &status, 0) < 0) {
		/* Where SIGCHLD is ignored there is nothing to be waited for. */
		if (errno != EINTR)
			return 0;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, ERR_IO, "cannot detach a supervisor");
	return 0;
}

/* ---- The command ---- */

/* What it says of its failure becomes ours. */
static int
take_failure(char *said, struct err *e)
{
	char *text = strchr(said, '\n'), *hint = text == NULL ? NULL : strrchr(text + 1, '\n');

	if (hint == NULL)
		return err_set(e, ERR_IO, "the supervisor that was started failed");
	*text++ = *hint++ = '\0';
	err_set(e, err_from_type(said), "%s", text);
	return *hint == '\0' ? -1 : err_hint(e, "%s", hint);
}

static int
hear(int fd, int limit_ms, bool *ready, struct err *e)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char said[SAID_BYTES];
	ssize_t n;
	int rc, sys;

	*ready = false;
	do
		rc = poll(&p, 1, limit_ms);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return err_set(e, ERR_TIMEOUT, "the supervisor that was started does not answer");
	if (rc < 0)
		return err_sys(e, ERR_IO, errno, "poll");
	n = read(fd, said, sizeof(said) - 1);
	if (n < 0)
		return err_sys(e, ERR_IO, errno, "read");
	said[n] = '\0';
	if (said[0] == AUTOSTART_FAILED)
		return take_failure(said + 1, e);
	if (n == 1 + (ssize_t)sizeof(int) && said[0] == EXECUTE_FAILED) {
		memcpy(&sys, said + 1, sizeof(int));
		return err_sys(e, ERR_ENVIRONMENT, sys, "cannot execute the supervisor");
	}
	*ready = n > 0;
	return 0;
}

static int
open_plan(struct plan *p, const struct home *h, int ready[2], struct err *e)
{
	p->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (p->null < 0)
		return err_sys(e, ERR_IO, errno, "open '/dev/null'");
	p->log = openat(h->fd, HOME_LOG,
	    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (p->log < 0) {
		err_sys(e, ERR_CREATE, errno, "open '%s/" HOME_LOG "'", h->path);
		return home_hint(h->path, e);
	}
	if (pipe2(ready, O_CLOEXEC) != 0)
		return err_sys(e, ERR_IO, errno, "pipe2");
	p->ready = ready[1];
	return 0;
}

/* One try. wrapper: words before the program's own, NULL-terminated; or NULL. */
static int
start_one(const struct home *h, const char *const *wrapper, const char *wrapper_path,
    int64_t idle_exit_ns, int limit_ms, bool *ready, struct err *e)
{
	struct plan p = {.log = -1, .null = -1, .ready = -1};
	struct autostart_words words;
	const char *all[AUTOSTART_WORDS + WRAPPER_WORDS];
	char *argv[AUTOSTART_WORDS + WRAPPER_WORDS];
	int pipe_fds[2] = {-1, -1}, rc = -1;
	struct buf program = {0};
	size_t n = 0, i;

	p.envp = autostart_environment(h, false, e);
	/* Of one run; its own place is a memfd. The first entry is ours, and stays. */
	if (p.envp != NULL)
		withheld_take_out(p.envp + 1);
	if (p.envp == NULL || proc_relative_to_self("flowsup", &program, e) != 0)
		goto out;
	autostart_arguments(&words, h->path, false, idle_exit_ns, READY_FD, -1);
	for (; wrapper != NULL && wrapper[n] != NULL; n++)
		all[n] = wrapper[n];
	for (i = 0; words.argv[i] != NULL; i++)
		all[n++] = wrapper != NULL && i == 0 ? buf_text(&program) : words.argv[i];
	all[n] = NULL;
	memcpy(argv, all, sizeof(argv)); /* exec does not write to the words */
	p.program = wrapper != NULL ? wrapper_path : buf_text(&program);
	p.argv = argv;
	if (open_plan(&p, h, pipe_fds, e) != 0 || detach(&p, e) != 0)
		goto out;
	/* Its end is seen only when ours is closed. */
	fd_close(&pipe_fds[1]);
	rc = hear(pipe_fds[0], limit_ms, ready, e);
out:
	fd_close(&p.null);
	fd_close(&p.log);
	fd_close(&pipe_fds[0]);
	fd_close(&pipe_fds[1]);
	autostart_environment_free(p.envp);
	buf_clear(&program);
	return rc;
}

/*
 * What is left in this unit or session is ended with it: in a scope of the user's own manager it would
 * stay. *ready is false where that cannot be had.
 */
static void
start_in_scope(const struct home *h, int64_t idle_exit_ns, int limit_ms, bool *ready)
{
	static const char *const wrapper[] = {"systemd-run", "--user", "--scope", "--quiet", "--collect",
	    NULL};
	struct buf path = {0};
	struct err e = {0};

	*ready = false;
	if (proc_find_program(wrapper[0], getenv("PATH"), &path, &e) == 0)
		(void)start_one(h, wrapper, buf_text(&path), idle_exit_ns, limit_ms, ready, &e);
	buf_clear(&path);
}

static void
warn_of_end(enum service_fate fate)
{
	cli_note("the supervisor, and runs with it, will be ended together with this %s",
	    fate == SERVICE_ENDS_WITH_UNIT ? "service" : "login session");
	cli_hint("systemctl --user enable --now flowsup-supervisor.service; loginctl enable-linger");
}

int
autostart(const struct home *h, int64_t idle_exit_ns, int limit_ms, bool *ready, struct err *e)
{
	enum service_fate fate = service_fate_here();
	int rc;

	*ready = false;
	if (fate != SERVICE_STAYS)
		start_in_scope(h, idle_exit_ns, limit_ms, ready);
	if (*ready)
		return 0;
	rc = start_one(h, NULL, NULL, idle_exit_ns, limit_ms, ready, e);
	if (rc == 0 && *ready && fate != SERVICE_STAYS)
		warn_of_end(fate);
	return rc;
}
