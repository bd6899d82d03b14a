#include <string.h>

#include "session_row.h"

/* ---- Lists: the text of the query depends on the filter, the values are always bound ---- */

static size_t
label_count(const struct session_filter *f)
{
	return f->labels != NULL ? json_length(f->labels) : 0;
}

static void
add_condition(struct buf *sql, bool *first, const char *text)
{
	buf_puts(sql, *first ? "WHERE " : " AND ");
	buf_puts(sql, text);
	*first = false;
}

static void
build(const struct session_filter *f, struct buf *sql)
{
	bool first = true;
	size_t i;

	buf_puts(sql, f->brief ? SESSION_BRIEF_SELECT : SESSION_SELECT);
	for (i = 0; i < f->nstatuses; i++) {
		if (i == 0)
			add_condition(sql, &first, "s.status IN (");
		buf_printf(sql, "%s'%s'", i > 0 ? ", " : "", status_word(f->statuses[i]));
	}
	if (f->nstatuses > 0)
		buf_putc(sql, ')');
	if (f->since > 0)
		add_condition(sql, &first, "s.created_at >= ?");
	if (f->restarting)
		add_condition(sql, &first, IS_RESTARTING("s"));
	if (f->unique_key != NULL)
		add_condition(sql, &first, "s.unique_key = ?");
	/* They are in no queue. */
	if (f->foreground)
		add_condition(sql, &first, "s.queue = ''");
	for (i = 0; i < label_count(f); i++)
		add_condition(sql, &first,
		    "EXISTS (SELECT 1 FROM labels f WHERE f.session_id = s.id AND f.name = ? "
		    "AND f.value = ?)");
	buf_puts(sql, f->oldest_first ? " ORDER BY s.created_at" : " ORDER BY s.created_at DESC");
	if (f->limit > 0)
		buf_puts(sql, " LIMIT ?");
}

static int
bind_label(sqlite3_stmt *q, int at, struct slice name, const struct json *value, struct err *e)
{
	struct slice text = json_text(value);

	if (text.data == NULL)
		return err_set(e, ERR_USAGE, "label '%.*s' is not a text", (int)name.len, name.data);
	if (sqlite3_bind_text64(q, at, name.data, name.len, SQLITE_TRANSIENT, SQLITE_UTF8) !=
		SQLITE_OK ||
	    sqlite3_bind_text64(q, at + 1, text.data, text.len, SQLITE_TRANSIENT, SQLITE_UTF8) !=
		SQLITE_OK)
		return err_nomem(e);
	return 0;
}

static int
bind_filter(sqlite3_stmt *q, const struct session_filter *f, struct err *e)
{
	const struct json *value;
	struct json_iter it;
	struct slice name;
	int at = 1;

	if (f->since > 0 && !bind_real(q, at++, f->since))
		return err_nomem(e);
	if (f->unique_key != NULL && !bind_text(q, at++, f->unique_key))
		return err_nomem(e);
	if (label_count(f) > 0) {
		it = json_iterate(f->labels);
		for (; json_next(&it, &name, &value); at += 2)
			if (bind_label(q, at, name, value, e) != 0)
				return -1;
	}
	if (f->limit > 0 && !bind_int(q, at, f->limit))
		return err_nomem(e);
	return 0;
}

static int
each_row(struct store *s, sqlite3_stmt *q, bool brief, session_each *each, void *arg, struct err *e)
{
	struct session row;
	int rc, stop = 0;

	while (stop == 0 && (rc = store_step(s, q, e)) != 0) {
		if (rc < 0 || (brief ? session_from_row_brief : session_from_row)(q, &row, e) != 0)
			return -1;
		stop = each(arg, &row);
		session_clear(&row);
	}
	return 0;
}

int
session_list(struct store *s, const struct session_filter *f, session_each *each, void *arg,
    struct err *e)
{
	static const struct session_filter everything = {0};
	struct buf sql = {0};
	sqlite3_stmt *q = NULL;
	int rc = -1;

	f = f != NULL ? f : &everything;
	build(f, &sql);
	if (buf_ok(&sql, e) != 0)
		goto out;
	if (sqlite3_prepare_v2(s->db, buf_text(&sql), -1, &q, NULL) != SQLITE_OK) {
		store_error(s, sqlite3_extended_errcode(s->db), "prepare a list", e);
		goto out;
	}
	if (bind_filter(q, f, e) == 0)
		rc = each_row(s, q, f->brief, each, arg, e);
out:
	sqlite3_finalize(q);
	buf_clear(&sql);
	return rc;
}

int
session_transitions(struct store *s, const char *run_id, transition_each *each, void *arg,
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_TRANSITIONS, e);
	struct transition t;
	int rc, stop = 0;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, run_id))
		return err_nomem(e);
	while (stop == 0 && (rc = store_step(s, q, e)) != 0) {
		if (rc < 0)
			return -1;
		t.status = status_from_word(column_text(q, 0));
		t.reason_code = column_text(q, 1);
		t.reason = column_text(q, 2);
		t.at = sqlite3_column_double(q, 3);
		if (t.status != STATUS_COUNT)
			stop = each(arg, &t);
	}
	sqlite3_reset(q);
	return 0;
}
