/* A flow as the plan and config of a checkpoint, and back. */
#include <stdio.h>
#include <stdlib.h>

#include "edge.h"
#include "model.h"

/* ---- To the checkpoint ---- */

/* What stands in an entry of the plan in another form than the document has it. */
static bool
is_rewritten(struct slice name)
{
	static const char *const names[] = {"id", "agent_id", "node_id", "dep_indices", "needs",
	    "artifacts", "foreach", "item", "depends_on", "never"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_is(name, names[i]))
			return true;
	return false;
}

static struct json *
indices(const struct flow_op *op)
{
	struct json *a = json_array();
	uint32_t i;

	for (i = 0; i < op->nneeds; i++)
		a = json_append(a, json_uint(op->needs[i].op));
	return a;
}

struct json *
edge_condition(const struct flow_edge *edge)
{
	static const char *const kinds[] = {[FLOW_WHEN_EQUALS] = "equals",
	    [FLOW_WHEN_EXISTS] = "exists", [FLOW_WHEN_MATCHES] = "matches"};
	struct json *o = json_set(json_object(), "pointer", json_cstr(edge->pointer));

	return json_set(o, kinds[edge->when], json_ref(edge->value));
}

/* Indices say it all where every edge is plain; then there is no `needs`. */
static struct json *
conditions(const struct flow *f, const struct flow_op *op)
{
	static const char *const ons[] = {"success", "failure", "always"};
	struct json *a = json_array(), *o;
	bool plain = true;
	uint32_t i;

	for (i = 0; i < op->nneeds; i++) {
		o = json_set(json_object(), "op", json_cstr(f->ops[op->needs[i].op].id));
		if (op->needs[i].on != FLOW_ON_SUCCESS)
			o = json_set(o, "on", json_cstr(ons[op->needs[i].on]));
		if (op->needs[i].when != FLOW_WHEN_ALWAYS)
			o = json_set(o, "when", edge_condition(&op->needs[i]));
		plain = plain && op->needs[i].on == FLOW_ON_SUCCESS &&
		    op->needs[i].when == FLOW_WHEN_ALWAYS;
		a = json_append(a, o);
	}
	if (!plain || a == NULL)
		return a;
	json_unref(a);
	return json_null();
}

static struct json *
paths(const char *const *list)
{
	struct json *a = json_array();

	for (; *list != NULL; list++)
		a = json_append(a, bytes_string(slice_of(*list)));
	return a;
}

/* What all operations of one entry have in common; agent_id and node_id keep their place in front. */
static struct json *
common_entry(const struct flow *f, size_t i)
{
	const struct flow_op *op = &f->ops[i];
	const struct json *declared = owned(f)->declared[i], *v;
	struct json_iter it = json_iterate(declared);
	struct json *o = json_set(json_object(), "agent_id", json_null()), *needs;
	struct slice name;

	o = json_set(o, "node_id", json_null());
	o = json_set(o, "dep_indices", indices(op));
	needs = conditions(f, op);
	if (needs == NULL || json_type(needs) == JSON_ARRAY)
		o = json_set(o, "needs", needs);
	else
		json_unref(needs);
	while (json_next(&it, &name, &v))
		if (!is_rewritten(name))
			o = json_setn(o, name, json_ref(v));
	if (op->never)
		o = json_set(o, "never", json_bool(true));
	if (op->how->foreach_pointer != NULL)
		o = json_set(o, "foreach", json_ref(op->how->foreach_pointer));
	if (op->how->artifacts != NULL && op->how->artifacts[0] != NULL)
		o = json_set(o, "artifacts", paths(op->how->artifacts));
	return o;
}

static const struct json *
item_of(const struct flow *f, size_t i, size_t first)
{
	const struct json *declared = owned(f)->declared[i];
	const struct json *list = json_get(declared, "foreach");

	if (json_get(declared, "item") != NULL)
		return json_get(declared, "item");
	return list != NULL && json_type(list) == JSON_ARRAY ? json_at(list, i - first) : NULL;
}

struct json *
flow_plan(const struct flow *f, const char *const *node_ids)
{
	const struct json *const *declared = owned(f)->declared;
	struct json *plan = json_array(), *common = NULL, *o;
	size_t i, first = 0;

	for (i = 0; i < f->nops && plan != NULL; i++) {
		if (i == 0 || declared[i] != declared[i - 1]) {
			json_unref(common);
			common = common_entry(f, i);
			first = i;
		}
		if (common == NULL)
			break;
		o = json_set(json_ref(common), "agent_id", json_cstr(f->ops[i].id));
		o = json_set(o, "node_id", json_cstr(node_ids[i]));
		if (item_of(f, i, first) != NULL)
			o = json_set(o, "item", json_ref(item_of(f, i, first)));
		plan = json_append(plan, o);
	}
	if (i < f->nops) {
		json_unref(plan);
		plan = NULL;
	}
	json_unref(common);
	return plan;
}

struct json *
flow_config(const struct flow *f)
{
	struct json_iter it = json_iterate(f->document);
	struct json *config = json_object();
	const struct json *v;
	struct slice name;

	while (json_next(&it, &name, &v))
		if (!slice_is(name, "plan") && !slice_is(name, "prompt"))
			config = json_setn(config, name, json_ref(v));
	return config;
}

/* ---- To a document ---- */

static bool
is_of_state(struct slice name)
{
	const struct key_table *t = &key_tables[OBJECT_OPERATION];
	size_t i;

	for (i = 0; i < t->nkeys; i++)
		if (slice_is(name, t->keys[i].name))
			return (t->keys[i].flags & KEY_STATE) != 0;
	return false;
}

static struct json *
plain_needs(const struct flow *f, const struct flow_op *op)
{
	struct json *a = json_array();
	uint32_t i;

	for (i = 0; i < op->nneeds; i++)
		a = json_append(a, json_cstr(f->ops[op->needs[i].op].id));
	return a;
}

static struct json *
document_entry(const struct flow *f, size_t i)
{
	const struct flow_op *op = &f->ops[i];
	const struct json *declared = owned(f)->declared[i], *v;
	struct json_iter it = json_iterate(declared);
	struct json *o = json_set(json_object(), "id", json_cstr(op->id)), *needs;
	struct slice name;

	needs = conditions(f, op);
	if (needs != NULL && json_type(needs) != JSON_ARRAY) {
		json_unref(needs);
		needs = plain_needs(f, op);
	}
	o = json_set(o, "needs", needs);
	while (json_next(&it, &name, &v))
		if (!is_of_state(name) && !slice_is(name, "id") && !slice_is(name, "needs"))
			o = json_setn(o, name, json_ref(v));
	if (op->kind == FLOW_INSTRUCTION && json_get(o, "instruction") == NULL)
		o = json_set(o, "instruction", json_ref(json_get(declared, "task")));
	return o;
}

struct json *
flow_as_document(const struct flow *f)
{
	struct json *doc = flow_config(f), *plan = json_array();
	size_t i;

	for (i = 0; i < f->nops; i++)
		plan = json_append(plan, document_entry(f, i));
	if (f->prompt != NULL && f->prompt[0] != '\0')
		doc = json_set(doc, "prompt", json_ref(json_get(f->document, "prompt")));
	return json_set(doc, "plan", plan);
}

/* ---- And back ---- */

/* The predecessor wrote null for what was not given, and 0 for "no limit". */
static bool
is_given(const char *name, const struct json *v)
{
	int64_t n;

	if (v == NULL || json_type(v) == JSON_NULL)
		return false;
	return strcmp(name, "max_ops") != 0 || !json_int64(v, &n) || n != 0;
}

static bool
has_planner(const struct json *plan)
{
	return slice_is(json_text(json_get(json_at(plan, 0), "agent_id")), FLOW_PLANNER);
}

/* config holds more than a document: what is no key of one is left to whoever put it there. */
static struct json *
document_of_state(const struct json *state)
{
	const struct key_table *t = &key_tables[OBJECT_DOCUMENT];
	const struct json *config = json_get(state, "config"), *v;
	struct json *doc = json_object();
	size_t i;

	for (i = 0; i < t->nkeys; i++) {
		v = json_get(config, t->keys[i].name);
		if (is_given(t->keys[i].name, v) && strcmp(t->keys[i].name, "plan") != 0)
			doc = json_set(doc, t->keys[i].name, json_ref(v));
	}
	if (json_get(state, "prompt") != NULL && json_type(json_get(state, "prompt")) == JSON_STRING)
		doc = json_set(doc, "prompt", json_ref(json_get(state, "prompt")));
	if (json_get(state, "plan") != NULL)
		doc = json_set(doc, "plan", json_ref(json_get(state, "plan")));
	/* Older programs kept no planner among the operations: then it has done its work. */
	if (!has_planner(json_get(state, "plan")))
		doc = json_remove(doc, slice_of("planner"));
	return doc;
}

int
flow_from_state(const struct json *state, struct flow **out, struct err *e)
{
	struct flow_diagnostics d = {0};
	struct json *doc;
	int r;

	if (json_get(state, "config") == NULL ||
	    json_type(json_get(state, "config")) != JSON_OBJECT ||
	    json_get(state, "plan") == NULL)
		return err_set(e, ERR_REFUSED, "the checkpoint has no plan or no config");
	doc = document_of_state(state);
	if (doc == NULL)
		return err_nomem(e);
	r = model_read(doc, ORIGIN_STATE, "plan", &d, out, e);
	flow_diagnostics_clear(&d);
	return r;
}
