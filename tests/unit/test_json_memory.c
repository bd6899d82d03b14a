/*
 * Memory that runs out: the n-th allocation fails, for n = 1 until none does. Each time the
 * function must say so, and under the address sanitizer nothing may be lost or freed twice. What
 * others hold must be as it was.
 */
#include "test.h"

#include "fault_alloc.h"
#include "flowsup/json.h"

static const char text[] =
    "{\"a\":[1,2.5,1e300,123456789012345678901234567890,\"x\\u00e9\",\"plain\",null,[[{}]],"
    "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33]],"
    "\"b\":{\"c\":1,\"d\":2,\"e\":3,\"f\":4,\"g\":5,\"h\":6,\"i\":7,\"j\":8,\"k\":9,\"l\":10,\"m\":11,"
    "\"n\":12,\"o\":13,\"p\":14,\"q\":15,\"r\":16,\"s\":17,\"t\":18,\"u\":19},\"c/d~\":\"\"}";

static struct json *
read_json(const char *from)
{
	struct json *v = NULL;

	assert_int_equal(json_parse(slice_of(from), NULL, &v, NULL, NULL), 0);
	return v;
}

/* One piece of work: made from `shared`, which it borrows; NULL with ERR_NOMEM on failure. */
typedef struct json *work(const struct json *shared, struct err *e);

static struct json *
parse(const struct json *shared, struct err *e)
{
	struct json_failure f = {.fault = JSON_OK};
	struct json *v = NULL;

	(void)shared;
	if (json_parse(slice_of(text), NULL, &v, &f, e) == -1)
		assert_int_equal(f.fault, JSON_FAULT_MEMORY);
	return v;
}

static struct json *
parse_with_positions(const struct json *shared, struct err *e)
{
	struct json_options o = {.positions = true, .last_wins = true};
	struct json *v = NULL;

	(void)shared;
	json_parse(slice_of(text), &o, &v, NULL, e);
	return v;
}

static struct json *
parse_together(const struct json *shared, struct err *e)
{
	struct json_options o = {.together = true};
	struct json *v = NULL;

	(void)shared;
	json_parse(slice_of(text), &o, &v, NULL, e);
	return v;
}

/* More containers are open where jsmn goes on than half of the tokens that there is room for at first. */
static struct json *
parse_deep(const struct json *shared, struct err *e)
{
	enum { DEEP = 600, WIDE = 1000 };
	const struct json_options o = {.max_depth = DEEP};
	struct json_failure f = {.fault = JSON_OK};
	char deep[2 * DEEP + WIDE + 1];
	struct json *v = NULL;
	int i;

	(void)shared;
	memset(deep, '[', DEEP);
	for (i = 0; i <= WIDE; i++)
		deep[DEEP + i] = i % 2 == 0 ? '0' : ',';
	memset(deep + DEEP + WIDE + 1, ']', DEEP);
	if (json_parse((struct slice){deep, sizeof(deep)}, &o, &v, &f, e) == -1)
		assert_int_equal(f.fault, JSON_FAULT_MEMORY);
	return v;
}

static struct json *
checked(struct json *v, struct err *e)
{
	if (v == NULL)
		err_nomem(e);
	return v;
}

static struct json *
set_many(const struct json *shared, struct err *e)
{
	struct json *v = json_ref(shared);
	char name[24];
	int i;

	for (i = 0; i < 70; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		v = json_set(v, name, json_printf("value %d", i));
	}
	return checked(v, e);
}

static struct json *
remove_many(const struct json *shared, struct err *e)
{
	struct json *v = json_ref(json_get(shared, "b"));
	char name[2] = "c";

	for (; name[0] <= 'u'; name[0]++)
		v = json_remove(v, slice_of(name));
	return checked(v, e);
}

static struct json *
change_elements(const struct json *shared, struct err *e)
{
	struct json *v = json_ref(json_at(json_get(shared, "a"), 8));
	int i;

	for (i = 0; i < 100; i++)
		v = json_insert(v, (size_t)i / 2, json_int(1000 + i));
	v = json_put(v, 3, json_cstr("x"));
	for (i = 0; i < 120; i++)
		v = json_erase(v, 1);
	return checked(json_append(v, json_real(0.5)), e);
}

static struct json *
set_positions(const struct json *shared, struct err *e)
{
	struct json_where where = {1, 2, 3};
	struct json *v = json_set_position(json_cstr("name"), where);

	(void)shared;
	v = json_set_named(json_object(), v, json_set_position(json_int(1), where));
	return checked(json_set_position(v, where), e);
}

static struct json *
mend(const struct json *shared, struct err *e)
{
	(void)shared;
	return checked(json_string_lossy(slice_of("a\xff\xfe and more than fits at first \xff"), NULL), e);
}

static struct json *
patch(const struct json *shared, struct err *e)
{
	static const char operations[] =
	    "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":1},{\"op\":\"add\",\"path\":\"/a/8/0\",\"value\":[]},"
	    "{\"op\":\"replace\",\"path\":\"/c~1d~0\",\"value\":{}},"
	    "{\"op\":\"add\",\"path\":\"/c~1d~0/x\",\"value\":1},"
	    "{\"op\":\"remove\",\"path\":\"/b/d\"},{\"op\":\"remove\",\"path\":\"/a/0\"}]";
	struct json *list = NULL, *out = NULL;

	if (json_parse(slice_of(operations), NULL, &list, NULL, e) == -1)
		return NULL;
	json_patch(shared, list, &out, e);
	json_unref(list);
	return out;
}

static struct json *
diff(const struct json *shared, struct err *e)
{
	static const char changed[] = "{\"a\":[1,2.5,[],{\"x\":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}],"
				      "\"b\":{\"x\":0},\"z\":{}}";
	struct json *other = NULL, *v;

	if (json_parse(slice_of(changed), NULL, &other, NULL, e) == -1)
		return NULL;
	v = json_diff(shared, other);
	json_unref(other);
	return checked(v, e);
}

static struct json *
rebase(const struct json *shared, struct err *e)
{
	struct json *other = NULL;

	if (json_parse(slice_of(text), NULL, &other, NULL, e) == -1)
		return NULL;
	other = json_set(other, "new", json_cstr("value"));
	return checked(json_rebase(shared, other), e);
}

static struct json *
encode(const struct json *shared, struct err *e)
{
	struct buf b = {0};

	json_write(&b, shared);
	if (buf_ok(&b, e) == -1) {
		buf_clear(&b);
		return NULL;
	}
	buf_clear(&b);
	return json_null();
}

static const struct {
	const char *name;
	work *work;
	unsigned long least; /* places that can fail: fewer, and the loop tests nothing */
} works[] = {
    {"parse", parse, 25},
    {"parse with positions", parse_with_positions, 60},
    {"parse together", parse_together, 8},
    {"parse deep", parse_deep, 8},
    {"set", set_many, 80},
    {"remove", remove_many, 8},
    {"elements", change_elements, 60},
    {"positions", set_positions, 4},
    {"mend", mend, 2},
    {"patch", patch, 20},
    {"diff", diff, 10},
    {"rebase", rebase, 30},
    {"encode", encode, 2},
};

static unsigned long
fail_each(work *f, const struct json *shared)
{
	unsigned long n;

	for (n = 1;; n++) {
		struct err e = {0};
		struct json *v;
		bool failed;

		fault_alloc_arm(n, false);
		v = f(shared, &e);
		failed = fault_alloc_disarm();
		if (!failed) {
			assert_non_null(v);
			json_unref(v);
			return n - 1;
		}
		/* Some allocations only save memory; then the work is done all the same. */
		if (v == NULL)
			assert_int_equal(e.code, ERR_NOMEM);
		json_unref(v);
	}
}

static void
test_json_memory__each_allocation_fails_once(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		struct json *shared = read_json(text);
		struct buf before = {0}, after = {0};
		unsigned long places;

		json_write(&before, shared);
		places = fail_each(works[i].work, shared);
		json_write(&after, shared);
		assert_string_equal(buf_text(&before), buf_text(&after));
		print_message("# %s: %lu allocations failed in turn\n", works[i].name, places);
		assert_true(places >= works[i].least);
		json_unref(shared);
		buf_clear(&before);
		buf_clear(&after);
	}
}

/* Many small values: what one outcome of a run costs in memory must stay well below a kilobyte. */
static void
test_json_memory__small_objects_are_few_allocations(void **state)
{
	struct json *v = NULL;

	(void)state;
	fault_alloc_arm(1000000, false);
	assert_int_equal(json_parse(slice_of("[{\"agent_id\":\"op-1\",\"status\":\"completed\","
					     "\"attempts\":1,\"artifacts\":[],\"response\":null}]"),
			     NULL, &v, NULL, NULL),
	    0);
	fault_alloc_disarm();
	/* tokens, two stacks, two containers of two parts, two strings, five names */
	assert_true(fault_alloc_count() <= 14);
	json_unref(v);
	assert_int_equal(json_parse(slice_of("{\"agent_id\":\"op-1\"}"), NULL, &v, NULL, NULL), 0);
	fault_alloc_arm(1000000, false);
	v = json_set(v, "agent_id", json_cstr("op-2"));
	fault_alloc_disarm();
	/* The value, and the name at most the first time. */
	assert_true(fault_alloc_count() <= 2);
	fault_alloc_arm(1000000, false);
	v = json_set(v, "agent_id", json_cstr("op-3"));
	v = json_set(v, "agent_id", json_int(7));
	v = json_set(v, "agent_id", json_bool(true));
	v = json_set(v, "agent_id", json_null());
	fault_alloc_disarm();
	assert_int_equal(fault_alloc_count(), 1);
	json_unref(v);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_json_memory__each_allocation_fails_once),
    cmocka_unit_test(test_json_memory__small_objects_are_few_allocations),
};

TEST_MAIN("json_memory", tests)
