/* A state directory of a test, its database, and runs in it. */
#ifndef FLOWSUP_TEST_HOME_H
#define FLOWSUP_TEST_HOME_H

#include "test.h"

#include "flowsup/home.h"
#include "flowsup/store.h"

struct test_home {
	struct test_dir dir;
	struct home home;
	struct store *store;
	unsigned runs; /* made by test_home_run, for their names */
};
/* Each ends the test on failure. A setup and teardown of cmocka: *state is the struct. */
int test_home_setup(void **state);
int test_home_teardown(void **state);

/* Inserts a queued run without a directory; resumed_from is a session id or NULL. */
void test_home_run(struct test_home *t, const char *kind, const char *resumed_from,
    struct session *out);
/* The same, brought to running. */
void test_home_running(struct test_home *t, const char *kind, struct session *out);
void test_home_move(struct test_home *t, const char *run_id, enum run_status to,
    const char *reason);
enum run_status test_home_status(struct test_home *t, const char *run_id);

/* Runs `body` in a child process with a connection of its own; returns the child's pid. The child
 * leaves with what body returns. */
typedef int test_home_body(struct store *s, void *arg);
pid_t test_home_fork(struct test_home *t, test_home_body *body, void *arg);
/* Exit status of a child; the test fails when it ended otherwise. */
int test_home_join(pid_t pid);

#endif
