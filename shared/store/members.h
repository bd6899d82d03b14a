/* Members that an object must or may have, with their types, as one line of data. */
#ifndef STORE_MEMBERS_H
#define STORE_MEMBERS_H

#include "flowsup/err.h"
#include "flowsup/json.h"

/*
 * spec is "name:t ?name:t ...", t one of s string, i integer, b boolean, o object; "?" before a
 * member that may lack. A string must be one that C can hold (no NUL, no lone surrogate). Members that
 * the spec does not name are ignored. ERR_PROTOCOL names the first that is wrong.
 */
int members_check(const char *spec, const struct json *object, struct err *e);

#endif
