#include "rest.h"

#include <malloc.h>
#include <stdlib.h>

#include "worker.h"

/*
 * A commit is visible only some time after it was written (its fsync comes between), so the ticks
 * that follow read too. One that took longer is found by its poke, or when somebody writes
 * again, or at last by the look that every REST_LOOK_TICKS-th tick takes whatever happens.
 */
enum { REST_AFTER_TICKS = 5, REST_LOOK_TICKS = 30 };

static bool
is_unconditional(const struct rest *r)
{
	return r->ticks > 0 && r->ticks % REST_LOOK_TICKS == 0;
}

bool
rest_tick(struct worker *w)
{
	struct rest *r = &w->rest;

	r->ticks++;
	if (store_was_touched(&w->home, &r->mark))
		r->ticks = 0;
	if (r->ticks < REST_AFTER_TICKS || is_unconditional(r))
		r->given_back = false;
	return r->ticks < REST_AFTER_TICKS || is_unconditional(r) || w->controls_left;
}

static void
give_back(struct io_job *job, struct io_context *c)
{
	(void)job;
	if (c->store != NULL)
		store_shrink(c->store);
	malloc_trim(0);
}

static void
done(struct io_job *job, void *owner)
{
	(void)owner;
	free(job);
}

void
rest_go(struct worker *w)
{
	struct io_job *job;

	if (w->rest.ticks < REST_AFTER_TICKS || w->rest.given_back)
		return;
	job = calloc(1, sizeof(*job));
	if (job == NULL)
		return; /* the next tick tries again */
	job->work = give_back;
	job->done = done;
	w->rest.given_back = true;
	io_submit(w->io, job);
}
