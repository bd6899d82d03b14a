/* Clocks: monotonic for limits of operations, boot time for a run's deadline, wall for display. */
#ifndef FLOWSUP_CLOCK_H
#define FLOWSUP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"

/* Nanoseconds. CLOCK_MONOTONIC stands still while the machine is suspended, CLOCK_BOOTTIME not. */
int64_t clock_monotonic_ns(void);
int64_t clock_boottime_ns(void);
int64_t clock_wall_ns(void); /* since the epoch */

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

/* Reads "90s", "2h30m", "1w", "250ms", "1.5h", "5min", or a bare number of seconds. ERR_SYNTAX. Never
 * negative; at most 100 years. */
int duration_parse(struct slice text, int64_t *ns, struct err *e);
/* "4m10s", "2h03m", "1.5s", "350ms": at most two units, the rest is cut off. */
enum { DURATION_TEXT = 24 };
const char *duration_format(int64_t ns, char to[DURATION_TEXT]);
/* Writes n with at least so many digits, 20 at most, and a NUL, and returns where that stands. */
char *put_number(char *to, uint64_t n, unsigned digits);
/* RFC 3339 with seconds, in UTC ("...Z") or the user's zone ("+02:00"); "(no time)" when it is none. */
enum { TIME_TEXT = 40 };
const char *time_format(double epoch_seconds, bool utc, char to[TIME_TEXT]);
/* "64M", "64m", "1.5G", "512k", "64MiB", plain bytes. Powers of 1024. ERR_SYNTAX. */
int size_parse(struct slice text, uint64_t *bytes, struct err *e);
/* "64M", "1.5G", "900B"; cut to a tenth. */
const char *size_format(uint64_t bytes, char to[DURATION_TEXT]);

#endif
