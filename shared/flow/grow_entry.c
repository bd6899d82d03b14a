/* What an entry of spawned[] describes: whose it is, what is to be done, and how it runs. */
#include <stdio.h>

#include "growth.h"

/* ---- What is to be done, and how ---- */

static bool
is_given(const struct json *v)
{
	return v != NULL && json_type(v) != JSON_NULL;
}

/* The predecessor of this design had other words for what an agent does. */
static int
work_kind(const struct json *operation, enum flow_kind *out)
{
	static const struct {
		const char *word;
		enum flow_kind kind;
	} words[] = {
	    {"instruction", FLOW_INSTRUCTION}, {"run", FLOW_RUN}, {"exec", FLOW_EXEC},
	    {"operate", FLOW_INSTRUCTION}, {"chat", FLOW_INSTRUCTION},
	    {"communicate", FLOW_INSTRUCTION}, {"ReAct", FLOW_INSTRUCTION}};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (slice_is(json_text(operation), words[i].word)) {
			*out = words[i].kind;
			return 0;
		}
	return -1;
}

static const char *const *
keep_list(struct flow_owned *own, const struct json *array)
{
	size_t n = json_length(array), i;
	const char **list = arena_take(&own->arena, (n + 1) * sizeof(*list));

	for (i = 0; list != NULL && i < n; i++)
		list[i] = json_cstr_of(json_at(array, i));
	if (list != NULL)
		list[n] = NULL;
	return list;
}

static bool
are_texts(const struct json *array)
{
	struct json_iter it = json_iterate(array);
	const struct json *one;

	if (array == NULL || json_type(array) != JSON_ARRAY)
		return false;
	while (json_next(&it, NULL, &one))
		if (json_cstr_of(one) == NULL)
			return false;
	return true;
}

/* What is to be done. A retry and an item of older checkpoints may leave it to what they repeat. */
static int
read_work(struct flow_owned *own, const struct flow_grown *g, struct flow_op *op, struct err *e)
{
	const struct json *what = json_get(g->entry, "instruction");
	const struct flow_op *like = g->kind == FLOW_GROWN_SPAWN ? NULL : &own->ops[g->parent];

	if (work_kind(json_get(g->entry, "operation"), &op->kind) != 0)
		return err_set(e, ERR_REFUSED, is_given(json_get(g->entry, "operation"))
		    ? "its \"operation\" is not known" : "has no \"operation\"");
	if (op->kind == FLOW_EXEC && are_texts(what) && json_length(what) > 0) {
		op->argv = keep_list(own, what);
		return op->argv != NULL ? 0 : err_nomem(e);
	}
	if (op->kind != FLOW_EXEC && json_cstr_of(what) != NULL) {
		op->text = json_cstr_of(what);
		return 0;
	}
	if (like == NULL || like->kind != op->kind)
		return err_set(e, ERR_REFUSED, "does not say what is to be done");
	op->text = like->text;
	op->argv = like->argv;
	return 0;
}

/* Without an assignee the role that it was asked for by. */
static const struct flow_role *
role_of(const struct flow *f, const struct json *entry)
{
	const char *assignee = json_cstr_of(json_get(entry, "assignee"));

	if (assignee == NULL)
		assignee = json_cstr_of(json_get(entry, "emitter_workload"));
	return flow_find_role(f, assignee);
}

static bool
same_provider(const struct flow_role *a, const struct flow_role *b)
{
	return a != NULL && b != NULL && a->provider != NULL && b->provider != NULL &&
	    strcmp(a->provider, b->provider) == 0;
}

/* Its conversation begins as a fork of its parent's. */
static const char *
inherited(const struct flow_owned *own, const struct flow_grown *g, const struct flow_op *op,
    const struct flow_role *role)
{
	if (g->kind != FLOW_GROWN_SPAWN || g->parent == FLOW_NO_OP ||
	    op->kind != FLOW_INSTRUCTION || json_is_true(json_get(g->entry, "independent")) ||
	    own->ops[g->parent].kind != FLOW_INSTRUCTION ||
	    !same_provider(own->ops[g->parent].how->role, role))
		return NULL;
	return own->ops[g->parent].id;
}

/* That of the item before it, which is the same: a list of thousands has one. */
static const struct flow_how *
how_before(const struct flow_owned *own, const struct flow_grown *g)
{
	uint32_t last = (uint32_t)own->f.nops - 1;
	const struct flow_grown *before = flow_grown(&own->f, last);

	if (g->kind != FLOW_GROWN_ITEM || before == NULL || before->kind != FLOW_GROWN_ITEM ||
	    before->parent != g->parent)
		return NULL;
	return own->ops[last].how;
}

static int
make_how(struct flow_owned *own, const struct flow_grown *g, struct flow_op *op, struct err *e)
{
	const struct flow_role *role = role_of(&own->f, g->entry);
	const struct json *contract = json_get(g->entry, "artifacts_expected");
	struct flow_how how;

	op->how = how_before(own, g);
	if (op->how != NULL)
		return 0;
	if (g->kind == FLOW_GROWN_SPAWN)
		how = *own->role_hows[role != NULL ? (size_t)(role - own->f.roles) : own->f.nroles];
	else
		how = *own->ops[g->parent].how;
	if (g->kind == FLOW_GROWN_RETRY && role != NULL && role != how.role &&
	    how_as_role(own, own->ops[g->parent].how, role, &how) != 0)
		return err_nomem(e);
	if (g->kind != FLOW_GROWN_ITEM) {
		how.gate_approve = false; /* a person has said yes to what it repeats or follows */
		how.inherit_context = inherited(own, g, op, role);
	}
	how.foreach_pointer = NULL;
	if (are_texts(contract))
		how.artifacts = keep_list(own, contract);
	op->how = arena_copy(&own->arena, &how, sizeof(how));
	return op->how != NULL && (!are_texts(contract) || how.artifacts != NULL) ? 0 : err_nomem(e);
}

static int
read_item(struct flow_owned *own, const struct flow_grown *g, struct flow_op *op, struct err *e)
{
	const struct json *item = json_get(json_get(g->entry, "context"), "item");
	struct buf text = {0};

	if (g->kind == FLOW_GROWN_RETRY)
		op->item = own->ops[g->parent].item;
	if (g->kind != FLOW_GROWN_ITEM)
		return 0;
	if (item == NULL)
		return err_set(e, ERR_REFUSED, "its item is not recorded");
	if (json_type(item) == JSON_STRING && json_cstr_of(item) == NULL)
		return err_set(e, ERR_REFUSED, "its item holds a NUL or no valid text");
	if (json_type(item) == JSON_STRING)
		buf_puts(&text, json_cstr_of(item));
	else
		json_write(&text, item);
	op->item = text.failed ? NULL : arena_copy(&own->arena, buf_text(&text), text.len + 1);
	buf_clear(&text);
	return op->item != NULL ? 0 : err_nomem(e);
}

/* ---- Identity ---- */

static int
keep_id(struct flow_owned *own, const struct flow_grown *g, struct flow_op *op, struct err *e)
{
	const struct json *spawn_id = json_get(g->entry, "spawn_id");
	struct slice node = json_text(json_get(g->entry, "node_id"));
	char id[FLOW_MAX_ID + 64];
	int64_t number;
	int len;

	if (json_cstr_of(spawn_id) != NULL)
		len = snprintf(id, sizeof(id), "%s", json_cstr_of(spawn_id));
	else if (json_int64(spawn_id, &number) && g->parent != FLOW_NO_OP)
		len = snprintf(id, sizeof(id), "%s.s%lld", own->ops[g->parent].id, (long long)number);
	else
		len = snprintf(id, sizeof(id), "s.%.*s", (int)node.len, node.data);
	if (len < 0 || len > FLOW_MAX_ID || !is_id(id))
		return err_set(e, ERR_REFUSED, "its spawn_id is no id of at most %d characters", FLOW_MAX_ID);
	if (flow_find(&own->f, id) != SIZE_MAX)
		return err_set(e, ERR_REFUSED, "its spawn_id is that of another operation");
	op->id = arena_copy(&own->arena, id, (size_t)len + 1);
	return op->id != NULL ? 0 : err_nomem(e);
}

static int
find_named(const struct flow *f, const struct json *entry, const char *member, uint32_t *out,
    struct err *e)
{
	const struct json *v = json_get(entry, member);
	size_t i = flow_find_node(f, json_cstr_of(v));

	*out = FLOW_NO_OP;
	if (!is_given(v))
		return 0;
	if (i == SIZE_MAX)
		return err_set(e, ERR_NOTFOUND,
		    "its \"%s\" names no operation of the plan and no other entry", member);
	*out = (uint32_t)i;
	return 0;
}

static int
check_retry(const struct flow *f, const struct flow_grown *g, struct err *e)
{
	if (g->parent == FLOW_NO_OP)
		return err_set(e, ERR_REFUSED, "it replaces another and has no \"parent_id\"");
	if (flow_is_replaced(f, g->parent))
		return err_set(e, ERR_REFUSED,
		    "it is to follow %s, which another entry replaces already", f->ops[g->parent].id);
	if (flow_stands_for(f, g->parent) != flow_stands_for(f, g->emitter))
		return err_set(e, ERR_REFUSED, "it replaces %s and is to follow %s, which does not stand for it",
		    f->ops[g->emitter].id, f->ops[g->parent].id);
	return 0;
}

bool
growth_is_template(const struct flow *f, uint32_t i)
{
	return i != FLOW_NO_OP && f->ops[i].how->foreach_pointer != NULL;
}

int
growth_identify(const struct flow *f, const struct json *entry, struct flow_grown *g, struct err *e)
{
	const char *node = json_cstr_of(json_get(entry, "node_id"));

	*g = (struct flow_grown){.entry = entry};
	if (node == NULL)
		return err_set(e, ERR_REFUSED, "it has no \"node_id\"");
	if (flow_find_node(f, node) != SIZE_MAX)
		return err_set(e, ERR_REFUSED, "its \"node_id\" is that of another operation");
	if (find_named(f, entry, "parent_id", &g->parent, e) != 0 ||
	    find_named(f, entry, "escalated_from", &g->emitter, e) != 0)
		return -1;
	if (is_given(json_get(entry, "escalated_from"))) {
		g->kind = FLOW_GROWN_RETRY;
		return check_retry(f, g, e);
	}
	g->kind = growth_is_template(f, g->parent) ? FLOW_GROWN_ITEM : FLOW_GROWN_SPAWN;
	g->emitter = g->parent;
	return 0;
}

int
growth_read(struct flow_owned *own, const struct flow_grown *g, struct flow_op *op, struct err *e)
{
	if (keep_id(own, g, op, e) != 0 || read_work(own, g, op, e) != 0 ||
	    read_item(own, g, op, e) != 0)
		return -1;
	return make_how(own, g, op, e);
}
