/* Strings and member names. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "value.h"

enum { INTERNED_MAX = 24 };

/* The room is for the NUL behind the text. */
static union {
	struct text text;
	char room[sizeof(struct text) + 1];
} empty = {.text.head = {.refs = 2, .type = JSON_STRING, .flags = F_IMMORTAL | F_PLAIN}};

/*
 * A character or a lone surrogate at p. Two surrogates that make a pair are refused where they
 * meet: as text that would be a character, which has another form.
 */
static int32_t
next_character(const char *p, size_t n, size_t *len, uint8_t *flags)
{
	int32_t c = json_utf8_next(p, n, len);

	if (c >= 0) {
		if (c == 0)
			*flags |= F_NUL;
		return c;
	}
	c = json_surrogate_next(p, n);
	if (c < 0)
		return -1;
	if (c < 0xdc00 && json_surrogate_next(p + 3, n - 3) >= 0xdc00)
		return -1;
	*flags |= F_LONE;
	*len = 3;
	return c;
}

static bool
check_text(struct slice text, uint8_t *flags)
{
	size_t i = json_plain_run(text.data, text.len), len = 0;

	*flags = i == text.len ? F_PLAIN : 0;
	for (; i < text.len; i += len + json_plain_run(text.data + i + len, text.len - i - len))
		if (next_character(text.data + i, text.len - i, &len, flags) < 0)
			return false;
	return true;
}

struct json *
json_string(struct slice text)
{
	struct text *t;
	uint8_t flags;

	if (text.len == 0)
		return &empty.text.head;
	if (!check_text(text, &flags))
		return NULL;
	t = json_text_alloc(JSON_STRING, text.len, NULL);
	if (t == NULL)
		return NULL;
	memcpy(t->data, text.data, text.len);
	t->head.flags |= flags;
	return &t->head;
}

struct json *
json_cstr(const char *text)
{
	return text == NULL ? NULL : json_string(slice_of(text));
}

struct json *
json_printf(const char *fmt, ...)
{
	struct buf b = {0};
	struct json *v = NULL;
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	if (buf_ok(&b, NULL) == 0)
		v = json_string(buf_view(&b));
	buf_clear(&b);
	return v;
}

/* What a decoder shows for bytes that are no character: Unicode, section 3.9, U+FFFD. */
static bool
add_mended(struct buf *b, struct slice bytes)
{
	bool replaced = false;
	size_t i = 0, len;

	while (i < bytes.len) {
		len = json_plain_run(bytes.data + i, bytes.len - i);
		if (len == 0 && json_utf8_next(bytes.data + i, bytes.len - i, &len) < 0) {
			buf_puts(b, "\xef\xbf\xbd");
			replaced = true;
		} else
			buf_add(b, bytes.data + i, len);
		i += len;
	}
	return replaced;
}

struct json *
json_string_lossy(struct slice bytes, bool *replaced)
{
	struct json *v = json_string(bytes);
	struct buf b = {0};
	bool mended = false;

	if (v == NULL || json_has_lone_surrogate(v)) {
		json_unref(v);
		v = NULL;
		mended = add_mended(&b, bytes);
		if (buf_ok(&b, NULL) == 0)
			v = json_string(buf_view(&b));
		buf_clear(&b);
	}
	if (replaced != NULL)
		*replaced = mended;
	return v;
}

struct json *
json_text_or_null(const char *text)
{
	return text == NULL || text[0] == '\0' ? json_null() : json_string_lossy(slice_of(text), NULL);
}

struct slice
json_text(const struct json *v)
{
	if (v == NULL || v->type != JSON_STRING)
		return (struct slice){NULL, 0};
	return text_slice(v);
}

const char *
json_cstr_of(const struct json *v)
{
	if (v == NULL || v->type != JSON_STRING || (v->flags & (F_LONE | F_NUL)))
		return NULL;
	return text_of(v)->data;
}

bool
json_has_lone_surrogate(const struct json *v)
{
	return v != NULL && v->type == JSON_STRING && (v->flags & F_LONE);
}

/* ---- names ---- */

/*
 * Names that the program itself gives to members are few and come again in each of many thousand
 * entries. They are kept once, for as long as the process lives. Only names of lower-case letters
 * and `_` are, which identifiers made from data are not; each has one possible slot, and the
 * first to come keeps it.
 */
enum { NAME_SLOTS = 512 };
static _Atomic(struct json *) known_names[NAME_SLOTS];

static _Atomic(struct json *) *
name_slot(struct slice name)
{
	uint32_t h = 2166136261u;
	size_t i;

	if (name.len == 0 || name.len > INTERNED_MAX)
		return NULL;
	for (i = 0; i < name.len; i++) {
		char c = name.data[i];

		if ((c < 'a' || c > 'z') && c != '_')
			return NULL;
		h = (h ^ (unsigned char)c) * 16777619u;
	}
	return &known_names[(h ^ h >> 16) % NAME_SLOTS];
}

struct json *
json_known_name(struct slice name)
{
	_Atomic(struct json *) *slot = name_slot(name);
	struct json *v;

	if (slot == NULL)
		return NULL;
	v = atomic_load_explicit(slot, memory_order_acquire);
	return v != NULL && slice_eq(text_slice(v), name) ? v : NULL;
}

struct json *
json_name(struct slice name)
{
	struct json *v = json_known_name(name);

	return v != NULL ? v : json_string(name);
}

struct json *
json_intern_name(struct slice name)
{
	_Atomic(struct json *) *slot = name_slot(name);
	struct json *v = json_name(name), *none = NULL;

	if (slot == NULL || v == NULL || (v->flags & F_IMMORTAL) ||
	    atomic_load_explicit(slot, memory_order_acquire) != NULL)
		return v;
	v->flags |= F_IMMORTAL;
	if (!atomic_compare_exchange_strong_explicit(slot, &none, v, memory_order_acq_rel,
		memory_order_acquire))
		/* Somebody else was first; nobody has seen ours yet. */
		v->flags &= (uint8_t)~F_IMMORTAL;
	return v;
}
