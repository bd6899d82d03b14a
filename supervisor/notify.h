/*
 * `notify`: a command is told of an event, once. The event is a row (store.h, Notices) that came with the
 * transition it tells of; whoever claims the row starts the command, and writes what became of it.
 */
#ifndef FLOWSUP_SUPERVISOR_NOTIFY_H
#define FLOWSUP_SUPERVISOR_NOTIFY_H

#include "errand.h"
#include "flowsup/store.h"

enum { NOTIFY_AT_ONCE = 4, NOTIFY_LIMIT_S = 30 };

/* There may be notices that nobody has sent. */
void notify_look(struct daemon *d);
void notify_ended(struct errand *r, const struct proc_end *end);
/* What goes to the command's standard input: one line of JSON. NULL with ERR_NOMEM. */
struct json *notify_payload(const char *home, const struct session *s, const char *event, double at);

#endif
