/*
 * Attempts that outlived the worker of the run before this one.
 *
 *	taken.c		from their start lines to their ends
 *	taken_files.c	what lies in the directory of the run that started them; requests that were
 *			spooled while nobody listened
 *
 * Their processes are no children of ours. How one ended stands in its exit.json as soon as its
 * reaper has written it; only when that one is gone the kernel is asked, and only when the kernel does
 * not tell either it is unknown.
 */
#ifndef WORKER_TAKEN_H
#define WORKER_TAKEN_H

#include "worker.h"

enum {
	TAKEN_LOOK_MS = 20,	/* for an end that is being written down */
	TAKEN_SPOOL_MS = 1000,	/* between two looks for spooled requests */
	TAKEN_REAPER_S = 60,	/* a reaper that lives and says nothing for so long will not */
	TAKEN_GONE_S = 10,	/* until whoever has it now reaps it */
	TAKEN_AFTER_MS = 1000	/* from then on, for what is written down late */
};

struct door;

struct taken {
	struct attempt_run *a;
	struct door *door;	/* of the run that started it; NULL: its files were copied here */
	struct proc_id reaper;
	int ops_fd;		/* of that run */
	char dir[OP_FILE_TEXT]; /* of the attempt, in it */
	struct timer look;
	int64_t over_ns; /* since when its process has ended; 0: it runs */
	int64_t gone_ns; /* since when it is reaped; 0: not seen yet */
	struct json *applied; /* names of spooled requests that can go once they are durable; or NULL */
};

/* Takes the start lines out of the state that the run begins with, and marks in it what they say was
 * rendered. Blocks. */
int taken_read(struct worker *w, struct err *e);
/* Makes their attempts; after the outcomes of the state count and before anything is admitted. Blocks. */
int taken_begin(struct worker *w, struct err *e);
void taken_free(struct attempt_run *a);
/* NULL: its files were copied, and nothing of it speaks to us. */
const struct door *taken_door(const struct attempt_run *a);
/* To each process of its group, as long as its leader proves that it is its group. */
void taken_signal(const struct attempt_run *a, int sig);

/* taken_files.c */
/* Gives our own ops/ the names of its outputs, and what it had asked for before; opens a->out_fd. */
int taken_files(struct attempt_run *a, struct err *e);
/* Applies what was spooled; removes what is durable by now. */
void taken_spool(struct attempt_run *a);
/* Of what was applied, removes what is durable. */
void taken_spool_clean(struct attempt_run *a);
/* A file that its process wrote into the attempt's directory, under our own. */
void taken_link(const struct attempt_run *a, const char *name);

#endif
