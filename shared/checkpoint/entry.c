#include "entry.h"

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
	{"conversation", T(OBJECT) | T(STRING) | T(NULL), false}

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
	return 0;
}
