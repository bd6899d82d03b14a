/* Knowing a process: its line in /proc, its start time, a handle that cannot pass to another. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "proc_private.h"

enum { STAT_LINE = 2048 };

ssize_t
proc_read_small(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	do
		n = read(fd, to, size - 1);
	while (n < 0 && errno == EINTR);
	fd_close(&fd);
	if (n >= 0)
		to[n] = '\0';
	return n;
}

int
proc_place_here(struct proc_place *out, struct err *e)
{
	struct proc_place here = {0};
	struct stat st;

	if (gethostname(here.host, sizeof(here.host) - 1) != 0)
		return err_sys(e, ERR_ENVIRONMENT, errno, "cannot get the host name");
	if (proc_read_small("/proc/sys/kernel/random/boot_id", here.boot_id,
		sizeof(here.boot_id)) != BOOT_ID_TEXT - 1)
		return err_set(e, ERR_ENVIRONMENT, "cannot read the boot id; is /proc mounted?");
	if (stat("/proc/self/ns/pid", &st) != 0)
		return err_sys(e, ERR_ENVIRONMENT, errno, "/proc/self/ns/pid");
	here.pid_namespace = (uint64_t)st.st_ino;
	*out = here;
	return 0;
}

void
proc_place_text(const struct proc_place *p, char to[PROC_PLACE_TEXT])
{
	snprintf(to, PROC_PLACE_TEXT, "%s %s %" PRIu64, p->host, p->boot_id, p->pid_namespace);
}

/* A name without white space, as host names and boot ids are. */
static const char *
take_word(const char *text, char *to, size_t size)
{
	size_t len = strcspn(text, " ");

	if (len == 0 || len >= size || text[len] != ' ')
		return NULL;
	memcpy(to, text, len);
	to[len] = '\0';
	return text + len + 1;
}

bool
proc_place_parse(const char *text, struct proc_place *out)
{
	struct proc_place p = {0};
	char *end;

	text = take_word(text, p.host, sizeof(p.host));
	if (text != NULL)
		text = take_word(text, p.boot_id, sizeof(p.boot_id));
	if (text == NULL || text[0] < '0' || text[0] > '9')
		return false;
	p.pid_namespace = strtoull(text, &end, 10);
	if (*end != '\0')
		return false;
	*out = p;
	return true;
}

bool
proc_place_is(const struct proc_place *there, const struct proc_place *here, bool *other_boot)
{
	bool boot = strcmp(there->boot_id, here->boot_id) == 0;

	/* Namespaces are numbered anew at each boot. */
	*other_boot = !boot && strcmp(there->host, here->host) == 0;
	return boot ? there->pid_namespace == here->pid_namespace : *other_boot;
}

/* Numbers behind the name, in proc(5)'s count: 3 is the state. */
enum {
	FIELD_STATE = 3,
	FIELD_PPID = 4,
	FIELD_PGRP = 5,
	FIELD_SESSION = 6,
	FIELD_FLAGS = 9,
	FIELD_UTIME = 14,
	FIELD_STIME = 15,
	FIELD_THREADS = 20,
	FIELD_START = 22,
	FIELD_ENV_END = 51,
	/* Of the flags, for which there is no header: a process on its way out, a thread of the kernel. */
	FLAG_ENDING = 0x00000004,
	FLAG_KERNEL = 0x00200000,
};

static bool
next_number(const char **at, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(*at, &end, 10);
	if (end == *at || errno != 0)
		return false;
	*at = end;
	return true;
}

bool
proc_stat_parse(const char *line, struct proc_stat *out)
{
	int64_t field[FIELD_START + 1] = {0};
	const char *at = line;
	int i;

	if (!next_number(&at, &field[0]))
		return false;
	/* The name may hold anything; nothing behind it holds a parenthesis. */
	at = strrchr(at, ')');
	if (at == NULL || at[1] != ' ' || at[2] == '\0')
		return false;
	out->state = at[2];
	at += 3;
	for (i = FIELD_PPID; i <= FIELD_START; i++)
		if (!next_number(&at, &field[i]))
			return false;
	out->pid = (pid_t)field[0];
	out->ppid = (pid_t)field[FIELD_PPID];
	out->pgrp = (pid_t)field[FIELD_PGRP];
	out->session = (pid_t)field[FIELD_SESSION];
	out->threads = (unsigned)field[FIELD_THREADS];
	out->start_ticks = (uint64_t)field[FIELD_START];
	out->cpu_ticks = (uint64_t)field[FIELD_UTIME] + (uint64_t)field[FIELD_STIME];
	return true;
}

int
proc_stat_read(pid_t pid, struct proc_stat *out, struct err *e)
{
	char path[32], line[STAT_LINE];
	struct proc_stat st;

	if (pid <= 0)
		return err_set(e, ERR_NOTFOUND, "no process %jd", (intmax_t)pid);
	snprintf(path, sizeof(path), "/proc/%jd/stat", (intmax_t)pid);
	if (proc_read_small(path, line, sizeof(line)) < 0) {
		if (errno == ENOENT || errno == ESRCH)
			return err_set(e, ERR_NOTFOUND, "no process %jd", (intmax_t)pid);
		return err_sys(e, ERR_IO, errno, "%s", path);
	}
	if (!proc_stat_parse(line, &st))
		return err_set(e, ERR_IO, "%s: not understood", path);
	*out = st;
	return 0;
}

int
proc_identify(pid_t pid, struct proc_id *out, struct err *e)
{
	struct proc_stat st;

	if (proc_stat_read(pid, &st, e) != 0)
		return -1;
	*out = (struct proc_id){st.pid, st.start_ticks};
	return 0;
}

enum proc_moment
proc_moment(pid_t pid)
{
	char path[32], line[STAT_LINE];
	int64_t flags = 0, value = 0;
	const char *at;
	int i;

	snprintf(path, sizeof(path), "/proc/%jd/stat", (intmax_t)pid);
	if (proc_read_small(path, line, sizeof(line)) < 0 || (at = strrchr(line, ')')) == NULL ||
	    at[1] != ' ' || at[2] == '\0' || strchr("ZXx", at[2]) != NULL)
		return PROC_WITHOUT_MEMORY;
	at += 3;
	for (i = FIELD_PPID; i <= FIELD_ENV_END; i++) {
		value = (int64_t)strtoull(at, (char **)(uintptr_t)&at, 10); /* one field is above INT64_MAX */
		if (i == FIELD_FLAGS)
			flags = value;
	}
	if ((flags & (FLAG_ENDING | FLAG_KERNEL)) != 0)
		return PROC_WITHOUT_MEMORY;
	return value == 0 ? PROC_AT_EXEC : PROC_RUNS;
}

bool
proc_stat_is_zombie(const struct proc_stat *st)
{
	/* A first thread that has ended shows Z as well while others of its process run on. */
	return st->state == 'X' || st->state == 'x' || (st->state == 'Z' && st->threads <= 1);
}

bool
proc_is_alive(struct proc_id id)
{
	struct proc_stat st;

	return proc_stat_read(id.pid, &st, NULL) == 0 && st.start_ticks == id.start_ticks &&
	    !proc_stat_is_zombie(&st);
}

int
proc_open(struct proc_id id, struct err *e)
{
	struct proc_id now;
	int fd;

	if (id.pid <= 0)
		return err_set(e, ERR_NOTFOUND, "no process %jd", (intmax_t)id.pid);
	fd = (int)syscall(SYS_pidfd_open, id.pid, 0);
	if (fd < 0) {
		/* EINVAL, ENOENT: the number belongs to a thread. */
		if (errno == ESRCH || errno == EINVAL || errno == ENOENT)
			return err_set(e, ERR_NOTFOUND, "no process %jd", (intmax_t)id.pid);
		return err_sys(e, ERR_IO, errno, "cannot open process %jd", (intmax_t)id.pid);
	}
	/* Only after opening: from now on the handle stays with whom it names, so a start time that
	 * fits proves that it names the right one. */
	if (proc_identify(id.pid, &now, e) != 0) {
		fd_close(&fd);
		return -1;
	}
	if (now.start_ticks != id.start_ticks) {
		fd_close(&fd);
		return err_set(e, ERR_NOTFOUND, "process %jd has ended; its number was given anew",
		    (intmax_t)id.pid);
	}
	return fd;
}

int
proc_signal(int pidfd, int sig, struct err *e)
{
	if (syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) == 0 || errno == ESRCH)
		return 0;
	return err_sys(e, errno == EPERM ? ERR_PERMISSION : ERR_IO, errno, "cannot send %s",
	    proc_signal_name(sig));
}
