/* One member of the run's metadata that is told to the database whenever it has changed. */
#ifndef WORKER_TELLING_H
#define WORKER_TELLING_H

#include <stdbool.h>

#include "flowsup/json.h"
#include "timers.h"

struct worker;

/* Zeroed before first use. */
struct telling {
	struct json *value; /* as it was set last */
	bool changed, busy;
	struct timer again;
};
/* Consumes value (NULL: memory ran out, which stops the run). */
void telling_set(struct worker *w, struct telling *t, struct json *value);
/* In each turn: hands it to the io thread if it has changed. A failure is tried again. name is a
 * constant. */
void telling_go(struct worker *w, struct telling *t, const char *name);
void telling_clear(struct worker *w, struct telling *t);

#endif
