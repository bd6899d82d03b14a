/* Operations that are added: their edges, chains of further tries, items; live and from a state. */
#include "test.h"

#include "fault_alloc.h"
#include "flowsup/flow.h"

static const char text[] =
    "{\"max_ops\":40,\"reactive\":[\"low\"],\"env\":{\"RUN\":\"1\",\"A\":\"run\"},"
    "\"roles\":{\"low\":{\"provider\":\"p\",\"escalate_to\":\"high\",\"env\":{\"A\":\"low\"},\"artifacts\":[\"of-low\"]},"
    "\"high\":{\"provider\":\"p\",\"env\":{\"A\":\"high\",\"B\":\"high\"},\"artifacts\":[\"of-high\"]}},"
    "\"plan\":["
    "{\"id\":\"after\",\"run\":\"x\",\"needs\":[{\"op\":\"work\",\"on\":\"failure\",\"when\":{\"pointer\":\"/x\",\"equals\":1}},\"list\"]},"
    "{\"id\":\"work\",\"instruction\":\"do {{item}}\",\"assignee\":\"low\",\"needs\":[\"list\"],\"env\":{\"OWN\":\"o\"},\"artifacts\":[\"own\"],"
    "\"foreach\":[\"it\"]},"
    "{\"id\":\"list\",\"run\":\"x\",\"response\":\"json\"},"
    "{\"id\":\"each\",\"run\":\"e\",\"needs\":[\"list\"],\"foreach\":\"/l\",\"timeout\":\"3s\"},"
    "{\"id\":\"all\",\"run\":\"x\",\"needs\":[{\"op\":\"each\",\"on\":\"always\"}]}"
    "]}";

/* A flow with its plan as a checkpoint has it: node ids are "n-<id>". */
static struct flow *
begin(size_t room, struct json **plan)
{
	struct flow_source source = {"f", slice_of(text), true};
	char names[16][FLOW_MAX_ID + 3];
	const char *list[16];
	struct flow *f;
	struct err e = {0};
	size_t i;

	if (flow_read(&source, &f, NULL, &e) != 0)
		fail_msg("%s", e.msg);
	for (i = 0; i < f->nops; i++) {
		snprintf(names[i], sizeof(names[i]), "n-%s", f->ops[i].id);
		list[i] = names[i];
	}
	*plan = flow_plan(f, list);
	assert_int_equal(flow_grow_begin(f, *plan, room, &e), 0);
	return f;
}

static struct json *
entry(const char *id, const char *parent, const char *more)
{
	struct json *base, *rest = test_json(more);
	struct json_iter it = json_iterate(rest);
	const struct json *v;
	struct slice name;

	base = json_set(json_object(), "node_id", json_printf("n-%s", id));
	base = json_set(base, "status", json_cstr("pending"));
	base = json_set(base, "response", json_null());
	base = json_set(base, "spawn_id", json_cstr(id));
	base = json_set(base, "parent_id", json_printf("n-%s", parent));
	while (json_next(&it, &name, &v))
		base = json_setn(base, name, json_ref(v));
	json_unref(rest);
	return base;
}

#define CHILD "{\"operation\":\"run\",\"instruction\":\"c\"}"
#define AGENT "{\"operation\":\"instruction\",\"instruction\":\"c\",\"assignee\":\"low\"}"
#define TRY(of) "{\"operation\":\"instruction\",\"instruction\":\"do {{item}}\",\"assignee\":\"high\",\"escalated_from\":\"n-" of "\"}"
#define ITEM(n, item) "{\"operation\":\"run\",\"instruction\":\"e\",\"request_key\":\"" n "\",\"context\":{\"item\":" item "}}"

static uint32_t
grow(struct flow *f, const char *id, const char *parent, const char *more)
{
	struct json *v = entry(id, parent, more);
	struct err e = {0};
	uint32_t i;

	if (flow_grow(f, v, &i, &e) != 0)
		fail_msg("%s: %s", id, e.msg);
	json_unref(v);
	return i;
}

/* "a b/failure" in the order of the plan. */
static void
expect_needs(const struct flow *f, const char *id, const char *wanted)
{
	static const char *const on[] = {"", "/failure", "/always"};
	const struct flow_op *op = &f->ops[flow_find(f, id)];
	struct buf b = {0};
	uint32_t n, s;

	for (n = 0; n < op->nneeds; n++) {
		buf_printf(&b, "%s%s%s%s", n > 0 ? " " : "", f->ops[op->needs[n].op].id, on[op->needs[n].on],
		    op->needs[n].when != FLOW_WHEN_ALWAYS ? "?" : "");
		assert_true(n == 0 || op->needs[n - 1].op < op->needs[n].op);
		for (s = 0; s < f->ops[op->needs[n].op].nsuccessors; s++)
			if (&f->ops[f->ops[op->needs[n].op].successors[s]] == op)
				break;
		assert_true(s < f->ops[op->needs[n].op].nsuccessors);
	}
	assert_string_equal(buf_text(&b), wanted);
	buf_clear(&b);
}

static void
expect_order(struct flow *f)
{
	uint32_t *place = calloc(f->nops, sizeof(*place));
	struct err e = {0};
	size_t i;
	uint32_t n;

	assert_int_equal(flow_reorder(f, &e), 0);
	for (i = 0; i < f->nops; i++)
		place[f->order[i]] = (uint32_t)i;
	for (i = 0; i < f->nops; i++)
		for (n = 0; n < f->ops[i].nneeds; n++)
			assert_true(place[f->ops[i].needs[n].op] < place[i]);
	free(place);
}

/* ---- Cases ---- */

static void
test_flow_grow__a_chain_of_tries(void **state)
{
	struct json *plan;
	struct flow *f = begin(20, &plan);
	uint32_t work = (uint32_t)flow_find(f, "work.0"), first, second;

	(void)state;
	grow(f, "before", "work.0", AGENT);
	expect_needs(f, "before", "work.0");
	first = grow(f, "work.0.s1", "work.0", TRY("work.0"));
	expect_needs(f, "work.0.s1", "work.0/always list");
	expect_needs(f, "after", "list work.0.s1/failure?");
	expect_needs(f, "before", "work.0.s1");
	grow(f, "later", "work.0", AGENT);
	expect_needs(f, "later", "work.0.s1");
	second = grow(f, "work.0.s2", "work.0.s1", TRY("work.0"));
	expect_needs(f, "work.0.s2", "work.0/always list work.0.s1/always");
	expect_needs(f, "after", "list work.0.s2/failure?");
	expect_needs(f, "later", "work.0.s2");
	assert_int_equal(flow_final(f, work), second);
	assert_int_equal(flow_final(f, first), second);
	assert_int_equal(flow_stands_for(f, second), work);
	assert_int_equal(flow_chain_length(f, first), 2);
	assert_true(flow_is_replaced(f, first) && !flow_is_replaced(f, second));
	expect_order(f);
	flow_free(f);
	json_unref(plan);
}

static const char *
variable(const struct flow_how *how, const char *name)
{
	size_t i;

	for (i = 0; i < how->nenv; i++)
		if (strcmp(how->env[i].name, name) == 0)
			return how->env[i].value;
	return "";
}

/* The role's own settings are exchanged, the operation's own and the run's stay. */
static void
test_flow_grow__how_it_runs(void **state)
{
	struct json *plan;
	struct flow *f = begin(20, &plan);
	const struct flow_how *how = f->ops[grow(f, "t", "work.0", TRY("work.0"))].how;

	(void)state;
	assert_string_equal(how->assignee, "high");
	assert_string_equal(variable(how, "A"), "high");
	assert_string_equal(variable(how, "B"), "high");
	assert_string_equal(variable(how, "OWN"), "o");
	assert_string_equal(variable(how, "RUN"), "1");
	assert_string_equal(how->artifacts[0], "of-high");
	assert_string_equal(how->artifacts[1], "own");
	assert_null(how->artifacts[2]);
	assert_string_equal(f->ops[flow_find(f, "t")].item, "it");
	how = f->ops[grow(f, "c", "list", CHILD)].how;
	assert_null(how->role);
	assert_string_equal(variable(how, "A"), "run");
	how = f->ops[grow(f, "g", "work.0", AGENT)].how;
	assert_string_equal(variable(how, "A"), "low");
	assert_string_equal(variable(how, "OWN"), "");
	assert_string_equal(how->artifacts[0], "of-low");
	assert_string_equal(how->inherit_context, "work.0");
	how = f->ops[grow(f, "k", "work.0",
	    "{\"operation\":\"chat\",\"instruction\":\"c\",\"emitter_workload\":\"low\",\"artifacts_expected\":[\"kept\"]}")].how;
	assert_string_equal(how->role->name, "low");
	assert_string_equal(how->artifacts[0], "kept");
	assert_null(how->artifacts[1]);
	flow_free(f);
	json_unref(plan);
}

static void
test_flow_grow__items(void **state)
{
	struct json *plan;
	struct flow *f = begin(20, &plan);
	struct err e = {0};
	uint32_t i;

	(void)state;
	grow(f, "each.0", "each", ITEM("0", "\"a b\""));
	i = grow(f, "each.1", "each", ITEM("1", "{\"k\":[1]}"));
	expect_needs(f, "each.1", "list each");
	expect_needs(f, "all", "each/always each.0/always each.1/always");
	assert_string_equal(f->ops[i].item, "{\"k\":[1]}");
	assert_string_equal(f->ops[i].text, "e");
	assert_int_equal(f->ops[i].how->timeout_ns, INT64_C(3000000000));
	assert_null(f->ops[i].how->foreach_pointer);
	assert_ptr_equal(f->ops[i].how, f->ops[i - 1].how);
	assert_int_equal(flow_expanded(f, (uint32_t)flow_find(f, "each"), &e), 0);
	expect_needs(f, "all", "each/always each.0/always each.1/always");
	expect_needs(f, "each.0", "list each");
	expect_order(f);
	flow_free(f);
	json_unref(plan);
}

static void
test_flow_grow__limits(void **state)
{
	struct json *plan, *v;
	struct flow *f = begin(1, &plan);
	const struct flow_op *ops = f->ops;
	struct err e = {0};
	uint32_t i;

	(void)state;
	assert_true(flow_may_grow(f));
	assert_true(flow_reactive_allows(f, "low") && !flow_reactive_allows(f, "high"));
	assert_false(flow_reactive_allows(f, NULL));
	assert_int_equal(flow_max_spawn(f), 35);
	grow(f, "c", "list", CHILD);
	v = entry("d", "list", CHILD);
	assert_int_equal(flow_grow(f, v, &i, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_ptr_equal(ops, f->ops);
	json_unref(v);
	flow_free(f);
	json_unref(plan);
}

/* ---- From a checkpoint ---- */

static struct json *
make_state(struct json *plan, bool backwards)
{
	static const char *const ids[][3] = {{"work.0.s1", "work.0", TRY("work.0")},
	    {"work.0.s1.s1", "work.0.s1", CHILD}, {"work.0.s2", "work.0.s1", TRY("work.0.s1")},
	    {"each.0", "each", ITEM("0", "1")}, {"each.1", "each", ITEM("1", "2")}};
	const size_t n = sizeof(ids) / sizeof(ids[0]);
	struct json *s = json_set(json_object(), "plan", json_ref(plan)), *list = json_array();
	size_t i, k;

	for (i = 0; i < n; i++) {
		k = backwards ? n - 1 - i : i;
		list = json_append(list, entry(ids[k][0], ids[k][1], ids[k][2]));
	}
	s = json_set(s, "ops", test_json("{\"each\":{\"agent_id\":\"each\",\"status\":\"completed\",\"response\":null}}"));
	return json_set(s, "spawned", list);
}

static void
no_problem(void *arg, const struct json *v, const char *why)
{
	(void)v;
	fail_msg("%s: %s", (const char *)arg, why);
}

static struct flow *
rebuilt(bool backwards)
{
	struct flow_source source = {"f", slice_of(text), true};
	struct json *plan, *s;
	struct flow *f = begin(0, &plan);
	struct err e = {0};

	s = make_state(plan, backwards);
	flow_free(f);
	json_unref(plan);
	assert_int_equal(flow_read(&source, &f, NULL, &e), 0);
	assert_int_equal(flow_rebuild(f, s, 0, no_problem, (void *)(uintptr_t) "rebuild", &e), 0);
	json_unref(s);
	return f;
}

static void
test_flow_grow__rebuilt_in_any_order(void **state)
{
	struct flow *f;
	int backwards;

	(void)state;
	for (backwards = 0; backwards < 2; backwards++) {
		f = rebuilt(backwards);
		expect_needs(f, "after", "list work.0.s2/failure?");
		expect_needs(f, "work.0.s1.s1", "work.0.s2");
		expect_needs(f, "each.1", "list each");
		assert_string_equal(f->ops[flow_final(f, (uint32_t)flow_find(f, "work.0"))].id, "work.0.s2");
		assert_string_equal(flow_node_id(f, (uint32_t)flow_find(f, "each.0")), "n-each.0");
		expect_order(f);
		flow_free(f);
	}
}

/* ---- Without memory ---- */

static void
ignore(void *arg, const struct json *v, const char *why)
{
	(void)arg;
	(void)v;
	(void)why;
}

static void
test_flow_grow__memory(void **state)
{
	struct flow_source source = {"f", slice_of(text), true};
	struct json *plan, *s;
	struct flow *f = begin(0, &plan);
	unsigned long n;
	struct err e;
	int rc;

	(void)state;
	s = make_state(plan, false);
	flow_free(f);
	for (n = 1;; n++) {
		e = (struct err){0};
		assert_int_equal(flow_read(&source, &f, NULL, &e), 0);
		fault_alloc_arm(n, false);
		rc = flow_rebuild(f, s, 3, ignore, NULL, &e);
		if (rc == 0)
			flow_drop_document(f);
		if (!fault_alloc_disarm())
			break;
		if (rc != 0)
			assert_int_equal(e.code, ERR_NOMEM);
		flow_free(f);
	}
	assert_int_equal(rc, 0);
	assert_true(n > 10);
	flow_free(f);
	json_unref(s);
	json_unref(plan);
}

/* What a person has declared, and what an operation may get. */
static void
test_flow_grow__authority(void **state)
{
	struct flow_env env[] = {{"A", "x", false}, {"B", "y", false}};
	struct json *args = test_json("[\"-x\"]"), *equal = test_json("[\"-x\"]"), *other = test_json("[\"-y\"]");
	struct flow_role low = {.name = "low", .args = args, .env = env, .nenv = 1, .escalate_to = "high"};
	struct flow_role high = {.name = "high", .args = equal, .env = env, .nenv = 1};
	struct err e = {0};

	(void)state;
	assert_int_equal(flow_check_authority(&low, &high, &e), 0);
	high.nenv = 2;
	assert_int_equal(flow_check_authority(&low, &high, &e), -1);
	assert_int_equal(flow_check_authority(&high, &low, &e), 0);
	assert_int_equal(flow_check_authority(NULL, &high, &e), 0);
	high.nenv = 1;
	high.args = other;
	assert_int_equal(flow_check_authority(&low, &high, &e), -1);
	assert_string_equal(e.msg, "the arguments of role high are not those of role low, and may allow more");
	high.args = NULL;
	assert_int_equal(flow_check_authority(&low, &high, &e), -1);
	/* Not by its arguments, of which it may have none. */
	high.provider = "sh";
	low.provider = "claude";
	assert_int_equal(flow_check_authority(&low, &high, &e), -1);
	assert_string_equal(e.msg, "role high is of the provider sh and role low of claude: what their arguments "
				   "allow cannot be compared");
	assert_true(flow_is_declared_escalation(&low, &high) && !flow_is_declared_escalation(&high, &low));
	json_unref(args);
	json_unref(equal);
	json_unref(other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow_grow__a_chain_of_tries),
	    cmocka_unit_test(test_flow_grow__how_it_runs),
	    cmocka_unit_test(test_flow_grow__items),
	    cmocka_unit_test(test_flow_grow__limits),
	    cmocka_unit_test(test_flow_grow__rebuilt_in_any_order),
	    cmocka_unit_test(test_flow_grow__memory),
	    cmocka_unit_test(test_flow_grow__authority),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
