/* Sending a control, as pause, ctl resume and stop do. */
#ifndef FLOWSUP_CTL_H
#define FLOWSUP_CTL_H

#include "cli.h"
#include "flowsup/json.h"
#include "target.h"

/* The option of every command that sends one. */
#define CTL_WAIT_OPTION                                                                            \
	{.name = "wait", .kind = CLI_DURATION, .value = "TIME", .optional_value = true,            \
	    .help = "follow it: exit 0 applied, 4 rejected, 3 not yet"}

/*
 * Queues a control for t's run, wakes its worker and tells its verdict, if it comes soon; with the command's
 * option --wait (a duration that may lack) follows it. Consumes payload. Exit status, or -1 with *e:
 * ERR_REFUSED when the run or its worker does not take it, ERR_RUNNING when no outcome is known in the time of
 * --wait; without that what is accepted alone is a success.
 */
int ctl_send(struct cli *c, struct target *t, const char *verb, struct json *payload,
    struct err *e);

#endif
