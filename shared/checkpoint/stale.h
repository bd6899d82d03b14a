/* Records of another generation that a journal was found with. */
#ifndef CHECKPOINT_STALE_H
#define CHECKPOINT_STALE_H

#include "capture.h"
#include "state.h"

/*
 * Whether they may go. A writer that died between a new base and its empty journal leaves records that the
 * base holds. Any others are somebody else's, or the base has been exchanged, and they are nowhere else.
 *
 * An entry is held when the state has it, or, of a request that was pending, its outcome. What a patch did
 * is held when the base's context has it where no later patch took it away again; or when the base has an
 * outcome that ended behind all of theirs, so that it was written behind them all, with what it may have
 * changed since.
 *
 * 0, or -1 with ERR_REFUSED, ERR_NOMEM.
 */
int stale_check(const struct capture *c, const struct state *state, struct err *e);

#endif
