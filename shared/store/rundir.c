#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "launch.h"

enum { NEW_NAME = sizeof(RUN_NEW_PREFIX) - 1 + RUN_ID_TEXT, UNMARKED_S = 60, FILES_MOST = 6 };
static const char own_prefix[] = "FLOWSUP_";

/* A directory that is filled: its files, until they are fsynced. */
struct filling {
	int fd;
	struct {
		const char *name;
		int fd;
	} files[FILES_MOST];
	size_t nfiles;
};

static int
add_file(struct filling *f, const char *name, struct slice bytes, struct err *e)
{
	assert(f->nfiles < FILES_MOST);
	if (fs_begin_file(f->fd, name, bytes, &f->files[f->nfiles].fd, e) != 0)
		return -1;
	f->files[f->nfiles++].name = name;
	return 0;
}

static int
sync_files(const struct filling *f, struct err *e)
{
	size_t i;

	for (i = 0; i < f->nfiles; i++)
		if (fsync(f->files[i].fd) != 0)
			return err_sys(e, ERR_IO, errno, "%s: cannot sync", f->files[i].name);
	return 0;
}

static int
write_json(struct filling *f, const char *name, const struct json *value, struct err *e)
{
	struct buf text = {0};
	int rc = -1;

	json_write(&text, value);
	buf_putc(&text, '\n');
	if (buf_ok(&text, e) == 0)
		rc = add_file(f, name, buf_view(&text), e);
	buf_clear(&text);
	return rc;
}

static int
write_launch(struct filling *f, const struct launch *l, struct err *e)
{
	struct json *object = NULL;
	int rc = launch_json(l, &object, e);

	if (rc == 0)
		rc = write_json(f, RUN_LAUNCH, object, e);
	json_unref(object);
	return rc;
}

/* Names of this program would make an operation believe it belongs to another run. */
static bool
is_inherited(const char *entry)
{
	return strncmp(entry, own_prefix, sizeof(own_prefix) - 1) != 0 ||
	    strncmp(entry, "FLOWSUP_HOME=", sizeof("FLOWSUP_HOME=") - 1) == 0;
}

static bool
is_withheld(const struct json *names, const char *entry)
{
	struct json_iter it = json_iterate(names);
	size_t len = strcspn(entry, "=");
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (json_text(one).len == len && memcmp(json_text(one).data, entry, len) == 0)
			return true;
	return false;
}

static int
write_environ(struct filling *f, char *const *environment, const struct json *withheld,
    struct err *e)
{
	struct buf text = {0};
	int rc = -1;

	for (; *environment != NULL; environment++)
		if (is_inherited(*environment) && !is_withheld(withheld, *environment))
			buf_add(&text, *environment, strlen(*environment) + 1);
	if (buf_ok(&text, e) == 0)
		rc = add_file(f, RUN_ENVIRON, buf_view(&text), e);
	buf_clear(&text);
	return rc;
}

static int
write_files(struct filling *f, const struct launch *l, struct err *e)
{
	const struct slice nothing = {"", 0};

	if (write_json(f, RUN_FLOW, l->flow, e) != 0 || write_launch(f, l, e) != 0 ||
	    write_environ(f, l->environment, l->withheld, e) != 0)
		return -1;
	if (l->carry != NULL && write_json(f, RUN_CARRY, l->carry, e) != 0)
		return -1;
	if (l->attempts.len > 0 && add_file(f, RUN_ATTEMPTS, l->attempts, e) != 0)
		return -1;
	/* The lock file is made here and never again: a second one would be a second lock. */
	return add_file(f, RUN_LOCK, nothing, e);
}

/* Whoever needs one of the directories makes it: most runs that wait in a queue need none. */
static int
fill(int fd, const struct launch *l, struct err *e)
{
	struct filling f = {.fd = fd};
	int rc = write_files(&f, l, e);

	if (rc == 0)
		rc = sync_files(&f, e);
	while (f.nfiles > 0)
		fd_close(&f.files[--f.nfiles].fd);
	return rc == 0 ? fs_sync_dir(&fs_real, "rundir.sync", fd, NULL, e) : -1;
}

static int
make_new(int runs_fd, const char *name, struct err *e)
{
	if (mkdirat(runs_fd, name, 0700) != 0)
		return err_sys(e,
		    errno == ENOSPC || errno == EDQUOT	 ? ERR_NOSPACE
			: errno == EACCES || errno == EROFS ? ERR_PERMISSION
							    : ERR_CREATE,
		    errno, "create '%s'", name);
	return fs_open_private_dir(runs_fd, name, e);
}

static int
install(int runs_fd, const char *from, const char *to, struct err *e)
{
	/* Ids are random: one that is there already belongs to somebody else. */
	if (renameat2(runs_fd, from, runs_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	/* EINVAL: a file system without the flag. A directory never replaces one that is not empty. */
	if (errno == EINVAL && renameat(runs_fd, from, runs_fd, to) == 0)
		return 0;
	return err_sys(e, ERR_CREATE, errno, "rename '%s' to '%s'", from, to);
}

/* It gets its name when it is locked: else somebody who looks between the two calls would find it left behind. */
static int
mark(int fd, int *making, struct err *e)
{
	static const char unlocked[] = RUN_MAKING ".new";
	int made = openat(fd, unlocked, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (made >= 0 && flock(made, LOCK_EX | LOCK_NB) == 0 && renameat(fd, unlocked, fd, RUN_MAKING) == 0) {
		*making = made;
		return 0;
	}
	err_sys(e, errno == ENOSPC || errno == EDQUOT ? ERR_NOSPACE : ERR_CREATE, errno, "create '%s'",
	    RUN_MAKING);
	fd_close(&made);
	return -1;
}

void
rundir_born(const struct home *h, const char *run_id, int *making)
{
	char path[RUN_ID_TEXT + sizeof(RUN_MAKING)];

	snprintf(path, sizeof(path), "%s/%s", run_id, RUN_MAKING);
	/* Where it stays, the row tells. */
	(void)unlinkat(h->runs_fd, path, 0);
	fd_close(making);
}

static bool
is_recent(int dir_fd)
{
	struct stat st;

	return fstat(dir_fd, &st) == 0 && clock_wall_ns() / NS_PER_S - st.st_mtim.tv_sec <= UNMARKED_S;
}

enum rundir_stage
rundir_stage(const struct home *h, const char *name)
{
	int fd = openat(h->runs_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int file = fd < 0 ? -1 : openat(fd, RUN_MAKING, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	enum rundir_stage stage = RUNDIR_BORN;

	if (file >= 0)
		stage = flock(file, LOCK_EX | LOCK_NB) == 0 ? RUNDIR_CUT_OFF : RUNDIR_IN_MAKING;
	else if (fd >= 0 && strncmp(name, RUN_NEW_PREFIX, strlen(RUN_NEW_PREFIX)) == 0)
		stage = is_recent(fd) ? RUNDIR_IN_MAKING : RUNDIR_CUT_OFF; /* between two calls */
	fd_close(&file);
	fd_close(&fd);
	return stage;
}

int
rundir_create(const struct home *h, const struct launch *l, int *making, struct err *e)
{
	char name[NEW_NAME];
	const char *made = NULL; /* under which name there is something to take back */
	int fd, held = -1, rc = -1;

	assert(run_id_is_valid(l->run_id));
	snprintf(name, sizeof(name), RUN_NEW_PREFIX "%s", l->run_id);
	fd = make_new(h->runs_fd, name, e);
	if (fd < 0)
		goto out;
	made = name;
	if (mark(fd, &held, e) != 0 || fill(fd, l, e) != 0 || install(h->runs_fd, name, l->run_id, e) != 0)
		goto out;
	made = l->run_id;
	if (fs_sync_dir(&fs_real, "runs.sync", h->runs_fd, NULL, e) != 0)
		goto out;
	made = NULL;
	rc = 0;
	*making = held;
out:
	fd_close(&fd);
	if (made != NULL)
		fs_remove_tree(h->runs_fd, made, NULL);
	if (rc != 0)
		fd_close(&held);
	if (rc != 0) {
		err_wrap(e, "run directory '%s/%s/%s'", h->path, HOME_RUNS, l->run_id);
		home_hint(h->path, e);
	}
	return rc;
}

int
rundir_open(const struct home *h, const char *run_id, struct err *e)
{
	int fd;

	if (!run_id_is_valid(run_id))
		return err_set(e, ERR_NOTFOUND, "'%s' is not a run id", run_id);
	fd = fs_open_private_dir(h->runs_fd, run_id, e);
	if (fd >= 0)
		return fd;
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_set(e, ERR_NOTFOUND, "run %s: its directory '%s/" HOME_RUNS "/%s' is gone",
		    run_id, h->path, run_id);
	return err_wrap(e, "run %s: its directory", run_id);
}

int
rundir_read_json(int run_fd, const char *name, struct json **out, struct err *e)
{
	const struct json_options o = {.max_bytes = JSON_MAX_PROGRAM};
	struct buf text = {0};
	int rc = fs_read_private_file(run_fd, name, JSON_MAX_PROGRAM, &text, e);

	if (rc == 0 && (rc = json_parse(buf_view(&text), &o, out, NULL, e)) != 0)
		err_wrap(e, "'%s'", name);
	buf_clear(&text);
	return rc;
}

int
rundir_remove(const struct home *h, const char *run_id, struct err *e)
{
	if (!run_id_is_valid(run_id))
		return err_set(e, ERR_NOTFOUND, "'%s' is not a run id", run_id);
	if (fs_remove_tree(h->runs_fd, run_id, e) != 0)
		return err_wrap(e, "run %s", run_id);
	return fs_sync_dir(&fs_real, "runs.sync", h->runs_fd, NULL, e);
}

static size_t
count_entries(struct slice text)
{
	size_t n = 0;
	const char *nul;

	while (text.len > 0 && (nul = memchr(text.data, '\0', text.len)) != NULL) {
		text.len -= (size_t)(nul - text.data) + 1;
		text.data = nul + 1;
		n++;
	}
	return n;
}

int
environ_read(int run_fd, char **block, char ***envp, struct err *e)
{
	struct buf text = {0};
	size_t n, i;
	char **list, *at;

	if (fs_read_private_file(run_fd, RUN_ENVIRON, JSON_MAX_LINE, &text, e) != 0) {
		buf_clear(&text);
		return -1;
	}
	if (text.len > 0 && text.data[text.len - 1] != '\0') {
		buf_clear(&text);
		return err_set(e, ERR_IO, "'%s' is damaged: its last entry is cut", RUN_ENVIRON);
	}
	n = count_entries(buf_view(&text));
	list = calloc(n + 1, sizeof(*list));
	at = buf_steal(&text);
	if (list == NULL || at == NULL) {
		free(list);
		free(at);
		return err_nomem(e);
	}
	*block = at;
	for (i = 0; i < n; i++, at += strlen(at) + 1)
		list[i] = at;
	*envp = list;
	return 0;
}
