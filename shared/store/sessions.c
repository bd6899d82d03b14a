#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session_row.h"

/* ---- Rows ---- */

void
session_clear(struct session *s)
{
	free(s->kind);
	free(s->name);
	free(s->reason_code);
	free(s->reason);
	json_unref(s->metadata);
	json_unref(s->labels);
	free(s->queue);
	free(s->unique_key);
	json_unref(s->policy);
	free(s->notify);
	free(s->place);
	*s = (struct session){0};
}

static char *
copy_column(sqlite3_stmt *q, int at, struct err *e)
{
	char *copy = strdup(column_text(q, at));

	if (copy == NULL)
		err_nomem(e);
	return copy;
}

static int
copy_columns(sqlite3_stmt *q, struct session *s, struct err *e)
{
	if ((s->kind = copy_column(q, 7, e)) == NULL || (s->name = copy_column(q, 8, e)) == NULL ||
	    (s->reason_code = copy_column(q, 10, e)) == NULL ||
	    (s->reason = copy_column(q, 11, e)) == NULL)
		return -1;
	if (column_json(q, 17, &s->metadata, e) != 0)
		return err_wrap(e, "run %s: metadata", s->run_id);
	if (column_json(q, 18, &s->labels, e) != 0)
		return err_wrap(e, "run %s: labels", s->run_id);
	return 0;
}

static int
copy_job(sqlite3_stmt *q, struct session *s, struct err *e)
{
	if ((s->queue = copy_column(q, 19, e)) == NULL ||
	    (s->unique_key = copy_column(q, 20, e)) == NULL ||
	    (s->notify = copy_column(q, 22, e)) == NULL || (s->place = copy_column(q, 23, e)) == NULL)
		return -1;
	s->restarts_left = sqlite3_column_int64(q, 24);
	s->restarts_done = sqlite3_column_int64(q, 25);
	s->quick_deaths = sqlite3_column_int64(q, 26);
	return column_json(q, 21, &s->policy, e) == 0 ? 0
						      : err_wrap(e, "run %s: policy", s->run_id);
}

/* What every reader of a row wants. */
static int
copy_state(sqlite3_stmt *q, struct session *s, struct err *e)
{
	column_copy(q, 0, s->run_id, sizeof(s->run_id));
	column_copy(q, 6, s->resumed_as_run, sizeof(s->resumed_as_run));
	s->status = status_from_word(column_text(q, 9));
	s->created_at = sqlite3_column_double(q, 12);
	s->started_at = sqlite3_column_double(q, 13);
	s->ended_at = sqlite3_column_double(q, 14);
	s->done = sqlite3_column_int64(q, 15);
	s->total = sqlite3_column_int64(q, 16);
	if (s->status != STATUS_COUNT && s->run_id[0] != '\0')
		return 0;
	return err_set(e, ERR_IO, "the row of run '%s' is damaged: status '%s'", s->run_id, column_text(q, 9));
}

static int
copy_rest(sqlite3_stmt *q, struct session *s, struct err *e)
{
	column_copy(q, 1, s->session_id, sizeof(s->session_id));
	column_copy(q, 2, s->invocation_id, sizeof(s->invocation_id));
	column_copy(q, 3, s->origin, sizeof(s->origin));
	column_copy(q, 4, s->resumed_from, sizeof(s->resumed_from));
	column_copy(q, 5, s->resumed_from_run, sizeof(s->resumed_from_run));
	return copy_columns(q, s, e) == 0 ? copy_job(q, s, e) : -1;
}

int
session_from_row(sqlite3_stmt *q, struct session *out, struct err *e)
{
	struct session s = {0};

	if (copy_state(q, &s, e) != 0)
		return -1;
	if (copy_rest(q, &s, e) != 0) {
		session_clear(&s);
		return -1;
	}
	*out = s;
	return 0;
}

static bool
is_plain(const struct session *s, const char *reason, int64_t restarts_left)
{
	return status_is_terminal(s->status) && (s->resumed_as_run[0] != '\0' ||
		   (!reason_is_resumable(reason) && (s->status != STATUS_CRASHED || restarts_left == 0)));
}

bool
session_is_plain(const struct session *s)
{
	return is_plain(s, s->reason_code != NULL ? s->reason_code : "", s->restarts_left);
}

int
session_from_row_brief(sqlite3_stmt *q, struct session *out, struct err *e)
{
	struct session s = {0};

	if (copy_state(q, &s, e) != 0)
		return -1;
	if (is_plain(&s, column_text(q, 10), sqlite3_column_int64(q, 24)))
		s.name = copy_column(q, 8, e);
	else if (copy_rest(q, &s, e) != 0) {
		session_clear(&s);
		return -1;
	}
	if (s.name == NULL)
		return -1;
	*out = s;
	return 0;
}

int
session_only(struct store *s, sqlite3_stmt *q, struct session *out, struct err *e)
{
	int rc = store_step(s, q, e);

	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND, "no such run");
	rc = session_from_row(q, out, e);
	sqlite3_reset(q);
	return rc;
}

int
session_no_run(const char *run_id, struct err *e)
{
	err_set(e, ERR_NOTFOUND, "there is no run '%.64s'", run_id);
	return err_hint(e, "flowsup list");
}

sqlite3_stmt *
session_row(struct store *s, enum statement which, const char *run_id, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, which, e);
	int rc;

	if (q == NULL)
		return NULL;
	if (!bind_text(q, 1, run_id)) {
		err_nomem(e);
		return NULL;
	}
	rc = store_step(s, q, e);
	if (rc == 0)
		session_no_run(run_id, e);
	return rc == 1 ? q : NULL;
}

static int
read_by_run(struct store *s, enum statement which, const char *run_id, struct session *out,
    struct err *e)
{
	sqlite3_stmt *q = session_row(s, which, run_id, e);
	int rc;

	if (q == NULL)
		return -1;
	rc = session_from_row(q, out, e);
	sqlite3_reset(q);
	return rc;
}

int
session_read(struct store *s, const char *run_id, struct session *out, struct err *e)
{
	return read_by_run(s, Q_SESSION_READ, run_id, out, e);
}

int
session_latest(struct store *s, const char *run_id, struct session *out, struct err *e)
{
	return read_by_run(s, Q_LATEST, run_id, out, e);
}

/* ---- Insert ---- */

/* Where a run stands in its job; the texts are the new run's own for the first one of a chain. */
struct chain {
	char origin[UUID_TEXT], invocation_id[INVOCATION_ID_TEXT];
	char from_run[RUN_ID_TEXT]; /* "" for the first */
};

static int
find_chain(struct store *s, const struct session_new *n, struct chain *c, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_CHAIN, e);
	int rc;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, n->resumed_from))
		return err_nomem(e);
	rc = store_step(s, q, e);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND, "there is no session '%s' to go on from",
		    n->resumed_from);
	column_copy(q, 0, c->origin, sizeof(c->origin));
	column_copy(q, 1, c->invocation_id, sizeof(c->invocation_id));
	column_copy(q, 3, c->from_run, sizeof(c->from_run));
	rc = 0;
	if (*column_text(q, 2) != '\0') {
		rc = err_set(e, ERR_REFUSED, "run %s was already resumed, as run %s",
		    column_text(q, 3), column_text(q, 2));
		err_hint(e, "flowsup show %s", column_text(q, 2));
	}
	sqlite3_reset(q);
	return rc;
}

static int
start_chain(struct store *s, const struct session_new *n, struct chain *c, double now,
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_INVOCATION_ADD, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, n->invocation_id) || !bind_real(q, 2, now))
		return err_nomem(e);
	memcpy(c->origin, n->session_id, strlen(n->session_id) + 1);
	memcpy(c->invocation_id, n->invocation_id, strlen(n->invocation_id) + 1);
	return store_run(s, q, NULL, e);
}

/* No two runs were created at the same instant, whatever the clock does: their order is one. */
static int
creation_time(struct store *s, double *to, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_SESSION_TIME, e);
	int rc;

	if (q == NULL)
		return -1;
	if (!bind_real(q, 1, store_now()))
		return err_nomem(e);
	rc = store_step(s, q, e);
	assert(rc != 0);
	if (rc < 0)
		return -1;
	*to = sqlite3_column_double(q, 0);
	sqlite3_reset(q);
	return 0;
}

static int
add_transition(struct store *s, const char *session_id, enum run_status status, const char *code,
    const char *text, double now, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_TRANSITION_ADD, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, session_id) || !bind_text(q, 2, status_word(status)) ||
	    !bind_text(q, 3, code) || !bind_text(q, 4, text) || !bind_real(q, 5, now))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

static bool
bind_object(sqlite3_stmt *q, int at, const struct json *value)
{
	return value != NULL ? bind_json(q, at, value) : bind_text(q, at, "{}");
}

/* Of the caller's, with the home in which the run is made. */
static struct json *
metadata_of(const struct store *s, const struct session_new *n)
{
	size_t length = (size_t)(strrchr(s->path, '/') - s->path);
	struct json *all = n->metadata != NULL ? json_ref(n->metadata) : json_object();

	return json_set(all, META_MADE_IN, session_home_json(s->path, length, s->home));
}

static int
add_row(struct store *s, const struct session_new *n, const struct chain *c, double now,
    struct err *e)
{
	static const char code[] = "run.queued.new";
	sqlite3_stmt *q = store_statement(s, Q_SESSION_ADD, e);
	struct json *metadata;
	bool ok;

	if (q == NULL)
		return -1;
	metadata = metadata_of(s, n);
	if (metadata == NULL)
		return err_nomem(e);
	ok = bind_text(q, 16, n->queue) && bind_text(q, 17, n->unique_key) &&
	    bind_object(q, 18, n->policy) && bind_text(q, 19, n->notify) &&
	    bind_int(q, 20, n->restarts_left) && bind_int(q, 21, n->restarts_done) &&
	    bind_int(q, 22, n->quick_deaths) && bind_text(q, 23, n->place);
	ok = ok && bind_text(q, 1, n->session_id) && bind_text(q, 2, n->run_id) &&
	    bind_text(q, 3, c->invocation_id) && bind_text(q, 4, c->origin) &&
	    bind_text(q, 5, n->kind) && bind_text(q, 6, n->name) &&
	    bind_text(q, 7, status_word(STATUS_QUEUED)) && bind_text(q, 8, code) &&
	    bind_text(q, 9, reason_text(code)) && bind_text(q, 10, n->resumed_from) &&
	    bind_real(q, 11, now) && bind_int(q, 12, n->total) && bind_object(q, 13, metadata) &&
	    bind_object(q, 14, n->labels) && bind_int(q, 15, n->done);
	json_unref(metadata);
	if (!ok)
		return err_nomem(e);
	if (store_run(s, q, NULL, e) != 0)
		return -1;
	return add_transition(s, n->session_id, STATUS_QUEUED, code, reason_text(code), now, e);
}

static int
add_label(struct store *s, const char *session_id, struct slice name, const struct json *value,
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_LABEL_ADD, e);
	const char *text = json_cstr_of(value);

	if (q == NULL)
		return -1;
	if (text == NULL)
		return err_set(e, ERR_USAGE, "label '%.*s' is not a text", (int)name.len, name.data);
	if (!bind_text(q, 1, session_id) ||
	    sqlite3_bind_text64(q, 2, name.data, name.len, SQLITE_TRANSIENT, SQLITE_UTF8) !=
		SQLITE_OK ||
	    !bind_text(q, 3, text))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

static int
add_labels(struct store *s, const struct session_new *n, struct err *e)
{
	struct json_iter it;
	const struct json *value;
	struct slice name;

	if (n->labels == NULL)
		return 0;
	it = json_iterate(n->labels);
	while (json_next(&it, &name, &value))
		if (add_label(s, n->session_id, name, value, e) != 0)
			return -1;
	return 0;
}

static int
add_play(struct store *s, const struct session_new *n, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_PLAY_ADD, e);
	char id[UUID_TEXT];

	if (q == NULL || uuid_make(id, e) != 0)
		return -1;
	if (!bind_text(q, 1, id) || !bind_text(q, 2, n->invocation_id) || !bind_text(q, 3, n->play) ||
	    !bind_object(q, 4, n->arguments))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

/* A gate that was closed is closed again before what waits on takes effect: nobody opened it. Whoever
 * resumes a run by hand is told that it is open. */
static int
close_gate_again(struct store *s, const struct session_new *n, const struct chain *c, struct err *e)
{
	struct control_standing at;
	sqlite3_stmt *q;
	char id[UUID_TEXT];

	if (n->restarts_done == 0)
		return 0;
	if (control_standing(s, c->from_run, &at, e) != 0)
		return -1;
	if (!at.paused)
		return 0;
	q = store_statement(s, Q_CONTROL_PAUSE, e);
	if (q == NULL || uuid_make(id, e) != 0)
		return -1;
	if (!bind_text(q, 1, id) || !bind_text(q, 2, n->session_id) || !bind_real(q, 3, at.paused_at))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

/* What nobody claimed waits on for the job, so it goes to the run that carries the job on; so does
 * what is left of its restarts. An automatic resume needs one: it may have been given up since. */
static int
hand_over(struct store *s, const struct session_new *n, const struct chain *c, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_SUCCEEDED, e);
	int changed = 0;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, n->resumed_from) || !bind_int(q, 2, n->restarts_done > 0))
		return err_nomem(e);
	if (store_run(s, q, &changed, e) != 0)
		return -1;
	if (changed == 0)
		return err_set(e, ERR_REFUSED, "run %s is not to be resumed by itself any more", c->from_run);
	q = store_statement(s, Q_HAND_OVER, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, n->session_id) || !bind_text(q, 2, n->resumed_from))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

static int
insert_all(struct store *s, const struct session_new *n, struct err *e)
{
	struct chain c = {"", "", ""};
	double now = 0;

	if (creation_time(s, &now, e) != 0)
		return -1;
	if (n->resumed_from != NULL ? find_chain(s, n, &c, e) != 0
				    : start_chain(s, n, &c, now, e) != 0)
		return -1;
	if (unique_check(s, n, c.origin, now, e) != 0)
		return -1;
	if (add_row(s, n, &c, now, e) != 0 || add_labels(s, n, e) != 0)
		return -1;
	if (n->play != NULL && n->resumed_from == NULL && add_play(s, n, e) != 0)
		return -1;
	if (n->resumed_from == NULL)
		return 0;
	return close_gate_again(s, n, &c, e) == 0 ? hand_over(s, n, &c, e) : -1;
}

int
session_insert(struct store *s, const struct session_new *n, struct err *e)
{
	assert(run_id_is_valid(n->run_id) && strlen(n->session_id) == UUID_TEXT - 1);
	assert(n->resumed_from != NULL || strlen(n->invocation_id) == INVOCATION_ID_TEXT - 1);
	if (store_begin(s, e) != 0 || store_end(s, insert_all(s, n, e), e) != 0)
		return err_wrap(e, "run %s", n->run_id);
	return 0;
}

/* ---- Changes ---- */

struct found {
	char session_id[UUID_TEXT];
	enum run_status status;
};

static int
find_status(struct store *s, const char *run_id, struct found *out, struct err *e)
{
	sqlite3_stmt *q = session_row(s, Q_SESSION_STATUS, run_id, e);
	int rc = 0;

	if (q == NULL)
		return -1;
	column_copy(q, 0, out->session_id, sizeof(out->session_id));
	out->status = status_from_word(column_text(q, 1));
	if (out->status == STATUS_COUNT)
		rc = err_set(e, ERR_IO, "the row of run '%s' is damaged: status '%s'", run_id,
		    column_text(q, 1));
	sqlite3_reset(q);
	return rc;
}

struct move {
	const char *run_id;
	enum run_status to;
	const char *code, *text;
	int64_t done;
	const char *place; /* NULL: as it is */
};

static int
write_move(struct store *s, const struct move *m, double now, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_SESSION_MOVE, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, m->run_id) || !bind_text(q, 2, status_word(m->to)) ||
	    !bind_text(q, 3, m->code) || !bind_text(q, 4, m->text) || !bind_real(q, 5, now) ||
	    !bind_int(q, 6, status_is_terminal(m->to)) || !bind_int(q, 7, m->done))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

/* Whoever wants to be told of a move is, however this process ends. */
static int
add_notice(struct store *s, const struct move *m, double now, struct err *e)
{
	char event[NOTICE_EVENT];

	if (status_is_terminal(m->to))
		return notice_add_at(s, m->run_id, status_word(m->to), m->to != STATUS_COMPLETED, now, e);
	if (strcmp(m->code, "run.running.storage") != 0)
		return 0;
	snprintf(event, sizeof(event), "storage:%lld", (long long)sqlite3_last_insert_rowid(s->db));
	return notice_add_at(s, m->run_id, event, true, now, e);
}

static int
write_place(struct store *s, const struct move *m, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_PLACE, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, m->run_id) || !bind_text(q, 2, m->place))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

static const char being_stopped[] = "it was being stopped";

/* Whoever stopped it was told that nothing of it starts any more, whether or not its worker came to
 * hear of it. */
static int
keep_stopped(struct store *s, const char *run_id, struct err *e)
{
	struct control_standing at;
	bool gave_up;

	if (control_stop_dead(s, run_id, e) != 0 || control_standing(s, run_id, &at, e) != 0)
		return -1;
	return at.stopped ? give_up_inside(s, run_id, being_stopped, &gave_up, e) : 0;
}

/* A crash says, too, that it was no surprise. */
static int
write_end(struct store *s, const struct move *m, double now, struct err *e)
{
	struct control_standing at = {0};
	struct move said = *m;
	struct buf text = {0};
	int rc = 0;

	if (m->to == STATUS_CRASHED)
		rc = control_standing(s, m->run_id, &at, e);
	if (rc == 0 && (at.stopped || at.stop_asked)) {
		buf_printf(&text, "%s; %s", m->text, being_stopped);
		rc = buf_ok(&text, e);
		said.text = buf_text(&text);
	}
	if (rc == 0)
		rc = write_move(s, &said, now, e);
	buf_clear(&text);
	return rc;
}

static int
move_inside(struct store *s, const struct move *m, bool *moved, struct err *e)
{
	struct found at;
	double now = store_now();

	if (find_status(s, m->run_id, &at, e) != 0)
		return -1;
	*moved = status_may_become(at.status, m->to);
	if (!*moved)
		return 0;
	if (write_end(s, m, now, e) != 0 || (m->place != NULL && write_place(s, m, e) != 0))
		return -1;
	if (add_transition(s, at.session_id, m->to, m->code, m->text, now, e) != 0 ||
	    add_notice(s, m, now, e) != 0)
		return -1;
	if (m->to == STATUS_CRASHED && keep_stopped(s, m->run_id, e) != 0)
		return -1;
	/* No worker will come that could take what waits for it. */
	return at.status == STATUS_QUEUED && status_is_terminal(m->to) ? control_sweep(s, m->run_id, e) : 0;
}

static int
move(struct store *s, struct move *m, bool *moved, struct err *e)
{
	bool did = false;

	assert(reason_belongs_to(m->code, m->to));
	if (m->text == NULL)
		m->text = reason_text(m->code);
	if (store_begin(s, e) != 0 || store_end(s, move_inside(s, m, &did, e), e) != 0)
		return err_wrap(e, "run %s: status %s", m->run_id, status_word(m->to));
	if (moved != NULL)
		*moved = did;
	return 0;
}

int
session_transition(struct store *s, const char *run_id, enum run_status to,
    const char *reason_code, const char *text, int64_t done, bool *moved, struct err *e)
{
	struct move m = {run_id, to, reason_code, text, done, NULL};

	return move(s, &m, moved, e);
}

int
session_starting(struct store *s, const char *run_id, const char *place, bool *moved, struct err *e)
{
	struct move m = {run_id, STATUS_STARTING, "run.starting.forked", NULL, -1, place};

	return move(s, &m, moved, e);
}

int
session_progress(struct store *s, const char *run_id, int64_t done, int64_t total,
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_PROGRESS, e);
	int changed = 0;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, run_id) || !bind_int(q, 2, done) || !bind_int(q, 3, total))
		return err_nomem(e);
	if (store_run(s, q, &changed, e) != 0)
		return -1;
	return changed == 1 ? 0 : session_no_run(run_id, e);
}

static int
read_metadata(struct store *s, const char *run_id, struct json **out, struct err *e)
{
	sqlite3_stmt *q = session_row(s, Q_METADATA_READ, run_id, e);
	int rc;

	if (q == NULL)
		return -1;
	rc = column_json(q, 0, out, e);
	sqlite3_reset(q);
	return rc;
}

static int
write_metadata(struct store *s, const char *run_id, const struct json *value, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_METADATA_WRITE, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, run_id) || !bind_json(q, 2, value))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

int
session_set_inside(struct store *s, const char *run_id, const char *name, struct json *value,
    struct err *e)
{
	struct json *all = NULL;
	int rc;

	if (read_metadata(s, run_id, &all, e) != 0) {
		json_unref(value);
		return -1;
	}
	if (value != NULL && json_type(value) == JSON_NULL) {
		json_unref(value);
		all = json_remove(all, slice_of(name));
	} else {
		all = json_set(all, name, value);
	}
	rc = all != NULL ? write_metadata(s, run_id, all, e) : err_nomem(e);
	if (rc == 0 && strcmp(name, "waiting") == 0)
		rc = notice_waiting(s, run_id, json_get(all, name), e);
	json_unref(all);
	return rc;
}

static struct json *
with_rejected(const struct json *growth, const struct json *before)
{
	static const char *const kinds[] = {"spawned", "escalated", "items"};
	const struct json *rejected = json_get(before, "rejected");
	struct json *o;
	size_t i;

	if (json_length(rejected) == 0)
		return growth != NULL ? json_ref(growth) : json_null();
	o = json_type(growth) == JSON_OBJECT ? json_ref(growth) : json_object();
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (json_get(o, kinds[i]) == NULL)
			o = json_set(o, kinds[i], json_int(0));
	return json_set(o, "rejected", json_ref(rejected));
}

static int
set_growth(struct store *s, const char *run_id, const struct json *growth, struct err *e)
{
	struct json *all = NULL;
	int rc;

	if (read_metadata(s, run_id, &all, e) != 0)
		return -1;
	if (json_get(all, META_GROWTH) == NULL && json_length(growth) == 0) {
		json_unref(all);
		return 0;
	}
	all = json_set(all, META_GROWTH, with_rejected(growth, json_get(all, META_GROWTH)));
	rc = all != NULL ? write_metadata(s, run_id, all, e) : err_nomem(e);
	json_unref(all);
	return rc;
}

int
session_counted(struct store *s, const char *run_id, const struct json *counts, struct err *e)
{
	int64_t done, total;
	int rc;

	if (!json_int64(json_get(counts, "done"), &done) || !json_int64(json_get(counts, "total"), &total))
		return 0;
	if (store_begin(s, e) != 0)
		return err_wrap(e, "run %s: counts", run_id);
	rc = session_progress(s, run_id, done, total, e);
	if (rc == 0)
		rc = set_growth(s, run_id, json_get(counts, META_GROWTH), e);
	return store_end(s, rc, e) == 0 ? 0 : err_wrap(e, "run %s: counts", run_id);
}

int
session_metadata(struct store *s, const char *run_id, const char *name, struct json *value,
    struct err *e)
{
	if (store_begin(s, e) != 0) {
		json_unref(value);
		return err_wrap(e, "run %s: metadata", run_id);
	}
	if (store_end(s, session_set_inside(s, run_id, name, value, e), e) != 0)
		return err_wrap(e, "run %s: metadata", run_id);
	return 0;
}
