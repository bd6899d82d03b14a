/* In which home a run was made, and whether that is the one it is read in. */
#include <stdio.h>
#include <stdlib.h>
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

/* What a run's metadata tells, read in the home `own`. */
static enum session_home
home_of(const char *run_id, const struct json *metadata, struct fs_identity own, const char **path)
{
	const struct json *in = json_get(metadata, META_MADE_IN);
	const char *made = json_cstr_of(json_get(in, "path"));
	struct fs_identity of;
	struct stat st;

	*path = NULL;
	if (made == NULL || !read_identity(in, &of))
		return SESSION_HOME_UNKNOWN;
	if (fs_same(own, of))
		return SESSION_HOME_THIS;
	if (stat(made, &st) != 0 || fs_same(fs_identity_of(&st), own) ||
	    (!fs_same(fs_identity_of(&st), of) && !has_run(made, run_id)))
		return SESSION_HOME_UNKNOWN;
	*path = made;
	return SESSION_HOME_OTHER;
}

enum session_home
session_home(const struct session *s, const struct home *h, const char **path)
{
	struct stat st;

	*path = NULL;
	if (fstat(h->fd, &st) != 0)
		return SESSION_HOME_UNKNOWN;
	return home_of(s->run_id, s->metadata, fs_identity_of(&st), path);
}

bool
session_is_copy(const struct session *s, const struct home *h)
{
	const char *path;

	return session_home(s, h, &path) == SESSION_HOME_OTHER;
}

/* A cancelled one may be that by a kill in the copy. */
const char *
session_owner(const struct session *s, const struct home *h)
{
	bool open = !status_is_terminal(s->status) || s->status == STATUS_CRASHED || s->status == STATUS_CANCELLED;
	const char *path;

	if (!open || s->resumed_as_run[0] != '\0')
		return NULL;
	return session_home(s, h, &path) == SESSION_HOME_OTHER ? path : NULL;
}

/* ---- In statements ---- */

/* The member as every run of this home has it in its metadata: these bytes are no copy's. */
static char *
member_here(const struct store *s)
{
	size_t length = (size_t)(strrchr(s->path, '/') - s->path);
	struct json *in = session_home_json(s->path, length, s->home);
	struct buf text = {0};
	char *member = NULL;

	buf_puts(&text, "\"" META_MADE_IN "\":");
	json_write(&text, in);
	json_unref(in);
	if (in != NULL && !text.failed)
		member = strdup(buf_text(&text));
	buf_clear(&text);
	return member;
}

/* is_copy(run_id, metadata). A count of thousands of runs reads no JSON but in a copy. */
static void
is_copy_function(sqlite3_context *c, int n, sqlite3_value **values)
{
	const struct store *s = sqlite3_user_data(c);
	const char *run_id = (const char *)sqlite3_value_text(values[0]);
	const char *text = (const char *)sqlite3_value_text(values[1]);
	struct json *metadata = NULL;
	struct err ignored = {0};
	const char *path;

	(void)n;
	if (run_id == NULL || text == NULL || strstr(text, s->made_here) != NULL) {
		sqlite3_result_int(c, 0);
		return;
	}
	sqlite3_result_int(c, json_parse(slice_of(text), NULL, &metadata, NULL, &ignored) == 0 &&
	    home_of(run_id, metadata, s->home, &path) == SESSION_HOME_OTHER);
	json_unref(metadata);
}

int
session_home_function(struct store *s, struct err *e)
{
	int rc;

	s->made_here = member_here(s);
	if (s->made_here == NULL)
		return err_nomem(e);
	rc = sqlite3_create_function_v2(s->db, "is_copy", 2, SQLITE_UTF8, s, is_copy_function, NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : store_error(s, rc, "prepare", e);
}
