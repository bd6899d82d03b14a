/*
 * What an earlier attempt, or an earlier run of the chain, left under the name of a declared
 * artifact must not pass for the work of the next one. It is removed before an attempt starts: by
 * handles below the operation's directory, never through a link, files and links only. Directories
 * stay, and so does everything that was not declared.
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"

enum { NAME_TEXT = 256 };

static int
open_below(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int
remove_entry(int dir, const char *name, const char *path, struct err *e)
{
	/* A directory is no artifact (EISDIR, EPERM by POSIX); the contract will say so. */
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT || errno == EISDIR || errno == EPERM)
		return 0;
	return err_sys(e, ERR_IO, errno, "cannot remove the earlier artifact \"%s\"", path);
}

/* The next component of *rest to name; *rest goes behind it and its slashes. */
static bool
take_component(const char **rest, char name[NAME_TEXT])
{
	size_t len = strcspn(*rest, "/");

	if (len == 0 || len >= NAME_TEXT)
		return false;
	memcpy(name, *rest, len);
	name[len] = '\0';
	*rest += len + strspn(*rest + len, "/");
	return true;
}

/* Takes over dir. Where a directory should be and a file or link is, that is in the way of the
 * contract's path, and goes. */
static int
remove_path(int dir, const char *path, struct err *e)
{
	const char *rest = path + strspn(path, "/");
	char name[NAME_TEXT];
	int below, rc = 0;

	while (take_component(&rest, name)) {
		if (*rest == '\0') {
			rc = remove_entry(dir, name, path, e);
			break;
		}
		below = open_below(dir, name);
		if (below < 0) {
			if (errno == ELOOP || errno == ENOTDIR)
				rc = remove_entry(dir, name, path, e);
			else if (errno != ENOENT)
				rc = err_sys(e, ERR_IO, errno, "cannot look for the earlier artifact "
				    "\"%s\"", path);
			break;
		}
		fd_close(&dir);
		dir = below;
	}
	fd_close(&dir);
	return rc;
}

int
artifacts_remove_stale(int artifacts_fd, const struct flow_op *op, struct err *e)
{
	const char *const *path;
	int own = open_below(artifacts_fd, op->id), dir;
	int rc = 0;

	if (own < 0 && errno == ENOENT)
		return 0;
	/* What is there instead is in the way of all of them; the directory is made later. */
	if (own < 0 && (errno == ELOOP || errno == ENOTDIR))
		return remove_entry(artifacts_fd, op->id, op->id, e);
	if (own < 0)
		return err_sys(e, ERR_IO, errno, "its artifact directory (artifacts/%s) cannot be used", op->id);
	for (path = op->how->artifacts; rc == 0 && *path != NULL; path++) {
		dir = fcntl(own, F_DUPFD_CLOEXEC, 0);
		rc = dir < 0 ? err_sys(e, ERR_IO, errno, "the artifact directory of %s", op->id)
			     : remove_path(dir, *path, e);
	}
	fd_close(&own);
	return rc;
}
