#include <string.h>

#include "cli.h"
#include "flowsup/buf.h"
#include "output.h"

static const char *const examples[] = {
    "flowsup help              # all commands",
    "flowsup help start        # one of them",
    "flowsup help --all start  # with the options that are seldom needed",
    NULL};

static const struct cli_option options[] = {
    {.name = "all", .letter = 'a', .kind = CLI_FLAG, .help = "also what is seldom needed"},
    CLI_END};

/* "ctl" alone names no command but a family of them; some of its words stand for commands of one word. */
static bool
help_family(struct cli *c, const char *name)
{
	const struct command *const *cmd;
	size_t len = strlen(name), i;
	bool any = false;

	for (cmd = c->commands; *cmd != NULL; cmd++) {
		const char *names[] = {(*cmd)->name, (*cmd)->also};

		for (i = 0; i < 2; i++) {
			if (names[i] == NULL || strncmp(names[i], name, len) != 0 || names[i][len] != ' ')
				continue;
			out_printf(c->out, "flowsup %-18s %s\n", names[i], (*cmd)->summary);
			any = true;
		}
	}
	return any;
}

static int
unknown(struct cli *c, const char *name, struct err *e)
{
	const char *near = c->noperands < 2 ? NULL
		: cli_nearest_second(c->commands, c->operands[0], c->operands[1]);

	if (near == NULL)
		return cli_unknown(c->commands, name, "help ", e);
	err_set(e, ERR_USAGE, "unknown command \"%s\"", name);
	return err_hint(e, "did you mean \"flowsup help %s %s\"?", c->operands[0], near);
}

static int
run(struct cli *c, struct err *e)
{
	const struct command *cmd;
	struct buf name = {0};
	size_t i;
	int r = 0;

	if (c->noperands == 0) {
		cli_help_commands(c->out, c->commands, cli_flag(c, "all"));
		return 0;
	}
	for (i = 0; i < c->noperands; i++)
		buf_printf(&name, "%s%s", i > 0 ? " " : "", c->operands[i]);
	cmd = cli_find(c->commands, buf_text(&name));
	if (cmd != NULL) {
		cli_help(c->out, cmd, cli_flag(c, "all"));
	} else if (!help_family(c, buf_text(&name))) {
		r = unknown(c, buf_text(&name), e);
	}
	buf_clear(&name);
	return r;
}

const struct command cmd_help = {
    .name = "help",
    .group = CLI_GROUP_SYSTEM,
    .synopsis = "[--all] [COMMAND]",
    .summary = "show what there is",
    .examples = examples,
    .options = options,
    .max_operands = 2,
    .operands = "command second",
    .run = run,
};
