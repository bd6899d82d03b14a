/* What is found of one operation before it is told; only for view_ops.c and view_why.c. */
#ifndef FLOWSUP_VIEW_OPS_H
#define FLOWSUP_VIEW_OPS_H

#include "flowsup/proc.h"
#include "view.h"

enum op_state {
	OP_PENDING,
	OP_RUNNING,
	OP_READING, /* its process has ended, and what it left is read */
	OP_WAITING, /* for its next attempt, or, never started, for approval */
	OP_COMPLETED,
	OP_FAILED,
	OP_SKIPPED,
	OP_CANCELLED,
	OP_INTERRUPTED /* was running when its worker died, and is gone */
};

struct op_view {
	enum op_state state;
	const struct json *entry; /* of the checkpoint */
	bool carried; /* the entry came from the run that this one resumes */
	const struct json *start, *end; /* latest lines of attempts.log */
	const struct json *before; /* the end of the attempt before that */
	int64_t leftovers; /* processes that all its attempts here left, and that were ended */
	const struct json *recent; /* of view_recent, or NULL */
	const struct json *rejected; /* of view_rejected, or NULL */
	const struct json *answers; /* by operation, the same for all: to conditions on responses in files; or NULL */
	size_t blocker; /* operation that keeps it from running, SIZE_MAX: none; itself: a condition */
};

int64_t view_number(const struct json *object, const char *name, int64_t otherwise);
/* The process of a start's line; pid 0 where it names none. */
struct proc_id view_start_id(const struct json *start);
bool view_is_settled(enum op_state s);
enum flow_outcome view_outcome(enum op_state s);
/* Whether the condition of an edge keeps it closed, where its label fits. */
bool view_is_unmet(const struct flow *f, const struct flow_edge *edge, const struct op_view *from);

/*
 * By operation what the run's latest events say of its last attempt: {"started_at","reading" (its process has
 * ended, and what it left is read),"ended_at","end" (the
 * event that told it),"retrying_at","delay_ms" (from then on,
 * until the next one is due),"fraction","text","waits_for" (something other than a slot)}, each only where it is known. NULL: out of memory.
 */
struct json *view_recent(const struct run_files *f);

/* Adds to the problems the files of responses that are not there, or are no files. -1: out of memory. */
int view_lost_responses(struct run_files *f, struct err *e);

/* Why it is as it is, of an operation among all; null when there is nothing to say. */
struct json *view_why(const struct run_files *f, const struct session *s, size_t op,
    const struct op_view *ops);

/* What keeps its worker from saving, as the last of its events about that says; nothing: it saves. */
void view_trouble(int run_fd, struct buf *to);

#endif
