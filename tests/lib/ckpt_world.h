/* A run directory with a writer on it, a file system that fails on request, and a model of what it must hold. */
#ifndef FLOWSUP_TEST_CKPT_WORLD_H
#define FLOWSUP_TEST_CKPT_WORLD_H

#include "ckpt_fixture.h"
#include "fault_fs.h"

struct world {
	struct fixture fx;
	struct fault_fs *fs;
	struct ckpt_options o;
	struct ckpt_writer *w;
	struct json *model;
};

/* Without a writer yet, so that its options can be changed. */
void world_make(struct world *s);
void world_open(struct world *s);
/* Closes the writer, if there is one, which must have saved everything. */
void world_end(struct world *s);

/* Admits and keeps the model in step; does not wait. Consumes entry and context. */
uint64_t world_admit(struct world *s, enum ckpt_kind kind, struct json *entry, struct json *context);
void world_flush(struct world *s);
/* Flushes and loads: it is the model. */
void world_check(struct world *s);
bool world_all_acked(void *writer);
uint64_t world_bases(struct world *s);
/* Whether the loop would be woken. */
bool world_event_waits(const struct world *s);

#endif
