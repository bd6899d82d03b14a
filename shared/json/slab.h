/*
 * Memory for the values of one text that live and die together: taken from large chunks one after
 * the other, which costs a step instead of a search and keeps the values of a text in few pages.
 *
 * Every block is given back by itself, as if it came from malloc(); a chunk goes when its last block
 * has. One block that is kept so keeps a chunk: this is for texts whose values are kept as a whole.
 */
#ifndef FLOWSUP_JSON_SLAB_H
#define FLOWSUP_JSON_SLAB_H

#include <stdbool.h>
#include <stddef.h>

struct slab_chunk;
struct slab {
	struct slab_chunk *open; /* blocks are taken from this one; NULL before the first */
	size_t used;		 /* of its bytes */
	unsigned taken;		 /* blocks taken from it */
};

/* From now to slab_leave() this thread's values and nodes are made in s, which starts as {0}. */
void slab_enter(struct slab *s);
void slab_leave(struct slab *s);
/* A block that slab_free() takes back, from any thread; NULL when this thread is in no slab, the
 * block is a large part of a chunk, or memory ran out: then malloc() is asked. */
void *slab_take(size_t size);
/* The block that was taken last needs only `size` bytes. False: it was not the last one. */
bool slab_shorten(void *block, size_t before, size_t size);
void slab_free(void *block);

#endif
