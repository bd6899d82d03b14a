/* The canonical encoding, the one for people, and the length of the first. */
#include <string.h>

#include "value.h"
#include "walk.h"

/* Bytes go to a buffer, or are only counted when there is none. */
struct out {
	struct buf *to;
	size_t len;
	size_t limit; /* counting stops behind it */
	bool pretty;
};

static void
put(struct out *o, const char *bytes, size_t n)
{
	struct buf *b = o->to;

	o->len += n;
	if (b == NULL)
		return;
	/* As buf_add() does, without a call where there is room: pieces are many and small. */
	if (b->failed || n >= b->cap - b->len) {
		buf_add(b, bytes, n);
		return;
	}
	memcpy(b->data + b->len, bytes, n);
	b->len += n;
	b->data[b->len] = '\0';
}

/* ---- strings ---- */

static size_t
unicode_escape(char *to, uint32_t c)
{
	static const char hex[] = "0123456789abcdef";

	to[0] = '\\';
	to[1] = 'u';
	to[2] = hex[c >> 12 & 15];
	to[3] = hex[c >> 8 & 15];
	to[4] = hex[c >> 4 & 15];
	to[5] = hex[c & 15];
	return 6;
}

static size_t
escape(char to[12], uint32_t c)
{
	static const char letters[128] = {['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
	    ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};

	if (c < 0x80 && letters[c] != '\0') {
		to[0] = '\\';
		to[1] = letters[c];
		return 2;
	}
	if (c < 0x10000)
		return unicode_escape(to, c);
	c -= 0x10000;
	unicode_escape(to, 0xd800 + (c >> 10));
	return 6 + unicode_escape(to + 6, 0xdc00 + (c & 0x3ff));
}

/* The character at p and its length; of broken text each byte is U+FFFD, a surrogate itself. */
static uint32_t
character_at(const char *p, size_t n, size_t *len)
{
	int32_t c = json_utf8_next(p, n, len);

	if (c >= 0)
		return (uint32_t)c;
	c = json_surrogate_next(p, n);
	*len = c >= 0 ? 3 : 1;
	return c >= 0 ? (uint32_t)c : 0xfffd;
}

/* For people only control characters and surrogates are hard to read as they are. */
static bool
stays(const struct out *o, uint32_t c)
{
	return o->pretty && c >= 0xa0 && (c < 0xd800 || c > 0xdfff);
}

/* Writes the character at p behind `to`; returns its length in p. */
static size_t
put_character(const struct out *o, const char *p, size_t n, char *to, size_t *made)
{
	size_t len;
	uint32_t c = character_at(p, n, &len);

	if (stays(o, c)) {
		memcpy(to, p, len);
		*made = len;
	} else
		*made = escape(to, c);
	return len;
}

/* Escapes into room made for the worst, a piece at a time so that the worst is not much. */
static void
put_escaped(struct out *o, struct slice s)
{
	enum { PIECE = 1024, WORST = 12 };
	char aside[PIECE * 6 + WORST];
	size_t i = 0, n;

	while (i < s.len) {
		size_t end = s.len - i < PIECE ? s.len : i + PIECE, made;
		/* cppcheck-suppress legacyUninitvar ; its address, to be written to */
		char *to = o->to != NULL ? buf_reserve(o->to, sizeof(aside)) : aside;

		if (to == NULL)
			return;
		for (n = 0; i < end; n += made) {
			made = json_plain_copy(to + n, s.data + i, end - i);
			if (made > 0)
				i += made;
			else
				i += put_character(o, s.data + i, s.len - i, to + n, &made);
		}
		o->len += n;
		if (o->to != NULL) {
			o->to->len += n;
			o->to->data[o->to->len] = '\0';
		}
	}
}

static void
put_string(struct out *o, struct slice s, bool plain)
{
	put(o, "\"", 1);
	if (plain)
		put(o, s.data, s.len);
	else
		put_escaped(o, s);
	put(o, "\"", 1);
}

void
json_write_string(struct buf *to, struct slice text)
{
	struct out o = {.to = to};

	put_string(&o, text, false);
}

/* ---- values ---- */

static void
put_integer(struct out *o, int64_t i)
{
	char digits[24], *p = digits + sizeof(digits);
	uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;

	do
		*--p = (char)('0' + u % 10);
	while ((u /= 10) > 0);
	if (i < 0)
		*--p = '-';
	put(o, p, (size_t)(digits + sizeof(digits) - p));
}

static void
put_scalar(struct out *o, const struct json *v)
{
	char real[NUMBER_MAX];

	if (v->type == JSON_STRING)
		put_string(o, text_slice(v), v->flags & F_PLAIN);
	else if (v->type == JSON_REAL)
		put(o, real, json_format_real(number_of(v)->d, real));
	else if (v->type == JSON_INTEGER && (v->flags & F_BIG))
		put(o, text_of(v)->data, text_of(v)->len);
	else if (v->type == JSON_INTEGER)
		put_integer(o, number_of(v)->i);
	else if (v->type == JSON_NULL)
		put(o, "null", 4);
	else if (v->flags & F_TRUE)
		put(o, "true", 4);
	else
		put(o, "false", 5);
}

static void
put_line(struct out *o, size_t depth)
{
	size_t i;

	if (!o->pretty)
		return;
	put(o, "\n", 1);
	for (i = 0; i < depth; i++)
		put(o, "  ", 2);
}

/* Opens v, or writes it when it is no container or empty. */
static int
put_value(struct out *o, struct walk *w, const struct json *v)
{
	bool object = v->type == JSON_OBJECT;
	struct walk_frame *f;

	if (!is_container(v))
		put_scalar(o, v);
	else if (json_length(v) == 0)
		put(o, object ? "{}" : "[]", 2);
	else {
		f = walk_push(w);
		if (f == NULL)
			return -1;
		*f = (struct walk_frame){.a = v, .it = json_iterate(v)};
		put(o, object ? "{" : "[", 1);
	}
	return 0;
}

/* The next element or member of the container on top, or its end. */
static int
put_next(struct out *o, struct walk *w)
{
	struct walk_frame *f = walk_top(w);
	const struct json *value;
	bool object = f->a->type == JSON_OBJECT;

	if (!json_next(&f->it, NULL, &value)) {
		w->depth--;
		put_line(o, w->depth);
		put(o, object ? "}" : "]", 1);
		return 0;
	}
	if (f->n++ > 0)
		put(o, ",", 1);
	put_line(o, w->depth);
	if (object) {
		const struct json *name = json_iter_name(&f->it);

		put_string(o, text_slice(name), name->flags & F_PLAIN);
		put(o, ": ", o->pretty ? 2 : 1);
	}
	return put_value(o, w, value);
}

static void
write_value(struct out *o, const struct json *v)
{
	struct walk w;
	int rc;

	if (v == NULL)
		return;
	walk_init(&w);
	rc = put_value(o, &w, v);
	while (rc == 0 && w.depth > 0 && o->len <= o->limit)
		rc = put_next(o, &w);
	if (rc == -1) {
		o->len = SIZE_MAX;
		if (o->to != NULL)
			o->to->failed = true;
	}
	walk_clear(&w);
}

void
json_write(struct buf *to, const struct json *v)
{
	struct out o = {.to = to, .limit = SIZE_MAX};

	write_value(&o, v);
}

void
json_write_pretty(struct buf *to, const struct json *v)
{
	struct out o = {.to = to, .limit = SIZE_MAX, .pretty = true};

	write_value(&o, v);
}

size_t
json_encoded_length(const struct json *v)
{
	struct out o = {.limit = SIZE_MAX};

	write_value(&o, v);
	return o.len;
}

size_t
json_encoded_length_to(const struct json *v, size_t limit)
{
	struct out o = {.limit = limit};

	write_value(&o, v);
	return o.len <= limit ? o.len : limit + 1;
}
