#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "flowsup/log.h"

enum { PASSWD_BYTES = 16384 };

static int
hint_another_place(struct err *e)
{
	return err_hint(e, "export FLOWSUP_HOME=/var/tmp/flowsup-%ld   # or another place to write to",
	    (long)geteuid());
}

/* An empty value counts as none, and so does a relative one where the rule wants it absolute. */
static const char *
environment(const char *name, bool absolute)
{
	const char *value = getenv(name);

	if (value == NULL || *value == '\0' || (absolute && *value != '/'))
		return NULL;
	return value;
}

static int
add_account_home(struct buf *path, struct err *e)
{
	struct passwd entry, *found = NULL;
	char *text = malloc(PASSWD_BYTES);
	int rc;

	if (text == NULL)
		return err_nomem(e);
	rc = getpwuid_r(getuid(), &entry, text, PASSWD_BYTES, &found);
	if (rc == 0 && found != NULL && entry.pw_dir[0] == '/') {
		buf_puts(path, entry.pw_dir);
	} else {
		rc = err_set(e, ERR_ENVIRONMENT,
		    "there is none: HOME is not set and account %ld has no home",
		    (long)getuid());
		err_hint(e, "export FLOWSUP_HOME=/var/tmp/flowsup-%ld", (long)getuid());
	}
	free(text);
	return rc == 0 ? 0 : -1;
}

static int
add_default(struct buf *path, struct err *e)
{
	const char *state = environment("XDG_STATE_HOME", true);
	const char *account = environment("HOME", true);

	if (state != NULL) {
		buf_puts(path, state);
	} else {
		if (account != NULL)
			buf_puts(path, account);
		else if (add_account_home(path, e) != 0)
			return -1;
		buf_puts(path, "/.local/state");
	}
	buf_puts(path, "/flowsup");
	return 0;
}

static int
add_working_directory(struct buf *path, struct err *e)
{
	char *cwd = getcwd(NULL, 0);

	if (cwd == NULL)
		return err_sys(e, ERR_ENVIRONMENT, errno, "the working directory");
	buf_puts(path, cwd);
	buf_putc(path, '/');
	free(cwd);
	return 0;
}

static int
choose(const char *option, struct buf *path, struct err *e)
{
	const char *named = option != NULL ? option : environment("FLOWSUP_HOME", false);

	if (named == NULL)
		return add_default(path, e);
	if (*named == '\0')
		return err_set(e, ERR_USAGE, "its name is empty");
	if (*named != '/' && add_working_directory(path, e) != 0)
		return -1;
	buf_puts(path, named);
	return 0;
}

/* The one name of the directory, whatever way led to it: operations are marked by it. */
static char *
canonical(int fd, struct err *e)
{
	char link[64], path[PATH_MAX];
	ssize_t n;
	char *copy;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0) {
		err_sys(e, ERR_ENVIRONMENT, errno, "readlink '%s'", link);
		return NULL;
	}
	path[n] = '\0';
	copy = strdup(path);
	if (copy == NULL)
		err_nomem(e);
	return copy;
}

static int
refuse_remote(int fd, const char *path, struct err *e)
{
	const char *kind;
	bool remote;

	if (fs_kind(fd, &kind, &remote, e) != 0)
		return -1;
	if (!remote)
		return 0;
	err_set(e, ERR_ENVIRONMENT,
	    "'%s' is on a remote file system (%s), where locks and fsync cannot be "
	    "relied on",
	    path, kind);
	return err_hint(e, "export FLOWSUP_HOME=/var/tmp/flowsup-%ld", (long)getuid());
}

/* SQLite takes file names of at most 512 bytes; "state.db-journal" must still fit. */
static int
check_length(const char *path, struct err *e)
{
	if (strlen(path) <= HOME_MAX_PATH)
		return 0;
	err_set(e, ERR_ENVIRONMENT, "its path is %zu bytes long, more than %d",
	    strlen(path), HOME_MAX_PATH);
	return err_hint(e, "export FLOWSUP_HOME=/var/tmp/flowsup-%ld", (long)getuid());
}

static bool
is_empty(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool empty = dir != NULL;

	while (empty && (entry = readdir(dir)) != NULL)
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	if (dir != NULL)
		closedir(dir);
	return empty;
}

/* A directory that is not ours, or that others use too, or that has been something else until now. */
static bool
is_of_others(const char *path)
{
	char database[PATH_MAX];
	struct stat st;

	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return false;
	if (st.st_uid != geteuid() || (st.st_mode & S_ISVTX) != 0)
		return true;
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return false;
	snprintf(database, sizeof(database), "%s/" HOME_DATABASE, path);
	return access(database, F_OK) != 0 && !is_empty(path);
}

/* Its mode was refused: what it is for others is not changed for this. */
static void
leave_it_alone(const char *path, struct err *e)
{
	if (e != NULL && e->code == ERR_PERMISSION && is_of_others(path))
		hint_another_place(e);
}

static int
open_top(const char *path, bool create, struct err *e)
{
	/* A symbolic link at the end is the user's choice of place; behind it none is followed. */
	char *real = realpath(path, NULL);
	int fd;

	if (real == NULL && errno != ENOENT)
		return err_sys(e, errno == EACCES ? ERR_PERMISSION : ERR_CREATE, errno, "'%s'", path);
	if (check_length(real != NULL ? real : path, e) != 0)
		fd = -1;
	else if (real != NULL)
		fd = fs_open_private_dir(AT_FDCWD, real, e);
	else if (create)
		fd = fs_make_private_dirs(path, e);
	else
		fd = err_sys(e, ERR_NOTFOUND, ENOENT, "'%s'", path);
	if (fd < 0 && real != NULL)
		leave_it_alone(real, e);
	free(real);
	return fd;
}

/* A database without its run directories is no state directory that has no runs yet. */
static int
lost_runs(int fd, struct err *e)
{
	if (e->code != ERR_NOTFOUND || faccessat(fd, HOME_DATABASE, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	err_set(e, ERR_IO, "there is a database, but its directory '" HOME_RUNS "' is gone");
	return err_hint(e, "flowsup doctor");
}

static int
open_runs(int fd, bool create, struct err *e)
{
	int runs;

	if (create && mkdirat(fd, HOME_RUNS, 0700) == 0) {
		if (fs_sync_dir(&fs_real, "home.runs.sync", fd, NULL, e) != 0)
			return -1;
	} else if (create && errno != EEXIST) {
		return err_sys(e, errno == EACCES || errno == EROFS ? ERR_PERMISSION : ERR_CREATE,
		    errno, "create '%s'", HOME_RUNS);
	}
	runs = fs_open_private_dir(fd, HOME_RUNS, e);
	return runs >= 0 ? runs : lost_runs(fd, e);
}

/* Which directory, and what to do where that depends on nothing but the reason. */
static int
say_which(const char *path, struct err *e)
{
	/* A path that is too long would leave no room for what is wrong with it. */
	if (strlen(path) > HOME_MAX_PATH || (e != NULL && strstr(e->msg, path) != NULL))
		err_wrap(e, "state directory");
	else
		err_wrap(e, "state directory '%s'", path);
	return home_hint(path, e);
}

int
home_hint(const char *path, struct err *e)
{
	struct stat st;
	int sys = e == NULL ? 0 : e->sys;
	char word[SHELL_WORD_TEXT];

	if (e == NULL || err_has_hint(e) ||
	    (sys != EACCES && sys != EPERM && sys != EROFS && sys != ENOTDIR && sys != ELOOP))
		return -1;
	/* What is ours can be opened to us; else another place is needed. */
	if (sys == EACCES && stat(path, &st) == 0 && st.st_uid == geteuid())
		return err_hint(e, "chmod -R u+rwX %s", shell_word(word, path));
	return hint_another_place(e);
}

/* --home goes before the variable: where that was given, only another one helps. */
static void
hint_option(const char *option, struct err *e)
{
	static const char variable[] = "export FLOWSUP_HOME=";

	if (option != NULL && e != NULL && strncmp(err_hint_text(e), variable, sizeof(variable) - 1) == 0)
		err_hint(e, "flowsup --home /var/tmp/flowsup-%ld doctor   # or another place to write to",
		    (long)geteuid());
}

int
home_open(const char *option, bool create, struct home *out, struct err *e)
{
	struct home h = {NULL, -1, -1};
	struct buf path = {0};
	int rc = -1;

	if (choose(option, &path, e) != 0 || buf_ok(&path, e) != 0)
		goto out;
	h.fd = open_top(buf_text(&path), create, e);
	if (h.fd < 0 || (h.path = canonical(h.fd, e)) == NULL ||
	    refuse_remote(h.fd, h.path, e) != 0)
		goto out;
	h.runs_fd = open_runs(h.fd, create, e);
	if (h.runs_fd < 0)
		goto out;
	*out = h;
	h = (struct home){NULL, -1, -1};
	rc = 0;
out:
	if (rc != 0 && path.len > 0)
		say_which(buf_text(&path), e);
	else if (rc != 0)
		err_wrap(e, "state directory");
	if (rc != 0)
		hint_option(option, e);
	home_close(&h);
	buf_clear(&path);
	return rc;
}

/* Leaves of the path what there is. */
static void
cut_to_existing(struct buf *path)
{
	char *slash;

	while (faccessat(AT_FDCWD, buf_text(path), F_OK, AT_EACCESS) != 0 && errno == ENOENT && path->len > 1 &&
	    (slash = strrchr(path->data, '/')) != NULL) {
		path->len = slash == path->data ? 1 : (size_t)(slash - path->data);
		path->data[path->len] = '\0';
	}
}

int
home_may_be_made(const char *option, struct buf *path, struct buf *below, struct err *e)
{
	int rc = -1;

	if (choose(option, path, e) == 0 && buf_ok(path, e) == 0) {
		buf_puts(below, buf_text(path));
		rc = buf_ok(below, e);
	}
	if (rc == 0)
		cut_to_existing(below);
	if (rc == 0 && faccessat(AT_FDCWD, buf_text(below), W_OK | X_OK, AT_EACCESS) != 0) {
		rc = err_sys(e, ERR_PERMISSION, errno, "'%s' cannot be written to", buf_text(below));
		if (strcmp(buf_text(path), buf_text(below)) != 0)
			err_wrap(e, "state directory '%s' cannot be made", buf_text(path));
		home_hint(buf_text(below), e);
		hint_option(option, e);
	}
	return rc;
}

bool
home_is_default(const struct home *h)
{
	struct buf path = {0};
	char *real = add_default(&path, NULL) == 0 && !path.failed ? realpath(buf_text(&path), NULL) : NULL;
	bool same = real != NULL && strcmp(real, h->path) == 0;

	free(real);
	buf_clear(&path);
	return same;
}

static bool
had_worker(const struct home *h, const char *run_id)
{
	char name[RUN_ID_TEXT + sizeof("/" RUN_ATTEMPTS)];

	if (!run_id_is_valid(run_id))
		return false;
	snprintf(name, sizeof(name), "%.*s/" RUN_ATTEMPTS, RUN_ID_TEXT - 1, run_id);
	return faccessat(h->runs_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool
home_had_runs(const struct home *h)
{
	int fd = openat(h->runs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	bool found = false;

	if (dir == NULL) {
		fd_close(&fd);
		return false;
	}
	while (!found && (entry = readdir(dir)) != NULL)
		found = had_worker(h, entry->d_name);
	closedir(dir);
	return found;
}

void
home_close(struct home *h)
{
	free(h->path);
	h->path = NULL;
	fd_close(&h->fd);
	fd_close(&h->runs_fd);
}
