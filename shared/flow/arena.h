/* Memory that lives as long as a flow: given out in pieces, freed at once. */
#ifndef FLOWSUP_FLOW_ARENA_H
#define FLOWSUP_FLOW_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flowsup/json.h"

struct arena_block;
struct arena_held;
struct arena {
	struct arena_block *blocks;
	char *next;
	size_t left;
	struct arena_held *held;
};

/* Starts as {0}. NULL when memory runs out; aligned for anything. */
void *arena_copy(struct arena *a, const void *bytes, size_t len);
/* The same without content. */
void *arena_take(struct arena *a, size_t len);
/* Takes a reference that arena_clear gives back; -1 when memory runs out. */
int arena_hold(struct arena *a, const struct json *value);
void arena_clear(struct arena *a);

/*
 * Equal pieces are stored once: settings that many operations have in common become one. Lives only
 * while a flow is built. Pieces must have no uninitialised padding to be found equal.
 */
struct interned {
	struct arena *arena;
	struct intern_slot *slots;
	size_t used, cap;
};
const void *intern(struct interned *t, const void *bytes, size_t len);
/* A NUL-terminated copy of a text without NUL. */
const char *intern_text(struct interned *t, struct slice text);
void interned_clear(struct interned *t);

#endif
