/* Fill, wait, dispatch. */
#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"

enum { LOOP_FIRST_CAP = 16 };

static int
grow(struct poller *l, size_t cap, struct err *e)
{
	struct pollfd *polled = reallocarray(l->polled, cap, sizeof(*polled));
	struct poller_source **sources;

	if (polled == NULL)
		return err_nomem(e);
	l->polled = polled;
	sources = reallocarray(l->sources, cap, sizeof(*sources));
	if (sources == NULL)
		return err_nomem(e);
	l->sources = sources;
	l->cap = cap;
	return 0;
}

int
poller_reserve(struct poller *l, size_t count, struct err *e)
{
	return count <= l->cap ? 0 : grow(l, count, e);
}

int
poller_watch(struct poller *l, struct poller_source *s, int fd, short events, poller_ready *ready,
    void *arg, struct err *e)
{
	if (l->count == l->cap &&
	    grow(l, l->cap == 0 ? LOOP_FIRST_CAP : l->cap * 2, e) != 0)
		return -1;
	*s = (struct poller_source){.fd = fd, .place = l->count + 1, .ready = ready, .arg = arg};
	l->polled[l->count] = (struct pollfd){.fd = fd, .events = events};
	l->sources[l->count] = s;
	l->count++;
	return 0;
}

void
poller_unwatch(struct poller *l, struct poller_source *s)
{
	size_t i, last = l->count - 1;

	if (s->place == 0)
		return;
	i = s->place - 1;
	l->polled[i] = l->polled[last];
	l->sources[i] = l->sources[last];
	l->sources[i]->place = i + 1;
	l->count = last;
	s->place = 0;
}

/* The expirations are of no interest: timers_run asks the clock. */
static void
timer_ready(void *arg, short revents)
{
	struct poller *l = arg;
	uint64_t expirations;

	(void)revents;
	if (read(l->timer_fd, &expirations, sizeof(expirations)) > 0)
		l->timer_set_ns = INT64_MAX;
}

int
poller_init(struct poller *l, struct err *e)
{
	*l = (struct poller){.timer_fd = -1, .timer_set_ns = INT64_MAX};
	l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->timer_fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot make a timer");
	return poller_watch(l, &l->timer_source, l->timer_fd, POLLIN, timer_ready, l, e);
}

void
poller_clear(struct poller *l)
{
	fd_close(&l->timer_fd);
	timers_clear(&l->timers);
	free(l->polled);
	free(l->sources);
	*l = (struct poller){.timer_fd = -1};
}

/* The timer is set only when it would come too late: one that comes early costs one idle turn, and
 * a limit that is disarmed before it is reached (the usual case) then costs no system call. */
static int
set_timer(struct poller *l, struct err *e)
{
	int64_t nearest = timers_nearest(&l->timers);
	struct itimerspec when = {0};

	if (nearest >= l->timer_set_ns)
		return 0;
	if (nearest < 1)
		nearest = 1; /* zero would disarm it */
	when.it_value.tv_sec = (time_t)(nearest / NS_PER_S);
	when.it_value.tv_nsec = (long)(nearest % NS_PER_S);
	if (timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) != 0)
		return err_sys(e, ERR_IO, errno, "cannot set a timer");
	l->timer_set_ns = nearest;
	return 0;
}

int
poller_turn(struct poller *l, struct err *e)
{
	size_t i;
	short revents;
	int n;

	if (set_timer(l, e) != 0)
		return -1;
	n = poll(l->polled, (nfds_t)l->count, l->again ? 0 : -1);
	if (n < 0 && errno != EINTR)
		return err_sys(e, ERR_IO, errno, "cannot wait for events");
	l->again = false;
	/* From the end, so that what a removal moves down has been looked at already; revents is
	 * cleared first, so that nothing is seen twice whatever a handler removes. */
	for (i = l->count; n > 0 && i-- > 0;) {
		if (i >= l->count)
			continue;
		revents = l->polled[i].revents;
		if (revents == 0)
			continue;
		l->polled[i].revents = 0;
		l->sources[i]->ready(l->sources[i]->arg, revents);
	}
	timers_run(&l->timers, clock_monotonic_ns());
	return 0;
}
