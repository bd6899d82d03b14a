/* What came of an attempt: looked at in the loop when it is little, else by the io thread. */
#ifndef WORKER_OUTCOME_H
#define WORKER_OUTCOME_H

#include <stdatomic.h>

#include "flowsup/flow.h"
#include "worker.h"

/* When a lengthy reading is given up; asked by its thread, and until_ns set by the loop. */
struct outcome_patience {
	const atomic_bool *enough; /* the worker leaves */
	_Atomic int64_t until_ns; /* of the monotonic clock; 0: however long it takes */
	bool given_up; /* it was */
};
/* Whether it is to be given up, which it then is. */
bool outcome_is_enough(struct outcome_patience *p);

/* Everything needed to look; descriptors are owned by the attempt. */
struct outcome_input {
	int out_fd;
	int artifacts_fd;	 /* the artifact root */
	const struct flow_op *op;
	const struct json *emitted; /* further artifacts, that it has reported; or NULL */
	char file[OP_FILE_TEXT + 16]; /* of the output, relative to the run directory */
	uint64_t size;
	uint64_t inline_limit;
	enum op_class class; /* as the process ended */
	struct agent *agent; /* whose output it is, or NULL */
	const struct worker *plans; /* it is the planner of this worker's run; NULL: it is not */
	struct proc_end end;
	struct outcome_patience *patience; /* NULL: it does not take long */
	bool durable; /* files that the outcome names are on disk before it is recorded */
};

/*
 * Checks the declared artifacts and makes the response, for an attempt that o->class says succeeded
 * so far; turns it into a failure (artifact, response) where it is none. For one that failed the
 * response is its output, as declared where it is that, else as text. Trouble with memory or files is a failure too.
 */
void outcome_look(const struct outcome_input *in, struct outcome *o);
/* A recorded response in the form that its output had; nothing for none. */
void outcome_response_text(enum flow_response kind, bool completed, const struct json *response, struct buf *to);
/* Ended by the signal of its limit of processor time, or by the kill that follows when it goes on. */
bool outcome_used_up_cpu(const struct proc_end *end, const struct flow_how *how);
/* The class, code and message by which the process ended. */
void outcome_of_end(const struct proc_end *end, enum op_class forced, const struct flow_how *how,
    struct outcome *o);

#endif
