/*
 * A run made from the text of a flow document, and its worker started as a supervisor would: for
 * tests of the worker without supervisor and commands. Each function ends the test on failure.
 */
#ifndef FLOWSUP_RUN_FIXTURE_H
#define FLOWSUP_RUN_FIXTURE_H

#include "test.h"

#include "flowsup/flow.h"
#include "flowsup/home.h"
#include "flowsup/json.h"
#include "flowsup/protocol.h"
#include "flowsup/store.h"

struct run_fixture {
	struct test_dir dir;
	struct home home;
	struct store *store;
	char run_id[RUN_ID_TEXT], session_id[UUID_TEXT];
	int run_fd;
	int link;     /* the supervisor's end */
	pid_t worker; /* 0: none */
	int status;   /* of waitpid, once it has ended */
	struct json *state; /* of the checkpoint, once loaded */
	char *events;	    /* text of events.jsonl, once read */
};

/* options is a JSON text for launch.json or NULL. Further variables of the submitter's environment
 * stand in `more` ("NAME=value", NULL-terminated) or it is NULL; TEST_DIR and PATH are there. */
void run_make(struct run_fixture *r, const char *flow_yaml, const char *options,
    const char *const *more);
/* The same from a normalised flow that the caller has made; consumes it. */
void run_make_flow(struct run_fixture *r, struct flow *flow, const char *options,
    const char *const *more);
/* Starts the worker with the run's lock, a socket and a heartbeat. */
void run_start(struct run_fixture *r);
/* Waits for the worker's end, and asserts exit status 0 and this status and reason of the run. */
void run_expect(struct run_fixture *r, enum run_status status, const char *reason_code);
/* run_make, run_start, run_expect. */
void run_whole(struct run_fixture *r, const char *flow_yaml, enum run_status status,
    const char *reason_code);
/* Ends what is left of the worker by its pid, removes everything. Harmless on a zeroed struct. */
void run_clear(struct run_fixture *r);
/* For cmocka: *state is a fixture, empty, and cleared and freed. */
int run_setup(void **state);
int run_teardown(void **state);

/* Waits for a file below the run's directory, or for `text` in it. */
void run_wait_file(struct run_fixture *r, const char *name);
void run_wait_text(struct run_fixture *r, const char *name, const char *text);
/* A file of the run's directory or of the test's, NUL-terminated, to be freed. */
char *run_file(struct run_fixture *r, const char *name);
char *run_test_file(struct run_fixture *r, const char *name);
bool run_has_file(struct run_fixture *r, const char *name);

/* The entry of an operation in the checkpoint, or NULL; borrowed. After the end of the worker. */
const struct json *run_entry(struct run_fixture *r, const char *op);
void run_assert_entry(struct run_fixture *r, const char *op, const char *status);
void run_assert_response(struct run_fixture *r, const char *op, const char *text);
/* {"class":…} of a failed entry, and that its message holds `part` (NULL: whatever). */
void run_assert_failure(struct run_fixture *r, const char *op, const char *class,
    const char *part);
/* How many events have this name (and this op, if not NULL). */
size_t run_count_events(struct run_fixture *r, const char *name, const char *op);
/* The first such event as an object, to be freed; NULL when there is none. */
struct json *run_event(struct run_fixture *r, const char *name, const char *op);

/* Inserts a control and pokes the worker; waits until it has a result, which is to be freed. */
char *run_control(struct run_fixture *r, const char *verb, const char *payload);
void run_poke(struct run_fixture *r);

#endif
