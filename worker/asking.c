/* The ways to ask for operations: by emit, by members of a response, by failing. */
#include "reactive.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Requests ---- */

static struct asked *
asked_of(struct attempt_run *a, struct err *e)
{
	if (a->asked == NULL)
		a->asked = calloc(1, sizeof(*a->asked));
	if (a->asked != NULL && a->asked->accepted == NULL)
		a->asked->accepted = json_object();
	if (a->asked != NULL && a->asked->unmatched == NULL)
		a->asked->unmatched = json_object();
	if (a->asked != NULL && a->asked->accepted != NULL && a->asked->unmatched != NULL)
		return a->asked;
	err_nomem(e);
	return NULL;
}

void
reactive_forget(struct attempt_run *a)
{
	if (a->asked == NULL)
		return;
	json_unref(a->asked->accepted);
	json_unref(a->asked->unmatched);
	free(a->asked);
	a->asked = NULL;
}

static uint64_t
count_of(const struct json *counts, const char *digest)
{
	uint64_t n = 0;

	(void)json_uint64(json_get(counts, digest), &n);
	return n;
}

static int
set_count(struct json **counts, const char *digest, uint64_t n, struct err *e)
{
	struct json *next = json_set(json_ref(*counts), digest, json_uint(n));

	if (next == NULL)
		return err_nomem(e);
	json_unref(*counts);
	*counts = next;
	return 0;
}

/* Its key: given, or what it says and which of its equals it is in this attempt. */
static void
key_of(const struct asked *asked, const struct wish *wish, const char *digest, struct buf *to)
{
	if (wish->key != NULL)
		buf_slice(to, json_text(wish->key));
	else
		buf_printf(to, "%s#%llu", digest,
		    (unsigned long long)count_of(asked->accepted, digest) + 1);
}

/* "<parent>.s<N>": after the highest there ever was, not after how many there are. */
static int
next_id(struct worker *w, uint32_t parent, char to[FLOW_MAX_ID + 1], struct err *e)
{
	struct reactive *r = w->reactive;
	const char *id = w->flow->ops[parent].id;
	uint64_t n = count_of(r->ordinals, id);
	int len;

	do
		len = snprintf(to, FLOW_MAX_ID + 1, "%s.s%llu", id, (unsigned long long)++n);
	while (len <= FLOW_MAX_ID && flow_find(w->flow, to) != SIZE_MAX);
	if (len > FLOW_MAX_ID)
		return err_set(e, ERR_REFUSED, "its id would be longer than %d characters", FLOW_MAX_ID);
	reactive_note_ordinal(r, id, n);
	return r->ordinals != NULL ? 0 : err_nomem(e);
}

static int
check_caps(const struct worker *w, uint32_t emitter, const struct wish *wish, enum wish_reject *why,
    struct err *e)
{
	*why = WISH_ESCALATE_MAX;
	if (wish->retry && flow_chain_length(w->flow, emitter) >= w->flow->escalate_max)
		return err_set(e, ERR_REFUSED, "%s had %u further %s; escalate_max is %u",
		    w->flow->ops[flow_stands_for(w->flow, emitter)].id, flow_chain_length(w->flow, emitter),
		    flow_chain_length(w->flow, emitter) == 1 ? "try" : "tries", w->flow->escalate_max);
	*why = WISH_BUILDER_ERROR; /* what is found later */
	if (reactive_left(w, false) > 0)
		return 0;
	*why = WISH_MAX_SPAWN;
	return err_set(e, ERR_REFUSED, "no more than %zu operations may be added",
	    w->reactive->cap);
}

/* What a retry does is what its emitter does; a text that is no text cannot be recorded twice. */
struct json *
reactive_work(const struct flow_op *op)
{
	const char *const *word = op->argv;
	struct json *list;

	if (op->text != NULL)
		return json_cstr(op->text);
	for (list = json_array(); word != NULL && *word != NULL; word++)
		list = json_append(list, json_cstr(*word));
	return list;
}

static int
add_wish(const struct attempt_run *a, const struct wish *wish, const struct json *asked,
    const char *key, uint32_t *out, enum wish_reject *why, struct err *e)
{
	struct worker *w = a->w;
	uint32_t emitter = a->op;
	char id[FLOW_MAX_ID + 1];
	struct reactive_new n = {.emitter = emitter, .kind = wish->kind, .id = id, .key = key,
	    .role = wish->role, .reason = wish->reason, .retry = wish->retry,
	    .independent = wish->independent, .attempt = a->number, .asked = asked};

	if (check_caps(w, emitter, wish, why, e) != 0)
		return -1;
	n.parent = wish->retry ? flow_final(w->flow, emitter) : emitter;
	if (next_id(w, n.parent, id, e) != 0)
		return -1;
	n.what = wish->retry ? reactive_work(&w->flow->ops[emitter]) : json_ref(wish->what);
	n.context = wish->context != NULL ? json_ref(wish->context) : NULL;
	return reactive_add(w, &n, out, e);
}

/* A parent that runs again after a crash, or tries again, gets what it had asked for before. */
static int
find_or_add(struct attempt_run *a, const struct wish *wish, const struct json *asked,
    const char *key, uint32_t *out, enum wish_reject *why, struct err *e)
{
	struct worker *w = a->w;
	uint32_t have = reactive_find(w, a->op, key);

	if (have == OP_NO_INDEX)
		return add_wish(a, wish, asked, key, out, why, e);
	if (reactive_child_of(w, have)->attempt == a->number) {
		*why = WISH_DUPLICATE;
		return err_set(e, ERR_REFUSED, "the key \"%.64s\" is taken, by %s", key,
		    w->flow->ops[have].id);
	}
	*out = have;
	return 0;
}

static int
accept(struct attempt_run *a, const struct wish *wish, const struct json *request, bool member,
    uint32_t *out, enum wish_reject *why, struct err *e)
{
	struct asked *asked = asked_of(a, e);
	char digest[CKPT_DIGEST_TEXT];
	struct buf key = {0};
	uint64_t unmatched;
	int rc;

	if (asked == NULL || reactive_digest(wish, digest, e) != 0)
		return -1;
	unmatched = count_of(asked->unmatched, digest);
	if (member && unmatched > 0) {
		*why = WISH_DUPLICATE;
		if (set_count(&asked->unmatched, digest, unmatched - 1, e) != 0)
			return -1;
		return err_set(e, ERR_REFUSED, "it was asked for by emit already");
	}
	/* Work that is equal may be wanted twice; another try by the same role would only be the same again. */
	if (wish->retry && count_of(asked->accepted, digest) > 0) {
		*why = WISH_DUPLICATE;
		return err_set(e, ERR_REFUSED, "this attempt has asked for another try by %s already", wish->role->name);
	}
	key_of(asked, wish, digest, &key);
	rc = buf_ok(&key, e);
	if (rc == 0)
		rc = find_or_add(a, wish, member ? NULL : request, buf_text(&key), out, why, e);
	buf_clear(&key);
	if (rc != 0)
		return -1;
	reactive_child_of(a->w, *out)->attempt = a->number;
	if (!member && set_count(&asked->unmatched, digest, unmatched + 1, e) != 0)
		return -1;
	return set_count(&asked->accepted, digest, count_of(asked->accepted, digest) + 1, e);
}

/* ---- An attempt that is taken over ---- */

/* Which of its equals one without a key of its own is; 0: it has one. */
static uint64_t
number_among_equals(const char *key, const char *digest)
{
	size_t len = strlen(digest);

	return key != NULL && strncmp(key, digest, len) == 0 && key[len] == '#'
	    ? strtoull(key + len + 1, NULL, 10) : 0;
}

static int
restore(struct attempt_run *a, struct asked *asked, uint32_t i, struct err *e)
{
	const struct json *entry = flow_grown(a->w->flow, i)->entry;
	const struct json *id = json_get(entry, "request_id");
	const char *key = json_cstr_of(json_get(entry, "request_key"));
	char digest[CKPT_DIGEST_TEXT];
	struct json *value;
	uint64_t n;
	int rc = reactive_digest_of(a->w, i, false, digest, e);

	n = rc == 0 ? number_among_equals(key, digest) : 0;
	if (rc == 0 && n == 0)
		rc = reactive_digest_of(a->w, i, true, digest, e);
	if (rc == 0 && n > count_of(asked->accepted, digest))
		rc = set_count(&asked->accepted, digest, n, e);
	if (rc == 0)
		rc = set_count(&asked->unmatched, digest, count_of(asked->unmatched, digest) + 1, e);
	reactive_child_of(a->w, i)->attempt = a->number;
	if (rc != 0 || id == NULL)
		return rc;
	value = json_set(json_object(), "id", json_ref(id));
	rc = value != NULL ? emit_remember(a, value, i, e) : err_nomem(e);
	json_unref(value);
	return rc;
}

int
reactive_restore(struct attempt_run *a, struct err *e)
{
	struct worker *w = a->w;
	struct asked *asked = w->reactive != NULL ? asked_of(a, e) : NULL;
	const struct flow_grown *g;
	int64_t attempt;
	uint32_t i;

	if (w->reactive == NULL || asked == NULL)
		return w->reactive == NULL ? 0 : -1;
	for (i = (uint32_t)w->flow->nplanned; i < w->flow->nops; i++) {
		g = flow_grown(w->flow, i);
		if (g->emitter == a->op && g->kind != FLOW_GROWN_ITEM &&
		    json_int64(json_get(g->entry, "request_attempt"), &attempt) &&
		    attempt == (int64_t)a->number && restore(a, asked, i, e) != 0)
			return -1;
	}
	return 0;
}

static int
check_running(const struct worker *w, struct err *e)
{
	if (!(w->closed & CLOSED_ERROR) && !w->writer_stopped)
		return 0;
	return err_set(e, ERR_IO, "the run cannot record anything any more: %s", w->trouble.msg);
}

/* The try that is due, and those that would follow it should it fail too. */
static unsigned
tries_left(const struct worker *w, uint32_t op)
{
	const struct flow *f = w->flow;
	const struct flow_role *role = f->ops[op].how->role;
	unsigned had = flow_chain_length(f, op), n = 0;

	for (; role != NULL && role->escalate_to != NULL && had + n < f->escalate_max; n++)
		role = flow_find_role(f, role->escalate_to);
	return n;
}

/* One request by whatever way. -1: rejected, and that is told. */
static int
ask(struct attempt_run *a, bool escalate, const struct json *request, bool member, bool failed,
    uint32_t *out, struct err *e)
{
	struct worker *w = a->w;
	enum wish_reject why = WISH_BUILDER_ERROR;
	struct wish wish;
	int rc = check_running(w, e);

	if (rc != 0)
		return -1;
	rc = escalate ? wish_escalation(w, a->op, request, failed, &wish, &why, e)
		      : wish_spawn(w, a->op, request, &wish, &why, e);
	if (rc == 0 && w->reactive == NULL)
		rc = err_set(e, ERR_REFUSED, w->flow->unplanned
			? "not allowed: a planner asks for work by its answer, which is the plan, alone"
			: "not allowed: nothing in the document lets the run grow");
	if (rc == 0)
		rc = accept(a, &wish, request, member, out, &why, e);
	if (rc == 0 || e->code == ERR_NOMEM)
		return rc;
	err_wrap(e, "%s: %s", escalate ? "escalate" : "spawn", wish_reject_word(why));
	reactive_reject(w, a->op, why, failed, e->msg);
	if (failed && why == WISH_MAX_SPAWN)
		w->growth.refused += tries_left(w, a->op);
	return -1;
}

/* ---- By emit ---- */

static void
answer(const struct worker *w, uint32_t i, struct link *l)
{
	struct json *value = json_set(json_object(), "id", json_cstr(w->flow->ops[i].id));

	value = json_set(value, "node_id", json_cstr(flow_node_id(w->flow, i)));
	if (reactive_child_of(w, i)->deferred)
		value = json_set(value, "deferred", json_bool(true));
	link_answer(l, json_set(json_object(), "value", value), -1);
}

static int
wait_for(struct worker *w, uint32_t i, struct link *l, struct err *e)
{
	struct reactive_child *c = reactive_child_of(w, i);
	struct reactive_waiter *waiter;

	if (l->fd < 0) /* it was spooled, and its sender told so: nobody waits */
		return 0;
	if (c->acked) {
		answer(w, i, l);
		return 0;
	}
	waiter = calloc(1, sizeof(*waiter));
	if (waiter == NULL)
		return err_nomem(e);
	*waiter = (struct reactive_waiter){.next = c->waiters, .link = l, .serial = l->serial};
	c->waiters = waiter;
	return 0;
}

int
reactive_request(struct attempt_run *a, struct link *l, bool escalate, const struct json *value,
    struct err *e)
{
	uint32_t i, known = emit_known(a, value);

	if (known != OP_NO_INDEX)
		return wait_for(a->w, known, l, e);
	if (l->fd >= 0 && storage_ends_run(a->w))
		return err_set(e, ERR_IO, "nothing is recorded: the run is to end, and its state cannot be saved: %s",
		    a->w->trouble.msg);
	if (ask(a, escalate, value, false, false, &i, e) != 0)
		return -1;
	/* Sent again, because its answer was lost, it is taken for the same. */
	if (emit_remember(a, value, i, e) != 0)
		return -1;
	return wait_for(a->w, i, l, e);
}

void
reactive_acked(struct worker *w, uint32_t i)
{
	struct reactive_child *c = reactive_child_of(w, i);
	struct reactive_waiter *waiter;

	if (c->acked)
		return;
	c->acked = true;
	while ((waiter = c->waiters) != NULL) {
		c->waiters = waiter->next;
		if (waiter->link->serial == waiter->serial)
			answer(w, i, waiter->link);
		free(waiter);
	}
	assert(w->relaxed || w->ops[i].unmet > 0);
	if (!w->relaxed && --w->ops[i].unmet == 0)
		admission_met(w, i);
}

bool
reactive_is_recording(const struct attempt_run *a)
{
	const struct worker *w = a->w;
	uint32_t i;

	for (i = (uint32_t)w->flow->nplanned; w->reactive != NULL && i < w->flow->nops; i++)
		if (flow_grown(w->flow, i)->emitter == a->op && !reactive_child_of(w, i)->acked)
			return true;
	return false;
}

bool
reactive_is_awaited(const struct worker *w)
{
	uint32_t i;

	for (i = (uint32_t)w->flow->nplanned; w->reactive != NULL && i < w->flow->nops; i++)
		if (reactive_child_of(w, i)->waiters != NULL)
			return true;
	return false;
}

void
reactive_abandon(struct worker *w, const struct err *why)
{
	struct reactive_waiter *waiter;
	uint32_t i;

	for (i = (uint32_t)w->flow->nplanned; w->reactive != NULL && i < w->flow->nops; i++)
		while ((waiter = reactive_child_of(w, i)->waiters) != NULL) {
			reactive_child_of(w, i)->waiters = waiter->next;
			if (waiter->link->serial == waiter->serial)
				link_refuse(waiter->link, why);
			free(waiter);
		}
}

/* ---- By a response, and by failing ---- */

bool
reactive_is_asking(const struct json *response)
{
	return response != NULL && json_type(response) == JSON_OBJECT &&
	    (json_get(response, "spawn") != NULL || json_get(response, "escalate") != NULL);
}

/* Data of its own may have these names: only where a document speaks of growing it is a request. */
static bool
may_ask(const struct attempt_run *a)
{
	const struct json *reactive = a->w->flow->reactive;

	return a->w->reactive != NULL && reactive != NULL && !slice_is(json_text(reactive), "off");
}

static bool
may_escalate(const struct attempt_run *a)
{
	const struct flow_role *role = a->w->flow->ops[a->op].how->role;

	return may_ask(a) || (a->w->reactive != NULL && role != NULL && role->escalate_to != NULL);
}

static void
ask_members(struct attempt_run *a, const struct json *list)
{
	struct json_iter it = json_iterate(list);
	const struct json *one;
	uint32_t i;

	while (json_next(&it, NULL, &one)) {
		struct err e = {0};

		if (ask(a, false, one, true, false, &i, &e) != 0 && e.code == ERR_NOMEM)
			worker_error(a->w, &e);
	}
}

void
reactive_members(struct attempt_run *a, const struct json *asking)
{
	const struct json *spawn = json_get(asking, "spawn"), *escalate = json_get(asking, "escalate");
	struct err e = {0};
	uint32_t i;

	if (spawn != NULL && may_ask(a) && json_type(spawn) == JSON_ARRAY)
		ask_members(a, spawn);
	else if (spawn != NULL && may_ask(a) && ask(a, false, spawn, true, false, &i, &e) != 0 && e.code == ERR_NOMEM)
		worker_error(a->w, &e);
	e = (struct err){0};
	if (escalate == NULL || !may_escalate(a) || json_type(escalate) == JSON_NULL ||
	    (json_type(escalate) == JSON_BOOL && !json_is_true(escalate)))
		return;
	if (ask(a, true, escalate, true, false, &i, &e) != 0 && e.code == ERR_NOMEM)
		worker_error(a->w, &e);
}

void
reactive_failed(struct attempt_run *a)
{
	const struct flow_role *role = a->w->flow->ops[a->op].how->role;
	struct err e = {0};
	uint32_t i;

	if (a->w->reactive == NULL || role == NULL || role->escalate_to == NULL ||
	    flow_is_replaced(a->w->flow, a->op))
		return;
	if (ask(a, true, NULL, false, true, &i, &e) != 0 && e.code == ERR_NOMEM)
		worker_error(a->w, &e);
}
