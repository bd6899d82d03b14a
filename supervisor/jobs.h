/*
 * What the supervisor has to do in the database, one short transaction each, in order. A busy
 * database is met with a timer, never by waiting in the loop. What must be seen at once (a death)
 * goes before the rest. A job that cannot be done now, for a reason of its run alone, waits apart
 * and holds up nothing.
 */
#ifndef FLOWSUP_SUPERVISOR_JOBS_H
#define FLOWSUP_SUPERVISOR_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "flowsup/home.h"
#include "flowsup/json.h"
#include "flowsup/status.h"

struct daemon;
struct job;

/* What became of a job. */
enum job_result {
	JOB_DONE,
	JOB_BUSY,  /* the database is: everything waits a moment */
	JOB_LATER, /* not now: this one alone waits, longer each time */
	JOB_FAILED /* an error, with *e: logged, and tried again like JOB_LATER when it must be done */
};
typedef enum job_result job_fn(struct daemon *d, struct job *j, struct err *e);

struct job {
	TAILQ_ENTRY(job) entry;
	job_fn *fn;
	char run_id[RUN_ID_TEXT];
	bool must; /* dropped after an error when not set */
	bool failed;   /* its last try ended in an error */
	unsigned tries;
	int64_t due_ns; /* while it waits apart */
	/* arguments of the kinds that have them */
	enum run_status to;
	const char *reason; /* of the table in status.h, or a member's name */
	char *text;	    /* owned */
	struct json *value; /* owned */
};
TAILQ_HEAD(job_list, job);

struct jobs {
	struct job_list urgent, ordinary, apart;
	unsigned count; /* in all lists */
	struct err last; /* why one of them had to be put apart */
};

enum { JOBS_BUSY_MS = 25, JOBS_TURN_MS = 20, JOBS_LATER_MS = 100, JOBS_LATER_MOST_MS = 5000 };

void jobs_init(struct jobs *jobs);
void jobs_clear(struct jobs *jobs);
/* NULL when memory ran out (logged). run_id is copied. */
struct job *job_new(job_fn *fn, const char *run_id, bool must);
void job_free(struct job *j);
bool jobs_has(const struct jobs *jobs, job_fn *fn, const char *run_id);
/* Consumes the job; NULL is harmless. */
void jobs_add(struct daemon *d, struct job *j, bool urgent);
/* How long a job waits apart before its next try. */
int64_t jobs_pause_ns(unsigned tries);
/* Works for at most about JOBS_TURN_MS, or until somebody calls, but does one job at least. True when more could be done at once. */
bool jobs_work(struct daemon *d);
/* Timer: what waited apart long enough goes back into the line. */
void jobs_wake(void *daemon);
/* Everything that waits apart goes back into the line now. */
void jobs_wake_all(struct daemon *d);
/* How many changes could not be made, after they were tried. */
unsigned jobs_undone(const struct daemon *d);

#endif
