/* What belongs to a job: its restarts, its key, its worker's place, and whether anything is to do. */
#include <assert.h>
#include <string.h>

#include "session_row.h"

bool
session_is_restarting(const struct session *s)
{
	return s->status == STATUS_CRASHED && s->restarts_left > 0 && s->resumed_as_run[0] == '\0';
}

bool
session_is_draining(const struct session *s)
{
	return s->status == STATUS_RUNNING && s->reason_code != NULL && strcmp(s->reason_code, REASON_DEADLINE) == 0;
}

/* A statement whose only parameter is an id. */
static int
run_with_id(struct store *s, enum statement which, const char *id, int *changed, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, which, e);

	if (q == NULL)
		return -1;
	return bind_text(q, 1, id) ? store_run(s, q, changed, e) : err_nomem(e);
}

int
give_up_inside(struct store *s, const char *run_id, const char *why, bool *gave_up, struct err *e)
{
	int changed = 0;

	if (run_with_id(s, Q_GIVE_UP, run_id, &changed, e) != 0)
		return -1;
	*gave_up = changed > 0;
	if (changed == 0 || why == NULL)
		return 0;
	return session_set_inside(s, run_id, META_NOT_RESTARTED,
	    json_string_lossy(slice_of(why), NULL), e);
}

int
session_give_up(struct store *s, const char *run_id, const char *why, bool *gave_up, struct err *e)
{
	bool did = false;

	if (store_begin(s, e) != 0 || store_end(s, give_up_inside(s, run_id, why, &did, e), e) != 0)
		return err_wrap(e, "run %s: restarts", run_id);
	if (gave_up != NULL)
		*gave_up = did;
	return 0;
}

static int
remove_inside(struct store *s, const char *run_id, const struct session *row, struct err *e)
{
	int changed = 0;

	if (run_with_id(s, Q_REMOVE, run_id, &changed, e) != 0)
		return -1;
	if (changed == 0)
		return err_set(e, ERR_REFUSED, "run %s is not at its end", run_id);
	return run_with_id(s, Q_REMOVE_CALLS, row->invocation_id, NULL, e);
}

int
session_remove(struct store *s, const char *run_id, struct err *e)
{
	struct session row;
	int rc;

	if (session_read(s, run_id, &row, e) != 0) {
		if (e->code != ERR_NOTFOUND)
			return -1;
		err_clear(e);
		return 0;
	}
	rc = store_begin(s, e);
	if (rc == 0)
		rc = store_end(s, remove_inside(s, run_id, &row, e), e);
	session_clear(&row);
	return rc == 0 ? 0 : err_wrap(e, "run %s: remove its row", run_id);
}

int
store_has_work(struct store *s, bool *any, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_HAS_WORK, e);
	int rc;

	if (q == NULL)
		return -1;
	rc = store_step(s, q, e);
	if (rc < 0)
		return -1;
	*any = sqlite3_column_int(q, 0) != 0;
	sqlite3_reset(q);
	return 0;
}

/* ---- Keys ---- */

/* A run that wants to go on with a key. */
struct claimant {
	const char *key, *origin;
	int64_t restarts_done;
	double created_at;
};

/* 1: found, 0: nobody goes on with this key. */
static int
find_blocker(struct store *s, const struct claimant *c, char run_id[RUN_ID_TEXT], bool *being_ended,
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_UNIQUE, e);
	int rc;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, c->key) || !bind_text(q, 2, c->origin) ||
	    !bind_int(q, 3, c->restarts_done) || !bind_real(q, 4, c->created_at))
		return err_nomem(e);
	rc = store_step(s, q, e);
	if (rc != 1)
		return rc;
	column_copy(q, 0, run_id, RUN_ID_TEXT);
	*being_ended = sqlite3_column_int(q, 1) != 0;
	sqlite3_reset(q);
	return 1;
}

/* Between the look at what runs and its stop it could die, and what it leaves would run beside. */
static int
stop_replaced(struct store *s, const struct claimant *c, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_UNIQUE_LIVE, e);
	char run_id[RUN_ID_TEXT];
	int rc;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, c->key) || !bind_text(q, 2, c->origin))
		return err_nomem(e);
	rc = store_step(s, q, e);
	if (rc != 1)
		return rc;
	column_copy(q, 0, run_id, RUN_ID_TEXT);
	sqlite3_reset(q);
	return control_stop_inside(s, run_id, e);
}

int
unique_check(struct store *s, const struct session_new *n, const char *origin, double now,
    struct err *e)
{
	const struct claimant c = {n->unique_key, origin, n->restarts_done, now};
	char blocker[RUN_ID_TEXT] = "";
	bool being_ended;
	int rc = 0;

	/* A resume goes on with a job that has its key already; it waits when it must. */
	if (n->unique_key != NULL)
		rc = find_blocker(s, &c, blocker, &being_ended, e);
	if (rc < 0)
		return -1;
	if (n->blocker != NULL)
		memcpy(n->blocker, blocker, sizeof(blocker));
	if (rc == 0 || n->behind)
		return rc == 1 && n->replace ? stop_replaced(s, &c, e) : 0;
	return err_set(e, ERR_RUNNING, "run %s goes on with the key '%s'", blocker, n->unique_key);
}

static int
count_inside(struct store *s, const char *run_id, double *first, int64_t *count, struct err *e)
{
	struct json *blocks = json_object();
	double now = store_now();
	struct session row;

	if (session_read(s, run_id, &row, e) != 0) {
		json_unref(blocks);
		return -1;
	}
	*first = now;
	*count = 0;
	(void)json_int64(json_get(json_get(row.metadata, "blocks"), "count"), count);
	(void)json_double(json_get(json_get(row.metadata, "blocks"), "first"), first);
	++*count;
	session_clear(&row);
	blocks = json_set(blocks, "count", json_int(*count));
	blocks = json_set(blocks, "first", json_real(*first));
	blocks = json_set(blocks, "last", json_real(now));
	if (session_set_inside(s, run_id, "blocks", blocks, e) != 0)
		return -1;
	return now - *first < UNIQUE_LONG_S ? 0
					    : notice_add_at(s, run_id, "blocking", true, now, e);
}

int
session_blocks(struct store *s, const char *run_id, double *first, int64_t *count, struct err *e)
{
	if (store_begin(s, e) != 0 || store_end(s, count_inside(s, run_id, first, count, e), e) != 0)
		return err_wrap(e, "run %s: starts that it kept waiting", run_id);
	return 0;
}

/* ---- What a run in the queue waits for ---- */

static int
find_slot(struct store *s, const struct session *r, bool *none, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_STANDING, e);
	int64_t slots;
	int rc;

	*none = false;
	/* An automatic resume has its job's slot. */
	if (r->restarts_done > 0 || r->queue[0] == '\0')
		return 0;
	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, r->queue) || !bind_real(q, 2, r->created_at))
		return err_nomem(e);
	rc = store_step(s, q, e);
	if (rc != 1)
		return rc;
	slots = sqlite3_column_int64(q, 0);
	*none = slots > 0 && sqlite3_column_int64(q, 1) >= slots;
	sqlite3_reset(q);
	return 0;
}

int
unique_holder(struct store *s, const struct session *queued, char run_id[RUN_ID_TEXT], bool *being_ended,
    struct err *e)
{
	const struct claimant c = {queued->unique_key, queued->origin, queued->restarts_done,
	    queued->created_at};

	run_id[0] = '\0';
	*being_ended = false;
	if (queued->unique_key[0] == '\0')
		return 0;
	return find_blocker(s, &c, run_id, being_ended, e) < 0 ? -1 : 0;
}

int
queue_standing(struct store *s, const struct session *queued, struct queue_standing *out, struct err *e)
{
	*out = (struct queue_standing){0};
	if (find_slot(s, queued, &out->no_slot, e) != 0)
		return -1;
	return unique_holder(s, queued, out->blocker, &out->being_ended, e);
}
