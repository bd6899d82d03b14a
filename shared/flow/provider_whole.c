/*
 * One JSON text, or an array of records, read as soon as it is complete: where its brackets close. What a program
 * says before it are lines, and any of the first that can begin a text may be its beginning. Each byte is looked at
 * once for each beginning, however the output grows.
 */
#include <string.h>

#include "provider_private.h"

enum { BEGINNINGS_MOST = 64 };

/* ---- Brackets ---- */

static void
inside_string(struct brackets *b, char c)
{
	if (b->escaped)
		b->escaped = false;
	else if (c == '\\')
		b->escaped = true;
	else if (c == '"')
		b->in_string = false;
}

bool
brackets_close(struct brackets *b, struct slice text)
{
	char c;

	while (!b->closed && b->at < text.len) {
		c = text.data[b->at++];
		if (b->in_string)
			inside_string(b, c);
		else if (c == '"')
			b->in_string = true;
		else if (c == '{' || c == '[')
			b->depth++;
		else if ((c == '}' || c == ']') && --b->depth == 0)
			b->closed = true;
	}
	return b->closed;
}

/* ---- Beginnings ---- */

/* To the beginning of the next line; false: it has not come. */
static bool
next_line(struct provider_reading *r)
{
	struct whole *t = &r->whole;
	const char *lf = memchr(r->line.data + t->seek, '\n', r->line.len - t->seek);

	t->inside = lf == NULL;
	t->seek = lf == NULL ? r->line.len : (size_t)(lf + 1 - r->line.data);
	if (lf != NULL)
		r->skipped++;
	return lf != NULL;
}

static bool
find_beginning(struct provider_reading *r)
{
	char first = r->p->format == PROVIDER_JSON ? '{' : '[';
	struct whole *t = &r->whole;

	if (t->beginnings == BEGINNINGS_MOST)
		return false;
	while (t->seek < r->line.len) {
		if (!t->inside && r->line.data[t->seek] == first) {
			t->beginnings++;
			t->from = t->seek;
			t->begun = true;
			t->line_seen = false;
			r->brackets = (struct brackets){.at = t->from};
			return true;
		}
		if (!next_line(r))
			return false;
	}
	return false;
}

/* What began there is no text: it is looked for behind that line. */
static void
refuse(struct provider_reading *r)
{
	r->whole.begun = false;
	r->whole.seek = r->whole.from;
	next_line(r);
}

/* A first line that can begin no text tells so at once; else brackets in it would hide what comes. */
static int
see_line(struct provider_reading *r, bool *fits, struct err *e)
{
	struct slice text = {r->line.data + r->whole.from, r->line.len - r->whole.from};
	const char *lf = memchr(text.data, '\n', text.len);
	struct json_failure failure = {0};
	struct json *v = NULL;
	struct err why = {0};

	*fits = true;
	if (lf == NULL || r->whole.line_seen)
		return 0;
	r->whole.line_seen = true;
	text.len = (size_t)(lf - text.data);
	if (reading_parse(r, text, PROVIDER_MAX_DOCUMENT, &v, &failure, &why) != 0)
		*fits = failure.fault == JSON_FAULT_TRUNCATED;
	json_unref(v);
	return why.code == ERR_NOMEM ? err_nomem(e) : 0;
}

/* ---- Reading ---- */

static int
take_records(struct provider_reading *r, const struct json *v, struct err *e)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;

	if (r->p->format == PROVIDER_JSON)
		return reading_record(r, v, e);
	while (json_next(&it, NULL, &item))
		if (reading_record(r, item, e) != 0)
			return -1;
	return 0;
}

/* What closes is the text, unless it is no JSON; what stands behind it does not matter. */
static int
take_closed(struct provider_reading *r, struct err *e)
{
	struct slice text = {r->line.data + r->whole.from, r->brackets.at - r->whole.from};
	struct json_failure failure = {0};
	struct json *v = NULL;
	struct err why = {0};
	int rc;

	if (reading_parse(r, text, PROVIDER_MAX_DOCUMENT, &v, &failure, &why) != 0) {
		refuse(r);
		return why.code == ERR_NOMEM ? err_nomem(e) : 0;
	}
	r->whole.done = true;
	rc = take_records(r, v, e);
	json_unref(v);
	buf_clear(&r->line);
	return rc;
}

static int
look(struct provider_reading *r, struct err *e)
{
	bool fits;

	while (!r->whole.done && (r->whole.begun || find_beginning(r))) {
		if (brackets_close(&r->brackets, buf_view(&r->line))) {
			if (take_closed(r, e) != 0)
				return -1;
			continue;
		}
		if (see_line(r, &fits, e) != 0)
			return -1;
		if (fits)
			return 0;
		refuse(r);
	}
	return 0;
}

int
whole_feed(struct provider_reading *r, struct slice text, struct err *e)
{
	if (r->whole.done)
		return 0;
	if (r->too_large || r->line.len + text.len > PROVIDER_MAX_DOCUMENT) {
		r->too_large = true;
		buf_clear(&r->line);
		return 0;
	}
	buf_slice(&r->line, text);
	return buf_ok(&r->line, e) != 0 ? -1 : look(r, e);
}

/* What has begun never closes: another text may stand in what was taken for its inside. */
int
whole_rest(struct provider_reading *r, struct err *e)
{
	while (!r->too_large && !r->whole.done && r->whole.begun) {
		r->whole.cut = true;
		refuse(r);
		if (look(r, e) != 0)
			return -1;
	}
	r->whole.cut &= !r->whole.done;
	return 0;
}
