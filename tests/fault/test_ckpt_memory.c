/*
 * Every allocation of the checkpoint's code fails, once: opening, admitting, encoding, publishing,
 * loading, migrating, compacting. Each says so or gets over it; what was acknowledged is there.
 */
#include "ckpt_workload.h"
#include "fault_alloc.h"

#include <poll.h>

enum { STEPS = 4 };

static unsigned long cases;

struct prepared {
	struct json *entries[STEPS], *contexts[STEPS], *models[STEPS + 1];
};

static void
prepare(struct prepared *p)
{
	int i;

	p->models[0] = fixture_state(2);
	for (i = 0; i < STEPS; i++) {
		p->entries[i] = i % 2 ? fixture_spawned("n", "completed", "r")
				      : fixture_entry("op-0", i == 0 ? "a" : "b");
		p->contexts[i] = i == 3 ? json_object() : fixture_json("{'l':[1,{'x':'y'}],'k':1.5}");
		p->models[i + 1] = model_apply(json_ref(p->models[i]), i % 2 ? CKPT_SPAWNED : CKPT_OP,
		    p->entries[i], p->contexts[i]);
	}
}

static void
prepared_clear(struct prepared *p)
{
	int i;

	for (i = 0; i <= STEPS; i++)
		json_unref(p->models[i]);
	for (i = 0; i < STEPS; i++) {
		json_unref(p->entries[i]);
		json_unref(p->contexts[i]);
	}
}

/* Waits for the acknowledgement; in trouble a fresh base is asked for. */
static void
settle(struct ckpt_writer *w)
{
	struct pollfd p = {.fd = ckpt_event_fd(w), .events = POLLIN};
	struct ckpt_ack ack;
	struct err e = {0};
	int tries = 0;

	while (ckpt_flush(w, &e) != 0) {
		assert_true(++tries < 10);
		assert_int_equal(e.code, ERR_NOMEM);
		while (ckpt_take_ack(w, &ack))
			json_unref(ack.identity);
		ckpt_retry_now(w);
		poll(&p, 1, 10000);
	}
	while (ckpt_take_ack(w, &ack))
		json_unref(ack.identity);
}

static void
run(const struct fixture *fx, const struct prepared *p)
{
	struct ckpt_options o = workload_options(fx, NULL);
	struct ckpt_writer *w = NULL;
	struct err e = {0};
	int i;

	if (ckpt_writer_open(&o, p->models[0], &w, &e) != 0) {
		assert_int_equal(e.code, ERR_NOMEM);
		assert_works(ckpt_writer_open(&o, p->models[0], &w, &e), e);
	}
	for (i = 0; i < STEPS; i++) {
		const enum ckpt_kind kind = i % 2 ? CKPT_SPAWNED : CKPT_OP;

		if (ckpt_admit(w, kind, json_ref(p->entries[i]), json_ref(p->contexts[i]), NULL, &e) != 0) {
			assert_int_equal(e.code, ERR_NOMEM);
			assert_works(ckpt_admit(w, kind, json_ref(p->entries[i]),
			    json_ref(p->contexts[i]), NULL, &e), e);
		}
		settle(w);
	}
	assert_works(ckpt_writer_close(w, false, &e), e);
}

static void
test_memory__writer(void **unused)
{
	struct prepared p;
	struct fixture fx;
	unsigned long n;
	bool struck;

	(void)unused;
	fixture_make(&fx);
	prepare(&p);
	for (n = 1;; n++) {
		fixture_again(&fx);
		fault_alloc_arm(n, false);
		run(&fx, &p);
		struck = fault_alloc_disarm();
		assert_loads(fx.run_fd, p.models[STEPS], CKPT_CLEAN);
		if (!struck)
			break;
		cases++;
	}
	assert_true(n > 50);
	prepared_clear(&p);
	fixture_remove(&fx);
}

/* One kind of work on a finished checkpoint; true when it succeeded. */
typedef bool work(const struct fixture *fx, const struct json *want);

static bool
work_load(const struct fixture *fx, const struct json *want)
{
	struct ckpt_report report;
	struct json *state = NULL, *object;
	struct err e = {0};
	int result = ckpt_load(fx->run_fd, NULL, &state, &report, &e);

	if (result != 0) {
		assert_int_equal(e.code, ERR_NOMEM);
		assert_null(state);
		return false;
	}
	assert_true(json_equal(state, want));
	state = ckpt_migrate(state, 2, &e);
	object = ckpt_report_json(&report);
	json_unref(state);
	json_unref(object);
	return state != NULL && object != NULL;
}

static bool
work_compact(const struct fixture *fx, const struct json *want)
{
	struct ckpt_options o = workload_options(fx, NULL);
	struct ckpt_report report;
	struct err e = {0};

	(void)want;
	if (ckpt_compact(&o, &report, &e) == 0)
		return true;
	assert_int_equal(e.code, ERR_NOMEM);
	return false;
}

static bool
work_copy(const struct fixture *fx, const struct json *want)
{
	struct err e = {0};

	if (ckpt_write_new(NULL, fx->run_fd, "copy.json", 3, want, &e) == 0)
		return true;
	assert_int_equal(e.code, ERR_NOMEM);
	return false;
}

static int64_t
stale_records(const struct fixture *fx)
{
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};

	assert_works(ckpt_load(fx->run_fd, NULL, &state, &report, &e), e);
	json_unref(state);
	return report.stale_records;
}

static void
test_memory__loading_compacting_copying(void **unused)
{
	static work *const works[] = {work_load, work_compact, work_copy};
	struct prepared p;
	struct fixture fx;
	unsigned long n;
	bool struck;
	size_t i;

	(void)unused;
	fixture_make(&fx);
	prepare(&p);
	run(&fx, &p);
	for (i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		for (n = 1;; n++) {
			const int before = test_count_fds();
			bool good;

			fault_alloc_arm(n, false);
			good = works[i](&fx, p.models[STEPS]);
			struck = fault_alloc_disarm();
			assert_int_equal(test_count_fds(), before);
			/* A compaction that ended behind its base leaves the old journal: stale. */
			assert_loads(fx.run_fd, p.models[STEPS],
			    stale_records(&fx) > 0 ? CKPT_RECOVERED_PREFIX : CKPT_CLEAN);
			if (!struck) {
				assert_true(good);
				assert_int_equal(stale_records(&fx), 0);
				break;
			}
			cases++;
		}
	print_message("# %lu allocations failed\n", cases);
	prepared_clear(&p);
	fixture_remove(&fx);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_memory__writer),
	cmocka_unit_test(test_memory__loading_compacting_copying),
};

int
main(void)
{
	use_fast_directory();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
