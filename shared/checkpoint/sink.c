#include "flowsup/json.h"
#include "sink.h"

enum { PIECE = 256 << 10 }; /* bytes that are worth a write */

/* Where the string ends whose quote stands before p: behind its last quote. */
static const char *
behind_string(const char *p, const char *end)
{
	const char *quote, *back;

	while (p < end && (quote = memchr(p, '"', (size_t)(end - p))) != NULL) {
		for (back = quote; back > p && back[-1] == '\\'; back--)
			;
		p = quote + 1;
		if ((quote - back) % 2 == 0)
			return p;
	}
	return end;
}

/* The deepest nesting in a text that begins at *depth, outside of strings; *depth at its end. */
static unsigned
nesting(struct slice text, unsigned *depth)
{
	const char *p = text.data, *end = text.data + text.len;
	unsigned deepest = *depth;

	while (p < end) {
		const char c = *p++;

		if (c == '"')
			p = behind_string(p, end);
		else if (c == '{' || c == '[')
			deepest = ++*depth > deepest ? *depth : deepest;
		else if (c == '}' || c == ']')
			--*depth;
	}
	return deepest;
}

unsigned
text_depth(struct slice text)
{
	unsigned depth = 0;

	return nesting(text, &depth);
}

static int
check(struct sink *s, struct slice piece, struct err *e)
{
	if (piece.len > JSON_MAX_PROGRAM || s->total > JSON_MAX_PROGRAM - piece.len)
		return err_set(e, ERR_LIMIT, "the state takes more than %zu bytes", JSON_MAX_PROGRAM);
	if (nesting(piece, &s->depth) > JSON_MAX_DEPTH)
		return err_set(e, ERR_LIMIT, "the state is nested more than %d deep", JSON_MAX_DEPTH);
	return 0;
}

static int
give_on(struct sink *s, struct slice piece, struct err *e)
{
	if (check(s, piece, e) != 0)
		return -1;
	if (piece.len == 0 || s->put == NULL)
		return 0;
	if (s->put(s->arg, piece, e) != 0)
		return -1;
	s->total += piece.len;
	return 0;
}

static int
flush(struct sink *s, struct err *e)
{
	if (buf_ok(&s->b, e) != 0 || give_on(s, buf_view(&s->b), e) != 0)
		return -1;
	if (s->put != NULL)
		buf_reset(&s->b);
	return 0;
}

int
sink_pass(struct sink *s, struct err *e)
{
	return s->put == NULL || s->b.len < PIECE ? 0 : flush(s, e);
}

int
sink_encoded(struct sink *s, struct slice encoding, struct err *e)
{
	if (s->put == NULL || encoding.len < PIECE) {
		buf_slice(&s->b, encoding);
		return sink_pass(s, e);
	}
	/* Large ones are not copied once more. */
	return flush(s, e) != 0 ? -1 : give_on(s, encoding, e);
}

int
sink_end(struct sink *s, struct err *e)
{
	return flush(s, e);
}

void
sink_clear(struct sink *s)
{
	buf_clear(&s->b);
}
