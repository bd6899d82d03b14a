#include "lacking.h"

#include <stdlib.h>
#include <string.h>

static struct lacking_variable *
find(const struct lacking *l, const char *name)
{
	size_t i;

	for (i = 0; i < l->count; i++)
		if (strcmp(l->all[i].name, name) == 0)
			return &l->all[i];
	return NULL;
}

bool
lacking_has(const struct lacking *l, const char *name)
{
	return find(l, name) != NULL;
}

int
lacking_add(struct lacking *l, const char *name, const char *op, struct err *e)
{
	struct lacking_variable *v = find(l, name), *grown;

	if (v == NULL) {
		grown = reallocarray(l->all, l->count + 1, sizeof(*grown));
		if (grown == NULL)
			return err_nomem(e);
		l->all = grown;
		v = &grown[l->count++];
		*v = (struct lacking_variable){.name = name};
	}
	if (v->count < LACKING_NAMED)
		v->ops[v->count] = op;
	v->count++;
	return 0;
}

void
lacking_text(const struct lacking_variable *v, size_t nops, struct buf *to)
{
	size_t i, named = v->count < LACKING_NAMED ? v->count : LACKING_NAMED;
	bool all = v->count == nops && nops > 1;

	buf_puts(to, all ? "all operations" : v->count == 1 ? "operation " : "operations ");
	for (i = 0; !all && i < named; i++)
		buf_printf(to, "%s\"%s\"", i == 0 ? "" : i + 1 == v->count ? " and " : ", ", v->ops[i]);
	if (!all && v->count > named)
		buf_printf(to, " and %zu more", v->count - named);
	buf_printf(to, " require%s the variable %s, which is not set", v->count == 1 ? "s" : "", v->name);
}

void
lacking_command(const char *name, struct buf *to)
{
	buf_printf(to, "read -r %s; export %s", name, name);
}

void
lacking_clear(struct lacking *l)
{
	free(l->all);
	*l = (struct lacking){0};
}

/* ---- What is required ---- */

static bool
is_given(const struct flow_how *how, const char *name)
{
	size_t i;

	for (i = 0; i < how->nenv; i++)
		if (how->env[i].value != NULL && strcmp(how->env[i].name, name) == 0)
			return true;
	return false;
}

bool
lacking_is_required(const struct flow_how *how, size_t env)
{
	return how->env[env].required && !is_given(how, how->env[env].name);
}

bool
lacking_is_required_in(const struct flow *f, const char *name)
{
	const struct flow_how *how;
	size_t i, n;

	for (i = 0; i < f->nops; i++) {
		how = f->ops[i].how;
		for (n = 0; n < how->nenv; n++)
			if (strcmp(how->env[n].name, name) == 0 && lacking_is_required(how, n))
				return true;
	}
	return false;
}
