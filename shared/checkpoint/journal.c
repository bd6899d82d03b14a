#include <inttypes.h>

#include "base.h"
#include "entry.h"
#include "journal.h"

static const char *const kind_names[] = {[CKPT_OP] = "op", [CKPT_SPAWNED] = "spawned"};

static const struct field record_fields[] = {
	{"version", T_ANY, true},
	{"generation", T(STRING), true},
	{"seq", T(INTEGER), true},
	{"kind", T(STRING), true},
	{"entry", T(OBJECT), true},
	{"flow_context", T(NULL) | T(OBJECT), true},
};
enum { RECORD_FIELDS = sizeof(record_fields) / sizeof(record_fields[0]) };

static const struct field delta_fields[] = {{"patch", T(ARRAY), true}};

void
record_encode(struct buf *to, const char *generation, uint64_t seq, enum ckpt_kind kind,
    const struct json *entry, const struct json *patch, struct span *encoded)
{
	buf_printf(to, "{\"version\":3,\"generation\":\"%s\",\"seq\":%" PRIu64 ",\"kind\":\"%s\",\"entry\":",
	    generation, seq, kind_names[kind]);
	encoded->from = to->len;
	json_write(to, entry);
	encoded->len = to->len - encoded->from;
	buf_puts(to, ",\"flow_context\":");
	if (patch == NULL) {
		buf_puts(to, "null}\n");
		return;
	}
	buf_puts(to, "{\"patch\":");
	json_write(to, patch);
	buf_puts(to, "}}\n");
}

static int
check_version(const struct json *record, struct refusal *r, struct err *e)
{
	const struct json *v = json_get(record, "version");
	int64_t version;

	if (json_type(record) != JSON_OBJECT)
		return refuse(r, "wrong_type", record, e, "a record is not an object");
	if (v != NULL && (!json_int64(v, &version) || version != 3))
		return refuse(r, "unknown_version", v, e, "a record's `version` is not 3");
	return 0;
}

static int
find_kind(const struct json *record, enum ckpt_kind *kind, struct refusal *r, struct err *e)
{
	struct slice name = json_text(json_get(record, "kind"));

	for (*kind = CKPT_OP; *kind <= CKPT_SPAWNED; (*kind)++)
		if (slice_is(name, kind_names[*kind]))
			return 0;
	return refuse(r, "unknown_kind", json_get(record, "kind"), e,
	    "a record's `kind` is neither op nor spawned");
}

/* Everything that can be said of a record without the state. */
static int
check_record(const struct json *record, enum ckpt_kind *kind, struct refusal *r, struct err *e)
{
	const struct json *delta;
	int64_t seq;

	if (check_version(record, r, e) != 0 ||
	    fields_check(record, record_fields, RECORD_FIELDS, true, "unknown_member", r, e) != 0)
		return -1;
	if (!generation_is_valid(json_text(json_get(record, "generation"))))
		return refuse(r, "bad_generation", json_get(record, "generation"), e,
		    "a record's `generation` is not 32 lowercase hex digits");
	if (!json_int64(json_get(record, "seq"), &seq) || seq < 1)
		return refuse(r, "bad_sequence", json_get(record, "seq"), e,
		    "a record's `seq` is not a number from 1 to 2^63-1");
	if (find_kind(record, kind, r, e) != 0)
		return -1;
	delta = json_get(record, "flow_context");
	if (json_type(delta) == JSON_OBJECT &&
	    fields_check(delta, delta_fields, 1, true, "unknown_member", r, e) != 0)
		return -1;
	/* In a base it stands one level deeper than here. */
	if (json_depth(json_get(record, "entry"), CKPT_MAX_ENTRY_DEPTH) > CKPT_MAX_ENTRY_DEPTH)
		return refuse(r, json_fault_name(JSON_FAULT_DEPTH), json_get(record, "entry"), e,
		    "an entry is nested too deeply");
	return entry_check(*kind, json_get(record, "entry"), r, e);
}

static int
check_sequence(const struct json *record, int64_t expected, struct refusal *r, struct err *e)
{
	int64_t seq = 0;

	if (json_int64(json_get(record, "seq"), &seq) && seq == expected)
		return 0;
	refuse(r, seq > expected ? "sequence_gap" : "sequence_repeat", json_get(record, "seq"), e, "");
	return err_set(e, ERR_CHECKPOINT, "record %" PRId64 " stands where %" PRId64 " is due", seq,
	    expected);
}

/* A context stands in a base one level deep, and could not be read there if it were nested deeper. */
static int
check_patch_depth(const struct json *patch, struct refusal *r, struct err *e)
{
	struct json_iter it = json_iterate(patch);
	const struct json *one;
	struct slice path;
	unsigned depth;
	size_t i;

	while (json_next(&it, NULL, &one)) {
		path = json_text(json_get(one, "path"));
		depth = json_depth(json_get(one, "value"), CKPT_MAX_CONTEXT_DEPTH);
		for (i = 0; i < path.len && depth > 0 && depth <= CKPT_MAX_CONTEXT_DEPTH; i++)
			depth += path.data[i] == '/';
		if (depth > CKPT_MAX_CONTEXT_DEPTH)
			return refuse(r, json_fault_name(JSON_FAULT_DEPTH), one, e,
			    "a patch makes a context that is nested too deeply");
	}
	return 0;
}

static enum record_result
apply(const struct json *record, enum ckpt_kind kind, struct state *s, struct refusal *r,
    struct err *e)
{
	const struct json *delta = json_get(record, "flow_context");
	struct json *context = NULL;
	enum record_result result = RECORD_APPLIED;

	if (json_type(delta) == JSON_OBJECT && check_patch_depth(json_get(delta, "patch"), r, e) != 0)
		return RECORD_REFUSED;
	if (json_type(delta) == JSON_OBJECT &&
	    json_patch(s->context, json_get(delta, "patch"), &context, e) != 0) {
		if (e->code == ERR_NOMEM)
			return RECORD_ERROR;
		refuse(r, e->code == ERR_SYNTAX ? "bad_patch" : "inapplicable_patch", delta, NULL, "");
		e->code = ERR_CHECKPOINT;
		return RECORD_REFUSED;
	}
	if (context != NULL && json_type(context) != JSON_OBJECT) {
		refuse(r, "inapplicable_patch", delta, e, "a patch leaves no object");
		result = RECORD_REFUSED;
	} else if (state_apply(s, kind, json_get(record, "entry"), (struct slice){"", 0}, context, e) != 0)
		result = RECORD_ERROR;
	json_unref(context);
	return result;
}

static enum record_result
parse(struct slice line, struct json **record, struct refusal *r, struct err *e)
{
	const struct json_options o = {.max_bytes = JSON_MAX_LINE};
	struct json_failure failure = {0};

	if (json_parse(line, &o, record, &failure, e) == 0)
		return RECORD_APPLIED;
	if (failure.fault == JSON_FAULT_MEMORY)
		return RECORD_ERROR;
	refuse(r, json_fault_name(failure.fault), NULL, NULL, "");
	r->offset = (int64_t)failure.where.offset;
	e->code = ERR_CHECKPOINT;
	return RECORD_REFUSED;
}

bool
journal_line(struct slice *rest, struct slice *line)
{
	const char *end = rest->len > 0 ? memchr(rest->data, '\n', rest->len) : NULL;

	if (end == NULL)
		return false;
	*line = (struct slice){rest->data, (size_t)(end - rest->data)};
	rest->data += line->len + 1;
	rest->len -= line->len + 1;
	return true;
}

enum record_result
record_apply(struct slice line, const char *generation, int64_t seq, struct state *s,
    struct refusal *r, struct err *e)
{
	enum record_result result;
	struct json *record = NULL;
	enum ckpt_kind kind = CKPT_OP;

	result = parse(line, &record, r, e);
	if (result != RECORD_APPLIED)
		return result;
	result = RECORD_REFUSED;
	if (check_record(record, &kind, r, e) != 0)
		;
	else if (!slice_is(json_text(json_get(record, "generation")), generation))
		result = RECORD_STALE;
	else if (check_sequence(record, seq, r, e) == 0)
		result = apply(record, kind, s, r, e);
	r->at = NULL;
	json_unref(record);
	return result;
}

int
record_stale(struct slice line, const char *generation, enum ckpt_kind *kind, struct json **entry,
    struct json **patch, struct err *e)
{
	const struct json *of_context;
	struct json *record = NULL;

	*entry = *patch = NULL;
	if (parse(line, &record, &(struct refusal){0}, e) != RECORD_APPLIED)
		return -1;
	if (check_record(record, kind, NULL, e) != 0) {
		json_unref(record);
		return -1;
	}
	if (!slice_is(json_text(json_get(record, "generation")), generation)) {
		of_context = json_get(json_get(record, "flow_context"), "patch");
		*entry = json_ref(json_get(record, "entry"));
		*patch = of_context != NULL ? json_ref(of_context) : NULL;
	}
	json_unref(record);
	return 0;
}
