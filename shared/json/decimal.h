/*
 * Between decimal digits and doubles by integers of 128 bits: exact, and without the C library's
 * locales. Each answers false where that is not wide enough; then the C library is asked.
 */
#ifndef FLOWSUP_JSON_DECIMAL_H
#define FLOWSUP_JSON_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* `digits` with the point before the last `behind` of them, rounded to nearest, ties to even. */
bool decimal_to_real(uint64_t digits, unsigned behind, double *out);

/*
 * d > 0 rounded in the same way to the fewest digits from `least` to `most` (at most 17) that read
 * back as d, or to `most`; the first of them stands for 10^*exponent.
 */
bool decimal_of_real(double d, int least, int most, uint64_t *digits, int *exponent);

#endif
