/* Attempts whose worker is dead, and what a resume would be asked about them. */
#ifndef FLOWSUP_SUPERVISOR_IN_FLIGHT_H
#define FLOWSUP_SUPERVISOR_IN_FLIGHT_H

#include "flowsup/home.h"
#include "flowsup/store.h"

/* The ops/ directory that has an attempt's files: in the run's own directory run_fd, or in that of the run of h (or
 * NULL) that started it. -1: it is not there. */
int in_flight_open_ops(const struct home *h, int run_fd, const struct attempt *a);

/*
 * What has become of an attempt without an end: "running", "ended", "stopped" (by a command: it counts as
 * without an outcome), or NULL: nothing is written down. same_boot: numbers of processes mean something.
 */
const char *in_flight_state(const struct home *h, int run_fd, const struct attempt *a, bool same_boot);

/*
 * Whether a resume of a run that is at its end would be refused without leave to repeat what is marked idempotent:
 * false, as far as its files tell: it was started and has no outcome, or, with `again`, stands behind a failure
 * that is to run again. The same of a run that
 * has crashed and whose log of attempts is lost, of any operation without an outcome. Of other runs
 * files are opened only where their policy says that they have such operations.
 */
bool in_flight_asks(const struct home *h, const struct session *s, bool again);

#endif
