/* Pieces of a JSON text, for the reader. */
#ifndef FLOWSUP_JSON_SCAN_H
#define FLOWSUP_JSON_SCAN_H

#include "value.h"

/* The text, and the first thing that was found wrong with it. */
struct scan {
	const char *text;
	size_t len;
	struct json_failure failure; /* line and column are filled in when it is reported */
	const char *detail;	     /* static, or NULL */
};

/* Want of memory is never taken back by what follows from it. */
void scan_fault(struct scan *s, enum json_fault kind, size_t at, const char *detail);
/* A syntax error, or a text that is not complete when `at` is its end. */
void scan_syntax(struct scan *s, size_t at, const char *expected);

static inline bool
scan_is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Where jsmn lets a number or literal end. */
static inline bool
scan_ends_word(char c)
{
	return scan_is_space(c) || c == ',' || c == ']' || c == '}';
}

/* The next string, from *from outside of any on, that is longer than most; its quotes stand at *from
 * and *end. False when none that ends is left. In a text that is not JSON it may be no string. */
bool scan_long_string(const char *text, size_t len, size_t *from, size_t *end);

/* Length of the longest start of p that can be (the start of) a number; *whole: it is one. */
size_t scan_number(const char *p, size_t n, bool *whole, bool *real);

struct literal {
	const char *text;
	enum json_type type;
	bool truth;
};
/* The literal that starts with the same letter (or NULL), and how far the text agrees with it. */
const struct literal *scan_literal(const char *p, size_t n, size_t *agrees);

/* Decodes text[from, end), the inside of a string, into `to`, which has room for as many bytes.
 * Adds F_LONE and F_NUL to *flags. -1 after a fault. */
int scan_string(struct scan *s, size_t from, size_t end, char *to, size_t *to_len, uint8_t *flags);
/* Finds the fault of the string opened at `from`, which jsmn did not take for one. */
void scan_broken_string(struct scan *s, size_t from);

#endif
