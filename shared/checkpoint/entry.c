#include "entry.h"
#include "flowsup/fs.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* An optional member may also be null: absent and null mean the same, and are both kept. */
#define EXTENSIONS                                                                                 \
	{"result_digest", T(STRING) | T(NULL), false},                                             \
	{CKPT_OUTPUT, T(STRING) | T(OBJECT) | T(NULL), false},                                     \
	{"artifacts", T(ARRAY) | T(NULL), false},                                                  \
	{"attempts", T(INTEGER) | T(NULL), false},                                                 \
	{"started_at", T(INTEGER) | T(REAL) | T(NULL), false},                                     \
	{"ended_at", T(INTEGER) | T(REAL) | T(NULL), false},                                       \
	{"usage", T(OBJECT) | T(NULL), false},                                                     \
	{"error", T(OBJECT) | T(NULL), false},                                                     \
	{"conversation", T(OBJECT) | T(STRING) | T(NULL), false},                                  \
	{"turns", T(INTEGER) | T(NULL), false},                                                    \
	{CKPT_END, T(OBJECT) | T(NULL), false},                                                    \
	{"response_lossy", T(BOOL) | T(NULL), false},                                              \
	{CKPT_LITERAL, T(BOOL) | T(NULL), false},                                                  \
	{CKPT_ATTEMPT_PATH, T(STRING) | T(NULL), false}

static const struct field op_fields[] = {
	{"agent_id", T(STRING), true},
	{"status", T(STRING), true},
	{"response", T_ANY, true},
	EXTENSIONS,
};

static const struct field spawned_fields[] = {
	{"node_id", T(STRING), true},
	{"status", T(STRING), true},
	{"response", T_ANY, true},
	{"operation", T_ANY, false},
	{"assignee", T(STRING) | T(NULL), false},
	{"instruction", T_ANY, false},
	{"parent_id", T(STRING) | T(NULL), false},
	{"spawn_id", T(STRING) | T(INTEGER) | T(NULL), false},
	{"context", T_ANY, false},
	{"emitter_workload", T_ANY, false},
	{"emitter_contains_user_settings", T(BOOL) | T(NULL), false},
	{"escalated_from", T(STRING) | T(NULL), false},
	{"request_key", T(STRING) | T(NULL), false},
	{"independent", T(BOOL) | T(NULL), false},
	{"artifacts_expected", T(ARRAY) | T(NULL), false},
	EXTENSIONS,
};

static const struct field artifact_fields[] = {
	{"path", T(STRING), true},
	{"size", T(INTEGER) | T(NULL), false},
	{"digest", T(STRING) | T(NULL), false},
};

static const struct field output_fields[] = {
	{"file", T(STRING), true},
	{"size", T(INTEGER) | T(NULL), false},
	{"digest", T(STRING), true},
};

const char *
entry_identity_name(enum ckpt_kind kind)
{
	return kind == CKPT_SPAWNED ? "node_id" : "agent_id";
}

const struct json *
entry_identity(enum ckpt_kind kind, const struct json *entry)
{
	const struct json *id = json_get(entry, entry_identity_name(kind));

	return id != NULL && json_type(id) == JSON_STRING ? id : NULL;
}

static bool
status_fits(enum ckpt_kind kind, struct slice status)
{
	return slice_is(status, "completed") || slice_is(status, "failed") ||
	    (kind == CKPT_SPAWNED && slice_is(status, "pending"));
}

/* ---- What the members of an entry say ---- */

static int
check_count(const struct json *object, const char *name, struct refusal *r, struct err *e)
{
	const struct json *v = json_get(object, name);
	int64_t n;

	if (v == NULL || json_type(v) == JSON_NULL || (json_int64(v, &n) && n >= 0))
		return 0;
	refuse(r, "out_of_range", v, NULL, "");
	return err_set(e, ERR_CHECKPOINT, "`%s` is none of 0 to 2^63-1", name);
}

/* What was carried over lies where it lay then, and has an absolute path. */
static int
check_path(const struct json *v, bool carried, struct refusal *r, struct err *e)
{
	const char *path = json_cstr_of(v);

	if (path != NULL && (fs_path_is_inside(path) || (carried && path[0] == '/')))
		return 0;
	return refuse(r, "bad_path", v, e, "a path is empty, or leads out of its directory");
}

static int
check_artifact(const struct json *artifact, struct refusal *r, struct err *e)
{
	if (json_type(artifact) != JSON_OBJECT)
		return refuse(r, "wrong_type", artifact, e, "an element of `artifacts` is not an object");
	if (fields_check(artifact, artifact_fields, COUNT(artifact_fields), false, NULL, r, e) != 0 ||
	    check_count(artifact, "size", r, e) != 0)
		return -1;
	return check_path(json_get(artifact, "path"), false, r, e);
}

static int
check_artifacts(const struct json *entry, struct refusal *r, struct err *e)
{
	struct json_iter it = json_iterate(json_get(entry, "artifacts"));
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (check_artifact(one, r, e) != 0)
			return -1;
	it = json_iterate(json_get(entry, "artifacts_expected"));
	while (json_next(&it, NULL, &one)) {
		if (json_type(one) != JSON_STRING)
			return refuse(r, "wrong_type", one, e,
			    "an element of `artifacts_expected` is not a string");
		if (check_path(one, false, r, e) != 0)
			return -1;
	}
	return 0;
}

static int
check_output(const struct json *entry, struct refusal *r, struct err *e)
{
	const struct json *output = json_get(entry, CKPT_OUTPUT), *attempt = json_get(entry, CKPT_ATTEMPT_PATH);

	if (json_type(output) == JSON_STRING && !slice_is(json_text(output), CKPT_OF_RESPONSE))
		return refuse(r, "unknown_output", output, e,
		    "`" CKPT_OUTPUT "` is neither \"" CKPT_OF_RESPONSE "\" nor a file");
	if (json_type(output) == JSON_OBJECT &&
	    (fields_check(output, output_fields, COUNT(output_fields), false, NULL, r, e) != 0 ||
		check_count(output, "size", r, e) != 0 ||
		check_path(json_get(output, "file"), true, r, e) != 0))
		return -1;
	return json_type(attempt) == JSON_STRING ? check_path(attempt, true, r, e) : 0;
}

static int
check_members(const struct json *entry, struct refusal *r, struct err *e)
{
	if (check_count(entry, "attempts", r, e) != 0 || check_count(entry, "turns", r, e) != 0 ||
	    check_artifacts(entry, r, e) != 0)
		return -1;
	return check_output(entry, r, e);
}

int
entry_check(enum ckpt_kind kind, const struct json *entry, struct refusal *r, struct err *e)
{
	const bool spawned = kind == CKPT_SPAWNED;
	struct slice status;

	if (json_type(entry) != JSON_OBJECT)
		return refuse(r, "wrong_type", entry, e, "an entry is not an object");
	if (json_get(entry, entry_identity_name(spawned ? CKPT_OP : CKPT_SPAWNED)) != NULL)
		return refuse(r, "foreign_identity", entry, e,
		    "an entry has the identity of the other kind");
	if (json_get(entry, entry_identity_name(kind)) == NULL)
		return refuse(r, "missing_identity", entry, e, "an entry has no identity");
	if (fields_check(entry, spawned ? spawned_fields : op_fields,
	    spawned ? COUNT(spawned_fields) : COUNT(op_fields), false, NULL, r, e) != 0)
		return -1;
	if (json_text(entry_identity(kind, entry)).len == 0)
		return refuse(r, "missing_identity", entry, e, "an entry's identity is empty");
	status = json_text(json_get(entry, "status"));
	if (!status_fits(kind, status))
		return refuse(r, "unknown_status", json_get(entry, "status"), e,
		    "an entry's status is none that its kind can have");
	if (slice_is(status, "pending") && json_type(json_get(entry, "response")) != JSON_NULL)
		return refuse(r, "pending_response", entry, e,
		    "a pending entry has a response that is not null");
	return check_members(entry, r, e);
}
