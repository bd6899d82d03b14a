#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "base.h"
#include "entry.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *const order[] = {
	"session_id", "prompt", "plan", "config", "max_spawn", "flow_context", "ops", "spawned", NULL,
};

#define FILE_MEMBERS                                                                               \
	{"version", T(INTEGER), true},                                                             \
	{"generation", T(STRING), true},                                                           \
	{"journal_seq", T(INTEGER), true}
#define STATE_MEMBERS(must)                                                                        \
	{"session_id", T(STRING) | T(NULL), must},                                                 \
	{"prompt", T(STRING) | T(NULL), must},                                                     \
	{"plan", T(ARRAY), true},                                                                  \
	{"config", T(OBJECT), must},                                                               \
	{"max_spawn", T(INTEGER) | T(NULL), false},                                                \
	{"flow_context", T(OBJECT), true},                                                         \
	{"ops", T(OBJECT), true},                                                                  \
	{"spawned", T(ARRAY), must}

static const struct field base_fields[] = {FILE_MEMBERS, STATE_MEMBERS(true)};
static const struct field state_fields[] = {STATE_MEMBERS(true)};
/* Older files may leave out what they had no use for. */
static const struct field old_fields[] = {STATE_MEMBERS(false)};

/*
 * What a plan entry may hold: the keys of an operation in a flow document, what this program adds,
 * and the predecessor's. A member that is not here refuses the file: that is what lets a later
 * writer keep readers out which would misread it.
 */
static const struct field plan_fields[] = {
	{"agent_id", T(STRING), true},
	{"dep_indices", T(ARRAY), true},
	{"assignee", T(STRING) | T(NULL), false},
	{"node_id", T(STRING), false},
	{"artifacts", T(ARRAY) | T(NULL), false},
	{"id", T(STRING), false},
	{"run", T_ANY, false},
	{"exec", T_ANY, false},
	{"instruction", T_ANY, false},
	{"needs", T_ANY, false},
	{"inherit_context", T_ANY, false},
	{"response", T_ANY, false},
	{"schema", T_ANY, false},
	{"timeout", T_ANY, false},
	{"grace", T_ANY, false},
	{"silence", T_ANY, false},
	{"retry", T_ANY, false},
	{"gate", T_ANY, false},
	{"idempotent", T_ANY, false},
	{"keeper", T_ANY, false},
	{"context", T_ANY, false},
	{"output", T_ANY, false},
	{"tty", T_ANY, false},
	{"messages", T_ANY, false},
	{"leave", T_ANY, false},
	{"env", T_ANY, false},
	{"cwd", T_ANY, false},
	{"umask", T_ANY, false},
	{"nice", T_ANY, false},
	{"limits", T_ANY, false},
	{"foreach", T_ANY, false},
	{"item", T_ANY, false},
	{"never", T_ANY, false},
	{"task", T_ANY, false},
	{"inputs", T_ANY, false},
	{"exit_criteria", T_ANY, false},
	{"depends_on", T_ANY, false},
	{"modes", T_ANY, false},
};

const char *const *
base_member_order(void)
{
	return order;
}

bool
generation_is_valid(struct slice text)
{
	size_t i;

	if (text.len != CKPT_GENERATION_TEXT - 1)
		return false;
	for (i = 0; i < text.len; i++)
		if (!(text.data[i] >= '0' && text.data[i] <= '9') &&
		    !(text.data[i] >= 'a' && text.data[i] <= 'f'))
			return false;
	return true;
}

int
generation_make(char to[CKPT_GENERATION_TEXT], struct err *e)
{
	unsigned char random[(CKPT_GENERATION_TEXT - 1) / 2];
	size_t i;

	/* Up to 256 bytes come whole and without EINTR once the pool is ready; getrandom(2). */
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_sys(e, ERR_IO, errno, "cannot get random bytes");
	for (i = 0; i < sizeof(random); i++)
		snprintf(to + 2 * i, 3, "%02x", random[i]);
	return 0;
}

static const struct json *
part(const struct state *s, const char *name)
{
	if (slice_is(slice_of(name), "flow_context"))
		return s->context;
	if (slice_is(slice_of(name), "ops"))
		return s->ops;
	if (slice_is(slice_of(name), "spawned"))
		return s->spawned;
	return json_get(s->rest, name);
}

/* A plan or an entry, neither of which is a string, or what stands for it in a packed state. */
static int
put_packed(struct sink *to, const struct json *v, struct err *e)
{
	if (json_type(v) == JSON_STRING)
		return sink_encoded(to, json_text(v), e);
	json_write(&to->b, v);
	return sink_pass(to, e);
}

/* The container `ops` or `spawned`, with an end between any two entries. */
static int
put_entries(struct sink *to, const struct json *entries, struct err *e)
{
	const bool named = json_type(entries) == JSON_OBJECT;
	struct json_iter it = json_iterate(entries);
	const struct json *entry;
	const char *before = named ? "{" : "[";
	struct slice name;

	if (json_length(entries) == 0)
		buf_puts(&to->b, before);
	while (json_next(&it, &name, &entry)) {
		buf_puts(&to->b, before);
		before = ",";
		if (named) {
			json_write_string(&to->b, name);
			buf_putc(&to->b, ':');
		}
		if (put_packed(to, entry, e) != 0)
			return -1;
	}
	buf_putc(&to->b, named ? '}' : ']');
	return 0;
}

int
base_encode(struct sink *to, const char *generation, const struct state *s, struct err *e)
{
	const struct json *value;
	size_t i;
	int result = 0;

	if (generation == NULL)
		buf_puts(&to->b, "{\"version\":2");
	else
		buf_printf(&to->b, "{\"version\":3,\"generation\":\"%s\",\"journal_seq\":0", generation);
	for (i = 0; order[i] != NULL; i++) {
		value = part(s, order[i]);
		if (value == NULL)
			continue;
		buf_printf(&to->b, ",\"%s\":", order[i]);
		if (value == s->ops || value == s->spawned)
			result = put_entries(to, value, e);
		else if (slice_is(slice_of(order[i]), "plan"))
			result = put_packed(to, value, e);
		else
			json_write(&to->b, value);
		if (result != 0)
			return -1;
	}
	buf_puts(&to->b, "}\n");
	return sink_end(to, e);
}

static bool
is_set(const struct json *v)
{
	return v != NULL && json_type(v) != JSON_NULL;
}

bool
plan_needs_nodes(const struct json *config, const struct json *spawned)
{
	struct json_iter it = json_iterate(spawned);
	const struct json *entry;

	if (is_set(json_get(config, "timeout")))
		return true;
	while (json_next(&it, NULL, &entry))
		if (is_set(json_get(entry, "parent_id")) || is_set(json_get(entry, "escalated_from")))
			return true;
	return false;
}

bool
plan_has_nodes(const struct json *plan)
{
	struct json_iter it = json_iterate(plan);
	const struct json *entry;

	while (json_next(&it, NULL, &entry))
		if (json_get(entry, "node_id") != NULL)
			return true;
	return false;
}

static struct json *
plan_without_nodes(const struct json *plan)
{
	struct json_iter it = json_iterate(plan);
	struct json *stripped = json_array();
	const struct json *entry;

	while (json_next(&it, NULL, &entry))
		stripped = json_append(stripped, json_remove(json_ref(entry), slice_of("node_id")));
	return stripped;
}

int
snapshot_encode(struct sink *to, const struct state *s, bool nodes, struct err *e)
{
	struct json *root = state_root(s);
	struct json_iter it;
	const struct json *value;
	struct slice name;
	int result = 0;

	if (root != NULL && !nodes && !plan_needs_nodes(json_get(root, "config"), s->spawned))
		root = json_set(root, "plan", plan_without_nodes(json_get(root, "plan")));
	if (root == NULL)
		return err_nomem(e);
	buf_puts(&to->b, "{\"version\":2");
	it = json_iterate(root);
	while (result == 0 && json_next(&it, &name, &value)) {
		buf_putc(&to->b, ',');
		json_write_string(&to->b, name);
		buf_putc(&to->b, ':');
		json_write(&to->b, value);
		result = sink_pass(to, e);
	}
	buf_puts(&to->b, "}\n");
	json_unref(root);
	return result == 0 ? sink_end(to, e) : -1;
}

int
base_version(const struct json *root, int *version, struct refusal *r, struct err *e)
{
	const struct json *v = json_get(root, "version");
	int64_t n = 1;

	if (json_type(root) != JSON_OBJECT)
		return refuse(r, "wrong_type", root, e, "not an object");
	if (v != NULL && (!json_int64(v, &n) || n < 1 || n > 3))
		return refuse(r, "unknown_version", v, e, "`version` is none of 1, 2 and 3");
	/* A base whose version was damaged must not pass for a whole file of an older version. */
	if (n < 3 && json_get(root, "generation") != NULL && json_get(root, "journal_seq") != NULL)
		return refuse(r, "disguised_base", root, e,
		    "a base of version 3 under another version");
	*version = (int)n;
	return 0;
}

/* Whatever names an operation by its node_id would mean either of two. */
static int
check_nodes(const struct json *list, const char *repeated, struct refusal *r, struct err *e)
{
	struct json_iter it = json_iterate(list);
	struct json *seen = json_object();
	const struct json *entry, *id;
	int result = 0;

	while (result == 0 && seen != NULL && json_next(&it, NULL, &entry)) {
		id = json_get(entry, "node_id");
		if (id != NULL && json_getn(seen, json_text(id)) != NULL)
			result = refuse(r, "repeated_identity", entry, e, repeated);
		else if (id != NULL)
			seen = json_setn(seen, json_text(id), json_bool(true));
	}
	if (result == 0 && seen == NULL)
		result = err_nomem(e);
	json_unref(seen);
	return result;
}

int
plan_check(const struct json *plan, struct refusal *r, struct err *e)
{
	struct json_iter deps, it = json_iterate(plan);
	const struct json *entry, *dep;

	while (json_next(&it, NULL, &entry)) {
		if (json_type(entry) != JSON_OBJECT)
			return refuse(r, "wrong_type", entry, e, "a plan entry is not an object");
		if (fields_check(entry, plan_fields, COUNT(plan_fields), true,
		    "unknown_plan_member", r, e) != 0)
			return -1;
		deps = json_iterate(json_get(entry, "dep_indices"));
		while (json_next(&deps, NULL, &dep))
			if (json_type(dep) != JSON_INTEGER)
				return refuse(r, "wrong_type", dep, e,
				    "an element of `dep_indices` is not an integer");
	}
	return check_nodes(plan, "two entries of `plan` have one node_id", r, e);
}

static int
check_ops(const struct json *ops, struct refusal *r, struct err *e)
{
	struct json_iter it = json_iterate(ops);
	const struct json *entry;
	struct slice name;

	while (json_next(&it, &name, &entry)) {
		if (entry_check(CKPT_OP, entry, r, e) != 0)
			return -1;
		if (!slice_eq(name, json_text(json_get(entry, "agent_id"))))
			return refuse(r, "misplaced_entry", entry, e,
			    "an entry of `ops` stands under a name that is not its agent_id");
	}
	return 0;
}

static int
check_spawned(const struct json *spawned, struct refusal *r, struct err *e)
{
	struct json_iter it = json_iterate(spawned);
	const struct json *entry;

	while (json_next(&it, NULL, &entry))
		if (entry_check(CKPT_SPAWNED, entry, r, e) != 0)
			return -1;
	return check_nodes(spawned, "two entries of `spawned` have one node_id", r, e);
}

/* In a version 2 file `escalated_from` needs a guard beside it; see plan_needs_nodes(). */
static int
check_guard(const struct json *root, struct refusal *r, struct err *e)
{
	struct json_iter it = json_iterate(json_get(root, "spawned"));
	const struct json *entry, *witness = NULL;

	while (json_next(&it, NULL, &entry)) {
		if (slice_is(json_text(json_get(entry, "status")), "pending"))
			return 0;
		if (is_set(json_get(entry, "escalated_from")))
			witness = entry;
	}
	if (witness != NULL && !plan_has_nodes(json_get(root, "plan")))
		return refuse(r, "unguarded_splice", witness, e,
		    "a spawned entry replaces another, and the file has no guard beside it");
	return 0;
}

static int
check_parts(const struct json *root, struct refusal *r, struct err *e)
{
	const struct json *spawned = json_get(root, "spawned");

	if (plan_check(json_get(root, "plan"), r, e) != 0 ||
	    check_ops(json_get(root, "ops"), r, e) != 0)
		return -1;
	return spawned != NULL ? check_spawned(spawned, r, e) : 0;
}

/* Migration puts what it does not know two levels deeper, and what stands in its place as well. */
static int
check_unknown_depth(const struct json *root, struct refusal *r, struct err *e)
{
	const struct json *taken = json_get(json_get(root, "config"), CKPT_V2_MEMBERS), *value;
	struct json_iter it = json_iterate(root);
	const char *const *known;
	struct slice name;

	if (taken != NULL && json_depth(taken, CKPT_MAX_TAKEN_DEPTH) > CKPT_MAX_TAKEN_DEPTH)
		return refuse(r, json_fault_name(JSON_FAULT_DEPTH), taken, e,
		    "`config." CKPT_V2_MEMBERS "` is nested too deeply to be kept");
	while (json_next(&it, &name, &value)) {
		for (known = order; *known != NULL && !slice_is(name, *known); known++)
			;
		if (*known == NULL && json_depth(value, CKPT_MAX_UNKNOWN_DEPTH) > CKPT_MAX_UNKNOWN_DEPTH)
			return refuse(r, json_fault_name(JSON_FAULT_DEPTH), value, e,
			    "a member that is not known is nested too deeply to be kept");
	}
	return 0;
}

int
base_check(const struct json *root, int version, struct refusal *r, struct err *e)
{
	int64_t seq;

	if (version < 3) {
		if (fields_check(root, old_fields, COUNT(old_fields), false, NULL, r, e) != 0 ||
		    check_unknown_depth(root, r, e) != 0 || check_parts(root, r, e) != 0)
			return -1;
		return check_guard(root, r, e);
	}
	if (fields_check(root, base_fields, COUNT(base_fields), true, "unknown_member", r, e) != 0)
		return -1;
	if (!generation_is_valid(json_text(json_get(root, "generation"))))
		return refuse(r, "bad_generation", json_get(root, "generation"), e,
		    "`generation` is not 32 lowercase hex digits");
	if (!json_int64(json_get(root, "journal_seq"), &seq) || seq != 0)
		return refuse(r, "bad_journal_seq", json_get(root, "journal_seq"), e,
		    "`journal_seq` of a base is not 0");
	return check_parts(root, r, e);
}

int
state_check(const struct json *state, struct refusal *r, struct err *e)
{
	if (json_type(state) != JSON_OBJECT)
		return refuse(r, "wrong_type", state, e, "a state is not an object");
	if (fields_check(state, state_fields, COUNT(state_fields), true, "unknown_member", r, e) != 0)
		return -1;
	return check_parts(state, r, e);
}

struct json *
base_state(const struct json *root)
{
	struct json *state = json_remove(json_ref(root), slice_of("version"));

	/* In older files these two would be unknown members, to be kept; a base always has them. */
	if (json_get(root, "journal_seq") != NULL && json_get(root, "generation") != NULL) {
		state = json_remove(state, slice_of("generation"));
		state = json_remove(state, slice_of("journal_seq"));
	}
	return state;
}
