/* Moments on CLOCK_MONOTONIC in a heap: the nearest in O(1), any change in O(log n). */
#ifndef WORKER_TIMERS_H
#define WORKER_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flowsup/err.h"

typedef void timer_fire(void *arg);

/* Lives in what it belongs to, zeroed before first use; disarm before that is freed. */
struct timer {
	int64_t at_ns;
	size_t place; /* in the heap, from 1; 0: not armed */
	timer_fire *fire;
	void *arg;
};

struct timers {
	struct timer **heap; /* [0] is not used */
	size_t count, cap;
};

void timers_clear(struct timers *t);
/* Arms or moves. ERR_NOMEM. */
int timer_arm(struct timers *t, struct timer *timer, int64_t at_ns, timer_fire *fire, void *arg,
    struct err *e);
void timer_disarm(struct timers *t, struct timer *timer);
static inline bool
timer_is_armed(const struct timer *timer)
{
	return timer->place != 0;
}
/* INT64_MAX when none is armed. */
int64_t timers_nearest(const struct timers *t);
/* Disarms and fires each that is due, nearest first; what they arm anew for now or earlier waits
 * for the next call. Returns how many fired. */
size_t timers_run(struct timers *t, int64_t now_ns);

#endif
