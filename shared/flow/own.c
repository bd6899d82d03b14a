/*
 * Operations that a document asks for in words of its own: `planner`, whose answer becomes the plan,
 * and `synthesis`, which comes last and over everything. In a checkpoint's plan they stand as what
 * they are, operations; so they are made only where the plan does not have them.
 */
#include <stdio.h>

#include "model.h"

static bool
plan_has(const struct reader *r, const char *id)
{
	struct json_iter it = json_iterate(r->plan);
	const struct json *entry;

	while (json_next(&it, NULL, &entry))
		if (slice_is(json_text(json_get(entry, "id")), id))
			return true;
	return false;
}

static struct json *
entry_of(const char *id, const struct json *agent)
{
	struct json *o = json_set(json_object(), "id", json_cstr(id));

	o = json_set(o, "assignee", json_ref(json_get(agent, "assignee")));
	return json_set(o, "instruction", json_ref(json_get(agent, "instruction")));
}

/* Lives as long as the flow. */
static const struct json *
kept(struct reader *r, struct json *entry)
{
	if (entry == NULL || arena_hold(&r->own->arena, entry) < 0) {
		out_of_memory(r);
		json_unref(entry);
		return NULL;
	}
	json_unref(entry);
	return entry;
}

const struct json *
planner_entry(struct reader *r)
{
	const struct json *planner = r->own->f.planner;
	struct json *o;

	if (planner == NULL || r->failed || r->origin == ORIGIN_STATE || plan_has(r, FLOW_PLANNER))
		return NULL;
	o = entry_of(FLOW_PLANNER, planner);
	return kept(r, json_set(o, "response", json_cstr("json")));
}

/* It needs every operation, however that ended. */
static struct json *
needs_of_all(const struct reader *r)
{
	struct json *list = json_array(), *need;
	size_t i;

	for (i = 0; i < r->ndrafts; i++) {
		if (r->drafts[i].id == NULL)
			continue;
		need = json_set(json_object(), "op", json_cstr(r->drafts[i].id));
		list = json_append(list, json_set(need, "on", json_cstr("always")));
	}
	return list;
}

const struct json *
synthesis_entry(struct reader *r)
{
	const struct json *synthesis = r->own->f.synthesis;

	if (synthesis == NULL || r->plan == NULL || r->failed || r->origin == ORIGIN_STATE)
		return NULL;
	if (plan_has(r, FLOW_SYNTHESIS)) {
		if (r->origin != ORIGIN_OWN)
			hint(problem(r, synthesis, "an operation of the plan has the id \"%s\" already",
				 FLOW_SYNTHESIS), "give that one another id");
		return NULL;
	}
	return kept(r, json_set(entry_of(FLOW_SYNTHESIS, synthesis), "needs", needs_of_all(r)));
}

bool
is_own(const struct reader *r, const char *id)
{
	if (id == NULL || (r->origin != ORIGIN_OWN && r->origin != ORIGIN_STATE))
		return false;
	return (r->own->f.planner != NULL && strcmp(id, FLOW_PLANNER) == 0) ||
	    (r->own->f.synthesis != NULL && strcmp(id, FLOW_SYNTHESIS) == 0);
}

static size_t
index_of(const struct flow *f, const char *id, const struct json *wanted)
{
	return wanted != NULL ? flow_find(f, id) : SIZE_MAX;
}

void
find_own(struct flow *f)
{
	f->planner_op = index_of(f, FLOW_PLANNER, f->planner);
	f->synthesis_op = index_of(f, FLOW_SYNTHESIS, f->synthesis);
	f->unplanned = f->planner_op != SIZE_MAX && f->nops == 1;
}

/* ---- Work that a model asks for ---- */

/* Keys that would give it more than a role of the document has. */
void
check_model_entry(struct reader *r, const struct json *object, const struct flow_how *how)
{
	static const struct {
		const char *key, *instead;
	} keys[] = {
	    {"run", "use \"instruction\" with an \"assignee\""},
	    {"exec", "use \"instruction\" with an \"assignee\""},
	    {"env", "leave it out: an operation has the variables of its \"assignee\"; what it is to know goes "
		"into \"instruction\""},
	    {"cwd", "leave it out: all operations begin where the run was started; name another directory in "
		"\"instruction\""},
	};
	const struct json *v;
	size_t i;

	if (r->origin != ORIGIN_MODEL)
		return;
	if (slice_is(json_text(json_get(object, "id")), FLOW_PLANNER))
		problem(r, object, "the id \"%s\" is taken", FLOW_PLANNER);
	if (r->own->f.model_commands)
		return;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		v = json_get(object, keys[i].key);
		if (v != NULL)
			hint(problem(r, v, "\"%s\" is not allowed here", keys[i].key), "%s", keys[i].instead);
	}
	if (how->role != NULL && how->role->provider != NULL && strcmp(how->role->provider, "sh") == 0)
		hint(problem(r, object, "the role \"%s\" runs shell text, which is not allowed here",
			 how->role->name),
		    "give it to another \"assignee\"");
}
