/* Flows that a command line says, made as documents, and changes that a command line asks for. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

static struct json *
texts(char *const *list)
{
	struct json *a = json_array();

	for (; *list != NULL; list++)
		a = json_append(a, bytes_string(slice_of(*list)));
	return a;
}

static struct json *
document_of(const char *name, struct json *plan)
{
	struct json *o = json_object();

	if (name != NULL && name[0] != '\0')
		o = json_set(o, "name", bytes_string(slice_of(name)));
	return json_set(o, "plan", plan);
}

/* Consumes document. */
static int
flow_of(struct json *document, struct flow **out, struct err *e)
{
	struct flow_diagnostics d = {0};
	int r;

	if (document == NULL)
		return err_nomem(e);
	r = model_read(document, ORIGIN_OWN, NULL, &d, out, e);
	flow_diagnostics_clear(&d);
	return r;
}

/* The program's name makes a good id where it can be one. */
static const char *
id_of(const char *program)
{
	const char *slash = strrchr(program, '/');
	const char *base = slash != NULL ? slash + 1 : program;

	return is_id(base) ? base : "main";
}

int
flow_from_command(const char *name, char *const *argv, struct flow **out, struct err *e)
{
	struct json *op;

	if (argv[0] == NULL || argv[0][0] == '\0')
		return err_set(e, ERR_USAGE, "no command is given");
	op = json_set(json_object(), "id", json_cstr(id_of(argv[0])));
	op = json_set(op, "exec", texts(argv));
	return flow_of(document_of(name, json_append(json_array(), op)), out, e);
}

int
flow_from_each(const struct flow_each *each, struct flow **out, struct err *e)
{
	struct json *op, *items = json_array();
	size_t i;

	if (each->nitems > FLOW_MAX_OPERATIONS) {
		json_unref(items);
		return err_set(e, ERR_LIMIT, "%zu items; at most %d operations make a run",
		    each->nitems, FLOW_MAX_OPERATIONS);
	}
	for (i = 0; i < each->nitems; i++)
		items = json_append(items, bytes_string(each->items[i]));
	op = json_set(json_object(), "id", json_cstr("each"));
	op = json_set(op, "run", bytes_string(slice_of(each->command)));
	op = json_set(op, "foreach", items);
	return flow_of(document_of(each->name, json_append(json_array(), op)), out, e);
}

int
flow_from_chain(const char *name, char *const *commands, struct flow **out, struct err *e)
{
	struct json *plan = json_array(), *op;
	char id[FLOW_MAX_ID], before[FLOW_MAX_ID];
	size_t i;

	for (i = 0; i <= FLOW_MAX_OPERATIONS && commands[i] != NULL; i++) {
		snprintf(id, sizeof(id), "chain.%zu", i);
		op = json_set(json_object(), "id", json_cstr(id));
		op = json_set(op, "run", bytes_string(slice_of(commands[i])));
		if (i > 0) {
			snprintf(before, sizeof(before), "chain.%zu", i - 1);
			op = json_set(op, "needs", json_append(json_array(), json_cstr(before)));
		}
		plan = json_append(plan, op);
	}
	return flow_of(document_of(name, plan), out, e);
}

/* ---- Overrides ---- */

int
flow_from_planner(const char *role, const char *prompt, const struct json *roles,
    struct flow **out, struct err *e)
{
	struct json *planner = json_set(json_object(), "assignee", json_cstr(role)), *doc;
	struct flow_diagnostics d = {0};
	int r;

	planner = json_set(planner, "instruction", json_cstr("Make a plan for this task:\n\n{{prompt}}"));
	doc = json_set(json_object(), "prompt", json_string_lossy(slice_of(prompt), NULL));
	doc = json_set(doc, "roles", json_ref(roles));
	doc = json_set(doc, "planner", planner);
	if (doc == NULL)
		return err_nomem(e);
	r = model_read(doc, ORIGIN_PERSON, NULL, &d, out, e);
	flow_diagnostics_clear(&d);
	return r;
}

static struct json *
override_document(struct json *doc, const struct flow_overrides *o)
{
	if (o->name != NULL)
		doc = json_set(doc, "name", bytes_string(slice_of(o->name)));
	if (o->concurrency > 0)
		doc = json_set(doc, "concurrency", json_uint(o->concurrency));
	if (o->timeout_ns > 0)
		doc = json_set(doc, "timeout", json_printf("%lld.%09llds",
			(long long)(o->timeout_ns / 1000000000),
			(long long)(o->timeout_ns % 1000000000)));
	if (o->max_ops >= 0)
		doc = json_set(doc, "max_ops", json_int(o->max_ops));
	if (o->fail_fast)
		doc = json_set(doc, "fail_fast", json_bool(true));
	if (o->reactive != NULL)
		doc = json_set(doc, "reactive", json_cstr(o->reactive));
	if (o->notify != NULL)
		doc = json_set(doc, "notify", json_ref(o->notify));
	if (o->watchdog_ns > 0)
		doc = json_set(doc, "watchdog", json_printf("%lld.%09llds",
			(long long)(o->watchdog_ns / 1000000000),
			(long long)(o->watchdog_ns % 1000000000)));
	if (o->restart != NULL && json_length(o->restart) > 0)
		doc = json_set(doc, "restart", json_ref(o->restart));
	else if (o->restart != NULL)
		doc = json_remove(doc, slice_of("restart"));
	if (o->arguments != NULL)
		doc = json_set(doc, "arguments", json_ref(o->arguments));
	if (o->prompt != NULL)
		doc = json_set(doc, "prompt", bytes_string(slice_of(o->prompt)));
	if (o->playbook != NULL)
		doc = json_set(doc, "playbook", json_cstr(o->playbook));
	return doc;
}

int
flow_override(struct flow *f, const struct flow_overrides *o, struct flow **out, struct err *e)
{
	struct flow_owned *own = owned(f);
	struct flow_diagnostics d = {0};
	enum origin origin = own->origin == ORIGIN_PERSON ? ORIGIN_STARTED : own->origin;
	struct json *doc = override_document(json_ref(f->document), o);
	char *digest = own->digest;
	int r;

	own->digest = NULL;
	flow_free(f);
	r = doc == NULL ? err_nomem(e) : model_read(doc, origin, o->file, &d, out, e);
	if (r == 0)
		set_digest(owned(*out), digest);
	else
		free(digest);
	flow_diagnostics_clear(&d);
	return r;
}
