/*
 * fork: artifacts of operations that are reused. The new run gets copies (which share their blocks where
 * the file system can), so that whatever its operations do the earlier run keeps what it has. The same
 * with the attempts that a resume takes over, or goes on from, in a directory that is no run here.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/exits.h"
#include "flowsup/fs.h"
#include "hold.h"
#include "resuming.h"

enum { COPY_AT_ONCE = 16 << 20, COPY_BUFFER = 64 << 10, COPY_DEPTH = 64 };

static int copy_directory(int from, int to, const char *name, unsigned depth, struct err *e);

/* For file systems that cannot do it themselves. */
static int
copy_by_hand(int in, int out, const char *name, struct err *e)
{
	char *bytes = malloc(COPY_BUFFER);
	ssize_t n = 0;
	int rc = 0;

	if (bytes == NULL)
		return err_nomem(e);
	while (rc == 0 && (n = read(in, bytes, COPY_BUFFER)) > 0) {
		rc = fs_write_all(&fs_real, name, out, (struct slice){bytes, (size_t)n}, e);
		if (rc == 0)
			rc = hold_check(e); /* a copy may be long */
	}
	if (n < 0)
		rc = err_sys(e, ERR_IO, errno, "read '%s'", name);
	free(bytes);
	return rc;
}

static int
copy_bytes(int in, int out, const char *name, struct err *e)
{
	ssize_t n;
	bool any = false;

	while ((n = copy_file_range(in, NULL, out, NULL, COPY_AT_ONCE, 0)) > 0) {
		any = true;
		if (hold_check(e) != 0)
			return -1;
	}
	if (n == 0)
		return 0;
	if (!any && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
		return copy_by_hand(in, out, name, e);
	return err_sys(e, errno == ENOSPC ? ERR_NOSPACE : ERR_IO, errno, "copy '%s'", name);
}

static int
copy_file(int from, int to, const char *name, struct err *e)
{
	int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), out = -1, rc = 0;
	struct stat st;

	if (in < 0 || fstat(in, &st) != 0)
		rc = err_sys(e, ERR_IO, errno, "'%s'", name);
	if (rc == 0) {
		out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (out < 0)
			rc = err_sys(e, ERR_CREATE, errno, "'%s'", name);
	}
	if (rc == 0)
		rc = copy_bytes(in, out, name, e);
	if (rc == 0 && (fchmod(out, st.st_mode & 07777) != 0 || fsync(out) != 0))
		rc = err_sys(e, ERR_IO, errno, "'%s'", name);
	fd_close(&in);
	fd_close(&out);
	return rc;
}

static int
copy_link(int from, int to, const char *name, struct err *e)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return err_sys(e, ERR_IO, errno, "'%s'", name);
	target[n] = '\0';
	return symlinkat(target, to, name) == 0 ? 0 : err_sys(e, ERR_CREATE, errno, "'%s'", name);
}

/* Sockets and pipes are nobody's result. */
static int
copy_entry(int from, int to, const char *name, unsigned depth, struct err *e)
{
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (hold_check(e) != 0)
		return -1;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return err_sys(e, ERR_IO, errno, "'%s'", name);
	if (S_ISDIR(st.st_mode))
		return copy_directory(from, to, name, depth + 1, e);
	if (S_ISLNK(st.st_mode))
		return copy_link(from, to, name, e);
	return S_ISREG(st.st_mode) ? copy_file(from, to, name, e) : 0;
}

static int
copy_entries(int in, int out, const char *name, unsigned depth, struct err *e)
{
	int fd = fcntl(in, F_DUPFD_CLOEXEC, 0), rc = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (dir == NULL) {
		rc = err_sys(e, ERR_IO, errno, "'%s'", name);
		fd_close(&fd);
		return rc;
	}
	while (rc == 0 && (errno = 0, entry = readdir(dir)) != NULL)
		rc = copy_entry(in, out, entry->d_name, depth, e);
	if (rc == 0 && errno != 0)
		rc = err_sys(e, ERR_IO, errno, "'%s'", name);
	closedir(dir);
	return rc;
}

static int
copy_directory(int from, int to, const char *name, unsigned depth, struct err *e)
{
	int in = -1, out = -1, rc = 0;

	if (depth > COPY_DEPTH)
		return err_set(e, ERR_LIMIT, "its files lie more than %d directories deep", COPY_DEPTH);
	in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* An operation that has none has no directory either. */
	if (in < 0 && errno == ENOENT && depth == 0)
		return 0;
	if (in < 0)
		return err_sys(e, ERR_IO, errno, "'%s'", name);
	if (mkdirat(to, name, 0700) != 0 ||
	    (out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		rc = err_sys(e, ERR_CREATE, errno, "'%s'", name);
	if (rc == 0)
		rc = copy_entries(in, out, name, depth, e);
	if (rc == 0 && fsync(out) != 0)
		rc = err_sys(e, ERR_IO, errno, "'%s'", name);
	fd_close(&in);
	fd_close(&out);
	return rc;
}

static bool
is_reused(const struct resume_row *row)
{
	return row->action == RESUME_REPLAY || row->action == RESUME_KEEP_FAILED;
}

static int
copy_all(const struct resuming *r, int from, int to, struct err *e)
{
	size_t i;

	for (i = 0; i < r->plan.nrows; i++)
		if (is_reused(&r->plan.rows[i]) && copy_directory(from, to, r->flow->ops[i].id, 0, e) != 0)
			return -1;
	return fsync(to) == 0 ? 0 : err_sys(e, ERR_IO, errno, "'%s'", RUN_ARTIFACTS);
}

int
resuming_copy_artifacts(const struct resuming *r, const char *root, struct err *e)
{
	int from = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), to = -1, rc = -1;
	int run_fd = from < 0 ? -1 : rundir_open(&r->t->home, r->new_run, e);

	if (from < 0)
		return errno == ENOENT ? 0 : err_sys(e, ERR_IO, errno, "artifact root '%s'", root);
	if (run_fd >= 0 && mkdirat(run_fd, RUN_ARTIFACTS, 0700) != 0 && errno != EEXIST)
		err_sys(e, ERR_CREATE, errno, "'%s'", RUN_ARTIFACTS);
	else if (run_fd >= 0)
		to = fs_open_private_dir(run_fd, RUN_ARTIFACTS, e);
	if (to >= 0)
		rc = copy_all(r, from, to, e);
	if (rc == 0 && fsync(run_fd) != 0)
		rc = err_sys(e, ERR_IO, errno, "run %s", r->new_run);
	fd_close(&to);
	fd_close(&run_fd);
	fd_close(&from);
	return rc;
}

/* ---- Attempts ---- */

/* One that made no such file has none. */
static int
copy_output(int from, int to, const char *dir, const char *suffix, struct err *e)
{
	char name[ATTEMPT_DIR_TEXT + 16];

	snprintf(name, sizeof(name), "%s%s", dir, suffix);
	if (faccessat(from, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
		return 0;
	return copy_file(from, to, name, e);
}

static int
copy_attempt(const struct resuming *r, const struct attempt *a, int to, struct err *e)
{
	static const char *const suffixes[] = {".out", ".err", ".messages"};
	int from = resuming_open_ops(r, a), rc;
	char dir[ATTEMPT_DIR_TEXT];
	size_t i;

	if (from < 0)
		return err_sys(e, ERR_IO, errno, "%s: " RUN_OPS " of operation %s", r->label, a->op);
	attempt_dir(a->op, a->attempt, dir);
	rc = copy_directory(from, to, dir, 0, e);
	for (i = 0; rc == 0 && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		rc = copy_output(from, to, dir, suffixes[i], e);
	fd_close(&from);
	return rc;
}

/* Whether the start line that was found for its operation is this one's. */
static bool
is_line_of(const struct resuming *r, const struct attempt *a, const char *member)
{
	const struct json *start = json_get(json_get(r->facts, a->op), member);
	int64_t attempt;

	return json_int64(json_get(start, "attempt"), &attempt) && attempt == (int64_t)a->attempt;
}

/* An agent's whose conversation the next one goes on in; a directory may have come without its files. */
static bool
is_interrupted(const struct resuming *r, const struct attempt *a, size_t i)
{
	int ops_fd;
	bool there;

	if (!resume_goes_on(&r->flow->ops[i], &r->plan.rows[i]) || !is_line_of(r, a, "interrupted"))
		return false;
	ops_fd = resuming_open_ops(r, a);
	there = ops_fd >= 0;
	fd_close(&ops_fd);
	return there;
}

static bool
is_needed(const struct resuming *r, const struct attempt *a)
{
	size_t i = flow_find(r->flow, a->op);

	return i != SIZE_MAX && ((r->plan.rows[i].action == RESUME_TAKE_OVER && is_line_of(r, a, "start")) ||
	    is_interrupted(r, a, i));
}

/* From *i on; NULL: no more. */
static const struct attempt *
next_needed(const struct resuming *r, size_t *i)
{
	const struct attempts *all = &r->attempts;
	const struct attempt *a;

	for (; *i < all->nopen + all->nstopped; ++*i) {
		a = *i < all->nopen ? &all->open[*i] : &all->stopped[*i - all->nopen];
		if (is_needed(r, a))
			return a;
	}
	return NULL;
}

int
resuming_copy_attempts(const struct resuming *r, struct err *e)
{
	int run_fd, to = -1, rc = 0;
	const struct attempt *a;
	size_t i = 0;

	if (next_needed(r, &i) == NULL)
		return 0;
	run_fd = rundir_open(&r->t->home, r->new_run, e);
	if (run_fd >= 0 && mkdirat(run_fd, RUN_OPS, 0700) != 0 && errno != EEXIST)
		err_sys(e, ERR_CREATE, errno, "'%s'", RUN_OPS);
	else if (run_fd >= 0)
		to = fs_open_private_dir(run_fd, RUN_OPS, e);
	for (; to >= 0 && rc == 0 && (a = next_needed(r, &i)) != NULL; i++)
		rc = copy_attempt(r, a, to, e);
	if (to < 0)
		rc = -1;
	if (rc == 0 && (fsync(to) != 0 || fsync(run_fd) != 0))
		rc = err_sys(e, ERR_IO, errno, "run %s", r->new_run);
	fd_close(&to);
	fd_close(&run_fd);
	return rc;
}
