/* Prose that fits the terminal. */
#include "output.h"

/* Bytes at the start of text that draw nothing: a style of ours. */
static size_t
style_length(struct slice text)
{
	size_t i;

	if (text.len < 2 || text.data[0] != '\033')
		return 0;
	for (i = 2; i < text.len && text.data[i] != 'm'; i++)
		;
	return i < text.len ? i + 1 : 0;
}

/* Columns of a text that may hold styles. */
static int
styled_width(struct slice text)
{
	int columns = 0;
	size_t n;

	while (text.len > 0) {
		n = style_length(text);
		if (n == 0) {
			for (n = 1; n < text.len && text.data[n] != '\033'; n++)
				;
			columns += text_width((struct slice){text.data, n});
		}
		text.data += n;
		text.len -= n;
	}
	return columns;
}

static size_t
run_of(struct slice text, bool blanks)
{
	size_t n = 0;

	while (n < text.len && (text.data[n] == ' ') == blanks)
		n++;
	return n;
}

static void
wrap_line(struct output *o, struct slice line, int indent)
{
	size_t blanks, word;
	int used = 0, columns;

	while (line.len > 0) {
		blanks = run_of(line, true);
		line.data += blanks;
		line.len -= blanks;
		word = run_of(line, false);
		columns = styled_width((struct slice){line.data, word});
		if (used > indent && used + (int)blanks + columns > o->width) {
			buf_printf(&o->pending, "\n%*s", indent, "");
			used = indent;
		} else {
			buf_printf(&o->pending, "%*s", (int)blanks, "");
			used += (int)blanks;
		}
		buf_add(&o->pending, line.data, word);
		used += columns;
		line.data += word;
		line.len -= word;
	}
}

/* A command is there to be pasted: the terminal wraps it, and gives it back as one line. */
static bool
holds_command(struct slice line)
{
	return memmem(line.data, line.len, "flowsup ", 8) != NULL;
}

static void
wrap_lines(struct output *o, size_t from, int indent, bool prose)
{
	struct buf text = {0};
	struct slice line, rest;
	const char *lf;

	if (o->width <= indent || from >= o->pending.len || o->pending.failed)
		return;
	buf_add(&text, o->pending.data + from, o->pending.len - from);
	if (text.failed)
		return;
	o->pending.len = from;
	for (rest = buf_view(&text); rest.len > 0; rest.data += line.len + 1, rest.len -= line.len + 1) {
		lf = memchr(rest.data, '\n', rest.len);
		line = (struct slice){rest.data, lf == NULL ? rest.len : (size_t)(lf - rest.data)};
		if (!prose && holds_command(line))
			buf_slice(&o->pending, line);
		else
			wrap_line(o, line, indent);
		if (lf == NULL)
			break;
		buf_putc(&o->pending, '\n');
	}
	buf_clear(&text);
}

void
out_wrap(struct output *o, size_t from, int indent)
{
	wrap_lines(o, from, indent, false);
}

void
out_wrap_prose(struct output *o, size_t from, int indent)
{
	wrap_lines(o, from, indent, true);
}

int
out_go_on(const struct output *o, int column)
{
	enum { NARROW = 60, NARROW_INDENT = 10 };

	return o->width > 0 && o->width < NARROW && column > NARROW_INDENT ? NARROW_INDENT : column;
}
