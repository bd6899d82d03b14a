/* Whether the providers that a flow names are there, and can do what its operations want. */
#include <stdio.h>
#include <stdlib.h>

#include "flowsup/places.h"
#include "flowsup/provider.h"
#include "model.h"

/* One per role, loaded when the first operation wants it. */
struct loaded {
	struct provider *provider;
	bool tried;
};
struct checker {
	struct reader r;
	const struct provider_search *search;
	const bool *settled; /* or NULL */
	struct loaded *roles;
	uint32_t *inheritors; /* per operation: how many go on in its conversation */
};

static struct provider *
provider_of(struct checker *c, const struct flow_op *op)
{
	const struct flow_role *role = op->how->role;
	struct loaded *l = &c->roles[role - c->r.own->f.roles];
	struct err e = {0};
	struct flow_diagnostic *p;

	if (l->tried)
		return l->provider;
	l->tried = true;
	if (provider_load(c->search, role->provider, &l->provider, &e) == 0)
		return l->provider;
	l->provider = NULL;
	/* What is recorded cannot be written otherwise. */
	if (!err_has_hint(&e) || (e.advice && c->r.origin == ORIGIN_STATE))
		err_hint(&e, "flowsup doctor   # says what is wrong with each provider");
	p = problem_at(&c->r, op->where, "role \"%s\": %s", role->name, e.msg);
	hint_of(p, &e);
	return NULL;
}

static bool
has_provider(const struct flow_op *op)
{
	return op->how->role != NULL && op->how->role->provider != NULL;
}

/* It has its outcome, and starts nothing any more. */
static bool
is_settled(const struct checker *c, size_t i)
{
	return c->settled != NULL && c->settled[i];
}

static void
check_inherited(struct checker *c, const struct flow_op *op, const struct provider *p)
{
	const struct flow *f = &c->r.own->f;
	size_t from = flow_find(f, op->how->inherit_context);
	const struct flow_op *before;

	if (from == SIZE_MAX)
		return;
	before = &f->ops[from];
	if (!has_provider(before) && is_settled(c, from))
		problem_at(&c->r, op->where, "the role of \"%s\", in whose conversation it goes on, is not known here",
		    before->id);
	if (!has_provider(before)) /* else said where that operation is looked at */
		return;
	if (strcmp(before->how->role->provider, p->name) != 0)
		problem_at(&c->r, op->where, "provider %s cannot go on in a conversation of %s (%s)",
		    p->name, before->how->role->provider, before->id);
	else if (p->starts[PROVIDER_RESUME] == NULL && p->starts[PROVIDER_FORK] == NULL)
		problem_at(&c->r, op->where, "provider %s cannot continue a conversation", p->name);
	else if (c->inheritors[from] > 1 && p->starts[PROVIDER_FORK] == NULL)
		hint(problem_at(&c->r, op->where,
			 "%u operations go on in the conversation of \"%s\", and provider %s cannot fork one",
			 (unsigned)c->inheritors[from], before->id, p->name),
		    "let each inherit from the one before it");
}

/* A checkpoint of an older program may name one that it does not hold. */
static void
unknown_role(struct checker *c, const struct flow_op *op)
{
	struct err ignored = {0};
	char *directory = NULL;

	if (c->r.origin == ORIGIN_STATE && place_config(NULL, "roles", &directory, &ignored) == 0 && directory != NULL)
		problem_at(&c->r, op->where, "the role \"%s\" is not known here: neither the checkpoint has it nor '%s'",
		    op->how->assignee, directory);
	else
		hint(problem_at(&c->r, op->where, "the role \"%s\" is not known here", op->how->assignee),
		    "it would have to stand under \"roles\", with its provider");
	free(directory);
}

static void
check_operation(struct checker *c, const struct flow_op *op)
{
	const struct flow_role *role = op->how->role;
	const struct provider *p;
	struct err e = {0};

	if (role == NULL && op->how->assignee != NULL) {
		unknown_role(c, op);
		return;
	}
	if (role == NULL) {
		hint(problem_at(&c->r, op->where, "an instruction needs an \"assignee\""),
		    "assignee: a role that has a provider");
		return;
	}
	if (role->provider == NULL) {
		hint(problem_at(&c->r, op->where, "role \"%s\" has no provider", role->name),
		    "flowsup doctor lists providers");
		return;
	}
	p = provider_of(c, op);
	if (p == NULL)
		return;
	if (p->shell && flow_has_reference(op->text))
		hint(problem_at(&c->r, op->where,
			 "templates are never put into shell text, which provider %s runs", p->name),
		    "use the environment: \"$FLOWSUP_DEP_ID\"");
	/* What its templates bring, and what is said before it, is known when it starts. */
	if (!flow_has_reference(op->text) && provider_takes(p, slice_of(op->text), &e) != 0)
		hint_of(problem_at(&c->r, op->where, "%s", e.msg), &e);
	if (op->how->inherit_context != NULL)
		check_inherited(c, op, p);
}

static void
count_inheritors(struct checker *c)
{
	const struct flow *f = &c->r.own->f;
	size_t i, from;

	for (i = 0; i < f->nplanned; i++) {
		if (f->ops[i].how->inherit_context == NULL)
			continue;
		from = flow_find(f, f->ops[i].how->inherit_context);
		if (from != SIZE_MAX)
			c->inheritors[from]++;
	}
}

static bool
has_instruction(const struct flow *f)
{
	size_t i;

	for (i = 0; i < f->nplanned && f->ops[i].kind != FLOW_INSTRUCTION; i++)
		;
	return i < f->nplanned;
}

static void
check_all(struct checker *c)
{
	const struct flow *f = &c->r.own->f;
	size_t i;

	count_inheritors(c);
	/* What was added was judged when it was asked for, and is judged anew by a resume. */
	for (i = 0; i < f->nplanned; i++) {
		if (f->ops[i].kind != FLOW_INSTRUCTION || is_settled(c, i))
			continue;
		snprintf(c->r.context, sizeof(c->r.context), "operation \"%s\": ", f->ops[i].id);
		check_operation(c, &f->ops[i]);
	}
	c->r.context[0] = '\0';
}

int
flow_check_providers(const struct flow *f, const struct provider_search *s, const bool *settled, const char *name,
    struct flow_diagnostics *d, struct err *e)
{
	struct flow_diagnostics mine = {0};
	struct flow_owned *own = owned(f);
	struct checker c = {.r = {.own = own, .origin = own->origin}, .search = s, .settled = settled};
	struct provider_search here = {0};
	int result = 0;
	size_t i;

	if (!has_instruction(f))
		return 0;
	if (s == NULL && provider_search_init(&here, NULL, e) != 0)
		return -1;
	if (s == NULL)
		c.search = &here;
	c.r.d = d != NULL ? d : &mine;
	c.roles = calloc(f->nroles + 1, sizeof(*c.roles));
	c.inheritors = calloc(f->nops + 1, sizeof(*c.inheritors));
	if (c.roles == NULL || c.inheritors == NULL)
		c.r.nomem = true;
	else
		check_all(&c);
	diagnostics_sort(c.r.d);
	if (c.r.nomem)
		result = err_nomem(e);
	else if (c.r.failed)
		result = diagnostics_error(c.r.d, name,
		    own->origin == ORIGIN_STATE ? ERR_REFUSED : ERR_DOCUMENT, e);
	for (i = 0; c.roles != NULL && i < f->nroles; i++)
		provider_free(c.roles[i].provider);
	free(c.roles);
	free(c.inheritors);
	provider_search_clear(&here);
	flow_diagnostics_clear(&mine);
	return result;
}

int
flow_check(const struct flow *f, const char *name, struct flow_diagnostics *d, struct err *e)
{
	return flow_check_size(f, name, d, e) == 0 ? flow_check_providers(f, NULL, NULL, name, d, e) : -1;
}
