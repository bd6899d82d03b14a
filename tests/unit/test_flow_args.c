/* Arguments that a document declares, and the values a command line gives. */
#include "test.h"

#include "flowsup/flow.h"

static const char text[] =
    "{\"args\":{\"since\":{\"default\":\"2d\",\"help\":\"how far back\"},\"n\":{\"type\":\"integer\"},"
    "\"rate\":{\"type\":\"number\",\"default\":1.5},\"deep\":{\"type\":\"boolean\",\"default\":false},"
    "\"note\":{\"required\":false}},"
    "\"plan\":[{\"id\":\"a\",\"exec\":[\"echo\",\"{{args.since}}\"]}]}";

static struct flow *
read_flow(const char *document)
{
	struct flow_source source = {"f", slice_of(document), true};
	struct flow *f = NULL;
	struct err e = {0};

	assert_works(flow_read(&source, &f, NULL, &e), e);
	return f;
}

static const struct {
	const char *given;
	const char *values; /* NULL: refused */
	const char *says, *hint;
} cases[] = {
    {"{\"n\":\"3\"}", "{\"since\":\"2d\",\"n\":3,\"rate\":1.5,\"deep\":false,\"note\":\"\"}", NULL, NULL},
    {"{\"n\":\"-3\",\"since\":\"\",\"rate\":\"2\",\"deep\":\"true\",\"note\":\"5\"}",
	"{\"since\":\"\",\"n\":-3,\"rate\":2,\"deep\":true,\"note\":\"5\"}", NULL, NULL},
    {NULL, NULL, "the argument n (integer) is missing", "--arg n=..."},
    {"{}", NULL, "the argument n (integer) is missing", "--arg n=..."},
    {"{\"n\":\"3.5\"}", NULL, "argument n: \"3.5\" is no integer", ""},
    {"{\"n\":\"three\"}", NULL, "argument n: \"three\" is no integer", ""},
    {"{\"n\":\"\"}", NULL, "argument n: \"\" is no integer", ""},
    {"{\"n\":\"1\",\"rate\":\"fast\"}", NULL, "argument rate: \"fast\" is no number", ""},
    {"{\"n\":\"1\",\"deep\":\"yes\"}", NULL, "argument deep: \"yes\" is no boolean",
	"--arg deep=true or --arg deep=false"},
    {"{\"n\":\"1\",\"sinse\":\"1\"}", NULL, "the flow has no argument \"sinse\"", "did you mean --arg since=...?"},
};

static void
test_flow_args__values(void **state)
{
	struct flow *f = read_flow(text);
	struct json *given, *values;
	struct buf b = {0};
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		e = (struct err){0};
		given = test_json(cases[i].given);
		if (cases[i].values == NULL) {
			assert_fails(flow_arguments(f, given, &values, NULL, &e), ERR_USAGE, e);
			assert_string_equal(e.msg, cases[i].says);
			assert_string_equal(e.hint, cases[i].hint);
		} else {
			assert_works(flow_arguments(f, given, &values, NULL, &e), e);
			buf_reset(&b);
			json_write(&b, values);
			assert_string_equal(buf_text(&b), cases[i].values);
			json_unref(values);
		}
		json_unref(given);
	}
	buf_clear(&b);
	flow_free(f);
}

/* All that is wrong at once, in the order in which it is looked at. */
static void
test_flow_args__all_problems(void **state)
{
	static const char *const says[] = {"the flow has no argument \"sinse\"", "the argument n (integer) is missing",
	    "argument rate: \"fast\" is no number"};
	struct flow *f = read_flow(text);
	struct json *given = test_json("{\"rate\":\"fast\",\"sinse\":\"1\"}"), *values;
	struct flow_diagnostics d = {0};
	struct err e = {0};
	size_t i;

	(void)state;
	assert_fails(flow_arguments(f, given, &values, &d, &e), ERR_USAGE, e);
	assert_int_equal(d.count, sizeof(says) / sizeof(says[0]));
	for (i = 0; i < d.count; i++)
		assert_string_equal(d.items[i].message, says[i]);
	assert_string_equal(e.msg, says[0]);
	assert_string_equal(d.items[1].hint, "--arg n=...");
	flow_diagnostics_clear(&d);
	json_unref(given);
	flow_free(f);
}

/* What was given is in the document and in the checkpoint, and comes back from both. */
static void
test_flow_args__are_kept(void **state)
{
	static const char *const ids[] = {"00000000000000000000000000000000"};
	struct flow_overrides o = {.max_ops = -1, .prompt = "now", .playbook = "book"};
	struct flow *f = read_flow(text), *g = NULL;
	struct json *given = test_json("{\"n\":\"7\"}"), *values = NULL, *kept;
	struct err e = {0};
	int64_t n = 0;

	(void)state;
	assert_null(f->arguments);
	assert_works(flow_arguments(f, given, &values, NULL, &e), e);
	o.arguments = values;
	assert_works(flow_override(f, &o, &f, &e), e);
	assert_string_equal(f->playbook, "book");
	assert_string_equal(f->prompt, "now");
	kept = json_set(json_set(json_object(), "plan", flow_plan(f, ids)), "config", flow_config(f));
	assert_works(flow_from_state(kept, &g, &e), e);
	assert_true(json_int64(json_get(g->arguments, "n"), &n) && n == 7);
	assert_string_equal(g->playbook, "book");
	flow_free(g);
	assert_works(flow_from_document(f->document, &g, &e), e);
	flow_drop_document(g);
	assert_true(json_int64(json_get(g->arguments, "n"), &n) && n == 7);
	flow_free(g);
	flow_free(f);
	json_unref(kept);
	json_unref(values);
	json_unref(given);
}

static const struct {
	const char *document, *says;
} wrong[] = {
    {"{\"arguments\":{},\"plan\":[{\"id\":\"a\",\"run\":\"x\"}]}", "a flow has no key \"arguments\""},
    {"{\"playbook\":\"x\",\"plan\":[{\"id\":\"a\",\"run\":\"x\"}]}", "a flow has no key \"playbook\""},
    {"{\"args\":{\"a\":{\"required\":1}},\"plan\":[{\"id\":\"a\",\"run\":\"x\"}]}",
	"\"required\" must be true or false"},
    {"{\"args\":{\"a\":{\"required\":true,\"default\":\"x\"}},\"plan\":[{\"id\":\"a\",\"run\":\"x\"}]}",
	"an argument with a default is never missing"},
};

static void
test_flow_args__problems(void **state)
{
	struct flow *f = NULL;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct flow_source source = {"f", slice_of(wrong[i].document), true};

		e = (struct err){0};
		assert_fails(flow_read(&source, &f, NULL, &e), ERR_DOCUMENT, e);
		assert_non_null(strstr(e.msg, wrong[i].says));
	}
}

static void
test_flow_args__order(void **state)
{
	struct flow *f = read_flow(text);
	struct flow_arg arg;

	(void)state;
	assert_true(flow_arg_at(f, 1, &arg));
	assert_string_equal(arg.name, "n");
	assert_true(arg.required);
	assert_true(flow_arg_at(f, 0, &arg));
	assert_string_equal(arg.help, "how far back");
	assert_false(arg.required);
	assert_false(flow_arg_at(f, 5, &arg));
	flow_free(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow_args__values),
	    cmocka_unit_test(test_flow_args__all_problems),
    cmocka_unit_test(test_flow_args__are_kept),
	    cmocka_unit_test(test_flow_args__problems),
	    cmocka_unit_test(test_flow_args__order),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
