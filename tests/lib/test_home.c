#include "test_home.h"

#include <sys/wait.h>
#include <unistd.h>

int
test_home_setup(void **state)
{
	struct test_home *t = calloc(1, sizeof(*t));
	struct err e = {0};

	assert_non_null(t);
	test_dir_make(&t->dir);
	assert_works(home_open(t->dir.path, true, &t->home, &e), e);
	assert_works(store_open(&t->home, STORE_COMMAND, true, STORE_BUSY_MS, &t->store, &e), e);
	*state = t;
	return 0;
}

int
test_home_teardown(void **state)
{
	struct test_home *t = *state;

	store_close(t->store);
	home_close(&t->home);
	test_dir_remove(&t->dir);
	free(t);
	return 0;
}

void
test_home_run(struct test_home *t, const char *kind, const char *resumed_from,
    struct session *out)
{
	char run_id[RUN_ID_TEXT], session_id[UUID_TEXT], invocation_id[INVOCATION_ID_TEXT];
	char name[32];
	struct err e = {0};
	struct session_new n = {.run_id = run_id,
	    .session_id = session_id,
	    .invocation_id = invocation_id,
	    .kind = kind,
	    .name = name,
	    .resumed_from = resumed_from,
	    .total = 3};

	snprintf(name, sizeof(name), "run-%u", t->runs++);
	assert_works(run_id_make(run_id, &e), e);
	assert_works(uuid_make(session_id, &e), e);
	assert_works(invocation_id_make(invocation_id, &e), e);
	assert_works(session_insert(t->store, &n, &e), e);
	assert_works(session_read(t->store, run_id, out, &e), e);
}

void
test_home_move(struct test_home *t, const char *run_id, enum run_status to, const char *reason)
{
	struct err e = {0};
	bool moved = false;

	assert_works(session_transition(t->store, run_id, to, reason, NULL, -1, &moved, &e), e);
	assert_true(moved);
}

void
test_home_running(struct test_home *t, const char *kind, struct session *out)
{
	test_home_run(t, kind, NULL, out);
	test_home_move(t, out->run_id, STATUS_STARTING, "run.starting.forked");
	test_home_move(t, out->run_id, STATUS_RUNNING, "run.running.started");
}

enum run_status
test_home_status(struct test_home *t, const char *run_id)
{
	struct session s;
	struct err e = {0};
	enum run_status status;

	assert_works(session_read(t->store, run_id, &s, &e), e);
	status = s.status;
	session_clear(&s);
	return status;
}

pid_t
test_home_fork(struct test_home *t, test_home_body *body, void *arg)
{
	struct store *own;
	struct err e = {0};
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	/* The parent's connection is not ours: it is neither used nor closed here. */
	if (store_open(&t->home, STORE_WORKER, true, STORE_BUSY_MS, &own, &e) != 0) {
		fprintf(stderr, "# child: %s\n", e.msg);
		_exit(99);
	}
	status = body(own, arg);
	store_close(own);
	_exit(status);
}

int
test_home_join(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}
