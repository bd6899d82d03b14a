/*
 * Completions: what may stand at the end of a command line, from the tables of parser and help and from
 * the state directory. The scripts of the shells only ask and show.
 */
#ifndef FLOWSUP_COMPLETE_H
#define FLOWSUP_COMPLETE_H

#include "cli.h"

/*
 * words[n - 1] is the word at the cursor, maybe empty; those before it, from the first behind the
 * program's name, are whole. Prints what it may become, one a line, with a tab and what that is; where
 * that is nothing but the name of a file, a line that is a tab and "files"; where the last N words are a
 * command of its own, a tab and "command N". Only reads: whoever presses a key starts no supervisor.
 * Whatever is wrong, there is nothing to offer.
 */
void complete_words(const struct cli *c, char *const *words, size_t n);

/* The script of this shell, or NULL. */
const char *complete_script(const char *shell);
#define COMPLETE_SHELLS "bash|zsh|fish"

#endif
