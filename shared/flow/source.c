/*
 * From a text or a file to a flow. Apart from read.c, so that a worker, which gets documents that
 * were read already, is linked without the YAML library.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/checkpoint.h"
#include "flowsup/log.h"

#include "document.h"
#include "model.h"

enum { READ_CHUNK = 64 << 10 };

/* ---- From a text ---- */

static int
text_problem(const struct flow_source *source, struct json_where where, struct flow_diagnostics *d,
    struct err *e)
{
	struct flow_diagnostic *p = flow_diagnostics_add(d);
	enum err_code code = e->code;

	if (code == ERR_NOMEM || p == NULL)
		return err_nomem(e);
	p->where = where;
	memcpy(p->message, e->msg, sizeof(p->message) - 1);
	hint_of(p, e);
	return diagnostics_error(d, source->name, code, e);
}

int
flow_read(const struct flow_source *source, struct flow **out, struct flow_diagnostics *d,
    struct err *e)
{
	struct flow_diagnostics mine = {0};
	struct json_where where;
	struct json *document;
	struct err local = {0};
	int r;

	if (d == NULL)
		d = &mine;
	if (document_read(source, &document, &where, &local) < 0)
		r = text_problem(source, where, d, &local);
	else
		r = model_read(document, ORIGIN_PERSON, source->name, d, out, &local);
	if (r < 0 && e != NULL)
		*e = local;
	flow_diagnostics_clear(&mine);
	return r;
}

/* ---- From a file ---- */

/* One byte more than is allowed is enough to know. */
static int
read_all(int fd, const char *name, struct buf *to, struct err *e)
{
	ssize_t n;
	char *at;

	while (to->len <= JSON_MAX_DOCUMENT) {
		at = buf_reserve(to, READ_CHUNK);
		if (at == NULL)
			return buf_ok(to, e);
		n = read(fd, at, READ_CHUNK);
		if (n == 0)
			return 0;
		if (n < 0 && errno == EBADF)
			return err_set(e, ERR_USAGE, "%s is closed", name);
		if (n < 0 && errno != EINTR)
			return err_sys(e, ERR_IO, errno, "cannot read %s", name);
		if (n > 0)
			to->len += (size_t)n;
	}
	return err_set(e, ERR_LIMIT, "%s: the document is larger than %zu MiB", name,
	    JSON_MAX_DOCUMENT >> 20);
}

/* The name nearest to that of a file in its directory; "" where none is near. */
static void
nearest_file(const char *path, char nearest[NAME_MAX + 1])
{
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path, *names[2];
	char *dir = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
	DIR *listing = dir != NULL ? opendir(dir) : NULL;
	const struct dirent *entry;
	const char *found;

	nearest[0] = '\0';
	while (listing != NULL && (entry = readdir(listing)) != NULL) {
		names[0] = nearest;
		names[1] = entry->d_name;
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, name) == 0)
			continue;
		found = text_nearest(name, names, 2);
		if (found != NULL && found != nearest)
			strlcpy(nearest, entry->d_name, NAME_MAX + 1);
	}
	if (listing != NULL)
		closedir(listing);
	free(dir);
}

/* False: there is no link of this name. */
static bool
is_dead_link(const char *path, struct err *e)
{
	char target[PATH_MAX], word[SHELL_WORD_TEXT];
	ssize_t len = readlink(path, target, sizeof(target) - 1);

	if (len < 0)
		return false;
	err_set(e, ERR_NOTFOUND, "%s leads nowhere: it is a link to %.*s, which is not there", path, (int)len, target);
	err_hint(e, "ls -l %s", shell_word(word, path));
	return true;
}

static int
no_file(const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	int dir = slash == NULL ? 0 : (int)(slash - path) + 1;
	char nearest[NAME_MAX + 1], found[PATH_MAX], word[SHELL_WORD_TEXT];

	if (path[0] == '\0')
		return err_set(e, ERR_NOTFOUND, "the name of the file is empty");
	if (is_dead_link(path, e))
		return -1;
	err_set(e, ERR_NOTFOUND, "there is no file %s", path);
	if (path[0] == '@') /* as a run is named */
		return err_hint(e, "flowsup show %s", shell_word(word, path));
	nearest_file(path, nearest);
	snprintf(found, sizeof(found), "%.*s%s", dir, path, nearest);
	if (nearest[0] != '\0')
		return err_hint(e, "flowsup check %s   # did you mean this?", shell_word(word, found));
	if (dir == 0)
		return err_hint(e, "ls");
	return access(found, F_OK) == 0 ? err_hint(e, "ls %s", shell_word(word, found)) : -1;
}

static int
open_error(const char *path, int sys, struct err *e)
{
	if (sys == ENOENT || sys == ENOTDIR)
		return no_file(path, e);
	return err_sys(e, sys == EACCES ? ERR_PERMISSION : ERR_IO, sys, "cannot open %s", path);
}

/* Opening a FIFO waits for who will write to it, as reading it would: without, it would look empty. */
static int
open_document(const char *path, int *fd, struct err *e)
{
	struct stat st;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (*fd < 0)
		return open_error(path, errno, e);
	if (fstat(*fd, &st) < 0)
		return err_sys(e, ERR_IO, errno, "cannot look at %s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_USAGE, "%s is a directory", path);
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > JSON_MAX_DOCUMENT)
		return err_set(e, ERR_LIMIT, "%s: the document is larger than %zu MiB", path,
		    JSON_MAX_DOCUMENT >> 20);
	return 0;
}

static bool
looks_like_json(const char *name, struct slice text)
{
	size_t len = strlen(name), i = 0;

	if (len > 5 && strcmp(name + len - 5, ".json") == 0)
		return true;
	if ((len > 5 && strcmp(name + len - 5, ".yaml") == 0) ||
	    (len > 4 && strcmp(name + len - 4, ".yml") == 0))
		return false;
	while (i < text.len && strchr(" \t\r\n", text.data[i]) != NULL)
		i++;
	return i < text.len && text.data[i] == '{';
}

/* The text of a file or ("-") of standard input; source->text is a view of it. */
static int
read_source(const char *path, struct flow_source *source, struct buf *text, struct err *e)
{
	bool standard = strcmp(path, "-") == 0;
	int fd = STDIN_FILENO, r = 0;

	*source = (struct flow_source){.name = standard ? "standard input" : path};
	if (!standard)
		r = open_document(path, &fd, e);
	if (r == 0)
		r = read_all(fd, source->name, text, e);
	if (!standard && fd >= 0 && close(fd) < 0 && r == 0)
		r = err_sys(e, ERR_IO, errno, "cannot read %s", path);
	source->text = buf_view(text);
	source->json = r == 0 && looks_like_json(source->name, source->text);
	return r;
}

int
flow_read_file(const char *path, struct flow **out, struct flow_diagnostics *d, struct err *e)
{
	struct flow_source source;
	char digest[CKPT_DIGEST_TEXT];
	struct buf text = {0};
	int r = read_source(path, &source, &text, e);

	if (r == 0)
		r = flow_read(&source, out, d, e);
	if (r == 0) {
		ckpt_digest_bytes(buf_view(&text), digest);
		set_digest(owned(*out), strdup(digest));
	}
	buf_clear(&text);
	return r;
}

int
flow_read_object(const char *path, struct json **out, struct err *e)
{
	struct flow_diagnostics d = {0};
	struct flow_source source;
	struct json_where where;
	struct buf text = {0};
	struct json *v = NULL;
	struct err local = {0};
	int r = read_source(path, &source, &text, e);

	if (r == 0 && document_read_settings(&source, &v, &where, &local) < 0) {
		r = text_problem(&source, where, &d, &local);
		if (e != NULL)
			*e = local;
	}
	if (r == 0 && json_type(v) != JSON_OBJECT) {
		r = err_set(e, ERR_DOCUMENT, "%s: it must be an object, not %s", path, found(v));
		json_unref(v);
	}
	if (r == 0)
		*out = v;
	flow_diagnostics_clear(&d);
	buf_clear(&text);
	return r;
}
