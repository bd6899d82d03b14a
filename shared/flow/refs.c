/* Templates and conversations against the graph: what they name must be there, and be done before. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"
#include "template.h"

/* A reference to what may be no direct predecessor; looked at when all are known. */
struct far {
	uint32_t from; /* an operation of the entry that refers */
	uint32_t to;
	const struct draft *draft;
	const struct json *at;
	const char *what;
};
struct checker {
	struct reader *r;
	struct far *list;
	size_t count, cap;
	const struct draft *draft; /* NULL: not inside an operation */
	bool any_op;		   /* every operation has ended before (synthesis) */
};

static bool
is_direct(const struct reader *r, uint32_t from, uint32_t to)
{
	const struct flow_op *op = &r->own->ops[from];
	size_t low = 0, high = op->nneeds, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (op->needs[middle].op == to)
			return true;
		if (op->needs[middle].op < to)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static void
refer(struct checker *c, const struct name *name, const struct json *at, const char *what)
{
	const struct draft *d = c->draft;
	struct far *list;
	size_t cap = c->cap ? 2 * c->cap : 16;

	if (c->any_op || d->count == 0 || is_direct(c->r, d->first, name->first))
		return;
	if (c->count == c->cap) {
		list = realloc(c->list, cap * sizeof(*list));
		if (list == NULL) {
			out_of_memory(c->r);
			return;
		}
		c->list = list;
		c->cap = cap;
	}
	c->list[c->count++] = (struct far){d->first, name->first, d, at, what};
}

/* Its items are not known before it ends. */
static bool
is_template(const struct reader *r, const struct name *name)
{
	return name->count == 1 && r->own->ops[name->first].how->foreach_pointer != NULL;
}

static void
check_operation(struct checker *c, const char *id, const struct json *at, const char *what)
{
	const struct name *name = find_name(c->r, id);

	if (name == NULL)
		dangling(c->r, at, what, id);
	else if (c->draft == NULL && !c->any_op)
		problem(c->r, at, "\"%s\" cannot name an operation here: nothing has run yet", what);
	else if (is_template(c->r, name))
		hint(problem(c->r, at, "\"%s\" names \"%s\", which is a foreach", what, id),
		    "what its operations are is known on the way only: read the files that FLOWSUP_DEPS names");
	else if (name->each)
		hint(problem(c->r, at, "\"%s\" names \"%s\", which is a foreach", what, id),
		    "name one of its operations, such as %s.0, or read the files FLOWSUP_DEP_...",
		    id);
	else
		refer(c, name, at, what);
}

static void
no_argument(struct reader *r, const char *name, const struct json *at)
{
	struct flow_diagnostic *p = problem(r, at, "{{args.%s}} names no argument", name);
	const char *nearest = NULL;

	if (flow_arg_nearest(&r->own->f, name, &nearest) != 0)
		out_of_memory(r);
	else if (nearest != NULL)
		hint(p, "did you mean {{args.%s}}?", nearest);
	else
		hint(p, r->origin == ORIGIN_MODEL ? "say what it stands for" : "declare it under \"args\"");
}

static void
check_template(struct checker *c, const struct template_reference *ref, const struct json *at)
{
	struct reader *r = c->r;
	char name[FLOW_MAX_ID + 2];
	bool is_list = c->draft != NULL &&
	    (c->draft->each || json_get(c->draft->object, "item") != NULL ||
		json_get(c->draft->object, "foreach") != NULL);

	snprintf(name, sizeof(name), "%.*s", (int)(ref->name.len > FLOW_MAX_ID + 1 ?
	    FLOW_MAX_ID + 1 : ref->name.len), ref->name.data);
	switch (ref->ref) {
	case FLOW_REF_RESPONSE:
		check_operation(c, name, at, "{{ops.ID.response}}");
		break;
	case FLOW_REF_ARTIFACTS:
		check_operation(c, name, at, "{{artifacts.ID}}");
		break;
	case FLOW_REF_ARG:
		if (r->own->f.args == NULL || json_getn(r->own->f.args, ref->name) == NULL)
			no_argument(r, name, at);
		break;
	case FLOW_REF_ITEM:
		if (!is_list)
			problem(r, at, "{{item}} has a meaning only with \"foreach\"");
		break;
	case FLOW_REF_PROMPT:
		break;
	}
}

static void
check_text(struct checker *c, const struct json *v)
{
	struct template_reference ref;
	struct err e = {0};
	const char *at = json_cstr_of(v);
	int more = at != NULL ? 1 : 0;

	while (more > 0) {
		more = template_next(&at, &ref, &e);
		if (more > 0)
			check_template(c, &ref, v);
	}
	if (more < 0)
		hint_of(problem(c->r, v, "%s", e.msg), &e);
}

/* Values are never spliced into shell text: a response could hold any command. */
static void
refuse_text(struct checker *c, const struct json *v, const char *what)
{
	const char *text = json_cstr_of(v);

	if (text != NULL && flow_has_reference(text))
		hint(problem(c->r, v, "templates do not work in %s", what),
		    "give it a name under env, such as env: {VALUE: \"{{...}}\"}, and use \"$VALUE\"");
}

static void
refuse_directory(struct checker *c, const struct json *v)
{
	const char *text = v != NULL ? json_cstr_of(v) : NULL;

	if (text != NULL && flow_has_reference(text))
		hint(problem(c->r, v, "templates do not work in \"cwd\""),
		    "give it a name under env, such as env: {DIR: \"{{...}}\"}, and run: cd \"$DIR\"");
}

static void
check_all(struct checker *c, const struct json *container)
{
	struct json_iter it = json_iterate(container);
	const struct json *v;

	if (container != NULL)
		while (json_next(&it, NULL, &v))
			check_text(c, v);
}

static void
check_instruction(struct checker *c, const struct json *v)
{
	const struct flow_role *role = c->r->own->ops[c->draft->first].how->role;

	if (role != NULL && role->provider != NULL && strcmp(role->provider, "sh") == 0)
		refuse_text(c, v, "an instruction for the provider \"sh\", which is shell text");
	else
		check_text(c, v);
}

static void
check_inherited(struct checker *c, const struct flow_how *how)
{
	const struct json *at = json_get(c->draft->object, "inherit_context");
	const struct name *name;

	if (how->inherit_context == NULL)
		return;
	name = find_name(c->r, how->inherit_context);
	check_operation(c, how->inherit_context, at, "inherit_context");
	if (name != NULL && !name->each && c->r->own->ops[name->first].kind != FLOW_INSTRUCTION)
		problem(c->r, at, "\"inherit_context\" names \"%s\", which has no conversation",
		    name->id);
}

static void
check_foreach(struct checker *c, const struct flow_how *how)
{
	const struct json *at = json_get(how->foreach_pointer, "op");

	if (at != NULL && json_cstr_of(at) != NULL)
		check_operation(c, json_cstr_of(at), at, "foreach");
}

static void
check_draft(struct checker *c, const struct draft *d)
{
	const struct flow_how *how;

	if (d->count == 0 || d->own) /* the latter's texts are looked at in check_top */
		return;
	how = c->r->own->ops[d->first].how;
	c->draft = d;
	snprintf(c->r->context, sizeof(c->r->context), "operation \"%s\": ", d->id);
	if (json_get(d->object, "run") != NULL)
		refuse_text(c, json_get(d->object, "run"), "\"run\"");
	if (json_get(d->object, "instruction") != NULL)
		check_instruction(c, json_get(d->object, "instruction"));
	refuse_directory(c, json_get(d->object, "cwd"));
	check_all(c, json_get(d->object, "exec"));
	check_all(c, json_get(d->object, "env"));
	check_inherited(c, how);
	if (how->foreach_pointer != NULL)
		check_foreach(c, how);
	c->r->context[0] = '\0';
}

/* Texts that belong to no operation: only what is known before the first one can stand there. */
static void
check_top(struct checker *c)
{
	struct reader *r = c->r;
	struct json_iter it = json_iterate(r->roles_object);
	const struct json *v;

	c->draft = NULL;
	check_all(c, r->env_object);
	if (r->roles_object != NULL)
		while (json_next(&it, NULL, &v))
			check_all(c, json_get(v, "env"));
	if (r->own->f.planner != NULL)
		check_text(c, json_get(r->own->f.planner, "instruction"));
	c->any_op = true;
	if (r->own->f.synthesis != NULL)
		check_text(c, json_get(r->own->f.synthesis, "instruction"));
	c->any_op = false;
}

/* ---- Reachability, one walk for each operation that is referred to ---- */

struct walk {
	uint32_t *place; /* of each operation in the order */
	uint32_t *mark;	 /* the walk that reached it */
	uint32_t *stack;
};

static int
compare_far(const void *a, const void *b)
{
	const struct far *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* Marks what comes after `start` and not behind `last` in the order. */
static void
walk_from(const struct flow_owned *own, struct walk *w, uint32_t start, uint32_t last, uint32_t mark)
{
	const struct flow_op *op;
	size_t depth = 0, i;

	w->stack[depth++] = start;
	while (depth > 0) {
		op = &own->ops[w->stack[--depth]];
		for (i = 0; i < op->nsuccessors; i++) {
			uint32_t next = op->successors[i];

			if (w->mark[next] == mark || w->place[next] > last)
				continue;
			w->mark[next] = mark;
			w->stack[depth++] = next;
		}
	}
}

static void
judge_group(struct checker *c, struct walk *w, size_t from, size_t to, uint32_t mark)
{
	const struct flow_owned *own = c->r->own;
	uint32_t last = 0;
	size_t i;

	for (i = from; i < to; i++)
		if (w->place[c->list[i].from] > last)
			last = w->place[c->list[i].from];
	walk_from(own, w, c->list[from].to, last, mark);
	for (i = from; i < to; i++) {
		if (w->mark[c->list[i].from] == mark)
			continue;
		snprintf(c->r->context, sizeof(c->r->context), "operation \"%s\": ",
		    c->list[i].draft->id);
		hint(problem(c->r, c->list[i].at, "\"%s\" names \"%s\", which need not have ended before this begins",
			 c->list[i].what, own->ops[c->list[i].to].id),
		    "add %s to its \"needs\"", own->ops[c->list[i].to].id);
		c->r->context[0] = '\0';
	}
}

static void
judge(struct checker *c)
{
	const struct flow_owned *own = c->r->own;
	size_t n = own->f.nops, i, from;
	struct walk w = {calloc(n, sizeof(uint32_t)), calloc(n, sizeof(uint32_t)),
	    calloc(n, sizeof(uint32_t))};
	uint32_t mark = 0;

	if (w.place == NULL || w.mark == NULL || w.stack == NULL) {
		out_of_memory(c->r);
	} else {
		for (i = 0; i < n; i++)
			w.place[own->order[i]] = (uint32_t)i;
		qsort(c->list, c->count, sizeof(*c->list), compare_far);
		for (from = 0; from < c->count; from = i) {
			for (i = from; i < c->count && c->list[i].to == c->list[from].to; i++)
				;
			judge_group(c, &w, from, i, ++mark);
		}
	}
	free(w.place);
	free(w.mark);
	free(w.stack);
}

void
check_references(struct reader *r)
{
	struct checker c = {.r = r};
	size_t i;

	check_top(&c);
	for (i = 0; i < r->ndrafts && !r->nomem; i++)
		check_draft(&c, &r->drafts[i]);
	if (c.count > 0 && !r->nomem)
		judge(&c);
	free(c.list);
}
