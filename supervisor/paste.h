/* Commands that are shown so that somebody pastes them. */
#ifndef FLOWSUP_PASTE_H
#define FLOWSUP_PASTE_H

#include <stdbool.h>

#include "flowsup/buf.h"
#include "flowsup/home.h"
#include "flowsup/store.h"

/* Appends "flowsup VERB [--home DIR] RUN [OP]", quoted for a shell; home_option and op may be NULL. */
void paste_command(struct buf *to, const char *verb, const char *home_option, const char *run_id,
    const char *op);
/* Appends the command that resumes a run, however it ended (or paste_with_room()), with the options without which
 * it would be refused, as far as its row tells and, with its home h (or NULL), its files. */
void paste_resume(struct buf *to, const struct home *h, const char *home_option, const struct session *s);
/* By its row it crashed on another host or in another pid namespace: a resume needs --take-over, which
 * paste_resume() gives. */
bool paste_is_elsewhere(const struct session *s);
/* Of one that failed because the list of a foreach was longer than max_ops allows, which fails again however it is
 * resumed: appends the command that does all of it anew. Else false. */
bool paste_with_room(struct buf *to, const struct home *h, const char *home_option, const struct session *s);
/* Of one that has failures and work that does not need them: appends the command that does that work alone.
 * Else false. */
bool paste_keep(struct buf *to, const struct home *h, const char *home_option, const struct session *s);
/* Hints what to do about a run that is at its end, where there is something: to look at what failed, to
 * resume what nobody has resumed. */
void paste_end_hint(const struct home *h, const char *home_option, const struct session *s);
/*
 * Appends a command of one line that begins in column `used`, wrapped between its words to at most
 * `width` columns, so that what is pasted is still the command: a line that goes on ends in " \", the
 * next one is indented by `indent`. A word that is wider than that stays whole; width 0: no wrapping.
 */
void paste_wrap(struct buf *to, struct slice command, int used, int indent, int width);
/* Appends lines of `# text` below a command, which can be pasted with it. */
void paste_comment(struct buf *to, struct slice text, int indent, int width);
/* `hint: COMMAND   # what` on standard error; wrapped where that is a terminal. */
void paste_hint(const char *what, struct slice command);

#endif
