#include "reactive.h"

#include <assert.h>
#include <stdlib.h>

#include "agent.h"
#include "flowsup/log.h"


struct reactive_child *
reactive_child_of(const struct worker *w, uint32_t i)
{
	return &w->reactive->children[i - w->flow->nplanned];
}

const struct json *
reactive_entry(const struct worker *w, uint32_t i)
{
	return i < w->flow->nplanned ? NULL : reactive_child_of(w, i)->entry;
}

size_t
reactive_most(const struct worker *w)
{
	return w->flow->nops + (w->reactive != NULL ? w->reactive->room : 0);
}

/* ---- Counting ---- */

size_t
reactive_left(const struct worker *w, bool item)
{
	const struct reactive *r = w->reactive;
	size_t most, used = w->flow->nops - w->flow->nplanned;

	most = item ? flow_max_growth(w->flow) : r->cap;
	if (!item && w->flow->max_ops < 0)
		used = r->asked;
	else
		used += r->reserved_all;
	return most > used ? most - used : 0;
}

static void
tell_counts(struct worker *w)
{
	const struct growth *g = &w->growth;
	struct json *o = json_object(), *rejected = json_object();
	unsigned i;

	for (i = 0; i < WISH_REJECT_COUNT; i++)
		if (g->rejected[i] > 0)
			rejected = json_set(rejected, wish_reject_word(i), json_uint(g->rejected[i]));
	o = json_set(o, "spawned", json_uint(g->spawned));
	o = json_set(o, "escalated", json_uint(g->escalated));
	o = json_set(o, "items", json_uint(g->items));
	telling_set(w, &w->growth.told, json_set(o, "rejected", rejected));
}

void
reactive_reserve(struct worker *w, uint32_t i, size_t n)
{
	struct reactive *r = w->reactive;

	r->reserved_all = r->reserved_all - r->reserved[i] + n;
	r->reserved[i] = n;
}

static void
count_kind(struct worker *w, const struct flow_grown *g)
{
	w->growth.spawned += g->kind == FLOW_GROWN_SPAWN;
	w->growth.escalated += g->kind == FLOW_GROWN_RETRY;
	w->growth.items += g->kind == FLOW_GROWN_ITEM;
}

void
reactive_tell(struct worker *w)
{
	telling_go(w, &w->growth.told, META_GROWTH);
}

void
reactive_reject(struct worker *w, uint32_t emitter, enum wish_reject why, bool due, const char *message)
{
	event_begin(w, "SpawnRejected");
	event_op(w, emitter);
	event_text(w, "reason", wish_reject_word(why));
	event_text(w, "message", message);
	if (due)
		event_true(w, "due");
	event_end(w);
	w->growth.rejected[why]++;
	tell_counts(w);
}

/* ---- Which requests are equal ---- */

static struct json *
text_or_null(const char *text)
{
	return text != NULL ? json_cstr(text) : json_null();
}

/* What makes two requests equal. The reason does not: it says why, not what. */
int
reactive_digest(const struct wish *wish, char to[CKPT_DIGEST_TEXT], struct err *e)
{
	struct json *o = json_set(json_object(), "operation", json_int(wish->kind));
	int rc;

	o = json_set(o, "retry", json_bool(wish->retry));
	o = json_set(o, "what", wish->what != NULL ? json_ref(wish->what) : json_null());
	o = json_set(o, "role", text_or_null(wish->role != NULL ? wish->role->name : NULL));
	o = json_set(o, "independent", json_bool(wish->independent));
	o = json_set(o, "context", wish->context != NULL ? json_ref(wish->context) : json_null());
	o = json_set(o, "key", wish->key != NULL ? json_ref(wish->key) : json_null());
	if (o == NULL)
		return err_nomem(e);
	rc = ckpt_digest(o, to, e);
	json_unref(o);
	return rc;
}

/* ---- Beginning ---- */

static void
cannot_rebuild(void *arg, const struct json *entry, const char *why)
{
	const char *id = json_cstr_of(json_get(entry, "spawn_id"));

	if (((struct err *)arg)->code == ERR_NONE)
		err_set(arg, ERR_REFUSED, "the entry of %s in the checkpoint: %s",
		    id != NULL ? id : "an added operation", why);
}

/* "<node> <key>"; an operation and what it asked for. */
static struct json *
set_key(struct json *keys, const char *node, const char *key, uint32_t i)
{
	struct buf text = {0};

	buf_printf(&text, "%s %s", node, key);
	if (text.failed) {
		json_unref(keys);
		keys = NULL;
	} else {
		keys = json_setn(keys, buf_view(&text), json_uint(i));
	}
	buf_clear(&text);
	return keys;
}

uint32_t
reactive_find(const struct worker *w, uint32_t emitter, const char *key)
{
	const char *node = flow_node_id(w->flow, emitter);
	struct buf text = {0};
	uint64_t i = OP_NO_INDEX;

	buf_printf(&text, "%s %s", node, key);
	if (text.failed || !json_uint64(json_getn(w->reactive->keys, buf_view(&text)), &i))
		i = OP_NO_INDEX;
	buf_clear(&text);
	return (uint32_t)i;
}

/* The number of an id "<parent>.s<N>", 0 when it is no such. */
static uint64_t
ordinal_of(const char *id, const char *parent)
{
	size_t len = strlen(parent);
	unsigned long long n;
	char *end;

	if (strncmp(id, parent, len) != 0 || strncmp(id + len, ".s", 2) != 0 || id[len + 2] < '1' ||
	    id[len + 2] > '9')
		return 0;
	n = strtoull(id + len + 2, &end, 10);
	return *end == '\0' && n < UINT32_MAX ? n : 0;
}

void
reactive_note_ordinal(struct reactive *r, const char *parent, uint64_t n)
{
	uint64_t before = 0;

	(void)json_uint64(json_get(r->ordinals, parent), &before);
	if (n > before)
		r->ordinals = json_set(r->ordinals, parent, json_uint(n));
}

int
reactive_digest_of(const struct worker *w, uint32_t i, bool keyed, char to[CKPT_DIGEST_TEXT], struct err *e)
{
	const struct flow_grown *g = flow_grown(w->flow, i);
	const struct json *context = json_get(g->entry, "context");
	struct wish wish = {.retry = g->kind == FLOW_GROWN_RETRY, .kind = w->flow->ops[i].kind,
	    .role = w->flow->ops[i].how->role,
	    .independent = json_is_true(json_get(g->entry, "independent"))};

	wish.what = wish.retry ? NULL : json_get(g->entry, "instruction");
	wish.context = context != NULL && json_type(context) != JSON_NULL ? context : NULL;
	wish.key = keyed ? json_get(g->entry, "request_key") : NULL;
	return reactive_digest(&wish, to, e);
}

/* The key that a request for this entry would have: older programs recorded none. */
static void
key_of_entry(const struct worker *w, uint32_t i, struct buf *to)
{
	const struct flow_grown *g = flow_grown(w->flow, i);
	char digest[CKPT_DIGEST_TEXT];
	unsigned n = 0;

	if (reactive_digest_of(w, i, false, digest, NULL) != 0) {
		to->failed = true;
		return;
	}
	do {
		buf_reset(to);
		buf_printf(to, "%s#%u", digest, ++n);
	} while (!to->failed && reactive_find(w, g->emitter, buf_text(to)) != OP_NO_INDEX);
}

static void
note_key(struct worker *w, uint32_t i)
{
	struct reactive *r = w->reactive;
	const struct flow_grown *g = flow_grown(w->flow, i);
	const char *key = json_cstr_of(json_get(g->entry, "request_key"));
	struct buf made = {0};

	if (g->emitter == FLOW_NO_OP || flow_node_id(w->flow, g->emitter) == NULL || r->keys == NULL)
		return;
	if (key == NULL)
		key_of_entry(w, i, &made);
	r->keys = made.failed ? NULL
	    : set_key(r->keys, flow_node_id(w->flow, g->emitter), key != NULL ? key : buf_text(&made), i);
	buf_clear(&made);
}

/* Whatever was recorded is known from here on: who asks again gets it. */
static void
take_over(struct worker *w, uint32_t i)
{
	struct reactive *r = w->reactive;
	const struct flow_grown *g = flow_grown(w->flow, i);
	struct reactive_child *c = reactive_child_of(w, i);

	c->entry = json_ref(g->entry);
	c->acked = true;
	r->asked += g->kind != FLOW_GROWN_ITEM;
	if (g->parent != FLOW_NO_OP)
		reactive_note_ordinal(r, w->flow->ops[g->parent].id,
		    ordinal_of(w->flow->ops[i].id, w->flow->ops[g->parent].id));
	note_key(w, i);
	count_kind(w, g);
}

static void
restore_rejected(struct worker *w)
{
	const struct json *before = json_get(json_get(w->state, "config"), "rejected");
	unsigned i;

	for (i = 0; i < WISH_REJECT_COUNT; i++)
		(void)json_uint64(json_get(before, wish_reject_word(i)), &w->growth.rejected[i]);
	if (json_length(before) > 0)
		tell_counts(w);
}

static int
make_tables(struct worker *w, struct err *e)
{
	const struct json *before = json_get(json_get(w->state, "config"), "spawn_ordinals");
	struct reactive *r = w->reactive;
	uint32_t i;

	op_list_init(&r->expanding);
	r->children = calloc(reactive_most(w) - w->flow->nplanned + 1, sizeof(*r->children));
	r->reserved = calloc(w->flow->nplanned + 1, sizeof(*r->reserved));
	r->keys = json_object();
	r->positions = json_object();
	r->lists = json_object();
	r->ordinals = before != NULL && json_type(before) == JSON_OBJECT ? json_ref(before) : json_object();
	if (r->children == NULL || r->reserved == NULL)
		return err_nomem(e);
	for (i = (uint32_t)w->flow->nplanned; i < w->flow->nops; i++)
		take_over(w, i);
	if (w->flow->nops > w->flow->nplanned)
		tell_counts(w);
	return r->keys == NULL || r->positions == NULL || r->lists == NULL || r->ordinals == NULL ? err_nomem(e) : 0;
}

int
reactive_begin(struct worker *w, struct err *e)
{
	size_t have = json_length(json_get(w->state, "spawned")), most;
	uint64_t cap;
	struct err refused = {0};

	restore_rejected(w);
	if (!flow_may_grow(w->flow) && have == 0)
		return 0;
	w->reactive = calloc(1, sizeof(*w->reactive));
	if (w->reactive == NULL)
		return err_nomem(e);
	most = flow_max_growth(w->flow);
	if (!json_uint64(json_get(w->state, "max_spawn"), &cap))
		cap = flow_max_spawn(w->flow);
	w->reactive->cap = (size_t)cap;
	w->reactive->room = most > have ? most - have : 0;
	if (flow_rebuild(w->flow, w->state, w->reactive->room, cannot_rebuild, &refused, e) != 0)
		return -1;
	if (refused.code != ERR_NONE) {
		*e = refused;
		return -1;
	}
	return make_tables(w, e);
}

void
reactive_clear(struct worker *w)
{
	struct reactive *r = w->reactive;
	struct reactive_waiter *waiter;
	size_t i;

	if (r == NULL)
		return;
	for (i = 0; r->children != NULL && i < w->flow->nops - w->flow->nplanned; i++) {
		json_unref(r->children[i].entry);
		while ((waiter = r->children[i].waiters) != NULL) {
			r->children[i].waiters = waiter->next;
			free(waiter);
		}
	}
	json_unref(r->keys);
	json_unref(r->ordinals);
	json_unref(r->positions);
	json_unref(r->lists);
	free(r->children);
	free(r->reserved);
	free(r);
	w->reactive = NULL;
}

/* ---- A new operation ---- */

static struct json *
value_or_null(struct json *v)
{
	return v != NULL ? v : json_null();
}

/* Order of members as the manual has it. What is not asked for is null, so that it is seen. */
static struct json *
make_entry(const struct worker *w, struct reactive_new *n, const char *node)
{
	static const char *const words[] = {
	    [FLOW_RUN] = "run", [FLOW_EXEC] = "exec", [FLOW_INSTRUCTION] = "instruction"};
	const struct flow_role *own = w->flow->ops[n->emitter].how->role;
	struct json *o = json_set(json_object(), "node_id", json_cstr(node));

	o = json_set(o, "status", json_cstr("pending"));
	o = json_set(o, "response", json_null());
	o = json_set(o, "operation", json_cstr(words[n->kind]));
	o = json_set(o, "assignee", text_or_null(n->role != NULL ? n->role->name : NULL));
	o = json_set(o, "instruction", value_or_null(n->what));
	o = json_set(o, "parent_id", json_cstr(flow_node_id(w->flow, n->parent)));
	o = json_set(o, "spawn_id", json_cstr(n->id));
	o = json_set(o, "context", value_or_null(n->context));
	/* Of a retry the role that it runs at: what it may ask for in turn is judged by that. */
	o = json_set(o, "emitter_workload", json_cstr(own != NULL ? own->name : ""));
	o = json_set(o, "emitter_contains_user_settings",
	    json_bool(wish_reads_settings(w, n->emitter)));
	if (n->retry)
		o = json_set(o, "escalated_from", json_cstr(flow_node_id(w->flow, n->emitter)));
	o = json_set(o, "request_key", json_cstr(n->key));
	if (n->attempt > 0)
		o = json_set(o, "request_attempt", json_uint(n->attempt));
	if (json_get(n->asked, "id") != NULL)
		o = json_set(o, "request_id", json_ref(json_get(n->asked, "id")));
	if (n->independent)
		o = json_set(o, "independent", json_bool(true));
	n->what = n->context = NULL;
	return n->reason != NULL ? json_set(o, "reason", json_ref(n->reason)) : o;
}

static struct json *
with_contract(const struct worker *w, uint32_t i, struct json *entry)
{
	const char *const *path = w->flow->ops[i].how->artifacts;
	struct json *list = json_array();

	if (path == NULL || *path == NULL) {
		json_unref(list);
		return entry;
	}
	for (; *path != NULL; path++)
		list = json_append(list, json_cstr(*path));
	return json_set(entry, "artifacts_expected", list);
}

/* What needs it and what it needs stands in the graph already. Its own record is one of the things
 * that it waits for: nothing rests on an acceptance that a crash could take back. */
static void
count_unmet(struct worker *w, uint32_t i)
{
	const struct flow_op *def = &w->flow->ops[i];
	uint32_t n;

	w->ops[i] = (struct op){.unmet = w->relaxed ? 0 : 1};
	for (n = 0; n < def->nneeds; n++)
		w->ops[i].unmet += !w->ops[def->needs[n].op].released;
}

/* What needed a template needs its new item too. */
static void
count_dependents(struct worker *w, uint32_t i)
{
	const struct flow_op *def = &w->flow->ops[i];
	uint32_t n;

	for (n = 0; flow_grown(w->flow, i)->kind == FLOW_GROWN_ITEM && n < def->nsuccessors; n++)
		w->ops[def->successors[n]].unmet++;
}

static void
announce(struct worker *w, uint32_t i)
{
	const struct flow_grown *g = flow_grown(w->flow, i);
	const struct flow_how *how = w->flow->ops[i].how;

	event_begin(w, g->kind == FLOW_GROWN_RETRY ? "NodeEscalated" : "NodeSpawned");
	event_op(w, g->kind == FLOW_GROWN_RETRY ? g->emitter : i);
	if (g->kind == FLOW_GROWN_RETRY)
		event_text(w, "retry", w->flow->ops[i].id);
	event_text(w, g->kind == FLOW_GROWN_RETRY ? "after" : "parent", w->flow->ops[g->parent].id);
	if (how->assignee != NULL)
		event_text(w, "assignee", how->assignee);
	event_text(w, "node_id", flow_node_id(w->flow, i));
	event_text(w, "parent_id", flow_node_id(w->flow, g->parent));
	if (g->kind == FLOW_GROWN_RETRY)
		event_text(w, "escalated_from", flow_node_id(w->flow, g->emitter));
	if (reactive_child_of(w, i)->deferred)
		event_true(w, "deferred");
	event_end(w);
}

static void
count_new(struct worker *w, uint32_t i)
{
	struct reactive *r = w->reactive;
	const struct flow_grown *g = flow_grown(w->flow, i);

	r->room--;
	if (g->kind == FLOW_GROWN_ITEM && r->reserved[g->parent] > 0)
		reactive_reserve(w, g->parent, r->reserved[g->parent] - 1);
	r->asked += g->kind != FLOW_GROWN_ITEM;
	count_kind(w, g);
	tell_counts(w);
	link_progress(w);
}

static int
join(struct worker *w, uint32_t i, const char *key, struct err *e)
{
	struct reactive *r = w->reactive;
	const struct flow_grown *g = flow_grown(w->flow, i);
	struct reactive_child *c = reactive_child_of(w, i);

	*c = (struct reactive_child){.deferred = !admission_open(w) && admission_over(w)};
	c->entry = with_contract(w, i, json_ref(g->entry));
	r->keys = set_key(r->keys, flow_node_id(w->flow, g->emitter), key, i);
	if (c->entry == NULL || r->keys == NULL)
		return err_nomem(e);
	count_unmet(w, i);
	count_dependents(w, i);
	agents_added(w, i);
	w->any_leaves |= w->flow->ops[i].how->leave;
	announce(w, i);
	count_new(w, i);
	if (settle_pending(w, i, c->entry, e) != 0)
		return -1;
	if (w->relaxed && w->ops[i].unmet == 0)
		admission_met(w, i);
	return 0;
}

/* From the moment it stands in the graph a failure to record it is one of the whole run. */
int
reactive_add(struct worker *w, struct reactive_new *n, uint32_t *out, struct err *e)
{
	char node[UUID_TEXT];
	struct json *entry;
	int rc = -1;

	if (uuid_make(node, e) != 0) {
		json_unref(n->what);
		json_unref(n->context);
		return -1;
	}
	entry = make_entry(w, n, node);
	if (entry == NULL)
		err_nomem(e);
	else
		rc = flow_grow(w->flow, entry, out, e);
	json_unref(entry);
	if (rc == 0 && join(w, *out, n->key, e) != 0) {
		worker_error(w, e);
		rc = -1;
	} else if (rc != 0 && e->code == ERR_NOMEM) {
		worker_error(w, e);
	}
	return rc;
}
