/*
 * The directory of an operation's artifacts is there while the operation runs, whether it declares
 * any or not. Most leave nothing in it, so an empty one is given to the next operation under its
 * name: with 100,000 operations that is a handful of directories rather than as many, and renaming
 * costs a fraction of making and removing. What declares artifacts gets a new one, so that nothing
 * that comes late from elsewhere can pass for what was declared.
 *
 * To read a directory costs more than to look at its time: so one that was seen empty is given a time
 * of change that no clock shows, and as long as it bears that, nothing was put into it. Whether the
 * file system keeps such times and changes them is not taken for granted, but tried out once.
 */
#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"

static const char *
name_of(const struct worker *w, uint32_t i)
{
	return w->flow->ops[i].id;
}

static bool
declares_artifacts(const struct worker *w, uint32_t i)
{
	const char *const *artifacts = w->flow->ops[i].how->artifacts;

	return artifacts != NULL && *artifacts != NULL;
}

/* "." and ".." are all there is: getdents64(2) gives both at once. */
static bool
is_empty(int dir)
{
	char entries[512];
	const struct dirent64 *entry;
	ssize_t n, at;

	if (lseek(dir, 0, SEEK_SET) != 0)
		return false;
	n = getdents64(dir, entries, sizeof(entries));
	for (at = 0; at < n; at += entry->d_reclen) {
		entry = (const void *)(entries + at);
		if (entry->d_name[0] != '.' ||
		    (entry->d_name[1] != '\0' && (entry->d_name[1] != '.' || entry->d_name[2] != '\0')))
			return false;
	}
	return n > 0 && getdents64(dir, entries, sizeof(entries)) == 0;
}

static int
make(struct worker *w, uint32_t i, bool *made, struct err *e)
{
	*made = mkdirat(w->artifacts_fd, name_of(w, i), 0700) == 0;
	/* Attempts share it, and so do runs of one chain of resumes. */
	if (*made || errno == EEXIST)
		return 0;
	return err_sys(e, ERR_IO, errno, "cannot create the artifact directory of %s", name_of(w, i));
}

/* ---- The time that says that nothing was put in ---- */

/* Long before any run, and not a round one. */
static const struct timespec untouched = {.tv_sec = 86399, .tv_nsec = 715827882};

static bool
bears_mark(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_mtim.tv_sec == untouched.tv_sec &&
	    st->st_mtim.tv_nsec == untouched.tv_nsec;
}

static bool
put_mark(int dir)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, untouched};
	struct stat st;

	return futimens(dir, times) == 0 && fstat(dir, &st) == 0 && bears_mark(&st);
}

/* In a directory that nobody uses. What is made is taken away again, or the directory is not empty. */
static bool
change_takes_mark(int dir)
{
	static const char name[] = ".flowsup-time";
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;
	bool taken;

	if (fd < 0)
		return false;
	fd_close(&fd);
	taken = fstat(dir, &st) == 0 && !bears_mark(&st);
	return unlinkat(dir, name, 0) == 0 && taken;
}

static bool
mark_empty(struct worker *w, int dir)
{
	if (w->spare_dirs.times == DIR_TIMES_UNKNOWN)
		w->spare_dirs.times = put_mark(dir) && change_takes_mark(dir) ? DIR_TIMES_TELL
									      : DIR_TIMES_TELL_NOTHING;
	return w->spare_dirs.times == DIR_TIMES_TELL && put_mark(dir);
}

/* ---- Spare ones ---- */

static void
put_spare(struct worker *w, uint32_t i, bool marked)
{
	w->spare_dirs.marked[w->spare_dirs.count] = marked;
	w->spare_dirs.of[w->spare_dirs.count++] = i;
}

static bool
take_spare(struct worker *w, uint32_t *i, bool *marked)
{
	if (w->spare_dirs.count == 0)
		return false;
	*i = w->spare_dirs.of[--w->spare_dirs.count];
	*marked = w->spare_dirs.marked[w->spare_dirs.count];
	return true;
}

/* A link in its place is never followed. */
static int
remove_link(struct worker *w, uint32_t i, struct err *e)
{
	struct stat st;

	if (fstatat(w->artifacts_fd, name_of(w, i), &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISLNK(st.st_mode) ||
	    unlinkat(w->artifacts_fd, name_of(w, i), 0) == 0 || errno == ENOENT)
		return 0;
	return err_sys(e, ERR_IO, errno, "cannot remove the link in the place of the artifact directory of %s",
	    name_of(w, i));
}

int
artifact_dir_make(struct attempt_run *a, struct err *e)
{
	struct worker *w = a->w;
	bool declares = declares_artifacts(w, a->op), made, marked;
	uint32_t spare;

	a->marked_artifact_dir = false;
	if (!declares && take_spare(w, &spare, &marked) && renameat2(w->artifacts_fd, name_of(w, spare),
		w->artifacts_fd, name_of(w, a->op), RENAME_NOREPLACE) == 0) {
		a->own_artifact_dir = true;
		a->marked_artifact_dir = marked;
		return 0;
	}
	/* Whatever kept it from being renamed: it stays where it is. */
	if (make(w, a->op, &made, e) != 0)
		return -1;
	if (!made && (remove_link(w, a->op, e) != 0 || make(w, a->op, &made, e) != 0))
		return -1;
	a->own_artifact_dir = made && !declares;
	return 0;
}

/* Sees whether it is empty, by reading it. */
static void
read_spare(struct worker *w, uint32_t i)
{
	int dir = openat(w->artifacts_fd, name_of(w, i), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return;
	/* The mark comes before the look: what is put in between takes it away. */
	if (is_empty(dir)) {
		bool marked = mark_empty(w, dir);

		if (is_empty(dir))
			put_spare(w, i, marked);
	}
	fd_close(&dir);
}

void
artifact_dir_over(struct attempt_run *a)
{
	struct worker *w = a->w;
	struct stat st;

	if (!a->own_artifact_dir || w->spare_dirs.count == WORKER_SPARE_DIRS ||
	    w->flow->ops[a->op].how->leave)
		return;
	a->own_artifact_dir = false;
	if (a->marked_artifact_dir &&
	    fstatat(w->artifacts_fd, name_of(w, a->op), &st, AT_SYMLINK_NOFOLLOW) == 0 && bears_mark(&st))
		put_spare(w, a->op, true);
	else
		read_spare(w, a->op);
}

int
artifact_dir_keep(struct worker *w, uint32_t i, struct err *e)
{
	unsigned n;
	bool made;

	for (n = 0; n < w->spare_dirs.count; n++)
		if (w->spare_dirs.of[n] == i) {
			w->spare_dirs.of[n] = w->spare_dirs.of[--w->spare_dirs.count];
			w->spare_dirs.marked[n] = w->spare_dirs.marked[w->spare_dirs.count];
			return 0;
		}
	return make(w, i, &made, e);
}
