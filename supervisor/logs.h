/* What `logs` prints: the files of a run's output, and what has been printed of each. */
#ifndef FLOWSUP_LOGS_H
#define FLOWSUP_LOGS_H

#include "events.h"
#include "follow.h"
#include "target.h"

/* One file of output. */
struct logs_source {
	char *op, *run;
	char *origin; /* of an attempt that was taken over: the run that started it; or NULL */
	int64_t attempt;
	int fd;
	off_t at;
	struct buf line; /* what has no newline yet */
	bool ended; /* no more is written */
	bool done;  /* and all was given out */
};

enum { LOGS_ALL = -1 };

struct logs {
	const struct cli *c;
	struct target *t;
	const char *only; /* operation, or NULL: all */
	int64_t attempt;  /* 0: the last of each; with -f every one */
	int64_t tail;	  /* so many lines of what is there, or LOGS_ALL */
	struct logs_source *sources;
	size_t n, cap;
	int64_t unstarted; /* the latest attempt that ended without a start, 0: none */
	size_t unread; /* sources that could not be read */
	size_t first; /* sources before this one are done with */
	bool prefixes;
	int prefix_width;
	struct tail starts; /* attempts.log, with -f */
	int run_fd;	    /* where it lies */
	int interrupts;	    /* a signalfd, with -f */
	bool waits_told;    /* why the run is still in the queue was said */
	bool restarting;    /* the run crashed, and its policy was about to answer */
	char merged_run[RUN_ID_TEXT]; /* whose operations are known that have one file for both */
	struct json *merged;
};

/* ---- logs_sources.c: which files ---- */

void logs_source_clear(struct logs_source *s);
/* A line of attempts.log; origin, of a start: the run that it names, or NULL. */
struct logs_line {
	const char *op, *origin;
	enum attempt_line_kind kind;
	int64_t attempt;
};
/* With `every` each attempt, else the last of each operation. */
int logs_take_line(struct logs *l, const char *run, const struct logs_line *line, bool every, struct err *e);
/* Those of the target's run and of the runs that it was resumed from, oldest first. */
int logs_take_chain(struct logs *l, struct err *e);
/* Of those only what earlier runs ran and this one does not run again. */
int logs_take_carried(struct logs *l, struct err *e);

/* ---- logs_print.c: what is in them ---- */

/* Prints what is there and was not printed yet. */
/* What cannot be read is said, and counted. */
int logs_pump(struct logs *l, struct logs_source *s, struct err *e);
/* -1 when there was such output. */
int logs_unread(const struct logs *l, struct err *e);
/* A last line without an end. */
void logs_put_rest(struct logs *l, struct logs_source *s);
/* ---- logs_silent.c: where there is nothing in them, on standard error ---- */

/* When nothing was printed: what is on standard error instead, or what became of operations. */
void logs_tell_silence(const struct logs *l);
/* What is recorded of those that failed or did not come to their end; says where to look. */
void logs_tell_record(const struct logs *l);

/* How wide the names before the lines are. */
void logs_measure_prefixes(struct logs *l);

#endif
