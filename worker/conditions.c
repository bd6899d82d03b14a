/*
 * Conditions, and lists of a foreach, that lead into a response in a file: another thread reads it. The conditions of
 * all that need the operation are asked at once, before its outcome counts for them.
 */
#include "reactive.h"

#include <stdlib.h>

struct asking_job {
	struct io_job job;
	uint32_t op;
	struct flow_asked asked;
	struct json *recorded, *answers;
};

static void
asking_work(struct io_job *job, struct io_context *c)
{
	struct asking_job *j = (struct asking_job *)job;

	if (!job->lengthy)
		job->lengthy = true;
	else
		j->answers = flow_asked_answers(&j->asked, c->run_fd, j->recorded);
}

static void
free_asking(struct asking_job *j)
{
	flow_asked_clear(&j->asked);
	json_unref(j->recorded);
	json_unref(j->answers);
	free(j);
}

static void
asking_done(struct io_job *job, void *owner)
{
	struct asking_job *j = (struct asking_job *)job;
	struct worker *w = owner;
	struct err e = {0};

	if (!job->given_up) {
		w->answers = json_set(w->answers != NULL ? w->answers : json_object(), w->flow->ops[j->op].id,
		    j->answers);
		j->answers = NULL;
		if (w->answers == NULL) {
			err_nomem(&e);
			worker_error(w, &e);
		} else {
			op_list_push(&w->settled, w->ops, j->op);
		}
	}
	free_asking(j);
}

bool
conditions_ask(struct worker *w, uint32_t i)
{
	struct asking_job *j;
	struct err e = {0};

	if (!w->ops[i].by_reference || json_get(w->answers, w->flow->ops[i].id) != NULL)
		return false;
	j = calloc(1, sizeof(*j));
	if (j == NULL || flow_asked_init(&j->asked, w->flow, i, op_outcome(&w->ops[i]), &e) != 0) {
		err_nomem(&e);
		worker_error(w, &e);
		free(j);
		return true;
	}
	if (j->asked.count == 0) {
		free(j);
		return false;
	}
	j->job.work = asking_work;
	j->job.done = asking_done;
	j->op = i;
	j->recorded = json_ref(w->ops[i].response);
	io_submit(w->io, &j->job);
	return true;
}

/* ---- A list ---- */

struct list_job {
	struct io_job job;
	uint32_t op;
	enum flow_response kind;
	bool completed;
	struct slice pointer;
	struct json *recorded, *list;
};

static void
list_work(struct io_job *job, struct io_context *c)
{
	struct list_job *j = (struct list_job *)job;
	struct json *response = NULL;
	const struct json *found;

	if (!job->lengthy) {
		job->lengthy = true;
		return;
	}
	job->result = flow_response_read(c->run_fd, j->recorded, j->kind, j->completed, &response, &job->error);
	if (job->result != 0)
		return;
	found = json_pointer_get(response, j->pointer, &job->error);
	if (found != NULL)
		j->list = json_ref(found);
	else
		job->result = -1;
	json_unref(response);
}

static void
list_done(struct io_job *job, void *owner)
{
	struct list_job *j = (struct list_job *)job;

	if (!job->given_up)
		reactive_list_read(owner, j->op, j->list, job->result == 0 ? NULL : &job->error);
	else
		json_unref(j->list);
	json_unref(j->recorded);
	free(j);
}

int
conditions_read_list(struct worker *w, uint32_t i, uint32_t from, struct slice pointer, struct err *e)
{
	struct list_job *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return err_nomem(e);
	j->job.work = list_work;
	j->job.done = list_done;
	j->op = i;
	j->kind = w->flow->ops[from].how->response;
	j->completed = w->ops[from].state == OP_COMPLETED;
	j->pointer = pointer;
	j->recorded = json_ref(w->ops[from].response);
	io_submit(w->io, &j->job);
	return 0;
}
