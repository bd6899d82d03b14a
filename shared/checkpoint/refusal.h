/* Why a checkpoint was refused: a stable code and a place, never content. */
#ifndef CHECKPOINT_REFUSAL_H
#define CHECKPOINT_REFUSAL_H

#include <stdint.h>

#include "flowsup/err.h"
#include "flowsup/json.h"

struct refusal {
	const char *reason;	/* NULL: none; else a constant text for `reason` of the report */
	const struct json *at;	/* the value in question, borrowed from the tree being checked */
	int64_t line, offset;	/* -1: not known */
};

/* Returns -1 with r filled and e = ERR_CHECKPOINT "what". Either may be NULL. */
int refuse(struct refusal *r, const char *reason, const struct json *at, struct err *e,
    const char *what);

/* Types as bits, for members that may be of several. */
#define T(type) (1u << JSON_##type)
#define T_ANY (~0u)

/* A member of an object that is checked: its name, what it may be, and whether it must be there. */
struct field {
	const char *name;
	unsigned types;
	bool required;
};

/*
 * Every member of object that the table knows has one of its types, none that is required is
 * missing, and with closed there is no member besides. -1 with "wrong_type", "missing_member" or
 * the code in `unknown`.
 */
int fields_check(const struct json *object, const struct field *fields, size_t count, bool closed,
    const char *unknown, struct refusal *r, struct err *e);

#endif
