/* start_line.c: what is written of an attempt before its program is executed. */
#ifndef WORKER_START_LINE_H
#define WORKER_START_LINE_H

#include "worker.h"

/* The start line but for the numbers that only the child knows. With a keeper its own pid and start
 * time come before `rest`, under `reaper`. */
struct start_line {
	char before[64 + FLOW_MAX_ID], rest[ATTEMPT_MAX_LINE];
};
#define START_LINE_BETWEEN ",\"start\":"

int start_line_make(const struct attempt_run *a, struct start_line *to, struct err *e);
/* Looks for a's start line at `from` in attempts.log or behind it. 1: *id is the process that it names;
 * 0: it is not there; -1: the log cannot be read. */
int start_line_find(const struct attempt_run *a, off_t from, struct proc_id *id, struct err *e);
/*
 * The text of ops/<op>.<attempt>/started: there before the start of what must not be repeated
 * silently, and where the line has no room for its messages. Nothing is appended when none is
 * wanted.
 */
int start_mark_make(const struct worker *w, uint32_t i, struct buf *to, struct err *e);

#endif
