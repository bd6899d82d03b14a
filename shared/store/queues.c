/* Queues: names with slots, and which of the runs that wait may start. */
#include <stdlib.h>
#include <string.h>

#include "session_row.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool
queue_name_is_valid(const char *name)
{
	size_t len = strlen(name);

	return len <= QUEUE_NAME_MOST && strspn(name, LETTERS) > 0 &&
	    strspn(name, LETTERS "._-") == len;
}

int
queue_set(struct store *s, const char *name, int64_t slots, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_QUEUE_SET, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, name) || !bind_int(q, 2, slots))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

int
queue_each(struct store *s, queue_each_fn *each, void *arg, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_QUEUES, e);
	struct queue_row row;
	int rc = 1, stop = 0;

	if (q == NULL)
		return -1;
	while (stop == 0 && (rc = store_step(s, q, e)) == 1) {
		row.name = column_text(q, 0);
		row.slots = sqlite3_column_int64(q, 1);
		row.running = sqlite3_column_int64(q, 2);
		row.waiting = sqlite3_column_int64(q, 3);
		row.known = sqlite3_column_int(q, 4) != 0;
		stop = each(arg, &row);
	}
	sqlite3_reset(q);
	return rc < 0 ? -1 : 0;
}

int
queue_holders(struct store *s, const char *queue, int64_t *slots, queue_run_fn *each, void *arg, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_HOLDERS, e);
	int rc = 1, stop = 0;

	*slots = 0;
	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, queue))
		return err_nomem(e);
	while (stop == 0 && (rc = store_step(s, q, e)) == 1) {
		*slots = sqlite3_column_int64(q, 0);
		if (sqlite3_column_type(q, 1) != SQLITE_NULL)
			stop = each(arg, column_text(q, 1));
	}
	sqlite3_reset(q);
	return rc < 0 ? -1 : 0;
}

/* ---- What may start ---- */

struct room {
	char name[QUEUE_NAME_MOST + 1];
	int64_t left;
};
/* Only queues with a limit. */
struct rooms {
	struct room *list;
	size_t count, cap;
	bool failed;
};

static int
note_room(void *arg, const struct queue_row *q)
{
	struct rooms *r = arg;
	size_t cap = r->cap > 0 ? r->cap * 2 : 8;
	struct room *more;

	if (q->slots == 0 || strlen(q->name) > QUEUE_NAME_MOST)
		return 0;
	if (r->count == r->cap) {
		more = reallocarray(r->list, cap, sizeof(*more));
		if (more == NULL) {
			r->failed = true;
			return 1;
		}
		r->list = more;
		r->cap = cap;
	}
	snprintf(r->list[r->count].name, sizeof(r->list[r->count].name), "%s", q->name);
	r->list[r->count++].left = q->slots - q->running;
	return 0;
}

static bool
takes_slot(struct rooms *r, const char *name)
{
	size_t i;

	for (i = 0; i < r->count; i++)
		if (strcmp(r->list[i].name, name) == 0)
			return r->list[i].left-- > 0;
	return true;
}

/* One that has not been looked at yet is looked at, so that its row says what it waits for. */
static bool
is_wanted(struct rooms *r, sqlite3_stmt *q)
{
	bool has = sqlite3_column_int(q, 3) > 0 || takes_slot(r, column_text(q, 1));

	return has || strcmp(column_text(q, 2), "run.queued.new") == 0;
}

static int
each_startable(struct store *s, struct rooms *r, queue_run_fn *each, void *arg, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_STARTABLE, e);
	int rc = 1, stop = 0;

	if (q == NULL)
		return -1;
	while (stop == 0 && (rc = store_step(s, q, e)) == 1)
		if (is_wanted(r, q))
			stop = each(arg, column_text(q, 0));
	sqlite3_reset(q);
	return rc < 0 ? -1 : 0;
}

int
queue_startable(struct store *s, queue_run_fn *each, void *arg, struct err *e)
{
	struct rooms r = {0};
	int rc = queue_each(s, note_room, &r, e);

	if (rc == 0 && r.failed)
		rc = err_nomem(e);
	if (rc == 0)
		rc = each_startable(s, &r, each, arg, e);
	free(r.list);
	return rc;
}
