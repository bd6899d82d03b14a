/*
 * Ends the operations that a dead worker left, and proves that none is left.
 *
 * A process is taken for one of the run's only when one of these holds: it is the leader that a
 * start line names (pid and start time), it is in the process group of such a leader while that
 * one still pins the group's number, it descends from it, it descends from the worker, which is stopped,
 * or did so when that was about to be ended, the log names it as a stray, or its environment carries the
 * session's and this home's marks. Whatever else is in a group of that number is named and left alone.
 */
#ifndef FLOWSUP_ENDOPS_H
#define FLOWSUP_ENDOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "flowsup/flow.h"
#include "flowsup/home.h"
#include "flowsup/json.h"

struct endops_result {
	unsigned found, killed, lasting; /* processes; how many of them needed SIGKILL; how many did not end */
	/* [{"pid","op" or null,"why"}]: what still lives, or may belong to the run without a proof. Empty
	 * means that nothing is left. */
	struct json *left;
	bool elsewhere; /* the worker ran on another host or in another pid namespace: nothing was done */
};
void endops_clear(struct endops_result *r);

/*
 * Strays, which are of the run and of nobody knows which operation. They are ended when nothing of it goes on;
 * where an operation was allowed to leave something, or only one is meant, they may be what must not be.
 */
enum endops_strays { ENDOPS_STRAYS_END, ENDOPS_STRAYS_LEAVE };

struct endops_request {
	const struct home *home;
	const char *run_id, *session_id; /* whose log the attempts are */
	const struct attempts *attempts;
	const struct flow *flow; /* or NULL; spares what an operation with `leave` left after its end */
	enum endops_strays strays;
	const char *only;	 /* one operation's processes; NULL: those of all */
	/* Attempts that are left alone with all that bears their operation's mark; NULL: none. */
	bool (*spares)(void *arg, const struct attempt *a);
	void *arg;
	const struct proc_id *also; /* processes that were seen below the worker while it lived */
	size_t nalso;
	/*
	 * The worker, stopped, or pid 0: what descends from it is the run's, also what is born while the
	 * others end; with it alive whatever loses its parent comes to it.
	 */
	struct proc_id below;
	int64_t grace_most_ns;	/* bounds the graces of start lines; below 0: no bound */
	const char *class;	/* is written as stopped.json before the first signal; or NULL */
};

/*
 * Blocks. The caller holds the run's lock, or keeps the worker stopped, so that none starts anything meanwhile. Signals of the
 * start line's plan, TERM once to each, the grace of its start line, KILL; then again until a pass
 * over /proc finds nothing. 0 with *out filled also when something is left; -1 when it could not be
 * looked at all (ERR_IO, ERR_NOMEM).
 */
int endops_run(const struct endops_request *q, struct endops_result *out, struct err *e);
/* "operation x: process 12 (why)" of each, joined, for messages. */
void endops_tell_left(const struct endops_result *r, struct buf *to);
/* Whether the latest worker line (none: yes) is of this host and pid namespace. After a boot of the
 * host nothing that it names can be alive: then here and other_boot. */
int endops_is_here(const struct attempts *attempts, bool *here, bool *other_boot, struct err *e);

#endif
