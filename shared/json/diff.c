/*
 * What leads from one version of a container to another. The two are walked side by side; where
 * they hold the same node, nothing is entered. Pairs of containers that differ wait on a stack of
 * frames, with the path of the one on top in `path`.
 *
 * Arrays: common head, common tail; between them elements are compared pair by pair, and what one
 * side has more is added or removed behind the pairs. Until that happens all indices are the same
 * on both sides.
 */
#include <stdlib.h>
#include <string.h>

#include "pointer.h"

enum {
	FIRST_FRAMES = 16,
	FIRST_OPERATIONS = 16,
	OPERATION_BYTES = 32, /* of an operation besides path and value, about */
};

struct frame {
	const struct json *a, *b;
	size_t place; /* the next one to look at */
	bool second;  /* pass: of objects, what was added; of arrays, what is more on one side */
	size_t head, pairs, tail; /* of arrays */
	size_t path_len;	  /* of the path before this step */
	size_t operations, bytes; /* made before */
};

struct diff {
	struct frame *frame;
	size_t depth, frames_cap;
	struct buf path;
	struct json **operation;
	size_t operations, operations_cap;
	size_t bytes; /* length of all operations, about */
	bool smallest; /* replace a whole container where that is shorter */
	bool failed;
};

/* ---- operations ---- */

static struct json *
new_operation(const char *op, struct slice path, const struct json *value)
{
	struct json *v = json_set(json_object(), "op", json_cstr(op));

	v = json_set(v, "path", json_string(path));
	return value == NULL ? v : json_set(v, "value", json_ref(value));
}

static void
emit(struct diff *d, const char *op, const struct json *value)
{
	struct json *v, **more;
	size_t cap;

	if (d->failed || buf_ok(&d->path, NULL) == -1)
		goto fail;
	if (d->operations == d->operations_cap) {
		cap = d->operations_cap == 0 ? FIRST_OPERATIONS : d->operations_cap * 2;
		more = realloc(d->operation, cap * sizeof(*more));
		if (more == NULL)
			goto fail;
		d->operation = more;
		d->operations_cap = cap;
	}
	v = new_operation(op, buf_view(&d->path), value);
	if (v == NULL)
		goto fail;
	d->operation[d->operations++] = v;
	if (d->smallest)
		d->bytes += OPERATION_BYTES + d->path.len +
		    (value != NULL ? json_encoded_length(value) : 0);
	return;
fail:
	d->failed = true;
}

static void
forget_operations(struct diff *d, size_t from)
{
	while (d->operations > from)
		json_unref(d->operation[--d->operations]);
}

/* ---- paths ---- */

static void
cut_path(struct diff *d, size_t len)
{
	if (d->path.failed)
		d->failed = true;
	else if (d->path.data != NULL) {
		d->path.len = len;
		d->path.data[len] = '\0';
	}
}

static void
add_index(struct diff *d, size_t index)
{
	buf_printf(&d->path, "/%zu", index);
}

static void
add_token(struct diff *d, const struct json *name, size_t index)
{
	if (name != NULL)
		json_pointer_add(&d->path, json_text(name));
	else
		add_index(d, index);
}

/* ---- frames ---- */

static size_t
smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many elements are equal from one end on, `limit` at most. */
static size_t
common(const struct json *a, const struct json *b, size_t limit, bool back)
{
	size_t n = 0, run, last_a = json_length(a) - 1, last_b = json_length(b) - 1;

	while (n < limit) {
		run = seq_same(array_of(a)->root, array_of(b)->root, n, back);
		n += run;
		if (run > 0)
			continue;
		if (!json_equal(json_at(a, back ? last_a - n : n), json_at(b, back ? last_b - n : n)))
			break;
		n++;
	}
	return smaller(n, limit);
}

static void
measure_arrays(struct frame *f)
{
	size_t a = json_length(f->a), b = json_length(f->b), limit = smaller(a, b);

	/* Of equal length, each element has its partner at once. */
	if (a != b) {
		f->head = common(f->a, f->b, limit, false);
		f->tail = common(f->a, f->b, limit - f->head, true);
	}
	f->pairs = limit - f->head - f->tail;
	f->place = f->head;
}

/* The path has the step to this pair already; path_len is what it was before. */
static void
enter(struct diff *d, const struct json *a, const struct json *b, size_t path_len)
{
	struct frame *more;
	size_t cap;

	if (d->depth == d->frames_cap) {
		cap = d->frames_cap == 0 ? FIRST_FRAMES : d->frames_cap * 2;
		more = realloc(d->frame, cap * sizeof(*more));
		if (more == NULL) {
			d->failed = true;
			return;
		}
		d->frame = more;
		d->frames_cap = cap;
	}
	d->frame[d->depth] = (struct frame){
	    .a = a, .b = b, .path_len = path_len, .operations = d->operations, .bytes = d->bytes};
	if (a->type == JSON_ARRAY)
		measure_arrays(&d->frame[d->depth]);
	d->depth++;
}

/* One replacement instead of all that was found in this container, where that is shorter. */
static void
prefer_whole(struct diff *d, const struct frame *f)
{
	size_t found = d->bytes - f->bytes, least = 2 * json_length(f->b);
	size_t around = OPERATION_BYTES + d->path.len;

	if (!d->smallest || d->depth == 1 || found <= least + around ||
	    json_encoded_length_to(f->b, found - around) >= found - around)
		return;
	forget_operations(d, f->operations);
	d->bytes = f->bytes;
	emit(d, "replace", f->b);
}

static void
leave(struct diff *d)
{
	struct frame f = d->frame[d->depth - 1];

	prefer_whole(d, &f);
	d->depth--;
	cut_path(d, f.path_len);
}

/* A value on both sides, a member `name` or an element `index` of the container on top. */
static void
compare(struct diff *d, const struct json *name, size_t index, const struct json *a,
    const struct json *b)
{
	size_t path_len = d->path.len;

	if (a == b)
		return;
	if (a->type == b->type && is_container(a)) {
		add_token(d, name, index);
		enter(d, a, b, path_len);
		return;
	}
	if (json_equal(a, b))
		return;
	add_token(d, name, index);
	emit(d, "replace", b);
	cut_path(d, path_len);
}

/* ---- objects ---- */

/* Skips places that both versions share, and empty ones of `v`; whether one is left. */
static bool
next_place(struct frame *f, const struct json *v)
{
	size_t both = smaller(json_places(f->a), json_places(f->b)), run;

	while (f->place < json_places(v)) {
		run = f->place < both ? seq_same(array_of(f->a)->root, array_of(f->b)->root, f->place,
					     false) :
					0;
		if (run == 0 && *json_at_place(v, f->place) != NULL)
			return true;
		f->place += run > 0 ? run : 1;
	}
	return false;
}

/* The value of the same name in the other version, most likely at the same place. */
static const struct json *
partner(const struct json *other, size_t place, const struct json *name)
{
	struct json *const *item;

	if (place < json_places(other)) {
		item = json_at_place(other, place);
		if (item[0] != NULL && slice_eq(text_slice(item[0]), text_slice(name)))
			return item[1];
	}
	return json_getn(other, text_slice(name));
}

static void
emit_member(struct diff *d, const char *op, const struct json *name, const struct json *value)
{
	size_t path_len = d->path.len;

	add_token(d, name, 0);
	emit(d, op, value);
	cut_path(d, path_len);
}

static void
end_pass(struct diff *d, struct frame *f)
{
	if (f->second) {
		leave(d);
		return;
	}
	f->second = true;
	f->place = 0;
}

/* First pass: what a has is compared or removed. Second pass: what only b has is added. */
static void
step_object(struct diff *d, struct frame *f)
{
	bool second = f->second;
	const struct json *v = second ? f->b : f->a, *found;
	struct json *const *item;

	if (!next_place(f, v)) {
		end_pass(d, f);
		return;
	}
	item = json_at_place(v, f->place);
	found = partner(second ? f->a : f->b, f->place, item[0]);
	f->place++;
	if (found == NULL)
		emit_member(d, second ? "add" : "remove", item[0], second ? item[1] : NULL);
	else if (!second)
		compare(d, item[0], 0, item[1], found);
}

/* ---- arrays ---- */

static void
step_pair(struct diff *d, struct frame *f)
{
	size_t run = seq_same(array_of(f->a)->root, array_of(f->b)->root, f->place, false);
	size_t at = f->place;

	f->place += run > 0 ? run : 1;
	if (run == 0)
		compare(d, NULL, at, json_at(f->a, at), json_at(f->b, at));
}

static void
emit_rest(struct diff *d, const struct frame *f)
{
	size_t from = f->head + f->pairs, i;
	size_t path_len = d->path.len;

	for (i = from + f->tail; i < json_length(f->a) && !d->failed; i++) {
		add_index(d, from);
		emit(d, "remove", NULL);
		cut_path(d, path_len);
	}
	for (i = from; i + f->tail < json_length(f->b) && !d->failed; i++) {
		if (f->tail == 0)
			buf_puts(&d->path, "/-");
		else
			add_index(d, i);
		emit(d, "add", json_at(f->b, i));
		cut_path(d, path_len);
	}
}

static void
step_array(struct diff *d, struct frame *f)
{
	if (f->place < f->head + f->pairs) {
		step_pair(d, f);
		return;
	}
	emit_rest(d, f);
	leave(d);
}

/* ---- */

static struct json *
find_operations(const struct json *from, const struct json *to, bool smallest)
{
	struct diff d = {.smallest = smallest};
	struct json *v = NULL;

	if (from == to)
		return json_array();
	if (from->type == to->type && is_container(from))
		enter(&d, from, to, 0);
	else
		emit(&d, "replace", to);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the frames are d's, and freed below */
	while (!d.failed && d.depth > 0) {
		struct frame *f = &d.frame[d.depth - 1];

		if (f->a->type == JSON_OBJECT)
			step_object(&d, f);
		else
			step_array(&d, f);
	}
	if (!d.failed)
		v = json_build(JSON_ARRAY, d.operation, d.operations, NULL, NULL);
	if (v == NULL)
		forget_operations(&d, 0);
	buf_clear(&d.path);
	free(d.operation);
	free(d.frame); /* NOLINT(clang-analyzer-unix.Malloc): realloc() gave the old ones back */
	return v;
}

struct json *
json_diff(const struct json *from, const struct json *to)
{
	return from == NULL || to == NULL ? NULL : find_operations(from, to, true);
}

/*
 * Doing to `from` what leads to `to` keeps every node of `from` that need not change, and takes
 * from `to` only what is new. Members keep the order that they have in `from`.
 */
struct json *
json_rebase(const struct json *from, struct json *to)
{
	struct json *operations, *out = NULL;
	struct err e = {0};

	if (from == NULL || to == NULL || from->type != to->type || !is_container(to)) {
		if (from != NULL && to != NULL && json_equal(from, to)) {
			json_unref(to);
			return json_ref(from);
		}
		return to;
	}
	operations = find_operations(from, to, false);
	if (operations != NULL && patch_apply(from, operations, &out, &e) == -1 &&
	    e.code == ERR_REFUSED)
		/* Nested too deeply for a patch: then nothing is shared. */
		out = json_ref(to);
	json_unref(operations);
	json_unref(to);
	return out;
}
