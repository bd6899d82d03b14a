/* What becomes of a run of this copy in the state directory that it belongs to. */
#ifndef FLOWSUP_SUPERVISOR_ELSEWHERE_H
#define FLOWSUP_SUPERVISOR_ELSEWHERE_H

#include "flowsup/buf.h"
#include "flowsup/store.h"

/*
 * Appends "here a copy of that of the state directory 'DIR', where it goes on (running)" or "where it has
 * ended (completed)", as the database there says of the latest run of its chain; where that cannot be read,
 * the directory alone. Opens that database without a trace. For commands only.
 */
void elsewhere_tell(const struct session *s, const char *owner, struct buf *to);

#endif
