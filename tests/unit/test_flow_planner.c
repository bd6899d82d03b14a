/* A planner's answer: what is a plan, what is fed back, and the flow it makes. */
#include "test.h"

#include "flowsup/flow.h"
#include "flowsup/provider.h"

#define ROLES "\"roles\":{\"w\":{\"provider\":\"claude\"},\"s\":{\"provider\":\"sh\"},\"n\":{}},"
#define PLANNER "\"planner\":{\"assignee\":\"w\",\"instruction\":\"plan {{prompt}}\"}"

static struct provider_search search;

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
	const char *answer, *says; /* NULL: accepted */
} answers[] = {
    {"[{\"id\":\"a\",\"assignee\":\"w\",\"instruction\":\"x\"}]", NULL},
    {"{\"plan\":[{\"id\":\"a\",\"assignee\":\"w\",\"instruction\":\"x\"}]}", NULL},
    {"[{\"id\":\"a\",\"assignee\":\"w\",\"instruction\":\"x\",\"artifacts\":[\"o\"]},"
     "{\"id\":\"b\",\"assignee\":\"w\",\"instruction\":\"{{ops.a.response}}\",\"needs\":[\"a\"]}]", NULL},
    {"{\"plan\":[],\"note\":1}", "beside \"plan\" the answer must have no other member"},
    {"\"text\"", "the answer must be a list of operations, not a text"},
    {"{\"a\":1}", "the answer must be a list of operations, not an object"},
    {"[]", "the plan is empty"},
    {"[5]", "must be an object, not an integer"},
    {"[{\"id\":\"a\",\"instruction\":\"x\"}]", "an instruction needs an \"assignee\""},
    {"[{\"id\":\"a\",\"assignee\":\"x\",\"instruction\":\"x\"}]", "there is no role \"x\""},
    {"[{\"id\":\"a\",\"assignee\":\"n\",\"instruction\":\"x\"}]", "role \"n\" has no provider"},
    {"[{\"id\":\"a\",\"assignee\":\"w\",\"instruction\":\"x\",\"needs\":[\"b\"]}]", "no operation has this id"},
    {"[{\"id\":\"a\",\"assignee\":\"w\",\"instruction\":\"x\",\"tool\":1}]", "an operation has no key \"tool\""},
    {"[{\"id\":\"a\",\"assignee\":\"w\",\"instruction\":\"x\",\"item\":1}]", "an operation has no key \"item\""},
    {"[{\"id\":\"planner\",\"assignee\":\"w\",\"instruction\":\"x\"}]", "the id \"planner\" is taken"},
    {"[{\"id\":\"synthesis\",\"assignee\":\"w\",\"instruction\":\"x\"}]",
	"an operation of the plan has the id \"synthesis\" already"},
    {"[{\"id\":\"a\",\"run\":\"x\"}]", "\"run\" is not allowed here"},
    {"[{\"id\":\"a\",\"exec\":[\"x\"]}]", "\"exec\" is not allowed here"},
    {"[{\"id\":\"a\",\"assignee\":\"w\",\"instruction\":\"x\",\"env\":{\"A\":\"b\"}}]", "\"env\" is not allowed here (leave it out: an operation has the variables of its \"assignee\"; "
	"what it is to know goes into \"instruction\")"},
    {"[{\"id\":\"a\",\"assignee\":\"w\",\"instruction\":\"x\",\"cwd\":\"/\"}]", "\"cwd\" is not allowed here (leave it out: all operations begin where the run was started"},
    {"[{\"id\":\"a\",\"assignee\":\"s\",\"instruction\":\"x\"}]", "the role \"s\" runs shell text"},
    {"[{\"id\":\"a\",\"run\":\"x\"},{\"id\":\"a\",\"assignee\":\"q\",\"instruction\":\"x\"}]",
	"\"run\" is not allowed here (use \"instruction\" with an \"assignee\"); operation \"a\": there is no role"},
};

static void
test_flow_planner__answers(void **state)
{
	struct flow *f = read_flow("{" ROLES PLANNER
	    ",\"synthesis\":{\"assignee\":\"w\",\"instruction\":\"sum\"}}");
	struct json *answer, *plan;
	size_t i, left_out;
	struct err e;
	int r;

	(void)state;
	assert_true(f->unplanned);
	for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		e = (struct err){0};
		answer = test_json(answers[i].answer);
		r = flow_plan_accept(f, &search, answer, &plan, &left_out, &e);
		if (answers[i].says == NULL) {
			assert_works(r, e);
			assert_int_equal(left_out, 0);
			json_unref(plan);
		} else {
			assert_fails(r, ERR_DOCUMENT, e);
			if (strstr(e.msg, answers[i].says) == NULL)
				print_message("# %s: %s\n", answers[i].answer, e.msg);
			assert_non_null(strstr(e.msg, answers[i].says));
		}
		json_unref(answer);
	}
	flow_free(f);
}

static void
test_flow_planner__model_commands(void **state)
{
	struct flow *f = read_flow("{" ROLES "\"model_commands\":true," PLANNER "}");
	struct json *answer = test_json("[{\"id\":\"a\",\"run\":\"x\",\"env\":{\"A\":\"b\"},\"cwd\":\"/\"},"
				    "{\"id\":\"b\",\"assignee\":\"s\",\"instruction\":\"x\"}]");
	struct json *plan;
	size_t left_out;
	struct err e = {0};

	(void)state;
	assert_works(flow_plan_accept(f, &search, answer, &plan, &left_out, &e), e);
	json_unref(plan);
	json_unref(answer);
	flow_free(f);
}

static struct json *
long_answer(unsigned n)
{
	struct json *list = json_array(), *o;
	unsigned i;

	for (i = 0; i < n; i++) {
		o = json_set(json_object(), "id", json_printf("o%u", i));
		o = json_set(o, "assignee", json_cstr("w"));
		list = json_append(list, json_set(o, "instruction", json_cstr("x")));
	}
	return list;
}

static void
accept(const char *document, unsigned n, size_t kept, size_t gone)
{
	struct flow *f = read_flow(document);
	struct json *answer = long_answer(n), *plan = NULL;
	size_t left_out = 77;
	struct err e = {0};

	assert_works(flow_plan_accept(f, &search, answer, &plan, &left_out, &e), e);
	assert_int_equal(json_length(plan), kept);
	assert_int_equal(left_out, gone);
	json_unref(plan);
	json_unref(answer);
	flow_free(f);
}

static void
test_flow_planner__too_many_are_cut(void **state)
{
	(void)state;
	accept("{" ROLES PLANNER "}", 200, 200, 0);
	accept("{" ROLES PLANNER "}", 203, 200, 3);
	accept("{" ROLES "\"max_ops\":2," PLANNER "}", 3, 2, 1);
	accept("{" ROLES "\"max_ops\":300," PLANNER "}", 250, 250, 0);
}

/* The items of a list count each, and the last list that is reached is cut. */
static void
test_flow_planner__items_are_cut(void **state)
{
	struct flow *f = read_flow("{" ROLES "\"max_ops\":5," PLANNER "}");
	struct json *answer = test_json("[{\"id\":\"z\",\"assignee\":\"w\",\"instruction\":\"x\",\"foreach\":[]},"
	    "{\"id\":\"a\",\"assignee\":\"w\",\"instruction\":\"x\"},"
	    "{\"id\":\"b\",\"assignee\":\"w\",\"instruction\":\"x {{item}}\",\"foreach\":[0,1,2,3,4,5,6]},"
	    "{\"id\":\"c\",\"assignee\":\"w\",\"instruction\":\"x\"}]"), *plan = NULL;
	struct flow *g = NULL;
	size_t left_out = 77;
	struct err e = {0};

	(void)state;
	assert_works(flow_plan_accept(f, &search, answer, &plan, &left_out, &e), e);
	assert_int_equal(left_out, 4);
	assert_int_equal(json_length(plan), 3);
	assert_int_equal(json_length(json_get(json_at(plan, 2), "foreach")), 4);
	assert_works(flow_with_plan(f, plan, &g, &e), e);
	assert_int_equal(g->nops, 6);
	assert_string_equal(g->ops[5].id, "b.3");
	flow_free(g);
	json_unref(plan);
	json_unref(answer);
	answer = test_json("[{\"id\":\"a\",\"assignee\":\"w\",\"instruction\":\"x\",\"needs\":[\"b.6\"]},"
	    "{\"id\":\"b\",\"assignee\":\"w\",\"instruction\":\"x\",\"foreach\":[0,1,2,3,4,5,6]}]");
	assert_fails(flow_plan_accept(f, &search, answer, &plan, &left_out, &e), ERR_DOCUMENT, e);
	assert_non_null(strstr(e.msg, "of its 8 operations only the first 5 are taken, as there may be at most 5: "
	    "nothing may need or name one of the others (\"b.4\", \"b.5\", \"b.6\"); "));
	json_unref(answer);
	flow_free(f);
}

/* From the document as from a checkpoint: the planner first, the synthesis last, over all. */
static void
check_whole(const struct flow *f)
{
	const struct flow_op *last = &f->ops[3];

	assert_int_equal(f->nops, 4);
	assert_false(f->unplanned);
	assert_int_equal(f->planner_op, 0);
	assert_int_equal(f->synthesis_op, 3);
	assert_string_equal(f->ops[1].id, "a.b");
	assert_int_equal(last->nneeds, 3);
	assert_int_equal(last->needs[2].on, FLOW_ON_ALWAYS);
	assert_int_equal(f->ops[2].nneeds, 0);
}

static void
test_flow_planner__the_flow(void **state)
{
	static const char *const ids[] = {"0", "1", "2", "3"};
	struct flow *f = read_flow("{" ROLES PLANNER
	    ",\"synthesis\":{\"assignee\":\"w\",\"instruction\":\"sum {{prompt}}\"}}"), *g = NULL, *h = NULL;
	struct json *plan = test_json("[{\"id\":\"a.b\",\"assignee\":\"w\",\"instruction\":\"x\"},"
				  "{\"id\":\"a-b\",\"assignee\":\"w\",\"instruction\":\"x\"}]"), *kept;
	struct err e = {0};

	(void)state;
	assert_int_equal(f->nops, 1);
	assert_int_equal(f->synthesis_op, SIZE_MAX);
	assert_works(flow_with_plan(f, plan, &g, &e), e);
	check_whole(g);
	kept = json_set(json_set(json_object(), "plan", flow_plan(g, ids)), "config", flow_config(g));
	assert_works(flow_from_state(kept, &h, &e), e);
	check_whole(h);
	flow_free(h);
	assert_works(flow_from_document(g->document, &h, &e), e);
	check_whole(h);
	json_unref(kept);
	json_unref(plan);
	flow_free(f);
	flow_free(g);
	flow_free(h);
}

/* From a checkpoint that was saved before there was a plan. */
static void
test_flow_planner__from_an_early_checkpoint(void **state)
{
	static const char *const ids[] = {"0"};
	struct flow *f = read_flow("{" ROLES PLANNER
	    ",\"synthesis\":{\"assignee\":\"w\",\"instruction\":\"sum\"}}"), *g = NULL, *h = NULL;
	struct json *plan = test_json("[{\"id\":\"a.b\",\"assignee\":\"w\",\"instruction\":\"x\"},"
				  "{\"id\":\"a-b\",\"assignee\":\"w\",\"instruction\":\"x\"}]"), *kept;
	struct err e = {0};

	(void)state;
	kept = json_set(json_set(json_object(), "plan", flow_plan(f, ids)), "config", flow_config(f));
	assert_works(flow_from_state(kept, &g, &e), e);
	assert_true(g->unplanned);
	assert_works(flow_with_plan(g, plan, &h, &e), e);
	check_whole(h);
	json_unref(kept);
	json_unref(plan);
	flow_free(f);
	flow_free(g);
	flow_free(h);
}

static void
test_flow_planner__format_names_usable_roles(void **state)
{
	struct flow *f = read_flow("{" ROLES PLANNER "}");
	struct buf b = {0};

	(void)state;
	flow_planner_format(f, &b);
	assert_non_null(strstr(buf_text(&b), "one of: w\n"));
	assert_non_null(strstr(buf_text(&b), "at most 200"));
	assert_null(strstr(buf_text(&b), "/bin/sh"));
	buf_clear(&b);
	flow_free(f);
}

/* ---- The synthesis of a plan that somebody wrote ---- */

static void
test_flow_synthesis__is_the_last_operation(void **state)
{
	struct flow *f = read_flow("{" ROLES "\"max_ops\":3,\"synthesis\":{\"assignee\":\"w\",\"instruction\":"
				   "\"{{ops.b.response}}\"},\"plan\":[{\"id\":\"a\",\"run\":\"x\",\"foreach\":[1,2]},"
				   "{\"id\":\"b\",\"run\":\"x\"}]}");

	(void)state;
	assert_int_equal(f->nops, 4);
	assert_int_equal(f->synthesis_op, 3);
	assert_int_equal(f->ops[3].nneeds, 3);
	assert_string_equal(f->ops[3].id, "synthesis");
	flow_free(f);
}

/* The first of the document is none, and the order is the document's. */
static void
test_flow_synthesis__without_one_the_order_is_the_documents(void **state)
{
	struct flow *f = read_flow("{\"plan\":[{\"id\":\"a\",\"run\":\"x\"},{\"id\":\"b\",\"run\":\"x\"}]}");

	(void)state;
	assert_int_equal(f->synthesis_op, SIZE_MAX);
	assert_int_equal(f->order[0], 0);
	assert_int_equal(f->order[1], 1);
	flow_free(f);
}

/* In a checkpoint that somebody has edited: it could never be done. */
static void
test_flow_synthesis__nothing_stands_behind_it(void **state)
{
	struct json *s = test_json("{\"plan\":[{\"agent_id\":\"a\",\"run\":\"x\",\"dep_indices\":[1]},"
	    "{\"agent_id\":\"synthesis\",\"assignee\":\"w\",\"instruction\":\"x\",\"dep_indices\":[]}],"
	    "\"config\":{\"roles\":{\"w\":{\"provider\":\"p\"}},\"synthesis\":{\"assignee\":\"w\",\"instruction\":\"x\"}}}");
	struct flow *f = NULL;
	struct err e = {0};

	(void)state;
	assert_fails(flow_from_state(s, &f, &e), ERR_REFUSED, e);
	assert_non_null(strstr(e.msg, "\"a\" waits for the synthesis, which waits for all others"));
	json_unref(s);
}

static void
test_flow_synthesis__its_id_is_taken(void **state)
{
	static const char text[] = "{" ROLES "\"synthesis\":{\"assignee\":\"w\",\"instruction\":\"x\"},"
				   "\"plan\":[{\"id\":\"synthesis\",\"run\":\"x\"}]}";
	struct flow_source source = {"f", slice_of(text), true};
	struct flow *f = NULL;
	struct err e = {0};

	(void)state;
	assert_fails(flow_read(&source, &f, NULL, &e), ERR_DOCUMENT, e);
	assert_non_null(strstr(e.msg, "has the id \"synthesis\" already"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow_planner__answers),
	    cmocka_unit_test(test_flow_planner__model_commands),
	    cmocka_unit_test(test_flow_planner__too_many_are_cut),
	    cmocka_unit_test(test_flow_planner__items_are_cut),
	    cmocka_unit_test(test_flow_planner__the_flow),
	    cmocka_unit_test(test_flow_planner__from_an_early_checkpoint),
	    cmocka_unit_test(test_flow_planner__format_names_usable_roles),
	    cmocka_unit_test(test_flow_synthesis__is_the_last_operation),
	    cmocka_unit_test(test_flow_synthesis__without_one_the_order_is_the_documents),
	    cmocka_unit_test(test_flow_synthesis__nothing_stands_behind_it),
	    cmocka_unit_test(test_flow_synthesis__its_id_is_taken),
	};
	static char providers[] = "shared/providers";

	search.data = providers;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
