#include "flowsup/clock.h"
#include "test.h"

#include "fault_alloc.h"

static void
test_buf__an_empty_one_is_a_text(void **state)
{
	struct buf b = {0};
	struct err e = {0};
	char *text;

	(void)state;
	assert_string_equal(buf_text(&b), "");
	assert_int_equal(buf_view(&b).len, 0);
	assert_int_equal(buf_ok(&b, &e), 0);
	text = buf_steal(&b);
	assert_string_equal(text, "");
	free(text);
	buf_clear(&b);
}

static void
test_buf__appends_of_every_kind(void **state)
{
	struct buf b = {0};
	char *room, *text;

	(void)state;
	buf_puts(&b, "one");
	buf_putc(&b, ' ');
	buf_slice(&b, slice_of("two"));
	buf_printf(&b, " %d %s", 3, "four");
	buf_add(&b, "\0x", 2);
	assert_int_equal(b.len, 16);
	assert_memory_equal(b.data, "one two 3 four\0x", 17);
	room = buf_reserve(&b, 1000);
	assert_non_null(room);
	assert_ptr_equal(room, b.data + b.len);
	memset(room, 'y', 1000);
	buf_reset(&b);
	assert_string_equal(buf_text(&b), "");
	buf_puts(&b, "again");
	text = buf_steal(&b);
	assert_string_equal(text, "again");
	assert_null(b.data);
	free(text);
}

static void
test_buf__decimals_are_those_of_printf(void **state)
{
	static const int64_t values[] = {0, 1, 9, 10, 99, 100, 1234567890, -1, -10, INT64_MAX, INT64_MIN};
	struct buf b = {0}, wanted = {0};
	char text[DECIMAL_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		buf_int(&b, values[i]);
		buf_putc(&b, ' ');
		buf_uint(&b, (uint64_t)values[i]);
		buf_putc(&b, ' ');
		buf_printf(&wanted, "%lld %llu ", (long long)values[i], (unsigned long long)values[i]);
	}
	assert_string_equal(buf_text(&b), buf_text(&wanted));
	assert_ptr_equal(put_number(text, UINT64_MAX, 1), text + DECIMAL_TEXT - 1);
	assert_string_equal(text, "18446744073709551615");
	buf_clear(&b);
	buf_clear(&wanted);
}

static void
test_buf__grows_over_many_sizes(void **state)
{
	struct buf b = {0};
	size_t i;

	(void)state;
	for (i = 0; i < 100000; i++)
		buf_putc(&b, (char)('a' + i % 26));
	assert_int_equal(b.len, 100000);
	assert_true(b.cap < 300000);
	for (i = 0; i < b.len; i++)
		assert_int_equal(b.data[i], 'a' + i % 26);
	assert_int_equal(b.data[b.len], '\0');
	buf_clear(&b);
}

static void
test_buf__failure_sticks_until_reset(void **state)
{
	struct buf b = {0};
	struct err e = {0};
	char long_text[200];

	(void)state;
	memset(long_text, 'x', sizeof(long_text));
	buf_puts(&b, "kept");
	fault_alloc_arm(1, false);
	buf_add(&b, long_text, sizeof(long_text));
	assert_true(fault_alloc_disarm());
	buf_puts(&b, "lost");
	assert_fails(buf_ok(&b, &e), ERR_NOMEM, e);
	assert_string_equal(buf_text(&b), "kept");
	assert_null(buf_reserve(&b, 1));
	buf_reset(&b);
	buf_puts(&b, "new");
	assert_int_equal(buf_ok(&b, &e), 0);
	assert_string_equal(buf_text(&b), "new");
	buf_clear(&b);
}

static void
test_buf__steal_after_a_failure_gives_nothing(void **state)
{
	struct buf b = {0};

	(void)state;
	fault_alloc_arm(1, true);
	buf_printf(&b, "%d", 1);
	assert_null(buf_steal(&b));
	assert_true(fault_alloc_disarm());
	assert_false(b.failed);
}

static void
test_buf__sizes_beyond_memory_fail(void **state)
{
	struct buf b = {0};

	(void)state;
	buf_puts(&b, "x");
	assert_null(buf_reserve(&b, SIZE_MAX));
	assert_true(b.failed);
	buf_reset(&b);
	assert_null(buf_reserve(&b, SIZE_MAX / 2));
	assert_true(b.failed);
	buf_clear(&b);
}

static void
test_buf__slices_compare_by_bytes(void **state)
{
	struct slice none = {NULL, 0};

	(void)state;
	assert_true(slice_eq(none, slice_of("")));
	assert_true(slice_is((struct slice){"abc", 2}, "ab"));
	assert_false(slice_is((struct slice){"abc", 2}, "abc"));
	assert_false(slice_eq((struct slice){"a\0b", 3}, (struct slice){"a\0c", 3}));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_buf__an_empty_one_is_a_text),
    cmocka_unit_test(test_buf__appends_of_every_kind),
    cmocka_unit_test(test_buf__decimals_are_those_of_printf),
    cmocka_unit_test(test_buf__grows_over_many_sizes),
    cmocka_unit_test(test_buf__failure_sticks_until_reset),
    cmocka_unit_test(test_buf__steal_after_a_failure_gives_nothing),
    cmocka_unit_test(test_buf__sizes_beyond_memory_fail),
    cmocka_unit_test(test_buf__slices_compare_by_bytes),
};
TEST_MAIN("buf", tests)
