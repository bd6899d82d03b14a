/* Controls of a live run, its supervisors, and how it goes on from a state it was given. */
#include "run_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/checkpoint.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/proc.h"

#define HEAD "name: t\nconcurrency: 1\ndefaults: {grace: 300ms}\nplan:\n"

static void
begin(struct run_fixture *r, const char *yaml)
{
	run_make(r, yaml, NULL, NULL);
	run_start(r);
}

static void
control(struct run_fixture *r, const char *verb, const char *payload, const char *result)
{
	char *have = run_control(r, verb, payload);

	assert_string_equal(have, result);
	free(have);
}

static enum run_status
status_of(struct run_fixture *r)
{
	struct session s = {0};
	struct err e = {0};
	enum run_status status;

	assert_works(session_read(r->store, r->run_id, &s, &e), e);
	status = s.status;
	session_clear(&s);
	return status;
}

static void
assert_status(struct run_fixture *r, enum run_status wanted)
{
	assert_string_equal(status_word(status_of(r)), status_word(wanted));
}

/* Operations that wait for a file of the test, so that the test decides when they end. */
#define WAITS(file) "until test -e " file "; do sleep 0.01; done"

static void
test_control__pause_and_resume(void **state)
{
	struct run_fixture *r = *state;

	begin(r, HEAD "  - {id: a, run: '" WAITS("go") "'}\n"
		      "  - {id: b, needs: [a], run: 'true'}\n  - {id: c, needs: [a], run: 'true'}\n");
	run_wait_text(r, RUN_ATTEMPTS, "\"op\":\"a\"");
	control(r, "pause", NULL, "applied");
	control(r, "pause", NULL, "applied");
	test_file_write(r->dir.fd, "go", "");
	run_wait_text(r, RUN_EVENTS, "\"event\":\"NodePaused\"");
	assert_status(r, STATUS_PAUSED);
	control(r, "resume", NULL, "applied");
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
	assert_int_equal(run_count_events(r, "NodePaused", NULL), 2);
	assert_int_equal(run_count_events(r, "NodePaused", "a"), 0);
	assert_int_equal(run_count_events(r, "ControlApplied", NULL), 3);
}

/* Nothing of a paused run starts, also when the slot comes free after the gate was closed. */
static void
test_control__the_gate_is_looked_at_after_the_slot(void **state)
{
	struct run_fixture *r = *state;

	begin(r, HEAD "  - {id: a, run: '" WAITS("go") "'}\n  - {id: b, run: 'true'}\n");
	run_wait_text(r, RUN_ATTEMPTS, "\"op\":\"a\"");
	control(r, "pause", NULL, "applied");
	test_file_write(r->dir.fd, "go", "");
	run_wait_text(r, RUN_EVENTS, "\"event\":\"NodeCompleted\"");
	run_wait_text(r, RUN_EVENTS, "\"event\":\"NodePaused\"");
	control(r, "stop", "{\"mode\": \"drain\"}", "applied");
	run_expect(r, STATUS_CANCELLED, "run.cancelled.stop");
	run_assert_entry(r, "a", "completed");
	assert_null(run_entry(r, "b"));
	assert_int_equal(run_count_events(r, "NodeCancelled", "b"), 1);
}

static void
test_control__stop_drains(void **state)
{
	struct run_fixture *r = *state;

	begin(r, HEAD "  - {id: a, run: '" WAITS("go") "; echo done'}\n"
		      "  - {id: b, run: 'true'}\n  - {id: c, needs: [a], run: 'true'}\n");
	run_wait_text(r, RUN_ATTEMPTS, "\"op\":\"a\"");
	control(r, "stop", "{\"mode\": \"drain\"}", "applied");
	test_file_write(r->dir.fd, "go", "");
	run_expect(r, STATUS_CANCELLED, "run.cancelled.stop");
	run_assert_response(r, "a", "done\n");
	assert_null(run_entry(r, "b"));
	assert_null(run_entry(r, "c"));
}

/* An operation that makes the best of TERM and exits 0 is cancelled all the same. */
static void
test_control__stop_now(void **state)
{
	struct run_fixture *r = *state;
	char *attempts;

	begin(r, HEAD "  - {id: a, run: 'trap \"exit 0\" TERM; touch on; while :; do sleep 0.05; done'}\n"
		      "  - {id: b, run: 'true'}\n");
	run_wait_text(r, RUN_ATTEMPTS, "\"op\":\"a\"");
	while (faccessat(r->dir.fd, "on", F_OK, 0) != 0)
		usleep(10000);
	control(r, "stop", "{\"mode\": \"now\"}", "applied");
	run_expect(r, STATUS_CANCELLED, "run.cancelled.stop");
	assert_null(run_entry(r, "a"));
	assert_null(run_entry(r, "b"));
	assert_int_equal(run_count_events(r, "NodeStarted", NULL), 1);
	assert_int_equal(run_count_events(r, "NodeCancelled", NULL), 2);
	attempts = run_file(r, RUN_ATTEMPTS);
	assert_non_null(strstr(attempts, "\"class\":\"cancelled\""));
	free(attempts);
}

static void
test_control__a_retry_does_not_start_after_a_stop(void **state)
{
	struct run_fixture *r = *state;

	begin(r, HEAD "  - {id: a, retry: {attempts: 3, backoff: 300ms, jitter: false}, run: 'exit 1'}\n"
		      "  - {id: b, run: '" WAITS("go") "'}\n");
	run_wait_text(r, RUN_EVENTS, "\"event\":\"NodeRetrying\"");
	control(r, "stop", "{\"mode\": \"drain\"}", "applied");
	test_file_write(r->dir.fd, "go", "");
	run_expect(r, STATUS_CANCELLED, "run.cancelled.stop");
	assert_null(run_entry(r, "a"));
	assert_int_equal(run_count_events(r, "NodeStarted", "a"), 1);
	assert_int_equal(run_count_events(r, "NodeFailed", "a"), 0);
	assert_int_equal(run_count_events(r, "NodeCancelled", "a"), 1);
}

static void
test_control__a_message_that_nobody_takes(void **state)
{
	struct run_fixture *r = *state;

	begin(r, HEAD "  - {id: a, run: '" WAITS("go") "'}\n");
	run_wait_text(r, RUN_ATTEMPTS, "\"op\":\"a\"");
	control(r, "message", "{\"text\": \"hello\"}", "rejected:no-pending-ops");
	test_file_write(r->dir.fd, "go", "");
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
}

/* Without a wake-up the row is found by the tick. */
static void
test_control__without_a_poke(void **state)
{
	struct run_fixture *r = *state;
	char id[UUID_TEXT];
	struct err e = {0};

	begin(r, HEAD "  - {id: a, run: '" WAITS("go") "'}\n  - {id: b, run: 'true'}\n");
	run_wait_text(r, RUN_ATTEMPTS, "\"op\":\"a\"");
	assert_works(control_insert(r->store, r->run_id, "stop",
			 json_set(json_object(), "mode", json_cstr("drain")), id, &e), e);
	run_wait_text(r, RUN_EVENTS, "\"event\":\"ControlApplied\"");
	test_file_write(r->dir.fd, "go", "");
	run_expect(r, STATUS_CANCELLED, "run.cancelled.stop");
}

/* ---- Supervisors ---- */

static void
wait_for_message(int fd, enum message_type type, struct message *m)
{
	struct err e = {0};
	int rc;

	for (;;) {
		rc = message_recv(fd, FROM_WORKER, m, NULL, &e);
		assert_works(rc, e);
		if (rc == 1 && m->type == type)
			return;
		if (rc == 1)
			message_clear(m);
		else
			usleep(1000);
	}
}

static int
adopt(struct run_fixture *r)
{
	struct json *hello = json_set(json_object(), "role", json_cstr("supervisor"));
	struct message m;
	struct err e = {0};
	int fd = ipc_connect(r->run_fd, RUN_SOCKET, &e);

	assert_works(fd, e);
	hello = json_set(hello, "major", json_int(PROTOCOL_MAJOR));
	hello = json_set(hello, "minor", json_int(PROTOCOL_MINOR));
	assert_int_equal(message_send(fd, MSG_HELLO, hello, -1, &e), 0);
	wait_for_message(fd, MSG_READY, &m);
	message_clear(&m);
	return fd;
}

static void
test_link__a_new_supervisor_takes_the_place(void **state)
{
	struct run_fixture *r = *state;
	struct message m;
	int fd;

	begin(r, HEAD "  - {id: a, run: '" WAITS("go") "'}\n");
	run_wait_text(r, RUN_ATTEMPTS, "\"op\":\"a\"");
	fd_close(&r->link); /* the supervisor dies: the run goes on */
	fd = adopt(r);
	test_file_write(r->dir.fd, "go", "");
	wait_for_message(fd, MSG_ENDED, &m);
	assert_true(slice_is(json_text(json_get(m.body, "status")), "completed"));
	assert_true(slice_is(json_text(json_get(m.body, "reason")), "run.completed.all"));
	message_clear(&m);
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
	assert_false(run_has_file(r, RUN_SOCKET));
	fd_close(&fd);
}

static void
test_link__ended_comes_last(void **state)
{
	struct run_fixture *r = *state;
	struct message m;
	struct err e = {0};

	begin(r, HEAD "  - {id: a, run: 'exit 1'}\n");
	wait_for_message(r->link, MSG_ENDED, &m);
	assert_true(slice_is(json_text(json_get(m.body, "status")), "failed"));
	message_clear(&m);
	assert_status(r, STATUS_FAILED); /* stored before it was said */
	do
		memset(&e, 0, sizeof(e));
	while (message_recv(r->link, FROM_WORKER, &m, NULL, &e) == 0);
	assert_int_equal(e.code, ERR_NOTFOUND);
	run_expect(r, STATUS_FAILED, "run.failed.operation");
}

/* What a worker left running, by the pid it wrote down. */
static void
end_group(struct run_fixture *r, const char *file)
{
	char *text = run_test_file(r, file);
	pid_t pid = (pid_t)atol(text);

	free(text);
	assert_true(pid > 1);
	assert_int_equal(kill(-pid, SIGKILL), 0);
}

/* The row was made terminal by `kill`: a late worker does not overwrite it. */
static void
test_control__killed_by_somebody_else(void **state)
{
	struct run_fixture *r = *state;
	struct err e = {0};
	bool moved;

	begin(r, HEAD "  - {id: a, run: 'echo $$ > pid; touch on; sleep 1000'}\n");
	while (faccessat(r->dir.fd, "on", F_OK, 0) != 0)
		usleep(10000);
	assert_works(session_transition(r->store, r->run_id, STATUS_CANCELLED, "run.cancelled.killed",
			 NULL, 0, &moved, &e), e);
	assert_true(moved);
	kill(r->worker, SIGTERM);
	run_expect(r, STATUS_CANCELLED, "run.cancelled.killed");
	end_group(r, "pid");
}

/* ---- Going on from a state ---- */

/* Writes carry.json: the state of a run that ended, so that the same directory can go on from it. */
static void
carry(struct run_fixture *r, struct run_fixture *from)
{
	struct buf text = {0};
	struct err e = {0};

	assert_non_null(run_entry(from, "a"));
	json_write(&text, from->state);
	assert_works(fs_create_file(r->run_fd, RUN_CARRY, buf_view(&text), &e), e);
	buf_clear(&text);
}

static void
test_carry__saved_operations_are_not_run_again(void **state)
{
	static const char yaml[] = HEAD
	    "  - {id: a, run: 'echo a >> ran; printf fromA'}\n"
	    "  - {id: b, needs: [a], run: 'echo b >> ran; echo $$ > pid; touch on; " WAITS("go") "; cat \"$FLOWSUP_DEP_a\"'}\n"
	    "  - {id: c, needs: [b], run: 'cat \"$FLOWSUP_DEP_b\"; echo c >> ran'}\n";
	struct run_fixture *r = *state, first = {0};
	char *ran;

	begin(&first, yaml);
	while (faccessat(first.dir.fd, "on", F_OK, 0) != 0)
		usleep(10000);
	kill(first.worker, SIGTERM);
	run_expect(&first, STATUS_CRASHED, "run.crashed.terminated");
	run_make(r, yaml, NULL, NULL);
	carry(r, &first);
	end_group(&first, "pid");
	run_clear(&first);
	test_file_write(r->dir.fd, "go", "");
	run_start(r);
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
	ran = run_test_file(r, "ran");
	assert_string_equal(ran, "b\nc\n");
	free(ran);
	run_assert_response(r, "a", "fromA");
	run_assert_response(r, "c", "fromA");
	assert_int_equal(run_count_events(r, "NodeStarted", NULL), 2);
}

static void
test_carry__nothing_left_is_finished_too(void **state)
{
	static const char yaml[] = HEAD "  - {id: a, run: 'printf 1'}\n";
	struct run_fixture *r = *state, first = {0};

	run_whole(&first, yaml, STATUS_COMPLETED, "run.completed.all");
	run_make(r, yaml, NULL, NULL);
	carry(r, &first);
	run_clear(&first);
	run_start(r);
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
	assert_int_equal(run_count_events(r, "NodeStarted", NULL), 0);
	assert_int_equal(run_count_events(r, "RunEnded", NULL), 1);
}

static void
test_carry__a_kept_failure_blocks_as_a_live_one(void **state)
{
	static const char yaml[] = HEAD "  - {id: a, run: 'exit 1'}\n"
					"  - {id: b, needs: [a], run: 'true'}\n"
					"  - {id: r, needs: [{op: a, on: failure}], run: 'printf r'}\n";
	struct run_fixture *r = *state, first = {0};

	run_whole(&first, yaml, STATUS_FAILED, "run.failed.operation");
	run_make(r, yaml, NULL, NULL);
	carry(r, &first);
	run_clear(&first);
	run_start(r);
	run_expect(r, STATUS_FAILED, "run.failed.operation");
	assert_int_equal(run_count_events(r, "NodeStarted", NULL), 0);
	assert_int_equal(run_count_events(r, "NodeSkipped", "b"), 1);
}

/* ---- Storage ---- */

/* The journal was replaced by a stranger's file: no outcome is acknowledged into it, and either the
 * writer makes a fresh pair, or the run says that outcomes could not be saved. Never both a loss
 * and a success. */
static void
test_storage__a_swapped_journal_loses_nothing(void **state)
{
	struct run_fixture *r = *state;
	struct stat st;

	begin(r, HEAD "  - {id: a, run: '" WAITS("go") "; printf kept'}\n");
	run_wait_text(r, RUN_ATTEMPTS, "\"op\":\"a\"");
	assert_int_equal(unlinkat(r->run_fd, CKPT_JOURNAL, 0), 0);
	test_file_write(r->run_fd, "stranger", "");
	assert_int_equal(linkat(r->run_fd, "stranger", r->run_fd, CKPT_JOURNAL, 0), 0);
	test_file_write(r->dir.fd, "go", "");
	while (r->worker != 0 && kill(r->worker, 0) == 0 )
		if (waitpid(r->worker, &r->status, WNOHANG) == r->worker)
			r->worker = 0;
		else
			usleep(10000);
	assert_int_equal(fstatat(r->run_fd, "stranger", &st, 0), 0);
	assert_int_equal(st.st_size, 0);
	if (status_of(r) == STATUS_COMPLETED)
		run_assert_response(r, "a", "kept");
	else
		run_expect(r, STATUS_FAILED, "run.failed.checkpoint");
}

/* ---- The report on a dead run ---- */

static void
test_report__of_a_killed_worker(void **state)
{
	struct run_fixture *r = *state;
	struct buf worker = {0}, text = {0};
	struct json *report;
	struct err e = {0};
	int fd;

	begin(r, HEAD "  - {id: a, run: 'true'}\n"
		      "  - {id: b, needs: [a], run: 'echo $$ > pid; touch on; sleep 1000'}\n");
	while (faccessat(r->dir.fd, "on", F_OK, 0) != 0)
		usleep(10000);
	kill(r->worker, SIGKILL);
	waitpid(r->worker, NULL, 0);
	r->worker = 0;
	assert_works(proc_relative_to_self("../../libexec/flowsup/flowsup-worker", &worker, &e), e);
	buf_printf(&text, "'%s' --home '%s' --report %s > '%s/report'", buf_text(&worker), r->home.path,
	    r->run_id, r->dir.path);
	assert_int_equal(system(buf_text(&text)), 0);
	buf_reset(&text);
	fd = openat(r->dir.fd, "report", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_works(fs_read_all(&fs_real, "test", fd, IPC_MAX_PACKET, &text, &e), e);
	assert_works(json_parse(buf_view(&text), NULL, &report, NULL, &e), e);
	assert_true(slice_is(json_text(json_get(json_get(report, "checkpoint_recovery"), "status")),
	    "clean"));
	assert_int_equal(json_length(json_get(report, "running_operations")), 1);
	assert_true(slice_is(json_text(json_get(json_at(json_get(report, "running_operations"), 0),
	    "op")), "b"));
	end_group(r, "pid");
	json_unref(report);
	buf_clear(&text);
	buf_clear(&worker);
	fd_close(&fd);
}

#define T(name) cmocka_unit_test_setup_teardown(name, run_setup, run_teardown)
static const struct CMUnitTest tests[] = {
    T(test_control__pause_and_resume),
    T(test_control__the_gate_is_looked_at_after_the_slot),
    T(test_control__stop_drains),
    T(test_control__stop_now),
    T(test_control__a_retry_does_not_start_after_a_stop),
    T(test_control__a_message_that_nobody_takes),
    T(test_control__without_a_poke),
    T(test_link__a_new_supervisor_takes_the_place),
    T(test_link__ended_comes_last),
    T(test_control__killed_by_somebody_else),
    T(test_carry__saved_operations_are_not_run_again),
    T(test_carry__nothing_left_is_finished_too),
    T(test_storage__a_swapped_journal_loses_nothing),
    T(test_report__of_a_killed_worker),
    T(test_carry__a_kept_failure_blocks_as_a_live_one),
};

TEST_MAIN("worker_control", tests)
