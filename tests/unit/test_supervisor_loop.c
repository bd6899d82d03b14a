/* supervisor/loop: sources that vanish while a turn goes on; timers. */
#include "test.h"

#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "supervisor/loop.h"

struct fixture {
	struct loop loop;
	struct source a, b;
	int pair_a[2], pair_b[2];
	int heard_a, heard_b, fired;
	bool a_closes_b;
};

static void
hear_a(void *arg)
{
	struct fixture *f = arg;

	f->heard_a++;
	if (f->a_closes_b)
		loop_close(&f->loop, &f->b);
	loop_close(&f->loop, &f->a);
}

static void
hear_b(void *arg)
{
	struct fixture *f = arg;

	f->heard_b++;
	/* Whichever of two is heard first closes both. */
	loop_close(&f->loop, &f->a);
	loop_close(&f->loop, &f->b);
}

static void
fire(void *arg)
{
	struct fixture *f = arg;

	f->fired++;
}

static void
start(struct fixture *f)
{
	struct err e = {0};

	memset(f, 0, sizeof(*f));
	f->a.fd = f->b.fd = -1;
	assert_works(loop_init(&f->loop, &e), e);
	assert_works(ipc_pair(f->pair_a, &e), e);
	assert_works(ipc_pair(f->pair_b, &e), e);
	assert_works(loop_add(&f->loop, &f->a, f->pair_a[0], hear_a, f, &e), e);
	assert_works(loop_add(&f->loop, &f->b, f->pair_b[0], hear_b, f, &e), e);
}

static void
end(struct fixture *f)
{
	loop_close(&f->loop, &f->a);
	loop_close(&f->loop, &f->b);
	fd_close(&f->pair_a[1]);
	fd_close(&f->pair_b[1]);
	loop_clear(&f->loop);
}

static void
test_loop__a_source_closed_by_another_is_not_called(void **state)
{
	struct fixture f;
	struct err e = {0};
	int before = test_count_fds();

	(void)state;
	start(&f);
	f.a_closes_b = true;
	assert_works(ipc_send(f.pair_a[1], slice_of("x"), -1, &e), e);
	assert_works(ipc_send(f.pair_b[1], slice_of("x"), -1, &e), e);
	assert_works(loop_turn(&f.loop, true, &e), e);
	assert_int_equal(f.heard_a + f.heard_b, 1);
	assert_int_equal(f.a.fd, -1);
	assert_int_equal(f.b.fd, -1);
	assert_works(loop_turn(&f.loop, false, &e), e);
	assert_int_equal(f.heard_a + f.heard_b, 1);
	end(&f);
	assert_int_equal(test_count_fds(), before);
}

static void
test_loop__removing_twice_is_harmless(void **state)
{
	struct fixture f;
	struct err e = {0};
	int fd;

	(void)state;
	start(&f);
	fd = f.a.fd;
	loop_remove(&f.loop, &f.a);
	loop_remove(&f.loop, &f.a);
	assert_int_equal(f.a.fd, fd);
	assert_works(ipc_send(f.pair_a[1], slice_of("x"), -1, &e), e);
	assert_works(loop_turn(&f.loop, false, &e), e);
	assert_int_equal(f.heard_a, 0);
	end(&f);
}

static void
test_loop__timers_fire_once_and_the_earlier_counts(void **state)
{
	struct fixture f;
	struct err e = {0};
	int64_t now = clock_monotonic_ns();

	(void)state;
	start(&f);
	loop_on_timer(&f.loop, 0, fire, &f);
	loop_on_timer(&f.loop, 1, fire, &f);
	loop_set_timer(&f.loop, 0, now + 3600 * NS_PER_S);
	loop_set_timer(&f.loop, 0, now + 1);
	loop_set_timer(&f.loop, 0, now + 3600 * NS_PER_S);
	loop_set_timer(&f.loop, 1, now + 1);
	loop_stop_timer(&f.loop, 1);
	assert_true(loop_timer_is_set(&f.loop, 0));
	assert_works(loop_turn(&f.loop, true, &e), e);
	assert_int_equal(f.fired, 1);
	assert_false(loop_timer_is_set(&f.loop, 0));
	assert_works(loop_turn(&f.loop, false, &e), e);
	assert_int_equal(f.fired, 1);
	end(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_loop__a_source_closed_by_another_is_not_called),
    cmocka_unit_test(test_loop__removing_twice_is_harmless),
    cmocka_unit_test(test_loop__timers_fire_once_and_the_earlier_counts),
};

TEST_MAIN("supervisor_loop", tests)
