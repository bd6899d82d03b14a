/*
 * From items to bytes: what the writer's thread does, without anything of threads.
 *
 * An item is applied to the tip once, when its line is made or when a base is about to hold it. What
 * is in the tip but not durable is never encoded a second time: after any trouble a fresh base
 * holds it.
 */
#ifndef CHECKPOINT_COMMIT_H
#define CHECKPOINT_COMMIT_H

#include "files.h"
#include "item.h"

struct committer {
	const struct ckpt_options *o; /* borrowed */
	struct files files;
	struct state tip;
	struct list pending; /* in the order of admission */
	struct buf batch;    /* lines that are not written yet */
	uint64_t batch_records;
	/* Takes over the items, which are durable, with generation and sequence filled in. end, unless NULL:
	 * nothing will follow them, so that nobody begins on them what could not be saved. */
	void (*durable)(void *arg, struct list *done, const struct err *end);
	void *arg;
};

/*
 * Makes everything that is pending durable: as lines of the journal, or (always with `fresh`) by a
 * new base. -1: a part may be durable, and was told; the rest is still pending.
 */
int commit(struct committer *c, bool fresh, struct err *e);
/* No fresh base mends a name that leads to a stranger, nor a state that no loader would read. */
bool commit_error_is_final(const struct err *e);
/* Everything but the files. */
void committer_clear(struct committer *c);

#endif
