/* A growing byte buffer, and a borrowed range of bytes. */
#ifndef FLOWSUP_BUF_H
#define FLOWSUP_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "flowsup/err.h"

/* Bytes that somebody else owns; not terminated, may hold NUL. */
struct slice {
	const char *data;
	size_t len;
};

static inline struct slice
slice_of(const char *text)
{
	return (struct slice){text, strlen(text)};
}

static inline bool
slice_eq(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool
slice_is(struct slice a, const char *text)
{
	return slice_eq(a, slice_of(text));
}

/*
 * Starts as `struct buf b = {0}`. data is NUL-terminated behind len once anything was appended.
 * Appends are sticky: after a failed allocation they do nothing, and buf_ok() reports it once.
 */
struct buf {
	char *data;
	size_t len;
	size_t cap;
	bool failed;
};

void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_puts(struct buf *b, const char *text);
void buf_putc(struct buf *b, char c);
void buf_slice(struct buf *b, struct slice s);
/* In decimal, at a fraction of the cost of buf_printf: for what is written for each operation. */
void buf_int(struct buf *b, int64_t value);
void buf_uint(struct buf *b, uint64_t value);
enum { DECIMAL_TEXT = 21 }; /* 2^64 - 1 and a NUL */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Makes room for `more` bytes behind len and returns where they go, or NULL. */
char *buf_reserve(struct buf *b, size_t more);
/* 0, or -1 with ERR_NOMEM when any append failed. */
int buf_ok(const struct buf *b, struct err *e);
/* As buf_reserve for very many bytes that come at once: their pages are got in few steps. */
char *buf_expect(struct buf *b, size_t more);
/* n bytes at p, just allocated, will all be used: madvise(2), MADV_HUGEPAGE. Small pieces are left
 * alone. */
void mem_expect(void *p, size_t n);
/* The text, "" when nothing was appended; owned by the buffer. */
const char *buf_text(const struct buf *b);
struct slice buf_view(const struct buf *b);
/* Empties, keeps the memory; the second one gives it back when it is more than `most` bytes. */
void buf_reset(struct buf *b);
void buf_reset_within(struct buf *b, size_t most);
void buf_clear(struct buf *b);
/* Hands the NUL-terminated memory to the caller (free()), NULL when an append failed. */
char *buf_steal(struct buf *b);

#endif
