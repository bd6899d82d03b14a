#include <assert.h>
#include <string.h>

#include "cli.h"
#include "flowsup/buf.h"
#include "output.h"

enum { FAMILY_WIDTH = 18 };

static const char *const examples[] = {
    "flowsup help              # all commands",
    "flowsup help start        # one of them",
    "flowsup help --all start  # with the options that are seldom needed",
    NULL};

static const struct cli_option options[] = {
    {.name = "all", .letter = 'a', .kind = CLI_FLAG, .help = "also what is seldom needed"},
    CLI_END};

static const struct family {
	const char *name, *summary, *examples[5];
} families[] = {
    {"queue", "limit how many runs go on at once",
	{"flowsup queue set build --slots 2           # two at once; others wait",
	    "flowsup start --queue build nightly.yaml    # takes a slot, or waits for one",
	    "flowsup queue list                          # who has one, and who waits"}},
    {"ctl", "steer a run",
	{"flowsup ctl pause @last                     # nothing new is started",
	    "flowsup ctl resume @last                    # it goes on",
	    "flowsup ctl approve @last publish           # an operation that waits for this",
	    "flowsup ctl status @last                    # what was asked, what came of it"}},
    {"emit", "what an operation tells its run, or asks of it",
	{"flowsup emit progress 0.4 'four of ten'     # for those who watch",
	    "flowsup emit context set /owner '\"kim\"'     # for other operations",
	    "flowsup emit artifact report.html           # a file that it has made",
	    "flowsup emit spawn --run 'make lint'        # a further operation"}},
    {"checkpoint", "what is saved of a run",
	{"flowsup checkpoint show @last               # outcomes, without their contents",
	    "flowsup checkpoint verify @last             # compares all digests",
	    "flowsup checkpoint export @last ./copy      # also of a run that is alive"}},
};

static void
family_head(struct output *out, const char *name)
{
	const struct family *f = families, *end = families + sizeof(families) / sizeof(families[0]);
	const char *const *x;

	while (f < end && strcmp(f->name, name) != 0)
		f++;
	assert(f < end && "each family has a line");
	out_printf(out, "flowsup %s: %s\n", name, f->summary);
	for (x = f->examples; *x != NULL; x++)
		out_printf(out, "  %s\n", *x);
}

/* The name of cmd that begins with the family's; some stand for commands of one word. NULL: none does. */
static const char *
member_name(const struct command *cmd, const char *family)
{
	const char *names[] = {cmd->name, cmd->also};
	size_t len = strlen(family), i;

	for (i = 0; i < 2; i++)
		if (names[i] != NULL && strncmp(names[i], family, len) == 0 && names[i][len] == ' ')
			return names[i];
	return NULL;
}

/* "ctl" alone names no command but a family of them: examples, then what each of them does. */
static bool
help_family(struct cli *c, const char *name)
{
	const struct command *const *cmd;
	const char *member;
	bool any = false;

	for (cmd = c->commands; *cmd != NULL; cmd++) {
		member = member_name(*cmd, name);
		if (member == NULL)
			continue;
		if (!any)
			family_head(c->out, name);
		out_printf(c->out, "flowsup %-*s  %s\n", FAMILY_WIDTH, member, (*cmd)->summary);
		any = true;
	}
	if (any)
		out_printf(c->out, "options:  flowsup help %s WORD\n", name);
	return any;
}

static int
unknown(struct cli *c, const char *name, struct err *e)
{
	const char *near = c->noperands < 2 ? NULL
		: cli_nearest_second(c->commands, c->operands[0], c->operands[1]);

	if (near == NULL && c->noperands > 1 && cli_is_family(c->commands, c->operands[0])) {
		err_set(e, ERR_USAGE, "%s: unknown second word \"%s\"", c->operands[0], c->operands[1]);
		return err_hint(e, "flowsup help %s", c->operands[0]);
	}
	if (near == NULL) {
		near = cli_unknown(c->commands, name, e);
		return near != NULL ? err_hint(e, "flowsup help %.*s", (int)strcspn(near, " "), near)
				    : err_hint(e, "flowsup help");
	}
	err_set(e, ERR_USAGE, "unknown command \"%s\"", name);
	return err_hint(e, "flowsup help %s %s", c->operands[0], near);
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
		cli_help(c->out, c->commands, cmd, cli_flag(c, "all"));
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
