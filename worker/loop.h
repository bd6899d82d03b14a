/* The one poll() loop: descriptors with handlers, and a timerfd for the nearest deadline. */
#ifndef WORKER_LOOP_H
#define WORKER_LOOP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flowsup/err.h"
#include "timers.h"

typedef void poller_ready(void *arg, short revents);

/*
 * One watched descriptor; lives in what it belongs to, zeroed before first use. The poll array
 * holds live descriptors only, in any order: removing one moves the last into its place.
 */
struct poller_source {
	int fd;
	size_t place; /* from 1; 0: not watched */
	poller_ready *ready;
	void *arg;
};

struct poller {
	struct pollfd *polled;
	struct poller_source **sources;
	size_t count, cap;
	struct timers timers;
	struct poller_source timer_source;
	int timer_fd;
	int64_t timer_set_ns; /* what timer_fd is set to; INT64_MAX: not set */
	bool again;	      /* do not wait in the next turn: work is left */
};

int poller_init(struct poller *l, struct err *e);
void poller_clear(struct poller *l);
/* Makes room, so that watching up to `count` descriptors at once cannot fail. */
int poller_reserve(struct poller *l, size_t count, struct err *e);
int poller_watch(struct poller *l, struct poller_source *s, int fd, short events, poller_ready *ready,
    void *arg, struct err *e);
void poller_unwatch(struct poller *l, struct poller_source *s);
/* Waits for an event or the nearest timer, then calls the handlers of what is ready and the timers
 * that are due. A handler may watch and unwatch anything. EINTR is no error. */
int poller_turn(struct poller *l, struct err *e);

#endif
