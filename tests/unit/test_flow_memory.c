/* Every allocation fails once: a clean error, and nothing is lost. */
#include "test.h"

#include "fault_alloc.h"
#include "flowsup/flow.h"

static const char text[] =
    "name: n\nenv: {A: b}\ndefaults: {retry: {attempts: 2}}\nroles: {r: {env: {X: y}, artifacts: [o]}}\n"
    "plan:\n"
    "  - {id: a, run: x, foreach: [1, two, [3]]}\n"
    "  - {id: b, exec: [ls, '{{ops.d.response}}'], assignee: r, artifacts: [p], env: {A: c},\n"
    "     needs: [a, {op: c, on: always, when: {pointer: /x, matches: y}}]}\n"
    "  - {id: c, run: &r x, needs: [d]}\n"
    "  - {id: d, run: *r}\n";
static const char wrong[] =
    "plann: 1\nplan:\n  - {id: a, run: 5}\n  - {id: b, run: x, needs: [a, zz, c]}\n"
    "  - {id: c, run: x, needs: [b], timeout: soon}\n";

typedef int work(struct err *e);

static int
read_it(const char *document, bool json, struct flow **out, struct err *e)
{
	struct flow_source source = {"f", slice_of(document), json};

	return flow_read(&source, out, NULL, e);
}

static int
read_good(struct err *e)
{
	struct flow *f;
	int r = read_it(text, false, &f, e);

	if (r == 0)
		flow_free(f);
	return r;
}

static int
go_round(struct err *e)
{
	static const char *const ids[] = {"0", "1", "2", "3", "4", "5"};
	struct flow_overrides o = {.name = "new", .max_ops = 9};
	struct flow *f = NULL, *g = NULL;
	struct json *s;
	struct buf b = {0};
	int r = read_it(text, false, &f, e);

	if (r < 0 || flow_override(f, &o, &f, e) < 0)
		return -1;
	s = json_set(json_set(json_object(), "plan", flow_plan(f, ids)), "config", flow_config(f));
	flow_graph(f, FLOW_GRAPH_TEXT, NULL, NULL, &b);
	flow_graph(f, FLOW_GRAPH_DOT, NULL, NULL, &b);
	flow_graph(f, FLOW_GRAPH_MERMAID, NULL, NULL, &b);
	flow_graph(f, FLOW_GRAPH_SVG, NULL, NULL, &b);
	r = s == NULL ? err_nomem(e) : buf_ok(&b, e);
	if (r == 0)
		r = flow_from_state(s, &g, e);
	if (r == 0)
		flow_drop_document(g);
	json_unref(s);
	buf_clear(&b);
	flow_free(f);
	flow_free(g);
	return r;
}

static int
one_liner(struct err *e)
{
	struct slice items[] = {slice_of("a"), slice_of("\xff")};
	struct flow_each each = {"x", items, 2, "n"};
	struct flow *f = NULL;
	int r = flow_from_each(&each, &f, e);

	if (r == 0)
		flow_free(f);
	return r;
}

static void
fail_each(work *w)
{
	unsigned long n;
	struct err e;
	int r;

	for (n = 1;; n++) {
		e = (struct err){0};
		fault_alloc_arm(n, false);
		r = w(&e);
		if (!fault_alloc_disarm())
			break;
		/* A place that can do without (a smaller block) may go on. */
		if (r < 0) {
			assert_int_equal(e.code, ERR_NOMEM);
		}
	}
	assert_int_equal(r, 0);
	assert_true(n > 10);
}

static void
test_flow_memory__read(void **state)
{
	(void)state;
	fail_each(read_good);
}

static void
test_flow_memory__round(void **state)
{
	(void)state;
	fail_each(go_round);
}

static void
test_flow_memory__one_liner(void **state)
{
	(void)state;
	fail_each(one_liner);
}

/* With problems to tell the answer is one of them or the missing memory, never a flow. */
static void
test_flow_memory__problems(void **state)
{
	unsigned long n;
	struct flow *f = NULL;
	struct err e;

	(void)state;
	for (n = 1;; n++) {
		e = (struct err){0};
		fault_alloc_arm(n, false);
		assert_int_equal(read_it(wrong, false, &f, &e), -1);
		if (!fault_alloc_disarm())
			break;
		assert_true(e.code == ERR_NOMEM || e.code == ERR_DOCUMENT);
	}
	assert_int_equal(e.code, ERR_DOCUMENT);
}

static const char with_schema[] =
    "{\"plan\":[{\"id\":\"a\",\"run\":\"x\",\"response\":\"json\",\"schema\":{\"items\":{\"anyOf\":["
    "{\"type\":[\"null\",\"object\"]},{\"type\":\"string\",\"pattern\":\"^x\"}]},\"uniqueItems\":true,\"$defs\":{\"q\":true}}}]}";

static int
ask_schema(struct err *e)
{
	struct flow *f = NULL;
	struct json *v = NULL;
	int r = read_it(with_schema, true, &f, e);

	if (r == 0)
		r = json_parse(slice_of("[null,\"xy\",{\"a\":1},\"xyz\",7]"), NULL, &v, NULL, e);
	if (r == 0) {
		r = flow_schema_fits(f->ops[0].how, v, e);
		r = r == -1 && e->code == ERR_DOCUMENT ? 0 : -1;
	}
	json_unref(v);
	flow_free(f);
	return r;
}

static void
test_flow_memory__schema(void **state)
{
	(void)state;
	fail_each(ask_schema);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow_memory__read),
	    cmocka_unit_test(test_flow_memory__round),
	    cmocka_unit_test(test_flow_memory__one_liner),
	    cmocka_unit_test(test_flow_memory__problems),
	    cmocka_unit_test(test_flow_memory__schema),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
