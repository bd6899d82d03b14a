/* Entries of `ops` and `spawned`. */
#ifndef CHECKPOINT_ENTRY_H
#define CHECKPOINT_ENTRY_H

#include "flowsup/checkpoint.h"
#include "refusal.h"

/* The member that identifies an entry of this kind: "agent_id" or "node_id". */
const char *entry_identity_name(enum ckpt_kind kind);
/* Its value, borrowed; NULL when there is none. */
const struct json *entry_identity(enum ckpt_kind kind, const struct json *entry);
/* Identity, status, response and the types of all known members. */
int entry_check(enum ckpt_kind kind, const struct json *entry, struct refusal *r, struct err *e);

#endif
