/*
 * Operations with `gate: approve` wait for a person. The verdict is state of the run, in the shared
 * context: a resume neither asks again nor forgets a denial. What waits is told to the database, in
 * the run's metadata, for those who look over many runs.
 */
#include "worker.h"

#include <assert.h>
#include <stdlib.h>

#include "changes.h"
#include "flowsup/clock.h"
#include "flowsup/log.h"

enum { TELL_MOST = 100 };

static double
now_seconds(void)
{
	return (double)clock_wall_ns() / (double)NS_PER_S;
}

const struct json *
approval_verdict(const struct worker *w, uint32_t i)
{
	return json_get(flow_context_kept(w, CONTEXT_APPROVALS), w->flow->ops[i].id);
}

/* ---- What waits, in the database ---- */

void
approval_tell(struct worker *w)
{
	telling_go(w, &w->waiting_told, "waiting");
}

static void
list_add(struct worker *w, uint32_t i)
{
	struct json *one;

	const struct json *have = w->waiting_told.value;

	if (json_length(have) >= TELL_MOST)
		return;
	one = json_set(json_object(), "op", json_cstr(w->flow->ops[i].id));
	one = json_set(one, "since", json_real(now_seconds()));
	telling_set(w, &w->waiting_told, json_append(have != NULL ? json_ref(have) : json_array(),
	    json_set(one, "for", json_cstr("approval"))));
}

static void
list_remove(struct worker *w, uint32_t i)
{
	const struct json *have = w->waiting_told.value;
	size_t n;

	for (n = 0; n < json_length(have); n++)
		if (slice_is(json_text(json_get(json_at(have, n), "op")), w->flow->ops[i].id)) {
			telling_set(w, &w->waiting_told, json_erase(json_ref(have), n));
			return;
		}
}

/* ---- The gate ---- */

static void
fail_denied(struct worker *w, uint32_t i, const struct json *verdict)
{
	struct slice note = json_text(json_get(verdict, "note")), by = json_text(json_get(verdict, "by"));
	struct buf text = {0};

	buf_puts(&text, "denied");
	if (by.len > 0) {
		buf_puts(&text, " by ");
		buf_slice(&text, by);
	}
	if (note.len > 0) {
		buf_puts(&text, ": ");
		buf_slice(&text, note);
	}
	settle_failed(w, i, CLASS_DENIED, text.failed ? "denied" : buf_text(&text));
	buf_clear(&text);
}

bool
approval_pass(struct worker *w, uint32_t i)
{
	const struct json *verdict = approval_verdict(w, i);

	if (slice_is(json_text(json_get(verdict, "verdict")), "approved"))
		return true;
	if (verdict != NULL) {
		fail_denied(w, i, verdict);
		return false;
	}
	op_become(&w->ops[i], OP_WAITING);
	w->waiting++;
	list_add(w, i);
	event_begin(w, "NodeWaiting");
	event_op(w, i);
	event_text(w, "for", "approval");
	event_end(w);
	return false;
}

uint32_t
approval_find_waiting(const struct worker *w, const struct json *payload)
{
	const char *id = json_cstr_of(json_get(payload, "op"));
	size_t i = id != NULL ? flow_find(w->flow, id) : SIZE_MAX;

	if (i == SIZE_MAX || w->ops[i].state != OP_WAITING || approval_verdict(w, (uint32_t)i) != NULL)
		return OP_NO_INDEX;
	return (uint32_t)i;
}

const char *
approval_why_not(const struct worker *w, const char *id)
{
	size_t i = id != NULL ? flow_find(w->flow, id) : SIZE_MAX;

	if (i == SIZE_MAX)
		return "is not in the run";
	if (!w->flow->ops[i].how->gate_approve)
		return "has no gate";
	if (approval_verdict(w, (uint32_t)i) != NULL)
		return "has its verdict already";
	if (op_is_settled(&w->ops[i]))
		return w->ops[i].state == OP_SKIPPED ? "was skipped" : "has ended";
	if (admission_over(w))
		return "is not started any more";
	return "does not wait yet; \"flowsup waiting\" lists it when it does, then try again";
}

int
approval_record(struct worker *w, uint32_t i, bool approved, const struct json *payload,
    struct err *e)
{
	const struct json *note = json_get(payload, "note"), *by = json_get(payload, "by");
	const struct json *have = flow_context_kept(w, CONTEXT_APPROVALS);
	struct json *verdict = json_set(json_object(), "verdict",
	    json_cstr(approved ? "approved" : "denied"));

	verdict = json_set(verdict, "by", by != NULL ? json_ref(by) : json_cstr(""));
	verdict = json_set(verdict, "at", json_real(now_seconds()));
	if (note != NULL)
		verdict = json_set(verdict, "note", json_ref(note));
	return flow_context_keep(w, CONTEXT_APPROVALS,
	    json_set(have != NULL ? json_ref(have) : json_object(), w->flow->ops[i].id, verdict), e);
}

/* The verdict is durable: the operation passes the gates anew. */
void
approval_landed(struct worker *w, uint32_t i)
{
	if (w->ops[i].state != OP_WAITING)
		return;
	w->waiting--;
	list_remove(w, i);
	admission_ready(w, i);
}

void
approval_cancel_waiting(struct worker *w)
{
	uint32_t i;

	for (i = 0; i < w->flow->nops && w->waiting > 0; i++) {
		if (w->ops[i].state != OP_WAITING)
			continue;
		op_become(&w->ops[i], OP_CANCELLED);
		w->waiting--;
		w->counts.cancelled++;
		event_begin(w, "NodeCancelled");
		event_op(w, i);
		event_text(w, "why", "nobody approved it before the run ended");
		event_end(w);
	}
}
