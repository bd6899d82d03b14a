/* The entries of a plan: operations, what a foreach makes of them, and the names they have. */
#include <stdio.h>
#include <stdlib.h>

#include "flowsup/log.h"
#include "model.h"

/* ---- One entry ---- */

static int
add_op(struct reader *r, const struct flow_op *op, const struct json *declared)
{
	struct flow_owned *own = r->own;
	size_t cap = r->ops_cap ? 2 * r->ops_cap : 16;
	struct flow_op *ops;
	const struct json **objects;

	if (own->f.nops == r->ops_cap) {
		ops = realloc(own->ops, cap * sizeof(*ops));
		if (ops != NULL)
			own->ops = ops;
		objects = realloc(own->declared, cap * sizeof(*objects));
		if (objects != NULL)
			own->declared = objects;
		if (ops == NULL || objects == NULL) {
			out_of_memory(r);
			return -1;
		}
		r->ops_cap = cap;
		own->f.ops = own->ops;
	}
	own->declared[own->f.nops] = declared;
	own->ops[own->f.nops++] = *op;
	return 0;
}

static void
read_argv(struct reader *r, const struct json *exec, struct flow_op *op)
{
	const char **list = calloc(json_length(exec) + 1, sizeof(*list));
	struct json_iter it = json_iterate(exec);
	const struct json *item;
	size_t n = 0;

	if (list == NULL) {
		out_of_memory(r);
		return;
	}
	while (json_next(&it, NULL, &item))
		list[n++] = keep_text(r, "exec", item);
	op->argv = intern(&r->interned, list, (n + 1) * sizeof(*list));
	if (op->argv == NULL)
		out_of_memory(r);
	free(list);
}

/* Exactly one of run, exec and instruction. A predecessor's `task` is an instruction. */
static void
read_work(struct reader *r, const struct json *object, struct op_fields *f, struct flow_op *op)
{
	int n = (f->run != NULL) + (f->exec != NULL) + (f->instruction != NULL);

	if (n == 0 && f->task != NULL) {
		f->instruction = f->task;
		n = 1;
	}
	if (n != 1 && !r->failed) {
		hint(problem(r, n == 0 ? object : f->exec != NULL ? f->exec : f->run,
			 n == 0 ? "says nothing to do" : "says more than one thing to do"),
		    "exactly one of \"run\", \"exec\" and \"instruction\"");
		return;
	}
	if (f->exec != NULL) {
		op->kind = FLOW_EXEC;
		read_argv(r, f->exec, op);
		return;
	}
	op->kind = f->run != NULL ? FLOW_RUN : FLOW_INSTRUCTION;
	if (f->run != NULL || f->instruction != NULL)
		op->text = keep_text(r, f->run != NULL ? "run" : "instruction",
		    f->run != NULL ? f->run : f->instruction);
}

static void
check_kind(struct reader *r, const struct json *object, const struct op_fields *f,
    const struct flow_op *op)
{
	const struct key_table *t = &key_tables[OBJECT_OPERATION];
	const struct json *v;
	size_t i;

	for (i = 0; op->kind != FLOW_INSTRUCTION && i < t->nkeys; i++) {
		if (!(t->keys[i].flags & KEY_INSTRUCTION))
			continue;
		v = json_get(object, t->keys[i].name);
		if (v != NULL)
			problem(r, v, "\"%s\" is only for operations with \"instruction\"",
			    t->keys[i].name);
	}
	if (op->kind == FLOW_INSTRUCTION && f->how.assignee == NULL && !r->failed)
		hint(problem(r, object, "an instruction needs an \"assignee\""),
		    "name a role that is declared under \"roles\"");
	if (f->how.schema != NULL && f->how.response != FLOW_RESPONSE_JSON &&
	    f->how.response != FLOW_RESPONSE_JSONL)
		hint(problem(r, f->how.schema, "\"schema\" is for responses that are JSON"),
		    "add response: json");
}

/* A terminal has one side for output and error. */
static void
check_terminal(struct reader *r, const struct json *object, struct flow_how *how)
{
	const struct json *output = json_get(object, "output");

	if (!how->tty)
		return;
	if (slice_is(json_text(output), "separate"))
		hint(problem(r, output, "on a terminal output and error are one"), "output: merged");
	how->output_merged = true;
}

/* A role that a checkpoint names may be found later, in the configuration directory. */
static void
resolve_role(struct reader *r, const struct json *object, struct flow_how *how)
{
	if (how->assignee == NULL)
		return;
	how->role = find_role(r, how->assignee);
	if (how->role == NULL && r->origin != ORIGIN_STATE)
		check_role(r, json_get(object, "assignee"));
}

/* ---- foreach ---- */

static const char *
item_text(struct reader *r, const struct json *item)
{
	struct buf b = {0};
	const char *kept = NULL;

	if (json_type(item) == JSON_STRING)
		return keep_text(r, "foreach", item);
	json_write(&b, item);
	if (b.failed)
		out_of_memory(r);
	else
		kept = arena_copy(&r->own->arena, buf_text(&b), b.len + 1);
	buf_clear(&b);
	return kept;
}

static void
expand(struct reader *r, const struct json *list, struct draft *d, struct flow_op *op)
{
	struct json_iter it = json_iterate(list);
	const struct json *item;
	char id[FLOW_MAX_ID + 24];
	int len;

	d->each = true;
	if (json_length(list) == 0)
		warning(r, list, "the list of \"foreach\" is empty: nothing is done");
	while (!r->nomem && json_next(&it, NULL, &item)) {
		len = snprintf(id, sizeof(id), "%s.%u", d->id, d->count);
		if (len > FLOW_MAX_ID) {
			problem_at(r, d->where, "the id %s is longer than %d characters", id,
			    FLOW_MAX_ID);
			return;
		}
		op->id = arena_copy(&r->own->arena, id, (size_t)len + 1);
		op->item = item_text(r, item);
		if (op->id == NULL || add_op(r, op, d->object) < 0) {
			out_of_memory(r);
			return;
		}
		d->count++;
		if (r->own->f.nops > FLOW_MAX_OPERATIONS)
			return;
	}
}

/* A pointer alone goes into the response of the only predecessor. */
static const struct json *
short_pointer(struct reader *r, const struct json *v, const struct json *needs)
{
	const struct key k = {.name = "foreach", .type = "a JSON pointer"};
	const struct json *first = json_at(needs, 0), *op;
	const char *pointer = NULL;
	struct json *o;

	read_pointer(r, &k, v, &pointer);
	op = first != NULL && json_type(first) == JSON_OBJECT ? json_get(first, "op") : first;
	if (json_length(needs) != 1 || op == NULL || pointer == NULL) {
		if (pointer != NULL)
			hint(problem(r, v, "\"foreach\" does not say whose response it goes into"),
			    "write {op: ID, pointer: /...}");
		return NULL;
	}
	o = json_set(json_object(), "op", json_ref(op));
	o = json_set(o, "pointer", json_ref(v));
	if (o == NULL || arena_hold(&r->own->arena, o) < 0)
		out_of_memory(r);
	json_unref(o);
	return r->nomem ? NULL : o;
}

static void
read_foreach(struct reader *r, const struct op_fields *f, struct flow_how *how)
{
	struct foreach_fields fields = {0};

	if (json_type(f->foreach) == JSON_STRING) {
		how->foreach_pointer = short_pointer(r, f->foreach, f->needs);
	} else if (json_type(f->foreach) == JSON_OBJECT) {
		read_object(r, OBJECT_FOREACH, f->foreach, &fields);
		how->foreach_pointer = f->foreach;
	} else if (json_type(f->foreach) != JSON_ARRAY || r->origin == ORIGIN_STATE) {
		problem(r, f->foreach, "\"foreach\" must be a list, a JSON pointer or {op, pointer}, "
		    "not %s", found(f->foreach));
	}
}

/* ---- The list ---- */

static void
read_id_of(struct reader *r, const struct json *object, struct op_fields *f, struct draft *d)
{
	const struct json *v = json_get(object, "id");

	if (r->origin == ORIGIN_STATE) {
		v = json_get(object, "agent_id");
		f->id = f->agent_id;
	}
	if (v == NULL)
		problem(r, object, "has no \"%s\"", r->origin == ORIGIN_STATE ? "agent_id" : "id");
	else
		json_position(v, &d->where);
	d->id = f->id;
}

void
name_entry(struct reader *r)
{
	const struct json *id = json_get(r->entry, r->origin == ORIGIN_STATE ? "agent_id" : "id");
	const char *text = json_cstr_of(id);

	if (text != NULL && is_id(text))
		snprintf(r->context, sizeof(r->context), "operation \"%s\": ", text);
	else
		snprintf(r->context, sizeof(r->context), "operation number %zu: ", r->ndrafts + 1);
}

static void
keep_how(struct reader *r, const struct flow_how *how, struct flow_op *op)
{
	op->how = intern(&r->interned, how, sizeof(*how));
	if (op->how == NULL)
		out_of_memory(r);
}

static void
read_operation(struct reader *r, const struct json *object, struct draft *d)
{
	struct op_fields f = {0};
	struct flow_op op = {0};
	bool failed = r->failed;

	r->failed = false; /* what follows from a problem of this entry only is not told twice */
	d->object = object;
	d->first = (uint32_t)r->own->f.nops;
	f.how = r->base;
	read_object(r, OBJECT_OPERATION, object, &f);
	read_id_of(r, object, &f, d);
	read_work(r, object, &f, &op);
	check_kind(r, object, &f, &op);
	check_terminal(r, object, &f.how);
	resolve_role(r, object, &f.how);
	check_model_entry(r, object, &f.how);
	if (f.env != NULL && !r->nomem)
		d->own_env = read_env(r, f.env, &d->nown_env);
	if (!r->nomem)
		fold_settings(r, &f.how, d->own_env, d->nown_env);
	if (f.foreach != NULL)
		read_foreach(r, &f, &f.how);
	d->needs = f.needs != NULL || f.dep_indices != NULL ? f.needs : f.depends_on;
	d->dep_indices = f.dep_indices;
	op.where = d->where;
	op.never = f.never;
	if (!r->failed) {
		keep_how(r, &f.how, &op);
		op.id = d->id;
		if (f.item != NULL)
			op.item = item_text(r, f.item);
		if (f.foreach != NULL && json_type(f.foreach) == JSON_ARRAY)
			expand(r, f.foreach, d, &op);
		else if (add_op(r, &op, object) == 0)
			d->count = 1;
	}
	r->failed = r->failed || failed;
}

static void
check_limits(struct reader *r)
{
	const struct flow *f = &r->own->f;
	struct flow_diagnostic *p;
	size_t planned = f->nops, i;

	for (i = 0; i < r->ndrafts; i++)
		planned -= r->drafts[i].own ? r->drafts[i].count : 0;
	if (f->nops > FLOW_MAX_OPERATIONS)
		problem(r, r->plan, "more than %d operations in all", FLOW_MAX_OPERATIONS);
	else if (f->max_ops >= 0 && planned > (uint64_t)f->max_ops && r->origin != ORIGIN_STATE) {
		p = problem(r, r->plan, "%zu operations are planned, and max_ops is %lld", planned,
		    (long long)f->max_ops);
		hint(p, "max_ops: %zu, or --max-ops %zu; more where operations add others", planned, planned);
	}
}

/* ---- Names ---- */

static int
compare_names(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int c = strcmp(x->id, y->id);

	if (c != 0)
		return c;
	return x->draft != y->draft ? (x->draft < y->draft ? -1 : 1) : x->first < y->first ? -1 : 1;
}

static int
compare_name(const void *id, const void *name)
{
	return strcmp(id, ((const struct name *)name)->id);
}

const struct name *
find_name(const struct reader *r, const char *id)
{
	return bsearch(id, r->names, r->nnames, sizeof(*r->names), compare_name);
}

static void
name_draft(struct reader *r, uint32_t index)
{
	const struct draft *d = &r->drafts[index];
	uint32_t i;

	/* An entry with a problem makes no operation; others may name it all the same. */
	if (d->id != NULL && (d->each || d->count == 0))
		r->names[r->nnames++] =
		    (struct name){d->id, index, d->first, d->count, d->each, d->where};
	for (i = 0; i < d->count; i++)
		r->names[r->nnames++] = (struct name){r->own->ops[d->first + i].id, index,
		    d->first + i, 1, false, d->where};
}

static void
duplicate(struct reader *r, const struct name *a, const struct name *b)
{
	struct flow_diagnostic *p;

	p = problem_at(r, b->where, "the id \"%s\" is used twice", b->id);
	if (r->drafts[a->draft].each || r->drafts[b->draft].each)
		hint(p, "a foreach makes operations %s.0, %s.1, ...",
		    r->drafts[r->drafts[a->draft].each ? a->draft : b->draft].id,
		    r->drafts[r->drafts[a->draft].each ? a->draft : b->draft].id);
	else if (a->where.line > 0)
		hint(p, "it stands first in line %u", a->where.line);
}

/* Whether an id is what an item of a foreach over a response will be called. */
static const struct name *
item_of_foreach(const struct reader *r, const char *id)
{
	const char *dot = strrchr(id, '.');
	char base[FLOW_MAX_ID + 1];
	const struct name *name;

	if (dot == NULL || dot[1] == '\0' || dot[1 + strspn(dot + 1, "0123456789")] != '\0' ||
	    (dot[1] == '0' && dot[2] != '\0'))
		return NULL;
	snprintf(base, sizeof(base), "%.*s", (int)(dot - id), id);
	name = find_name(r, base);
	if (name == NULL || name->each || name->count != 1 ||
	    r->own->ops[name->first].how->foreach_pointer == NULL)
		return NULL;
	return name;
}

static void
check_items(struct reader *r)
{
	const struct name *name;
	size_t i;

	for (i = 0; i < r->nnames; i++) {
		name = item_of_foreach(r, r->names[i].id);
		if (name != NULL)
			hint(problem_at(r, r->names[i].where,
				 "the id \"%s\" is that of an item of the foreach \"%s\"",
				 r->names[i].id, name->id),
			    "rename one of them; its items are called %s.0, %s.1, ...", name->id, name->id);
	}
}

static void
make_names(struct reader *r)
{
	size_t i;

	r->names = calloc(r->own->f.nops + r->ndrafts + 1, sizeof(*r->names));
	if (r->names == NULL) {
		out_of_memory(r);
		return;
	}
	for (i = 0; i < r->ndrafts; i++)
		name_draft(r, (uint32_t)i);
	qsort(r->names, r->nnames, sizeof(*r->names), compare_names);
	for (i = 1; i < r->nnames; i++)
		if (strcmp(r->names[i - 1].id, r->names[i].id) == 0)
			duplicate(r, &r->names[i - 1], &r->names[i]);
	check_items(r);
}

static void
index_ids(struct reader *r)
{
	struct flow_owned *own = r->own;
	size_t i, n = 0;

	own->by_id = calloc(own->f.nops + 1, sizeof(*own->by_id));
	if (own->by_id == NULL) {
		out_of_memory(r);
		return;
	}
	for (i = 0; i < r->nnames; i++)
		if (!r->names[i].each && r->names[i].count == 1)
			own->by_id[n++] = r->names[i].first;
}

void
dangling(struct reader *r, const struct json *at, const char *key, const char *id)
{
	const char **names = calloc(r->nnames + 1, sizeof(*names)), *nearest;
	struct flow_diagnostic *p;
	size_t i;

	p = problem(r, at, "\"%s\" names \"%.64s\", and no operation has this id", key, id);
	if (names == NULL) {
		out_of_memory(r);
		return;
	}
	for (i = 0; i < r->nnames; i++)
		names[i] = r->names[i].id;
	nearest = text_nearest(id, names, r->nnames);
	if (nearest != NULL)
		hint(p, "did you mean \"%s\"?", nearest);
	free(names);
}

/* A worker holds them as long as it lives; a block that cannot be made smaller is good as it is. */
static void
trim_ops(struct reader *r)
{
	struct flow_owned *own = r->own;
	struct flow_op *ops;
	const struct json **objects;

	if (own->f.nops == 0)
		return;
	ops = realloc(own->ops, own->f.nops * sizeof(*ops));
	objects = realloc(own->declared, own->f.nops * sizeof(*objects));
	if (ops != NULL)
		own->f.ops = own->ops = ops;
	if (objects != NULL)
		own->declared = objects;
}

static void
read_entry(struct reader *r, const struct json *object, const struct json *own)
{
	struct draft *d = &r->drafts[r->ndrafts];

	r->entry = object;
	d->own = own != NULL;
	if (json_type(object) != JSON_OBJECT)
		problem(r, object, "must be an object, not %s", found(object));
	else
		read_operation(r, object, d);
	if (own != NULL)
		json_position(own, &d->where);
	d->own = d->own || is_own(r, d->id);
	r->own->written += !d->own && !d->each;
	r->ndrafts++;
	r->entry = NULL;
	r->context[0] = '\0';
}

/* The planner comes first and the synthesis last, so that indices of a plan stay what they are. */
void
read_plan(struct reader *r)
{
	struct json_iter it = json_iterate(r->plan);
	const struct json *object;
	size_t n = json_length(r->plan);

	if (n == 0 && r->plan != NULL) {
		problem(r, r->plan, "the plan is empty");
		return;
	}
	r->drafts = calloc(n + 2, sizeof(*r->drafts));
	if (r->drafts == NULL) {
		out_of_memory(r);
		return;
	}
	object = planner_entry(r);
	if (object != NULL)
		read_entry(r, object, r->own->f.planner);
	while (!r->nomem && r->own->f.nops <= FLOW_MAX_OPERATIONS && r->plan != NULL &&
	    json_next(&it, NULL, &object))
		read_entry(r, object, NULL);
	object = synthesis_entry(r);
	if (object != NULL)
		read_entry(r, object, r->own->f.synthesis);
	trim_ops(r);
	check_limits(r);
	if (!r->nomem)
		make_names(r);
	if (!r->failed)
		index_ids(r);
}
