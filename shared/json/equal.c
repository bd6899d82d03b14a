#include <math.h>
#include <stdio.h>
#include <string.h>

#include "value.h"
#include "walk.h"

static bool
same_number(const struct json *a, const struct json *b)
{
	if ((a->flags & F_BIG) != (b->flags & F_BIG))
		return false;
	if (a->flags & F_BIG)
		return slice_eq(text_slice(a), text_slice(b));
	/* Bits, not values: 0.0 and -0.0 are written differently, so they are different. */
	return memcmp(&number_of(a)->i, &number_of(b)->i, sizeof(int64_t)) == 0;
}

static bool
is_number(const struct json *v)
{
	return v->type == JSON_INTEGER || v->type == JSON_REAL;
}

/* Exactly: no integer is rounded to the nearest double. */
static bool
integer_is_real(const struct json *integer, const struct json *real)
{
	char digits[512]; /* of the largest double, with its sign */
	double d = number_of(real)->d;

	if (trunc(d) != d)
		return false;
	if (integer->flags & F_BIG) {
		snprintf(digits, sizeof(digits), "%.0f", d);
		return slice_is(text_slice(integer), digits);
	}
	return d >= (double)INT64_MIN && d < -(double)INT64_MIN && (int64_t)d == number_of(integer)->i;
}

static bool
same_value(const struct json *a, const struct json *b)
{
	if (a->type != b->type)
		return a->type == JSON_INTEGER ? integer_is_real(a, b) : integer_is_real(b, a);
	return same_number(a, b) ||
	    (a->type == JSON_REAL && number_of(a)->d == 0 && number_of(b)->d == 0);
}

/* Equal as far as can be seen without looking into containers. */
static bool
same_outside(const struct json *a, const struct json *b, bool by_value)
{
	if (by_value && is_number(a) && is_number(b))
		return same_value(a, b);
	if (a->type != b->type)
		return false;
	switch ((enum json_type)a->type) {
	case JSON_NULL:
		return true;
	case JSON_BOOL:
		return json_is_true(a) == json_is_true(b);
	case JSON_INTEGER:
	case JSON_REAL:
		return same_number(a, b);
	case JSON_STRING:
		return slice_eq(text_slice(a), text_slice(b));
	case JSON_ARRAY:
	case JSON_OBJECT:
		return json_length(a) == json_length(b);
	}
	return false;
}

/* Whether a and b may be equal; containers wait on the stack for what they hold. */
static bool
compare(struct walk *w, const struct json *a, const struct json *b, bool by_value)
{
	struct walk_frame *f;

	if (a == b)
		return true;
	if (a == NULL || b == NULL || !same_outside(a, b, by_value))
		return false;
	if (!is_container(a) || json_length(a) == 0)
		return true;
	f = walk_push(w);
	if (f == NULL)
		/* Not known to be equal; callers may always take that for different. */
		return false;
	*f = (struct walk_frame){.a = a, .b = b, .it = json_iterate(a)};
	return true;
}

/* The value in b that stands where the iterator of a stands. */
static const struct json *
counterpart(struct walk_frame *f, struct slice name)
{
	size_t place = f->it.position - 1;
	struct json *const *item;

	if (f->b->type == JSON_ARRAY)
		return json_at(f->b, place);
	/* Mostly the order is the same. */
	if (place < json_places(f->b)) {
		item = json_at_place(f->b, place);
		if (item[0] != NULL && slice_eq(text_slice(item[0]), name))
			return item[1];
	}
	return json_getn(f->b, name);
}

/* Skips what both hold in the same nodes. */
static void
skip_same(struct walk_frame *f)
{
	if (f->it.position < json_places(f->a) && f->it.position < json_places(f->b))
		f->it.position += seq_same(array_of(f->a)->root, array_of(f->b)->root, f->it.position,
		    false);
	f->it.leaf = NULL;
}

static bool
is_equal(const struct json *a, const struct json *b, bool by_value)
{
	const struct json *value;
	struct slice name;
	struct walk w;
	bool equal;

	walk_init(&w);
	equal = compare(&w, a, b, by_value);
	while (equal && w.depth > 0) {
		struct walk_frame *f = walk_top(&w);

		if (f->it.position >= f->it.leaf_end)
			skip_same(f);
		if (json_next(&f->it, &name, &value))
			equal = compare(&w, value, counterpart(f, name), by_value);
		else
			w.depth--;
	}
	walk_clear(&w);
	return equal;
}

bool
json_equal(const struct json *a, const struct json *b)
{
	return is_equal(a, b, false);
}

bool
json_same(const struct json *a, const struct json *b)
{
	return is_equal(a, b, true);
}
