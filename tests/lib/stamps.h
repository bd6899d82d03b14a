/* A file of instants, each written by the operation that is timed (tests/bench/stamp.c). */
#ifndef FLOWSUP_TEST_STAMPS_H
#define FLOWSUP_TEST_STAMPS_H

#include "test.h"

struct stamps {
	char program[600]; /* stamp */
	char path[600];    /* its operand */
	int fd, count;
};
/* Below dir. Each gives up on failure. */
void stamps_make(struct stamps *s, const struct test_dir *dir);
void stamps_clear(struct stamps *s);
/* Waits for the next one, a minute at most: seconds of CLOCK_MONOTONIC. */
double stamps_next(struct stamps *s);

#endif
