/* The writer: what it admits and recovers, in which order it is acknowledged, and what it starts over. */
#include "ckpt_world.h"

static const char *const contexts[] = {
	"{'a':1}",
	"{'a':1.0}",
	"{'a':true}",
	"{'a':null,'b':{'c':[]}}",
	"{'b':{'c':[1,2,3]}}",
	"{'b':{'c':[1,9,8,2,3,4]}}",
	"{'b':{'c':[3]}}",
	"{'':{'/':{'~':1,'~1':2,'-':[{'x':'\\u00e9\\ud800'}]}}}",
	"{'':{'/':{'~':1.5,'-':[{'x':'\\u00e9','y':null},0]}}}",
	"{}",
	"{'version':2,'generation':'g','ops':{},'flow_context':{'patch':[]}}",
};

static void
test_writer__every_context_is_recovered(void **unused)
{
	struct world s;
	size_t i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	world_check(&s);
	for (i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
		world_admit(&s, CKPT_OP, fixture_entry("op-0", contexts[i]), fixture_json(contexts[i]));
		world_check(&s);
		world_admit(&s, CKPT_SPAWNED, fixture_spawned(i % 2 ? "n1" : "n2", "completed", "x"), NULL);
		world_check(&s);
	}
	world_end(&s);
}

static void
test_writer__unchanged_context_is_an_empty_patch(void **unused)
{
	struct world s;
	char *text;

	(void)unused;
	world_make(&s);
	world_open(&s);
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "x"), json_object());
	world_check(&s);
	text = test_file_read(s.fx.run_fd, CKPT_JOURNAL);
	assert_non_null(strstr(text, "\"flow_context\":{\"patch\":[]}}\n"));
	free(text);
	world_admit(&s, CKPT_OP, fixture_entry("op-1", "x"), NULL);
	world_check(&s);
	text = test_file_read(s.fx.run_fd, CKPT_JOURNAL);
	assert_non_null(strstr(text, "\"flow_context\":null}\n"));
	free(text);
	world_end(&s);
}

static struct json *
nested(unsigned levels)
{
	struct json *v = json_object();

	while (--levels > 0)
		v = json_set(json_object(), "x", v);
	return v;
}

/* The record as flowsup-checkpoint(5) shows it, byte for byte. */
static void
test_writer__line_is_the_documented_one(void **unused)
{
	struct world s;
	struct ckpt_progress p;
	struct buf want = {0};
	char *text;

	(void)unused;
	world_make(&s);
	s.model = json_set(s.model, "flow_context", fixture_json("{'nested':{'entries':['w']}}"));
	world_open(&s);
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "ok"),
	    fixture_json("{'nested':{'entries':['w','x']}}"));
	world_flush(&s);
	p = ckpt_progress(s.w);
	buf_printf(&want, "{\"version\":3,\"generation\":\"%s\",\"seq\":1,\"kind\":\"op\",\"entry\":"
	    "{\"agent_id\":\"op-0\",\"status\":\"completed\",\"response\":\"ok\"},\"flow_context\":"
	    "{\"patch\":[{\"op\":\"add\",\"path\":\"/nested/entries/-\",\"value\":\"x\"}]}}\n",
	    p.generation);
	text = test_file_read(s.fx.run_fd, CKPT_JOURNAL);
	assert_string_equal(text, buf_text(&want));
	free(text);
	buf_clear(&want);
	world_end(&s);
}

static void
test_writer__unknown_members_of_entries_are_kept(void **unused)
{
	struct world s;

	(void)unused;
	world_make(&s);
	s.o.compact_records = 1;
	s.o.literal_limits = true;
	world_open(&s);
	world_admit(&s, CKPT_SPAWNED, fixture_json("{'node_id':'n','status':'pending','response':null,"
	    "'operation':'run','escalated_from':null,'later':{'x':[1.0]},'independent':true}"), NULL);
	world_check(&s);
	world_admit(&s, CKPT_OP, fixture_json("{'agent_id':'op-1','status':'failed','response':null,"
	    "'error':{'class':'exit','message':'m','code':3},'strange':[]}"), NULL);
	world_check(&s);
	world_end(&s);
}

/* ---- Admission ---- */

static void
test_writer__what_cannot_be_admitted(void **unused)
{
	static const struct {
		enum ckpt_kind kind;
		const char *entry, *context;
	} cases[] = {
		{CKPT_OP, NULL, NULL},
		{CKPT_OP, "[]", NULL},
		{CKPT_OP, "{'status':'completed','response':1}", NULL},
		{CKPT_OP, "{'agent_id':'','status':'completed','response':1}", NULL},
		{CKPT_OP, "{'agent_id':3,'status':'completed','response':1}", NULL},
		{CKPT_OP, "{'agent_id':'a','status':'pending','response':null}", NULL},
		{CKPT_OP, "{'agent_id':'a','status':'completed'}", NULL},
		{CKPT_OP, "{'agent_id':'a','status':'completed','response':1,'attempts':1.0}", NULL},
		{CKPT_OP, "{'agent_id':'a','node_id':'n','status':'completed','response':1}", NULL},
		{CKPT_OP, "{'agent_id':'a','status':'completed','response':1}", "[]"},
		{CKPT_SPAWNED, "{'agent_id':'a','status':'completed','response':1}", NULL},
		{CKPT_SPAWNED, "{'node_id':'a','status':'pending','response':1}", NULL},
		{CKPT_SPAWNED, "{'node_id':'a','status':'done','response':1}", NULL},
		{CKPT_PLAN, NULL, NULL},
		{CKPT_PLAN, "{'agent_id':'a'}", NULL},
		{CKPT_PLAN, "[3]", NULL},
		{CKPT_PLAN, "[{'agent_id':'a','strange':1}]", NULL},
		{CKPT_CONTEXT, NULL, NULL},
		{CKPT_CONTEXT, NULL, "3"},
		{CKPT_CONTEXT, "{'agent_id':'a','status':'completed','response':1}", "{}"},
	};
	struct world s;
	struct err e = {0};
	uint64_t ticket = 77;
	size_t i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_fails(ckpt_admit(s.w, cases[i].kind,
		    cases[i].entry != NULL ? fixture_json(cases[i].entry) : NULL,
		    cases[i].context != NULL ? fixture_json(cases[i].context) : NULL, &ticket, &e),
		    ERR_DOCUMENT, e);
		assert_int_equal(ticket, 77);
	}
	/* A number that is not finite is no value at all. */
	assert_null(json_real(1e308 * 10));
	world_check(&s);
	assert_int_equal(ckpt_progress(s.w).admitted, 0);
	world_end(&s);
}

/* What could not be read again is refused before it gets a place, and nothing else is harmed. */
static void
test_writer__nesting_has_a_limit(void **unused)
{
	struct world s;
	struct json *entry;
	struct err e = {0};
	uint64_t ticket;

	(void)unused;
	world_make(&s);
	world_open(&s);
	entry = json_set(fixture_entry("op-0", "r"), "response", nested(CKPT_MAX_RESPONSE_DEPTH + 1));
	assert_fails(ckpt_admit(s.w, CKPT_OP, entry, NULL, &ticket, &e), ERR_LIMIT, e);
	assert_non_null(strstr(e.msg, "CKPT_MAX_ENTRY_DEPTH"));
	assert_fails(ckpt_admit(s.w, CKPT_CONTEXT, NULL, nested(CKPT_MAX_CONTEXT_DEPTH + 1), &ticket,
			 &e), ERR_LIMIT, e);
	assert_non_null(strstr(e.msg, "CKPT_MAX_CONTEXT_DEPTH"));
	assert_int_equal(ckpt_progress(s.w).admitted, 0);
	entry = json_set(fixture_entry("op-0", "r"), "response", nested(CKPT_MAX_RESPONSE_DEPTH));
	world_admit(&s, CKPT_OP, entry, nested(CKPT_MAX_CONTEXT_DEPTH));
	world_admit(&s, CKPT_CONTEXT, NULL, nested(CKPT_MAX_CONTEXT_DEPTH));
	world_check(&s);
	world_end(&s);
}

/* What a planner adds: at the end of the plan, by a base, and everything else stays. */
static void
test_writer__a_plan_grows(void **unused)
{
	static const char more[] = "[{'agent_id':'p','dep_indices':[0],'instruction':'x'},"
				   "{'agent_id':'q','dep_indices':[3],'instruction':'y'}]";
	struct world s;
	struct err e = {0};
	struct json *plan, *added;
	uint64_t ticket;

	(void)unused;
	world_make(&s);
	world_open(&s);
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), fixture_json("{'a':1}"));
	world_flush(&s);
	assert_works(ckpt_admit(s.w, CKPT_PLAN, fixture_json(more), NULL, &ticket, &e), e);
	plan = json_ref(json_get(s.model, "plan"));
	added = fixture_json(more);
	plan = json_append(plan, json_ref(json_at(added, 0)));
	plan = json_append(plan, json_ref(json_at(added, 1)));
	json_unref(added);
	s.model = json_set(s.model, "plan", plan);
	world_check(&s);
	assert_int_equal(ckpt_progress(s.w).bases, 2);
	world_admit(&s, CKPT_OP, fixture_entry("p", "r"), NULL);
	world_check(&s);
	world_end(&s);
}

static void
test_writer__acknowledgements_come_in_order(void **unused)
{
	struct world s;
	struct ckpt_ack ack;
	uint64_t n = 0;
	char name[16];
	int i;

	(void)unused;
	world_make(&s);
	s.o.compact_records = 4;
	s.o.literal_limits = true;
	world_open(&s);
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "x%d", i);
		if (i % 3 == 1)
			world_admit(&s, CKPT_SPAWNED, fixture_spawned(name, "completed", "r"), NULL);
		else if (i % 7 == 6)
			world_admit(&s, CKPT_CONTEXT, NULL, fixture_json("{'k':[1]}"));
		else
			world_admit(&s, CKPT_OP, fixture_entry(name, "r"), NULL);
		if (i % 5 == 0)
			world_flush(&s);
	}
	world_check(&s);
	assert_true(world_event_waits(&s));
	while (ckpt_take_ack(s.w, &ack)) {
		assert_int_equal(ack.ticket, ++n);
		assert_int_equal(strlen(ack.generation), 32);
		snprintf(name, sizeof(name), "x%d", (int)n - 1);
		if (ack.kind == CKPT_CONTEXT)
			assert_null(ack.identity);
		else
			assert_string_equal(json_cstr_of(ack.identity), name);
		json_unref(ack.identity);
	}
	assert_int_equal(n, 20);
	assert_false(world_event_waits(&s));
	world_end(&s);
}

/* ---- Start ---- */

static void
test_writer__start_over_something_is_refused(void **unused)
{
	struct world s;
	struct err e = {0};
	char *text;

	(void)unused;
	world_make(&s);
	put_pair(s.fx.run_fd, "{}", NULL);
	assert_fails(ckpt_writer_open(&s.o, s.model, &s.w, &e), ERR_IDENTITY, e);
	text = test_file_read(s.fx.run_fd, CKPT_BASE);
	assert_string_equal(text, "{}");
	free(text);
	put_pair(s.fx.run_fd, NULL, "x\n");
	assert_fails(ckpt_writer_open(&s.o, s.model, &s.w, &e), ERR_IDENTITY, e);
	/* What a worker left that died before its base existed is no obstacle. */
	put_pair(s.fx.run_fd, NULL, "");
	world_open(&s);
	world_check(&s);
	world_end(&s);
}

static void
test_writer__bad_initial_state(void **unused)
{
	struct world s;
	struct err e = {0};

	(void)unused;
	world_make(&s);
	s.model = json_set(s.model, "ops", json_array());
	assert_fails(ckpt_writer_open(&s.o, s.model, &s.w, &e), ERR_DOCUMENT, e);
	s.model = json_set(s.model, "ops", json_object());
	s.model = json_set(s.model, "stray", json_object());
	assert_fails(ckpt_writer_open(&s.o, s.model, &s.w, &e), ERR_DOCUMENT, e);
	world_end(&s);
}

/* ---- Version 2 ---- */

static struct json *
v2_of(struct json *model)
{
	struct json *plan = json_array();
	struct json_iter it = json_iterate(json_get(model, "plan"));
	const struct json *entry;

	while (json_next(&it, NULL, &entry))
		plan = json_append(plan, json_remove(json_ref(entry), slice_of("node_id")));
	return json_set(json_ref(model), "plan", plan);
}

static void
test_writer__version_2_is_the_whole_state_each_time(void **unused)
{
	struct world s;
	struct json *want;
	struct stat st;
	int i;

	(void)unused;
	world_make(&s);
	s.o.version = 2;
	world_open(&s);
	for (i = 0; i < 5; i++) {
		world_admit(&s, CKPT_OP, fixture_entry(i % 2 ? "op-0" : "op-1", "r"),
		    fixture_json(contexts[i]));
		world_flush(&s);
		want = v2_of(s.model);
		assert_loads(s.fx.run_fd, want, CKPT_CLEAN);
		json_unref(want);
	}
	assert_int_equal(fstatat(s.fx.run_fd, CKPT_JOURNAL, &st, 0), -1);
	assert_int_equal(world_bases(&s), 6);
	/* An entry with a parent can only be read with the plan's node ids: now they are there. */
	world_admit(&s, CKPT_SPAWNED, json_set(fixture_spawned("n", "completed", "r"), "parent_id",
	    json_printf("%032x", 0)), NULL);
	world_flush(&s);
	assert_loads(s.fx.run_fd, s.model, CKPT_CLEAN);
	world_end(&s);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_writer__every_context_is_recovered),
	cmocka_unit_test(test_writer__unchanged_context_is_an_empty_patch),
	cmocka_unit_test(test_writer__line_is_the_documented_one),
	cmocka_unit_test(test_writer__unknown_members_of_entries_are_kept),
	cmocka_unit_test(test_writer__what_cannot_be_admitted),
	cmocka_unit_test(test_writer__nesting_has_a_limit),
	cmocka_unit_test(test_writer__a_plan_grows),
	cmocka_unit_test(test_writer__acknowledgements_come_in_order),
	cmocka_unit_test(test_writer__start_over_something_is_refused),
	cmocka_unit_test(test_writer__bad_initial_state),
	cmocka_unit_test(test_writer__version_2_is_the_whole_state_each_time),
};

TEST_MAIN("checkpoint writer", tests)
