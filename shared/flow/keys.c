/* Every key that a flow document may hold. */
#include <stdio.h>

#include "flowsup/config.h"
#include "flowsup/log.h"
#include "model.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MOST_KEYS 64

static const char duration[] = "a duration such as 90s or 2h30m";
static const char truth[] = "true or false";
static const char text[] = "a text";
static const char id[] = "an id";
static const char ids[] = "a list of ids";
static const char texts[] = "a list of texts";
static const char object[] = "an object";

static const char *const response_words[] = {"text", "json", "jsonl", "none", NULL};
static const char *const output_words[] = {"separate", "merged", NULL};
static const char *const gate_words[] = {"none", "approve", NULL};
static const char *const on_words[] = {"success", "failure", "always", NULL};
static const char *const do_words[] = {"end", "notify", NULL};
static const char *const problem_words[] = {"problems", "all", NULL};
static const char *const crash_words[] = {"crash", NULL};
static const char *const failed_words[] = {"keep", "retry", NULL};
static const char *const arg_words[] = {"string", "integer", "number", "boolean", NULL};

#define AT(type, member) offsetof(struct type, member)
#define HOW(member) offsetof(struct op_fields, how.member)

/* What `defaults` and an operation have in common; `base` is the offset of a struct flow_how. */
#define SHARED_KEYS(base)                                                                          \
	{"timeout", read_duration, (base) + AT(flow_how, timeout_ns), duration, 0, 0, 0, NULL},    \
	{"grace", read_duration, (base) + AT(flow_how, grace_ns), duration, 0, 0, 0, NULL},        \
	{"silence", read_silence, (base), "a duration or {after, do, strict}", 0, 0, 0, NULL},     \
	{"retry", read_retry, (base), object, 0, 0, 0, NULL},                                      \
	{"response", read_word, (base) + AT(flow_how, response), "text, json, jsonl or none", 0,   \
	    0, 0, response_words},                                                                 \
	{"idempotent", read_bool, (base) + AT(flow_how, idempotent), truth, 0, 0, 0, NULL},        \
	{"keeper", read_bool, (base) + AT(flow_how, keeper), truth, 0, 0, 0, NULL},                \
	{"context", read_bool, (base) + AT(flow_how, context), truth, 0, 0, 0, NULL},              \
	{"output", read_flag_word, (base) + AT(flow_how, output_merged), "separate or merged", 0,  \
	    0, 0, output_words},                                                                   \
	{"tty", read_bool, (base) + AT(flow_how, tty), truth, 0, 0, 0, NULL},                      \
	{"messages", read_bool, (base) + AT(flow_how, messages), truth, 0, 0, 0, NULL},            \
	{"cwd", read_text, (base) + AT(flow_how, cwd), text, 0, 0, 0, NULL},                       \
	{"umask", read_umask, (base) + AT(flow_how, umask), "a text of octal digits", 0, 0, 0,     \
	    NULL},                                                                                 \
	{"nice", read_nice, (base), "an integer", 0, -20, 19, NULL},                               \
	{"limits", read_limits, (base), object, 0, 0, 0, NULL},                                    \
	{"leave", read_bool, (base) + AT(flow_how, leave), truth, 0, 0, 0, NULL}

static const struct key document_keys[] = {
    {"name", read_text, AT(document_fields, f.name), text, 0, 0, 0, NULL},
    {"prompt", read_any_text, AT(document_fields, f.prompt), text, 0, 0, 0, NULL},
    {"concurrency", read_unsigned, AT(document_fields, f.concurrency), "an integer", 0, 1, FLOW_MAX_AT_ONCE, NULL},
    {"timeout", read_duration, AT(document_fields, f.timeout_ns), duration, 0, 0, 0, NULL},
    {"max_ops", read_int64, AT(document_fields, f.max_ops), "an integer", 0, 1, FLOW_MAX_OPERATIONS, NULL},
    {"fail_fast", read_bool, AT(document_fields, f.fail_fast), truth, 0, 0, 0, NULL},
    {"reactive", read_reactive, AT(document_fields, f.reactive), "off, all or a list of roles", 0, 0, 0, NULL},
    {"restart", read_restart, AT(document_fields, f.restart), object, 0, 0, 0, NULL},
    {"notify", read_notify, AT(document_fields, f.notify), "an argv or {command, on}", 0, 0, 0, NULL},
    {"planner", read_agent, AT(document_fields, f.planner), object, 0, 0, 0, NULL},
    {"synthesis", read_agent, AT(document_fields, f.synthesis), object, 0, 0, 0, NULL},
    {"args", read_args, AT(document_fields, f.args), object, 0, 0, 0, NULL},
    {"arguments", read_json_object, AT(document_fields, f.arguments), object, KEY_OWN, 0, 0, NULL},
    {"playbook", read_text, AT(document_fields, f.playbook), text, KEY_OWN, 0, 0, NULL},
    {"orphans", read_orphans, AT(document_fields, f.orphans), "keep, end or {keep: DURATION}", 0, 0, 0, NULL},
    {"watchdog", read_duration, AT(document_fields, f.watchdog_ns), duration, 0, 0, 0, NULL},
    {"model_commands", read_bool, AT(document_fields, f.model_commands), truth, 0, 0, 0, NULL},
    {"escalate_max", read_unsigned, AT(document_fields, f.escalate_max), "an integer", 0, 0, 100, NULL},
    {"defaults", read_json_object, AT(document_fields, defaults), object, 0, 0, 0,
	NULL},
    {"env", read_json_object, AT(document_fields, env), object, 0, 0, 0, NULL},
    {"roles", read_json_object, AT(document_fields, roles), object, 0, 0, 0, NULL},
    {"plan", read_json_array, AT(document_fields, plan), "a list of operations", 0,
	0, 0, NULL},
};

static const struct key defaults_keys[] = {SHARED_KEYS(0)};

static const struct key operation_keys[] = {
    {"id", read_id, AT(op_fields, id), id, 0, 0, 0, NULL},
    {"run", read_command, AT(op_fields, run), "shell text", 0, 0, 0, NULL},
    {"exec", read_command_list, AT(op_fields, exec), "a list: program and arguments", 0, 0, 0,
	NULL},
    {"instruction", read_command, AT(op_fields, instruction), text, 0, 0, 0, NULL},
    {"assignee", read_id, HOW(assignee), "the name of a role", 0, 0, 0, NULL},
    {"needs", read_json_array, AT(op_fields, needs), ids, 0, 0, 0, NULL},
    {"inherit_context", read_id, HOW(inherit_context), id, KEY_INSTRUCTION, 0, 0, NULL},
    {"schema", read_schema, HOW(schema), object, 0, 0, 0, NULL},
    {"artifacts", read_paths, HOW(artifacts), "a list of paths", 0, 0, 0, NULL},
    {"gate", read_flag_word, HOW(gate_approve), "approve", 0, 0, 0, gate_words},
    {"env", read_json_object, AT(op_fields, env), object, 0, 0, 0, NULL},
    {"foreach", read_json, AT(op_fields, foreach), "a list, a JSON pointer or {op, pointer}", 0, 0,
	0, NULL},
    SHARED_KEYS(AT(op_fields, how)),
    {"item", read_json, AT(op_fields, item), "the item of a foreach", KEY_OWN, 0, 0, NULL},
    {"never", read_bool, AT(op_fields, never), truth, KEY_OWN, 0, 0, NULL},
    {"agent_id", read_id, AT(op_fields, agent_id), id, KEY_STATE, 0, 0, NULL},
    {"dep_indices", read_json_array, AT(op_fields, dep_indices), "a list of integers", KEY_STATE, 0,
	0, NULL},
    {"node_id", read_json, AT(op_fields, node_id), "32 hexadecimal digits", KEY_STATE, 0, 0, NULL},
    {"task", read_command, AT(op_fields, task), text, KEY_STATE, 0, 0, NULL},
    {"depends_on", read_json, AT(op_fields, depends_on), ids, KEY_STATE, 0, 0, NULL},
    {"inputs", read_json, AT(op_fields, ignored), "anything", KEY_STATE, 0, 0, NULL},
    {"exit_criteria", read_json, AT(op_fields, ignored), "anything", KEY_STATE, 0, 0, NULL},
    {"modes", read_json, AT(op_fields, ignored), "anything", KEY_STATE, 0, 0, NULL},
};

static const struct key role_keys[] = {
    {"provider", read_id, AT(role_fields, role.provider), "the name of a provider", 0, 0, 0, NULL},
    {"model", read_text, AT(role_fields, role.model), text, 0, 0, 0, NULL},
    {"args", read_texts_json, AT(role_fields, role.args), texts, 0, 0, 0, NULL},
    {"artifacts", read_paths, AT(role_fields, role.artifacts), "a list of paths", 0, 0, 0, NULL},
    {"env", read_json_object, AT(role_fields, env), object, 0, 0, 0, NULL},
    {"escalate_to", read_id, AT(role_fields, role.escalate_to), "the name of a role", 0, 0, 0, NULL},
};

static const struct key need_keys[] = {
    {"op", read_id, AT(need_fields, op), id, KEY_REQUIRED, 0, 0, NULL},
    {"on", read_word, AT(need_fields, on), "success, failure or always", 0, 0, 0, on_words},
    {"when", read_json_object, AT(need_fields, when), "{pointer, equals|exists|matches}", 0, 0, 0,
	NULL},
};

static const struct key when_keys[] = {
    {"pointer", read_pointer, AT(when_fields, pointer), "a JSON pointer", KEY_REQUIRED, 0, 0, NULL},
    {"equals", read_json, AT(when_fields, equals), "a value", 0, 0, 0, NULL},
    {"exists", read_json, AT(when_fields, exists), truth, 0, 0, 0, NULL},
    {"matches", read_json, AT(when_fields, matches), "an extended regular expression", 0, 0, 0,
	NULL},
};

static const struct key env_keys[] = {
    {"required", read_bool, AT(env_fields, required), truth, KEY_REQUIRED, 0, 0, NULL},
};

static const struct key retry_keys[] = {
    {"attempts", read_unsigned, AT(flow_retry, attempts), "an integer", 0, 1, 1000, NULL},
    {"backoff", read_duration, AT(flow_retry, backoff_ns), duration, 0, 0, 0, NULL},
    {"factor", read_factor, AT(flow_retry, factor), "a number", 0, 1, 100, NULL},
    {"max", read_duration, AT(flow_retry, max_ns), duration, 0, 0, 0, NULL},
    {"jitter", read_bool, AT(flow_retry, jitter), truth, 0, 0, 0, NULL},
    {"on", read_retry_on, AT(flow_retry, on), "a list of exit codes and failure classes", 0, 0, 0,
	NULL},
};

static const struct key silence_keys[] = {
    {"after", read_duration, AT(flow_how, silence_ns), duration, KEY_REQUIRED, 0, 0, NULL},
    {"do", read_flag_word, AT(flow_how, silence_notify), "end or notify", 0, 0, 0, do_words},
    {"strict", read_bool, AT(flow_how, silence_strict), truth, 0, 0, 0, NULL},
};

static const struct key limits_keys[] = {
    {"cpu", read_cpu, AT(flow_how, limit_cpu_s), duration, 0, 0, 0, NULL},
    {"memory", read_size, AT(flow_how, limit_memory_bytes), "a size such as 512M", 0, 0, 0, NULL},
    {"files", read_int64, AT(flow_how, limit_files), "an integer", 0, 4, 1 << 30, NULL},
};

static const struct key foreach_keys[] = {
    {"op", read_id, AT(foreach_fields, op), id, KEY_REQUIRED, 0, 0, NULL},
    {"pointer", read_pointer, AT(foreach_fields, pointer), "a JSON pointer", KEY_REQUIRED, 0, 0,
	NULL},
};

static const struct key agent_keys[] = {
    {"assignee", read_id, AT(agent_fields, assignee), "the name of a role", KEY_REQUIRED, 0, 0,
	NULL},
    {"instruction", read_text, AT(agent_fields, instruction), text, KEY_REQUIRED, 0, 0, NULL},
};

static const struct key arg_keys[] = {
    {"type", read_word, AT(arg_fields, type), "string, integer, number or boolean", 0, 0, 0,
	arg_words},
    {"default", read_json, AT(arg_fields, otherwise), "a value", 0, 0, 0, NULL},
    {"required", read_json, AT(arg_fields, required), truth, 0, 0, 0, NULL},
    {"help", read_any_text, AT(arg_fields, help), text, 0, 0, 0, NULL},
};

static const struct key notify_keys[] = {
    {"command", read_command_list, AT(notify_fields, command), "a list: program and arguments",
	KEY_REQUIRED, 0, 0, NULL},
    {"on", read_word, AT(notify_fields, on), "problems or all", 0, 0, 0, problem_words},
};

static const struct key restart_keys[] = {
    {"on", read_word, AT(restart_fields, on), "crash", 0, 0, 0, crash_words},
    {"attempts", read_unsigned, AT(restart_fields, attempts), "an integer", 0, 1, 1000, NULL},
    {"failed", read_word, AT(restart_fields, failed), "keep or retry", 0, 0, 0, failed_words},
};

static const struct key orphans_keys[] = {
    {"keep", read_duration, AT(orphans_fields, keep_ns), duration, KEY_REQUIRED, 0, 0, NULL},
};

static const char *const secrets_words[] = {"withhold", "store", NULL};
static const char *const durability_words[] = {"full", "relaxed", NULL};

static const struct key config_keys[] = {
    {"keep", read_keep, AT(config_fields, keep), object, 0, 0, 0, NULL},
    {"notify", read_notify, AT(config_fields, notify), "an argv or {command, on}", 0, 0, 0, NULL},
    {"secrets", read_word, AT(config_fields, secrets), "withhold or store", 0, 0, 0, secrets_words},
    {"inline_limit", read_inline_limit, AT(config_fields, inline_limit), "a size such as 256k", 0, 1,
	CONFIG_INLINE_MOST, NULL},
    {"durability", read_word, AT(config_fields, durability), "full or relaxed", 0, 0, 0,
	durability_words},
    {"watchdog", read_duration, AT(config_fields, watchdog_ns), duration, 0, 0, 0, NULL},
};

static const struct key keep_keys[] = {
    {"days", read_int64, AT(keep_fields, days), "an integer", 0, 0, CONFIG_DAYS_MOST, NULL},
    {"runs", read_int64, AT(keep_fields, runs), "an integer", 0, 0, CONFIG_RUNS_MOST, NULL},
    {"failed_days", read_int64, AT(keep_fields, failed_days), "an integer", 0, 0, CONFIG_DAYS_MOST,
	NULL},
};

#define TABLE(what, keys) {what, keys, COUNT(keys)}
const struct key_table key_tables[OBJECTS] = {
    [OBJECT_DOCUMENT] = TABLE("a flow", document_keys),
    [OBJECT_DEFAULTS] = TABLE("\"defaults\"", defaults_keys),
    [OBJECT_OPERATION] = TABLE("an operation", operation_keys),
    [OBJECT_ROLE] = TABLE("a role", role_keys),
    [OBJECT_NEED] = TABLE("a need", need_keys),
    [OBJECT_WHEN] = TABLE("\"when\"", when_keys),
    [OBJECT_ENV] = TABLE("a variable", env_keys),
    [OBJECT_RETRY] = TABLE("\"retry\"", retry_keys),
    [OBJECT_SILENCE] = TABLE("\"silence\"", silence_keys),
    [OBJECT_LIMITS] = TABLE("\"limits\"", limits_keys),
    [OBJECT_FOREACH] = TABLE("\"foreach\"", foreach_keys),
    [OBJECT_AGENT] = TABLE("a planner or synthesis", agent_keys),
    [OBJECT_ARG] = TABLE("an argument", arg_keys),
    [OBJECT_NOTIFY] = TABLE("\"notify\"", notify_keys),
    [OBJECT_RESTART] = TABLE("\"restart\"", restart_keys),
    [OBJECT_ORPHANS] = TABLE("\"orphans\"", orphans_keys),
    [OBJECT_CONFIG] = TABLE("the configuration", config_keys),
    [OBJECT_KEEP] = TABLE("\"keep\"", keep_keys),
};

_Static_assert(COUNT(operation_keys) <= MOST_KEYS, "seen keys are one word of bits");
_Static_assert(sizeof(enum flow_response) == sizeof(unsigned), "read_word writes an unsigned");

static bool
is_allowed(const struct reader *r, const struct key_table *t, const struct key *k)
{
	if (k->flags & KEY_STATE)
		return r->origin == ORIGIN_STATE;
	if (!(k->flags & KEY_OWN) || r->origin == ORIGIN_OWN || r->origin == ORIGIN_STATE)
		return true;
	return r->origin != ORIGIN_PERSON && t == &key_tables[OBJECT_DOCUMENT];
}

static const struct key *
find_key(const struct reader *r, const struct key_table *t, struct slice name)
{
	size_t i;

	/* Most differ in their first letter. */
	for (i = 0; name.len > 0 && i < t->nkeys; i++)
		if (t->keys[i].name[0] == name.data[0] && slice_is(name, t->keys[i].name) &&
		    is_allowed(r, t, &t->keys[i]))
			return &t->keys[i];
	return NULL;
}

/* How other programs call what has another name here. */
static const struct {
	const char *theirs, *ours;
} other_words[] = {
    {"command", "run"}, {"cmd", "run"}, {"script", "run"}, {"shell", "run"}, {"argv", "exec"},
    {"depends_on", "needs"}, {"dependsOn", "needs"}, {"depends", "needs"}, {"dependencies", "needs"},
    {"after", "needs"}, {"deps", "needs"},
    {"name", "id"}, {"prompt", "instruction"}, {"agent", "assignee"}, {"role", "assignee"},
    {"retries", "retry"}, {"environment", "env"}, {"vars", "env"}, {"outputs", "artifacts"},
    {"dir", "cwd"}, {"workdir", "cwd"}, {"working_dir", "cwd"}, {"workingDir", "cwd"}, {"working_directory", "cwd"},
    {"tasks", "plan"}, {"steps", "plan"}, {"jobs", "plan"}, {"nodes", "plan"}, {"operations", "plan"},
    {"params", "args"}, {"parameters", "args"}, {"inputs", "args"},
    {"parallelism", "concurrency"}, {"max_parallel", "concurrency"}, {"maxActiveSteps", "concurrency"},
    {"handlerOn", "notify"}, {"model_spec", "model"}, {"limit", "attempts"},
};

/* Of the names, the one that people mean who write another program's; NULL: none. */
static const char *
translated(struct slice name, const char *const *names, size_t n)
{
	size_t i, k;

	for (i = 0; i < COUNT(other_words); i++)
		for (k = 0; k < n && slice_is(name, other_words[i].theirs); k++)
			if (strcmp(names[k], other_words[i].ours) == 0)
				return names[k];
	return NULL;
}

static void
unknown_key(struct reader *r, const struct key_table *t, const struct json *name)
{
	struct slice text_of = json_text(name);
	struct flow_diagnostic *p;
	const char *names[MOST_KEYS], *nearest;
	char shown[81];
	size_t i, n = 0;

	snprintf(shown, sizeof(shown), "%.*s", (int)(text_of.len > 80 ? 80 : text_of.len),
	    text_of.data);
	p = problem(r, name, "%s has no key \"%s\"", t->what, shown);
	for (i = 0; i < t->nkeys; i++)
		if (is_allowed(r, t, &t->keys[i]))
			names[n++] = t->keys[i].name;
	nearest = translated(text_of, names, n);
	if (nearest == NULL)
		nearest = text_nearest(shown, names, n);
	if (slice_is(text_of, "<<"))
		hint(p, "merge keys are not expanded; settings for all operations go to \"defaults\"");
	else if (nearest != NULL)
		hint(p, "did you mean \"%s\"?", nearest);
}

static void
missing_keys(struct reader *r, const struct key_table *t, const struct json *v, uint64_t seen)
{
	size_t i;

	for (i = 0; i < t->nkeys; i++)
		if ((t->keys[i].flags & KEY_REQUIRED) && !(seen >> i & 1))
			problem(r, v, "%s needs the key \"%s\"", t->what, t->keys[i].name);
}

void
read_object(struct reader *r, enum object kind, const struct json *v, void *to)
{
	const struct key_table *t = &key_tables[kind];
	struct json_iter it = json_iterate(v);
	const struct json *value;
	const struct key *k;
	struct slice name;
	uint64_t seen = 0;

	if (json_type(v) != JSON_OBJECT) {
		problem(r, v, "%s must be an object, not %s", t->what, found(v));
		return;
	}
	while (json_next(&it, &name, &value)) {
		k = find_key(r, t, name);
		if (k == NULL) {
			unknown_key(r, t, json_iter_name(&it));
			continue;
		}
		seen |= UINT64_C(1) << (k - t->keys);
		k->read(r, k, value, (char *)to + k->offset);
	}
	missing_keys(r, t, v, seen);
}
