/* Roles of the configuration directory: roles/NAME.yaml or NAME.json, each with a role's keys. */
#ifndef FLOWSUP_ROLES_H
#define FLOWSUP_ROLES_H

#include "flowsup/err.h"
#include "flowsup/json.h"

/* The role of that name as it stands in its file, NULL where there is none. -1: a file cannot be read. */
int role_find(const char *name, struct json **out, struct err *e);
/* An object with all of them by name. */
int roles_all(struct json **out, struct err *e);
/*
 * A state of a checkpoint with every role that its plan names and its config lacks, as far as the
 * directory has it. Consumes state; NULL with *e.
 */
struct json *roles_complete(struct json *state, struct err *e);

#endif
