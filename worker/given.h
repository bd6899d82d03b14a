/*
 * The environment and the words of one operation while they are put together: one list of texts in
 * one buffer. context.c decides what goes in; environment.c keeps the list and the part that all
 * operations share; templates.c and deps.c make single texts.
 */
#ifndef WORKER_GIVEN_H
#define WORKER_GIVEN_H

#include "worker.h"

/* The list under construction: where each "NAME=value" stands in the text. */
struct building {
	struct worker *w;
	uint32_t op;
	struct buf *text;
	size_t *at; /* offsets into text; SHARED + n: entry n of the shared environment */
	size_t count, cap;
};

#define SHARED (SIZE_MAX / 2)
#define LEFT_OUT SIZE_MAX /* an entry of the shared environment that this operation does not get */

/* ---- environment.c ---- */

/* Place of a name in the shared environment, or SIZE_MAX; its value, or NULL. */
size_t given_find_shared(const struct worker *w, const char *name, size_t len);
const char *given_shared_value(const struct worker *w, const char *name);
int given_add(struct building *b, size_t offset, struct err *e);
/* The entry whose text begins at `from` and is complete: takes the place of one with this name. */
int given_entry(struct building *b, size_t from, struct err *e);
/* A variable whose name is not in the list yet. */
int given_variable(struct building *b, const char *name, const char *value, struct err *e);

/* ---- templates.c ---- */

/* Appends `text` with its templates resolved, and a NUL. */
int given_rendered(struct building *b, const char *what, const char *text, struct err *e);

/* Its texts were asked for by an operation, and are no templates of the document. */
bool given_is_literal(const struct worker *w, uint32_t i);
/* The context that a request came with, or NULL. */
const struct json *given_context(const struct worker *w, uint32_t i);

/* ---- deps.c ---- */

/* FLOWSUP_DEP_<ID> for each predecessor with a response, or FLOWSUP_DEPS. */
int given_deps(struct building *b, struct err *e);

/* Appends the path of the file with i's response, and a NUL; nothing when there is none. */
int given_response_path(struct worker *w, uint32_t i, struct buf *to, struct err *e);
/* synthesis.c: appends what came of every other operation. */
int synthesis_instruction(struct worker *w, struct buf *to, struct err *e);

#endif
