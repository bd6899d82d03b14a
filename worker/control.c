/*
 * Controls: rows of the database, read by the io thread when poked, or at each tick of two seconds
 * while there may be any (rest.h); applied here one after the other.
 */
#include "control.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/heartbeat.h"
#include "flowsup/log.h"

struct control_queue {
	struct control_row *first, **last;
};

void
control_row_free(struct control_row *r)
{
	free(r->verb);
	json_unref(r->payload);
	free(r);
}

static void
queue_free(struct control_queue *q)
{
	struct control_row *r;

	if (q == NULL)
		return;
	while ((r = q->first) != NULL) {
		q->first = r->next;
		control_row_free(r);
	}
	free(q);
}

void
control_look_over(struct worker *w, bool whole)
{
	bool again = w->controls_again;

	queue_free(w->controls);
	w->controls = NULL;
	w->controls_reading = w->controls_again = w->controls_first = false;
	w->controls_left |= !whole;
	turns_looked(w, whole);
	if (again)
		control_look(w);
}

/* ---- Claims ---- */

struct claim_job {
	struct io_job job;
	struct control_row *row;
	bool claimed;
};

static void
claim_work(struct io_job *job, struct io_context *c)
{
	struct claim_job *j = (struct claim_job *)job;
	struct store *s;

	job->result = io_store(c, &s, &job->error);
	if (job->result == 0)
		job->result = control_claim(s, j->row->id, c->run_id, &j->claimed, &job->error);
}

static void
claim_done(struct io_job *job, void *owner)
{
	struct claim_job *j = (struct claim_job *)job;
	struct control_row *r = j->row;
	struct worker *w = owner;
	bool claimed = j->claimed, failed = job->result != 0;

	if (failed)
		log_line(LOG_DEBUG, "control %s cannot be claimed: %s", r->id, job->error.msg);
	free(j);
	if (failed || !claimed) {
		if (!failed) {
			event_begin(w, "ControlNotClaimed");
			event_text(w, "control", r->id);
			event_end(w);
		}
		control_row_free(r);
		if (failed) /* nothing was done: the next tick finds it again, in its place */
			control_look_over(w, false);
		else
			control_apply_next(w);
		return;
	}
	control_claim_text(w->run_id, r->claim);
	control_find_verb(w, r->verb)->take(w, r);
}

static void
claim(struct worker *w, struct control_row *r)
{
	struct claim_job *j = calloc(1, sizeof(*j));

	if (j == NULL) {
		control_row_free(r);
		control_look_over(w, false);
		return;
	}
	j->job = (struct io_job){.work = claim_work, .done = claim_done};
	j->row = r;
	io_submit(w->io, &j->job);
}

/* ---- One after the other ---- */

/* The first row that is not to be left for later, unlinked. */
static struct control_row *
next_row(struct worker *w)
{
	const struct control_verb *v;
	struct control_row *r;

	while ((r = w->controls->first) != NULL) {
		w->controls->first = r->next;
		if (w->controls->first == NULL)
			w->controls->last = &w->controls->first;
		v = control_find_verb(w, r->verb);
		if (v == NULL || !v->held || !turns_hold(w, r->payload))
			break;
		w->controls_left = true;
		control_row_free(r);
	}
	return r;
}

void
control_apply_next(struct worker *w)
{
	struct control_row *r = next_row(w);
	const struct control_verb *v;
	char result[CONTROL_RESULT_TEXT];

	if (r == NULL) {
		control_look_over(w, true);
		return;
	}
	v = control_find_verb(w, r->verb);
	if (v == NULL) {
		snprintf(result, sizeof(result), "rejected:unsupported-verb:%s", r->verb);
		control_stamp(w, r, result, false);
	} else if (v->take != NULL) {
		claim(w, r);
	} else {
		v->apply(w, r->payload);
		control_stamp(w, r, "applied", false);
	}
}

/* ---- Reading ---- */

struct read_job {
	struct io_job job;
	struct control_queue *rows;
};

/* A claimed row is left alone by every consumer, for ever. */
static int
keep_row(void *arg, const struct control *c)
{
	struct control_queue *q = arg;
	struct control_row *r;

	if (c->claimed_at > 0)
		return 0;
	r = calloc(1, sizeof(*r));
	if (r == NULL || (r->verb = strdup(c->verb)) == NULL) {
		free(r);
		return -1;
	}
	snprintf(r->id, sizeof(r->id), "%s", c->id);
	r->payload = c->payload != NULL ? json_ref(c->payload) : NULL;
	r->created_at = c->created_at;
	r->op = OP_NO_INDEX;
	*q->last = r;
	q->last = &r->next;
	return 0;
}

static void
read_work(struct io_job *job, struct io_context *c)
{
	struct read_job *j = (struct read_job *)job;
	struct store *s;

	job->result = io_store(c, &s, &job->error);
	if (job->result == 0)
		job->result = control_list(s, c->run_id, true, keep_row, j->rows, &job->error);
}

static void
read_done(struct io_job *job, void *owner)
{
	struct read_job *j = (struct read_job *)job;
	struct worker *w = owner;
	bool whole;

	assert(w->controls == NULL);
	if (job->result < 0)
		log_line(LOG_DEBUG, "controls cannot be read: %s", job->error.msg);
	w->controls = j->rows;
	whole = job->result == 0;
	free(j);
	if (whole)
		control_apply_next(w);
	else
		control_look_over(w, false);
}

void
control_look(struct worker *w)
{
	struct read_job *j;

	if (w->controls_reading) {
		w->controls_again = true;
		return;
	}
	w->controls_left = false;
	if (control_stamp_rest(w)) {
		w->controls_reading = true;
		return;
	}
	j = calloc(1, sizeof(*j));
	if (j == NULL || (j->rows = calloc(1, sizeof(*j->rows))) == NULL) {
		w->controls_left = true; /* the next tick tries again */
		free(j);
		return;
	}
	j->rows->last = &j->rows->first;
	j->job.work = read_work;
	j->job.done = read_done;
	w->controls_reading = true;
	turns_look_begins(w);
	io_submit(w->io, &j->job);
}

/* ---- The tick ---- */

static void
beat(struct worker *w)
{
	const struct heartbeat now = {++w->beats, clock_monotonic_ns()};

	if (w->heartbeat_fd >= 0 && pwrite(w->heartbeat_fd, &now, sizeof(now), 0) != sizeof(now))
		fd_close(&w->heartbeat_fd);
}

static void
tick(void *arg)
{
	struct worker *w = arg;
	struct err e = {0};

	beat(w);
	if (rest_tick(w))
		control_look(w);
	rest_go(w);
	storage_tick(w);
	if (timer_arm(&w->loop.timers, &w->tick, clock_monotonic_ns() + STORE_TICK_NS, tick, w, &e) != 0)
		worker_error(w, &e);
}

/* What waits since before there was a worker takes effect before anything starts. */
void
control_first(struct worker *w)
{
	w->controls_first = true;
	control_look(w);
}

int
control_begin(struct worker *w, struct err *e)
{
	beat(w);
	storage_tick(w);
	return timer_arm(&w->loop.timers, &w->tick, clock_monotonic_ns() + STORE_TICK_NS, tick, w, e);
}

void
control_clear_all(struct worker *w)
{
	queue_free(w->controls);
	w->controls = NULL;
	control_stamp_clear(w);
}
