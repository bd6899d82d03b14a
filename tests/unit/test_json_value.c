/* Values: scalars, containers, identity of versions, threads. Cost is counted, never timed. */
#include "test.h"

#include <math.h>
#include <pthread.h>

#include "flowsup/json.h"

static void
check_text(const struct json *v, const char *text)
{
	struct buf b = {0};

	json_write(&b, v);
	assert_string_equal(buf_text(&b), text);
	buf_clear(&b);
}

static int64_t
integer(const struct json *v)
{
	int64_t i = INT64_MIN;

	assert_true(json_int64(v, &i));
	return i;
}

/* ---- scalars ---- */

static void
test_json_value__integers(void **state)
{
	static const int64_t signed_values[] = {0, 1, 63, 64, -1, INT64_MAX, INT64_MIN};
	struct json *v;
	uint64_t u = 0;
	int64_t i = 0;
	size_t k;

	(void)state;
	for (k = 0; k < sizeof(signed_values) / sizeof(signed_values[0]); k++) {
		v = json_int(signed_values[k]);
		assert_int_equal(json_type(v), JSON_INTEGER);
		assert_int_equal(integer(v), signed_values[k]);
		assert_int_equal(json_uint64(v, &u), signed_values[k] >= 0);
		json_unref(v);
	}
	v = json_uint(UINT64_MAX);
	assert_false(json_int64(v, &i));
	assert_true(json_uint64(v, &u));
	assert_true(u == UINT64_MAX);
	check_text(v, "18446744073709551615");
	json_unref(v);
	assert_false(json_int64(NULL, &i));
	v = json_real(1.0);
	assert_false(json_int64(v, &i) || json_uint64(v, &u));
	json_unref(v);
	assert_false(json_int64(json_bool(true), &i));
}

static void
test_json_value__reals(void **state)
{
	struct json *v;
	double d = 0;

	(void)state;
	assert_null(json_real(NAN));
	assert_null(json_real(INFINITY));
	assert_null(json_real(-INFINITY));
	assert_int_equal(json_parse(slice_of("123456789012345678901234567890"), NULL, &v, NULL, NULL), 0);
	assert_true(json_double(v, &d));
	assert_true(d == 123456789012345678901234567890.0);
	json_unref(v);
	assert_true(json_double(json_int(3), &d) && d == 3.0);
	assert_false(json_double(json_null(), &d));
}

/* Any double must come back from its text, bit for bit. */
static void
test_json_value__reals_come_back(void **state)
{
	uint64_t x = UINT64_C(0x9e3779b97f4a7c15);
	int i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		struct json *v, *again = NULL;
		struct buf b = {0};
		double d;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(&d, &x, sizeof(d));
		if (!isfinite(d))
			continue;
		v = json_real(i % 4 == 0 ? (double)(int32_t)x / 1000 : d);
		json_write(&b, v);
		assert_int_equal(json_parse(buf_view(&b), NULL, &again, NULL, NULL), 0);
		if (!json_equal(v, again))
			fail_msg("%.17g became %s", d, buf_text(&b));
		assert_true(b.len <= 25);
		buf_clear(&b);
		json_unref(v);
		json_unref(again);
	}
}

static void
test_json_value__strings(void **state)
{
	struct json *v = json_string((struct slice){"a\0b", 3});

	(void)state;
	assert_int_equal(json_text(v).len, 3);
	assert_null(json_cstr_of(v));
	json_unref(v);
	v = json_printf("%s-%d", "op", 7);
	assert_string_equal(json_cstr_of(v), "op-7");
	json_unref(v);
	assert_null(json_cstr("\xff"));
	assert_null(json_cstr("a\xc3"));
	v = json_cstr("x\xed\xa0\x80y");
	assert_true(json_has_lone_surrogate(v));
	assert_null(json_cstr_of(v));
	check_text(v, "\"x\\ud800y\"");
	json_unref(v);
	/* Two halves side by side would be read back as one character. */
	assert_null(json_cstr("\xed\xa0\xbd\xed\xb8\x80"));
	assert_null(json_text(json_null()).data);
	assert_null(json_cstr(NULL));
}

static void
test_json_value__lossy_strings(void **state)
{
	static const struct {
		const char *bytes, *text;
		bool replaced;
	} cases[] = {
	    {"", "", false},
	    {"abc", "abc", false},
	    {"\xc3\xa9", "\xc3\xa9", false},
	    {"\xff", "\xef\xbf\xbd", true},
	    {"a\x80z", "a\xef\xbf\xbdz", true},
	    {"\xe2\x82", "\xef\xbf\xbd", true},
	    {"\xe2\x82z", "\xef\xbf\xbdz", true},
	    {"\xf0\x9f\x98", "\xef\xbf\xbd", true},
	    {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd", true},
	    {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", true},
	    {"\xef\xbf\xbd", "\xef\xbf\xbd", false},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool replaced = !cases[i].replaced;
		struct json *v = json_string_lossy(slice_of(cases[i].bytes), &replaced);

		assert_string_equal(json_cstr_of(v), cases[i].text);
		assert_int_equal(replaced, cases[i].replaced);
		json_unref(v);
	}
	json_unref(json_string_lossy(slice_of("\xff"), NULL));
}

static void
test_json_value__equality(void **state)
{
	static const char *const texts[] = {"1", "1.0", "true", "\"1\"", "null", "false", "0", "0.0",
	    "-0.0", "[]", "{}", "[1]", "[1.0]", "{\"a\":1}", "{\"a\":true}", "{\"b\":1}", "[1,2]",
	    "18446744073709551616", "18446744073709551617", "\"\"", "[[]]", "[{}]"};
	enum { N = sizeof(texts) / sizeof(texts[0]) };
	struct json *a[N], *b[N];
	size_t i, k;

	(void)state;
	for (i = 0; i < N; i++) {
		assert_int_equal(json_parse(slice_of(texts[i]), NULL, &a[i], NULL, NULL), 0);
		assert_int_equal(json_parse(slice_of(texts[i]), NULL, &b[i], NULL, NULL), 0);
	}
	for (i = 0; i < N; i++)
		for (k = 0; k < N; k++)
			if (json_equal(a[i], b[k]) != (i == k))
				fail_msg("%s and %s", texts[i], texts[k]);
	for (i = 0; i < N; i++) {
		json_unref(a[i]);
		json_unref(b[i]);
	}
	json_parse(slice_of("{\"x\":1,\"y\":[2]}"), NULL, &a[0], NULL, NULL);
	json_parse(slice_of("{\"y\":[2],\"x\":1}"), NULL, &b[0], NULL, NULL);
	assert_true(json_equal(a[0], b[0]));
	json_unref(a[0]);
	json_unref(b[0]);
}

/* ---- containers against a plain model ---- */

static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void
check_array(const struct json *a, const int64_t *model, size_t n)
{
	struct json_iter it = json_iterate(a);
	const struct json *v;
	struct slice name;
	size_t i;

	assert_int_equal(json_length(a), n);
	for (i = 0; i < n; i++)
		if (integer(json_at(a, i)) != model[i])
			fail_msg("element %zu", i);
	for (i = 0; json_next(&it, &name, &v); i++)
		if (i >= n || integer(v) != model[i])
			fail_msg("element %zu", i);
	assert_int_equal(i, n);
	assert_null(json_at(a, n));
}

static size_t
change_model(int64_t *model, size_t n, unsigned what, size_t at, int64_t value)
{
	if (what == 0)
		memmove(&model[at], &model[at + 1], (n - at - 1) * sizeof(*model));
	else if (what > 1)
		memmove(&model[at + 1], &model[at], (n - at) * sizeof(*model));
	if (what > 0)
		model[at] = value;
	return what == 0 ? n - 1 : what == 1 ? n : n + 1;
}

static void
test_json_value__arrays(void **state)
{
	enum { STEPS = 6000 };
	static int64_t model[STEPS], old_model[STEPS];
	struct json *a = json_array(), *old = json_array();
	size_t n = 0, old_n = 0;
	uint32_t seed = 7;
	int i;

	(void)state;
	for (i = 0; i < STEPS; i++) {
		/* 0 erases, 1 replaces, 2 to 4 insert */
		unsigned what = next_random(&seed) % 5;
		size_t at = next_random(&seed) % (n + 1);

		if (what < 2 && at == n)
			what = 2;
		if (what == 0)
			a = json_erase(a, at);
		else if (what == 1)
			a = json_put(a, at, json_int(i));
		else
			a = json_insert(a, at, json_int(i));
		n = change_model(model, n, what, at, i);
		if (i % 500 != 0)
			continue;
		check_array(a, model, n);
		/* The version of 500 steps ago has not seen any of them. */
		check_array(old, old_model, old_n);
		json_unref(old);
		old = json_ref(a);
		memcpy(old_model, model, sizeof(model));
		old_n = n;
	}
	check_array(a, model, n);
	while (json_length(a) > 0)
		a = json_erase(a, next_random(&seed) % json_length(a));
	check_text(a, "[]");
	check_array(old, old_model, old_n);
	json_unref(a);
	json_unref(old);
}

static void
check_object(const struct json *o, const int64_t *model, size_t names)
{
	char name[24];
	size_t i, n = 0;

	for (i = 0; i < names; i++) {
		const struct json *v;

		snprintf(name, sizeof(name), "n%zu", i);
		v = json_get(o, name);
		if ((v != NULL) != (model[i] >= 0) || (v != NULL && integer(v) != model[i]))
			fail_msg("member %s", name);
		n += v != NULL;
	}
	assert_int_equal(json_length(o), n);
}

static void
test_json_value__objects(void **state)
{
	enum { NAMES = 300, STEPS = 8000 };
	static int64_t model[NAMES], old_model[NAMES];
	struct json *o = json_object(), *old = json_object();
	uint32_t seed = 11;
	char name[24];
	int i;

	(void)state;
	for (i = 0; i < NAMES; i++)
		model[i] = old_model[i] = -1;
	for (i = 0; i < STEPS; i++) {
		/* Now and then nearly all go, so that places are emptied and packed. */
		bool add = i / 1000 % 2 == 0 ? next_random(&seed) % 4 > 0 : next_random(&seed) % 4 == 0;
		unsigned k = next_random(&seed) % NAMES;

		snprintf(name, sizeof(name), "n%u", k);
		o = add ? json_set(o, name, json_int(i)) : json_remove(o, slice_of(name));
		model[k] = add ? i : -1;
		if (i % 500 != 0)
			continue;
		check_object(o, model, NAMES);
		check_object(old, old_model, NAMES);
		json_unref(old);
		old = json_ref(o);
		memcpy(old_model, model, sizeof(model));
	}
	check_object(o, model, NAMES);
	json_unref(o);
	json_unref(old);
}

static void
test_json_value__objects_keep_order(void **state)
{
	struct json *o = json_object();
	struct json_iter it;
	const struct json *v;
	struct slice name;
	char text[16];
	int i, last = -1;

	(void)state;
	o = json_set(json_set(json_set(o, "b", json_int(1)), "a", json_int(2)), "c", json_int(3));
	check_text(o, "{\"b\":1,\"a\":2,\"c\":3}");
	o = json_set(o, "b", json_int(4));
	o = json_remove(o, slice_of("a"));
	o = json_set(json_remove(o, slice_of("nothing")), "a", json_int(5));
	check_text(o, "{\"b\":4,\"c\":3,\"a\":5}");
	json_unref(o);
	o = json_object();
	for (i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "%d", i);
		o = json_set(o, text, json_int(i));
	}
	for (i = 0; i < 1000; i += 3) {
		snprintf(text, sizeof(text), "%d", i);
		o = json_remove(o, slice_of(text));
	}
	it = json_iterate(o);
	for (i = 0; json_next(&it, &name, &v); i++) {
		assert_true(integer(v) > last && integer(v) % 3 != 0);
		last = (int)integer(v);
		assert_true(slice_eq(name, json_text(json_iter_name(&it))));
		assert_int_equal(strtol(name.data, NULL, 10), last);
	}
	assert_int_equal(i, 666);
	json_unref(o);
}

static void
test_json_value__failed_steps_pass_through(void **state)
{
	struct json *o = json_set(json_object(), "a", json_cstr("\xff"));

	(void)state;
	assert_null(o);
	o = json_set(o, "b", json_cstr("not leaked"));
	assert_null(o);
	assert_null(json_append(NULL, json_cstr("x")));
	assert_null(json_append(json_array(), NULL));
	assert_null(json_put(json_array(), 0, json_int(1)));
	assert_null(json_insert(json_array(), 1, json_cstr("x")));
	assert_null(json_erase(json_array(), 0));
	assert_null(json_remove(NULL, slice_of("a")));
	assert_null(json_setn(json_object(), slice_of("\xff"), json_cstr("x")));
	assert_null(json_get(NULL, "a"));
	assert_null(json_at(json_object(), 0));
	assert_int_equal(json_length(NULL), 0);
	json_unref(NULL);
}

static void
test_json_value__names_with_positions(void **state)
{
	struct json_where where = {10, 2, 3}, seen = {0};
	struct json *key = json_set_position(json_cstr("name"), where), *o;
	struct json_iter it;
	const struct json *v;

	(void)state;
	o = json_set_named(json_object(), key, json_set_position(json_null(), where));
	it = json_iterate(o);
	assert_true(json_next(&it, NULL, &v));
	assert_true(json_position(json_iter_name(&it), &seen));
	assert_int_equal(seen.column, 3);
	assert_true(json_position(v, &seen));
	assert_int_equal(seen.line, 2);
	assert_int_equal(json_type(v), JSON_NULL);
	assert_false(json_position(json_null(), &seen));
	json_unref(o);
	o = json_set_position(json_set(json_object(), "a", json_int(1)), where);
	o = json_set(o, "b", json_int(2));
	assert_true(json_position(o, &seen));
	check_text(o, "{\"a\":1,\"b\":2}");
	json_unref(o);
}

/* ---- versions ---- */

static struct json *
numbers(size_t n)
{
	struct json *a = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		a = json_append(a, json_int((int64_t)i));
	return a;
}

static struct json *
members(size_t n)
{
	struct json *o = json_object();
	char name[24];
	size_t i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "k%zu", i);
		o = json_set(o, name, json_int((int64_t)i));
	}
	return o;
}

static const size_t sizes[] = {1000, 10000, 100000};

static struct json *
append_one(struct json *v)
{
	return json_append(v, json_int(-1));
}

static struct json *
insert_in_the_middle(struct json *v)
{
	return json_insert(v, json_length(v) / 2, json_int(-1));
}

static struct json *
put_first(struct json *v)
{
	return json_put(v, 0, json_int(-1));
}

static struct json *
erase_first(struct json *v)
{
	return json_erase(v, 0);
}

static struct json *
set_new(struct json *v)
{
	char name[24];

	snprintf(name, sizeof(name), "new%zu", json_length(v));
	return json_set(v, name, json_int(-1));
}

static struct json *
set_old(struct json *v)
{
	return json_set(v, "k500", json_int(-1));
}

static struct json *
remove_one(struct json *v)
{
	char name[24];

	snprintf(name, sizeof(name), "k%zu", json_length(v) / 2);
	return json_remove(v, slice_of(name));
}

/* What a full bucket of the index becomes: a branch and a bucket for each of its ways, by hashes that
 * differ from process to process. */
enum { SPLIT = 1 + 16 };

/* A change of a shared container copies one path; of one that is not shared, next to nothing, but
 * for a bucket that may be full. */
static void
check_cost(struct json *v, struct json *(*change)(struct json *), uint64_t most)
{
	uint64_t most_unshared = 2 + (change == set_new ? SPLIT : 0);
	struct json *old = json_ref(v);
	struct json_counters before = json_counters(), after;

	v = change(v);
	after = json_counters();
	if (after.nodes_made - before.nodes_made > most)
		fail_msg("%zu nodes at length %zu", (size_t)(after.nodes_made - before.nodes_made),
		    json_length(old));
	assert_true(after.values_made - before.values_made <= 3);
	json_unref(old);
	before = json_counters();
	v = change(v);
	after = json_counters();
	assert_true(after.nodes_made - before.nodes_made <= most_unshared);
	json_unref(v);
}

static void
test_json_value__a_change_copies_one_path(void **state)
{
	/* Levels of a tree of 32 children, and of the index of 16. At worst each splits. */
	static const uint64_t levels[] = {2, 3, 4}, index_levels[] = {3, 4, 5};
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		check_cost(numbers(sizes[i]), append_one, levels[i] * 2 + 1);
		check_cost(numbers(sizes[i]), insert_in_the_middle, levels[i] * 2 + 1);
		check_cost(numbers(sizes[i]), put_first, levels[i]);
		check_cost(numbers(sizes[i]), erase_first, levels[i] * 2);
		check_cost(members(sizes[i]), set_new, levels[i] + index_levels[i] + 2 + SPLIT);
		check_cost(members(sizes[i]), set_old, levels[i]);
		check_cost(members(sizes[i]), remove_one, levels[i] + index_levels[i]);
	}
}

static void
test_json_value__the_same_value_changes_nothing(void **state)
{
	struct json *inner = json_append(json_array(), json_int(1)), *o, *same;

	(void)state;
	o = json_set(json_object(), "a", json_ref(inner));
	same = json_set(json_ref(o), "a", json_ref(inner));
	assert_ptr_equal(same, o);
	json_unref(same);
	same = json_remove(json_ref(o), slice_of("b"));
	assert_ptr_equal(same, o);
	json_unref(same);
	json_unref(o);
	json_unref(inner);
}

/* ---- depth ---- */

/* A million levels: nothing that walks a value may use the stack for them. */
static void
test_json_value__depth_needs_no_stack(void **state)
{
	enum { LEVELS = 1000 * 1000 };
	struct json *a = json_array(), *b = json_array(), *patch;
	size_t i;

	(void)state;
	for (i = 0; i < LEVELS; i++) {
		a = json_append(json_array(), a);
		b = json_set(json_object(), "x", b);
	}
	assert_int_equal(json_encoded_length(a), 2 * LEVELS + 2);
	assert_int_equal(json_encoded_length(b), 6 * LEVELS + 2);
	assert_false(json_equal(a, b));
	patch = json_diff(b, a);
	assert_int_equal(json_length(patch), 1);
	json_unref(patch);
	json_unref(a);
	json_unref(b);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 5000 };

static void *
use_shared(void *arg)
{
	const struct json *shared = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct json *mine = json_ref(shared);
		struct json *list = json_ref(json_get(mine, "list"));

		list = json_append(list, json_int(i));
		mine = json_set(mine, "list", list);
		if (json_length(json_get(mine, "list")) != 41)
			return arg;
		json_unref(mine);
	}
	return NULL;
}

static void
test_json_value__shared_between_threads(void **state)
{
	struct json *shared = json_set(members(40), "list", numbers(40));
	pthread_t thread[THREADS];
	void *wrong;
	int i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, use_shared, shared), 0);
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], &wrong), 0);
		assert_null(wrong);
	}
	assert_int_equal(json_length(json_get(shared, "list")), 40);
	json_unref(shared);
}

/* ---- writing ---- */

static void
test_json_value__pretty(void **state)
{
	struct json *v = NULL;
	struct buf b = {0};

	(void)state;
	assert_int_equal(json_parse(slice_of("{\"a\":[1,{}],\"\\u00e9\":\"\xc3\xa9\\u0001\\u0085\\ud800\","
					     "\"e\":[]}"),
			     NULL, &v, NULL, NULL),
	    0);
	json_write_pretty(&b, v);
	assert_string_equal(buf_text(&b), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"\xc3\xa9\": "
					  "\"\xc3\xa9\\u0001\\u0085\\ud800\",\n  \"e\": []\n}");
	buf_reset(&b);
	json_write_string(&b, slice_of("a\"\xc3\xa9\n"));
	assert_string_equal(buf_text(&b), "\"a\\\"\\u00e9\\n\"");
	buf_clear(&b);
	json_unref(v);
}

static void
test_json_value__long_strings(void **state)
{
	static const char *const pieces[] = {"x", "\xc3\xa9", "\n", "\xf0\x9f\x98\x80", "\x01"};
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct buf text = {0}, out = {0};
		struct json *v, *again = NULL;

		for (k = 0; k < 5000; k++)
			buf_puts(&text, pieces[i]);
		v = json_string(buf_view(&text));
		json_write(&out, v);
		assert_int_equal(json_encoded_length(v), out.len);
		assert_int_equal(json_parse(buf_view(&out), NULL, &again, NULL, NULL), 0);
		assert_true(slice_eq(json_text(again), buf_view(&text)));
		json_unref(v);
		json_unref(again);
		buf_clear(&text);
		buf_clear(&out);
	}
}

static void
test_json_value__numbers_by_value(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal, same;
	} pairs[] = {
	    {"1", "1", true, true},
	    {"1", "1.0", false, true},
	    {"-7e0", "-7", false, true},
	    {"0", "-0.0", false, true},
	    {"0.0", "-0.0", false, true},
	    {"1", "1.5", false, false},
	    {"1", "true", false, false},
	    {"1", "\"1\"", false, false},
	    {"9007199254740993", "9007199254740992.0", false, false},
	    {"9007199254740992", "9007199254740992.0", false, true},
	    {"9223372036854775807", "9223372036854775808.0", false, false},
	    {"-9223372036854775808", "-9223372036854775808.0", false, true},
	    {"100000000000000000000", "1e20", false, true},
	    {"100000000000000000001", "1e20", false, false},
	    {"{\"a\":[1,{\"b\":2}]}", "{\"a\":[1.0,{\"b\":2.0}]}", false, true},
	    {"[1,2]", "[1.0,3]", false, false},
	};
	struct json *a, *b;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_int_equal(json_parse(slice_of(pairs[i].a), NULL, &a, NULL, NULL), 0);
		assert_int_equal(json_parse(slice_of(pairs[i].b), NULL, &b, NULL, NULL), 0);
		if (json_equal(a, b) != pairs[i].equal || json_same(a, b) != pairs[i].same ||
		    json_same(b, a) != pairs[i].same)
			fail_msg("%s and %s", pairs[i].a, pairs[i].b);
		json_unref(a);
		json_unref(b);
	}
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_json_value__integers),
    cmocka_unit_test(test_json_value__reals),
    cmocka_unit_test(test_json_value__reals_come_back),
    cmocka_unit_test(test_json_value__strings),
    cmocka_unit_test(test_json_value__lossy_strings),
    cmocka_unit_test(test_json_value__equality),
    cmocka_unit_test(test_json_value__arrays),
    cmocka_unit_test(test_json_value__objects),
    cmocka_unit_test(test_json_value__objects_keep_order),
    cmocka_unit_test(test_json_value__failed_steps_pass_through),
    cmocka_unit_test(test_json_value__names_with_positions),
    cmocka_unit_test(test_json_value__a_change_copies_one_path),
    cmocka_unit_test(test_json_value__the_same_value_changes_nothing),
    cmocka_unit_test(test_json_value__depth_needs_no_stack),
    cmocka_unit_test(test_json_value__shared_between_threads),
    cmocka_unit_test(test_json_value__pretty),
    cmocka_unit_test(test_json_value__long_strings),
    cmocka_unit_test(test_json_value__numbers_by_value),
};

TEST_MAIN("json_value", tests)
