/*
 * Patches: the strict subset of RFC 6902 that flowsup-checkpoint(5) describes. The operations are
 * done to a private candidate that shares all but the changed paths with root; when one does not
 * apply, the candidate is thrown away.
 */
#include <string.h>

#include "pointer.h"
#include "walk.h"

enum kind { ADD, REMOVE, REPLACE, KINDS };
static const char *const kind_names[KINDS] = {"add", "remove", "replace"};

struct operation {
	enum kind kind;
	struct slice path;
	const struct json *value; /* NULL for REMOVE */
};

/* ---- form ---- */

static int
find_kind(const struct json *name, enum kind *kind)
{
	int k;

	for (k = 0; k < KINDS; k++)
		if (json_type(name) == JSON_STRING && slice_is(json_text(name), kind_names[k])) {
			*kind = (enum kind)k;
			return 0;
		}
	return -1;
}

static int
read_operation(const struct json *v, struct operation *op, struct err *e)
{
	const struct json *path = json_get(v, "path");
	size_t members;

	if (json_type(v) != JSON_OBJECT)
		return err_set(e, ERR_SYNTAX, "an operation is an object, not %s", json_type_name(v));
	if (find_kind(json_get(v, "op"), &op->kind) == -1)
		return err_set(e, ERR_SYNTAX, "\"op\" is \"add\", \"remove\" or \"replace\"");
	if (json_type(path) != JSON_STRING)
		return err_set(e, ERR_SYNTAX, "\"path\" is a string");
	op->path = json_text(path);
	op->value = op->kind == REMOVE ? NULL : json_get(v, "value");
	if (op->kind != REMOVE && op->value == NULL)
		return err_set(e, ERR_SYNTAX, "\"%s\" needs a \"value\"", kind_names[op->kind]);
	members = op->kind == REMOVE ? 2 : 3;
	if (json_length(v) != members)
		return err_set(e, ERR_SYNTAX, "\"%s\" has exactly %zu members, not %zu",
		    kind_names[op->kind], members, json_length(v));
	return pointer_check(op->path, e);
}

/* ---- depth ---- */

/* Whether v has more than `limit` levels of containers. */
static bool
is_deeper(const struct json *v, size_t limit)
{
	const struct json *value = v;
	struct walk_frame *f;
	struct walk w;
	bool deeper = false;

	walk_init(&w);
	do {
		if (is_container(value)) {
			f = w.depth < limit ? walk_push(&w) : NULL;
			deeper = f == NULL;
			if (!deeper)
				*f = (struct walk_frame){.a = value, .it = json_iterate(value)};
		}
		while (!deeper && w.depth > 0 && !json_next(&walk_top(&w)->it, NULL, &value))
			w.depth--;
	} while (!deeper && w.depth > 0);
	walk_clear(&w);
	return deeper;
}

/* What a reader would refuse must not come about by patching. */
static bool
gets_too_deep(const struct operation *op)
{
	size_t i, above = 0;

	if (!is_container(op->value))
		return false;
	for (i = 0; i < op->path.len; i++)
		above += op->path.data[i] == '/';
	return above >= JSON_MAX_DEPTH || is_deeper(op->value, JSON_MAX_DEPTH - above);
}

/* ---- effect ---- */

static int
refuse(struct err *e, const char *why)
{
	return err_set(e, ERR_REFUSED, "%s", why);
}

/* A builder's result goes where its container was. */
static int
put_back(struct json **slot, struct json *v, struct err *e)
{
	*slot = v;
	return v == NULL ? err_nomem(e) : 0;
}

static int
add_to_array(struct json **slot, struct slice token, const struct json *value, struct err *e)
{
	size_t at;

	if (slice_is(token, "-"))
		at = json_length(*slot);
	else if (!pointer_index(token, &at))
		return refuse(e, "no index of an array");
	if (at > json_length(*slot))
		return refuse(e, "index behind the end of the array");
	return put_back(slot, json_insert(*slot, at, json_ref(value)), e);
}

static int
add(struct json **slot, struct slice token, const struct json *value, struct err *e)
{
	if (json_type(*slot) == JSON_ARRAY)
		return add_to_array(slot, token, value, e);
	if (json_place(*slot, token) != NO_PLACE)
		return refuse(e, "the member to add exists");
	return put_back(slot, json_setn(*slot, token, json_ref(value)), e);
}

/* REMOVE and REPLACE want a target. */
static int
change(struct json **slot, const struct operation *op, struct slice token, struct err *e)
{
	bool array = json_type(*slot) == JSON_ARRAY;
	int64_t place = pointer_place(*slot, token);
	struct json *v = *slot;

	if (place == NO_PLACE)
		return refuse(e, "the target does not exist");
	if (op->kind == REPLACE)
		v = array ? json_put(v, (size_t)place, json_ref(op->value)) :
			    json_setn(v, token, json_ref(op->value));
	else
		v = array ? json_erase(v, (size_t)place) : json_remove(v, token);
	return put_back(slot, v, e);
}

static int
change_root(struct json **root, const struct operation *op, struct err *e)
{
	if (op->kind != REPLACE)
		return refuse(e, "the root can only be replaced");
	if (json_type(op->value) != JSON_OBJECT)
		return refuse(e, "the root can only be replaced by an object");
	json_unref(*root);
	*root = json_ref(op->value);
	return 0;
}

/* Goes down one step, making it writable on the way. */
static int
step(struct json ***slot, struct slice token, struct err *e)
{
	int64_t place = pointer_place(**slot, token);
	size_t value = json_type(**slot) == JSON_OBJECT;
	struct json **item;

	if (place == NO_PLACE)
		return refuse(e, "a step of the path does not exist");
	item = json_edit_place(*slot, (size_t)place);
	if (item == NULL)
		return err_nomem(e);
	*slot = item + value;
	return is_container(**slot) ? 0 : refuse(e, "a step of the path is no container");
}

static int
apply(struct json **root, const struct operation *op, struct buf *scratch, struct err *e)
{
	struct slice rest = op->path, token;
	struct json **slot = root;

	if (gets_too_deep(op))
		return refuse(e, "the result would be nested too deeply");
	if (!pointer_next(&rest, &token, scratch))
		return change_root(root, op, e);
	if (!is_container(*slot))
		return refuse(e, "the root is no container");
	for (; rest.len > 0; pointer_next(&rest, &token, scratch)) {
		if (buf_ok(scratch, e) == -1 || step(&slot, token, e) == -1)
			return -1;
	}
	if (buf_ok(scratch, e) == -1)
		return -1;
	return op->kind == ADD ? add(slot, token, op->value, e) : change(slot, op, token, e);
}

int
patch_apply(const struct json *root, const struct json *operations, struct json **out,
    struct err *e)
{
	struct json *candidate = json_ref(root);
	struct json_iter it = json_iterate(operations);
	const struct json *v;
	struct operation op = {.kind = ADD};
	struct buf scratch = {0};
	int rc = 0;

	while (rc == 0 && json_next(&it, NULL, &v)) {
		rc = read_operation(v, &op, e);
		if (rc == 0)
			rc = apply(&candidate, &op, &scratch, e);
	}
	buf_clear(&scratch);
	if (rc == 0) {
		*out = candidate;
		return 0;
	}
	json_unref(candidate);
	/* Where there is one alone, it is known which. */
	return json_length(operations) == 1 ? -1 : err_wrap(e, "step %zu of the patch", it.position);
}

int
json_patch(const struct json *root, const struct json *operations, struct json **out, struct err *e)
{
	if (json_type(operations) != JSON_ARRAY || operations == NULL)
		return err_set(e, ERR_SYNTAX, "a patch is an array of operations, not %s",
		    json_type_name(operations));
	return patch_apply(root, operations, out, e);
}
