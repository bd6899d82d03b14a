/*
 * How a run grows: requests are accepted or rejected, what is accepted is recorded as pending before
 * it counts, and what was added is found again by whoever asks for it a second time.
 *
 *	wish.c		what is asked for, and whether the document allows it
 *	reactive.c	what was added: entries, keys, counts
 *	asking.c	the ways to ask, acceptance, acknowledgements
 *	expand.c	foreach over a response
 */
#ifndef WORKER_REACTIVE_H
#define WORKER_REACTIVE_H

#include "wish.h"

/* Who waits for the acknowledgement of an entry. */
struct reactive_waiter {
	struct reactive_waiter *next;
	struct link *link;
	uint64_t serial;
};

/* One operation that was added. */
struct reactive_child {
	struct json *entry; /* pending, with all its fields; its outcome is written into it */
	struct reactive_waiter *waiters;
	uint32_t attempt; /* of the emitter in this run that has asked for it last; 0: none */
	bool acked, deferred;
};

struct reactive {
	size_t room; /* how many may be added beyond those that the state held */
	struct reactive_child *children; /* of ops[nplanned + n] */
	size_t cap;	    /* max_spawn, as recorded */
	size_t asked;	    /* spawned and retried: what it bounds without max_ops */
	struct json *keys;  /* object: "<emitter's node> <key>": index */
	struct json *ordinals; /* object, by an operation's id: the highest number a child of it had */
	/* By planned operation: items of a foreach that has begun and that are still to be added. Nobody else gets
	 * their room. */
	size_t *reserved, reserved_all;
	struct op_list expanding;
	struct json *positions; /* object, by index: the next item of one that is expanding */
	struct json *lists; /* object, by id: of those that expand, what was read from a response in a file */
};

/* What one attempt has asked for: how often each request that is equal to others, by its digest. */
struct asked {
	struct json *accepted, *unmatched;
};

/* An entry's members that say what is added; what_kind is one of the three. */
struct reactive_new {
	uint32_t parent, emitter;
	enum flow_kind kind;
	const char *id;
	const char *key;
	struct json *what, *context; /* consumed; what may be NULL */
	const struct flow_role *role;
	const struct json *reason;
	bool retry, independent;
	unsigned attempt;	/* of the emitter */
	const struct json *asked; /* the request by emit: its id; or NULL */
};
/* Adds it and admits its entry; *out is its index. Consumes. ERR_REFUSED, ERR_LIMIT, ERR_NOMEM. */
int reactive_add(struct worker *w, struct reactive_new *n, uint32_t *out, struct err *e);
/* The operation that this one has asked for under a key, or OP_NO_INDEX. */
uint32_t reactive_find(const struct worker *w, uint32_t emitter, const char *key);
/* What an operation does, as an entry has it: a text or an argv; NULL: it is no valid text. */
struct json *reactive_work(const struct flow_op *op);
/* How many more may be added, without what is reserved; items do not count where max_ops is not given. */
size_t reactive_left(const struct worker *w, bool item);
/* That many items of i are to be added still. */
void reactive_reserve(struct worker *w, uint32_t i, size_t n);
struct reactive_child *reactive_child_of(const struct worker *w, uint32_t i);
/* What makes two requests equal. The reason does not: it says why, not what. */
int reactive_digest(const struct wish *wish, char to[CKPT_DIGEST_TEXT], struct err *e);
/* The same of an entry, under its key or (false) as if it had none. */
int reactive_digest_of(const struct worker *w, uint32_t i, bool keyed, char to[CKPT_DIGEST_TEXT],
    struct err *e);
/* r->ordinals is NULL when memory ran out. */
void reactive_note_ordinal(struct reactive *r, const char *parent, uint64_t n);
/* due: nobody has asked for it, it follows a failure. */
void reactive_reject(struct worker *w, uint32_t emitter, enum wish_reject why, bool due,
    const char *message);

#endif
