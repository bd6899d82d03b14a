/* The schema by numbered steps: databases of older layouts, steps that wait, newer databases. */
#include "test_home.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "shared/store/migrate.h"

/* The layout before labels stood beside their run, with what somebody had in it. */
static const char older[] =
    "PRAGMA journal_mode = WAL;"
    "CREATE TABLE invocations (id TEXT PRIMARY KEY, created_at REAL NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE plays (id TEXT PRIMARY KEY, invocation_id TEXT NOT NULL REFERENCES invocations(id) "
    "ON DELETE CASCADE, name TEXT NOT NULL, arguments JSON) WITHOUT ROWID;"
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, invocation_id TEXT NOT "
    "NULL REFERENCES invocations(id), origin TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, "
    "status TEXT NOT NULL, reason_code TEXT NOT NULL, reason TEXT NOT NULL, resumed_from TEXT "
    "REFERENCES sessions(id) ON DELETE SET NULL, created_at REAL NOT NULL, started_at REAL, ended_at "
    "REAL, done INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0, metadata JSON NOT NULL "
    "DEFAULT '{}');"
    "CREATE UNIQUE INDEX sessions_by_time ON sessions(created_at);"
    "CREATE INDEX sessions_by_origin ON sessions(origin);"
    "CREATE INDEX sessions_by_invocation ON sessions(invocation_id);"
    "CREATE UNIQUE INDEX sessions_by_predecessor ON sessions(resumed_from) WHERE resumed_from IS NOT "
    "NULL;"
    "CREATE INDEX sessions_live ON sessions(status, created_at) WHERE status IN ('queued', 'starting', "
    "'running', 'paused');"
    "CREATE TABLE labels (session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, name TEXT "
    "NOT NULL, value TEXT NOT NULL, PRIMARY KEY (session_id, name)) WITHOUT ROWID;"
    "CREATE INDEX labels_by_value ON labels(name, value);"
    "CREATE TABLE status_transitions (seq INTEGER PRIMARY KEY, session_id TEXT NOT NULL REFERENCES "
    "sessions(id) ON DELETE CASCADE, status TEXT NOT NULL, reason_code TEXT NOT NULL, reason TEXT NOT "
    "NULL, at REAL NOT NULL);"
    "CREATE INDEX status_transitions_by_session ON status_transitions(session_id, seq);"
    "CREATE TABLE session_controls (id TEXT PRIMARY KEY, session_id TEXT NOT NULL REFERENCES "
    "sessions(id) ON DELETE CASCADE, verb TEXT NOT NULL, payload JSON, created_at REAL NOT NULL, "
    "claimed_at REAL, applied_at REAL, result TEXT);"
    "CREATE INDEX session_controls_pending ON session_controls(session_id, applied_at) WHERE applied_at "
    "IS NULL;"
    "CREATE INDEX session_controls_by_time ON session_controls(session_id, created_at, id);"
    "CREATE TABLE queues (name TEXT PRIMARY KEY, slots INTEGER NOT NULL) WITHOUT ROWID;"
    "PRAGMA user_version = 1;"
    "INSERT INTO invocations VALUES('0123456789ab', 1);"
    "INSERT INTO sessions(id, run_id, invocation_id, origin, kind, name, status, reason_code, reason, "
    "created_at) VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '20260101T000000-000001', '0123456789ab', "
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'flow', 'labelled', 'running', 'run.running.started', 'x', 2),"
    "('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', '20260101T000000-000002', '0123456789ab', "
    "'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'flow', 'plain', 'completed', 'run.completed.all', 'x', 3);"
    "INSERT INTO labels VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'who', 'o''neill \"x\"'),"
    "('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'why', '');"
    "INSERT INTO session_controls(id, session_id, verb, created_at) VALUES("
    "'cccccccccccccccccccccccccccccccc', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'pause', 4);";

static void
database_path(const struct test_home *t, char to[600])
{
	snprintf(to, 600, "%s/state.db", t->home.path);
}

static void
execute(const struct test_home *t, const char *sql)
{
	char path[600];
	sqlite3 *db;

	database_path(t, path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int
number(const struct test_home *t, const char *sql)
{
	char path[600];
	sqlite3_stmt *q;
	sqlite3 *db;
	int n;

	database_path(t, path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	n = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return n;
}

static void
make_older(struct test_home *t)
{
	char path[600];

	store_close(t->store);
	t->store = NULL;
	database_path(t, path);
	assert_int_equal(unlinkat(t->home.fd, "state.db", 0), 0);
	unlinkat(t->home.fd, "state.db-wal", 0);
	unlinkat(t->home.fd, "state.db-shm", 0);
	execute(t, older);
	assert_int_equal(fchmodat(t->home.fd, "state.db", 0600, 0), 0);
}

static void
reopen(struct test_home *t)
{
	struct err e = {0};

	assert_works(store_open(&t->home, STORE_COMMAND, true, STORE_BUSY_MS, &t->store, &e), e);
}

static void
test_migrate__a_new_database_has_every_step(void **state)
{
	struct test_home *t = *state;

	assert_int_equal(number(t, "SELECT COUNT(*) FROM schema_steps"), STORE_SCHEMA_VERSION);
	/* No step since the first one keeps older programs out. */
	assert_int_equal(number(t, "PRAGMA user_version"), 1);
	assert_int_equal(store_steps_waiting(t->store), 0);
}

static void
test_migrate__labels_come_to_their_runs(void **state)
{
	struct test_home *t = *state;
	struct session labelled, plain;
	struct err e = {0};
	char id[UUID_TEXT];

	make_older(t);
	reopen(t);
	assert_works(session_read(t->store, "20260101T000000-000001", &labelled, &e), e);
	assert_works(session_read(t->store, "20260101T000000-000002", &plain, &e), e);
	assert_int_equal(json_length(labelled.labels), 2);
	assert_string_equal(json_cstr_of(json_get(labelled.labels, "who")), "o'neill \"x\"");
	assert_string_equal(json_cstr_of(json_get(labelled.labels, "why")), "");
	assert_int_equal(json_length(plain.labels), 0);
	assert_int_equal(number(t, "SELECT COUNT(*) FROM session_controls"), 1);
	assert_works(control_insert(t->store, labelled.run_id, "pause", NULL, id, &e), e);
	session_clear(&labelled);
	session_clear(&plain);
	/* Once: opened again, nothing is left to do. */
	store_close(t->store);
	reopen(t);
	assert_int_equal(number(t, "SELECT COUNT(*) FROM schema_steps"), STORE_SCHEMA_VERSION);
}

/* All that were done are undone when one of them fails. */
static void
test_migrate__is_one_transaction(void **state)
{
	static const struct migration list[] = {
	    {.sql = ""}, {.sql = ""}, {.sql = ""},
	    {.sql = "CREATE TABLE made_first(x)", .additive = true},
	    {.sql = "CREATE TABLE made_second(x); nonsense", .additive = true}};
	struct test_home *t = *state;
	struct err e = {0};
	int waiting;

	assert_int_equal(migrate_to(t->store, list, 5, &waiting, &e), -1);
	assert_non_null(strstr(e.msg, "step 5"));
	assert_int_equal(number(t, "SELECT COUNT(*) FROM sqlite_schema WHERE name LIKE 'made_%'"), 0);
	assert_int_equal(number(t, "SELECT COUNT(*) FROM schema_steps"), STORE_SCHEMA_VERSION);
}

static void
test_migrate__only_additive_steps_while_runs_are_live(void **state)
{
	static const struct migration list[] = {{.sql = ""}, {.sql = ""}, {.sql = ""},
	    {.sql = "ALTER TABLE queues RENAME COLUMN slots TO places"},
	    {.sql = "CREATE TABLE added(x)", .additive = true}};
	static const char renamed[] =
	    "SELECT COUNT(*) FROM pragma_table_info('queues') WHERE name = 'places'";
	struct test_home *t = *state;
	struct session run;
	struct store *later = NULL;
	struct err e = {0};
	int waiting = -1;

	test_home_running(t, "flow", &run);
	assert_works(migrate_to(t->store, list, 5, &waiting, &e), e);
	assert_int_equal(waiting, 1);
	assert_int_equal(number(t, "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'added'"), 1);
	assert_int_equal(number(t, renamed), 0);
	assert_int_equal(number(t, "PRAGMA user_version"), 1);
	test_home_move(t, run.run_id, STATUS_COMPLETED, "run.completed.all");
	assert_works(migrate_to(t->store, list, 5, &waiting, &e), e);
	assert_int_equal(waiting, 0);
	assert_int_equal(number(t, renamed), 1);
	assert_int_equal(number(t, "PRAGMA user_version"), STORE_SCHEMA_VERSION + 1);
	/* From now on a program that does not know the step is kept out. */
	assert_fails(store_open(&t->home, STORE_COMMAND, true, 0, &later, &e), ERR_REFUSED, e);
	assert_non_null(strstr(e.msg, "newer flowsup"));
	session_clear(&run);
}

/* What only waits takes no lock: a busy database is then no obstacle. */
static void
test_migrate__what_waits_is_in_nobodys_way(void **state)
{
	static const struct migration list[] = {{.sql = ""}, {.sql = ""}, {.sql = ""},
	    {.sql = "nonsense"}};
	struct test_home *t = *state;
	struct session run;
	struct err e = {0};
	char path[600];
	sqlite3 *db;
	int waiting = 0;

	test_home_running(t, "flow", &run);
	database_path(t, path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_works(migrate_to(t->store, list, 4, &waiting, &e), e);
	assert_int_equal(waiting, 1);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	session_clear(&run);
}

static int
open_older(struct store *s, void *arg)
{
	struct session run;
	struct err e = {0};
	int rc = session_read(s, arg, &run, &e);

	if (rc != 0)
		fprintf(stderr, "# %s\n", e.msg);
	else
		session_clear(&run);
	return rc != 0;
}

/* Eight processes open the older database at once: one does the steps, all go on. */
static void
test_migrate__is_done_once_by_many(void **state)
{
	struct test_home *t = *state;
	char run_id[] = "20260101T000000-000001";
	pid_t pids[8];
	int i;

	make_older(t);
	for (i = 0; i < 8; i++)
		pids[i] = test_home_fork(t, open_older, run_id);
	for (i = 0; i < 8; i++)
		assert_int_equal(test_home_join(pids[i]), 0);
	assert_int_equal(number(t, "SELECT COUNT(*) FROM schema_steps"), STORE_SCHEMA_VERSION);
}

static const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, test_home_setup, test_home_teardown)
    CASE(test_migrate__a_new_database_has_every_step),
    CASE(test_migrate__labels_come_to_their_runs),
    CASE(test_migrate__is_one_transaction),
    CASE(test_migrate__only_additive_steps_while_runs_are_live),
    CASE(test_migrate__what_waits_is_in_nobodys_way),
    CASE(test_migrate__is_done_once_by_many),
};

TEST_MAIN("migrate", tests)
