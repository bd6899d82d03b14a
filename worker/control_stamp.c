/*
 * What came of a control, written into its row. The next one is applied only when the stamp of the
 * one before is written, so that none overtakes; one that cannot be written stops the tick, and is the
 * first thing that later ticks try.
 */
#include "control.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"

enum { STAMP_TRIES = 3, STAMP_AGAIN_MS = 250 };

struct stamp_job {
	struct io_job job;
	char id[UUID_TEXT];
	char claim[CONTROL_CLAIM_TEXT];
	char result[CONTROL_RESULT_TEXT];
	unsigned tries;
	bool written;
	bool alone; /* no further control waits for it */
	struct stamp_job *next; /* in w->late_stamps */
};

static void stamp_submit(struct worker *w, struct stamp_job *j);

int
control_write_stamp(struct stamp_job *j, struct store *s, struct err *e)
{
	if (j->written)
		return 0;
	return control_finish(s, j->id, j->claim[0] != '\0' ? j->claim : NULL, j->result, &j->written, e);
}

/* Somebody else closed it meanwhile: their record stands. */
static void
log_lost(const struct stamp_job *j)
{
	log_line(LOG_WARNING, "control %s was not open any more; \"%s\" is not recorded in it", j->id,
	    j->result);
}

void
control_free_stamp(struct stamp_job *j, bool stored)
{
	if (j != NULL && stored && !j->written)
		log_lost(j);
	free(j);
}

struct stamp_job *
control_take_unstamped(struct worker *w)
{
	struct stamp_job *j = w->unstamped;

	w->unstamped = NULL;
	timer_disarm(&w->loop.timers, &w->stamp_again);
	return j;
}

static void
stamp_work(struct io_job *job, struct io_context *c)
{
	struct stamp_job *j = (struct stamp_job *)job;
	struct store *s;

	j->tries++;
	job->error = (struct err){0};
	job->result = io_store(c, &s, &job->error);
	if (job->result == 0)
		job->result = control_write_stamp(j, s, &job->error);
}

static void
tell_lost(struct worker *w, const struct stamp_job *j)
{
	log_lost(j);
	event_begin(w, "ControlNotRecorded");
	event_text(w, "control", j->id);
	event_text(w, "result", j->result);
	event_end(w);
}

static void
stamp_due(void *arg)
{
	struct worker *w = arg;
	struct stamp_job *j = control_take_unstamped(w);

	if (j != NULL)
		stamp_submit(w, j);
}

static void
late_due(void *arg)
{
	struct worker *w = arg;
	struct stamp_job *j;

	while ((j = w->late_stamps) != NULL) {
		w->late_stamps = j->next;
		stamp_submit(w, j);
	}
}

static void
stamp_again(struct worker *w, struct timer *t, timer_fire *fire)
{
	struct err e = {0};

	if (!timer_is_armed(t) && timer_arm(&w->loop.timers, t,
		clock_monotonic_ns() + STAMP_AGAIN_MS * NS_PER_MS, fire, w, &e) != 0)
		worker_error(w, &e);
}

/* Two more tries soon; then this tick is over, and the next begins with it. */
static void
stamp_failed(struct worker *w, struct stamp_job *j)
{
	if (j->alone) {
		j->next = w->late_stamps;
		w->late_stamps = j;
		stamp_again(w, &w->late_again, late_due);
		return;
	}
	assert(w->unstamped == NULL);
	w->unstamped = j;
	if (j->tries < STAMP_TRIES) {
		stamp_again(w, &w->stamp_again, stamp_due);
		return;
	}
	log_line(LOG_WARNING, "control %s cannot be stamped yet: %s", j->id, j->job.error.msg);
	w->controls_again = false;
	control_look_over(w, false);
}

static void
stamp_done(struct io_job *job, void *owner)
{
	struct stamp_job *j = (struct stamp_job *)job;
	struct worker *w = owner;
	bool alone = j->alone;

	if (job->result != 0) {
		stamp_failed(w, j);
		return;
	}
	if (!j->written)
		tell_lost(w, j);
	free(j);
	if (alone)
		return;
	if (w->controls != NULL)
		control_apply_next(w);
	else { /* it was the rest of an earlier tick */
		w->controls_reading = false;
		control_look(w);
	}
}

static void
stamp_submit(struct worker *w, struct stamp_job *j)
{
	j->job = (struct io_job){.work = stamp_work, .done = stamp_done};
	events_then(w, &j->job);
}

static void
tell_result(struct worker *w, const struct control_row *r, const char *result)
{
	event_begin(w, strcmp(result, "applied") == 0 ? "ControlApplied" : "ControlRejected");
	event_text(w, "control", r->id);
	event_text(w, "verb", r->verb);
	if (strcmp(result, "applied") != 0)
		event_text(w, "result", result);
	event_end(w);
}

void
control_stamp(struct worker *w, struct control_row *r, const char *result, bool alone)
{
	struct stamp_job *j = calloc(1, sizeof(*j));

	tell_result(w, r, result);
	if (j == NULL) { /* unclaimed: the next tick finds it again, and its effect is the same twice */
		control_row_free(r);
		if (!alone)
			control_look_over(w, false);
		return;
	}
	memcpy(j->id, r->id, sizeof(j->id));
	memcpy(j->claim, r->claim, sizeof(j->claim));
	snprintf(j->result, sizeof(j->result), "%s", result);
	j->alone = alone;
	control_row_free(r);
	stamp_submit(w, j);
}

bool
control_stamp_rest(struct worker *w)
{
	struct stamp_job *rest = control_take_unstamped(w);

	if (rest == NULL)
		return false;
	rest->tries = STAMP_TRIES - 1;
	stamp_submit(w, rest);
	return true;
}

void
control_stamp_clear(struct worker *w)
{
	struct stamp_job *j;

	free(w->unstamped);
	w->unstamped = NULL;
	while ((j = w->late_stamps) != NULL) {
		w->late_stamps = j->next;
		free(j);
	}
}
