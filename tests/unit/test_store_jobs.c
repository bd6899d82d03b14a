/* What belongs to jobs, in the database: queues, keys, restarts, notices, removal. */
#include "test_home.h"

static void
new_run(struct test_home *t, struct session_new *n, struct session *out)
{
	char run_id[RUN_ID_TEXT], session_id[UUID_TEXT], invocation_id[INVOCATION_ID_TEXT];
	struct err e = {0};

	assert_works(run_id_make(run_id, &e), e);
	assert_works(uuid_make(session_id, &e), e);
	assert_works(invocation_id_make(invocation_id, &e), e);
	n->run_id = run_id;
	n->session_id = session_id;
	n->invocation_id = invocation_id;
	n->kind = "flow";
	n->name = "job";
	assert_works(session_insert(t->store, n, &e), e);
	assert_works(session_read(t->store, run_id, out, &e), e);
}

static bool
has_slot(struct test_home *t, const struct session *s)
{
	struct queue_standing at;
	struct err e = {0};

	assert_works(queue_standing(t->store, s, &at, &e), e);
	return !at.no_slot;
}

static void
start(struct test_home *t, const struct session *s)
{
	struct err e = {0};
	bool moved = false;

	assert_works(session_starting(t->store, s->run_id, "here 1 1", &moved, &e), e);
	assert_true(moved);
}

static void
test_store_jobs__slots_in_order(void **state)
{
	struct test_home *t = *state;
	struct session_new n = {.queue = "builds"};
	struct session a, b, c;
	struct err e = {0};

	new_run(t, &n, &a);
	new_run(t, &n, &b);
	new_run(t, &n, &c);
	assert_true(has_slot(t, &c)); /* no limit yet */
	assert_works(queue_set(t->store, "builds", 2, &e), e);
	assert_true(has_slot(t, &a));
	assert_true(has_slot(t, &b));
	assert_false(has_slot(t, &c)); /* the two before it come first */
	start(t, &b);
	assert_true(has_slot(t, &a));
	assert_false(has_slot(t, &c));
	start(t, &a);
	assert_false(has_slot(t, &c));
	test_home_move(t, b.run_id, STATUS_FAILED, "run.failed.start");
	assert_true(has_slot(t, &c));
	session_clear(&a);
	session_clear(&b);
	session_clear(&c);
}

static void
test_store_jobs__a_crash_that_is_answered_keeps_slot_and_key(void **state)
{
	struct test_home *t = *state;
	struct session_new n = {.queue = "one", .unique_key = "k", .restarts_left = 1};
	struct session_new other = {.queue = "one"};
	struct session_new same = {.unique_key = "k", .behind = true};
	struct session a, b, c;
	struct queue_standing at;
	char blocker[RUN_ID_TEXT] = "";
	struct err e = {0};
	bool any = false, gave_up = false;

	assert_works(queue_set(t->store, "one", 1, &e), e);
	new_run(t, &n, &a);
	new_run(t, &other, &b);
	start(t, &a);
	test_home_move(t, a.run_id, STATUS_RUNNING, "run.running.started");
	test_home_move(t, a.run_id, STATUS_CRASHED, "run.crashed.signal");
	session_clear(&a);
	assert_false(has_slot(t, &b));
	same.blocker = blocker;
	new_run(t, &same, &c);
	assert_string_not_equal(blocker, "");
	assert_works(queue_standing(t->store, &c, &at, &e), e);
	assert_string_equal(at.blocker, blocker);
	assert_works(session_read(t->store, blocker, &a, &e), e);
	assert_true(session_is_restarting(&a));
	assert_works(store_has_work(t->store, &any, &e), e);
	assert_true(any);
	assert_works(session_give_up(t->store, a.run_id, "enough", &gave_up, &e), e);
	assert_true(gave_up);
	assert_true(has_slot(t, &b));
	assert_works(queue_standing(t->store, &c, &at, &e), e);
	assert_string_equal(at.blocker, "");
	assert_works(session_give_up(t->store, a.run_id, NULL, &gave_up, &e), e);
	assert_false(gave_up);
	session_clear(&a);
	session_clear(&b);
	session_clear(&c);
}

/* Whoever gave it up was told that none follows, however far one was. */
static void
test_store_jobs__a_job_that_was_given_up_gets_no_automatic_resume(void **state)
{
	struct test_home *t = *state;
	char run_id[RUN_ID_TEXT], session_id[UUID_TEXT];
	struct session_new n = {.restarts_left = 3};
	struct session_new next = {
	    .run_id = run_id, .session_id = session_id, .kind = "flow", .name = "job", .restarts_done = 1};
	bool gave_up = false;
	struct err e = {0};
	struct session a;

	new_run(t, &n, &a);
	start(t, &a);
	test_home_move(t, a.run_id, STATUS_RUNNING, "run.running.started");
	test_home_move(t, a.run_id, STATUS_CRASHED, "run.crashed.signal");
	assert_works(session_give_up(t->store, a.run_id, "enough", &gave_up, &e), e);
	assert_true(gave_up);
	next.resumed_from = a.session_id;
	assert_works(run_id_make(run_id, &e), e);
	assert_works(uuid_make(session_id, &e), e);
	assert_int_equal(session_insert(t->store, &next, &e), -1);
	assert_int_equal(e.code, ERR_REFUSED);
	assert_non_null(strstr(e.msg, a.run_id));
	err_clear(&e);
	/* A person's is another matter. */
	next.restarts_done = 0;
	assert_works(session_insert(t->store, &next, &e), e);
	session_clear(&a);
}

static const char *
blocker_of(struct test_home *t, const struct session *s)
{
	static struct queue_standing at;
	struct err e = {0};

	assert_works(queue_standing(t->store, s, &at, &e), e);
	return at.blocker;
}

/* Of all that wait: who would be started now; a run that its key holds is not among them. */
static int
count_startable(void *count, const char *run_id)
{
	(void)run_id;
	++*(unsigned *)count;
	return 0;
}

static unsigned
startable(struct test_home *t)
{
	unsigned count = 0;
	struct err e = {0};

	assert_works(queue_startable(t->store, count_startable, &count, &e), e);
	return count;
}

/* One that is known to wait for its key is not looked at before that is free. */
static void
hold_by_key(struct test_home *t, const struct session *s)
{
	test_home_move(t, s->run_id, STATUS_QUEUED, "run.queued.unique");
}

static void
crash_and_resume(struct test_home *t, const struct session *s, int64_t restarts_done, struct session *out)
{
	struct session_new n = {.resumed_from = s->session_id, .restarts_done = restarts_done};

	start(t, s);
	test_home_move(t, s->run_id, STATUS_RUNNING, "run.running.started");
	test_home_move(t, s->run_id, STATUS_CRASHED, "run.crashed.signal");
	new_run(t, &n, out);
	assert_string_equal(out->origin, s->origin);
	assert_string_equal(out->unique_key, s->unique_key);
}

static void
test_store_jobs__an_automatic_resume_has_the_key_before_those_that_wait(void **state)
{
	struct test_home *t = *state;
	struct session_new n = {.unique_key = "k", .behind = true, .restarts_left = 2};
	struct session a, b, c, resumed;

	new_run(t, &n, &a);
	new_run(t, &n, &b);
	hold_by_key(t, &b);
	crash_and_resume(t, &a, 1, &resumed);
	new_run(t, &n, &c);
	hold_by_key(t, &c);
	assert_string_equal(blocker_of(t, &resumed), "");
	assert_string_equal(blocker_of(t, &b), resumed.run_id);
	assert_string_not_equal(blocker_of(t, &c), "");
	hold_by_key(t, &resumed);
	assert_int_equal(startable(t), 1);
	start(t, &resumed);
	assert_string_equal(blocker_of(t, &b), resumed.run_id);
	assert_int_equal(startable(t), 0);
	test_home_move(t, resumed.run_id, STATUS_RUNNING, "run.running.started");
	test_home_move(t, resumed.run_id, STATUS_COMPLETED, "run.completed.all");
	assert_string_equal(blocker_of(t, &b), "");
	assert_string_equal(blocker_of(t, &c), b.run_id);
	assert_int_equal(startable(t), 1);
	session_clear(&a);
	session_clear(&b);
	session_clear(&c);
	session_clear(&resumed);
}

static void
test_store_jobs__a_resume_by_hand_has_the_key_behind_those_that_wait(void **state)
{
	struct test_home *t = *state;
	struct session_new n = {.unique_key = "k", .behind = true, .restarts_left = 2};
	struct session a, b, resumed, again;

	new_run(t, &n, &a);
	new_run(t, &n, &b);
	crash_and_resume(t, &a, 0, &resumed);
	assert_string_equal(blocker_of(t, &b), "");
	assert_string_equal(blocker_of(t, &resumed), b.run_id);
	crash_and_resume(t, &b, 1, &again);
	assert_string_equal(blocker_of(t, &again), "");
	assert_string_equal(blocker_of(t, &resumed), again.run_id);
	start(t, &again);
	assert_string_equal(blocker_of(t, &resumed), again.run_id);
	session_clear(&a);
	session_clear(&b);
	session_clear(&resumed);
	session_clear(&again);
}

static void
test_store_jobs__one_of_a_key(void **state)
{
	struct test_home *t = *state;
	char blocker[RUN_ID_TEXT] = "", run_id[RUN_ID_TEXT], session_id[UUID_TEXT], call[INVOCATION_ID_TEXT];
	struct session_new n = {.unique_key = "nightly"};
	struct session_new again = {.run_id = run_id,
	    .session_id = session_id,
	    .invocation_id = call,
	    .kind = "flow",
	    .name = "again",
	    .unique_key = "nightly",
	    .blocker = blocker};
	struct session a;
	struct err e = {0};

	new_run(t, &n, &a);
	assert_works(run_id_make(run_id, &e), e);
	assert_works(uuid_make(session_id, &e), e);
	assert_works(invocation_id_make(call, &e), e);
	assert_fails(session_insert(t->store, &again, &e), ERR_RUNNING, e);
	assert_string_equal(blocker, a.run_id);
	test_home_move(t, a.run_id, STATUS_CANCELLED, "run.cancelled.queued");
	assert_works(session_insert(t->store, &again, &e), e);
	assert_string_equal(blocker, "");
	session_clear(&a);
}

/* ---- Notices ---- */

struct told {
	unsigned count;
	char last[128];
};

static int
count_notice(void *arg, const struct notice *n)
{
	struct told *told = arg;

	told->count++;
	snprintf(told->last, sizeof(told->last), "%s", n->event);
	return 0;
}

static struct told
notices(struct test_home *t, const char *run_id)
{
	struct told told = {0};
	struct err e = {0};

	assert_works(notice_list(t->store, run_id, count_notice, &told, &e), e);
	return told;
}

static void
test_store_jobs__notices_come_with_what_they_tell(void **state)
{
	struct test_home *t = *state;
	struct session_new problems = {.notify = "problems"}, all = {.notify = "all"}, none = {0};
	struct session a, b, c;
	struct json *list;
	struct err e = {0};
	bool claimed = false;

	new_run(t, &problems, &a);
	new_run(t, &all, &b);
	new_run(t, &none, &c);
	start(t, &a);
	start(t, &b);
	start(t, &c);
	test_home_move(t, a.run_id, STATUS_RUNNING, "run.running.started");
	test_home_move(t, a.run_id, STATUS_RUNNING, "run.running.storage");
	assert_int_equal(notices(t, a.run_id).count, 1);
	assert_int_equal(strncmp(notices(t, a.run_id).last, "storage:", 8), 0);
	list = json_append(json_array(), json_set(json_object(), "op", json_cstr("gate")));
	assert_works(session_metadata(t->store, a.run_id, "waiting", json_ref(list), &e), e);
	assert_works(session_metadata(t->store, a.run_id, "waiting", list, &e), e);
	assert_int_equal(notices(t, a.run_id).count, 2);
	test_home_move(t, a.run_id, STATUS_COMPLETED, "run.completed.all");
	assert_int_equal(notices(t, a.run_id).count, 2);
	test_home_move(t, b.run_id, STATUS_FAILED, "run.failed.start");
	test_home_move(t, c.run_id, STATUS_FAILED, "run.failed.start");
	assert_string_equal(notices(t, b.run_id).last, "failed");
	assert_int_equal(notices(t, c.run_id).count, 0);
	assert_int_equal(notices(t, NULL).count, 3);
	assert_works(notice_claim(t->store, b.run_id, "failed", &claimed, &e), e);
	assert_true(claimed);
	assert_works(notice_claim(t->store, b.run_id, "failed", &claimed, &e), e);
	assert_false(claimed);
	assert_int_equal(notices(t, NULL).count, 2);
	session_clear(&a);
	session_clear(&b);
	session_clear(&c);
}

static void
test_store_jobs__only_what_is_over_is_removed(void **state)
{
	struct test_home *t = *state;
	struct session_new n = {0};
	struct session a, gone;
	struct err e = {0};

	new_run(t, &n, &a);
	assert_fails(session_remove(t->store, a.run_id, &e), ERR_REFUSED, e);
	test_home_move(t, a.run_id, STATUS_CANCELLED, "run.cancelled.queued");
	assert_works(session_remove(t->store, a.run_id, &e), e);
	assert_fails(session_read(t->store, a.run_id, &gone, &e), ERR_NOTFOUND, e);
	err_clear(&e);
	assert_works(session_remove(t->store, a.run_id, &e), e);
	session_clear(&a);
}

static void
test_store_jobs__names_of_queues(void **state)
{
	(void)state;
	assert_true(queue_name_is_valid("build-2.x_y"));
	assert_false(queue_name_is_valid(""));
	assert_false(queue_name_is_valid("-x"));
	assert_false(queue_name_is_valid("a b"));
	assert_false(queue_name_is_valid("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, test_home_setup, test_home_teardown)
    CASE(test_store_jobs__slots_in_order),
    CASE(test_store_jobs__a_crash_that_is_answered_keeps_slot_and_key),
    CASE(test_store_jobs__a_job_that_was_given_up_gets_no_automatic_resume),
    CASE(test_store_jobs__an_automatic_resume_has_the_key_before_those_that_wait),
    CASE(test_store_jobs__a_resume_by_hand_has_the_key_behind_those_that_wait),
    CASE(test_store_jobs__one_of_a_key),
    CASE(test_store_jobs__notices_come_with_what_they_tell),
    CASE(test_store_jobs__only_what_is_over_is_removed),
    CASE(test_store_jobs__names_of_queues),
};

TEST_MAIN("store_jobs", tests)
