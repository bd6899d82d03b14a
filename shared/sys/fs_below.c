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

int
fs_open_artifact(int root_fd, const char *path, struct stat *st, const char **why)
{
	int fd = openat(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	*why = NULL;
	if (fd < 0 || fstat(fd, st) != 0)
		*why = errno == ENOENT ? "is not there" : "cannot be opened";
	else if (!is_below(root_fd, fd))
		*why = "leads out of the artifact root by a symbolic link";
	else if (!S_ISREG(st->st_mode))
		*why = "is not a regular file";
	else if (st->st_size == 0)
		*why = "is empty";
	if (*why != NULL)
		fd_close(&fd);
	return fd;
}
