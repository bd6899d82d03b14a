#include <stdint.h>
#include <string.h>

#include "value.h"

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Not zero when some byte of x is zero. */
static uint64_t
zero_byte(uint64_t x)
{
	return (x - EACH(0x01)) & ~x & EACH(0x80);
}

static bool
is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '\\' && c != '"';
}

/*
 * Eight bytes at once: not zero when one of them is not plain. The lowest bit that is set belongs to
 * the first such byte (bits above it may be set by a borrow).
 */
static uint64_t
odd_bytes(uint64_t x)
{
	uint64_t odd = (x & EACH(0x80)) | ((x - EACH(0x20)) & ~x & EACH(0x80));

	return odd | zero_byte(x ^ EACH('\\')) | zero_byte(x ^ EACH('"')) | zero_byte(x ^ EACH(0x7f));
}

size_t
json_plain_run(const char *p, size_t n)
{
	size_t i = 0;
	uint64_t x;

	for (; i + sizeof(x) <= n; i += sizeof(x)) {
		memcpy(&x, p + i, sizeof(x));
		if (odd_bytes(x) != 0)
			break;
	}
	while (i < n && is_plain((unsigned char)p[i]))
		i++;
	return i;
}

size_t
json_plain_copy(char *to, const char *p, size_t n)
{
	size_t i = 0;
	uint64_t x;

	for (; i + sizeof(x) <= n; i += sizeof(x)) {
		memcpy(&x, p + i, sizeof(x));
		memcpy(to + i, &x, sizeof(x));
		x = odd_bytes(x);
		if (x == 0)
			continue;
		if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
			return i + (size_t)__builtin_ctzll(x) / 8;
		break;
	}
	for (; i < n && is_plain((unsigned char)p[i]); i++)
		to[i] = p[i];
	return i;
}

/* Lead bytes by what must follow: RFC 3629, section 4. */
struct lead {
	unsigned char first, last;
	unsigned char more;
	unsigned char second_low, second_high;
	unsigned char bits;
};

static const struct lead leads[] = {
    {0xc2, 0xdf, 1, 0x80, 0xbf, 0x1f},
    {0xe0, 0xe0, 2, 0xa0, 0xbf, 0x0f},
    {0xe1, 0xec, 2, 0x80, 0xbf, 0x0f},
    {0xed, 0xed, 2, 0x80, 0x9f, 0x0f},
    {0xee, 0xef, 2, 0x80, 0xbf, 0x0f},
    {0xf0, 0xf0, 3, 0x90, 0xbf, 0x07},
    {0xf1, 0xf3, 3, 0x80, 0xbf, 0x07},
    {0xf4, 0xf4, 3, 0x80, 0x8f, 0x07},
};

static const struct lead *
find_lead(unsigned char c)
{
	size_t i;

	for (i = 0; i < sizeof(leads) / sizeof(leads[0]); i++)
		if (c >= leads[i].first && c <= leads[i].last)
			return &leads[i];
	return NULL;
}

int32_t
json_utf8_next(const char *p, size_t n, size_t *len)
{
	const unsigned char *u = (const unsigned char *)p;
	const struct lead *lead;
	uint32_t c;
	size_t i;

	*len = 1;
	if (u[0] < 0x80)
		return u[0];
	lead = find_lead(u[0]);
	if (lead == NULL)
		return -1;
	c = u[0] & lead->bits;
	for (i = 1; i <= lead->more; i++) {
		unsigned char low = i == 1 ? lead->second_low : 0x80;
		unsigned char high = i == 1 ? lead->second_high : 0xbf;

		if (i >= n || u[i] < low || u[i] > high)
			return -1;
		*len = i + 1;
		c = c << 6 | (u[i] & 0x3f);
	}
	return (int32_t)c;
}

int32_t
json_surrogate_next(const char *p, size_t n)
{
	const unsigned char *u = (const unsigned char *)p;

	if (n < 3 || u[0] != 0xed || u[1] < 0xa0 || u[1] > 0xbf || u[2] < 0x80 || u[2] > 0xbf)
		return -1;
	return 0xd000 | (u[1] & 0x3f) << 6 | (u[2] & 0x3f);
}

size_t
json_utf8_put(char *to, uint32_t c)
{
	size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	static const unsigned char mark[] = {0, 0xc0, 0xe0, 0xf0};
	size_t i;

	to[0] = (char)(mark[more] | c >> (6 * more));
	for (i = 1; i <= more; i++)
		to[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
	return more + 1;
}
