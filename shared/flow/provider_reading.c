/* From bytes to records: lines, one JSON text, or an array of them. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "provider_private.h"

/* A text begins at one of the first lines that can begin one: what a program says before it. */
enum { BEGINNINGS_MOST = 64, READ_PIECE = 64 << 10 };

int
provider_reading_new(const struct provider *p, provider_sink *sink, void *arg,
    struct provider_reading **out, struct err *e)
{
	const struct provider_rules *rules = p->rules;
	struct provider_reading *r = calloc(1, sizeof(*r));
	size_t i;

	if (r == NULL)
		return err_nomem(e);
	r->p = p;
	r->sink = sink;
	r->arg = arg;
	r->rule_held = calloc(rules->nfailures + 1, sizeof(*r->rule_held));
	r->answer = calloc(rules->answer.count + 1, sizeof(*r->answer));
	r->id = calloc(rules->id.count + 1, sizeof(*r->id));
	r->error = calloc(rules->error.count + 1, sizeof(*r->error));
	r->usage = calloc(rules->nusage + 1, sizeof(*r->usage));
	if (r->rule_held == NULL || r->answer == NULL || r->id == NULL || r->error == NULL ||
	    r->usage == NULL)
		goto nomem;
	for (i = 0; i < rules->nusage; i++) {
		r->usage[i] = calloc(rules->usage[i].selectors.count + 1, sizeof(**r->usage));
		if (r->usage[i] == NULL)
			goto nomem;
	}
	*out = r;
	return 0;
nomem:
	provider_reading_free(r);
	return err_nomem(e);
}

void
provider_reading_free(struct provider_reading *r)
{
	const struct provider_rules *rules;
	size_t i;

	if (r == NULL)
		return;
	rules = r->p->rules;
	for (i = 0; r->usage != NULL && i < rules->nusage; i++)
		found_clear(r->usage[i], rules->usage[i].selectors.count);
	free(r->usage);
	found_clear(r->answer, rules->answer.count);
	found_clear(r->id, rules->id.count);
	found_clear(r->error, rules->error.count);
	free(r->rule_held);
	buf_clear(&r->line);
	buf_clear(&r->stripped);
	free(r);
}

bool
provider_reading_ended(const struct provider_reading *r)
{
	return r->ended;
}

int
reading_record(struct provider_reading *r, const struct json *record, struct err *e)
{
	const struct provider_rules *rules = r->p->rules;
	size_t i;

	r->records++;
	r->ended = r->ended || condition_holds(&rules->terminal, record);
	r->acknowledged = r->acknowledged || condition_holds(&rules->acknowledged, record);
	r->failed = r->failed || condition_holds(&rules->failed, record);
	for (i = 0; i < rules->nfailures; i++)
		if (condition_holds(&rules->failures[i].where, record))
			r->rule_held[i] = true;
	for (i = 0; i < rules->nusage; i++)
		if (selectors_see(&rules->usage[i].selectors, r->usage[i], record, e) != 0)
			return -1;
	if (selectors_see(&rules->answer, r->answer, record, e) != 0 ||
	    selectors_see(&rules->id, r->id, record, e) != 0)
		return -1;
	return selectors_see(&rules->error, r->error, record, e);
}

/* ---- JSON lines ---- */

static struct slice
trimmed(struct slice s)
{
	while (s.len > 0 && strchr(" \t\r\n", s.data[0]) != NULL && s.data[0] != '\0') {
		s.data++;
		s.len--;
	}
	while (s.len > 0 && strchr(" \t\r\n", s.data[s.len - 1]) != NULL && s.data[s.len - 1] != '\0')
		s.len--;
	return s;
}

static int
one_line(struct provider_reading *r, struct slice line, struct err *e)
{
	struct json_options o = {.max_bytes = PROVIDER_MAX_LINE};
	struct json *record = NULL;
	struct err why = {0};
	int rc;

	line = trimmed(line);
	if (line.len == 0)
		return 0;
	if (line.data[0] != '{' || json_parse(line, &o, &record, NULL, &why) != 0) {
		if (why.code == ERR_NOMEM)
			return err_nomem(e);
		r->skipped++;
		return 0;
	}
	rc = reading_record(r, record, e);
	json_unref(record);
	return rc;
}

/* A line that does not end within the limit is passed over up to its end. */
static int
keep_piece(struct provider_reading *r, struct slice piece, struct err *e)
{
	if (r->passing_over)
		return 0;
	if (r->line.len + piece.len > PROVIDER_MAX_LINE) {
		r->passing_over = true;
		r->long_lines++;
		buf_clear(&r->line);
		return 0;
	}
	buf_slice(&r->line, piece);
	return buf_ok(&r->line, e);
}

static int
end_line(struct provider_reading *r, struct slice piece, struct err *e)
{
	int rc;

	if (r->line.len == 0 && !r->passing_over && piece.len <= PROVIDER_MAX_LINE)
		return one_line(r, piece, e);
	rc = keep_piece(r, piece, e);
	if (rc == 0 && !r->passing_over)
		rc = one_line(r, buf_view(&r->line), e);
	r->passing_over = false;
	buf_reset(&r->line);
	return rc;
}

static int
feed_lines(struct provider_reading *r, struct slice text, struct err *e)
{
	const char *lf;
	struct slice piece;

	while (text.len > 0) {
		lf = memchr(text.data, '\n', text.len);
		piece = (struct slice){text.data, lf == NULL ? text.len : (size_t)(lf - text.data)};
		if (lf == NULL)
			return keep_piece(r, piece, e);
		if (end_line(r, piece, e) != 0)
			return -1;
		text.data += piece.len + 1;
		text.len -= piece.len + 1;
	}
	return 0;
}

/* ---- One text ---- */

static int
feed_whole(struct provider_reading *r, struct slice text, struct err *e)
{
	if (r->too_large || r->line.len + text.len > PROVIDER_MAX_DOCUMENT) {
		r->too_large = true;
		buf_clear(&r->line);
		return 0;
	}
	buf_slice(&r->line, text);
	return buf_ok(&r->line, e);
}

static int
whole_records(struct provider_reading *r, const struct json *v, struct err *e)
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

/* Tries to read a text that begins at `at`; what stands behind it does not matter. */
static int
try_whole(struct provider_reading *r, struct slice at, bool *done, struct err *e)
{
	struct json_options o = {.max_bytes = PROVIDER_MAX_DOCUMENT};
	struct json_failure failure = {0};
	struct json *v = NULL;
	struct err why = {0};
	int rc = json_parse(at, &o, &v, &failure, &why);

	if (rc != 0 && failure.fault == JSON_FAULT_TRAILING) {
		at.len = failure.where.offset;
		why = (struct err){0};
		rc = json_parse(at, &o, &v, &failure, &why);
	}
	if (rc != 0)
		return why.code == ERR_NOMEM ? err_nomem(e) : 0;
	*done = true;
	rc = whole_records(r, v, e);
	json_unref(v);
	return rc;
}

static int
read_whole(struct provider_reading *r, struct err *e)
{
	char first = r->p->format == PROVIDER_JSON ? '{' : '[';
	struct slice text = buf_view(&r->line);
	unsigned beginnings = 0;
	bool done = false;
	const char *lf;

	while (text.len > 0 && !done && beginnings < BEGINNINGS_MOST) {
		if (text.data[0] == first) {
			beginnings++;
			if (try_whole(r, text, &done, e) != 0)
				return -1;
		}
		lf = memchr(text.data, '\n', text.len);
		if (done || lf == NULL)
			return 0;
		r->skipped++;
		text.len -= (size_t)(lf + 1 - text.data);
		text.data = lf + 1;
	}
	return 0;
}

/* ---- Both ---- */

static int
feed_text(struct provider_reading *r, struct slice text, struct err *e)
{
	if (!r->any_text && trimmed(text).len > 0)
		r->any_text = true;
	return r->sink != NULL && text.len > 0 ? r->sink(r->arg, text, e) : 0;
}

int
provider_reading_feed(struct provider_reading *r, struct slice bytes, struct err *e)
{
	if (bytes.len == 0)
		return 0;
	if (!r->p->keep_ansi) {
		buf_reset(&r->stripped);
		ansi_strip(&r->ansi, bytes, &r->stripped);
		if (buf_ok(&r->stripped, e) != 0)
			return -1;
		bytes = buf_view(&r->stripped);
	}
	switch (r->p->format) {
	case PROVIDER_TEXT:
		return feed_text(r, bytes, e);
	case PROVIDER_JSONL:
		return feed_lines(r, bytes, e);
	case PROVIDER_JSON:
	case PROVIDER_JSON_ARRAY:
		break;
	}
	return feed_whole(r, bytes, e);
}

/* What is left when nothing more comes: a last line without its end, or the whole text. */
int
reading_rest(struct provider_reading *r, struct err *e)
{
	if (r->p->format == PROVIDER_JSONL)
		return end_line(r, (struct slice){"", 0}, e);
	if (r->p->format != PROVIDER_TEXT)
		return read_whole(r, e);
	return 0;
}

int
provider_reading_feed_file(struct provider_reading *r, int fd, struct err *e)
{
	char piece[READ_PIECE];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, ERR_IO, errno, "cannot read the output");
		if (provider_reading_feed(r, (struct slice){piece, (size_t)n}, e) != 0)
			return -1;
	}
	return 0;
}
