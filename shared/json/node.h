/* Nodes of the trees, for the two files that handle them. */
#ifndef FLOWSUP_JSON_NODE_H
#define FLOWSUP_JSON_NODE_H

#include <assert.h>

#include "value.h"

enum {
	/* 32 bits of places, 16 children at least in the middle: 8 levels, and some for the edges. */
	MAX_HEIGHT = 16,
};

static inline struct leaf *
leaf_of(struct node *n)
{
	assert(n->height == 0);
	return (struct leaf *)(void *)n;
}

static inline const struct leaf *
const_leaf_of(const struct node *n)
{
	assert(n->height == 0);
	return (const struct leaf *)(const void *)n;
}

static inline struct inner *
inner_of(struct node *n)
{
	assert(n->height > 0);
	return (struct inner *)(void *)n;
}

static inline const struct inner *
const_inner_of(const struct node *n)
{
	assert(n->height > 0);
	return (const struct inner *)(const void *)n;
}

static inline unsigned
child_with(const struct inner *in, size_t at)
{
	unsigned low = 0, high = in->head.count - 1u;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (in->end[middle] > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static inline size_t
places_before(const struct inner *in, unsigned child)
{
	return child == 0 ? 0 : in->end[child - 1];
}

/* Nodes with one reference and nothing in them; NULL when memory runs out. */
struct leaf *node_new_leaf(unsigned width, unsigned cap);
struct inner *node_new_inner(const struct node *below);
/* Its memory only. */
void node_free(struct node *n);
/* Counts the places below each child anew. */
void node_recount(struct inner *in);

#endif
