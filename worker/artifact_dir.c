/*
 * The directory of an operation's artifacts is there while the operation runs, whether it declares
 * any or not. Most leave nothing in it, so an empty one is given to the next operation under its
 * name: with 100,000 operations that is a handful of directories rather than as many, and renaming
 * costs a fraction of making and removing. What declares artifacts gets a new one, so that nothing
 * that comes late from elsewhere can pass for what was declared.
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

static uint32_t
take_spare(struct worker *w)
{
	return w->spare_dirs.count > 0 ? w->spare_dirs.of[--w->spare_dirs.count] : OP_NO_INDEX;
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

int
artifact_dir_make(struct attempt_run *a, struct err *e)
{
	struct worker *w = a->w;
	bool declares = declares_artifacts(w, a->op), made;
	uint32_t spare = declares ? OP_NO_INDEX : take_spare(w);

	if (spare != OP_NO_INDEX && renameat2(w->artifacts_fd, name_of(w, spare), w->artifacts_fd,
		name_of(w, a->op), RENAME_NOREPLACE) == 0) {
		a->own_artifact_dir = true;
		return 0;
	}
	/* Whatever kept it from being renamed: it stays where it is. */
	if (make(w, a->op, &made, e) != 0)
		return -1;
	a->own_artifact_dir = made && !declares;
	return 0;
}

void
artifact_dir_over(struct attempt_run *a)
{
	struct worker *w = a->w;
	int dir;

	if (!a->own_artifact_dir || w->spare_dirs.count == WORKER_SPARE_DIRS ||
	    w->flow->ops[a->op].how->leave)
		return;
	a->own_artifact_dir = false;
	dir = openat(w->artifacts_fd, name_of(w, a->op), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return;
	if (is_empty(dir))
		w->spare_dirs.of[w->spare_dirs.count++] = a->op;
	fd_close(&dir);
}

int
artifact_dir_keep(struct worker *w, uint32_t i, struct err *e)
{
	unsigned n;
	bool made;

	for (n = 0; n < w->spare_dirs.count; n++)
		if (w->spare_dirs.of[n] == i) {
			w->spare_dirs.of[n] = w->spare_dirs.of[--w->spare_dirs.count];
			return 0;
		}
	return make(w, i, &made, e);
}
