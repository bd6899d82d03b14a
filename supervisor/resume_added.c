/*
 * Operations that were added while the run was going, in a resume: whether their entries can be
 * rebuilt and may run, what leaves with a parent that runs again, and what the new run gets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flowsup/places.h"
#include "resume_private.h"

static bool
is_given(const struct json *v)
{
	return v != NULL && json_type(v) != JSON_NULL;
}

static bool
is_pending(const struct json *entry)
{
	return slice_is(json_text(json_get(entry, "status")), "pending");
}

static const char *
name_of(const struct json *entry)
{
	const char *id = json_cstr_of(json_get(entry, "spawn_id"));

	return id != NULL ? id : json_cstr_of(json_get(entry, "node_id"));
}

/* ---- Entries as they stand ---- */

static void
judge_misfits(const struct resume_input *in, struct resume_plan *p)
{
	struct json_iter it = json_iterate(in->misfits);
	const struct json *one;

	while (json_next(&it, NULL, &one))
		flow_judge_misfit(json_get(one, "entry"), json_cstr_of(json_get(one, "message")),
		    resume_state_problem, p);
}

static const char *
parent_of(const struct resume_input *in, const struct json *entry)
{
	const char *node = json_cstr_of(json_get(entry, "parent_id"));
	size_t i = flow_find_node(in->flow, node);
	const struct json *one;

	if (i != SIZE_MAX)
		return in->flow->ops[i].id;
	one = node != NULL ? json_find(in->added, "node_id", node) : NULL;
	return one != NULL ? name_of(one) : "its parent";
}

/* Of one without a recorded outcome: how it is all the same, where its worker's death was not its end; else NULL.
 * *counts: there is an outcome, or it is still to come. */
static const char *
unsaved(const struct resume_input *in, const struct json *entry, bool *counts)
{
	const struct json *of_op = json_get(in->facts, name_of(entry));
	const char *word = json_cstr_of(json_get(of_op, "survivor"));

	*counts = true;
	if (json_get(of_op, "killed") != NULL || (word != NULL && strcmp(word, "ended") == 0))
		return "has ended without its worker";
	if (word != NULL && strcmp(word, "running") == 0)
		return "is running";
	*counts = false;
	return word != NULL && strcmp(word, "unknown") == 0
	    ? "its end is not known yet: a resume asks first, and is refused without --drop-respawned where it is known"
	    : json_cstr_of(json_get(of_op, "unusable"));
}

/* What it leaves with: who asked for it is left out too, or runs again. */
static const char *
fate_of_parent(const struct resume_input *in, const struct json *entry)
{
	const char *node = json_cstr_of(json_get(entry, "parent_id"));

	return node != NULL && json_get(in->dropped, node) != NULL ? "is left out" : "runs again";
}

static void
judge_one_dropped(const struct resume_input *in, const struct json *entry, struct resume_plan *p)
{
	const char *parent = parent_of(in, entry), *fate = fate_of_parent(in, entry);
	bool saved = !is_pending(entry), counts = false;
	const char *how = saved ? NULL : unsaved(in, entry, &counts);
	struct json *one = json_set(json_object(), "id", json_cstr(name_of(entry)));

	one = json_set(one, "parent", json_cstr(parent));
	one = json_set(one, "parent_fate", json_cstr(fate));
	one = json_set(one, "status", json_ref(json_get(entry, "status")));
	one = json_set(one, "unsaved", how != NULL ? json_cstr(how) : json_null());
	p->dropped = json_append(p->dropped, one);
	if ((saved || counts) && !in->flags.drop_respawned)
		resume_fail(p, 8, name_of(entry), "drop-respawned",
		    "%s %s, so what it had added is not carried over, and this %s", parent, fate,
		    how != NULL ? how : "has an outcome");
}

static void
judge_dropped(const struct resume_input *in, struct resume_plan *p)
{
	struct json_iter it = json_iterate(in->dropped);
	const struct json *entry;

	while (json_next(&it, NULL, &entry))
		judge_one_dropped(in, entry, p);
}

static void
judge_entries(const struct resume_input *in, struct resume_plan *p)
{
	judge_misfits(in, p);
	flow_judge_added(in->state, resume_state_problem, p);
	judge_dropped(in, p);
}

int
resume_judge_added(const struct resume_input *in, struct resume_plan *p, struct err *e)
{
	size_t n = json_length(json_get(in->state, "spawned"));

	if (in->report != NULL && in->report->format < 2 && n > 0)
		resume_fail(p, 8, NULL, NULL,
		    n == 1 ? "%zu operation was added while the run was going, and a checkpoint of version 1 "
		             "does not hold what is needed to rebuild it"
			   : "%zu operations were added while the run was going, and a checkpoint of version 1 "
		             "does not hold what is needed to rebuild them", n);
	else
		judge_entries(in, p);
	return p->failures != NULL && p->dropped != NULL ? 0 : err_nomem(e);
}

/* ---- Whether one may run ---- */

static const struct flow_role *
emitter_role(const struct resume_input *in, const struct json *entry)
{
	return flow_find_role(in->flow, json_cstr_of(json_get(entry, "emitter_workload")));
}

static bool
lacks_provenance(const struct json *entry, struct buf *why)
{
	const struct json *flag = json_get(entry, "emitter_contains_user_settings");

	if (json_cstr_of(json_get(entry, "emitter_workload")) == NULL)
		buf_puts(why, "its entry does not say as which role it was asked for (emitter_workload)");
	else if (flag == NULL || json_type(flag) != JSON_BOOL)
		buf_puts(why, "its entry does not say whether who asked reads settings of the user");
	return why->len > 0;
}

/* An assignee's may stand in the configuration: roles_complete(). */
static void
unknown_role(const char *name, bool is_assignee, struct buf *why)
{
	struct err ignored = {0};
	char *directory = NULL;

	buf_printf(why, "its role \"%.64s\" is not in the checkpoint", name);
	if (is_assignee && place_config(NULL, "roles", &directory, &ignored) == 0 && directory != NULL)
		buf_printf(why, ", nor in '%s'", directory);
	free(directory);
}

static bool
lacks_role(const struct resume_input *in, const struct flow_op *op, const struct json *entry,
    struct buf *why, const char **hint)
{
	const char *assignee = json_cstr_of(json_get(entry, "assignee"));
	const char *workload = json_cstr_of(json_get(entry, "emitter_workload"));
	const char *wanted = assignee != NULL ? assignee : workload;

	/* A command that nobody with a role has asked for needs none. */
	if (wanted[0] == '\0' && op->kind != FLOW_INSTRUCTION)
		return false;
	if (flow_find_role(in->flow, wanted) == NULL) {
		unknown_role(wanted, assignee != NULL, why);
	} else if (op->kind == FLOW_INSTRUCTION && json_get(in->settings, wanted) == NULL) {
		buf_printf(why, "role %.64s has no provider that could be used", wanted);
		*hint = "flowsup doctor   # says what is wrong with each provider";
	}
	return why->len > 0;
}

static bool
would_gain(const struct resume_input *in, const struct flow_op *op, const struct json *entry,
    struct buf *why)
{
	const struct flow_role *emitter = emitter_role(in, entry), *role = op->how->role;
	struct err e = {0};

	if (op->kind == FLOW_INSTRUCTION && role != NULL &&
	    !json_is_true(json_get(entry, "emitter_contains_user_settings")) &&
	    json_is_true(json_get(in->settings, role->name)))
		buf_printf(why, "role %s reads settings of the user, and who asked for it did not", role->name);
	else if (!in->flow->model_commands && !(is_given(json_get(entry, "escalated_from")) &&
		     flow_is_declared_escalation(emitter, role)) &&
	    flow_check_authority(emitter, role, &e) != 0)
		buf_puts(why, e.msg);
	return why->len > 0;
}

bool
resume_must_not_run(const struct resume_input *in, size_t i, struct buf *why, const char **hint)
{
	const struct flow_op *op = &in->flow->ops[i];
	const struct json *entry = flow_grown(in->flow, (uint32_t)i)->entry;

	return lacks_provenance(entry, why) || lacks_role(in, op, entry, why, hint) ||
	    would_gain(in, op, entry, why);
}

/* ---- What the new run gets ---- */

/* The same operation, before its outcome: node, anchor and witness stay. */
static struct json *
pending_again(const struct json *entry)
{
	static const char *const of_outcome[] = {"result_digest", "response_lossy", CKPT_LITERAL, CKPT_OUTPUT,
	    "artifacts", "conversation", "usage", "attempts", "started_at", "ended_at", "error", "turns",
	    CKPT_ATTEMPT_PATH, CKPT_END};
	struct json *o = json_set(json_ref(entry), "status", json_cstr("pending"));
	size_t i;

	o = json_set(o, "response", json_null());
	for (i = 0; i < sizeof(of_outcome) / sizeof(of_outcome[0]); i++)
		o = json_remove(o, slice_of(of_outcome[i]));
	return o;
}

struct json *
resume_carried_added(const struct resume_input *in, const struct resume_plan *p,
    const char *old_path)
{
	struct json_iter it = json_iterate(json_get(in->state, "spawned"));
	struct json *all = json_array();
	const struct json *entry;
	enum resume_action action;
	size_t i;

	while (json_next(&it, NULL, &entry)) {
		i = flow_find_node(in->flow, json_cstr_of(json_get(entry, "node_id")));
		action = i != SIZE_MAX ? p->rows[i].action : RESUME_REFUSED;
		all = json_append(all, action == RESUME_REPLAY || action == RESUME_KEEP_FAILED
		    ? resume_carried_entry(&in->flow->ops[i], entry, old_path) : pending_again(entry));
	}
	return all;
}

/* The number at the end of "<parent>.s<N>"; 0: it is no such id. */
static uint64_t
ordinal_of(const char *id, size_t *parent)
{
	const char *dot = id != NULL ? strrchr(id, '.') : NULL;
	unsigned long long n;
	char *end;

	if (dot == NULL || dot[1] != 's' || dot[2] < '1' || dot[2] > '9')
		return 0;
	n = strtoull(dot + 2, &end, 10);
	*parent = (size_t)(dot - id);
	return *end == '\0' && n < UINT32_MAX ? n : 0;
}

/* Also of what is dropped: directories of artifacts are shared, and no name is given twice. */
struct json *
resume_ordinals(const struct resume_input *in)
{
	const struct json *before = json_get(json_get(in->state, "config"), "spawn_ordinals");
	struct json *all = json_type(before) == JSON_OBJECT ? json_ref(before) : json_object();
	struct json_iter it = json_iterate(in->added);
	const struct json *entry;
	uint64_t n, have;
	size_t len = 0;

	while (json_next(&it, NULL, &entry)) {
		const char *id = json_cstr_of(json_get(entry, "spawn_id"));

		n = ordinal_of(id, &len);
		have = 0;
		if (n > 0)
			(void)json_uint64(json_getn(all, (struct slice){id, len}), &have);
		if (n > have)
			all = json_setn(all, (struct slice){id, len}, json_uint(n));
	}
	return all;
}
