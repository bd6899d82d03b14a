/* Edges of operations that are added. Arrays lie in the flow's memory and grow by doubling. */
#include <assert.h>

#include "growth.h"

enum { FIRST_ROOM = 8 };

/* ---- Arrays ---- */

static int
need_room(struct flow_owned *own, uint32_t i, uint32_t more)
{
	struct place *p = &own->growth->places[i];
	struct flow_op *op = &own->ops[i];
	uint32_t room = p->needs_room > FIRST_ROOM ? p->needs_room : FIRST_ROOM;
	struct flow_edge *list;

	if (p->needs_room >= op->nneeds + more)
		return 0;
	while (room < op->nneeds + more)
		room *= 2;
	list = arena_take(&own->arena, room * sizeof(*list));
	if (list == NULL)
		return -1;
	if (op->nneeds > 0)
		memcpy(list, op->needs, op->nneeds * sizeof(*list));
	op->needs = list;
	p->needs_room = room;
	return 0;
}

static int
successor_room(struct flow_owned *own, uint32_t i, uint32_t more)
{
	struct place *p = &own->growth->places[i];
	struct flow_op *op = &own->ops[i];
	uint32_t room = p->successors_room > FIRST_ROOM ? p->successors_room : FIRST_ROOM, *list;

	if (p->successors_room >= op->nsuccessors + more)
		return 0;
	while (room < op->nsuccessors + more)
		room *= 2;
	list = arena_take(&own->arena, room * sizeof(*list));
	if (list == NULL)
		return -1;
	if (op->nsuccessors > 0)
		memcpy(list, op->successors, op->nsuccessors * sizeof(*list));
	op->successors = list;
	p->successors_room = room;
	return 0;
}

/* The arrays are this flow's own here, and not constant. */
static struct flow_edge *
needs_of(struct flow_owned *own, uint32_t i)
{
	assert(own->growth->places[i].needs_room > 0);
	return (struct flow_edge *)(uintptr_t)own->ops[i].needs;
}

static void
insert_need(struct flow_owned *own, uint32_t i, const struct flow_edge *edge)
{
	struct flow_edge *list = needs_of(own, i);
	uint32_t at = own->ops[i].nneeds++;

	for (; at > 0 && list[at - 1].op > edge->op; at--)
		list[at] = list[at - 1];
	list[at] = *edge;
}

static int
add_edge(struct flow_owned *own, uint32_t i, const struct flow_edge *edge)
{
	uint32_t from = edge->op;

	if (need_room(own, i, 1) != 0 || successor_room(own, from, 1) != 0)
		return -1;
	insert_need(own, i, edge);
	((uint32_t *)(uintptr_t)own->ops[from].successors)[own->ops[from].nsuccessors++] = i;
	own->growth->edges++;
	return 0;
}

static int
add_edges_of(struct flow_owned *own, uint32_t i, uint32_t like)
{
	struct flow_edge edge;
	uint32_t n;

	for (n = 0; n < own->ops[like].nneeds; n++) {
		edge = own->ops[like].needs[n];
		if (add_edge(own, i, &edge) != 0)
			return -1;
	}
	return 0;
}

static uint32_t
find_need(const struct flow_op *op, uint32_t from)
{
	uint32_t low = 0, high = op->nneeds, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (op->needs[middle].op == from)
			return middle;
		if (op->needs[middle].op < from)
			low = middle + 1;
		else
			high = middle;
	}
	return op->nneeds;
}

/* s needs `to` in place of `from`, under the same conditions. */
static int
turn_edge(struct flow_owned *own, uint32_t s, uint32_t from, uint32_t to)
{
	uint32_t at = find_need(&own->ops[s], from);
	struct flow_edge edge, *list;

	assert(at < own->ops[s].nneeds);
	if (need_room(own, s, 0) != 0)
		return -1;
	list = needs_of(own, s);
	edge = list[at];
	own->ops[s].nneeds--;
	memmove(&list[at], &list[at + 1], (own->ops[s].nneeds - at) * sizeof(*list));
	edge.op = to;
	return add_edge(own, s, &edge);
}

/* ---- The three kinds ---- */

/* A retry sees what its predecessor saw, and that; what needed that needs the retry. */
static int
splice(struct flow_owned *own, uint32_t i, uint32_t anchor)
{
	const struct flow_edge always = {.op = anchor, .on = FLOW_ON_ALWAYS};
	const uint32_t *successors = own->ops[anchor].successors;
	uint32_t n = own->ops[anchor].nsuccessors, k;

	own->ops[anchor].nsuccessors = 0;
	own->growth->places[anchor].successors_room = 0; /* the old array is read below */
	for (k = 0; k < n; k++)
		if (turn_edge(own, successors[k], anchor, i) != 0)
			return -1;
	own->growth->places[anchor].replaced_by = i + 1;
	own->growth->places[i].stands_for = flow_stands_for(&own->f, anchor) + 1;
	return add_edges_of(own, i, anchor) != 0 ? -1 : add_edge(own, i, &always);
}

static bool
is_item_of(const struct flow *f, uint32_t i, uint32_t template)
{
	const struct flow_grown *g = flow_grown(f, i);

	return g != NULL && g->kind == FLOW_GROWN_ITEM && g->parent == template;
}

static int
add_item(struct flow_owned *own, uint32_t i, uint32_t template)
{
	const struct flow_edge after = {.op = template, .on = FLOW_ON_SUCCESS};
	struct flow_edge edge;
	uint32_t n, s;

	for (n = 0; n < own->ops[template].nsuccessors; n++) {
		s = own->ops[template].successors[n];
		if (is_item_of(&own->f, s, template))
			break; /* items come behind what needs their template */
		edge = own->ops[s].needs[find_need(&own->ops[s], template)];
		edge.op = i;
		if (add_edge(own, s, &edge) != 0)
			return -1;
	}
	return add_edges_of(own, i, template) != 0 ? -1 : add_edge(own, i, &after);
}

static int
add_spawn(struct flow_owned *own, uint32_t i, const struct flow_grown *g)
{
	struct flow_edge edge = {.on = FLOW_ON_SUCCESS};

	if (g->parent == FLOW_NO_OP || json_is_true(json_get(g->entry, "independent")))
		return 0;
	edge.op = flow_final(&own->f, g->parent);
	return add_edge(own, i, &edge);
}

int
growth_add_edges(struct flow_owned *own, uint32_t i, const struct flow_grown *g)
{
	switch (g->kind) {
	case FLOW_GROWN_SPAWN:
		return add_spawn(own, i, g);
	case FLOW_GROWN_RETRY:
		return splice(own, i, g->parent);
	case FLOW_GROWN_ITEM:
		return add_item(own, i, g->parent);
	}
	return 0;
}

static bool
has_items(const struct flow *f, uint32_t i)
{
	uint32_t n;

	for (n = 0; n < f->ops[i].nsuccessors; n++)
		if (is_item_of(f, f->ops[i].successors[n], i))
			return true;
	return false;
}

int
flow_expanded(struct flow *f, uint32_t i, struct err *e)
{
	struct flow_owned *own = owned(f);
	struct flow_edge *edge;
	uint32_t n, s;

	/* Without an item there is nobody else to ask what an edge wants to know. */
	if (!has_items(f, i))
		return 0;
	for (n = 0; n < f->ops[i].nsuccessors; n++) {
		s = f->ops[i].successors[n];
		if (is_item_of(f, s, i))
			continue;
		if (need_room(own, s, 0) != 0)
			return err_nomem(e);
		edge = &needs_of(own, s)[find_need(&f->ops[s], i)];
		*edge = (struct flow_edge){.op = i, .on = FLOW_ON_ALWAYS};
	}
	return 0;
}
