/*
 * A machine whose timing is bad: before calls that other processes can see the effect of, flowsup and its
 * workers sleep now and then. JITTER=SEED[,MOST_MS] switches it on. What a test took to be so "by now"
 * fails under it, what waits for a condition does not.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MOST_MS = 40,     /* of a usual sleep; a rare one is LONG times as long */
	LONG = 8,
	ONE_IN = 8,       /* calls */
	LONG_ONE_IN = 200 /* calls */
};

static uint64_t state; /* threads may mix it up: that is as good */
static unsigned most_ms;

__attribute__((constructor)) static void
begin(void)
{
	const char *text = getenv("JITTER"), *comma;

	if (text == NULL || strncmp(program_invocation_short_name, "flowsup", 7) != 0)
		return;
	comma = strchr(text, ',');
	most_ms = comma != NULL ? (unsigned)atoi(comma + 1) : MOST_MS;
	state = (uint64_t)atoll(text) * 0x9e3779b97f4a7c15U ^ (uint64_t)getpid() << 20 ^ 0x2545f4914f6cdd1dU;
}

static void
jitter(void)
{
	int saved = errno;
	unsigned ms;
	struct timespec t;

	if (most_ms == 0)
		return;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	if (state % ONE_IN != 0 && state % LONG_ONE_IN != 1)
		return;
	ms = (unsigned)(state >> 32) % (state % LONG_ONE_IN == 1 ? LONG * most_ms : most_ms);
	t = (struct timespec){ms / 1000, (long)(ms % 1000) * 1000000};
	syscall(SYS_nanosleep, &t, NULL);
	errno = saved;
}

#define LATE(type, name, parameters, ...)                                   \
	type name parameters                                                 \
	{                                                                    \
		static type(*real) parameters;                               \
                                                                             \
		if (real == NULL)                                            \
			*(void **)&real = dlsym(RTLD_NEXT, #name);           \
		jitter();                                                    \
		return real(__VA_ARGS__);                                    \
	}

LATE(ssize_t, write, (int fd, const void *p, size_t n), fd, p, n)
LATE(ssize_t, writev, (int fd, const struct iovec *v, int n), fd, v, n)
LATE(ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t at), fd, p, n, at)
LATE(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), fd, p, n, at)
LATE(int, fsync, (int fd), fd)
LATE(int, fdatasync, (int fd), fd)
LATE(int, rename, (const char *a, const char *b), a, b)
LATE(int, renameat, (int d, const char *a, int e, const char *b), d, a, e, b)
LATE(int, renameat2, (int d, const char *a, int e, const char *b, unsigned f), d, a, e, b, f)
LATE(int, linkat, (int d, const char *a, int e, const char *b, int f), d, a, e, b, f)
LATE(int, unlinkat, (int d, const char *a, int f), d, a, f)
LATE(int, unlink, (const char *a), a)
LATE(int, mkdirat, (int d, const char *a, mode_t m), d, a, m)
LATE(ssize_t, send, (int fd, const void *p, size_t n, int f), fd, p, n, f)
LATE(ssize_t, sendmsg, (int fd, const struct msghdr *m, int f), fd, m, f)
LATE(ssize_t, recvmsg, (int fd, struct msghdr *m, int f), fd, m, f)
LATE(int, poll, (struct pollfd * p, nfds_t n, int ms), p, n, ms)
LATE(int, epoll_wait, (int fd, struct epoll_event *e, int n, int ms), fd, e, n, ms)
LATE(int, waitid, (idtype_t t, id_t id, siginfo_t *info, int f), t, id, info, f)
LATE(int, kill, (pid_t pid, int n), pid, n)
LATE(pid_t, fork, (void), )
