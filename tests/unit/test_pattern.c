/* Regular expressions: what fits, what is refused, and that no answer takes too long. */
#include "test.h"

#include <regex.h>

#include "flowsup/json.h"
#include "fault_alloc.h"
#include "shared/flow/pattern.h"

static const struct {
	const char *pattern, *text;
	bool fits;
} asked[] = {
    {"", "", true}, {"", "x", true}, {"b", "abc", true}, {"d", "abc", false}, {"^b", "abc", false},
    {"^abc$", "abc", true}, {"^ab$", "abc", false}, {"a.c", "a\nc", true}, {"^a$", "a\n", false},
    {"a|b|", "", true}, {"^(a|b|cd)+$", "abcdcd", true}, {"^(a|b|cd)+$", "abccd", false}, {"()", "x", true},
    {"^(?:ab){2}$", "abab", true}, {"^(ab){2}$", "ababab", false}, {"^a{2,3}$", "aaaa", false},
    {"^a{,2}$", "aaa", false}, {"^a{,2}$", "", true}, {"^a{2,}$", "aaaaa", true}, {"^a{2,}$", "a", false},
    {"^a{0}$", "", true}, {"^a{0}$", "a", false}, {"^a{2}{3}$", "aaaaaa", true}, {"^a{2}{3}$", "aaaaa", false},
    {"^(a*)*$", "aaaab", false}, {"^(a*)+b$", "aaaab", true}, {"^((a?){3}){3}$", "aaaaaaaaaa", false},
    {"^(|a)+$", "aa", true}, {"(){10000}(()|){10000}x", "x", true}, {"^(a?b?){2,}$", "abba", true},
    /* lazy ones fit what the others do */
    {"^a+?$", "aaa", true}, {"^a+?$", "", false}, {"^a??b$", "ab", true}, {"^a{2,}?$", "a", false},
    {"^[a-c]+$", "abcabc", true}, {"^[^a-c]+$", "xyz", true}, {"^[^a-c]+$", "xaz", false},
    {"^[]a]+$", "a]", true}, {"^[^]a]$", "]", false}, {"^[a-]+$", "a-", true}, {"^[-a]+$", "-a", true},
    {"^[%--]$", "-", true}, {"^[a-c-e]$", "-", true}, {"^[.]$", "x", false}, {"^[[]$", "[", true},
    {"^[a\\]]+$", "]a", true}, {"^[\\d.]+$", "1.25", true}, {"^[\\D]$", "1", false}, {"^[^\\d]$", "x", true},
    {"^[\\W\\d]+$", "1-2", true}, {"^[\\x41-\\u0043]+$", "ABC", true}, {"^[\\b]$", "\b", true},
    {"^[[:alpha:]]+$", "aZ", true}, {"^[[:alpha:]_]+$", "a1", false}, {"^[^[:space:]]$", " ", false},
    {"^[[:xdigit:][:punct:]]+$", "af09AF!~", true}, {"^[[:cntrl:]]$", "\177", true},
    {"\\bno\\b", "say no!", true}, {"\\bno\\b", "snow", false}, {"\\Bno", "snow", true},
    {"\\<no\\>", "a no", true}, {"\\<no\\>", "nope", false}, {"\\`a\\'", "a", true}, {"\\`a\\'", "ba", false},
    {"^\\w+\\s\\W\\S$", "ab -x", true}, {"^\\n\\r\\t\\f\\v$", "\n\r\t\f\v", true}, {"^\\.\\*\\{\\/$", ".*{/", true},
    {"a)", "a)", true}, {"^a}$", "a}", true}, {"]", "]", true}, {"^^a$$", "a", true}, {"^*a", "a", true},
    {"a$b", "a\nb", false}, {"x^", "x", false}, {"(^|,)b(,|$)", "a,b", true},
    /* characters, not bytes */
    {"^.$", "\u00e9", true}, {"^..$", "\u00e9", false}, {"^.$", "\U0001f600", true},
    {"^[\u00e0-\u00ef]+$", "\u00e9\u00e8", true}, {"^[\u00e0-\u00ef]+$", "\u00f0", false},
    {"^[^\u00e9]$", "\u00e9", false}, {"^[^\u00e9]$", "\u00e8", true}, {"^\u00e9+$", "\u00e9\u00e9", true},
    {"^\\u00e9$", "\u00e9", true}, {"^\\D\\W\\S$", "\u00e9\u00e9\u00e9", true}, {"^[^a]$", "\u20ac", true},
    {"^...$", "\xc3\xff\xed", true}, {"^[^a]$", "\xff", true}, {"^..$", "\xc3(", true}, {"^..$", "\xc0\x80", true},
    {"^.$", "\xed\xa0\x80", true}, {"^...$", "\xe0\x80\x80", true}, {"^....$", "\xf4\x90\x80\x80", true},
};

static int
ask(const char *pattern, struct slice text, bool *fits, uint64_t *steps, struct err *e)
{
	struct pattern *p = NULL;
	int rc = pattern_new(pattern, PATTERN_MAX_PLACES, &p, e);

	if (rc == 0)
		rc = pattern_fits(p, text, fits, steps, e);
	pattern_free(p);
	return rc;
}

static void
test_pattern__fits(void **state)
{
	struct err e = {0};
	bool fits = false;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		assert_works(ask(asked[i].pattern, slice_of(asked[i].text), &fits, NULL, &e), e);
		if (fits != asked[i].fits)
			fail_msg("\"%s\" of \"%s\"", asked[i].pattern, asked[i].text);
	}
}

static void
test_pattern__looks_behind_nul(void **state)
{
	struct err e = {0};
	bool fits = false;

	(void)state;
	assert_works(ask("^a.b$", (struct slice){"a\0b", 3}, &fits, NULL, &e), e);
	assert_true(fits);
}

static const struct {
	const char *pattern, *why;
	enum err_code code;
} refused[] = {
    {"(", "a ( is not closed", ERR_DOCUMENT},
    {"(a|b", "a ( is not closed", ERR_DOCUMENT},
    {"[", "a [ is not closed", ERR_DOCUMENT},
    {"[]", "a [ is not closed", ERR_DOCUMENT},
    {"[^", "a [ is not closed", ERR_DOCUMENT},
    {"[a-", "a [ is not closed", ERR_DOCUMENT},
    {"[z-a]", "a range in [ ] ends before it begins", ERR_DOCUMENT},
    {"[!-\\d]", "a range in [ ] ends before it begins", ERR_DOCUMENT},
    {"[[:letter:]]", "a class in [ ] has no such name", ERR_DOCUMENT},
    {"[[.a.]]", "[. is not known in [ ]", ERR_DOCUMENT},
    {"*a", "nothing stands before *", ERR_DOCUMENT},
    {"a|+b", "nothing stands before +", ERR_DOCUMENT},
    {"(?a)", "(?a is not known", ERR_DOCUMENT},
    {"(?=a)", "(?= is not known", ERR_DOCUMENT},
    {"(?", "(? is not known", ERR_DOCUMENT},
    {"a++", "+ stands behind another repetition", ERR_DOCUMENT},
    {"a{", "a { has no count", ERR_DOCUMENT},
    {"a{1", "a { has no count", ERR_DOCUMENT},
    {"a{x}", "a { has no count", ERR_DOCUMENT},
    {"a{3,2}", "a { has no count", ERR_DOCUMENT},
    {"\\", "a backslash ends it", ERR_DOCUMENT},
    {"[\\", "a backslash ends it", ERR_DOCUMENT},
    {"(a)\\1", "\\1 is not known", ERR_DOCUMENT},
    {"\\p{L}", "\\p is not known", ERR_DOCUMENT},
    {"\\x4", "\\x needs two", ERR_DOCUMENT},
    {"\\u00g0", "\\x needs two", ERR_DOCUMENT},
    {"a{10001}", "a count is above 10000", ERR_LIMIT},
    {"a{1,99999999999999999999}", "a count is above 10000", ERR_LIMIT},
    {"(a{200}){200}", "it has more than 32768 places", ERR_LIMIT},
    {"(((a{1,10000}){1,10000}){1,10000}){1,10000}", "it has more than 32768 places", ERR_LIMIT},
};

static void
test_pattern__refuses(void **state)
{
	struct pattern *p = NULL;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		e = (struct err){0};
		if (pattern_new(refused[i].pattern, PATTERN_MAX_PLACES, &p, &e) == 0)
			fail_msg("\"%s\" is accepted", refused[i].pattern);
		if (e.code != refused[i].code || strstr(e.msg, refused[i].why) == NULL)
			fail_msg("\"%s\": %s", refused[i].pattern, e.msg);
	}
}

static void
test_pattern__refuses_groups_too_deep(void **state)
{
	char pattern[2 * PATTERN_MAX_DEPTH + 4] = "";
	struct pattern *p = NULL;
	struct err e = {0};

	(void)state;
	memset(pattern, '(', PATTERN_MAX_DEPTH + 1);
	assert_fails(pattern_new(pattern, PATTERN_MAX_PLACES, &p, &e), ERR_LIMIT, e);
	e = (struct err){0};
	memset(pattern + PATTERN_MAX_DEPTH, ')', PATTERN_MAX_DEPTH);
	assert_works(pattern_new(pattern, PATTERN_MAX_PLACES, &p, &e), e);
	pattern_free(p);
}

/* ---- Cost ---- */

static struct slice
long_text(const char *unit, size_t bytes)
{
	static char text[64 << 10];
	size_t i, n = strlen(unit);

	for (i = 0; i < bytes; i++)
		text[i] = unit[i % n];
	return (struct slice){text, bytes};
}

/* Each of them takes a matcher that tries one way after the other minutes, or for ever. */
static void
test_pattern__follows_all_ways_at_once(void **state)
{
	static const char *const patterns[] = {"^(a+)+$", "^(a|a)*b$", "^(a|aa)+c", "(.*)*(.*)*x$", "(a*a*)*a*b",
	    "^(([a-z])+.)+[A-Z]([a-z])+$", "[a-z]*X", "a{1,20}b"};
	struct slice text = long_text("a", 64 << 10);
	uint64_t steps = 0;
	struct err e = {0};
	bool fits;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		assert_works(ask(patterns[i], text, &fits, &steps, &e), e);
		assert_int_equal(fits, i == 0);
	}
}

static void
test_pattern__gives_up_what_takes_too_many_steps(void **state)
{
	struct slice text = long_text("a", 60000);
	uint64_t first = 0, second = 0;
	struct err e = {0};
	bool fits = false;

	(void)state;
	assert_fails(ask("^([a-z]{1,90} ?){1,100}$", text, &fits, &first, &e), ERR_LIMIT, e);
	assert_true(first >= PATTERN_STEPS && first < PATTERN_STEPS + PATTERN_MAX_PLACES + 1);
	e = (struct err){0};
	assert_fails(ask("^([a-z]{1,90} ?){1,100}$", text, &fits, &second, &e), ERR_LIMIT, e);
	assert_int_equal(first, second);
	assert_false(fits);
	text.len = 300;
	e = (struct err){0};
	assert_works(ask("^([a-z]{1,90} ?){1,100}$", text, &fits, NULL, &e), e);
	assert_true(fits);
}

static void
test_pattern__of_few_places_always_answers(void **state)
{
	struct slice text = long_text("a", 16 << 10);
	struct pattern *p = NULL;
	struct err e = {0};
	uint64_t steps;
	bool fits;

	(void)state;
	assert_works(pattern_new("(a?){120}b", PATTERN_FEW_PLACES, &p, &e), e);
	assert_works(pattern_fits(p, text, &fits, &steps, &e), e);
	assert_false(fits);
	assert_true(steps > PATTERN_STEPS / 3);
	pattern_free(p);
}

static void
test_pattern_beginning__cuts_between_characters(void **state)
{
	static const struct {
		const char *text;
		size_t bytes, len;
	} cuts[] = {{"abc", 3, 3}, {"abc", 2, 2}, {"a\u00e9", 2, 1}, {"\u20ac\u20ac", 5, 3}, {"\u20ac\u20ac", 3, 3},
	    {"\U0001f600", 3, 0}, {"\x80\x80\x80\x80\x80\x80", 4, 4}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++)
		assert_int_equal(pattern_beginning(slice_of(cuts[i].text), cuts[i].bytes).len, cuts[i].len);
}

/* ---- Against another one ---- */

static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 16;
}

static void
make(char *to, size_t room, const char *const *parts, size_t nparts, uint32_t *seed)
{
	size_t n = next_random(seed) % 9;

	for (*to = '\0'; n > 0 && strlen(to) + 10 < room; n--)
		strcat(to, parts[next_random(seed) % nparts]);
}

static void
test_pattern__says_what_the_c_library_says(void **state)
{
	static const char *const parts[] = {"a", "b", "a", "b", ".", "(", ")", "|", "*", "+", "?", "{2}", "{1,3}", "{,2}",
	    "{0}", "^", "$", "[ab]", "[^a]", "\\b", "\\<", "\\>", "\\B", "\\w", "\\W", " "};
	static const char *const letters[] = {"a", "b", " ", "ab", "-", "c"};
	char pattern[128], text[128];
	uint32_t seed = 1, i, both = 0;
	struct pattern *p;
	struct err e = {0};
	regex_t other;
	bool fits;

	(void)state;
	for (i = 0; i < 60000; i++) {
		make(pattern, sizeof(pattern), parts, sizeof(parts) / sizeof(parts[0]), &seed);
		make(text, sizeof(text), letters, sizeof(letters) / sizeof(letters[0]), &seed);
		/* There is a ? of its own behind a repetition, and + is refused there. */
		if (strstr(pattern, "*?") || strstr(pattern, "+?") || strstr(pattern, "??") || strstr(pattern, "}?") ||
		    regcomp(&other, pattern, REG_EXTENDED | REG_NOSUB) != 0)
			continue;
		if (pattern_new(pattern, PATTERN_MAX_PLACES, &p, &e) == 0) {
			assert_works(pattern_fits(p, slice_of(text), &fits, NULL, &e), e);
			if (fits != (regexec(&other, text, 0, NULL, 0) == 0))
				fail_msg("\"%s\" of \"%s\": %d", pattern, text, fits);
			pattern_free(p);
			both++;
		} else if (strstr(e.msg, "+ stands behind") == NULL) {
			fail_msg("\"%s\": %s", pattern, e.msg);
		}
		regfree(&other);
	}
	assert_true(both > 10000);
}

static void
test_pattern__without_memory(void **state)
{
	struct err e = {0};
	unsigned long n;
	bool fits;
	int rc;

	(void)state;
	for (n = 1;; n++) {
		e = (struct err){0};
		fault_alloc_arm(n, false);
		rc = ask("^(a|[\u00e0-\u00ef]{1,300}|\\D)+$", slice_of("aaa"), &fits, NULL, &e);
		if (!fault_alloc_disarm())
			break;
		assert_fails(rc, ERR_NOMEM, e);
	}
	assert_works(rc, e);
	assert_true(n > 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pattern__fits),
	    cmocka_unit_test(test_pattern__looks_behind_nul),
	    cmocka_unit_test(test_pattern__refuses),
	    cmocka_unit_test(test_pattern__refuses_groups_too_deep),
	    cmocka_unit_test(test_pattern__follows_all_ways_at_once),
	    cmocka_unit_test(test_pattern__gives_up_what_takes_too_many_steps),
	    cmocka_unit_test(test_pattern__of_few_places_always_answers),
	    cmocka_unit_test(test_pattern_beginning__cuts_between_characters),
	    cmocka_unit_test(test_pattern__says_what_the_c_library_says),
	    cmocka_unit_test(test_pattern__without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
