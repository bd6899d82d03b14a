/* What a document becomes, and the two ways back to a document and to a checkpoint. */
#include "test.h"

#include "flowsup/flow.h"
#include "flowsup/provider.h"
#include "shared/flow/model.h"

static struct flow *
read_text_as(const char *text, bool json)
{
	struct flow_source source = {"f", slice_of(text), json};
	struct flow *f = NULL;
	struct err e = {0};

	assert_works(flow_read(&source, &f, NULL, &e), e);
	return f;
}

static struct flow *
read_yaml(const char *text)
{
	return read_text_as(text, false);
}

static const struct flow_op *
op_of(const struct flow *f, const char *id)
{
	size_t i = flow_find(f, id);

	assert_true(i < f->nops);
	return &f->ops[i];
}

static const char *
variable(const struct flow_op *op, const char *name)
{
	size_t i;

	for (i = 0; i < op->how->nenv; i++)
		if (strcmp(op->how->env[i].name, name) == 0)
			return op->how->env[i].value;
	return NULL;
}

static const char all_keys[] =
    "name: all\n"
    "prompt: do it\n"
    "concurrency: 4\n"
    "timeout: 2h\n"
    "max_ops: 40\n"
    "fail_fast: true\n"
    "reactive: [worker]\n"
    "restart: {on: crash, attempts: 3, failed: retry}\n"
    "notify: {command: [notify-send, flowsup], on: all}\n"
    "synthesis: {assignee: worker, instruction: \"of {{prompt}} and {{ops.a.response}}\"}\n"
    "args: {since: {type: string, default: 2d, help: how far back}}\n"
    "orphans: {keep: 24h}\n"
    "watchdog: 5m\n"
    "model_commands: true\n"
    "escalate_max: 3\n"
    "env: {A: run, B: run, NEED: {required: true}}\n"
    "defaults: {timeout: 30m, retry: {attempts: 3, backoff: 5s, factor: 1.5, max: 2m, jitter: false},"
    " limits: {files: 100}, cwd: /tmp}\n"
    "roles:\n"
    "  worker: {provider: claude, model: sonnet, args: [--x], artifacts: [r.md], env: {B: role, C: role},"
    " escalate_to: boss}\n"
    "  boss: {}\n"
    "plan:\n"
    "  - {id: a, run: echo a}\n"
    "  - id: b\n"
    "    exec: [ls, \"{{artifacts.a}}\"]\n"
    "    assignee: worker\n"
    "    needs: [a, {op: d, on: failure, when: {pointer: /x, matches: '^y'}}]\n"
    "    response: json\n"
    "    schema: {type: object}\n"
    "    artifacts: [out/x, r.md]\n"
    "    timeout: 90\n"
    "    grace: 1.5s\n"
    "    silence: {after: 10m, do: notify, strict: true}\n"
    "    retry: {attempts: 2, on: [75, timeout]}\n"
    "    gate: approve\n"
    "    idempotent: false\n"
    "    keeper: true\n"
    "    context: true\n"
    "    output: merged\n"
    "    tty: true\n"
    "    messages: true\n"
    "    leave: true\n"
    "    env: {C: op, D: \"{{args.since}}\"}\n"
    "    cwd: ~/src\n"
    "    umask: \"027\"\n"
    "    nice: -5\n"
    "    limits: {cpu: 90s, memory: 64M}\n"
    "  - {id: c, assignee: worker, needs: [b], instruction: think}\n"
    "  - {id: d, run: 'false'}\n"
    "  - {id: e, assignee: worker, needs: [c], inherit_context: c, instruction: again}\n"
    "  - {id: f, needs: [b], foreach: {op: b, pointer: /items}, exec: [echo, \"{{item}}\"]}\n";

static void
check_top(const struct flow *f)
{
	assert_string_equal(f->name, "all");
	assert_string_equal(f->prompt, "do it");
	assert_int_equal(f->concurrency, 4);
	assert_int_equal(f->timeout_ns, INT64_C(7200000000000));
	assert_int_equal(f->max_ops, 40);
	assert_true(f->fail_fast && f->model_commands);
	assert_int_equal(f->escalate_max, 3);
	assert_int_equal(f->watchdog_ns, INT64_C(300000000000));
	assert_non_null(f->reactive);
	assert_non_null(f->restart);
	assert_non_null(f->notify);
	assert_non_null(f->synthesis);
	assert_non_null(f->args);
	assert_non_null(f->orphans);
	assert_null(f->planner);
	assert_int_equal(f->nenv, 3);
	assert_true(f->env[2].required);
	assert_null(f->env[2].value);
	assert_int_equal(f->nroles, 2);
	assert_string_equal(f->roles[0].escalate_to, "boss");
	assert_int_equal(json_length(f->roles[0].args), 1);
}

static void
check_b(const struct flow *f, const struct flow_op *b)
{
	assert_int_equal(b->kind, FLOW_EXEC);
	assert_string_equal(b->argv[1], "{{artifacts.a}}");
	assert_null(b->argv[2]);
	assert_ptr_equal(b->how->role, &f->roles[0]);
	assert_int_equal(b->nneeds, 2);
	assert_string_equal(f->ops[b->needs[0].op].id, "a");
	assert_int_equal(b->needs[1].on, FLOW_ON_FAILURE);
	assert_int_equal(b->needs[1].when, FLOW_WHEN_MATCHES);
	assert_string_equal(b->needs[1].pointer, "/x");
	assert_int_equal(b->how->response, FLOW_RESPONSE_JSON);
	assert_non_null(b->how->schema);
	assert_string_equal(b->how->artifacts[0], "r.md");
	assert_string_equal(b->how->artifacts[1], "out/x");
	assert_null(b->how->artifacts[2]);
	assert_int_equal(b->how->timeout_ns, INT64_C(90000000000));
	assert_int_equal(b->how->grace_ns, INT64_C(1500000000));
	assert_int_equal(b->how->silence_ns, INT64_C(600000000000));
	assert_true(b->how->silence_notify && b->how->silence_strict);
	assert_int_equal(b->how->retry.attempts, 2);
	assert_int_equal(b->how->retry.backoff_ns, INT64_C(5000000000)); /* from the defaults */
	assert_false(b->how->retry.jitter);
	assert_int_equal(json_length(b->how->retry.on), 2);
	assert_true(b->how->gate_approve && !b->how->idempotent && b->how->keeper && b->how->context);
	assert_true(b->how->output_merged && b->how->tty && b->how->messages && b->how->leave);
	assert_string_equal(variable(b, "A"), "run");
	assert_string_equal(variable(b, "B"), "role");
	assert_string_equal(variable(b, "C"), "op");
	assert_string_equal(b->how->cwd, "~/src");
	assert_int_equal(b->how->umask, 027);
	assert_true(b->how->has_nice);
	assert_int_equal(b->how->nice, -5);
	assert_int_equal(b->how->limit_cpu_s, 90);
	assert_int_equal(b->how->limit_memory_bytes, 64 << 20);
	assert_int_equal(b->how->limit_files, 100); /* from the defaults */
}

static void
test_flow_model__every_key(void **state)
{
	struct flow *f = read_yaml(all_keys);
	const struct flow_op *a = op_of(f, "a");

	(void)state;
	check_top(f);
	check_b(f, op_of(f, "b"));
	assert_int_equal(a->kind, FLOW_RUN);
	assert_string_equal(a->text, "echo a");
	assert_int_equal(a->where.line, 22);
	assert_int_equal(a->where.column, 10);
	assert_int_equal(a->how->timeout_ns, INT64_C(1800000000000));
	assert_int_equal(a->how->grace_ns, INT64_C(10000000000));
	assert_int_equal(a->how->umask, -1);
	assert_int_equal(a->how->limit_cpu_s, -1);
	assert_true(a->how->idempotent);
	assert_null(a->how->role);
	assert_string_equal(a->how->cwd, "/tmp");
	assert_string_equal(variable(a, "B"), "run");
	assert_int_equal(op_of(f, "c")->kind, FLOW_INSTRUCTION);
	assert_string_equal(op_of(f, "e")->how->inherit_context, "c");
	assert_non_null(op_of(f, "f")->how->foreach_pointer);
	assert_int_equal(flow_find(f, "zebra"), SIZE_MAX);
	flow_free(f);
}

/* ---- Ways back ---- */

static struct json *
state_of(const struct flow *f)
{
	const char **ids = calloc(f->nops, sizeof(*ids));
	struct json *s = json_set(json_object(), "prompt", json_cstr(f->prompt));
	size_t i;

	assert_non_null(ids);
	for (i = 0; i < f->nops; i++)
		ids[i] = "0123456789abcdef0123456789abcdef";
	s = json_set(s, "plan", flow_plan(f, ids));
	s = json_set(s, "config", flow_config(f));
	assert_non_null(s);
	free(ids);
	return s;
}

static void
assert_json_equal(const struct json *a, const struct json *b)
{
	struct buf x = {0}, y = {0};

	if (!json_equal(a, b)) {
		json_write(&x, a);
		json_write(&y, b);
		assert_string_equal(buf_text(&x), buf_text(&y));
		fail();
	}
}

static void
test_flow_model__document_makes_the_same_flow(void **state)
{
	struct flow *f = read_yaml(all_keys), *g = NULL;
	struct json *x, *y, *doc = NULL;
	struct buf text = {0};
	struct err e = {0};

	(void)state;
	json_write(&text, f->document);
	assert_works(json_parse(buf_view(&text), NULL, &doc, NULL, &e), e);
	assert_works(flow_from_document(doc, &g, &e), e);
	check_top(g);
	check_b(g, op_of(g, "b"));
	x = state_of(f);
	y = state_of(g);
	assert_json_equal(x, y);
	json_unref(x);
	json_unref(y);
	json_unref(doc);
	buf_clear(&text);
	flow_free(f);
	flow_free(g);
}

static void
test_flow_model__json_and_yaml_are_one_model(void **state)
{
	struct flow *f = read_yaml(all_keys), *g;
	struct buf text = {0};

	(void)state;
	json_write_pretty(&text, f->document);
	g = read_text_as(buf_text(&text), true);
	assert_json_equal(f->document, g->document);
	check_b(g, op_of(g, "b"));
	buf_clear(&text);
	flow_free(f);
	flow_free(g);
}

static void
test_flow_model__state_makes_the_same_flow(void **state)
{
	struct flow *f = read_yaml(all_keys), *g = NULL;
	struct json *x = state_of(f), *y;
	struct err e = {0};

	(void)state;
	assert_works(flow_from_state(x, &g, &e), e);
	check_top(g);
	check_b(g, op_of(g, "b"));
	y = state_of(g);
	assert_json_equal(x, y);
	json_unref(x);
	json_unref(y);
	flow_free(f);
	flow_free(g);
}

static const struct {
	const char *plan;
	const char *message; /* NULL: is read */
} states[] = {
    {"[{\"agent_id\":\"a\",\"run\":\"x\",\"dep_indices\":[],\"later\":1}]", "no key \"later\""},
    {"[{\"agent_id\":\"a\",\"run\":\"x\",\"dep_indices\":[1]}]", "no index of the plan"},
    {"[{\"agent_id\":\"a\",\"run\":\"x\",\"dep_indices\":[0]}]", "it needs itself"},
    {"[{\"agent_id\":\"a\",\"run\":\"x\",\"dep_indices\":[1]},"
     "{\"agent_id\":\"b\",\"run\":\"x\",\"dep_indices\":[0]}]", "wait for each other: a -> b -> a"},
    {"[{\"agent_id\":\"a\",\"run\":\"x\"},{\"agent_id\":\"b\",\"run\":\"x\",\"dep_indices\":[],"
     "\"needs\":[\"a\"]}]", "name different operations"},
    {"[{\"id\":\"a\",\"run\":\"x\"}]", "has no \"agent_id\""},
    {"[{\"agent_id\":\"a\",\"run\":\"x\",\"foreach\":[1]}]", "\"foreach\" must be"},
    {"[]", "the plan is empty"},
    {"[{\"agent_id\":\"a\",\"dep_indices\":[],\"assignee\":\"gone\",\"task\":\"think\","
     "\"inputs\":[],\"exit_criteria\":null,\"modes\":{}}]", NULL},
    {"[{\"agent_id\":\"a\",\"run\":\"x\"},{\"agent_id\":\"b\",\"run\":\"x\",\"depends_on\":[\"a\"]}]",
     NULL},
};

static void
test_flow_model__states(void **state)
{
	struct json *s, *plan;
	struct flow *f;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		e = (struct err){0};
		assert_works(json_parse(slice_of(states[i].plan), NULL, &plan, NULL, &e), e);
		s = json_set(json_set(json_object(), "plan", plan), "config", json_object());
		if (states[i].message == NULL) {
			assert_works(flow_from_state(s, &f, &e), e);
			flow_free(f);
		} else {
			assert_fails(flow_from_state(s, &f, &e), ERR_REFUSED, e);
			if (strstr(e.msg, states[i].message) == NULL)
				assert_string_equal(e.msg, states[i].message);
		}
		json_unref(s);
	}
}

/* An entry of a predecessor is an instruction for a role that is looked for later. */
static void
test_flow_model__predecessors_plan(void **state)
{
	struct json *s, *plan = NULL;
	struct flow *f = NULL;
	struct err e = {0};

	(void)state;
	assert_works(json_parse(slice_of(states[8].plan), NULL, &plan, NULL, &e), e);
	s = json_set(json_set(json_object(), "plan", plan), "config", json_object());
	assert_works(flow_from_state(s, &f, &e), e);
	assert_int_equal(f->ops[0].kind, FLOW_INSTRUCTION);
	assert_string_equal(f->ops[0].text, "think");
	assert_string_equal(f->ops[0].how->assignee, "gone");
	assert_null(f->ops[0].how->role);
	assert_fails(flow_check_providers(f, NULL, NULL, NULL, NULL, &e), ERR_REFUSED, e);
	json_unref(s);
	flow_free(f);
}

/* ---- One-liners ---- */

static void
test_flow_model__command(void **state)
{
	char *argv[] = {(char[]){"/usr/bin/make"}, (char[]){"a\xff\xfe\xe2\x82\xac"}, NULL};
	char *none[] = {NULL};
	struct flow *f = NULL, *g = NULL;
	struct err e = {0};

	(void)state;
	assert_works(flow_from_command("m", argv, &f, &e), e);
	assert_string_equal(f->ops[0].id, "make");
	assert_string_equal(f->ops[0].argv[1], argv[1]);
	assert_works(flow_from_document(f->document, &g, &e), e);
	assert_string_equal(g->ops[0].argv[1], argv[1]);
	assert_works(flow_check_size(g, NULL, NULL, &e), e);
	flow_free(f);
	flow_free(g);
	assert_fails(flow_from_command(NULL, none, &f, &e), ERR_USAGE, e);
}

static void
test_flow_model__each(void **state)
{
	struct slice items[] = {slice_of("a b"), slice_of("\xff\xed\xb2\x80x"), slice_of("{{item}}")};
	struct flow_each each = {"flac \"$1\"", items, 3, "each"};
	struct flow *f = NULL, *g = NULL;
	struct json *s;
	struct err e = {0};
	size_t i;

	(void)state;
	assert_works(flow_from_each(&each, &f, &e), e);
	s = state_of(f);
	assert_works(flow_from_state(s, &g, &e), e);
	for (i = 0; i < 3; i++) {
		assert_string_equal(f->ops[i].item, items[i].data);
		assert_string_equal(g->ops[i].item, items[i].data);
		assert_string_equal(g->ops[i].text, "flac \"$1\"");
		assert_ptr_equal(f->ops[i].how, f->ops[0].how);
	}
	assert_string_equal(g->ops[2].id, "each.2");
	json_unref(s);
	flow_free(f);
	flow_free(g);
}

static void
test_flow_model__chain(void **state)
{
	char *commands[] = {(char[]){"make"}, (char[]){"make test"}, (char[]){"make deploy"}, NULL};
	struct flow *f = NULL;
	struct err e = {0};

	(void)state;
	assert_works(flow_from_chain("c", commands, &f, &e), e);
	assert_int_equal(f->nops, 3);
	assert_string_equal(f->ops[2].id, "chain.2");
	assert_int_equal(f->ops[2].needs[0].op, 1);
	flow_free(f);
}

static void
test_flow_model__override(void **state)
{
	struct flow_overrides o = {.name = "other", .concurrency = 3,
	    .timeout_ns = INT64_C(1500000000), .max_ops = 7, .fail_fast = true};
	struct flow *f = read_yaml("plan: [{id: a, run: x}]\n");
	struct err e = {0};

	(void)state;
	assert_works(flow_override(f, &o, &f, &e), e);
	assert_string_equal(f->name, "other");
	assert_int_equal(f->concurrency, 3);
	assert_int_equal(f->timeout_ns, INT64_C(1500000000));
	assert_int_equal(f->max_ops, 7);
	assert_true(f->fail_fast);
	flow_free(f);
}

/* ---- Limits and what is not acted on ---- */

static struct flow *
flow_of_many(int n, const char *top)
{
	struct buf text = {0};
	struct flow *f;
	int i;

	buf_printf(&text, "%splan:\n", top);
	for (i = 0; i < n; i++)
		buf_printf(&text, "  - {id: op%d, run: x}\n", i);
	f = read_yaml(buf_text(&text));
	buf_clear(&text);
	return f;
}

static void
test_flow_model__plans_above_200_are_asked_for(void **state)
{
	struct flow_overrides o = {.max_ops = 300};
	struct flow *f = flow_of_many(201, "");
	struct err e = {0};

	(void)state;
	assert_fails(flow_check_size(f, "f", NULL, &e), ERR_DOCUMENT, e);
	assert_string_equal(e.msg,
	    "f:2:3: the plan has 201 operations; more than 200 must be asked for");
	assert_works(flow_override(f, &o, &f, &e), e);
	assert_works(flow_check_size(f, "f", NULL, &e), e);
	flow_free(f);
	f = flow_of_many(200, "");
	assert_works(flow_check_size(f, "f", NULL, &e), e);
	flow_free(f);
	f = flow_of_many(201, "max_ops: 201\n");
	assert_works(flow_check_size(f, "f", NULL, &e), e);
	flow_free(f);
}

static void
test_flow_model__restart_may_say_what_becomes_of_failures(void **state)
{
	struct flow *f = read_yaml("restart: {failed: keep}\nplan: [{id: a, run: x}]\n");
	struct err e = {0};

	(void)state;
	assert_works(flow_check_size(f, "f", NULL, &e), e);
	flow_free(f);
	f = read_yaml("restart: {on: crash, failed: keep}\nplan: [{id: a, run: x}]\n");
	assert_works(flow_check_size(f, "f", NULL, &e), e);
	flow_free(f);
}

/* What is made of a state's flow reads back as the same flow. */
static void
test_flow_model__state_as_a_document(void **state)
{
	static const char text[] =
	    "{\"prompt\":\"p\",\"config\":{\"name\":\"n\",\"max_ops\":0,\"timeout\":null,\"roles\":"
	    "{\"r\":{\"provider\":\"sh\"}}},\"plan\":["
	    "{\"agent_id\":\"a\",\"dep_indices\":[],\"task\":\"t\",\"assignee\":\"r\",\"inputs\":[],"
	    "\"exit_criteria\":null,\"depends_on\":[],\"modes\":[]},"
	    "{\"agent_id\":\"b\",\"dep_indices\":[0],\"run\":\"x\",\"needs\":[{\"op\":\"a\",\"on\":\"failure\"}]},"
	    "{\"agent_id\":\"c.0\",\"dep_indices\":[0,1],\"run\":\"x\",\"cwd\":\"/t\"}]}";
	struct json *value = NULL, *doc;
	struct flow *f, *g;
	struct err e = {0};

	(void)state;
	assert_works(json_parse(slice_of(text), NULL, &value, NULL, &e), e);
	assert_works(flow_from_state(value, &f, &e), e);
	doc = flow_as_document(f);
	assert_non_null(doc);
	assert_works(flow_from_document(doc, &g, &e), e);
	assert_int_equal(g->nops, f->nops);
	assert_string_equal(g->prompt, "p");
	assert_int_equal(g->ops[0].kind, FLOW_INSTRUCTION);
	assert_string_equal(g->ops[0].text, "t");
	assert_int_equal(g->ops[1].needs[0].on, FLOW_ON_FAILURE);
	assert_int_equal(g->ops[2].nneeds, 2);
	flow_free(f);
	flow_free(g);
	json_unref(doc);
	json_unref(value);
}

static void
test_flow_model__items_do_not_count(void **state)
{
	struct buf text = {0};
	struct flow *f;
	struct err e = {0};
	int i;

	(void)state;
	buf_puts(&text, "plan:\n  - id: a\n    run: x\n    foreach: [0");
	for (i = 0; i < 500; i++)
		buf_printf(&text, ", %d", i);
	buf_puts(&text, "]\n");
	f = read_yaml(buf_text(&text));
	assert_int_equal(f->nops, 501);
	assert_works(flow_check_size(f, "f", NULL, &e), e);
	buf_clear(&text);
	flow_free(f);
}

static void
test_flow_model__dropped_document(void **state)
{
	struct flow *f = read_yaml(all_keys);

	(void)state;
	flow_drop_document(f);
	assert_null(f->document);
	check_b(f, op_of(f, "b"));
	flow_free(f);
}

/* The page, to be freed; NULL when the tests run elsewhere. */
static char *
read_page(const char *name)
{
	FILE *page = fopen(name, "r");
	char *text;
	size_t len;

	if (page == NULL)
		return NULL;
	text = calloc(1, 1 << 20);
	assert_non_null(text);
	len = fread(text, 1, (1 << 20) - 1, page);
	assert_true(len > 0);
	assert_int_equal(fclose(page), 0);
	return text;
}

static void
each_key_is_in(const struct key_table *t, const char *text, const char *where)
{
	char word[80];
	size_t i;

	for (i = 0; i < t->nkeys; i++) {
		if (t->keys[i].flags & (KEY_STATE | KEY_OWN))
			continue;
		snprintf(word, sizeof(word), "Ic %s", t->keys[i].name);
		if (strstr(text, word) == NULL)
			assert_string_equal(word, where);
	}
}

/* The manuals describe each key of the tables. */
static void
test_flow_model__manual_has_every_key(void **state)
{
	char *flow = read_page("man/flowsup-flow.5"), *commands = read_page("man/flowsup.1");
	size_t kind;

	(void)state;
	if (flow == NULL || commands == NULL)
		skip();
	for (kind = 0; kind < OBJECTS; kind++)
		if (kind == OBJECT_CONFIG || kind == OBJECT_KEEP)
			each_key_is_in(&key_tables[kind], commands, "described in flowsup(1)");
		else
			each_key_is_in(&key_tables[kind], flow, "described in flowsup-flow(5)");
	free(flow);
	free(commands);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow_model__every_key),
	    cmocka_unit_test(test_flow_model__document_makes_the_same_flow),
	    cmocka_unit_test(test_flow_model__json_and_yaml_are_one_model),
	    cmocka_unit_test(test_flow_model__state_makes_the_same_flow),
	    cmocka_unit_test(test_flow_model__states),
	    cmocka_unit_test(test_flow_model__predecessors_plan),
	    cmocka_unit_test(test_flow_model__command),
	    cmocka_unit_test(test_flow_model__each),
	    cmocka_unit_test(test_flow_model__chain),
	    cmocka_unit_test(test_flow_model__override),
	    cmocka_unit_test(test_flow_model__plans_above_200_are_asked_for),
	    cmocka_unit_test(test_flow_model__restart_may_say_what_becomes_of_failures),
    cmocka_unit_test(test_flow_model__state_as_a_document),
    cmocka_unit_test(test_flow_model__items_do_not_count),
	    cmocka_unit_test(test_flow_model__dropped_document),
	    cmocka_unit_test(test_flow_model__manual_has_every_key),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
