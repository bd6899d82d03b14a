/* The supervisor's and worker's log: one line a record, by one write(2); never a helper thread. */
#ifndef FLOWSUP_LOG_H
#define FLOWSUP_LOG_H

#include "flowsup/buf.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* fd borrowed, O_APPEND. A line has the time in UTC, who writes it, and the level; with who NULL, and to
 * standard error until this is called, it is one for people, as commands write them: "flowsup: TEXT". */
void log_init(int fd, const char *who, enum log_level most);
/* Control characters are neutralised; cut at 4,096 bytes. errno is kept. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends text with control characters and broken UTF-8 made harmless for a terminal. newline
 * says whether LF (and TAB) may stay. */
void text_neutralise(struct buf *to, struct slice text, bool newline);
/* Appends text as one word of a shell, quoted where it must be; what text_neutralise would change is
 * written as bash, zsh and ksh read it: $'...'. */
void text_shell_word(struct buf *to, const char *text);
/* The same for a hint: into a buffer that is larger than one, so that what is too long for both fits in
 * none. Returns out. */
enum { SHELL_WORD_TEXT = 512 };
const char *shell_word(char out[SHELL_WORD_TEXT], const char *text);
/* A word with one of these characters is a line for a shell rather than the name of a program. */
#define SHELL_LINE_CHARACTERS " \t\n|&;<>()$`"
bool text_is_shell_line(const char *word);
/* Appends text without the sequences that only set colours or erase within a line (ECMA-48 SGR, EL):
 * without them it says the same. Everything else stays, to be neutralised. */
void text_drop_colours(struct buf *to, struct slice text);
/* The nearest of `count` names to `name` by edit distance, if near enough to suggest; else the first that
 * begins with it; or NULL. */
const char *text_nearest(const char *name, const char *const *names, size_t count);

#endif
