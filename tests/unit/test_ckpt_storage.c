/* The writer: storage that fails, and comes back. */
#include "ckpt_world.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void
test_storage__storage_comes_back(void **unused)
{
	struct world s;
	struct err e = {0};

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .persistent = true, .sys = ENOSPC});
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), fixture_json("{'a':1}"));
	assert_fails(ckpt_flush(s.w, &e), ERR_NOSPACE, e);
	assert_true(world_event_waits(&s));
	world_admit(&s, CKPT_OP, fixture_entry("op-1", "r"), fixture_json("{'a':2}"));
	assert_int_equal(ckpt_progress(s.w).acked, 0);
	fault_fs_disarm(s.fs);
	ckpt_retry_now(s.w);
	while (ckpt_flush(s.w, &e) != 0)
		usleep(1000);
	assert_int_equal(ckpt_progress(s.w).health, CKPT_HEALTHY);
	assert_int_equal(ckpt_progress(s.w).acked, 2);
	world_check(&s);
	world_admit(&s, CKPT_OP, fixture_entry("op-2", "r"), NULL);
	world_check(&s);
	world_end(&s);
}

/* The room that the writer sees, instead of that of the file system which others use as well. */
static atomic_int free_blocks = 100;

int
fstatvfs(int fd, struct statvfs *to)
{
	(void)fd;
	*to = (struct statvfs){.f_bfree = (fsblkcnt_t)atomic_load(&free_blocks), .f_ffree = 1};
	return 0;
}

/* Asks for tries until the pause before the next one has grown to its most. */
static void
make_pause_long(struct world *s)
{
	uint64_t number;
	int n;

	for (n = 0; n < 8; n++) {
		number = ckpt_retry_now(s->w);
		while (ckpt_progress(s->w).answered < number)
			usleep(1000);
	}
}

static void
test_storage__more_room_makes_a_try(void **unused)
{
	struct world s;
	struct timespec from, to;
	struct err e = {0};

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .persistent = true, .sys = ENOSPC});
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	assert_fails(ckpt_flush(s.w, &e), ERR_NOSPACE, e);
	make_pause_long(&s);
	fault_fs_disarm(s.fs);
	clock_gettime(CLOCK_MONOTONIC, &from);
	atomic_fetch_add(&free_blocks, 1);
	while (ckpt_flush(s.w, &e) != 0)
		usleep(1000);
	clock_gettime(CLOCK_MONOTONIC, &to);
	/* The timer alone would have taken a minute. */
	assert_true(to.tv_sec - from.tv_sec < 30);
	assert_int_equal(ckpt_progress(s.w).acked, 1);
	world_check(&s);
	world_end(&s);
}

/* More room is no remedy for what was not for want of it. */
static void
test_storage__room_does_not_mend_other_errors(void **unused)
{
	struct world s;
	struct err e = {0};
	uint64_t calls;

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .persistent = true, .sys = EIO});
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	assert_fails(ckpt_flush(s.w, &e), ERR_IO, e);
	make_pause_long(&s);
	fault_fs_disarm(s.fs);
	calls = ckpt_progress(s.w).bases;
	atomic_fetch_add(&free_blocks, 1);
	usleep(1500000); /* longer than from one look to the next */
	assert_int_equal(ckpt_progress(s.w).bases, calls);
	assert_int_equal(ckpt_progress(s.w).health, CKPT_STORAGE);
	ckpt_retry_now(s.w);
	while (ckpt_flush(s.w, &e) != 0)
		usleep(1000);
	world_check(&s);
	world_end(&s);
}

/* Each write takes seven bytes, and every fourth one is interrupted: all is there once. */
static void
test_storage__partial_writes_are_counted(void **unused)
{
	struct world s;
	unsigned i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_SHORT, .seam = "ckpt.append.write", .persistent = true,
	    .bytes = 7});
	for (i = 0; i < 3; i++)
		fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .seam = "ckpt.append.write",
		    .call = 4 + 9 * i, .sys = EINTR});
	for (i = 0; i < 5; i++)
		world_admit(&s, CKPT_OP, fixture_entry("op-0", "some text of an outcome"), fixture_json("{'a':1}"));
	world_check(&s);
	assert_int_equal(fault_fs_bytes(s.fs, "ckpt.append.write"), ckpt_progress(s.w).journal_bytes);
	assert_true(fault_fs_calls(s.fs, "ckpt.append.write") >= ckpt_progress(s.w).journal_bytes / 7);
	assert_int_equal(ckpt_progress(s.w).records, 5);
	world_end(&s);
}

/* The pages of a failed fsync may be gone, and no load on this machine would show it. */
static void
test_storage__failed_fsync_is_never_believed(void **unused)
{
	static const int errors[] = {EIO, ENOSPC, EINVAL};
	struct world s;
	struct ckpt_ack ack;
	struct err e = {0};
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		world_make(&s);
		world_open(&s);
		fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .seam = "ckpt.append.sync",
		    .sys = errors[i]});
		world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
		assert_int_equal(ckpt_flush(s.w, &e), -1);
		assert_int_equal(ckpt_progress(s.w).acked, 0);
		assert_false(ckpt_take_ack(s.w, &ack));
		ckpt_retry_now(s.w);
		while (ckpt_flush(s.w, &e) != 0)
			usleep(1000);
		/* A fresh base holds it; the journal's handle saw no second fsync. */
		assert_true(ckpt_take_ack(s.w, &ack));
		assert_int_equal(ack.seq, 0);
		json_unref(ack.identity);
		assert_int_equal(world_bases(&s), 2);
		assert_int_equal(fault_fs_calls(s.fs, "ckpt.append.sync"), 1);
		world_check(&s);
		world_end(&s);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_storage__storage_comes_back),
	cmocka_unit_test(test_storage__more_room_makes_a_try),
	cmocka_unit_test(test_storage__room_does_not_mend_other_errors),
	cmocka_unit_test(test_storage__partial_writes_are_counted),
	cmocka_unit_test(test_storage__failed_fsync_is_never_believed),
};

TEST_MAIN("checkpoint storage", tests)
