#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "complete.h"
#include "flowsup/fs.h"
#include "output.h"
#include "playbooks.h"
#include "seek.h"
#include "target.h"
#include "view.h"

enum { RUNS_SHOWN = 50, RUNS_LOOKED_AT = 500 };

/* A command line, as far as it was typed. */
struct line {
	struct cli cli; /* for its --home */
	char *home;	/* what that is where a shell would have replaced a tilde; or NULL */
	const char *first;		  /* word of the command */
	const struct command *command;	  /* NULL: not known yet */
	const struct cli_option *option;  /* whose value stands at the cursor, or NULL */
	bool second, tail;		  /* the command has two words; there was a "--" */
	const char *operand;		  /* the first */
	size_t noperands, ntail;	  /* before the cursor; those behind the "--" */
	const char *before, *current;	  /* "--status=" and what stands behind it; else "" and the word */
	int before_len;
	bool any, files;		  /* something was offered; files would be */
};

static void
offer(struct line *l, const char *word, const char *text)
{
	struct output *out = l->cli.out;

	if (strncmp(word, l->current, strlen(l->current)) != 0)
		return;
	l->any = true;
	out_printf(out, "%.*s%s\t", l->before_len, l->before, word);
	out_text(out, slice_of(text == NULL ? "" : text), false);
	out_puts(out, "\n");
}

/* Each of "one|two|three". */
static void
offer_choice(struct line *l, const char *words)
{
	const char *end;
	char word[64];

	for (;; words = end + 1) {
		end = strchrnul(words, '|');
		snprintf(word, sizeof(word), "%.*s", (int)(end - words), words);
		offer(l, word, NULL);
		if (*end == '\0')
			return;
	}
}

/* ---- What the state directory knows ---- */

static int
offer_run(void *arg, const struct session *s)
{
	struct line *l = arg;
	char text[128];

	snprintf(text, sizeof(text), "%s %s", s->name != NULL ? s->name : "", status_word(s->status));
	offer(l, s->run_id, text);
	return out_open(l->cli.out) ? 0 : 1;
}

static void
offer_runs_of(struct line *l, const struct session_filter *f, session_each *each)
{
	struct target t;
	struct err e = {0};

	if (target_open(&l->cli, &t, &e) != 0)
		return;
	(void)session_list(t.store, f, each, l, &e);
	target_close(&t);
}

static void
offer_runs(struct line *l)
{
	static const struct session_filter latest = {.limit = RUNS_SHOWN};

	offer(l, "@last", "the latest");
	offer(l, "@last-failed", "the latest that failed and was not resumed");
	offer_runs_of(l, &latest, offer_run);
}

/* Those that are not at their end. */
static void
offer_live_runs(struct line *l)
{
	struct session_filter live = {.limit = RUNS_SHOWN};
	size_t i;

	for (i = 0; i < STATUS_COUNT; i++)
		if (!status_is_terminal((enum run_status)i))
			live.statuses[live.nstatuses++] = (enum run_status)i;
	offer(l, "@last", "the latest");
	offer_runs_of(l, &live, offer_run);
}

static bool
waits_for_approval(const struct session *s)
{
	return json_length(json_get(s->metadata, "waiting")) > 0 && !status_is_terminal(s->status);
}

static int
offer_if_gated(void *arg, const struct session *s)
{
	return waits_for_approval(s) ? offer_run(arg, s) : 0;
}

/* Those that a verdict is for. */
static void
offer_gated_runs(struct line *l)
{
	static const struct session_filter live = {
	    .limit = RUNS_LOOKED_AT, .nstatuses = 2, .statuses = {STATUS_RUNNING, STATUS_PAUSED}};
	struct target t;
	struct err e = {0};

	if (target_open(&l->cli, &t, &e) != 0)
		return;
	if (target_find(&t, "@last", &e) == 0 && waits_for_approval(&t.session))
		offer(l, "@last", "the latest");
	(void)session_list(t.store, &live, offer_if_gated, l, &e);
	target_close(&t);
}

static int
offer_if_resumable(void *arg, const struct session *s)
{
	return view_is_resumable(s) ? offer_run(arg, s) : 0;
}

/* Those whose gate is closed, and those that came to an end from which they can go on. */
static void
offer_resumable_runs(struct line *l)
{
	static const struct session_filter paused = {
	    .limit = RUNS_SHOWN, .nstatuses = 1, .statuses = {STATUS_PAUSED}};
	struct session_filter f = {.limit = RUNS_LOOKED_AT};
	size_t i;

	for (i = 0; i < STATUS_COUNT; i++)
		if (status_is_terminal((enum run_status)i) && i != STATUS_COMPLETED)
			f.statuses[f.nstatuses++] = (enum run_status)i;
	offer(l, "@last", "the latest");
	offer(l, "@last-failed", "the latest that failed and was not resumed");
	offer_runs_of(l, &paused, offer_run);
	offer_runs_of(l, &f, offer_if_resumable);
}

static void
offer_operations_of(struct line *l, int rundir)
{
	struct flow *flow = NULL;
	size_t i;

	if (seek_flow(rundir, &flow, &(struct err){0}) != 0)
		return;
	for (i = 0; i < flow->nops; i++)
		offer(l, flow->ops[i].id, NULL);
	flow_free(flow);
}

static void
offer_operations(struct line *l)
{
	struct target t;
	struct err e = {0};
	int fd = -1;

	if (target_open(&l->cli, &t, &e) != 0)
		return;
	if (target_find(&t, l->operand != NULL ? l->operand : "@last", &e) == 0)
		fd = seek_rundir(&t.home, &t.session, &e);
	if (fd >= 0)
		offer_operations_of(l, fd);
	fd_close(&fd);
	target_close(&t);
}

/* Those that wait for a person. */
static void
offer_waiting(struct line *l)
{
	struct target t;
	struct err e = {0};
	struct json_iter it;
	const struct json *one;
	const char *op;

	if (target_open(&l->cli, &t, &e) != 0)
		return;
	if (target_find(&t, l->operand != NULL ? l->operand : "@last", &e) == 0) {
		it = json_iterate(json_get(t.session.metadata, "waiting"));
		while (json_next(&it, NULL, &one))
			if ((op = json_cstr_of(json_get(one, "op"))) != NULL)
				offer(l, op, NULL);
	}
	target_close(&t);
}

static int
offer_queue(void *arg, const struct queue_row *q)
{
	offer(arg, q->name, NULL);
	return 0;
}

static void
offer_queues(struct line *l)
{
	struct target t;
	struct err e = {0};

	if (target_open(&l->cli, &t, &e) != 0)
		return;
	(void)queue_each(t.store, offer_queue, l, &e);
	target_close(&t);
}

static void
offer_playbooks(struct line *l)
{
	struct playbooks p;
	size_t i;

	if (playbooks_find(&p, &(struct err){0}) != 0)
		return;
	for (i = 0; i < p.count; i++)
		if (!p.list[i].hidden)
			offer(l, p.list[i].name, p.list[i].path);
	playbooks_clear(&p);
}

/* ---- What the document says that is meant ---- */

/* The document that is the first operand, or the playbook of that name; NULL: it cannot be read. */
static struct flow *
read_meant(const struct line *l)
{
	struct err ignored = {0};
	struct flow *f = NULL;
	char *path = NULL;
	struct stat st;

	if (l->operand == NULL || l->command == NULL || l->command->operands == NULL)
		return NULL;
	if (strcmp(l->command->operands, "playbook") == 0) {
		if (playbook_path(NULL, l->operand, &path, &ignored) != 0)
			return NULL;
	} else {
		path = strdup(l->operand);
	}
	/* Whoever presses a key waits for no pipe. */
	if (path != NULL && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	    flow_read_file(path, &f, NULL, &ignored) != 0)
		f = NULL;
	free(path);
	return f;
}

/* Its value. */
static void
offer_argument_value(struct line *l, const struct flow_arg *arg, size_t name_len)
{
	/* What stands before the value is given back with it. */
	l->before = l->before_len > 0 ? l->before : l->current;
	l->before_len += (int)name_len + 1;
	l->current += name_len + 1;
	if (strcmp(arg->type, "boolean") == 0)
		offer_choice(l, "true|false");
	else if (strcmp(arg->type, "string") == 0)
		l->files = true;
}

static void
offer_arguments_of(struct line *l, const struct flow *f)
{
	size_t given = strcspn(l->current, "="), i;
	struct flow_arg arg;
	char name[128];

	for (i = 0; flow_arg_at(f, i, &arg); i++) {
		if (l->current[given] == '=' && strlen(arg.name) == given &&
		    strncmp(arg.name, l->current, given) == 0) {
			offer_argument_value(l, &arg, given);
			return;
		}
		if (l->current[given] != '=' &&
		    snprintf(name, sizeof(name), "%s=", arg.name) < (int)sizeof(name))
			offer(l, name, arg.help != NULL ? arg.help : arg.type);
	}
}

static void
offer_arguments(struct line *l)
{
	struct flow *f = read_meant(l);

	if (f != NULL)
		offer_arguments_of(l, f);
	else
		l->files = strchr(l->current, '=') != NULL;
	flow_free(f);
}

/* ---- What the tables know ---- */

static void
offer_statuses(struct line *l)
{
	size_t i;

	for (i = 0; i < STATUS_COUNT; i++)
		offer(l, status_word((enum run_status)i), NULL);
}

static void
offer_files(struct line *l)
{
	l->files = true;
}

/* Whether a command before this one begins with the same word. */
static bool
is_told(const struct command *const *commands, const struct command *const *at, size_t len)
{
	for (; commands < at; commands++)
		if (strncmp((*commands)->name, (*at)->name, len) == 0 &&
		    ((*commands)->name[len] == ' ' || (*commands)->name[len] == '\0'))
			return true;
	return false;
}

static void
offer_commands(struct line *l)
{
	const struct command *const *cmd;
	char first[32];
	size_t len;

	for (cmd = l->cli.commands; *cmd != NULL; cmd++) {
		len = strcspn((*cmd)->name, " ");
		snprintf(first, sizeof(first), "%.*s", (int)len, (*cmd)->name);
		if (!is_told(l->cli.commands, cmd, len))
			offer(l, first, (*cmd)->name[len] == '\0' ? (*cmd)->summary : NULL);
	}
}

/* The second words of a family, also those that only stand for a command of one word. */
static void
offer_seconds_of(struct line *l, const char *first)
{
	const struct command *const *cmd;
	size_t len = strlen(first);

	for (cmd = l->cli.commands; *cmd != NULL; cmd++) {
		if (strncmp((*cmd)->name, first, len) == 0 && (*cmd)->name[len] == ' ')
			offer(l, (*cmd)->name + len + 1, (*cmd)->summary);
		if ((*cmd)->also != NULL && strncmp((*cmd)->also, first, len) == 0 &&
		    (*cmd)->also[len] == ' ')
			offer(l, (*cmd)->also + len + 1, (*cmd)->summary);
	}
}

static void
offer_seconds(struct line *l)
{
	offer_seconds_of(l, l->operand);
}

static void
offer_options_of(struct line *l, const struct cli_option *o, bool common)
{
	char name[64];

	for (; o != NULL && o->name != NULL; o++) {
		if (common && l->command != NULL && !cli_takes(l->command, o))
			continue;
		snprintf(name, sizeof(name), "--%s", o->name);
		offer(l, name, o->help);
		snprintf(name, sizeof(name), "-%c", o->letter);
		if (o->letter != '\0')
			offer(l, name, o->help);
	}
}

/* ---- Which of it ---- */

/* The words that `operands` and `complete` of cli.h are made of; every other one stands for itself. */
static void
offer_kind(struct line *l, const char *kind, size_t len)
{
	static const struct {
		const char *kind;
		void (*offer)(struct line *);
	} kinds[] = {{"run", offer_runs}, {"live", offer_live_runs}, {"gated", offer_gated_runs},
	    {"resumable", offer_resumable_runs}, {"op", offer_operations},
	    {"waiting", offer_waiting}, {"file", offer_files},
	    {"command", offer_commands}, {"second", offer_seconds}, {"playbook", offer_playbooks},
	    {"argument", offer_arguments},
	    {"queue", offer_queues}, {"status", offer_statuses}};
	char word[64];
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strlen(kinds[i].kind) == len && strncmp(kinds[i].kind, kind, len) == 0) {
			kinds[i].offer(l);
			return;
		}
	snprintf(word, sizeof(word), "%.*s", (int)len, kind);
	offer(l, word, NULL);
}

/* "run|file": runs as well as files. */
static void
offer_kinds(struct line *l, const char *kinds, size_t len)
{
	const char *at = kinds, *end = kinds + len;
	size_t n;

	for (; at < end; at += n + 1) {
		n = strcspn(at, "| ");
		n = n < (size_t)(end - at) ? n : (size_t)(end - at);
		offer_kind(l, at, n);
	}
}

static void
offer_operand(struct line *l)
{
	const char *at = l->command->operands == NULL ? "" : l->command->operands;
	size_t len = strcspn(at, " "), n;
	bool repeats;

	for (n = l->noperands; n > 0 && at[len] == ' '; n--) {
		at += len + 1;
		len = strcspn(at, " ");
	}
	repeats = len > 3 && strncmp(at + len - 3, "...", 3) == 0;
	if (n == 0 || repeats)
		offer_kinds(l, at, repeats ? len - 3 : len);
}

static void
offer_value(struct line *l, const struct cli_option *o)
{
	if (o->kind == CLI_CHOICE)
		offer_choice(l, o->value);
	else if (o->complete != NULL)
		offer_kinds(l, o->complete, strlen(o->complete));
}

/* ---- The line ---- */

static const struct cli_option *
find_in(const struct cli_option *o, const char *name, size_t len)
{
	for (; o != NULL && o->name != NULL; o++) {
		if (len == 2 && name[0] == '-' && name[1] == o->letter)
			return o;
		if (len > 2 && strncmp(name, "--", 2) == 0 && strlen(o->name) == len - 2 &&
		    strncmp(o->name, name + 2, len - 2) == 0)
			return o;
	}
	return NULL;
}

static const struct cli_option *
find_option(const struct line *l, const char *word, size_t len)
{
	const struct cli_option *o = l->command == NULL ? NULL : find_in(l->command->options, word, len);

	return o != NULL ? o : find_in(cli_common, word, len);
}

static void
set_home(struct line *l, const char *value)
{
	const char *user = getenv("HOME");

	free(l->home);
	l->home = NULL;
	if (strncmp(value, "~/", 2) == 0 && user != NULL && asprintf(&l->home, "%s%s", user, value + 1) < 0)
		l->home = NULL;
	l->cli.home = l->home != NULL ? l->home : value;
}

static void
take_word(struct line *l, const char *word)
{
	const struct command *both;
	char name[64];

	if (l->first == NULL) {
		l->first = word;
		l->command = cli_find(l->cli.commands, word);
		return;
	}
	snprintf(name, sizeof(name), "%s %s", l->first, word);
	both = l->second || l->noperands > 0 || l->tail ? NULL : cli_find(l->cli.commands, name);
	if (both != NULL) {
		l->command = both;
		l->second = true;
		return;
	}
	if (l->noperands++ == 0)
		l->operand = word;
}

/* An option before the cursor; whether the next word is its value. */
static bool
take_option(struct line *l, const char *word, const char *next)
{
	size_t len = strcspn(word, "=");
	const struct cli_option *o = find_option(l, word, len);

	if (o == NULL || o->kind == CLI_FLAG || (word[len] == '\0' && o->optional_value))
		return false;
	if (o == cli_common)
		set_home(l, word[len] == '=' ? word + len + 1 : next);
	if (word[len] == '=')
		return false;
	l->option = o;
	return true;
}

/* All words before the last one. */
static void
take_words(struct line *l, char *const *words, size_t n)
{
	size_t i;

	for (i = 0; i + 1 < n; i++) {
		l->option = NULL;
		l->ntail += l->tail;
		if (l->tail || words[i][0] != '-' || words[i][1] == '\0')
			take_word(l, words[i]);
		else if (strcmp(words[i], "--") == 0)
			l->tail = true;
		else if (take_option(l, words[i], words[i + 1]) && i + 2 < n)
			i++, l->option = NULL;
	}
}

static void
offer_for(struct line *l)
{
	size_t len = strcspn(l->current, "=");
	const struct cli_option *o = NULL;

	if (l->option == NULL && !l->tail && strncmp(l->current, "--", 2) == 0 && l->current[len] == '=')
		o = find_option(l, l->current, len);
	if (o != NULL) {
		l->before = l->current;
		l->before_len = (int)len + 1;
		l->current += len + 1;
		offer_value(l, o);
	} else if (l->option != NULL) {
		offer_value(l, l->option);
	} else if (!l->tail && l->current[0] == '-') {
		offer_options_of(l, l->command != NULL ? l->command->options : NULL, false);
		offer_options_of(l, cli_common, true);
	} else if (l->first == NULL) {
		offer_commands(l);
	} else if (l->tail && l->command != NULL && l->command->runs_tail) {
		out_printf(l->cli.out, "\tcommand %zu\n", l->ntail + 1);
	} else {
		if (!l->second && l->noperands == 0 && !l->tail)
			offer_seconds_of(l, l->first);
		if (l->command != NULL)
			offer_operand(l);
	}
}

void
complete_words(const struct cli *c, char *const *words, size_t n)
{
	struct line l = {.cli = {.commands = c->commands, .out = c->out, .home = c->home}, .before = "",
	    .current = n > 0 ? words[n - 1] : ""};

	take_words(&l, words, n);
	offer_for(&l);
	if (l.files && !l.any)
		out_puts(c->out, "\tfiles\n");
	free(l.home);
}
