/*
 * What an operation is given: its words, its environment, its directory. The environment that all
 * operations share is prepared once and sorted by name; for each start only what differs is built,
 * in two buffers that are kept: one of text, one of pointers into it.
 */
#include "given.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "flowsup/clock.h"

static int
add_declared(struct building *b, const struct flow_env *v, struct err *e)
{
	const char *home = given_shared_value(b->w, "HOME");
	size_t from = b->text->len;
	struct buf value = {0};
	char what[160];
	int rc;

	if (v->value == NULL) {
		if (v->required && given_shared_value(b->w, v->name) == NULL)
			return err_set(e, ERR_ENVIRONMENT,
			    "environment variable %s is required and not set", v->name);
		return 0;
	}
	snprintf(what, sizeof(what), "environment variable %.*s", 128, v->name);
	buf_puts(b->text, v->name);
	buf_putc(b->text, '=');
	rc = flow_home_path(v->value, home, &value, e);
	if (rc != 0)
		err_wrap(e, "%s", what);
	else
		rc = given_rendered(b, what, buf_text(&value), e);
	buf_clear(&value);
	return rc == 0 ? given_entry(b, from, e) : -1;
}

/* ---- FLOWSUP_* of this attempt ---- */

static int
add_deadline(struct building *b, struct err *e)
{
	const struct flow_how *how = b->w->flow->ops[b->op].how;
	int64_t at = b->w->deadline_wall_ns, own;
	char text[32];

	if (how->timeout_ns > 0) {
		own = clock_wall_ns() + turns_time_left_ns(b->w, b->op);
		at = at == 0 || own < at ? own : at;
	}
	if (at == 0)
		return 0;
	/* A whole second, which every shell can compare; never one that is over before the limit is. */
	snprintf(text, sizeof(text), "%lld", (long long)((at + NS_PER_S - 1) / NS_PER_S));
	return given_variable(b, "FLOWSUP_DEADLINE", text, e);
}

static int
add_spawn_context(struct building *b, struct err *e)
{
	const struct json *context = given_context(b->w, b->op);
	size_t from = b->text->len;

	if (context == NULL)
		return 0;
	buf_puts(b->text, "FLOWSUP_SPAWN_CONTEXT=");
	json_write(b->text, context);
	buf_putc(b->text, '\0');
	return b->text->failed ? err_nomem(e) : given_add(b, from, e);
}

static int
add_marks(struct building *b, struct err *e)
{
	const struct worker *w = b->w;
	const char *id = w->flow->ops[b->op].id;
	size_t from;
	char number[DECIMAL_TEXT];

	put_number(number, w->ops[b->op].attempts, 1);
	if (given_variable(b, "FLOWSUP_OP_ID", id, e) != 0 ||
	    given_variable(b, "FLOWSUP_ATTEMPT", number, e) != 0)
		return -1;
	from = b->text->len;
	buf_puts(b->text, "FLOWSUP_ARTIFACTS=");
	buf_puts(b->text, w->artifacts_path);
	buf_putc(b->text, '/');
	buf_add(b->text, id, strlen(id) + 1);
	if (given_add(b, from, e) != 0)
		return -1;
	from = b->text->len;
	buf_puts(b->text, "FLOWSUP_IDEMPOTENCY_KEY=");
	buf_puts(b->text, w->origin);
	buf_putc(b->text, '-');
	buf_add(b->text, id, strlen(id) + 1);
	return given_add(b, from, e);
}

/* The directory an operation starts in, and a NUL. */
static int
add_cwd(struct building *b, struct err *e)
{
	const struct worker *w = b->w;
	const char *cwd = w->flow->ops[b->op].how->cwd, *home = given_shared_value(w, "HOME");

	bool relative = cwd != NULL && cwd[0] != '/' && !flow_is_home_path(cwd);

	if (cwd == NULL || relative)
		buf_puts(b->text, w->launch.cwd);
	if (relative)
		buf_putc(b->text, '/');
	if (cwd != NULL && flow_home_path(cwd, home, b->text, e) != 0)
		return err_wrap(e, "cwd");
	buf_putc(b->text, '\0');
	return b->text->failed ? err_nomem(e) : 0;
}

/* What a provider wants; the document, which comes later, has the last word. */
static int
add_provider(struct building *b, const struct provider *p, struct err *e)
{
	struct json_iter it = json_iterate(p->unset);
	const struct json *value;
	struct slice name;
	size_t at, from;

	while (json_next(&it, NULL, &value)) {
		at = given_find_shared(b->w, json_text(value).data, json_text(value).len);
		if (at != SIZE_MAX && b->at != NULL)
			b->at[at] = LEFT_OUT;
	}
	it = json_iterate(p->set);
	while (json_next(&it, &name, &value)) {
		from = b->text->len;
		buf_slice(b->text, name);
		buf_putc(b->text, '=');
		buf_add(b->text, json_text(value).data, json_text(value).len + 1);
		if (given_entry(b, from, e) != 0)
			return -1;
	}
	/* Some take the directory from here and not from where they are. */
	from = b->text->len;
	buf_puts(b->text, "PWD=");
	if (add_cwd(b, e) != 0)
		return -1;
	return given_entry(b, from, e);
}

static void
drop_left_out(struct building *b)
{
	size_t i, kept = 0;

	for (i = 0; i < b->count; i++)
		if (b->at[i] != LEFT_OUT)
			b->at[kept++] = b->at[i];
	b->count = kept;
}

/* What a running attempt is given to read and to talk by. */
static int
add_channels(struct building *b, struct err *e)
{
	const struct worker *w = b->w;
	const struct attempt_run *a = w->ops[b->op].live;
	char name[OP_FILE_TEXT];
	size_t from;

	if (given_variable(b, "FLOWSUP_TOKEN", a->token, e) != 0)
		return -1;
	if (a->context_version > 0) {
		from = b->text->len;
		buf_printf(b->text, "FLOWSUP_CONTEXT=%s/" RUN_CONTEXT "/%u.json", w->run_path,
		    a->context_version);
		buf_putc(b->text, '\0');
		if (given_add(b, from, e) != 0)
			return -1;
	}
	if (!messages_by_file(w, b->op))
		return 0;
	from = b->text->len;
	buf_printf(b->text, "FLOWSUP_MESSAGES=%s/%s", w->ops_path,
	    op_file_name(w, b->op, a->number, ".messages", name));
	buf_putc(b->text, '\0');
	return given_add(b, from, e);
}

static int
add_environment(struct building *b, struct err *e)
{
	const struct flow_how *how = b->w->flow->ops[b->op].how;
	const struct provider *p = agents_provider(b->w, b->op);
	size_t i;

	for (i = 0; i < b->w->environment_count; i++)
		if (given_add(b, SHARED + i, e) != 0)
			return -1;
	if (p != NULL && add_provider(b, p, e) != 0)
		return -1;
	if (how->tty && given_shared_value(b->w, "TERM") == NULL &&
	    given_variable(b, "TERM", "dumb", e) != 0)
		return -1;
	for (i = 0; i < how->nenv; i++)
		if (add_declared(b, &how->env[i], e) != 0)
			return -1;
	/* Ours come last and are not looked up: a document cannot declare a FLOWSUP_ name. */
	if (add_marks(b, e) != 0 || add_channels(b, e) != 0 || add_deadline(b, e) != 0 ||
	    add_spawn_context(b, e) != 0 || given_deps(b, e) != 0)
		return -1;
	drop_left_out(b);
	return 0;
}

/* ---- Words ---- */

static int
add_word(struct building *b, const char *word, struct err *e)
{
	size_t from = b->text->len;

	buf_add(b->text, word, strlen(word) + 1);
	return b->text->failed ? err_nomem(e) : given_add(b, from, e);
}

static int
add_word_list(struct building *b, const struct provider_words *words, struct err *e)
{
	const char *at = buf_text(&words->text);
	size_t i;

	for (i = 0; i < words->count; i++) {
		if (add_word(b, at, e) != 0)
			return -1;
		at += strlen(at) + 1;
	}
	return 0;
}

/* None as long as they are not known: then only environment and directory are asked for. */
static int
add_agent_words(struct building *b, struct err *e)
{
	const struct attempt_run *a = b->w->ops[b->op].live;

	return a != NULL && a->agent != NULL ? add_word_list(b, &a->agent->words, e) : 0;
}

static int
add_exec_word(struct building *b, size_t i, struct err *e)
{
	const char *text = b->w->flow->ops[b->op].argv[i];
	size_t from = b->text->len;
	char what[64];

	if (given_is_literal(b->w, b->op) || strchr(text, '{') == NULL)
		return add_word(b, text, e);
	snprintf(what, sizeof(what), "word %zu of exec", i);
	return given_rendered(b, what, text, e) != 0 ? -1 : given_add(b, from, e);
}

/* A person's own command line for an agent, with what makes its conversation known. */
static int
add_command_words(struct building *b, struct err *e)
{
	const struct flow_op *def = &b->w->flow->ops[b->op];
	struct provider_words more = {0};
	struct buf scratch = {0};
	const char *word;
	size_t i;
	int rc = 0;

	for (i = 0; def->argv[i] != NULL && rc == 0; i++) {
		word = turns_command_word(b->w, i, &scratch);
		rc = word == NULL		? err_nomem(e)
		    : word == def->argv[i] ? add_exec_word(b, i, e)
					   : add_word(b, word, e);
	}
	if (rc == 0)
		rc = turns_command_more(b->w, &more, e);
	if (rc == 0)
		rc = add_word_list(b, &more, e);
	provider_words_clear(&more);
	buf_clear(&scratch);
	return rc;
}

static int
add_words(struct building *b, struct err *e)
{
	const struct flow_op *def = &b->w->flow->ops[b->op];
	size_t i;

	if (def->kind == FLOW_INSTRUCTION)
		return add_agent_words(b, e);
	if (def->kind == FLOW_RUN) {
		if (add_word(b, "sh", e) != 0 || add_word(b, "-c", e) != 0 ||
		    add_word(b, def->text, e) != 0)
			return -1;
		/* The item is $1, so that it is never part of the shell's text. */
		return def->item == NULL ? 0 : add_word(b, "sh", e) != 0 ? -1
									 : add_word(b, def->item, e);
	}
	if (turns_is_command(b->w, b->op))
		return add_command_words(b, e);
	for (i = 0; def->argv[i] != NULL; i++)
		if (add_exec_word(b, i, e) != 0)
			return -1;
	return 0;
}

/* ---- All of it ---- */

/* Turns offsets into pointers: [words] NULL [environment] NULL. */
static int
resolve_offsets(struct building *b, size_t nwords, struct buf *to, struct err *e)
{
	char **out, *null = NULL;
	size_t i;

	buf_reset(to);
	out = (char **)(void *)buf_reserve(to, (b->count + 2) * sizeof(*out));
	if (out == NULL)
		return err_nomem(e);
	for (i = 0; i < b->count; i++) {
		/* The environment comes first in the list, because its shared part has fixed places. */
		char *entry = b->at[i] >= SHARED ? b->w->environment[b->at[i] - SHARED]
						 : b->text->data + b->at[i];
		out[i < b->count - nwords ? i : i + 1] = entry;
	}
	out[b->count - nwords] = null;
	out[b->count + 1] = null;
	return 0;
}

static const char *
path_of(char *const *envp)
{
	for (; *envp != NULL; envp++)
		if (strncmp(*envp, "PATH=", 5) == 0)
			return *envp + 5;
	return NULL;
}

int
context_prepare(struct worker *w, uint32_t i, struct given *out, struct err *e)
{
	struct building b = {.w = w, .op = i, .text = &w->scratch_text};
	size_t before_words = 0, cwd_at = 0;
	int rc;

	if (w->scratch_text.failed)
		buf_clear(&w->scratch_text);
	buf_reset(&w->scratch_text);
	rc = add_environment(&b, e);
	before_words = b.count;
	if (rc == 0)
		rc = add_words(&b, e);
	cwd_at = b.text->len;
	if (rc == 0)
		rc = add_cwd(&b, e);
	if (rc == 0)
		rc = buf_ok(b.text, e);
	if (rc == 0)
		rc = resolve_offsets(&b, b.count - before_words, &w->scratch_argv, e);
	if (rc == 0) {
		out->envp = (char *const *)(void *)w->scratch_argv.data;
		out->argv = out->envp + before_words + 1;
		out->search_path = path_of(out->envp);
		out->cwd = b.text->data + cwd_at;
	}
	free(b.at);
	return rc;
}
