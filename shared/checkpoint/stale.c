#include "stale.h"

#include <math.h>

#include "entry.h"
#include "journal.h"

/* What the stale records leave behind. */
struct stale {
	struct json *entries[CKPT_SPAWNED + 1]; /* by kind: identity -> the last entry of it */
	struct json *patches;			/* in their order */
	double ended_at;			/* the latest of their outcomes; -infinity: none says it */
};

static double
ended_at(const struct json *entry)
{
	double t;

	return json_double(json_get(entry, "ended_at"), &t) ? t : -INFINITY;
}

/* Consumes entry and patch, which may be NULL. */
static int
stale_add(struct stale *s, enum ckpt_kind kind, struct json *entry, struct json *patch, struct err *e)
{
	s->ended_at = fmax(s->ended_at, ended_at(entry));
	s->entries[kind] = json_setn(s->entries[kind], json_text(entry_identity(kind, entry)), entry);
	if (patch != NULL)
		s->patches = json_append(s->patches, patch);
	return s->entries[kind] != NULL && s->patches != NULL ? 0 : err_nomem(e);
}

static int
stale_collect(struct stale *s, const struct capture *c, struct err *e)
{
	struct slice rest = buf_view(&c->journal_bytes), line;
	struct json *entry, *patch;
	enum ckpt_kind kind;

	while (journal_line(&rest, &line)) {
		if (record_stale(line, c->generation, &kind, &entry, &patch, e) != 0)
			return -1;
		if (entry != NULL && stale_add(s, kind, entry, patch, e) != 0)
			return -1;
	}
	return 0;
}

/* ---- Outcomes ---- */

/* A request that was pending has been followed by its outcome, and a node id is nobody else's. */
static bool
holds(enum ckpt_kind kind, const struct json *found, const struct json *entry)
{
	if (found == NULL)
		return false;
	return json_equal(found, entry) ||
	    (kind == CKPT_SPAWNED && slice_is(json_text(json_get(entry, "status")), "pending"));
}

static bool
holds_all(const struct state *state, enum ckpt_kind kind, const struct json *entries)
{
	struct json_iter it = json_iterate(entries);
	const struct json *entry, *found;
	struct slice id;
	int64_t place;

	while (json_next(&it, &id, &entry)) {
		if (kind == CKPT_OP)
			found = json_getn(state->ops, id);
		else
			found = json_int64(json_getn(state->places, id), &place)
			    ? json_at(state->spawned, (size_t)place) : NULL;
		if (!holds(kind, found, entry))
			return false;
	}
	return true;
}

/* What triggers a new base is in it, and in no journal. */
static bool
has_later(const struct json *entries, double than)
{
	struct json_iter it = json_iterate(entries);
	const struct json *entry;

	while (json_next(&it, NULL, &entry))
		if (ended_at(entry) > than)
			return true;
	return false;
}

static bool
is_later(const struct json *base, const struct stale *s)
{
	return s->ended_at > -INFINITY &&
	    (has_later(json_get(base, "ops"), s->ended_at) || has_later(json_get(base, "spawned"), s->ended_at));
}

/* ---- Contexts ---- */

/*
 * The patches are taken back, the last one first, from the context that the base has. Where one of them put
 * a value it must stand; what one of them took away, or another value that was there before, is not known
 * any more then, and `unknown`, a value of nobody else's, stands there.
 */
struct undoing {
	struct json *context, *unknown;
	struct err *e;
};

enum undone { UNDONE, NOT_HELD, UNDO_ERROR };

/* Consumes value (NULL: none is needed). */
static enum undone
change(struct undoing *u, const char *op, struct slice path, struct json *value)
{
	struct json *one = json_set(json_object(), "op", json_cstr(op)), *next = NULL;
	struct json *patch;
	struct err why = {0};
	int rc;

	one = json_set(one, "path", json_string(path));
	if (value != NULL)
		one = json_set(one, "value", value);
	patch = json_append(json_array(), one);
	rc = patch != NULL ? json_patch(u->context, patch, &next, &why) : err_nomem(&why);
	json_unref(patch);
	if (rc != 0 && why.code == ERR_NOMEM) {
		err_nomem(u->e);
		return UNDO_ERROR;
	}
	if (rc != 0)
		return NOT_HELD;
	json_unref(u->context);
	u->context = next;
	return UNDONE;
}

static enum undone
forget(struct undoing *u, const char *op, struct slice path)
{
	return change(u, op, path, json_ref(u->unknown));
}

/* Whether the value is what stands there now, as far as that is known. */
static enum undone
compare(struct undoing *u, const struct json *now, const struct json *value)
{
	struct json *patch = json_equal(now, value) ? json_array() : json_diff(now, value);
	struct json_iter it = json_iterate(patch);
	enum undone result = patch != NULL ? UNDONE : UNDO_ERROR;
	const struct json *one;

	while (result == UNDONE && json_next(&it, NULL, &one))
		if (!slice_is(json_text(json_get(one, "op")), "replace") ||
		    json_pointer_get(now, json_text(json_get(one, "path")), NULL) != u->unknown)
			result = NOT_HELD;
	if (patch == NULL)
		err_nomem(u->e);
	json_unref(patch);
	return result;
}

/* Of what lies in something that is not known nothing is. */
static bool
is_unknown(const struct undoing *u, struct slice container)
{
	struct slice at = {container.data, 0};

	for (; at.len <= container.len; at.len++)
		if ((at.len == container.len || container.data[at.len] == '/') &&
		    json_pointer_get(u->context, at, NULL) == u->unknown)
			return true;
	return false;
}

/* What was appended is the last one. */
static enum undone
undo_add(struct undoing *u, struct slice path, struct slice container, const struct json *value)
{
	const struct json *in = json_pointer_get(u->context, container, NULL), *now;
	struct buf last = {0};
	enum undone result;

	if (json_type(in) == JSON_ARRAY && slice_is((struct slice){path.data + container.len,
	    path.len - container.len}, "/-")) {
		if (json_length(in) == 0)
			return NOT_HELD;
		buf_slice(&last, container);
		buf_printf(&last, "/%zu", json_length(in) - 1);
		path = buf_view(&last);
	}
	now = json_pointer_get(u->context, path, NULL);
	if (last.failed) {
		err_nomem(u->e);
		result = UNDO_ERROR;
	} else
		result = now != NULL && value != NULL ? compare(u, now, value) : NOT_HELD;
	if (result == UNDONE)
		result = change(u, "remove", path, NULL);
	buf_clear(&last);
	return result;
}

static enum undone
undo_replace(struct undoing *u, struct slice path, const struct json *value)
{
	const struct json *now = json_pointer_get(u->context, path, NULL);
	enum undone result = now != NULL && value != NULL ? compare(u, now, value) : NOT_HELD;

	if (result != UNDONE || path.len > 0)
		return result == UNDONE ? forget(u, "replace", path) : result;
	json_unref(u->context);
	u->context = json_ref(u->unknown);
	return UNDONE;
}

static enum undone
undo(struct undoing *u, const struct json *one)
{
	struct slice op = json_text(json_get(one, "op")), path = json_text(json_get(one, "path"));
	struct slice container = path;

	if (path.data == NULL)
		return NOT_HELD;
	while (container.len > 0 && container.data[--container.len] != '/')
		;
	if (is_unknown(u, container))
		return UNDONE;
	if (slice_is(op, "add"))
		return undo_add(u, path, container, json_get(one, "value"));
	if (slice_is(op, "replace"))
		return undo_replace(u, path, json_get(one, "value"));
	return slice_is(op, "remove") ? forget(u, "add", path) : NOT_HELD;
}

static enum undone
undo_patch(struct undoing *u, const struct json *patch)
{
	enum undone result = UNDONE;
	size_t i = json_length(patch);

	while (result == UNDONE && i-- > 0)
		result = undo(u, json_at(patch, i));
	return result;
}

/* 1: it is in the context; 0: it is not. */
static int
holds_patches(const struct json *context, const struct json *patches, struct err *e)
{
	struct undoing u = {.context = json_ref(context), .unknown = json_cstr("not known any more"), .e = e};
	enum undone result = u.unknown != NULL ? UNDONE : UNDO_ERROR;
	size_t i = json_length(patches);

	if (u.unknown == NULL)
		err_nomem(e);
	while (result == UNDONE && i-- > 0)
		result = undo_patch(&u, json_at(patches, i));
	json_unref(u.context);
	json_unref(u.unknown);
	return result == UNDO_ERROR ? -1 : result == UNDONE;
}

/* ---- All of it ---- */

static int
refuse_compaction(const char *what, struct err *e)
{
	return err_set(e, ERR_REFUSED, "'%s' holds %s not in '%s': one of the two is another run's, or from "
	    "another time, and compacting would destroy them", CKPT_JOURNAL, what, CKPT_BASE);
}

int
stale_check(const struct capture *c, const struct state *state, struct err *e)
{
	struct stale s = {{json_object(), json_object()}, json_array(), -INFINITY};
	int result = stale_collect(&s, c, e), held;

	if (result == 0 && (!holds_all(state, CKPT_OP, s.entries[CKPT_OP]) ||
	    !holds_all(state, CKPT_SPAWNED, s.entries[CKPT_SPAWNED])))
		result = refuse_compaction("outcomes that are", e);
	if (result == 0 && !is_later(c->root, &s)) {
		held = holds_patches(json_get(c->root, "flow_context"), s.patches, e);
		if (held <= 0)
			result = held < 0 ? -1 : refuse_compaction("changes of the context that are", e);
	}
	json_unref(s.entries[CKPT_OP]);
	json_unref(s.entries[CKPT_SPAWNED]);
	json_unref(s.patches);
	return result;
}
