#include "test.h"

#include <math.h>
#include <time.h>

#include "flowsup/clock.h"

#define S NS_PER_S

static void
test_clock__durations_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} cases[] = {{"90s", 90 * S}, {"2h30m", 9000 * S}, {"1d", 86400 * S}, {"250ms", 250 * NS_PER_MS},
	    {"1.5h", 5400 * S}, {"1w", 7 * 86400 * S}, {"2w1d", 15 * 86400 * S},
	    {"5min", 300 * S}, {"1hr", 3600 * S}, {"1hr30min10sec", 5410 * S}, {"90", 90 * S}, {"1.5", 1500 * NS_PER_MS}, {"0", 0}, {"0s", 0},
	    {"1d2h3m4s5ms", (86400 + 7200 + 180 + 4) * S + 5 * NS_PER_MS}, {"0.000000001", 1},
	    {"0.0000000019s", 1}, {"1h1.5s", 3601500 * NS_PER_MS}, {"36500d", 36500 * (86400 * S)},
	    {"0.0000000000000000000000000001d", 0}};
	struct err e = {0};
	int64_t ns;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_works(duration_parse(slice_of(cases[i].text), &ns, &e), e);
		assert_true(ns == cases[i].ns);
	}
}

static void
test_clock__what_is_no_duration(void **state)
{
	static const char *const cases[] = {"", "s", "-1s", "+1s", "1x", "1 s", " 1s", "1s ", "1.s",
	    ".5s", "1h1h", "1m1h", "1.5h30m", "1h30", "30 1h", "36501d", "99999999999999999999",
	    "9223372036854775807ms", "1e3", "1S", "1ms1s", "inf", "0x10", "36500d1ms", "1h\n", "1d1w",
	    "1mi", "1min1m", "1hours", "1mins", "5217w"};
	struct err e = {0};
	int64_t ns = 77;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_fails(duration_parse(slice_of(cases[i]), &ns, &e), ERR_SYNTAX, e);
		assert_true(ns == 77);
		assert_string_not_equal(e.hint, "");
	}
	assert_fails(duration_parse((struct slice){"1\0s", 3}, &ns, &e), ERR_SYNTAX, e);
}

static void
test_clock__durations_are_shown(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {{0, "0s"}, {350 * NS_PER_MS, "350ms"}, {1, "0ms"}, {S, "1s"},
	    {1500 * NS_PER_MS, "1.5s"}, {59999 * NS_PER_MS, "59.9s"}, {60 * S, "1m"},
	    {250 * S, "4m10s"}, {7380 * S, "2h03m"}, {7200 * S + 59 * S, "2h"}, {86400 * S, "1d"},
	    {(86400 + 7200) * S, "1d02h"}, {-250 * S, "-4m10s"}, {INT64_MAX, "106751d23h"},
	    {INT64_MIN, "-106751d23h"}};
	char to[DURATION_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(duration_format(cases[i].ns, to), cases[i].text);
}

static void
test_clock__what_is_shown_can_be_read(void **state)
{
	char to[DURATION_TEXT];
	struct err e = {0};
	int64_t ns, back;

	(void)state;
	for (ns = 1; ns < 36500 * (86400 * S) / 3; ns = ns * 3 + 1) {
		duration_format(ns, to);
		assert_works(duration_parse(slice_of(to), &back, &e), e);
		assert_true(back <= ns);
		assert_true(ns - back <= ns / 24 + NS_PER_MS);
	}
}

static void
test_clock__times(void **state)
{
	static const struct {
		double when;
		const char *text;
	} cases[] = {{0, "1970-01-01T00:00:00Z"}, {1.9, "1970-01-01T00:00:01Z"},
	    {951782400, "2000-02-29T00:00:00Z"}, {253402300799.0, "9999-12-31T23:59:59Z"},
	    {253402300800.0, "(no time)"}, {-1, "(no time)"}, {(double)NAN, "(no time)"},
	    {(double)INFINITY, "(no time)"}};
	char to[TIME_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(time_format(cases[i].when, true, to), cases[i].text);
	setenv("TZ", "XYZ-05:30", 1);
	tzset();
	assert_string_equal(time_format(0, false, to), "1970-01-01T05:30:00+05:30");
	setenv("TZ", "XYZ+03", 1);
	tzset();
	assert_string_equal(time_format(86400, false, to), "1970-01-01T21:00:00-03:00");
	unsetenv("TZ");
	tzset();
}

static void
test_clock__sizes_are_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {{"0", 0}, {"512", 512}, {"512B", 512}, {"512k", 512 << 10}, {"64M", 64 << 20},
	    {"1.5G", UINT64_C(3) << 29}, {"64m", 64 << 20}, {"64MB", 64 << 20},
	    {"64MiB", 64 << 20}, {"64mB", 64 << 20}, {"2g", UINT64_C(2) << 30}, {"1KiB", 1024}, {"1KB", 1024}, {"0.5K", 512},
	    {"1T", UINT64_C(1) << 40}, {"15E", UINT64_C(15) << 60}, {"0.5E", UINT64_C(1) << 59},
	    {"0.999999T", 1099510528264}, {"18446744073709551615", UINT64_MAX}};
	struct err e = {0};
	uint64_t bytes;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_works(size_parse(slice_of(cases[i].text), &bytes, &e), e);
		assert_true(bytes == cases[i].bytes);
	}
}

static void
test_clock__what_is_no_size(void **state)
{
	static const char *const cases[] = {"", "k", "-1", "1X", "1 M", "1.5", "1.5B", "1.k", "16E",
	    "15.9999E9", "18446744073709551616", "99999999999999999999999", "1.1234567G", "1Ki",
	    "1iB", "1mb", "1b", "1MM", "1Bk"};
	struct err e = {0};
	uint64_t bytes = 77;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_fails(size_parse(slice_of(cases[i]), &bytes, &e), ERR_SYNTAX, e);
	assert_fails(size_parse((struct slice){"1\0", 2}, &bytes, &e), ERR_SYNTAX, e);
	assert_true(bytes == 77);
}

static void
test_clock__sizes_are_shown(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {{0, "0B"}, {1023, "1023B"}, {1024, "1K"}, {1536, "1.5K"}, {64 << 20, "64M"},
	    {UINT64_C(3) << 29, "1.5G"}, {UINT64_MAX, "15.9E"}, {(1 << 20) - 1, "1023.9K"}};
	char to[DURATION_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(size_format(cases[i].bytes, to), cases[i].text);
}

static void
test_clock__clocks_go_forward(void **state)
{
	int64_t a = clock_monotonic_ns(), b = clock_boottime_ns();

	(void)state;
	assert_true(clock_monotonic_ns() >= a);
	assert_true(clock_boottime_ns() >= b);
	assert_true(b >= a);
	assert_true(clock_wall_ns() > INT64_C(1577836800) * S);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_clock__durations_are_read),
    cmocka_unit_test(test_clock__what_is_no_duration),
    cmocka_unit_test(test_clock__durations_are_shown),
    cmocka_unit_test(test_clock__what_is_shown_can_be_read),
    cmocka_unit_test(test_clock__times),
    cmocka_unit_test(test_clock__sizes_are_read),
    cmocka_unit_test(test_clock__what_is_no_size),
    cmocka_unit_test(test_clock__sizes_are_shown),
    cmocka_unit_test(test_clock__clocks_go_forward),
};
TEST_MAIN("clock", tests)
