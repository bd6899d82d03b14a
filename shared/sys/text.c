/* Text for people: made harmless for a terminal; a guess at what a name was meant to be. */
#include <stdio.h>
#include <string.h>

#include "flowsup/log.h"
#include "text_private.h"

enum { NAME_MOST = 64, BEGINNING_LEAST = 2 };

/* RFC 3629: bounds of the second byte by the first; what follows is 80..BF. */
static bool
second_fits(unsigned char first, unsigned char second)
{
	static const struct {
		unsigned char first, low, high;
	} narrow[] = {{0xE0, 0xA0, 0xBF}, {0xED, 0x80, 0x9F}, {0xF0, 0x90, 0xBF}, {0xF4, 0x80, 0x8F}};
	size_t i;

	for (i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++)
		if (narrow[i].first == first)
			return second >= narrow[i].low && second <= narrow[i].high;
	return second >= 0x80 && second <= 0xBF;
}

static size_t
sequence_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xC2 && first <= 0xDF)
		return 2;
	if (first >= 0xE0 && first <= 0xEF)
		return 3;
	return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

/* Decodes the first character. *bad: the bytes taken are no character. Takes at least one. */
static size_t
decode(struct slice in, uint32_t *code, bool *bad)
{
	static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
	unsigned char first = (unsigned char)in.data[0], next;
	size_t len = sequence_length(first), i;

	*bad = len == 0;
	if (len == 0)
		return 1;
	*code = first & masks[len];
	for (i = 1; i < len; i++) {
		next = i < in.len ? (unsigned char)in.data[i] : 0;
		if (i == 1 ? !second_fits(first, next) : (next & 0xC0) != 0x80) {
			*bad = true;
			return i;
		}
		*code = *code << 6 | (next & 0x3FU);
	}
	return len;
}

/* Characters that act on a terminal or turn the direction of what follows. */
static bool
acts(uint32_t code)
{
	static const struct {
		uint32_t low, high;
	} ranges[] = {{0x00, 0x1F}, {0x7F, 0x9F}, {0x200E, 0x200F}, {0x2028, 0x202E},
	    {0x2066, 0x2069}, {0xFEFF, 0xFEFF}};
	size_t i;

	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i].low && code <= ranges[i].high)
			return true;
	return false;
}

static void
escape(uint32_t code, char to[TEXT_UNIT])
{
	const char *short_form = code == '\n' ? "\\n" : code == '\t' ? "\\t" : code == '\r' ? "\\r" : "";

	if (short_form[0] != '\0')
		snprintf(to, TEXT_UNIT, "%s", short_form);
	else if (code < 0x100)
		snprintf(to, TEXT_UNIT, "\\x%02x", (unsigned)code);
	else
		snprintf(to, TEXT_UNIT, "\\u%04x", (unsigned)code);
}

size_t
text_harmless_unit(struct slice in, bool newline, char to[TEXT_UNIT])
{
	uint32_t code = 0;
	bool bad;
	size_t len = decode(in, &code, &bad);

	if (bad)
		snprintf(to, TEXT_UNIT, "\xEF\xBF\xBD");
	else if (acts(code) && !(newline && (code == '\n' || code == '\t')))
		escape(code, to);
	else {
		memcpy(to, in.data, len);
		to[len] = '\0';
	}
	return len;
}

static size_t
plain_prefix(struct slice in)
{
	size_t n = 0;

	while (n < in.len && in.data[n] >= 0x20 && in.data[n] < 0x7F)
		n++;
	return n;
}

void
text_neutralise(struct buf *to, struct slice text, bool newline)
{
	char unit[TEXT_UNIT];
	size_t n;

	while (text.len > 0) {
		n = plain_prefix(text);
		if (n > 0)
			buf_add(to, text.data, n);
		else {
			n = text_harmless_unit(text, newline, unit);
			buf_puts(to, unit);
		}
		text.data += n;
		text.len -= n;
	}
}

/* Length of a whole sequence that sets colours or erases within a line, else 0. "ESC ( B", the usual
 * character set, is written by terminfo's sgr0 beside them. */
static size_t
colour_length(struct slice in)
{
	size_t i = 2;

	if (in.len < 3 || in.data[0] != '\033')
		return 0;
	if (in.data[1] == '(')
		return in.data[2] == 'B' ? 3 : 0;
	if (in.data[1] != '[')
		return 0;
	/* Digits, ':' and ';' stand in one row. */
	while (i < in.len && in.data[i] >= '0' && in.data[i] <= ';')
		i++;
	return i < in.len && (in.data[i] == 'm' || in.data[i] == 'K') ? i + 1 : 0;
}

void
text_drop_colours(struct buf *to, struct slice text)
{
	size_t at, len, start = 0;

	for (at = 0; at < text.len; at += len > 0 ? len : 1) {
		len = colour_length((struct slice){text.data + at, text.len - at});
		if (len == 0)
			continue;
		buf_add(to, text.data + start, at - start);
		start = at + len;
	}
	buf_add(to, text.data + start, text.len - start);
}

static unsigned
least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, replacements, and two neighbours exchanged: each counts one. */
static unsigned
distance(const char *a, size_t la, const char *b, size_t lb)
{
	unsigned rows[3][NAME_MOST + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2], *spare;
	size_t i, k;

	for (k = 0; k <= lb; k++)
		last[k] = before[k] = (unsigned)k;
	for (i = 1; i <= la; i++) {
		row[0] = (unsigned)i;
		for (k = 1; k <= lb; k++) {
			row[k] = least(least(last[k], row[k - 1]) + 1, last[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				row[k] = least(row[k], before[k - 2] + 1);
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[lb];
}

/* One slip in a short name, two in a usual one, three in a long one; in one letter none. */
static unsigned
allowed(size_t len)
{
	return len < 2 ? 0 : len < 5 ? 1 : len < 12 ? 2 : 3;
}

const char *
text_nearest(const char *name, const char *const *names, size_t count)
{
	size_t len = strlen(name), other, i;
	unsigned best = allowed(len) + 1, d;
	const char *nearest = NULL;

	if (len > NAME_MOST)
		return NULL;
	for (i = 0; i < count; i++) {
		other = strlen(names[i]);
		if (other > NAME_MOST || (other > len ? other - len : len - other) >= best)
			continue;
		d = distance(name, len, names[i], other);
		if (d < best) {
			best = d;
			nearest = names[i];
		}
	}
	/* Who leaves the rest of a word to others has made no slip. */
	for (i = 0; nearest == NULL && len >= BEGINNING_LEAST && i < count; i++)
		if (strncmp(name, names[i], len) == 0)
			nearest = names[i];
	return nearest;
}
