/* Escape sequences as ECMA-48 has them: ESC with one byte, CSI ... final byte, and strings. */
#include "flowsup/provider.h"

enum state { PLAIN, ESCAPE, INTERMEDIATE, CSI, STRING, STRING_ESCAPE };
enum { ESC = 0x1b, BEL = 0x07 };

static enum state
after_escape(unsigned char c)
{
	if (c == '[')
		return CSI;
	if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_')
		return STRING;
	return c >= 0x20 && c <= 0x2f ? INTERMEDIATE : PLAIN;
}

/* A control character inside of a sequence ends it here: a line end is never swallowed. */
static enum state
next_state(enum state s, unsigned char c)
{
	if (c == ESC)
		return s == STRING ? STRING_ESCAPE : ESCAPE;
	switch (s) {
	case PLAIN:
		break;
	case ESCAPE:
		return after_escape(c);
	case INTERMEDIATE:
		return c >= 0x20 && c <= 0x2f ? INTERMEDIATE : PLAIN;
	case CSI:
		return c >= 0x40 || c < 0x20 ? PLAIN : CSI;
	case STRING:
		return c == BEL || c == '\n' ? PLAIN : STRING;
	case STRING_ESCAPE:
		return c == '\\' ? PLAIN : after_escape(c);
	}
	return PLAIN;
}

void
ansi_strip(struct ansi_filter *f, struct slice bytes, struct buf *to)
{
	const char *at = bytes.data, *end = bytes.data + bytes.len, *stop;
	enum state before;

	while (at < end) {
		if (f->state == PLAIN) {
			stop = memchr(at, ESC, (size_t)(end - at));
			if (stop == NULL)
				stop = end;
			buf_add(to, at, (size_t)(stop - at));
			at = stop;
			if (at == end)
				return;
		}
		before = (enum state)f->state;
		f->state = (unsigned char)next_state(before, (unsigned char)*at);
		if (*at == '\n' && before != PLAIN)
			buf_putc(to, '\n');
		at++;
	}
}
