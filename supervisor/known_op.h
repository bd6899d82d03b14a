/* Names of operations that a person wrote, against those that a run has. */
#ifndef FLOWSUP_KNOWN_OP_H
#define FLOWSUP_KNOWN_OP_H

#include "flowsup/flow.h"
#include "flowsup/home.h"
#include "cli.h"
#include "flowsup/store.h"

/* ERR_NOTFOUND: the run has no operation `op`, which stands in a word of the call; the hint is the command
 * with the id that is nearest. */
int known_op_refuse(const char *run_id, const struct flow *f, const char *op, const struct cli *c,
    struct err *e);
/*
 * Looks `op` up in the run's document and in what was added while it ran. -1 by known_op_refuse()
 * when it is in neither; 0 also when they cannot be read: then nobody can tell.
 */
int known_op_check(const struct home *h, const struct session *s, const char *op,
    const struct cli *c, struct err *e);

#endif
