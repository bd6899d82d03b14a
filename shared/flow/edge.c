/* Whether a settled predecessor lets an edge pass. */
#include "edge.h"
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

/* A text as it was printed ends its last line, which is none of what it says. */
static struct slice
without_line_end(struct slice text)
{
	if (text.len > 0 && text.data[text.len - 1] == '\n')
		text.len--;
	return text;
}

static int
printed_holds(const struct flow_edge *edge, const struct json *printed, bool *holds, struct err *e)
{
	struct slice said = without_line_end(json_text(printed));

	if (edge->when == FLOW_WHEN_MATCHES)
		return match(json_cstr_of(edge->value), said, holds, e);
	*holds = json_same(printed, edge->value) ||
	    (json_type(edge->value) == JSON_STRING && slice_eq(said, json_text(edge->value)));
	return 0;
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

/* How many items a foreach had is recorded as its response, and is none; as is the null of an outcome
 * without one. */
static const struct json *
answer_of(const struct flow_how *how, enum flow_outcome outcome, const struct json *response)
{
	if (how->foreach_pointer != NULL ||
	    (outcome != FLOW_COMPLETED && response != NULL && json_type(response) == JSON_NULL))
		return NULL;
	return response;
}

/* A text in the outcome of one that failed is as it was printed, too. */
static bool
is_printed(const struct flow_how *how, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response)
{
	if (response == NULL || (edge->when != FLOW_WHEN_EQUALS && edge->when != FLOW_WHEN_MATCHES))
		return false;
	return json_type(response) == JSON_STRING && edge->pointer[0] == '\0' &&
	    (how->response == FLOW_RESPONSE_TEXT || outcome == FLOW_FAILED);
}

int
edge_holds(const struct flow_how *how, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response, bool *holds, struct err *e)
{
	response = answer_of(how, outcome, response);
	if (flow_edge_fits(edge, outcome) && is_printed(how, edge, outcome, response))
		return printed_holds(edge, response, holds, e);
	return flow_edge_holds(edge, outcome, response, holds, e);
}

int
flow_need_holds(const struct flow *f, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response, bool *holds, struct err *e)
{
	return edge_holds(f->ops[edge->op].how, edge, outcome, response, holds, e);
}

enum { VALUE_SHOWN = 60 };

static void
add_beginning(const struct json *value, struct buf *to)
{
	struct buf b = {0};
	struct slice all, some;

	json_write(&b, value);
	all = buf_view(&b);
	some = pattern_beginning(all, VALUE_SHOWN);
	buf_slice(to, some);
	buf_puts(to, some.len < all.len ? "..." : "");
	to->failed |= b.failed;
	buf_clear(&b);
}

void
edge_unmet(const char *id, const struct flow_how *how, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response, struct buf *to)
{
	const struct json *found;

	response = answer_of(how, outcome, response);
	buf_printf(to, "its condition on %s was not met: ", id);
	if (response == NULL) {
		buf_puts(to, "it has no response");
		return;
	}
	found = json_pointer_get(response, slice_of(edge->pointer), NULL);
	if (found == NULL) {
		buf_printf(to, "its response has no %s", edge->pointer);
		return;
	}
	buf_printf(to, "%s is ", edge->pointer[0] == '\0' ? "its response" : edge->pointer);
	add_beginning(found, to);
}

void
flow_need_unmet(const struct flow *f, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response, struct buf *to)
{
	edge_unmet(f->ops[edge->op].id, f->ops[edge->op].how, edge, outcome, response, to);
}
