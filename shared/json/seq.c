/*
 * The trees below arrays and objects: B+ trees by position, persistent by copying the path from
 * the root to the leaf that changes, in place where nobody else holds the path.
 *
 * Invariants: all leaves have the same depth; no node is empty; end[] of an inner node counts the
 * places of its children. A node that splits because something came behind its last place keeps
 * all it has, so that a tree grown at its end is full; one that splits elsewhere is halved.
 */
#include <stdlib.h>
#include <string.h>

#include "node.h"

enum {
	FIRST_CAP = 4,
	POOR = FAN / 4, /* a node with no more than this looks for a neighbour to join */
};

size_t
seq_size(const struct node *n)
{
	if (n == NULL)
		return 0;
	return n->height == 0 ? n->count : const_inner_of(n)->end[n->count - 1];
}

void
seq_ref(struct node *n)
{
	if (n != NULL)
		atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
}

static bool
unique_node(struct node *n)
{
	return atomic_load_explicit(&n->refs, memory_order_acquire) == 1;
}

/* Recurs as deep as the tree is high, at most MAX_HEIGHT; elements go to *dead instead. */
void
seq_drop(struct node *n, struct json **dead)
{
	size_t i;

	if (n == NULL)
		return;
	if (!unique_node(n) && atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (n->height == 0)
		for (i = 0; i < (size_t)n->count * n->width; i++)
			json_drop(leaf_of(n)->item[i], dead);
	else
		for (i = 0; i < n->count; i++)
			seq_drop(inner_of(n)->child[i], dead);
	node_free(n);
}

static void
drop_now(struct node *n)
{
	struct json *dead = NULL;

	seq_drop(n, &dead);
	json_free_dead(dead);
}

/* ---- making nodes ---- */

static size_t
leaf_bytes(unsigned width, unsigned cap)
{
	return sizeof(struct leaf) + (size_t)width * cap * sizeof(struct json *);
}

static struct node *
new_node(size_t bytes)
{
	struct node *n = slab_take(bytes);
	const bool slab = n != NULL;

	if (!slab && (n = malloc(bytes)) == NULL)
		return NULL;
	json_count_node();
	atomic_init(&n->refs, 1);
	n->slab = slab;
	n->count = 0;
	return n;
}

void
node_free(struct node *n)
{
	if (n->slab)
		slab_free(n);
	else
		free(n);
}

struct leaf *
node_new_leaf(unsigned width, unsigned cap)
{
	struct leaf *l = (struct leaf *)(void *)new_node(leaf_bytes(width, cap));

	if (l == NULL)
		return NULL;
	l->head.height = 0;
	l->head.width = width & 3;
	l->head.cap = (uint8_t)cap;
	return l;
}

struct inner *
node_new_inner(const struct node *below)
{
	struct inner *in = (struct inner *)(void *)new_node(sizeof(*in));

	if (in == NULL)
		return NULL;
	in->head.height = (uint8_t)(below->height + 1);
	in->head.width = below->width;
	in->head.cap = FAN;
	assert(in->head.height < MAX_HEIGHT);
	return in;
}

static unsigned
cap_for(unsigned wanted, unsigned cap)
{
	if (cap < FIRST_CAP)
		cap = FIRST_CAP;
	while (cap < wanted)
		cap *= 2;
	return cap < FAN ? cap : FAN;
}

/* The leaf, which nobody else holds, with more room. */
static struct leaf *
larger_leaf(struct node **slot, unsigned cap)
{
	struct leaf *old = leaf_of(*slot), *l;
	const unsigned width = old->head.width;

	if (old->head.slab) {
		l = node_new_leaf(width, cap);
		if (l == NULL)
			return NULL;
		memcpy(l->item, old->item, (size_t)old->head.count * width * sizeof(l->item[0]));
		l->head.count = old->head.count;
		node_free(&old->head);
	} else {
		l = realloc(old, leaf_bytes(width, cap));
		if (l == NULL)
			return NULL;
		l->head.cap = (uint8_t)cap;
	}
	*slot = &l->head;
	return l;
}

/* *slot becomes a leaf that may be written and has at least `cap` places. */
static struct leaf *
own_leaf(struct node **slot, unsigned cap)
{
	struct leaf *old = leaf_of(*slot), *l;
	size_t i, items = (size_t)old->head.count * old->head.width;

	if (unique_node(&old->head)) {
		if (cap <= old->head.cap)
			return old;
		return larger_leaf(slot, cap_for(cap, old->head.cap));
	}
	l = node_new_leaf(old->head.width, cap > old->head.count ? cap_for(cap, 0) : old->head.count);
	if (l == NULL)
		return NULL;
	for (i = 0; i < items; i++)
		l->item[i] = json_ref(old->item[i]);
	l->head.count = old->head.count;
	drop_now(&old->head);
	*slot = &l->head;
	return l;
}

static struct inner *
own_inner(struct node **slot)
{
	struct inner *old = inner_of(*slot), *in;
	unsigned i;

	if (unique_node(&old->head))
		return old;
	in = node_new_inner(old->child[0]);
	if (in == NULL)
		return NULL;
	for (i = 0; i < old->head.count; i++) {
		seq_ref(old->child[i]);
		in->child[i] = old->child[i];
		in->end[i] = old->end[i];
	}
	in->head.count = old->head.count;
	drop_now(&old->head);
	*slot = &in->head;
	return in;
}

void
node_recount(struct inner *in)
{
	size_t end = 0;
	unsigned i;

	for (i = 0; i < in->head.count; i++) {
		end += seq_size(in->child[i]);
		in->end[i] = (uint32_t)end;
	}
}

/* ---- looking ---- */

const struct leaf *
seq_find(const struct node *n, size_t at, size_t *first)
{
	*first = 0;
	while (n->height > 0) {
		const struct inner *in = const_inner_of(n);
		unsigned i = child_with(in, at - *first);

		*first += places_before(in, i);
		n = in->child[i];
	}
	return const_leaf_of(n);
}

/* ---- changing ---- */

struct json **
seq_edit(struct node **slot, size_t at)
{
	struct leaf *l;

	while ((*slot)->height > 0) {
		struct inner *in = own_inner(slot);
		unsigned i;

		if (in == NULL)
			return NULL;
		i = child_with(in, at);
		at -= places_before(in, i);
		slot = &in->child[i];
	}
	l = own_leaf(slot, 0);
	return l == NULL ? NULL : &l->item[at * l->head.width];
}

/* The way from the root down to a leaf, every inner node of it writable. */
struct path {
	struct inner *node[MAX_HEIGHT];
	unsigned child[MAX_HEIGHT];
	unsigned depth;
	struct node **leaf;
	size_t at; /* in the leaf */
};

/* `at` may be the size of the tree: then the way leads to behind the last place. */
static int
go_down(struct path *p, struct node **slot, size_t at)
{
	p->depth = 0;
	while ((*slot)->height > 0) {
		struct inner *in = own_inner(slot);
		unsigned i;

		if (in == NULL)
			return -1;
		i = child_with(in, at);
		at -= places_before(in, i);
		p->node[p->depth] = in;
		p->child[p->depth++] = i;
		slot = &in->child[i];
	}
	p->leaf = slot;
	p->at = at;
	return 0;
}

static void
put_items(struct leaf *l, size_t at, struct json *const *item)
{
	size_t width = l->head.width;
	struct json **to = &l->item[at * width];

	memmove(to + width, to, (l->head.count - at) * width * sizeof(*to));
	memcpy(to, item, width * sizeof(*to));
	l->head.count++;
}

/* Takes places from `keep` on into a new leaf on the right. */
static struct leaf *
split_leaf(struct leaf *l, unsigned keep)
{
	unsigned moved = l->head.count - keep, width = l->head.width;
	struct leaf *right = node_new_leaf(width, moved < FIRST_CAP ? FIRST_CAP : FAN);

	if (right == NULL)
		return NULL;
	memcpy(right->item, &l->item[keep * width], (size_t)moved * width * sizeof(l->item[0]));
	right->head.count = (uint8_t)moved;
	l->head.count = (uint8_t)keep;
	return right;
}

/* 0 with the items in the tree, and *right a new neighbour or NULL; -1 with nothing changed. */
static int
insert_in_leaf(struct node **slot, size_t at, struct json *const *item, struct node **right)
{
	unsigned count = (*slot)->count;
	struct leaf *l = own_leaf(slot, count < FAN ? count + 1 : FAN), *r;
	unsigned keep;

	*right = NULL;
	if (l == NULL)
		return -1;
	if (count < FAN) {
		put_items(l, at, item);
		return 0;
	}
	keep = at == FAN ? FAN : FAN / 2;
	r = split_leaf(l, keep);
	if (r == NULL)
		return -1;
	if (at >= keep)
		put_items(r, at - keep, item);
	else
		put_items(l, at, item);
	*right = &r->head;
	return 0;
}

static void
put_child(struct inner *in, unsigned at, struct node *child)
{
	memmove(&in->child[at + 1], &in->child[at], (in->head.count - at) * sizeof(in->child[0]));
	in->child[at] = child;
	in->head.count++;
}

/* As insert_in_leaf, one level up: `child` becomes the child number `at`. */
static int
insert_in_inner(struct inner *in, unsigned at, struct node *child, struct node **right)
{
	unsigned keep = at == FAN ? FAN : FAN / 2, i;
	struct inner *r;

	*right = NULL;
	if (in->head.count < FAN) {
		put_child(in, at, child);
		node_recount(in);
		return 0;
	}
	r = node_new_inner(child);
	if (r == NULL)
		return -1;
	for (i = keep; i < FAN; i++)
		r->child[i - keep] = in->child[i];
	r->head.count = (uint8_t)(FAN - keep);
	in->head.count = (uint8_t)keep;
	if (at >= keep)
		put_child(r, at - keep, child);
	else
		put_child(in, at, child);
	node_recount(in);
	node_recount(r);
	*right = &r->head;
	return 0;
}

static int
grow_root(struct node **root, struct node *right)
{
	struct inner *in = node_new_inner(right);

	if (in == NULL)
		return -1;
	in->child[0] = *root;
	in->child[1] = right;
	in->head.count = 2;
	node_recount(in);
	*root = &in->head;
	return 0;
}

/* Counts one more place all the way up, and gives each level the neighbour made below it. */
static int
go_up(struct path *p, struct node **root, struct node *right)
{
	while (p->depth > 0) {
		struct inner *in = p->node[--p->depth];
		unsigned i = p->child[p->depth];
		struct node *above = NULL;

		if (right == NULL)
			for (; i < in->head.count; i++)
				in->end[i]++;
		else if (insert_in_inner(in, i + 1, right, &above) == -1)
			goto fail;
		right = above;
	}
	if (right == NULL || grow_root(root, right) == 0)
		return 0;
fail:
	drop_now(right);
	return -1;
}

static int
first_leaf(struct node **root, unsigned width)
{
	struct leaf *l = node_new_leaf(width, FIRST_CAP);

	if (l == NULL)
		return -1;
	*root = &l->head;
	return 0;
}

int
seq_insert(struct node **root, size_t at, unsigned width, struct json *const *item)
{
	struct path path;
	struct node *right;
	unsigned i;

	if ((*root == NULL && first_leaf(root, width) == -1) || go_down(&path, root, at) == -1 ||
	    insert_in_leaf(path.leaf, path.at, item, &right) == -1) {
		for (i = 0; i < width; i++)
			json_unref(item[i]);
		return -1;
	}
	return go_up(&path, root, right);
}

/* ---- erasing ---- */

static void
join_leaves(struct leaf *left, const struct leaf *right)
{
	size_t width = left->head.width, base = left->head.count * width;
	size_t i, items = right->head.count * width;

	for (i = 0; i < items; i++)
		left->item[base + i] = json_ref(right->item[i]);
	left->head.count = (uint8_t)(left->head.count + right->head.count);
}

static void
join_inner(struct inner *left, const struct inner *right)
{
	unsigned i;

	for (i = 0; i < right->head.count; i++) {
		seq_ref(right->child[i]);
		left->child[left->head.count++] = right->child[i];
	}
	node_recount(left);
}

static void
take_child_out(struct inner *in, unsigned at)
{
	drop_now(in->child[at]);
	in->head.count--;
	memmove(&in->child[at], &in->child[at + 1], (in->head.count - at) * sizeof(in->child[0]));
}

/* Joins child `at` with the one behind it. Without memory they simply stay two. */
static void
join_children(struct inner *in, unsigned at)
{
	struct node **left = &in->child[at], *right = in->child[at + 1];

	if ((*left)->count + right->count > FAN)
		return;
	if (right->height == 0) {
		if (own_leaf(left, (*left)->count + right->count) == NULL)
			return;
		join_leaves(leaf_of(*left), const_leaf_of(right));
	} else {
		if (own_inner(left) == NULL)
			return;
		join_inner(inner_of(*left), const_inner_of(right));
	}
	take_child_out(in, at + 1);
}

static void
mend_child(struct inner *in, unsigned at)
{
	unsigned count = in->child[at]->count;

	if (count == 0)
		take_child_out(in, at);
	else if (count <= POOR && at + 1 < in->head.count)
		join_children(in, at);
	else if (count <= POOR && at > 0)
		join_children(in, at - 1);
	node_recount(in);
}

static void
shrink_root(struct node **root)
{
	if ((*root)->count == 0) {
		drop_now(*root);
		*root = NULL;
		return;
	}
	while ((*root)->height > 0 && (*root)->count == 1) {
		struct node *child = inner_of(*root)->child[0];

		seq_ref(child);
		drop_now(*root);
		*root = child;
	}
}

int
seq_erase(struct node **root, size_t at)
{
	struct path p;
	struct leaf *l;
	size_t width, i;

	if (go_down(&p, root, at) == -1)
		return -1;
	l = own_leaf(p.leaf, 0);
	if (l == NULL)
		return -1;
	width = l->head.width;
	for (i = 0; i < width; i++)
		json_unref(l->item[p.at * width + i]);
	l->head.count--;
	memmove(&l->item[p.at * width], &l->item[(p.at + 1) * width],
	    (l->head.count - p.at) * width * sizeof(l->item[0]));
	while (p.depth > 0) {
		p.depth--;
		mend_child(p.node[p.depth], p.child[p.depth]);
	}
	shrink_root(root);
	return 0;
}
