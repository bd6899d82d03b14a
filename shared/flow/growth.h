/* What an operation of a flow that grows has beyond the others; private to grow*.c. */
#ifndef FLOWSUP_FLOW_GROWTH_H
#define FLOWSUP_FLOW_GROWTH_H

#include "model.h"

/* Numbers are indices and 1; 0: none. */
struct place {
	const struct json *node; /* its node id, held by the arena or the growth */
	uint32_t replaced_by, stands_for;
	uint32_t needs_room, successors_room; /* 0: the array is shared and must be copied first */
	bool of_synthesis; /* it came of the synthesis */
};

struct growth {
	size_t room; /* operations in all */
	struct place *places;
	struct flow_grown *grown; /* of ops[nplanned + n] */
	struct json *by_node, *by_id; /* objects: index */
	uint64_t edges;
	size_t of_synthesis; /* how many came of it */
};

/* grow_entry.c: what an entry is, and the operation that it describes but for its edges. */
int growth_identify(const struct flow *f, const struct json *entry, struct flow_grown *g,
    struct err *e);
int growth_read(struct flow_owned *own, const struct flow_grown *g, struct flow_op *op,
    struct err *e);
/* Whether i is a foreach over a response. */
bool growth_is_template(const struct flow *f, uint32_t i);

/* grow_edges.c: -1 when memory runs out. */
int growth_add_edges(struct flow_owned *own, uint32_t i, const struct flow_grown *g);

#endif
