#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "flowsup/buf.h"
#include "flowsup/clock.h"

enum {
	BUF_FIRST = 64,
	HUGE_PAGE = 2 << 20,
};

void
mem_expect(void *p, size_t n)
{
	uintptr_t from = ((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	uintptr_t end = ((uintptr_t)p + n) / HUGE_PAGE * HUGE_PAGE;

	/* Advice only: where it is not followed all is as it was. */
	if (end > from)
		(void)madvise((void *)from, end - from, MADV_HUGEPAGE);
}

char *
buf_reserve(struct buf *b, size_t more)
{
	size_t cap = b->cap ? b->cap : BUF_FIRST;
	char *data;

	if (b->failed || more >= SIZE_MAX / 2 - b->len) {
		b->failed = true;
		return NULL;
	}
	while (cap < b->len + more + 1)
		cap *= 2;
	if (cap != b->cap) {
		data = realloc(b->data, cap);
		if (data == NULL) {
			b->failed = true;
			return NULL;
		}
		b->data = data;
		b->cap = cap;
		b->data[b->len] = '\0';
	}
	return b->data + b->len;
}

char *
buf_expect(struct buf *b, size_t more)
{
	char *to = buf_reserve(b, more);

	if (to != NULL)
		mem_expect(to, more);
	return to;
}

void
buf_add(struct buf *b, const void *bytes, size_t len)
{
	char *to;

	/* Pieces are many and small, and as a rule there is room. */
	to = !b->failed && len < b->cap - b->len ? b->data + b->len : buf_reserve(b, len);
	if (to == NULL)
		return;
	if (len > 0)
		memcpy(to, bytes, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void
buf_puts(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void
buf_putc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void
buf_slice(struct buf *b, struct slice s)
{
	buf_add(b, s.data, s.len);
}

void
buf_uint(struct buf *b, uint64_t value)
{
	char digits[DECIMAL_TEXT];

	buf_add(b, digits, (size_t)(put_number(digits, value, 1) - digits));
}

void
buf_int(struct buf *b, int64_t value)
{
	if (value < 0)
		buf_putc(b, '-');
	buf_uint(b, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void
buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	char *to;
	int n;

	va_copy(again, ap);
	to = buf_reserve(b, 0); /* what room there is suffices as a rule */
	n = to != NULL ? vsnprintf(to, b->cap - b->len, fmt, ap) : -1;
	if (n >= 0 && (size_t)n >= b->cap - b->len) {
		*to = '\0';
		to = buf_reserve(b, (size_t)n);
		n = to != NULL ? vsnprintf(to, (size_t)n + 1, fmt, again) : -1;
	}
	va_end(again);
	if (n >= 0) {
		b->len += (size_t)n;
		return;
	}
	b->failed = true;
	if (b->data != NULL)
		b->data[b->len] = '\0';
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

int
buf_ok(const struct buf *b, struct err *e)
{
	return b->failed ? err_nomem(e) : 0;
}

const char *
buf_text(const struct buf *b)
{
	return b->data ? b->data : "";
}

struct slice
buf_view(const struct buf *b)
{
	return (struct slice){buf_text(b), b->len};
}

void
buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data != NULL)
		b->data[0] = '\0';
}

void
buf_reset_within(struct buf *b, size_t most)
{
	if (b->cap > most)
		buf_clear(b);
	else
		buf_reset(b);
}

void
buf_clear(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}

char *
buf_steal(struct buf *b)
{
	char *data;

	if (!b->failed && b->data == NULL)
		buf_add(b, "", 0);
	data = b->failed ? NULL : b->data;
	if (b->failed)
		free(b->data);
	*b = (struct buf){0};
	return data;
}
