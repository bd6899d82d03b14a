#include "test_home.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

/* ---- Opening ---- */

static void
test_store__files_are_the_owners_alone(void **state)
{
	static const char *const names[] = {"state.db", "state.db-wal", "state.db-shm"};
	struct test_home *t = *state;
	struct stat st;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(fstatat(t->home.fd, names[i], &st, 0), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
}

static void
test_store__is_not_made_without_create(void **state)
{
	struct test_dir dir;
	struct home h;
	struct store *s = NULL;
	struct err e = {0};

	(void)state;
	test_dir_make(&dir);
	assert_works(home_open(dir.path, true, &h, &e), e);
	assert_fails(store_open(&h, STORE_COMMAND, false, 0, &s, &e), ERR_NOTFOUND, e);
	assert_null(s);
	home_close(&h);
	test_dir_remove(&dir);
}

/* Commits of a database that is closed and opened again, with all of its settings. */
static void
test_store__keeps_what_was_committed(void **state)
{
	struct test_home *t = *state;
	struct session made, read;
	struct err e = {0};

	test_home_run(t, "flow", NULL, &made);
	store_close(t->store);
	assert_works(store_open(&t->home, STORE_SUPERVISOR, false, 0, &t->store, &e), e);
	assert_works(store_checkpoint(t->store, &e), e);
	assert_works(session_read(t->store, made.run_id, &read, &e), e);
	assert_string_equal(read.session_id, made.session_id);
	assert_string_equal(read.origin, made.session_id);
	session_clear(&made);
	session_clear(&read);
}

/* What another program did to the file, through SQLite as the rule demands. */
static void
execute(const struct test_home *t, const char *sql)
{
	char path[600];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/state.db", t->home.path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void
test_store__refuses_a_newer_schema(void **state)
{
	struct test_home *t = *state;
	struct store *s = NULL;
	struct err e = {0};

	store_close(t->store);
	t->store = NULL;
	execute(t, "PRAGMA user_version = 99");
	assert_fails(store_open(&t->home, STORE_COMMAND, true, 0, &s, &e), ERR_REFUSED, e);
	assert_non_null(strstr(e.msg, "newer flowsup"));
	assert_string_not_equal(e.hint, "");
}

static void
test_store__says_when_it_is_damaged(void **state)
{
	struct test_home *t = *state;
	struct store *s = NULL;
	struct err e = {0};
	char text[8193];

	store_close(t->store);
	t->store = NULL;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	/* With the log left beside it SQLite would put everything right again. */
	assert_int_equal(unlinkat(t->home.fd, "state.db-wal", 0), 0);
	assert_int_equal(unlinkat(t->home.fd, "state.db", 0), 0);
	test_file_write(t->home.fd, "state.db", text);
	assert_int_equal(fchmodat(t->home.fd, "state.db", 0600, 0), 0);
	assert_fails(store_open(&t->home, STORE_COMMAND, true, 0, &s, &e), ERR_IO, e);
	assert_non_null(strstr(e.msg, "damaged"));
	assert_non_null(strstr(e.msg, "state.db"));
	assert_non_null(strstr(e.hint, "integrity_check"));
}

static void
test_store__refuses_what_is_no_file_of_ours(void **state)
{
	struct test_home *t = *state;
	struct store *s = NULL;
	struct err e = {0};

	assert_int_equal(fchmodat(t->home.fd, "state.db", 0666, 0), 0);
	assert_fails(store_open(&t->home, STORE_COMMAND, true, 0, &s, &e), ERR_PERMISSION, e);
	store_close(t->store);
	t->store = NULL;
	assert_int_equal(unlinkat(t->home.fd, "state.db", 0), 0);
	assert_int_equal(mkfifoat(t->home.fd, "state.db", 0600), 0);
	assert_fails(store_open(&t->home, STORE_COMMAND, true, 0, &s, &e), ERR_IDENTITY, e);
}

/* Through a second connection: the store has no call that keeps a lock. */
struct holding {
	char path[600];
	int ready[2], leave[2];
};

static int
hold_the_write_lock(struct store *s, void *arg)
{
	struct holding *h = arg;
	sqlite3 *db;
	char c;

	(void)s;
	if (sqlite3_open(h->path, &db) != SQLITE_OK ||
	    sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
	    write(h->ready[1], "x", 1) != 1 || read(h->leave[0], &c, 1) != 1)
		return 1;
	if (sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
		return 1;
	return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}

static void
test_store__a_busy_database_is_said_to_be_busy(void **state)
{
	struct test_home *t = *state;
	struct session run;
	struct store *quick = NULL;
	struct holding h;
	struct err e = {0};
	char c, id[UUID_TEXT];
	bool moved;
	pid_t pid;

	test_home_running(t, "flow", &run);
	snprintf(h.path, sizeof(h.path), "%s/state.db", t->home.path);
	assert_int_equal(pipe(h.ready), 0);
	assert_int_equal(pipe(h.leave), 0);
	pid = test_home_fork(t, hold_the_write_lock, &h);
	assert_int_equal(read(h.ready[0], &c, 1), 1);
	assert_works(store_open(&t->home, STORE_WORKER, false, 0, &quick, &e), e);
	assert_fails(session_transition(quick, run.run_id, STATUS_COMPLETED, "run.completed.all",
			 NULL, 3, &moved, &e),
	    ERR_BUSY, e);
	assert_fails(control_insert(quick, run.run_id, "pause", NULL, id, &e), ERR_BUSY, e);
	/* Readers are never in anybody's way. */
	assert_int_equal(test_home_status(t, run.run_id), STATUS_RUNNING);
	assert_int_equal(write(h.leave[1], "x", 1), 1);
	assert_int_equal(test_home_join(pid), 0);
	assert_works(control_insert(quick, run.run_id, "pause", NULL, id, &e), e);
	store_close(quick);
	session_clear(&run);
	close(h.ready[0]);
	close(h.ready[1]);
	close(h.leave[0]);
	close(h.leave[1]);
}

static int
insert_one(struct store *s, void *arg)
{
	char run_id[RUN_ID_TEXT], session_id[UUID_TEXT], invocation_id[INVOCATION_ID_TEXT];
	struct session_new n = {.run_id = run_id,
	    .session_id = session_id,
	    .invocation_id = invocation_id,
	    .kind = "flow",
	    .name = arg};
	struct err e = {0};

	if (run_id_make(run_id, &e) != 0 || uuid_make(session_id, &e) != 0 ||
	    invocation_id_make(invocation_id, &e) != 0 || session_insert(s, &n, &e) != 0) {
		fprintf(stderr, "# %s\n", e.msg);
		return 1;
	}
	return 0;
}

static int
count(void *arg, const struct session *s)
{
	(void)s;
	++*(int *)arg;
	return 0;
}

/* Eight processes make the same new database at once. */
static void
test_store__is_made_once_by_many(void **state)
{
	struct test_dir dir;
	struct test_home t = {0};
	struct err e = {0};
	char name[] = "n";
	pid_t pids[8];
	int i, round;

	(void)state;
	for (round = 0; round < 5; round++) {
		int rows = 0;

		test_dir_make(&dir);
		assert_works(home_open(dir.path, true, &t.home, &e), e);
		for (i = 0; i < 8; i++)
			pids[i] = test_home_fork(&t, insert_one, name);
		for (i = 0; i < 8; i++)
			assert_int_equal(test_home_join(pids[i]), 0);
		assert_works(store_open(&t.home, STORE_COMMAND, false, 0, &t.store, &e), e);
		assert_works(session_list(t.store, NULL, count, &rows, &e), e);
		assert_int_equal(rows, 8);
		store_close(t.store);
		home_close(&t.home);
		test_dir_remove(&dir);
	}
}

/* As an account that may not write. Returns the child's wait status. */
static int
open_as_nobody(struct test_home *t, enum err_code *code)
{
	int pipes[2], status;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err e = {0};
		struct store *s;

		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(2);
		store_open(&t->home, STORE_COMMAND, true, 0, &s, &e);
		_exit(write(pipes[1], &e.code, sizeof(e.code)) != sizeof(e.code));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(read(pipes[0], code, sizeof(*code)), sizeof(*code));
	close(pipes[0]);
	close(pipes[1]);
	return status;
}

static void
test_store__a_directory_that_may_not_be_written(void **state)
{
	struct test_home *t = *state;
	enum err_code code;

	store_close(t->store);
	t->store = NULL;
	assert_int_equal(unlinkat(t->home.fd, "state.db", 0), 0);
	assert_int_equal(fchmod(t->home.fd, 0555), 0);
	assert_int_equal(open_as_nobody(t, &code), 0);
	assert_int_equal(code, ERR_PERMISSION);
	assert_int_equal(fchmod(t->home.fd, 0700), 0);
}

static int
insert_until_it_fails(struct store *s, struct err *e)
{
	char run_id[RUN_ID_TEXT], session_id[UUID_TEXT], invocation_id[INVOCATION_ID_TEXT];
	struct session_new n = {.run_id = run_id,
	    .session_id = session_id,
	    .invocation_id = invocation_id,
	    .kind = "flow",
	    .name = "a name that takes some room in the log of the database"};
	int i;

	for (i = 0; i < 1000; i++)
		if (run_id_make(run_id, e) != 0 || uuid_make(session_id, e) != 0 ||
		    invocation_id_make(invocation_id, e) != 0 || session_insert(s, &n, e) != 0)
			break;
	fprintf(stderr, "# after %d runs: %s\n", i, e->msg);
	return i;
}

static int
insert_below_a_limit(struct store *s, void *arg)
{
	struct rlimit small = {400000, 400000};
	struct err e = {0};

	(void)arg;
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &small) != 0)
		return 3;
	if (insert_until_it_fails(s, &e) == 0)
		return 4;
	return err_exit_status(e.code);
}

static void
test_store__a_file_that_cannot_grow(void **state)
{
	struct test_home *t = *state;
	struct session run;
	struct err e = {0};
	int rows = 0;

	assert_int_equal(test_home_join(test_home_fork(t, insert_below_a_limit, NULL)), 74);
	assert_works(session_list(t->store, NULL, count, &rows, &e), e);
	assert_true(rows > 0);
	/* Nothing is half there, and the next write works where there is room. */
	test_home_run(t, "flow", NULL, &run);
	session_clear(&run);
}

/* In a mount namespace of its own, which goes with the process. */
static int
fill_a_small_disk(const char *path)
{
	struct home h;
	struct store *s;
	struct err e = {0};
	int rows = 0, made;

	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", path, "tmpfs", 0, "size=512k,mode=0700") != 0)
		return 77;
	if (home_open(path, true, &h, &e) != 0 ||
	    store_open(&h, STORE_COMMAND, true, STORE_BUSY_MS, &s, &e) != 0) {
		fprintf(stderr, "# %s\n", e.msg);
		return 3;
	}
	made = insert_until_it_fails(s, &e);
	if (made == 0 || e.code != ERR_NOSPACE)
		return 4;
	if (session_list(s, NULL, count, &rows, &e) != 0 || rows != made)
		return 5;
	store_close(s);
	home_close(&h);
	return 0;
}

static void
test_store__a_full_disk(void **state)
{
	struct test_dir dir;
	int status;
	pid_t pid;

	(void)state;
	test_dir_make(&dir);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fill_a_small_disk(dir.path));
	status = test_home_join(pid);
	test_dir_remove(&dir);
	if (status == 77) {
		print_message("# a small disk cannot be mounted by this account\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* ---- Sessions ---- */

static void
test_store__a_run_goes_through_its_life(void **state)
{
	struct test_home *t = *state;
	struct session run, read;
	struct err e = {0};
	bool moved = true;

	test_home_run(t, "flow", NULL, &run);
	assert_int_equal(run.status, STATUS_QUEUED);
	assert_string_equal(run.reason_code, "run.queued.new");
	assert_true(run.created_at > 1e9 && run.started_at == 0 && run.ended_at == 0);
	assert_works(session_transition(t->store, run.run_id, STATUS_COMPLETED, "run.completed.all",
			 NULL, 3, &moved, &e),
	    e);
	assert_false(moved);
	test_home_move(t, run.run_id, STATUS_STARTING, "run.starting.forked");
	test_home_move(t, run.run_id, STATUS_RUNNING, "run.running.started");
	assert_works(session_progress(t->store, run.run_id, 1, 4, &e), e);
	assert_works(session_transition(t->store, run.run_id, STATUS_CRASHED, "run.crashed.signal",
			 "the worker was killed by SIGKILL", -1, &moved, &e),
	    e);
	assert_true(moved);
	/* A late writer loses. */
	assert_works(session_transition(t->store, run.run_id, STATUS_COMPLETED, "run.completed.all",
			 NULL, 4, &moved, &e),
	    e);
	assert_false(moved);
	assert_works(session_read(t->store, run.run_id, &read, &e), e);
	assert_int_equal(read.status, STATUS_CRASHED);
	assert_string_equal(read.reason, "the worker was killed by SIGKILL");
	assert_int_equal(read.done, 1);
	assert_int_equal(read.total, 4);
	assert_true(read.started_at > 0 && read.ended_at >= read.started_at);
	session_clear(&run);
	session_clear(&read);
}

struct words {
	char text[256];
};

static int
add_word(void *arg, const struct transition *t)
{
	struct words *w = arg;

	snprintf(w->text + strlen(w->text), sizeof(w->text) - strlen(w->text), "%s ",
	    t->reason_code);
	return 0;
}

static void
test_store__every_transition_is_kept(void **state)
{
	struct test_home *t = *state;
	struct words w = {""};
	struct session run;
	struct err e = {0};

	test_home_running(t, "flow", &run);
	test_home_move(t, run.run_id, STATUS_RUNNING, "run.running.storage");
	test_home_move(t, run.run_id, STATUS_COMPLETED, "run.completed.all");
	assert_works(session_transitions(t->store, run.run_id, add_word, &w, &e), e);
	assert_string_equal(w.text,
	    "run.queued.new run.starting.forked run.running.started run.running.storage "
	    "run.completed.all ");
	session_clear(&run);
}

static void
test_store__metadata_members_are_set_one_by_one(void **state)
{
	struct test_home *t = *state;
	struct session run, read;
	struct err e = {0};
	int64_t n = 0;

	test_home_run(t, "flow", NULL, &run);
	assert_works(session_metadata(t->store, run.run_id, "a", json_int(1), &e), e);
	assert_works(session_metadata(t->store, run.run_id, "b", json_cstr("\xc3\xa4"), &e), e);
	assert_works(session_metadata(t->store, run.run_id, "a", json_int(2), &e), e);
	assert_works(session_read(t->store, run.run_id, &read, &e), e);
	assert_true(json_int64(json_get(read.metadata, "a"), &n) && n == 2);
	assert_string_equal(json_cstr_of(json_get(read.metadata, "b")), "\xc3\xa4");
	assert_works(session_metadata(t->store, run.run_id, "a", json_null(), &e), e);
	assert_works(session_metadata(t->store, run.run_id, "never", json_null(), &e), e);
	session_clear(&read);
	assert_works(session_read(t->store, run.run_id, &read, &e), e);
	assert_null(json_get(read.metadata, "a"));
	assert_non_null(json_get(read.metadata, "b"));
	assert_fails(session_metadata(t->store, "20260101T000000-000000", "a", json_int(1), &e),
	    ERR_NOTFOUND, e);
	session_clear(&run);
	session_clear(&read);
}

static void
test_store__one_successor_and_its_chain(void **state)
{
	struct test_home *t = *state;
	struct session a, b, c, found;
	struct session_new again = {0};
	char run_id[RUN_ID_TEXT], session_id[UUID_TEXT];
	struct err e = {0};

	test_home_running(t, "flow", &a);
	test_home_move(t, a.run_id, STATUS_CRASHED, "run.crashed.signal");
	test_home_run(t, "flow", a.session_id, &b);
	assert_string_equal(b.origin, a.session_id);
	assert_string_equal(b.invocation_id, a.invocation_id);
	assert_string_equal(b.resumed_from_run, a.run_id);
	test_home_move(t, b.run_id, STATUS_CRASHED, "run.crashed.unknown");
	test_home_run(t, "flow", b.session_id, &c);
	assert_string_equal(c.origin, a.session_id);
	assert_works(session_latest(t->store, a.run_id, &found, &e), e);
	assert_string_equal(found.run_id, c.run_id);
	session_clear(&found);
	assert_works(session_read(t->store, a.run_id, &found, &e), e);
	assert_string_equal(found.resumed_as_run, b.run_id);
	session_clear(&found);

	assert_works(run_id_make(run_id, &e), e);
	assert_works(uuid_make(session_id, &e), e);
	again.run_id = run_id;
	again.session_id = session_id;
	again.kind = again.name = "flow";
	again.resumed_from = a.session_id;
	assert_fails(session_insert(t->store, &again, &e), ERR_REFUSED, e);
	assert_non_null(strstr(e.msg, b.run_id));
	assert_fails(session_read(t->store, run_id, &found, &e), ERR_NOTFOUND, e);
	session_clear(&a);
	session_clear(&b);
	session_clear(&c);
}

/* ---- Lists ---- */

struct names {
	char text[256];
	int most;
};

static int
add_name(void *arg, const struct session *s)
{
	struct names *n = arg;

	snprintf(n->text + strlen(n->text), sizeof(n->text) - strlen(n->text), "%s ", s->name);
	return --n->most == 0;
}

static void
add_labelled(struct test_home *t, const char *name, const char *label)
{
	char run_id[RUN_ID_TEXT], session_id[UUID_TEXT], invocation_id[INVOCATION_ID_TEXT];
	struct json *labels = json_set(json_object(), "team", json_cstr(label));
	struct session_new n = {.run_id = run_id,
	    .session_id = session_id,
	    .invocation_id = invocation_id,
	    .kind = "flow",
	    .name = name,
	    .labels = labels};
	struct err e = {0};

	assert_works(run_id_make(run_id, &e), e);
	assert_works(uuid_make(session_id, &e), e);
	assert_works(invocation_id_make(invocation_id, &e), e);
	assert_works(session_insert(t->store, &n, &e), e);
	json_unref(labels);
}

static void
expect_list(struct test_home *t, const struct session_filter *f, int most, const char *names)
{
	struct names n = {"", most};
	struct err e = {0};

	assert_works(session_list(t->store, f, add_name, &n, &e), e);
	assert_string_equal(n.text, names);
}

static void
test_store__lists_filter_and_order(void **state)
{
	struct test_home *t = *state;
	struct session run;
	struct json *red = json_set(json_object(), "team", json_cstr("red"));
	struct session_filter f = {0};

	test_home_running(t, "flow", &run); /* run-0 */
	add_labelled(t, "a", "red");
	add_labelled(t, "b", "blue");
	add_labelled(t, "c", "red");
	expect_list(t, NULL, 0, "c b a run-0 ");
	expect_list(t, &f, 2, "c b ");
	f.oldest_first = true;
	expect_list(t, &f, 0, "run-0 a b c ");
	f.limit = 2;
	expect_list(t, &f, 0, "run-0 a ");
	f = (struct session_filter){.labels = red};
	expect_list(t, &f, 0, "c a ");
	f.statuses[f.nstatuses++] = STATUS_RUNNING;
	expect_list(t, &f, 0, "");
	f.labels = NULL;
	expect_list(t, &f, 0, "run-0 ");
	f.statuses[f.nstatuses++] = STATUS_QUEUED;
	f.since = run.created_at + 0.0000005;
	expect_list(t, &f, 0, "c b a ");
	json_unref(red);
	session_clear(&run);
}

/* ---- What a person writes for a run ---- */

static void
insert_ids(struct test_home *t, const char *run_id, const char *session_id,
    const char *invocation_id)
{
	struct session_new n = {.run_id = run_id,
	    .session_id = session_id,
	    .invocation_id = invocation_id,
	    .kind = "flow",
	    .name = "ids"};
	struct err e = {0};

	assert_works(session_insert(t->store, &n, &e), e);
}

static void
test_store__targets(void **state)
{
	static const char one[] = "20260101T000000-00000a", two[] = "20260202T000000-00000b";
	static const char three[] = "20260303T000000-00000c";
	static const struct {
		const char *target;
		enum err_code code;
		const char *run; /* or a word of the message */
	} cases[] = {
	    {"20260101T000000-00000a", ERR_NONE, one},
	    {"20260101", ERR_NONE, one},
	    {"202", ERR_AMBIGUOUS, "20260101T000000-00000a"},
	    {"ab", ERR_NONE, one}, /* a session */
	    {"abcdef0123456789abcdef0123456789", ERR_NONE, one},
	    {"c", ERR_AMBIGUOUS, "session"},
	    {"cc", ERR_AMBIGUOUS, "invocation"}, /* a session and an invocation */
	    {"c1", ERR_NONE, two},
	    {"cccccccccccc", ERR_NONE, two}, /* a whole invocation, and a prefix of a session */
	    {"ccccccccccccc", ERR_NONE, three},
	    {"2", ERR_AMBIGUOUS, "202"},
	    {"20260303", ERR_AMBIGUOUS, "invocation"}, /* a run and an invocation of another */
	    {"29", ERR_NONE, two},		       /* the play */
	    {"29999999999999999999999999999999", ERR_NONE, two},
	    {"dd", ERR_NOTFOUND, "dd"},
	    {"", ERR_NOTFOUND, "no run"},
	    {"' OR 1", ERR_NOTFOUND, "no run"},
	    {"%", ERR_NOTFOUND, "no run"},
	    {"AB", ERR_NOTFOUND, "no run"},
	    {"20260101T000000-00000a20260101T000000-00000a", ERR_NOTFOUND, "no run"},
	    {"20260101T000000-00000f", ERR_NOTFOUND, "no run"},
	    {"@last", ERR_NONE, three},
	    {"@last-failed", ERR_NOTFOUND, "failed"},
	};
	struct session_new next = {.run_id = "20260404T000000-00000d", .session_id = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
	    .invocation_id = "eeeeeeeeeeee", .kind = "flow", .name = "ids"};
	struct test_home *t = *state;
	struct session found;
	struct err e;
	size_t i;

	insert_ids(t, one, "abcdef0123456789abcdef0123456789", "202603034444");
	insert_ids(t, two, "c1cdef0123456789abcdef0123456789", "cccccccccccc");
	insert_ids(t, three, "cccccccccccccccccccccccccccccccc", "ffffffffffff");
	execute(t, "INSERT INTO plays VALUES('29999999999999999999999999999999', 'cccccccccccc', "
		   "'p', NULL)");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		e = (struct err){0};
		print_message("# target '%s'\n", cases[i].target);
		if (cases[i].code == ERR_NONE) {
			assert_works(session_resolve(t->store, cases[i].target, &found, &e), e);
			assert_string_equal(found.run_id, cases[i].run);
			session_clear(&found);
		} else {
			assert_fails(session_resolve(t->store, cases[i].target, &found, &e),
			    cases[i].code, e);
			assert_non_null(strstr(e.msg, cases[i].run));
		}
	}
	test_home_move(t, one, STATUS_CRASHED, "run.crashed.unknown");
	assert_works(session_resolve(t->store, "@last-failed", &found, &e), e);
	assert_string_equal(found.run_id, one);
	session_clear(&found);
	/* What became of the job is decided by the run that resumed it. */
	next.resumed_from = "abcdef0123456789abcdef0123456789";
	assert_works(session_insert(t->store, &next, &e), e);
	assert_fails(session_resolve(t->store, "@last-failed", &found, &e), ERR_NOTFOUND, e);
	test_home_move(t, next.run_id, STATUS_CRASHED, "run.crashed.unknown");
	assert_works(session_resolve(t->store, "@last-failed", &found, &e), e);
	assert_string_equal(found.run_id, next.run_id);
	session_clear(&found);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, test_home_setup, test_home_teardown)
static const struct CMUnitTest tests[] = {
    CASE(test_store__files_are_the_owners_alone),
    cmocka_unit_test(test_store__is_not_made_without_create),
    CASE(test_store__keeps_what_was_committed),
    CASE(test_store__refuses_a_newer_schema),
    CASE(test_store__says_when_it_is_damaged),
    CASE(test_store__refuses_what_is_no_file_of_ours),
    CASE(test_store__a_busy_database_is_said_to_be_busy),
    cmocka_unit_test(test_store__is_made_once_by_many),
    CASE(test_store__a_directory_that_may_not_be_written),
    CASE(test_store__a_file_that_cannot_grow),
    cmocka_unit_test(test_store__a_full_disk),
    CASE(test_store__a_run_goes_through_its_life),
    CASE(test_store__every_transition_is_kept),
    CASE(test_store__metadata_members_are_set_one_by_one),
    CASE(test_store__one_successor_and_its_chain),
    CASE(test_store__lists_filter_and_order),
    CASE(test_store__targets),
};

TEST_MAIN("store", tests)
