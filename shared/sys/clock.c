/* Clocks, and the texts of durations, times and sizes. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "flowsup/clock.h"

#define NS_PER_MINUTE (60 * NS_PER_S)
#define NS_PER_HOUR (60 * NS_PER_MINUTE)
#define NS_PER_DAY (24 * NS_PER_HOUR)
#define DURATION_MOST (INT64_C(100) * 365 * NS_PER_DAY)
/* 9999-12-31T23:59:59Z: a year of four digits is all that RFC 3339 knows. */
#define TIME_MOST 253402300799.0

enum { SIZE_MOST_DECIMALS = 6, NUMBER_SHOWN = 40 };

static int64_t
read_clock(clockid_t which)
{
	struct timespec now = {0};

	/* Fails only for a clock that the kernel does not have. */
	clock_gettime(which, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t
clock_monotonic_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t
clock_boottime_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

int64_t
clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

/* ---- Durations ---- */

struct unit {
	const char *name, *also; /* or NULL */
	int64_t ns;
};

/* The largest first: components stand in this order, each at most once. */
static const struct unit units[] = {
    {"w", NULL, 7 * NS_PER_DAY},
    {"d", NULL, NS_PER_DAY},
    {"h", "hr", NS_PER_HOUR},
    {"m", "min", NS_PER_MINUTE},
    {"s", "sec", NS_PER_S},
    {"ms", NULL, NS_PER_MS},
};

enum { UNITS = sizeof(units) / sizeof(units[0]), UNIT_DAYS = 1, UNIT_SECONDS = 4 };

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t
count_digits(struct slice text)
{
	size_t n = 0;

	while (n < text.len && is_digit(text.data[n]))
		n++;
	return n;
}

static void
step_over(struct slice *text, size_t n)
{
	text->data += n;
	text->len -= n;
}

/* "12" or "12.5": its digits before and behind the point. */
static bool
take_number(struct slice *text, struct slice *whole, struct slice *decimals)
{
	*whole = (struct slice){text->data, count_digits(*text)};
	*decimals = (struct slice){"", 0};
	step_over(text, whole->len);
	if (whole->len == 0)
		return false;
	if (text->len == 0 || text->data[0] != '.')
		return true;
	step_over(text, 1);
	*decimals = (struct slice){text->data, count_digits(*text)};
	step_over(text, decimals->len);
	return decimals->len > 0;
}

static bool
take_unit(struct slice *text, size_t *which)
{
	struct slice word = {text->data, 0};
	size_t i;

	while (word.len < text->len && text->data[word.len] >= 'a' && text->data[word.len] <= 'z')
		word.len++;
	for (i = 0; i < UNITS; i++) {
		if (slice_is(word, units[i].name) || (units[i].also != NULL && slice_is(word, units[i].also))) {
			step_over(text, word.len);
			*which = i;
			return true;
		}
	}
	return false;
}

/* number * unit in nanoseconds, what is below one is cut; -1 above the limit. */
static int64_t
scale(struct slice whole, struct slice decimals, int64_t unit)
{
	int64_t value = 0, part = unit;
	size_t i;

	for (i = 0; i < whole.len; i++) {
		value = value * 10 + (whole.data[i] - '0');
		if (value > DURATION_MOST / unit)
			return -1;
	}
	value *= unit;
	for (i = 0; i < decimals.len && part > 0; i++) {
		part /= 10;
		value += part * (decimals.data[i] - '0');
	}
	return value;
}

static int
bad_duration(struct slice text, const char *why, struct err *e)
{
	err_set(e, ERR_SYNTAX, "\"%.*s\" is not a duration: %s",
	    (int)(text.len < NUMBER_SHOWN ? text.len : NUMBER_SHOWN), text.data, why);
	return err_advice(e, "write 90s, 2h30m, 1d, 250ms, 1.5h, or a number of seconds");
}

int
duration_parse(struct slice text, int64_t *ns, struct err *e)
{
	struct slice rest = text, whole, decimals;
	size_t which, next = 0;
	int64_t sum = 0, part;
	bool last = false;

	if (text.len == 0)
		return bad_duration(text, "it is empty", e);
	while (rest.len > 0) {
		if (last)
			return bad_duration(text, "only the last part may have decimals", e);
		if (rest.data == text.data && rest.data[0] == '-')
			return bad_duration(text, "it is negative", e);
		if (!take_number(&rest, &whole, &decimals))
			return bad_duration(text, "a number is missing", e);
		if (rest.len == 0 && next == 0)
			which = UNIT_SECONDS;
		else if (!take_unit(&rest, &which))
			return bad_duration(text, "units are w, d, h, m, s, ms", e);
		if (which < next)
			return bad_duration(text, "larger units come first, each once", e);
		next = which + 1;
		last = decimals.len > 0;
		part = scale(whole, decimals, units[which].ns);
		if (part < 0 || (sum += part) > DURATION_MOST)
			return bad_duration(text, "longer than 100 years", e);
	}
	*ns = sum;
	return 0;
}

char *
put_number(char *to, uint64_t n, unsigned digits)
{
	char reversed[20];
	unsigned len = 0;

	do
		reversed[len++] = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	while (len < digits)
		reversed[len++] = '0';
	while (len > 0)
		*to++ = reversed[--len];
	*to = '\0';
	return to;
}

/* At most two units; the second is left out when it is zero. */
static void
put_pair(char *to, int64_t ns, const struct unit *large, const struct unit *small)
{
	int64_t second = ns % large->ns / small->ns;

	to = stpcpy(put_number(to, (uint64_t)(ns / large->ns), 1), large->name);
	if (second > 0)
		stpcpy(put_number(to, (uint64_t)second, 2), small->name);
}

static void
put_seconds(char *to, int64_t ns)
{
	int64_t tenths = ns / (NS_PER_S / 10);

	to = put_number(to, (uint64_t)(tenths / 10), 1);
	if (tenths % 10 > 0) {
		*to++ = '.';
		to = put_number(to, (uint64_t)(tenths % 10), 1);
	}
	stpcpy(to, "s");
}

/* 106,751 days are the most that 64 bits hold: every text has room. Of ten thousand runs a list shows two
 * each, which printf(3) would make the most of its work. */
const char *
duration_format(int64_t ns, char to[DURATION_TEXT])
{
	char *at = to;
	size_t i = UNIT_DAYS; /* weeks are only read */

	if (ns < 0) {
		*at++ = '-';
		ns = ns == INT64_MIN ? INT64_MAX : -ns;
	}
	while (i < UNIT_SECONDS && ns < units[i].ns)
		i++;
	if (i < UNIT_SECONDS)
		put_pair(at, ns, &units[i], &units[i + 1]);
	else if (ns >= NS_PER_S || ns == 0)
		put_seconds(at, ns);
	else
		stpcpy(put_number(at, (uint64_t)(ns / NS_PER_MS), 1), "ms");
	return to;
}

/* ---- Times ---- */

/* "+0200" of strftime(3) to "+02:00". */
static void
put_colon(char *text)
{
	size_t len = strlen(text);

	memmove(text + len - 1, text + len - 2, 3);
	text[len - 2] = ':';
}

const char *
time_format(double epoch_seconds, bool utc, char to[TIME_TEXT])
{
	struct tm tm;
	time_t when;

	/* Written so that NaN is refused too. */
	if (!(epoch_seconds >= 0 && epoch_seconds <= TIME_MOST)) {
		snprintf(to, TIME_TEXT, "(no time)");
		return to;
	}
	when = (time_t)floor(epoch_seconds);
	if ((utc ? gmtime_r(&when, &tm) : localtime_r(&when, &tm)) == NULL ||
	    strftime(to, TIME_TEXT - 1, utc ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%dT%H:%M:%S%z", &tm) == 0)
		snprintf(to, TIME_TEXT, "(no time)");
	else if (!utc)
		put_colon(to);
	return to;
}

/* ---- Sizes ---- */

static const char size_letters[] = "KMGTPE";

static int
bad_size(struct slice text, const char *why, struct err *e)
{
	err_set(e, ERR_SYNTAX, "\"%.*s\" is not a size: %s",
	    (int)(text.len < NUMBER_SHOWN ? text.len : NUMBER_SHOWN), text.data, why);
	return err_advice(e, "write 64M, 1.5G, 512k, or a number of bytes");
}

/* "", "B", "k", "KB", "KiB", ... as a shift; -1 when it is none. */
static int
size_shift(struct slice unit)
{
	const char *at;
	char letter;
	int shift = 0;

	if (unit.len > 0 && unit.data[0] != 'B') {
		letter = unit.data[0] >= 'a' && unit.data[0] <= 'z' ? (char)(unit.data[0] - 'a' + 'A') : unit.data[0];
		at = letter != '\0' ? strchr(size_letters, letter) : NULL;
		if (at == NULL)
			return -1;
		shift = 10 * (int)(at - size_letters + 1);
		step_over(&unit, 1);
		if (unit.len == 2 && unit.data[0] == 'i')
			step_over(&unit, 1);
	}
	return unit.len == 0 || slice_is(unit, "B") ? shift : -1;
}

/* decimals * 2^shift / 10^n, cut; the table of letters keeps it within 64 bits up to T, and P and E
 * lose only bits that six decimals do not reach. */
static uint64_t
scale_decimals(struct slice decimals, int shift)
{
	uint64_t value = 0, ten = 1, whole;
	size_t i;

	for (i = 0; i < decimals.len; i++) {
		value = value * 10 + (uint64_t)(decimals.data[i] - '0');
		ten *= 10;
	}
	/* value < 10^6 < 2^20, so 2^43 is the most that it can be multiplied by. */
	if (shift <= 40)
		return (value << shift) / ten;
	whole = (value << 40) / ten;
	return whole << (shift - 40);
}

int
size_parse(struct slice text, uint64_t *bytes, struct err *e)
{
	struct slice rest = text, whole, decimals;
	uint64_t value = 0, more;
	size_t i;
	int shift;

	if (text.len > 0 && text.data[0] == '-')
		return bad_size(text, "it is negative", e);
	if (!take_number(&rest, &whole, &decimals))
		return bad_size(text, "a number is missing", e);
	shift = size_shift(rest);
	if (shift < 0)
		return bad_size(text, "units are k, M, G, T, P, E", e);
	if (decimals.len > SIZE_MOST_DECIMALS || (decimals.len > 0 && shift == 0))
		return bad_size(text, "too many decimals", e);
	for (i = 0; i < whole.len; i++)
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(whole.data[i] - '0'), &value))
			return bad_size(text, "too large", e);
	if (value > UINT64_MAX >> shift)
		return bad_size(text, "too large", e);
	more = scale_decimals(decimals, shift);
	if (__builtin_add_overflow(value << shift, more, bytes))
		return bad_size(text, "too large", e);
	return 0;
}

const char *
size_format(uint64_t bytes, char to[DURATION_TEXT])
{
	uint64_t tenths;
	int power = 0;

	while (power < 6 && bytes >> (10 * (power + 1)) != 0)
		power++;
	if (power == 0) {
		snprintf(to, DURATION_TEXT, "%lluB", (unsigned long long)bytes);
		return to;
	}
	/* Tenths of the unit, cut; from the ten bits below it, which cannot overflow. */
	tenths = (bytes >> (10 * (power - 1)) & 1023) * 10 / 1024;
	if (tenths == 0)
		snprintf(to, DURATION_TEXT, "%llu%c", (unsigned long long)(bytes >> (10 * power)),
		    size_letters[power - 1]);
	else
		snprintf(to, DURATION_TEXT, "%llu.%llu%c", (unsigned long long)(bytes >> (10 * power)),
		    (unsigned long long)tenths, size_letters[power - 1]);
	return to;
}
