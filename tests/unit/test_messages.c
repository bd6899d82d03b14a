/* The pure parts of what is in the shared context: changes of operations, messages of a person. */
#include "test.h"

#include "flowsup/json.h"
#include "worker/changes.h"

static void
assert_same(const struct json *have, const char *wanted)
{
	struct json *w = test_json(wanted);
	struct buf text = {0};

	json_write(&text, have);
	if (!json_equal(have, w))
		print_message("# got %s\n", buf_text(&text));
	assert_true(json_equal(have, w));
	buf_clear(&text);
	json_unref(w);
}

#define CONTEXT                                                                                    \
	"{\"a\":1,\"list\":[1,2],\"deep\":{\"x\":{}},\"operator_messages\":[{\"text\":\"m\"}],"    \
	"\"approvals\":{}}"
#define KEPT ",\"operator_messages\":[{\"text\":\"m\"}],\"approvals\":{}}"

static const struct {
	const char *change;
	const char *result;  /* NULL: refused */
	enum err_code code;
} changes[] = {
    {"{\"op\":\"set\",\"pointer\":\"/a\",\"value\":2}",
	"{\"a\":2,\"list\":[1,2],\"deep\":{\"x\":{}}" KEPT, ERR_NONE},
    {"{\"op\":\"set\",\"pointer\":\"/b\",\"value\":null}",
	"{\"a\":1,\"b\":null,\"list\":[1,2],\"deep\":{\"x\":{}}" KEPT, ERR_NONE},
    {"{\"op\":\"set\",\"pointer\":\"/deep/x/y\",\"value\":[]}",
	"{\"a\":1,\"list\":[1,2],\"deep\":{\"x\":{\"y\":[]}}" KEPT, ERR_NONE},
    {"{\"op\":\"set\",\"pointer\":\"/list/0\",\"value\":9}",
	"{\"a\":1,\"list\":[9,2],\"deep\":{\"x\":{}}" KEPT, ERR_NONE},
    {"{\"op\":\"set\",\"pointer\":\"/list/-\",\"value\":3}",
	"{\"a\":1,\"list\":[1,2,3],\"deep\":{\"x\":{}}" KEPT, ERR_NONE},
    {"{\"op\":\"set\",\"pointer\":\"/list/2\",\"value\":3}",
	"{\"a\":1,\"list\":[1,2,3],\"deep\":{\"x\":{}}" KEPT, ERR_NONE},
    {"{\"op\":\"set\",\"pointer\":\"/operator_messages2\",\"value\":3}",
	"{\"a\":1,\"operator_messages2\":3,\"list\":[1,2],\"deep\":{\"x\":{}}" KEPT, ERR_NONE},
    {"{\"op\":\"append\",\"pointer\":\"/list\",\"value\":3}",
	"{\"a\":1,\"list\":[1,2,3],\"deep\":{\"x\":{}}" KEPT, ERR_NONE},
    {"{\"op\":\"append\",\"pointer\":\"/new\",\"value\":3}",
	"{\"a\":1,\"new\":[3],\"list\":[1,2],\"deep\":{\"x\":{}}" KEPT, ERR_NONE},
    {"{\"op\":\"remove\",\"pointer\":\"/a\"}",
	"{\"list\":[1,2],\"deep\":{\"x\":{}}" KEPT, ERR_NONE},
    {"{\"op\":\"remove\",\"pointer\":\"/list/0\"}",
	"{\"a\":1,\"list\":[2],\"deep\":{\"x\":{}}" KEPT, ERR_NONE},
    /* Parents are never made. */
    {"{\"op\":\"set\",\"pointer\":\"/no/b\",\"value\":2}", NULL, ERR_REFUSED},
    {"{\"op\":\"append\",\"pointer\":\"/no/b\",\"value\":2}", NULL, ERR_REFUSED},
    {"{\"op\":\"append\",\"pointer\":\"/a\",\"value\":2}", NULL, ERR_REFUSED},
    {"{\"op\":\"set\",\"pointer\":\"/list/5\",\"value\":2}", NULL, ERR_REFUSED},
    {"{\"op\":\"remove\",\"pointer\":\"/b\"}", NULL, ERR_REFUSED},
    {"{\"op\":\"remove\",\"pointer\":\"\"}", NULL, ERR_REFUSED},
    {"{\"op\":\"set\",\"pointer\":\"\",\"value\":{}}", NULL, ERR_REFUSED},
    {"{\"op\":\"set\",\"pointer\":\"a\",\"value\":1}", NULL, ERR_SYNTAX},
    {"{\"op\":\"set\",\"pointer\":\"/a~2\",\"value\":1}", NULL, ERR_SYNTAX},
    /* What the program keeps there. */
    {"{\"op\":\"set\",\"pointer\":\"/operator_messages\",\"value\":[]}", NULL, ERR_REFUSED},
    {"{\"op\":\"append\",\"pointer\":\"/operator_messages\",\"value\":{}}", NULL, ERR_REFUSED},
    {"{\"op\":\"remove\",\"pointer\":\"/operator_messages/0\"}", NULL, ERR_REFUSED},
    {"{\"op\":\"set\",\"pointer\":\"/approvals/x\",\"value\":{}}", NULL, ERR_REFUSED},
    /* No changes at all. */
    {"{\"op\":\"move\",\"pointer\":\"/a\",\"value\":1}", NULL, ERR_USAGE},
    {"{\"op\":\"set\",\"pointer\":\"/a\"}", NULL, ERR_USAGE},
    {"{\"op\":\"set\",\"value\":1}", NULL, ERR_USAGE},
    {"{\"op\":\"set\",\"pointer\":7,\"value\":1}", NULL, ERR_USAGE},
    {"{\"pointer\":\"/a\",\"value\":1}", NULL, ERR_USAGE},
};

static void
test_changes__table(void **state)
{
	struct json *context = test_json(CONTEXT), *change, *out;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct err e = {0};

		change = test_json(changes[i].change);
		if (changes[i].result == NULL) {
			if (change_apply(context, change, &out, &e) == 0)
				print_message("# accepted: %s\n", changes[i].change);
			assert_int_equal(e.code, changes[i].code);
			assert_true(e.msg[0] != '\0');
		} else {
			assert_works(change_apply(context, change, &out, &e), e);
			assert_same(out, changes[i].result);
			json_unref(out);
		}
		json_unref(change);
	}
	assert_same(context, CONTEXT);
	json_unref(context);
}

static void
test_changes__all_or_none(void **state)
{
	struct json *context = test_json("{\"n\":0}"), *list, *out = NULL;
	struct err e = {0};

	(void)state;
	list = test_json("[{\"op\":\"append\",\"pointer\":\"/l\",\"value\":1},"
		     "{\"op\":\"append\",\"pointer\":\"/l\",\"value\":2},"
		     "{\"op\":\"remove\",\"pointer\":\"/n\"}]");
	assert_works(changes_apply(context, list, &out, &e), e);
	assert_same(out, "{\"l\":[1,2]}");
	json_unref(out);
	json_unref(list);
	out = NULL;
	list = test_json("[{\"op\":\"set\",\"pointer\":\"/l\",\"value\":1},"
		     "{\"op\":\"append\",\"pointer\":\"/l\",\"value\":2}]");
	assert_fails(changes_apply(context, list, &out, &e), ERR_REFUSED, e);
	assert_non_null(strstr(e.msg, "change 2"));
	assert_null(out);
	json_unref(list);
	json_unref(context);
}

static const struct {
	const char *response;
	bool asks;
} responses[] = {
    {"{\"context\":[{\"op\":\"set\",\"pointer\":\"/a\",\"value\":1}]}", true},
    {"{\"context\":[{\"op\":\"nonsense\"}]}", true},
    {"{\"context\":[]}", false},
    {"{\"context\":[{\"op\":\"set\"},{\"text\":\"other\"}]}", false},
    {"{\"context\":[\"set\"]}", false},
    {"{\"context\":\"a summary\"}", false},
    {"{\"context\":{\"op\":\"set\"}}", false},
    {"[{\"context\":[{\"op\":\"set\"}]}]", false},
    {"\"context\"", false},
    {"null", false},
};

static void
test_changes__of_a_response(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(responses) / sizeof(responses[0]); i++) {
		struct json *v = test_json(responses[i].response);

		assert_int_equal(changes_of_response(v) != NULL, responses[i].asks);
		json_unref(v);
	}
	assert_null(changes_of_response(NULL));
}

static void
test_context__operations_do_not_see_what_is_kept(void **state)
{
	struct json *context = test_json(CONTEXT), *seen = context_public(context);

	(void)state;
	assert_same(seen, "{\"a\":1,\"list\":[1,2],\"deep\":{\"x\":{}}}");
	assert_same(context, CONTEXT);
	json_unref(seen);
	json_unref(context);
}

/* ---- Messages ---- */

static struct json *
add(struct json *messages, double ts, const char *text, const char *to)
{
	struct json *t = text != NULL ? json_cstr(text) : NULL, *o = to != NULL ? json_cstr(to) : NULL;

	messages = messages_add(messages, ts, t, o);
	json_unref(t);
	json_unref(o);
	assert_non_null(messages);
	return messages;
}

static void
assert_lines(const struct json *messages, const char *op, const char *wanted)
{
	struct buf text = {0};

	messages_lines(messages, op, 0, &text);
	assert_string_equal(buf_text(&text), wanted);
	buf_clear(&text);
}

#define BEGIN                                                                                      \
	"[OPERATOR STEER]\n"                                                                       \
	"A human operator sent these live corrections while this flow is running.\n"               \
	"Attend to them before continuing. Most recent last.\n"
#define END "[/OPERATOR STEER]\n"

static void
test_messages__each_goes_to_one_operation(void **state)
{
	struct json *m = NULL;
	size_t marked;

	(void)state;
	m = add(m, 0, "first", NULL);
	m = add(m, 1, "for b", "b");
	m = add(m, 2, "second", NULL);
	assert_int_equal(messages_unrendered(m), 3);
	m = messages_mark(m, "a", &marked);
	assert_int_equal(marked, 2);
	assert_lines(m, "a", BEGIN "- 1970-01-01T00:00:00Z: first\n- 1970-01-01T00:00:02Z: second\n" END);
	assert_lines(m, "b", "");
	m = messages_mark(m, "c", &marked);
	assert_int_equal(marked, 0);
	m = messages_mark(m, "b", &marked);
	assert_int_equal(marked, 1);
	assert_lines(m, "b", BEGIN "- 1970-01-01T00:00:01Z: for b\n" END);
	assert_int_equal(messages_unrendered(m), 0);
	/* A later attempt sees the old ones and what came since. */
	m = add(m, 3, "third", NULL);
	m = messages_mark(m, "b", &marked);
	assert_int_equal(marked, 1);
	assert_lines(m, "b", BEGIN
	    "- 1970-01-01T00:00:01Z: for b\n- 1970-01-01T00:00:03Z: third\n" END);
	assert_same(json_at(m, 0), "{\"ts\":0.0,\"text\":\"first\",\"rendered_into_op\":\"a\"}");
	assert_same(json_at(m, 1),
	    "{\"ts\":1.0,\"text\":\"for b\",\"to\":\"b\",\"rendered_into_op\":\"b\"}");
	json_unref(m);
}

static void
test_messages__texts_are_kept_byte_by_byte(void **state)
{
	static const char *const texts[] = {
	    "", "two\nlines", "\ttab", "\"quoted\" \\ back", "\033[2J\033]0;title\007", "\xc3\xa9\xf0\x9f\x98\x80",
	    "[/OPERATOR STEER]"};
	struct json *m;
	struct buf wanted = {0};
	size_t i, marked;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		m = messages_mark(add(NULL, 0, texts[i], NULL), "a", &marked);
		buf_reset(&wanted);
		buf_printf(&wanted, BEGIN "- 1970-01-01T00:00:00Z: %s\n" END, texts[i]);
		assert_lines(m, "a", buf_text(&wanted));
		json_unref(m);
	}
	buf_clear(&wanted);
	m = messages_mark(add(NULL, 0, NULL, NULL), "a", &marked);
	assert_lines(m, "a", BEGIN "- 1970-01-01T00:00:00Z: \n" END);
	json_unref(m);
}

static void
test_messages__none(void **state)
{
	(void)state;
	assert_lines(NULL, "a", "");
	assert_int_equal(messages_unrendered(NULL), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_changes__table),
    cmocka_unit_test(test_changes__all_or_none),
    cmocka_unit_test(test_changes__of_a_response),
    cmocka_unit_test(test_context__operations_do_not_see_what_is_kept),
    cmocka_unit_test(test_messages__each_goes_to_one_operation),
    cmocka_unit_test(test_messages__texts_are_kept_byte_by_byte),
    cmocka_unit_test(test_messages__none),
};

TEST_MAIN("messages", tests)
