/* The table of an operation's moves, and readiness by counters. */
#include "op.h"

#include <assert.h>

#define BIT(state) (1U << (state))

static const char *const state_words[OP_STATE_COUNT] = {
#define X(name, word, final) word,
    OP_STATES(X)
#undef X
};

static const bool state_final[OP_STATE_COUNT] = {
#define X(name, word, final) final,
    OP_STATES(X)
#undef X
};

static const char *const class_words[OP_CLASS_COUNT] = {
#define X(name, word) word,
    OP_CLASSES(X)
#undef X
};

static const unsigned moves[OP_STATE_COUNT] = {
	[OP_PENDING] = BIT(OP_READY) | BIT(OP_SKIPPED) | BIT(OP_FAILED) | BIT(OP_COMPLETED) |
	    BIT(OP_SETTLING),
	[OP_READY] = BIT(OP_PAUSED) | BIT(OP_WAITING) | BIT(OP_PREPARING) | BIT(OP_FAILED) |
	    BIT(OP_CANCELLED),
	[OP_PAUSED] = BIT(OP_READY) | BIT(OP_CANCELLED),
	[OP_WAITING] = BIT(OP_READY) | BIT(OP_CANCELLED),
	[OP_PREPARING] = BIT(OP_RUNNING) | BIT(OP_READY) | BIT(OP_SETTLING) | BIT(OP_CANCELLED),
	[OP_RUNNING] = BIT(OP_ENDING),
	[OP_ENDING] = BIT(OP_SETTLING) | BIT(OP_CANCELLED),
	[OP_SETTLING] = BIT(OP_COMPLETED) | BIT(OP_FAILED) | BIT(OP_RETRYING) | BIT(OP_CANCELLED) |
	    BIT(OP_READY),
	[OP_RETRYING] = BIT(OP_READY) | BIT(OP_CANCELLED),
};

const char *
op_state_word(enum op_state s)
{
	assert(s < OP_STATE_COUNT);
	return state_words[s];
}

const char *
op_class_word(enum op_class c)
{
	assert(c < OP_CLASS_COUNT);
	return class_words[c];
}

bool
op_is_settled(const struct op *op)
{
	return state_final[op->state];
}

bool
op_may_become(enum op_state from, enum op_state to)
{
	return (moves[from] & BIT(to)) != 0;
}

void
op_become(struct op *op, enum op_state to)
{
	assert(op_may_become((enum op_state)op->state, to));
	op->state = (uint8_t)to;
}

void
op_list_init(struct op_list *l)
{
	l->first = l->last = OP_NO_INDEX;
	l->count = 0;
}

void
op_list_push(struct op_list *l, struct op *ops, uint32_t i)
{
	ops[i].next = OP_NO_INDEX;
	if (l->count == 0)
		l->first = i;
	else
		ops[l->last].next = i;
	l->last = i;
	l->count++;
}

uint32_t
op_list_pop(struct op_list *l, struct op *ops)
{
	uint32_t i = l->first;

	if (l->count == 0)
		return OP_NO_INDEX;
	l->first = ops[i].next;
	l->count--;
	if (l->count == 0)
		op_list_init(l);
	return i;
}

void
op_list_prepend(struct op_list *l, struct op_list *head, struct op *ops)
{
	if (head->count == 0)
		return;
	if (l->count == 0) {
		*l = *head;
	} else {
		ops[head->last].next = l->first;
		l->first = head->first;
		l->count += head->count;
	}
	op_list_init(head);
}

void
op_count_predecessors(struct op *ops, const struct flow *f)
{
	size_t i;
	uint32_t s;

	for (i = 0; i < f->nops; i++)
		ops[i].unmet = 0;
	for (i = 0; i < f->nops; i++)
		for (s = 0; s < f->ops[i].nsuccessors; s++)
			ops[f->ops[i].successors[s]].unmet++;
}

void
op_release(struct op *ops, const struct flow *f, uint32_t i, op_met *met, void *arg)
{
	const struct flow_op *def = &f->ops[i];
	uint32_t s, successor;

	assert(op_is_settled(&ops[i]));
	ops[i].released = true;
	for (s = 0; s < def->nsuccessors; s++) {
		successor = def->successors[s];
		assert(ops[successor].unmet > 0);
		if (--ops[successor].unmet == 0)
			met(arg, successor);
	}
}

bool
op_may_release(const struct op *ops, const struct flow *f, uint32_t i, size_t settled)
{
	const struct flow_op *def = &f->ops[i];
	uint32_t s;

	for (s = 0; s < def->nsuccessors; s++)
		if (ops[def->successors[s]].unmet <= settled)
			return true;
	return false;
}

enum flow_outcome
op_outcome(const struct op *op)
{
	static const enum flow_outcome outcomes[OP_STATE_COUNT] = {
		[OP_COMPLETED] = FLOW_COMPLETED,
		[OP_FAILED] = FLOW_FAILED,
		[OP_SKIPPED] = FLOW_SKIPPED,
		[OP_CANCELLED] = FLOW_CANCELLED,
	};

	assert(op_is_settled(op));
	return outcomes[op->state];
}

int
op_need_holds(const struct op *ops, const struct flow *f, const struct json *answers, const struct flow_edge *edge,
    bool *holds, struct err *e)
{
	const struct op *from = &ops[edge->op];

	if (from->by_reference && edge->when != FLOW_WHEN_ALWAYS && flow_edge_fits(edge, op_outcome(from)))
		return flow_answer_holds(json_get(answers, f->ops[edge->op].id), edge, holds, e);
	return flow_need_holds(f, edge, op_outcome(from), from->response, holds, e);
}

int
op_judge_edges(const struct op *ops, const struct flow *f, const struct json *answers, uint32_t i, enum op_state *out,
    uint32_t *cause, struct err *e)
{
	const struct flow_op *def = &f->ops[i];
	const struct flow_edge *edge;
	const struct op *from;
	bool holds;
	uint32_t n;

	if (def->never) {
		*cause = i;
		*out = OP_SKIPPED;
		return 0;
	}
	for (n = 0; n < def->nneeds; n++) {
		edge = &def->needs[n];
		from = &ops[edge->op];
		if (op_need_holds(ops, f, answers, edge, &holds, e) != 0)
			return err_wrap(e, "its condition on the response of %s", f->ops[edge->op].id);
		if (!holds) {
			*cause = flow_edge_fits(edge, op_outcome(from)) ? i
			    : from->state == OP_SKIPPED			? from->cause
									: edge->op;
			*out = OP_SKIPPED;
			return 0;
		}
	}
	*out = OP_READY;
	return 0;
}

const struct flow_edge *
op_unmet_edge(const struct op *ops, const struct flow *f, const struct json *answers, uint32_t i)
{
	const struct flow_edge *edge;
	bool holds = true;
	uint32_t n;

	for (n = 0; n < f->ops[i].nneeds; n++) {
		edge = &f->ops[i].needs[n];
		if (edge->when != FLOW_WHEN_ALWAYS && flow_edge_fits(edge, op_outcome(&ops[edge->op])) &&
		    op_need_holds(ops, f, answers, edge, &holds, NULL) == 0 && !holds)
			return edge;
	}
	return NULL;
}
