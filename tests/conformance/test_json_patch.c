/* Pointers (RFC 6901) and the strict subset of patches (RFC 6902) of flowsup-checkpoint(5). */
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
check_text(const struct json *v, const char *text)
{
	struct buf b = {0};

	json_write(&b, v);
	assert_string_equal(buf_text(&b), text);
	buf_clear(&b);
}

/* ---- pointers ---- */

static const char document[] = "{\"foo\":[\"bar\",[\"baz\"]],\"\":0,\"a/b\":1,\"c%d\":2,\"m~n\":8,"
			       "\"~1\":9,\"-\":10,\"0\":{\"-\":11},\"\\u00e9\":12}";

static const struct {
	const char *pointer;
	const char *value;  /* NULL: refused */
	enum err_code code; /* then */
} pointers[] = {
    {"/foo", "[\"bar\",[\"baz\"]]", ERR_NONE},
    {"/foo/0", "\"bar\"", ERR_NONE},
    {"/foo/1/0", "\"baz\"", ERR_NONE},
    {"/", "0", ERR_NONE},
    {"/a~1b", "1", ERR_NONE},
    {"/c%d", "2", ERR_NONE},
    {"/m~0n", "8", ERR_NONE},
    {"/~01", "9", ERR_NONE},
    {"/-", "10", ERR_NONE},
    {"/0/-", "11", ERR_NONE},
    {"/\xc3\xa9", "12", ERR_NONE},
    {"/foo/2", NULL, ERR_NOTFOUND},
    {"/foo/-", NULL, ERR_NOTFOUND},
    {"/foo/00", NULL, ERR_NOTFOUND},
    {"/foo/01", NULL, ERR_NOTFOUND},
    {"/foo/+1", NULL, ERR_NOTFOUND},
    {"/foo/-1", NULL, ERR_NOTFOUND},
    {"/foo/1e0", NULL, ERR_NOTFOUND},
    {"/foo/ 1", NULL, ERR_NOTFOUND},
    {"/foo/", NULL, ERR_NOTFOUND},
    {"/foo/18446744073709551616", NULL, ERR_NOTFOUND},
    {"/foo/99999999999999999999999999", NULL, ERR_NOTFOUND},
    {"/FOO", NULL, ERR_NOTFOUND},
    {"//", NULL, ERR_NOTFOUND},
    {"/foo/0/0", NULL, ERR_NOTFOUND},
    {"/a/b", NULL, ERR_NOTFOUND},
    {"foo", NULL, ERR_SYNTAX},
    {"#/foo", NULL, ERR_SYNTAX},
    {"/m~n", NULL, ERR_SYNTAX},
    {"/~", NULL, ERR_SYNTAX},
    {"/~2", NULL, ERR_SYNTAX},
    {"/a~", NULL, ERR_SYNTAX},
    {"/~~", NULL, ERR_SYNTAX},
};

static void
test_json_patch__pointers(void **state)
{
	struct json *root = read_json(document);
	size_t i;

	(void)state;
	assert_ptr_equal(json_pointer_get(root, slice_of(""), NULL), root);
	for (i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		struct err e = {0};
		const struct json *v = json_pointer_get(root, slice_of(pointers[i].pointer), &e);

		if ((v != NULL) != (pointers[i].value != NULL))
			fail_msg("%s: %s", pointers[i].pointer, v != NULL ? "found" : e.msg);
		assert_int_equal(e.code, pointers[i].code);
		if (v != NULL)
			check_text(v, pointers[i].value);
	}
	json_unref(root);
}

static void
test_json_patch__pointer_tokens_are_escaped(void **state)
{
	struct buf b = {0};

	(void)state;
	json_pointer_add(&b, slice_of(""));
	json_pointer_add(&b, slice_of("a/b~c"));
	json_pointer_add(&b, slice_of("~1"));
	assert_string_equal(buf_text(&b), "//a~1b~0c/~01");
	buf_clear(&b);
}

/* ---- patches ---- */

static const struct patch_case {
	const char *from;
	const char *patch;
	const char *to;	    /* NULL: refused */
	enum err_code code; /* then */
} patches[] = {
    {"{}", "[]", "{}", ERR_NONE},
    /* add */
    {"{}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]", "{\"a\":1}", ERR_NONE},
    {"{}", "[{\"value\":null,\"path\":\"/a\",\"op\":\"add\"}]", "{\"a\":null}", ERR_NONE},
    {"{}", "[{\"op\":\"add\",\"path\":\"/\",\"value\":1}]", "{\"\":1}", ERR_NONE},
    {"{}", "[{\"op\":\"add\",\"path\":\"/-\",\"value\":1}]", "{\"-\":1}", ERR_NONE},
    {"{}", "[{\"op\":\"add\",\"path\":\"/0\",\"value\":1}]", "{\"0\":1}", ERR_NONE},
    {"{}", "[{\"op\":\"add\",\"path\":\"/~1~0~01\",\"value\":1}]", "{\"/~~1\":1}", ERR_NONE},
    {"{\"a\":{}}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", "{\"a\":{\"b\":1}}", ERR_NONE},
    {"{\"a\":[]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":1}]", "{\"a\":[1]}", ERR_NONE},
    {"{\"a\":[]}", "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":1}]", "{\"a\":[1]}", ERR_NONE},
    {"{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]", "{\"a\":[1,2,3]}", ERR_NONE},
    {"{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":4}]", "{\"a\":[1,3,4]}", ERR_NONE},
    {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":2}]", NULL, ERR_REFUSED},
    {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/01\",\"value\":2}]", NULL, ERR_REFUSED},
    {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-1\",\"value\":2}]", NULL, ERR_REFUSED},
    {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/x\",\"value\":2}]", NULL, ERR_REFUSED},
    {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/\",\"value\":2}]", NULL, ERR_REFUSED},
    {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/18446744073709551616\",\"value\":2}]", NULL,
	ERR_REFUSED},
    {"{\"a\":[[]]}", "[{\"op\":\"add\",\"path\":\"/a/-/-\",\"value\":2}]", NULL, ERR_REFUSED},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":2}]", NULL, ERR_REFUSED},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":2}]", NULL, ERR_REFUSED},
    {"{}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":2}]", NULL, ERR_REFUSED},
    {"{}", "[{\"op\":\"add\",\"path\":\"\",\"value\":{}}]", NULL, ERR_REFUSED},
    {"{\"a\":\"s\"}", "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":2}]", NULL, ERR_REFUSED},
    /* remove */
    {"{\"a\":1,\"b\":2}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "{\"b\":2}", ERR_NONE},
    {"{\"a\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/a/1\"}]", "{\"a\":[1,3]}", ERR_NONE},
    {"{\"a\":[1]}", "[{\"op\":\"remove\",\"path\":\"/a/0\"}]", "{\"a\":[]}", ERR_NONE},
    {"{\"\":{\"\":1}}", "[{\"op\":\"remove\",\"path\":\"//\"}]", "{\"\":{}}", ERR_NONE},
    {"{\"-\":1}", "[{\"op\":\"remove\",\"path\":\"/-\"}]", "{}", ERR_NONE},
    {"{\"a\":[1]}", "[{\"op\":\"remove\",\"path\":\"/a/-\"}]", NULL, ERR_REFUSED},
    {"{\"a\":[1]}", "[{\"op\":\"remove\",\"path\":\"/a/1\"}]", NULL, ERR_REFUSED},
    {"{\"a\":[1]}", "[{\"op\":\"remove\",\"path\":\"/a/00\"}]", NULL, ERR_REFUSED},
    {"{}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", NULL, ERR_REFUSED},
    {"{}", "[{\"op\":\"remove\",\"path\":\"\"}]", NULL, ERR_REFUSED},
    /* replace */
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":2}]", "{\"a\":2}", ERR_NONE},
    {"{\"a\":1,\"b\":2}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":null}]",
	"{\"a\":null,\"b\":2}", ERR_NONE},
    {"{\"a\":[1,2]}", "[{\"op\":\"replace\",\"path\":\"/a/1\",\"value\":{}}]", "{\"a\":[1,{}]}",
	ERR_NONE},
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"b\":2}}]", "{\"b\":2}", ERR_NONE},
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]", NULL, ERR_REFUSED},
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":null}]", NULL, ERR_REFUSED},
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":2}]", NULL, ERR_REFUSED},
    {"{\"a\":[1]}", "[{\"op\":\"replace\",\"path\":\"/a/1\",\"value\":2}]", NULL, ERR_REFUSED},
    {"{\"a\":[1]}", "[{\"op\":\"replace\",\"path\":\"/a/-\",\"value\":2}]", NULL, ERR_REFUSED},
    /* order, and all or nothing */
    {"{}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":[]},{\"op\":\"add\",\"path\":\"/a/-\",\"value\":1},"
	   "{\"op\":\"add\",\"path\":\"/a/0\",\"value\":0},{\"op\":\"remove\",\"path\":\"/a/1\"}]",
	"{\"a\":[0]}", ERR_NONE},
    {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\"},{\"op\":\"add\",\"path\":\"/a\",\"value\":2}]",
	"{\"a\":2}", ERR_NONE},
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{}},"
		  "{\"op\":\"add\",\"path\":\"/a\",\"value\":2}]",
	"{\"a\":2}", ERR_NONE},
    {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":2},{\"op\":\"remove\",\"path\":\"/b\"}]",
	NULL, ERR_REFUSED},
    /* form */
    {"{}", "{}", NULL, ERR_SYNTAX},
    {"{}", "null", NULL, ERR_SYNTAX},
    {"{}", "[1]", NULL, ERR_SYNTAX},
    {"{}", "[[]]", NULL, ERR_SYNTAX},
    {"{}", "[{}]", NULL, ERR_SYNTAX},
    {"{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", NULL, ERR_SYNTAX},
    {"{}", "[{\"op\":\"add\",\"value\":1}]", NULL, ERR_SYNTAX},
    {"{}", "[{\"path\":\"/a\",\"value\":1}]", NULL, ERR_SYNTAX},
    {"{}", "[{\"op\":\"add\",\"path\":1,\"value\":1}]", NULL, ERR_SYNTAX},
    {"{}", "[{\"op\":1,\"path\":\"/a\",\"value\":1}]", NULL, ERR_SYNTAX},
    {"{}", "[{\"op\":\"ADD\",\"path\":\"/a\",\"value\":1}]", NULL, ERR_SYNTAX},
    {"{\"a\":1}", "[{\"op\":\"move\",\"path\":\"/b\",\"from\":\"/a\"}]", NULL, ERR_SYNTAX},
    {"{\"a\":1}", "[{\"op\":\"copy\",\"path\":\"/b\",\"from\":\"/a\"}]", NULL, ERR_SYNTAX},
    {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", NULL, ERR_SYNTAX},
    {"{}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1,\"x\":1}]", NULL, ERR_SYNTAX},
    {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\",\"value\":1}]", NULL, ERR_SYNTAX},
    {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\",\"x\":1}]", NULL, ERR_SYNTAX},
    {"{}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", NULL, ERR_SYNTAX},
    {"{}", "[{\"op\":\"add\",\"path\":\"/~\",\"value\":1}]", NULL, ERR_SYNTAX},
    {"{}", "[{\"op\":\"add\",\"path\":\"/~2\",\"value\":1}]", NULL, ERR_SYNTAX},
};

static void
check_patch(const struct patch_case *c)
{
	struct json *from = read_json(c->from), *patch = read_json(c->patch), *to = NULL;
	struct err e = {0};
	int rc = json_patch(from, patch, &to, &e);

	if ((rc == 0) != (c->to != NULL))
		fail_msg("%s with %s: %s", c->from, c->patch, rc == 0 ? "accepted" : e.msg);
	if (rc == 0) {
		check_text(to, c->to);
		json_unref(to);
	} else
		assert_int_equal(e.code, c->code);
	/* Whatever happened, the old value is as it was. */
	check_text(from, c->from);
	json_unref(from);
	json_unref(patch);
}

static void
test_json_patch__operations(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(patches) / sizeof(patches[0]); i++)
		check_patch(&patches[i]);
}

static void
test_json_patch__message_names_the_step(void **state)
{
	struct json *from = read_json("{}"), *to = NULL;
	struct json *patch = read_json("[{\"op\":\"add\",\"path\":\"/a\",\"value\":1},"
				       "{\"op\":\"remove\",\"path\":\"/b\"}]");
	struct err e = {0};

	(void)state;
	assert_fails(json_patch(from, patch, &to, &e), ERR_REFUSED, e);
	assert_non_null(strstr(e.msg, "step 2 of the patch"));
	assert_null(to);
	json_unref(from);
	json_unref(patch);
}

static struct json *
nested(unsigned depth)
{
	struct json *v = json_array();

	while (--depth > 0)
		v = json_append(json_array(), v);
	return v;
}

/* What could not be read again is not made: path and value together have 512 levels at most. */
static void
test_json_patch__depth(void **state)
{
	unsigned levels;

	(void)state;
	for (levels = 510; levels <= 511; levels++) {
		struct json *from = read_json("{\"a\":{}}"), *to = NULL;
		struct json *op = json_set(json_object(), "op", json_cstr("add"));
		struct json *patch;
		struct err e = {0};
		int rc;

		op = json_set(op, "path", json_cstr("/a/b"));
		op = json_set(op, "value", nested(levels));
		patch = json_append(json_array(), op);
		rc = json_patch(from, patch, &to, &e);
		assert_int_equal(rc, levels == 510 ? 0 : -1);
		if (rc == 0)
			json_unref(to);
		else
			assert_int_equal(e.code, ERR_REFUSED);
		json_unref(from);
		json_unref(patch);
	}
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_json_patch__pointers),
    cmocka_unit_test(test_json_patch__pointer_tokens_are_escaped),
    cmocka_unit_test(test_json_patch__operations),
    cmocka_unit_test(test_json_patch__message_names_the_step),
    cmocka_unit_test(test_json_patch__depth),
};

TEST_MAIN("json_patch", tests)
