#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "flowsup/log.h"
#include "output.h"

enum { PENDING_MOST = 65536, WIDTH_DEFAULT = 80, WIDTH_LEAST = 8, WIDTH_MOST = 1000, CELL_GAP = 2,
	BELOW_INDENT = 4, BELOW_MARK = 2,
	ID_CUT_LEAST = 5 };

static bool
environment_says_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	const char *value;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		value = getenv(names[i]);
		if (value != NULL && value[0] != '\0')
			return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
	}
	return false;
}

static bool
wants_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return (no == NULL || no[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0;
}

void
out_resize(struct output *o)
{
	struct winsize w = {0};

	o->width = 0;
	o->height = 0;
	if (!o->terminal)
		return;
	o->width = WIDTH_DEFAULT;
	o->height = 24;
	if (ioctl(o->fd, TIOCGWINSZ, &w) != 0 || w.ws_col == 0)
		return;
	o->width = w.ws_col < WIDTH_LEAST ? WIDTH_LEAST : w.ws_col > WIDTH_MOST ? WIDTH_MOST : w.ws_col;
	if (w.ws_row > 0)
		o->height = w.ws_row;
}

void
out_init(struct output *o, int fd)
{
	*o = (struct output){.fd = fd};
	o->terminal = isatty(fd) == 1;
	o->colour = o->terminal && wants_colour();
	o->unicode = environment_says_utf8();
	out_resize(o);
}

static void
fail(struct output *o, int sys)
{
	if (sys == EPIPE)
		o->closed = true;
	else if (o->failed.code == ERR_NONE)
		err_sys(&o->failed, ERR_IO, sys, "standard output");
}

void
out_flush(struct output *o)
{
	size_t at = 0;
	ssize_t n;

	if (o->pending.failed && o->failed.code == ERR_NONE)
		err_nomem(&o->failed);
	while (out_open(o) && at < o->pending.len) {
		n = write(o->fd, o->pending.data + at, o->pending.len - at);
		if (n >= 0)
			at += (size_t)n;
		else if (errno != EINTR)
			fail(o, errno);
	}
	buf_reset(&o->pending);
}

bool
out_open(const struct output *o)
{
	return !o->closed && o->failed.code == ERR_NONE;
}

void
out_look(struct output *o)
{
	struct pollfd p = {.fd = o->fd}; /* errors and hang-ups are told without being asked for */

	if (poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP)) != 0)
		o->closed = true;
}

int
out_check(const struct output *o, struct err *e)
{
	int flags = fcntl(o->fd, F_GETFL);

	if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY)
		return 0;
	err_set(e, ERR_ENVIRONMENT, "standard output is closed: the id of what is made would be lost");
	return err_advice(e, "to do without it: >/dev/null");
}

int
out_end(struct output *o, struct err *e)
{
	out_flush(o);
	buf_clear(&o->pending);
	if (o->failed.code == ERR_NONE)
		return 0;
	*e = o->failed;
	return -1;
}

static void
settle(struct output *o)
{
	if (o->pending.len >= PENDING_MOST || o->pending.failed)
		out_flush(o);
}

void
out_bytes(struct output *o, struct slice bytes)
{
	buf_slice(&o->pending, bytes);
	settle(o);
}

void
out_puts(struct output *o, const char *text)
{
	out_bytes(o, slice_of(text));
}

void
out_printf(struct output *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&o->pending, fmt, ap);
	va_end(ap);
	settle(o);
}

void
out_text(struct output *o, struct slice text, bool lines)
{
	text_neutralise(&o->pending, text, lines);
	settle(o);
}

void
out_json(struct output *o, struct json *v)
{
	if (v == NULL) {
		if (o->failed.code == ERR_NONE)
			err_nomem(&o->failed);
		return;
	}
	json_write(&o->pending, v);
	buf_putc(&o->pending, '\n');
	json_unref(v);
	settle(o);
}

const char *
out_style(const struct output *o, enum out_style s)
{
	static const char *const sequences[] = {
	    [OUT_PLAIN] = "\033[0m",
	    [OUT_BOLD] = "\033[1m",
	    [OUT_DIM] = "\033[2m",
	    [OUT_GOOD] = "\033[32m",
	    [OUT_BAD] = "\033[31m",
	    [OUT_WARN] = "\033[33m",
	    [OUT_BUSY] = "\033[36m",
	};

	return o->colour ? sequences[s] : "";
}

/* ---- Width of text ---- */

/* One column, as nearly all text is, without asking the C library. */
static bool
is_plain(char c)
{
	return c >= ' ' && c < 0x7f;
}

/* Columns of text that is plain throughout, which is its length; -1: it is not. */
static int
plain_width(struct slice text)
{
	size_t i = 0;

	while (i < text.len && is_plain(text.data[i]))
		i++;
	return i == text.len && i < INT_MAX ? (int)i : -1;
}

/* Length in bytes and columns of the character at the start of text; what is no character counts as
 * one byte and one column. */
static size_t
next_character(struct slice text, int *columns)
{
	mbstate_t state = {0};
	wchar_t wide;
	size_t len;
	int w;

	*columns = 1;
	if (is_plain(text.data[0]))
		return 1;
	len = mbrtowc(&wide, text.data, text.len, &state);
	if (len == (size_t)-1 || len == (size_t)-2 || len == 0)
		return 1;
	w = wcwidth(wide);
	*columns = w < 0 ? 1 : w;
	return len;
}

int
text_width(struct slice text)
{
	int total = 0, columns;
	size_t at = 0;

	while (at < text.len && total < INT_MAX - 2) {
		if (is_plain(text.data[at])) {
			at++;
			total++;
			continue;
		}
		at += next_character((struct slice){text.data + at, text.len - at}, &columns);
		total += columns;
	}
	return total;
}

/* Bytes of as many whole characters as fit into so many columns. */
static size_t
prefix_of(struct slice text, int columns)
{
	size_t at, len;
	int used = 0, w;

	for (at = 0; at < text.len; at += len) {
		len = next_character((struct slice){text.data + at, text.len - at}, &w);
		if (used + w > columns)
			break;
		used += w;
	}
	return at;
}

static const char *
cut_mark(bool unicode)
{
	return unicode ? "…" : "~";
}

void
text_fit(struct buf *to, struct slice text, int columns, bool unicode)
{
	size_t at;

	if (columns <= 0)
		return;
	if (text_width(text) <= columns) {
		buf_slice(to, text);
		return;
	}
	at = prefix_of(text, columns - 1);
	buf_add(to, text.data, at);
	buf_puts(to, cut_mark(unicode));
}

void
text_fit_id(struct buf *to, struct slice id, int columns, bool unicode)
{
	int width = text_width(id), tail;
	size_t from;

	if (columns < ID_CUT_LEAST || width <= columns) {
		text_fit(to, id, columns, unicode);
		return;
	}
	tail = (columns - 1) / 2;
	/* A wide character across the cut leaves the tail one column shorter. */
	for (from = prefix_of(id, width - tail); from < id.len; from++)
		if (text_width((struct slice){id.data + from, id.len - from}) <= tail &&
		    ((unsigned char)id.data[from] & 0xc0) != 0x80)
			break;
	buf_add(to, id.data, prefix_of(id, columns - 1 - tail));
	buf_puts(to, cut_mark(unicode));
	buf_add(to, id.data + from, id.len - from);
}

/* ---- Tables ---- */

struct cell {
	size_t at, len; /* in text */
	int width;
	enum out_style style;
};

struct table {
	const struct column *columns;
	size_t n;
	struct buf text, cells;
	size_t count; /* cells so far */
	bool failed;
};

struct table *
table_new(const struct column *columns, size_t n)
{
	struct table *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->columns = columns;
	t->n = n;
	return t;
}

void
table_text(struct table *t, enum out_style style, const char *text)
{
	struct cell cell = {.style = style};
	struct slice given = slice_of(text);

	if (t == NULL)
		return;
	cell.at = t->text.len;
	cell.width = plain_width(given);
	if (cell.width >= 0)
		buf_slice(&t->text, given);
	else
		text_neutralise(&t->text, given, false);
	if (t->text.failed) {
		t->failed = true;
		return;
	}
	cell.len = t->text.len - cell.at;
	if (cell.width < 0)
		cell.width = text_width((struct slice){t->text.data + cell.at, cell.len});
	buf_add(&t->cells, &cell, sizeof(cell));
	t->failed = t->failed || t->cells.failed;
	t->count++;
}

void
table_printf(struct table *t, enum out_style style, const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	if (t != NULL && b.failed)
		t->failed = true;
	table_text(t, style, buf_text(&b));
	buf_clear(&b);
}

void
table_free(struct table *t)
{
	if (t == NULL)
		return;
	buf_clear(&t->text);
	buf_clear(&t->cells);
	free(t);
}

size_t
table_rows(const struct table *t)
{
	return t == NULL || t->n == 0 ? 0 : t->count / t->n;
}

static struct cell
cell_at(const struct table *t, size_t index)
{
	struct cell cell;

	memcpy(&cell, t->cells.data + index * sizeof(cell), sizeof(cell));
	return cell;
}

/* Natural width of each column; a column that holds nothing at all in any row gets 0: left out. */
static void
measure(const struct table *t, int *widths)
{
	size_t i, column;
	struct cell cell;

	for (i = 0; i < t->count; i++) {
		cell = cell_at(t, i);
		column = i % t->n;
		if (cell.width > widths[column])
			widths[column] = cell.width;
	}
	for (i = 0; i < t->n; i++)
		if (t->columns[i].most > 0 && widths[i] > t->columns[i].most)
			widths[i] = t->columns[i].most;
	for (i = 0; i < t->n; i++)
		if (widths[i] > 0 && widths[i] < (int)strlen(t->columns[i].title))
			widths[i] = (int)strlen(t->columns[i].title);
}

static int
total_width(const int *widths, size_t n)
{
	long total = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (widths[i] > 0)
			total += widths[i] + (total > 0 ? CELL_GAP : 0);
	return total > INT_MAX ? INT_MAX : (int)total;
}

/* Takes what is too much from the column that may be narrowed most, until another one may be more. */
static int
narrow(const struct table *t, int *widths, int excess)
{
	size_t i, widest;
	int room, best, second;

	while (excess > 0) {
		best = second = 0;
		widest = t->n;
		for (i = 0; i < t->n; i++) {
			if (t->columns[i].least <= 0 || widths[i] <= 0)
				continue;
			room = widths[i] - t->columns[i].least;
			if (room > best) {
				second = best;
				best = room;
				widest = i;
			} else if (room > second) {
				second = room;
			}
		}
		if (widest == t->n)
			break;
		room = best - second + 1 < best ? best - second + 1 : best;
		room = room < excess ? room : excess;
		widths[widest] -= room;
		excess -= room;
	}
	return excess;
}

static bool
drop_one(const struct table *t, int *widths)
{
	size_t i, which = t->n;

	for (i = 0; i < t->n; i++)
		if (t->columns[i].drop > 0 && widths[i] > 0 &&
		    (which == t->n || t->columns[i].drop > t->columns[which].drop))
			which = i;
	if (which == t->n)
		return false;
	widths[which] = 0;
	return true;
}

static int
least_width(const struct table *t, const int *widths)
{
	long total = 0;
	size_t i;
	int w;

	for (i = 0; i < t->n; i++) {
		if (widths[i] <= 0)
			continue;
		w = t->columns[i].least > 0 && t->columns[i].least < widths[i] ? t->columns[i].least
									       : widths[i];
		total += w + (total > 0 ? CELL_GAP : 0);
	}
	return total > INT_MAX ? INT_MAX : (int)total;
}

static void
fit(const struct table *t, int *widths, int room)
{
	while (least_width(t, widths) > room && drop_one(t, widths))
		;
	narrow(t, widths, total_width(widths, t->n) - room);
}

/* A column that goes below the rows, because there is no room for it beside them. */
enum { IS_BELOW = -1 };

static void
put_below(const struct table *t, int *widths, int room)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->columns[i].below != NULL && widths[i] > 0 && least_width(t, widths) > room)
			widths[i] = IS_BELOW;
}

/* The widest cell of a column that takes so many columns at most; 0: there is none. */
static int
widest_within(const struct table *t, size_t column, int most)
{
	int width, widest = 0;
	size_t i;

	for (i = column; i < t->count; i += t->n)
		if ((width = cell_at(t, i).width) <= most && width > widest)
			widest = width;
	return widest;
}

/* A column that loses nothing gives way before those that are cut: its cells that are wider than it go below. */
static void
give_way(const struct table *t, int *widths, int room)
{
	int excess, most, title;
	size_t i;

	for (i = 0; i < t->n && (excess = total_width(widths, t->n) - room) > 0; i++) {
		if (t->columns[i].below == NULL || t->columns[i].least <= 0 || widths[i] <= 0)
			continue;
		most = widths[i] - excess > t->columns[i].least ? widths[i] - excess : t->columns[i].least;
		title = (int)strlen(t->columns[i].title);
		widths[i] = widest_within(t, i, most);
		widths[i] = widths[i] == 0 ? IS_BELOW : widths[i] < title ? title : widths[i];
	}
}

static bool
is_below(const struct table *t, const int *widths, size_t column, struct cell cell)
{
	return cell.len > 0 && (widths[column] == IS_BELOW ||
	    (t->columns[column].below != NULL && widths[column] > 0 && cell.width > widths[column]));
}

static void
pad(struct output *o, int columns)
{
	static const char blanks[] = "                                ";
	const int most = sizeof(blanks) - 1;

	for (; columns > 0; columns -= most)
		out_bytes(o, (struct slice){blanks, (size_t)(columns < most ? columns : most)});
}

static void
print_cell(struct output *o, const struct column *c, struct slice text, int natural, int width,
    enum out_style style, bool last)
{
	int shown = natural < width ? natural : width;

	if (c->right)
		pad(o, width - shown);
	if (style != OUT_PLAIN)
		out_puts(o, out_style(o, style));
	if (natural <= width)
		out_bytes(o, text);
	else if (c->id)
		text_fit_id(&o->pending, text, width, o->unicode);
	else
		text_fit(&o->pending, text, width, o->unicode);
	if (style != OUT_PLAIN)
		out_puts(o, out_style(o, OUT_PLAIN));
	if (!last && !c->right)
		pad(o, width - shown);
}

static void
print_row(const struct table *t, struct output *o, const char *indent, const int *widths,
    size_t last, size_t row, bool titles)
{
	struct cell cell = {0};
	struct slice text;
	bool any = false;
	size_t i;

	out_puts(o, indent);
	for (i = 0; i < t->n; i++) {
		if (widths[i] <= 0)
			continue;
		if (any)
			pad(o, CELL_GAP);
		any = true;
		if (titles) {
			text = slice_of(t->columns[i].title);
			cell = (struct cell){.width = (int)text.len, .style = OUT_BOLD};
		} else {
			cell = cell_at(t, row * t->n + i);
			if (is_below(t, widths, i, cell))
				cell = (struct cell){0};
			text = (struct slice){t->text.data + cell.at, cell.len};
		}
		print_cell(o, &t->columns[i], text, cell.width, widths[i], cell.style, i == last);
	}
	out_puts(o, "\n");
}

/* How many lines of the terminal a row takes; what stands below it may be wider than that. */
static int
row_lines(const struct table *t, int width, int indent, const int *widths, size_t row)
{
	struct cell cell;
	int columns, lines = 1;
	size_t i;

	for (i = 0; i < t->n; i++) {
		cell = cell_at(t, row * t->n + i);
		if (!is_below(t, widths, i, cell))
			continue;
		columns = indent + BELOW_INDENT + (int)strlen(t->columns[i].below) + BELOW_MARK + cell.width;
		lines += (columns + width - 1) / width;
	}
	return lines;
}

static void
print_below(const struct table *t, struct output *o, const char *indent, size_t column, size_t row)
{
	const char *word = t->columns[column].below;
	struct cell cell = cell_at(t, row * t->n + column);
	size_t from;

	if (o->pending.len + cell.len > PENDING_MOST / 2)
		out_flush(o); /* what is wrapped must be pending */
	from = o->pending.len;
	out_printf(o, "%s%*s%s: %s", indent, BELOW_INDENT, "", word,
	    out_style(o, cell.style));
	out_bytes(o, (struct slice){t->text.data + cell.at, cell.len});
	out_printf(o, "%s\n", out_style(o, OUT_PLAIN));
	out_wrap(o, from, (int)strlen(indent) + BELOW_INDENT + (int)strlen(word) + BELOW_MARK);
}

/* Returns how many rows were printed: the first, and as many more as `lines` has room for (0: all). */
static size_t
print_rows(const struct table *t, struct output *o, const char *indent, int *widths, int lines)
{
	int room = o->width - (int)strlen(indent), used = 0;
	size_t row, i, last = 0;

	if (o->width > 0) {
		put_below(t, widths, room);
		give_way(t, widths, room);
		fit(t, widths, room);
	}
	for (i = 0; i < t->n; i++)
		if (widths[i] > 0)
			last = i;
	print_row(t, o, indent, widths, last, 0, true);
	for (row = 0; row < table_rows(t) && out_open(o); row++) {
		used += lines > 0 ? row_lines(t, o->width, (int)strlen(indent), widths, row) : 0;
		if (row > 0 && used > lines)
			break;
		print_row(t, o, indent, widths, last, row, false);
		for (i = 0; i < t->n; i++)
			if (is_below(t, widths, i, cell_at(t, row * t->n + i)))
				print_below(t, o, indent, i, row);
	}
	return row;
}

size_t
table_print_most(struct table *t, struct output *o, const char *indent, int lines)
{
	int *widths = t == NULL ? NULL : calloc(t->n + 1, sizeof(*widths));
	size_t rows = 0;

	if (widths == NULL || t->failed) {
		if (o->failed.code == ERR_NONE)
			err_nomem(&o->failed);
	} else if (t->count > 0) {
		measure(t, widths);
		rows = print_rows(t, o, indent, widths, o->width > 0 ? lines : 0);
	}
	free(widths);
	table_free(t);
	return rows;
}

void
table_print(struct table *t, struct output *o, const char *indent)
{
	(void)table_print_most(t, o, indent, 0);
}
