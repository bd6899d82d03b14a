/* Operations of dead workers while no supervisor runs: nobody sees to their limits, nor to how long they are kept. */
#ifndef FLOWSUP_SUPERVISOR_UNWATCHED_H
#define FLOWSUP_SUPERVISOR_UNWATCHED_H

#include "flowsup/home.h"
#include "flowsup/store.h"

struct unwatched {
	unsigned ops, runs;
	char run[RUN_ID_TEXT]; /* the newest of them */
};

/* Counts those of this home that run here and now. Whether a supervisor runs is the caller's to ask. */
int unwatched_count(const struct home *h, struct store *s, struct unwatched *out, struct err *e);

/* "2 operations of run ID, whose worker is dead, run on, and nobody sees to their limits". */
void unwatched_text(const struct unwatched *u, struct buf *to);

#endif
