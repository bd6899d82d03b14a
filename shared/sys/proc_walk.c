/*
 * Finding the processes that belong together. A walk over /proc sees numbers, and a number may pass
 * to another process at any moment. So each one is looked at twice: its line is read, a handle is
 * opened, the line is read again; only when the start time is the same and it still belongs is it
 * handed out. What forks meanwhile may be missed: callers repeat until a pass finds nothing new.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "proc_private.h"

enum {
	/* An environment is read in pieces and to this end; the kernel's usual limit is 6 MiB. */
	ENVIRON_MOST = 8 << 20,
	ENVIRON_PIECE = 16 * 1024,
	MARK_MOST = 4096 + 64, /* a name and a path */
	MARKS_MOST = 8,
	CHILDREN_MOST = 8 << 20,
	/* So long a process is waited for that is executing a program: usually a fraction of a step, and more
	 * where processors are scarce. */
	EXEC_STEPS = 250,
	EXEC_STEP_NS = 200 * 1000,
	/* So often none is found, outside of such a moment, before there is none: another may have begun. */
	EMPTY_LOOKS = 8,
	/* Of parents looked at: more than any real chain, fewer than a number that comes round. */
	ANCESTORS_MOST = 4096,
};

/* "123" to 123, anything else to 0. */
static pid_t
number_of(const char *name)
{
	long value;
	char *end;

	if (name[0] < '1' || name[0] > '9')
		return 0;
	errno = 0;
	value = strtol(name, &end, 10);
	return *end == '\0' && errno == 0 && value <= INT32_MAX ? (pid_t)value : 0;
}

pid_t
proc_next_pid(DIR *dir)
{
	struct dirent *entry;
	pid_t pid;

	while (errno = 0, (entry = readdir(dir)) != NULL) {
		pid = number_of(entry->d_name);
		if (pid != 0)
			return pid;
	}
	return errno != 0 ? -1 : 0;
}

DIR *
proc_open_dir(struct err *e)
{
	DIR *dir = opendir("/proc");

	if (dir == NULL)
		err_sys(e, ERR_ENVIRONMENT, errno, "/proc");
	return dir;
}

static bool
candidate(pid_t pid, proc_belongs *test, const void *arg, struct proc_stat *st)
{
	return pid != getpid() && proc_stat_read(pid, st, NULL) == 0 && !proc_stat_is_zombie(st) &&
	    test(arg, st);
}

int
proc_visit(pid_t pid, proc_belongs *test, const void *arg, proc_each *each, void *each_arg, bool *end)
{
	struct proc_stat first, second;
	int fd, visited = 0;

	if (!candidate(pid, test, arg, &first))
		return 0;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return 0;
	if (candidate(pid, test, arg, &second) && second.start_ticks == first.start_ticks) {
		*end = each(each_arg, &second, fd) != 0;
		visited = 1;
	}
	fd_close(&fd);
	return visited;
}

/* `likely`, or NULL, is asked before a line is read: that costs more than to be refused another file of the
 * process, as most of them do. */
static int
walk(bool (*likely)(pid_t pid, const void *arg), proc_belongs *test, const void *arg, proc_each *each,
    void *each_arg, struct err *e)
{
	DIR *dir = proc_open_dir(e);
	bool end = false;
	int count = 0;
	pid_t pid;

	if (dir == NULL)
		return -1;
	while ((pid = proc_next_pid(dir)) > 0 && !end)
		if (likely == NULL || likely(pid, arg))
			count += proc_visit(pid, test, arg, each, each_arg, &end);
	if (pid < 0)
		count = err_sys(e, ERR_IO, errno, "/proc");
	closedir(dir);
	return count;
}

/* ---- What waits for us ---- */

int
proc_each_ended_child(void (*each)(void *arg, pid_t pid), void *arg, struct err *e)
{
	DIR *dir = proc_open_dir(e);
	struct proc_stat st;
	pid_t pid;

	if (dir == NULL)
		return -1;
	while ((pid = proc_next_pid(dir)) > 0)
		if (proc_stat_read(pid, &st, NULL) == 0 && st.ppid == getpid() && proc_stat_is_zombie(&st))
			each(arg, pid);
	if (pid < 0)
		err_sys(e, ERR_IO, errno, "/proc");
	closedir(dir);
	return pid < 0 ? -1 : 0;
}

int
proc_each_child(void (*each)(void *arg, pid_t pid), void *arg, struct err *e)
{
	struct buf text = {0};
	char path[64], *at, *end;
	int fd, rc;
	long pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, ERR_ENVIRONMENT, errno, "'%s'", path);
	rc = fs_read_all(&fs_real, "proc.children", fd, CHILDREN_MOST, &text, e);
	fd_close(&fd);
	if (rc == 0)
		rc = buf_ok(&text, e);
	at = (char *)(uintptr_t)buf_text(&text);
	while (rc == 0 && (pid = strtol(at, &end, 10)) > 0 && end != at) {
		each(arg, (pid_t)pid);
		at = end;
	}
	buf_clear(&text);
	return rc;
}

/* ---- By group ---- */

static bool
is_in_group(const void *arg, const struct proc_stat *st)
{
	const pid_t *group = arg;

	return st->pgrp == *group;
}

int
proc_each_in_group(pid_t group, proc_each *each, void *arg, struct err *e)
{
	return walk(NULL, is_in_group, &group, each, arg, e);
}

/* ---- By marks in the environment ---- */

/* An entry of an environment as it comes in: so much of it as a mark can have, and its length. */
struct entry {
	char text[MARK_MOST + 1];
	size_t len;
};

static bool
fits(const struct entry *entry, const char *mark)
{
	size_t len = strlen(mark);

	if (mark[len - 1] == '=')
		return entry->len >= len && memcmp(entry->text, mark, len) == 0;
	return slice_is((struct slice){entry->text, entry->len}, mark);
}

static void
end_entry(struct entry *entry, const struct proc_marks *marks, bool *found)
{
	unsigned i;

	for (i = 0; i < marks->count; i++)
		if (fits(entry, marks->text[i]))
			found[i] = true;
	entry->len = 0;
}

static void
feed(struct entry *entry, const char *bytes, size_t n, const struct proc_marks *marks, bool *found)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (bytes[i] == '\0')
			end_entry(entry, marks, found);
		else if (entry->len < sizeof(entry->text))
			/* An entry longer than any mark fills the last byte, and equals none. */
			entry->text[entry->len++] = bytes[i];
	}
}

static bool
all_true(const bool *found, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		if (!found[i])
			return false;
	return true;
}

/* The number of bytes that it has, as far as they were needed; -1 where it is not for us to read. */
static ssize_t
read_environ(pid_t pid, const struct proc_marks *marks, bool *found)
{
	char path[32], piece[ENVIRON_PIECE];
	struct entry entry = {.len = 0};
	size_t got = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%jd/environ", (intmax_t)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while (got < ENVIRON_MOST && !all_true(found, marks->count)) {
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		feed(&entry, piece, (size_t)n, marks, found);
		got += (size_t)n;
	}
	/* The last one may lack its NUL, when the process has changed its own title. */
	end_entry(&entry, marks, found);
	fd_close(&fd);
	return (ssize_t)got;
}

/* A process that executes a program has no environment for a moment; it bears its marks before and
 * behind that moment. */
bool
proc_environ_has(pid_t pid, const struct proc_marks *marks)
{
	bool found[MARKS_MOST] = {false};
	const struct timespec step = {0, EXEC_STEP_NS};
	enum proc_moment moment = PROC_RUNS;
	int steps = 0, looks = 0;

	while (read_environ(pid, marks, found) == 0 && moment != PROC_WITHOUT_MEMORY && steps < EXEC_STEPS &&
	    looks < EMPTY_LOOKS) {
		moment = proc_moment(pid);
		looks += moment == PROC_RUNS;
		steps += moment == PROC_AT_EXEC;
		if (moment == PROC_AT_EXEC)
			nanosleep(&step, NULL);
	}
	return all_true(found, marks->count);
}

static bool
is_marked(const void *arg, const struct proc_stat *st)
{
	return proc_environ_has(st->pid, arg);
}

static bool
has_marks(pid_t pid, const void *arg)
{
	return proc_environ_has(pid, arg);
}

static int
check_marks(const struct proc_marks *marks, struct err *e)
{
	unsigned i;

	/* No marks would fit everybody. */
	if (marks->count == 0 || marks->count > MARKS_MOST)
		return err_set(e, ERR_INTERNAL, "%u marks: 1 to %d are allowed", marks->count,
		    MARKS_MOST);
	for (i = 0; i < marks->count; i++)
		if (strlen(marks->text[i]) > MARK_MOST || strchr(marks->text[i], '=') == NULL)
			return err_set(e, ERR_INTERNAL, "mark %u is no NAME=value, or too long", i);
	return 0;
}

int
proc_each_marked(const char *const *marks, unsigned nmarks, proc_each *each, void *arg,
    struct err *e)
{
	const struct proc_marks wanted = {marks, nmarks};

	if (check_marks(&wanted, e) != 0)
		return -1;
	return walk(has_marks, is_marked, &wanted, each, arg, e);
}

/* ---- By command line ---- */

/* Anybody may call a program as he likes, but not as this user. */
static bool
is_own(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid();
}

/* Reads until `to` is full or the end; the number of bytes. */
static size_t
read_full(int fd, char *to, size_t size)
{
	size_t got = 0;
	ssize_t n;

	while (got < size) {
		n = read(fd, to + got, size - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

ssize_t
proc_command(pid_t pid, char *to, size_t size)
{
	char path[32];
	size_t got = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%jd/cmdline", (intmax_t)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (is_own(fd))
		got = read_full(fd, to, size);
	fd_close(&fd);
	return got > 0 && got < size && to[got - 1] == '\0' ? (ssize_t)got : -1;
}

/* The words as the kernel shows them, each with its NUL, and room to see that one has more. */
struct command_line {
	struct buf wanted;
	char *seen;
};

/* How much of st's command line is read, with room for one more than is wanted; 0 unless it begins so. */
static size_t
read_command(const struct command_line *c, const struct proc_stat *st)
{
	char path[32];
	size_t got = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%jd/cmdline", (intmax_t)st->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (is_own(fd))
		got = read_full(fd, c->seen, c->wanted.len + 1);
	fd_close(&fd);
	return got >= c->wanted.len && memcmp(c->seen, c->wanted.data, c->wanted.len) == 0 ? got : 0;
}

static bool
is_called(const void *arg, const struct proc_stat *st)
{
	const struct command_line *c = arg;

	return read_command(c, st) == c->wanted.len;
}

static bool
begins_with(const void *arg, const struct proc_stat *st)
{
	return read_command(arg, st) > 0;
}

/* ---- Upwards ---- */

static bool
descends(pid_t pid, proc_belongs *test, const void *arg)
{
	struct proc_stat st;
	int steps;

	for (steps = 0; pid > 0 && steps < ANCESTORS_MOST; steps++) {
		if (proc_stat_read(pid, &st, NULL) != 0)
			return false;
		if (test(arg, &st))
			return true;
		pid = st.ppid;
	}
	return false;
}

bool
proc_descends_from_marked(pid_t pid, const char *mark)
{
	const struct proc_marks wanted = {&mark, 1};

	return check_marks(&wanted, NULL) == 0 && descends(pid, is_marked, &wanted);
}

bool
proc_descends_from_called(pid_t pid, const char *name)
{
	struct command_line c = {0};
	bool found = false;

	buf_add(&c.wanted, name, strlen(name) + 1);
	c.seen = malloc(strlen(name) + 2);
	if (!c.wanted.failed && c.seen != NULL)
		found = descends(pid, begins_with, &c);
	free(c.seen);
	buf_clear(&c.wanted);
	return found;
}

/* ---- By command line, of all ---- */

int
proc_each_command(const char *const *words, proc_each *each, void *arg, struct err *e)
{
	struct command_line c = {0};
	int count = -1;

	/* No words would fit what the kernel itself runs. */
	if (*words == NULL)
		return err_set(e, ERR_INTERNAL, "a command line without words");
	for (; *words != NULL; words++)
		buf_add(&c.wanted, *words, strlen(*words) + 1);
	if (buf_ok(&c.wanted, e) == 0) {
		c.seen = malloc(c.wanted.len + 1);
		count = c.seen != NULL ? walk(NULL, is_called, &c, each, arg, e) : err_nomem(e);
	}
	free(c.seen);
	buf_clear(&c.wanted);
	return count;
}
