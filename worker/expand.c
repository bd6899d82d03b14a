/*
 * A foreach over a response: when it is ready, the list is taken from the recorded response, and an
 * operation is added for each item, under the item's number as its key. So whoever derives them
 * again, after a crash in the middle, gets the same ones.
 */
#include "reactive.h"

#include <stdlib.h>

#include "flowsup/store.h"

enum { EXPAND_PER_TURN = 256 };

/* ---- The list ---- */

static struct slice
pointer_of(const struct worker *w, uint32_t i)
{
	return json_text(json_get(w->flow->ops[i].how->foreach_pointer, "pointer"));
}

/* OP_NO_INDEX: there is none. */
static uint32_t
list_is_in(const struct worker *w, uint32_t i)
{
	const char *id = json_cstr_of(json_get(w->flow->ops[i].how->foreach_pointer, "op"));
	size_t from = id != NULL ? flow_find(w->flow, id) : SIZE_MAX;

	return from != SIZE_MAX ? flow_final(w->flow, (uint32_t)from) : OP_NO_INDEX;
}

static int
find_list(const struct worker *w, uint32_t i, const struct json **out, struct err *e)
{
	uint32_t from = list_is_in(w, i);
	struct slice pointer = pointer_of(w, i);

	if (from == OP_NO_INDEX)
		return err_set(e, ERR_REFUSED, "foreach: there is no operation that it is over");
	if (w->ops[from].response == NULL)
		return err_set(e, ERR_REFUSED, "foreach: %s has no response", w->flow->ops[from].id);
	if (w->ops[from].by_reference) {
		*out = json_get(w->reactive->lists, w->flow->ops[i].id);
		if (*out == NULL)
			return err_nomem(e); /* it was read, and then lost */
	} else {
		*out = json_pointer_get(w->ops[from].response, pointer, e);
	}
	if (*out == NULL)
		return err_wrap(e, "foreach: in the response of %s", w->flow->ops[from].id);
	if (json_type(*out) != JSON_ARRAY)
		return err_set(e, ERR_REFUSED, "foreach: \"%.*s\" of %s is no array but %s",
		    (int)pointer.len, pointer.data != NULL ? pointer.data : "", w->flow->ops[from].id,
		    json_type_name(*out));
	return 0;
}

static uint64_t
position_of(const struct worker *w, uint32_t i)
{
	uint64_t n = 0;

	(void)json_uint64(json_get(w->reactive->positions, w->flow->ops[i].id), &n);
	return n;
}

/* As max_ops counts them. */
static uint64_t
planned_and_grown(const struct worker *w)
{
	const struct flow *f = w->flow;

	return f->nops - (f->planner_op != SIZE_MAX) - (f->synthesis_op != SIZE_MAX);
}

static size_t
count_missing(const struct worker *w, uint32_t i, size_t n)
{
	size_t missing = 0, k;
	char key[24];

	for (k = 0; k < n; k++) {
		snprintf(key, sizeof(key), "%zu", k);
		missing += reactive_find(w, i, key) == OP_NO_INDEX;
	}
	return missing;
}

static bool
add_once(struct worker *w, struct json **ids, const char *id)
{
	struct err e = {0};

	if (id == NULL || json_find(*ids, NULL, id) != NULL)
		return false;
	*ids = json_append(*ids != NULL ? *ids : json_array(), json_cstr(id));
	if (*ids != NULL)
		return true;
	err_nomem(&e);
	worker_error(w, &e);
	return false;
}

/* The operation in whose response the list of i is. */
static const char *
source_of(const struct worker *w, uint32_t i)
{
	return json_cstr_of(json_get(w->flow->ops[i].how->foreach_pointer, "op"));
}

/* The response is recorded, so a resume finds the same: only a run in which it is made anew gets further. */
static void
note_no_list(struct worker *w, const char *id)
{
	struct growth *g = &w->growth;

	if (add_once(w, &g->without_list, id))
		telling_set(w, &g->fork_told, json_ref(g->without_list));
}

/* What the last of its items would be called. */
static int
check_ids(struct worker *w, uint32_t i, size_t n, struct err *e)
{
	const char *id = w->flow->ops[i].id;
	char last[FLOW_MAX_ID + 24];

	if (n == 0 || snprintf(last, sizeof(last), "%s.%zu", id, n - 1) <= FLOW_MAX_ID)
		return 0;
	note_no_list(w, source_of(w, i));
	return err_set(e, ERR_LIMIT, "foreach: the list has %zu item%s, and the id of the last one, %s, would be longer "
	    "than %d characters: give %s a shorter id", n, n == 1 ? "" : "s", last, FLOW_MAX_ID, id);
}

/* All or none: a list that is cut short would look as if it were whole. */
static int
check_room(struct worker *w, uint32_t i, size_t n, struct err *e)
{
	size_t missing = count_missing(w, i, n), room = reactive_left(w, true) + w->reactive->reserved[i];
	uint64_t others;

	if (missing <= room) {
		reactive_reserve(w, i, missing);
		return 0;
	}
	/* No bound allows as many: what helps is another list. */
	if (planned_and_grown(w) + missing > FLOW_MAX_OPERATIONS) {
		note_no_list(w, source_of(w, i));
		return err_set(e, ERR_LIMIT, "foreach: the list has %zu items, and a run may have at most %d operations",
		    n, FLOW_MAX_OPERATIONS);
	}
	others = w->growth.refused;
	w->growth.refused += missing;
	(void)add_once(w, &w->growth.without_room, source_of(w, i));
	if (planned_and_grown(w) + others + missing > FLOW_MAX_OPERATIONS)
		return err_set(e, ERR_LIMIT, "foreach: the list has %zu item%s, others for which there was no room have %llu, "
		    "and a run may have at most %d operations", n, n == 1 ? "" : "s", (unsigned long long)others, FLOW_MAX_OPERATIONS);
	if (missing < n)
		return err_set(e, ERR_LIMIT, "foreach: the list has %zu items, of which %zu are there already, and no more "
		    "than %zu operation%s may be added still (max_ops)", n, n - missing, room, room == 1 ? "" : "s");
	return err_set(e, ERR_LIMIT, "foreach: the list has %zu item%s, and no more than %zu operation%s "
	    "may be added still (max_ops)", n, n == 1 ? "" : "s", room, room == 1 ? "" : "s");
}

/* Each list alone would fit, all of them under no bound. */
static void
note_no_room(struct worker *w)
{
	struct json_iter it = json_iterate(w->growth.without_room);
	const struct json *id;

	while (json_next(&it, NULL, &id))
		note_no_list(w, json_cstr_of(id));
	if (w->growth.room_told.value != NULL)
		telling_set(w, &w->growth.room_told, json_null());
}

/* A resume has the same list and the same bound: only a new run with another one gets further. */
void
reactive_tell_room(struct worker *w)
{
	uint64_t wanted = planned_and_grown(w) + w->growth.refused;

	if (w->growth.refused > 0 && wanted != w->growth.wanted) {
		w->growth.wanted = wanted;
		if (wanted <= FLOW_MAX_OPERATIONS)
			telling_set(w, &w->growth.room_told, json_uint(wanted));
		else
			note_no_room(w);
	}
	telling_go(w, &w->growth.room_told, META_MAX_OPS);
	telling_go(w, &w->growth.fork_told, META_FORK_FROM);
}

/* ---- One item ---- */

static int
add_item(struct worker *w, uint32_t i, size_t number, const struct json *item, struct err *e)
{
	const struct flow_op *op = &w->flow->ops[i];
	char id[FLOW_MAX_ID + 24], key[24];
	struct reactive_new n = {.parent = i, .emitter = i, .kind = op->kind, .id = id, .key = key,
	    .role = op->how->role};
	uint32_t index;

	snprintf(key, sizeof(key), "%zu", number);
	if (reactive_find(w, i, key) != OP_NO_INDEX)
		return 0;
	snprintf(id, sizeof(id), "%s.%zu", op->id, number);
	n.what = reactive_work(op);
	n.context = json_set(json_object(), "item", json_ref(item));
	if (n.context == NULL) {
		json_unref(n.what);
		return err_nomem(e);
	}
	return reactive_add(w, &n, &index, e);
}

/* ---- All of them ---- */

static void
end_with(struct worker *w, uint32_t i, enum op_class class, const struct err *why, size_t items)
{
	struct outcome o = {.class = class};

	if (class != CLASS_NONE) {
		o.message = strdup(why->msg); /* without memory the class says enough */
	} else {
		o.response = json_set(json_object(), "items", json_uint(items));
		if (ckpt_digest(o.response, o.digest, NULL) != 0)
			o.digest[0] = '\0';
	}
	reactive_reserve(w, i, 0);
	w->reactive->lists = json_remove(w->reactive->lists, slice_of(w->flow->ops[i].id));
	w->settling++;
	settle_plain(w, i, &o);
	outcome_clear(&o);
}

static void
end_without_list(struct worker *w, uint32_t i, const struct err *why)
{
	note_no_list(w, source_of(w, i));
	end_with(w, i, why->code == ERR_LIMIT ? CLASS_LIMIT : CLASS_RESPONSE, why, 0);
}

static bool
set_position(struct worker *w, uint32_t i, size_t n)
{
	struct reactive *r = w->reactive;
	struct err e = {0};

	r->positions = json_set(r->positions, w->flow->ops[i].id, json_uint(n));
	if (r->positions != NULL)
		return true;
	err_nomem(&e);
	worker_error(w, &e);
	r->positions = json_object();
	return false;
}

/* Some items of one foreach; true when it has come to its end. */
static bool
expand_some(struct worker *w, uint32_t i)
{
	size_t at = position_of(w, i), n, until;
	const struct json *list = NULL;
	struct err e = {0};

	if (find_list(w, i, &list, &e) != 0) {
		end_without_list(w, i, &e);
		return true;
	}
	if (at == 0 && (check_ids(w, i, json_length(list), &e) != 0 || check_room(w, i, json_length(list), &e) != 0)) {
		end_with(w, i, CLASS_LIMIT, &e, 0);
		return true;
	}
	n = json_length(list);
	for (until = at + EXPAND_PER_TURN; at < n && at < until; at++)
		if (add_item(w, i, at, json_at(list, at), &e) != 0) {
			end_with(w, i, CLASS_RESPONSE, &e, 0);
			return true;
		}
	if (at < n)
		return !set_position(w, i, at);
	if (flow_expanded(w->flow, i, &e) != 0)
		worker_error(w, &e);
	else
		end_with(w, i, CLASS_NONE, NULL, n);
	return true;
}

void
reactive_list_read(struct worker *w, uint32_t i, struct json *list, const struct err *why)
{
	struct err e = {0};

	if (why == NULL) {
		w->reactive->lists = json_set(w->reactive->lists, w->flow->ops[i].id, list);
		op_list_push(&w->reactive->expanding, w->ops, i);
		return;
	}
	e = *why;
	err_wrap(&e, "foreach: in the response of %s", w->flow->ops[list_is_in(w, i)].id);
	end_without_list(w, i, &e);
}

/* A list that is in a file is read here, as all of this may block. What is no list any more is told later. */
static size_t
count_items(struct worker *w, uint32_t i)
{
	uint32_t from = list_is_in(w, i);
	struct json *response = NULL;
	const struct json *list = NULL;
	struct err e = {0};
	size_t n;

	if (from == OP_NO_INDEX || w->ops[from].response == NULL)
		return 0;
	if (!w->ops[from].by_reference)
		response = json_ref(w->ops[from].response);
	else if (flow_response_read(w->run_fd, w->ops[from].response, w->flow->ops[from].how->response,
		     w->ops[from].state == OP_COMPLETED, &response, &e) != 0)
		return 0;
	list = json_pointer_get(response, pointer_of(w, i), &e);
	n = list != NULL && json_type(list) == JSON_ARRAY ? json_length(list) : 0;
	json_unref(response);
	return n;
}

void
reactive_go_on(struct worker *w)
{
	uint32_t i;

	for (i = 0; w->reactive != NULL && i < w->flow->nplanned; i++)
		if (w->flow->ops[i].how->foreach_pointer != NULL && !op_is_settled(&w->ops[i]) &&
		    reactive_find(w, i, "0") != OP_NO_INDEX)
			reactive_reserve(w, i, count_missing(w, i, count_items(w, i)));
}

void
reactive_expand(struct worker *w, uint32_t i)
{
	uint32_t from = list_is_in(w, i);
	struct err e = {0};

	op_become(&w->ops[i], OP_PREPARING);
	op_become(&w->ops[i], OP_SETTLING);
	if (from != OP_NO_INDEX && w->ops[from].by_reference) {
		if (conditions_read_list(w, i, from, pointer_of(w, i), &e) != 0)
			end_without_list(w, i, &e);
		return;
	}
	op_list_push(&w->reactive->expanding, w->ops, i);
}

/* What a deadline or a stop finds in the middle is left there: a resume goes on. */
void
reactive_expand_more(struct worker *w)
{
	uint32_t i;

	if (w->reactive == NULL || w->reactive->expanding.count == 0 || !admission_open(w))
		return;
	i = op_list_pop(&w->reactive->expanding, w->ops);
	if (!expand_some(w, i)) {
		op_list_push(&w->reactive->expanding, w->ops, i);
		w->loop.again = true;
	}
	if (w->reactive->expanding.count > 0)
		w->loop.again = true;
}

bool
reactive_is_expanding(const struct worker *w)
{
	return w->reactive != NULL && w->reactive->expanding.count > 0;
}
