/* What the tests of checkpoints share: a run directory, states and entries, a model to compare. */
#ifndef FLOWSUP_TEST_CKPT_FIXTURE_H
#define FLOWSUP_TEST_CKPT_FIXTURE_H

#include "test.h"

#include "flowsup/checkpoint.h"

#define FIXTURE_RUN "20261129T101500-ab12cd"

struct fixture {
	struct test_dir home; /* stands for runs/ */
	int run_fd;
};
void fixture_make(struct fixture *f);
void fixture_remove(struct fixture *f);
/* Empties the run directory by making it anew. */
void fixture_again(struct fixture *f);
/* Options of version 3 with the default limits; fs may be NULL. */
struct ckpt_options fixture_options(const struct fixture *f, const struct fs_ops *fs);

/* A state with `operations` planned operations op-0, op-1, ... and an empty context. */
struct json *fixture_state(unsigned operations);
/* Parses a text in which ' stands for ". Ends the test when it is not JSON. */
struct json *fixture_json(const char *text);
struct json *fixture_entry(const char *agent_id, const char *response);
struct json *fixture_spawned(const char *node_id, const char *status, const char *response);

/* What the checkpoint must hold after a transition: made by searching, not by the code under test.
 * Consumes state; borrows entry and context (either may be NULL). */
struct json *model_apply(struct json *state, enum ckpt_kind kind, const struct json *entry,
    const struct json *context);

/* Loads and asserts that the state equals `expected` and the report's status is `status`. */
void assert_loads(int run_fd, const struct json *expected, enum ckpt_status status);
/* The same comparison, without cmocka: true when equal. */
bool state_equals(const struct json *a, const struct json *b);
/* Writes base and journal (either may be NULL) into the run directory, mode 0600. */
void put_pair(int run_fd, const char *base, const char *journal);

/* The seams of the checkpoint's own code, generated from its call sites. */
extern const char *const ckpt_seams[];
extern const size_t ckpt_nseams;

#endif
