/* What a connection costs while nothing happens: how changes are noticed without it, and memory. */
#include "test_home.h"

#include <sqlite3.h>

static void
test_store_rest__commits_of_others_are_noticed(void **state)
{
	struct test_home *t = *state;
	struct store_mark mark = {0};
	struct session made;
	struct err e = {0};
	int i;

	assert_true(store_was_touched(&t->home, &mark));
	assert_false(store_was_touched(&t->home, &mark));
	test_home_run(t, "flow", NULL, &made);
	assert_true(store_was_touched(&t->home, &mark));
	/* What is folded into the database was committed before. */
	assert_works(store_checkpoint(t->store, &e), e);
	assert_false(store_was_touched(&t->home, &mark));
	/* From here on the log is written from its beginning, over what it held. */
	for (i = 1; i <= 3; i++) {
		assert_works(session_progress(t->store, made.run_id, i, 3, &e), e);
		assert_true(store_was_touched(&t->home, &mark));
		assert_false(store_was_touched(&t->home, &mark));
	}
	session_clear(&made);
}

/* SQLite's default allots 90 KB for each of the transient tables that moving a run takes. */
static void
test_store_rest__memory(void **state)
{
	const int64_t most_moving = 160 << 10, most_resting = 96 << 10;
	struct test_home *t = *state;
	struct session made;
	int64_t before, peak;

	test_home_run(t, "flow", NULL, &made);
	test_home_move(t, made.run_id, STATUS_STARTING, "run.starting.forked");
	before = sqlite3_memory_used();
	sqlite3_memory_highwater(1);
	test_home_move(t, made.run_id, STATUS_RUNNING, "run.running.started");
	peak = sqlite3_memory_highwater(0) - before;
	print_message("# moving a run takes %lld bytes\n", (long long)peak);
	assert_true(peak > 0 && peak <= most_moving);
	store_shrink(t->store);
	print_message("# a connection at rest holds %lld bytes\n", (long long)sqlite3_memory_used());
	assert_true(sqlite3_memory_used() <= most_resting);
	/* It goes on as before. */
	test_home_move(t, made.run_id, STATUS_COMPLETED, "run.completed.all");
	session_clear(&made);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, test_home_setup, test_home_teardown)
static const struct CMUnitTest tests[] = {
    CASE(test_store_rest__commits_of_others_are_noticed),
    CASE(test_store_rest__memory),
};

TEST_MAIN("store_rest", tests)
