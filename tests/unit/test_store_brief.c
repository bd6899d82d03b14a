/* A brief list reads less of each row, and nothing that a table shows otherwise. */
#include "test_home.h"

#include "flowsup/json.h"

struct brief {
	struct test_home *home;
	unsigned rows, plain;
};

static int
compare(void *arg, const struct session *s)
{
	struct brief *b = arg;
	struct session whole;
	struct err e = {0};

	assert_works(session_read(b->home->store, s->run_id, &whole, &e), e);
	assert_int_equal(session_is_plain(s), session_is_plain(&whole));
	assert_string_equal(s->name, whole.name);
	assert_string_equal(s->resumed_as_run, whole.resumed_as_run);
	assert_int_equal(s->status, whole.status);
	assert_true(s->created_at == whole.created_at && s->started_at == whole.started_at &&
	    s->ended_at == whole.ended_at && s->done == whole.done && s->total == whole.total);
	b->rows++;
	if (session_is_plain(s)) {
		b->plain++;
	} else {
		assert_string_equal(s->reason_code, whole.reason_code);
		assert_string_equal(s->reason, whole.reason);
		assert_int_equal(s->restarts_left, whole.restarts_left);
		assert_true(json_equal(s->metadata, whole.metadata));
	}
	session_clear(&whole);
	return 0;
}

/* A run that came to this end. */
static void
add_ended(struct test_home *t, enum run_status status, const char *reason, struct session *out)
{
	test_home_running(t, "flow", out);
	test_home_move(t, out->run_id, status, reason);
}

static void
test_store__a_brief_list_says_the_same(void **state)
{
	const struct session_filter f = {.brief = true};
	struct brief b = {.home = *state};
	struct session run[5];
	struct err e = {0};
	size_t i;

	add_ended(b.home, STATUS_COMPLETED, "run.completed.all", &run[0]);
	add_ended(b.home, STATUS_CRASHED, "run.crashed.signal", &run[1]);
	test_home_run(b.home, "flow", run[1].session_id, &run[2]); /* queued; run[1] is plain now */
	add_ended(b.home, STATUS_CRASHED, "run.crashed.signal", &run[3]);
	assert_works(session_metadata(b.home->store, run[3].run_id, "note", json_cstr("kept"), &e), e);
	test_home_running(b.home, "flow", &run[4]);
	assert_works(session_list(b.home->store, &f, compare, &b, &e), e);
	assert_int_equal(b.rows, 5);
	assert_int_equal(b.plain, 2);
	for (i = 0; i < 5; i++)
		session_clear(&run[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_store__a_brief_list_says_the_same, test_home_setup, test_home_teardown),
};
TEST_MAIN("store_brief", tests)
