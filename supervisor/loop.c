#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "loop.h"

int
loop_init(struct loop *l, struct err *e)
{
	memset(l, 0, sizeof(*l));
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0)
		return err_sys(e, ERR_IO, errno, "epoll_create1");
	return 0;
}

void
loop_clear(struct loop *l)
{
	fd_close(&l->epoll_fd);
}

int
loop_add(struct loop *l, struct source *s, int fd, loop_fn *fn, void *arg, struct err *e)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = s};

	assert(!s->added && fd >= 0);
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
		return err_sys(e, ERR_IO, errno, "epoll_ctl");
	*s = (struct source){.fd = fd, .added = true, .fn = fn, .arg = arg};
	return 0;
}

void
loop_remove(struct loop *l, struct source *s)
{
	struct epoll_event event = {0};
	int i;

	if (!s->added)
		return;
	/* It cannot fail for a descriptor that is in the set, and one that is added is. */
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, s->fd, &event);
	s->added = false;
	for (i = l->next; i < l->nevents; i++)
		if (l->events[i].data.ptr == s)
			l->events[i].data.ptr = NULL;
}

void
loop_close(struct loop *l, struct source *s)
{
	loop_remove(l, s);
	fd_close(&s->fd);
}

void
loop_on_timer(struct loop *l, unsigned timer, loop_fn *fn, void *arg)
{
	assert(timer < LOOP_TIMERS);
	l->timers[timer].fn = fn;
	l->timers[timer].arg = arg;
}

void
loop_set_timer(struct loop *l, unsigned timer, int64_t due_ns)
{
	assert(timer < LOOP_TIMERS && l->timers[timer].fn != NULL && due_ns > 0);
	if (l->timers[timer].due_ns == 0 || due_ns < l->timers[timer].due_ns)
		l->timers[timer].due_ns = due_ns;
}

void
loop_stop_timer(struct loop *l, unsigned timer)
{
	assert(timer < LOOP_TIMERS);
	l->timers[timer].due_ns = 0;
}

bool
loop_timer_is_set(const struct loop *l, unsigned timer)
{
	assert(timer < LOOP_TIMERS);
	return l->timers[timer].due_ns != 0;
}

/* Milliseconds until the nearest timer, rounded up so that it has passed then; -1: none. */
static int
timeout_ms(const struct loop *l, int64_t now)
{
	int64_t least = INT64_MAX, ms;
	unsigned i;

	for (i = 0; i < LOOP_TIMERS; i++)
		if (l->timers[i].due_ns != 0 && l->timers[i].due_ns < least)
			least = l->timers[i].due_ns;
	if (least == INT64_MAX)
		return -1;
	if (least <= now)
		return 0;
	ms = (least - now + NS_PER_MS - 1) / NS_PER_MS;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

static void
run_timers(struct loop *l)
{
	int64_t now = clock_monotonic_ns();
	unsigned i;

	for (i = 0; i < LOOP_TIMERS; i++)
		if (l->timers[i].due_ns != 0 && l->timers[i].due_ns <= now) {
			l->timers[i].due_ns = 0;
			l->timers[i].fn(l->timers[i].arg);
		}
}

bool
loop_is_called(const struct loop *l)
{
	struct pollfd p = {.fd = l->epoll_fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

int
loop_turn(struct loop *l, bool wait, struct err *e)
{
	int timeout = wait ? timeout_ms(l, clock_monotonic_ns()) : 0;
	struct source *s;

	l->nevents = epoll_wait(l->epoll_fd, l->events, LOOP_EVENTS, timeout);
	if (l->nevents < 0) {
		l->nevents = 0;
		if (errno != EINTR)
			return err_sys(e, ERR_IO, errno, "epoll_wait");
	}
	for (l->next = 0; l->next < l->nevents;) {
		s = l->events[l->next++].data.ptr;
		if (s != NULL)
			s->fn(s->arg);
	}
	l->nevents = l->next = 0;
	run_timers(l);
	return 0;
}
