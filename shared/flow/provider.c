/* Where the files of providers are, and which there are. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "flowsup/places.h"
#include "provider_private.h"

static const char suffix[] = ".json";
enum { SUFFIX = sizeof(suffix) - 1 };

int
provider_search_init(struct provider_search *s, char *const *envp, struct err *e)
{
	*s = (struct provider_search){0};
	if (place_config(envp, "providers", &s->config, e) == 0 &&
	    place_data("providers", &s->data, e) == 0)
		return 0;
	provider_search_clear(s);
	return -1;
}

void
provider_search_clear(struct provider_search *s)
{
	free(s->config);
	free(s->data);
	*s = (struct provider_search){0};
}

/* ---- Names ---- */

static bool
is_name(const char *name, size_t len)
{
	static const char allowed[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t i;

	if (len == 0 || len > PROVIDER_MAX_NAME || name[0] == '.' || name[0] == '-')
		return false;
	for (i = 0; i < len; i++)
		if (name[i] == '\0' || strchr(allowed, name[i]) == NULL)
			return false;
	return true;
}

struct names {
	char **list;
	size_t count, cap;
};

static int
add_name(struct names *n, const char *name, size_t len, struct err *e)
{
	size_t cap = n->cap * 2 + 16, i;
	char **list;

	for (i = 0; i < n->count; i++)
		if (strlen(n->list[i]) == len && memcmp(n->list[i], name, len) == 0)
			return 0;
	if (n->count == n->cap) {
		list = reallocarray(n->list, cap, sizeof(*list));
		if (list == NULL)
			return err_nomem(e);
		n->list = list;
		n->cap = cap;
	}
	n->list[n->count] = strndup(name, len);
	if (n->list[n->count] == NULL)
		return err_nomem(e);
	n->count++;
	return 0;
}

static void
names_clear(struct names *n)
{
	while (n->count > 0)
		free(n->list[--n->count]);
	free(n->list);
}

/* A directory that is not there has no names. */
static int
add_directory(struct names *n, const char *path, struct err *e)
{
	DIR *dir = path == NULL ? NULL : opendir(path);
	const struct dirent *entry;
	size_t len;
	int rc = 0;

	if (dir == NULL)
		return 0;
	while (rc == 0 && (entry = readdir(dir)) != NULL) {
		len = strlen(entry->d_name);
		if (len > SUFFIX && strcmp(entry->d_name + len - SUFFIX, suffix) == 0 &&
		    is_name(entry->d_name, len - SUFFIX))
			rc = add_name(n, entry->d_name, len - SUFFIX, e);
	}
	closedir(dir);
	return rc;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
all_names(const struct provider_search *s, struct names *n, struct err *e)
{
	if (add_directory(n, s->config, e) != 0 || add_directory(n, s->data, e) != 0)
		return -1;
	if (n->count > 0)
		qsort(n->list, n->count, sizeof(*n->list), compare_names);
	return 0;
}

int
provider_list(const struct provider_search *s, provider_each *each, void *arg, struct err *e)
{
	struct names n = {0};
	int rc = all_names(s, &n, e);
	size_t i;

	for (i = 0; rc == 0 && i < n.count; i++)
		rc = each(arg, n.list[i]);
	names_clear(&n);
	return rc;
}

/* ---- Files ---- */

static int
not_found(const struct provider_search *s, const char *name, struct err *e)
{
	struct names n = {0};
	const char *nearest = NULL;
	struct err none = {0};

	err_set(e, ERR_NOTFOUND, "there is no provider \"%.64s\"", name);
	if (all_names(s, &n, &none) == 0)
		nearest = text_nearest(name, (const char *const *)n.list, n.count);
	if (nearest != NULL)
		err_advice(e, "did you mean \"%s\"?", nearest);
	else if (s->config != NULL)
		err_hint(e, "flowsup doctor   # lists providers; one of your own is %s/NAME.json", s->config);
	else
		err_hint(e, "flowsup doctor   # lists providers");
	names_clear(&n);
	return -1;
}

/* One that leads nowhere is there, and cannot be read. */
static bool
is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* 1: there is no such file. A user's file may be a link, so it is read as any file is. */
static int
read_file(const char *path, struct buf *to, struct err *e)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR) && !is_link(path))
		return 1;
	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot open '%s'", path);
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		rc = err_set(e, ERR_DOCUMENT, "'%s' is not a regular file", path);
	else
		rc = fs_read_all(&fs_real, "provider.read", fd, PROVIDER_MAX_FILE, to, e);
	fd_close(&fd);
	return rc == 0 ? 0 : err_wrap(e, "%s", path);
}

static int
load_from(const char *directory, const char *name, struct provider **out, struct err *e)
{
	struct buf path = {0}, text = {0};
	int rc;

	if (directory == NULL)
		return 1;
	if (is_link(directory) && access(directory, F_OK) != 0)
		return err_sys(e, ERR_IO, errno, "cannot open '%s'", directory);
	buf_printf(&path, "%s/%s%s", directory, name, suffix);
	rc = buf_ok(&path, e);
	if (rc == 0)
		rc = read_file(buf_text(&path), &text, e);
	if (rc == 0)
		rc = provider_read(buf_text(&path), name, buf_view(&text), out, e);
	buf_clear(&path);
	buf_clear(&text);
	return rc;
}

int
provider_load(const struct provider_search *s, const char *name, struct provider **out,
    struct err *e)
{
	int rc;

	if (!is_name(name, strlen(name)))
		return not_found(s, name, e);
	rc = load_from(s->config, name, out, e);
	if (rc == 1)
		rc = load_from(s->data, name, out, e);
	return rc == 1 ? not_found(s, name, e) : rc;
}
