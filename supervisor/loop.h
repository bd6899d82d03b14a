/*
 * The supervisor's loop: descriptors by epoll, and a few timers. Fill, wait, dispatch.
 *
 * A source may be removed, and its memory freed, at any moment, also by the handler of another
 * source of the same turn: loop_remove() takes its waiting event out of the turn.
 */
#ifndef FLOWSUP_SUPERVISOR_LOOP_H
#define FLOWSUP_SUPERVISOR_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "flowsup/err.h"

typedef void loop_fn(void *arg);

/* Lives in its owner's struct; fd is the owner's, -1 when there is none. */
struct source {
	int fd;
	bool added;
	loop_fn *fn; /* called while the descriptor is readable or has ended */
	void *arg;
};
#define SOURCE_INIT                                                                                \
	{                                                                                          \
		.fd = -1                                                                           \
	}

enum { LOOP_TIMERS = 17, LOOP_EVENTS = 64 };

struct loop {
	int epoll_fd;
	struct epoll_event events[LOOP_EVENTS];
	int nevents, next;
	struct {
		int64_t due_ns; /* CLOCK_MONOTONIC; 0: not set */
		loop_fn *fn;
		void *arg;
	} timers[LOOP_TIMERS];
};

int loop_init(struct loop *l, struct err *e);
void loop_clear(struct loop *l);

int loop_add(struct loop *l, struct source *s, int fd, loop_fn *fn, void *arg, struct err *e);
/* Forgets the source; its descriptor stays open. Harmless when it was not added. */
void loop_remove(struct loop *l, struct source *s);
/* Removes it before the descriptor is closed, since a copy of it elsewhere (a child between fork
 * and exec) would keep it in the epoll set. Sets fd to -1. */
void loop_close(struct loop *l, struct source *s);

void loop_on_timer(struct loop *l, unsigned timer, loop_fn *fn, void *arg);
/* Sets the timer to the earlier of what it is and due_ns. */
void loop_set_timer(struct loop *l, unsigned timer, int64_t due_ns);
void loop_stop_timer(struct loop *l, unsigned timer);
bool loop_timer_is_set(const struct loop *l, unsigned timer);

/* Whether the next turn has something to take. */
bool loop_is_called(const struct loop *l);
/* One turn; with wait false it only takes what is there. */
int loop_turn(struct loop *l, bool wait, struct err *e);

#endif
