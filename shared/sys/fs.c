/* The real table of file system calls, and what is built on any table. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "flowsup/fs.h"

/* Reads start small (most files are) and double up to the larger size. */
enum { READ_FIRST = 4096, READ_MOST = 1 << 20 };

static int
real_openat(const struct fs_ops *fs, const char *what, int dirfd, const char *path, int flags,
    mode_t mode)
{
	(void)fs;
	(void)what;
	return openat(dirfd, path, flags | O_CLOEXEC, mode);
}

static ssize_t
real_read(const struct fs_ops *fs, const char *what, int fd, void *to, size_t len)
{
	(void)fs;
	(void)what;
	return read(fd, to, len);
}

static ssize_t
real_pread(const struct fs_ops *fs, const char *what, int fd, void *to, size_t len, off_t at)
{
	(void)fs;
	(void)what;
	return pread(fd, to, len, at);
}

static ssize_t
real_write(const struct fs_ops *fs, const char *what, int fd, const void *from, size_t len)
{
	(void)fs;
	(void)what;
	return write(fd, from, len);
}

static int
real_fsync(const struct fs_ops *fs, const char *what, int fd)
{
	(void)fs;
	(void)what;
	return fsync(fd);
}

static int
real_ftruncate(const struct fs_ops *fs, const char *what, int fd, off_t len)
{
	(void)fs;
	(void)what;
	return ftruncate(fd, len);
}

static int
real_fstat(const struct fs_ops *fs, const char *what, int fd, struct stat *st)
{
	(void)fs;
	(void)what;
	return fstat(fd, st);
}

static int
real_fstatat(const struct fs_ops *fs, const char *what, int dirfd, const char *path,
    struct stat *st, int flags)
{
	(void)fs;
	(void)what;
	return fstatat(dirfd, path, st, flags);
}

static int
real_renameat2(const struct fs_ops *fs, const char *what, int fromfd, const char *from, int tofd,
    const char *to, unsigned flags)
{
	(void)fs;
	(void)what;
	return renameat2(fromfd, from, tofd, to, flags);
}

static int
real_unlinkat(const struct fs_ops *fs, const char *what, int dirfd, const char *path, int flags)
{
	(void)fs;
	(void)what;
	return unlinkat(dirfd, path, flags);
}

static int
real_mkdirat(const struct fs_ops *fs, const char *what, int dirfd, const char *path, mode_t mode)
{
	(void)fs;
	(void)what;
	return mkdirat(dirfd, path, mode);
}

static int
real_close(const struct fs_ops *fs, const char *what, int fd)
{
	(void)fs;
	(void)what;
	return close(fd);
}

const struct fs_ops fs_real = {
	.openat = real_openat,
	.read = real_read,
	.pread = real_pread,
	.write = real_write,
	.fsync = real_fsync,
	.ftruncate = real_ftruncate,
	.fstat = real_fstat,
	.fstatat = real_fstatat,
	.renameat2 = real_renameat2,
	.unlinkat = real_unlinkat,
	.mkdirat = real_mkdirat,
	.close = real_close,
};

struct fs_identity
fs_identity_of(const struct stat *st)
{
	return (struct fs_identity){st->st_dev, st->st_ino};
}

bool
fs_same(struct fs_identity a, struct fs_identity b)
{
	return a.dev == b.dev && a.ino == b.ino;
}

int
fs_write_all(const struct fs_ops *fs, const char *what, int fd, struct slice bytes, struct err *e)
{
	size_t done = 0;
	ssize_t n;

	while (done < bytes.len) {
		n = fs->write(fs, what, fd, bytes.data + done, bytes.len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, ERR_IO, errno, "cannot write");
		/* write(2) of more than nothing gives nothing only on a device without room. */
		if (n == 0)
			return err_sys(e, ERR_IO, ENOSPC, "cannot write");
		done += (size_t)n;
	}
	return 0;
}

/* One pread; how many bytes came, or -1. A result of 0 is the end of the file. */
static ssize_t
read_part(const struct fs_ops *fs, const char *what, int fd, struct buf *to, size_t want, off_t at,
    struct err *e)
{
	char *room = buf_reserve(to, want);
	ssize_t n;

	if (room == NULL)
		return err_nomem(e);
	do
		n = fs->pread(fs, what, fd, room, want, at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(e, ERR_IO, errno, "cannot read");
	to->len += (size_t)n;
	to->data[to->len] = '\0';
	return n;
}

int
fs_read_all(const struct fs_ops *fs, const char *what, int fd, size_t max_bytes, struct buf *to,
    struct err *e)
{
	const size_t before = to->len;
	size_t got = 0, want, step = READ_FIRST;
	ssize_t n;

	for (;;) {
		/* One byte more than allowed is asked for: that tells a file that is too long. */
		want = max_bytes - got < step ? max_bytes - got + 1 : step;
		n = read_part(fs, what, fd, to, want, (off_t)got, e);
		if (n == 0)
			return 0;
		if (n < 0)
			break;
		got += (size_t)n;
		if (got > max_bytes) {
			err_set(e, ERR_LIMIT, "longer than %zu bytes", max_bytes);
			break;
		}
		step = step < READ_MOST ? step * 2 : READ_MOST;
	}
	to->len = before;
	if (to->data != NULL)
		to->data[before] = '\0';
	return -1;
}

int
fs_sync_dir(const struct fs_ops *fs, const char *what, int dirfd, bool *supported, struct err *e)
{
	bool known = true;

	if (fs->fsync(fs, what, dirfd) != 0) {
		if (errno != EINVAL)
			return err_sys(e, ERR_IO, errno, "cannot sync the directory");
		known = false;
	}
	if (supported != NULL)
		*supported = known;
	return 0;
}

int
fs_close(const struct fs_ops *fs, const char *what, int *fd, struct err *e)
{
	int old = *fd;

	assert(old >= 0);
	/* Linux has freed the number whatever close says; a second try would close a stranger. */
	*fd = -1;
	if (fs->close(fs, what, old) != 0 && errno != EINTR)
		return err_sys(e, ERR_IO, errno, "cannot close");
	return 0;
}

void
fd_close(int *fd)
{
	int keep = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = keep;
}
