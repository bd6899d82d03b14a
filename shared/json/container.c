/* Arrays and objects: looking, walking, changing. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "value.h"

static struct array empty_array = {
    .head = {.refs = 2, .type = JSON_ARRAY, .flags = F_IMMORTAL}};
static struct object empty_object = {
    .seq.head = {.refs = 2, .type = JSON_OBJECT, .flags = F_IMMORTAL}};

struct json *
json_array(void)
{
	return &empty_array.head;
}

struct json *
json_object(void)
{
	return &empty_object.seq.head;
}

static struct array *
array_in(struct json *v)
{
	return (struct array *)(void *)v;
}

static struct object *
object_in(struct json *v)
{
	assert(v->type == JSON_OBJECT);
	return (struct object *)(void *)v;
}

static bool
is_type(const struct json *v, enum json_type type)
{
	return v != NULL && v->type == type;
}

/* ---- looking ---- */

size_t
json_places(const struct json *v)
{
	return is_container(v) ? array_of(v)->used : 0;
}

size_t
json_length(const struct json *v)
{
	return is_container(v) ? array_of(v)->used - array_of(v)->dead : 0;
}

struct json *const *
json_at_place(const struct json *v, size_t place)
{
	size_t first;
	const struct leaf *l = seq_find(array_of(v)->root, place, &first);

	return &l->item[(place - first) * l->head.width];
}

const struct json *
json_at(const struct json *v, size_t i)
{
	if (!is_type(v, JSON_ARRAY) || i >= array_of(v)->used)
		return NULL;
	return *json_at_place(v, i);
}

static int64_t
place_by_index(const struct json *v, struct slice name)
{
	uint32_t hash = trie_hash(name);
	struct trie_entries found = trie_find(object_of(v)->index, hash);
	unsigned i;

	for (i = 0; i < found.count; i++) {
		uint32_t place = trie_entry_place(found.entry[i]);

		if (trie_entry_hash(found.entry[i]) == hash &&
		    slice_eq(text_slice(json_at_place(v, place)[0]), name))
			return place;
	}
	return NO_PLACE;
}

int64_t
json_place(const struct json *v, struct slice name)
{
	const struct leaf *l;
	size_t first, i;

	if (object_of(v)->index != NULL)
		return place_by_index(v, name);
	if (array_of(v)->used == 0)
		return NO_PLACE;
	/* Without an index all members are in one leaf, and no place is empty. */
	l = seq_find(array_of(v)->root, 0, &first);
	for (i = 0; i < l->head.count; i++) {
		const struct text *t = text_of(l->item[2 * i]);

		/* Most differ in length or first letter. */
		if (t->len == name.len && (name.len == 0 || (t->data[0] == name.data[0] &&
		    memcmp(t->data, name.data, name.len) == 0)))
			return (int64_t)i;
	}
	return NO_PLACE;
}

const struct json *
json_getn(const struct json *v, struct slice name)
{
	int64_t place;

	if (!is_type(v, JSON_OBJECT))
		return NULL;
	place = json_place(v, name);
	return place == NO_PLACE ? NULL : json_at_place(v, (size_t)place)[1];
}

const struct json *
json_get(const struct json *v, const char *name)
{
	return json_getn(v, slice_of(name));
}

/* ---- walking ---- */

struct json_iter
json_iterate(const struct json *container)
{
	return (struct json_iter){.container = container};
}

/* The pointers at the iterator's position; the leaf is looked for once for all its places. */
static struct json *const *
iter_place(struct json_iter *it)
{
	const struct leaf *l = it->leaf;
	size_t first;

	if (l == NULL || it->position >= it->leaf_end) {
		l = seq_find(array_of(it->container)->root, it->position, &first);
		it->leaf = l;
		it->leaf_end = first + l->head.count;
	}
	first = it->leaf_end - l->head.count;
	return &l->item[(it->position - first) * l->head.width];
}

bool
json_next(struct json_iter *it, struct slice *name, const struct json **value)
{
	size_t used = json_places(it->container);

	while (it->position < used) {
		struct json *const *item = iter_place(it);
		bool object = it->container->type == JSON_OBJECT;

		it->position++;
		if (*item == NULL)
			continue;
		if (name != NULL)
			*name = object ? text_slice(item[0]) : (struct slice){"", 0};
		*value = item[object];
		return true;
	}
	return false;
}

const struct json *
json_find(const struct json *array, const char *name, const char *text)
{
	struct json_iter it = json_iterate(array);
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (slice_is(json_text(name != NULL ? json_get(one, name) : one), text))
			return one;
	return NULL;
}

const struct json *
json_iter_name(const struct json_iter *it)
{
	const struct leaf *l = it->leaf;

	if (l == NULL || l->head.width != 2)
		return NULL;
	return l->item[(it->position - 1 - (it->leaf_end - l->head.count)) * 2];
}

/* ---- making ---- */

static size_t
size_for(enum json_type type)
{
	return type == JSON_OBJECT ? sizeof(struct object) : sizeof(struct array);
}

static unsigned
width_of(const struct json *v)
{
	return v->type == JSON_OBJECT ? 2 : 1;
}

struct json *
json_build(enum json_type type, struct json *const *items, size_t n, struct trie *index,
    const struct json_where *where)
{
	struct array *a;

	if (n == 0 && where == NULL)
		return type == JSON_OBJECT ? json_object() : json_array();
	if (n > UINT32_MAX - FAN)
		return NULL;
	a = json_alloc(type, size_for(type), where);
	if (a == NULL)
		return NULL;
	if (seq_build(&a->root, width_of(&a->head), items, n) == -1) {
		json_free_memory(&a->head);
		return NULL;
	}
	a->used = (uint32_t)n;
	a->dead = 0;
	if (type == JSON_OBJECT)
		object_in(&a->head)->index = index;
	return &a->head;
}

/* The same content under a head that nobody else holds. Consumes v. */
static struct json *
unshared(struct json *v)
{
	struct array *a;

	if (is_unique(v))
		return v;
	a = json_alloc((enum json_type)v->type, size_for((enum json_type)v->type), NULL);
	if (a == NULL) {
		json_unref(v);
		return NULL;
	}
	a->used = array_of(v)->used;
	a->dead = array_of(v)->dead;
	a->root = array_of(v)->root;
	seq_ref(a->root);
	if (v->type == JSON_OBJECT) {
		object_in(&a->head)->index = object_of(v)->index;
		trie_ref(object_of(v)->index);
	}
	json_unref(v);
	return &a->head;
}

struct json **
json_edit_place(struct json **container, size_t place)
{
	struct json *v = unshared(*container);

	*container = v;
	return v == NULL ? NULL : seq_edit(&array_in(v)->root, place);
}

/* Frees what a function was given, when an earlier step or this one failed. */
static struct json *
give_up(struct json *container, struct json *value)
{
	json_unref(container);
	json_unref(value);
	return NULL;
}

/* ---- arrays ---- */

static bool
can_change(const struct json *container, enum json_type type, const struct json *value)
{
	assert(container == NULL || container->type == type);
	return is_type(container, type) && value != NULL;
}

struct json *
json_insert(struct json *v, size_t at, struct json *value)
{
	if (!can_change(v, JSON_ARRAY, value) || at > array_of(v)->used ||
	    array_of(v)->used > UINT32_MAX - FAN)
		return give_up(v, value);
	v = unshared(v);
	if (v == NULL)
		return give_up(v, value);
	if (seq_insert(&array_in(v)->root, at, 1, &value) == -1)
		return give_up(v, NULL);
	array_in(v)->used++;
	return v;
}

struct json *
json_append(struct json *v, struct json *value)
{
	return json_insert(v, json_places(v), value);
}

/* Replaces the value at a place of either kind of container; the same value changes nothing. */
static struct json *
put_at_place(struct json *v, size_t place, struct json *value)
{
	unsigned last = width_of(v) - 1;
	struct json **item, *old;

	if (json_at_place(v, place)[last] == value) {
		json_unref(value);
		return v;
	}
	item = json_edit_place(&v, place);
	if (item == NULL)
		return give_up(v, value);
	old = item[last];
	item[last] = value;
	json_unref(old);
	return v;
}

struct json *
json_put(struct json *v, size_t at, struct json *value)
{
	if (!can_change(v, JSON_ARRAY, value) || at >= array_of(v)->used)
		return give_up(v, value);
	return put_at_place(v, at, value);
}

struct json *
json_erase(struct json *v, size_t at)
{
	if (!is_type(v, JSON_ARRAY) || at >= array_of(v)->used)
		return give_up(v, NULL);
	v = unshared(v);
	if (v == NULL)
		return NULL;
	if (seq_erase(&array_in(v)->root, at) == -1)
		return give_up(v, NULL);
	array_in(v)->used--;
	return v;
}

/* ---- objects ---- */

/* An index of all members, NULL when memory ran out. */
static struct trie *
index_all(const struct json *v)
{
	struct json_iter it = json_iterate(v);
	const struct json *value;
	struct trie *t = NULL;
	struct slice name;

	while (json_next(&it, &name, &value))
		if (trie_add(&t, trie_hash(name), (uint32_t)(it.position - 1)) == -1) {
			trie_drop(t);
			return NULL;
		}
	return t;
}

static int
add_member(struct json *v, struct json *name, struct json *value)
{
	struct object *o = object_in(v);
	struct json *item[2] = {name, value};
	uint32_t place = o->seq.used;

	if (place > UINT32_MAX - FAN) {
		json_unref(name);
		json_unref(value);
		return -1;
	}
	if (seq_insert(&o->seq.root, place, 2, item) == -1)
		return -1;
	o->seq.used++;
	if (o->index != NULL)
		return trie_add(&o->index, trie_hash(text_slice(name)), place);
	if (o->seq.used <= SMALL_OBJECT)
		return 0;
	o->index = index_all(v);
	return o->index == NULL ? -1 : 0;
}

/* Consumes key (NULL: out of memory), which becomes the name if the member is new. */
struct json *
json_set_named(struct json *v, struct json *key, struct json *value)
{
	int64_t place = NO_PLACE;

	if (!can_change(v, JSON_OBJECT, value) || key == NULL) {
		json_unref(key);
		return give_up(v, value);
	}
	place = json_place(v, text_slice(key));
	if (place != NO_PLACE) {
		json_unref(key);
		return put_at_place(v, (size_t)place, value);
	}
	v = unshared(v);
	if (v == NULL) {
		json_unref(key);
		return give_up(v, value);
	}
	return add_member(v, key, value) == -1 ? give_up(v, NULL) : v;
}

struct json *
json_set(struct json *v, const char *name, struct json *value)
{
	return json_set_named(v, json_intern_name(slice_of(name)), value);
}

struct json *
json_setn(struct json *v, struct slice name, struct json *value)
{
	return json_set_named(v, json_name(name), value);
}

/* The members of v one behind the other, without empty places. Consumes v. */
static struct json *
compacted(struct json *v)
{
	size_t n = 0, length = json_length(v);
	struct json *to = NULL, **items = malloc((2 * length + 1) * sizeof(*items));
	struct json_iter it = json_iterate(v);
	const struct json *value;

	if (items == NULL)
		return give_up(v, NULL);
	while (json_next(&it, NULL, &value)) {
		items[n++] = json_ref(json_iter_name(&it));
		items[n++] = json_ref(value);
	}
	to = json_build(JSON_OBJECT, items, length, NULL, NULL);
	if (to == NULL)
		while (n > 0)
			json_unref(items[--n]);
	free(items);
	json_unref(v);
	if (to != NULL && length > SMALL_OBJECT &&
	    (object_in(to)->index = index_all(to)) == NULL)
		return give_up(to, NULL);
	return to;
}

/* Takes a member out of an object with an index, where places must stay. */
static int
empty_place(struct object *o, struct slice name, size_t place)
{
	struct json **item;

	if (trie_remove(&o->index, trie_hash(name), (uint32_t)place) == -1)
		return -1;
	if (place + 1 == o->seq.used) {
		o->seq.used--;
		return seq_erase(&o->seq.root, place);
	}
	item = seq_edit(&o->seq.root, place);
	if (item == NULL)
		return -1;
	json_unref(item[0]);
	json_unref(item[1]);
	item[0] = item[1] = NULL;
	o->seq.dead++;
	return 0;
}

static int
remove_place(struct object *o, struct slice name, size_t place)
{
	if (o->index != NULL)
		return empty_place(o, name, place);
	o->seq.used--;
	return seq_erase(&o->seq.root, place);
}

struct json *
json_remove(struct json *v, struct slice name)
{
	struct array *a;
	int64_t place;

	assert(v == NULL || v->type == JSON_OBJECT);
	if (!is_type(v, JSON_OBJECT))
		return give_up(v, NULL);
	place = json_place(v, name);
	if (place == NO_PLACE)
		return v;
	v = unshared(v);
	if (v == NULL)
		return NULL;
	if (remove_place(object_in(v), name, (size_t)place) == -1)
		return give_up(v, NULL);
	a = array_in(v);
	return a->dead * 2 > a->used ? compacted(v) : v;
}
