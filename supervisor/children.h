/*
 * Workers: one entry for each run that has, or should have, a live worker process.
 *
 *	starting (forked by us) -----> ready -----> gone
 *	                                ^  |
 *	lost (not reached) -> greeted --'  `-> lost (its connection broke, its process lives)
 *	  `-> gone (its lock is free)
 */
#ifndef FLOWSUP_SUPERVISOR_CHILDREN_H
#define FLOWSUP_SUPERVISOR_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/tree.h>

#include "flowsup/home.h"
#include "flowsup/json.h"
#include "flowsup/proc.h"
#include "flowsup/status.h"
#include "loop.h"

struct daemon;

enum worker_state { WORKER_STARTING, WORKER_READY, WORKER_LOST, WORKER_GREETED };

struct worker {
	RB_ENTRY(worker) by_run, by_pid;
	struct daemon *daemon;
	char run_id[RUN_ID_TEXT];
	enum worker_state state;
	struct proc_id id;     /* pid 0: not known yet */
	struct source process; /* pidfd */
	struct source channel;
	int gate;      /* until it is let go, else -1: it has not touched its run, whose row is still queued */
	int heartbeat; /* memfd, or -1 while an adopted one has not sent it */
	int64_t watchdog_ns; /* 0: none */
	uint64_t watched_beats;
	int64_t watched_since_ns; /* the last sign of life that the watchdog saw */
	bool bitten;		/* killed by it */
	bool withdrawn;		/* is not let go any more, and leaves */
	bool only_starting;	/* by its row, when it was adopted */
	bool other_boot;	/* it was started before this machine's last boot */
	bool ended;		/* it said so */
	bool stop_asked;
	int64_t done, total;
	unsigned tries; /* to reach it */
	int64_t due_ns; /* next try */
};
RB_HEAD(workers_by_run, worker);
RB_HEAD(workers_by_pid, worker);

struct workers {
	struct workers_by_run by_run;
	struct workers_by_pid by_pid;
	unsigned count;
};

enum { WORKER_STALLED_MS = 30000, WORKER_PACKETS_A_TURN = 16 };

struct worker *worker_find(struct daemon *d, const char *run_id);
/* By process; NULL when none is known to have this number. */
struct worker *worker_of(struct daemon *d, pid_t pid);
struct worker *worker_after(struct daemon *d, const char *run_id); /* first with a greater id */
/* NULL with ERR_NOMEM. Owned by the table until worker_free(). */
struct worker *worker_new(struct daemon *d, const char *run_id, struct err *e);
/* What its row says of its progress, until it says more. */
void worker_know(struct worker *w, const struct session *s);
void worker_free(struct worker *w);
/* Puts the process into the table and the loop; consumes pidfd, also on error. */
int worker_set_process(struct worker *w, struct proc_id id, int pidfd, struct err *e);
int worker_set_channel(struct worker *w, int fd, struct err *e); /* consumes fd, also on error */

/*
 * Starts the worker of a run, which inherits lock_fd. Both descriptors stay the caller's; after
 * success its copy of the lock must be closed, so that the lock is free when the worker is dead. It is
 * loaded, and waits: before worker_let_go(), which is for when the row says that the run starts, it does
 * nothing, and leaves when this process ends.
 */
int worker_start(struct daemon *d, const char *run_id, int run_fd, int lock_fd,
    struct proc_failure *failure, struct err *e);
void worker_let_go(struct worker *w);
/* It is not wanted: it leaves, and its run is left as it is. */
void worker_withdraw(struct worker *w);
/* Hears what it has said, until nothing waits. */
void worker_read_rest(struct worker *w);
/* Wakes the worker: there is something in the database for it. */
void worker_poke(struct worker *w);
/* Reaps every child that has ended; workers and reports are told. The one place that reaps. */
void children_reap(struct daemon *d);
/* The worker has ended. end may say "not known". Frees w. */
void worker_gone(struct worker *w, const struct proc_end *end, const char *reason);
/* Reads the heartbeat and judges it; for display only. */
bool worker_is_stalled(const struct worker *w);
/* Takes the limit out of a run's policy. watchdog.c */
void watchdog_set(struct worker *w, const struct json *policy);
void watchdogs_look(void *daemon); /* timer */
const char *worker_state_word(enum worker_state state);
/* "the worker was killed by SIGKILL"; `to` is as large as a reason needs. */
enum { WORKER_END_TEXT = 160 };
const char *worker_end_text(const struct proc_end *end, char to[WORKER_END_TEXT]);

#endif
