/* Many operations in one run: what a turn costs is counted, never timed. */
#include "run_fixture.h"

#include <sys/stat.h>

#include "worker/op.h"

/* layers x width operations, each needing all of the layer before. */
static struct flow *
layered(size_t layers, size_t width, bool with_edges)
{
	struct buf text = {0};
	struct flow_source source = {.name = "scale"};
	struct flow *flow = NULL;
	struct err e = {0};
	size_t layer, i, n;

	buf_printf(&text, "name: scale\nconcurrency: 8\nmax_ops: %zu\nplan:\n", layers * width);
	for (layer = 0; layer < layers; layer++)
		for (i = 0; i < width; i++) {
			buf_printf(&text, "  - {id: l%zu.%zu, exec: [/bin/true]", layer, i);
			for (n = 0; with_edges && layer > 0 && n < width; n++)
				buf_printf(&text, "%sl%zu.%zu", n == 0 ? ", needs: [" : ", ", layer - 1, n);
			buf_puts(&text, with_edges && layer > 0 ? "]}\n" : "}\n");
		}
	source.text = buf_view(&text);
	assert_works(flow_read(&source, &flow, NULL, &e), e);
	buf_clear(&text);
	return flow;
}

struct walk {
	struct op *ops;
	const struct flow *flow;
	struct op_list ready;
	size_t met;
};

static void
note_met(void *arg, uint32_t i)
{
	struct walk *w = arg;
	enum op_state state;
	uint32_t cause;
	struct err e = {0};

	w->met++;
	assert_works(op_judge_edges(w->ops, w->flow, NULL, i, &state, &cause, &e), e);
	assert_int_equal(state, OP_READY);
	op_list_push(&w->ready, w->ops, i);
}

/* Each operation is looked at once, when its last predecessor counts; the counters went down by one
 * for each edge, and nothing is left over. */
static void
test_scale__each_operation_is_judged_once(void **state)
{
	struct flow *flow = layered(20, 50, true);
	struct walk w = {.flow = flow, .ops = calloc(flow->nops, sizeof(struct op))};
	size_t settled = 0, i;
	uint32_t next;

	(void)state;
	assert_non_null(w.ops);
	op_list_init(&w.ready);
	op_count_predecessors(w.ops, flow);
	for (i = 0; i < flow->nops; i++)
		if (w.ops[i].unmet == 0)
			op_list_push(&w.ready, w.ops, (uint32_t)i);
	assert_int_equal(w.ready.count, 50);
	while ((next = op_list_pop(&w.ready, w.ops)) != OP_NO_INDEX) {
		w.ops[next].state = OP_COMPLETED;
		op_release(w.ops, flow, next, note_met, &w);
		settled++;
	}
	assert_int_equal(settled, 1000);
	assert_int_equal(w.met, 950);
	for (i = 0; i < flow->nops; i++)
		assert_int_equal(w.ops[i].unmet, 0);
	free(w.ops);
	flow_free(flow);
}

static void
test_scale__an_operation_that_waits_is_small(void **state)
{
	(void)state;
	assert_true(sizeof(struct op) <= 48);
}

/* The worker's turns grow with what happens, not with the number of operations that wait. */
static void
turns_of(size_t nops, int64_t *turns, int64_t *judged)
{
	struct run_fixture r;
	struct json *end;

	run_make_flow(&r, layered(1, nops, false), NULL, NULL);
	run_start(&r);
	run_expect(&r, STATUS_COMPLETED, "run.completed.all");
	assert_int_equal(run_count_events(&r, "NodeCompleted", NULL), nops);
	assert_int_equal(run_count_events(&r, "CheckpointSaved", NULL), nops);
	end = run_event(&r, "RunEnded", NULL);
	assert_true(json_int64(json_get(end, "turns"), turns));
	assert_true(json_int64(json_get(end, "judged"), judged));
	json_unref(end);
	run_clear(&r);
}

static void
test_scale__two_thousand_operations(void **state)
{
	int64_t turns, judged;

	(void)state;
	turns_of(2000, &turns, &judged);
	assert_int_equal(judged, 2000);
	/* For each operation at most: a start, an exit, a SIGCHLD, an acknowledgement, and some room
	 * for timers and the io thread. */
	assert_true(turns <= 8 * 2000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_scale__each_operation_is_judged_once),
    cmocka_unit_test(test_scale__an_operation_that_waits_is_small),
    cmocka_unit_test(test_scale__two_thousand_operations),
};

TEST_MAIN("worker_scale", tests)
