/* The worker's parts that stand alone: the table of moves, readiness by counters, timers, loop,
 * the io thread. */
#include "test.h"

#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/home.h"
#include "worker/io.h"
#include "worker/loop.h"
#include "worker/op.h"
#include "worker/timers.h"

/* ---- The table ---- */

static void
test_op__final_states_have_no_move(void **state)
{
	struct op op = {0};
	int from, to;

	(void)state;
	for (from = 0; from < OP_STATE_COUNT; from++) {
		op.state = (uint8_t)from;
		if (!op_is_settled(&op))
			continue;
		for (to = 0; to < OP_STATE_COUNT; to++)
			assert_false(op_may_become((enum op_state)from, (enum op_state)to));
	}
}

static void
test_op__every_attempt_passes_ready(void **state)
{
	int from;

	(void)state;
	for (from = 0; from < OP_STATE_COUNT; from++) {
		assert_int_equal(op_may_become((enum op_state)from, OP_RUNNING), from == OP_PREPARING);
		assert_int_equal(op_may_become((enum op_state)from, OP_PREPARING), from == OP_READY);
	}
	assert_true(op_may_become(OP_RETRYING, OP_READY));
	assert_false(op_may_become(OP_RETRYING, OP_PREPARING));
	assert_true(op_may_become(OP_PAUSED, OP_READY));
	assert_false(op_may_become(OP_PAUSED, OP_PREPARING));
}

static void
test_op__nothing_started_is_skipped(void **state)
{
	int from;

	(void)state;
	for (from = 0; from < OP_STATE_COUNT; from++)
		assert_int_equal(op_may_become((enum op_state)from, OP_SKIPPED), from == OP_PENDING);
}

/* ---- Lists ---- */

static void
test_op_list__keeps_order(void **state)
{
	struct op ops[4] = {0};
	struct op_list l, head;

	(void)state;
	op_list_init(&l);
	op_list_init(&head);
	assert_int_equal(op_list_pop(&l, ops), OP_NO_INDEX);
	op_list_push(&l, ops, 2);
	op_list_push(&l, ops, 0);
	op_list_push(&head, ops, 3);
	op_list_push(&head, ops, 1);
	op_list_prepend(&l, &head, ops);
	assert_int_equal(head.count, 0);
	assert_int_equal(l.count, 4);
	assert_int_equal(op_list_pop(&l, ops), 3);
	assert_int_equal(op_list_pop(&l, ops), 1);
	assert_int_equal(op_list_pop(&l, ops), 2);
	assert_int_equal(op_list_pop(&l, ops), 0);
	assert_int_equal(op_list_pop(&l, ops), OP_NO_INDEX);
	op_list_push(&head, ops, 1);
	op_list_prepend(&l, &head, ops);
	assert_int_equal(op_list_pop(&l, ops), 1);
}

/* ---- Readiness ---- */

static struct flow *
read_flow(const char *text)
{
	struct flow_source source = {.name = "test", .text = slice_of(text)};
	struct flow *flow = NULL;
	struct err e = {0};

	assert_works(flow_read(&source, &flow, NULL, &e), e);
	return flow;
}

struct met {
	uint32_t ids[16];
	size_t count;
};

static void
note_met(void *arg, uint32_t i)
{
	struct met *m = arg;

	assert_true(m->count < 16);
	m->ids[m->count++] = i;
}

static void
settle(struct op *ops, const struct flow *f, const char *id, enum op_state s, struct met *m)
{
	size_t i = flow_find(f, id);

	assert_true(i != SIZE_MAX);
	ops[i].state = (uint8_t)s;
	op_release(ops, f, (uint32_t)i, note_met, m);
}

static void
test_op_release__counts_down(void **state)
{
	struct flow *f = read_flow("plan:\n"
				   "  - {id: a, run: 'true'}\n"
				   "  - {id: b, run: 'true'}\n"
				   "  - {id: c, needs: [a, b], run: 'true'}\n"
				   "  - {id: d, needs: [a], run: 'true'}\n");
	struct op ops[4] = {0};
	struct met m = {0};

	(void)state;
	op_count_predecessors(ops, f);
	assert_int_equal(ops[2].unmet, 2);
	assert_int_equal(ops[3].unmet, 1);
	settle(ops, f, "a", OP_COMPLETED, &m);
	assert_int_equal(m.count, 1);
	assert_int_equal(m.ids[0], 3);
	settle(ops, f, "b", OP_COMPLETED, &m);
	assert_int_equal(m.count, 2);
	assert_int_equal(m.ids[1], 2);
	flow_free(f);
}

static void
test_op_may_release__asks_what_has_not_ended(void **state)
{
	struct flow *f = read_flow("plan:\n"
				   "  - {id: a, run: 'true'}\n"
				   "  - {id: b, run: 'true'}\n"
				   "  - {id: c, run: 'true'}\n"
				   "  - {id: d, needs: [a, b, c], run: 'true'}\n"
				   "  - {id: e, needs: [b], run: 'true'}\n");
	struct op ops[5] = {0};
	struct met m = {0};

	(void)state;
	op_count_predecessors(ops, f);
	assert_false(op_may_release(ops, f, 0, 1)); /* d: two others have not ended */
	assert_false(op_may_release(ops, f, 0, 2));
	assert_true(op_may_release(ops, f, 0, 3));
	assert_true(op_may_release(ops, f, 1, 1)); /* e needs it alone */
	assert_false(op_may_release(ops, f, 3, 9));
	settle(ops, f, "b", OP_COMPLETED, &m);
	assert_false(op_may_release(ops, f, 0, 1));
	assert_true(op_may_release(ops, f, 0, 2));
	flow_free(f);
}

struct edge_case {
	enum op_state from;
	const char *on;
	enum op_state to;
};

static const struct edge_case edge_cases[] = {
    {OP_COMPLETED, "success", OP_READY},
    {OP_COMPLETED, "failure", OP_SKIPPED},
    {OP_COMPLETED, "always", OP_READY},
    {OP_FAILED, "success", OP_SKIPPED},
    {OP_FAILED, "failure", OP_READY},
    {OP_FAILED, "always", OP_READY},
    {OP_SKIPPED, "success", OP_SKIPPED},
    {OP_SKIPPED, "failure", OP_SKIPPED},
    {OP_SKIPPED, "always", OP_READY},
};

static void
test_op_judge_edges__on(void **state)
{
	struct op ops[2] = {0};
	enum op_state to;
	uint32_t cause;
	struct err e = {0};
	char text[256];
	struct flow *f;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(edge_cases) / sizeof(edge_cases[0]); i++) {
		snprintf(text, sizeof(text), "plan:\n  - {id: a, run: 'true'}\n"
		    "  - {id: b, needs: [{op: a, on: %s}], run: 'true'}\n", edge_cases[i].on);
		f = read_flow(text);
		ops[0].state = (uint8_t)edge_cases[i].from;
		ops[0].cause = 7;
		cause = OP_NO_INDEX;
		assert_works(op_judge_edges(ops, f, NULL, 1, &to, &cause, &e), e);
		assert_int_equal(to, edge_cases[i].to);
		if (to == OP_SKIPPED) /* the cause is where it began */
			assert_int_equal(cause, edge_cases[i].from == OP_SKIPPED ? 7 : 0);
		flow_free(f);
	}
}

static void
test_op_judge_edges__never_takes_a_reference_for_an_answer(void **state)
{
	struct flow *f = read_flow("plan:\n  - {id: a, response: json, run: 'true'}\n"
				   "  - {id: b, needs: [{op: a, when: {pointer: /file, exists: true}}], "
				   "run: 'true'}\n");
	struct op ops[2] = {0};
	struct json *answers;
	enum op_state to;
	uint32_t cause;
	struct err e = {0};

	(void)state;
	ops[0].state = OP_COMPLETED;
	ops[0].response = json_set(json_set(json_set(json_object(), "file", json_cstr("x")), "size",
	    json_int(1)), "digest", json_cstr("d"));
	assert_works(op_judge_edges(ops, f, NULL, 1, &to, &cause, &e), e);
	assert_int_equal(to, OP_READY);
	ops[0].by_reference = true;
	assert_fails(op_judge_edges(ops, f, NULL, 1, &to, &cause, &e), ERR_LIMIT, e);
	answers = json_set(json_object(), "a", json_set(json_object(),
	    "{\"pointer\":\"/file\",\"exists\":true}", json_set(json_object(), "holds", json_bool(false))));
	assert_works(op_judge_edges(ops, f, answers, 1, &to, &cause, &e), e);
	assert_int_equal(to, OP_SKIPPED);
	assert_int_equal(cause, 1);
	json_unref(answers);
	json_unref(ops[0].response);
	flow_free(f);
}

/* ---- Timers ---- */

enum { TIMERS = 500 };

struct fired {
	int order[TIMERS];
	int count;
};
static struct fired fired;
static struct timer timers_of[TIMERS];

static void
note_fired(void *arg)
{
	struct timer *t = arg;

	fired.order[fired.count++] = (int)(t - timers_of);
}

static void
test_timers__fire_in_order(void **state)
{
	struct timers t = {0};
	struct err e = {0};
	uint32_t seed = 12345;
	int i, left = 0;

	(void)state;
	memset(timers_of, 0, sizeof(timers_of));
	fired.count = 0;
	for (i = 0; i < TIMERS; i++) {
		seed = seed * 1664525u + 1013904223u;
		assert_works(timer_arm(&t, &timers_of[i], (int64_t)(seed >> 8), note_fired, &timers_of[i],
				 &e), e);
	}
	for (i = 0; i < TIMERS; i += 3)
		timer_disarm(&t, &timers_of[i]);
	for (i = 1; i < TIMERS; i += 3) { /* moved */
		seed = seed * 1664525u + 1013904223u;
		assert_works(timer_arm(&t, &timers_of[i], (int64_t)(seed >> 8), note_fired, &timers_of[i],
				 &e), e);
	}
	for (i = 0; i < TIMERS; i++)
		left += timer_is_armed(&timers_of[i]);
	while (timers_nearest(&t) != INT64_MAX)
		timers_run(&t, timers_nearest(&t));
	assert_int_equal(fired.count, left);
	for (i = 1; i < fired.count; i++)
		assert_true(timers_of[fired.order[i - 1]].at_ns <= timers_of[fired.order[i]].at_ns);
	timers_clear(&t);
}

static struct timers again_timers;
static int again_count;

static void
arm_again(void *arg)
{
	struct err e = {0};

	again_count++;
	assert_works(timer_arm(&again_timers, arg, 0, arm_again, arg, &e), e);
}

static void
test_timers__what_is_armed_anew_waits_for_the_next_call(void **state)
{
	struct timer t = {0};
	struct err e = {0};

	(void)state;
	assert_works(timer_arm(&again_timers, &t, 0, arm_again, &t, &e), e);
	assert_int_equal(timers_run(&again_timers, 10), 1);
	assert_int_equal(again_count, 1);
	timers_clear(&again_timers);
}

/* ---- Loop ---- */

struct piped {
	struct poller *loop;
	struct poller_source source;
	int fds[2];
	struct piped *others;
	int seen;
};

/* Removes itself and one that is ready too: neither may be called again in this turn. */
static void
piped_ready(void *arg, short revents)
{
	struct piped *p = arg;

	assert_true((revents & POLLIN) != 0);
	p->seen++;
	poller_unwatch(p->loop, &p->source);
	poller_unwatch(p->loop, &p->others[1].source);
}

static void
test_loop__handlers_may_remove(void **state)
{
	struct piped p[4] = {0};
	struct err e = {0};
	struct poller l;
	int i;

	(void)state;
	assert_works(poller_init(&l, &e), e);
	for (i = 0; i < 4; i++) {
		p[i].loop = &l;
		p[i].others = p;
		assert_int_equal(pipe(p[i].fds), 0);
		assert_int_equal(write(p[i].fds[1], "x", 1), 1);
		assert_works(poller_watch(&l, &p[i].source, p[i].fds[0], POLLIN, piped_ready, &p[i], &e),
		    e);
	}
	assert_works(poller_turn(&l, &e), e);
	assert_int_equal(p[0].seen, 1);
	assert_int_equal(p[1].seen, 0);
	assert_int_equal(p[2].seen, 1);
	assert_int_equal(p[3].seen, 1);
	assert_int_equal(l.count, 1); /* the timer's */
	for (i = 0; i < 4; i++) {
		close(p[i].fds[0]);
		close(p[i].fds[1]);
	}
	poller_clear(&l);
}

static void
note_loop_timer(void *arg)
{
	++*(int *)arg;
}

static void
test_loop__a_nearer_timer_wakes_it(void **state)
{
	struct timer far = {0}, near = {0};
	struct err e = {0};
	struct poller l;
	int far_count = 0, near_count = 0;

	(void)state;
	assert_works(poller_init(&l, &e), e);
	assert_works(timer_arm(&l.timers, &far, INT64_MAX / 2, note_loop_timer, &far_count, &e), e);
	l.again = true;
	assert_works(poller_turn(&l, &e), e);
	assert_works(timer_arm(&l.timers, &near, clock_monotonic_ns() + NS_PER_MS, note_loop_timer,
			 &near_count, &e), e);
	while (near_count == 0)
		assert_works(poller_turn(&l, &e), e);
	assert_int_equal(far_count, 0);
	poller_clear(&l);
}

/* ---- The io thread ---- */

struct look_job {
	struct io_job job;
	char *seen; /* what stood in the event log when it was its turn */
};

static void
look_work(struct io_job *job, struct io_context *c)
{
	((struct look_job *)job)->seen = test_file_read(c->run_fd, RUN_EVENTS);
}

static void
look_done(struct io_job *job, void *owner)
{
	(void)job;
	(void)owner;
}

static void
test_io__a_job_may_come_after_the_lines_before_it(void **state)
{
	struct look_job look = {.job = {.work = look_work, .done = look_done}};
	struct err e = {0};
	struct test_dir dir;
	struct home home; /* without a database */
	struct io *io;
	int round;

	(void)state;
	test_dir_make(&dir);
	home = (struct home){dir.path, dir.fd, -1};
	assert_works(io_open(&home, dir.fd, dir.fd, "run", &io, &e), e);
	for (round = 0; round < 2; round++) {
		assert_works(io_append(io, IO_LOG_EVENTS, slice_of("line\n"), &e), e);
		io_logs_first(io);
		io_submit(io, &look.job);
		while (io_pending(io) > 0)
			io_take(io, NULL);
		assert_string_equal(look.seen, round == 0 ? "line\n" : "line\nline\n");
		free(look.seen);
	}
	io_close(io, NULL);
	test_dir_remove(&dir);
}

/* ---- Lengthy jobs ---- */

/* Lasts until it may end: `until` is the descriptor that tells, or -1: as long as it is of use. */
struct lengthy_job {
	struct io_job job;
	int until, calls;
	bool over;
};

static void
lengthy_work(struct io_job *job, struct io_context *c)
{
	struct lengthy_job *j = (struct lengthy_job *)job;
	char byte;

	j->calls++;
	if (!job->lengthy) {
		job->lengthy = true;
		return;
	}
	if (j->until >= 0)
		assert_int_equal(read(j->until, &byte, 1), 1);
	while (j->until < 0 && !*c->enough)
		usleep(1000);
	job->result = 0;
}

static void
lengthy_done(struct io_job *job, void *owner)
{
	(void)owner;
	((struct lengthy_job *)job)->over = true;
}

static void
test_io__nothing_waits_behind_a_lengthy_job(void **state)
{
	enum { MANY = IO_LENGTHY_MOST + 2 };
	struct lengthy_job lengthy[MANY] = {0}, never = {.until = -1};
	struct look_job look = {.job = {.work = look_work, .done = look_done}};
	struct err e = {0};
	struct test_dir dir;
	struct home home;
	struct io *io;
	int pair[2], i;

	(void)state;
	test_dir_make(&dir);
	home = (struct home){dir.path, dir.fd, -1};
	assert_int_equal(pipe(pair), 0);
	assert_works(io_open(&home, dir.fd, dir.fd, "run", &io, &e), e);
	for (i = 0; i < MANY; i++) {
		lengthy[i].until = pair[0];
		lengthy[i].job.work = lengthy_work;
		lengthy[i].job.done = lengthy_done;
		io_submit(io, &lengthy[i].job);
	}
	io_submit(io, &look.job);
	while (io_pending(io) > MANY)
		io_take(io, NULL);
	for (i = 0; i < MANY; i++)
		assert_false(lengthy[i].over);
	assert_int_equal(write(pair[1], "123456", MANY), MANY);
	while (io_pending(io) > 0)
		io_take(io, NULL);
	for (i = 0; i < MANY; i++) {
		assert_true(lengthy[i].over && !lengthy[i].job.given_up);
		assert_int_equal(lengthy[i].calls, 2);
	}
	never.job.work = lengthy_work;
	never.job.done = lengthy_done;
	io_submit(io, &never.job);
	io_close(io, NULL);
	assert_true(never.over && never.job.given_up);
	free(look.seen);
	close(pair[0]);
	close(pair[1]);
	test_dir_remove(&dir);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_op__final_states_have_no_move),
    cmocka_unit_test(test_op__every_attempt_passes_ready),
    cmocka_unit_test(test_op__nothing_started_is_skipped),
    cmocka_unit_test(test_op_list__keeps_order),
    cmocka_unit_test(test_op_release__counts_down),
    cmocka_unit_test(test_op_may_release__asks_what_has_not_ended),
    cmocka_unit_test(test_op_judge_edges__on),
    cmocka_unit_test(test_op_judge_edges__never_takes_a_reference_for_an_answer),
    cmocka_unit_test(test_timers__fire_in_order),
    cmocka_unit_test(test_timers__what_is_armed_anew_waits_for_the_next_call),
    cmocka_unit_test(test_loop__handlers_may_remove),
    cmocka_unit_test(test_loop__a_nearer_timer_wakes_it),
    cmocka_unit_test(test_io__a_job_may_come_after_the_lines_before_it),
    cmocka_unit_test(test_io__nothing_waits_behind_a_lengthy_job),
};

TEST_MAIN("worker_parts", tests)
