/*
 * Stopping every run: what `supervisor stop --all` asks for, and process 1 before it leaves.
 *
 * Live workers get a stop. With `rows` also what waits has its end: a job that waits for its automatic resume
 * is given up, before what is in the queue is cancelled, so that no such resume comes behind. What dead workers
 * left running is waited for or, with `now`, ended. A resume in the queue has what outlived its predecessor's
 * worker for its own: it stays in the queue until nothing of that runs, so that it is never nobody's.
 */
#ifndef FLOWSUP_SUPERVISOR_STOP_ALL_H
#define FLOWSUP_SUPERVISOR_STOP_ALL_H

#include <stdbool.h>
#include <sys/queue.h>

#include "flowsup/home.h"

struct daemon;

/* A resume in the queue that is to be cancelled. */
struct queued_resume {
	TAILQ_ENTRY(queued_resume) entry;
	char run_id[RUN_ID_TEXT];
	bool asked; /* what runs of it */
	bool ended; /* the end of that was begun */
};

struct stop_all {
	bool rows, now;
	bool first;  /* the whole queue is yet to be looked at; later automatic resumes alone */
	bool looked; /* and nothing was found that waits */
	TAILQ_HEAD(queued_resumes, queued_resume) resumes;
};

void stop_all_init(struct stop_all *s);
void stop_all_clear(struct daemon *d);
/* With rows also when it has begun already, then perhaps without `now`. */
void stop_all_begin(struct daemon *d, bool rows, bool now);
/* One live run. */
void stop_all_run(struct daemon *d, const char *run_id, bool now);
/* Why a crash is not answered any more by a resume; NULL where it is. */
const char *stop_all_gives_up(const struct daemon *d);
/* The same of this run, also where that is not on its row (stop_all_mark), or where it was killed. */
const char *stop_all_gave_up(const struct daemon *d, const char *run_id);
/* What ends this run could not be written, because of *why: beside its files it can. While every run is stopped. */
void stop_all_mark(const struct daemon *d, const char *run_id, const struct err *why);
/* While it stops: whether anything goes on that is waited for; what is only to be written does not count. */
bool stop_all_waits(struct daemon *d);
/* When nothing does and nothing is to be written: whether it is known that nothing came meanwhile. If not it
 * looks. */
bool stop_all_is_over(struct daemon *d);

#endif
