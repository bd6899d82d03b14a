#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "flowsup/buf.h"
#include "slab.h"

enum {
	CHUNK = 2 << 20, /* and as aligned, so that a block's address leads to its chunk: a huge page */
	LARGEST = CHUNK / 16,
	ALIGN = alignof(max_align_t),
	OPEN = 1 << 30, /* references of a chunk that is open: more than it can have blocks */
};

struct slab_chunk {
	alignas(max_align_t) atomic_uint refs; /* blocks that are in use */
};

static_assert(OPEN > CHUNK / ALIGN, "an open chunk must not look empty");

/* The slab that this thread is in. */
static _Thread_local struct slab *current;

static void
drop(struct slab_chunk *c, unsigned refs)
{
	if (atomic_fetch_sub_explicit(&c->refs, refs, memory_order_acq_rel) == refs)
		free(c);
}

static void
close_chunk(struct slab *s)
{
	if (s->open != NULL)
		drop(s->open, OPEN - s->taken);
	*s = (struct slab){0};
}

static bool
open_chunk(struct slab *s)
{
	struct slab_chunk *c = aligned_alloc(CHUNK, CHUNK);

	if (c == NULL)
		return false;
	mem_expect(c, CHUNK);
	close_chunk(s);
	atomic_init(&c->refs, OPEN);
	*s = (struct slab){.open = c, .used = sizeof(*c)};
	return true;
}

void
slab_enter(struct slab *s)
{
	assert(current == NULL);
	current = s;
}

void
slab_leave(struct slab *s)
{
	assert(current == s);
	current = NULL;
	close_chunk(s);
}

static size_t
rounded(size_t size)
{
	return (size + ALIGN - 1) / ALIGN * ALIGN;
}

void *
slab_take(size_t size)
{
	struct slab *s = current;
	void *block;

	if (s == NULL || size > LARGEST)
		return NULL;
	size = rounded(size);
	if ((s->open == NULL || s->used + size > CHUNK) && !open_chunk(s))
		return NULL;
	block = (char *)s->open + s->used;
	s->used += size;
	s->taken++;
	return block;
}

bool
slab_shorten(void *block, size_t before, size_t size)
{
	struct slab *s = current;

	if (s == NULL || s->open == NULL || (char *)block + rounded(before) != (char *)s->open + s->used)
		return false;
	s->used -= rounded(before) - rounded(size);
	return true;
}

void
slab_free(void *block)
{
	drop((struct slab_chunk *)((uintptr_t)block & ~(uintptr_t)(CHUNK - 1)), 1);
}
