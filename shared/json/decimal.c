#include "decimal.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stddef.h>

__extension__ typedef unsigned __int128 wide;

enum { WORD = 64, MANTISSA = 53 };

static const uint64_t tens[] = {UINT64_C(1), UINT64_C(10), UINT64_C(100), UINT64_C(1000),
    UINT64_C(10000), UINT64_C(100000), UINT64_C(1000000), UINT64_C(10000000), UINT64_C(100000000),
    UINT64_C(1000000000), UINT64_C(10000000000), UINT64_C(100000000000), UINT64_C(1000000000000),
    UINT64_C(10000000000000), UINT64_C(100000000000000), UINT64_C(1000000000000000),
    UINT64_C(10000000000000000), UINT64_C(100000000000000000), UINT64_C(1000000000000000000),
    UINT64_C(10000000000000000000)};

enum { TENS = sizeof(tens) / sizeof(tens[0]) };

static_assert(DBL_MANT_DIG == MANTISSA && FLT_RADIX == 2, "doubles of another form");

/* v / 2^bits, 0 < bits < 128; `more`: something that v does not hold stands behind it. */
static uint64_t
round_off(wide v, unsigned bits, bool more)
{
	const wide half = (wide)1 << (bits - 1), rest = v & ((half << 1) - 1);
	const uint64_t whole = (uint64_t)(v >> bits);

	return whole + (rest > half || (rest == half && (more || (whole & 1) != 0)));
}

/* Both are moved up to their highest bit, so that the quotient has 62 or 63 bits. */
bool
decimal_to_real(uint64_t digits, unsigned behind, double *out)
{
	enum { UP = WORD - 2 };
	uint64_t quotient, divisor;
	int high, low, drop;
	wide dividend;

	if (behind >= TENS)
		return false;
	if (digits == 0) {
		*out = 0;
		return true;
	}
	high = __builtin_clzll(digits);
	low = __builtin_clzll(tens[behind]);
	dividend = (wide)(digits << high) << UP;
	divisor = tens[behind] << low;
	quotient = (uint64_t)(dividend / divisor);
	drop = WORD - __builtin_clzll(quotient) - MANTISSA;
	*out = ldexp((double)round_off(quotient, (unsigned)drop, (wide)quotient * divisor != dividend),
	    drop + low - high - UP);
	return true;
}

/* mantissa / 2^bits * 10^shift to whole digits, of which there are `precision`: shift is *shift or one beside it. */
static bool
digits_of(uint64_t mantissa, unsigned bits, int precision, int *shift, uint64_t *digits)
{
	wide scaled;
	int tries;

	for (tries = 0; tries < 2; tries++) {
		if (*shift < 0 || *shift >= TENS)
			return false;
		scaled = (wide)mantissa * tens[*shift];
		if (scaled >> bits >= tens[precision]) {
			--*shift;
		} else if (scaled >> bits < tens[precision - 1]) {
			++*shift;
		} else {
			*digits = round_off(scaled, bits, false);
			return true;
		}
	}
	return false;
}

bool
decimal_of_real(double d, int least, int most, uint64_t *digits, int *exponent)
{
	int binary, precision, shift;
	uint64_t mantissa;
	double back;

	assert(d > 0 && least > 0 && least <= most && most <= 17);
	if (d < 1e-3 || d >= 1e15)
		return false;
	mantissa = (uint64_t)ldexp(frexp(d, &binary), MANTISSA);
	for (precision = least; precision <= most; precision++) {
		shift = precision - 1 - (int)floor(log10(d));
		shift = shift < 0 ? 0 : shift; /* the logarithm was rounded up */
		if (!digits_of(mantissa, (unsigned)(MANTISSA - binary), precision, &shift, digits) ||
		    !decimal_to_real(*digits, (unsigned)shift, &back))
			return false;
		*exponent = precision - 1 - shift;
		if (back == d)
			break;
	}
	return true;
}
