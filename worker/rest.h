/*
 * A run in which nothing happens, while nobody writes to the database: a tick then reads nothing and
 * wakes no thread; and the memory that the work before needed is given back, once.
 */
#ifndef WORKER_REST_H
#define WORKER_REST_H

#include <stdbool.h>

#include "flowsup/store.h"

struct worker;

/* Zeroed before first use. */
struct rest {
	struct store_mark mark;
	unsigned ticks; /* since the database was touched */
	bool given_back;
};

/* At each tick. True: the controls are to be read. */
bool rest_tick(struct worker *w);
/* Behind what the tick has submitted: gives memory back when it is time for it. */
void rest_go(struct worker *w);

#endif
