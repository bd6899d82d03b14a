/*
 * A test's clocks. CLOCK_RATE=N lets the monotonic and the boot clock run N times as fast, and shortens
 * waits by as much; with CLOCK_OF=PROGRAM only in that program (its workers inherit the rest). While the
 * file named by CLOCK_JUMP exists, the wall clock is off by the number of seconds in it; the same for the boot
 * clock, as after a suspend, with BOOT_JUMP. Timers of the kernel are not moved.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static long
rate(void)
{
	const char *text = getenv("CLOCK_RATE"), *of = getenv("CLOCK_OF");
	long n = text != NULL ? atol(text) : 1;

	if (of != NULL && strcmp(of, program_invocation_short_name) != 0)
		return 1;
	return n > 0 ? n : 1;
}

static long
jump(const char *variable)
{
	const char *path = getenv(variable);
	char text[32] = "";
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return atol(text);
}

static void
faster(struct timespec *t)
{
	long n = rate();
	long long ns = (long long)t->tv_nsec * n;

	t->tv_sec = t->tv_sec * n + (time_t)(ns / 1000000000);
	t->tv_nsec = (long)(ns % 1000000000);
}

int
clock_gettime(clockid_t clock, struct timespec *t)
{
	static int (*real)(clockid_t, struct timespec *);
	int rc;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	rc = real(clock, t);
	if (rc == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME))
		faster(t);
	if (rc == 0 && clock == CLOCK_REALTIME)
		t->tv_sec += jump("CLOCK_JUMP");
	if (rc == 0 && clock == CLOCK_BOOTTIME)
		t->tv_sec += jump("BOOT_JUMP");
	return rc;
}

static int
shorter(int timeout_ms)
{
	return timeout_ms <= 0 ? timeout_ms : (int)((timeout_ms + rate() - 1) / rate());
}

int
epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
	static int (*real)(int, struct epoll_event *, int, int);

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "epoll_wait");
	return real(fd, events, most, shorter(timeout_ms));
}

int
poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	static int (*real)(struct pollfd *, nfds_t, int);

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "poll");
	return real(fds, count, shorter(timeout_ms));
}
