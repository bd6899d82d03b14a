/* How many operations somebody may write without asking for so many. */
#include "model.h"

int
flow_check_size(const struct flow *f, const char *name, struct flow_diagnostics *d, struct err *e)
{
	struct flow_diagnostics mine = {0};
	struct flow_owned *own = owned(f);
	struct reader r = {.own = own, .origin = own->origin, .d = d != NULL ? d : &mine};
	int result;

	if (own->origin == ORIGIN_OWN || own->origin == ORIGIN_STATE || own->f.max_ops >= 0 ||
	    own->written <= FLOW_MAX_PLAN)
		return 0;
	hint(problem_at(&r, own->plan_where,
		 "the plan has %zu operations; more than %d must be asked for", own->written,
		 FLOW_MAX_PLAN),
	    "add max_ops: %zu to the document, or start it with --max-ops %zu", own->f.nops,
	    own->f.nops);
	diagnostics_sort(r.d);
	result = r.nomem ? err_nomem(e) : diagnostics_error(r.d, name, ERR_DOCUMENT, e);
	flow_diagnostics_clear(&mine);
	return result;
}
