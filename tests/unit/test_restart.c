#include "test.h"

#include "supervisor/daemon.h"

static void
test_restart__pauses_grow_to_a_minute(void **state)
{
	int64_t before = 0, pause;
	int i;

	(void)state;
	assert_int_equal(restart_pause_ns(0), INT64_C(1000000000));
	assert_int_equal(restart_pause_ns(1), INT64_C(2000000000));
	for (i = 0; i < 100; i++) {
		pause = restart_pause_ns(i);
		assert_true(pause >= before && pause <= INT64_C(60000000000));
		before = pause;
	}
	assert_int_equal(before, INT64_C(60000000000));
	assert_int_equal(restart_pause_ns(INT64_MAX), INT64_C(60000000000));
}

static void
test_restart__quick_deaths(void **state)
{
	struct session s = {.created_at = 100, .started_at = 110, .ended_at = 119};

	(void)state;
	assert_true(restart_was_quick(&s));
	s.ended_at = 121;
	assert_false(restart_was_quick(&s));
	s.started_at = 0; /* it never ran */
	s.ended_at = 105;
	assert_true(restart_was_quick(&s));
	s.ended_at = 50; /* the clock was set back: that says nothing */
	assert_false(restart_was_quick(&s));
}

static void
test_restart__what_notify_is_told(void **state)
{
	struct session s = {.run_id = "20260101T000000-abcdef",
	    .status = STATUS_CRASHED,
	    .restarts_left = 1,
	    .done = 1,
	    .total = 2};
	struct json *o;

	(void)state;
	s.name = strdup("night\033ly");
	s.reason_code = strdup("run.crashed.signal     ");
	strcpy(s.reason_code, "run.crashed.signal"); /* with room for another */
	s.reason = strdup("the worker was killed by SIGKILL");
	o = notify_payload("/home/state", &s, "waiting:op.1", 12.5);
	assert_string_equal(json_cstr_of(json_get(o, "event")), "waiting");
	assert_string_equal(json_cstr_of(json_get(o, "op")), "op.1");
	assert_true(json_is_true(json_get(o, "restarting")));
	assert_string_equal(json_cstr_of(json_get(o, "resume_command")),
	    "flowsup resume --home /home/state 20260101T000000-abcdef");
	json_unref(o);
	o = notify_payload("/home/state", &s, "storage:7", 12.5);
	assert_string_equal(json_cstr_of(json_get(o, "event")), "storage");
	assert_int_equal(json_type(json_get(o, "op")), JSON_NULL);
	assert_int_equal(json_type(json_get(o, "keep_command")), JSON_NULL);
	json_unref(o);
	s.status = STATUS_TIMED_OUT;
	strcpy(s.reason_code, "run.timed_out.deadline");
	s.metadata = json_set(json_object(), META_FAILURES, json_bool(true));
	o = notify_payload("/home/state", &s, "timed_out", 12.5);
	assert_string_equal(json_cstr_of(json_get(o, "keep_command")),
	    "flowsup resume --home /home/state 20260101T000000-abcdef --keep-failed");
	json_unref(o);
	session_clear(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_restart__pauses_grow_to_a_minute),
    cmocka_unit_test(test_restart__quick_deaths),
    cmocka_unit_test(test_restart__what_notify_is_told),
};

TEST_MAIN("restart", tests)
