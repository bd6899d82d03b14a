/* Doubles to digits and back by integers: the same as by the C library, and reached by times of day. */
#include "test.h"

#include <stdlib.h>

#include "shared/json/decimal.h"

enum { ROUNDS = 200000 };

static uint64_t
next(uint64_t *x)
{
	*x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *x ^ *x >> 29;
}

static void
check_read(uint64_t digits, unsigned behind)
{
	char text[64];
	double got = -1;

	snprintf(text, sizeof(text), "%llue-%u", (unsigned long long)digits, behind);
	assert_true(decimal_to_real(digits, behind, &got));
	if (got != strtod(text, NULL))
		fail_msg("%s: %.17g, not %.17g", text, got, strtod(text, NULL));
}

static void
test_decimal__reads_as_strtod(void **state)
{
	uint64_t x = 1;
	double d;
	int i;

	(void)state;
	for (i = 0; i < ROUNDS; i++)
		check_read(next(&x) >> (next(&x) >> 58), (unsigned)(next(&x) >> 32) % 20);
	/* Halfway between two doubles, and beside it. */
	for (i = 0; i < 9; i++)
		check_read((UINT64_C(1) << 54) - 4 + (uint64_t)i, 0);
	check_read((UINT64_C(9007199254740993) << 1) * 5, 1);
	check_read(UINT64_MAX, 0);
	check_read(0, 3);
	assert_false(decimal_to_real(1, 20, &d));
}

/* What the search of the C library's digits finds, as digits and exponent. */
static void
by_library(double d, uint64_t *digits, int *exponent)
{
	char text[40];
	int precision;

	for (precision = 15;; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision - 1, d);
		if (precision == 17 || strtod(text, NULL) == d)
			break;
	}
	*exponent = atoi(strchr(text, 'e') + 1);
	memmove(text + 1, text + 2, (size_t)precision - 1);
	text[precision] = '\0';
	*digits = strtoull(text, NULL, 10);
}

static void
check_digits(double d)
{
	uint64_t got = 0, want;
	int got_exponent = 0, exponent;

	by_library(d, &want, &exponent);
	if (!decimal_of_real(d, 15, 17, &got, &got_exponent))
		fail_msg("%.17g is not done", d);
	for (; want % 10 == 0; want /= 10)
		;
	for (; got % 10 == 0; got /= 10)
		;
	if (got != want || got_exponent != exponent)
		fail_msg("%.17g: %llu e%d, not %llu e%d", d, (unsigned long long)got, got_exponent,
		    (unsigned long long)want, exponent);
}

static void
test_decimal__writes_as_printf(void **state)
{
	static const double some[] = {1e-3, 0.1, 0.3, 0.5, 1, 9.999999999999999, 10, 0.99999999999999994,
	    999999999999999.9, 99999999999999.98, 1796016875.8140197, 123456.0625, 4503599627370.4965};
	uint64_t x = 7, digits;
	int i, exponent;

	(void)state;
	for (i = 0; i < (int)(sizeof(some) / sizeof(some[0])); i++)
		check_digits(some[i]);
	for (i = 0; i < ROUNDS; i++) {
		double d = (double)(next(&x) >> (next(&x) >> 58));

		for (d = d < 1 ? 1 : d; d >= 1e15; d /= 1000)
			;
		check_digits(d);
		check_digits(1.7e9 + (double)(next(&x) >> 20) * 1e-4);
		check_digits((double)(1 + next(&x) % 1000000) / 1000);
	}
	assert_false(decimal_of_real(9e-4, 15, 17, &digits, &exponent));
	assert_false(decimal_of_real(1e15, 15, 17, &digits, &exponent));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_decimal__reads_as_strtod),
    cmocka_unit_test(test_decimal__writes_as_printf),
};

TEST_MAIN("decimal", tests)
