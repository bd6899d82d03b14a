/* Looking a program up in a search path, and guessing what a missing one was meant to be. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "proc_private.h"

#define DEFAULT_SEARCH_PATH "/usr/local/bin:/usr/bin:/bin"

/* A hint is worth reading some directories, not all that a strange search path may name. */
enum { HINT_MOST_NAMES = 20000, HINT_MOST_LENGTH_DIFFERENCE = 3 };

/* 0 or an errno: ENOENT, EACCES (there, but not to be executed), ... */
static int
check_program(int base, const char *path)
{
	struct stat st;

	if (fstatat(base, path, &st, 0) != 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(base, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* The next directory of *search; false at the end. An empty one is the current directory. */
static bool
next_dir(const char **search, struct slice *dir)
{
	if (*search == NULL)
		return false;
	dir->data = *search;
	dir->len = strcspn(*search, ":");
	*search = (*search)[dir->len] == ':' ? *search + dir->len + 1 : NULL;
	if (dir->len == 0)
		*dir = slice_of(".");
	return true;
}

/* 0 with the path in `out`, or the errno that says most: EACCES before ENOENT, as execvp(3). */
static int
search_dirs(int base, const char *name, const char *search, struct buf *out)
{
	struct slice dir;
	int worst = ENOENT, sys;

	while (next_dir(&search, &dir)) {
		buf_reset(out);
		buf_slice(out, dir);
		buf_putc(out, '/');
		buf_puts(out, name);
		if (buf_ok(out, NULL) != 0)
			return ENOMEM;
		sys = check_program(base, buf_text(out));
		if (sys == 0)
			return 0;
		if (sys != ENOENT && sys != ENOTDIR)
			worst = sys;
	}
	return worst;
}

struct names {
	char **list;
	size_t count, cap;
};

static bool
keep_name(struct names *all, const char *name)
{
	size_t cap = all->cap ? all->cap * 2 : 64;
	char **more;

	if (all->count == all->cap) {
		more = reallocarray(all->list, cap, sizeof(*more));
		if (more == NULL)
			return false;
		all->list = more;
		all->cap = cap;
	}
	all->list[all->count] = strdup(name);
	if (all->list[all->count] == NULL)
		return false;
	all->count++;
	return true;
}

static bool
near_in_length(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);

	return (x > y ? x - y : y - x) <= HINT_MOST_LENGTH_DIFFERENCE;
}

static void
gather_dir(int base, struct slice dir, const char *name, struct names *all)
{
	struct buf path = {0};
	struct dirent *entry;
	DIR *listing = NULL;
	int fd;

	buf_slice(&path, dir);
	fd = path.failed ? -1 : openat(base, buf_text(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	buf_clear(&path);
	if (fd < 0 || (listing = fdopendir(fd)) == NULL) {
		fd_close(&fd);
		return;
	}
	while (all->count < HINT_MOST_NAMES && (entry = readdir(listing)) != NULL)
		if (entry->d_name[0] != '.' && near_in_length(entry->d_name, name) &&
		    !keep_name(all, entry->d_name))
			break;
	closedir(listing);
}

/* A hint is a favour: whatever goes wrong here only means that there is none. */
static void
add_hint(int base, const char *name, const char *search, struct err *e)
{
	const char *rest = search, *nearest;
	struct buf found = {0};
	struct names all = {0};
	struct slice dir;

	while (next_dir(&rest, &dir))
		gather_dir(base, dir, name, &all);
	nearest = text_nearest(name, (const char *const *)all.list, all.count);
	if (nearest != NULL && search_dirs(base, nearest, search, &found) == 0)
		err_advice(e, "did you mean \"%s\"?", nearest);
	buf_clear(&found);
	while (all.count > 0)
		free(all.list[--all.count]);
	free(all.list);
}

static int
fail_find(int base, const char *name, const char *search, int sys, struct err *e)
{
	if (sys == ENOMEM)
		err_nomem(e);
	else
		err_sys(e, ERR_ENVIRONMENT, sys, "cannot execute \"%s\"", name);
	if (sys == ENOENT && e != NULL && name[0] != '\0' && search != NULL)
		add_hint(base, name, search, e);
	errno = sys;
	return -1;
}

int
proc_find_at(int base, const char *name, const char *search_path, struct buf *out, struct err *e)
{
	const char *search = search_path != NULL ? search_path : DEFAULT_SEARCH_PATH;
	struct buf found = {0};
	int sys;

	if (name[0] == '\0' || strchr(name, '/') != NULL) {
		sys = name[0] == '\0' ? ENOENT : check_program(base, name);
		if (sys != 0)
			return fail_find(base, name, NULL, sys, e);
		buf_puts(&found, name);
	} else {
		sys = search_dirs(base, name, search, &found);
		if (sys != 0) {
			buf_clear(&found);
			return fail_find(base, name, search, sys, e);
		}
	}
	buf_slice(out, buf_view(&found));
	sys = buf_ok(&found, NULL) != 0 || buf_ok(out, NULL) != 0 ? ENOMEM : 0;
	buf_clear(&found);
	return sys == 0 ? 0 : fail_find(base, name, NULL, sys, e);
}

int
proc_find_program(const char *name, const char *search_path, struct buf *out, struct err *e)
{
	return proc_find_at(AT_FDCWD, name, search_path, out, e);
}
