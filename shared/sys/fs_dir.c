/* Directories that belong to us: opened, made with everything above, removed with all below. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/log.h"

static enum err_code
code_of_open(int sys)
{
	switch (sys) {
	case ENOENT:
		return ERR_NOTFOUND;
	case EACCES:
	case EPERM:
	case ELOOP:
	case ENOTDIR: /* also a symbolic link, with O_DIRECTORY|O_NOFOLLOW */
		return ERR_PERMISSION;
	default:
		return ERR_IO;
	}
}

/* For a hint, which is pasted wherever one is; the path as given where the kernel does not say. */
static const char *
whole_path(int fd, const char *path, char to[PATH_MAX])
{
	char link[sizeof("/proc/self/fd/") + 16];
	ssize_t n;

	if (path[0] == '/')
		return path;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, to, PATH_MAX - 1);
	if (n <= 0 || to[0] != '/')
		return path;
	to[n] = '\0';
	return to;
}

int
fs_hint_close(struct err *e, int fd, const char *path)
{
	char word[SHELL_WORD_TEXT], whole[PATH_MAX];

	return err_hint(e, "chmod go-w %s", shell_word(word, whole_path(fd, path, whole)));
}

static int
check_private(int fd, const char *path, bool shared, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_sys(e, ERR_IO, errno, "%s", path);
	if (shared && (st.st_mode & S_ISVTX) != 0)
		return 0;
	if (st.st_uid != geteuid())
		return err_set(e, ERR_PERMISSION, "%s: belongs to user %ju, not to us", path,
		    (uintmax_t)st.st_uid);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
		err_set(e, ERR_PERMISSION, "%s: others may write there (mode %04o)", path,
		    (unsigned)(st.st_mode & 07777));
		/* What is shared on purpose is not closed to the others. */
		if ((st.st_mode & S_ISVTX) != 0)
			return -1;
		return fs_hint_close(e, fd, path);
	}
	return 0;
}

int
fs_open_private_dir(int dirfd, const char *path, struct err *e)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, code_of_open(errno), errno, "cannot open directory %s", path);
	if (check_private(fd, path, false, e) != 0)
		fd_close(&fd);
	return fd;
}

int
fs_open_shared_dir(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, errno == EACCES || errno == EPERM ? ERR_PERMISSION : ERR_NOTFOUND, errno, "'%s'",
		    path);
	if (check_private(fd, path, true, e) != 0)
		fd_close(&fd);
	return fd;
}

/* O_PATH, because a directory above ours may be passed through without being readable. */
static int
open_step(int dirfd, const char *name)
{
	return openat(dirfd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The name just made in `parent` must survive a crash. */
static int
sync_parent(int parent, struct err *e)
{
	int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result;

	if (fd < 0)
		return err_sys(e, ERR_CREATE, errno, "cannot open the directory above");
	result = fs_sync_dir(&fs_real, "dirs.sync", fd, NULL, e);
	fd_close(&fd);
	return result;
}

/* Goes from *at into `name`, which is made if missing; *at is replaced. */
static int
enter(int *at, const char *name, struct err *e)
{
	int next = open_step(*at, name);

	if (next < 0 && errno == ENOENT) {
		if (mkdirat(*at, name, 0700) != 0 && errno != EEXIST)
			return err_sys(e, ERR_CREATE, errno, "cannot create directory %s", name);
		/* Also when somebody else was faster: he may not have synced yet. */
		if (sync_parent(*at, e) != 0)
			return -1;
		next = open_step(*at, name);
	}
	if (next < 0)
		return err_sys(e, ERR_CREATE, errno, "cannot open directory %s", name);
	fd_close(at);
	*at = next;
	return 0;
}

/* Copies the next component of *path into name and steps over it. 1: got one, 0: none left. */
static int
next_component(const char **path, char name[NAME_MAX + 1], struct err *e)
{
	size_t len;

	*path += strspn(*path, "/");
	len = strcspn(*path, "/");
	if (len > NAME_MAX)
		return err_sys(e, ERR_CREATE, ENAMETOOLONG, "cannot create a directory");
	memcpy(name, *path, len);
	name[len] = '\0';
	*path += len;
	return len > 0;
}

static int
make_dirs(const char *path, struct err *e)
{
	char name[NAME_MAX + 1];
	const char *rest = path;
	int at = open_step(AT_FDCWD, path[0] == '/' ? "/" : ".");
	int more;

	if (at < 0)
		return err_sys(e, ERR_CREATE, errno, "cannot open the first directory");
	while ((more = next_component(&rest, name, e)) > 0)
		if (enter(&at, name, e) != 0) {
			more = -1;
			break;
		}
	fd_close(&at);
	return more;
}

int
fs_make_private_dirs(const char *path, struct err *e)
{
	if (make_dirs(path, e) != 0)
		return err_wrap(e, "%s", path);
	/* By path once more: the last component itself must not be a link. */
	return fs_open_private_dir(AT_FDCWD, path, e);
}

/*
 * Removing a tree without recursion: the way down is a list of levels, of which only the lowest is
 * open. Going up opens ".." and checks that it is the directory one came from, so that a tree
 * moved meanwhile is noticed and nothing outside of it is touched.
 */
struct level {
	struct fs_identity self;
	char *name; /* in the directory above */
};

struct removal {
	dev_t dev;
	int top; /* where the tree hangs; borrowed */
	int fd;	 /* the lowest level, or top while there is none */
	struct level *levels;
	size_t depth, cap;
};

static int
push_level(struct removal *r, struct fs_identity self, const char *name, struct err *e)
{
	struct level *more;
	size_t cap = r->cap ? r->cap * 2 : 16;
	char *copy;

	if (r->depth == r->cap) {
		more = reallocarray(r->levels, cap, sizeof(*more));
		if (more == NULL)
			return err_nomem(e);
		r->levels = more;
		r->cap = cap;
	}
	copy = strdup(name);
	if (copy == NULL)
		return err_nomem(e);
	r->levels[r->depth].self = self;
	r->levels[r->depth++].name = copy;
	return 0;
}

static void
leave_fd(struct removal *r, int next)
{
	if (r->fd != r->top)
		fd_close(&r->fd);
	r->fd = next;
}

/* A directory that its owner has closed to himself is opened up: we are about to remove it. */
static int
open_closed_dir(int dirfd, const char *name)
{
	char path[64];
	int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int changed;

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	changed = chmod(path, 0700);
	fd_close(&fd);
	if (changed != 0)
		return -1;
	return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int
go_down(struct removal *r, const char *name, struct err *e)
{
	struct stat st;
	int fd = openat(r->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		fd = open_closed_dir(r->fd, name);
	if (fd < 0 || fstat(fd, &st) != 0) {
		err_sys(e, ERR_IO, errno, "cannot open directory %s", name);
		goto fail;
	}
	if (r->depth == 0)
		r->dev = st.st_dev;
	if (st.st_dev != r->dev) {
		err_set(e, ERR_IDENTITY, "%s: another file system is mounted there", name);
		goto fail;
	}
	if ((st.st_mode & S_IRWXU) != S_IRWXU && fchmod(fd, 0700) != 0) {
		err_sys(e, ERR_IO, errno, "cannot make %s writable", name);
		goto fail;
	}
	if (push_level(r, fs_identity_of(&st), name, e) != 0)
		goto fail;
	leave_fd(r, fd);
	return 0;
fail:
	fd_close(&fd);
	return -1;
}

static int
open_above(struct removal *r, struct err *e)
{
	struct stat st;
	int fd;

	if (r->depth == 1)
		return r->top;
	fd = openat(r->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0) {
		err_sys(e, ERR_IO, errno, "cannot open the directory above");
		fd_close(&fd);
		return -1;
	}
	if (!fs_same(fs_identity_of(&st), r->levels[r->depth - 2].self)) {
		err_set(e, ERR_IDENTITY, "%s was moved while it was being removed",
		    r->levels[r->depth - 1].name);
		fd_close(&fd);
	}
	return fd;
}

/* The lowest level is empty: remove it and stand in the one above. */
static int
go_up(struct removal *r, struct err *e)
{
	struct level *last = &r->levels[r->depth - 1];
	int fd = open_above(r, e);

	/* top may be AT_FDCWD, which is negative too. */
	if (fd < 0 && r->depth > 1)
		return -1;
	leave_fd(r, fd);
	if (unlinkat(r->fd, last->name, AT_REMOVEDIR) != 0 && errno != ENOENT)
		return err_sys(e, ERR_IO, errno, "cannot remove directory %s", last->name);
	free(last->name);
	r->depth--;
	return 0;
}

/* 1: removed or gone, 0: it is a directory, -1: error. */
static int
remove_leaf(int dirfd, const char *name, struct err *e)
{
	struct stat st;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 1;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(e, ERR_IO, errno, "cannot remove %s", name);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return 0;
	return err_sys(e, ERR_IO, EPERM, "cannot remove %s", name);
}

/*
 * One pass over the lowest level that removes its leaves, up to a directory, whose name goes to `sub`.
 * *any: something was removed, and the listing may have skipped entries for that. 1: a directory
 * was found, 0: none, -1: error.
 */
static int
remove_listed(DIR *dir, int dirfd, char sub[NAME_MAX + 1], bool *any, struct err *e)
{
	struct dirent *entry;
	int removed;

	while (errno = 0, (entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		removed = remove_leaf(dirfd, entry->d_name, e);
		if (removed < 0)
			return -1;
		if (removed == 0) {
			snprintf(sub, NAME_MAX + 1, "%s", entry->d_name);
			return 1;
		}
		*any = true;
	}
	return errno != 0 ? err_sys(e, ERR_IO, errno, "cannot list a directory") : 0;
}

static int
remove_leaves(int dirfd, char sub[NAME_MAX + 1], struct err *e)
{
	int fd, found;
	bool any;
	DIR *dir;

	do {
		any = false;
		fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		dir = fd < 0 ? NULL : fdopendir(fd);
		if (dir == NULL) {
			err_sys(e, ERR_IO, errno, "cannot list a directory");
			fd_close(&fd);
			return -1;
		}
		found = remove_listed(dir, dirfd, sub, &any, e);
		closedir(dir);
	} while (found == 0 && any);
	return found;
}

int
fs_remove_tree(int dirfd, const char *name, struct err *e)
{
	struct removal r = {.top = dirfd, .fd = dirfd};
	char sub[NAME_MAX + 1];
	int found, result = -1;

	found = remove_leaf(dirfd, name, e);
	if (found != 0)
		return found > 0 ? 0 : -1;
	if (go_down(&r, name, e) != 0)
		goto out;
	while (r.depth > 0) {
		found = remove_leaves(r.fd, sub, e);
		if (found < 0 || (found > 0 ? go_down(&r, sub, e) : go_up(&r, e)) != 0)
			goto out;
	}
	result = 0;
out:
	leave_fd(&r, r.top);
	while (r.depth > 0)
		free(r.levels[--r.depth].name);
	free(r.levels);
	return result;
}
