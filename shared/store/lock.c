#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "flowsup/json.h"

enum { LOCK_RETRY_MS = 5, STAMP_BYTES = 1024 };

static struct flock
whole_file(void)
{
	return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0};
}

static int
open_lock(int dirfd, const char *name, int flags, struct err *e)
{
	struct stat st;
	int fd = openat(dirfd, name, O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600);

	if (fd < 0 && (errno == EROFS || errno == EACCES))
		return err_sys(e, ERR_PERMISSION, errno, "open '%s'", name);
	if (fd < 0)
		return err_sys(e, errno == ENOENT ? ERR_NOTFOUND : ERR_IO, errno, "open '%s'", name);
	if (fstat(fd, &st) != 0) {
		err_sys(e, ERR_IO, errno, "fstat '%s'", name);
		fd_close(&fd);
	} else if (!S_ISREG(st.st_mode)) {
		err_set(e, ERR_IDENTITY, "'%s' is not a regular file", name);
		fd_close(&fd);
	}
	return fd;
}

/* A lock on a file that the name does not lead to any more proves nothing. */
static int
check_name(int dirfd, const char *name, int fd, struct err *e)
{
	struct stat opened, named;

	if (fstat(fd, &opened) != 0)
		return err_sys(e, ERR_IO, errno, "fstat '%s'", name);
	if (fstatat(dirfd, name, &named, AT_SYMLINK_NOFOLLOW) != 0)
		return err_sys(e, ERR_IDENTITY, errno, "'%s' was taken away", name);
	if (!fs_same(fs_identity_of(&opened), fs_identity_of(&named)))
		return err_set(e, ERR_IDENTITY, "'%s' was replaced while it was locked", name);
	return 0;
}

/* 0: got it, 1: somebody has it, -1: error. */
static int
try_lock(int fd, const char *name, struct err *e)
{
	struct flock range = whole_file();

	while (fcntl(fd, F_OFD_SETLK, &range) != 0) {
		if (errno == EAGAIN || errno == EACCES)
			return 1;
		if (errno != EINTR)
			return err_sys(e, ERR_IO, errno, "lock '%s'", name);
	}
	return 0;
}

static int
take(int dirfd, const char *name, int flags, int wait_ms, struct err *e)
{
	const struct timespec pause = {0, LOCK_RETRY_MS * NS_PER_MS};
	int64_t until = clock_monotonic_ns() + wait_ms * NS_PER_MS;
	int fd = open_lock(dirfd, name, O_RDWR | flags, e);
	int rc;

	if (fd < 0)
		return -1;
	while ((rc = try_lock(fd, name, e)) == 1 && clock_monotonic_ns() < until)
		nanosleep(&pause, NULL);
	if (rc == 1)
		rc = err_set(e, ERR_BUSY, "'%s' is held by another process", name);
	else if (rc == 0)
		rc = check_name(dirfd, name, fd, e);
	if (rc != 0)
		fd_close(&fd);
	return fd;
}

int
run_lock_take(int run_fd, int wait_ms, struct err *e)
{
	return take(run_fd, RUN_LOCK, 0, wait_ms, e);
}

int
run_lock_held(int run_fd, bool *held, struct err *e)
{
	struct flock range = whole_file();
	/* Only who takes it must be able to write. */
	int fd = open_lock(run_fd, RUN_LOCK, O_RDONLY, e);
	int rc = 0;

	if (fd < 0)
		return -1;
	if (fcntl(fd, F_OFD_GETLK, &range) != 0)
		rc = err_sys(e, ERR_IO, errno, "look at the lock '%s'", RUN_LOCK);
	else
		*held = range.l_type != F_UNLCK;
	fd_close(&fd);
	return rc;
}

int
home_lock_take(const struct home *h, struct err *e)
{
	return take(h->fd, HOME_LOCK, O_CREAT, 0, e);
}

pid_t
home_lock_holder(const struct home *h)
{
	const struct json_options options = {.max_bytes = STAMP_BYTES};
	struct flock lock = whole_file();
	int fd = openat(h->fd, HOME_LOCK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct json *stamp = NULL;
	struct buf text = {0};
	int64_t pid = 0;

	if (fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK &&
	    fs_read_all(&fs_real, "supervisor.stamp", fd, STAMP_BYTES, &text, NULL) == 0 &&
	    json_parse(buf_view(&text), &options, &stamp, NULL, NULL) == 0)
		(void)json_int64(json_get(stamp, "pid"), &pid);
	json_unref(stamp);
	buf_clear(&text);
	fd_close(&fd);
	return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}
