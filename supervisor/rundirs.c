#include "rundirs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/fs.h"

enum { LOOKS = 500 }; /* one at a time, before the names are read */

struct rundirs {
	const struct home *home;
	unsigned looks;
	char (*name)[RUN_ID_TEXT]; /* sorted; what could not be read is not among them */
	size_t names, room;
};

struct rundirs *
rundirs_new(const struct home *h)
{
	struct rundirs *d = calloc(1, sizeof(*d));

	if (d != NULL)
		d->home = h;
	return d;
}

void
rundirs_free(struct rundirs *d)
{
	if (d == NULL)
		return;
	free(d->name);
	free(d);
}

static bool
add_name(struct rundirs *d, const char *name)
{
	char (*more)[RUN_ID_TEXT];
	size_t room = d->room == 0 ? LOOKS : d->room * 2;

	if (d->names == d->room) {
		more = realloc(d->name, room * sizeof(*more));
		if (more == NULL)
			return false;
		d->name = more;
		d->room = room;
	}
	strlcpy(d->name[d->names++], name, sizeof(*d->name));
	return true;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void
read_names(struct rundirs *d)
{
	int fd = openat(d->home->runs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (dir == NULL) {
		fd_close(&fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL)
		if (run_id_is_valid(entry->d_name) && !add_name(d, entry->d_name))
			break;
	closedir(dir);
	if (d->names > 0)
		qsort(d->name, d->names, sizeof(*d->name), compare);
}

bool
rundirs_has(struct rundirs *d, const char *run_id)
{
	if (++d->looks == LOOKS)
		read_names(d);
	if (d->names > 0 && bsearch(run_id, d->name, d->names, sizeof(*d->name), compare) != NULL)
		return true;
	return faccessat(d->home->runs_fd, run_id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
