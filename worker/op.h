/*
 * The life of one operation, as a table of allowed moves.
 *
 *	pending -> ready -> preparing -> running -> ending -> settling -> completed | failed
 *	   |       | ^  \________^         |                     |
 *	   |       v |                     |                     v
 *	   |      paused, waiting          |                  retrying -> ready
 *	   v                               v                     |
 *	skipped   any of ready, paused, waiting, retrying, running, ending, settling -> cancelled
 *
 * pending: a predecessor has not settled. ready: waits for a slot. paused: waits at the closed
 * gate. waiting: for a person's verdict. preparing: holds a slot; something must be durable before
 * the start. running: its process lives. ending: its process has ended, what it left behind has
 * not. settling: artifacts and response are looked at; an agent's operation may go on with another
 * turn, through ready, also after a resume. retrying: waits for its back-off. Every
 * attempt passes `ready` anew; a denied one fails there.
 */
#ifndef WORKER_OP_H
#define WORKER_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flowsup/flow.h"

/* name, word, no further move */
#define OP_STATES(X)                                                                               \
	X(OP_PENDING, "pending", false)                                                            \
	X(OP_READY, "ready", false)                                                                \
	X(OP_PAUSED, "paused", false)                                                              \
	X(OP_WAITING, "waiting", false)                                                            \
	X(OP_PREPARING, "preparing", false)                                                        \
	X(OP_RUNNING, "running", false)                                                            \
	X(OP_ENDING, "ending", false)                                                              \
	X(OP_SETTLING, "settling", false)                                                          \
	X(OP_RETRYING, "retrying", false)                                                          \
	X(OP_COMPLETED, "completed", true)                                                         \
	X(OP_FAILED, "failed", true)                                                               \
	X(OP_SKIPPED, "skipped", true)                                                             \
	X(OP_CANCELLED, "cancelled", true)

enum op_state {
#define X(name, word, final) name,
	OP_STATES(X)
#undef X
	    OP_STATE_COUNT
};

/* name, word in records, logs and `retry.on` */
#define OP_CLASSES(X)                                                                              \
	X(CLASS_NONE, "completed")                                                                 \
	X(CLASS_EXIT, "exit")                                                                      \
	X(CLASS_SIGNAL, "signal")                                                                  \
	X(CLASS_TIMEOUT, "timeout")                                                                \
	X(CLASS_SILENCE, "silence")                                                                \
	X(CLASS_SPAWN, "spawn")                                                                    \
	X(CLASS_RESPONSE, "response")                                                              \
	X(CLASS_ARTIFACT, "artifact")                                                              \
	X(CLASS_DENIED, "denied")                                                                  \
	X(CLASS_AGENT_ERROR, "agent_error")                                                        \
	X(CLASS_LIMIT, "limit")                                                                    \
	X(CLASS_AUTH, "auth")                                                                      \
	X(CLASS_RATE_LIMITED, "rate_limited")                                                      \
	X(CLASS_SESSION_LOST, "session_lost")                                                      \
	X(CLASS_CRASH, "crash")                                                                    \
	X(CLASS_CANCELLED, "cancelled")

enum op_class {
#define X(name, word) name,
	OP_CLASSES(X)
#undef X
	    OP_CLASS_COUNT
};

struct attempt_run; /* what exists only between ready and settled; spawn.h */

#define OP_NO_INDEX UINT32_MAX

/*
 * One for each operation of the run, up to 100,000: whatever is needed only while an operation
 * runs is behind `live`. `next` links it into the one list it is in (op_list).
 */
struct op {
	struct attempt_run *live;
	struct json *response; /* what conditions and templates of successors look at; may be NULL */
	uint32_t unmet;	       /* predecessors whose outcome does not count yet */
	uint32_t next;
	uint32_t cause; /* the operation because of which this one was skipped; itself: a condition */
	uint32_t attempts;
	uint8_t state;
	bool replayed : 1;	 /* its outcome came with the state the run started from */
	bool never_ran : 1;	 /* of a replayed one: it was settled without an attempt */
	bool by_reference : 1;	 /* the response is in a file, and `response` says which */
	bool replay_written : 1; /* ops/<op>.response exists */
	bool released : 1;	 /* its outcome counts for those that need it */
	bool leftover_told;	 /* since its last start */
	bool has_run : 1;	 /* an attempt of it, in this run */
	/* anew.c: it would run anew; something that it has asked for has an outcome. Not set any more
	 * once that has told. */
	bool anew : 1, added_outcome : 1;
};

const char *op_state_word(enum op_state s);
const char *op_class_word(enum op_class c);
bool op_is_settled(const struct op *op);
bool op_may_become(enum op_state from, enum op_state to);
/* Asserts that the move is in the table. */
void op_become(struct op *op, enum op_state to);

/* A queue of operations, linked by their indices. An operation is in at most one. */
struct op_list {
	uint32_t first, last;
	size_t count;
};
void op_list_init(struct op_list *l);
void op_list_push(struct op_list *l, struct op *ops, uint32_t i);
/* OP_NO_INDEX when empty. */
uint32_t op_list_pop(struct op_list *l, struct op *ops);
/* Puts everything of `head` before what is in l; head is empty then. */
void op_list_prepend(struct op_list *l, struct op_list *head, struct op *ops);

/*
 * Readiness by counting. ops[i].unmet is set to the number of predecessors of each operation;
 * op_release says that the outcome of `i` counts from now on and calls `met` for each successor
 * that has no unmet predecessor left. Work is proportional to the successors of i.
 */
void op_count_predecessors(struct op *ops, const struct flow *f);
typedef void op_met(void *arg, uint32_t successor);
void op_release(struct op *ops, const struct flow *f, uint32_t i, op_met *met, void *arg);
/*
 * Whether a successor of `i` may have no unmet predecessor left when `i` and all that has settled besides
 * counts, `settled` outcomes together. One that lacks more than these has a predecessor that has not ended.
 */
bool op_may_release(const struct op *ops, const struct flow *f, uint32_t i, size_t settled);

/* Of one that is settled. */
enum flow_outcome op_outcome(const struct op *op);

/*
 * What the edges of an operation say, once all its predecessors are settled: OP_READY, or
 * OP_SKIPPED with *cause the predecessor behind it, or i where the edge's label fits and its condition
 * does not hold. A predecessor that was skipped passes its own cause on, so that the cause is where it
 * began. answers, by operation, are those of flow_asked_answers for responses that are kept by reference. -1 with
 * ERR_NOMEM, or ERR_LIMIT when a condition cannot be answered.
 */
int op_judge_edges(const struct op *ops, const struct flow *f, const struct json *answers, uint32_t i,
    enum op_state *out, uint32_t *cause, struct err *e);
/* The same of one edge, whose predecessor is settled. */
int op_need_holds(const struct op *ops, const struct flow *f, const struct json *answers, const struct flow_edge *edge,
    bool *holds, struct err *e);
/* Of one that is skipped by itself: the edge whose condition does not hold; NULL: it cannot have any item. */
const struct flow_edge *op_unmet_edge(const struct op *ops, const struct flow *f, const struct json *answers,
    uint32_t i);

#endif
