/* The writer: when a base is published, and that it holds everything. */
#include "ckpt_world.h"

static void
test_compaction__base_after_so_many_records(void **unused)
{
	struct world s;
	struct ckpt_ack ack;
	uint64_t last = 0;
	int i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	for (i = 0; i < 129; i++) {
		world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
		world_flush(&s);
		assert_int_equal(world_bases(&s), i < 128 ? 1 : 2);
		while (ckpt_take_ack(s.w, &ack)) {
			assert_int_equal(ack.seq, i < 128 ? last + 1 : 0);
			last = ack.seq;
			json_unref(ack.identity);
		}
	}
	assert_int_equal(ckpt_progress(s.w).records, 128);
	world_admit(&s, CKPT_OP, fixture_entry("op-1", "r"), NULL);
	world_check(&s);
	assert_true(ckpt_take_ack(s.w, &ack));
	assert_int_equal(ack.seq, 1);
	json_unref(ack.identity);
	world_end(&s);
}

static struct json *
long_entry(const char *id, size_t len)
{
	char *text = malloc(len + 1);
	struct json *entry;

	assert_non_null(text);
	memset(text, 'a', len);
	text[len] = '\0';
	entry = fixture_entry(id, text);
	free(text);
	return entry;
}

static void
test_compaction__base_before_the_journal_passes_its_bytes(void **unused)
{
	struct world s;
	struct stat st;
	int i;

	(void)unused;
	world_make(&s);
	s.o.compact_bytes = 4096;
	s.o.literal_limits = true;
	world_open(&s);
	for (i = 0; i < 20; i++) {
		world_admit(&s, CKPT_OP, long_entry("op-0", 1000), NULL);
		world_flush(&s);
		assert_int_equal(fstatat(s.fx.run_fd, CKPT_JOURNAL, &st, 0), 0);
		assert_true(st.st_size <= 4096);
	}
	assert_int_equal(world_bases(&s), 1 + 20 / 4);
	world_check(&s);
	world_end(&s);
}

static void
test_compaction__oversized_transition_goes_into_a_base(void **unused)
{
	struct world s;

	(void)unused;
	world_make(&s);
	s.o.compact_bytes = 4096;
	world_open(&s);
	world_admit(&s, CKPT_OP, long_entry("op-0", 5000), fixture_json("{'a':1}"));
	world_check(&s);
	assert_int_equal(world_bases(&s), 2);
	assert_int_equal(ckpt_progress(s.w).records, 0);
	world_end(&s);
}

static void
test_compaction__journal_of_a_large_base_grows_as_long(void **unused)
{
	struct world s;
	struct stat base, journal;
	uint64_t before;
	int i;

	(void)unused;
	world_make(&s);
	s.o.compact_records = 2;
	world_open(&s);
	world_admit(&s, CKPT_OP, long_entry("op-0", 2 << 20), NULL);
	world_flush(&s);
	world_admit(&s, CKPT_CONTEXT, NULL, json_object());
	world_flush(&s);
	before = world_bases(&s);
	for (i = 0; i < 60; i++) {
		assert_int_equal(fstatat(s.fx.run_fd, CKPT_BASE, &base, 0), 0);
		assert_int_equal(fstatat(s.fx.run_fd, CKPT_JOURNAL, &journal, 0), 0);
		world_admit(&s, CKPT_OP, long_entry("op-1", 60000), NULL);
		world_flush(&s);
		if (world_bases(&s) != before) {
			assert_true(journal.st_size >= base.st_size);
			break;
		}
	}
	assert_in_range(i, 30, 40);
	world_check(&s);
	world_end(&s);
}

/* Text with everything that is escaped, so that no cut between pieces may fall into it unseen. */
static struct json *
awkward_entry(const char *id, const char *node_id, size_t len)
{
	static const char unit[] = "{[\"\\\\\"}]\xe2\x82\xac,\n";
	struct buf b = {0};
	struct json *entry;

	while (b.len < len)
		buf_puts(&b, unit);
	entry = node_id != NULL ? fixture_spawned(node_id, "completed", buf_text(&b)) :
				  fixture_entry(id, buf_text(&b));
	buf_clear(&b);
	return entry;
}

/* A base is put together from encodings that were kept, from values, and in pieces: of a plan and of
 * entries below and above what makes a difference, each of them replaced once. */
static void
test_compaction__bases_made_of_pieces(void **unused)
{
	static const size_t sizes[] = {0, 100, 4000, 4200, 260000, 600000};
	const size_t n = sizeof(sizes) / sizeof(sizes[0]);
	struct world s;
	char id[16];
	size_t i;

	(void)unused;
	world_make(&s);
	json_unref(s.model);
	s.model = fixture_state(4000); /* a plan of half a megabyte */
	s.o.compact_records = 3;
	s.o.literal_limits = true;
	world_open(&s);
	world_check(&s);
	for (i = 0; i < 2 * n; i++) {
		snprintf(id, sizeof(id), "op-%zu", i % n);
		world_admit(&s, CKPT_OP, awkward_entry(id, NULL, sizes[i / 2]), NULL);
		snprintf(id, sizeof(id), "n%zu", i % n);
		world_admit(&s, CKPT_SPAWNED, awkward_entry(NULL, id, sizes[(i + 3) % n]),
		    i % 4 == 0 ? awkward_entry("c", NULL, sizes[i / 2]) : NULL);
		world_check(&s);
	}
	assert_true(world_bases(&s) > 4);
	/* and a writer that goes on from such a state keeps it */
	assert_int_equal(ckpt_writer_close(s.w, false, NULL), 0);
	fixture_again(&s.fx);
	s.o.run_fd = s.fx.run_fd;
	world_open(&s);
	world_check(&s);
	world_admit(&s, CKPT_CONTEXT, NULL, json_object());
	world_check(&s);
	world_end(&s);
}

static void
test_compaction__context_alone_is_committed_by_a_base(void **unused)
{
	struct world s;
	struct ckpt_ack ack;

	(void)unused;
	world_make(&s);
	world_open(&s);
	world_admit(&s, CKPT_OP, fixture_entry("op-0", "r"), fixture_json("{'a':[1]}"));
	world_admit(&s, CKPT_CONTEXT, NULL, fixture_json("{'a':[1,2]}"));
	world_check(&s);
	assert_int_equal(world_bases(&s), 2);
	world_admit(&s, CKPT_OP, fixture_entry("op-1", "r"), fixture_json("{'a':[1,2,3]}"));
	world_check(&s);
	assert_int_equal(world_bases(&s), 2);
	while (ckpt_take_ack(s.w, &ack)) {
		assert_int_equal(ack.seq, ack.ticket == 3 ? 1 : ack.ticket == 2 ? 0 : ack.seq);
		json_unref(ack.identity);
	}
	world_end(&s);
}

static void
test_compaction__sequence_numbers_end_with_a_new_base(void **unused)
{
	struct world s;
	struct ckpt_ack ack;
	const uint64_t want[] = {INT64_MAX - 2, INT64_MAX - 1, 0, 1};
	size_t i;

	(void)unused;
	world_make(&s);
	s.o.first_sequence = INT64_MAX - 2;
	world_open(&s);
	for (i = 0; i < 4; i++) {
		world_admit(&s, CKPT_OP, fixture_entry("op-0", i % 2 ? "a" : "b"), NULL);
		world_flush(&s);
		assert_true(ckpt_take_ack(s.w, &ack));
		assert_int_equal(ack.seq, want[i]);
		json_unref(ack.identity);
	}
	world_check(&s);
	world_end(&s);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_compaction__base_after_so_many_records),
	cmocka_unit_test(test_compaction__base_before_the_journal_passes_its_bytes),
	cmocka_unit_test(test_compaction__oversized_transition_goes_into_a_base),
	cmocka_unit_test(test_compaction__journal_of_a_large_base_grows_as_long),
	cmocka_unit_test(test_compaction__bases_made_of_pieces),
	cmocka_unit_test(test_compaction__context_alone_is_committed_by_a_base),
	cmocka_unit_test(test_compaction__sequence_numbers_end_with_a_new_base),
};

TEST_MAIN("checkpoint compaction", tests)
