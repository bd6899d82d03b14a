/* Controls as they are shown: of one run, or of a job, whose rows hang on each of its runs. */
#ifndef FLOWSUP_MAILBOX_H
#define FLOWSUP_MAILBOX_H

#include "cli.h"
#include "flowsup/json.h"
#include "flowsup/store.h"

/* A control of run s, as `ctl status --json` shows it; with the commands that close it, where only a
 * person can. home_option: for that, or NULL. */
struct json *mailbox_control(const struct control *c, const struct session *s, const char *home_option);
/* Sets `command` and `commands`, which close it in one way or the other. Consumes o. */
struct json *mailbox_resolve_commands(struct json *o, const char *home_option, const char *id);
/* Those of a control, each as a hint. */
void mailbox_hint(const struct json *control);

/* Appends the controls of s to *to. */
int mailbox_of_run(struct store *st, const struct session *s, const char *home_option,
    struct json **to, struct err *e);
/* The same, after those of the runs before it in its chain of resumes; with `lost`, of those only what a
 * dead worker had claimed. */
int mailbox_of_job(struct store *st, const struct session *s, const char *home_option, bool lost,
    struct json **to, struct err *e);
/* What dead workers of s, and of the runs before it, had claimed: one line each, and how it is closed. */
void mailbox_tell_lost(const struct cli *c, struct store *st, const struct session *s);

#endif
