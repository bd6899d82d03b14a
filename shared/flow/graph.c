/* Edges, order, cycles. Everything is linear in operations and edges. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

struct edges {
	struct flow_edge *list;
	size_t count, cap;
	bool never; /* one of them cannot hold, and leads to no operation */
};

/* ---- Conditions ---- */

static void
read_when(struct reader *r, const struct json *v, struct flow_edge *edge)
{
	struct when_fields f = {0};
	int n;

	read_object(r, OBJECT_WHEN, v, &f);
	n = (f.equals != NULL) + (f.exists != NULL) + (f.matches != NULL);
	if (n != 1)
		problem(r, v, "\"when\" needs exactly one of \"equals\", \"exists\" and \"matches\"");
	edge->pointer = f.pointer;
	edge->value = f.equals != NULL ? f.equals : f.exists != NULL ? f.exists : f.matches;
	edge->when = f.equals != NULL ? FLOW_WHEN_EQUALS
	    : f.exists != NULL	      ? FLOW_WHEN_EXISTS
				      : FLOW_WHEN_MATCHES;
	if (f.exists != NULL && json_type(f.exists) != JSON_BOOL)
		problem(r, f.exists, "\"exists\" must be true or false, not %s", found(f.exists));
	if (f.matches != NULL)
		check_pattern(r, "matches", f.matches);
}

/* ---- Needs of one entry ---- */

static void
add_edge(struct reader *r, struct edges *e, const struct flow_edge *edge)
{
	size_t cap = e->cap ? 2 * e->cap : 8;
	struct flow_edge *list;

	if (e->count == e->cap) {
		list = realloc(e->list, cap * sizeof(*list));
		if (list == NULL) {
			out_of_memory(r);
			return;
		}
		e->list = list;
		e->cap = cap;
	}
	/* Bytes are compared when edges are shared, so also those between the members. */
	memset(&e->list[e->count], 0, sizeof(*edge));
	e->list[e->count].op = edge->op;
	e->list[e->count].on = edge->on;
	e->list[e->count].when = edge->when;
	e->list[e->count].pointer = edge->pointer;
	e->list[e->count++].value = edge->value;
}

static void
itself(struct reader *r, const struct json *at)
{
	hint(problem(r, at, "it needs itself"), "take it out: an operation starts when what it needs has ended");
}

static void
add_range(struct reader *r, struct edges *e, const struct draft *d, const struct name *name,
    const struct json *at, struct flow_edge *edge)
{
	uint32_t i;

	if (&r->drafts[name->draft] == d) {
		itself(r, at);
		return;
	}
	for (i = 0; i < name->count && !r->nomem; i++) {
		edge->op = name->first + i;
		add_edge(r, e, edge);
	}
}

static void
read_need(struct reader *r, struct edges *e, const struct draft *d, const struct json *v)
{
	const struct key k = {.name = "needs", .type = "an id or {op, on, when}"};
	struct need_fields f = {0};
	struct flow_edge edge = {0};
	const struct name *name;
	bool holds;

	if (json_type(v) == JSON_OBJECT)
		read_object(r, OBJECT_NEED, v, &f);
	else
		read_id(r, &k, v, &f.op);
	edge.on = (uint8_t)f.on;
	if (f.when != NULL)
		read_when(r, f.when, &edge);
	if (f.op == NULL)
		return;
	v = json_type(v) == JSON_OBJECT ? json_get(v, "op") : v;
	name = find_name(r, f.op);
	if (name == NULL)
		dangling(r, v, "needs", f.op);
	else
		add_range(r, e, d, name, v, &edge);
	/* Without an item it has completed, and nothing was answered. */
	if (name != NULL && r->drafts[name->draft].each && name->count == 0 && !r->failed &&
	    flow_edge_holds(&edge, FLOW_COMPLETED, NULL, &holds, NULL) == 0)
		e->never |= !holds;
}

static void
read_indices(struct reader *r, struct edges *e, const struct draft *d)
{
	struct json_iter it = json_iterate(d->dep_indices);
	const struct json *v;
	struct flow_edge edge = {0};
	uint64_t index;

	while (json_next(&it, NULL, &v)) {
		if (!json_uint64(v, &index) || index >= r->ndrafts) {
			problem(r, v, "\"dep_indices\" holds what is no index of the plan");
			return;
		}
		if (&r->drafts[index] == d) {
			itself(r, v);
			return;
		}
		edge.op = (uint32_t)index;
		add_edge(r, e, &edge);
	}
}

static int
compare_edges(const void *a, const void *b)
{
	uint32_t x = ((const struct flow_edge *)a)->op, y = ((const struct flow_edge *)b)->op;

	return x < y ? -1 : x > y;
}

static void
sort_edges(struct reader *r, struct edges *e, const struct draft *d)
{
	size_t i;

	if (e->count == 0)
		return;
	qsort(e->list, e->count, sizeof(*e->list), compare_edges);
	for (i = 1; i < e->count && !r->failed; i++)
		if (e->list[i].op == e->list[i - 1].op)
			problem(r, d->needs != NULL ? d->needs : d->object,
			    "it needs \"%s\" twice", r->own->ops[e->list[i].op].id);
}

/* A checkpoint may hold both forms; they must say the same. */
static void
compare_forms(struct reader *r, const struct edges *e, const struct draft *d)
{
	struct edges by_index = {0};
	size_t i;

	read_indices(r, &by_index, d);
	sort_edges(r, &by_index, d);
	for (i = 0; i < by_index.count && i < e->count; i++)
		if (by_index.list[i].op != e->list[i].op)
			break;
	if (i != by_index.count || i != e->count)
		problem(r, d->dep_indices, "\"dep_indices\" and \"needs\" name different operations");
	free(by_index.list);
}

static void
read_needs(struct reader *r, struct draft *d)
{
	struct json_iter it = json_iterate(d->needs);
	const struct flow_edge *kept;
	const struct json *v;
	struct edges e = {0};
	uint32_t i;

	if (d->needs != NULL)
		while (json_next(&it, NULL, &v))
			read_need(r, &e, d, v);
	else if (d->dep_indices != NULL)
		read_indices(r, &e, d);
	sort_edges(r, &e, d);
	if (d->needs != NULL && d->dep_indices != NULL && !r->failed)
		compare_forms(r, &e, d);
	r->edges += (uint64_t)e.count * d->count;
	kept = e.count > 0 ? intern(&r->interned, e.list, e.count * sizeof(*e.list)) : NULL;
	if (e.count > 0 && kept == NULL)
		out_of_memory(r);
	for (i = 0; i < d->count; i++) {
		r->own->ops[d->first + i].needs = kept;
		r->own->ops[d->first + i].nneeds = (uint32_t)e.count;
		r->own->ops[d->first + i].never |= e.never;
	}
	free(e.list);
}

/* ---- Variables that stand for predecessors ---- */

static int
compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *
variable_name(const char *id, char *to)
{
	char *p = to;

	for (; *id != '\0'; id++)
		*p++ = *id == '.' || *id == '-' ? '_' : *id;
	*p = '\0';
	return to;
}

static void
check_variables(struct reader *r, const struct draft *d)
{
	const struct flow_op *op = &r->own->ops[d->first];
	char (*text)[FLOW_MAX_ID + 1];
	const char **names;
	uint32_t i;

	if (d->count == 0 || d->own || op->nneeds < 2 || op->nneeds > FLOW_MAX_DEP_VARIABLES)
		return;
	text = calloc(op->nneeds, sizeof(*text));
	names = calloc(op->nneeds, sizeof(*names));
	if (text == NULL || names == NULL) {
		out_of_memory(r);
		goto out;
	}
	for (i = 0; !r->nomem && i < op->nneeds; i++)
		names[i] = variable_name(r->own->ops[op->needs[i].op].id, text[i]);
	if (!r->nomem)
		qsort(names, op->nneeds, sizeof(*names), compare_texts);
	for (i = 1; !r->nomem && i < op->nneeds; i++) {
		if (strcmp(names[i - 1], names[i]) != 0)
			continue;
		hint(problem(r, d->needs != NULL ? d->needs : d->object,
			 "two of its predecessors would share the variable FLOWSUP_DEP_%s", names[i]),
		    "'.' and '-' both become '_' in the name of a variable; rename one of them");
		break;
	}
out:
	free(text);
	free(names);
}

void
read_edges(struct reader *r)
{
	struct draft *d;
	size_t i;
	bool failed = r->failed;

	for (i = 0; i < r->ndrafts && !r->nomem; i++) {
		d = &r->drafts[i];
		if (d->needs == NULL && d->dep_indices == NULL)
			continue;
		r->failed = false;
		if (d->id != NULL)
			snprintf(r->context, sizeof(r->context), "operation \"%s\": ", d->id);
		if (d->needs != NULL && json_type(d->needs) != JSON_ARRAY)
			problem(r, d->needs, "\"depends_on\" must be a list of ids");
		else
			read_needs(r, d);
		if (!r->failed && !failed)
			check_variables(r, d);
		failed = failed || r->failed;
		r->context[0] = '\0';
	}
	r->failed = failed;
	if (r->edges > FLOW_MAX_EDGES)
		hint(problem(r, r->plan, "more than %d edges between operations", FLOW_MAX_EDGES),
		    "put one operation between two groups that all need each other");
}

/* ---- Order ---- */

static int
fill_successors(struct reader *r, uint32_t *next)
{
	struct flow_owned *own = r->own;
	const struct flow_op *op;
	uint32_t *at;
	size_t i, k, total = 0;

	own->successors = calloc((size_t)r->edges + 1, sizeof(*own->successors));
	if (own->successors == NULL)
		return -1;
	for (i = 0; i < own->f.nops; i++)
		for (k = 0; k < own->ops[i].nneeds; k++)
			own->ops[own->ops[i].needs[k].op].nsuccessors++;
	for (i = 0; i < own->f.nops; i++) {
		own->ops[i].successors = own->successors + total;
		next[i] = (uint32_t)total;
		total += own->ops[i].nsuccessors;
	}
	for (i = 0; i < own->f.nops; i++) {
		op = &own->ops[i];
		for (k = 0; k < op->nneeds; k++) {
			at = &next[op->needs[k].op];
			own->successors[(*at)++] = (uint32_t)i;
		}
	}
	return 0;
}

/* From what has no predecessor that is not placed; `last`: what is of the synthesis too. */
static size_t
order_more(struct flow_owned *own, uint32_t *unmet, size_t placed, bool last)
{
	const struct flow_op *op;
	size_t head, tail = placed;
	uint32_t i, k;

	for (i = 0; i < own->f.nops; i++)
		if (unmet[i] == 0 && flow_is_of_synthesis(&own->f, i) == last)
			own->order[tail++] = i;
	for (head = placed; head < tail; head++) {
		op = &own->ops[own->order[head]];
		for (k = 0; k < op->nsuccessors; k++) {
			i = op->successors[k];
			if (--unmet[i] == 0 && (last || !flow_is_of_synthesis(&own->f, i)))
				own->order[tail++] = i;
		}
	}
	return tail;
}

/* Kahn's order, level by level; unmet[i] is above 0 for what is on a cycle or behind one. */
size_t
order_operations(struct flow_owned *own, uint32_t *unmet)
{
	size_t i;

	for (i = 0; i < own->f.nops; i++)
		unmet[i] = own->ops[i].nneeds;
	return order_more(own, unmet, order_more(own, unmet, 0, false), true);
}

static uint32_t
unmet_predecessor(const struct flow_op *op, const uint32_t *unmet)
{
	uint32_t k = 0;

	while (unmet[op->needs[k].op] == 0)
		k++;
	return op->needs[k].op;
}

/* Follows what is unmet backwards until it meets itself: that is a cycle, found in reverse. */
static uint32_t
find_cycle(const struct flow_owned *own, const uint32_t *unmet, bool *seen)
{
	uint32_t at = 0;

	while (unmet[at] == 0)
		at++;
	while (!seen[at]) {
		seen[at] = true;
		at = unmet_predecessor(&own->ops[at], unmet);
	}
	return at;
}

/* All of it where it is so short; else so many from its beginning, and the last. With their longest ids
 * these fit an error's text. */
enum { CYCLE_SHORT = 6, CYCLE_SHOWN = 3 };

static void
tell_cycle(struct reader *r, const uint32_t *unmet, bool *seen)
{
	const struct flow_op *ops = r->own->ops;
	uint32_t first = find_cycle(r->own, unmet, seen), least = first, at = first, shown[CYCLE_SHORT];
	struct buf b = {0};
	size_t length = 0, most, i;

	do {
		at = unmet_predecessor(&ops[at], unmet);
		least = at < least ? at : least;
		length++;
	} while (at != first);
	most = length <= CYCLE_SHORT ? length : CYCLE_SHOWN;
	/* Backwards from the least, so the places at the end of the list come first in order. */
	for (at = least, i = length; i > 0; i--) {
		at = unmet_predecessor(&ops[at], unmet);
		if (i - 1 < most)
			shown[i - 1] = at;
	}
	for (i = 0; i < most; i++)
		buf_printf(&b, "%s -> ", ops[shown[i]].id);
	if (length > most)
		buf_printf(&b, "... (%zu more) ... -> %s -> ", length - most - 1,
		    ops[unmet_predecessor(&ops[least], unmet)].id);
	buf_puts(&b, ops[least].id);
	if (b.failed)
		out_of_memory(r);
	else
		hint(problem_at(r, ops[least].where, "operations wait for each other: %.450s",
			 buf_text(&b)),
		    "take one of these out of the \"needs\" of the next");
	buf_clear(&b);
}

/* Nothing that a person writes can; a checkpoint is no person. */
static void
check_last(struct reader *r)
{
	const struct flow *f = &r->own->f;
	const struct flow_op *behind;

	if (f->synthesis_op == SIZE_MAX || f->ops[f->synthesis_op].nsuccessors == 0)
		return;
	behind = &f->ops[f->ops[f->synthesis_op].successors[0]];
	problem_at(r, behind->where, "operation \"%s\" waits for the synthesis, which waits for all others",
	    behind->id);
}

void
make_graph(struct reader *r)
{
	struct flow_owned *own = r->own;
	size_t n = own->f.nops;
	uint32_t *counts = calloc(n + 1, sizeof(*counts));
	bool *seen = calloc(n + 1, sizeof(*seen));

	own->order = calloc(n + 1, sizeof(*own->order));
	if (counts == NULL || seen == NULL || own->order == NULL || fill_successors(r, counts) < 0)
		out_of_memory(r);
	else if (order_operations(own, counts) < n)
		tell_cycle(r, counts, seen);
	else
		check_last(r);
	own->f.order = own->order;
	free(counts);
	free(seen);
}
