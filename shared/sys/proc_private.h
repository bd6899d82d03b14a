/* What the files of proc share among themselves. */
#ifndef FLOWSUP_PROC_PRIVATE_H
#define FLOWSUP_PROC_PRIVATE_H

#include <dirent.h>

#include "flowsup/proc.h"

/* One read of a small file of /proc or /sys into `to`, NUL-terminated. Its length, or -1 and
 * errno. */
ssize_t proc_read_small(const char *path, char *to, size_t size);

/* Fields of a line of /proc/PID/stat; false when it is not one. Written for any bytes in the name,
 * which stands in parentheses and may hold blanks, parentheses and newlines. */
bool proc_stat_parse(const char *line, struct proc_stat *out);

/* Of a process whose environment may be read, and is empty: at PROC_AT_EXEC it has left one program's memory and
 * has not got the next one's environment yet; PROC_WITHOUT_MEMORY has none, nor will have: the kernel's own, one
 * that ends or has ended. */
enum proc_moment { PROC_RUNS, PROC_AT_EXEC, PROC_WITHOUT_MEMORY };
enum proc_moment proc_moment(pid_t pid);

/* ---- Walks over /proc ---- */

DIR *proc_open_dir(struct err *e);
/* 0: no more; -1 and errno. */
pid_t proc_next_pid(DIR *dir);
/* Whether a process belongs. Called before and after its handle was opened. */
typedef bool proc_belongs(const void *arg, const struct proc_stat *st);
/* 1: visited, and the walk ends when each said so (*end); 0: does not belong. */
int proc_visit(pid_t pid, proc_belongs *test, const void *arg, proc_each *each, void *each_arg, bool *end);
/* Environments with every one of these ("NAME=value", or "NAME=" for any value). */
struct proc_marks {
	const char *const *text;
	unsigned count;
};
/* Whatever fails (not ours, gone meanwhile, a kernel thread) means: not marked. */
bool proc_environ_has(pid_t pid, const struct proc_marks *marks);

#endif
