/* flowsup play: start with a document that is found by name; play list, play show. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "flowsup/flow.h"
#include "flowsup/log.h"
#include "flowsup/provider.h"
#include "output.h"
#include "paste.h"
#include "plan.h"
#include "playbooks.h"
#include "problems.h"
#include "start.h"

enum { USAGE_INDENT = 4 };

static const char *const play_examples[] = {
    "flowsup play list                          # which there are",
    "flowsup play backup --arg from=src --arg to=/mnt   # prints the run's id",
    "flowsup play backup --help                         # what arguments it takes",
    NULL};

/* ---- Arguments for people ---- */

static void
add_default(struct buf *to, const struct flow_arg *arg)
{
	if (arg->otherwise == NULL)
		buf_puts(to, arg->required ? "must be given" : "may be left out");
	else if (json_type(arg->otherwise) == JSON_STRING)
		buf_printf(to, "%s", json_text(arg->otherwise).data);
	else
		json_write(to, arg->otherwise);
}

static int
print_arguments(const struct flow *f, struct output *out, struct err *e)
{
	static const struct column columns[] = {
	    {.title = "ARGUMENT"},
	    {.title = "TYPE"},
	    {.title = "DEFAULT", .least = 13},
	    {.title = "MEANS", .least = 30, .below = "means"},
	};
	struct flow_arg arg;
	struct table *t;
	struct buf b = {0};
	size_t i;
	int r;

	if (!flow_arg_at(f, 0, &arg)) {
		out_puts(out, "It takes no arguments.\n");
		return 0;
	}
	t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; flow_arg_at(f, i, &arg); i++) {
		buf_reset(&b);
		add_default(&b, &arg);
		table_text(t, OUT_PLAIN, arg.name);
		table_text(t, OUT_DIM, arg.type);
		table_text(t, OUT_PLAIN, buf_text(&b));
		table_text(t, OUT_PLAIN, arg.help != NULL ? arg.help : "");
	}
	r = buf_ok(&b, e);
	table_print(t, out, "");
	buf_clear(&b);
	return r;
}

static void
add_usage(struct buf *to, const char *name, const char *path, const struct flow *f)
{
	struct flow_arg arg;
	size_t i;

	if (playbook_is_command(name)) {
		buf_puts(to, "flowsup start ");
		text_shell_word(to, path);
	} else {
		buf_puts(to, "flowsup play ");
		text_shell_word(to, name);
	}
	for (i = 0; flow_arg_at(f, i, &arg); i++)
		buf_printf(to, arg.required ? " --arg %s=..." : " [--arg %s=...]", arg.name);
	buf_puts(to, " [OPTION]... [PROMPT]");
}

static int
print_usage(const struct cli *c, const char *name, const char *path, const struct flow *f, struct err *e)
{
	struct buf usage = {0}, fits = {0};
	int r;

	add_usage(&usage, name, path, f);
	paste_wrap(&fits, buf_view(&usage), 0, USAGE_INDENT, c->out->width);
	buf_putc(&fits, '\n');
	r = buf_ok(&fits, e);
	out_text(c->out, buf_view(&fits), true);
	buf_clear(&fits);
	buf_clear(&usage);
	out_puts(c->out, "\n");
	return r == 0 ? print_arguments(f, c->out, e) : r;
}

/* ---- play ---- */

static int
read_playbook(struct cli *c, const char *name, char **path, struct flow **out, struct err *e)
{
	if (playbook_path(c, name, path, e) != 0)
		return -1;
	if (start_document(c, *path, out, e) == 0)
		return 0;
	free(*path);
	return -1;
}

static int
help(struct cli *c, struct err *e)
{
	struct flow *f = NULL;
	char *path;
	int r;

	if (read_playbook(c, c->operands[0], &path, &f, e) != 0)
		return -1;
	r = print_usage(c, c->operands[0], path, f, e);
	out_puts(c->out, "\nOptions are those of\n    flowsup play --help\nThe document: ");
	out_text(c->out, slice_of(path), false);
	out_puts(c->out, "\n");
	flow_free(f);
	free(path);
	return r;
}

static int
run_play(struct cli *c, struct err *e)
{
	struct flow_overrides o = {.playbook = c->operands[0],
	    .prompt = c->noperands > 1 ? c->operands[1] : NULL};
	struct flow *f = NULL;
	char *path;
	int r;

	if (read_playbook(c, c->operands[0], &path, &f, e) != 0)
		return -1;
	o.name = f->name != NULL ? NULL : c->operands[0];
	r = start_change(c, path, &o, &f, e);
	if (r == 0)
		r = start_launch(c, f, &(struct start_source){.document = path}, e);
	flow_free(f);
	free(path);
	return r;
}

const struct command cmd_play = {
    .name = "play",
    .group = CLI_GROUP_START,
    .synopsis = "[OPTION]... NAME [PROMPT]",
    .summary = "start a playbook: a flow found by name",
    .examples = play_examples,
    .details = "Looked for as NAME.yaml or NAME.json in ./.flowsup/playbooks, then in\n"
	       "~/.config/flowsup/playbooks, then among those that were installed.",
    .options = start_options + START_OWN_OPTIONS,
    .min_operands = 1,
    .max_operands = 2,
    .operands = "playbook",
    .json = true,
    .run = run_play,
    .help = help,
};

/* ---- play list ---- */

static const char *const list_examples[] = {
    "flowsup play list          # all playbooks",
    "flowsup play list --json   # one object a line",
    NULL};

/* What its document says of itself, or what is wrong with it. */
static void
describe(const struct playbook *p, struct buf *to, struct buf *problem)
{
	struct flow *f = NULL;
	struct flow_arg arg;
	struct err e = {0};
	size_t i;

	if (p->rival != NULL) {
		buf_printf(problem, "cannot be played: %s has the same name", p->rival);
		return;
	}
	if (flow_read_file(p->path, &f, NULL, &e) != 0 || flow_check(f, p->path, NULL, &e) != 0) {
		buf_printf(problem, "broken: %s", e.msg);
		flow_free(f);
		return;
	}
	for (i = 0; flow_arg_at(f, i, &arg); i++)
		buf_printf(to, arg.required ? "%s%s" : "%s[%s]", i > 0 ? " " : "", arg.name);
	if (playbook_is_command(p->name))
		buf_printf(problem, "play %s is another command: started by its path", p->name);
	flow_free(f);
}

static struct json *
arguments_json(const struct flow *f)
{
	struct json *list = json_array(), *o;
	struct flow_arg arg;
	size_t i;

	for (i = 0; flow_arg_at(f, i, &arg); i++) {
		o = json_set(json_object(), "name", json_cstr(arg.name));
		o = json_set(o, "type", json_cstr(arg.type));
		o = json_set(o, "required", json_bool(arg.required));
		o = json_set(o, "default", arg.otherwise != NULL ? json_ref(arg.otherwise)
								  : json_null());
		o = json_set(o, "help", arg.help != NULL ? json_cstr(arg.help) : json_null());
		list = json_append(list, o);
	}
	return list;
}

/* Consumes o. */
static struct json *
add_validity(struct json *o, const struct err *why)
{
	o = json_set(o, "valid", json_bool(why->code == ERR_NONE));
	return json_set(o, "error",
	    why->code != ERR_NONE ? json_string_lossy(slice_of(why->msg), NULL) : json_null());
}

static void
print_line(const struct playbook *p, struct output *out)
{
	struct json *o = json_set(json_object(), "name", json_string_lossy(slice_of(p->name), NULL));
	struct flow *f = NULL;
	struct err e = {0};

	o = json_set(o, "path", json_string_lossy(slice_of(p->path), NULL));
	o = json_set(o, "hidden", json_bool(p->hidden));
	if (flow_read_file(p->path, &f, NULL, &e) == 0 && p->rival != NULL && !p->hidden)
		(void)playbook_refuse(p, &e);
	else if (f != NULL)
		(void)flow_check(f, p->path, NULL, &e);
	o = add_validity(o, &e);
	o = json_set(o, "arguments", f != NULL ? arguments_json(f) : json_null());
	flow_free(f);
	out_json(out, o);
}

static int
print_table(const struct playbooks *p, struct output *out, struct err *e)
{
	static const struct column columns[] = {
	    {.title = "PLAYBOOK"},
	    {.title = "ARGUMENTS", .least = 16},
	    {.title = "PROBLEM", .below = "problem"},
	    {.title = "DOCUMENT", .below = "document"},
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	struct buf arguments = {0}, problem = {0};
	size_t i;
	int r;

	for (i = 0; i < p->count; i++) {
		if (p->list[i].hidden)
			continue;
		buf_reset(&arguments);
		buf_reset(&problem);
		describe(&p->list[i], &arguments, &problem);
		table_text(t, OUT_BOLD, p->list[i].name);
		table_text(t, OUT_PLAIN, buf_text(&arguments));
		table_text(t, OUT_WARN, buf_text(&problem));
		table_text(t, OUT_DIM, p->list[i].path);
	}
	r = buf_ok(&arguments, e) != 0 ? -1 : buf_ok(&problem, e);
	table_print(t, out, "");
	buf_clear(&arguments);
	buf_clear(&problem);
	return r;
}

static void
say_places(const struct playbooks *p)
{
	size_t i;

	cli_note("there are no playbooks; they are looked for in");
	for (i = 0; i < PLAYBOOK_PLACES; i++)
		if (p->places[i] != NULL)
			cli_note("\t%s", p->places[i]);
}

static int
run_list(struct cli *c, struct err *e)
{
	struct playbooks p;
	size_t i;
	int r = 0;

	if (playbooks_find(&p, e) != 0)
		return -1;
	for (i = 0; c->json && i < p.count; i++)
		print_line(&p.list[i], c->out);
	if (!c->json && p.count == 0)
		say_places(&p);
	else if (!c->json)
		r = print_table(&p, c->out, e);
	playbooks_clear(&p);
	return r;
}

const struct command cmd_play_list = {
    .name = "play list",
    .group = CLI_GROUP_START,
    .synopsis = "[OPTION]...",
    .summary = "list playbooks",
    .examples = list_examples,
    .json = true,
    .run = run_list,
};

/* ---- play show ---- */

static const char *const show_examples[] = {
    "flowsup play show backup          # its arguments and operations",
    "flowsup play show backup --json   # the same for programs",
    NULL};

static void
print_json(const struct cli *c, const char *path, const struct flow *f, const struct err *why)
{
	struct json *o = json_set(json_object(), "name", json_cstr(c->operands[0]));

	o = json_set(o, "path", json_string_lossy(slice_of(path), NULL));
	o = add_validity(o, why);
	o = json_set(o, "arguments", arguments_json(f));
	o = json_set(o, "operations", json_uint(f->nops));
	out_json(c->out, json_set(o, "document", json_ref(f->document)));
}

static int
print_show(const struct cli *c, const char *path, const struct flow *f, struct err *e)
{
	int r;

	out_text(c->out, slice_of(path), false);
	out_printf(c->out, ": %zu operation%s\n\n", f->nops, f->nops == 1 ? "" : "s");
	r = print_usage(c, c->operands[0], path, f, e);
	out_puts(c->out, "\n");
	return r == 0 ? plan_draw(c->out, f, FLOW_GRAPH_TEXT, NULL, NULL, e) : r;
}

static void
tell_invalid(const struct cli *c, const char *path, const struct flow_diagnostics *d, const struct err *why)
{
	out_flush(c->out);
	problems_print(path, d, false);
	if (problems_count(d) == 0 && why->code != ERR_NONE)
		cli_note("%s", why->msg);
}

static int
run_show(struct cli *c, struct err *e)
{
	struct flow *f = NULL;
	struct flow_diagnostics d = {0};
	struct err why = {0};
	char *path;
	int r = 0;

	if (read_playbook(c, c->operands[0], &path, &f, e) != 0)
		return -1;
	/* What cannot be played as it is can be looked at all the same. */
	(void)flow_check(f, path, &d, &why);
	if (c->json)
		print_json(c, path, f, &why);
	else
		r = print_show(c, path, f, e);
	if (!c->json && r == 0)
		tell_invalid(c, path, &d, &why);
	flow_diagnostics_clear(&d);
	flow_free(f);
	free(path);
	return r;
}

const struct command cmd_play_show = {
    .name = "play show",
    .group = CLI_GROUP_START,
    .synopsis = "[OPTION]... NAME",
    .summary = "show a playbook's arguments and operations",
    .examples = show_examples,
    .min_operands = 1,
    .max_operands = 1,
    .operands = "playbook",
    .json = true,
    .run = run_show,
};
