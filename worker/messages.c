/*
 * Messages of a person to operations that have not started. Which operation gets one is decided at
 * the instant it starts, and is durable before its process exists: then no other operation ever
 * gets it, whatever dies in between.
 */
#include "agent.h"

#include <assert.h>
#include <stdlib.h>

#include "changes.h"
#include "flowsup/log.h"

/* An instruction that is shell text is a command: nothing is put in front of it. */
static bool
has_instruction(const struct worker *w, uint32_t i)
{
	const struct provider *p = agents_provider(w, i);

	return p != NULL && !p->shell;
}

bool
messages_taken_by(const struct worker *w, uint32_t i)
{
	return has_instruction(w, i) || w->flow->ops[i].how->messages;
}

bool
messages_by_file(const struct worker *w, uint32_t i)
{
	return !has_instruction(w, i) && w->flow->ops[i].how->messages;
}

/* ---- Whether anybody will get one ---- */

bool
messages_can_reach(const struct op *op)
{
	return op->state == OP_PENDING || op->state == OP_READY || op->state == OP_PAUSED ||
	    op->state == OP_WAITING || op->state == OP_RETRYING;
}

/*
 * Whether i, which is pending, will be skipped by what is known already: an outcome that is not
 * acknowledged yet, or a predecessor that will be skipped itself.
 */
static bool
is_doomed(const struct worker *w, const bool *doomed, uint32_t i)
{
	const struct flow_op *def = &w->flow->ops[i];
	const struct op *from;
	bool holds = !def->never;
	uint32_t n;

	for (n = 0; n < def->nneeds && holds; n++) {
		from = &w->ops[def->needs[n].op];
		if (doomed[def->needs[n].op])
			holds = def->needs[n].on == FLOW_ON_ALWAYS &&
			    def->needs[n].when == FLOW_WHEN_ALWAYS;
		else if (op_is_settled(from) &&
		    op_need_holds(w->ops, w->flow, w->answers, &def->needs[n], &holds, NULL) != 0)
			holds = true; /* its own start will say what is wrong */
	}
	return !holds;
}

/* In topological order, up to the first that will take it. */
static bool
search(const struct worker *w, bool *doomed, uint32_t only)
{
	size_t n;
	uint32_t i;

	for (n = 0; n < w->flow->nops; n++) {
		i = w->flow->order[n];
		if (w->ops[i].state == OP_PENDING)
			doomed[i] = is_doomed(w, doomed, i);
		if (!doomed[i] && messages_can_reach(&w->ops[i]) && messages_taken_by(w, i) &&
		    (only == OP_NO_INDEX || only == i))
			return true;
	}
	return false;
}

int
messages_have_taker(const struct worker *w, const struct json *to, bool *have, struct err *e)
{
	const char *id = to != NULL ? json_cstr_of(to) : NULL;
	size_t only = id != NULL ? flow_find(w->flow, id) : SIZE_MAX;
	bool *doomed;

	*have = false;
	if (admission_over(w) || (to != NULL && only == SIZE_MAX))
		return 0;
	if (w->reactive != NULL && flow_reorder(w->flow, e) != 0)
		return -1;
	doomed = calloc(w->flow->nops + 1, sizeof(*doomed));
	if (doomed == NULL)
		return err_nomem(e);
	*have = search(w, doomed, to != NULL ? (uint32_t)only : OP_NO_INDEX);
	free(doomed);
	return 0;
}

const char *
messages_why_not(const struct worker *w, const struct json *to)
{
	const char *id = to != NULL ? json_cstr_of(to) : NULL;
	size_t i = id != NULL ? flow_find(w->flow, id) : SIZE_MAX;

	if (id == NULL)
		return NULL;
	if (i == SIZE_MAX)
		return "is not in the run";
	if (!messages_taken_by(w, (uint32_t)i))
		return "takes no messages";
	if (op_is_settled(&w->ops[i]))
		return w->ops[i].state == OP_SKIPPED ? "was skipped" : "has ended";
	if (!messages_can_reach(&w->ops[i]))
		return "has started";
	return admission_over(w) ? "is not started any more" : "will be skipped";
}

int
messages_append(struct worker *w, const struct json *payload, double ts, struct err *e)
{
	const struct json *have = flow_context_kept(w, CONTEXT_MESSAGES);
	const struct json *text = json_get(payload, "text"), *to = json_get(payload, "to");

	return flow_context_keep(w, CONTEXT_MESSAGES,
	    messages_add(have != NULL ? json_ref(have) : NULL, ts, text, to), e);
}

/* ---- At the start of an operation ---- */

bool
messages_claim(struct attempt_run *a)
{
	struct worker *w = a->w;
	const struct json *have = flow_context_kept(w, CONTEXT_MESSAGES);
	const char *id = w->flow->ops[a->op].id;
	struct err e = {0};
	size_t marked;
	struct json *next;

	if (have == NULL || !messages_taken_by(w, a->op))
		return false;
	next = messages_mark(json_ref(have), id, &marked);
	if (next != NULL && marked == 0) {
		json_unref(next);
		return false;
	}
	if (flow_context_keep(w, CONTEXT_MESSAGES, next, &e) != 0) {
		worker_error(w, &e); /* nothing is marked; admission is closed, so it is given back */
		return false;
	}
	a->messages = marked;
	a->marking = w->marking;
	w->marking = a;
	return true;
}

/* One base publication for all that start in this turn. */
struct marked {
	size_t count;
	uint32_t ops[];
};

static void
marks_saved(struct worker *w, void *arg, bool durable)
{
	struct marked *m = arg;
	size_t n;

	for (n = 0; n < m->count; n++)
		spawn_marked(w, m->ops[n], durable);
	free(m);
}

static struct marked *
collect(struct worker *w)
{
	struct attempt_run *a;
	struct marked *m;
	size_t n = 0;

	for (a = w->marking; a != NULL; a = a->marking)
		n++;
	m = calloc(1, sizeof(*m) + n * sizeof(m->ops[0]));
	for (a = w->marking; a != NULL && m != NULL; a = a->marking)
		m->ops[--n] = a->op, m->count++;
	return m;
}

void
messages_commit(struct worker *w)
{
	struct attempt_run *a;
	struct marked *m;
	struct err e = {0};

	if (w->marking == NULL)
		return;
	m = collect(w);
	if (m != NULL && flow_context_commit(w, marks_saved, m, &e) == 0) {
		w->marking = NULL;
		return;
	}
	if (m == NULL)
		err_nomem(&e);
	free(m);
	worker_error(w, &e);
	while ((a = w->marking) != NULL) {
		w->marking = a->marking;
		spawn_marked(w, a->op, false);
	}
}

void
messages_before_instruction(const struct worker *w, uint32_t i, struct buf *to)
{
	if (!has_instruction(w, i))
		return;
	messages_render(w, i, to);
	if (to->len > 0)
		buf_putc(to, '\n');
}

void
messages_render(const struct worker *w, uint32_t i, struct buf *to)
{
	messages_lines(flow_context_kept(w, CONTEXT_MESSAGES), w->flow->ops[i].id, 0, to);
}

/* What nobody took is not lost, and not silently kept either. */
void
messages_tell_unrendered(struct worker *w)
{
	size_t n = messages_unrendered(flow_context_kept(w, CONTEXT_MESSAGES));

	if (n == 0)
		return;
	event_begin(w, "MessageNotRendered");
	event_int(w, "count", (int64_t)n);
	event_end(w);
	log_line(LOG_WARNING, "%zu message%s applied and no operation started to get %s", n, n == 1 ? " was" : "s were",
	    n == 1 ? "it" : "them");
}
