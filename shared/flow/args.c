/* Arguments: what a document declares, and the values that a command line gives. */
#include <stdio.h>
#include <stdlib.h>

#include "flowsup/log.h"
#include "model.h"

bool
flow_arg_at(const struct flow *f, size_t i, struct flow_arg *out)
{
	struct json_iter it = json_iterate(f->args);
	const struct json *v;
	size_t at;

	for (at = 0; json_next(&it, NULL, &v); at++) {
		if (at < i)
			continue;
		*out = (struct flow_arg){.name = json_cstr_of(json_iter_name(&it)),
		    .type = json_cstr_of(json_get(v, "type")),
		    .help = json_cstr_of(json_get(v, "help")),
		    .otherwise = json_get(v, "default")};
		if (out->type == NULL)
			out->type = "string";
		out->required = json_get(v, "required") != NULL ? json_is_true(json_get(v, "required"))
								 : out->otherwise == NULL;
		return true;
	}
	return false;
}

static bool
fits(const char *type, const struct json *v)
{
	enum json_type t = json_type(v);

	if (strcmp(type, "boolean") == 0)
		return t == JSON_BOOL;
	return t == JSON_INTEGER || (t == JSON_REAL && strcmp(type, "number") == 0);
}

/* NULL with *e. A text is taken as it is; everything else is written as in JSON. */
static struct json *
read_value(const struct flow_arg *arg, const struct json *text, struct err *e)
{
	struct json *v = NULL;

	if (strcmp(arg->type, "string") == 0)
		return json_ref(text);
	if (json_parse(json_text(text), NULL, &v, NULL, e) == 0 && fits(arg->type, v))
		return v;
	json_unref(v);
	if (e->code == ERR_NOMEM)
		return NULL;
	err_set(e, ERR_USAGE, "argument %s: \"%.80s\" is no %s", arg->name, json_text(text).data,
	    arg->type);
	if (strcmp(arg->type, "boolean") == 0)
		err_advice(e, "--arg %s=true or --arg %s=false", arg->name, arg->name);
	return NULL;
}

static struct json *
value_of(const struct flow_arg *arg, const struct json *given, struct err *e)
{
	struct json *v;

	err_clear(e);
	if (json_get(given, arg->name) != NULL)
		return read_value(arg, json_get(given, arg->name), e);
	if (arg->required) {
		err_set(e, ERR_USAGE, "the argument %s (%s) is missing%s%.200s", arg->name, arg->type,
		    arg->help != NULL ? ": " : "", arg->help != NULL ? arg->help : "");
		err_advice(e, "--arg %s=...", arg->name);
		return NULL;
	}
	v = arg->otherwise != NULL ? json_ref(arg->otherwise) : json_cstr("");
	if (v == NULL)
		err_nomem(e);
	return v;
}

int
flow_arg_nearest(const struct flow *f, const char *name, const char **nearest)
{
	const char **names = calloc(json_length(f->args) + 1, sizeof(*names));
	struct flow_arg arg;
	size_t n;

	if (names == NULL)
		return -1;
	for (n = 0; flow_arg_at(f, n, &arg); n++)
		names[n] = arg.name;
	*nearest = text_nearest(name, names, n);
	free(names);
	return 0;
}

static int
unknown(const struct flow *f, struct slice name, struct err *e)
{
	const char *nearest;
	char shown[81];

	snprintf(shown, sizeof(shown), "%.*s", (int)(name.len > 80 ? 80 : name.len), name.data);
	if (flow_arg_nearest(f, shown, &nearest) != 0)
		return err_nomem(e);
	err_set(e, ERR_USAGE, "the flow has no argument \"%s\"", shown);
	if (nearest != NULL)
		err_advice(e, "did you mean --arg %s=...?", nearest);
	else if (json_length(f->args) == 0)
		err_advice(e, "a document declares its arguments under \"args\"");
	return -1;
}

/* The first one stays the error, and each is told; false where nothing more can be. */
static bool
take_problem(const struct err *why, struct flow_diagnostics *d, struct err *first)
{
	struct flow_diagnostic *p = why->code == ERR_NOMEM ? NULL : flow_diagnostics_add(d);

	if (p != NULL) {
		snprintf(p->message, sizeof(p->message), "%.500s", why->msg);
		hint_of(p, why);
	} else if (why->code == ERR_NOMEM || d->suppressed == 0) {
		err_nomem(first);
		return false;
	}
	if (first->code == ERR_NONE)
		*first = *why;
	return true;
}

static bool
check_names(const struct flow *f, const struct json *given, struct flow_diagnostics *d, struct err *first)
{
	struct json_iter it = json_iterate(given);
	const struct json *v;
	struct slice name;
	struct err why = {0};

	while (json_next(&it, &name, &v)) {
		if (json_getn(f->args, name) != NULL)
			continue;
		err_clear(&why);
		(void)unknown(f, name, &why);
		if (!take_problem(&why, d, first))
			return false;
	}
	return true;
}

/* NULL without an error where memory ran out. */
static struct json *
read_all(const struct flow *f, const struct json *given, struct flow_diagnostics *d, struct err *first)
{
	struct json *values = json_object(), *v;
	struct flow_arg arg;
	struct err why = {0};
	size_t i;

	for (i = 0; values != NULL && flow_arg_at(f, i, &arg); i++) {
		v = value_of(&arg, given, &why);
		if (v != NULL) {
			values = json_set(values, arg.name, v);
		} else if (!take_problem(&why, d, first)) {
			json_unref(values);
			return NULL;
		}
	}
	return values;
}

int
flow_arguments(const struct flow *f, const struct json *given, struct json **out, struct flow_diagnostics *d,
    struct err *e)
{
	struct flow_diagnostics own = {0};
	struct err first = {0};
	struct json *values = NULL;

	if (check_names(f, given, d != NULL ? d : &own, &first))
		values = read_all(f, given, d != NULL ? d : &own, &first);
	flow_diagnostics_clear(&own);
	if (values == NULL && first.code == ERR_NONE)
		return err_nomem(e);
	if (first.code != ERR_NONE) {
		json_unref(values);
		if (e != NULL)
			*e = first;
		return -1;
	}
	*out = values;
	return 0;
}
