/* Whether a settled predecessor lets an edge pass. */
#include "flowsup/flow.h"
#include "pattern.h"

static bool
outcome_fits(enum flow_on on, enum flow_outcome outcome)
{
	switch (on) {
	case FLOW_ON_SUCCESS:
		return outcome == FLOW_COMPLETED;
	case FLOW_ON_FAILURE:
		return outcome == FLOW_FAILED;
	case FLOW_ON_ALWAYS:
		break;
	}
	return true;
}

/* The pattern was read by check, so only memory can be missing for it here. */
static int
match(const char *text, struct slice in, bool *holds, struct err *e)
{
	struct pattern *pattern = NULL;
	int r;

	in = pattern_beginning(in, FLOW_MAX_MATCH);
	if (pattern_new(text, PATTERN_MAX_PLACES, &pattern, e) != 0)
		return err_nomem(e);
	r = pattern_fits(pattern, in, holds, NULL, e);
	pattern_free(pattern);
	return r;
}

static int
matches(const struct json *value, const char *pattern, bool *holds, struct err *e)
{
	struct buf b = {0};
	int r;

	if (json_type(value) == JSON_STRING)
		return match(pattern, json_text(value), holds, e);
	json_write(&b, value);
	r = buf_ok(&b, e);
	if (r == 0)
		r = match(pattern, buf_view(&b), holds, e);
	buf_clear(&b);
	return r;
}

bool
flow_edge_fits(const struct flow_edge *edge, enum flow_outcome outcome)
{
	return outcome_fits((enum flow_on)edge->on, outcome);
}

int
flow_edge_holds(const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response, bool *holds, struct err *e)
{
	const struct json *found = NULL;

	if (!flow_edge_fits(edge, outcome) || edge->when == FLOW_WHEN_ALWAYS) {
		*holds = flow_edge_fits(edge, outcome);
		return 0;
	}
	if (response != NULL)
		found = json_pointer_get(response, slice_of(edge->pointer), NULL);
	if (edge->when == FLOW_WHEN_EXISTS) {
		*holds = (found != NULL) == json_is_true(edge->value);
		return 0;
	}
	if (found != NULL && edge->when == FLOW_WHEN_MATCHES)
		return matches(found, json_cstr_of(edge->value), holds, e);
	*holds = found != NULL && json_same(found, edge->value);
	return 0;
}

int
flow_need_holds(const struct flow *f, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response, bool *holds, struct err *e)
{
	if (f->ops[edge->op].how->foreach_pointer != NULL)
		response = NULL;
	return flow_edge_holds(edge, outcome, response, holds, e);
}
