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

	if ((w->ops[i].state == OP_FAILED && !flow_is_replaced(w->flow, i)) || leaves(w, i) ||
	    (i == w->flow->synthesis_op && w->any_anew))
		return true;
	for (n = 0; n < def->nneeds; n++)
		if (w->ops[def->needs[n].op].anew)
			return true;
	return false;
}

/* What is independent may settle before who asked for it, who then need not look for it. */
static void
note_added(struct worker *w, uint32_t i)
{
	const struct flow_grown *g = flow_grown(w->flow, i);

	if (g == NULL || g->parent == FLOW_NO_OP || !has_outcome(w, i))
		return;
	w->ops[g->parent].added_outcome = w->ops[g->emitter].added_outcome = true;
	w->loses_added |= leaves(w, i);
}

static void
look_at(struct worker *w, uint32_t i)
{
	if (w->loses_added)
		return;
	note_added(w, i);
	if (w->counts.failed == 0 || !runs_anew(w, i)) /* most runs have no failure, and none of the marks */
		return;
	w->ops[i].anew = true;
	w->any_anew |= !flow_is_of_synthesis(w->flow, i);
	w->loses_added |= w->ops[i].added_outcome;
}

void
anew_settled(struct worker *w, uint32_t i)
{
	/* From then on what it needs has settled before it. */
	if (w->anew_begun)
		look_at(w, i);
}

void
anew_begin(struct worker *w)
{
	size_t n;

	w->anew_begun = true;
	for (n = 0; n < w->flow->nops; n++)
		if (op_is_settled(&w->ops[w->flow->order[n]]))
			look_at(w, w->flow->order[n]);
}

void
anew_tell(struct worker *w)
{
	if (w->loses_added && w->loses_told.value == NULL)
		telling_set(w, &w->loses_told, json_bool(true));
	telling_go(w, &w->loses_told, META_LOSES_ADDED);
}
