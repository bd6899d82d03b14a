/* The floor of a start: a loop in C that takes the same durable steps, and no others. */
#ifndef FLOWSUP_TEST_START_FLOOR_H
#define FLOWSUP_TEST_START_FLOOR_H

#include "stamps.h"

struct start_floor {
	struct test_dir dir;
	int log_fd; /* stands for the database's log */
	int made;
};
void start_floor_make(struct start_floor *f);
void start_floor_remove(struct start_floor *f);
/* Milliseconds of one fsync of a few appended bytes, median of so many. */
double start_floor_fsync(struct start_floor *f, int tries);
/* What `start` does before it returns: a directory with its files, its name, a commit. In ms. */
double start_floor_return(struct start_floor *f);
/* That, and what supervisor and worker do before the first exec; then the operation. In ms to its stamp. */
double start_floor_exec(struct start_floor *f, struct stamps *s);

#endif
