#include "changes.h"

#include "flowsup/checkpoint.h"
#include "flowsup/clock.h"

static const char *const kept[] = {CONTEXT_MESSAGES, CONTEXT_APPROVALS, CONTEXT_PLANNER};
enum { KEPT = sizeof(kept) / sizeof(kept[0]) };

/* ---- Changes ---- */

static bool
is_kept(struct slice pointer)
{
	const char *slash;
	struct slice first;
	size_t i = 0;

	if (pointer.len == 0 || pointer.data[0] != '/')
		return false;
	first = (struct slice){pointer.data + 1, pointer.len - 1};
	slash = memchr(first.data, '/', first.len);
	if (slash != NULL)
		first.len = (size_t)(slash - first.data);
	/* None of the names holds a character that a pointer writes in another way. */
	while (i < KEPT && !slice_is(first, kept[i]))
		i++;
	return i < KEPT;
}

static struct json *
operation(const char *op, struct slice path, const char *behind, struct json *value)
{
	struct json *o = json_set(json_object(), "op", json_cstr(op)), *text;
	struct buf whole = {0};

	buf_slice(&whole, path);
	buf_puts(&whole, behind);
	text = whole.failed ? NULL : json_string(buf_view(&whole));
	buf_clear(&whole);
	o = json_set(o, "path", text);
	/* NULL stands for "no value" here only when the operation has none. */
	return strcmp(op, "remove") == 0 ? o : json_set(o, "value", value);
}

static int
apply_operation(const struct json *context, struct json *one, struct json **out, struct err *e)
{
	struct json *patch = json_append(json_array(), one);
	int rc;

	if (patch == NULL)
		return err_nomem(e);
	rc = json_patch(context, patch, out, e);
	json_unref(patch);
	return rc;
}

/* What stands there, NULL when nothing does. A pointer that is none is an error. */
static int
look(const struct json *context, struct slice pointer, const struct json **there, struct err *e)
{
	struct err why = {0};

	*there = json_pointer_get(context, pointer, &why);
	if (*there != NULL || why.code == ERR_NOTFOUND)
		return 0;
	*e = why;
	return -1;
}

static int
apply_set(const struct json *context, struct slice pointer, const struct json *value,
    struct json **out, struct err *e)
{
	const struct json *there;

	if (look(context, pointer, &there, e) != 0)
		return -1;
	return apply_operation(context,
	    operation(there != NULL ? "replace" : "add", pointer, "", json_ref(value)), out, e);
}

static int
apply_append(const struct json *context, struct slice pointer, const struct json *value,
    struct json **out, struct err *e)
{
	const struct json *there;

	if (look(context, pointer, &there, e) != 0)
		return -1;
	if (there == NULL)
		return apply_operation(context,
		    operation("add", pointer, "", json_append(json_array(), json_ref(value))), out, e);
	if (json_type(there) != JSON_ARRAY)
		return err_set(e, ERR_REFUSED, "is no array but %s", json_type_name(there));
	return apply_operation(context, operation("add", pointer, "/-", json_ref(value)), out, e);
}

/* A context that is nested deeper could not be read again from a checkpoint. */
static int
check_depth(struct slice pointer, bool append, const struct json *value, struct err *e)
{
	unsigned below = append;
	size_t i;

	for (i = 0; i < pointer.len && below <= CKPT_MAX_CONTEXT_DEPTH; i++)
		below += pointer.data[i] == '/';
	if (below + json_depth(value, CKPT_MAX_CONTEXT_DEPTH) <= CKPT_MAX_CONTEXT_DEPTH)
		return 0;
	return err_set(e, ERR_LIMIT, "the context would be nested more than %d levels deep",
	    CKPT_MAX_CONTEXT_DEPTH);
}

static int
check_pointer(const struct json *text, struct slice *pointer, struct err *e)
{
	if (text == NULL || json_type(text) != JSON_STRING)
		return err_set(e, ERR_USAGE, "a change of the context needs a pointer");
	*pointer = json_text(text);
	if (pointer->len == 0)
		return err_set(e, ERR_REFUSED, "the whole context cannot be changed at once");
	if (is_kept(*pointer))
		return err_set(e, ERR_REFUSED, "%.*s is kept by flowsup itself", (int)pointer->len,
		    pointer->data);
	return 0;
}

static int
apply_at(const struct json *context, struct slice op, struct slice pointer,
    const struct json *value, struct json **out, struct err *e)
{
	if (slice_is(op, "remove"))
		return apply_operation(context, operation("remove", pointer, "", NULL), out, e);
	if (!slice_is(op, "set") && !slice_is(op, "append"))
		return err_set(e, ERR_USAGE, "\"%.*s\" is no change of the context; "
		    "there are set, append and remove", (int)(op.len < 64 ? op.len : 64),
		    op.len > 0 ? op.data : "");
	if (value == NULL)
		return err_set(e, ERR_USAGE, "%.*s needs a value", (int)op.len, op.data);
	if (check_depth(pointer, slice_is(op, "append"), value, e) != 0)
		return -1;
	return slice_is(op, "set") ? apply_set(context, pointer, value, out, e)
				   : apply_append(context, pointer, value, out, e);
}

int
change_apply(const struct json *context, const struct json *change, struct json **out,
    struct err *e)
{
	struct slice pointer;

	if (check_pointer(json_get(change, "pointer"), &pointer, e) != 0)
		return -1;
	if (apply_at(context, json_text(json_get(change, "op")), pointer, json_get(change, "value"), out,
		e) != 0)
		return err_wrap(e, "%.*s", (int)pointer.len, pointer.data);
	return 0;
}

int
changes_apply(const struct json *context, const struct json *changes, struct json **out,
    struct err *e)
{
	struct json_iter it = json_iterate(changes);
	struct json *now = json_ref(context), *next;
	const struct json *change;
	size_t n = 0;

	for (; json_next(&it, NULL, &change); n++) {
		if (change_apply(now, change, &next, e) != 0) {
			json_unref(now);
			return err_wrap(e, "change %zu of the context", n + 1);
		}
		json_unref(now);
		now = next;
	}
	*out = now;
	return 0;
}

struct json *
context_public(const struct json *context)
{
	struct json *public = json_ref(context);
	size_t i;

	for (i = 0; i < KEPT; i++)
		public = json_remove(public, slice_of(kept[i]));
	return public;
}

const struct json *
changes_of_response(const struct json *response)
{
	const struct json *list, *one;
	struct json_iter it;

	if (response == NULL || json_type(response) != JSON_OBJECT)
		return NULL;
	list = json_get(response, "context");
	if (list == NULL || json_type(list) != JSON_ARRAY || json_length(list) == 0)
		return NULL;
	it = json_iterate(list);
	while (json_next(&it, NULL, &one))
		if (json_type(one) != JSON_OBJECT || json_get(one, "op") == NULL)
			return NULL;
	return list;
}

/* ---- Messages ---- */

struct json *
messages_add(struct json *messages, double ts, const struct json *text, const struct json *to)
{
	struct json *entry = json_set(json_object(), "ts", json_real(ts));

	entry = json_set(entry, "text", text != NULL ? json_ref(text) : json_cstr(""));
	if (to != NULL)
		entry = json_set(entry, "to", json_ref(to));
	return json_append(messages != NULL ? messages : json_array(), entry);
}

struct json *
messages_add_turn(struct json *messages, double ts, const struct json *text, const char *op,
    int64_t turn)
{
	struct json *all = messages_add(messages, ts, text, NULL), *entry;
	size_t last = json_length(all);

	if (all == NULL)
		return NULL;
	entry = json_set(json_ref(json_at(all, last - 1)), "rendered_into_op", json_cstr(op));
	return json_put(all, last - 1, json_set(entry, "turn", json_int(turn)));
}

static int64_t
turn_of(const struct json *entry)
{
	int64_t turn;

	return json_int64(json_get(entry, "turn"), &turn) ? turn : 0;
}

int64_t
messages_last_turn(const struct json *messages, const char *op)
{
	struct json_iter it = json_iterate(messages);
	const struct json *entry;
	int64_t last = 0;

	while (json_next(&it, NULL, &entry))
		if (turn_of(entry) > last && slice_is(json_text(json_get(entry, "rendered_into_op")), op))
			last = turn_of(entry);
	return last;
}

static bool
is_rendered(const struct json *entry)
{
	return json_get(entry, "rendered_into_op") != NULL;
}

static bool
is_for(const struct json *entry, const char *op)
{
	const struct json *to = json_get(entry, "to");

	return to == NULL || slice_is(json_text(to), op);
}

struct json *
messages_mark(struct json *messages, const char *op, size_t *marked)
{
	size_t i, n = json_length(messages);
	const struct json *entry;

	*marked = 0;
	for (i = 0; i < n && messages != NULL; i++) {
		entry = json_at(messages, i);
		if (is_rendered(entry) || !is_for(entry, op))
			continue;
		messages = json_put(messages, i,
		    json_set(json_ref(entry), "rendered_into_op", json_cstr(op)));
		++*marked;
	}
	return messages;
}

static void
add_line(const struct json *entry, struct buf *to)
{
	char time[TIME_TEXT];
	double ts = 0;

	json_double(json_get(entry, "ts"), &ts);
	buf_printf(to, "- %s: ", time_format(ts, true, time));
	buf_slice(to, json_text(json_get(entry, "text")));
	buf_putc(to, '\n');
}

void
messages_lines(const struct json *messages, const char *op, int64_t turn, struct buf *to)
{
	struct json_iter it = json_iterate(messages);
	const struct json *entry;
	bool any = false;

	while (json_next(&it, NULL, &entry)) {
		if (!slice_is(json_text(json_get(entry, "rendered_into_op")), op) ||
		    (turn != 0 && turn_of(entry) != turn))
			continue;
		if (!any)
			buf_puts(to, "[OPERATOR STEER]\n"
			    "A human operator sent these live corrections while this flow is running.\n"
			    "Attend to them before continuing. Most recent last.\n");
		any = true;
		add_line(entry, to);
	}
	if (any)
		buf_puts(to, "[/OPERATOR STEER]\n");
}

static bool
is_rendered_into(const struct json *entry, const char *op)
{
	return slice_is(json_text(json_get(entry, "rendered_into_op")), op);
}

void
messages_ranges(const struct json *messages, const char *op, struct buf *to)
{
	size_t i, first, n = json_length(messages);
	bool any = false;

	for (i = 0; i < n; i++) {
		if (!is_rendered_into(json_at(messages, i), op))
			continue;
		for (first = i; i + 1 < n && is_rendered_into(json_at(messages, i + 1), op); i++)
			;
		buf_printf(to, "%s[%zu,%zu]", any ? "," : "[", first, i);
		any = true;
	}
	if (any)
		buf_putc(to, ']');
}

struct json *
messages_mark_ranges(struct json *messages, const struct json *ranges, const char *op, size_t *marked)
{
	struct json_iter it = json_iterate(ranges);
	const struct json *range;
	uint64_t i, last;

	*marked = 0;
	while (json_next(&it, NULL, &range)) {
		if (!json_uint64(json_at(range, 0), &i) || !json_uint64(json_at(range, 1), &last))
			continue;
		for (; i <= last && i < json_length(messages); i++) {
			if (is_rendered(json_at(messages, i)))
				continue;
			messages = json_put(messages, i, json_set(json_ref(json_at(messages, i)),
			    "rendered_into_op", json_cstr(op)));
			++*marked;
		}
	}
	return messages;
}

size_t
messages_unrendered(const struct json *messages)
{
	struct json_iter it = json_iterate(messages);
	const struct json *entry;
	size_t n = 0;

	while (json_next(&it, NULL, &entry))
		n += !is_rendered(entry);
	return n;
}
