/* The writer: what waits together is written together, and whoever waits is served. */
#include "ckpt_world.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/* Holds the writer's thread at a step until let go. */
struct gate {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool reached, open;
};

static void
gate_hook(void *arg, const struct fault_call *call)
{
	struct gate *g = arg;

	(void)call;
	pthread_mutex_lock(&g->mutex);
	g->reached = true;
	pthread_cond_broadcast(&g->cond);
	while (!g->open)
		pthread_cond_wait(&g->cond, &g->mutex);
	pthread_mutex_unlock(&g->mutex);
}

static void
gate_wait(struct gate *g)
{
	pthread_mutex_lock(&g->mutex);
	while (!g->reached)
		pthread_cond_wait(&g->cond, &g->mutex);
	pthread_mutex_unlock(&g->mutex);
}

static void
gate_open(struct gate *g)
{
	pthread_mutex_lock(&g->mutex);
	g->open = true;
	pthread_cond_broadcast(&g->cond);
	pthread_mutex_unlock(&g->mutex);
}

static void
test_batches__what_waits_together_shares_one_fsync(void **unused)
{
	struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
	struct world s;
	int i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_HOOK_BEFORE, .seam = "ckpt.append.sync",
	    .hook = gate_hook, .arg = &g});
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	gate_wait(&g);
	for (i = 0; i < 50; i++)
		world_admit(&s, CKPT_OP, fixture_entry("op-1", "r"), fixture_json("{'a':1}"));
	/* Nothing is acknowledged while the fsync that would cover it has not ended. */
	assert_int_equal(ckpt_progress(s.w).acked, 0);
	gate_open(&g);
	world_check(&s);
	assert_int_equal(ckpt_progress(s.w).acked, 51);
	assert_int_equal(fault_fs_calls(s.fs, "ckpt.append.sync"), 2);
	assert_int_equal(fault_fs_calls(s.fs, "ckpt.append.write"), 2);
	world_end(&s);
}

/* For longer than the test may take, so that only what is tested ends the gathering. */
static void
test_batches__outcomes_gather_until_somebody_waits(void **unused)
{
	struct world s;
	int i;

	(void)unused;
	world_make(&s);
	s.o.gather_ms = 600000;
	world_open(&s);
	for (i = 0; i < 20; i++)
		world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	assert_int_equal(ckpt_progress(s.w).acked, 0);
	world_check(&s);
	assert_int_equal(ckpt_progress(s.w).acked, 20);
	assert_int_equal(fault_fs_calls(s.fs, "ckpt.append.sync"), 1);
	/* A change of the context is what somebody waits for: it takes along what came before. */
	world_admit(&s, CKPT_OP, fixture_entry("op-1", "r"), NULL);
	world_admit(&s, CKPT_CONTEXT, NULL, fixture_json("{'a':1}"));
	assert_true(test_wait_for(world_all_acked, s.w));
	assert_loads(s.fx.run_fd, s.model, CKPT_CLEAN);
	/* The end too. */
	world_admit(&s, CKPT_OP, fixture_entry("op-2", "r"), NULL);
	world_end(&s);
}

/* And what came before it. */
static void
test_batches__what_is_waited_for_does_not_gather(void **unused)
{
	struct world s;
	struct json *entry;
	struct err e = {0};
	uint64_t ticket;

	(void)unused;
	world_make(&s);
	s.o.gather_ms = 600000;
	world_open(&s);
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	entry = fixture_entry("op-1", "r");
	s.model = model_apply(s.model, CKPT_OP, entry, NULL);
	assert_works(ckpt_admit_now(s.w, CKPT_OP, entry, NULL, &ticket, &e), e);
	assert_true(test_wait_for(world_all_acked, s.w));
	assert_int_equal(ckpt_progress(s.w).acked, 2);
	/* What comes behind it gathers again. */
	world_admit(&s, CKPT_OP, fixture_entry("op-2", "r"), NULL);
	assert_int_equal(ckpt_progress(s.w).acked, 2);
	ckpt_hurry(s.w);
	assert_true(test_wait_for(world_all_acked, s.w));
	assert_int_equal(fault_fs_calls(s.fs, "ckpt.append.sync"), 2);
	/* Nothing waits: the next one is not meant. */
	ckpt_hurry(s.w);
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "s"), NULL);
	assert_int_equal(ckpt_progress(s.w).acked, 3);
	world_end(&s);
}

static void
test_batches__outcomes_do_not_gather_for_ever(void **unused)
{
	struct world s;

	(void)unused;
	world_make(&s);
	s.o.gather_ms = 1;
	world_open(&s);
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	assert_true(test_wait_for(world_all_acked, s.w));
	world_end(&s);
}

/* A context that is changed further while it is being saved: each admission keeps its version. */
static void
test_batches__later_versions_do_not_reach_into_earlier_ones(void **unused)
{
	struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
	struct world s;
	struct json *context = json_object();
	int i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_HOOK_BEFORE, .seam = "ckpt.append.write",
	    .hook = gate_hook, .arg = &g});
	for (i = 0; i < 40; i++) {
		context = json_set(context, "n", json_int(i));
		context = json_set(context, i % 2 ? "odd" : "even", json_int(i));
		world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), json_ref(context));
		if (i == 0)
			gate_wait(&g);
	}
	context = json_set(context, "n", json_cstr("never admitted"));
	gate_open(&g);
	world_check(&s);
	json_unref(context);
	world_end(&s);
}

static void
test_batches__abandoned_outcomes_are_reported(void **unused)
{
	struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
	struct world s;
	struct err e = {0};

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .persistent = true, .sys = ENOSPC});
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	assert_fails(ckpt_flush(s.w, &e), ERR_NOSPACE, e);
	assert_int_equal(ckpt_progress(s.w).health, CKPT_STORAGE);
	assert_fails(ckpt_writer_close(s.w, true, &e), ERR_NOSPACE, e);
	assert_non_null(strstr(e.msg, "1 outcome was not saved"));
	s.w = NULL;
	gate_open(&g);
	world_end(&s);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_batches__what_waits_together_shares_one_fsync),
	cmocka_unit_test(test_batches__outcomes_gather_until_somebody_waits),
	cmocka_unit_test(test_batches__what_is_waited_for_does_not_gather),
	cmocka_unit_test(test_batches__outcomes_do_not_gather_for_ever),
	cmocka_unit_test(test_batches__later_versions_do_not_reach_into_earlier_ones),
	cmocka_unit_test(test_batches__abandoned_outcomes_are_reported),
};

TEST_MAIN("checkpoint batches", tests)
