/*
 * Operations that outlived their worker. The start lines come from a report (report.h); from then on
 * the supervisor watches each process, writes how it ended where that is its to write, and has it
 * ended when a limit of its start line passes or nobody resumes the run in the time that it is kept
 * for. Ending takes its time, so a process of its own does it (worker/end.c).
 *
 * What comes to us as a subreaper may end before the report on its run says what it was: such ends
 * are held. A report may also come late: the directory of a run may be away.
 */
#ifndef FLOWSUP_SUPERVISOR_KEPT_H
#define FLOWSUP_SUPERVISOR_KEPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "flowsup/json.h"
#include "flowsup/proc.h"

struct daemon;
struct kept_run;
struct unclaimed;

struct kept {
	TAILQ_HEAD(kept_runs, kept_run) runs;
	TAILQ_HEAD(unclaimed_ends, unclaimed) ends; /* oldest first */
	unsigned count, nends;
};

void kept_init(struct kept *k);
void kept_clear(struct daemon *d);
/* What a report says of a crashed run; beside_row: of one whose row does not say that it has crashed. */
void kept_report(struct daemon *d, const char *run_id, const struct json *answer, bool beside_row);
bool kept_is_watched(const struct daemon *d, const char *run_id);
/* Whether any runs, or is being ended, whose run no other goes on with; *count (may be NULL) of those that are
 * known. */
bool kept_goes_on(const struct daemon *d, unsigned *count);
/* Adds "kept_operations", their number, and "kept_runs", the first KEPT_NAMED of their runs. */
enum { KEPT_NAMED = 16 };
struct json *kept_describe(const struct daemon *d, struct json *o);
/* The time of these is over; of those of one run also what no report names. */
void kept_end_all(struct daemon *d);
void kept_end_run(struct daemon *d, const char *run_id);
/* A child that has ended and is not reaped yet: true when it was one of ours, and is reaped now or when
 * its end is written down. */
bool kept_reap(struct daemon *d, pid_t pid);
bool kept_is_unwritten(const struct daemon *d, pid_t pid);
/* The same for one that nobody knows: its end is held for a report that may come. */
void kept_hold(struct daemon *d, struct proc_id id, const struct proc_end *end);
void kept_due(void *daemon); /* timer */
/* A resume wants to know how one ended: when that is known here, it is written down now. -1: it cannot be;
 * it is not lost for that. *end, also then: how, if it was not written down before; else NULL; the caller's. */
int kept_settle(struct daemon *d, const char *run_id, const struct json *line, struct json **end, struct err *e);
bool kept_read_end(const struct json *o, struct proc_id *id, struct proc_end *end, double *time);
/* One more try for ends that could not be written down: how many still cannot, each in the log. Whoever
 * leaves after it takes them along. */
unsigned kept_last_try(struct daemon *d);

/* For `restart`: everything as JSON, and back: the ends first, which what is kept lays claim to. */
struct json *kept_ends_handed(const struct daemon *d);
void kept_take_ends(struct daemon *d, const struct json *handed);
struct json *kept_handed(const struct daemon *d);
void kept_take(struct daemon *d, const struct json *handed);

#endif
