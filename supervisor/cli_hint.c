/* Hints that are the command line as it was given, mended; and hints of any length. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "flowsup/clock.h"
#include "flowsup/log.h"

/* ---- Of any length ---- */

struct cli_hints {
	struct cli_hints *next;
	char text[];
};

int
cli_hints_init(struct cli *c, struct err *e)
{
	c->hints = calloc(1, sizeof(*c->hints));
	return c->hints != NULL ? 0 : err_nomem(e);
}

void
cli_hints_clear(struct cli *c)
{
	struct cli_hints *one;

	while ((one = c->hints) != NULL) {
		c->hints = one->next;
		free(one);
	}
}

/* Without memory there is none. */
int
cli_hint_whole(const struct cli *c, const struct buf *command, struct err *e)
{
	struct cli_hints *one;

	if (command->failed)
		return -1;
	err_hint(e, "%s", buf_text(command));
	if (e->hint[0] != '\0' || command->len == 0)
		return -1;
	one = malloc(sizeof(*one) + command->len + 1);
	if (one == NULL)
		return -1;
	memcpy(one->text, buf_text(command), command->len + 1);
	one->next = c->hints->next;
	c->hints->next = one;
	return err_hint_borrow(e, one->text);
}

/* ---- The command line as it was given ---- */

static bool
lies_in(const char *at, const char *word)
{
	return at >= word && at <= word + strlen(word);
}

static void
put_word(struct buf *to, const char *word)
{
	buf_putc(to, ' ');
	text_shell_word(to, word);
}

static int
hint_line(const struct cli *c, struct buf *line, struct err *e)
{
	cli_hint_whole(c, line, e);
	buf_clear(line);
	return -1;
}

int
cli_hint_instead(const struct cli *c, const char *at, size_t len, const char *instead, struct err *e)
{
	struct buf line = {0}, word = {0};
	char *const *argv;
	bool found = false;

	buf_puts(&line, "flowsup");
	for (argv = c->argv + 1; *argv != NULL; argv++) {
		if (found || !lies_in(at, *argv)) {
			put_word(&line, *argv);
			continue;
		}
		found = true;
		if (instead == NULL)
			continue;
		buf_add(&word, *argv, (size_t)(at - *argv));
		buf_puts(&word, instead);
		buf_puts(&word, at + len);
		put_word(&line, buf_text(&word));
	}
	line.failed = line.failed || word.failed;
	buf_clear(&word);
	if (found)
		return hint_line(c, &line, e);
	buf_clear(&line);
	return -1;
}

int
cli_hint_with(const struct cli *c, const char *further, struct err *e)
{
	struct buf line = {0};
	char *const *argv;

	buf_puts(&line, "flowsup");
	for (argv = c->argv + 1; *argv != NULL; argv++)
		put_word(&line, *argv);
	put_word(&line, further);
	return hint_line(c, &line, e);
}

int
cli_hint_command(const struct cli *c, const char *name, const char *instead, struct err *e)
{
	struct buf line = {0};
	char *const *argv;

	buf_puts(&line, "flowsup");
	for (argv = c->argv + 1; *argv != NULL; argv++)
		if (*argv == name)
			buf_printf(&line, " %s", instead);
		else
			put_word(&line, *argv);
	return hint_line(c, &line, e);
}

/* ---- A value that stands apart from its option ---- */

static bool
could_be_value(const struct cli_option *o, const char *word)
{
	size_t len = strlen(word);
	const char *at = o->value;
	int64_t ns;

	if (o->kind == CLI_DURATION)
		return duration_parse(slice_of(word), &ns, NULL) == 0;
	for (; o->kind == CLI_CHOICE && len > 0; at += strcspn(at, "|") + 1) {
		if (strcspn(at, "|") == len && strncmp(at, word, len) == 0)
			return true;
		if (at[strcspn(at, "|")] == '\0')
			return false;
	}
	return false;
}

/* The word, before any `--`, that is an option whose value may lack, and behind it what could be that. */
static char *const *
find_apart(const struct cli *c)
{
	char *const *argv;
	const struct cli_option *o;

	for (argv = c->argv + 1; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
		for (o = c->command->options; o != NULL && o->name != NULL; o++)
			if (o->optional_value && strncmp(*argv, "--", 2) == 0 && strcmp(*argv + 2, o->name) == 0 &&
			    argv[1] != NULL && could_be_value(o, argv[1]))
				return argv;
	return NULL;
}

bool
cli_hint_joined(const struct cli *c, const char *operand, struct err *e)
{
	char *const *apart = find_apart(c), *const *argv;
	struct buf line = {0};

	if (apart == NULL || (operand != NULL && strcmp(apart[1], operand) != 0))
		return false;
	buf_puts(&line, "flowsup");
	for (argv = c->argv + 1; *argv != NULL; argv++) {
		put_word(&line, *argv);
		if (argv == apart) {
			buf_putc(&line, '=');
			text_shell_word(&line, *++argv);
		}
	}
	hint_line(c, &line, e);
	return true;
}

const char *
cli_apart(const struct cli *c, const char *operand)
{
	char *const *apart = find_apart(c);

	return apart != NULL && strcmp(apart[1], operand) == 0 ? apart[0] : NULL;
}

/* ---- A command of one's own that lacks its `--` ---- */

static const struct cli_option *
find_long(const struct cli_option *o, const char *name, size_t len)
{
	for (; o != NULL && o->name != NULL; o++)
		if (strncmp(o->name, name, len) == 0 && o->name[len] == '\0')
			return o;
	return NULL;
}

/* How many words a long option of ours takes that stands here; 0: it is none. A letter is more likely one of
 * the command's. */
static size_t
option_words(const struct command *cmd, char *const *at)
{
	const char *name = at[0] + 2;
	size_t len = strcspn(name, "=");
	const struct cli_option *o;

	if (strncmp(at[0], "--", 2) != 0 || len == 0)
		return 0;
	o = find_long(cmd->options, name, len);
	if (o == NULL)
		o = find_long(cli_common, name, len);
	if (o == NULL)
		return 0;
	return o->kind != CLI_FLAG && !o->optional_value && name[len] == '\0' && at[1] != NULL ? 2 : 1;
}

/* Either those words, or all others. */
static void
put_words(const struct command *cmd, char *const *at, bool ours, struct buf *line)
{
	size_t n;

	while (*at != NULL) {
		n = option_words(cmd, at);
		if ((n > 0) == ours)
			put_word(line, at[0]);
		if (n > 1 && ours)
			put_word(line, at[1]);
		at += n > 1 ? 2 : 1;
	}
}

int
cli_hint_behind_dashes(const struct cli *c, const char *program, struct err *e)
{
	const char *before = !text_is_shell_line(program) ? " --" : c->noperands > 1 ? " --chain" : " -- sh -c";
	struct buf line = {0};
	char *const *at;

	buf_puts(&line, "flowsup");
	for (at = c->argv + 1; *at != NULL && *at != program; at++)
		put_word(&line, *at);
	put_words(c->command, at, true, &line);
	buf_puts(&line, before);
	put_words(c->command, at, false, &line);
	return hint_line(c, &line, e);
}

int
cli_hint_alone(const struct cli *c, const char *at, const char *instead, struct err *e)
{
	struct buf line = {0};
	char *const *word;
	size_t n;

	buf_printf(&line, "flowsup %s", c->command->name);
	for (word = c->argv + 1; *word != NULL; word += n > 1 ? 2 : 1) {
		n = option_words(c->command, word);
		if (*word == at && instead != NULL)
			put_word(&line, instead);
		else if (*word != at && (*word)[0] == '-')
			put_word(&line, *word);
		if (n > 1)
			put_word(&line, word[1]);
	}
	return hint_line(c, &line, e);
}
