#include <assert.h>

#include "base.h"
#include "entry.h"
#include "state.h"

static struct json *
ref_or_null(const struct json *v)
{
	return v != NULL ? json_ref(v) : NULL;
}

static bool
changes(struct slice name)
{
	return slice_is(name, "flow_context") || slice_is(name, "ops") || slice_is(name, "spawned");
}

static struct json *
index_of(const struct json *spawned)
{
	struct json_iter it = json_iterate(spawned);
	struct json *places = json_object();
	const struct json *entry;
	int64_t i = 0;

	while (json_next(&it, NULL, &entry))
		places = json_setn(places, json_text(json_get(entry, "node_id")), json_int(i++));
	return places;
}

int
state_init(struct state *s, const struct json *root, struct err *e)
{
	struct json_iter it = json_iterate(root);
	const struct json *value, *spawned = json_get(root, "spawned");
	struct state made = {0};
	struct slice name;

	made.rest = json_object();
	while (json_next(&it, &name, &value))
		if (!changes(name))
			made.rest = json_setn(made.rest, name, json_ref(value));
	made.context = ref_or_null(json_get(root, "flow_context"));
	made.ops = ref_or_null(json_get(root, "ops"));
	made.spawned = spawned != NULL ? json_ref(spawned) : json_array();
	made.places = index_of(made.spawned);
	if (made.context == NULL)
		made.context = json_object();
	if (made.ops == NULL)
		made.ops = json_object();
	if (made.rest == NULL || made.context == NULL || made.ops == NULL ||
	    made.spawned == NULL || made.places == NULL) {
		state_clear(&made);
		return err_nomem(e);
	}
	*s = made;
	return 0;
}

enum { PACKED_MOST = 4096 }; /* bytes of an encoded entry */

/* A string that holds the encoding of v, or v itself where that has more than `most` bytes. */
static struct json *
packed(const struct json *v, size_t most)
{
	struct json *text = NULL;
	struct buf b = {0};

	json_write(&b, v);
	if (buf_ok(&b, NULL) == 0)
		text = b.len > most ? json_ref(v) : json_string(buf_view(&b));
	buf_clear(&b);
	return text;
}

/* What is kept of an entry; encoding: its own, if it is there already, else empty. */
static struct json *
kept_entry(const struct state *s, const struct json *entry, struct slice encoding)
{
	if (!s->packed || encoding.len > PACKED_MOST)
		return json_ref(entry);
	return encoding.len > 0 ? json_string(encoding) : packed(entry, PACKED_MOST);
}

static struct json *
packed_entries(const struct json *entries)
{
	const bool named = json_type(entries) == JSON_OBJECT;
	struct json *made = named ? json_object() : json_array();
	struct json_iter it = json_iterate(entries);
	const struct json *entry;
	struct slice name;

	while (made != NULL && json_next(&it, &name, &entry))
		made = named ? json_setn(made, name, packed(entry, PACKED_MOST)) :
			       json_append(made, packed(entry, PACKED_MOST));
	return made;
}

static void
replace(struct json **part, struct json *with)
{
	json_unref(*part);
	*part = with;
}

int
state_init_packed(struct state *s, const struct json *root, struct err *e)
{
	struct state made;

	if (state_init(&made, root, e) != 0)
		return -1;
	replace(&made.ops, packed_entries(json_get(root, "ops")));
	replace(&made.spawned, packed_entries(json_get(root, "spawned")));
	made.rest = json_set(made.rest, "plan", packed(json_get(root, "plan"), SIZE_MAX));
	made.packed = true;
	if (made.ops == NULL || made.spawned == NULL || made.rest == NULL) {
		state_clear(&made);
		return err_nomem(e);
	}
	*s = made;
	return 0;
}

void
state_clear(struct state *s)
{
	json_unref(s->rest);
	json_unref(s->context);
	json_unref(s->ops);
	json_unref(s->spawned);
	json_unref(s->places);
	*s = (struct state){0};
}

struct state
state_ref(const struct state *s)
{
	return (struct state){
		.rest = json_ref(s->rest),
		.context = json_ref(s->context),
		.ops = json_ref(s->ops),
		.spawned = json_ref(s->spawned),
		.packed = s->packed,
		.places = json_ref(s->places),
	};
}

struct json *
state_root(const struct state *s)
{
	const char *const *order = base_member_order();
	struct json *root = json_object();
	struct json_iter it = json_iterate(s->rest);
	const struct json *value;
	struct slice name;

	assert(!s->packed);

	/* Known members first and in the order of a base, then what a version 2 file brought along. */
	for (; *order != NULL; order++) {
		if (slice_is(slice_of(*order), "flow_context"))
			root = json_set(root, *order, json_ref(s->context));
		else if (slice_is(slice_of(*order), "ops"))
			root = json_set(root, *order, json_ref(s->ops));
		else if (slice_is(slice_of(*order), "spawned"))
			root = json_set(root, *order, json_ref(s->spawned));
		else if ((value = json_get(s->rest, *order)) != NULL)
			root = json_set(root, *order, json_ref(value));
	}
	while (json_next(&it, &name, &value))
		if (root != NULL && json_getn(root, name) == NULL)
			root = json_setn(root, name, json_ref(value));
	return root;
}

/* Consumes kept, which stands for the entry. */
static void
put_spawned(struct state *s, const struct json *entry, struct json *kept)
{
	struct slice id = json_text(json_get(entry, "node_id"));
	const struct json *place = json_getn(s->places, id);
	const size_t end = json_length(s->spawned);
	int64_t at;

	if (place != NULL && json_int64(place, &at)) {
		s->spawned = json_put(s->spawned, (size_t)at, kept);
		return;
	}
	s->spawned = json_append(s->spawned, kept);
	s->places = json_setn(s->places, id, json_int((int64_t)end));
}

static struct json *
unpacked(const struct state *s, const struct json *v)
{
	struct json *made = NULL;

	if (!s->packed)
		return ref_or_null(v);
	return json_parse(json_text(v), NULL, &made, NULL, NULL) == 0 ? made : NULL;
}

static void
add_plan(struct state *s, const struct json *entries)
{
	struct json *plan = unpacked(s, json_get(s->rest, "plan")), *kept;
	struct json_iter it = json_iterate(entries);
	const struct json *entry;

	while (json_next(&it, NULL, &entry))
		plan = json_append(plan, json_ref(entry));
	kept = s->packed && plan != NULL ? packed(plan, SIZE_MAX) : ref_or_null(plan);
	json_unref(plan);
	s->rest = json_set(s->rest, "plan", kept);
}

int
state_apply(struct state *s, enum ckpt_kind kind, const struct json *entry,
    struct slice encoding, const struct json *context, struct err *e)
{
	struct json *kept = NULL;

	if (kind == CKPT_OP || kind == CKPT_SPAWNED)
		kept = kept_entry(s, entry, encoding);
	if (kind == CKPT_OP)
		s->ops = json_setn(s->ops, json_text(entry_identity(kind, entry)), kept);
	else if (kind == CKPT_SPAWNED)
		put_spawned(s, entry, kept);
	else if (kind == CKPT_PLAN)
		add_plan(s, entry);
	if (context != NULL) {
		json_unref(s->context);
		s->context = json_ref(context);
	}
	if (s->rest != NULL && s->ops != NULL && s->spawned != NULL && s->places != NULL)
		return 0;
	state_clear(s);
	return err_nomem(e);
}
