/* Required variables that are not set: each is told of once, with the operations that require it. */
#ifndef FLOWSUP_LACKING_H
#define FLOWSUP_LACKING_H

#include <stdbool.h>
#include <stddef.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"
#include "flowsup/flow.h"

enum { LACKING_NAMED = 3 }; /* operations that are named; the rest are counted */

struct lacking_variable {
	const char *name;
	const char *ops[LACKING_NAMED];
	size_t count; /* operations that require it */
};

/* What it holds belongs to the flow. */
struct lacking {
	struct lacking_variable *all;
	size_t count;
};

int lacking_add(struct lacking *l, const char *name, const char *op, struct err *e);
bool lacking_has(const struct lacking *l, const char *name);
/* `operations "a" and "b" require the variable X, which is not set`; of a flow of nops operations. */
void lacking_text(const struct lacking_variable *v, size_t nops, struct buf *to);
/* The command that asks for its value. */
void lacking_command(const char *name, struct buf *to);
void lacking_clear(struct lacking *l);

/* Whether it takes the variable from the environment of its run, and must not run without. */
bool lacking_is_required(const struct flow_how *how, size_t env);
/* The same of any operation. */
bool lacking_is_required_in(const struct flow *f, const char *name);

#endif
