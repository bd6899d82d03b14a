/* The base of version 3 and the whole file of version 2: encoding and checking. */
#ifndef CHECKPOINT_BASE_H
#define CHECKPOINT_BASE_H

#include "refusal.h"
#include "sink.h"
#include "state.h"

/* Members of a state in the order in which a base holds them, NULL-terminated. */
const char *const *base_member_order(void);

bool generation_is_valid(struct slice text);
/* 32 lowercase hex digits from getrandom(2). */
int generation_make(char to[CKPT_GENERATION_TEXT], struct err *e);

/* A whole base; -1 with what the sink said. generation NULL: the same members as a whole version 2 file,
 * node ids and all, for which no journal is looked for. */
int base_encode(struct sink *to, const char *generation, const struct state *s, struct err *e);
/* A whole version 2 file, of a state that is not packed. nodes: its plan has node ids in any case. */
int snapshot_encode(struct sink *to, const struct state *s, bool nodes, struct err *e);
/*
 * Whether a version 2 file must carry plan[].node_id: its older readers know no such member and refuse,
 * so it is written only where they would misread the file otherwise.
 */
bool plan_needs_nodes(const struct json *config, const struct json *spawned);
bool plan_has_nodes(const struct json *plan);

/* The file's version: 1 when absent; refused when it is none of the integers 1, 2 and 3. */
int base_version(const struct json *root, int *version, struct refusal *r, struct err *e);
/* All of a parsed file of that version: containers, plan, entries, guards. */
int base_check(const struct json *root, int version, struct refusal *r, struct err *e);
/* The entries of a plan. */
int plan_check(const struct json *plan, struct refusal *r, struct err *e);
/* The same for a state, which has no version, generation and journal_seq. */
int state_check(const struct json *state, struct refusal *r, struct err *e);
/* A checked file without the members that belong to the file and not to the state. */
struct json *base_state(const struct json *root);

#endif
