/* Numbers: exact integers, doubles from text and back. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "value.h"

/* ---- reading ---- */

static struct json *
read_big(struct slice digits, const struct json_where *where)
{
	struct text *t = json_text_alloc(JSON_INTEGER, digits.len, where);

	if (t == NULL)
		return NULL;
	memcpy(t->data, digits.data, digits.len);
	t->head.flags |= F_BIG;
	return &t->head;
}

static struct json *
new_integer(int64_t i, const struct json_where *where)
{
	struct number *n;

	if (where == NULL)
		return json_int(i);
	n = json_alloc(JSON_INTEGER, sizeof(*n), where);
	if (n == NULL)
		return NULL;
	n->i = i;
	return &n->head;
}

/* Minus zero is the integer zero: integers have no sign of their own there. */
struct json *
json_read_integer(struct slice digits, const struct json_where *where)
{
	bool minus = digits.data[0] == '-';
	uint64_t limit = minus ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
	uint64_t u = 0;
	size_t i;

	for (i = minus; i < digits.len; i++) {
		unsigned d = (unsigned)(digits.data[i] - '0');

		if (u > (limit - d) / 10)
			return read_big(digits, where);
		u = u * 10 + d;
	}
	return new_integer(minus ? (int64_t)(0 - u) : (int64_t)u, where);
}

/* strtod() reads the decimal point of the locale; a copy is needed for the NUL behind. */
static int
read_slowly(struct slice digits, double *out)
{
	char small[64];
	char *copy = digits.len < sizeof(small) ? small : malloc(digits.len + 1);
	locale_t c;

	if (copy == NULL)
		return -1;
	memcpy(copy, digits.data, digits.len);
	copy[digits.len] = '\0';
	c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (c != (locale_t)0) {
		*out = strtod_l(copy, NULL, c);
		freelocale(c);
	}
	if (copy != small)
		free(copy);
	return c == (locale_t)0 ? -1 : 0;
}

/* Without an exponent, and of no more digits than an integer holds. */
static bool
read_quickly(struct slice digits, double *out)
{
	enum { MOST = 19 };
	bool minus = digits.data[0] == '-', fraction = false;
	unsigned seen = 0, behind = 0;
	uint64_t u = 0;
	size_t i;

	for (i = minus; i < digits.len; i++) {
		char c = digits.data[i];

		if (c == '.') {
			fraction = true;
			continue;
		}
		if (c < '0' || c > '9' || ++seen > MOST)
			return false;
		u = u * 10 + (unsigned)(c - '0');
		behind += fraction;
	}
	if (!decimal_to_real(u, behind, out))
		return false;
	if (minus)
		*out = -*out;
	return true;
}

struct json *
json_read_real(struct slice digits, const struct json_where *where, bool *finite)
{
	struct number *n;
	double d = 0;

	*finite = true;
	if (!read_quickly(digits, &d) && read_slowly(digits, &d) == -1)
		return NULL;
	if (!isfinite(d)) {
		*finite = false;
		return NULL;
	}
	n = json_alloc(JSON_REAL, sizeof(*n), where);
	if (n == NULL)
		return NULL;
	n->d = d;
	return &n->head;
}

/* ---- writing ---- */

/* Digits without a point, and the power of ten of the first one. */
struct decimal {
	char digits[20];
	int count;
	int exponent;
};

static size_t
put_exponent(char *out, const struct decimal *n)
{
	char *p = out;

	*p++ = n->digits[0];
	if (n->count > 1) {
		*p++ = '.';
		memcpy(p, n->digits + 1, (size_t)n->count - 1);
		p += n->count - 1;
	}
	return (size_t)(p - out) + (size_t)sprintf(p, "e%d", n->exponent);
}

static bool
reads_back(const struct decimal *n, double d)
{
	char text[NUMBER_MAX];

	(void)put_exponent(text, n);
	return strtod(text, NULL) == d;
}

/* The next larger number of as many digits. */
static void
step_up(struct decimal *n)
{
	int i = n->count - 1;

	while (i >= 0 && n->digits[i] == '9')
		n->digits[i--] = '0';
	if (i >= 0) {
		n->digits[i]++;
		return;
	}
	n->digits[0] = '1';
	n->exponent++;
}

static bool
is_power_of_two(double d)
{
	int exponent;

	return frexp(d, &exponent) == 0.5;
}

/*
 * d > 0 to `precision` digits; whether that reads back as d. Below a power of two doubles lie twice as dense
 * as above it: what is nearest to it may read back as the one below, and the next above as itself.
 */
static bool
to_decimal(double d, int precision, struct decimal *out)
{
	char text[40];
	bool found;
	int i;

	snprintf(text, sizeof(text), "%.*e", precision - 1, d);
	out->digits[0] = text[0];
	for (i = 1; i < precision; i++)
		out->digits[i] = text[i + 1];
	out->exponent = atoi(strchr(text, 'e') + 1);
	out->count = precision;
	found = reads_back(out, d);
	if (!found && is_power_of_two(d)) {
		step_up(out);
		found = reads_back(out, d);
	}
	while (out->count > 1 && out->digits[out->count - 1] == '0')
		out->count--;
	return found;
}

/*
 * 15 digits always survive a double of full precision, so the search starts there; subnormal
 * numbers have fewer digits to give and are tried from one.
 */
enum { SURE = 15, ENOUGH = 17 };
#define POWER_16 UINT64_C(10000000000000000) /* from it on: 17 digits, of which one may be too many */

static bool
shortest_quickly(double d, struct decimal *out)
{
	char back[sizeof(out->digits)];
	uint64_t digits;
	int i;

	if (!decimal_of_real(d, SURE, ENOUGH, &digits, &out->exponent) ||
	    (digits >= POWER_16 && is_power_of_two(d)))
		return false;
	while (digits % 10 == 0)
		digits /= 10;
	for (i = 0; digits > 0; digits /= 10)
		back[i++] = (char)('0' + digits % 10);
	for (out->count = 0; i > 0; out->count++)
		out->digits[out->count] = back[--i];
	return true;
}

/* The decimal point of the locale must be a point meanwhile. */
static void
shortest(double d, struct decimal *out)
{
	int precision = d < DBL_MIN * 4 ? 1 : SURE;
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	locale_t before = uselocale(c);

	while (!to_decimal(d, precision, out) && precision < ENOUGH)
		precision++;
	uselocale(before);
	if (c != (locale_t)0)
		freelocale(c);
}

static size_t
put_plain(char *out, const struct decimal *n)
{
	int point = n->exponent + 1;
	char *p = out;
	int i;

	if (point <= 0) {
		*p++ = '0';
		*p++ = '.';
		for (i = point; i < 0; i++)
			*p++ = '0';
		memcpy(p, n->digits, (size_t)n->count);
		return (size_t)(p + n->count - out);
	}
	for (i = 0; i < n->count || i < point; i++) {
		if (i == point)
			*p++ = '.';
		*p++ = i < n->count ? n->digits[i] : '0';
	}
	if (i == point) {
		*p++ = '.';
		*p++ = '0';
	}
	return (size_t)(p - out);
}

static size_t
format_positive(double d, char *out)
{
	enum { PLAIN_FROM = -4, PLAIN_TO = 16 };
	struct decimal n = {.count = 0};

	if (!shortest_quickly(d, &n))
		shortest(d, &n);
	if (n.exponent >= PLAIN_FROM && n.exponent < PLAIN_TO)
		return put_plain(out, &n);
	return put_exponent(out, &n);
}

size_t
json_format_real(double d, char out[NUMBER_MAX])
{
	size_t sign = signbit(d) ? 1 : 0;

	if (sign)
		out[0] = '-';
	if (d == 0) {
		out[sign] = '0';
		out[sign + 1] = '.';
		out[sign + 2] = '0';
		return sign + 3;
	}
	return sign + format_positive(fabs(d), out + sign);
}
