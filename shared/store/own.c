/*
 * Supervisors and workers among other processes. One that was started from inside an operation stands
 * below that operation's worker, but belongs to its home: whoever ends what an operation left must leave
 * it alone. A name alone is soon taken: the lock has to fit.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "flowsup/proc.h"

enum { COMMAND_BYTES = PATH_MAX + 1024, WORDS_MOST = 16 };

struct words {
	const char *list[WORDS_MOST];
	unsigned count;
};

static bool
split(char *text, size_t len, struct words *w)
{
	size_t at;

	w->count = 0;
	for (at = 0; at < len && w->count < WORDS_MOST; at += strlen(text + at) + 1)
		w->list[w->count++] = text + at;
	return at >= len;
}

/* The word behind `name`, or NULL. */
static const char *
value_of(const struct words *w, const char *name)
{
	unsigned i;

	for (i = 1; i + 1 < w->count; i++)
		if (strcmp(w->list[i], name) == 0)
			return w->list[i + 1];
	return NULL;
}

static bool
has_word(const struct words *w, const char *word)
{
	unsigned i;

	for (i = 1; i < w->count; i++)
		if (strcmp(w->list[i], word) == 0)
			return true;
	return false;
}

static bool
is_supervisor(const struct home *h, pid_t pid)
{
	return home_lock_holder(h) == pid;
}

static bool
is_worker(const struct home *h, const char *run_id)
{
	int run_fd = rundir_open(h, run_id, &(struct err){0});
	bool held = false;

	if (run_fd >= 0 && run_lock_held(run_fd, &held, &(struct err){0}) != 0)
		held = false;
	fd_close(&run_fd);
	return held;
}

/* The name by which it was called, without the directory. */
static const char *
called(const struct words *w)
{
	const char *slash = strrchr(w->list[0], '/');

	return slash != NULL ? slash + 1 : w->list[0];
}

/* A worker is started by a supervisor alone, with both words. */
static bool
is_working(const struct words *w)
{
	const char *home = value_of(w, "--home"), *run = value_of(w, "--run");
	struct home h;
	bool is;

	if (home == NULL || run == NULL || home[0] != '/' || home_open(home, false, &h, &(struct err){0}) != 0)
		return false;
	is = is_worker(&h, run);
	home_close(&h);
	return is;
}

/* path: of a file that the process has open. */
static bool
has_lock(pid_t pid, char *path)
{
	char *slash = strrchr(path, '/');
	struct home h;
	bool is;

	if (slash == NULL || slash == path || strcmp(slash + 1, HOME_LOCK) != 0)
		return false;
	*slash = '\0';
	if (home_open(path, false, &h, &(struct err){0}) != 0)
		return false;
	is = is_supervisor(&h, pid);
	home_close(&h);
	return is;
}

/* People call a supervisor with its home in a word, relative to where they are, or in their environment: what it
 * has open tells in any case. */
static bool
is_supervising(pid_t pid)
{
	char dir_path[32], target[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	ssize_t n;
	DIR *dir;

	snprintf(dir_path, sizeof(dir_path), "/proc/%ld/fd", (long)pid);
	dir = opendir(dir_path);
	while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
		n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		found = has_lock(pid, target);
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

bool
own_is_apart(pid_t pid)
{
	char text[COMMAND_BYTES];
	ssize_t len = proc_command(pid, text, sizeof(text));
	struct words w;

	if (len <= 0 || !split(text, (size_t)len, &w))
		return false;
	if (strcmp(called(&w), "flowsup-worker") == 0)
		return is_working(&w);
	return has_word(&w, "supervisor") && is_supervising(pid);
}
