/* A provider's file: one table of keys per object; the first problem is the error, with its place. */
#include <signal.h>
#include <stdlib.h>

#include "flowsup/clock.h"
#include "provider_keys.h"

/* ---- Objects of the file ---- */

static int
read_format(struct source *s, const struct key *k, const struct json *v, void *to)
{
	int64_t n;

	(void)to;
	if (!json_int64(v, &n))
		return key_wrong_type(s, k, v, "an integer");
	if (n != PROVIDER_FORMAT)
		return key_refuse(s, v, "\"%s\" %lld is not known; this version reads %d", k->name,
		    (long long)n, PROVIDER_FORMAT);
	return 0;
}

static const char *const prompt_words[] = {"stdin", "argument", "file", NULL};
static const char *const format_words[] = {"text", "json", "jsonl", "json-array", NULL};
static const char *const id_words[] = {"none", "minted", "command", "found", NULL};
_Static_assert(COUNT(prompt_words) == PROVIDER_FILE + 2, "one word for each channel");
_Static_assert(COUNT(format_words) == PROVIDER_JSON_ARRAY + 2, "one word for each format");
_Static_assert(COUNT(id_words) == PROVIDER_ID_FOUND + 2, "one word for each source of an id");
_Static_assert(sizeof(enum provider_prompt) == sizeof(unsigned), "read_word writes an unsigned");

#define OWN_PREFIX "FLOWSUP_"
#define AT(member) offsetof(struct draft, member)

static const struct key start_keys[] = {
    {"new", key_argv, AT(p.starts[PROVIDER_NEW]), true, NULL},
    {"resume", key_argv, AT(p.starts[PROVIDER_RESUME]), false, NULL},
    {"fork", key_argv, AT(p.starts[PROVIDER_FORK]), false, NULL},
};
static const struct key command_keys[] = {
    {"prompt", key_words, AT(p.command_prompt), true, NULL},
    {"unless", key_words, AT(p.command_unless), false, NULL},
    {"new", key_argv, AT(p.command_new), true, NULL},
    {"resume", key_argv, AT(p.command_resume), true, NULL},
};
static const struct key home_keys[] = {
    {"variable", key_text, AT(p.home_variable), true, NULL},
    {"default", key_text, AT(p.home_default), true, NULL},
};
static const struct key environment_keys[] = {
    {"set", key_texts, AT(p.set), false, NULL},
    {"unset", key_names, AT(p.unset), false, NULL},
};
static const struct key output_keys[] = {
    {"format", key_word, AT(p.format), true, format_words},
    {"keep_escapes", key_bool, AT(p.keep_ansi), false, NULL},
    {"terminal", rule_condition, AT(r.terminal), false, NULL},
    {"terminal_optional", key_bool, AT(p.terminal_optional), false, NULL},
    {"acknowledged", rule_condition, AT(r.acknowledged), false, NULL},
    {"failed", rule_condition, AT(r.failed), false, NULL},
    {"answer", rule_selectors, AT(r.answer), false, NULL},
    {"conversation", rule_selectors, AT(r.id), false, NULL},
    {"error", rule_selectors, AT(r.error), false, NULL},
    {"usage", rule_usage, 0, false, NULL},
};
#define TABLE(what, keys) {what, keys, COUNT(keys)}
static const struct table start_table = TABLE("\"start\"", start_keys);
static const struct table command_table = TABLE("\"command\"", command_keys);
static const struct table home_table = TABLE("\"home\"", home_keys);
static const struct table environment_table = TABLE("\"environment\"", environment_keys);
static const struct table output_table = TABLE("\"output\"", output_keys);

static int
read_most(struct source *s, const struct key *k, const struct json *v, void *to)
{
	if (!json_uint64(v, to) || *(uint64_t *)to == 0)
		return key_wrong_type(s, k, v, "a number of bytes");
	return 0;
}

static const struct key instruction_keys[] = {
    {"most", read_most, AT(p.instruction_most), false, NULL},
    {"commands", key_words, AT(p.commands), false, NULL},
};
static const struct table instruction_table = TABLE("\"instruction\"", instruction_keys);

static int
read_instruction(struct source *s, const struct key *k, const struct json *v, void *to)
{
	(void)k;
	return keys_read(s, &instruction_table, v, to);
}

static int
read_start(struct source *s, const struct key *k, const struct json *v, void *to)
{
	(void)k;
	return keys_read(s, &start_table, v, to);
}

static int
read_command(struct source *s, const struct key *k, const struct json *v, void *to)
{
	(void)k;
	return keys_read(s, &command_table, v, to);
}

static int
read_home(struct source *s, const struct key *k, const struct json *v, void *to)
{
	(void)k;
	return keys_read(s, &home_table, v, to);
}

static int
read_environment(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct json_iter it = json_iterate(json_get(v, "set"));
	const struct json *value;
	struct slice name;

	(void)k;
	if (keys_read(s, &environment_table, v, to) != 0)
		return -1;
	while (json_next(&it, &name, &value))
		if (name.len >= sizeof(OWN_PREFIX) - 1 && memcmp(name.data, OWN_PREFIX, sizeof(OWN_PREFIX) - 1) == 0)
			return key_refuse(s, value, "names that begin with " OWN_PREFIX " are flowsup's own");
	return 0;
}

static int
read_output(struct source *s, const struct key *k, const struct json *v, void *to)
{
	(void)k;
	return keys_read(s, &output_table, v, to);
}

static int
read_store(struct source *s, const struct key *k, const struct json *v, void *to)
{
	if (key_text(s, k, v, to) != 0)
		return -1;
	if (strchr(json_cstr_of(v), '/') != NULL || json_cstr_of(v)[0] == '.')
		return key_refuse(s, v, "\"store\" is the name of a file, without a directory");
	return 0;
}

static const struct key conversation_keys[] = {
    {"id", key_word, AT(p.id), true, id_words},
    {"mint", key_argv, AT(p.mint), false, NULL},
    {"home", read_home, 0, false, NULL},
    {"cwd", key_bool, AT(p.bound_to_cwd), false, NULL},
    {"store", read_store, AT(p.store), false, NULL},
    {"chat", key_pattern, AT(p.chat_pattern), false, NULL},
    {"keep_chat", key_bool, AT(p.keeps_chat), false, NULL},
};
static const struct table conversation_table = TABLE("\"conversation\"", conversation_keys);

static int
read_conversation(struct source *s, const struct key *k, const struct json *v, void *to)
{
	(void)k;
	return keys_read(s, &conversation_table, v, to);
}

static const char *const signal_words[] = {"HUP", "INT", "QUIT", "USR1", "USR2", NULL};
static const int signal_numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};
struct step {
	unsigned word;
	int64_t wait_ns;
};
static const struct key step_keys[] = {
    {"signal", key_word, offsetof(struct step, word), true, signal_words},
    {"wait", key_duration, offsetof(struct step, wait_ns), true, NULL},
};
static const struct table step_table = TABLE("a step of \"stop\"", step_keys);

static int
read_stop(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct provider *p = &s->d->p;
	struct json_iter it = json_iterate(v);
	const struct json *item;
	struct step step;

	(void)to;
	if (key_members(s, k, v, JSON_ARRAY, "steps", 0, PROVIDER_MAX_SIGNALS) != 0)
		return -1;
	while (json_next(&it, NULL, &item)) {
		step = (struct step){0, 0};
		if (keys_read(s, &step_table, item, &step) != 0)
			return -1;
		p->signals[p->nsignals++] =
		    (struct provider_signal){signal_numbers[step.word], step.wait_ns};
	}
	return 0;
}

static const struct key provider_keys[] = {
    {"provider", read_format, 0, true, NULL},
    {"name", key_text, AT(p.name), true, NULL},
    {"title", key_text, AT(p.title), false, NULL},
    {"verified", key_text_or_null, AT(p.verified), true, NULL},
    {"version", key_argv, AT(p.version), false, NULL},
    {"reads_user_settings", key_bool, AT(p.reads_user_settings), true, NULL},
    {"shell", key_bool, AT(p.shell), false, NULL},
    {"prompt", key_word, AT(p.prompt), true, prompt_words},
    {"instruction", read_instruction, 0, false, NULL},
    {"start", read_start, 0, true, NULL},
    {"command", read_command, 0, false, NULL},
    {"conversation", read_conversation, 0, true, NULL},
    {"environment", read_environment, 0, false, NULL},
    {"output", read_output, 0, true, NULL},
    {"exit_0_reliable", key_bool, AT(p.exit_0_reliable), true, NULL},
    {"failures", rule_failures, 0, false, NULL},
    {"stop", read_stop, 0, false, NULL},
    {"drain", key_duration, AT(p.drain_ns), false, NULL},
};
static const struct table provider_table = TABLE("a provider", provider_keys);

/* ---- What must fit together ---- */

static int
check_start(struct source *s, enum provider_start start)
{
	const struct provider *p = &s->d->p;
	const struct json *argv = p->starts[start];

	if (argv == NULL)
		return 0;
	if (provider_argv_has(argv, PLACE_PROMPT) != (p->prompt != PROVIDER_STDIN))
		return key_refuse(s, argv, p->prompt == PROVIDER_STDIN
			? "the prompt comes on standard input: {prompt} stands for nothing"
			: "the prompt comes as {prompt}, which is not there");
	if (start == PROVIDER_NEW && provider_argv_has(argv, PLACE_OLD))
		return key_refuse(s, argv, "a new conversation has no {old}");
	if (start != PROVIDER_NEW && !provider_argv_has(argv, PLACE_OLD) && !provider_argv_has(argv, PLACE_CHAT) &&
	    !provider_argv_has(argv, PLACE_STORE))
		return key_refuse(s, argv, "says nowhere which conversation: {old}, {chat} or {store}");
	if (provider_argv_has(argv, PLACE_CHAT) && p->chat_pattern == NULL)
		return key_refuse(s, argv, "{chat} needs \"chat\" in \"conversation\"");
	if (provider_argv_has(argv, PLACE_STORE) != (p->store != NULL))
		return key_refuse(s, argv, "{store} and \"store\" in \"conversation\" go together");
	if (provider_argv_has(argv, PLACE_OLD) && p->id == PROVIDER_ID_NONE)
		return key_refuse(s, argv, "{old} needs an id, and \"id\" of \"conversation\" is none");
	if (provider_argv_has(argv, PLACE_SID) && p->id != PROVIDER_ID_MINTED && p->id != PROVIDER_ID_COMMAND)
		return key_refuse(s, argv, "{sid} needs an id that is minted or comes from a command");
	return 0;
}

static int
check_output(struct source *s, const struct json *document)
{
	const struct draft *d = s->d;
	const struct json *at = json_get(document, "output");
	bool text = d->p.format == PROVIDER_TEXT;

	if (text && json_length(at) > 1 + (size_t)(json_get(at, "keep_escapes") != NULL))
		return key_refuse(s, at, "output of the format text has no records to ask");
	if (!text && d->r.answer.count == 0)
		return key_refuse(s, at, "\"output\" needs the key \"answer\"");
	if (!text && d->p.id == PROVIDER_ID_FOUND && d->r.id.count == 0)
		return key_refuse(s, at, "an id that is found needs \"conversation\" in \"output\"");
	if (text && d->p.id == PROVIDER_ID_FOUND)
		return key_refuse(s, at, "no id can be found in output of the format text");
	return 0;
}

/* Its output is not read, so the id must be known before: it is made here. */
static int
check_command(struct source *s)
{
	const struct provider *p = &s->d->p;

	if (p->command_resume == NULL)
		return 0;
	if (!provider_argv_has(p->command_new, PLACE_SID))
		return key_refuse(s, p->command_new, "says nowhere which conversation begins: {sid}");
	if (!provider_argv_has(p->command_resume, PLACE_OLD))
		return key_refuse(s, p->command_resume, "says nowhere which conversation goes on: {old}");
	return 0;
}

static bool
has_place(const struct provider *p, enum provider_place place)
{
	unsigned start;

	for (start = PROVIDER_NEW; start < PROVIDER_STARTS; start++)
		if (p->starts[start] != NULL && provider_argv_has(p->starts[start], place))
			return true;
	return p->command_new != NULL && provider_argv_has(p->command_new, place);
}

/* What is made for a command that never asks for it. */
static int
check_used(struct source *s, const struct json *document)
{
	const struct draft *d = s->d;
	bool makes_id = d->p.id == PROVIDER_ID_MINTED || d->p.id == PROVIDER_ID_COMMAND, reads_file = false;
	size_t i;

	for (i = 0; i < d->r.answer.count; i++)
		reads_file |= d->r.answer.list[i].from_file;
	if (makes_id && !has_place(&d->p, PLACE_SID)) {
		key_refuse(s, json_get(document, "conversation"), "an id is made for the conversation, and no command has {sid}");
		return err_advice(s->e, "{sid} among the words of \"new\", or \"id\": \"found\" or \"none\"");
	}
	if (reads_file && !has_place(&d->p, PLACE_OUT)) {
		key_refuse(s, json_get(json_get(document, "output"), "answer"), "the answer is read from a file, and no command has {out}");
		return err_advice(s->e, "{out} among the words of \"new\", behind the option that names such a file");
	}
	if (d->p.drain_ns > 0)
		return 0;
	key_refuse(s, json_get(document, "drain"), "\"drain\": a process needs some time to leave by itself");
	return err_advice(s->e, "such as \"1s\"; without the key it has %d s", PROVIDER_DRAIN_S);
}

static int
check_whole(struct source *s, const char *name, const struct json *document)
{
	const struct provider *p = &s->d->p;
	enum provider_start start;

	if (strcmp(p->name, name) != 0)
		return key_refuse(s, json_get(document, "name"), "the file of \"%s\" is called \"%s\"",
		    name, p->name);
	if ((p->id == PROVIDER_ID_COMMAND) != (p->mint != NULL))
		return key_refuse(s, json_get(document, "conversation"),
		    "\"mint\" and \"id\": \"command\" go together");
	if (p->keeps_chat && p->chat_pattern == NULL)
		return key_refuse(s, json_get(document, "conversation"), "\"keep_chat\" needs \"chat\"");
	for (start = PROVIDER_NEW; start < PROVIDER_STARTS; start++)
		if (check_start(s, start) != 0)
			return -1;
	return check_command(s) != 0 || check_output(s, document) != 0 ? -1 : check_used(s, document);
}

/* ---- The whole ---- */

void
provider_free(struct provider *p)
{
	struct draft *d = (struct draft *)p;

	if (d == NULL)
		return;
	rules_clear(&d->r);
	free(d);
}

int
provider_read(const char *file, const char *name, struct slice text, struct provider **out,
    struct err *e)
{
	struct json_options o = {.max_bytes = PROVIDER_MAX_FILE, .positions = true, .tell_names = true};
	struct draft *d = calloc(1, sizeof(*d));
	struct source s = {.file = file, .d = d, .e = e};

	if (d == NULL)
		return err_nomem(e);
	d->p.rules = &d->r;
	d->p.drain_ns = PROVIDER_DRAIN_S * NS_PER_S;
	d->r.file = strdup(file);
	if (d->r.file == NULL) {
		provider_free(&d->p);
		return err_nomem(e);
	}
	d->p.file = d->r.file;
	if (json_parse(text, &o, &d->r.document, NULL, e) != 0) {
		err_wrap(e, "%s", file);
		provider_free(&d->p);
		return -1;
	}
	if (keys_read(&s, &provider_table, d->r.document, d) != 0 ||
	    check_whole(&s, name, d->r.document) != 0) {
		provider_free(&d->p);
		return -1;
	}
	d->p.has_terminal = condition_given(&d->r.terminal);
	if (d->p.title == NULL)
		d->p.title = d->p.name;
	*out = &d->p;
	return 0;
}
