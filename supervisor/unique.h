/* start --unique: what is done when a job with the same key goes on. */
#ifndef FLOWSUP_SUPERVISOR_UNIQUE_H
#define FLOWSUP_SUPERVISOR_UNIQUE_H

#include "cli.h"
#include "flowsup/store.h"

enum unique_mode { UNIQUE_SKIP, UNIQUE_QUEUE, UNIQUE_FAIL, UNIQUE_REPLACE };
#define UNIQUE_WORDS "skip|queue|fail|replace"
enum { UNIQUE_KEY_MOST = 200 };

/* --unique, --if-running and --queue fit together. */
int unique_usage(const struct cli *c, struct err *e);
enum unique_mode unique_mode(const struct cli *c);
/*
 * Nothing was inserted because `blocker` goes on: counts it, says so, and how long it has gone on. 0 for
 * "skip", -1 with ERR_REFUSED for "fail".
 */
int unique_refused(const struct cli *c, const struct home *h, struct store *s, const char *blocker,
    struct err *e);
/* The run was inserted behind `blocker`: says so, and with "replace" ends all that are before it. */
int unique_behind(const struct cli *c, const struct home *h, struct store *s, const char *run_id,
    const char *blocker, struct err *e);

#endif
