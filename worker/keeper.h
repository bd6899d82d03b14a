/* keeper.c: operations that have a keeper between them and the worker. */
#ifndef WORKER_KEEPER_H
#define WORKER_KEEPER_H

#include "start_line.h"

/* One that was started; it stays listed until it is reaped, so that it is taken for no leftover. */
struct keeper {
	struct worker *w;
	struct attempt_run *a; /* NULL: its work is done */
	struct keeper *previous, *following; /* in w->keepers */
	struct proc_id id;
	int fd; /* the channel */
	off_t log_from; /* length of attempts.log before it was started */
	struct poller_source source;
};

/* Agents, what must not be repeated silently, and what asks for it. */
bool keeper_is_wanted(const struct worker *w, uint32_t i);
/*
 * Starts a keeper for what s describes; in_fd, a->out_fd and err_fd become its standard streams.
 * Whether the operation itself could be started is heard later: then a goes on from PREPARING.
 */
int keeper_start(struct attempt_run *a, const struct proc_spawn *s, int in_fd, int err_fd,
    struct err *e);
/* Lets it reap and leave. The operation's number is free from here on. NULL is harmless. */
void keeper_release(struct attempt_run *a);
bool keeper_is_one(const struct worker *w, pid_t pid);
/* A child of ours has been reaped. */
void keeper_reaped(struct worker *w, pid_t pid);
void keepers_clear(struct worker *w);

#endif
