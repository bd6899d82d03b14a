/* launch.json: how a run was asked for. Written once, by rundir_create. */
#ifndef STORE_LAUNCH_H
#define STORE_LAUNCH_H

#include "flowsup/home.h"

enum { LAUNCH_VERSION = 1 };

/* ERR_ENVIRONMENT when the directory's name cannot be kept exactly, ERR_NOMEM. */
int launch_json(const struct launch *l, struct json **out, struct err *e);

#endif
