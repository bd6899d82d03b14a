/* What the files of proc share among themselves. */
#ifndef FLOWSUP_PROC_PRIVATE_H
#define FLOWSUP_PROC_PRIVATE_H

#include "flowsup/proc.h"

/* One read of a small file of /proc or /sys into `to`, NUL-terminated. Its length, or -1 and
 * errno. */
ssize_t proc_read_small(const char *path, char *to, size_t size);

/* Fields of a line of /proc/PID/stat; false when it is not one. Written for any bytes in the name,
 * which stands in parentheses and may hold blanks, parentheses and newlines. */
bool proc_stat_parse(const char *line, struct proc_stat *out);

/* As proc_find_program; relative parts of the search path lie below `base`. */
int proc_find_at(int base, const char *name, const char *search_path, struct buf *out,
    struct err *e);

#endif
