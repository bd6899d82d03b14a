/*
 * What operations ask of the shared context, and the messages that a person has put into it: pure
 * functions over JSON values.
 *
 * A change is an object {"op": "set" | "append" | "remove", "pointer": P, "value": V}.
 */
#ifndef WORKER_CHANGES_H
#define WORKER_CHANGES_H

#include <stddef.h>
#include <stdint.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"
#include "flowsup/flow.h"
#include "flowsup/json.h"

/* Members of the context that the program keeps there; operations neither see nor change them. */
#define CONTEXT_MESSAGES "operator_messages"
#define CONTEXT_APPROVALS "approvals"
#define CONTEXT_PLANNER FLOW_PLANNER_CONTEXT

/*
 * Applies one change; *out is a new value. `set` makes or replaces a member or element ("-" behind
 * the last one), `append` makes an absent array, `remove` wants what it removes to be there; parents
 * are never made. ERR_USAGE: not a change; ERR_REFUSED: does not apply, or concerns what the program
 * keeps; ERR_NOMEM.
 */
int change_apply(const struct json *context, const struct json *change, struct json **out,
    struct err *e);
/* Applies an array of them, all or none. The message names the first that fails. */
int changes_apply(const struct json *context, const struct json *changes, struct json **out,
    struct err *e);
/* The context as operations see it. NULL when out of memory. */
struct json *context_public(const struct json *context);
/*
 * The changes that a JSON response asks for: its member `context`, when that is an array of
 * objects that each have a member `op`; else NULL. Borrowed.
 */
const struct json *changes_of_response(const struct json *response);

/* ---- Messages: the array operator_messages ---- */

/* {"ts": seconds, "text": …} and "to" where given (NULL: not). A missing text is an empty one.
 * Consumes messages (NULL: none yet), borrows the rest. */
struct json *messages_add(struct json *messages, double ts, const struct json *text,
    const struct json *to);
/* The same for a further turn of an operation that has started: it is marked for that turn at once. */
struct json *messages_add_turn(struct json *messages, double ts, const struct json *text,
    const char *op, int64_t turn);
/* The highest turn that an entry is marked for, of this operation; 0: none. */
int64_t messages_last_turn(const struct json *messages, const char *op);
/*
 * Marks every entry that is not rendered yet and addressed to nobody or to this operation.
 * Consumes messages; *marked is how many.
 */
struct json *messages_mark(struct json *messages, const char *op, size_t *marked);
/* Appends the block with every entry that is marked for this operation (turn 0), or for this turn of
 * it; nothing when none is. */
void messages_lines(const struct json *messages, const char *op, int64_t turn, struct buf *to);
/* Appends the indices of those entries as ranges, [[FIRST,LAST],…]; nothing when there is none. */
void messages_ranges(const struct json *messages, const char *op, struct buf *to);
/* Marks the entries of such ranges that nobody has rendered. Consumes messages; *marked as above. */
struct json *messages_mark_ranges(struct json *messages, const struct json *ranges, const char *op,
    size_t *marked);
/* How many entries nobody has rendered. */
size_t messages_unrendered(const struct json *messages);

#endif
