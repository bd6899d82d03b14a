/*
 * A keeper: the parent of one operation, which writes its exit.json whoever else is dead.
 *
 *	keep.c		the process (flowsup-worker --keep)
 *	keeper.c	the worker's side
 *
 * What to start comes in a sealed memfd: a line of JSON with everything that is a number, then texts
 * that each end with a NUL, of any bytes: enum keep_text, the words, the environment. The channel
 * carries struct keep_message, one a packet: both ends are the same executable file. Its end is the
 * worker's leave to reap: until then the operation's number stays taken.
 */
#ifndef WORKER_KEEP_H
#define WORKER_KEEP_H

#include "flowsup/proc.h"

/* Descriptors of a keeper. It holds the run's lock until the program is executed: whoever gets the
 * lock finds every start line. */
enum {
	KEEP_IN = 3,
	KEEP_OUT,
	KEEP_ERR,
	KEEP_LOG, /* attempts.log */
	KEEP_OPS,
	KEEP_CHANNEL,
	KEEP_LOCK,
	KEEP_SPEC,
	KEEP_FDS = KEEP_SPEC - KEEP_IN + 1
};

enum keep_text {
	KEEP_PATH,
	KEEP_SEARCH_PATH, /* only with "search" */
	KEEP_CWD,
	KEEP_DIR, /* of the attempt, below ops/ */
	KEEP_LINE_BEFORE,
	KEEP_LINE_BETWEEN,
	KEEP_LINE_REST,
	KEEP_TEXTS
};

struct keep_message {
	enum { KEEP_STARTED, KEEP_FAILED, KEEP_ENDED } kind;
	struct proc_id id;   /* of what was started */
	struct proc_end end; /* of ENDED */
	struct err e;	     /* of FAILED */
};

int keep_main(void);

#endif
