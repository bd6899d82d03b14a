/* Documents with several problems, with very many, or that are too large or nested too deeply. */
#include "test.h"

#include "flowsup/flow.h"

/* ---- How many are told ---- */

/* Without a place to put all problems the first one is told all the same. */
static void
test_flow_problems__without_diagnostics(void **state)
{
	struct flow_source source = {"f", slice_of("name: x\n"), false};
	struct flow *f = NULL;
	struct err e = {0};

	(void)state;
	assert_fails(flow_read(&source, &f, NULL, &e), ERR_DOCUMENT, e);
	assert_string_equal(e.msg, "f:1:1: a flow needs a \"plan\"");
	assert_int_equal(flow_read(&source, &f, NULL, NULL), -1);
}

static void
test_flow_problems__all_problems_at_once(void **state)
{
	static const char text[] = "nam: x\nconcurrency: 0\nplan:\n  - {id: a, run: 5}\n"
				   "  - {id: b, run: x, neds: []}\n  - {id: c, run: x, needs: [d, a]}\n";
	static const unsigned lines[] = {1, 2, 4, 5, 6};
	struct flow_source source = {"f", slice_of(text), false};
	struct flow_diagnostics d = {0};
	struct flow *f = NULL;
	struct err e = {0};
	size_t i;

	(void)state;
	assert_fails(flow_read(&source, &f, &d, &e), ERR_DOCUMENT, e);
	assert_int_equal(d.count, sizeof(lines) / sizeof(lines[0]));
	for (i = 0; i < d.count; i++)
		assert_int_equal(d.items[i].where.line, lines[i]);
	flow_diagnostics_clear(&d);
}

static void
test_flow_problems__problems_are_bounded(void **state)
{
	struct flow_diagnostics d = {0};
	struct buf text = {0};
	struct flow_source source = {.name = "f"};
	struct flow *f = NULL;
	struct err e = {0};
	int i;

	(void)state;
	for (i = 0; i < FLOW_MAX_DIAGNOSTICS + 7; i++)
		buf_printf(&text, "key%d: x\n", i);
	source.text = buf_view(&text);
	assert_fails(flow_read(&source, &f, &d, &e), ERR_DOCUMENT, e);
	assert_int_equal(d.count, FLOW_MAX_DIAGNOSTICS);
	assert_int_equal(d.suppressed, 7);
	flow_diagnostics_clear(&d);
	buf_clear(&text);
}

/* ---- Sizes and nesting ---- */

static void
refuse_text(struct buf *text, bool json, enum err_code code, const char *message)
{
	struct flow_source source = {"f", buf_view(text), json};
	struct flow *f = NULL;
	struct err e = {0};

	assert_false(text->failed);
	assert_fails(flow_read(&source, &f, NULL, &e), code, e);
	assert_non_null(strstr(e.msg, message));
	buf_clear(text);
}

static void
test_flow_problems__nested_too_deeply(void **state)
{
	struct buf text = {0};
	int i;

	(void)state;
	for (i = 0; i < 100000; i++)
		buf_putc(&text, '[');
	refuse_text(&text, false, ERR_LIMIT, "nested more than 512 deep");
	for (i = 0; i < 600; i++)
		buf_puts(&text, "- ");
	refuse_text(&text, false, ERR_LIMIT, "f:1:1025: nested more than 512 deep");
}

static void
test_flow_problems__too_large(void **state)
{
	struct buf text = {0};

	(void)state;
	while (text.len <= JSON_MAX_DOCUMENT)
		buf_puts(&text, "# a comment that is repeated until the document is too large\n");
	refuse_text(&text, false, ERR_LIMIT, "larger than 16 MiB");
}

static void
test_flow_problems__aliases_grow_too_large(void **state)
{
	struct buf text = {0};
	int i, k;

	(void)state;
	buf_puts(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (i = 1; i < 12; i++) {
		buf_printf(&text, "a%d: &a%d [", i, i);
		for (k = 0; k < 10; k++)
			buf_printf(&text, "*a%d, ", i - 1);
		buf_puts(&text, "]\n");
	}
	refuse_text(&text, false, ERR_LIMIT, "the document grows too large by its aliases");
}

static void
test_flow_problems__aliases_nest_too_deeply(void **state)
{
	struct buf text = {0};
	int i;

	(void)state;
	buf_puts(&text, "a0: &a0 [x]\n");
	for (i = 1; i < 600; i++)
		buf_printf(&text, "a%d: &a%d [*a%d]\n", i, i, i - 1);
	refuse_text(&text, false, ERR_LIMIT, "nested more than 512 deep");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow_problems__without_diagnostics),
	    cmocka_unit_test(test_flow_problems__all_problems_at_once),
	    cmocka_unit_test(test_flow_problems__problems_are_bounded),
	    cmocka_unit_test(test_flow_problems__nested_too_deeply),
	    cmocka_unit_test(test_flow_problems__too_large),
	    cmocka_unit_test(test_flow_problems__aliases_grow_too_large),
	    cmocka_unit_test(test_flow_problems__aliases_nest_too_deeply),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
