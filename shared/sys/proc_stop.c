/*
 * Making a process stand still. One that stands in the middle of a change to a database keeps everybody
 * out of it: such a one is let go on for a moment, and stopped again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "proc_private.h"

enum {
	STAND_LOOKS = 500, /* at its threads, until all stand */
	STAND_LOOK_NS = 1000 * 1000,
	STOP_TRIES = 50, /* of one that is met with a lock each time */
	LOCK_LINE = 256
};

/* -1: it cannot be told; it may have ended. */
static int
thread_stands(pid_t pid, pid_t thread)
{
	char path[64], line[512];
	const char *name_end;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)thread);
	if (proc_read_small(path, line, sizeof(line)) <= 0 || (name_end = strrchr(line, ')')) == NULL ||
	    name_end[1] != ' ')
		return -1;
	return strchr("TtZX", name_end[2]) != NULL;
}

static bool
all_stand(pid_t pid)
{
	char path[32];
	DIR *dir;
	pid_t thread;
	bool all = true;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (dir == NULL)
		return false;
	while (all && (thread = proc_next_pid(dir)) > 0)
		all = thread_stands(pid, thread) != 0; /* one that has ended does not run */
	closedir(dir);
	return all;
}

/* proc(5), locks: "1: POSIX  ADVISORY  WRITE 12345 08:01:4711 120 120". What waits has "->" behind its number. */
static int
has_write_lock(pid_t pid, bool *has, struct err *e)
{
	FILE *locks = fopen("/proc/locks", "re");
	char line[LOCK_LINE], kind[16], mode[16], access[16];
	int owner;

	if (locks == NULL)
		return err_sys(e, ERR_ENVIRONMENT, errno, "/proc/locks");
	*has = false;
	while (!*has && fgets(line, sizeof(line), locks) != NULL)
		*has = sscanf(line, "%*[0-9]: %15s %15s %15s %d", kind, mode, access, &owner) == 4 &&
		    owner == (int)pid && strcmp(kind, "POSIX") == 0 && strcmp(access, "WRITE") == 0;
	if (ferror(locks)) {
		err_sys(e, ERR_IO, errno, "/proc/locks");
		fclose(locks);
		return -1;
	}
	fclose(locks);
	return 0;
}

static int
wait_until_it_stands(struct proc_id id, struct err *e)
{
	const struct timespec pause = {0, STAND_LOOK_NS};
	unsigned i;

	for (i = 0; i < STAND_LOOKS; i++) {
		if (!proc_is_alive(id))
			return err_set(e, ERR_NOTFOUND, "process %d has ended", (int)id.pid);
		if (all_stand(id.pid))
			return 0;
		nanosleep(&pause, NULL);
	}
	return err_set(e, ERR_TIMEOUT, "process %d does not stop", (int)id.pid);
}

int
proc_stop(struct proc_id id, int pidfd, struct err *e)
{
	const struct timespec pause = {0, STAND_LOOK_NS};
	bool locked = true;
	unsigned i;
	int rc = 0;

	for (i = 0; rc == 0 && locked && i < STOP_TRIES; i++) {
		if (i > 0)
			nanosleep(&pause, NULL);
		rc = proc_signal(pidfd, SIGSTOP, e);
		if (rc == 0)
			rc = wait_until_it_stands(id, e);
		if (rc == 0)
			rc = has_write_lock(id.pid, &locked, e);
		if ((rc != 0 || locked) && proc_signal(pidfd, SIGCONT, rc == 0 ? e : NULL) != 0)
			rc = -1;
	}
	if (rc == 0 && locked)
		return err_set(e, ERR_TIMEOUT, "process %d always has something locked", (int)id.pid);
	return rc;
}
