#include "hold.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static const int leave[] = {SIGHUP, SIGINT, SIGTERM};

void
hold_begin(struct hold *h)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &h->before);
}

/* One that is ignored waits as well while it is blocked. */
static bool
is_ignored(int sig)
{
	struct sigaction have;

	return sigaction(sig, NULL, &have) == 0 && have.sa_handler == SIG_IGN;
}

int
hold_check(struct err *e)
{
	sigset_t waiting;
	size_t i;

	if (sigpending(&waiting) != 0)
		return 0;
	for (i = 0; i < sizeof(leave) / sizeof(leave[0]); i++)
		if (sigismember(&waiting, leave[i]) == 1 && !is_ignored(leave[i]))
			return err_set(e, ERR_INTERRUPTED, "interrupted; nothing was started");
	return 0;
}

void
hold_before_writing(const struct hold *h, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	if (poll(&p, 1, 0) == 0)
		hold_end(h);
}

void
hold_keep(struct hold *h)
{
	static const int taken[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};
	size_t i;

	for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		sigaddset(&h->before, taken[i]);
	/* The hold may have ended for the sake of a reader. */
	sigprocmask(SIG_BLOCK, &h->before, NULL);
}

static struct {
	char text[128];
	size_t len;
	int status;
	pid_t pid;
} told;

_Noreturn void
hold_leave(int sig)
{
	(void)sig;
	/* Nobody is left to hear of a failure to say this; a child that is to become another program says nothing. */
	if (getpid() == told.pid)
		(void)!write(STDERR_FILENO, told.text, told.len);
	_exit(told.status);
}

void
hold_tell(const char *run_id)
{
	struct sigaction leaves = {.sa_handler = hold_leave};
	int len = run_id != NULL
	    ? snprintf(told.text, sizeof(told.text), "flowsup: interrupted; run %s goes on\n", run_id)
	    : snprintf(told.text, sizeof(told.text), "flowsup: interrupted\n");
	size_t i;

	told.len = len > 0 && (size_t)len < sizeof(told.text) ? (size_t)len : 0;
	told.status = err_exit_status(ERR_INTERRUPTED);
	told.pid = getpid();
	sigfillset(&leaves.sa_mask);
	for (i = 0; i < sizeof(leave) / sizeof(leave[0]); i++)
		if (!is_ignored(leave[i]))
			(void)sigaction(leave[i], &leaves, NULL); /* else it ends as by default */
}

void
hold_end(const struct hold *h)
{
	sigprocmask(SIG_SETMASK, &h->before, NULL);
}
