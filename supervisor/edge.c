/* The one edge: runs a command, prints its error, decides the exit status. Also the help. */
#include <assert.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "hold.h"
#include "output.h"

enum { HELP_COLUMN = 28, HELP_TITLE_WIDTH = 8, HELP_NAME_WIDTH = 12, HELP_EXIT_IO = 74 };

/* ---- Standard error ---- */

/* A failure to write on standard error has nowhere left to be reported. */
static void
write_stderr(const struct buf *b)
{
	(void)fs_write_all(&fs_real, "stderr", STDERR_FILENO, buf_view(b), NULL);
}

static void
print_labelled(const char *label, const char *text)
{
	struct buf b = {0};

	buf_puts(&b, label);
	text_neutralise(&b, slice_of(text), false);
	buf_putc(&b, '\n');
	write_stderr(&b);
	buf_clear(&b);
}

/* --home of this call: what is pasted is about the same state directory. */
static const char *home_of_call;

static void
put_command(struct buf *to, const char *command, size_t len)
{
	static const char program[] = "flowsup ";

	if (strncmp(command, program, strlen(program)) != 0) {
		buf_add(to, command, len);
		return;
	}
	buf_puts(to, "flowsup --home ");
	text_shell_word(to, home_of_call);
	buf_add(to, command + strlen("flowsup"), len - strlen("flowsup"));
}

/* Commands that stand behind each other; what is quoted in one comes from the call itself, with its --home. */
void
cli_hint_text(struct buf *to, const char *hint)
{
	static const char next[] = "; ";
	const char *end;

	if (home_of_call == NULL || strstr(hint, "--home") != NULL || strncmp(hint, "flowsup help", 12) == 0) {
		buf_puts(to, hint);
		return;
	}
	while ((end = strstr(hint, next)) != NULL) {
		put_command(to, hint, (size_t)(end - hint));
		buf_puts(to, next);
		hint = end + strlen(next);
	}
	put_command(to, hint, strlen(hint));
}

static void
print_hint(const char *hint)
{
	struct buf b = {0};

	cli_hint_text(&b, hint);
	print_labelled("hint: ", buf_text(&b));
	buf_clear(&b);
}

static const char *
hint_of(const struct err *e)
{
	if (!err_has_hint(e) && e->code == ERR_INTERNAL)
		return "flowsup version --json   # a fault of flowsup: please report it with this line and that";
	return err_hint_text(e);
}

static void
print_json_error(const struct err *e, const struct json *problems)
{
	struct json *o;
	struct buf b = {0}, hint = {0};

	if (!e->advice)
		cli_hint_text(&hint, hint_of(e));
	o = json_set(json_object(), "error", json_cstr(err_type(e->code)));
	o = json_set(o, "message", json_string_lossy(slice_of(e->msg), NULL));
	o = json_set(o, "hint", json_text_or_null(buf_text(&hint)));
	o = json_set(o, "advice", json_text_or_null(e->advice ? e->hint : NULL));
	o = json_set(o, "exit_status", json_int(err_exit_status(e->code)));
	if (problems != NULL)
		o = json_set(o, "problems", json_ref(problems));
	buf_clear(&hint);
	if (o == NULL) {
		print_labelled("flowsup: ", e->msg);
		return;
	}
	json_write(&b, o);
	buf_putc(&b, '\n');
	write_stderr(&b);
	buf_clear(&b);
	json_unref(o);
}

static void
print_error(const struct err *e, bool json, const struct json *problems)
{
	const char *hint = hint_of(e);

	if (json) {
		print_json_error(e, problems);
		return;
	}
	print_labelled("flowsup: ", e->msg);
	if (e->advice && hint[0] != '\0')
		print_labelled("note: ", hint);
	else if (hint[0] != '\0')
		print_hint(hint);
}

void
cli_print_error(const struct err *e, bool json)
{
	print_error(e, json, NULL);
}

void
cli_note(const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	print_labelled("flowsup: ", buf_text(&b));
	buf_clear(&b);
}

void
cli_hint(const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	print_hint(buf_text(&b));
	buf_clear(&b);
}

void
cli_advice(const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	print_labelled("note: ", buf_text(&b));
	buf_clear(&b);
}

/* ---- Help ---- */

static const char *const group_titles[CLI_GROUPS] = {
    [CLI_GROUP_START] = "Start",
    [CLI_GROUP_LOOK] = "Look",
    [CLI_GROUP_STEER] = "Steer",
    [CLI_GROUP_INSIDE] = "Within",
    [CLI_GROUP_FILES] = "Files",
    [CLI_GROUP_SYSTEM] = "System",
};

static bool
same_first_word(const struct command *a, const struct command *b)
{
	size_t len;

	assert(a != NULL && b != NULL);
	len = strcspn(a->name, " ");
	return len == strcspn(b->name, " ") && strncmp(a->name, b->name, len) == 0;
}

/* The second words of a family, behind `before`. */
static void
help_seconds(struct output *out, const struct command *const *commands, const struct command *first,
    const char *before)
{
	const char *second;

	for (; *commands != NULL; commands++) {
		second = strchr((*commands)->name, ' ');
		if (second == NULL || !same_first_word(*commands, first))
			continue;
		out_printf(out, "%s%s", before, second + 1);
		before = ", ";
	}
}

/* One line for a command or a family of them. */
static void
help_line(struct output *out, const struct command *const *commands, const struct command *cmd)
{
	int len = (int)strcspn(cmd->name, " ");

	out_printf(out, "%-*.*s", HELP_NAME_WIDTH, len, cmd->name);
	if (cmd->name[len] == '\0')
		out_puts(out, cmd->summary);
	help_seconds(out, commands, cmd, cmd->name[len] == '\0' ? "; also: " : "");
	out_puts(out, "\n");
}

static bool
is_first_of_family(const struct command *const *commands, const struct command *cmd)
{
	while (!same_first_word(*commands, cmd))
		commands++;
	return *commands == cmd;
}

static void
help_group(struct output *out, const struct command *const *commands, enum cli_group group, bool all)
{
	const struct command *const *cmd;
	const char *title = group_titles[group];

	for (cmd = commands; *cmd != NULL; cmd++) {
		if ((*cmd)->group != group || !is_first_of_family(commands, *cmd))
			continue;
		if (all || title[0] != '\0')
			out_printf(out, "%s%-*s%s", out_style(out, OUT_BOLD), HELP_TITLE_WIDTH, title,
			    out_style(out, OUT_PLAIN));
		if (all)
			help_line(out, commands, *cmd);
		else
			out_printf(out, "%s%.*s", title[0] != '\0' ? "" : " ",
			    (int)strcspn((*cmd)->name, " "), (*cmd)->name);
		title = "";
	}
	if (!all)
		out_puts(out, "\n");
}

void
cli_help_commands(struct output *out, const struct command *const *commands, bool all)
{
	unsigned g;

	out_puts(out, "flowsup starts flows of operations that survive what started them.\n\n"
		      "  flowsup start -- make -j4 test     # one command, detached\n"
		      "  flowsup start nightly.yaml         # a flow of many operations\n"
		      "  flowsup list                       # what runs, and how the rest ended\n"
		      "  flowsup show @last                 # everything about one run\n"
		      "  flowsup logs @last -f              # its output, as it comes\n"
		      "  flowsup waiting                    # what waits for a person\n"
		      "  flowsup stop @last                 # an end before its work is done\n"
		      "  flowsup resume @last               # go on after that, or after a crash\n\n");
	for (g = 0; g < CLI_GROUPS; g++)
		help_group(out, commands, (enum cli_group)g, all);
	if (!all)
		out_puts(out, "\nflowsup help --all says what each does;");
	out_puts(out, all ? "\nflowsup help COMMAND shows options and examples; man flowsup, man 7 flowsup.\n"
			  : " flowsup help COMMAND, how;\nman flowsup, everything; man 7 flowsup is a tour.\n");
}

static void
help_option(struct output *out, const struct cli_option *o)
{
	struct buf b = {0};

	if (o->letter != '\0')
		buf_printf(&b, "-%c, ", o->letter);
	else
		buf_puts(&b, "    ");
	buf_printf(&b, "--%s", o->name);
	if (o->optional_value)
		buf_printf(&b, "[=%s]", o->value);
	else if (o->value != NULL)
		buf_printf(&b, " %s", o->value);
	if (b.len > HELP_COLUMN - 2)
		out_printf(out, "  %s\n  %*s%s\n", buf_text(&b), HELP_COLUMN, "", o->help);
	else
		out_printf(out, "  %-*s%s\n", HELP_COLUMN, buf_text(&b), o->help);
	buf_clear(&b);
}

static void
help_synopsis(struct output *out, const struct command *cmd)
{
	const char *line = cmd->synopsis;
	const char *label = "usage: ";
	int len;

	for (;;) {
		len = (int)strcspn(line, "\n");
		out_printf(out, "%sflowsup %s%s%.*s\n", label, cmd->name, len > 0 ? " " : "", len, line);
		if (line[len] == '\0')
			return;
		line += len + 1;
		label = "       ";
	}
}

static void
help_common(struct output *out, const struct command *cmd)
{
	const struct cli_option *o;

	out_puts(out, "always:");
	for (o = cli_common; o->name != NULL; o++)
		if (cli_takes(cmd, o))
			out_printf(out, "  --%s%s%s", o->name, o->value != NULL ? " " : "",
			    o->value != NULL ? o->value : "");
	out_puts(out, "\n");
}

/* A command of one word may be the first of others'. */
static void
help_members(struct output *out, const struct command *const *commands, const struct command *cmd)
{
	size_t len = strlen(cmd->name);
	bool any = false;

	for (; commands != NULL && *commands != NULL; commands++) {
		if (strncmp((*commands)->name, cmd->name, len) != 0 || (*commands)->name[len] != ' ')
			continue;
		if (!any)
			out_printf(out, "also:  flowsup %s ", cmd->name);
		out_printf(out, "%s%s", any ? " | " : "", (*commands)->name + len + 1);
		any = true;
	}
	if (any)
		out_puts(out, "\n");
}

void
cli_help(struct output *out, const struct command *const *commands, const struct command *cmd, bool all)
{
	const struct cli_option *o;
	const char *const *x;
	bool left_out = false;

	out_printf(out, "flowsup %s: %s\n", cmd->name, cmd->summary);
	for (x = cmd->examples; x != NULL && *x != NULL; x++)
		out_printf(out, "  %s\n", *x);
	help_synopsis(out, cmd);
	help_members(out, commands, cmd);
	for (o = cmd->options; o != NULL && o->name != NULL; o++) {
		if (all || !o->rare)
			help_option(out, o);
		left_out = left_out || (o->rare && !all);
	}
	help_common(out, cmd);
	if (cmd->details != NULL)
		out_printf(out, "%s\n", cmd->details);
	if (left_out)
		out_printf(out, "more options:  flowsup help --all %s\n", cmd->name);
}

/* ---- Main ---- */

static int
run_command(struct cli *c, struct err *e)
{
	if (!c->help)
		return c->command->run(c, e);
	if (c->command->help != NULL && c->noperands > 0)
		return c->command->help(c, e);
	cli_help(c->out, c->commands, c->command, false);
	return 0;
}

int
cli_main(const struct command *const *commands, char **argv, mode_t umask_of_caller)
{
	struct output out;
	struct cli c;
	struct err e = {0};
	int status;

	/* Widths of characters come from libc; whether to print any is decided by out_init(). */
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL)
		setlocale(LC_CTYPE, "C");
	signal(SIGPIPE, SIG_IGN);
	out_init(&out, STDOUT_FILENO);
	status = cli_parse(&c, commands, argv, &e);
	if (status != 0 || !c.command->serves)
		hold_tell(NULL);
	c.out = &out;
	c.umask = umask_of_caller;
	home_of_call = c.home;
	if (status == 0)
		status = run_command(&c, &e);
	if (status < 0) {
		out_flush(&out);
		print_error(&e, c.json, c.problems);
		status = err_exit_status(e.code);
	}
	err_clear(&e);
	if (out_end(&out, &e) != 0) {
		cli_print_error(&e, c.json);
		status = HELP_EXIT_IO;
	}
	cli_clear(&c);
	return status;
}
