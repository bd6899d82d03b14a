#include "hold.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

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
	static const int leave[] = {SIGHUP, SIGINT, SIGTERM};
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

void
hold_end(const struct hold *h)
{
	sigprocmask(SIG_SETMASK, &h->before, NULL);
}
