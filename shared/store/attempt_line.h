/* What a line of attempts.log says, as far as every reader of the log needs it. */
#ifndef STORE_ATTEMPT_LINE_H
#define STORE_ATTEMPT_LINE_H

#include "flowsup/home.h"

struct attempt_fields {
	enum attempt_line_kind kind;
	struct slice op;	   /* of a start or an end */
	unsigned attempt;	   /* the same */
	struct proc_id id, reaper; /* of a start; pid 0: not there; id also of a stray */
	struct slice run;	   /* of a start; data NULL: not there */
	struct slice class;	   /* of an end; the same */
	struct json *json;	   /* the line, where it had to be read whole: op, run and class lie in it; else NULL */
};

/*
 * 1: out is filled in, and the caller owns out->json; 0: the line is damaged; -1: out of memory. Starts and
 * ends in the form that they are written in are read where they stand, in one pass and without an allocation.
 */
int attempt_line_read(struct slice text, struct attempt_fields *out, struct err *e);

#endif
