/* Readers of values that are small objects of their own. */
#include <stdio.h>

#include "flowsup/log.h"
#include "model.h"

/* Failures that an operation can have (flowsup-flow(5)). */
static const char *const failure_classes[] = {"exit", "signal", "timeout", "silence", "spawn",
    "response", "artifact", "denied", "agent_error", "limit", "auth", "rate_limited",
    "session_lost", "crash"};
enum { FAILURE_CLASSES = sizeof(failure_classes) / sizeof(failure_classes[0]), EXIT_MOST = 255 };

/* Members that the operation does not give stay as the defaults say: how is filled with them. */
void
read_retry(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct flow_how *how = to;

	(void)k;
	read_object(r, OBJECT_RETRY, v, &how->retry);
}

void
read_limits(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	(void)k;
	read_object(r, OBJECT_LIMITS, v, to);
}

void
read_silence(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct flow_how *how = to;

	how->silence_notify = how->silence_strict = false;
	if (json_type(v) == JSON_OBJECT)
		read_object(r, OBJECT_SILENCE, v, how);
	else
		read_duration(r, k, v, &how->silence_ns);
}

static void
check_retry_on(struct reader *r, const struct json *item)
{
	struct flow_diagnostic *p;
	const char *text = json_cstr_of(item), *nearest;
	int64_t code;
	size_t i;

	if (json_type(item) == JSON_INTEGER) {
		if (!json_int64(item, &code) || code < 1 || code > EXIT_MOST)
			problem(r, item, "an exit code to retry is from 1 to %d", EXIT_MOST);
		return;
	}
	if (text == NULL) {
		problem(r, item, "\"on\" holds exit codes and failure classes, not %s", found(item));
		return;
	}
	for (i = 0; i < FAILURE_CLASSES; i++)
		if (strcmp(text, failure_classes[i]) == 0)
			return;
	p = problem(r, item, "no failure is of class \"%.80s\"", text);
	nearest = text_nearest(text, failure_classes, FAILURE_CLASSES);
	if (nearest != NULL)
		hint(p, "did you mean \"%s\"?", nearest);
	else
		hint(p, "classes are exit, signal, timeout, silence, spawn, response, artifact, denied, "
			"agent_error, limit, auth, rate_limited, session_lost, crash");
}

void
read_retry_on(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;

	read_json_array(r, k, v, to);
	if (json_type(v) != JSON_ARRAY)
		return;
	if (json_length(v) == 0)
		problem(r, v, "\"on\" is empty, so nothing would be retried");
	while (json_next(&it, NULL, &item))
		check_retry_on(r, item);
}

void
read_notify(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct notify_fields fields = {0};

	if (json_type(v) == JSON_OBJECT)
		read_object(r, OBJECT_NOTIFY, v, &fields);
	else
		read_command_list(r, k, v, &fields.command);
	*(const struct json **)to = v;
}

void
read_keep(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	(void)k;
	read_object(r, OBJECT_KEEP, v, to);
}

void
read_inline_limit(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	int64_t bytes = 0;

	read_size(r, k, v, &bytes);
	if (bytes > k->most)
		problem(r, v, "\"%s\" must be at most %lld bytes", k->name, (long long)k->most);
	else if (bytes > 0)
		*(int64_t *)to = bytes;
}

void
read_restart(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct restart_fields fields = {0};

	(void)k;
	read_object(r, OBJECT_RESTART, v, &fields);
	*(const struct json **)to = v;
}

void
read_orphans(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct orphans_fields fields = {0};

	if (json_type(v) == JSON_OBJECT)
		read_object(r, OBJECT_ORPHANS, v, &fields);
	else if (!slice_is(json_text(v), "keep") && !slice_is(json_text(v), "end"))
		problem(r, v, "\"%s\" must be %s", k->name, k->type);
	*(const struct json **)to = v;
}

/* Whether the roles exist is asked once they are read: check_roles() in settings.c. */
void
read_reactive(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct flow_diagnostic *p;

	if (json_type(v) == JSON_ARRAY)
		read_texts_json(r, k, v, to);
	else if (slice_is(json_text(v), "off") || slice_is(json_text(v), "all"))
		*(const struct json **)to = v;
	else {
		p = problem(r, v, "\"%s\" must be %s", k->name, k->type);
		if (json_type(v) == JSON_BOOL)
			hint(p, "write %s: %s", k->name, json_is_true(v) ? "all" : "off");
	}
}

void
read_agent(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct agent_fields fields = {0};

	(void)k;
	read_object(r, OBJECT_AGENT, v, &fields);
	*(const struct json **)to = v;
}

static bool
fits_type(unsigned type, const struct json *v)
{
	static const bool fits[][JSON_OBJECT + 1] = {
	    {[JSON_STRING] = true},
	    {[JSON_INTEGER] = true},
	    {[JSON_INTEGER] = true, [JSON_REAL] = true},
	    {[JSON_BOOL] = true},
	};

	return fits[type][json_type(v)];
}

static void
read_arg(struct reader *r, const struct json *name, const struct json *v)
{
	struct arg_fields fields = {0};
	const char *text = json_cstr_of(name);

	if (text == NULL || !is_id(text))
		problem(r, name, "this is no name for an argument");
	read_object(r, OBJECT_ARG, v, &fields);
	if (fields.otherwise != NULL && !fits_type(fields.type, fields.otherwise))
		problem(r, fields.otherwise, "the default is %s and does not fit the argument's type",
		    found(fields.otherwise));
	if (fields.required != NULL && json_type(fields.required) != JSON_BOOL)
		problem(r, fields.required, "\"required\" must be true or false, not %s",
		    found(fields.required));
	else if (json_is_true(fields.required) && fields.otherwise != NULL)
		problem(r, fields.required, "an argument with a default is never missing");
}

void
read_args(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct json_iter it = json_iterate(v);
	const struct json *value;

	read_json_object(r, k, v, to);
	if (json_type(v) == JSON_OBJECT)
		while (json_next(&it, NULL, &value))
			read_arg(r, json_iter_name(&it), value);
}
