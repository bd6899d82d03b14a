/* What was added to a run while it ran, and what was asked for in vain. */
#ifndef FLOWSUP_WORKER_GROWTH_H
#define FLOWSUP_WORKER_GROWTH_H

#include <stdint.h>

#include "telling.h"

/* Why a request is rejected: name, word in events and messages. */
#define WISH_REJECTS(X)                                                                            \
	X(WISH_BUILDER_ERROR, "builder_error") /* it is not of the form, or asks for too much */    \
	X(WISH_NULL_CHILD, "null_child")       /* it says nothing to do */                         \
	X(WISH_CYCLE, "cycle") /* an instruction asks for itself, or for what it came from */      \
	X(WISH_MAX_SPAWN, "max_spawn_exceeded")                                                    \
	X(WISH_ESCALATE_MAX, "escalate_max_reached")                                               \
	X(WISH_DUPLICATE, "duplicate")

enum wish_reject {
#define X(name, word) name,
	WISH_REJECTS(X)
#undef X
	    WISH_REJECT_COUNT
};

/* Also of a run that may not grow: what is rejected is counted there too. */
struct growth {
	uint64_t spawned, escalated, items, rejected[WISH_REJECT_COUNT];
	struct telling told;
	/* expand.c: items of lists that there was no room for, and what was told of them. Beside them further tries
	 * that were due. */
	uint64_t refused, wanted;
	struct json *without_room; /* ids of operations in whose response these lists are */
	struct telling room_told;
	struct json *without_list; /* expand.c: ids of operations in whose response there was no list */
	struct telling fork_told;
};

#endif
