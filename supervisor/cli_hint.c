/* Hints that are the command line as it was given, mended. */
#include <string.h>

#include "cli.h"
#include "flowsup/log.h"

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
hint_line(struct buf *line, struct err *e)
{
	if (!line->failed)
		err_hint(e, "%s", buf_text(line));
	buf_clear(line);
	return -1;
}

int
cli_hint_instead(char *const *argv, const char *at, size_t len, const char *instead, struct err *e)
{
	struct buf line = {0}, word = {0};
	bool found = false;

	buf_puts(&line, "flowsup");
	for (argv++; *argv != NULL; argv++) {
		if (found || !lies_in(at, *argv)) {
			put_word(&line, *argv);
			continue;
		}
		found = true;
		buf_add(&word, *argv, (size_t)(at - *argv));
		buf_puts(&word, instead);
		buf_puts(&word, at + len);
		put_word(&line, buf_text(&word));
	}
	line.failed = line.failed || word.failed;
	buf_clear(&word);
	if (found)
		return hint_line(&line, e);
	buf_clear(&line);
	return -1;
}

int
cli_hint_with(char *const *argv, const char *before, const char *further, struct err *e)
{
	struct buf line = {0};

	buf_puts(&line, "flowsup");
	for (argv++; *argv != NULL; argv++) {
		if (*argv == before)
			put_word(&line, further);
		put_word(&line, *argv);
	}
	if (before == NULL)
		put_word(&line, further);
	return hint_line(&line, e);
}

int
cli_hint_command(char *const *argv, const char *name, const char *instead, struct err *e)
{
	struct buf line = {0};

	buf_puts(&line, "flowsup");
	for (argv++; *argv != NULL; argv++)
		if (*argv == name)
			buf_printf(&line, " %s", instead);
		else
			put_word(&line, *argv);
	return hint_line(&line, e);
}
