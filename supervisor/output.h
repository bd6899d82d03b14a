/*
 * Standard output: buffered, checked, quiet when a reader went away; tables that fit the terminal;
 * JSON lines. What is printed through out_text() and tables has control characters neutralised.
 */
#ifndef FLOWSUP_OUTPUT_H
#define FLOWSUP_OUTPUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"
#include "flowsup/json.h"

struct output {
	int fd;
	bool terminal;
	bool colour;  /* a terminal, no NO_COLOR, TERM not dumb */
	bool unicode; /* the locale's encoding is UTF-8 */
	int width;    /* columns; 0: not a terminal, nothing is cut */
	int height;
	struct buf pending;
	bool closed; /* the reader went away (EPIPE): everything more is dropped */
	struct err failed; /* first failure, reported by out_end() */
};

void out_init(struct output *o, int fd);
/* Reads the terminal's size anew. */
void out_resize(struct output *o);
/* Trusted text (our own words). */
void out_puts(struct output *o, const char *text);
void out_printf(struct output *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Anybody's text: neutralised; newlines too unless `lines`. */
void out_text(struct output *o, struct slice text, bool lines);
/* Bytes as they are. */
void out_bytes(struct output *o, struct slice bytes);
/* One JSON value on one line. Consumes v; NULL (out of memory) is reported by out_end. */
void out_json(struct output *o, struct json *v);
void out_flush(struct output *o);
/* On a terminal: breaks what is pending behind byte `from` between words so that it fits, and indents
 * what goes on; lines that hold a command stay whole. Little text only: what was written is gone. */
void out_wrap(struct output *o, size_t from, int indent);
/* The same of lines that hold none, whatever words they have. */
void out_wrap_prose(struct output *o, size_t from, int indent);
/* Where a second column goes on that begins at `column`: there, or further left on a narrow terminal. */
int out_go_on(const struct output *o, int column);
/* For who makes something whose name is printed: ERR_ENVIRONMENT where nothing can be. */
int out_check(const struct output *o, struct err *e);
/* Looks whether the reader of a pipe has gone, for who has nothing to write at the moment. */
void out_look(struct output *o);
/* False once nothing more can be written: closed or failed. A long command stops then. */
bool out_open(const struct output *o);
/* Flushes; 0, or -1 with ERR_IO/ERR_NOSPACE/ERR_NOMEM. A reader that went away is no error. */
int out_end(struct output *o, struct err *e);

enum out_style { OUT_PLAIN, OUT_BOLD, OUT_DIM, OUT_GOOD, OUT_BAD, OUT_WARN, OUT_BUSY };
/* The escape sequence that begins a style, "" without colour; OUT_PLAIN ends one. */
const char *out_style(const struct output *o, enum out_style s);

/* Columns that a text takes on a terminal. */
int text_width(struct slice text);
/* Appends at most `columns` columns of text; one that is longer ends in "…" (or "~"). */
void text_fit(struct buf *to, struct slice text, int columns, bool unicode);
/* The same, cut in its middle. */
void text_fit_id(struct buf *to, struct slice id, int columns, bool unicode);

enum { COLUMNS_OF_NAME = 64 }; /* what tables show of a run's name, which may have any length */
struct column {
	const char *title;
	bool right;
	int least;  /* may be narrowed to this on a terminal; 0: never narrowed */
	int most;   /* never wider, where there is no terminal either; 0: as wide as its cells */
	int drop;   /* > 0: left out when the rest does not fit, highest first */
	const char *below; /* where the column does not fit, each of its cells stands whole below its row, on
			    * lines of prose or the line of a command, that begin with this word; with `least`
			    * columns left only those that are wider than it; or NULL */
	bool id;    /* what is cut keeps its end: ids that begin alike stay apart */
};
struct table;
struct table *table_new(const struct column *columns, size_t n);
/* Adds the next cell; anybody's text. n cells make a row. */
void table_text(struct table *t, enum out_style style, const char *text);
void table_printf(struct table *t, enum out_style style, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
size_t table_rows(const struct table *t);
void table_free(struct table *t); /* of one that is not printed */
/* Prints with a line of titles, and frees. */
void table_print(struct table *t, struct output *o, const char *indent);
/* On a terminal only the rows that fit into so many lines below the titles, the first one at least;
 * returns how many were printed. 0 lines: all. */
size_t table_print_most(struct table *t, struct output *o, const char *indent, int lines);

#endif
