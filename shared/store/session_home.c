/* In which home a run was made, and whether that is the one it is read in. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "flowsup/fs.h"
#include "session_row.h"

struct json *
session_home_json(const char *path, size_t length, struct fs_identity home)
{
	struct json *in = json_set(json_object(), "path",
	    json_string_lossy((struct slice){path, length}, NULL));

	in = json_set(in, "device", json_uint(home.dev));
	return json_set(in, "inode", json_uint(home.ino));
}

static bool
read_identity(const struct json *in, struct fs_identity *to)
{
	uint64_t device, inode;

	if (!json_uint64(json_get(in, "device"), &device) || !json_uint64(json_get(in, "inode"), &inode))
		return false;
	*to = (struct fs_identity){.dev = (dev_t)device, .ino = (ino_t)inode};
	return true;
}

/* Something else may have come to its path since it was moved away over file systems: that has no such run. */
static bool
has_run(const char *home, const char *run_id)
{
	char path[HOME_MAX_PATH + sizeof("/" HOME_RUNS "/") + RUN_ID_TEXT];
	struct stat st;

	return (size_t)snprintf(path, sizeof(path), "%s/" HOME_RUNS "/%s", home, run_id) < sizeof(path) &&
	    lstat(path, &st) == 0;
}

enum session_home
session_home(const struct session *s, const struct home *h, const char **path)
{
	const struct json *in = json_get(s->metadata, META_MADE_IN);
	const char *made = json_cstr_of(json_get(in, "path"));
	struct fs_identity of, own;
	struct stat st;

	*path = NULL;
	if (made == NULL || !read_identity(in, &of) || fstat(h->fd, &st) != 0)
		return SESSION_HOME_UNKNOWN;
	own = fs_identity_of(&st);
	if (fs_same(own, of))
		return SESSION_HOME_THIS;
	if (stat(made, &st) != 0 || fs_same(fs_identity_of(&st), own) ||
	    (!fs_same(fs_identity_of(&st), of) && !has_run(made, s->run_id)))
		return SESSION_HOME_UNKNOWN;
	*path = made;
	return SESSION_HOME_OTHER;
}

bool
session_is_copy(const struct session *s, const struct home *h)
{
	const char *path;

	return session_home(s, h, &path) == SESSION_HOME_OTHER;
}
