/* Order, successors, pictures, and the cost of large graphs. */
#include "test.h"

#include "flowsup/flow.h"
#include "shared/flow/layers.h"

static struct flow *
read_yaml(const char *text)
{
	struct flow_source source = {"f", slice_of(text), false};
	struct flow *f = NULL;
	struct err e = {0};

	assert_works(flow_read(&source, &f, NULL, &e), e);
	return f;
}

static const char diamond[] = "plan:\n"
			      "  - {id: last, run: x, needs: [right, left]}\n"
			      "  - {id: left, run: x, needs: [top]}\n"
			      "  - {id: right, run: x, needs: [{op: top, on: always}]}\n"
			      "  - {id: top, run: x}\n";

static void
test_flow_graph__order_and_successors(void **state)
{
	static const uint32_t order[] = {3, 1, 2, 0};
	struct flow *f = read_yaml(diamond);

	(void)state;
	assert_memory_equal(f->order, order, sizeof(order));
	assert_int_equal(f->ops[0].nneeds, 2);
	assert_int_equal(f->ops[0].needs[0].op, 1);
	assert_int_equal(f->ops[0].needs[1].op, 2);
	assert_int_equal(f->ops[3].nsuccessors, 2);
	assert_int_equal(f->ops[3].successors[0], 1);
	assert_int_equal(f->ops[3].successors[1], 2);
	assert_int_equal(f->ops[0].nsuccessors, 0);
	assert_int_equal(f->ops[2].needs[0].on, FLOW_ON_ALWAYS);
	flow_free(f);
}

static void
test_flow_graph__a_foreach_is_needed_as_a_whole(void **state)
{
	struct flow *f = read_yaml("plan:\n"
				   "  - {id: end, run: x, needs: [part, part2.1]}\n"
				   "  - {id: part, run: x, foreach: [1, 2, 3]}\n"
				   "  - {id: part2, run: x, needs: [part], foreach: [a, b]}\n"
				   "  - {id: none, run: x, foreach: []}\n"
				   "  - {id: free, run: x, needs: [none]}\n");

	(void)state;
	assert_int_equal(f->nops, 7);
	assert_int_equal(f->ops[0].nneeds, 4);
	assert_int_equal(f->ops[4].nneeds, 3);
	assert_ptr_equal(f->ops[4].needs, f->ops[5].needs);
	assert_string_equal(f->ops[5].item, "b");
	assert_int_equal(f->ops[6].nneeds, 0);
	flow_free(f);
}

/* ---- Pictures ---- */

static const char pictured[] =
    "name: a \"name\"\nplan:\n"
    "  - {id: part, run: x, foreach: [1, 2, 3]}\n"
    "  - {id: ship, run: x, gate: approve, needs: [part, {op: look, when: {pointer: /ok, equals: true}}]}\n"
    "  - {id: look, run: x}\n"
    "  - {id: sorry, run: x, needs: [{op: ship, on: failure}]}\n";

static const char *
label(void *arg, size_t op)
{
	static const char *const words[] = {"completed", "completed", "running", "pending", "running",
	    NULL};

	(void)arg;
	return words[op];
}

static void
check_picture(enum flow_graph_format format, flow_graph_label *labels, const char *wanted)
{
	struct flow *f = read_yaml(pictured);
	struct buf b = {0};

	flow_graph(f, format, labels, NULL, &b);
	assert_string_equal(buf_text(&b), wanted);
	buf_clear(&b);
	flow_free(f);
}

static void
test_flow_graph__text(void **state)
{
	(void)state;
	check_picture(FLOW_GRAPH_TEXT, NULL,
	    "  1 ┬─ part.* (3)\n"
	    "    └─ look\n"
	    "  2 ── ship        ← part.* (3), look when /ok = true  [needs approval]\n"
	    "  3 ── sorry       ← ship on failure\n");
	check_picture(FLOW_GRAPH_PLAIN, NULL,
	    "  1 part.* (3)\n"
	    "    look\n"
	    "  2 ship        needs part.* (3), look when /ok = true  [needs approval]\n"
	    "  3 sorry       needs ship on failure\n");
	check_picture(FLOW_GRAPH_TEXT, label,
	    "  1 ┬─ part.* (3)  2 completed, 1 running\n"
	    "    └─ look        running\n"
	    "  2 ── ship        pending  ← part.* (3), look when /ok = true  [needs approval]\n"
	    "  3 ── sorry       ← ship on failure\n");
}

static void
check_within(enum flow_graph_format format, int width, const char *wanted)
{
	struct flow *f = read_yaml("plan:\n"
				   "  - {id: fetch-the-whole-archive, run: x}\n"
				   "  - {id: unpack-what-was-fetched, run: x, needs: [fetch-the-whole-archive], foreach: [1, 2]}\n"
				   "  - {id: end, run: x, needs: [fetch-the-whole-archive, unpack-what-was-fetched]}\n");
	struct buf b = {0};

	flow_graph_within(f, format, width, NULL, NULL, &b);
	assert_string_equal(buf_text(&b), wanted);
	buf_clear(&b);
	flow_free(f);
}

static void
test_flow_graph__text_cuts_long_ids(void **state)
{
	(void)state;
	check_within(FLOW_GRAPH_TEXT, 39,
	    "  1 ── fetch-…rchive\n"
	    "  2 ── unpack…etched.* (2)  ← fetch-…rchive\n"
	    "  3 ── end                  ← fetch-…rchive, unpack…etched.* (2)\n");
	check_within(FLOW_GRAPH_PLAIN, 5,
	    "  1 fetch~hive\n"
	    "  2 unpac~ched.* (2)  needs fetch~hive\n"
	    "  3 end               needs fetch~hive, unpac~ched.* (2)\n");
	check_within(FLOW_GRAPH_PLAIN, 0,
	    "  1 fetch-the-whole-archive\n"
	    "  2 unpack-what-was-fetched.* (2)  needs fetch-the-whole-archive\n"
	    "  3 end                            needs fetch-the-whole-archive, unpack-what-was-fetched.* (2)\n");
}

static void
test_flow_graph__dot(void **state)
{
	(void)state;
	check_picture(FLOW_GRAPH_DOT, label,
	    "digraph flow {\n"
	    "\trankdir=LR;\n"
	    "\tnode [shape=box, style=rounded];\n"
	    "\tlabel=\"a \\\"name\\\"\";\n"
	    "\tn0 [label=\"part.0\\ncompleted\"];\n"
	    "\tn1 [label=\"part.1\\ncompleted\"];\n"
	    "\tn2 [label=\"part.2\\nrunning\"];\n"
	    "\tn3 [label=\"ship\\n(approve)\\npending\"];\n"
	    "\tn4 [label=\"look\\nrunning\"];\n"
	    "\tn5 [label=\"sorry\"];\n"
	    "\tn0 -> n3;\n"
	    "\tn1 -> n3;\n"
	    "\tn2 -> n3;\n"
	    "\tn4 -> n3 [style=solid, label=\"when /ok = true\"];\n"
	    "\tn3 -> n5 [style=dashed, label=\"on failure\"];\n"
	    "}\n");
}

static void
test_flow_graph__mermaid(void **state)
{
	(void)state;
	check_picture(FLOW_GRAPH_MERMAID, NULL,
	    "flowchart LR\n"
	    "    n0[\"part.0\"]\n"
	    "    n1[\"part.1\"]\n"
	    "    n2[\"part.2\"]\n"
	    "    n3[\"ship<br>(approve)\"]\n"
	    "    n4[\"look\"]\n"
	    "    n5[\"sorry\"]\n"
	    "    n0 --> n3\n"
	    "    n1 --> n3\n"
	    "    n2 --> n3\n"
	    "    n4 -->|\"when /ok = true\"| n3\n"
	    "    n3 -.->|\"on failure\"| n5\n");
}

/* Not even what the caller says can be markup. */
static const char *
hostile_label(void *arg, size_t op)
{
	(void)arg;
	return op == 0 ? "</text>\x01\xC2\x9B\xFF\xEF\xBF\xBE&\"'" : "failed";
}

static void
test_flow_graph__svg(void **state)
{
	struct flow *f = read_yaml(pictured);
	struct buf b = {0};

	(void)state;
	flow_graph(f, FLOW_GRAPH_SVG, hostile_label, NULL, &b);
	assert_non_null(strstr(buf_text(&b), ">a &quot;name&quot;</title>"));
	assert_non_null(strstr(buf_text(&b), ">&lt;/text&gt;\\x01\\x9b\xEF\xBF\xBD\xEF\xBF\xBD&amp;&quot;&#39;</text>"));
	assert_null(strstr(buf_text(&b), "</text>\x01"));
	assert_non_null(strstr(buf_text(&b), "<g class=\"op failed\"><title>ship\n"));
	buf_clear(&b);
	flow_free(f);
}

/* ---- Layers ---- */

static void
make_layers(struct layers *l, size_t nboxes, struct layers_line *lines, size_t nlines)
{
	assert_int_equal(layers_make(l, nboxes, lines, nlines, 50, 10), 0);
}

static void
test_flow_graph__layers(void **state)
{
	struct layers_line lines[] = {
	    {.from = 0, .to = 1}, {.from = 1, .to = 2}, {.from = 2, .to = 3}, {.from = 0, .to = 3}};
	struct layers l;
	uint32_t i;

	(void)state;
	make_layers(&l, 4, lines, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(l.places[i].layer, i);
	assert_int_equal(l.nplaces, 6);
	assert_int_equal(lines[3].nbends, 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(l.places[lines[3].bend + i].layer, 1 + i);
		assert_true(l.places[lines[3].bend + i].y >= l.places[1 + i].y + 30 ||
		    l.places[lines[3].bend + i].y <= l.places[1 + i].y - 30);
	}
	layers_clear(&l);
	make_layers(&l, 0, lines, 0);
	assert_int_equal(l.nlayers, 0);
	layers_clear(&l);
}

static void
test_flow_graph__layers_of_a_circle(void **state)
{
	struct layers_line lines[] = {
	    {.from = 0, .to = 1}, {.from = 1, .to = 2}, {.from = 2, .to = 1}, {.from = 2, .to = 2}};
	struct layers l;

	(void)state;
	make_layers(&l, 3, lines, 4);
	assert_int_equal(l.places[1].layer, 1);
	assert_true(lines[1].below || lines[2].below);
	assert_true(lines[3].below);
	assert_true(l.nlanes >= 1);
	layers_clear(&l);
}

/* Each of a chain needs all before it: places for bends do not grow with the square. */
static void
test_flow_graph__layers_have_bounds(void **state)
{
	enum { N = 400 };
	struct layers_line *lines = calloc(N * N, sizeof(*lines));
	struct layers l;
	uint32_t i, k;
	size_t n = 0;

	(void)state;
	assert_non_null(lines);
	for (i = 0; i < N; i++)
		for (k = 0; k < i; k++, n++)
			lines[n] = (struct layers_line){.from = k, .to = i};
	make_layers(&l, N, lines, n);
	assert_int_equal(l.nlayers, N);
	assert_true(l.nplaces <= 5 * N + 1000);
	assert_true(l.nlanes <= N);
	layers_clear(&l);
	free(lines);
}

/* ---- Size: what is done is counted, not timed ---- */

enum { MANY = 20000 };

static struct flow *
each_of(int n)
{
	struct buf text = {0};
	struct flow *f;
	int i;

	buf_puts(&text, "plan:\n  - id: e\n    run: echo \"$1\"\n    env: {A: b}\n    foreach:\n");
	for (i = 0; i < n; i++)
		buf_printf(&text, "    - item %d\n", i);
	buf_puts(&text, "  - {id: end, run: x, needs: [e]}\n");
	f = read_yaml(buf_text(&text));
	buf_clear(&text);
	return f;
}

static void
test_flow_graph__items_share_what_they_can(void **state)
{
	struct flow *f = each_of(MANY);
	size_t i;

	(void)state;
	assert_int_equal(f->nops, MANY + 1);
	for (i = 1; i < MANY; i++) {
		assert_ptr_equal(f->ops[i].how, f->ops[0].how);
		assert_ptr_equal(f->ops[i].text, f->ops[0].text);
	}
	assert_int_equal(f->ops[MANY].nneeds, MANY);
	assert_true(sizeof(struct flow_op) <= 112);
	flow_free(f);
}

/* A chain that stands in the document from its end to its start, so that nothing is in order. */
static void
test_flow_graph__long_chain(void **state)
{
	struct buf text = {0};
	struct flow *f;
	int i;

	(void)state;
	buf_printf(&text, "max_ops: %d\nplan:\n", MANY);
	for (i = MANY - 1; i > 0; i--)
		buf_printf(&text, "- {id: o%d, needs: [o%d], exec: ['{{ops.o0.response}}']}\n", i, i - 1);
	buf_puts(&text, "- {id: o0, run: x}\n");
	f = read_yaml(buf_text(&text));
	for (i = 0; i < MANY; i++)
		assert_int_equal(f->order[i], MANY - 1 - i);
	assert_int_equal(flow_find(f, "o17"), MANY - 18);
	buf_clear(&text);
	flow_free(f);
}

static void
test_flow_graph__long_cycle(void **state)
{
	struct flow_source source = {.name = "f"};
	struct buf text = {0};
	struct flow *f = NULL;
	struct err e = {0};
	int i;

	(void)state;
	buf_puts(&text, "max_ops: 5000\nplan:\n");
	for (i = 0; i < 5000; i++)
		buf_printf(&text, "- {id: o%d, needs: [o%d], run: x}\n", i, (i + 4999) % 5000);
	source.text = buf_view(&text);
	assert_fails(flow_read(&source, &f, NULL, &e), ERR_DOCUMENT, e);
	assert_string_equal(e.msg, "f:3:8: operations wait for each other: o0 -> o1 -> o2 -> "
				   "... (4996 more) ... -> o4999 -> o0");
	buf_clear(&text);
}

static void
test_flow_graph__too_many(void **state)
{
	struct flow_source source = {.name = "f"};
	struct buf text = {0};
	struct flow *f = NULL;
	struct err e = {0};
	int i;

	(void)state;
	buf_puts(&text, "plan:\n- id: a\n  run: x\n  foreach: &l [x");
	for (i = 0; i < 2100; i++)
		buf_puts(&text, ", x");
	buf_puts(&text, "]\n- {id: b, run: x, needs: [a], foreach: *l}\n");
	source.text = buf_view(&text);
	assert_fails(flow_read(&source, &f, NULL, &e), ERR_DOCUMENT, e);
	assert_non_null(strstr(e.msg, "more than 4000000 edges"));
	buf_reset(&text);
	buf_puts(&text, "plan:\n- id: a\n  run: x\n  foreach: [x");
	for (i = 0; i < FLOW_MAX_OPERATIONS; i++)
		buf_puts(&text, ", x");
	buf_puts(&text, "]\n");
	source.text = buf_view(&text);
	assert_fails(flow_read(&source, &f, NULL, &e), ERR_DOCUMENT, e);
	assert_non_null(strstr(e.msg, "more than 100000 operations"));
	buf_clear(&text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow_graph__order_and_successors),
	    cmocka_unit_test(test_flow_graph__a_foreach_is_needed_as_a_whole),
	    cmocka_unit_test(test_flow_graph__text),
	    cmocka_unit_test(test_flow_graph__text_cuts_long_ids),
	    cmocka_unit_test(test_flow_graph__dot),
	    cmocka_unit_test(test_flow_graph__mermaid),
	    cmocka_unit_test(test_flow_graph__svg),
	    cmocka_unit_test(test_flow_graph__layers),
	    cmocka_unit_test(test_flow_graph__layers_of_a_circle),
	    cmocka_unit_test(test_flow_graph__layers_have_bounds),
	    cmocka_unit_test(test_flow_graph__items_share_what_they_can),
	    cmocka_unit_test(test_flow_graph__long_chain),
	    cmocka_unit_test(test_flow_graph__long_cycle),
	    cmocka_unit_test(test_flow_graph__too_many),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
