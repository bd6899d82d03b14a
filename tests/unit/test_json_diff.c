/* Differences and rebasing: smallest operations, cost by what changed, identity of the rest. */
#include "test.h"

#include "flowsup/json.h"

static struct json *
read_json(const char *text)
{
	struct json *v = NULL;
	struct err e = {0};

	if (json_parse(slice_of(text), NULL, &v, NULL, &e) == -1)
		fail_msg("%s: %s", text, e.msg);
	return v;
}

static void
check_leads_to(const struct json *from, const struct json *patch, const struct json *to)
{
	struct json *result = NULL;
	struct err e = {0};

	assert_works(json_patch(from, patch, &result, &e), e);
	if (!json_equal(result, to)) {
		struct buf b = {0};

		json_write(&b, patch);
		fail_msg("%s does not lead there", buf_text(&b));
	}
	json_unref(result);
}

/* ---- exact operations ---- */

static const struct {
	const char *from, *to, *patch;
} cases[] = {
    {"{}", "{}", "[]"},
    {"{\"a\":1}", "{\"a\":1}", "[]"},
    {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "[]"},
    {"{}", "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]"},
    {"{}", "{\"a\":null}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]"},
    {"{\"a\":1}", "{}", "[{\"op\":\"remove\",\"path\":\"/a\"}]"},
    {"{\"a\":1,\"b\":2}", "{}",
	"[{\"op\":\"remove\",\"path\":\"/a\"},{\"op\":\"remove\",\"path\":\"/b\"}]"},
    {"{\"a\":1}", "{\"a\":1.0}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":1.0}]"},
    {"{\"a\":1}", "{\"a\":true}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":true}]"},
    {"{\"a\":0}", "{\"a\":false}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":false}]"},
    {"{\"a\":0.0}", "{\"a\":-0.0}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":-0.0}]"},
    {"{\"a\":null}", "{\"a\":{}}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":{}}]"},
    {"{\"a\":[]}", "{\"a\":{}}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":{}}]"},
    {"{\"a/b\":{\"\":1,\"m~n\":2}}", "{\"a/b\":{\"\":2,\"m~n\":2}}",
	"[{\"op\":\"replace\",\"path\":\"/a~1b/\",\"value\":2}]"},
    {"{\"~1\":1}", "{\"~1\":2}", "[{\"op\":\"replace\",\"path\":\"/~01\",\"value\":2}]"},
    {"{\"\\u00e9\":1}", "{\"\\u00e9\":2}",
	"[{\"op\":\"replace\",\"path\":\"/\\u00e9\",\"value\":2}]"},
    {"{\"a\":{\"b\":{\"c\":1,\"d\":2}}}", "{\"a\":{\"b\":{\"c\":1,\"d\":3}}}",
	"[{\"op\":\"replace\",\"path\":\"/a/b/d\",\"value\":3}]"},
    {"{\"l\":[]}", "{\"l\":[1]}", "[{\"op\":\"add\",\"path\":\"/l/-\",\"value\":1}]"},
    {"{\"l\":[1,2]}", "{\"l\":[1,2,3]}", "[{\"op\":\"add\",\"path\":\"/l/-\",\"value\":3}]"},
    {"{\"l\":[1,2]}", "{\"l\":[0,1,2]}", "[{\"op\":\"add\",\"path\":\"/l/0\",\"value\":0}]"},
    {"{\"l\":[1,2,3]}", "{\"l\":[1,2,\"x\",3]}", "[{\"op\":\"add\",\"path\":\"/l/2\",\"value\":\"x\"}]"},
    {"{\"l\":[1,2,3]}", "{\"l\":[1,3]}", "[{\"op\":\"remove\",\"path\":\"/l/1\"}]"},
    {"{\"l\":[1,1,1]}", "{\"l\":[1,1]}", "[{\"op\":\"remove\",\"path\":\"/l/2\"}]"},
    {"{\"l\":[{\"a\":1,\"long\":\"enough to be kept\"},{\"b\":1}]}",
	"{\"l\":[{\"a\":2,\"long\":\"enough to be kept\"},{\"b\":1}]}",
	"[{\"op\":\"replace\",\"path\":\"/l/0/a\",\"value\":2}]"},
    /* A whole container where that is shorter than all that changed in it. */
    {"{\"l\":[1,2,3,4]}", "{\"l\":[5,6,7,8]}",
	"[{\"op\":\"replace\",\"path\":\"/l\",\"value\":[5,6,7,8]}]"},
    {"{\"o\":{\"a\":1,\"b\":1,\"c\":1}}", "{\"o\":{}}",
	"[{\"op\":\"replace\",\"path\":\"/o\",\"value\":{}}]"},
};

static void
test_json_diff__operations(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json *from = read_json(cases[i].from), *to = read_json(cases[i].to);
		struct json *patch = json_diff(from, to);
		struct buf b = {0};

		json_write(&b, patch);
		assert_string_equal(buf_text(&b), cases[i].patch);
		check_leads_to(from, patch, to);
		buf_clear(&b);
		json_unref(patch);
		json_unref(from);
		json_unref(to);
	}
}

static struct json *
list_of(unsigned n)
{
	struct json *a = json_array();
	unsigned i;

	for (i = 0; i < n; i++)
		a = json_append(a, json_printf("element %u", i));
	return a;
}

/* k inserted elements are k additions, k removed ones k removals, whatever lies behind them. */
static void
test_json_diff__many_elements(void **state)
{
	struct json *from = json_set(json_object(), "l", list_of(1000)), *to = json_ref(from);
	struct json *list = list_of(1000), *patch;
	int i;

	(void)state;
	for (i = 0; i < 10; i++)
		list = json_insert(list, 500, json_int(i));
	/* Not a version of the old list: found by comparing. */
	to = json_set(to, "l", list);
	patch = json_diff(from, to);
	assert_int_equal(json_length(patch), 10);
	check_leads_to(from, patch, to);
	json_unref(patch);
	patch = json_diff(to, from);
	assert_int_equal(json_length(patch), 10);
	check_leads_to(to, patch, from);
	json_unref(patch);
	json_unref(from);
	json_unref(to);
}

/* ---- cost ---- */

static struct json *
big(const char *kind, unsigned n)
{
	struct json *v;
	unsigned i;

	if (kind[0] == 'a')
		return list_of(n);
	v = json_object();
	for (i = 0; i < n; i++) {
		char name[24];

		snprintf(name, sizeof(name), "member %u", i);
		v = json_set(v, name, json_printf("value %u", i));
	}
	return v;
}

static struct json *
grow(struct json *v, const char *name, struct json *value)
{
	return json_type(v) == JSON_ARRAY ? json_append(v, value) : json_set(v, name, value);
}

static size_t
pointer_length(const struct json *patch)
{
	return json_encoded_length(json_get(json_at(patch, 0), "path"));
}

/* One more in a large container: logarithmic work, and a record within E + U + P + 256. */
static void
check_growth(const char *kind, unsigned n, const char *name, struct json *value)
{
	static const char record[] = "{\"version\":3,\"generation\":\"0123456789abcdef0123456789abcdef\","
				     "\"seq\":9223372036854775807,\"kind\":\"spawned\",\"entry\":"
				     ",\"flow_context\":{\"patch\":}}\n";
	struct json *from = json_set(json_object(), "outer", json_set(json_object(), "inner", big(kind, n)));
	struct json *inner = json_ref(json_get(json_get(from, "outer"), "inner"));
	struct json *outer = json_ref(json_get(from, "outer")), *to = json_ref(from), *patch;
	struct json_counters before = json_counters(), after;

	outer = json_set(outer, "inner", grow(inner, name, json_ref(value)));
	to = json_set(to, "outer", outer);
	after = json_counters();
	assert_true(after.nodes_made - before.nodes_made <= 40);
	before = after;
	patch = json_diff(from, to);
	after = json_counters();
	assert_int_equal(json_length(patch), 1);
	assert_true(after.nodes_visited - before.nodes_visited <= 80);
	assert_true(after.values_made - before.values_made <= 8);
	assert_true(sizeof(record) + json_encoded_length(patch) <=
	    json_encoded_length(value) + pointer_length(patch) + 256);
	check_leads_to(from, patch, to);
	json_unref(patch);
	json_unref(from);
	json_unref(to);
	json_unref(value);
}

static void
test_json_diff__work_follows_the_change(void **state)
{
	static const unsigned sizes[] = {1000, 10000, 100000};
	static const char *const names[] = {"plain", "", "a/b~c/d~e", "\xc3\xa9\x01\"\\"};
	size_t i, k;

	(void)state;
	for (i = 0; i < 3; i++) {
		check_growth("array", sizes[i], NULL, json_cstr("x"));
		check_growth("array", sizes[i], NULL, json_append(json_array(), json_null()));
		for (k = 0; k < 4; k++)
			check_growth("object", sizes[i], names[k], json_cstr("\xe2\x82\xac and \n"));
	}
}

static void
test_json_diff__changes_far_apart(void **state)
{
	struct json *from = json_set(json_object(), "l", list_of(100000)), *to = json_ref(from), *patch;
	struct json *list = json_ref(json_get(from, "l"));
	struct json_counters before, after;

	(void)state;
	list = json_put(list, 3, json_int(1));
	list = json_put(list, 50000, json_int(2));
	list = json_put(list, 99990, json_int(3));
	to = json_set(to, "l", list);
	before = json_counters();
	patch = json_diff(from, to);
	after = json_counters();
	assert_int_equal(json_length(patch), 3);
	assert_true(after.nodes_visited - before.nodes_visited <= 400);
	check_leads_to(from, patch, to);
	json_unref(patch);
	/* Into the middle of a shared tree: what lies behind is found to be the same by its nodes. */
	list = json_insert(json_ref(json_get(to, "l")), 40000, json_int(4));
	json_unref(from);
	from = to;
	to = json_set(json_ref(from), "l", list);
	before = json_counters();
	patch = json_diff(from, to);
	after = json_counters();
	assert_int_equal(json_length(patch), 1);
	assert_true(after.nodes_visited - before.nodes_visited <= 400);
	check_leads_to(from, patch, to);
	json_unref(patch);
	json_unref(from);
	json_unref(to);
}

static void
test_json_diff__unchanged_costs_nothing(void **state)
{
	struct json *from = big("object", 100000), *to = json_set(json_ref(from), "new", json_int(1));
	struct json_counters before, after;
	struct json *patch;

	(void)state;
	to = json_remove(to, slice_of("new"));
	before = json_counters();
	patch = json_diff(from, to);
	after = json_counters();
	assert_int_equal(json_length(patch), 0);
	assert_true(after.nodes_visited - before.nodes_visited <= 40);
	json_unref(patch);
	json_unref(from);
	json_unref(to);
}

/* ---- rebasing ---- */

static void
test_json_diff__rebase_keeps_identity(void **state)
{
	static const char text[] = "{\"a\":{\"x\":[1,2,{\"y\":\"z\"}]},\"b\":[[\"p\"],[\"q\"]],\"c\":\"s\"}";
	struct json *from = read_json(text), *to = read_json(text), *result;

	(void)state;
	result = json_rebase(from, to);
	assert_ptr_equal(result, from);
	json_unref(result);
	to = json_set(read_json(text), "d", json_cstr("new"));
	to = json_set(to, "b", read_json("[[\"p\"],[\"q\"],[\"r\"]]"));
	result = json_rebase(from, json_ref(to));
	assert_true(json_equal(result, to));
	assert_ptr_equal(json_get(result, "a"), json_get(from, "a"));
	assert_ptr_equal(json_get(result, "c"), json_get(from, "c"));
	assert_ptr_equal(json_at(json_get(result, "b"), 0), json_at(json_get(from, "b"), 0));
	assert_ptr_equal(json_at(json_get(result, "b"), 1), json_at(json_get(from, "b"), 1));
	json_unref(result);
	/* What is equal deep below something that changed is kept, too. */
	json_unref(to);
	to = read_json("{\"a\":{\"x\":[7,8,{\"y\":\"z\"}]}}");
	result = json_rebase(from, to);
	assert_ptr_equal(json_at(json_get(json_get(result, "a"), "x"), 2),
	    json_at(json_get(json_get(from, "a"), "x"), 2));
	json_unref(result);
	json_unref(from);
}

static void
test_json_diff__rebase_of_other_types(void **state)
{
	struct json *list = list_of(3), *result;

	(void)state;
	result = json_rebase(list, list_of(4));
	assert_ptr_equal(json_at(result, 2), json_at(list, 2));
	json_unref(result);
	result = json_rebase(list, json_cstr("x"));
	assert_string_equal(json_cstr_of(result), "x");
	json_unref(result);
	result = json_rebase(NULL, json_cstr("x"));
	assert_string_equal(json_cstr_of(result), "x");
	json_unref(result);
	assert_null(json_rebase(list, NULL));
	json_unref(list);
}

/* ---- anything to anything ---- */

static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static struct json *
random_value(uint32_t *seed, int depth)
{
	unsigned kind = next_random(seed) % (depth > 0 ? 6 : 3), n = next_random(seed) % 25, i;
	struct json *v = kind < 5 ? json_array() : json_object();

	if (kind == 0)
		return json_int(next_random(seed) % 3);
	if (kind == 1)
		return json_cstr(next_random(seed) % 2 ? "x" : "");
	if (kind == 2)
		return json_bool(next_random(seed) % 2);
	for (i = 0; i < n; i++) {
		char name[24];

		snprintf(name, sizeof(name), "%u", next_random(seed) % 30);
		v = kind < 5 ? json_append(v, random_value(seed, depth - 1)) :
			       json_set(v, name, random_value(seed, depth - 1));
	}
	return v;
}

static void
test_json_diff__any_two_objects(void **state)
{
	uint32_t seed = 42;
	int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		struct json *from = json_set(json_object(), "v", random_value(&seed, 3));
		struct json *to = json_set(json_object(), "v", random_value(&seed, 3));
		struct json *patch = json_diff(from, to), *rebased;

		check_leads_to(from, patch, to);
		rebased = json_rebase(from, json_ref(to));
		assert_true(json_equal(rebased, to));
		json_unref(rebased);
		json_unref(patch);
		json_unref(from);
		json_unref(to);
	}
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_json_diff__operations),
    cmocka_unit_test(test_json_diff__many_elements),
    cmocka_unit_test(test_json_diff__work_follows_the_change),
    cmocka_unit_test(test_json_diff__changes_far_apart),
    cmocka_unit_test(test_json_diff__unchanged_costs_nothing),
    cmocka_unit_test(test_json_diff__rebase_keeps_identity),
    cmocka_unit_test(test_json_diff__rebase_of_other_types),
    cmocka_unit_test(test_json_diff__any_two_objects),
};

TEST_MAIN("json_diff", tests)
