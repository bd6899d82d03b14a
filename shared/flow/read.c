/* From a document as a JSON value to a flow. */
#include <stdlib.h>

#include "model.h"

enum { DEFAULT_ESCALATE_MAX = 2 };

static void
read_top(struct reader *r)
{
	struct document_fields fields = {.f = {.prompt = "", .max_ops = -1,
	    .escalate_max = DEFAULT_ESCALATE_MAX}};

	read_object(r, OBJECT_DOCUMENT, r->own->document, &fields);
	r->own->f = fields.f;
	r->own->f.document = r->own->document;
	r->plan = fields.plan;
	r->roles_object = fields.roles;
	r->env_object = fields.env;
	r->defaults = fields.defaults;
	if (r->plan != NULL)
		json_position(r->plan, &r->own->plan_where);
}

static void
read_whole(struct reader *r)
{
	read_top(r);
	if (r->nomem || json_type(r->own->document) != JSON_OBJECT)
		return;
	read_defaults(r);
	if (!r->nomem)
		read_roles(r);
	if (!r->nomem)
		read_run_env(r);
	if (!r->nomem && !r->failed)
		make_role_hows(r);
	if (r->nomem)
		return;
	if (r->plan == NULL && r->own->f.planner == NULL && !r->failed)
		hint(problem(r, r->own->document, "a flow needs a \"plan\""),
		    "man 5 flowsup-flow shows one");
	if (r->plan != NULL && r->own->f.planner != NULL && r->origin != ORIGIN_OWN &&
	    r->origin != ORIGIN_STATE)
		problem(r, r->own->f.planner, "a flow has a \"plan\" or a \"planner\", not both");
	if (r->plan != NULL || r->own->f.planner != NULL)
		read_plan(r);
	if (r->names != NULL && !r->nomem)
		read_edges(r);
	r->own->f.nplanned = r->own->f.nops;
	if (!r->failed) {
		find_own(&r->own->f);
		make_graph(r);
	}
	if (!r->failed)
		check_references(r);
	if (!r->failed && r->origin == ORIGIN_PERSON)
		forewarn(r);
}

static void
reader_clear(struct reader *r)
{
	settings_clear(r);
	free(r->drafts);
	free(r->names);
	interned_clear(&r->interned);
}

int
model_read(struct json *document, enum origin origin, const char *name, struct flow_diagnostics *d,
    struct flow **out, struct err *e)
{
	struct flow_owned *own = calloc(1, sizeof(*own));
	struct reader r = {.own = own, .origin = origin, .d = d};
	int result = 0;

	if (own == NULL) {
		json_unref(document);
		return err_nomem(e);
	}
	own->origin = origin;
	own->document = document;
	r.interned.arena = &own->arena;
	read_whole(&r);
	reader_clear(&r);
	diagnostics_sort(d);
	if (r.nomem)
		result = err_nomem(e);
	else if (r.failed)
		result = diagnostics_error(d, name,
		    origin == ORIGIN_STATE ? ERR_REFUSED : ERR_DOCUMENT, e);
	if (result < 0)
		flow_free(&own->f);
	else
		*out = &own->f;
	return result;
}

static void
release_document(struct flow_owned *own)
{
	json_unref(own->document);
	own->document = NULL;
	own->f.document = NULL;
	free(own->declared);
	own->declared = NULL;
}

static int
hold(struct arena *a, const struct json *value)
{
	return value == NULL ? 0 : arena_hold(a, value);
}

static int
hold_how(struct arena *a, const struct flow_how *how)
{
	if (hold(a, how->schema) < 0 || hold(a, how->retry.on) < 0)
		return -1;
	return hold(a, how->foreach_pointer);
}

static int
hold_top(struct flow_owned *own)
{
	const struct flow *f = &own->f;
	const struct json *values[] = {f->notify, f->restart, f->orphans, f->reactive, f->planner,
	    f->synthesis, f->args, f->arguments};
	size_t i;

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (hold(&own->arena, values[i]) < 0)
			return -1;
	for (i = 0; i < f->nroles; i++)
		if (hold(&own->arena, f->roles[i].args) < 0)
			return -1;
	/* All role_hows have from `defaults` what the first one has. */
	return own->role_hows != NULL ? hold_how(&own->arena, own->role_hows[0]) : 0;
}

/* Neighbours share settings and edges as a rule; then these are held once. */
static int
hold_operations(struct flow_owned *own)
{
	const struct flow_op *op, *before = NULL;
	size_t i;
	uint32_t k;

	for (i = 0; i < own->f.nops; i++, before = op) {
		op = &own->ops[i];
		if ((before == NULL || before->how != op->how) && hold_how(&own->arena, op->how) < 0)
			return -1;
		for (k = 0; (before == NULL || before->needs != op->needs) && k < op->nneeds; k++)
			if (hold(&own->arena, op->needs[k].value) < 0)
				return -1;
	}
	return 0;
}

void
flow_drop_document(struct flow *f)
{
	struct flow_owned *own = owned(f);

	/* What operations point at must stay; without memory to note that down, everything does. */
	if (own->document != NULL && hold_top(own) == 0 && hold_operations(own) == 0)
		release_document(own);
}

void
flow_free(struct flow *f)
{
	struct flow_owned *own;

	if (f == NULL)
		return;
	own = owned(f);
	release_document(own);
	growth_clear(own);
	free(own->ops);
	free(own->order);
	free(own->successors);
	free(own->by_id);
	free(own->digest);
	arena_clear(&own->arena);
	free(own);
}

size_t
flow_find(const struct flow *f, const char *id)
{
	const struct flow_owned *own = owned(f);
	size_t low = 0, high = f->nplanned, middle;
	int c;

	while (low < high) {
		middle = low + (high - low) / 2;
		c = strcmp(id, f->ops[own->by_id[middle]].id);
		if (c == 0)
			return own->by_id[middle];
		if (c < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return growth_find(own, id);
}

/* ---- From a normalised document ---- */

int
flow_from_document(const struct json *doc, struct flow **out, struct err *e)
{
	struct flow_diagnostics d = {0};
	int r = model_read(json_ref(doc), ORIGIN_OWN, NULL, &d, out, e);

	flow_diagnostics_clear(&d);
	return r;
}
