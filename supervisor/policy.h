/* What a flow asks the supervisor for, as it stands in the row of its run (store.h, session_new). */
#ifndef FLOWSUP_SUPERVISOR_POLICY_H
#define FLOWSUP_SUPERVISOR_POLICY_H

#include "cli.h"
#include "flowsup/flow.h"
#include "flowsup/store.h"

enum { POLICY_RESTARTS = 3, POLICY_RESTARTS_MOST = 1000 };

/* Member of the object: the document says that a resume runs again what failed. */
#define POLICY_RETRIES_FAILED "retries_failed"
/* The same: some operation is marked idempotent: false, or a planner may say so of one. */
#define POLICY_UNREPEATABLE "unrepeatable"

struct policy {
	struct json *object; /* for session_new.policy */
	const char *notify;  /* "problems", "all" or NULL */
	int64_t restarts;    /* automatic resumes after crashes */
};
/* withheld: array of names or NULL; foreground: nobody but the caller looks after the run. */
int policy_of(const struct flow *f, const struct json *withheld, bool foreground, struct policy *out,
    struct err *e);
void policy_clear(struct policy *p);

/* Whether the program of a notify value (NULL: there is none) is found by the search path of a run's
 * environment; else -1 with ERR_ENVIRONMENT. */
int policy_check_notify(const struct json *notify, const char *search_path, struct err *e);

/*
 * The options --notify and --restart of start and resume, for struct flow_overrides: *notify and
 * *restart are NULL where they are not given, else the caller's. A notify value is a program, or in
 * JSON an argv or {"command": argv, "on": "problems" | "all"}. `now` is the flow's own restart or NULL.
 */
int policy_options(const struct cli *c, const struct json *now, struct json **notify,
    struct json **restart, struct err *e);

#endif
