/* One line a record, put together on the stack: logging works when memory and disk do not. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"
#include "text_private.h"

enum { LOG_LINE = 4096, LOG_WHO = 64 };

static struct {
	int fd;
	enum log_level most;
	char who[LOG_WHO];
	bool plain; /* for people who look on, not for a log */
} target = {STDERR_FILENO, LOG_INFO, "", true};

static const char *const level_names[] = {
	[LOG_ERROR] = "error",
	[LOG_WARNING] = "warning",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

void
log_init(int fd, const char *who, enum log_level most)
{
	target.fd = fd;
	target.most = most;
	target.plain = who == NULL;
	snprintf(target.who, sizeof(target.who), "%s", who != NULL ? who : "");
}

/* Appends the harmless form of text behind `at`, as far as it fits with a newline behind. */
static size_t
append_harmless(char line[LOG_LINE], size_t at, const char *text)
{
	struct slice rest = slice_of(text);
	char unit[TEXT_UNIT];
	size_t taken, len;

	while (rest.len > 0) {
		taken = text_harmless_unit(rest, false, unit);
		len = strlen(unit);
		if (at + len + 1 > LOG_LINE)
			break;
		memcpy(line + at, unit, len);
		at += len;
		rest.data += taken;
		rest.len -= taken;
	}
	return at;
}

static size_t
start_line(char line[LOG_LINE], enum log_level level)
{
	char when[TIME_TEXT];
	size_t at;
	int n;

	if (target.plain)
		return append_harmless(line, 0, "flowsup: ");
	time_format((double)clock_wall_ns() / (double)NS_PER_S, true, when);
	n = snprintf(line, LOG_LINE, "%s ", when);
	at = append_harmless(line, n > 0 ? (size_t)n : 0, target.who);
	at = append_harmless(line, at, " ");
	at = append_harmless(line, at, level_names[level]);
	return append_harmless(line, at, ": ");
}

void
log_line(enum log_level level, const char *fmt, ...)
{
	char text[LOG_LINE], line[LOG_LINE];
	int keep = errno;
	va_list ap;
	size_t at;

	if (level > target.most)
		return;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		snprintf(text, sizeof(text), "(a message that cannot be formatted)");
	va_end(ap);
	at = start_line(line, level);
	at = append_harmless(line, at, text);
	line[at++] = '\n';
	/* There is nowhere left to tell that the log cannot be written. */
	if (write(target.fd, line, at) < 0)
		errno = 0;
	errno = keep;
}
