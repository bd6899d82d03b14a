/* Reading a run's events.jsonl as it grows, and counting what it says. */
#ifndef FLOWSUP_EVENTS_H
#define FLOWSUP_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"
#include "flowsup/json.h"

/* A file read by whole lines from an offset; it need not be there yet. */
struct tail {
	int dirfd; /* borrowed */
	const char *name;
	int fd;
	off_t at;
	struct buf pending;
	bool skipping; /* inside a line that was too long to be kept */
};
void tail_init(struct tail *t, int dirfd, const char *name);
/* Goes on behind what is there now. */
void tail_to_end(struct tail *t);
/* Gives each whole new line (without LF) to each, which ends the walk by a result other than 0 and
 * that result is returned; 0 when there is no more; -1 with *e when reading failed. */
typedef int tail_line(void *arg, struct slice line, struct err *e);
int tail_read(struct tail *t, tail_line *each, void *arg, struct err *e);
void tail_close(struct tail *t);

/* An operation that runs, by the events. */
struct running {
	char *op;
	int64_t attempt;
	double since; /* epoch seconds */
	double progress; /* what it says of itself, 0 to 1; below 0: nothing */
	char *text;	 /* beside that, or NULL */
	bool progress_told; /* set by who has printed it */
	double ended; /* epoch seconds: it runs no more, and what it left is read; 0: it runs */
};
struct tally {
	struct running *running;
	size_t nrunning, cap;
	size_t executed; /* attempts that ended with an outcome */
	size_t saved;	 /* of these, durable */
	size_t failed, skipped;
	struct json *rejected; /* what was asked for in vain: "<operation> <reason>" */
	size_t rejected_again; /* how often as before, so without a line of its own */
};
/* NULL: it does not run. */
struct running *tally_running(struct tally *t, const char *op);
/* 0, or -1 with ERR_NOMEM. */
int tally_event(struct tally *t, const struct json *event, struct err *e);
void tally_clear(struct tally *t);

/* Appends one line for people (without newline, not yet neutralised); false when the event says
 * nothing worth a line, or only what one before has said; t is of the same run. */
bool event_line(struct tally *t, const struct json *event, bool utc, struct buf *to);
/* What an operation waits for before its start, by this event; NULL: no such event, or a person. */
const char *event_waits_for(const struct json *event);

#endif
