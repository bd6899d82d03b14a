/* completion: scripts for shells, and what they ask for. */
#include <string.h>

#include "cli.h"
#include "complete.h"
#include "output.h"

static const char *const examples[] = {
    "source <(flowsup completion bash)   # also in ~/.bashrc",
    "flowsup completion fish | source    # also in ~/.config/fish/config.fish",
    "mkdir -p ~/.zfunc; flowsup completion zsh > ~/.zfunc/_flowsup",
    NULL};

static int
run(struct cli *c, struct err *e)
{
	const char *script;

	if (strcmp(c->operands[0], "words") == 0) {
		complete_words(c, c->operands + 1, c->noperands - 1);
		return 0;
	}
	script = complete_script(c->operands[0]);
	if (script != NULL && c->noperands == 1) {
		out_puts(c->out, script);
		return 0;
	}
	if (script != NULL)
		err_set(e, ERR_USAGE, "completion: unexpected operand \"%s\"", c->operands[1]);
	else
		err_set(e, ERR_USAGE, "completion: no completions for \"%s\"", c->operands[0]);
	return err_hint(e, "flowsup completion bash");
}

const struct command cmd_completion = {
    .name = "completion",
    .group = CLI_GROUP_SYSTEM,
    .synopsis = COMPLETE_SHELLS "\nwords -- [WORD]...",
    .summary = "print completions for a shell",
    .details = "The scripts ask by the other form what the last WORD of a line may become.\n"
	       "For zsh, ~/.zshrc says fpath+=~/.zfunc before compinit.",
    .examples = examples,
    .min_operands = 1,
    .max_operands = CLI_ANY,
    .operands = COMPLETE_SHELLS,
    .run = run,
};
