/* Which runs have their directory, asked for one after the other by a list of them. */
#ifndef FLOWSUP_SUPERVISOR_RUNDIRS_H
#define FLOWSUP_SUPERVISOR_RUNDIRS_H

#include <stdbool.h>

#include "flowsup/home.h"

/* Borrows the home. NULL: out of memory. */
struct rundirs;
struct rundirs *rundirs_new(const struct home *h);
void rundirs_free(struct rundirs *d); /* NULL is harmless */
/* Whether there is a directory of this run. After many questions the names are read all at once, which costs less
 * than a look at each; one that is not among them is looked for, as it may have been made since. */
bool rundirs_has(struct rundirs *d, const char *run_id);

#endif
