/*
 * What a resume with --retry-failed would run anew: what failed, and what has an outcome behind that.
 * Whatever these had added would leave; where some of it has an outcome the resume wants to be told so.
 * That is told to the database, so that the command which is suggested does not lack the option.
 */
#include "worker.h"

#include "flowsup/store.h"

static bool
is_anew(const struct worker *w, uint32_t i)
{
	return i != FLOW_NO_OP && w->ops[i].anew;
}

static bool
leaves(const struct worker *w, uint32_t i)
{
	const struct flow_grown *g = flow_grown(w->flow, i);

	return g != NULL && (is_anew(w, g->parent) || is_anew(w, g->emitter));
}

static bool
has_outcome(const struct worker *w, uint32_t i)
{
	return w->ops[i].state == OP_COMPLETED || w->ops[i].state == OP_FAILED;
}

static bool
runs_anew(const struct worker *w, uint32_t i)
{
	const struct flow_op *def = &w->flow->ops[i];
	uint32_t n;

	if ((w->ops[i].state == OP_FAILED && !flow_is_replaced(w->flow, i)) || leaves(w, i))
		return true;
	for (n = 0; n < def->nneeds; n++)
		if (w->ops[def->needs[n].op].anew)
			return true;
	return false;
}

static void
mark(struct worker *w, uint32_t i)
{
	w->ops[i].anew = true;
	w->loses_added |= has_outcome(w, i) && leaves(w, i);
}

/* Most runs have no failure, and none of the marks. What was added stands behind whoever asked for it,
 * so one pass in this order finds all that settled before its emitter failed. */
void
anew_settled(struct worker *w, uint32_t i)
{
	uint32_t n;

	if (w->counts.failed == 0 || w->loses_added || !runs_anew(w, i))
		return;
	mark(w, i);
	for (n = (uint32_t)w->flow->nplanned; n < w->flow->nops && !w->loses_added; n++)
		if (!w->ops[n].anew && op_is_settled(&w->ops[n]) && leaves(w, n))
			mark(w, n);
}

void
anew_tell(struct worker *w)
{
	if (w->loses_added && w->loses_told.value == NULL)
		telling_set(w, &w->loses_told, json_bool(true));
	telling_go(w, &w->loses_told, META_LOSES_ADDED);
}
