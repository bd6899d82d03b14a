/* A planner's answer: whether it is a plan, and the flow that it makes. */
#include <stdio.h>

#include "flowsup/provider.h"
#include "model.h"

enum { CUT_NAMED = 8, EMPTY_NAMED = 8 };

static size_t
most_operations(const struct flow *f)
{
	return f->max_ops >= 0 ? (size_t)f->max_ops : FLOW_MAX_PLAN;
}

/* The list of operations in an answer: it is one, or an object that holds nothing else. */
static int
find_list(const struct json *answer, const struct json **list, struct err *e)
{
	*list = answer;
	if (json_type(answer) == JSON_OBJECT && json_get(answer, "plan") != NULL) {
		if (json_length(answer) > 1)
			return err_set(e, ERR_DOCUMENT,
			    "beside \"plan\" the answer must have no other member");
		*list = json_get(answer, "plan");
	}
	if (json_type(*list) != JSON_ARRAY)
		return err_set(e, ERR_DOCUMENT, "the answer must be a list of operations, not %s",
		    found(*list));
	if (json_length(*list) == 0)
		return err_set(e, ERR_DOCUMENT, "the plan is empty");
	return 0;
}

/* How many operations an element is: as many as the list has that is written in it. */
static size_t
operations_of(const struct json *item)
{
	const struct json *each = json_get(item, "foreach");

	return each != NULL && json_type(each) == JSON_ARRAY ? json_length(each) : 1;
}

static size_t
count_operations(const struct json *list)
{
	struct json_iter it = json_iterate(list);
	const struct json *item;
	size_t n = 0;

	while (json_next(&it, NULL, &item))
		n += operations_of(item);
	return n;
}

static struct json *
first_items(const struct json *list, size_t most)
{
	struct json_iter it = json_iterate(list);
	struct json *cut = json_array();
	const struct json *item;
	size_t n;

	for (n = 0; n < most && json_next(&it, NULL, &item); n++)
		cut = json_append(cut, json_ref(item));
	return cut;
}

/* The element with which the most are reached may be taken with a part of its items. */
static struct json *
first_of(const struct json *list, size_t most)
{
	struct json_iter it = json_iterate(list);
	struct json *cut = json_array(), *taken;
	const struct json *item;
	size_t n;

	while (json_next(&it, NULL, &item)) {
		n = operations_of(item);
		if (n > most && most == 0)
			break;
		taken = json_ref(item);
		if (n > most)
			taken = json_set(taken, "foreach", first_items(json_get(item, "foreach"), most));
		cut = json_append(cut, taken);
		if (n > most)
			break;
		most -= n;
	}
	return cut;
}

/* The document with the answer for its plan. */
static struct json *
candidate(const struct flow *f, const struct json *entries)
{
	struct json *doc = json_remove(flow_config(f), slice_of("planner"));

	if (json_get(f->document, "prompt") != NULL)
		doc = json_set(doc, "prompt", json_ref(json_get(f->document, "prompt")));
	return json_set(doc, "plan", json_ref(entries));
}

/* Everything that is wrong, for who has to write it anew. */
static int
tell_all(const struct flow_diagnostics *d, struct err *e)
{
	struct buf text = {0};
	size_t i;

	if (e != NULL && e->code == ERR_NOMEM)
		return -1;
	for (i = 0; i < d->count; i++) {
		if (d->items[i].warning)
			continue;
		buf_printf(&text, "%s%s", text.len > 0 ? "; " : "", d->items[i].message);
		if (d->items[i].hint[0] != '\0')
			buf_printf(&text, " (%s)", d->items[i].hint);
	}
	if (buf_ok(&text, e) == 0 && text.len > 0)
		err_set(e, ERR_DOCUMENT, "%s", buf_text(&text));
	buf_clear(&text);
	return -1;
}

/* Ids of operations that were left out, of one element that has left of them. */
static void
name_cut(const struct json *item, size_t left, size_t *named, struct buf *to)
{
	const char *id = json_cstr_of(json_get(item, "id"));
	size_t n = operations_of(item), i;

	for (i = n - left; id != NULL && i < n && *named < CUT_NAMED; i++) {
		buf_printf(to, "%s\"%.64s", (*named)++ > 0 ? ", " : "", id);
		if (json_get(item, "foreach") != NULL && json_type(json_get(item, "foreach")) == JSON_ARRAY)
			buf_printf(to, ".%zu", i);
		buf_putc(to, '"');
	}
}

/* Whoever wrote it has not seen that it was cut, and may be told that what it has written is not there. */
static void
tell_cut(const struct json *list, size_t most, struct err *e)
{
	size_t n = count_operations(list), named = 0, have, room = most;
	struct json_iter it = json_iterate(list);
	const struct json *item;
	struct buf text = {0};
	struct err why = *e;

	if (n <= most || e->code == ERR_NOMEM)
		return;
	while (json_next(&it, NULL, &item)) {
		have = operations_of(item);
		name_cut(item, have > room ? have - room : 0, &named, &text);
		room -= have < room ? have : room;
	}
	if (buf_ok(&text, e) == 0)
		err_set(e, why.code, "of its %zu operations only the first %zu are taken, as there may be at most %zu: nothing "
		    "may need or name one of the others%s%s%s%s; %s", n, most, most, text.len > 0 ? " (" : "",
		    buf_text(&text), named < n - most ? ", ..." : "", text.len > 0 ? ")" : "", why.msg);
	buf_clear(&text);
}

static int
check_entries(const struct flow *f, const struct provider_search *search,
    const struct json *entries, struct err *e)
{
	struct flow_diagnostics d = {0};
	struct json *doc = candidate(f, entries);
	struct flow *g = NULL;
	int r;

	if (doc == NULL)
		return err_nomem(e);
	r = model_read(doc, ORIGIN_MODEL, NULL, &d, &g, e);
	if (r == 0)
		r = flow_check_providers(g, search, NULL, NULL, &d, e);
	if (r < 0)
		tell_all(&d, e);
	flow_free(g);
	flow_diagnostics_clear(&d);
	return r;
}

int
flow_plan_accept(const struct flow *f, const struct provider_search *search,
    const struct json *answer, struct json **plan, size_t *left_out, struct err *e)
{
	const struct json *list;
	struct json *entries;
	size_t most = most_operations(f);

	if (find_list(answer, &list, e) < 0)
		return -1;
	entries = first_of(list, most);
	if (entries == NULL)
		return err_nomem(e);
	if (check_entries(f, search, entries, e) < 0) {
		tell_cut(list, most, e);
		json_unref(entries);
		return -1;
	}
	*left_out = count_operations(list) - count_operations(entries);
	*plan = entries;
	return 0;
}

struct json *
flow_empty_lists(const struct json *plan)
{
	struct json_iter it = json_iterate(plan);
	struct json *ops = json_array(), *empty;
	const struct json *item;
	size_t n = 0;

	while (json_next(&it, NULL, &item))
		if (operations_of(item) == 0 && n++ < EMPTY_NAMED)
			ops = json_append(ops, json_ref(json_get(item, "id")));
	if (n > 0 || ops == NULL)
		return json_set(json_set(json_object(), "count", json_uint(n)), "ops", ops);
	empty = json_null();
	json_unref(ops);
	return empty;
}

/* NULL: it has not answered yet. */
static const struct json *
recorded_answer(const struct json *state)
{
	const struct json *entry = json_get(json_get(state, "ops"), FLOW_PLANNER);
	bool planned = json_length(json_get(json_get(state, "config"), "planner")) > 0;

	return planned && slice_is(json_text(json_get(entry, "status")), "completed") ? json_get(entry, "response") : NULL;
}

struct json *
flow_recorded_cut(const struct json *state)
{
	bool synthesis = json_length(json_get(json_get(state, "config"), "synthesis")) > 0;
	size_t besides = 1 + synthesis, all = json_length(json_get(state, "plan"));
	const struct json *kept = json_get(json_get(state, "flow_context"), FLOW_PLANNER_CONTEXT);
	uint64_t n;

	/* Where the plan itself is not recorded yet, who makes it of the answer tells. */
	if (recorded_answer(state) == NULL || all <= besides || !json_uint64(json_get(kept, "left_out"), &n) || n == 0)
		return json_null();
	return json_set(json_set(json_object(), "left_out", json_uint(n)), "allowed", json_uint(all - besides));
}

struct json *
flow_recorded_empty_lists(const struct json *state)
{
	const struct json *plan = recorded_answer(state);

	return plan != NULL ? flow_empty_lists(plan) : json_null();
}

void
flow_empty_lists_text(const struct json *empty, struct buf *to)
{
	const struct json *ops = json_get(empty, "ops"), *id;
	struct json_iter it = json_iterate(ops);
	size_t named = json_length(ops), i = 0;
	int64_t n = 0;

	json_int64(json_get(empty, "count"), &n);
	buf_printf(to, "the list%s of \"foreach\" of ", n == 1 ? "" : "s");
	while (json_next(&it, NULL, &id)) {
		buf_puts(to, i == 0 ? "" : i + 1 == named && (int64_t)named == n ? " and " : ", ");
		buf_slice(to, json_text(id));
		i++;
	}
	if (n > (int64_t)named)
		buf_printf(to, " and %lld more", (long long)(n - (int64_t)named));
	buf_puts(to, n == 1 ? " is empty: nothing is done for it" : " are empty: nothing is done for them");
}

int
flow_with_plan(const struct flow *f, const struct json *plan, struct flow **out, struct err *e)
{
	struct json *doc = flow_as_document(f), *entries = json_ref(json_get(doc, "plan"));
	struct json_iter it = json_iterate(plan);
	const struct json *entry;
	int r;

	while (json_next(&it, NULL, &entry))
		entries = json_append(entries, json_ref(entry));
	doc = json_set(doc, "plan", entries);
	if (doc == NULL)
		return err_nomem(e);
	r = flow_from_document(doc, out, e);
	json_unref(doc);
	return r;
}

/* ---- What a planner is told ---- */

static void
add_roles(const struct flow *f, struct buf *to)
{
	const struct flow_role *role;
	size_t i, n = 0;

	for (i = 0; i < f->nroles; i++) {
		role = &f->roles[i];
		if (role->provider == NULL ||
		    (!f->model_commands && strcmp(role->provider, "sh") == 0))
			continue;
		buf_printf(to, "%s%s", n++ > 0 ? ", " : "", role->name);
	}
}

void
flow_planner_format(const struct flow *f, struct buf *to)
{
	buf_puts(to, "\n\nAnswer with a plan and nothing else: one JSON array, without any text around it "
		     "and without a code fence. Each element is an object that describes one operation:\n"
		     "- \"id\": a name, unique in the plan: letters, digits, '.', '_' and '-'; not \"" FLOW_PLANNER
		     "\"");
	if (f->synthesis != NULL)
		buf_puts(to, " or \"" FLOW_SYNTHESIS "\"");
	buf_puts(to, "\n- \"assignee\": who does it, one of: ");
	add_roles(f, to);
	buf_puts(to, "\n- \"instruction\": all that the assignee needs to know; {{ops.ID.response}} stands "
		     "for the answer of an operation that it needs\n"
		     "- \"needs\": the ids of operations that must be complete before, [] when there are none\n");
	if (f->model_commands)
		buf_puts(to, "In place of \"assignee\" and \"instruction\" an operation may have \"run\", "
			     "a text for /bin/sh, or \"exec\", a list of a program and its arguments.\n");
	buf_printf(to, "Operations that do not need each other run at the same time. There may be at "
		       "most %zu.\n", most_operations(f));
}
