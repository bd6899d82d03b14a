/* supervisor/jobs: order, a busy database, jobs that wait apart; and what else can be judged alone. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "supervisor/autostart.h"
#include "supervisor/daemon.h"

struct script {
	char order[64]; /* first letters of the runs in the order in which they were done */
	unsigned busy, later, failing;
};
static struct script script;

static enum job_result
scripted(struct daemon *d, struct job *j, struct err *e)
{
	size_t len = strlen(script.order);

	(void)d;
	if (script.busy > 0) {
		script.busy--;
		return JOB_BUSY;
	}
	if (script.later > 0 && j->run_id[0] == 'l') {
		script.later--;
		return JOB_LATER;
	}
	if (script.failing > 0 && j->run_id[0] == 'f') {
		script.failing--;
		err_set(e, ERR_IO, "scripted");
		return JOB_FAILED;
	}
	assert_true(len + 1 < sizeof(script.order));
	script.order[len] = j->run_id[0];
	return JOB_DONE;
}

static void
nothing(void *arg)
{
	(void)arg;
}

static struct daemon *
start(void)
{
	struct daemon *d = calloc(1, sizeof(*d));
	struct err e = {0};
	unsigned i;

	assert_non_null(d);
	memset(&script, 0, sizeof(script));
	assert_works(loop_init(&d->loop, &e), e);
	for (i = 0; i < TIMERS; i++)
		loop_on_timer(&d->loop, i, i == TIMER_APART ? jobs_wake : nothing, d);
	jobs_init(&d->jobs);
	return d;
}

static void
end(struct daemon *d)
{
	jobs_clear(&d->jobs);
	loop_clear(&d->loop);
	free(d);
}

/* Works until everything is done or waits for more than a minute. */
static void
work(struct daemon *d)
{
	struct err e = {0};
	int64_t until = clock_monotonic_ns() + 60 * NS_PER_S;

	while (d->jobs.count > 0 && clock_monotonic_ns() < until)
		if (!jobs_work(d) && d->jobs.count > 0)
			assert_works(loop_turn(&d->loop, true, &e), e);
}

static void
test_jobs__urgent_before_ordinary_in_order(void **state)
{
	struct daemon *d = start();

	(void)state;
	jobs_add(d, job_new(scripted, "a", false), false);
	jobs_add(d, job_new(scripted, "b", false), false);
	jobs_add(d, job_new(scripted, "c", false), true);
	jobs_add(d, NULL, true);
	assert_int_equal(d->jobs.count, 3);
	work(d);
	assert_string_equal(script.order, "cab");
	end(d);
}

static void
test_jobs__who_calls_is_heard_between_two(void **state)
{
	struct source called = SOURCE_INIT;
	struct daemon *d = start();
	struct err e = {0};
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_works(loop_add(&d->loop, &called, fds[0], nothing, NULL, &e), e);
	jobs_add(d, job_new(scripted, "a", false), false);
	jobs_add(d, job_new(scripted, "b", false), false);
	jobs_add(d, job_new(scripted, "c", false), false);
	assert_int_equal(write(fds[1], "", 1), 1);
	assert_true(jobs_work(d));
	assert_string_equal(script.order, "a");
	loop_close(&d->loop, &called);
	assert_false(jobs_work(d));
	assert_string_equal(script.order, "abc");
	close(fds[1]);
	end(d);
}

static void
test_jobs__busy_database_keeps_the_order_and_waits_by_timer(void **state)
{
	struct daemon *d = start();

	(void)state;
	script.busy = 3;
	jobs_add(d, job_new(scripted, "a", false), false);
	jobs_add(d, job_new(scripted, "b", false), false);
	assert_false(jobs_work(d));
	assert_true(loop_timer_is_set(&d->loop, TIMER_BUSY));
	/* Until the timer nothing is tried. */
	assert_false(jobs_work(d));
	assert_int_equal(script.busy, 2);
	work(d);
	assert_string_equal(script.order, "ab");
	end(d);
}

static void
test_jobs__one_that_waits_apart_holds_up_nothing(void **state)
{
	struct daemon *d = start();

	(void)state;
	script.later = 2;
	jobs_add(d, job_new(scripted, "l", false), false);
	jobs_add(d, job_new(scripted, "b", false), false);
	assert_false(jobs_work(d));
	assert_string_equal(script.order, "b");
	assert_true(jobs_has(&d->jobs, scripted, "l"));
	assert_false(jobs_has(&d->jobs, scripted, "b"));
	jobs_wake_all(d);
	work(d);
	assert_string_equal(script.order, "bl");
	assert_int_equal(d->jobs.count, 0);
	end(d);
}

static void
test_jobs__what_must_be_done_survives_errors(void **state)
{
	struct daemon *d = start();

	(void)state;
	script.failing = 2;
	jobs_add(d, job_new(scripted, "f", true), false);
	work(d);
	assert_string_equal(script.order, "f");
	script.failing = 1;
	jobs_add(d, job_new(scripted, "f", false), false);
	work(d);
	assert_string_equal(script.order, "f");
	assert_int_equal(d->jobs.count, 0);
	end(d);
}

static void
test_jobs__pauses_grow_to_a_bound(void **state)
{
	unsigned i;

	(void)state;
	assert_int_equal(jobs_pause_ns(0), JOBS_LATER_MS * NS_PER_MS);
	for (i = 0; i < 100; i++) {
		assert_true(jobs_pause_ns(i) <= jobs_pause_ns(i + 1));
		assert_true(jobs_pause_ns(i) <= JOBS_LATER_MOST_MS * NS_PER_MS);
	}
	assert_int_equal(jobs_pause_ns(UINT32_MAX), JOBS_LATER_MOST_MS * NS_PER_MS);
}

static void
test_queue__room_by_descriptors(void **state)
{
	(void)state;
	assert_true(queue_has_room(1024, 100, 10));
	assert_false(queue_has_room(1024, 1000, 10));
	assert_false(queue_has_room(64, 0, 0));
	assert_true(queue_has_room(4096, 1000, 20));
	assert_true(queue_has_room(UINT64_MAX, 1000000, 4096));
}

static void
test_children__how_a_worker_ended(void **state)
{
	static const struct {
		struct proc_end end;
		const char *text;
	} cases[] = {
	    {{.known = true, .signaled = true, .code = 9}, "the worker was killed by SIGKILL"},
	    {{.known = true, .signaled = true, .code = 11, .dumped = true},
		"the worker was killed by SIGSEGV (core dumped)"},
	    {{.known = true, .code = 70},
		"the worker left with status 70 and no outcome; see worker.log"},
	    {{.known = false}, "the worker is gone; how it ended is not known"},
	};
	char text[WORKER_END_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(worker_end_text(&cases[i].end, text), cases[i].text);
}

static void
test_autostart__environment_names_the_home_alone(void **state)
{
	const struct home h = {.path = strdup("/the/home"), .fd = -1, .runs_fd = -1};
	struct err e = {0};
	char **envp;
	bool path = false;
	size_t i;

	(void)state;
	setenv("FLOWSUP_TOKEN", "secret", 1);
	setenv("FLOWSUP_HOME", "/another", 1);
	setenv("PATH_OF_TEST", "kept", 1);
	envp = autostart_environment(&h, false, &e);
	assert_non_null(envp);
	for (i = 0; envp[i] != NULL; i++) {
		if (strncmp(envp[i], "FLOWSUP_", 8) == 0)
			assert_string_equal(envp[i], "FLOWSUP_HOME=/the/home");
		path = path || strcmp(envp[i], "PATH_OF_TEST=kept") == 0;
	}
	assert_true(path);
	autostart_environment_free(envp);
	free(h.path);
}

static void
test_autostart__arguments(void **state)
{
	static const char *const all[] = {"flowsup", "supervisor", "--home", "/h", "--foreground",
	    "--idle-exit=1500ms", "--ready-fd=3", "--handover-fd=17", NULL};
	/* Never to leave is the default in the foreground only. */
	static const char *const never[] = {"flowsup", "supervisor", "--home", "/h", "--idle-exit=0ms", NULL};
	static const char *const least[] = {"flowsup", "supervisor", "--home", "/h", "--foreground", NULL};
	struct autostart_words words;
	size_t i;

	(void)state;
	autostart_arguments(&words, "/h", true, 1500 * NS_PER_MS, 3, 17);
	for (i = 0; all[i] != NULL; i++)
		assert_string_equal(words.argv[i], all[i]);
	assert_null(words.argv[i]);
	autostart_arguments(&words, "/h", false, 0, -1, -1);
	for (i = 0; never[i] != NULL; i++)
		assert_string_equal(words.argv[i], never[i]);
	assert_null(words.argv[i]);
	autostart_arguments(&words, "/h", true, 0, -1, -1);
	for (i = 0; least[i] != NULL; i++)
		assert_string_equal(words.argv[i], least[i]);
	assert_null(words.argv[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_jobs__urgent_before_ordinary_in_order),
    cmocka_unit_test(test_jobs__who_calls_is_heard_between_two),
    cmocka_unit_test(test_jobs__busy_database_keeps_the_order_and_waits_by_timer),
    cmocka_unit_test(test_jobs__one_that_waits_apart_holds_up_nothing),
    cmocka_unit_test(test_jobs__what_must_be_done_survives_errors),
    cmocka_unit_test(test_jobs__pauses_grow_to_a_bound),
    cmocka_unit_test(test_queue__room_by_descriptors),
    cmocka_unit_test(test_children__how_a_worker_ended),
    cmocka_unit_test(test_autostart__environment_names_the_home_alone),
    cmocka_unit_test(test_autostart__arguments),
};

TEST_MAIN("supervisor_jobs", tests)
