#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "db.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "migrate.h"
#include "session_row.h"

static const char *const texts[STATEMENTS] = {
#define X(name, text) [name] = text,
    STATEMENT_TABLE(X)
#undef X
};

enum {
	OPEN_RETRY_MS = 5,
	BUSY_SHORT_TRIES = 20,
	BUSY_SHORT_MS = 1,
	BUSY_LONG_MS = 4,
	LOG_PAGES_SUPERVISOR = 1000,
	DRY_REST_MS = 20 /* more than a tick, by which a file's time goes on */
};

/* ---- Results as errors ---- */

static enum err_code
code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ERR_BUSY;
	case SQLITE_FULL:
		return ERR_NOSPACE;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
	case SQLITE_CANTOPEN:
		return ERR_PERMISSION;
	case SQLITE_NOMEM:
		return ERR_NOMEM;
	case SQLITE_MISUSE:
	case SQLITE_RANGE:
		return ERR_INTERNAL;
	default:
		return ERR_IO;
	}
}

/*
 * SQLite says that it cannot, not why. The first of its files that this process cannot use, or their
 * directory, says it; 0 when they all can be.
 */
static int
find_reason(const struct store *s, struct buf *culprit)
{
	static const char *const ends[] = {"", "-wal", "-shm"};
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		buf_reset(culprit);
		buf_printf(culprit, "%s%s", s->path, ends[i]);
		if (faccessat(AT_FDCWD, buf_text(culprit), R_OK | W_OK, AT_EACCESS) != 0 &&
		    errno != ENOENT)
			return errno;
	}
	buf_reset(culprit);
	buf_add(culprit, s->path, (size_t)(strrchr(s->path, '/') - s->path));
	return faccessat(AT_FDCWD, buf_text(culprit), R_OK | W_OK | X_OK, AT_EACCESS) != 0 ? errno : 0;
}

/*
 * What permissions do not say: neither a file nor a descriptor is left for what SQLite has to open beside
 * the database. Asked by opening a file without a name; 0 where there is nothing of the kind.
 */
static int
find_shortage(const char *directory)
{
	int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600), sys = fd < 0 ? errno : 0;

	fd_close(&fd);
	return sys == EMFILE || sys == ENFILE || sys == ENOSPC || sys == EDQUOT ? sys : 0;
}

static int
cannot_use(struct store *s, const char *how, const char *what, int sys, struct err *e)
{
	struct buf culprit = {0};
	char word[SHELL_WORD_TEXT];
	int why, lacks;

	if (e == NULL)
		return -1;
	why = find_reason(s, &culprit);
	lacks = why == 0 ? find_shortage(buf_text(&culprit)) : 0;
	if (lacks == EMFILE || lacks == ENFILE) {
		err_sys(e, ERR_ENVIRONMENT, lacks, "'%s' %s", s->path, how);
		err_hint(e, "ulimit -n 1024");
	} else if (lacks != 0) {
		err_sys(e, ERR_NOSPACE, lacks, "'%s' %s", s->path, how);
		err_hint(e, "df -i %s", shell_word(word, buf_text(&culprit)));
	} else if (why != 0) {
		err_set(e, ERR_PERMISSION, "'%s' %s: '%s': %s", s->path, how, buf_text(&culprit),
		    strerror(why));
		e->sys = why;
		home_hint(buf_text(&culprit), e);
	} else if (sys != 0) {
		err_set(e, ERR_PERMISSION, "'%s' %s: %s: %s", s->path, how, what, strerror(sys));
		err_hint(e, "flowsup doctor");
	} else {
		err_set(e, ERR_PERMISSION, "'%s' %s: %s", s->path, how, what);
		err_hint(e, "flowsup doctor");
	}
	buf_clear(&culprit);
	return -1;
}

static int
hint_at_check(const struct store *s, struct err *e)
{
	char word[SHELL_WORD_TEXT];

	return err_hint(e, "sqlite3 %s 'PRAGMA integrity_check'", shell_word(word, s->path));
}

static int
hint_at_room(const struct store *s, struct err *e)
{
	char word[SHELL_WORD_TEXT];

	return err_hint(e, "df %s", shell_word(word, s->path));
}

int
store_error(struct store *s, int rc, const char *what, struct err *e)
{
	int sys = s->db != NULL ? sqlite3_system_errno(s->db) : 0;
	const char *text = s->db != NULL ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc);

	/* A write that met the file system's end comes as an I/O error with its errno. */
	if ((rc & 0xff) == SQLITE_IOERR && (sys == ENOSPC || sys == EDQUOT || sys == EFBIG))
		rc = SQLITE_FULL, text = strerror(sys);
	switch (rc & 0xff) {
	case SQLITE_FULL:
		err_set(e, ERR_NOSPACE, "'%s': %s: %s", s->path, what, text);
		return hint_at_room(s, e);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(e, ERR_BUSY, "'%s' is busy: %s", s->path, what);
	case SQLITE_READONLY:
		return cannot_use(s, "can only be read here", what, sys, e);
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		return cannot_use(s, "cannot be opened", what, sys, e);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		err_set(e, ERR_IO, "'%s' is damaged: %s: %s", s->path, what, text);
		return hint_at_check(s, e);
	default:
		err_set(e, code_of(rc), "'%s': %s: %s", s->path, what, text);
		if (e != NULL)
			e->sys = sys;
		return -1;
	}
}

/* ---- Statements ---- */

sqlite3_stmt *
store_statement(struct store *s, enum statement which, struct err *e)
{
	sqlite3_stmt **q = &s->prepared[which];
	int rc;

	assert(s->owner == getpid());
	if (*q == NULL) {
		rc = sqlite3_prepare_v3(s->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, q, NULL);
		if (rc != SQLITE_OK) {
			store_error(s, rc, "prepare", e);
			return NULL;
		}
		return *q;
	}
	sqlite3_reset(*q);
	sqlite3_clear_bindings(*q);
	return *q;
}

bool
bind_text(sqlite3_stmt *q, int at, const char *text)
{
	return sqlite3_bind_text(q, at, text, -1, SQLITE_TRANSIENT) == SQLITE_OK;
}

bool
bind_json(sqlite3_stmt *q, int at, const struct json *value)
{
	struct buf text = {0};
	bool ok;

	if (value == NULL)
		return sqlite3_bind_null(q, at) == SQLITE_OK;
	json_write(&text, value);
	ok = !text.failed &&
	    sqlite3_bind_text64(q, at, buf_text(&text), text.len, SQLITE_TRANSIENT, SQLITE_UTF8) ==
		SQLITE_OK;
	buf_clear(&text);
	return ok;
}

bool
bind_real(sqlite3_stmt *q, int at, double value)
{
	return sqlite3_bind_double(q, at, value) == SQLITE_OK;
}

bool
bind_int(sqlite3_stmt *q, int at, int64_t value)
{
	return sqlite3_bind_int64(q, at, value) == SQLITE_OK;
}

int
store_step(struct store *s, sqlite3_stmt *q, struct err *e)
{
	int rc = sqlite3_step(q);

	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE) {
		sqlite3_reset(q);
		return 0;
	}
	store_error(s, sqlite3_extended_errcode(s->db), "read or write", e);
	sqlite3_reset(q);
	return -1;
}

int
store_run(struct store *s, sqlite3_stmt *q, int *changed, struct err *e)
{
	int rc = store_step(s, q, e);

	assert(rc != 1);
	if (rc == 0 && changed != NULL)
		*changed = sqlite3_changes(s->db);
	return rc;
}

const char *
column_text(sqlite3_stmt *q, int at)
{
	const unsigned char *text = sqlite3_column_text(q, at);

	return text != NULL ? (const char *)text : "";
}

void
column_copy(sqlite3_stmt *q, int at, char *to, size_t size)
{
	const char *text = column_text(q, at);

	to[0] = '\0';
	if (strlen(text) < size)
		memcpy(to, text, strlen(text) + 1);
}

int
column_json(sqlite3_stmt *q, int at, struct json **out, struct err *e)
{
	const struct json_options o = {.max_bytes = JSON_MAX_RESPONSE};
	const char *text = column_text(q, at);
	size_t len = (size_t)sqlite3_column_bytes(q, at);

	*out = NULL;
	if (sqlite3_column_type(q, at) == SQLITE_NULL)
		return 0;
	/* What most rows of a long list hold. */
	if (len == 2 && memcmp(text, "{}", 2) == 0)
		return (*out = json_object()) != NULL ? 0 : err_nomem(e);
	return json_parse((struct slice){text, len}, &o, out, NULL, e);
}

/* ---- Transactions ---- */

static int
run_simple(struct store *s, enum statement which, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, which, e);

	return q != NULL ? store_run(s, q, NULL, e) : -1;
}

int
store_begin(struct store *s, struct err *e)
{
	return run_simple(s, Q_BEGIN, e);
}

int
store_end(struct store *s, int rc, struct err *e)
{
	if (rc == 0)
		rc = run_simple(s, Q_COMMIT, e);
	/* SQLite itself rolls back after some errors; then there is nothing left to undo. */
	if (rc != 0 && sqlite3_get_autocommit(s->db) == 0)
		run_simple(s, Q_ROLLBACK, NULL);
	return rc;
}

double
store_now(void)
{
	return (double)clock_wall_ns() / (double)NS_PER_S;
}

/* ---- Opening ---- */

int
store_execute(struct store *s, const char *sql, struct err *e)
{
	int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : store_error(s, sqlite3_extended_errcode(s->db), "set up", e);
}

static int
set_up(struct store *s, enum store_role role, struct err *e)
{
	char pages[64];

	/* foreign_keys first: it does nothing inside a transaction. */
	if (store_execute(s, "PRAGMA foreign_keys = ON", e) != 0 ||
	    store_execute(s, "PRAGMA journal_mode = WAL", e) != 0 ||
	    store_execute(s, "PRAGMA synchronous = FULL", e) != 0)
		return -1;
	/* Only the supervisor folds the log into the database: a command or a worker that commits, or
	 * ends, must not pay for everybody's log. */
	snprintf(pages, sizeof(pages), "PRAGMA wal_autocheckpoint = %d",
	    role == STORE_SUPERVISOR ? LOG_PAGES_SUPERVISOR : 0);
	if (store_execute(s, pages, e) != 0)
		return -1;
	if (role != STORE_SUPERVISOR)
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return 0;
}

static int
check_journal_mode(struct store *s, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int rc;

	if (sqlite3_prepare_v2(s->db, "PRAGMA journal_mode", -1, &q, NULL) != SQLITE_OK)
		return store_error(s, sqlite3_extended_errcode(s->db), "read the journal mode", e);
	rc = store_step(s, q, e);
	if (rc == 1 && strcmp(column_text(q, 0), "wal") != 0)
		rc = err_set(e, ERR_ENVIRONMENT,
		    "'%s': the file system does not support the write-ahead log", s->path);
	sqlite3_finalize(q);
	return rc == 1 ? 0 : -1;
}

/*
 * SQLite's own handler pauses longer with each try, up to 100 ms, so that among many writers the one
 * that came first waits longest. Pauses that stay short give each the same chance.
 */
static int
while_busy(void *arg, int tries)
{
	struct store *s = arg;
	int64_t now = clock_monotonic_ns();
	struct timespec pause = {0, (tries < BUSY_SHORT_TRIES ? BUSY_SHORT_MS : BUSY_LONG_MS) * NS_PER_MS};

	if (tries == 0)
		s->busy_until_ns = now + s->busy_ms * NS_PER_MS;
	if (now >= s->busy_until_ns)
		return 0;
	nanosleep(&pause, NULL);
	return 1;
}

static int
open_once(struct store *s, enum store_role role, bool create, struct err *e)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
	    SQLITE_OPEN_EXRESCODE | (create ? SQLITE_OPEN_CREATE : 0);
	/* SQLite offers no mode for what it creates, and everything here is the owner's alone. */
	mode_t mask = create ? umask(077) : 0;
	int rc = sqlite3_open_v2(s->path, &s->db, flags, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_busy_handler(s->db, while_busy, s);
		rc = set_up(s, role, e) != 0 || check_journal_mode(s, e) != 0 || migrate(s, e) != 0;
	} else {
		store_error(s, rc, "open", e);
	}
	if (create)
		umask(mask);
	return rc == 0 ? 0 : -1;
}

/* Of a path as a URI: what would end it or begin an escape is escaped. */
static void
add_uri_path(struct buf *to, const char *path)
{
	for (; *path != '\0'; path++)
		if (strchr("%?#", *path) != NULL)
			buf_printf(to, "%%%02X", (unsigned)(unsigned char)*path);
		else
			buf_putc(to, *path);
}

/* The size of the database's log or index; -1: there is none. */
static off_t
size_of(const struct store *s, const char *suffix)
{
	struct buf name = {0};
	struct stat st;
	off_t size;

	buf_printf(&name, "%s%s", s->path, suffix);
	size = !name.failed && lstat(buf_text(&name), &st) == 0 ? st.st_size : -1;
	buf_clear(&name);
	return size;
}

static bool
has_log(const struct store *s)
{
	return size_of(s, "-wal") > 0;
}

static int
open_read_only(struct store *s, const char *parameters, struct err *e)
{
	const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
	    SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI;
	struct buf uri = {0};
	int rc;

	buf_puts(&uri, "file:");
	add_uri_path(&uri, s->path);
	buf_puts(&uri, parameters);
	rc = buf_ok(&uri, e);
	if (rc == 0 && (rc = sqlite3_open_v2(buf_text(&uri), &s->db, flags, NULL)) != SQLITE_OK)
		store_error(s, rc, "open", e);
	buf_clear(&uri);
	if (rc != 0)
		return -1;
	sqlite3_busy_handler(s->db, while_busy, s);
	return 0;
}

/*
 * Where nothing can be written. While there is a write-ahead log somebody may write, and SQLite reads
 * through it, with an index in its own memory if need be. Without one nobody has the database open
 * with anything to tell, and SQLite reads it only when told that nothing changes: else it would
 * make a log.
 */
static int
open_to_read(struct store *s, struct err *e)
{
	if (open_read_only(s, has_log(s) ? "" : "?immutable=1", e) != 0)
		return -1;
	if (migrate(s, e) == 0)
		return 0;
	return e->code == ERR_PERMISSION ? err_wrap(e, "its schema is older than this program") : -1;
}

static void
finalize_all(struct store *s)
{
	unsigned i;

	for (i = 0; i < STATEMENTS; i++) {
		sqlite3_finalize(s->prepared[i]);
		s->prepared[i] = NULL;
	}
}

static void
close_database(struct store *s)
{
	finalize_all(s);
	sqlite3_close(s->db);
	s->db = NULL;
}

/* What cannot be written, for want of permission or of room. */
static bool
may_be_read(const struct err *why)
{
	return why->code == ERR_PERMISSION || why->code == ERR_NOSPACE;
}

/* ---- Without a trace ---- */

/* From here on the store is a copy in memory, and may be written. */
static int
go_to_memory(struct store *s, struct err *e)
{
	sqlite3 *copy = NULL;
	sqlite3_backup *b = NULL;
	int rc = sqlite3_open_v2(":memory:", &copy,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);

	if (rc == SQLITE_OK && (b = sqlite3_backup_init(copy, "main", s->db, "main")) == NULL)
		rc = sqlite3_extended_errcode(copy);
	if (b != NULL) {
		rc = sqlite3_backup_step(b, -1);
		if (rc == SQLITE_DONE)
			rc = SQLITE_OK;
		sqlite3_backup_finish(b);
	}
	if (rc != SQLITE_OK) {
		store_error(s, rc, "copy", e);
		sqlite3_close(copy);
		return -1;
	}
	close_database(s);
	s->db = copy;
	return 0;
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	    a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Whether a further write will be seen by a later time. */
static bool
is_at_rest(const struct stat *st)
{
	int64_t written = (int64_t)st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec;

	return llabs(clock_wall_ns() - written) > DRY_REST_MS * NS_PER_MS;
}

/* Nobody has it open, so nothing is to be locked, and SQLite must be told so: else it would make a
 * log. Somebody may come meanwhile: only what did not change while it was copied counts. */
static int
copy_unlocked(struct store *s, struct err *e)
{
	struct stat before, after;

	if (stat(s->path, &before) != 0)
		return err_sys(e, ERR_IO, errno, "'%s'", s->path);
	if (open_read_only(s, "?immutable=1", e) != 0)
		return -1;
	/* What changes while it is read may also look damaged. */
	if (is_at_rest(&before) && go_to_memory(s, e) == 0 && stat(s->path, &after) == 0 &&
	    is_same(&before, &after))
		return migrate(s, e);
	if (stat(s->path, &after) == 0 && is_at_rest(&before) && is_same(&before, &after))
		return -1;
	return err_set(e, ERR_BUSY, "'%s' is busy: it is being written", s->path);
}

/*
 * With a log and its index somebody may be writing, and SQLite reads as everybody does, only that it
 * marks nothing in the index (and makes one in its own memory where nobody lives who looks after that
 * file). An older schema is brought up to this program's in a copy.
 */
static int
open_dry(struct store *s, struct err *e)
{
	off_t log = size_of(s, "-wal"), index = size_of(s, "-shm");

	if (log < 0 || (log == 0 && index < 0))
		return copy_unlocked(s, e);
	if (open_read_only(s, index >= 0 ? "?readonly_shm=1" : "", e) != 0)
		return -1;
	if (migrate(s, e) == 0 ||
	    (may_be_read(e) && go_to_memory(s, e) == 0 && migrate(s, e) == 0))
		return 0;
	/* Whoever had it open last has just removed them. */
	if (size_of(s, "-wal") < 0 || (index >= 0 && size_of(s, "-shm") < 0))
		e->code = ERR_BUSY;
	return -1;
}

/*
 * While one process turns a new file into a write-ahead database, SQLite tells the others that it is
 * busy without asking the busy handler (it could be a deadlock); here it is none.
 */
static int
open_patiently(struct store *s, enum store_role role, bool create, struct err *e)
{
	const struct timespec pause = {0, OPEN_RETRY_MS * NS_PER_MS};
	int64_t until = clock_monotonic_ns() + s->busy_ms * NS_PER_MS;
	struct err why = {0}, full;

	while ((role == STORE_DRY ? open_dry(s, &why) : open_once(s, role, create, &why)) != 0) {
		close_database(s);
		full = why;
		if (role == STORE_COMMAND && !create && may_be_read(&why) && open_to_read(s, &why) == 0)
			return 0;
		/* It has no schema yet, or an older one: that it cannot get one is for want of room. */
		if (full.code == ERR_NOSPACE && why.code == ERR_PERMISSION)
			why = full;
		close_database(s);
		if (why.code != ERR_BUSY || clock_monotonic_ns() >= until) {
			if (e != NULL)
				*e = why;
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Never opened here: closing a descriptor would drop the locks that SQLite holds on the file. */
static int
check_file(const struct home *h, bool create, struct err *e)
{
	struct stat st;
	char word[SHELL_WORD_TEXT];

	if (fstatat(h->fd, HOME_DATABASE, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		if (errno == ENOENT && create)
			return 0;
		return err_sys(e, errno == ENOENT ? ERR_NOTFOUND : ERR_IO, errno, "'%s/%s'", h->path,
		    HOME_DATABASE);
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(e, ERR_IDENTITY, "'%s/%s' is not a regular file", h->path, HOME_DATABASE);
		return err_hint(e, "flowsup doctor");
	}
	if (st.st_uid != geteuid() || (st.st_mode & 022) != 0) {
		err_set(e, ERR_PERMISSION, "'%s/%s' belongs to somebody else or others may write it",
		    h->path, HOME_DATABASE);
		return err_hint(e, "ls -l %s", shell_word(word, h->path));
	}
	return 0;
}

static bool
has_database(const struct home *h)
{
	struct stat st;

	return fstatat(h->fd, HOME_DATABASE, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

static int
take_guard(int fd, int busy_ms, struct err *e)
{
	const struct timespec pause = {0, OPEN_RETRY_MS * NS_PER_MS};
	int64_t until = clock_monotonic_ns() + busy_ms * NS_PER_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(e, ERR_IO, errno, "lock the state directory");
		if (clock_monotonic_ns() >= until)
			return err_set(e, ERR_BUSY, "another process is making the database");
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int
remove_stray(const struct home *h, const char *name, struct err *e)
{
	if (unlinkat(h->fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	return err_sys(e, errno == EACCES || errno == EPERM || errno == EROFS ? ERR_PERMISSION : ERR_IO, errno,
	    "remove '%s/%s'", h->path, name);
}

/*
 * Log and index of a database that was removed: whoever still has it open works on with them, and a new
 * one at that name must not get them. One process at a time makes a database, so that what is removed
 * here never belongs to the new one. *guard is held until that is there; -1: nothing is to be made.
 */
static int
make_way(const struct home *h, int busy_ms, int *guard, struct err *e)
{
	*guard = -1;
	if (has_database(h))
		return 0;
	*guard = openat(h->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*guard < 0)
		return err_sys(e, ERR_IO, errno, "open '%s'", h->path);
	if (take_guard(*guard, busy_ms, e) == 0 &&
	    (has_database(h) || (remove_stray(h, HOME_DATABASE "-wal", e) == 0 &&
				    remove_stray(h, HOME_DATABASE "-shm", e) == 0)))
		return 0;
	fd_close(guard);
	return -1;
}

static void
set_single_pages(void)
{
	/* It fails where SQLite has begun already: then it stays as it is. */
	(void)sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
}

/*
 * SQLite allots room for twenty pages whenever a cache gets its first one, and every transient table
 * of a statement has a cache: one that moves a run took 350 KiB so, for a few pages. Now each page
 * is allotted for itself. SQLite takes such a setting only before it begins.
 */
static void
allot_single_pages(void)
{
	static once_flag once = ONCE_FLAG_INIT;

	call_once(&once, set_single_pages);
}

/* fchown(2), unless it belongs to them already. */
static int
give_to(int fd, uid_t uid, gid_t gid)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_uid == uid && st.st_gid == gid)
		return 0;
	return fchown(fd, uid, gid);
}

static void
set_give_to(void)
{
	sqlite3_vfs *unix_files = sqlite3_vfs_find(NULL);

	if (unix_files != NULL && unix_files->iVersion >= 3)
		(void)unix_files->xSetSystemCall(unix_files, "fchown", (sqlite3_syscall_ptr)give_to);
}

/* As root SQLite gives log and index to the owner of the database whenever it opens them: also where nothing is to be
 * changed, and that changes their times. */
static void
leave_owners(void)
{
	static once_flag once = ONCE_FLAG_INIT;

	call_once(&once, set_give_to);
}

int
store_open(const struct home *h, enum store_role role, bool create, int busy_ms,
    struct store **out, struct err *e)
{
	struct store *s;
	struct stat st;
	int guard = -1, rc;

	assert(role != STORE_DRY || !create);
	if (check_file(h, create, e) != 0)
		return -1;
	allot_single_pages();
	leave_owners();
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return err_nomem(e);
	s->owner = getpid();
	s->busy_ms = busy_ms;
	if (fstat(h->fd, &st) == 0)
		s->home = fs_identity_of(&st);
	if (asprintf(&s->path, "%s/%s", h->path, HOME_DATABASE) < 0) {
		s->path = NULL;
		store_close(s);
		return err_nomem(e);
	}
	rc = create ? make_way(h, STORE_BUSY_MS, &guard, e) : 0;
	if (rc == 0)
		rc = open_patiently(s, role, create, e);
	if (rc == 0)
		rc = session_home_function(s, e);
	fd_close(&guard);
	if (rc != 0) {
		store_close(s);
		return -1;
	}
	*out = s;
	return 0;
}

void
store_close(struct store *s)
{
	if (s == NULL)
		return;
	assert(s->owner == getpid());
	close_database(s);
	free(s->made_here);
	free(s->path);
	free(s);
}

void
store_shrink(struct store *s)
{
	assert(s->owner == getpid());
	finalize_all(s);
	sqlite3_db_release_memory(s->db);
}

void
store_set_busy(struct store *s, int busy_ms)
{
	s->busy_ms = busy_ms;
}

bool
store_has_moved(struct store *s)
{
	int moved = 0;

	assert(s->owner == getpid());
	return sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
	    moved != 0;
}

int
store_steps_waiting(const struct store *s)
{
	return s->steps_waiting;
}

int
store_steps_unknown(struct store *s, int *count, struct err *e)
{
	return migrate_count_unknown(s, count, e);
}

static int
check_pages(struct store *s, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int rc;

	if (sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &q, NULL) != SQLITE_OK)
		return store_error(s, sqlite3_extended_errcode(s->db), "look at its pages", e);
	rc = store_step(s, q, e);
	if (rc == 1 && strcmp(column_text(q, 0), "ok") != 0)
		rc = err_set(e, ERR_IO, "'%s' is damaged: %s", s->path, column_text(q, 0));
	sqlite3_finalize(q);
	return rc < 0 ? -1 : 0;
}

int
store_verify(struct store *s, struct err *e)
{
	unsigned i;

	if (check_pages(s, e) != 0)
		return err_has_hint(e) ? -1 : hint_at_check(s, e);
	/* What a statement names and is not there is found when it is prepared. */
	for (i = 0; i < STATEMENTS; i++)
		if (store_statement(s, (enum statement)i, e) == NULL)
			return err_advice(e, "restore '%s' from a copy", s->path);
	return 0;
}

int
store_checkpoint(struct store *s, struct err *e)
{
	int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

	/* Readers or a writer in the way: the next one gets further. */
	if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY)
		return 0;
	return store_error(s, rc, "fold the log into the database", e);
}
