/*
 * The end of a run against a control that is queued at that instant, 10,000 times. The database is
 * in memory where the machine has a file system there: what is tried is the order of two writers,
 * not the disk.
 */
#include "test_home.h"

#include <sys/mman.h>
#include <unistd.h>

#include <sqlite3.h>

#include "flowsup/clock.h"

enum { RACES = 10000, EACH_ORDER = 500, FOLD_EVERY = 500 };
enum { DELAY_STEP_NS = 5000 };

struct race {
	int go[2], done[2]; /* a byte for each race: waiting takes no processor from the other side */
	int landed, refused;
	int64_t delay_ns; /* of the end behind the control; negative: of the control behind the end */
	char run_ids[RACES][RUN_ID_TEXT];
};

static void
spin(int64_t ns)
{
	int64_t until = clock_monotonic_ns() + ns;

	while (clock_monotonic_ns() < until)
		;
}

static int
writer(struct store *s, void *arg)
{
	struct race *r = arg;
	struct err e = {0};
	char c = 0, id[UUID_TEXT];
	int i;

	for (i = 0; i < RACES && read(r->go[0], &c, 1) == 1; i++) {
		e = (struct err){0};
		spin(-r->delay_ns);
		if (control_insert(s, r->run_ids[i], "pause", NULL, id, &e) == 0)
			r->landed++;
		else if (e.code == ERR_REFUSED)
			r->refused++;
		else
			fprintf(stderr, "# %s\n", e.msg);
		if (write(r->done[1], &c, 1) != 1)
			break;
	}
	return r->landed + r->refused == RACES ? 0 : 1;
}

/* The end comes a little earlier after a control that landed, and later after one that did not: so
 * the two stay as close to each other as the machine lets them. */
static void
race(struct test_home *t, struct race *r, int i)
{
	int landed = r->landed;
	struct err e = {0};
	char c = 0;

	assert_int_equal(write(r->go[1], &c, 1), 1);
	spin(r->delay_ns);
	test_home_move(t, r->run_ids[i], STATUS_CANCELLED, "run.cancelled.stop");
	assert_works(control_sweep(t->store, r->run_ids[i], &e), e);
	assert_int_equal(read(r->done[0], &c, 1), 1); /* 0 bytes: the writer has died */
	r->delay_ns += r->landed > landed ? -DELAY_STEP_NS : DELAY_STEP_NS;
}

static int
count_rows(struct test_home *t, const char *where)
{
	char path[600], sql[200];
	sqlite3_stmt *q;
	sqlite3 *db;
	int n;

	snprintf(path, sizeof(path), "%s/state.db", t->home.path);
	snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM session_controls WHERE %s", where);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	n = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return n;
}

/* Numbered: chance would give two of so many in one second the same id. */
static void
make_run(struct test_home *t, int i, char run_id[RUN_ID_TEXT])
{
	char session_id[UUID_TEXT], invocation_id[INVOCATION_ID_TEXT];
	struct session_new n = {.run_id = run_id, .session_id = session_id,
	    .invocation_id = invocation_id, .kind = "flow", .name = "race"};
	struct err e = {0};

	snprintf(run_id, RUN_ID_TEXT, "20260101T000000-%06x", (unsigned)i);
	assert_works(uuid_make(session_id, &e), e);
	assert_works(invocation_id_make(invocation_id, &e), e);
	assert_works(session_insert(t->store, &n, &e), e);
	test_home_move(t, run_id, STATUS_STARTING, "run.starting.forked");
}

/*
 * Whatever the order, no control is left behind: it was refused, or it was there before the end and
 * the sweep after the end found it.
 */
static void
test_controls_race__none_is_pending_on_a_run_that_has_ended(void **state)
{
	struct test_home *t = *state;
	struct race *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct err e = {0};
	pid_t pid;
	int i;

	assert_ptr_not_equal(r, MAP_FAILED);
	assert_int_equal(pipe(r->go) + pipe(r->done), 0);
	for (i = 0; i < RACES; i++)
		make_run(t, i, r->run_ids[i]);
	pid = test_home_fork(t, writer, r);
	close(r->done[1]);
	for (i = 0; i < RACES; i++) {
		race(t, r, i);
		if (i % FOLD_EVERY == 0)
			assert_works(store_checkpoint(t->store, &e), e);
	}
	assert_int_equal(test_home_join(pid), 0);
	close(r->go[0]);
	close(r->go[1]);
	close(r->done[0]);
	print_message("# %d of %d controls were there before the end\n", r->landed, RACES);
	assert_int_equal(count_rows(t, "1"), r->landed);
	assert_int_equal(count_rows(t, "applied_at IS NULL OR result IS NULL"), 0);
	assert_int_equal(count_rows(t, "result = 'rejected: run reached terminal status before the "
				       "control could land'"), r->landed);
	/* Else it was no race. */
	assert_true(r->landed >= EACH_ORDER && r->refused >= EACH_ORDER);
	munmap(r, sizeof(*r));
}

static int
setup_in_memory(void **state)
{
	if (access("/dev/shm", W_OK) == 0 && setenv("TMPDIR", "/dev/shm", 1) != 0)
		return -1;
	return test_home_setup(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_controls_race__none_is_pending_on_a_run_that_has_ended,
	setup_in_memory, test_home_teardown),
};

TEST_MAIN("controls_race", tests)
