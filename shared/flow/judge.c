/* Whether a state makes a flow that can go on: one judgement for whoever resumes and whoever verifies. */
#include <stdio.h>

#include "model.h"

struct judging {
	flow_state_problem *tell;
	void *arg;
};

static bool
is_given(const struct json *v)
{
	return v != NULL && json_type(v) != JSON_NULL;
}

/* ---- The plan and its outcomes ---- */

bool
flow_judge_plan(const struct flow *f, flow_state_problem *tell, void *arg)
{
	if (f->nops == 0)
		tell(arg, FLOW_CHECK_PLAN, NULL, "the plan is empty");
	return f->nops > 0;
}

void
flow_judge_outcomes(const struct flow *f, const struct json *state, flow_state_problem *tell, void *arg)
{
	struct json_iter it = json_iterate(json_get(state, "ops"));
	const struct json *entry;
	char text[256];
	struct slice id;

	while (json_next(&it, &id, &entry)) {
		const char *name = json_cstr_of(json_get(entry, "agent_id"));

		if (name != NULL && flow_find(f, name) != SIZE_MAX)
			continue;
		snprintf(text, sizeof(text),
		    "the checkpoint holds an outcome of \"%.*s\", which is not in its plan",
		    id.len < 128 ? (int)id.len : 128, id.data);
		tell(arg, FLOW_CHECK_PLAN, NULL, text);
	}
}

/* ---- What was added ---- */

static const char *
name_of(const struct json *entry)
{
	const char *id = json_cstr_of(json_get(entry, "spawn_id"));

	return id != NULL ? id : json_cstr_of(json_get(entry, "node_id"));
}

static bool
has_guard(const struct json *state)
{
	struct json_iter it = json_iterate(json_get(state, "plan"));
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (is_given(json_get(one, "node_id")))
			return true;
	it = json_iterate(json_get(state, "spawned"));
	while (json_next(&it, NULL, &one))
		if (slice_is(json_text(json_get(one, "status")), "pending"))
			return true;
	return false;
}

void
flow_judge_added(const struct json *state, flow_state_problem *tell, void *arg)
{
	struct json_iter it = json_iterate(json_get(state, "spawned"));
	const bool guarded = has_guard(state);
	const struct json *entry;

	while (json_next(&it, NULL, &entry)) {
		if (is_given(json_get(entry, "assignee")) && !is_given(json_get(entry, "spawn_id")))
			tell(arg, FLOW_CHECK_ENTRY, name_of(entry),
			    "its entry has an \"assignee\" and no \"spawn_id\"");
		if (is_given(json_get(entry, "escalated_from")) && !guarded)
			tell(arg, FLOW_CHECK_ENTRY, name_of(entry),
			    "its entry replaces another, and nothing in the checkpoint guards that");
	}
}

void
flow_judge_misfit(const struct json *entry, const char *why, flow_state_problem *tell, void *arg)
{
	struct buf text = {0};

	buf_printf(&text, "its entry: %s", why);
	tell(arg, is_given(json_get(entry, "escalated_from")) ? FLOW_CHECK_CHAIN : FLOW_CHECK_ENTRY,
	    name_of(entry), text.failed ? why : buf_text(&text));
	buf_clear(&text);
}

/* ---- All of it ---- */

static void
on_misfit(void *arg, const struct json *entry, const char *why)
{
	const struct judging *j = arg;

	flow_judge_misfit(entry, why, j->tell, j->arg);
}

int
flow_judge_state(const struct json *state, flow_state_problem *tell, void *arg, struct flow **out,
    struct err *e)
{
	const bool added = json_length(json_get(state, "spawned")) > 0;
	struct judging j = {tell, arg};
	struct flow *f = NULL;
	struct err why = {0};

	*out = NULL;
	if (flow_from_state(state, &f, &why) != 0 ||
	    (added && flow_rebuild(f, state, 0, on_misfit, &j, &why) != 0)) {
		flow_free(f);
		if (why.code == ERR_NOMEM)
			return err_nomem(e);
		tell(arg, FLOW_CHECK_PLAN, NULL, why.msg);
		return 0;
	}
	if (flow_judge_plan(f, tell, arg))
		flow_judge_outcomes(f, state, tell, arg);
	flow_judge_added(state, tell, arg);
	*out = f;
	return 0;
}
