/*
 * A drawing whose lines fit the terminal. One that is too wide goes on below itself, beside the rail, and
 * breaks before what stands behind two blanks (a state, needs, a remark), then between words. A word that is
 * wider than the terminal is cut.
 */
#include <string.h>

#include "plan.h"

/* Of a line: its number and the rail, "  2 ├─ "; and how far what goes on is indented behind that. */
enum { NUMBER_COLUMNS = 4, RAIL_COLUMNS = 3, GO_ON_INDENT = 2 };
#define RAIL_BRANCH "├"
#define RAIL_END "└"
#define RAIL_ONLY "│"

struct lines {
	struct output *out;
	struct buf text;
	bool rails;     /* whether there are any */
	bool more;      /* the level goes on in the next line */
	int used, indent;
};

static size_t
blanks_at(struct slice text)
{
	size_t n = 0;

	while (n < text.len && text.data[n] == ' ')
		n++;
	return n;
}

/* A word, or all up to the next two blanks. */
static size_t
part_at(struct slice text, bool word)
{
	size_t n = 0;

	while (n < text.len && (text.data[n] != ' ' || (!word && n + 1 < text.len && text.data[n + 1] != ' ')))
		n++;
	return n;
}

static void
go_on_below(struct lines *l)
{
	buf_printf(&l->text, "\n%*s", NUMBER_COLUMNS, "");
	if (l->rails)
		buf_printf(&l->text, "%s%*s", l->more ? RAIL_ONLY : " ", RAIL_COLUMNS - 1, "");
	buf_printf(&l->text, "%*s", GO_ON_INDENT, "");
	l->used = l->indent;
}

static void
put_part(struct lines *l, struct slice part, size_t blanks)
{
	int columns = text_width(part);

	if (l->used > l->indent && l->used + (int)blanks + columns > l->out->width) {
		go_on_below(l);
		blanks = 0;
	}
	buf_printf(&l->text, "%*s", (int)blanks, "");
	l->used += (int)blanks;
	text_fit(&l->text, part, l->out->width - l->used, l->out->unicode);
	l->used += columns;
}

static void
put_line(struct lines *l, struct slice line)
{
	struct slice part;
	size_t blanks;
	bool words;

	l->used = 0;
	while (line.len > 0) {
		blanks = blanks_at(line);
		line.data += blanks;
		line.len -= blanks;
		part = (struct slice){line.data, part_at(line, false)};
		words = l->indent + text_width(part) > l->out->width;
		part.len = words ? part_at(line, true) : part.len;
		put_part(l, part, blanks);
		line.data += part.len;
		line.len -= part.len;
	}
	buf_putc(&l->text, '\n');
}

static bool
goes_on(struct slice rest)
{
	static const char *const rails[] = {RAIL_BRANCH, RAIL_END};
	size_t i, n;

	for (i = 0; i < sizeof(rails) / sizeof(rails[0]); i++) {
		n = strlen(rails[i]);
		if (rest.len > NUMBER_COLUMNS + n && memcmp(rest.data + NUMBER_COLUMNS, rails[i], n) == 0)
			return true;
	}
	return false;
}

void
plan_lines(struct output *out, struct slice text, bool rails)
{
	struct lines l = {.out = out, .rails = rails};
	struct slice line;
	const char *end;

	l.indent = NUMBER_COLUMNS + (rails ? RAIL_COLUMNS : 0) + GO_ON_INDENT;
	while (text.len > 0) {
		end = memchr(text.data, '\n', text.len);
		line = (struct slice){text.data, end != NULL ? (size_t)(end - text.data) : text.len};
		text.data += line.len + (end != NULL);
		text.len -= line.len + (end != NULL);
		l.more = goes_on(text);
		buf_reset(&l.text);
		put_line(&l, line);
		out_text(out, buf_view(&l.text), true);
	}
	buf_clear(&l.text);
}
