/* From bytes to records, and lines of them; provider_whole.c has one JSON text, or an array. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "provider_private.h"

enum { READ_PIECE = 64 << 10 };

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
	return r->ended || r->ends_open;
}

/* The same with U+FFFD for what is no UTF-8. */
static int
parse_mended(struct slice text, const struct json_options *o, struct json **out,
    struct json_failure *failure, struct err *e)
{
	struct json *mended = json_string_lossy(text, NULL);
	int rc = mended == NULL ? err_nomem(e) : json_parse(json_text(mended), o, out, failure, e);

	json_unref(mended);
	return rc;
}

int
reading_parse(struct provider_reading *r, struct slice text, size_t most, struct json **out,
    struct json_failure *failure, struct err *e)
{
	struct json_options o = {.max_bytes = most};
	int rc = json_parse(text, &o, out, failure, e);

	if (rc == 0 || failure->fault != JSON_FAULT_UTF8)
		return rc;
	*failure = (struct json_failure){0};
	*e = (struct err){0};
	o.max_bytes = 3 * most; /* each byte may have become three */
	rc = parse_mended(text, &o, out, failure, e);
	r->mended |= rc == 0;
	return rc;
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
	struct json_failure failure = {0};
	struct json *record = NULL;
	struct err why = {0};
	int rc;

	line = trimmed(line);
	if (line.len == 0)
		return 0;
	if (line.data[0] != '{' ||
	    reading_parse(r, line, PROVIDER_MAX_LINE, &record, &failure, &why) != 0) {
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
	r->passing_over = r->ends_open = false;
	r->brackets = (struct brackets){0};
	buf_reset(&r->line);
	return rc;
}

/*
 * A line whose end has not come may be the final record all the same: looked at once, where its object closes.
 * It is read as a record when it has ended.
 */
static int
look_at_open_line(struct provider_reading *r, struct err *e)
{
	struct slice line = buf_view(&r->line);
	struct json_failure failure = {0};
	struct json *record = NULL;
	bool mended = r->mended;
	struct err why = {0};
	size_t from = 0;

	while (from < line.len && strchr(" \t\r", line.data[from]) != NULL && line.data[from] != '\0')
		from++;
	if (!r->p->has_terminal || from == line.len || line.data[from] != '{')
		return 0;
	if (r->brackets.at < from)
		r->brackets.at = from;
	if (r->brackets.closed) {
		/* Behind it nothing but blanks makes a record. */
		r->ends_open = r->ends_open && trimmed(line).len + from == r->brackets.at;
		return 0;
	}
	if (!brackets_close(&r->brackets, line))
		return 0;
	line = (struct slice){line.data + from, r->brackets.at - from};
	if (trimmed(buf_view(&r->line)).len != line.len)
		return 0;
	if (reading_parse(r, line, PROVIDER_MAX_LINE, &record, &failure, &why) == 0)
		r->ends_open = condition_holds(&r->p->rules->terminal, record);
	r->mended = mended;
	json_unref(record);
	return why.code == ERR_NOMEM ? err_nomem(e) : 0;
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
			return keep_piece(r, piece, e) != 0 ? -1 : look_at_open_line(r, e);
		if (end_line(r, piece, e) != 0)
			return -1;
		text.data += piece.len + 1;
		text.len -= piece.len + 1;
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
	return whole_feed(r, bytes, e);
}

/* What is left when nothing more comes: a last line without its end, or a text that never closed. */
int
reading_rest(struct provider_reading *r, struct err *e)
{
	if (r->p->format == PROVIDER_JSONL)
		return end_line(r, (struct slice){"", 0}, e);
	if (r->p->format != PROVIDER_TEXT)
		return whole_rest(r, e);
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
