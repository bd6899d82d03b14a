/* How a worker treats processes: what they inherit, how they end, what they leave behind. */
#include "run_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/proc.h"

#define HEAD "name: t\nconcurrency: 4\ndefaults: {grace: 200ms}\nplan:\n"

static char fakes[700];

static int
setup(void **state)
{
	struct buf dir = {0};
	struct err e = {0};

	*state = calloc(1, sizeof(struct run_fixture));
	assert_non_null(*state);
	assert_works(proc_relative_to_self("../fakes", &dir, &e), e);
	snprintf(fakes, sizeof(fakes), "FAKES=%s", buf_text(&dir));
	buf_clear(&dir);
	return 0;
}

static void
begin(struct run_fixture *r, const char *yaml)
{
	const char *const more[] = {fakes, NULL};

	run_make(r, yaml, NULL, more);
	run_start(r);
}

static void
whole(struct run_fixture *r, const char *yaml, enum run_status status, const char *reason)
{
	begin(r, yaml);
	run_expect(r, status, reason);
}

/* The process whose pid stands in a file of the test has gone, or is nobody's any more. */
static bool
pid_is_gone(void *arg)
{
	struct proc_stat st;
	struct err e = {0};

	return proc_stat_read(*(pid_t *)arg, &st, &e) != 0 || proc_stat_is_zombie(&st);
}

struct pid_file {
	struct run_fixture *r;
	const char *name;
	pid_t pid;
};

static bool
has_pid(void *arg)
{
	struct pid_file *f = arg;
	char *text, *end;

	if (faccessat(f->r->dir.fd, f->name, F_OK, 0) != 0)
		return false;
	text = run_test_file(f->r, f->name);
	f->pid = (pid_t)strtol(text, &end, 10);
	if (*end != '\n')
		f->pid = 0;
	free(text);
	return f->pid > 1;
}

/* Its operation may have only begun. */
static pid_t
pid_in(struct run_fixture *r, const char *file)
{
	struct pid_file f = {.r = r, .name = file};

	assert_true(test_wait_for(has_pid, &f));
	return f.pid;
}

static bool
is_ready(void *arg)
{
	struct run_fixture *r = arg;

	return faccessat(r->dir.fd, "ready", F_OK, 0) == 0;
}

static void
assert_gone(struct run_fixture *r, const char *file)
{
	pid_t pid = pid_in(r, file);

	assert_true(test_wait_for(pid_is_gone, &pid));
}

static int64_t
event_int(struct run_fixture *r, const char *event, const char *op, const char *name)
{
	struct json *line = run_event(r, event, op);
	int64_t value = -1;

	if (!json_int64(json_get(line, name), &value))
		value = -1;
	json_unref(line);
	return value;
}

/* ---- What they inherit ---- */

static void
test_hygiene__three_descriptors_and_no_more(void **state)
{
	struct run_fixture *r = *state;

	whole(r, HEAD "  - {id: a, run: 'exec \"$FAKES/list_fds\"'}\n"
		      "  - {id: b, output: merged, run: 'exec \"$FAKES/list_fds\"'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	run_assert_response(r, "a", "0 1 2 ");
	run_assert_response(r, "b", "0 1 2 ");
}

static void
test_hygiene__standard_input_is_at_its_end(void **state)
{
	struct run_fixture *r = *state;

	whole(r, HEAD "  - {id: a, run: 'cat; readlink /proc/self/fd/0'}\n", STATUS_COMPLETED,
	    "run.completed.all");
	run_assert_response(r, "a", "/dev/null\n");
}

static void
test_hygiene__own_session_and_no_signals_blocked(void **state)
{
	struct run_fixture *r = *state;

	whole(r, HEAD "  - {id: a, run: 'set -- $(cut -d\" \" -f5,6 /proc/$$/stat); "
		      "test $1 = $$ && test $2 = $$ && cat /proc/self/status | "
		      "grep -E \"^Sig(Blk|Ign|Cgt)\" | cut -f2 | sort -u'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	run_assert_response(r, "a", "0000000000000000\n");
}

/* ---- Output ---- */

static void
test_hygiene__a_child_that_keeps_the_output_open(void **state)
{
	struct run_fixture *r = *state;

	whole(r, HEAD "  - {id: a, run: 'sleep 1000 & echo $! > left; echo said'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	run_assert_response(r, "a", "said\n");
	assert_gone(r, "left");
	assert_int_equal(event_int(r, "NodeCompleted", "a", "leftovers"), 1);
}

static void
test_hygiene__a_line_without_end_and_nuls(void **state)
{
	struct run_fixture *r = *state;
	struct slice text;

	whole(r, HEAD "  - {id: a, run: 'head -c 300000 /dev/zero'}\n", STATUS_COMPLETED,
	    "run.completed.all");
	text = json_text(json_get(run_entry(r, "a"), "response"));
	assert_int_equal(text.len, 300000);
	assert_int_equal(text.data[299999], 0);
}

/* ---- Leftovers ---- */

static void
test_hygiene__leave(void **state)
{
	struct run_fixture *r = *state;
	pid_t pid;

	whole(r, HEAD "  - {id: a, leave: true, run: 'sleep 1000 & echo $! > left'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	pid = pid_in(r, "left");
	assert_false(pid_is_gone(&pid));
	assert_int_equal(kill(pid, SIGKILL), 0);
}

static void
test_hygiene__leftovers_deaf_to_term_are_killed(void **state)
{
	struct run_fixture *r = *state;

	whole(r, HEAD "  - {id: a, run: '\"$FAKES/deaf\" ready & echo $! > left; "
		      "until test -s ready; do sleep 0.01; done'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	assert_gone(r, "left");
	assert_int_equal(event_int(r, "NodeCompleted", "a", "leftovers"), 1);
}

/* The parent has gone before the operation ends: the worker has adopted it by then. */
static void
test_hygiene__grandchildren(void **state)
{
	struct run_fixture *r = *state;

	whole(r, HEAD "  - {id: a, run: '(sh -c \"sleep 1000 & echo \\$! > left\" &); "
		      "until test -s left; do sleep 0.01; done'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	assert_gone(r, "left");
}

static void
test_hygiene__another_session(void **state)
{
	struct run_fixture *r = *state;

	whole(r, HEAD "  - {id: a, run: 'setsid sh -c \"echo \\$\\$ > left; exec sleep 1000\" & "
		      "until test -s left; do sleep 0.01; done; sleep 0.1'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	assert_gone(r, "left");
	assert_int_equal(run_count_events(r, "NodeLeftover", "a"), 1);
}

/* The second one comes when the first has gone, and its operation is over. */
static void
test_hygiene__one_after_the_other_is_told_once(void **state)
{
	struct run_fixture *r = *state;
	size_t told = 0;
	char *at, *line;

	whole(r, HEAD "  - {id: a, run: 'setsid sh -c \"trap \\\"setsid sleep 1000 & exit\\\" TERM; : > left; "
		      "while :; do sleep 0.02; done\" & until test -e left; do sleep 0.01; done'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	assert_true(run_count_events(r, "NodeLeftover", "a") >= 2);
	for (line = strtok_r(r->events, "\n", &at); line != NULL; line = strtok_r(NULL, "\n", &at))
		if (strstr(line, "\"NodeLeftover\"") != NULL && strstr(line, "\"again\":1") == NULL)
			told++;
	assert_int_equal(told, 1);
}

/* Nothing says whose it is but that it has become the worker's child. */
static void
test_hygiene__another_session_and_no_environment(void **state)
{
	struct run_fixture *r = *state;

	whole(r, HEAD "  - {id: a, run: 'env -i setsid sh -c \"echo \\$\\$ > left; exec sleep 1000\" & "
		      "until test -s left; do sleep 0.01; done'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	assert_gone(r, "left");
}

static void
test_hygiene__another_session_of_a_leaving_operation(void **state)
{
	struct run_fixture *r = *state;
	pid_t pid;

	whole(r, HEAD "  - {id: a, leave: true, run: 'setsid sh -c \"echo \\$\\$ > left; "
		      "exec sleep 1000\" & until test -s left; do sleep 0.01; done'}\n"
		      "  - {id: b, needs: [a], run: 'sleep 0.1'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	pid = pid_in(r, "left");
	assert_false(pid_is_gone(&pid));
	assert_int_equal(kill(pid, SIGKILL), 0);
}

/* It runs on beside its operation, and is ended only when that is over. */
static void
test_hygiene__a_helper_of_a_running_operation_is_let_alone(void **state)
{
	struct run_fixture *r = *state;

	whole(r, HEAD "  - {id: a, run: 'setsid sh -c \"echo \\$\\$ > left; exec sleep 1000\" & "
		      "until test -s left && test -e go; do sleep 0.01; done; sleep 0.2; "
		      "kill -0 $(cat left)'}\n"
		      "  - {id: b, run: 'until test -s left; do sleep 0.01; done; sleep 0.1; touch go'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	assert_gone(r, "left");
}

static void
test_hygiene__no_zombies(void **state)
{
	struct run_fixture *r = *state;

	/* The background children of a end while b runs; b looks for zombies below its parent. */
	whole(r, HEAD "  - {id: a, leave: true, run: 'sleep 0.01 & sleep 0.02 & exit 0'}\n"
		      "  - {id: b, needs: [a], run: 'n=0; while grep -qs \"^State:.Z\" $(grep -ls "
		      "\"^PPid:.$PPID$\" /proc/[0-9]*/status); do n=$((n+1)); test $n -lt 500 || exit 1; "
		      "sleep 0.02; done'}\n",
	    STATUS_COMPLETED, "run.completed.all");
}

/* ---- Limits ---- */

static void
test_hygiene__timeout_of_one_that_exits_0_on_term(void **state)
{
	struct run_fixture *r = *state;

	whole(r, HEAD "  - {id: a, timeout: 300ms, run: 'trap \"echo term >> terms; exit 0\" TERM; "
		      "while :; do sleep 0.05; done'}\n",
	    STATUS_FAILED, "run.failed.operation");
	run_assert_failure(r, "a", "timeout", "300ms");
}

/* TERM comes once, and the clean-up of the handler is waited for: longer than a second one, or KILL
 * after an unreasonably short grace, would let it live. */
static void
test_hygiene__term_once_and_clean_up_is_waited_for(void **state)
{
	struct run_fixture *r = *state;
	char *terms, *result;

	begin(r, "name: t\ndefaults: {grace: 100s}\nplan:\n"
		 "  - {id: a, run: 'trap \"echo term >> terms\" TERM; : > ready; "
		 "until test -s terms; do sleep 0.02; done; sleep 0.3; echo clean >> terms; exit 4'}\n");
	assert_true(test_wait_for(is_ready, r));
	result = run_control(r, "stop", "{\"mode\":\"now\"}");
	assert_string_equal(result, "applied");
	free(result);
	run_expect(r, STATUS_CANCELLED, "run.cancelled.stop");
	terms = run_test_file(r, "terms");
	assert_string_equal(terms, "term\nclean\n");
	free(terms);
	assert_null(run_entry(r, "a"));
}

static void
test_hygiene__timeout_reaches_grandchildren_and_kills(void **state)
{
	struct run_fixture *r = *state;

	whole(r, HEAD "  - {id: a, timeout: 3s, run: '\"$FAKES/deaf\" ready & echo $! > left; wait'}\n",
	    STATUS_FAILED, "run.failed.operation");
	run_assert_failure(r, "a", "timeout", NULL);
	assert_gone(r, "left");
}

/*
 * `last` is silent for longer than the others may be, and began after them: when that is noted, they
 * have outlived their limit. What is told only waits at a pipe, so that it takes no processor time.
 */
static void
test_hygiene__silence(void **state)
{
	struct run_fixture *r = *state;

	begin(r, "name: t\nconcurrency: 9\ndefaults: {grace: 200ms}\nplan:\n"
		 "  - {id: quiet, silence: 300ms, run: 'sleep 1000'}\n"
		 "  - {id: talks, silence: 2s, run: 'until test -e go; do echo x; done'}\n"
		 "  - {id: works, silence: 2s, run: 'until test -e go; do :; done'}\n"
		 "  - {id: group, silence: 2s, run: 'timeout 600 sh -c \"until test -e go; do :; done\"'}\n"
		 "  - {id: apart, silence: 2s, run: 'mkfifo apart; (setsid sh -c \"until test -e go; do :; "
		 "done; echo > apart\" &); read x < apart'}\n"
		 "  - {id: below, silence: 2s, run: 'mkfifo below; (setsid sh -c \"env -i setsid -w sh -c "
		 "\\\"until test -e go; do :; done; echo > below\\\"\" &); read x < below'}\n"
		 "  - {id: idle, silence: 2s, run: 'mkfifo idle; (setsid sh -c \"read x < idle\" &); timeout "
		 "600 sh -c \"read x < idle\"'}\n"
		 "  - {id: told, silence: {after: 1s, do: notify}, run: 'mkfifo told; read x < told'}\n"
		 "  - {id: last, silence: {after: 3s, do: notify}, run: 'mkfifo last; read x < last'}\n"
		 "  - {id: free, needs: [{op: quiet, on: failure}], run: 'until test -e go; do "
		 "sleep 0.05; done; echo > told; echo > last'}\n");
	run_wait_text(r, RUN_EVENTS, "\"op\":\"last\",\"attempt\":1,\"seconds\":3,\"since\":");
	test_file_write(r->dir.fd, "go", "");
	run_expect(r, STATUS_FAILED, "run.failed.operation");
	run_assert_failure(r, "quiet", "silence", "300ms");
	run_assert_entry(r, "talks", "completed");
	run_assert_entry(r, "works", "completed");
	/* What moved to another group or session, also without its marks, is the operation's all the same. */
	run_assert_entry(r, "group", "completed");
	run_assert_entry(r, "apart", "completed");
	run_assert_entry(r, "below", "completed");
	run_assert_failure(r, "idle", "silence", "2s");
	run_assert_entry(r, "told", "completed");
	assert_int_equal(run_count_events(r, "NodeSilent", "told"), 1);
}

/* ---- Leaving ---- */

static void
test_hygiene__sigterm_leaves_operations_running(void **state)
{
	struct run_fixture *r = *state;
	pid_t pid;

	begin(r, HEAD "  - {id: a, run: 'printf saved'}\n"
		      "  - {id: b, needs: [a], run: 'echo $$ > pid; : > ready; sleep 1000'}\n"
		      "  - {id: c, needs: [b], run: 'true'}\n");
	assert_true(test_wait_for(is_ready, r));
	assert_int_equal(kill(r->worker, SIGTERM), 0);
	run_expect(r, STATUS_CRASHED, "run.crashed.terminated");
	run_assert_response(r, "a", "saved");
	assert_null(run_entry(r, "b"));
	pid = pid_in(r, "pid");
	assert_false(pid_is_gone(&pid));
	assert_int_equal(kill(-pid, SIGKILL), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, run_teardown)
static const struct CMUnitTest tests[] = {
    T(test_hygiene__three_descriptors_and_no_more),
    T(test_hygiene__standard_input_is_at_its_end),
    T(test_hygiene__own_session_and_no_signals_blocked),
    T(test_hygiene__a_child_that_keeps_the_output_open),
    T(test_hygiene__a_line_without_end_and_nuls),
    T(test_hygiene__leave),
    T(test_hygiene__leftovers_deaf_to_term_are_killed),
    T(test_hygiene__grandchildren),
    T(test_hygiene__another_session),
    T(test_hygiene__one_after_the_other_is_told_once),
    T(test_hygiene__another_session_and_no_environment),
    T(test_hygiene__another_session_of_a_leaving_operation),
    T(test_hygiene__a_helper_of_a_running_operation_is_let_alone),
    T(test_hygiene__no_zombies),
    T(test_hygiene__timeout_of_one_that_exits_0_on_term),
    T(test_hygiene__term_once_and_clean_up_is_waited_for),
    T(test_hygiene__timeout_reaches_grandchildren_and_kills),
    T(test_hygiene__silence),
    T(test_hygiene__sigterm_leaves_operations_running),
};

TEST_MAIN("worker_hygiene", tests)
