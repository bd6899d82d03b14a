/* What was wrong in a document, many at once, with places. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

/* Filled instead of an entry that there is no room for. */
static struct flow_diagnostic spare;

static void __attribute__((format(printf, 3, 0)))
set_text(char *to, size_t size, const char *fmt, va_list ap)
{
	/* Cut when too long; our formats cannot fail. */
	if (vsnprintf(to, size, fmt, ap) < 0)
		to[0] = '\0';
}

struct flow_diagnostic *
flow_diagnostics_add(struct flow_diagnostics *d)
{
	struct flow_diagnostic *more;
	size_t cap;

	if (d->count >= FLOW_MAX_DIAGNOSTICS) {
		d->suppressed++;
		return NULL;
	}
	if (d->count == d->cap) {
		cap = d->cap ? 2 * d->cap : 4;
		more = realloc(d->items, cap * sizeof(*more));
		if (more == NULL)
			return NULL;
		d->items = more;
		d->cap = cap;
	}
	d->items[d->count] = (struct flow_diagnostic){0};
	return &d->items[d->count++];
}

void
flow_diagnostics_clear(struct flow_diagnostics *d)
{
	free(d->items);
	*d = (struct flow_diagnostics){0};
}

void
out_of_memory(struct reader *r)
{
	r->failed = r->nomem = true;
}

static struct flow_diagnostic *__attribute__((format(printf, 4, 0)))
add(struct reader *r, bool is_warning, struct json_where where, const char *fmt, va_list ap)
{
	struct flow_diagnostic *p = flow_diagnostics_add(r->d);
	size_t used;

	if (r->entry != NULL)
		name_entry(r);
	used = strlen(r->context);
	if (!is_warning)
		r->failed = true;
	if (p == NULL) {
		if (r->d->suppressed == 0)
			out_of_memory(r);
		return &spare;
	}
	p->warning = is_warning;
	p->where = where;
	memcpy(p->message, r->context, used);
	set_text(p->message + used, sizeof(p->message) - used, fmt, ap);
	return p;
}

static struct json_where
where_of(const struct json *v)
{
	struct json_where where = {0, 0, 0};

	if (v != NULL)
		json_position(v, &where);
	return where;
}

struct flow_diagnostic *
problem(struct reader *r, const struct json *at, const char *fmt, ...)
{
	struct flow_diagnostic *p;
	va_list ap;

	va_start(ap, fmt);
	p = add(r, false, where_of(at), fmt, ap);
	va_end(ap);
	return p;
}

struct flow_diagnostic *
problem_at(struct reader *r, struct json_where where, const char *fmt, ...)
{
	struct flow_diagnostic *p;
	va_list ap;

	va_start(ap, fmt);
	p = add(r, false, where, fmt, ap);
	va_end(ap);
	return p;
}

struct flow_diagnostic *
warning(struct reader *r, const struct json *at, const char *fmt, ...)
{
	struct flow_diagnostic *p;
	va_list ap;

	va_start(ap, fmt);
	p = add(r, true, where_of(at), fmt, ap);
	va_end(ap);
	return p;
}

void
hint_of(struct flow_diagnostic *p, const struct err *e)
{
	memcpy(p->hint, e->hint, sizeof(p->hint));
	p->command = !e->advice;
}

void
hint(struct flow_diagnostic *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_text(p->hint, sizeof(p->hint), fmt, ap);
	va_end(ap);
}

static bool
comes_before(const struct flow_diagnostic *a, const struct flow_diagnostic *b)
{
	return a->where.line < b->where.line ||
	    (a->where.line == b->where.line && a->where.column < b->where.column);
}

/* At most FLOW_MAX_DIAGNOSTICS of them, and equal places keep their order. */
void
diagnostics_sort(struct flow_diagnostics *d)
{
	struct flow_diagnostic moved;
	size_t i, k;

	for (i = 1; i < d->count; i++) {
		moved = d->items[i];
		for (k = i; k > 0 && comes_before(&moved, &d->items[k - 1]); k--)
			d->items[k] = d->items[k - 1];
		d->items[k] = moved;
	}
}

int
diagnostics_error(const struct flow_diagnostics *d, const char *name, enum err_code code,
    struct err *e)
{
	const struct flow_diagnostic *p;
	size_t i;

	for (i = 0; i < d->count && d->items[i].warning; i++)
		;
	if (i == d->count)
		return err_nomem(e);
	p = &d->items[i];
	err_set(e, code, "%s", p->message);
	if (p->where.line > 0)
		err_wrap(e, "%s:%u:%u", name != NULL ? name : "document", p->where.line,
		    p->where.column);
	else if (name != NULL)
		err_wrap(e, "%s", name);
	if (p->hint[0] != '\0')
		(void)(p->command ? err_hint(e, "%s", p->hint) : err_advice(e, "%s", p->hint));
	return -1;
}
