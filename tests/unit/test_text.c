#include "test.h"

#include "flowsup/log.h"

struct sample {
	const char *in;
	size_t len;
	bool newline;
	const char *out;
};
#define SAMPLE(in, newline, out)                                                                   \
	{                                                                                          \
		in, sizeof(in) - 1, newline, out                                                   \
	}
#define BAD "\xEF\xBF\xBD"

static void
test_text__what_acts_on_a_terminal_is_shown(void **state)
{
	static const struct sample cases[] = {
	    SAMPLE("", false, ""),
	    SAMPLE("plain text", false, "plain text"),
	    SAMPLE("\x1b[31mred", false, "\\x1b[31mred"),
	    SAMPLE("a\nb\tc\rd", false, "a\\nb\\tc\\rd"),
	    SAMPLE("a\nb\tc\rd", true, "a\nb\tc\\rd"),
	    SAMPLE("a\0b", false, "a\\x00b"),
	    SAMPLE("\x7f\xC2\x9B" "31m", false, "\\x7f\\x9b31m"),
	    SAMPLE("gr\xC3\xBC\xC3\x9F", false, "gr\xC3\xBC\xC3\x9F"),
	    SAMPLE("\xF0\x9F\x98\x80", false, "\xF0\x9F\x98\x80"),
	    SAMPLE("\xE2\x80\xAE" "abc", false, "\\u202eabc"),
	    SAMPLE("\xE2\x80\xA8", true, "\\u2028"),
	    SAMPLE("\xE2\x81\xA6", false, "\\u2066"),
	};
	struct buf to = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_reset(&to);
		text_neutralise(&to, (struct slice){cases[i].in, cases[i].len}, cases[i].newline);
		assert_string_equal(buf_text(&to), cases[i].out);
	}
	buf_clear(&to);
}

static void
test_text__only_whole_colours_are_dropped(void **state)
{
	static const struct sample cases[] = {
	    SAMPLE("", false, ""),
	    SAMPLE("plain", false, "plain"),
	    SAMPLE("\x1b[31mred\x1b[0m", false, "red"),
	    SAMPLE("a\x1b[m\x1b(B\x1b[1;38:5:9mb\x1b[K", false, "ab"),
	    SAMPLE("\x1b[2J", false, "\x1b[2J"),
	    SAMPLE("\x1b[?25h", false, "\x1b[?25h"),
	    SAMPLE("\x1b]0;title\x07", false, "\x1b]0;title\x07"),
	    SAMPLE("\x1b\x1b[0m[31m", false, "\x1b[31m"), /* joined anew: is neutralised after this */
	    SAMPLE("cut \x1b[31", false, "cut \x1b[31"),
	    SAMPLE("cut \x1b[", false, "cut \x1b["),
	    SAMPLE("cut \x1b", false, "cut \x1b"),
	};
	struct buf to = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_reset(&to);
		text_drop_colours(&to, (struct slice){cases[i].in, cases[i].len});
		assert_string_equal(buf_text(&to), cases[i].out);
	}
	buf_clear(&to);
}

static void
test_text__broken_utf8_is_replaced(void **state)
{
	static const struct sample cases[] = {
	    SAMPLE("a\xFFz", false, "a" BAD "z"),
	    SAMPLE("\xC3", false, BAD),
	    SAMPLE("\xC3(", false, BAD "("),
	    SAMPLE("\xC0\xAF", false, BAD BAD),	     /* overlong */
	    SAMPLE("\xE0\x9F\xBF", false, BAD BAD BAD), /* overlong */
	    SAMPLE("\xED\xA0\x80", false, BAD BAD BAD), /* surrogate */
	    SAMPLE("\xF4\x90\x80\x80", false, BAD BAD BAD BAD), /* beyond 10FFFF */
	    SAMPLE("\xF0\x9F\x98", false, BAD),
	    SAMPLE("\xE2\x82\x1b", false, BAD "\\x1b"),
	    SAMPLE("\x80\x9B", false, BAD BAD),
	};
	struct buf to = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_reset(&to);
		text_neutralise(&to, (struct slice){cases[i].in, cases[i].len}, cases[i].newline);
		assert_string_equal(buf_text(&to), cases[i].out);
	}
	buf_clear(&to);
}

static void
test_text__every_byte_pair_becomes_harmless(void **state)
{
	struct buf to = {0};
	char pair[2];
	size_t k;
	int a, b;

	(void)state;
	for (a = 0; a < 256; a++) {
		for (b = 0; b < 256; b++) {
			pair[0] = (char)a;
			pair[1] = (char)b;
			buf_reset(&to);
			text_neutralise(&to, (struct slice){pair, 2}, false);
			assert_true(to.len > 0);
			for (k = 0; k < to.len; k++)
				assert_true((unsigned char)to.data[k] >= 0x20 && to.data[k] != 0x7F);
			/* No C1 control, which is C2 80 to C2 9F. */
			for (k = 0; k + 1 < to.len; k++)
				assert_false((unsigned char)to.data[k] == 0xC2 &&
				    (unsigned char)to.data[k + 1] < 0xA0);
		}
	}
	buf_clear(&to);
}

static void
test_text__nearest(void **state)
{
	static const char *const names[] = {"claude", "codex", "gemini", "cat", "ls", "approve", "list",
	    "resume", "a"};
	static const struct {
		const char *name;
		const char *nearest;
	} cases[] = {{"clade", "claude"}, {"cluade", "claude"}, {"claude", "claude"}, {"codxe", "codex"},
	    {"resum", "resume"}, {"lsit", "list"}, {"act", "cat"}, {"zzzzzz", NULL}, {"", NULL},
	    {"b", NULL}, {"aprrove", "approve"}, {"xxaprovex", NULL}, {"sl", "ls"}, {"gem", "gemini"}, {"c", NULL}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *got = text_nearest(cases[i].name, names, sizeof(names) / sizeof(names[0]));

		if (cases[i].nearest == NULL)
			assert_null(got);
		else {
			assert_non_null(got);
			assert_string_equal(got, cases[i].nearest);
		}
	}
	assert_null(text_nearest("x", NULL, 0));
}

static void
test_text__a_word_of_a_shell(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
	    {"plain/name-1.yaml", "plain/name-1.yaml"},
	    {"", "''"},
	    {"two words", "'two words'"},
	    {"it's", "'it'\\''s'"},
	    {"$(x);`y`", "'$(x);`y`'"},
	    {"~", "'~'"},
	    {"ü", "'ü'"},
	    {"a\nb'\\", "$'a\\x0ab\\x27\\x5c'"},
	    {"\xff", "$'\\xff'"},
	};
	char word[SHELL_WORD_TEXT], text[SHELL_WORD_TEXT + 9];
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(shell_word(word, cases[i].text), cases[i].word);
	memset(text, ' ', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_hint(&e, "ls %s", shell_word(word, text));
	assert_string_equal(e.hint, "");
}

static void
test_text__nearest_takes_long_names(void **state)
{
	char name[1000], other[1000];
	const char *names[] = {other};

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memcpy(other, name, sizeof(other));
	assert_null(text_nearest(name, names, 1));
	name[64] = other[63] = '\0';
	assert_non_null(text_nearest(name, names, 1));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_text__a_word_of_a_shell),
    cmocka_unit_test(test_text__what_acts_on_a_terminal_is_shown),
    cmocka_unit_test(test_text__only_whole_colours_are_dropped),
    cmocka_unit_test(test_text__broken_utf8_is_replaced),
    cmocka_unit_test(test_text__every_byte_pair_becomes_harmless),
    cmocka_unit_test(test_text__nearest),
    cmocka_unit_test(test_text__nearest_takes_long_names),
};
TEST_MAIN("text", tests)
