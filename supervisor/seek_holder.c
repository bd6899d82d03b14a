/* Who holds a run's lock: fcntl(2) does not say it of locks that belong to open files. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "seek.h"

enum { HOLDER_PATH = 64, LOOK_MS = 50 };

/* A descriptor that another process was handed with the lock counts too: it keeps it as well. */
static bool
has_open(pid_t pid, const struct stat *lock)
{
	char path[HOLDER_PATH];
	const struct dirent *entry;
	bool found = false;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (dir == NULL) /* somebody else's, or gone */
		return false;
	while (!found && (entry = readdir(dir)) != NULL)
		found = entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
		    fs_same(fs_identity_of(&st), fs_identity_of(lock));
	closedir(dir);
	return found;
}

static void
read_words(pid_t pid, char words[SEEK_HOLDER_TEXT])
{
	char path[HOLDER_PATH];
	ssize_t n = -1, i;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, words, SEEK_HOLDER_TEXT - 1);
	fd_close(&fd);
	for (i = 0; i < n; i++)
		if (words[i] == '\0')
			words[i] = ' ';
	while (n > 0 && words[n - 1] == ' ')
		n--;
	words[n > 0 ? n : 0] = '\0';
}

bool
seek_holder(int run_fd, pid_t *pid, char words[SEEK_HOLDER_TEXT])
{
	const struct dirent *entry;
	bool found = false;
	struct stat lock;
	DIR *dir;
	pid_t one;

	if (fstatat(run_fd, RUN_LOCK, &lock, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	dir = opendir("/proc");
	while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
		one = (pid_t)strtol(entry->d_name, NULL, 10);
		found = one > 0 && one != getpid() && has_open(one, &lock);
		if (found) {
			*pid = one;
			read_words(one, words);
		}
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

const char *
seek_who(int run_fd, char to[SEEK_WHO_TEXT])
{
	char words[SEEK_HOLDER_TEXT];
	pid_t pid;

	if (seek_holder(run_fd, &pid, words))
		snprintf(to, SEEK_WHO_TEXT, "process %d (%s)", (int)pid, words);
	else
		strlcpy(to, "a process that cannot be seen from here", SEEK_WHO_TEXT);
	return to;
}

int
seek_lock_held(int run_fd, int wait_ms, bool *held, struct err *e)
{
	int64_t until = clock_monotonic_ns() + wait_ms * NS_PER_MS;
	int rc;

	while ((rc = run_lock_held(run_fd, held, e)) == 0 && *held && clock_monotonic_ns() < until)
		usleep(LOOK_MS * 1000);
	return rc;
}
