/*
 * System calls on files, through a table: the real one in production; tests put in one that
 * counts, fails, kills or swaps files at each step (tests/lib/fault_fs.h).
 */
#ifndef FLOWSUP_FS_H
#define FLOWSUP_FS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"

/*
 * Each member is the call of the same name (results and errno as in section 2 of the manual),
 * with the table itself first so that a test can keep state behind it. `what` names the seam: a
 * short constant text such as "journal.append.write"; tests list and address seams by it.
 */
struct fs_ops {
	int (*openat)(const struct fs_ops *, const char *what, int dirfd, const char *path, int flags,
	    mode_t mode);
	ssize_t (*read)(const struct fs_ops *, const char *what, int fd, void *to, size_t len);
	ssize_t (*pread)(const struct fs_ops *, const char *what, int fd, void *to, size_t len,
	    off_t at);
	ssize_t (*write)(const struct fs_ops *, const char *what, int fd, const void *from, size_t len);
	int (*fsync)(const struct fs_ops *, const char *what, int fd);
	int (*ftruncate)(const struct fs_ops *, const char *what, int fd, off_t len);
	int (*fstat)(const struct fs_ops *, const char *what, int fd, struct stat *st);
	int (*fstatat)(const struct fs_ops *, const char *what, int dirfd, const char *path,
	    struct stat *st, int flags);
	int (*renameat2)(const struct fs_ops *, const char *what, int fromfd, const char *from,
	    int tofd, const char *to, unsigned flags);
	int (*unlinkat)(const struct fs_ops *, const char *what, int dirfd, const char *path,
	    int flags);
	int (*mkdirat)(const struct fs_ops *, const char *what, int dirfd, const char *path,
	    mode_t mode);
	int (*close)(const struct fs_ops *, const char *what, int fd);
};

extern const struct fs_ops fs_real;

/* What a name leads to, taken from a descriptor, never from a path. */
struct fs_identity {
	dev_t dev;
	ino_t ino;
};
struct fs_identity fs_identity_of(const struct stat *st);
bool fs_same(struct fs_identity a, struct fs_identity b);

/* Writes all bytes, going on after EINTR and short writes. 0, or -1 with ERR_IO/ERR_NOSPACE (the
 * file may hold a part) — write(2). */
int fs_write_all(const struct fs_ops *fs, const char *what, int fd, struct slice bytes,
    struct err *e);
/* Reads the whole file from offset 0 by pread into `to` (appended). ERR_LIMIT above max_bytes. */
int fs_read_all(const struct fs_ops *fs, const char *what, int fd, size_t max_bytes,
    struct buf *to, struct err *e);
/*
 * fsync of a directory. 0 and *supported = false where the file system does not know it (EINVAL);
 * any other failure is ERR_IO. supported may be NULL.
 */
int fs_sync_dir(const struct fs_ops *fs, const char *what, int dirfd, bool *supported,
    struct err *e);
/* close(2) once; sets *fd to -1; a failure is reported (EINTR is not one on Linux). */
int fs_close(const struct fs_ops *fs, const char *what, int *fd, struct err *e);

/* For places without an fs_ops: close a descriptor if open, set it to -1, keep errno. */
void fd_close(int *fd);
/* The hint that takes others' writing from what fd is open on; path: its name where the kernel does not say. -1. */
int fs_hint_close(struct err *e, int fd, const char *path);
/* O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC, then owner must be us and mode not writable by others.
 * ERR_PERMISSION when not, ERR_NOTFOUND, ERR_IO. Returns the descriptor or -1. */
int fs_open_private_dir(int dirfd, const char *path, struct err *e);
/* One that somebody names, with the same rule; but links lead to it, and it may be one with the sticky bit
 * (/tmp), where others cannot exchange what is ours. ERR_PERMISSION, ERR_NOTFOUND also for what is no
 * directory. */
int fs_open_shared_dir(const char *path, struct err *e);
/* Whether a path is relative, and never leads out of the directory that it is relative to by a "..". */
bool fs_path_is_inside(const char *path);
/*
 * The one rule of what an artifact is, for who records it and who looks at it again: a regular file that
 * is not empty and lies below root_fd, whatever links lead to it, since what is elsewhere is not the
 * run's. Returns a descriptor to read from and *st; or -1 and *why, words that go on after its name, with
 * errno ENOENT exactly where nothing is there.
 */
struct stat;
int fs_open_artifact(int root_fd, const char *path, struct stat *st, const char **why);
/* The same for a file that the run wrote itself, which may be empty and is no link: below dirfd, or with an
 * absolute path where it was carried over from another run. */
int fs_open_recorded(int dirfd, const char *path, struct stat *st, const char **why);
/* Creates every missing directory of path (mode 0700), fsyncs each one's parent up to one that
 * existed, and opens it as above. ERR_CREATE. */
int fs_make_private_dirs(const char *path, struct err *e);
/* A regular file of ours with at most one link, opened O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC and read whole.
 * ERR_NOTFOUND, ERR_PERMISSION, ERR_IDENTITY (not regular, more links), ERR_LIMIT, ERR_IO. */
int fs_read_private_file(int dirfd, const char *name, size_t max_bytes, struct buf *to,
    struct err *e);
/*
 * Creates `name` in dirfd (O_EXCL, 0600), writes bytes, fsyncs the file; the caller fsyncs the
 * directory. Nothing is left behind on error. ERR_CREATE/ERR_NOSPACE/ERR_IO.
 */
int fs_create_file(int dirfd, const char *name, struct slice bytes, struct err *e);
/*
 * The same without the fsync, which is the caller's, of *out: of several files that are written first and
 * fsynced then, the first fsync does most of what the others would have to do.
 */
int fs_begin_file(int dirfd, const char *name, struct slice bytes, int *out, struct err *e);
/* Replaces name by bytes: random temporary name, fsync, rename, fsync of the directory. After a
 * crash the old or the new content, whole. ERR_CREATE, ERR_NOSPACE, ERR_IO: the old is in place;
 * ERR_UNCERTAIN: the new is, and may not survive a crash. Not for checkpoints, which pin identities. */
int fs_replace_file(int dirfd, const char *name, struct slice bytes, struct err *e);
/* Removes dirfd/name, a file or a tree, by handles, never following links, never crossing devices
 * (ERR_IDENTITY). 0 also when there is none. */
int fs_remove_tree(int dirfd, const char *name, struct err *e);
/* "ext4", "nfs", ...; *remote for network file systems. fstatfs(2). */
int fs_kind(int fd, const char **name, bool *remote, struct err *e);

#endif
