/* Where a user's configuration and the installed data lie. */
#ifndef FLOWSUP_PLACES_H
#define FLOWSUP_PLACES_H

#include <stddef.h>

#include "flowsup/err.h"

/*
 * ${XDG_CONFIG_HOME:-~/.config}/flowsup/NAME as the environment says (envp NULL: this process's);
 * without HOME the account's directory counts. *out is malloc'ed, or NULL when there is no home at
 * all. Whether it exists is not looked at.
 */
int place_config(char *const *envp, const char *name, char **out, struct err *e);
/* NAME in the directory of installed data, found from where the running program stands, in a build
 * tree as in an installed one. *out is malloc'ed. */
int place_data(const char *name, char **out, struct err *e);

/* Length of a file's name before one of these endings (the last is NULL); 0: it has none, nothing stands
 * before it, or the file is hidden. */
size_t place_stem(const char *file, const char *const *endings);

/* The home directory where HOME has the value `named` (NULL: it is not set): the account's when that is
 * no absolute path. Borrowed until the next call; NULL when there is none. */
const char *place_home(const char *named);

/* The value of a variable in envp, borrowed, or NULL; envp NULL: in this process's environment. */
const char *places_variable(char *const *envp, const char *name);

#endif
