#include "migrate.h"

#include <stdio.h>

static const char step_1[] =
#include "schema.inc"
    ;

/* Some databases were made before the labels stood beside their run. */
static const char step_2[] =
    "CREATE TABLE IF NOT EXISTS labels ("
    "	session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,"
    "	name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (session_id, name)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS labels_by_value ON labels(name, value);"
    "ALTER TABLE sessions ADD COLUMN labels JSON NOT NULL DEFAULT '{}';"
    "UPDATE sessions SET labels = (SELECT json_group_object(l.name, l.value) FROM labels l "
    "WHERE l.session_id = sessions.id) "
    "WHERE EXISTS (SELECT 1 FROM labels l WHERE l.session_id = sessions.id);";

static const char step_3[] =
#include "schema-jobs.inc"
    ;

/* A step that was released never changes. */
static const struct migration steps[] = {
    {.sql = step_1},
    {.sql = step_2, .additive = true,
	.missing = "SELECT NOT EXISTS (SELECT 1 FROM pragma_table_info('sessions') "
		   "WHERE name = 'labels')"},
    {.sql = step_3, .additive = true},
};
_Static_assert(sizeof(steps) / sizeof(steps[0]) == STORE_SCHEMA_VERSION,
    "one step for each version of the schema");

/* The one number that a query gives. */
static int
query_int(struct store *s, const char *sql, int *out, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);

	if (rc != SQLITE_OK)
		return store_error(s, sqlite3_extended_errcode(s->db), "read the schema", e);
	rc = store_step(s, q, e);
	if (rc == 1)
		*out = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	return rc == 1 ? 0 : -1;
}

static int
check_version(struct store *s, int version, int count, struct err *e)
{
	if (version <= count && version >= 0)
		return 0;
	err_set(e, ERR_REFUSED, "'%s' was written by a newer flowsup (schema %d, this program knows %d)",
	    s->path, version, count);
	return err_hint(e, "flowsup version; which -a flowsup");
}

/* ---- What is to be done ---- */

/* What the database says of itself, read as a whole before and again inside the transaction. */
struct standing {
	int version;
	int noted; /* whether schema_steps is there */
	int live;  /* runs with a worker */
};

static int
read_standing(struct store *s, int count, struct standing *st, struct err *e)
{
	*st = (struct standing){0};
	if (query_int(s, "PRAGMA user_version", &st->version, e) != 0 ||
	    check_version(s, st->version, count, e) != 0)
		return -1;
	if (st->version == 0)
		return 0;
	return query_int(s, "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'schema_steps')",
	    &st->noted, e);
}

static int
count_live(struct store *s, struct standing *st, struct err *e)
{
	if (st->version == 0)
		return 0;
	return query_int(s, "SELECT COUNT(*) FROM sessions "
			    "WHERE status IN ('starting', 'running', 'paused')", &st->live, e);
}

static int
is_noted(struct store *s, const struct standing *st, int step, int *out, struct err *e)
{
	char sql[96];

	*out = 0;
	if (!st->noted)
		return 0;
	snprintf(sql, sizeof(sql), "SELECT EXISTS (SELECT 1 FROM schema_steps WHERE step = %d)", step);
	return query_int(s, sql, out, e);
}

static bool
must_wait(const struct migration *m, const struct standing *st, int step)
{
	return !m->additive && step > st->version && st->live > 0;
}

/* All are noted in the usual case, which is one look. */
static int
count_noted(struct store *s, const struct standing *st, int count, int *out, struct err *e)
{
	char sql[96];

	*out = 0;
	if (!st->noted)
		return 0;
	snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM schema_steps WHERE step <= %d", count);
	return query_int(s, sql, out, e);
}

/* ---- Doing it ---- */

static int
note(struct store *s, const struct migration *m, int step, struct err *e)
{
	char sql[160];

	snprintf(sql, sizeof(sql), "INSERT INTO schema_steps(step, done_at) VALUES(%d, %.6f)", step,
	    store_now());
	if (store_execute(s, sql, e) != 0)
		return -1;
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", step);
	return m->additive ? 0 : store_execute(s, sql, e);
}

/* One of a database that is older than schema_steps was done by user_version. */
static int
do_step(struct store *s, const struct migration *m, const struct standing *st, int step,
    struct err *e)
{
	int missing = 1;

	if (m->missing != NULL && query_int(s, m->missing, &missing, e) != 0)
		return -1;
	if (missing && (m->additive || step > st->version) && store_execute(s, m->sql, e) != 0)
		return err_wrap(e, "step %d of the schema", step);
	return m->additive || step > st->version
	    ? note(s, m, step, e)
	    : note(s, &(struct migration){.additive = true}, step, e);
}

static int
do_steps(struct store *s, const struct migration *list, int count, int *waiting, struct err *e)
{
	struct standing st;
	int step, done;

	/* Another process may just have done them. */
	if (read_standing(s, count, &st, e) != 0 || count_live(s, &st, e) != 0)
		return -1;
	if (store_execute(s, "CREATE TABLE IF NOT EXISTS schema_steps("
			     "step INTEGER PRIMARY KEY, done_at REAL NOT NULL)", e) != 0)
		return -1;
	for (step = 1, *waiting = 0; step <= count; step++) {
		if (is_noted(s, &st, step, &done, e) != 0)
			return -1;
		if (done)
			continue;
		if (must_wait(&list[step - 1], &st, step))
			++*waiting;
		else if (do_step(s, &list[step - 1], &st, step, e) != 0)
			return -1;
	}
	return 0;
}

/* Whether anything can be done now; what only waits must not take the one write lock each time. */
static int
look_ahead(struct store *s, const struct migration *list, int count, const struct standing *st,
    int *due, int *waiting, struct err *e)
{
	int step, done;

	for (step = 1, *due = *waiting = 0; step <= count; step++) {
		if (is_noted(s, st, step, &done, e) != 0)
			return -1;
		if (done)
			continue;
		if (must_wait(&list[step - 1], st, step))
			++*waiting;
		else
			++*due;
	}
	return 0;
}

int
migrate_to(struct store *s, const struct migration *list, int count, int *waiting, struct err *e)
{
	struct standing st;
	int noted, due;

	*waiting = 0;
	if (read_standing(s, count, &st, e) != 0 || count_noted(s, &st, count, &noted, e) != 0)
		return -1;
	if (noted == count)
		return 0;
	if (count_live(s, &st, e) != 0 || look_ahead(s, list, count, &st, &due, waiting, e) != 0)
		return -1;
	if (due == 0)
		return 0;
	if (store_begin(s, e) != 0)
		return -1;
	return store_end(s, do_steps(s, list, count, waiting, e), e);
}

int
migrate_count_unknown(struct store *s, int *count, struct err *e)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM schema_steps WHERE step > %d", STORE_SCHEMA_VERSION);
	return query_int(s, sql, count, e);
}

int
migrate(struct store *s, struct err *e)
{
	return migrate_to(s, steps, STORE_SCHEMA_VERSION, &s->steps_waiting, e);
}
