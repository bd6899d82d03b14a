/* What is valid in a document and cannot come to a good end when it runs. */
#include <stdio.h>
#include <string.h>

#include "model.h"

enum { SHORTEST_ADDITION = sizeof(".s1") - 1, SHORTEST_ITEM = sizeof(".0") - 1 };

static const struct flow_op *
first_op(const struct reader *r, const struct draft *d)
{
	return &r->own->ops[d->first];
}

/* A text is no list, whatever stands in it. */
static void
warn_of_text(struct reader *r, const struct draft *d)
{
	const struct json *where = first_op(r, d)->how->foreach_pointer;
	const struct json *op = json_get(where, "op");
	const struct name *name = op != NULL ? find_name(r, json_cstr_of(op)) : NULL;
	enum flow_response response;

	if (name == NULL || name->count != 1)
		return;
	response = r->own->ops[name->first].how->response;
	if (response == FLOW_RESPONSE_JSON || response == FLOW_RESPONSE_JSONL)
		return;
	hint(warning(r, json_get(d->object, "foreach"),
		 "\"foreach\" looks for a list in the response of \"%s\", which %s: it will fail", name->id,
		 response == FLOW_RESPONSE_NONE ? "has none" : "is a text"),
	    "give \"%s\" response: json", name->id);
}

static bool
may_ask(const struct reader *r, const struct flow_op *op)
{
	const struct flow_role *role = op->how->role;

	return (role != NULL && role->escalate_to != NULL) ||
	    flow_reactive_allows(&r->own->f, role != NULL ? role->name : NULL);
}

/* How many tries follow when each fails, by the roles alone. */
static size_t
tries_of(const struct reader *r, const struct flow_op *op)
{
	const struct flow_role *role = op->how->role;
	size_t n = 0;

	for (; role != NULL && role->escalate_to != NULL && n < r->own->f.escalate_max; n++)
		role = flow_find_role(&r->own->f, role->escalate_to);
	return n;
}

/* Each try is called after the one before. */
static void
warn_of_tries(struct reader *r, const struct draft *d, const struct flow_op *op, size_t room)
{
	size_t tries = tries_of(r, op), fit = room / SHORTEST_ADDITION;

	if (tries <= fit)
		return;
	hint(warning(r, json_get(d->object, "id"),
		 "its id has no room for more than %zu of %zu further tries, each with \".s1\" behind the one before: "
		 "the next one will be rejected", fit, tries),
	    "a shorter id, or escalate_max: %zu", fit);
}

/*
 * What it asks for would be called after it. The last one of a foreach has the longest id; over a response it is
 * the items that ask, which are called after it already.
 */
static void
warn_of_length(struct reader *r, const struct draft *d)
{
	const struct flow_op *op = &r->own->ops[d->first + d->count - 1];
	size_t item = op->how->foreach_pointer != NULL ? SHORTEST_ITEM : 0, len = strlen(op->id) + item;

	if (!may_ask(r, op))
		return;
	if (len + SHORTEST_ADDITION <= FLOW_MAX_ID) {
		warn_of_tries(r, d, op, FLOW_MAX_ID - len);
		return;
	}
	hint(warning(r, json_get(d->object, "id"),
		 "its id has no room for \"%s.s1\": what %s, another try too, will be rejected", item > 0 ? ".0" : "",
		 item > 0 ? "an item asks for" : "it asks for"),
	    "an id of at most %zu characters", FLOW_MAX_ID - SHORTEST_ADDITION - item);
}

/* As many items as a list may have, by the numbers behind the id. */
static void
warn_of_items(struct reader *r, const struct draft *d)
{
	const struct flow_op *op = first_op(r, d);
	int64_t most = r->own->f.max_ops >= 0 ? r->own->f.max_ops : FLOW_MAX_OPERATIONS, fit = 1;
	size_t room = FLOW_MAX_ID - strlen(op->id), digits = 1;
	int64_t n;

	fit = room > 1; /* of one digit behind the dot: ten */

	for (n = most - 1; n >= 10; n /= 10)
		digits++;
	if (most <= 0 || room >= digits + 1)
		return;
	for (; room > 1; room--)
		fit *= 10;
	hint(warning(r, json_get(d->object, "id"),
		 "its id has no room for the numbers of more than %lld item%s: with a longer list it will fail",
		 (long long)fit, fit == 1 ? "" : "s"),
	    "an id of at most %zu characters", FLOW_MAX_ID - digits - 1);
}

/* Of a class that only agents fail with; a person who has denied is not asked again. */
static void
warn_of_denial(struct reader *r, const struct draft *d)
{
	const struct flow_op *op = first_op(r, d);
	struct json_iter it = json_iterate(op->how->retry.on);
	const struct json *item;

	if (op->kind == FLOW_INSTRUCTION || op->how->retry.on == NULL)
		return;
	while (json_next(&it, NULL, &item))
		if (slice_is(json_text(item), "denied"))
			hint(warning(r, item, "\"denied\" is never tried again: who denies an operation is not asked again"),
			    "denied is what an agent may fail with, by a rule of its provider");
}

void
forewarn(struct reader *r)
{
	const struct draft *d;
	size_t i;

	for (i = 0; i < r->ndrafts; i++) {
		d = &r->drafts[i];
		if (d->count == 0 || d->own)
			continue;
		snprintf(r->context, sizeof(r->context), "operation \"%s\": ", d->id);
		if (first_op(r, d)->how->foreach_pointer != NULL) {
			warn_of_text(r, d);
			warn_of_items(r, d);
		}
		warn_of_length(r, d);
		warn_of_denial(r, d);
		r->context[0] = '\0';
	}
}
