#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "taken.h"

enum { SPOOL_MOST = 10000, EMITTED_MOST = 64 << 20, CHAIN_MOST = 10000 };
#define LINE_MOST (JSON_MAX_REQUEST + 4096) /* a request, with what is written around it */

/* ---- Names ---- */

/* The same file under the same name in our own ops/: it is found where everything of this run is,
 * grows while its process writes, and stays when the run that started it is removed. */
static int
link_output(struct attempt_run *a, const char *suffix, struct err *e)
{
	char name[OP_FILE_TEXT];

	op_file_name(a->w, a->op, a->number, suffix, name);
	if (linkat(a->taken->ops_fd, name, a->w->ops_fd, name, 0) == 0 || errno == EEXIST ||
	    errno == ENOENT)
		return 0;
	return err_sys(e, errno == ENOSPC ? ERR_NOSPACE : ERR_IO, errno, "cannot link ops/%s", name);
}

static int
own_dir(const struct attempt_run *a, struct err *e)
{
	if (mkdirat(a->w->ops_fd, a->taken->dir, 0700) != 0 && errno != EEXIST)
		return err_sys(e, ERR_IO, errno, "cannot create ops/%s", a->taken->dir);
	return fs_open_private_dir(a->w->ops_fd, a->taken->dir, e);
}

void
taken_link(const struct attempt_run *a, const char *name)
{
	char path[OP_FILE_TEXT + 64];

	snprintf(path, sizeof(path), "%s/%s", a->taken->dir, name);
	if (linkat(a->taken->ops_fd, path, a->w->ops_fd, path, 0) != 0 && errno != ENOENT &&
	    errno != EEXIST)
		log_line(LOG_WARNING, "cannot link ops/%s: %s", path, strerror(errno));
}

/* ---- What it had asked for ---- */

/* ERR_NOTFOUND: that run has none of it. */
static int
read_emitted_of(const struct attempt_run *a, int run_fd, struct buf *to, struct err *e)
{
	struct buf path = {0};
	int fd = -1, rc = -1;

	buf_printf(&path, RUN_OPS "/%s", a->taken->dir);
	if (buf_ok(&path, e) == 0) {
		fd = openat(run_fd, buf_text(&path),
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			err_sys(e, errno == ENOENT ? ERR_NOTFOUND : ERR_IO, errno, "'%s'", buf_text(&path));
		else
			rc = fs_read_private_file(fd, EMITTED_FILE, EMITTED_MOST, to, e);
	}
	fd_close(&fd);
	buf_clear(&path);
	return rc;
}

/* Consumes run_fd. *before: the run that this one goes on from; NULL: none, or nobody knows. */
static int
read_emitted_or_before(const struct attempt_run *a, int run_fd, char **before, struct buf *to,
    struct err *e)
{
	struct launch_read launch;
	int rc = read_emitted_of(a, run_fd, to, e);

	*before = NULL;
	if (rc != 0 && e->code == ERR_NOTFOUND && launch_read(run_fd, &launch, NULL) == 0) {
		if (launch.resumed_from != NULL && (*before = strdup(launch.resumed_from)) == NULL)
			rc = err_nomem(e);
		launch_read_clear(&launch);
	}
	fd_close(&run_fd);
	return rc;
}

/* The last run that had it has all of it. One that died before it came to that has nothing. Before the run
 * that started it, its name and number are those of another attempt. */
static int
read_emitted(const struct attempt_run *a, struct buf *to, struct err *e)
{
	const char *starter = a->taken->door != NULL ? link_door_run(a->taken->door) : a->w->run_id;
	const char *first = a->taken->door == NULL ? a->w->run_id : a->w->launch.resumed_from;
	char *run = first != NULL ? strdup(first) : NULL, *before;
	unsigned left = CHAIN_MOST;
	int run_fd, rc = 0;

	if (first != NULL && run == NULL)
		return err_nomem(e);
	while (run != NULL && left-- > 0 && (run_fd = rundir_open(&a->w->home, run, NULL)) >= 0) {
		rc = read_emitted_or_before(a, run_fd, &before, to, e);
		left = strcmp(run, starter) == 0 ? 0 : left;
		free(run);
		run = before;
	}
	free(run);
	return rc == 0 || e->code == ERR_NOTFOUND ? 0 : -1;
}

/* A last line that was cut was never answered. */
static int
restore_lines(struct attempt_run *a, struct buf *text, struct err *e)
{
	const struct json_options o = {.max_bytes = LINE_MOST};
	struct slice rest = buf_view(text);
	const char *end;
	struct json *line;
	int rc = 0;

	while (rc == 0 && (end = memchr(rest.data, '\n', rest.len)) != NULL) {
		line = NULL;
		if (json_parse((struct slice){rest.data, (size_t)(end - rest.data)}, &o, &line, NULL,
			NULL) == 0)
			rc = emit_restore(a, line, e);
		json_unref(line);
		rest.len -= (size_t)(end + 1 - rest.data);
		rest.data = end + 1;
	}
	text->len -= rest.len;
	return rc;
}

static int
keep_emitted(struct attempt_run *a, struct err *e)
{
	struct buf text = {0};
	int dir = -1, rc = read_emitted(a, &text, e);

	if (rc == 0 && text.len > 0)
		rc = restore_lines(a, &text, e);
	if (rc == 0 && text.len > 0 && (dir = own_dir(a, e)) < 0)
		rc = -1;
	if (rc == 0 && text.len > 0)
		rc = fs_replace_file(dir, EMITTED_FILE, buf_view(&text), e);
	fd_close(&dir);
	buf_clear(&text);
	return rc;
}

int
taken_files(struct attempt_run *a, struct err *e)
{
	char name[OP_FILE_TEXT];
	int dir;

	if (link_output(a, ".out", e) != 0 || link_output(a, ".err", e) != 0 ||
	    link_output(a, ".messages", e) != 0)
		return -1;
	op_file_name(a->w, a->op, a->number, ".out", name);
	a->out_fd = openat(a->w->ops_fd, name, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	if (a->out_fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot open ops/%s", name);
	dir = own_dir(a, e);
	if (dir < 0)
		return -1;
	fd_close(&dir);
	*e = (struct err){0};
	return keep_emitted(a, e);
}

/* ---- The spool ---- */

static int
open_spool(const struct taken *t)
{
	char path[OP_FILE_TEXT + 8];

	snprintf(path, sizeof(path), "%s/spool", t->dir);
	return openat(t->ops_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int
is_request(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return d->d_name[0] != '.' && len > 5 && strcmp(d->d_name + len - 5, ".json") == 0;
}

static bool
was_applied(const struct taken *t, const char *name)
{
	struct json_iter it = json_iterate(t->applied);
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (slice_is(json_text(one), name))
			return true;
	return false;
}

static void
apply(struct attempt_run *a, int dir, const char *name)
{
	const struct json_options o = {.max_bytes = LINE_MOST};
	struct taken *t = a->taken;
	struct json *body = NULL;
	struct buf text = {0};
	struct err e = {0};

	if (fs_read_private_file(dir, name, LINE_MOST, &text, &e) != 0 ||
	    json_parse(buf_view(&text), &o, &body, NULL, &e) != 0) {
		err_wrap(&e, "ops/%s/spool/%s", t->dir, name);
		emit_unreadable(a, &e);
	} else {
		emit_spooled(a, body);
	}
	t->applied = json_append(t->applied != NULL ? t->applied : json_array(), json_cstr(name));
	json_unref(body);
	buf_clear(&text);
}

static void
remove_applied(struct attempt_run *a, int dir)
{
	struct taken *t = a->taken;
	struct json_iter it = json_iterate(t->applied);
	const struct json *one;

	if (t->applied == NULL || emit_is_writing(a))
		return;
	while (json_next(&it, NULL, &one))
		if (unlinkat(dir, json_cstr_of(one), 0) != 0 && errno != ENOENT)
			log_line(LOG_WARNING, "ops/%s/spool: %s", t->dir, strerror(errno));
	json_unref(t->applied);
	t->applied = NULL;
}

void
taken_spool_clean(struct attempt_run *a)
{
	int dir = a->taken->applied != NULL ? open_spool(a->taken) : -1;

	if (dir >= 0)
		remove_applied(a, dir);
	fd_close(&dir);
}

/* Names begin with the time: their order is that of the requests. */
void
taken_spool(struct attempt_run *a)
{
	struct dirent **names = NULL;
	int dir = open_spool(a->taken), n, i;

	if (dir < 0)
		return;
	remove_applied(a, dir);
	n = scandirat(dir, ".", &names, is_request, alphasort);
	for (i = 0; i < n; i++) {
		if (i < SPOOL_MOST && !was_applied(a->taken, names[i]->d_name))
			apply(a, dir, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	fd_close(&dir);
}
