/*
 * The run's status in the database while it lives: written in order, each until it is written. A
 * database that is busy is met with a short timeout in the io thread and a timer here.
 */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"

enum {
	STATUS_AGAIN_MS = 250,
	REASON_CODE_TEXT = 40,
	DISOWNED_MS = 10000 /* whoever ended the run ends its operations by then, and counts them */
};

struct status_job {
	struct io_job job;
	struct status_job *next;
	enum run_status status;
	char reason_code[REASON_CODE_TEXT];
	char *text;
	int64_t done;
	bool moved;
};

static void write_first(struct worker *w);

void
status_begin(struct worker *w)
{
	w->statuses_last = &w->statuses;
}

static void
status_work(struct io_job *job, struct io_context *c)
{
	struct status_job *j = (struct status_job *)job;
	struct store *s;

	job->result = io_store(c, &s, &job->error);
	if (job->result == 0)
		job->result = session_transition(s, c->run_id, j->status, j->reason_code, j->text,
		    j->done, &j->moved, &job->error);
}

static void
nobody_ended_them(void *arg)
{
	struct worker *w = arg;

	log_line(LOG_WARNING, "its operations still run");
	ending_stop_all(w);
}

/*
 * The row does not move from a terminal status: somebody (`kill`) has ended the run, and is about to end
 * this process and the operations, to say how many there were. They are ours again where that one was
 * ended itself.
 */
static void
disowned(struct worker *w)
{
	struct err e = {0};

	log_line(LOG_WARNING, "the run was ended by somebody else");
	w->disowned = true;
	admission_close(w, CLOSED_STOP);
	if (timer_arm(&w->loop.timers, &w->disowned_due, clock_monotonic_ns() + DISOWNED_MS * NS_PER_MS,
		nobody_ended_them, w, &e) != 0)
		worker_error(w, &e);
}

static void
drop_first(struct worker *w)
{
	struct status_job *j = w->statuses;

	w->statuses = j->next;
	if (w->statuses == NULL)
		w->statuses_last = &w->statuses;
	free(j->text);
	free(j);
}

static void
again(void *arg)
{
	write_first(arg);
}

static void
status_done(struct io_job *job, void *owner)
{
	struct status_job *j = (struct status_job *)job;
	struct worker *w = owner;
	struct err e = {0};

	w->status_writing = false;
	if (job->result != 0) {
		log_line(LOG_WARNING, "status %s cannot be stored yet: %s", status_word(j->status),
		    job->error.msg);
		if (timer_arm(&w->loop.timers, &w->status_again,
			clock_monotonic_ns() + STATUS_AGAIN_MS * NS_PER_MS, again, w, &e) != 0)
			worker_error(w, &e);
		return;
	}
	if (!j->moved && !w->disowned)
		disowned(w);
	w->running_stored = true;
	if (strcmp(j->reason_code, "run.running.storage") == 0)
		link_notice(w);
	drop_first(w);
	write_first(w);
}

static void
write_first(struct worker *w)
{
	struct status_job *j = w->statuses;

	if (j == NULL || w->status_writing || timer_is_armed(&w->status_again))
		return;
	w->status_writing = true;
	j->job = (struct io_job){.work = status_work, .done = status_done};
	events_then(w, &j->job);
}

void
control_status(struct worker *w, enum run_status status, const char *reason_code, const char *text)
{
	struct status_job *j = calloc(1, sizeof(*j));
	struct err e = {0};

	if (j != NULL && text != NULL)
		j->text = strdup(text);
	if (j == NULL || (text != NULL && j->text == NULL)) {
		free(j);
		err_nomem(&e);
		worker_error(w, &e);
		return;
	}
	j->status = status;
	snprintf(j->reason_code, sizeof(j->reason_code), "%s", reason_code);
	/* Before the operations are made nothing is counted, and the row of a resumed run has its count. */
	j->done = w->counts.done > 0 ? (int64_t)w->counts.done : -1;
	*w->statuses_last = j;
	w->statuses_last = &j->next;
	write_first(w);
}

void
status_of_gates(struct worker *w, const char *open)
{
	if (w->closed & CLOSED_DEADLINE)
		control_status(w, STATUS_RUNNING, REASON_DEADLINE, NULL);
	else if (w->gate_closed)
		control_status(w, STATUS_PAUSED, "run.paused.control", NULL);
	else
		control_status(w, STATUS_RUNNING, open, NULL);
}

/* The io thread has ended: nothing of it is in use any more. */
void
status_clear(struct worker *w)
{
	while (w->statuses != NULL)
		drop_first(w);
}
