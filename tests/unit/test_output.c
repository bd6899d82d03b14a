#include "test.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "supervisor/output.h"

static int
set_up(void **state)
{
	(void)state;
	/* As the edge does; the widths of characters come from there. */
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL)
		return -1;
	return signal(SIGPIPE, SIG_IGN) == SIG_ERR ? -1 : 0;
}

/* An output of this many columns that keeps what it gets. */
static struct output
kept(int width)
{
	return (struct output){.fd = -1, .width = width, .height = 24, .unicode = true};
}

static void
add_row(struct table *t, const char *a, const char *b, const char *c)
{
	table_text(t, OUT_PLAIN, a);
	table_text(t, OUT_PLAIN, b);
	table_text(t, OUT_PLAIN, c);
}

static const struct column columns[] = {
    {.title = "ID"}, {.title = "N", .right = true, .drop = 1}, {.title = "TEXT", .least = 6}};

static struct table *
small_table(void)
{
	struct table *t = table_new(columns, 3);

	assert_non_null(t);
	add_row(t, "first", "1", "a text of some length");
	add_row(t, "second-one", "1000", "short");
	return t;
}

static void
test_output__table_is_whole_where_there_is_no_terminal(void **state)
{
	struct output o = kept(0);

	(void)state;
	table_print(small_table(), &o, "");
	assert_string_equal(buf_text(&o.pending), "ID             N  TEXT\n"
						  "first          1  a text of some length\n"
						  "second-one  1000  short\n");
	buf_clear(&o.pending);
}

static void
test_output__table_narrows_then_drops_columns(void **state)
{
	static const struct {
		int width;
		const char *text;
	} cases[] = {
	    {28, "ID             N  TEXT\n"
		 "first          1  a text of…\n"
		 "second-one  1000  short\n"},
	    {18, "ID          TEXT\n"
		 "first       a tex…\n"
		 "second-one  short\n"},
	};
	struct output o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		o = kept(cases[i].width);
		table_print(small_table(), &o, "");
		assert_string_equal(buf_text(&o.pending), cases[i].text);
		buf_clear(&o.pending);
	}
}

static void
test_output__a_column_that_is_never_cut_goes_below(void **state)
{
	static const struct column with_command[] = {
	    {.title = "ID", .least = 2}, {.title = "N", .drop = 1}, {.title = "NEXT", .below = "next"}};
	static const struct {
		int width;
		const char *text;
	} cases[] = {
	    {20, "ID   N  NEXT\n"
		 "ab   1  go on well\n"
		 "abc  2  \n"},
	    {17, "ID  N  NEXT\n"
		 "ab  1  go on well\n"
		 "a…  2  \n"},
	    {9, "ID   N\n"
		"ab   1\n"
		"    next: go on well\n"
		"abc  2\n"},
	    {3, "ID\n"
		"ab\n"
		"    next: go on well\n"
		"abc\n"},
	};
	struct table *t;
	struct output o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		o = kept(cases[i].width);
		t = table_new(with_command, 3);
		assert_non_null(t);
		add_row(t, "ab", "1", "go on well");
		add_row(t, "abc", "2", "");
		table_print(t, &o, "");
		assert_string_equal(buf_text(&o.pending), cases[i].text);
		buf_clear(&o.pending);
	}
}

static void
test_output__empty_columns_and_empty_tables_are_left_out(void **state)
{
	struct output o = kept(0);
	struct table *t = table_new(columns, 3);

	(void)state;
	add_row(t, "a", "", "b");
	table_print(t, &o, "  ");
	assert_string_equal(buf_text(&o.pending), "  ID  TEXT\n  a   b\n");
	buf_reset(&o.pending);
	table_print(table_new(columns, 3), &o, "");
	assert_int_equal(o.pending.len, 0);
	buf_clear(&o.pending);
}

static void
test_output__cells_cannot_steer_a_terminal(void **state)
{
	struct output o = kept(0);
	struct table *t = table_new(columns, 3);

	(void)state;
	add_row(t, "a\nb", "\033[31m", "\xff\xfe tab\there");
	table_print(t, &o, "");
	out_text(&o, slice_of("x\033]0;title\007y\nz"), false);
	assert_null(strchr(buf_text(&o.pending), '\033'));
	assert_null(strchr(buf_text(&o.pending), '\007'));
	assert_null(strchr(buf_text(&o.pending), '\xff'));
	/* The title line, the row, and nothing that the texts made. */
	assert_null(strchr(strchr(strchr(buf_text(&o.pending), '\n') + 1, '\n') + 1, '\n'));
	buf_clear(&o.pending);
}

static void
test_output__columns_go_below_one_after_the_other(void **state)
{
	static const struct column two[] = {
	    {.title = "ID"}, {.title = "WHY", .below = "why"}, {.title = "FILE", .below = "file"}};
	static const struct {
		int width;
		const char *text;
	} cases[] = {
	    {22, "ID  WHY       FILE\n"
		 "a   it broke  a.yaml\n"
		 "b             b.yaml\n"},
	    {19, "ID  FILE\n"
		 "a   a.yaml\n"
		 "    why: it broke\n"
		 "b   b.yaml\n"},
	    {9, "ID\n"
		"a\n"
		"    why: it broke\n"
		"    file: a.yaml\n"
		"b\n"
		"    file: b.yaml\n"},
	};
	struct table *t;
	struct output o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		o = kept(cases[i].width);
		t = table_new(two, 3);
		assert_non_null(t);
		add_row(t, "a", "it broke", "a.yaml");
		add_row(t, "b", "", "b.yaml");
		table_print(t, &o, "");
		assert_string_equal(buf_text(&o.pending), cases[i].text);
		buf_clear(&o.pending);
	}
}

static void
test_output__what_goes_below_is_wrapped_between_words_but_no_command(void **state)
{
	static const struct column two[] = {
	    {.title = "ID", .id = true, .least = 6}, {.title = "WHY", .least = 12, .below = "why"}};
	static const struct {
		int width;
		const char *text;
	} cases[] = {
	    /* None is cut, and no id, while there is room for the least of it. */
	    {33, "ID            WHY\n"
		 "op-is-long-1  waits for run 2026\n"
		 "op-is-long-2  flowsup resume 2026\n"},
	    {32, "ID            WHY\n"
		 "op-is-long-1  waits for run 2026\n"
		 "op-is-long-2  \n"
		 "    why: flowsup resume 2026\n"},
	    {31, "ID\n"
		 "op-is-long-1\n"
		 "    why: waits for run 2026\n"
		 "op-is-long-2\n"
		 "    why: flowsup resume 2026\n"},
	    {19, "ID\n"
		 "op-is-long-1\n"
		 "    why: waits for\n"
		 "         run 2026\n"
		 "op-is-long-2\n"
		 "    why: flowsup resume 2026\n"},
	};
	struct table *t;
	struct output o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		o = kept(cases[i].width);
		t = table_new(two, 2);
		assert_non_null(t);
		table_text(t, OUT_PLAIN, "op-is-long-1");
		table_text(t, OUT_PLAIN, "waits for run 2026");
		table_text(t, OUT_PLAIN, "op-is-long-2");
		table_text(t, OUT_PLAIN, "flowsup resume 2026");
		table_print(t, &o, "");
		assert_string_equal(buf_text(&o.pending), cases[i].text);
		buf_clear(&o.pending);
	}
}

static void
test_output__columns_share_what_is_too_much(void **state)
{
	static const struct column two[] = {{.title = "A", .least = 2}, {.title = "B", .least = 2}};
	struct output o = kept(14);
	struct table *t = table_new(two, 2);

	(void)state;
	assert_non_null(t);
	table_text(t, OUT_PLAIN, "0123456789");
	table_text(t, OUT_PLAIN, "0123456789");
	table_print(t, &o, "");
	assert_string_equal(buf_text(&o.pending), "A       B\n"
						  "01234…  01234…\n");
	buf_clear(&o.pending);
}

static void
test_output__an_id_is_cut_in_its_middle(void **state)
{
	static const struct {
		const char *id;
		int columns;
		const char *fitted;
	} cases[] = {
	    {"operation-1", 11, "operation-1"}, {"operation-1", 10, "opera…on-1"}, {"operation-1", 7, "ope…n-1"},
	    {"operation-1", 4, "ope…"}, {"漢字漢字漢字", 7, "漢…字"}, {"", 5, ""},
	};
	struct buf b;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		b = (struct buf){0};
		text_fit_id(&b, slice_of(cases[i].id), cases[i].columns, true);
		assert_string_equal(buf_text(&b), cases[i].fitted);
		buf_clear(&b);
	}
}

static void
test_output__fit_counts_columns_not_bytes(void **state)
{
	static const struct {
		const char *text;
		int columns;
		bool unicode;
		const char *fitted;
	} cases[] = {
	    {"abc", 3, true, "abc"},	 {"abcd", 3, true, "ab…"}, {"abcd", 3, false, "ab~"},
	    {"äöü", 3, true, "äöü"},	 {"äöüß", 3, true, "äö…"}, {"漢字漢字", 5, true, "漢字…"},
	    {"漢字漢字", 4, true, "漢…"}, {"abc", 0, true, ""},	    {"", 5, true, ""},
	    {"abc", 1, true, "…"},
	};
	struct buf b;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		b = (struct buf){0};
		text_fit(&b, slice_of(cases[i].text), cases[i].columns, cases[i].unicode);
		assert_string_equal(buf_text(&b), cases[i].fitted);
		assert_true(text_width(buf_view(&b)) <= cases[i].columns);
		buf_clear(&b);
	}
	assert_int_equal(text_width(slice_of("漢a")), 3);
	assert_int_equal(text_width((struct slice){"\xff\xfe", 2}), 2);
}

static void
test_output__a_reader_that_went_away_is_no_error(void **state)
{
	struct output o;
	struct err e = {0};
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	out_init(&o, fds[1]);
	out_puts(&o, "x");
	out_flush(&o);
	assert_false(out_open(&o));
	out_puts(&o, "more");
	assert_works(out_end(&o, &e), e);
	close(fds[1]);
}

static void
test_output__a_reader_that_went_away_is_seen_without_writing(void **state)
{
	struct output o;
	struct err e = {0};
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	out_init(&o, fds[1]);
	out_look(&o);
	assert_true(out_open(&o));
	close(fds[0]);
	out_look(&o);
	assert_false(out_open(&o));
	assert_works(out_end(&o, &e), e);
	close(fds[1]);
}

static void
test_output__a_full_disk_is_an_error(void **state)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct output o;
	struct err e = {0};

	(void)state;
	assert_true(fd >= 0);
	out_init(&o, fd);
	out_puts(&o, "x");
	assert_fails(out_end(&o, &e), ERR_NOSPACE, e);
	assert_int_equal(err_exit_status(e.code), 74);
	close(fd);
}

static void
test_output__much_text_goes_out_before_the_end(void **state)
{
	char block[1024];
	struct output o;
	struct err e = {0};
	struct test_dir dir;
	int fd, i;

	(void)state;
	memset(block, 'x', sizeof(block) - 1);
	block[sizeof(block) - 1] = '\0';
	test_dir_make(&dir);
	fd = openat(dir.fd, "out", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	out_init(&o, fd);
	for (i = 0; i < 200; i++)
		out_puts(&o, block);
	assert_true(lseek(fd, 0, SEEK_END) > 100000);
	assert_works(out_end(&o, &e), e);
	assert_int_equal(lseek(fd, 0, SEEK_END), 200 * (sizeof(block) - 1));
	close(fd);
	test_dir_remove(&dir);
}

static void
test_output__no_colour_where_nobody_sees_it(void **state)
{
	struct output o;
	struct err e = {0};

	(void)state;
	out_init(&o, STDOUT_FILENO);
	if (!o.terminal)
		assert_false(o.colour);
	o.terminal = true;
	o.colour = false;
	assert_string_equal(out_style(&o, OUT_BAD), "");
	o.colour = true;
	assert_string_not_equal(out_style(&o, OUT_BAD), "");
	assert_works(out_end(&o, &e), e);
}

static void
test_output__json_lines(void **state)
{
	struct output o = kept(0);
	struct err e = {0};

	(void)state;
	out_json(&o, json_set(json_object(), "a", json_cstr("x\n\033")));
	assert_string_equal(buf_text(&o.pending), "{\"a\":\"x\\n\\u001b\"}\n");
	out_json(&o, NULL);
	buf_reset(&o.pending);
	assert_fails(out_end(&o, &e), ERR_NOMEM, e);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_output__table_is_whole_where_there_is_no_terminal),
    cmocka_unit_test(test_output__table_narrows_then_drops_columns),
    cmocka_unit_test(test_output__a_column_that_is_never_cut_goes_below),
	    cmocka_unit_test(test_output__columns_go_below_one_after_the_other),
    cmocka_unit_test(test_output__what_goes_below_is_wrapped_between_words_but_no_command),
	    cmocka_unit_test(test_output__columns_share_what_is_too_much),
	    cmocka_unit_test(test_output__an_id_is_cut_in_its_middle),
    cmocka_unit_test(test_output__empty_columns_and_empty_tables_are_left_out),
    cmocka_unit_test(test_output__cells_cannot_steer_a_terminal),
    cmocka_unit_test(test_output__fit_counts_columns_not_bytes),
    cmocka_unit_test(test_output__a_reader_that_went_away_is_no_error),
    cmocka_unit_test(test_output__a_reader_that_went_away_is_seen_without_writing),
    cmocka_unit_test(test_output__a_full_disk_is_an_error),
    cmocka_unit_test(test_output__much_text_goes_out_before_the_end),
    cmocka_unit_test(test_output__no_colour_where_nobody_sees_it),
    cmocka_unit_test(test_output__json_lines),
};

int
main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("output", tests, set_up, NULL);
}
