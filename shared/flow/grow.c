/*
 * Operations that are added while a flow runs. An entry of spawned[] says it all; what it adds to
 * the graph is decided here, once for the live run and for every resume.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "growth.h"

/* ---- What the document says ---- */

bool
flow_may_grow(const struct flow *f)
{
	size_t i;

	if (f->unplanned) /* nothing stands in the way of the plan */
		return false;
	if (f->reactive != NULL && !slice_is(json_text(f->reactive), "off"))
		return true;
	for (i = 0; i < f->nroles; i++)
		if (f->roles[i].escalate_to != NULL)
			return true;
	for (i = 0; i < f->nplanned; i++)
		if (f->ops[i].how->foreach_pointer != NULL)
			return true;
	return false;
}

bool
flow_reactive_allows(const struct flow *f, const char *role)
{
	struct json_iter it = json_iterate(f->reactive);
	const struct json *one;

	if (slice_is(json_text(f->reactive), "all"))
		return true;
	while (role != NULL && json_next(&it, NULL, &one))
		if (slice_is(json_text(one), role))
			return true;
	return false;
}

size_t
flow_max_spawn(const struct flow *f)
{
	size_t planned = f->nplanned - (f->planner_op != SIZE_MAX) - (f->synthesis_op != SIZE_MAX);

	if (f->max_ops < 0)
		return FLOW_DEFAULT_MAX_SPAWN;
	return (uint64_t)f->max_ops > planned ? (size_t)f->max_ops - planned : 0;
}

/* Items of a foreach are as many as its list has, where nobody has said how many may be. */
size_t
flow_max_growth(const struct flow *f)
{
	size_t most = FLOW_MAX_OPERATIONS > f->nplanned ? FLOW_MAX_OPERATIONS - f->nplanned : 0;
	size_t i;

	if (f->max_ops >= 0)
		return flow_max_spawn(f);
	for (i = 0; i < f->nplanned; i++)
		if (f->ops[i].how->foreach_pointer != NULL)
			return most;
	return flow_max_spawn(f);
}

const struct flow_role *
flow_find_role(const struct flow *f, const char *name)
{
	size_t i;

	for (i = 0; name != NULL && i < f->nroles; i++)
		if (strcmp(f->roles[i].name, name) == 0)
			return &f->roles[i];
	return NULL;
}

/* ---- Nodes and chains ---- */

const struct flow_grown *
flow_grown(const struct flow *f, uint32_t i)
{
	return i < f->nplanned ? NULL : &owned(f)->growth->grown[i - f->nplanned];
}

const char *
flow_node_id(const struct flow *f, uint32_t i)
{
	const struct growth *g = owned(f)->growth;

	return g == NULL ? NULL : json_cstr_of(g->places[i].node);
}

static size_t
indexed(const struct json *object, const char *name)
{
	uint64_t i;

	return object != NULL && json_uint64(json_get(object, name), &i) ? (size_t)i : SIZE_MAX;
}

size_t
flow_find_node(const struct flow *f, const char *node_id)
{
	const struct growth *g = owned(f)->growth;

	return g == NULL || node_id == NULL ? SIZE_MAX : indexed(g->by_node, node_id);
}

size_t
growth_find(const struct flow_owned *own, const char *id)
{
	return own->growth == NULL ? SIZE_MAX : indexed(own->growth->by_id, id);
}

bool
flow_is_replaced(const struct flow *f, uint32_t i)
{
	return owned(f)->growth != NULL && owned(f)->growth->places[i].replaced_by != 0;
}

uint32_t
flow_final(const struct flow *f, uint32_t i)
{
	while (flow_is_replaced(f, i))
		i = owned(f)->growth->places[i].replaced_by - 1;
	return i;
}

static const char *
program_of(const struct flow *f, size_t i)
{
	const struct flow_role *role = f->ops[i].kind == FLOW_INSTRUCTION ? f->ops[i].how->role : NULL;

	return role != NULL ? role->provider : NULL;
}

size_t
flow_inherited(const struct flow *f, uint32_t i)
{
	const char *inherit = f->ops[i].how->inherit_context, *mine = program_of(f, i), *of_last;
	size_t from = inherit != NULL ? flow_find(f, inherit) : SIZE_MAX;
	uint32_t last;

	if (from == SIZE_MAX)
		return SIZE_MAX;
	last = flow_final(f, (uint32_t)from);
	of_last = program_of(f, last);
	return mine != NULL && of_last != NULL && strcmp(mine, of_last) == 0 ? last : from;
}

uint32_t
flow_stands_for(const struct flow *f, uint32_t i)
{
	const struct growth *g = owned(f)->growth;

	return g == NULL || g->places[i].stands_for == 0 ? i : g->places[i].stands_for - 1;
}

unsigned
flow_chain_length(const struct flow *f, uint32_t i)
{
	unsigned n = 0;

	for (i = flow_stands_for(f, i); flow_is_replaced(f, i); n++)
		i = owned(f)->growth->places[i].replaced_by - 1;
	return n;
}

bool
flow_is_synthesis(const struct flow *f, uint32_t i)
{
	return flow_stands_for(f, i) == f->synthesis_op;
}

bool
flow_is_of_synthesis(const struct flow *f, uint32_t i)
{
	const struct growth *g = owned(f)->growth;

	return i == f->synthesis_op || (g != NULL && g->places[i].of_synthesis);
}

size_t
flow_count_of_synthesis(const struct flow *f)
{
	const struct growth *g = owned(f)->growth;

	return (f->synthesis_op != SIZE_MAX) + (g != NULL ? g->of_synthesis : 0);
}

/* ---- Room ---- */

static int
make_room(struct flow_owned *own, struct growth *g, size_t room)
{
	struct flow_op *ops;

	g->room = own->f.nops + room;
	ops = realloc(own->ops, (g->room + 1) * sizeof(*ops));
	if (ops == NULL)
		return -1;
	own->f.ops = own->ops = ops;
	/* Pages that are never touched are never given. */
	g->places = calloc(g->room + 1, sizeof(*g->places));
	g->grown = calloc(room + 1, sizeof(*g->grown));
	g->by_node = json_object();
	g->by_id = json_object();
	return g->places == NULL || g->grown == NULL || g->by_node == NULL || g->by_id == NULL ? -1 : 0;
}

static int
name_nodes(struct flow_owned *own, struct growth *g, const struct json *plan)
{
	struct json_iter it = json_iterate(plan);
	const struct json *entry, *node;
	const char *id;
	size_t i;

	while (json_next(&it, NULL, &entry)) {
		node = json_get(entry, "node_id");
		id = json_cstr_of(json_get(entry, "agent_id"));
		i = id != NULL ? flow_find(&own->f, id) : SIZE_MAX;
		if (i == SIZE_MAX || node == NULL || json_cstr_of(node) == NULL)
			continue;
		if (arena_hold(&own->arena, node) != 0)
			return -1;
		g->places[i].node = node;
		g->by_node = json_setn(g->by_node, json_text(node), json_uint(i));
	}
	return g->by_node != NULL ? 0 : -1;
}

int
flow_grow_begin(struct flow *f, const struct json *plan, size_t room, struct err *e)
{
	struct flow_owned *own = owned(f);
	struct growth *g = calloc(1, sizeof(*g));

	assert(own->growth == NULL && f->nops == f->nplanned);
	own->growth = g;
	if (g == NULL || make_room(own, g, room) != 0 || name_nodes(own, g, plan) != 0) {
		growth_clear(own);
		return err_nomem(e);
	}
	return 0;
}

void
growth_clear(struct flow_owned *own)
{
	struct growth *g = own->growth;
	size_t i;

	if (g == NULL)
		return;
	for (i = 0; g->grown != NULL && i < own->f.nops - own->f.nplanned; i++)
		json_unref((struct json *)(uintptr_t)g->grown[i].entry);
	json_unref(g->by_node);
	json_unref(g->by_id);
	free(g->places);
	free(g->grown);
	free(g);
	own->growth = NULL;
}

/* ---- All of it ---- */

static int
add_names(struct flow_owned *own, uint32_t i, const struct json *entry)
{
	struct growth *g = own->growth;
	const struct json *node = json_get(entry, "node_id");

	g->places[i].node = node;
	g->by_node = json_setn(g->by_node, json_text(node), json_uint(i));
	g->by_id = json_set(g->by_id, own->ops[i].id, json_uint(i));
	return g->by_node != NULL && g->by_id != NULL ? 0 : -1;
}

int
flow_grow(struct flow *f, const struct json *entry, uint32_t *out, struct err *e)
{
	struct flow_owned *own = owned(f);
	uint32_t i = (uint32_t)f->nops;
	struct flow_op op = {0};
	struct flow_grown g;

	assert(own->growth != NULL);
	if (f->nops == own->growth->room)
		return err_set(e, ERR_LIMIT, "no more than %zu operations can be added",
		    own->growth->room - f->nplanned);
	if (own->growth->edges > FLOW_MAX_EDGES)
		return err_set(e, ERR_LIMIT, "more than %d edges between operations", FLOW_MAX_EDGES);
	if (growth_identify(f, entry, &g, e) != 0 || growth_read(own, &g, &op, e) != 0)
		return -1;
	own->ops[i] = op;
	own->growth->grown[i - f->nplanned] = g;
	own->growth->places[i].of_synthesis = g.parent != FLOW_NO_OP && flow_is_of_synthesis(f, g.parent);
	own->growth->of_synthesis += own->growth->places[i].of_synthesis;
	json_ref(entry);
	f->nops++;
	if (add_names(own, i, entry) != 0 || growth_add_edges(own, i, &g) != 0)
		return err_nomem(e);
	*out = i;
	return 0;
}

/* ---- From a checkpoint ---- */

struct rebuilding {
	struct flow *f;
	const struct json *entries;
	bool *done;
	flow_grow_problem *tell;
	void *arg;
};

/* One pass over what is left: how many found their place, or were told. -1: out of memory. */
static int64_t
rebuild_pass(struct rebuilding *r, bool last, struct err *e)
{
	struct json_iter it = json_iterate(r->entries);
	const struct json *entry;
	int64_t placed = 0;
	uint32_t index;
	size_t i;

	for (i = 0; json_next(&it, NULL, &entry); i++) {
		struct err why = {0};

		if (r->done[i])
			continue;
		r->done[i] = flow_grow(r->f, entry, &index, &why) == 0;
		if (why.code == ERR_NOMEM) {
			*e = why;
			return -1;
		}
		if (!r->done[i] && (last || why.code != ERR_NOTFOUND)) {
			r->done[i] = true;
			r->tell(r->arg, entry, why.msg);
		}
		placed += r->done[i];
	}
	return placed;
}

static int
rebuild_all(struct rebuilding *r, struct err *e)
{
	size_t left = json_length(r->entries);
	int64_t placed;

	while (left > 0) {
		placed = rebuild_pass(r, false, e);
		if (placed < 0)
			return -1;
		left -= (size_t)placed;
		if (placed == 0)
			return rebuild_pass(r, true, e) < 0 ? -1 : 0;
	}
	return 0;
}

static int
end_foreachs(struct flow *f, const struct json *state, struct err *e)
{
	const struct json *ops = json_get(state, "ops"), *entry;
	uint32_t i;

	for (i = 0; i < f->nplanned; i++) {
		entry = growth_is_template(f, i) ? json_get(ops, f->ops[i].id) : NULL;
		if (slice_is(json_text(json_get(entry, "status")), "completed") &&
		    flow_expanded(f, i, e) != 0)
			return -1;
	}
	return 0;
}

int
flow_rebuild(struct flow *f, const struct json *state, size_t room, flow_grow_problem *tell,
    void *arg, struct err *e)
{
	struct rebuilding r = {
	    .f = f, .entries = json_get(state, "spawned"), .tell = tell, .arg = arg};
	int rc;

	if (flow_grow_begin(f, json_get(state, "plan"), room + json_length(r.entries), e) != 0)
		return -1;
	r.done = calloc(json_length(r.entries) + 1, sizeof(*r.done));
	rc = r.done != NULL ? rebuild_all(&r, e) : err_nomem(e);
	free(r.done);
	if (rc == 0)
		rc = end_foreachs(f, state, e);
	return rc == 0 ? flow_reorder(f, e) : -1;
}

int
flow_reorder(struct flow *f, struct err *e)
{
	struct flow_owned *own = owned(f);
	uint32_t *order, *unmet;
	size_t placed;

	order = realloc(own->order, (f->nops + 1) * sizeof(*order));
	if (order == NULL)
		return err_nomem(e);
	own->order = order;
	f->order = order;
	unmet = calloc(f->nops + 1, sizeof(*unmet));
	if (unmet == NULL)
		return err_nomem(e);
	placed = order_operations(own, unmet);
	free(unmet);
	return placed == f->nops ? 0 : err_set(e, ERR_REFUSED, "operations wait for each other");
}
