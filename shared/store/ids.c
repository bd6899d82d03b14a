#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "flowsup/clock.h"
#include "flowsup/home.h"

enum { UUID_BYTES = 16, INVOCATION_BYTES = 6, RUN_ID_BYTES = 3, RUN_ID_STAMP = 15,
	UUIDS_AT_ONCE = 16 /* 256 bytes */ };

static int
random_bytes(unsigned char *to, size_t len, struct err *e)
{
	ssize_t n;

	/* Up to 256 bytes come whole, or not at all: getrandom(2). */
	do
		n = getrandom(to, len, 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)len)
		return err_sys(e, ERR_INTERNAL, n < 0 ? errno : EIO, "getrandom");
	return 0;
}

static void
hex(char *to, const unsigned char *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < len; i++) {
		to[2 * i] = digits[bytes[i] >> 4];
		to[2 * i + 1] = digits[bytes[i] & 15];
	}
	to[2 * len] = '\0';
}

int
run_id_make(char to[RUN_ID_TEXT], struct err *e)
{
	unsigned char bytes[RUN_ID_BYTES];
	time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
	struct tm tm;

	if (random_bytes(bytes, sizeof(bytes), e) != 0)
		return -1;
	/* A clock beyond year 9999 would change the form that ids are told apart by. */
	if (gmtime_r(&now, &tm) == NULL ||
	    strftime(to, RUN_ID_TEXT, "%Y%m%dT%H%M%S", &tm) != RUN_ID_STAMP)
		return err_set(e, ERR_ENVIRONMENT, "the clock shows a time that no run id can hold");
	to[RUN_ID_STAMP] = '-';
	hex(to + RUN_ID_STAMP + 1, bytes, sizeof(bytes));
	return 0;
}

bool
run_id_is_valid(const char *text)
{
	static const char form[] = "ddddddddTdddddd-xxxxxx";
	size_t i;

	_Static_assert(sizeof(form) == RUN_ID_TEXT, "the form of a run id has its length");
	if (strlen(text) != sizeof(form) - 1)
		return false;
	for (i = 0; i < sizeof(form) - 1; i++) {
		bool digit = text[i] >= '0' && text[i] <= '9';
		bool letter = text[i] >= 'a' && text[i] <= 'f';

		if (form[i] == 'd' ? !digit : form[i] == 'x' ? !digit && !letter : text[i] != form[i])
			return false;
	}
	return true;
}

int
uuids_make(char (*to)[UUID_TEXT], size_t count, struct err *e)
{
	unsigned char bytes[UUIDS_AT_ONCE * UUID_BYTES], *one;
	size_t i, n;

	for (; count > 0; count -= n, to += n) {
		n = count < UUIDS_AT_ONCE ? count : UUIDS_AT_ONCE;
		if (random_bytes(bytes, n * UUID_BYTES, e) != 0)
			return -1;
		for (i = 0, one = bytes; i < n; i++, one += UUID_BYTES) {
			one[6] = (unsigned char)((one[6] & 0x0f) | 0x40); /* version 4 */
			one[8] = (unsigned char)((one[8] & 0x3f) | 0x80); /* variant of RFC 9562 */
			hex(to[i], one, UUID_BYTES);
		}
	}
	return 0;
}

int
uuid_make(char to[UUID_TEXT], struct err *e)
{
	return uuids_make((char (*)[UUID_TEXT])to, 1, e);
}

int
invocation_id_make(char to[INVOCATION_ID_TEXT], struct err *e)
{
	unsigned char bytes[INVOCATION_BYTES];

	if (random_bytes(bytes, sizeof(bytes), e) != 0)
		return -1;
	hex(to, bytes, sizeof(bytes));
	return 0;
}
