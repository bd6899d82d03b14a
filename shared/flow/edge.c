/* Whether a settled predecessor lets an edge pass. */
#include <regex.h>

#include "flowsup/flow.h"

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

/* The pattern was compiled by check, so only memory can be missing here. */
static int
match(const char *pattern, struct slice text, bool *holds, struct err *e)
{
	struct buf b = {0};
	regex_t compiled;

	if (text.len > FLOW_MAX_MATCH)
		text.len = FLOW_MAX_MATCH;
	buf_slice(&b, text);
	if (b.failed || regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0) {
		buf_clear(&b);
		return err_nomem(e);
	}
	*holds = regexec(&compiled, buf_text(&b), 0, NULL, 0) == 0;
	regfree(&compiled);
	buf_clear(&b);
	return 0;
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
