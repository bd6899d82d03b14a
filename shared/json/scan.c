/* What is inside a token, and what is wrong with it. Knows nothing of jsmn and builds nothing. */
#include <string.h>

#include "scan.h"

void
scan_fault(struct scan *s, enum json_fault kind, size_t at, const char *detail)
{
	if (s->failure.fault == JSON_FAULT_MEMORY)
		return;
	s->failure.fault = kind;
	s->failure.where.offset = at;
	s->detail = detail;
}

void
scan_syntax(struct scan *s, size_t at, const char *expected)
{
	if (at >= s->len)
		scan_fault(s, JSON_FAULT_TRUNCATED, s->len, expected);
	else
		scan_fault(s, JSON_FAULT_SYNTAX, at, expected);
}

/* ---- tokens, before they are found ---- */

/* The index of the quote that ends the string opened at `from`, or len. */
static size_t
string_end(const char *text, size_t from, size_t len)
{
	size_t at = from + 1, back;

	while (at < len) {
		const char *quote = memchr(text + at, '"', len - at);

		if (quote == NULL)
			return len;
		at = (size_t)(quote - text);
		for (back = at; text[back - 1] == '\\'; back--)
			;
		if ((at - back) % 2 == 0)
			return at;
		at++;
	}
	return len;
}

bool
scan_long_string(const char *text, size_t len, size_t *from, size_t *end)
{
	enum { LONG = 64 };
	const char *quote;

	while (*from < len && (quote = memchr(text + *from, '"', len - *from)) != NULL) {
		*from = (size_t)(quote - text);
		*end = string_end(text, *from, len);
		if (*end == len)
			return false;
		if (*end - *from > LONG)
			return true;
		*from = *end + 1;
	}
	return false;
}

/* ---- numbers and literals ---- */

static size_t
digits(const char *p, size_t i, size_t n)
{
	while (i < n && p[i] >= '0' && p[i] <= '9')
		i++;
	return i;
}

size_t
scan_number(const char *p, size_t n, bool *whole, bool *real)
{
	size_t i = n > 0 && p[0] == '-', from = i;

	*real = false;
	i = i < n && p[i] == '0' ? i + 1 : digits(p, i, n);
	*whole = i > from;
	if (*whole && i < n && p[i] == '.') {
		from = i + 1;
		i = digits(p, from, n);
		*whole = i > from;
		*real = true;
	}
	if (*whole && i < n && (p[i] == 'e' || p[i] == 'E')) {
		i++;
		if (i < n && (p[i] == '+' || p[i] == '-'))
			i++;
		from = i;
		i = digits(p, from, n);
		*whole = i > from;
		*real = true;
	}
	return i;
}

static const struct literal literals[] = {
    {"true", JSON_BOOL, true}, {"false", JSON_BOOL, false}, {"null", JSON_NULL, false}};

const struct literal *
scan_literal(const char *p, size_t n, size_t *agrees)
{
	size_t i, k;

	for (i = 0; i < sizeof(literals) / sizeof(literals[0]); i++) {
		if (n == 0 || p[0] != literals[i].text[0])
			continue;
		for (k = 0; k < n && literals[i].text[k] != '\0' && p[k] == literals[i].text[k]; k++)
			;
		*agrees = k;
		return &literals[i];
	}
	return NULL;
}

/* ---- strings ---- */

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of \uXXXX at p, or -1. */
static int32_t
unicode_escape(const char *p, size_t n)
{
	int32_t c = 0;
	size_t i;

	if (n < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (i = 2; i < 6; i++) {
		int d = hex_digit(p[i]);

		if (d < 0)
			return -1;
		c = c << 4 | d;
	}
	return c;
}

/* Writes what the escape at p, n > 0, stands for; returns its length, or 0 when it is none. */
static size_t
read_escape(const char *p, size_t n, char *to, size_t *made, uint8_t *flags)
{
	static const char meanings[128] = {['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b',
	    ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
	int32_t c, low;

	if (n >= 2 && (p[1] & 0x80) == 0 && meanings[(size_t)p[1]] != '\0') {
		to[0] = meanings[(size_t)p[1]];
		*made = 1;
		return 2;
	}
	c = unicode_escape(p, n);
	if (c < 0)
		return 0;
	low = c >= 0xd800 && c < 0xdc00 ? unicode_escape(p + 6, n - 6) : -1;
	if (low >= 0xdc00 && low < 0xe000) {
		*made = json_utf8_put(to, (uint32_t)(0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00)));
		return 12;
	}
	if (c >= 0xd800 && c < 0xe000)
		*flags |= F_LONE;
	if (c == 0)
		*flags |= F_NUL;
	*made = json_utf8_put(to, (uint32_t)c);
	return 6;
}

/* One character or escape at p. Returns its length, or 0 and a fault at offset `at`. */
static size_t
read_character(struct scan *s, size_t at, size_t end, char *to, size_t *made, uint8_t *flags)
{
	const char *p = s->text + at;
	size_t n = end - at, len;

	if (*p == '\\') {
		len = read_escape(p, n, to, made, flags);
		if (len == 0)
			scan_fault(s, JSON_FAULT_SYNTAX, at, "bad escape in a string");
		return len;
	}
	if ((unsigned char)*p < 0x20) {
		scan_fault(s, JSON_FAULT_SYNTAX, at, "control character in a string");
		return 0;
	}
	if (json_utf8_next(p, n, &len) < 0) {
		scan_fault(s, JSON_FAULT_UTF8, at, NULL);
		return 0;
	}
	memcpy(to, p, len);
	*made = len;
	return len;
}

int
scan_string(struct scan *s, size_t from, size_t end, char *to, size_t *to_len, uint8_t *flags)
{
	size_t at = from, used = 0, len, made = 0;

	while (at < end) {
		size_t run = json_plain_copy(to + used, s->text + at, end - at);

		at += run;
		used += run;
		if (at == end)
			break;
		len = read_character(s, at, end, to + used, &made, flags);
		if (len == 0)
			return -1;
		at += len;
		used += made;
	}
	*to_len = used;
	return 0;
}

void
scan_broken_string(struct scan *s, size_t from)
{
	size_t end = string_end(s->text, from, s->len), at, len, made;
	char scratch[4];
	uint8_t flags = 0;

	for (at = from + 1; at < end; at += len) {
		len = json_plain_run(s->text + at, end - at);
		if (len > 0)
			continue;
		/* An escape or character that only the end of the text cuts is not wrong. */
		if (end == s->len && s->text[at] == '\\' && end - at < 6)
			break;
		len = read_character(s, at, end, scratch, &made, &flags);
		if (len == 0)
			return;
	}
	if (end < s->len)
		scan_fault(s, JSON_FAULT_SYNTAX, from, "in a string");
	else
		scan_fault(s, JSON_FAULT_TRUNCATED, s->len, "in a string");
}
