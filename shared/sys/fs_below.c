/* Files of others that must lie in a directory of ours. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"

bool
fs_path_is_inside(const char *path)
{
	const char *p = path;
	size_t len;

	if (path[0] == '\0' || path[0] == '/')
		return false;
	for (;; p += len + 1) {
		len = strcspn(p, "/");
		if (len == 2 && p[0] == '.' && p[1] == '.')
			return false;
		if (p[len] == '\0')
			return true;
	}
}

static bool
path_of(int fd, char to[PATH_MAX])
{
	char link[sizeof("/proc/self/fd/") + 16];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, to, PATH_MAX - 1);
	if (n > 0)
		to[n] = '\0';
	return n > 0;
}

static bool
is_below(int dirfd, int fd)
{
	char root[PATH_MAX], file[PATH_MAX];
	size_t len;

	if (!path_of(dirfd, root) || !path_of(fd, file))
		return false;
	len = strlen(root);
	return strncmp(file, root, len) == 0 && file[len] == '/';
}

/* errno is ENOENT on return only where nothing is there. */
static int
refuse(int fd, const char *words, const char **why)
{
	*why = words;
	fd_close(&fd);
	errno = EINVAL;
	return -1;
}

static int
open_regular(int root_fd, const char *path, int flags, const char *outside, struct stat *st, const char **why)
{
	int fd = openat(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);

	*why = NULL;
	if (fd < 0) {
		*why = errno == ENOENT ? "is not there" : errno == ELOOP && (flags & O_NOFOLLOW) != 0 ?
		    "is a symbolic link" : "cannot be opened";
		return -1;
	}
	if (fstat(fd, st) != 0)
		return refuse(fd, "cannot be opened", why);
	if (outside != NULL && !is_below(root_fd, fd))
		return refuse(fd, outside, why);
	return S_ISREG(st->st_mode) ? fd : refuse(fd, "is not a regular file", why);
}

int
fs_open_artifact(int root_fd, const char *path, struct stat *st, const char **why)
{
	int fd = open_regular(root_fd, path, 0, "leads out of the artifact root by a symbolic link", st, why);

	return fd >= 0 && st->st_size == 0 ? refuse(fd, "is empty", why) : fd;
}

int
fs_open_recorded(int dirfd, const char *path, struct stat *st, const char **why)
{
	static const char outside[] = "leads out of the run's directory";

	if (path[0] == '/')
		return open_regular(dirfd, path, O_NOFOLLOW, NULL, st, why);
	if (!fs_path_is_inside(path))
		return refuse(-1, outside, why);
	return open_regular(dirfd, path, O_NOFOLLOW, outside, st, why);
}
