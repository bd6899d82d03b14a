/*
 * Outcomes: their entries go to the checkpoint writer in one order; an outcome counts for its
 * successors once it is acknowledged (or at once, with relaxed durability).
 */
#include "agent.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"
#include "keeper.h"
#include "plan.h"

enum { UNSAVED_FIRST_CAP = 64 };

/* ---- Entries ---- */

static struct json *
error_object(const struct attempt_run *a, const struct outcome *o)
{
	bool ran = a != NULL && a->started_ns > 0 && a->end.known;
	struct json *v = json_set(json_object(), "class", json_cstr(op_class_word(o->class)));
	bool replaced;

	v = json_set(v, "message", json_string_lossy(slice_of(o->message != NULL ? o->message : ""),
	    &replaced));
	/* A signal and an errno are no status; and where no process was, or its end is not known, there is
	 * none: 0 would say that all was well. */
	if (ran && o->signal == 0 && o->class != CLASS_SPAWN && (o->class != CLASS_EXIT || o->code != 0))
		v = json_set(v, "code", json_int(o->code));
	return o->signal > 0 ? json_set(v, "signal", json_int(o->signal)) : v;
}

/* Of one that was added: what is pending, whose members all stay. */
static struct json *
begin_entry(const struct worker *w, uint32_t i)
{
	const struct json *pending = reactive_entry(w, i);

	if (pending != NULL)
		return json_ref(pending);
	return json_set(json_object(), "agent_id", json_cstr(w->flow->ops[i].id));
}

/* Where there is none, the response is null and has a digest like any other: always the same. */
static struct json *
digest_of(const struct outcome *o)
{
	static char of_null[CKPT_DIGEST_TEXT]; /* of the loop alone */

	if (o->digest[0] != '\0')
		return json_cstr(o->digest);
	if (of_null[0] == '\0')
		ckpt_digest_bytes(slice_of("null"), of_null);
	return json_cstr(of_null);
}

/* Of a process that did not leave with 0 by itself, behind its result. */
static struct json *
end_object(const struct attempt_run *a)
{
	struct json *v = json_object();

	if (a->agent->hung)
		v = json_set(v, CKPT_HUNG, json_bool(true));
	return a->end.known ? json_set(v, a->end.signaled ? "signal" : "code", json_int(a->end.code)) : v;
}

static struct json *
make_entry(const struct worker *w, uint32_t i, const struct attempt_run *a,
    const struct outcome *o)
{
	bool completed = o->class == CLASS_NONE;
	struct json *v = begin_entry(w, i);

	v = json_set(v, "status", json_cstr(completed ? "completed" : "failed"));
	v = json_set(v, "response", o->response != NULL ? json_ref(o->response) : json_null());
	v = json_set(v, "result_digest", digest_of(o));
	if (o->lossy)
		v = json_set(v, "response_lossy", json_bool(true));
	if (!o->by_reference && ckpt_looks_like_file(o->response))
		v = json_set(v, CKPT_LITERAL, json_bool(true));
	if (o->output != NULL)
		v = json_set(v, CKPT_OUTPUT, completed && o->of_response
		    ? json_cstr(CKPT_OF_RESPONSE) : json_ref(o->output));
	if (o->artifacts != NULL && completed)
		v = json_set(v, "artifacts", json_ref(o->artifacts));
	if (o->conversation != NULL)
		v = json_set(v, "conversation", json_ref(o->conversation));
	if (o->usage != NULL)
		v = json_set(v, "usage", json_ref(o->usage));
	v = json_set(v, "attempts", json_int((int64_t)w->ops[i].attempts));
	v = turns_describe(w, i, v);
	if (a != NULL) {
		v = json_set(v, "started_at", json_real(a->started_at));
		v = json_set(v, "ended_at", json_real(a->ended_at));
	}
	if (completed && a != NULL && a->agent != NULL && (a->agent->hung || !a->end.known))
		v = json_set(v, CKPT_END, end_object(a));
	return completed ? v : json_set(v, "error", error_object(a, o));
}

/* ---- What is not saved yet ---- */

static int
unsaved_push(struct worker *w, uint32_t i, bool pending, struct err *e)
{
	size_t cap = w->unsaved_cap == 0 ? UNSAVED_FIRST_CAP : w->unsaved_cap * 2, n;
	struct unsaved *more;

	if (w->unsaved_count == w->unsaved_cap) {
		more = malloc(cap * sizeof(*more));
		if (more == NULL)
			return err_nomem(e);
		for (n = 0; n < w->unsaved_count; n++)
			more[n] = w->unsaved[(w->unsaved_first + n) % w->unsaved_cap];
		free(w->unsaved);
		w->unsaved = more;
		w->unsaved_cap = cap;
		w->unsaved_first = 0;
	}
	assert(w->unsaved_cap > 0);
	w->unsaved[(w->unsaved_first + w->unsaved_count) % w->unsaved_cap] =
	    (struct unsaved){i, pending};
	w->unsaved_count++;
	w->unsaved_pending += pending;
	return 0;
}

static struct unsaved
unsaved_pop(struct worker *w)
{
	struct unsaved u = w->unsaved[w->unsaved_first];

	assert(w->unsaved_count > 0);
	w->unsaved_first = (w->unsaved_first + 1) % w->unsaved_cap;
	w->unsaved_count--;
	w->unsaved_pending -= u.pending;
	return u;
}

/* ---- Settling ---- */

static enum ckpt_kind
kind_of(const struct worker *w, uint32_t i)
{
	return i < w->flow->nplanned ? CKPT_OP : CKPT_SPAWNED;
}

int
settle_pending(struct worker *w, uint32_t i, const struct json *entry, struct err *e)
{
	uint64_t ticket;

	if (unsaved_push(w, i, true, e) != 0)
		return -1;
	if (ckpt_admit_now(w->writer, CKPT_SPAWNED, json_ref(entry), NULL, &ticket, e) == 0)
		return 0;
	w->unsaved_count--;
	w->unsaved_pending--;
	return -1;
}

/* Whether something goes on, or is lost that was dear, when it is on disk only a little later. */
static bool
is_waited_for(const struct worker *w, uint32_t i)
{
	const struct flow_op *def = &w->flow->ops[i];

	if (!op_is_settled(&w->ops[i]) || plan_is_awaited(w, i))
		return true;
	return !w->relaxed &&
	    (def->kind == FLOW_INSTRUCTION || !def->how->idempotent ||
	     op_may_release(w->ops, w->flow, i, w->unsaved_count));
}

static int
admit(struct worker *w, uint32_t i, struct json *entry, struct json *context, struct err *e)
{
	uint64_t ticket;

	return is_waited_for(w, i) ? ckpt_admit_now(w->writer, kind_of(w, i), entry, context, &ticket, e)
				   : ckpt_admit(w->writer, kind_of(w, i), entry, context, &ticket, e);
}

/* context is the one that the outcome carries, or NULL. Consumes both. */
static void
record(struct worker *w, uint32_t i, struct json *entry, struct json *context)
{
	struct err e = {0};

	/* Room first: an admitted outcome must not be forgotten. */
	if (unsaved_push(w, i, false, &e) != 0) {
		json_unref(entry);
		json_unref(context);
		worker_error(w, &e);
		return;
	}
	if (context != NULL)
		flow_context_became(w, json_ref(context));
	if (entry == NULL) {
		json_unref(context);
		err_nomem(&e);
	}
	if (entry == NULL || admit(w, i, entry, context, &e) != 0) {
		w->unsaved_count--;
		worker_error(w, &e);
		return;
	}
	if (w->relaxed && op_is_settled(&w->ops[i]) && !plan_is_awaited(w, i))
		op_list_push(&w->settled, w->ops, i);
}

/* Whose resume has kept it went on in spite of it. */
static bool
is_kept(const struct worker *w, uint32_t i)
{
	return w->ops[i].replayed &&
	    json_get(json_get(json_get(w->state, "config"), CONFIG_KEPT), w->flow->ops[i].id) != NULL;
}

static void
count_settled(struct worker *w, uint32_t i)
{
	enum op_state s = (enum op_state)w->ops[i].state;
	bool replaced = s == OP_FAILED && flow_is_replaced(w->flow, i);

	w->counts.done++;
	w->counts.done_of_synthesis += flow_is_of_synthesis(w->flow, i);
	w->counts.completed += s == OP_COMPLETED;
	w->counts.replaced += replaced;
	w->counts.failed += s == OP_FAILED && !replaced;
	w->counts.skipped += s == OP_SKIPPED;
	if (s == OP_FAILED && !replaced && w->first_failed == OP_NO_INDEX)
		w->first_failed = i;
	if (s == OP_FAILED && !replaced && w->flow->fail_fast && !is_kept(w, i))
		admission_close(w, CLOSED_FAIL_FAST);
	anew_settled(w, i);
	link_progress(w);
}

/* In each turn. What has failed once stays so: a resume has to be told what to do about it. */
void
settle_tell(struct worker *w)
{
	if (w->counts.failed > 0 && w->failures_told.value == NULL)
		telling_set(w, &w->failures_told, json_bool(true));
	telling_go(w, &w->failures_told, META_FAILURES);
	if (w->lost_context && w->lost_told.value == NULL)
		telling_set(w, &w->lost_told, json_bool(true));
	telling_go(w, &w->lost_told, META_LOST_CONTEXT);
	anew_tell(w);
}

/* seconds < 0: nothing ran. */
static void
event_work(struct worker *w, double seconds, unsigned leftovers, bool hung)
{
	if (seconds >= 0)
		event_int(w, "ms", (int64_t)(seconds * 1000));
	if (leftovers > 0)
		event_int(w, "leftovers", leftovers);
	if (hung)
		event_true(w, "hung_after_result");
}

static void
event_settled(struct worker *w, uint32_t i, const struct attempt_run *a, const struct outcome *o)
{
	bool completed = o->class == CLASS_NONE;

	event_begin(w, completed ? "NodeCompleted" : "NodeFailed");
	event_op(w, i);
	if (a != NULL)
		event_work(w, a->started_ns > 0 ? a->ended_at - a->started_at : -1, a->leftovers,
		    a->agent != NULL && a->agent->hung);
	if (!completed) {
		event_text(w, "class", op_class_word(o->class));
		event_int(w, "code", o->code);
		event_text(w, "message", o->message != NULL ? o->message : "");
	}
	event_end(w);
}

/* ---- Retries ---- */

static void
retry_due(void *arg)
{
	struct attempt_run *a = arg;
	struct worker *w = a->w;
	uint32_t i = a->op;

	attempt_free(a);
	w->retrying--;
	admission_ready(w, i);
}

static uint64_t
random_bits(void)
{
	uint64_t bits;

	/* Only to spread retries: without entropy the clock does. */
	if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits))
		bits = (uint64_t)clock_monotonic_ns() * UINT64_C(0x9e3779b97f4a7c15);
	return bits;
}

/* The slot is free meanwhile; the next attempt passes everything anew, from admission on. */
static void
retry_later(struct attempt_run *a, const struct outcome *o)
{
	struct worker *w = a->w;
	const struct flow_retry *r = &w->flow->ops[a->op].how->retry;
	int64_t delay = flow_retry_delay_ns(r, a->number, random_bits());
	struct err e = {0};

	op_become(&w->ops[a->op], OP_RETRYING);
	w->retrying++;
	event_begin(w, "NodeRetrying");
	event_op(w, a->op);
	event_text(w, "class", op_class_word(o->class));
	event_int(w, "code", o->code);
	event_text(w, "message", o->message != NULL ? o->message : "");
	event_int(w, "delay_ms", delay / NS_PER_MS);
	if (admission_over(w))
		event_true(w, "deferred");
	if (a->leftovers > 0)
		event_int(w, "leftovers", a->leftovers);
	event_end(w);
	fd_close(&a->out_fd);
	if (timer_arm(&w->loop.timers, &a->retry, clock_monotonic_ns() + delay, retry_due, a, &e) != 0)
		worker_error(w, &e);
}

static bool
wants_retry(struct attempt_run *a, const struct outcome *o)
{
	if (plan_is_awaited(a->w, a->op) && o->class == CLASS_RESPONSE)
		return plan_feeds_back(a, o);
	return flow_retry_applies(&a->w->flow->ops[a->op].how->retry, op_class_word(o->class), o->code,
	    a->number);
}

static void
cancelled(struct attempt_run *a, const char *why)
{
	struct worker *w = a->w;
	uint32_t i = a->op;

	op_become(&w->ops[i], OP_CANCELLED);
	w->counts.cancelled++;
	event_begin(w, "NodeCancelled");
	event_op(w, i);
	if (a->leftovers > 0)
		event_int(w, "leftovers", a->leftovers);
	event_text(w, "why", why);
	event_end(w);
	attempt_free(a);
}

/* What it has asked of the context enters with its outcome, or it has failed. */
static struct json *
take_changes(struct attempt_run *a, struct outcome *o)
{
	struct json *context = NULL;
	struct buf text = {0};
	struct err e = {0};

	if (o->class != CLASS_NONE || emit_take(a, o->changes, &context, &e) == 0)
		return context;
	buf_printf(&text, "response: %s", e.msg);
	free(o->message);
	o->message = buf_steal(&text);
	o->class = CLASS_RESPONSE;
	return NULL;
}

/* A response that no checkpoint could hold; its bytes stand in the output. */
static void
refuse_depth(struct outcome *o)
{
	if (o->class != CLASS_NONE ||
	    json_depth(o->response, CKPT_MAX_RESPONSE_DEPTH) <= CKPT_MAX_RESPONSE_DEPTH)
		return;
	outcome_clear(o);
	o->class = CLASS_RESPONSE;
	if (asprintf(&o->message, "response: nested more than %d levels deep",
		CKPT_MAX_RESPONSE_DEPTH) < 0)
		o->message = NULL; /* the class says enough */
}

/* It stays as it is until it is known whether another turn follows. */
static bool
keep_open(struct attempt_run *a, struct outcome *o, struct json *context)
{
	struct worker *w = a->w;
	uint32_t i = a->op;
	struct json *entry;

	if (!turns_keep_open(a, o))
		return false;
	entry = make_entry(w, i, a, turns_outcome(w));
	w->settling++;
	attempt_free(a);
	record(w, i, entry, context);
	return true;
}

static void
keep_response(struct op *op, const struct outcome *o)
{
	op->response = o->response != NULL ? json_ref(o->response) : NULL;
	op->by_reference = o->by_reference;
}

void
settle_turns(struct worker *w, uint32_t i, const struct outcome *o, const struct turns_total *t)
{
	w->settling--;
	op_become(&w->ops[i], OP_COMPLETED);
	keep_response(&w->ops[i], o);
	if (!w->ops[i].replayed) {
		event_begin(w, "NodeCompleted");
		event_op(w, i);
		event_work(w, t->ended_at - t->started_at, t->leftovers, t->hung);
		event_end(w);
	}
	count_settled(w, i);
	if (t->saved || w->relaxed)
		op_list_push(&w->settled, w->ops, i);
}

void
settle_attempt(struct attempt_run *a, struct outcome *o)
{
	struct worker *w = a->w;
	uint32_t i = a->op;
	struct json *context;

	refuse_depth(o);
	context = take_changes(a, o);
	w->settling--;
	artifact_dir_over(a);
	events_attempt_end(w, i, a->number, o->class, a->started_ns > 0 && !a->end.known ? -1 : o->code, o->signal,
	    a->leftovers);
	if (o->class == CLASS_CANCELLED) {
		cancelled(a, "ended by a stop");
		return;
	}
	if (o->class != CLASS_NONE && wants_retry(a, o)) {
		retry_later(a, o);
		return;
	}
	/* What is unknown runs again, unless it must not; then it has failed, and says why. */
	if ((o->class == CLASS_CRASH && w->flow->ops[i].how->idempotent) ||
	    (o->class == CLASS_SESSION_LOST && agents_begin_anew(w, i))) {
		retry_later(a, o);
		return;
	}
	/* What it asks for is recorded before its own outcome. */
	if (o->class == CLASS_NONE && o->asking != NULL)
		reactive_members(a, o->asking);
	if (keep_open(a, o, context))
		return;
	w->lost_context |= o->class == CLASS_SESSION_LOST;
	if (o->class != CLASS_NONE) {
		turns_failed(w, i, o);
		reactive_failed(a);
	}
	if (plan_is_awaited(w, i)) {
		w->planning.left_out = o->left_out;
		context = plan_forget_feedback(w, context);
	}
	op_become(&w->ops[i], o->class == CLASS_NONE ? OP_COMPLETED : OP_FAILED);
	keep_response(&w->ops[i], o);
	agents_settled(w, i, o->conversation);
	event_settled(w, i, a, o);
	count_settled(w, i);
	record(w, i, make_entry(w, i, a, o), context);
	attempt_free(a);
}

/* Where its keeper has written its end, a resume reads it, as after its worker's death; else it runs again. */
void
settle_unread(struct attempt_run *a)
{
	struct worker *w = a->w;

	w->settling--;
	if (!keeper_is_wanted(w, a->op))
		events_attempt_end(w, a->op, a->number, CLASS_CANCELLED, a->end.known && !a->end.signaled ? a->end.code : -1,
		    a->end.known && a->end.signaled ? a->end.code : 0, a->leftovers);
	cancelled(a, "not read to its end before the stop");
}

static void
settle_bare(struct worker *w, uint32_t i, struct outcome *o)
{
	op_become(&w->ops[i], o->class == CLASS_NONE ? OP_COMPLETED : OP_FAILED);
	keep_response(&w->ops[i], o);
	event_settled(w, i, NULL, o);
	count_settled(w, i);
	record(w, i, make_entry(w, i, NULL, o), plan_is_awaited(w, i) ? plan_forget_feedback(w, NULL) : NULL);
}

void
settle_plain(struct worker *w, uint32_t i, struct outcome *o)
{
	w->settling--;
	settle_bare(w, i, o);
}

void
settle_failed(struct worker *w, uint32_t i, enum op_class class, const char *message)
{
	struct outcome o = {.class = class};

	o.message = strdup(message);
	settle_bare(w, i, &o);
	outcome_clear(&o);
}

static void
tell_condition(struct worker *w, uint32_t i)
{
	const struct flow_edge *edge = op_unmet_edge(w->ops, w->flow, w->answers, i);
	struct buf why = {0};

	if (edge == NULL)
		return;
	if (w->ops[edge->op].by_reference)
		flow_answer_unmet(json_get(w->answers, w->flow->ops[edge->op].id), edge, &why);
	else
		flow_need_unmet(w->flow, edge, op_outcome(&w->ops[edge->op]), w->ops[edge->op].response, &why);
	if (!why.failed)
		event_text(w, "why", buf_text(&why));
	buf_clear(&why);
}

/* It has no entry, so there is nothing to wait for: what it follows from is saved already. */
void
settle_skipped(struct worker *w, uint32_t i, uint32_t cause)
{
	op_become(&w->ops[i], OP_SKIPPED);
	w->ops[i].cause = cause;
	count_settled(w, i);
	event_begin(w, "NodeSkipped");
	event_op(w, i);
	event_text(w, "cause", w->flow->ops[cause].id);
	event_text(w, "cause_state", op_state_word((enum op_state)w->ops[cause].state));
	if (cause == i)
		tell_condition(w, i);
	event_end(w);
	op_list_push(&w->settled, w->ops, i);
}

static void
keep_output(struct worker *w, uint32_t i, const struct json *path)
{
	struct err e = {0};

	if (w->outputs == NULL)
		w->outputs = json_object();
	w->outputs = json_set(w->outputs, w->flow->ops[i].id, json_ref(path));
	if (w->outputs != NULL)
		return;
	err_nomem(&e);
	worker_error(w, &e);
}

void
settle_replayed(struct worker *w, uint32_t i, const struct json *entry)
{
	bool completed = slice_is(json_text(json_get(entry, "status")), "completed");
	const struct json *response = json_get(entry, "response");
	int64_t attempts;

	op_become(&w->ops[i], completed ? OP_COMPLETED : OP_FAILED);
	w->ops[i].replayed = true;
	if (response != NULL && json_type(response) != JSON_NULL)
		w->ops[i].response = json_ref(response);
	w->ops[i].by_reference = ckpt_is_file(entry);
	w->ops[i].never_ran = json_int64(json_get(entry, "attempts"), &attempts) && attempts == 0;
	if (json_cstr_of(json_get(json_get(entry, CKPT_OUTPUT), "file")) != NULL)
		keep_output(w, i, json_get(entry, CKPT_OUTPUT));
	else if (json_cstr_of(json_get(entry, CKPT_ATTEMPT_PATH)) != NULL)
		keep_output(w, i, json_get(entry, CKPT_ATTEMPT_PATH));
	count_settled(w, i);
	agents_settled(w, i, json_get(entry, "conversation"));
	op_list_push(&w->settled, w->ops, i);
}

void
settle_release(struct worker *w)
{
	uint32_t i;

	while ((i = op_list_pop(&w->settled, w->ops)) != OP_NO_INDEX)
		if (!conditions_ask(w, i))
			op_release(w->ops, w->flow, i, admission_met, w);
	admission_last(w);
}

/* ---- Acknowledgements ---- */

/* In each turn. Where nothing runs, all that can come next is that it is saved. */
void
settle_hurry(struct worker *w)
{
	if (w->unsaved_count > 0 && (w->running == 0 || admission_over(w)))
		ckpt_hurry(w->writer);
}

static void
saved(struct worker *w, const struct ckpt_ack *ack)
{
	struct unsaved u;

	if (ack->kind == CKPT_CONTEXT) {
		flow_context_acked(w);
		return;
	}
	if (ack->kind == CKPT_PLAN) {
		plan_adopt(w);
		return;
	}
	u = unsaved_pop(w);
	assert(slice_is(json_text(ack->identity), u.op < w->flow->nplanned
	    ? w->flow->ops[u.op].id : flow_node_id(w->flow, u.op)));
	event_begin(w, "CheckpointSaved");
	if (u.pending)
		event_text(w, "pending", w->flow->ops[u.op].id);
	else
		event_op(w, u.op);
	event_text(w, "kind", u.pending ? "pending" : ack->kind == CKPT_OP ? "op" : "spawned");
	event_int(w, "ticket", (int64_t)ack->ticket);
	event_int(w, "seq", (int64_t)ack->seq);
	event_text(w, "generation", ack->generation);
	event_end(w);
	if (u.pending) {
		reactive_acked(w, u.op);
		return;
	}
	turns_saved(w, u.op);
	if (!op_is_settled(&w->ops[u.op]))
		return;
	if (plan_is_awaited(w, u.op))
		plan_store(w);
	else if (!w->relaxed)
		op_list_push(&w->settled, w->ops, u.op);
}

void
settle_acks(struct worker *w)
{
	struct ckpt_progress p;
	struct ckpt_ack ack;

	while (ckpt_take_ack(w->writer, &ack)) {
		saved(w, &ack);
		json_unref(ack.identity);
	}
	p = ckpt_progress(w->writer);
	switch (p.health) {
	case CKPT_HEALTHY:
	case CKPT_STORAGE:
		storage_writer(w, &p);
		break;
	case CKPT_STOPPED:
		if (!w->writer_stopped)
			reactive_abandon(w, &p.why);
		w->writer_stopped = true;
		if (!(w->closed & CLOSED_ERROR))
			worker_error(w, &p.why);
		break;
	}
}
