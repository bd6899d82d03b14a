/* What must hold before a text is given to a YAML parser, and where its lines begin. */
#include <stdint.h>
#include <stdlib.h>

#include "yaml_text.h"

/* YAML 1.2, 5.1: characters that no document may hold as they are. */
static bool
is_forbidden(const unsigned char *p, size_t len)
{
	if (len == 1)
		return (p[0] < 0x20 && p[0] != '\t' && p[0] != '\n' && p[0] != '\r') || p[0] == 0x7f;
	if (len == 2)
		return p[0] == 0xc2 && p[1] < 0xa0 && p[1] != 0x85;
	return len == 3 && p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe;
}

int
yaml_text_check(struct slice text, size_t *at, struct err *e)
{
	const unsigned char *p = (const unsigned char *)text.data;
	size_t i, len;

	for (i = 0; i < text.len; i += len) {
		*at = i;
		if (json_utf8_next(text.data + i, text.len - i, &len) < 0)
			return err_set(e, ERR_SYNTAX, "the text is not UTF-8: byte 0x%02x", p[i]);
		if (p[i] == '\0')
			return err_set(e, ERR_SYNTAX, "this is no text: it holds a NUL byte");
		if (is_forbidden(p + i, len))
			return err_set(e, ERR_SYNTAX, "a control character (0x%02x) cannot stand here",
			    len == 2 ? p[i + 1] : p[i]);
	}
	return 0;
}

static bool
ends_line(struct slice text, size_t i)
{
	return text.data[i] == '\n' ||
	    (text.data[i] == '\r' && (i + 1 == text.len || text.data[i + 1] != '\n'));
}

int
yaml_lines_init(struct yaml_lines *l, struct slice text, struct err *e)
{
	size_t i, n = 1;

	for (i = 0; i < text.len; i++)
		n += ends_line(text, i);
	l->start = malloc(n * sizeof(*l->start));
	if (l->start == NULL)
		return err_nomem(e);
	l->start[0] = 0;
	l->count = 1;
	for (i = 0; i < text.len; i++)
		if (ends_line(text, i))
			l->start[l->count++] = (uint32_t)i + 1;
	l->length = text.len;
	return 0;
}

void
yaml_lines_clear(struct yaml_lines *l)
{
	free(l->start);
	*l = (struct yaml_lines){0};
}

struct json_where
yaml_lines_at(const struct yaml_lines *l, size_t offset)
{
	size_t low = 0, high = l->count, middle;

	if (offset > l->length)
		offset = l->length;
	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (l->start[middle] <= offset)
			low = middle;
		else
			high = middle;
	}
	return (struct json_where){offset, (uint32_t)low + 1, (uint32_t)(offset - l->start[low]) + 1};
}

size_t
yaml_lines_offset(const struct yaml_lines *l, int line, int column)
{
	size_t row = line < 1 ? 0 : (size_t)line - 1;
	size_t offset;

	if (row >= l->count)
		return l->length;
	offset = l->start[row] + (column < 1 ? 0 : (size_t)column - 1);
	return offset > l->length ? l->length : offset;
}
