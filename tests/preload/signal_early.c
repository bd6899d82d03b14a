/* A flowsup that makes an event loop gets the signal SIGNAL_EARLY right before. */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

int
epoll_create1(int flags)
{
	static int (*real)(int);
	const char *sig = getenv("SIGNAL_EARLY");

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "epoll_create1");
	/* To the process: one that is blocked waits for whoever takes it. */
	if (sig != NULL)
		kill(getpid(), atoi(sig));
	return real(flags);
}
