#include <stdlib.h>
#include <string.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"
#include "daemon.h"

void
jobs_init(struct jobs *jobs)
{
	TAILQ_INIT(&jobs->urgent);
	TAILQ_INIT(&jobs->ordinary);
	TAILQ_INIT(&jobs->apart);
	jobs->count = 0;
}

struct job *
job_new(job_fn *fn, const char *run_id, bool must)
{
	struct job *j = calloc(1, sizeof(*j));

	if (j == NULL) {
		log_line(LOG_ERROR, "run %s: out of memory", run_id);
		return NULL;
	}
	j->fn = fn;
	j->must = must;
	strlcpy(j->run_id, run_id, sizeof(j->run_id));
	return j;
}

void
job_free(struct job *j)
{
	if (j == NULL)
		return;
	json_unref(j->value);
	free(j->text);
	free(j);
}

static void
clear_list(struct job_list *list)
{
	struct job *j;

	while ((j = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, j, entry);
		job_free(j);
	}
}

void
jobs_clear(struct jobs *jobs)
{
	clear_list(&jobs->urgent);
	clear_list(&jobs->ordinary);
	clear_list(&jobs->apart);
	jobs->count = 0;
}

static bool
list_has(const struct job_list *list, job_fn *fn, const char *run_id)
{
	const struct job *j;

	TAILQ_FOREACH(j, list, entry)
	{
		if (j->fn == fn && strcmp(j->run_id, run_id) == 0)
			return true;
	}
	return false;
}

bool
jobs_has(const struct jobs *jobs, job_fn *fn, const char *run_id)
{
	return list_has(&jobs->ordinary, fn, run_id) || list_has(&jobs->apart, fn, run_id);
}

void
jobs_add(struct daemon *d, struct job *j, bool urgent)
{
	if (j == NULL)
		return;
	TAILQ_INSERT_TAIL(urgent ? &d->jobs.urgent : &d->jobs.ordinary, j, entry);
	d->jobs.count++;
}

int64_t
jobs_pause_ns(unsigned tries)
{
	int64_t ms = JOBS_LATER_MS;

	while (tries-- > 0 && ms < JOBS_LATER_MOST_MS)
		ms *= 2;
	return (ms < JOBS_LATER_MOST_MS ? ms : JOBS_LATER_MOST_MS) * NS_PER_MS;
}

static void
put_apart(struct daemon *d, struct job *j)
{
	j->due_ns = clock_monotonic_ns() + jobs_pause_ns(j->tries);
	j->tries++;
	TAILQ_INSERT_TAIL(&d->jobs.apart, j, entry);
	loop_set_timer(&d->loop, TIMER_APART, j->due_ns);
}

static void
drop(struct daemon *d, struct job *j)
{
	d->jobs.count--;
	if (d->jobs.count == 0)
		err_clear(&d->jobs.last); /* of what has been written by now */
	job_free(j);
}

/* The first failure is logged, then each one whose number is a power of two: a full disk must not
 * fill the log as well. */
static void
failed(struct daemon *d, struct job *j, const struct err *e)
{
	d->jobs.last = *e;
	j->failed = true;
	if ((j->tries & (j->tries - 1)) == 0)
		log_line(LOG_ERROR, "run %s: %s%s", j->run_id, e->msg,
		    j->must ? "; it is tried again" : "");
	if (j->must)
		put_apart(d, j);
	else
		drop(d, j);
}

/* False when the database is busy. The job is in no list while it works. */
static bool
work_on(struct daemon *d, struct job *j, struct job_list *list)
{
	struct err e = {0};
	enum job_result result;

	TAILQ_REMOVE(list, j, entry);
	result = j->fn(d, j, &e);
	if (result == JOB_FAILED && e.code == ERR_BUSY)
		result = JOB_BUSY;
	switch (result) {
	case JOB_DONE:
		drop(d, j);
		return true;
	case JOB_BUSY:
		TAILQ_INSERT_HEAD(list, j, entry);
		return false;
	case JOB_LATER:
		j->failed = false;
		put_apart(d, j);
		return true;
	case JOB_FAILED:
		failed(d, j, &e);
		return true;
	}
	return true;
}

static struct job_list *
first_list(struct jobs *jobs)
{
	if (!TAILQ_EMPTY(&jobs->urgent))
		return &jobs->urgent;
	return TAILQ_EMPTY(&jobs->ordinary) ? NULL : &jobs->ordinary;
}

bool
jobs_work(struct daemon *d)
{
	int64_t until = clock_monotonic_ns() + JOBS_TURN_MS * NS_PER_MS;
	struct job_list *list;

	if (loop_timer_is_set(&d->loop, TIMER_BUSY))
		return false;
	while ((list = first_list(&d->jobs)) != NULL) {
		if (!work_on(d, TAILQ_FIRST(list), list)) {
			loop_set_timer(&d->loop, TIMER_BUSY,
			    clock_monotonic_ns() + JOBS_BUSY_MS * NS_PER_MS);
			return false;
		}
		/* Somebody who asks is answered between two jobs: a start that waits for its answer, not
		 * for the start. */
		if (clock_monotonic_ns() >= until || loop_is_called(&d->loop))
			return first_list(&d->jobs) != NULL;
	}
	return false;
}

static void
wake_due(struct daemon *d, int64_t now)
{
	struct job *j, *next;

	for (j = TAILQ_FIRST(&d->jobs.apart); j != NULL; j = next) {
		next = TAILQ_NEXT(j, entry);
		if (j->due_ns > now) {
			loop_set_timer(&d->loop, TIMER_APART, j->due_ns);
			continue;
		}
		TAILQ_REMOVE(&d->jobs.apart, j, entry);
		TAILQ_INSERT_TAIL(&d->jobs.ordinary, j, entry);
	}
}

void
jobs_wake(void *daemon)
{
	wake_due(daemon, clock_monotonic_ns());
}

void
jobs_wake_all(struct daemon *d)
{
	wake_due(d, INT64_MAX);
	loop_stop_timer(&d->loop, TIMER_APART);
}

unsigned
jobs_undone(const struct daemon *d)
{
	const struct job *j;
	unsigned n = 0;

	TAILQ_FOREACH(j, &d->jobs.apart, entry)
	{
		n += j->failed ? 1 : 0;
	}
	return n;
}
