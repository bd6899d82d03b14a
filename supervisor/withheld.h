/*
 * Environment values that are kept out of files: passwords, tokens, keys. launch.json names them; the
 * values go from the command to the supervisor, and from it to the worker, as a sealed memfd of
 * NAME=VALUE entries, each ended by NUL.
 */
#ifndef FLOWSUP_SUPERVISOR_WITHHELD_H
#define FLOWSUP_SUPERVISOR_WITHHELD_H

#include <stdbool.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"
#include "flowsup/json.h"

#define WITHHELD_BYTES ((size_t)1 << 20)

/* Whether the value of `NAME=VALUE`, or NAME, is one to be kept out of files. */
bool withheld_is(const char *entry);
/* The names of such values in an environment (NULL-terminated), none where the configuration says
 * `secrets: store`: array, NULL with *e. */
struct json *withheld_names(char *const *environment, struct err *e);
/* Takes them out of a list of entries, in place. What the configuration says counts where it can be read. */
void withheld_take_out(char **environment);
bool withheld_has(const struct json *names, const char *name);
/* The entry `name` of an environment, or NULL. */
const char *withheld_find(char *const *environment, const char *name);
/*
 * A sealed memfd with those of `names` that stand in `first`, else in `second` (may be NULL); -1
 * with *e. No names: -1 without an error. The caller closes it.
 */
int withheld_gather(const struct json *names, char *const *first, char *const *second,
    struct err *e);
/*
 * The entries of a memfd, of those names that `present` lacks: *block holds their text and is wiped and freed
 * by withheld_wipe, *list (NULL-terminated) is freed.
 */
int withheld_read(int fd, const struct json *names, char *const *present, struct buf *block, char ***list,
    struct err *e);
void withheld_wipe(struct buf *block);
/* Names that `environment` lacks: array, NULL with ERR_NOMEM. */
struct json *withheld_missing(const struct json *names, char *const *environment, struct err *e);

#endif
