/* What a run in the queue waits for, as it is now: its row says it as it was when it was looked at last. */
#ifndef FLOWSUP_WAITS_H
#define FLOWSUP_WAITS_H

#include "flowsup/buf.h"
#include "flowsup/home.h"
#include "flowsup/json.h"
#include "flowsup/store.h"

/* Whether it is in the queue, and a supervisor has found that it cannot start now. */
bool waits_are_known(const struct session *s);

/* Remembers who has the slots of a queue, so that thousands that wait ask once. Borrows both. */
struct waits;
struct waits *waits_new(const struct home *h, struct store *s); /* NULL: out of memory */
void waits_free(struct waits *w);

/*
 * {"queue":NAME,"slots":N,"held_by":[RUN...]} or {"key":KEY,"held_by":[RUN]}, with "being_ended":true where
 * only what that run left has it; null where it waits for neither, or this cannot be asked. NULL: out of
 * memory. w may be NULL.
 */
struct json *waits_of(struct waits *w, const struct session *s);
/* Appends why s is as it is: the same in words, else what its row says (view_reason). */
void waits_reason(struct waits *w, const struct session *s, struct buf *to);

#endif
