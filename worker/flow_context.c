/*
 * The shared context of the run: what operations have left there with their outcomes, and what the
 * program keeps in it (messages, verdicts). Versions are immutable. A change without an outcome is
 * admitted to the checkpoint writer like one, and whoever made it goes on once it is durable.
 */
#include "worker.h"

#include <assert.h>
#include <stdlib.h>

#include "changes.h"
#include "flowsup/log.h"

struct context_wait {
	struct context_wait *next;
	context_saved *saved;
	void *arg;
};

int
flow_context_begin(struct worker *w, struct err *e)
{
	const struct json *recorded = json_get(w->state, "flow_context");

	w->waits_last = &w->waits;
	w->flow_context = recorded != NULL ? json_ref(recorded) : json_object();
	w->context_version = 1;
	return w->flow_context != NULL ? 0 : err_nomem(e);
}

void
flow_context_clear(struct worker *w)
{
	struct context_wait *c;

	while ((c = w->waits) != NULL) {
		w->waits = c->next;
		free(c);
	}
	json_unref(w->flow_context);
	json_unref(w->public_context);
	w->flow_context = w->public_context = NULL;
}

const struct json *
flow_context_public(struct worker *w)
{
	if (w->public_context == NULL)
		w->public_context = context_public(w->flow_context);
	return w->public_context;
}

/* Operations have changed it: what they see is another version. */
void
flow_context_became(struct worker *w, struct json *next)
{
	json_unref(w->flow_context);
	w->flow_context = next;
	json_unref(w->public_context);
	w->public_context = NULL;
	w->context_version++;
}

const struct json *
flow_context_kept(const struct worker *w, const char *name)
{
	return json_get(w->flow_context, name);
}

int
flow_context_keep(struct worker *w, const char *name, struct json *value, struct err *e)
{
	struct json *next = value == NULL ? NULL : json_set(json_ref(w->flow_context), name, value);

	if (next == NULL)
		return err_nomem(e);
	json_unref(w->flow_context);
	w->flow_context = next;
	return 0;
}

int
flow_context_commit(struct worker *w, context_saved *saved, void *arg, struct err *e)
{
	struct context_wait *c = calloc(1, sizeof(*c));
	uint64_t ticket;

	if (c == NULL)
		return err_nomem(e);
	if (ckpt_admit(w->writer, CKPT_CONTEXT, NULL, json_ref(w->flow_context), &ticket, e) != 0) {
		free(c);
		return -1;
	}
	c->saved = saved;
	c->arg = arg;
	*w->waits_last = c;
	w->waits_last = &c->next;
	return 0;
}

static void
take_first(struct worker *w, bool durable)
{
	struct context_wait *c = w->waits;

	assert(c != NULL);
	w->waits = c->next;
	if (w->waits == NULL)
		w->waits_last = &w->waits;
	c->saved(w, c->arg, durable);
	free(c);
}

void
flow_context_acked(struct worker *w)
{
	event_begin(w, "CheckpointSaved");
	event_text(w, "kind", "context");
	event_end(w);
	take_first(w, true);
}

void
flow_context_abandon(struct worker *w)
{
	while (w->waits != NULL)
		take_first(w, false);
}
