/* Conditions and selectors on records. */
#include <math.h>
#include <stdlib.h>

#include "provider_private.h"

/* The value at the pointer, or NULL. Pointers were checked when the file was read. */
static const struct json *
value_at(const struct json *record, struct slice pointer)
{
	struct err e = {0};

	return json_pointer_get(record, pointer, &e);
}

bool
text_fits(const struct pattern *pattern, struct slice text)
{
	bool fits = false;

	return pattern_fits(pattern, pattern_beginning(text, PROVIDER_MAX_ERROR), &fits, NULL, NULL) == 0 && fits;
}

static bool
is_one_of(const struct json *list, const struct json *v)
{
	struct json_iter it = json_iterate(list);
	const struct json *item;

	while (json_next(&it, NULL, &item))
		if (json_same(item, v))
			return true;
	return false;
}

static bool
test_holds(const struct test *t, const struct json *record)
{
	const struct json *v = value_at(record, t->pointer);

	switch (t->kind) {
	case TEST_EQUALS:
		return v != NULL && json_same(v, t->value);
	case TEST_ONE_OF:
		return v != NULL && is_one_of(t->value, v);
	case TEST_NOT:
		return v != NULL && !json_same(v, t->value);
	case TEST_EXISTS:
		return (v != NULL) == json_is_true(t->value);
	case TEST_MATCHES:
		return v != NULL && json_type(v) == JSON_STRING && text_fits(t->pattern, json_text(v));
	}
	return false;
}

bool
condition_given(const struct condition *c)
{
	return c->count > 0;
}

bool
condition_holds(const struct condition *c, const struct json *record)
{
	const struct alternative *a;
	size_t i, n;

	for (i = 0; i < c->count; i++) {
		a = &c->list[i];
		for (n = 0; n < a->ntests && test_holds(&a->tests[n], record); n++)
			;
		if (n == a->ntests)
			return true;
	}
	return false;
}

/* ---- What was found ---- */

static void
forget(struct found *f)
{
	json_unref(f->value);
	buf_clear(&f->text);
	*f = (struct found){0};
}

void
found_clear(struct found *states, size_t n)
{
	size_t i;

	for (i = 0; states != NULL && i < n; i++)
		forget(&states[i]);
	free(states);
}

static int
join(const struct selector *s, struct found *f, const struct json *v, struct err *e)
{
	if (f->any && s->separator != NULL)
		buf_puts(&f->text, s->separator);
	if (json_type(v) == JSON_STRING)
		buf_slice(&f->text, json_text(v));
	else
		json_write(&f->text, v);
	if (f->text.len > PROVIDER_MAX_ANSWER)
		return err_set(e, ERR_LIMIT, "the answer has more than %zu bytes", PROVIDER_MAX_ANSWER);
	return buf_ok(&f->text, e);
}

static bool
add_number(struct found *f, const struct json *v)
{
	int64_t i;
	double d;

	if (!json_double(v, &d))
		return false;
	f->sum += d;
	if (!json_int64(v, &i) || __builtin_add_overflow(f->sum_int, i, &f->sum_int))
		f->sum_real = true;
	return true;
}

static int
take(const struct selector *s, struct found *f, const struct json *v, struct err *e)
{
	switch (s->take) {
	case TAKE_FIRST:
		if (f->any)
			return 0;
		f->value = json_ref(v);
		break;
	case TAKE_LAST:
		json_unref(f->value);
		f->value = json_ref(v);
		break;
	case TAKE_CONCAT:
		if (join(s, f, v, e) != 0)
			return -1;
		break;
	case TAKE_SUM:
		if (!add_number(f, v))
			return 0;
		break;
	}
	f->any = true;
	return 0;
}

int
selectors_see(const struct selectors *s, struct found *states, const struct json *record,
    struct err *e)
{
	const struct selector *one;
	const struct json *v;
	size_t i;

	for (i = 0; i < s->count; i++) {
		one = &s->list[i];
		if (one->from_file)
			continue;
		if (condition_holds(&one->after, record))
			forget(&states[i]);
		if (condition_given(&one->where) && !condition_holds(&one->where, record))
			continue;
		v = value_at(record, one->path);
		if (v != NULL && json_type(v) != JSON_NULL && take(one, &states[i], v, e) != 0)
			return -1;
	}
	return 0;
}

static struct json *
sum_of(const struct found *f)
{
	return f->sum_real ? json_real(f->sum) : json_int(f->sum_int);
}

bool
selectors_any(const struct selectors *s, const struct found *states)
{
	size_t i;

	for (i = 0; i < s->count && !states[i].any; i++)
		;
	return i < s->count;
}

struct json *
selectors_value(const struct selectors *s, const struct found *states)
{
	size_t i;

	for (i = 0; i < s->count; i++) {
		if (!states[i].any)
			continue;
		if (s->list[i].take == TAKE_SUM)
			return sum_of(&states[i]);
		if (s->list[i].take == TAKE_CONCAT)
			return json_string_lossy(buf_view(&states[i].text), NULL);
		return json_ref(states[i].value);
	}
	return NULL;
}

int
selectors_text(const struct selectors *s, const struct found *states, struct buf *to, bool *any,
    struct err *e)
{
	struct json *v;
	size_t i;

	*any = false;
	for (i = 0; i < s->count && !states[i].any; i++)
		;
	if (i == s->count)
		return 0;
	*any = true;
	if (s->list[i].take == TAKE_CONCAT) {
		buf_slice(to, buf_view(&states[i].text));
		return buf_ok(to, e);
	}
	v = s->list[i].take == TAKE_SUM ? sum_of(&states[i]) : json_ref(states[i].value);
	if (v == NULL)
		return err_nomem(e);
	if (json_type(v) == JSON_STRING)
		buf_slice(to, json_text(v));
	else
		json_write(to, v);
	json_unref(v);
	return buf_ok(to, e);
}
