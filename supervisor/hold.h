/*
 * Signals wait while something is made and until the caller was told of it: who interrupts that leaves
 * either nothing, or a run whose id was said.
 *
 *	hold_begin -> files -> hold_check -> row -> the id -> hold_end
 */
#ifndef FLOWSUP_HOLD_H
#define FLOWSUP_HOLD_H

#include <signal.h>

#include "flowsup/err.h"

struct hold {
	sigset_t before;
};

void hold_begin(struct hold *h);

/* Before the point of no return: ERR_INTERRUPTED when HUP, INT or TERM waits that is not ignored. */
int hold_check(struct err *e);

/* Before something is written to fd: what cannot be written at once must stay interruptible, so that
 * nobody who does not read keeps this process. Ends the hold then. */
void hold_before_writing(const struct hold *h, int fd);

/* What a supervisor takes from a descriptor (daemon.c) waits beyond the end of the hold, for one that this
 * process is about to become. */
void hold_keep(struct hold *h);

/* From here on, or from the end of the hold, HUP, INT and TERM say that this run goes on (NULL: only that
 * the command was interrupted), and end the process with the status of an interrupted command. What is
 * ignored stays so. Every command but the supervisor begins with it. */
void hold_tell(const char *run_id);

/* What those signals then call; for handlers that have something to do first. Does not return. */
_Noreturn void hold_leave(int sig);

/* What waited acts now. May be called again. */
void hold_end(const struct hold *h);

#endif
