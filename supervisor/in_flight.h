/* Attempts whose worker is dead, and what a resume would be asked about them. */
#ifndef FLOWSUP_SUPERVISOR_IN_FLIGHT_H
#define FLOWSUP_SUPERVISOR_IN_FLIGHT_H

#include "flowsup/flow.h"
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

/* Whether its process is there, and be it to be reaped: that is done when its end is written down. */
bool in_flight_is_there(const struct attempt *a);

/* Whether the supervisor has not said all that it may have to say of an operation: once it has reported what the
 * worker left, it has to say something of what it found running alone. */
bool in_flight_may_be_told(const struct session *s, const char *op);

/* Whether it is an agent's that has given its final record, before any command ended it: how its process ended does
 * not matter then. envp: the run's environment; NULL: this process's. Reads all of its output. */
bool in_flight_has_final_record(const struct home *h, int run_fd, const struct flow *f, char *const *envp,
    const struct attempt *a);

/*
 * What a resume of a run that is at its end would be refused without, as far as its row and its files tell; with
 * `again` one that runs failures again, with `from` (an array of ids, or NULL) a fork that begins there. Files are opened only where the row says that the run has such operations, or
 * has crashed and lost its log of attempts, or may have added something that nobody has saved.
 */
struct in_flight {
	/* leave to repeat what is marked idempotent: false, and was started and has no outcome, or stands behind a
	 * failure that runs again; where the log is lost, anything without an outcome */
	bool asks;
	/* leave to drop what had been added by what runs again, and has an outcome, runs, or has ended meanwhile */
	bool drops;
};
void in_flight_look(const struct home *h, const struct session *s, bool again, const struct json *from,
    struct in_flight *out);

#endif
