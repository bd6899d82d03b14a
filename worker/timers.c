/* A binary heap whose members know their place. */
#include "timers.h"

#include <assert.h>
#include <stdlib.h>

enum { TIMERS_FIRST_CAP = 16 };

void
timers_clear(struct timers *t)
{
	size_t i;

	for (i = 1; i <= t->count; i++)
		t->heap[i]->place = 0;
	free(t->heap);
	*t = (struct timers){0};
}

static void
put(struct timers *t, size_t place, struct timer *timer)
{
	t->heap[place] = timer;
	timer->place = place;
}

static void
sift_up(struct timers *t, struct timer *timer)
{
	size_t place = timer->place;

	while (place > 1 && t->heap[place / 2]->at_ns > timer->at_ns) {
		put(t, place, t->heap[place / 2]);
		place /= 2;
	}
	put(t, place, timer);
}

static void
sift_down(struct timers *t, struct timer *timer)
{
	size_t place = timer->place, child;

	while ((child = place * 2) <= t->count) {
		if (child < t->count && t->heap[child + 1]->at_ns < t->heap[child]->at_ns)
			child++;
		if (t->heap[child]->at_ns >= timer->at_ns)
			break;
		put(t, place, t->heap[child]);
		place = child;
	}
	put(t, place, timer);
}

static int
grow(struct timers *t, struct err *e)
{
	size_t cap = t->cap == 0 ? TIMERS_FIRST_CAP : t->cap * 2;
	struct timer **heap = reallocarray(t->heap, cap, sizeof(*heap));

	if (heap == NULL)
		return err_nomem(e);
	t->heap = heap;
	t->cap = cap;
	return 0;
}

int
timer_arm(struct timers *t, struct timer *timer, int64_t at_ns, timer_fire *fire, void *arg,
    struct err *e)
{
	if (timer->place == 0) {
		if (t->count + 1 >= t->cap && grow(t, e) != 0)
			return -1;
		put(t, ++t->count, timer);
	}
	timer->at_ns = at_ns;
	timer->fire = fire;
	timer->arg = arg;
	sift_up(t, timer);
	sift_down(t, timer);
	return 0;
}

void
timer_disarm(struct timers *t, struct timer *timer)
{
	struct timer *last;

	if (timer->place == 0)
		return;
	assert(t->heap[timer->place] == timer);
	last = t->heap[t->count--];
	if (last != timer) {
		put(t, timer->place, last);
		sift_up(t, last);
		sift_down(t, last);
	}
	timer->place = 0;
}

int64_t
timers_nearest(const struct timers *t)
{
	return t->count == 0 ? INT64_MAX : t->heap[1]->at_ns;
}

size_t
timers_run(struct timers *t, int64_t now_ns)
{
	size_t most = t->count, fired = 0;
	struct timer *timer;

	while (fired < most && t->count > 0 && t->heap[1]->at_ns <= now_ns) {
		timer = t->heap[1];
		timer_disarm(t, timer);
		fired++;
		timer->fire(timer->arg);
	}
	return fired;
}
