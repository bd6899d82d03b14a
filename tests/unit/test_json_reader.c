/* What the reader does to be fast with large texts must not show in what it makes of them. */
#include <pthread.h>

#include "test.h"

#include "flowsup/json.h"

/* ---- Long strings, which jsmn is not shown ---- */

/* @ stands for the inside of a string. */
static const char *const templates[] = {
	"\"@\"", "[\"@\"]", "[\"@\",\"@\"]", "{\"@\":1}", "{\"a\":\"@\",\"b\":\"@\"}", "[[\"@\"],{\"k\":\"@\"},\"@\"]",
	"{\"a\":{\"b\":[\"@\",{\"c\":\"@\"}]},\"d\":null}", " [ \"@\" , 1 ] ", "[1,\"@\",2.5,true]",
	/* not JSON */
	"[\"@\"", "[\"@\",", "[\"@\",]", "[\"@", "\"@", "[\"@\" \"@\"]", "[1 \"@\"]", "[1\"@\"]", "[x\"@\"]", "{\"@\"}",
	"{\"@\",\"a\":1}", "{\"@\":}", "{\"a\":\"@\" \"b\":1}", "{\"a\" \"@\"}", "{\"a\":1,\"@\"}", "{\"@\":1,\"@\":2}",
	"[\"@\"}", "{\"a\":\"@\"]", "\"@\"\"@\"", "\"@\" 1", "[\"@\\q@\"]", "[\"@\\u12x4@\"]", "[\"@\n@\"]", "[\"@\xff@\"]",
	"[\"@\\\"]", "{\"a\":\"@\"}}", "]\"@\"", "}\"@\"", ",\"@\"", ":\"@\"", "[\"@\":1]", "[,\"@\"]", "{1:\"@\"}",
	"{\"a\":\"@\":\"@\":\"@\"}", "[1:\"@\",2:\"@\"]", "[\"a\":\"@\"]", "{\"a\":{}\"@\"}", "{\"a\":1:\"@\"}", "1:\"@\"",
	"\"a\":\"@\"", "{[\"@\"]:1}", "[\"@\"1]", "[\"@\"{}]",
};

/* The template with len times the letter x for @, and *at moved to where it then stands. */
static void
fill(struct buf *b, const char *from, size_t len, size_t *at)
{
	size_t i, k, moved = 0;

	for (i = 0; from[i] != '\0'; i++) {
		if (at != NULL && i == *at)
			moved = b->len;
		for (k = 0; from[i] == '@' && k < len; k++)
			buf_putc(b, 'x');
		if (from[i] != '@')
			buf_putc(b, from[i]);
	}
	if (at != NULL)
		*at = *at >= i ? b->len : moved;
}

static void
test_json_reader__long_strings_are_judged_like_short_ones(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(templates) / sizeof(templates[0]); i++) {
		struct buf brief = {0}, extended = {0};
		struct json_failure a = {0}, b = {0};
		struct json *v = NULL, *w = NULL;
		size_t at;
		int rc;

		fill(&brief, templates[i], 1, NULL);
		rc = json_parse(buf_view(&brief), NULL, &v, &a, NULL);
		/* One letter for each @, so the place is that in the template. */
		at = a.where.offset;
		fill(&extended, templates[i], 200, &at);
		if (json_parse(buf_view(&extended), NULL, &w, &b, NULL) != rc || a.fault != b.fault ||
		    (rc != 0 && b.where.offset != at))
			fail_msg("%s: %s at %zu, with long strings %s at %zu, not %zu", templates[i],
			    json_fault_name(a.fault), a.where.offset, json_fault_name(b.fault),
			    b.where.offset, at);
		if (rc == 0) {
			struct buf out = {0};

			json_write(&out, w);
			assert_int_equal(json_encoded_length(w), out.len);
			buf_clear(&out);
		}
		json_unref(v);
		json_unref(w);
		buf_clear(&brief);
		buf_clear(&extended);
	}
}

/* ---- Far into a text, where jsmn has gone on with what it still needs of what was read ---- */

static void
after_numbers(struct buf *b, unsigned numbers, const char *template)
{
	buf_reset(b);
	buf_putc(b, '[');
	while (numbers-- > 0)
		buf_puts(b, "0,");
	fill(b, template, 1, NULL);
	buf_puts(b, "]");
}

static void
test_json_reader__what_stands_far_in_is_judged_alike(void **state)
{
	enum { FEW = 1, FIRST = 1000, LAST = 1030 }; /* of 1,024 tokens some are the template's own */
	struct buf near = {0}, far = {0};
	unsigned n, i;

	(void)state;
	for (i = 0; i < sizeof(templates) / sizeof(templates[0]); i++)
		for (n = FIRST; n <= LAST; n++) {
			struct json_failure a = {0}, b = {0};
			struct json *v = NULL, *w = NULL;
			int rc;

			after_numbers(&near, FEW, templates[i]);
			after_numbers(&far, n, templates[i]);
			rc = json_parse(buf_view(&near), NULL, &v, &a, NULL);
			if (json_parse(buf_view(&far), NULL, &w, &b, NULL) != rc || a.fault != b.fault ||
			    (rc != 0 && b.where.offset != a.where.offset + (size_t)2 * (n - FEW)))
				fail_msg("%s after %u: %s at %zu, near %s at %zu", templates[i], n,
				    json_fault_name(b.fault), b.where.offset, json_fault_name(a.fault),
				    a.where.offset);
			if (rc == 0)
				assert_true(json_equal(json_at(v, FEW), json_at(w, n)));
			json_unref(v);
			json_unref(w);
		}
	buf_clear(&near);
	buf_clear(&far);
}

static void
test_json_reader__deep_and_wide(void **state)
{
	enum { DEEP = 3000, WIDE = 700 };
	const struct json_options o = {.max_depth = 2 * DEEP + 1};
	struct buf text = {0}, again = {0};
	struct json *v = NULL;
	struct err e = {0};
	int i, k;

	(void)state;
	for (i = 0; i < DEEP; i++)
		buf_puts(&text, i % 2 == 0 ? "[7," : "{\"a\":1,\"b\":");
	buf_puts(&text, "null");
	for (i = DEEP; i-- > 0;) {
		for (k = 0; i % 500 == 0 && k < WIDE; k++)
			buf_printf(&text, i % 2 == 0 ? ",%d" : ",\"k%d\":0", k);
		buf_putc(&text, i % 2 == 0 ? ']' : '}');
	}
	assert_works(json_parse(buf_view(&text), &o, &v, NULL, &e), e);
	json_write(&again, v);
	assert_true(slice_eq(buf_view(&text), buf_view(&again)));
	json_unref(v);
	buf_clear(&text);
	buf_clear(&again);
}

/* ---- Values that lie together ---- */

static const struct json_options together = {.together = true};

static void
add_text(struct buf *b, unsigned members)
{
	unsigned i;

	buf_puts(b, "{\"list\":[1,-5,2.5,123456789012345678901234567890,\"\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9"
	    "\\u00e9\\u00e9\\u00e9\\u00e9\",[[]],{}]");
	for (i = 0; i < members; i++)
		buf_printf(b, ",\"m%u\":{\"name\":\"value of member number %u\",\"n\":%u}", i, i, i + 100);
	buf_puts(b, "}");
}

static struct json *
read_both(unsigned members, struct json **apart)
{
	struct buf text = {0};
	struct json *packed = NULL;

	add_text(&text, members);
	assert_int_equal(json_parse(buf_view(&text), &together, &packed, NULL, NULL), 0);
	assert_int_equal(json_parse(buf_view(&text), NULL, apart, NULL, NULL), 0);
	buf_clear(&text);
	assert_true(json_equal(packed, *apart));
	return packed;
}

/* The same changes to both; every kind of node grows, splits, shrinks and goes. */
static struct json *
changed(struct json *v, unsigned members)
{
	struct json *list = json_ref(json_get(v, "list"));
	char name[16];
	unsigned i;

	for (i = 0; i < 100; i++)
		list = json_insert(list, i % 7, json_int(1000 + i));
	for (i = 0; i < 50; i++)
		list = json_erase(list, i % 5);
	v = json_set(v, "list", list);
	for (i = 0; i < members; i += 3) {
		snprintf(name, sizeof(name), "m%u", i);
		v = json_remove(v, slice_of(name));
	}
	for (i = 0; i < members; i += 2) {
		snprintf(name, sizeof(name), "m%u", i);
		v = json_set(v, name, json_int(i + 1000));
	}
	return v;
}

static void
test_json_reader__packed_values_change_like_others(void **state)
{
	static const unsigned members[] = {0, 1, 3, 16, 17, 40, 5000, 60000};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		struct json *apart = NULL, *packed = read_both(members[i], &apart);
		struct json *kept = json_ref(packed), *next;

		next = changed(json_ref(packed), members[i]);
		assert_true(json_equal(kept, apart));
		json_unref(kept);
		packed = changed(packed, members[i]);
		apart = changed(apart, members[i]);
		assert_non_null(packed);
		assert_true(json_equal(packed, apart));
		assert_true(json_equal(next, apart));
		json_unref(next);
		json_unref(packed);
		json_unref(apart);
	}
}

static void *
drop(void *v)
{
	json_unref(v);
	return NULL;
}

/* The last of a chunk may be given back long after the rest and by another thread. */
static void
test_json_reader__one_packed_value_outlives_the_rest(void **state)
{
	struct json *apart = NULL, *packed = read_both(40000, &apart);
	struct json *one = json_ref(json_get(json_get(packed, "m777"), "name"));
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, drop, packed), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(json_cstr_of(one), "value of member number 777");
	json_unref(one);
	json_unref(apart);
}

static void
test_json_reader__a_refused_text_leaves_nothing_packed(void **state)
{
	static const char *const refused[] = {
		"[1,", "{\"a\":{\"b\":\"c\"},\"a\":1}", "[\"x\",1e999]", "{\"a\":[{}]", "", "[\"\xff\"]"};
	struct json *v = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(json_parse(slice_of(refused[i]), &together, &v, NULL, NULL), -1);
	/* and the thread makes its values elsewhere again */
	v = json_cstr("after");
	assert_string_equal(json_cstr_of(v), "after");
	json_unref(v);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_json_reader__long_strings_are_judged_like_short_ones),
	cmocka_unit_test(test_json_reader__what_stands_far_in_is_judged_alike),
	cmocka_unit_test(test_json_reader__deep_and_wide),
	cmocka_unit_test(test_json_reader__packed_values_change_like_others),
	cmocka_unit_test(test_json_reader__one_packed_value_outlives_the_rest),
	cmocka_unit_test(test_json_reader__a_refused_text_leaves_nothing_packed),
};

TEST_MAIN("json_reader", tests)
