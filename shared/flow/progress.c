/* How far a run has come that nobody counts any more. */
#include <stdlib.h>

#include "flowsup/flow.h"

struct counting {
	const struct flow *f;
	const struct json *ops; /* of the state */
	int run_fd;
	enum flow_outcome *outcomes; /* FLOW_CANCELLED: none yet */
	struct json *answers; /* of conditions on responses that are in files; or NULL */
};

static void
ignore_misfit(void *arg, const struct json *entry, const char *why)
{
	(void)arg;
	(void)entry;
	(void)why;
}

/* NULL also of what was added and is pending. */
static const struct json *
recorded(const struct counting *c, uint32_t i)
{
	const struct flow_grown *g = flow_grown(c->f, i);

	if (g == NULL)
		return json_get(c->ops, c->f->ops[i].id);
	return slice_is(json_text(json_get(g->entry, "status")), "pending") ? NULL : g->entry;
}

/* Skipping is not recorded: what settled before it makes it. */
static int
judge(struct counting *c, uint32_t i, struct err *e)
{
	const struct flow_op *op = &c->f->ops[i];
	const struct json *entry = recorded(c, i);
	bool holds = true;
	uint32_t n;

	if (entry != NULL) {
		c->outcomes[i] = slice_is(json_text(json_get(entry, "status")), "completed") ? FLOW_COMPLETED
											     : FLOW_FAILED;
		return 0;
	}
	c->outcomes[i] = FLOW_CANCELLED;
	for (n = 0; n < op->nneeds && holds; n++) {
		uint32_t from = op->needs[n].op;

		if (c->outcomes[from] == FLOW_CANCELLED)
			continue;
		if (flow_answers_read(c->f, from, c->outcomes[from], c->run_fd, recorded(c, from), &c->answers, e) == 0 &&
		    flow_need_holds_entry(c->f, &op->needs[n], c->outcomes[from], recorded(c, from), c->answers,
			&holds, e) == 0)
			continue;
		if (e->code != ERR_LIMIT)
			return -1;
		err_clear(e); /* it fails once it is asked, and that is recorded */
	}
	if (!holds)
		c->outcomes[i] = FLOW_SKIPPED;
	return 0;
}

static int
count(struct counting *c, int64_t *done, struct err *e)
{
	size_t i;

	for (*done = 0, i = 0; i < c->f->nops; i++) {
		if (judge(c, c->f->order[i], e) != 0)
			return -1;
		*done += c->outcomes[c->f->order[i]] != FLOW_CANCELLED;
	}
	return 0;
}

static struct json *
growth_of(const struct flow *f, const struct json *state)
{
	static const char *const names[] = {
	    [FLOW_GROWN_SPAWN] = "spawned", [FLOW_GROWN_RETRY] = "escalated", [FLOW_GROWN_ITEM] = "items"};
	const struct json *rejected = json_get(json_get(state, "config"), "rejected");
	uint64_t counts[sizeof(names) / sizeof(names[0])] = {0};
	struct json *o = json_object();
	size_t i;

	if (f->nops == f->nplanned && json_length(rejected) == 0) {
		json_unref(o);
		return json_null();
	}
	for (i = f->nplanned; i < f->nops; i++)
		counts[flow_grown(f, (uint32_t)i)->kind]++;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		o = json_set(o, names[i], json_uint(counts[i]));
	return json_set(o, "rejected", rejected != NULL ? json_ref(rejected) : json_object());
}

static struct json *
progress_json(const struct flow *f, const struct json *state, int64_t done)
{
	struct json *o = json_set(json_object(), "done", json_int(done));

	o = json_set(o, "total", json_int((int64_t)f->nops));
	return json_set(o, "growth", growth_of(f, state));
}

int
flow_progress(int run_fd, const struct json *state, struct json **out, struct err *e)
{
	struct counting c = {.ops = json_get(state, "ops"), .run_fd = run_fd};
	struct json *o;
	struct flow *f = NULL;
	int64_t done = 0;
	int rc = -1;

	if (flow_from_state(state, &f, e) != 0)
		return -1;
	if (flow_rebuild(f, state, 0, ignore_misfit, NULL, e) != 0)
		goto out;
	c.f = f;
	c.outcomes = calloc(f->nops + 1, sizeof(*c.outcomes));
	rc = c.outcomes == NULL ? err_nomem(e) : count(&c, &done, e);
	if (rc == 0) {
		o = progress_json(f, state, done);
		rc = o != NULL ? 0 : err_nomem(e);
		if (rc == 0)
			*out = o;
	}
out:
	free(c.outcomes);
	json_unref(c.answers);
	flow_free(f);
	return rc;
}
