/* Whole trees: building one at once, and finding what two have in common. */
#include <stdlib.h>
#include <string.h>

#include "node.h"

/* ---- building at once ---- */

/* Puts the n nodes of a level under new inner nodes, in the same memory. */
static int
build_level(struct node **level, size_t *n)
{
	size_t made = 0, i, k;

	for (i = 0; i < *n; i += k) {
		struct inner *in = node_new_inner(level[i]);

		if (in == NULL)
			break;
		for (k = 0; k < FAN && i + k < *n; k++)
			in->child[k] = level[i + k];
		in->head.count = (uint8_t)k;
		node_recount(in);
		level[made++] = &in->head;
	}
	if (i >= *n) {
		*n = made;
		return 0;
	}
	/* What is not below a new node yet moves up, so that level[] holds each node once. */
	memmove(&level[made], &level[i], (*n - i) * sizeof(level[0]));
	*n = made + (*n - i);
	return -1;
}

static int
build_leaves(struct node **level, size_t *made, unsigned width, struct json *const *items, size_t n)
{
	size_t i;

	for (i = 0; i < n; i += FAN) {
		unsigned count = n - i < FAN ? (unsigned)(n - i) : FAN;
		struct leaf *l = node_new_leaf(width, count);

		if (l == NULL)
			return -1;
		memcpy(l->item, items + i * width, (size_t)count * width * sizeof(items[0]));
		l->head.count = (uint8_t)count;
		level[(*made)++] = &l->head;
	}
	return 0;
}

/* Frees nodes that nobody else holds, and none of what the leaves hold. */
static void
free_nodes(struct node *n)
{
	unsigned i;

	if (n->height > 0)
		for (i = 0; i < n->count; i++)
			free_nodes(inner_of(n)->child[i]);
	node_free(n);
}

int
seq_build(struct node **root, unsigned width, struct json *const *items, size_t n)
{
	size_t leaves = (n + FAN - 1) / FAN, made = 0;
	struct node *one = NULL, **level = &one;
	int rc = 0;

	*root = NULL;
	if (n == 0)
		return 0;
	if (leaves > 1 && (level = malloc(leaves * sizeof(*level))) == NULL)
		return -1;
	rc = build_leaves(level, &made, width, items, n);
	while (rc == 0 && made > 1)
		rc = build_level(level, &made);
	if (rc == 0)
		*root = level[0];
	else
		while (made > 0)
			free_nodes(level[--made]);
	if (level != &one)
		free(level);
	return rc;
}

/* ---- two trees ---- */

/* Where one of two trees is looked at. */
struct cursor {
	const struct node *node;
	size_t before; /* places between the edge and the node */
	const struct inner *parent;
	unsigned child; /* number of the node in its parent */
};

/* Goes to the child that holds place `at`. */
static void
step_down(struct cursor *c, size_t at, bool back)
{
	const struct inner *in = const_inner_of(c->node);
	size_t size = seq_size(c->node), here = at - c->before;
	unsigned i = child_with(in, back ? size - 1 - here : here);

	c->before += back ? size - in->end[i] : places_before(in, i);
	c->node = in->child[i];
	c->parent = in;
	c->child = i;
}

/* Goes on to the next node under the same parent. */
static bool
step_aside(struct cursor *c, bool back)
{
	if (c->parent == NULL || c->child == (back ? 0 : c->parent->head.count - 1u))
		return false;
	c->before += seq_size(c->node);
	c->child = back ? c->child - 1 : c->child + 1;
	c->node = c->parent->child[c->child];
	return true;
}

/* Both stand on one node: the places up to the end of all that they have in common there. */
static size_t
same_nodes(struct cursor a, struct cursor b, size_t at, bool back)
{
	size_t end;

	do
		end = a.before + seq_size(a.node);
	while (step_aside(&a, back) && step_aside(&b, back) && a.node == b.node);
	return end - at;
}

static size_t
same_items(const struct leaf *a, size_t a_from, const struct leaf *b, size_t b_from, bool back)
{
	size_t width = a->head.width, run = 0;

	while (a_from + run < a->head.count && b_from + run < b->head.count) {
		size_t i = a_from + run, k = b_from + run;

		if (back) {
			i = a->head.count - 1u - i;
			k = b->head.count - 1u - k;
		}
		if (memcmp(&a->item[i * width], &b->item[k * width], width * sizeof(a->item[0])) != 0)
			break;
		run++;
	}
	return run;
}

size_t
seq_same(const struct node *a_root, const struct node *b_root, size_t at, bool back)
{
	struct cursor a = {.node = a_root}, b = {.node = b_root};

	for (;;) {
		unsigned a_height = a.node->height, b_height = b.node->height;

		json_count_visit();
		if (a.node == b.node && a.before == b.before)
			return same_nodes(a, b, at, back);
		if (a_height == 0 && b_height == 0)
			return same_items(const_leaf_of(a.node), at - a.before, const_leaf_of(b.node),
			    at - b.before, back);
		if (a_height >= b_height)
			step_down(&a, at, back);
		if (b_height >= a_height)
			step_down(&b, at, back);
	}
}
