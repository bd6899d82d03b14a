#include "plan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "changes.h"
#include "flowsup/log.h"
#include "flowsup/provider.h"
#include "flowsup/store.h"

enum { ANSWER_SHOWN = 32 << 10 }; /* of an answer that was refused */

bool
plan_is_awaited(const struct worker *w, uint32_t i)
{
	return w->flow->unplanned && i == w->flow->planner_op;
}

/* ---- An answer ---- */

int
plan_judge(const struct worker *w, struct json **answer, size_t *left_out, struct err *e)
{
	struct provider_search search;
	struct json *plan = NULL;
	int rc = provider_search_init(&search, w->environment, e);

	if (rc != 0)
		return -1;
	rc = flow_plan_accept(w->flow, &search, *answer, &plan, left_out, e);
	provider_search_clear(&search);
	/* It must stand in the checkpoint itself, because a resume may have to make the flow of it. */
	if (rc == 0 && json_encoded_length(plan) > w->inline_limit) {
		json_unref(plan);
		return err_set(e, ERR_LIMIT, "the plan is larger than %llu bytes",
		    (unsigned long long)w->inline_limit);
	}
	if (rc != 0)
		return -1;
	json_unref(*answer);
	*answer = plan;
	return 0;
}

/* What an earlier attempt was told, also one of the run that this one resumes, is kept with the context:
 * {"refusals": N, "answer": TEXT, "why": TEXT}, of the latest. */
static int64_t
refusals(const struct worker *w)
{
	int64_t n = 0;

	json_int64(json_get(flow_context_kept(w, CONTEXT_PLANNER), "refusals"), &n);
	return n;
}

static struct json *
shown_answer(const struct json *answer)
{
	struct slice text = answer != NULL ? json_text(answer) : slice_of("");
	struct buf encoded = {0};
	struct json *shown = NULL;

	if (text.data == NULL) {
		json_write(&encoded, answer);
		text = buf_view(&encoded);
	}
	if (text.len > ANSWER_SHOWN)
		text.len = ANSWER_SHOWN;
	if (!encoded.failed)
		shown = json_string_lossy(text, NULL);
	buf_clear(&encoded);
	return shown;
}

/* Nobody waits for it: the run does not end before it is saved, and what a crash loses is answered again. */
static void
feedback_saved(struct worker *w, void *arg, bool durable)
{
	(void)w;
	(void)arg;
	(void)durable;
}

bool
plan_feeds_back(struct attempt_run *a, const struct outcome *o)
{
	struct worker *w = a->w;
	struct json *told = json_object();
	struct err e = {0};

	event_begin(w, "PlanRejected");
	event_op(w, a->op);
	event_text(w, "message", o->message != NULL ? o->message : "");
	event_end(w);
	if (refusals(w) >= FLOW_PLAN_FEEDBACKS) {
		json_unref(told);
		return false;
	}
	told = json_set(told, "refusals", json_int(refusals(w) + 1));
	told = json_set(told, "answer", shown_answer(o->response));
	told = json_set(told, "why",
	    json_string_lossy(slice_of(o->message != NULL ? o->message : "it cannot be read"), NULL));
	if (flow_context_keep(w, CONTEXT_PLANNER, told, &e) != 0 ||
	    flow_context_commit(w, feedback_saved, NULL, &e) != 0)
		worker_error(w, &e);
	return true;
}

/* What was cut off its answer stands nowhere else until the plan is told of, and a worker may die before. */
struct json *
plan_forget_feedback(struct worker *w, struct json *context)
{
	struct err e = {0};

	if (w->planning.left_out == 0 && flow_context_kept(w, CONTEXT_PLANNER) == NULL)
		return context;
	if (context == NULL)
		context = json_ref(w->flow_context);
	if (w->planning.left_out > 0)
		context = json_set(context, CONTEXT_PLANNER,
		    json_set(json_object(), "left_out", json_uint(w->planning.left_out)));
	else
		context = json_remove(context, slice_of(CONTEXT_PLANNER));
	if (context == NULL) {
		err_nomem(&e);
		worker_error(w, &e);
	}
	return context;
}

static size_t
recorded_left_out(const struct json *state)
{
	int64_t n = 0;

	json_int64(json_get(json_get(json_get(state, "flow_context"), CONTEXT_PLANNER), "left_out"), &n);
	return n > 0 ? (size_t)n : 0;
}

static void
add_refused(const struct worker *w, struct buf *to)
{
	const struct json *told = flow_context_kept(w, CONTEXT_PLANNER);

	buf_puts(to, "\nThis was answered before and is not a valid plan:\n");
	buf_slice(to, json_text(json_get(told, "answer")));
	buf_puts(to, "\nWhat is wrong with it: ");
	buf_slice(to, json_text(json_get(told, "why")));
	buf_puts(to, "\nAnswer again, with the whole plan.\n");
}

void
plan_instruction(const struct worker *w, struct buf *to)
{
	flow_planner_format(w->flow, to);
	if (refusals(w) > 0)
		add_refused(w, to);
}

/* ---- From the answer to the flow ---- */

struct json *
plan_entries(const struct flow *f, size_t first)
{
	char (*ids)[UUID_TEXT] = calloc(f->nops + 1, sizeof(*ids));
	const char **list = calloc(f->nops + 1, sizeof(*list));
	struct json *plan = NULL;
	size_t i;

	if (ids != NULL && list != NULL && uuids_make(ids, f->nops, NULL) == 0) {
		for (i = 0; i < f->nops; i++)
			list[i] = ids[i];
		plan = flow_plan(f, list);
	}
	free(ids);
	free(list);
	while (first-- > 0)
		plan = json_erase(plan, 0);
	return plan;
}

void
plan_store(struct worker *w)
{
	uint32_t planner = (uint32_t)w->flow->planner_op;
	struct json *entries = NULL;
	struct err e = {0};
	uint64_t ticket;

	assert(w->flow->unplanned && w->planning.next == NULL);
	if (w->ops[planner].state != OP_COMPLETED)
		return;
	w->planning.entries = NULL;
	if (flow_with_plan(w->flow, w->ops[planner].response, &w->planning.next, &e) == 0) {
		entries = plan_entries(w->planning.next, w->flow->nops);
		if (entries == NULL)
			err_nomem(&e);
	}
	w->planning.entries = entries != NULL ? json_ref(entries) : NULL;
	if (entries == NULL || ckpt_admit_now(w->writer, CKPT_PLAN, entries, NULL, &ticket, &e) != 0) {
		flow_free(w->planning.next);
		w->planning.next = NULL;
		worker_error(w, &e);
	}
}

/* What reactive_begin reads. */
static int
make_state(struct worker *w, struct err *e)
{
	struct json_iter it = json_iterate(w->planning.entries);
	struct json *plan = w->planning.before;
	const struct json *entry;

	w->planning.before = NULL;
	while (json_next(&it, NULL, &entry))
		plan = json_append(plan, json_ref(entry));
	w->state = json_set(json_set(json_object(), "plan", plan), "spawned", json_array());
	return w->state != NULL ? 0 : err_nomem(e);
}

/* All that is made for a flow once, for the larger one. */
static int
take_flow(struct worker *w, struct flow *next, struct err *e)
{
	struct flow *old = w->flow;
	struct op planner = w->ops[0];
	struct op *ops;

	agents_clear(w); /* by role, so by the flow they belong to */
	assert(w->reactive == NULL);
	w->flow = next;
	flow_free(old);
	if (reactive_begin(w, e) != 0)
		return -1;
	ops = calloc(reactive_most(w) + 1, sizeof(*ops));
	if (ops == NULL)
		return err_nomem(e);
	free(w->ops);
	w->ops = ops;
	ops[0] = planner;
	op_count_predecessors(w->ops, w->flow);
	return worker_fit(w, e) != 0 ? -1 : agents_init(w, e);
}

static void
tell_cut(struct worker *w, size_t planned, struct buf *message)
{
	if (w->planning.left_out == 0)
		return;
	buf_printf(message, "its last %zu operation%s left out: there may be at most %zu", w->planning.left_out,
	    w->planning.left_out == 1 ? " is" : "s are", planned);
	event_int(w, "left_out", (int64_t)w->planning.left_out);
	telling_set(w, &w->planning.cut_told,
	    json_set(json_set(json_object(), "left_out", json_uint(w->planning.left_out)), "allowed", json_uint(planned)));
	log_line(LOG_WARNING, "the plan: %s", buf_text(message));
}

static void
tell_empty(struct worker *w, struct buf *message)
{
	struct json *empty = flow_empty_lists(w->ops[w->flow->planner_op].response);
	size_t from;
	int64_t n;

	if (json_type(empty) == JSON_NULL) {
		json_unref(empty);
		return;
	}
	if (json_int64(json_get(empty, "count"), &n))
		event_int(w, "empty", n);
	buf_puts(message, message->len > 0 ? "; " : "");
	from = message->len;
	flow_empty_lists_text(empty, message);
	if (!message->failed)
		log_line(LOG_WARNING, "the plan: %s", buf_text(message) + from);
	telling_set(w, &w->planning.empty_told, empty);
}

static void
tell_accepted(struct worker *w)
{
	size_t planned = w->flow->nops - 1 - (w->flow->synthesis_op != SIZE_MAX);
	struct buf message = {0};
	struct err e = {0};

	w->planning.untold = false;
	event_begin(w, "PlanAccepted");
	event_int(w, "operations", (int64_t)planned);
	tell_cut(w, planned, &message);
	tell_empty(w, &message);
	if (message.len > 0)
		event_text(w, "message", buf_text(&message));
	event_end(w);
	if (buf_ok(&message, &e) != 0)
		worker_error(w, &e);
	buf_clear(&message);
}

void
plan_tell(struct worker *w)
{
	if (w->planning.untold)
		tell_accepted(w);
	telling_go(w, &w->planning.cut_told, META_PLAN_CUT);
	telling_go(w, &w->planning.empty_told, META_PLAN_EMPTY);
}

void
plan_adopt(struct worker *w)
{
	struct flow *next = w->planning.next;
	uint32_t planner = (uint32_t)w->flow->planner_op, i;
	struct err e = {0};

	assert(next != NULL && planner == 0 && next->planner_op == 0 && w->live == NULL);
	w->planning.next = NULL;
	if (make_state(w, &e) != 0) {
		flow_free(next);
		worker_error(w, &e);
		return;
	}
	if (take_flow(w, next, &e) != 0)
		worker_error(w, &e);
	json_unref(w->state);
	w->state = NULL;
	if (e.code != ERR_NONE)
		return;
	tell_accepted(w);
	op_list_push(&w->settled, w->ops, planner);
	for (i = 1; i < w->flow->nops; i++)
		if (w->ops[i].unmet == 0)
			admission_met(w, i);
	flow_drop_document(w->flow);
	link_progress(w);
}

int
plan_of_state(struct worker *w, struct err *e)
{
	const struct json *entry = json_get(json_get(w->state, "ops"), FLOW_PLANNER), *item;
	struct json *plan = json_ref(json_get(w->state, "plan")), *entries;
	struct flow *next = NULL;
	struct json_iter it;

	if (!w->flow->unplanned || !slice_is(json_text(json_get(entry, "status")), "completed")) {
		json_unref(plan);
		return 0;
	}
	if (flow_with_plan(w->flow, json_get(entry, "response"), &next, e) != 0) {
		json_unref(plan);
		return err_wrap(e, "the recorded answer of the planner");
	}
	entries = plan_entries(next, w->flow->nops);
	it = json_iterate(entries);
	while (json_next(&it, NULL, &item))
		plan = json_append(plan, json_ref(item));
	w->state = json_set(w->state, "plan", entries != NULL ? plan : NULL);
	if (entries == NULL)
		json_unref(plan);
	json_unref(entries);
	flow_free(w->flow);
	w->flow = next;
	w->planning.left_out = recorded_left_out(w->state);
	w->planning.untold = true;
	return w->state != NULL ? 0 : err_nomem(e);
}

void
plan_clear(struct worker *w)
{
	telling_clear(w, &w->planning.cut_told);
	telling_clear(w, &w->planning.empty_told);
	json_unref(w->planning.before);
	json_unref(w->planning.entries);
	flow_free(w->planning.next);
}
