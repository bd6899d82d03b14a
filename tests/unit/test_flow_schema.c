/* Schemas of responses: what a document may hold, and what each keyword asks of a value. */
#include "test.h"

#include "flowsup/flow.h"

/* ---- Values ---- */

#define SAME "{\"$defs\":{\"t\":{\"type\":\"object\",\"properties\":{\"l\":{\"$ref\":\"#/$defs/t\"},"     \
	     "\"v\":{\"type\":\"integer\"}},\"required\":[\"v\"]}},\"$ref\":\"#/$defs/t\"}"

static const struct {
	const char *schema, *value;
	const char *why; /* NULL: it fits */
} values[] = {
    {"{}", "null", NULL},
    {"{\"type\":\"string\"}", "\"x\"", NULL},
    {"{\"type\":\"string\"}", "1", "at \"\": is an integer, and the type must be string"},
    {"{\"type\":[\"string\",\"null\"]}", "null", NULL},
    {"{\"type\":[\"string\",\"null\"]}", "[]", "at \"\": is a list, and the type must be string or null"},
    {"{\"type\":\"integer\"}", "1.0", NULL},
    {"{\"type\":\"integer\"}", "1e3", NULL},
    {"{\"type\":\"integer\"}", "123456789012345678901234567890", NULL},
    {"{\"type\":\"integer\"}", "1.5", "at \"\": is a number with a fraction, and the type must be integer"},
    {"{\"type\":\"number\"}", "1", NULL},
    {"{\"type\":\"boolean\"}", "true", NULL},
    {"{\"type\":\"boolean\"}", "0", "at \"\": is an integer, and the type must be boolean"},
    {"{\"type\":\"object\"}", "{}", NULL},
    {"{\"type\":\"array\"}", "{}", "at \"\": is an object, and the type must be array"},
    {"{\"enum\":[\"ship\",\"hold\",1]}", "\"hold\"", NULL},
    {"{\"enum\":[\"ship\",\"hold\",1]}", "1.0", NULL},
    {"{\"const\":{\"a\":[1,-0.0]}}", "{\"a\":[1.0,0]}", NULL},
    {"{\"uniqueItems\":true}", "[[0.0,1],[-0.0,1.0]]",
	"at \"\": holds equal items, and \"uniqueItems\" is true"},
    {"{\"enum\":[\"ship\",\"hold\"]}", "\"no\"", "at \"\": is none of the 2 values of \"enum\""},
    {"{\"enum\":[\"ship\"]}", "\"no\"", "at \"\": is not the value of \"enum\""},
    {"{\"anyOf\":[{\"type\":\"string\"}]}", "2", "at \"\": does not fit the schema of \"anyOf\""},
    {"{\"const\":{\"a\":[1,2]}}", "{\"a\":[1,2]}", NULL},
    {"{\"const\":{\"a\":[1,2]}}", "{\"a\":[2,1]}", "at \"\": is not the value of \"const\""},
    {"{\"const\":null}", "null", NULL},
    {"{\"properties\":{\"a\":{\"type\":\"integer\"}}}", "{\"a\":1,\"b\":2}", NULL},
    {"{\"properties\":{\"a\":{\"type\":\"integer\"}}}", "\"no object\"", NULL},
    {"{\"properties\":{\"a/b\":{\"type\":\"integer\"}}}", "{\"a/b\":true}",
	"at \"/a~1b\": is true, and the type must be integer"},
    {"{\"required\":[\"a\",\"b\"]}", "{\"a\":1}", "at \"\": the member \"b\" is missing, which is \"required\""},
    {"{\"required\":[\"a\"]}", "{\"a\":null}", NULL},
    {"{\"additionalProperties\":false,\"properties\":{\"a\":true}}", "{\"a\":1}", NULL},
    {"{\"additionalProperties\":false,\"properties\":{\"a\":true}}", "{\"a\":1,\"z\":1}",
	"at \"/z\": nothing may stand here"},
    {"{\"additionalProperties\":{\"type\":\"string\"}}", "{\"x\":\"y\"}", NULL},
    {"{\"additionalProperties\":{\"type\":\"string\"}}", "{\"x\":1}",
	"at \"/x\": is an integer, and the type must be string"},
    {"{\"minProperties\":1}", "{}", "at \"\": has 0, and \"minProperties\" is 1"},
    {"{\"maxProperties\":1}", "{\"a\":1,\"b\":1}", "at \"\": has 2, and \"maxProperties\" is 1"},
    {"{\"items\":{\"type\":\"integer\"}}", "[1,2,3]", NULL},
    {"{\"items\":{\"type\":\"integer\"}}", "[1,2,\"x\"]", "at \"/2\": is a text, and the type must be integer"},
    {"{\"items\":{\"properties\":{\"n\":{\"minimum\":0}}}}", "[{\"n\":0},{\"n\":-1}]",
	"at \"/1/n\": is beyond the \"minimum\" of 0"},
    {"{\"minItems\":2}", "[1]", "at \"\": has 1, and \"minItems\" is 2"},
    {"{\"maxItems\":1}", "[1]", NULL},
    {"{\"maxItems\":1}", "[1,2]", "at \"\": has 2, and \"maxItems\" is 1"},
    {"{\"uniqueItems\":true}", "[1,2,\"1\",[1],{\"a\":1},{\"a\":2},true,null,0]", NULL},
    {"{\"uniqueItems\":false}", "[1,1]", NULL},
    {"{\"uniqueItems\":true}", "[1,2,1.0]", "at \"\": holds equal items, and \"uniqueItems\" is true"},
    {"{\"uniqueItems\":true}", "[{\"a\":1,\"b\":[2]},3,{\"b\":[2],\"a\":1}]",
	"at \"\": holds equal items, and \"uniqueItems\" is true"},
    {"{\"uniqueItems\":true}", "[[1,2],[2,1]]", NULL},
    {"{\"minLength\":2}", "\"\\u00e9\\u00e9\"", NULL},
    {"{\"minLength\":3}", "\"\\u00e9\\u00e9\"", "at \"\": has 2, and \"minLength\" is 3"},
    {"{\"maxLength\":1}", "\"\\ud83d\\ude00\"", NULL},
    {"{\"maxLength\":1}", "\"ab\"", "at \"\": has 2, and \"maxLength\" is 1"},
    {"{\"pattern\":\"^[a-z]+$\"}", "\"abc\"", NULL},
    {"{\"pattern\":\"^[a-z]+$\"}", "\"a1\"", "at \"\": does not match the \"pattern\" \"^[a-z]+$\""},
    {"{\"pattern\":\"b\"}", "\"abc\"", NULL},
    {"{\"pattern\":\"b\"}", "5", NULL},
    {"{\"pattern\":\"^\\\\d+.$\",\"maxLength\":3}", "\"12\\u00e9\"", NULL},
    {"{\"items\":{\"pattern\":\"x\"}}", "[\"x\",\"xx\",\"ax\"]", NULL},
    {"{\"minimum\":1}", "1", NULL},
    {"{\"minimum\":1}", "0.99", "at \"\": is beyond the \"minimum\" of 1"},
    {"{\"exclusiveMinimum\":1}", "1", "at \"\": is beyond the \"exclusiveMinimum\" of 1"},
    {"{\"exclusiveMinimum\":1}", "1.01", NULL},
    {"{\"maximum\":9007199254740993}", "9007199254740993", NULL},
    {"{\"maximum\":9007199254740992}", "9007199254740993",
	"at \"\": is beyond the \"maximum\" of 9007199254740992"},
    {"{\"maximum\":1.5}", "2", "at \"\": is beyond the \"maximum\" of 1.5"},
    {"{\"exclusiveMaximum\":2}", "2.0", "at \"\": is beyond the \"exclusiveMaximum\" of 2"},
    {"{\"exclusiveMaximum\":2}", "\"3\"", NULL},
    {"{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", "2", NULL},
    {"{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", "4", "at \"\": is beyond the \"maximum\" of 3"},
    {"{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":3}]}", "4", NULL},
    {"{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":3}]}", "2", "at \"\": fits none of the 2 schemas of \"anyOf\""},
    {"{\"oneOf\":[{\"minimum\":1},{\"maximum\":3}]}", "5", NULL},
    {"{\"oneOf\":[{\"minimum\":1},{\"maximum\":3}]}", "2",
	"at \"\": fits more than one of the 2 schemas of \"oneOf\""},
    {"{\"oneOf\":[{\"minimum\":4},{\"maximum\":3}]}", "3.5", "at \"\": fits none of the 2 schemas of \"oneOf\""},
    {"{\"not\":{\"type\":\"string\"}}", "1", NULL},
    {"{\"not\":{\"type\":\"string\"}}", "\"x\"", "at \"\": fits the schema of \"not\""},
    {"{\"not\":{\"not\":{\"type\":\"string\"}}}", "\"x\"", NULL},
    {"{\"items\":false}", "[]", NULL},
    {"{\"items\":false}", "[1]", "at \"/0\": nothing may stand here"},
    {SAME, "{\"v\":1,\"l\":{\"v\":2,\"l\":{\"v\":3}}}", NULL},
    {SAME, "{\"v\":1,\"l\":{\"v\":2,\"l\":{\"v\":\"3\"}}}",
	"at \"/l/l/v\": is a text, and the type must be integer"},
    {"{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#\"}}", "{\"a\":{\"b\":{}}}", NULL},
    {"{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#\"}}", "{\"a\":{\"b\":1}}",
	"at \"/a/b\": is an integer, and the type must be object"},
    {"{\"title\":\"t\",\"description\":\"d\",\"$comment\":\"c\",\"$schema\":\"s\",\"default\":5,"
     "\"examples\":[]}", "1", NULL},
};

static int
read_schema(const char *schema, const char *response, struct flow **out, struct err *e)
{
	struct buf b = {0};
	struct flow_source source = {"f", {0}, true};
	int r;

	buf_printf(&b, "{\"plan\":[{\"id\":\"a\",\"run\":\"x\",\"response\":\"%s\",\n\"schema\":%s}]}",
	    response, schema);
	source.text = buf_view(&b);
	r = flow_read(&source, out, NULL, e);
	buf_clear(&b);
	return r;
}

static void
ask(const char *schema, const char *kind, const char *value, const char *why)
{
	struct json *v = test_json(value);
	struct err e = {0};
	struct flow *f;
	int r;

	assert_works(read_schema(schema, kind, &f, &e), e);
	r = flow_schema_fits(f->ops[0].how, v, &e);
	if ((r == 0) != (why == NULL))
		print_message("# %s of %s: %s\n", schema, value, r == 0 ? "fits" : e.msg);
	if (why == NULL) {
		assert_int_equal(r, 0);
	} else {
		assert_fails(r, ERR_DOCUMENT, e);
		assert_string_equal(e.msg, why);
	}
	flow_free(f);
	json_unref(v);
}

static void
test_flow_schema__values(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		ask(values[i].schema, "json", values[i].value, values[i].why);
}

static void
test_flow_schema__lines_are_asked_one_by_one(void **state)
{
	(void)state;
	ask("{\"type\":\"object\"}", "jsonl", "[{},{}]", NULL);
	ask("{\"required\":[\"n\"]}", "jsonl", "[{\"n\":1},{}]",
	    "at \"/1\": the member \"n\" is missing, which is \"required\"");
}

/* ---- Schemas ---- */

#define WRONG(text, why) {text, "f:2:", "operation \"a\": schema: " why}

static const struct {
	const char *schema, *where, *why;
} wrong[] = {
    WRONG("{\"requierd\":[]}", "\"requierd\" is no keyword that responses are asked by"),
    WRONG("{\"properties\":{\"a\":{\"format\":\"date\"}}}", "\"format\" is no keyword"),
    WRONG("{\"type\":\"strnig\"}", "no value is of type \"strnig\""),
    WRONG("{\"type\":5}", "\"type\" must be the name of a type or a list of them, not an integer"),
    WRONG("{\"type\":[]}", "\"type\" is empty"),
    WRONG("{\"enum\":[]}", "\"enum\" is empty"),
    WRONG("{\"enum\":1}", "\"enum\" must be a list of values, not an integer"),
    WRONG("{\"required\":[1]}", "\"required\" must be a list of names, not an integer"),
    WRONG("{\"required\":true}", "\"required\" must be a list of names, not true"),
    WRONG("{\"properties\":[]}", "\"properties\" must be an object of schemas, not a list"),
    WRONG("{\"properties\":{\"a\":1}}", "\"properties\" must be a schema, not an integer"),
    WRONG("{\"minItems\":-1}", "\"minItems\" must not be negative"),
    WRONG("{\"minItems\":1.5}", "\"minItems\" must be an integer, not a number with a fraction"),
    WRONG("{\"minimum\":\"1\"}", "\"minimum\" must be a number, not a text"),
    WRONG("{\"exclusiveMinimum\":true}", "\"exclusiveMinimum\" must be a number, not true"),
    WRONG("{\"uniqueItems\":1}", "\"uniqueItems\" must be true or false, not an integer"),
    WRONG("{\"anyOf\":[]}", "\"anyOf\" must be a list of schemas with at least one, not a list"),
    WRONG("{\"not\":[]}", "\"not\" must be a schema, not a list"),
    WRONG("{\"title\":1}", "\"title\" must be a text, not an integer"),
    WRONG("{\"$ref\":\"http://x\"}", "\"$ref\" leads into the schema's own \"$defs\" only"),
    WRONG("{\"$ref\":\"#/$defs/a/b\"}", "\"$ref\" leads into"),
    WRONG("{\"$ref\":\"#/$defs/nme\",\"$defs\":{\"name\":true}}", "there is no #/$defs/nme"),
    WRONG("{\"items\":{\"$defs\":{}}}", "\"$defs\" stands only at the top"),
    WRONG("{\"$ref\":\"#\"}", "this \"$ref\" leads back to itself"),
    WRONG("{\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/b\"}]},\"b\":{\"not\":{\"$ref\":\"#/$defs/a\"}}}}",
	"this \"$ref\" leads back to itself"),
    {"{\"pattern\":\"[\"}", "f:2:", "operation \"a\": \"pattern\" is no extended regular expression"},
    {"{\"pattern\":\"\\\\p{L}\"}", "f:2:", "\"pattern\" is no extended regular expression: \\p is not known"},
    {"{\"pattern\":\"(a)\\\\1\"}", "f:2:", "\"pattern\" is no extended regular expression: \\1 is not known"},
    {"{\"pattern\":\"(a{200}){200}\"}", "f:2:", "operation \"a\": the pattern of \"pattern\" is too costly"},
};

static void
test_flow_schema__problems(void **state)
{
	struct flow *f = NULL;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		e = (struct err){0};
		assert_fails(read_schema(wrong[i].schema, "json", &f, &e), ERR_DOCUMENT, e);
		if (strstr(e.msg, wrong[i].why) == NULL || strncmp(e.msg, wrong[i].where, 4) != 0)
			print_message("# %s: %s\n", wrong[i].schema, e.msg);
		assert_non_null(strstr(e.msg, wrong[i].why));
		assert_int_equal(strncmp(e.msg, wrong[i].where, strlen(wrong[i].where)), 0);
	}
}

static void
test_flow_schema__nearest(void **state)
{
	struct flow *f = NULL;
	struct err e = {0};

	(void)state;
	assert_fails(read_schema("{\"requierd\":[]}", "json", &f, &e), ERR_DOCUMENT, e);
	assert_string_equal(e.hint, "did you mean \"required\"?");
	assert_fails(read_schema("{\"$ref\":\"#/$defs/nme\",\"$defs\":{\"name\":true}}", "json", &f, &e),
	    ERR_DOCUMENT, e);
	assert_string_equal(e.hint, "did you mean #/$defs/name?");
}

/* ---- Bounds ---- */

static void
repeat(struct buf *b, const char *text, size_t n)
{
	for (; n > 0; n--)
		buf_puts(b, text);
}

static void
test_flow_schema__too_deep(void **state)
{
	struct buf b = {0};
	struct flow *f = NULL;
	struct err e = {0};

	(void)state;
	repeat(&b, "{\"not\":", 33);
	buf_puts(&b, "{}");
	repeat(&b, "}", 33);
	assert_fails(read_schema(buf_text(&b), "json", &f, &e), ERR_DOCUMENT, e);
	assert_non_null(strstr(e.msg, "more than 32 schemas in one another"));
	buf_clear(&b);
}

static void
test_flow_schema__a_chain_of_references(void **state)
{
	struct buf b = {0};
	struct flow *f = NULL;
	struct err e = {0};
	int i;

	(void)state;
	buf_puts(&b, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
	for (i = 0; i < 40; i++)
		buf_printf(&b, "\"d%d\":{\"$ref\":\"#/$defs/d%d\"},", i, i + 1);
	buf_puts(&b, "\"d40\":true}}");
	assert_fails(read_schema(buf_text(&b), "json", &f, &e), ERR_DOCUMENT, e);
	assert_non_null(strstr(e.msg, "more than 32 references"));
	buf_clear(&b);
}

/* Each level asks the next one twice: without a bound this would take 2^500 questions. */
static void
test_flow_schema__questions_are_bounded(void **state)
{
	static const char schema[] = "{\"$defs\":{\"n\":{\"oneOf\":[{\"items\":{\"$ref\":\"#/$defs/n\"}},"
				     "{\"items\":{\"$ref\":\"#/$defs/n\"}}]}},\"$ref\":\"#/$defs/n\"}";
	struct buf b = {0};
	struct flow *f = NULL;
	struct err e = {0};
	struct json *v;

	(void)state;
	repeat(&b, "[", 500);
	repeat(&b, "]", 500);
	v = test_json(buf_text(&b));
	assert_works(read_schema(schema, "json", &f, &e), e);
	assert_fails(flow_schema_fits(f->ops[0].how, v, &e), ERR_LIMIT, e);
	flow_free(f);
	json_unref(v);
	buf_clear(&b);
}

static void
test_flow_schema__steps_of_patterns_are_bounded(void **state)
{
	struct buf b = {0};
	struct flow *f = NULL;
	struct err e = {0};
	struct json *v;

	(void)state;
	buf_puts(&b, "[\"aa\",\"");
	repeat(&b, "a", 60000);
	buf_puts(&b, "\"]");
	v = test_json(buf_text(&b));
	assert_works(read_schema("{\"items\":{\"pattern\":\"^([a-z]{1,90} ?){1,100}$\"}}", "json", &f, &e), e);
	assert_fails(flow_schema_fits(f->ops[0].how, v, &e), ERR_LIMIT, e);
	assert_string_equal(e.msg, "at \"/1\": \"pattern\": the pattern takes too many steps");
	flow_free(f);
	json_unref(v);
	buf_clear(&b);
}

static void
test_flow_schema__many_items(void **state)
{
	struct buf b = {0};
	struct flow *f = NULL;
	struct err e = {0};
	struct json *v;
	int i;

	(void)state;
	buf_putc(&b, '[');
	for (i = 0; i < 100000; i++)
		buf_printf(&b, "{\"id\":%d},", i);
	buf_puts(&b, "{\"id\":5}]");
	v = test_json(buf_text(&b));
	assert_works(read_schema("{\"uniqueItems\":true}", "json", &f, &e), e);
	assert_fails(flow_schema_fits(f->ops[0].how, v, &e), ERR_DOCUMENT, e);
	flow_free(f);
	json_unref(v);
	buf_clear(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow_schema__values),
	    cmocka_unit_test(test_flow_schema__lines_are_asked_one_by_one),
	    cmocka_unit_test(test_flow_schema__problems),
	    cmocka_unit_test(test_flow_schema__steps_of_patterns_are_bounded),
	    cmocka_unit_test(test_flow_schema__nearest),
	    cmocka_unit_test(test_flow_schema__too_deep),
	    cmocka_unit_test(test_flow_schema__a_chain_of_references),
	    cmocka_unit_test(test_flow_schema__questions_are_bounded),
	    cmocka_unit_test(test_flow_schema__many_items),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
