/* What a worker asks a flow while it runs: edges, retries, templates. */
#include "test.h"

#include "flowsup/flow.h"

/* ---- Edges ---- */

static const struct {
	enum flow_on on;
	enum flow_outcome outcome;
	bool holds;
} outcomes[] = {
    {FLOW_ON_SUCCESS, FLOW_COMPLETED, true},
    {FLOW_ON_SUCCESS, FLOW_FAILED, false},
    {FLOW_ON_SUCCESS, FLOW_SKIPPED, false},
    {FLOW_ON_SUCCESS, FLOW_CANCELLED, false},
    {FLOW_ON_FAILURE, FLOW_COMPLETED, false},
    {FLOW_ON_FAILURE, FLOW_FAILED, true},
    {FLOW_ON_FAILURE, FLOW_SKIPPED, false},
    {FLOW_ON_ALWAYS, FLOW_COMPLETED, true},
    {FLOW_ON_ALWAYS, FLOW_FAILED, true},
    {FLOW_ON_ALWAYS, FLOW_SKIPPED, true},
};

static void
test_flow_edge__outcomes(void **state)
{
	struct flow_edge edge = {0};
	struct err e = {0};
	bool holds;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		edge.on = (uint8_t)outcomes[i].on;
		assert_works(flow_edge_holds(&edge, outcomes[i].outcome, NULL, &holds, &e), e);
		assert_int_equal(holds, outcomes[i].holds);
	}
}

static const struct {
	enum flow_when when;
	const char *pointer, *value, *response;
	bool holds;
} conditions[] = {
    {FLOW_WHEN_EQUALS, "/verdict", "\"ship\"", "{\"verdict\":\"ship\"}", true},
    {FLOW_WHEN_EQUALS, "/verdict", "\"ship\"", "{\"verdict\":\"hold\"}", false},
    {FLOW_WHEN_EQUALS, "/verdict", "\"ship\"", "{}", false},
    {FLOW_WHEN_EQUALS, "/verdict", "\"ship\"", NULL, false},
    {FLOW_WHEN_EQUALS, "", "\"x\"", "\"x\"", true},
    {FLOW_WHEN_EQUALS, "/n", "1", "{\"n\":1}", true},
    {FLOW_WHEN_EQUALS, "/n", "1", "{\"n\":1.0}", true},
    {FLOW_WHEN_EQUALS, "", "{\"n\":[1.0]}", "{\"n\":[1]}", true},
    {FLOW_WHEN_EQUALS, "/n", "1", "{\"n\":1.5}", false},
    {FLOW_WHEN_EQUALS, "/n", "null", "{\"n\":null}", true},
    {FLOW_WHEN_EXISTS, "/a", "true", "{\"a\":null}", true},
    {FLOW_WHEN_EXISTS, "/a", "true", "{}", false},
    {FLOW_WHEN_EXISTS, "/a", "false", "{}", true},
    {FLOW_WHEN_EXISTS, "/a", "false", NULL, true},
    {FLOW_WHEN_EXISTS, "/a", "true", NULL, false},
    {FLOW_WHEN_MATCHES, "", "\"^ok( |$)\"", "\"ok then\"", true},
    {FLOW_WHEN_MATCHES, "", "\"^ok( |$)\"", "\"okay\"", false},
    {FLOW_WHEN_MATCHES, "/n", "\"^[0-9]+$\"", "{\"n\":42}", true},
    {FLOW_WHEN_MATCHES, "/x", "\"a\"", "{\"n\":42}", false},
};

static void
test_flow_edge__conditions(void **state)
{
	struct json *value, *response;
	struct flow_edge edge;
	struct err e = {0};
	bool holds;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
		value = test_json(conditions[i].value);
		response = test_json(conditions[i].response);
		edge = (struct flow_edge){0, FLOW_ON_SUCCESS, (uint8_t)conditions[i].when,
		    conditions[i].pointer, value};
		assert_works(flow_edge_holds(&edge, FLOW_COMPLETED, response, &holds, &e), e);
		if (holds != conditions[i].holds)
			print_message("# condition %zu\n", i);
		assert_int_equal(holds, conditions[i].holds);
		assert_works(flow_edge_holds(&edge, FLOW_FAILED, response, &holds, &e), e);
		assert_false(holds);
		json_unref(value);
		json_unref(response);
	}
}

/* ---- Retries ---- */

static const struct {
	const char *on, *failure;
	int code;
	unsigned attempts;
	bool applies;
} retries[] = {
    {NULL, "exit", 1, 1, true},
    {NULL, "exit", 1, 2, true},
    {NULL, "exit", 1, 3, false},
    {NULL, "timeout", 0, 1, true},
    {NULL, "crash", 0, 1, false},
    {"[\"crash\"]", "crash", 0, 1, true},
    {"[75]", "exit", 75, 1, true},
    {"[75]", "exit", 1, 1, false},
    {"[9]", "signal", 9, 1, false},
    {"[\"signal\"]", "signal", 9, 1, true},
    {"[\"exit\"]", "exit", 3, 2, true},
};

static void
test_flow_retry__applies(void **state)
{
	struct flow_retry r = {.attempts = 3};
	struct json *on;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(retries) / sizeof(retries[0]); i++) {
		on = test_json(retries[i].on);
		r.on = on;
		assert_int_equal(flow_retry_applies(&r, retries[i].failure, retries[i].code,
				     retries[i].attempts), retries[i].applies);
		json_unref(on);
	}
}

static void
test_flow_retry__delay(void **state)
{
	struct flow_retry r = {5, 1000, 5000, 2, false, NULL};

	(void)state;
	assert_int_equal(flow_retry_delay_ns(&r, 1, 7), 1000);
	assert_int_equal(flow_retry_delay_ns(&r, 2, 7), 2000);
	assert_int_equal(flow_retry_delay_ns(&r, 3, 7), 4000);
	assert_int_equal(flow_retry_delay_ns(&r, 4, 7), 5000);
	assert_int_equal(flow_retry_delay_ns(&r, UINT32_MAX, 7), 5000);
	r.jitter = true;
	assert_int_equal(flow_retry_delay_ns(&r, 3, 0), 2000);
	assert_in_range(flow_retry_delay_ns(&r, 3, UINT64_MAX), 3999, 4000);
	assert_int_equal(flow_retry_delay_ns(&r, 3, UINT64_C(1) << 63), 3000);
	r.factor = 1;
	assert_in_range(flow_retry_delay_ns(&r, UINT32_MAX, UINT64_MAX), 999, 1000);
}

/* ---- Templates ---- */

static int
resolve(void *arg, enum flow_reference ref, struct slice name, struct buf *to, struct err *e)
{
	static const char *const words[] = {"response", "artifacts", "prompt", "arg", "item"};

	if (arg != NULL)
		return err_set(e, ERR_LIMIT, "too large");
	buf_printf(to, "<%s %.*s>", words[ref], (int)name.len, name.data);
	return 0;
}

static const struct {
	const char *text, *rendered; /* NULL: refused */
} templates[] = {
    {"plain", "plain"},
    {"", ""},
    {"{{prompt}}", "<prompt >"},
    {"a {{ ops.x.y-1.response }} b", "a <response x.y-1> b"},
    {"{{artifacts.a}}{{args.k}}{{item}}", "<artifacts a><arg k><item >"},
    {"\\{{prompt}} {{prompt}}", "{{prompt}} <prompt >"},
    {"docker -f {{.State}} {{ .X }}", "docker -f {{.State}} {{ .X }}"},
    {"{{", "{{"},
    {"{ {prompt}}", "{ {prompt}}"},
    {"{{{prompt}}", "{{{prompt}}"},
    {"{{ \tprompt\t}}", "<prompt >"},
    {"a {{  }} b {{ 1 }}", "a {{  }} b {{ 1 }}"},
    {"a \\{{ b", "a {{ b"},
    {"a {{ b", NULL},
    {"{{ prompts }}", NULL},
    {"{{prompt", NULL},
    {"{{prompts}}", NULL},
    {"{{ops.response}}", NULL},
    {"{{ops..response}}", NULL},
    {"{{args.}}", NULL},
    {"{{name}}", NULL},
};

static void
test_flow_template__render(void **state)
{
	struct buf b = {0};
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(templates) / sizeof(templates[0]); i++) {
		buf_reset(&b);
		if (templates[i].rendered == NULL) {
			print_message("# %s\n", templates[i].text);
			assert_fails(flow_render(templates[i].text, resolve, NULL, &b, &e), ERR_DOCUMENT,
			    e);
			assert_true(e.hint[0] != '\0');
			continue;
		}
		assert_works(flow_render(templates[i].text, resolve, NULL, &b, &e), e);
		assert_string_equal(buf_text(&b), templates[i].rendered);
	}
	assert_fails(flow_render("{{prompt}}", resolve, &b, &b, &e), ERR_LIMIT, e);
	buf_clear(&b);
}

static void
test_flow_template__has(void **state)
{
	(void)state;
	assert_true(flow_has_template("x {{item}}"));
	assert_true(flow_has_template("x \\{{item}}"));
	assert_false(flow_has_template("x {{.item}}"));
	assert_false(flow_has_template("{{nothing}}"));
	assert_false(flow_has_template(""));
}

static void
check_home(const char *path, const char *wanted)
{
	struct buf b = {0};

	assert_int_equal(flow_home_path(path, "/home/u", &b, NULL), 0);
	assert_string_equal(buf_text(&b), wanted);
	buf_clear(&b);
}

static void
test_flow_template__home(void **state)
{
	(void)state;
	check_home("~/src", "/home/u/src");
	check_home("~", "/home/u");
	check_home("~other/src", "~other/src");
	check_home("/a/~/b", "/a/~/b");
	check_home("", "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow_edge__outcomes),
	    cmocka_unit_test(test_flow_edge__conditions),
	    cmocka_unit_test(test_flow_retry__applies),
	    cmocka_unit_test(test_flow_retry__delay),
	    cmocka_unit_test(test_flow_template__render),
	    cmocka_unit_test(test_flow_template__has),
	    cmocka_unit_test(test_flow_template__home),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
