/* Roles, environments and defaults, and how they fold together. */
#include <stdio.h>
#include <stdlib.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"
#include "model.h"

enum { BACKOFF_S = 1, BACKOFF_MOST_S = 300, DEFAULT_FACTOR = 2 };

/* What operations without a variable of their own share: one entry per role, the last for none. */
struct fold_cache {
	const struct flow_env *env;
	size_t nenv;
	bool made;
};

static const struct flow_how built_in = {
    .grace_ns = FLOW_DEFAULT_GRACE_S * NS_PER_S,
    .retry = {1, BACKOFF_S * NS_PER_S, BACKOFF_MOST_S * NS_PER_S, DEFAULT_FACTOR, true, NULL},
    .idempotent = true,
    .umask = -1,
    .limit_cpu_s = -1,
    .limit_memory_bytes = -1,
    .limit_files = -1,
};

void
read_defaults(struct reader *r)
{
	r->base = built_in;
	if (r->defaults == NULL)
		return;
	snprintf(r->context, sizeof(r->context), "defaults: ");
	read_object(r, OBJECT_DEFAULTS, r->defaults, &r->base);
	r->context[0] = '\0';
}

/* ---- Environments ---- */

static bool
is_variable(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && (name[0] < '0' || name[0] > '9') &&
	    strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

static void
read_variable(struct reader *r, const struct json *name, const struct json *v, struct flow_env *to)
{
	struct env_fields fields = {0};
	struct flow_diagnostic *p;

	to->name = keep_text(r, "env", name);
	if (to->name == NULL) {
		to->name = ""; /* told already; names are compared all the same */
		return;
	}
	if (!is_variable(to->name))
		problem(r, name, "\"%.80s\" cannot be the name of a variable", to->name);
	else if (strncmp(to->name, "FLOWSUP_", 8) == 0)
		problem(r, name, "%.80s: names that begin with FLOWSUP_ are flowsup's own", to->name);
	if (json_type(v) == JSON_STRING) {
		to->value = keep_text(r, to->name, v);
	} else if (json_type(v) == JSON_OBJECT) {
		read_object(r, OBJECT_ENV, v, &fields);
		to->required = fields.required;
	} else {
		p = problem(r, v, "%.80s: a value is a text or {required: true}, not %s", to->name,
		    found(v));
		if (json_type(v) != JSON_ARRAY && json_type(v) != JSON_NULL)
			hint(p, "put it in quotes");
	}
}

const struct flow_env *
read_env(struct reader *r, const struct json *object, size_t *n)
{
	struct json_iter it = json_iterate(object);
	struct flow_env *list;
	const struct flow_env *kept;
	const struct json *value;
	size_t count = json_length(object), i = 0;

	*n = 0;
	if (count == 0)
		return NULL;
	list = calloc(count, sizeof(*list));
	if (list == NULL) {
		out_of_memory(r);
		return NULL;
	}
	while (json_next(&it, NULL, &value))
		read_variable(r, json_iter_name(&it), value, &list[i++]);
	kept = intern(&r->interned, list, count * sizeof(*list));
	if (kept == NULL)
		out_of_memory(r);
	else
		*n = count;
	free(list);
	return kept;
}

void
read_run_env(struct reader *r)
{
	snprintf(r->context, sizeof(r->context), "env: ");
	r->own->f.env = read_env(r, r->env_object, &r->own->f.nenv);
	r->context[0] = '\0';
}

/* Appends to list (with room for all), a later one in place of an earlier of its name. */
static size_t
lay_over(struct flow_env *list, size_t n, const struct flow_env *more, size_t nmore)
{
	size_t i, k;

	for (i = 0; i < nmore; i++) {
		for (k = 0; k < n && strcmp(list[k].name, more[i].name) != 0; k++)
			;
		list[k] = more[i];
		if (k == n)
			n++;
	}
	return n;
}

static void
fold_env(struct reader *r, struct flow_how *how, const struct flow_env *own, size_t nown)
{
	const struct flow_role *role = how->role;
	size_t nrole = role != NULL ? role->nenv : 0, room = r->own->f.nenv + nrole + nown, n;
	struct flow_env *list;

	how->env = NULL;
	how->nenv = 0;
	if (room == 0)
		return;
	list = calloc(room, sizeof(*list));
	if (list == NULL) {
		out_of_memory(r);
		return;
	}
	n = lay_over(list, 0, r->own->f.env, r->own->f.nenv);
	if (role != NULL)
		n = lay_over(list, n, role->env, nrole);
	n = lay_over(list, n, own, nown);
	how->env = intern(&r->interned, list, n * sizeof(*list));
	if (how->env == NULL)
		out_of_memory(r);
	else
		how->nenv = n;
	free(list);
}

static void
fold_env_cached(struct reader *r, struct flow_how *how)
{
	size_t nroles = r->own->f.nroles;
	struct fold_cache *c;

	if (r->folds == NULL)
		r->folds = calloc(nroles + 1, sizeof(*r->folds));
	if (r->folds == NULL) {
		out_of_memory(r);
		return;
	}
	c = &r->folds[how->role != NULL ? (size_t)(how->role - r->roles) : nroles];
	if (!c->made) {
		fold_env(r, how, NULL, 0);
		*c = (struct fold_cache){how->env, how->nenv, true};
	}
	how->env = c->env;
	how->nenv = c->nenv;
}

static size_t
list_length(const char *const *list)
{
	size_t n = 0;

	while (list != NULL && list[n] != NULL)
		n++;
	return n;
}

static size_t
add_paths(const char **list, size_t n, const char *const *more)
{
	size_t i;

	for (; more != NULL && *more != NULL; more++) {
		for (i = 0; i < n && strcmp(list[i], *more) != 0; i++)
			;
		if (i == n)
			list[n++] = *more;
	}
	return n;
}

static void
fold_artifacts(struct reader *r, struct flow_how *how)
{
	const char *const *of_role = how->role != NULL ? how->role->artifacts : NULL;
	size_t room = list_length(of_role) + list_length(how->artifacts), n;
	const char **list;

	how->own_artifacts = how->artifacts;
	if (of_role == NULL && how->artifacts != NULL)
		return;
	list = calloc(room + 1, sizeof(*list));
	if (list == NULL) {
		out_of_memory(r);
		return;
	}
	n = add_paths(list, 0, of_role);
	n = add_paths(list, n, how->artifacts);
	list[n] = NULL;
	how->artifacts = intern(&r->interned, list, (n + 1) * sizeof(*list));
	if (how->artifacts == NULL)
		out_of_memory(r);
	free(list);
}

void
fold_settings(struct reader *r, struct flow_how *how, const struct flow_env *own, size_t nown)
{
	how->own_env = own;
	how->nown_env = nown;
	if (nown == 0)
		fold_env_cached(r, how);
	else
		fold_env(r, how, own, nown);
	fold_artifacts(r, how);
}

/* ---- Operations that are added later ---- */

void
make_role_hows(struct reader *r)
{
	size_t n = r->own->f.nroles, i;
	const struct flow_how **list = arena_take(&r->own->arena, (n + 1) * sizeof(*list));
	struct flow_how how;

	for (i = 0; list != NULL && i <= n && !r->nomem; i++) {
		how = r->base;
		how.role = i < n ? &r->roles[i] : NULL;
		how.assignee = i < n ? r->roles[i].name : NULL;
		fold_settings(r, &how, NULL, 0);
		list[i] = intern(&r->interned, &how, sizeof(how));
		if (list[i] == NULL)
			out_of_memory(r);
	}
	if (list == NULL)
		out_of_memory(r);
	r->own->role_hows = list;
}

static int
env_as_role(struct flow_owned *own, const struct flow_role *role, struct flow_how *how)
{
	size_t room = own->f.nenv + role->nenv + how->nown_env, n;
	struct flow_env *list = arena_take(&own->arena, room * sizeof(*list));

	if (list == NULL)
		return -1;
	n = lay_over(list, 0, own->f.env, own->f.nenv);
	n = lay_over(list, n, role->env, role->nenv);
	how->nenv = lay_over(list, n, how->own_env, how->nown_env);
	how->env = list;
	return 0;
}

int
how_as_role(struct flow_owned *own, const struct flow_how *how, const struct flow_role *role,
    struct flow_how *out)
{
	size_t room = list_length(role->artifacts) + list_length(how->own_artifacts);
	const char **list = arena_take(&own->arena, (room + 1) * sizeof(*list));

	*out = *how;
	out->role = role;
	out->assignee = role->name;
	if (list == NULL || env_as_role(own, role, out) != 0)
		return -1;
	list[add_paths(list, add_paths(list, 0, role->artifacts), how->own_artifacts)] = NULL;
	out->artifacts = list;
	return 0;
}

void
settings_clear(struct reader *r)
{
	free(r->folds);
	r->folds = NULL;
}

/* ---- Roles ---- */

const struct flow_role *
find_role(const struct reader *r, const char *name)
{
	size_t i;

	for (i = 0; i < r->own->f.nroles; i++)
		if (strcmp(r->roles[i].name, name) == 0)
			return &r->roles[i];
	return NULL;
}

static void
read_role(struct reader *r, const struct json *name, const struct json *v, struct flow_role *to)
{
	static const char *const none[] = {NULL};
	struct role_fields fields = {0};

	snprintf(r->context, sizeof(r->context), "role \"%.64s\": ", json_text(name).data);
	to->name = keep_text(r, "roles", name);
	if (to->name == NULL || !is_id(to->name)) {
		problem(r, name, "this is no valid name for a role");
		to->name = "";
		return;
	}
	fields.role.artifacts = none;
	read_object(r, OBJECT_ROLE, v, &fields);
	fields.role.name = to->name;
	fields.role.env = read_env(r, fields.env, &fields.role.nenv);
	*to = fields.role;
}

static void
unknown_role(struct reader *r, const struct json *at, const char *name)
{
	const char **names = calloc(r->own->f.nroles + 1, sizeof(*names)), *nearest;
	struct flow_diagnostic *p = problem(r, at, "there is no role \"%.64s\"", name);
	size_t i;

	if (names == NULL) {
		out_of_memory(r);
		return;
	}
	for (i = 0; i < r->own->f.nroles; i++)
		names[i] = r->roles[i].name;
	nearest = text_nearest(name, names, r->own->f.nroles);
	if (nearest != NULL)
		hint(p, "did you mean \"%s\"?", nearest);
	else if (r->own->f.nroles == 0 && r->origin != ORIGIN_MODEL)
		hint(p, "declare it under \"roles\"");
	free(names);
}

void
check_role(struct reader *r, const struct json *at)
{
	const char *name = json_cstr_of(at);

	if (name != NULL && find_role(r, name) == NULL)
		unknown_role(r, at, name);
}

/* References between roles, and from the top level to them. */
static void
check_roles(struct reader *r)
{
	struct json_iter it = json_iterate(r->roles_object);
	const struct json *item;

	while (json_next(&it, NULL, &item))
		if (json_get(item, "escalate_to") != NULL)
			check_role(r, json_get(item, "escalate_to"));
	it = json_iterate(r->own->f.reactive);
	while (json_next(&it, NULL, &item))
		check_role(r, item);
	if (r->own->f.planner != NULL && json_get(r->own->f.planner, "assignee") != NULL)
		check_role(r, json_get(r->own->f.planner, "assignee"));
	if (r->own->f.synthesis != NULL && json_get(r->own->f.synthesis, "assignee") != NULL)
		check_role(r, json_get(r->own->f.synthesis, "assignee"));
}

void
read_roles(struct reader *r)
{
	struct json_iter it = json_iterate(r->roles_object);
	struct flow_role *roles;
	const struct json *v;
	size_t n = json_length(r->roles_object), i = 0;

	if (n > 0) {
		roles = calloc(n, sizeof(*roles));
		if (roles == NULL) {
			out_of_memory(r);
			return;
		}
		while (json_next(&it, NULL, &v))
			read_role(r, json_iter_name(&it), v, &roles[i++]);
		r->context[0] = '\0';
		r->roles = arena_copy(&r->own->arena, roles, n * sizeof(*roles));
		free(roles);
		if (r->roles == NULL) {
			out_of_memory(r);
			return;
		}
		r->own->f.roles = r->roles;
		r->own->f.nroles = n;
	}
	if (!r->failed)
		check_roles(r);
}
