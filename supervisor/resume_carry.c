/* The state that the new run of a resume starts from. */
#include <assert.h>
#include <string.h>

#include "evidence.h"
#include "resume.h"

/* ---- Outcomes ---- */

static bool
is_given(const struct json *v)
{
	return v != NULL && json_type(v) != JSON_NULL;
}

/* Whether the output may differ from what is made of the recorded response, and nothing says its bytes. */
bool
resume_output_unknown(const struct flow_op *op, const struct json *entry)
{
	int64_t attempts;

	if (ckpt_is_file(entry) || is_given(json_get(entry, CKPT_OUTPUT)) ||
	    !json_int64(json_get(entry, "attempts"), &attempts) || attempts < 1)
		return false;
	return json_is_true(json_get(entry, "response_lossy")) ||
	    (op->how->response != FLOW_RESPONSE_TEXT &&
		slice_is(json_text(json_get(entry, "status")), "completed"));
}

/* One that was carried over already lies where it lay then. Consumes entry. */
static struct json *
with_output_path(const struct flow_op *op, struct json *entry, const char *old_path)
{
	const char *file = json_cstr_of(json_get(json_get(entry, CKPT_OUTPUT), "file"));
	int64_t attempts;

	if (file != NULL && file[0] != '/')
		return json_set(entry, CKPT_OUTPUT, json_set(json_ref(json_get(entry, CKPT_OUTPUT)), "file",
		    json_printf("%s/%s", old_path, file)));
	if (json_get(entry, CKPT_ATTEMPT_PATH) != NULL || !resume_output_unknown(op, entry))
		return entry;
	(void)json_int64(json_get(entry, "attempts"), &attempts);
	return json_set(entry, CKPT_ATTEMPT_PATH,
	    json_printf("%s/" RUN_OPS "/%s.%lld", old_path, op->id, (long long)attempts));
}

/* A response in a file names it below the run that wrote it. With another name the response is
 * another value, so its digest, which was found right, is made anew. */
struct json *
resume_carried_entry(const struct flow_op *op, const struct json *entry, const char *old_path)
{
	const struct json *response = json_get(entry, "response");
	const char *file = json_cstr_of(json_get(response, "file"));
	char digest[CKPT_DIGEST_TEXT];
	struct json *moved;

	if (!ckpt_is_file(entry))
		return with_output_path(op, json_ref(entry), old_path);
	if (file[0] == '/')
		return json_ref(entry);
	moved = json_set(json_ref(response), "file", json_printf("%s/%s", old_path, file));
	if (moved == NULL || ckpt_digest(moved, digest, NULL) != 0) {
		json_unref(moved);
		return NULL;
	}
	moved = json_set(json_ref(entry), "response", moved);
	return json_cstr_of(json_get(entry, "result_digest")) == NULL
	    ? moved : json_set(moved, "result_digest", json_cstr(digest));
}

/* Consumes entry. */
static struct json *
without_turn(struct json *entry)
{
	struct json *before = resume_turn_entry(entry);

	json_unref(entry);
	return before;
}

/* The turn that runs again begins a new one, which is then recorded in its place. Consumes entry. */
static struct json *
with_lost_conversation(struct json *entry)
{
	const struct json *conversation = json_get(entry, "conversation");

	return json_set(entry, "conversation",
	    json_set(json_ref(conversation), CKPT_LOST, json_bool(true)));
}

static struct json *
carried_ops(const struct resume_input *in, const struct resume_plan *p, const char *old_path)
{
	struct json *ops = json_ref(json_get(in->state, "ops")), *entry;
	const struct resume_row *row;
	const struct flow_op *op;
	size_t i;

	/* Most stay as they are, and share their memory with what is recorded. */
	for (i = 0; i < in->flow->nplanned; i++) {
		row = &p->rows[i];
		op = &in->flow->ops[i];
		if (row->entry == NULL)
			continue;
		/* Of what is taken over: the turns before the one that outlived the worker. */
		if (row->action != RESUME_REPLAY && row->action != RESUME_KEEP_FAILED &&
		    row->action != RESUME_TAKE_OVER) {
			ops = json_remove(ops, slice_of(op->id));
			continue;
		}
		entry = resume_carried_entry(op, row->entry, old_path);
		if (row->action != RESUME_KEEP_FAILED && json_get(entry, "error") != NULL)
			entry = without_turn(entry);
		if (row->degraded)
			entry = with_lost_conversation(entry);
		if (entry == row->entry)
			json_unref(entry);
		else
			ops = json_set(ops, op->id, entry);
	}
	return ops;
}

/* ---- Plan and configuration ---- */

/* Older forms leave node ids out where they need none; from here on each operation keeps its own. */
static int
carried_plan(const struct resume_input *in, struct json **out, struct err *e)
{
	struct json *plan = json_ref(json_get(in->state, "plan"));
	struct json_iter it = json_iterate(json_get(in->state, "plan"));
	const struct json *entry;
	char id[UUID_TEXT];
	size_t i;

	for (i = 0; json_next(&it, NULL, &entry); i++) {
		if (json_get(entry, "node_id") != NULL)
			continue;
		if (uuid_make(id, e) != 0) {
			json_unref(plan);
			return -1;
		}
		plan = json_put(plan, i, json_set(json_ref(entry), "node_id", json_cstr(id)));
	}
	*out = plan;
	return plan != NULL ? 0 : err_nomem(e);
}

/* Names of operations that are to begin a new conversation; those of an earlier resume stay. */
static struct json *
with_degraded(const struct resume_input *in, const struct resume_plan *p, struct json *config)
{
	const struct json *before = json_get(config, "degraded");
	struct json *names = json_type(before) == JSON_ARRAY ? json_ref(before) : json_array();
	size_t i;

	for (i = 0; i < p->nrows; i++)
		if (p->rows[i].degraded && p->rows[i].turn == 0)
			names = json_append(names, json_cstr(in->flow->ops[i].id));
	if (names != NULL && json_length(names) == 0) {
		json_unref(names);
		return config;
	}
	return json_set(config, "degraded", names);
}

/* Where what it needs runs again it had seen what is not to be any more. */
bool
resume_goes_on(const struct flow_op *op, const struct resume_row *row)
{
	return op->kind == FLOW_INSTRUCTION && row->action == RESUME_RUN && !row->renewed;
}

/* Attempts of agents whose conversation the next one goes on in; those of an earlier resume too, as
 * long as nothing came of them. */
static struct json *
with_interrupted(const struct resume_input *in, const struct resume_plan *p, struct json *config)
{
	const struct json *before = json_get(config, "interrupted"), *one;
	struct json *all = json_object();
	const struct flow_op *op;
	size_t i;

	for (i = 0; i < p->nrows; i++) {
		op = &in->flow->ops[i];
		if (!resume_goes_on(op, &p->rows[i]))
			continue;
		one = json_get(json_get(in->facts, op->id), "interrupted");
		if (one == NULL)
			one = json_get(before, op->id);
		if (one != NULL)
			all = json_set(all, op->id, json_ref(one));
	}
	if (all != NULL && json_length(all) == 0 && before == NULL) {
		json_unref(all);
		return config;
	}
	return json_set(config, "interrupted", all);
}

/* Start lines of what the new run's worker takes over, by operation. */
static struct json *
taken_over(const struct resume_input *in, const struct resume_plan *p)
{
	struct json *taken = json_object();
	size_t i;

	for (i = 0; i < p->nrows; i++)
		if (p->rows[i].action == RESUME_TAKE_OVER)
			taken = json_set(taken, in->flow->ops[i].id,
			    json_ref(json_get(json_get(in->facts, in->flow->ops[i].id), "start")));
	return taken;
}

/* A verdict that an operation failed by does not count for the next try, which asks anew. */
static struct json *
without_denials(const struct resume_input *in, const struct resume_plan *p, struct json *s)
{
	const struct json *context = json_get(s, "flow_context");
	struct json *approvals = NULL;
	const struct flow_op *op;
	size_t i;

	for (i = 0; i < p->nrows; i++) {
		op = &in->flow->ops[i];
		if (p->rows[i].action != RESUME_RUN || !resume_was_denied(op, p->rows[i].entry))
			continue;
		if (approvals == NULL)
			approvals = json_ref(json_get(context, "approvals"));
		approvals = json_remove(approvals, slice_of(op->id));
	}
	return approvals == NULL ? s
				 : json_set(s, "flow_context", json_set(json_ref(context), "approvals", approvals));
}

struct json *
resume_carry(const struct resume_input *in, const struct resume_plan *p, const char *old_run,
    const char *old_path, const char *artifact_root, struct err *e)
{
	struct json *config, *plan, *s;

	assert(resume_is_accepted(p) && in->state != NULL);
	if (carried_plan(in, &plan, e) != 0)
		return NULL;
	config = json_ref(json_get(in->state, "config"));
	config = json_set(config, "artifact_root",
	    json_cstr(artifact_root != NULL ? artifact_root : RUN_ARTIFACTS));
	config = json_set(config, "resumed_from", json_string_lossy(slice_of(old_run), NULL));
	config = json_set(config, "attempts", resume_attempts(in, p));
	config = with_degraded(in, p, config);
	config = with_interrupted(in, p, config);
	if (json_length(in->added) > 0)
		config = json_set(config, "spawn_ordinals", resume_ordinals(in));
	s = json_set(json_set(json_ref(in->state), "plan", plan), "config", config);
	s = json_set(s, "ops", carried_ops(in, p, old_path));
	s = json_set(s, "spawned", resume_carried_added(in, p, old_path));
	s = without_denials(in, p, s);
	if (p->counts[RESUME_TAKE_OVER] > 0)
		s = json_set(s, RUN_TAKEN_OVER, taken_over(in, p));
	if (s == NULL)
		err_nomem(e);
	return s;
}
