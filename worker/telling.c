#include "worker.h"

#include <stdlib.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"

enum { TELL_AGAIN_MS = 250 };

struct telling_job {
	struct io_job job;
	struct telling *t;
	const char *name;
	struct json *value;
};

static void
work(struct io_job *job, struct io_context *c)
{
	struct telling_job *j = (struct telling_job *)job;
	struct store *s;

	job->result = io_store(c, &s, &job->error);
	if (job->result == 0)
		job->result = session_metadata(s, c->run_id, j->name, json_ref(j->value), &job->error);
}

/* The next turn tells it. */
static void
tell_again(void *arg)
{
	(void)arg;
}

static void
done(struct io_job *job, void *owner)
{
	struct telling_job *j = (struct telling_job *)job;
	struct worker *w = owner;
	struct err e = {0};

	j->t->busy = false;
	if (job->result != 0) {
		log_line(LOG_DEBUG, "\"%s\" cannot be stored: %s", j->name, job->error.msg);
		j->t->changed = true;
		if (timer_arm(&w->loop.timers, &j->t->again,
			clock_monotonic_ns() + TELL_AGAIN_MS * NS_PER_MS, tell_again, w, &e) != 0)
			worker_error(w, &e);
	} else if (json_length(j->value) > 0) {
		link_notice(w);
	}
	json_unref(j->value);
	free(j);
}

void
telling_set(struct worker *w, struct telling *t, struct json *value)
{
	struct err e = {0};

	if (value == NULL) {
		err_nomem(&e);
		worker_error(w, &e);
		return;
	}
	json_unref(t->value);
	t->value = value;
	t->changed = true;
}

void
telling_go(struct worker *w, struct telling *t, const char *name)
{
	struct telling_job *j;

	if (!t->changed || t->busy || timer_is_armed(&t->again))
		return;
	j = calloc(1, sizeof(*j));
	if (j == NULL)
		return; /* the next turn tells it */
	j->job.work = work;
	j->job.done = done;
	j->t = t;
	j->name = name;
	j->value = json_ref(t->value);
	t->changed = false;
	t->busy = true;
	events_then(w, &j->job);
}

void
telling_clear(struct worker *w, struct telling *t)
{
	timer_disarm(&w->loop.timers, &t->again);
	json_unref(t->value);
	t->value = NULL;
}
