#include <string.h>

#include "flowsup/log.h"

static bool
is_plain(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_./-+:,@%=";

	return text[0] != '\0' && text[strspn(text, plain)] == '\0';
}

/* Whether it would be shown as it is. */
static bool
is_shown(const char *text)
{
	struct buf shown = {0};
	bool same;

	text_neutralise(&shown, slice_of(text), false);
	same = !shown.failed && slice_is(buf_view(&shown), text);
	buf_clear(&shown);
	return same;
}

static void
escape(struct buf *to, const char *text)
{
	buf_puts(to, "$'");
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~' || *text == '\'' || *text == '\\')
			buf_printf(to, "\\x%02x", (unsigned)(unsigned char)*text);
		else
			buf_putc(to, *text);
	buf_putc(to, '\'');
}

void
text_shell_word(struct buf *to, const char *text)
{
	if (is_plain(text)) {
		buf_puts(to, text);
		return;
	}
	if (!is_shown(text)) {
		escape(to, text);
		return;
	}
	buf_putc(to, '\'');
	for (; *text != '\0'; text++)
		if (*text == '\'')
			buf_puts(to, "'\\''");
		else
			buf_putc(to, *text);
	buf_putc(to, '\'');
}

bool
text_is_shell_line(const char *word)
{
	return strpbrk(word, SHELL_LINE_CHARACTERS) != NULL;
}

const char *
shell_word(char out[SHELL_WORD_TEXT], const char *text)
{
	struct buf word = {0};

	text_shell_word(&word, text);
	memset(out, 'x', SHELL_WORD_TEXT - 1);
	out[SHELL_WORD_TEXT - 1] = '\0';
	if (!word.failed && word.len < SHELL_WORD_TEXT)
		memcpy(out, buf_text(&word), word.len + 1);
	buf_clear(&word);
	return out;
}
