/*
 * A test's clocks. CLOCK_RATE=N lets the monotonic and the boot clock run N times as fast, and shortens
 * waits by as much; with CLOCK_OF=PROGRAM only in that program (its workers inherit the rest). While the
 * file named by CLOCK_JUMP exists, the wall clock is off by the number of seconds in it; the same for the boot
 * clock, as after a suspend, with BOOT_JUMP, and for the monotonic one of CLOCK_OF with MONO_JUMP. Of the
 * kernel's timers those of the boot clock go off after a jump, where they are waited for by poll.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static int
is_meant(void)
{
	const char *of = getenv("CLOCK_OF");

	return of == NULL || strcmp(of, program_invocation_short_name) == 0;
}

static long
rate(void)
{
	const char *text = getenv("CLOCK_RATE");
	long n = text != NULL && is_meant() ? atol(text) : 1;

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
	if (rc == 0 && clock == CLOCK_MONOTONIC && is_meant())
		t->tv_sec += jump("MONO_JUMP");
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

/* ---- The one timer of the boot clock ---- */

static int (*set_timer)(int, int, const struct itimerspec *, struct itimerspec *);
static int boot_fd = -1;
static struct timespec boot_at; /* when it is to go off; 0: it is not set, or has been made to */

int
timerfd_create(int clock, int flags)
{
	static int (*real)(int, int);
	int fd;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "timerfd_create");
	fd = real(clock, flags);
	if (clock == CLOCK_BOOTTIME)
		boot_fd = fd;
	return fd;
}

int
timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *was)
{
	if (set_timer == NULL)
		*(void **)&set_timer = dlsym(RTLD_NEXT, "timerfd_settime");
	if (fd == boot_fd)
		boot_at = to->it_value;
	return set_timer(fd, flags, to, was);
}

static void
boot_timer(void)
{
	const struct itimerspec now = {.it_value = {0, 1}};
	struct timespec t;

	if (clock_gettime(CLOCK_BOOTTIME, &t) != 0 || t.tv_sec < boot_at.tv_sec ||
	    (t.tv_sec == boot_at.tv_sec && t.tv_nsec < boot_at.tv_nsec))
		return;
	boot_at.tv_sec = 0;
	set_timer(boot_fd, TFD_TIMER_ABSTIME, &now, NULL);
}

int
poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	static int (*real)(struct pollfd *, nfds_t, int);
	int rc;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "poll");
	for (;;) {
		if (getenv("BOOT_JUMP") == NULL || boot_at.tv_sec == 0 || timeout_ms >= 0)
			return real(fds, count, shorter(timeout_ms));
		boot_timer();
		rc = real(fds, count, 20);
		if (rc != 0)
			return rc;
	}
}
