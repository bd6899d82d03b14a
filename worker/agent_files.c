/*
 * What must be there before an agent starts: the instruction, the record of what is started, and
 * the conversation for it alone. The lock is an open file description lock; a worker that dies
 * frees it, and the operation that outlived it is known by the process written into the file.
 */
#include "agent.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/log.h"

enum { LOCK_TRIES = 8, COPY_PIECE = 64 << 10, OWNER_MOST = 128 };

/* ---- The lock ---- */

/* One name for a conversation: provider, home, id. Digits of a digest, so that any id is a name. */
static int
name_lock(struct agent *g, struct err *e)
{
	char digest[CKPT_DIGEST_TEXT];
	struct json *v = json_array();
	int rc;

	v = json_append(v, json_cstr(g->p->name));
	v = json_append(v, json_string_lossy(slice_of(g->home != NULL ? g->home : ""), NULL));
	v = json_append(v, json_string_lossy(slice_of(g->old), NULL));
	if (v == NULL)
		return err_nomem(e);
	rc = ckpt_digest(v, digest, e);
	json_unref(v);
	if (rc == 0)
		snprintf(g->lock_name, sizeof(g->lock_name), "%.32s.lock",
		    digest + strlen(CKPT_DIGEST_PREFIX));
	return rc;
}

static int
open_locks(const struct io_context *c, struct err *e)
{
	if (mkdirat(c->home->fd, HOME_CONVERSATIONS, 0700) != 0 && errno != EEXIST)
		return err_sys(e, ERR_IO, errno, "cannot create '%s'", HOME_CONVERSATIONS);
	return fs_open_private_dir(c->home->fd, HOME_CONVERSATIONS, e);
}

static bool
still_named(int dir, const char *name, int fd)
{
	struct stat have, named;

	return fstat(fd, &have) == 0 && fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fs_same(fs_identity_of(&have), fs_identity_of(&named));
}

/* The process that had it last outlived its worker. */
static bool
owner_lives(int fd)
{
	char text[OWNER_MOST];
	struct proc_id id = {0};
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	unsigned long long start;
	int pid;

	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "%d %llu", &pid, &start) != 2)
		return false;
	id.pid = pid;
	id.start_ticks = start;
	return proc_is_alive(id);
}

static int
busy(const struct agent *g, struct err *e)
{
	return err_set(e, ERR_BUSY, "somebody else uses the conversation %s", g->old);
}

/* Whoever lets go of it removes the name, so what was locked must still have it. */
static int
try_lock(struct agent *g, int dir, struct err *e)
{
	struct flock lock = {.l_whence = SEEK_SET,
	    .l_type = g->lock_exclusive ? F_WRLCK : F_RDLCK};
	int fd, tries;

	for (tries = 0; tries < LOCK_TRIES; tries++) {
		fd = openat(dir, g->lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			return err_sys(e, ERR_IO, errno, "cannot open a conversation's lock");
		if (fcntl(fd, F_OFD_SETLK, &lock) != 0 || owner_lives(fd)) {
			fd_close(&fd);
			return busy(g, e);
		}
		if (still_named(dir, g->lock_name, fd)) {
			g->lock_fd = fd;
			return 0;
		}
		fd_close(&fd);
	}
	return busy(g, e);
}

/* To go on in a conversation it must be ours alone; several may copy it at once. What stands in a
 * file of its own is copied, and needs no lock. */
static int
take_lock(struct agent *g, const struct io_context *c, struct err *e)
{
	int dir, rc;

	if (g->start == PROVIDER_NEW || g->old_store != NULL || g->chat != NULL || g->lock_fd >= 0)
		return 0;
	g->lock_exclusive = g->start == PROVIDER_RESUME;
	if (name_lock(g, e) != 0)
		return -1;
	dir = open_locks(c, e);
	if (dir < 0)
		return -1;
	rc = try_lock(g, dir, e);
	fd_close(&dir);
	return rc;
}

void
agent_unlock(struct agent *g)
{
	char name[sizeof(HOME_CONVERSATIONS) + sizeof(g->lock_name) + 1];

	if (g->lock_fd < 0)
		return;
	snprintf(name, sizeof(name), HOME_CONVERSATIONS "/%s", g->lock_name);
	if (g->lock_exclusive && unlinkat(g->w->home.fd, name, 0) != 0 && errno != ENOENT)
		log_line(LOG_WARNING, "%s cannot be removed", name);
	fd_close(&g->lock_fd);
}

void
agent_lock_owner(struct agent *g, struct proc_id id)
{
	char text[OWNER_MOST];
	int n;

	if (g->lock_fd < 0 || !g->lock_exclusive)
		return;
	n = snprintf(text, sizeof(text), "%d %llu\n", (int)id.pid, (unsigned long long)id.start_ticks);
	if (pwrite(g->lock_fd, text, (size_t)n, 0) != n)
		log_line(LOG_WARNING, "the user of a conversation cannot be noted");
}

/* ---- Files ---- */

static int
copy_file(const char *from, int dir, const char *name, struct err *e)
{
	int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), out = -1, rc = 0;
	char piece[COPY_PIECE];
	ssize_t n = 0;

	if (in < 0)
		return err_set(e, ERR_REFUSED, "the conversation's file '%s' is not there", from);
	out = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		rc = err_sys(e, ERR_IO, errno, "cannot create '%s'", name);
	while (rc == 0 && (n = read(in, piece, sizeof(piece))) > 0)
		rc = fs_write_all(&fs_real, "agent.store", out, (struct slice){piece, (size_t)n}, e);
	if (rc == 0 && n < 0)
		rc = err_sys(e, ERR_IO, errno, "cannot read '%s'", from);
	fd_close(&in);
	fd_close(&out);
	return rc;
}

static off_t
size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}

/* The largest file that fits: beside a conversation there may be some that only announce it. */
static int
glob_chat(const struct agent *g, const char *id, char **out, struct err *e)
{
	struct provider_values v = {0};
	struct buf pattern = {0};
	char old8[9];
	glob_t found = {0};
	size_t i, best = 0;
	int rc;

	snprintf(old8, sizeof(old8), "%s", id);
	v.at[PLACE_OLD] = id;
	v.at[PLACE_OLD8] = old8;
	v.at[PLACE_HOME] = g->home;
	v.at[PLACE_CWD] = g->cwd;
	rc = provider_expand(g->p, g->p->chat_pattern, &v, &pattern, e);
	if (rc == 0 && glob(buf_text(&pattern), 0, NULL, &found) != 0)
		rc = err_set(e, ERR_REFUSED, "no file fits '%s'", buf_text(&pattern));
	for (i = 1; rc == 0 && i < found.gl_pathc; i++)
		if (size_of(found.gl_pathv[i]) > size_of(found.gl_pathv[best]))
			best = i;
	if (rc == 0) {
		*out = strdup(found.gl_pathv[best]);
		rc = *out == NULL ? err_nomem(e) : 0;
	}
	globfree(&found);
	buf_clear(&pattern);
	return rc;
}

static int
find_chat(struct agent *g, struct err *e)
{
	if (g->p->chat_pattern == NULL || g->start == PROVIDER_NEW)
		return 0;
	if (g->chat == NULL)
		return g->old == NULL ? 0 : glob_chat(g, g->old, &g->chat, e);
	if (access(g->chat, R_OK) != 0)
		return err_set(e, ERR_REFUSED, "the conversation's file '%s' is not there", g->chat);
	return 0;
}

int
agent_keep_chat(struct agent *g, int ops_fd, const char *id, struct err *e)
{
	char name[OP_FILE_TEXT + 32], *from = NULL;
	const char *ending;
	int rc = glob_chat(g, id, &from, e);

	ending = rc == 0 ? strrchr(from, '.') : NULL;
	snprintf(name, sizeof(name), "%s/" AGENT_CHAT "%.16s", g->dir,
	    ending != NULL && strchr(ending, '/') == NULL ? ending : "");
	if (rc == 0)
		rc = copy_file(from, ops_fd, name, e);
	if (rc == 0 && asprintf(&g->kept, "%s/%s", g->w->ops_path, name) < 0) {
		g->kept = NULL;
		rc = err_nomem(e);
	}
	free(from);
	return rc;
}

static struct json *
optional(struct json *o, const char *name, const char *text)
{
	return text == NULL || text[0] == '\0'
	    ? o : json_set(o, name, json_string_lossy(slice_of(text), NULL));
}

/* What a later process must know of an attempt that left no outcome. */
static struct json *
record(const struct agent *g)
{
	static const char *const starts[PROVIDER_STARTS] = {"new", "resume", "fork"};
	struct json *o = json_set(json_object(), "provider", json_cstr(g->p->name));

	o = optional(o, "version", g->version);
	o = json_set(o, "start", json_cstr(starts[g->start]));
	if (provider_argv_has(g->p->starts[g->start], PLACE_SID))
		o = optional(o, "id", g->sid);
	else if (g->start == PROVIDER_RESUME)
		o = optional(o, "id", g->old);
	o = optional(o, "continues", g->start == PROVIDER_NEW ? NULL : g->old);
	o = optional(o, "home", g->home);
	o = optional(o, "cwd", g->cwd);
	o = optional(o, "store", g->store);
	return json_set(o, "tentative", json_bool(true));
}

static int
write_record(const struct agent *g, int dir, struct err *e)
{
	struct json *o = record(g);
	struct buf text = {0};
	int rc;

	if (o == NULL)
		return err_nomem(e);
	json_write(&text, o);
	buf_putc(&text, '\n');
	json_unref(o);
	rc = buf_ok(&text, e);
	if (rc == 0)
		rc = fs_create_file(dir, AGENT_RECORD, buf_view(&text), e);
	buf_clear(&text);
	return rc;
}

static int
fill(struct agent *g, int dir, struct slice mark, struct err *e)
{
	if (g->old_store != NULL && copy_file(g->old_store, dir, g->p->store, e) != 0)
		return -1;
	if (fs_create_file(dir, AGENT_INSTRUCTION, slice_of(g->prompt), e) != 0 ||
	    write_record(g, dir, e) != 0)
		return -1;
	if (mark.len > 0 && fs_create_file(dir, "started", mark, e) != 0)
		return -1;
	return fs_sync_dir(&fs_real, "agent.dir", dir, NULL, e);
}

/* The lock comes first: while it is not to be had, nothing else was made. */
int
agent_files_make(struct agent *g, struct io_context *c, struct slice mark, struct err *e)
{
	int dir, rc;

	if (take_lock(g, c, e) != 0 || find_chat(g, e) != 0)
		return -1;
	if (mkdirat(c->ops_fd, g->dir, 0700) != 0 && errno != EEXIST)
		return err_sys(e, ERR_IO, errno, "cannot create ops/%s", g->dir);
	dir = fs_open_private_dir(c->ops_fd, g->dir, e);
	if (dir < 0)
		return -1;
	rc = fill(g, dir, mark, e);
	fd_close(&dir);
	return rc == 0 ? fs_sync_dir(&fs_real, "agent.ops", c->ops_fd, NULL, e) : -1;
}
