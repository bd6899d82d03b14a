/*
 * Supervisors and workers among other processes. One that was started from inside an operation stands
 * below that operation's worker, but belongs to its home: whoever ends what an operation left must leave
 * it alone. A name alone is soon taken: the lock has to fit.
 */
#include <limits.h>
#include <string.h>

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

bool
own_is_apart(pid_t pid)
{
	char text[COMMAND_BYTES];
	ssize_t len = proc_command(pid, text, sizeof(text));
	const char *home, *run;
	struct words w;
	struct home h;
	bool is;

	if (len <= 0 || !split(text, (size_t)len, &w) || (home = value_of(&w, "--home")) == NULL)
		return false;
	run = strcmp(called(&w), "flowsup-worker") == 0 ? value_of(&w, "--run") : NULL;
	if (run == NULL && !has_word(&w, "supervisor"))
		return false;
	if (home[0] != '/' || home_open(home, false, &h, &(struct err){0}) != 0)
		return false;
	is = run != NULL ? is_worker(&h, run) : is_supervisor(&h, pid);
	home_close(&h);
	return is;
}
