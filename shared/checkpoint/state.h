/*
 * The state of a run in the parts that change apart: every part is an immutable value, so a
 * snapshot is a handful of references.
 */
#ifndef CHECKPOINT_STATE_H
#define CHECKPOINT_STATE_H

#include "flowsup/checkpoint.h"

struct state {
	struct json *rest; /* the members that outcomes never change, in their order */
	struct json *context, *ops, *spawned;
	/* The plan and small entries are strings that hold their encodings: what is only written again
	 * takes a fraction of the memory so. Of a large entry nearly all is text anyway. */
	bool packed;
	struct json *places; /* node_id -> index in spawned, so that an upsert need not search */
};

/* Takes a valid state (base_check) apart. ERR_NOMEM. */
int state_init(struct state *s, const struct json *root, struct err *e);
/* The same, packed. */
int state_init_packed(struct state *s, const struct json *root, struct err *e);
void state_clear(struct state *s);
struct state state_ref(const struct state *s);
/* The whole again, members in the order of a base. NULL when out of memory. Not of a packed one. */
struct json *state_root(const struct state *s);
/*
 * Puts a checked entry (NULL for CKPT_CONTEXT) in its place and, when context is not NULL, the new
 * context. Both borrowed. encoding: the entry's, if it is there already, else empty. On error
 * (ERR_NOMEM) the state is gone: keep a reference if it matters.
 */
int state_apply(struct state *s, enum ckpt_kind kind, const struct json *entry,
    struct slice encoding, const struct json *context, struct err *e);

#endif
