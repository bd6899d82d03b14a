#include "test.h"

#include "flowsup/status.h"

static void
test_status__words_go_both_ways(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < STATUS_COUNT; i++)
		assert_int_equal(status_from_word(status_word((enum run_status)i)), i);
	assert_int_equal(status_from_word("Running"), STATUS_COUNT);
	assert_int_equal(status_from_word(""), STATUS_COUNT);
}

/* The whole table once more, by the letters of the statuses: a changed move must be meant. */
static void
test_status__moves(void **state)
{
	static const char *const wanted[STATUS_COUNT] = {
	    /*                     q s r p C F T X c */
	    [STATUS_QUEUED] = "xx.....xx",
	    [STATUS_STARTING] = "x.x..xxxx",
	    [STATUS_RUNNING] = "..xxxxxxx",
	    [STATUS_PAUSED] = "..xxxxxxx",
	    [STATUS_COMPLETED] = ".........",
	    [STATUS_FAILED] = ".........",
	    [STATUS_TIMED_OUT] = ".........",
	    [STATUS_CANCELLED] = ".........",
	    [STATUS_CRASHED] = ".........",
	};
	unsigned from, to;

	(void)state;
	for (from = 0; from < STATUS_COUNT; from++)
		for (to = 0; to < STATUS_COUNT; to++)
			assert_int_equal(
			    status_may_become((enum run_status)from, (enum run_status)to),
			    wanted[from][to] == 'x');
}

static void
test_status__terminal_ones_lead_nowhere(void **state)
{
	unsigned from, to, ways;

	(void)state;
	for (from = 0; from < STATUS_COUNT; from++) {
		for (ways = 0, to = 0; to < STATUS_COUNT; to++)
			ways += status_may_become((enum run_status)from, (enum run_status)to);
		assert_int_equal(ways == 0, status_is_terminal((enum run_status)from));
	}
}

static void
test_status__reasons_belong_to_a_status(void **state)
{
	static const char *const codes[] = {
#define X(code, text, resumable, exit) code,
	    REASON_TABLE(X)
#undef X
	};
	unsigned i, s, owners;

	(void)state;
	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		for (owners = 0, s = 0; s < STATUS_COUNT; s++) {
			if (!reason_belongs_to(codes[i], (enum run_status)s))
				continue;
			owners++;
			/* Nothing but an end can be resumed. */
			assert_true(!reason_is_resumable(codes[i]) ||
			    status_is_terminal((enum run_status)s));
		}
		assert_int_equal(owners, 1);
		assert_non_null(reason_text(codes[i]));
	}
	assert_false(reason_belongs_to("run.failed", STATUS_FAILED));
	assert_false(reason_belongs_to("run.failed.whatever", STATUS_FAILED));
	assert_null(reason_text("run.failed.whatever"));
	assert_null(reason_text(NULL));
}

static void
test_status__exit(void **state)
{
	static const struct {
		enum run_status status;
		const char *reason;
		int exit;
	} cases[] = {
	    {STATUS_QUEUED, "run.queued.new", 3},
	    {STATUS_RUNNING, "run.running.started", 3},
	    {STATUS_COMPLETED, "run.completed.all", 0},
	    {STATUS_FAILED, "run.failed.operation", 1},
	    {STATUS_FAILED, "run.failed.checkpoint", 74},
	    {STATUS_FAILED, "run.failed.start", 78},
	    {STATUS_FAILED, "run.failed.storage", 74},
	    {STATUS_FAILED, "of a newer version", 1},
	    {STATUS_TIMED_OUT, "run.timed_out.deadline", 124},
	    {STATUS_CANCELLED, "run.cancelled.killed", 143},
	    {STATUS_CRASHED, "run.crashed.signal", 137},
	    {STATUS_CRASHED, NULL, 137},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(status_exit(cases[i].status, cases[i].reason), cases[i].exit);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_status__words_go_both_ways),
    cmocka_unit_test(test_status__moves),
    cmocka_unit_test(test_status__terminal_ones_lead_nowhere),
    cmocka_unit_test(test_status__reasons_belong_to_a_status),
    cmocka_unit_test(test_status__exit),
};

TEST_MAIN("status", tests)
