/*
 * What a dead worker's operations left: processes that are found although none of those runs any more
 * whose numbers are known, and the end of all of it.
 */
#ifndef FLOWSUP_SUPERVISOR_LEFTOVER_H
#define FLOWSUP_SUPERVISOR_LEFTOVER_H

#include <stddef.h>

#include "flowsup/endops.h"
#include "flowsup/home.h"
#include "flowsup/store.h"

/*
 * Processes that came to the supervisor without session and environment of their operation, and of which it is not
 * proved whose they are (astray.h): those that may be of this run, or of one that it goes on from, and those of its
 * strays that are not ended because an operation was allowed to leave them. The text is the caller's. orphaned: the
 * worker has died after the supervisor that had started it: then nobody knows.
 */
struct leftover_unknown {
	struct buf text;
	struct json *pids; /* or NULL; with text the caller's: leftover_unknown_clear() */
	unsigned n, left;  /* left: of those, the ones that an operation may have left */
	bool orphaned;
	pid_t silent;	   /* the supervisor, which may know of some, and does not answer; or 0 */
};
void leftover_look_unknown(const struct home *h, struct store *store, const struct session *s,
    const struct attempts *a, struct leftover_unknown *out);
void leftover_tell_unknown(const struct leftover_unknown *u, const char *run_id);
void leftover_unknown_clear(struct leftover_unknown *u);
/* "process 12 (sleep 1000)" */
void leftover_add_process(struct buf *to, pid_t pid);
/* Has the supervisor look, where there is one, at what has come to it: what it can prove is in the logs then. */
void leftover_have_looked(const struct home *h);

/* Of a child of the supervisor's: whether it is a program of ours (a keeper, or what it started itself); the run
 * whose marks it bears, false: none. */
bool leftover_is_ours(pid_t pid);
bool leftover_run_of(pid_t pid, char run_id[RUN_ID_TEXT]);
/* How many strays of this run live that are to be ended. */
unsigned leftover_strays(const struct attempts *a);

/*
 * The processes that bear the marks of runs of this home. They are looked for with the first question,
 * by one walk for all runs: what has begun since is not among them. Borrows the home.
 */
struct leftovers;
struct leftovers *leftovers_new(const struct home *h); /* NULL: out of memory */
void leftovers_free(struct leftovers *l);
/* Of how many operations of this run, whose attempts these are, something runs. What an operation with
 * `leave` left does not count. -1 with *e when it could not be looked. */
int leftovers_count(struct leftovers *l, const char *run_id, int run_fd, const struct attempts *a,
    struct err *e);

/* The processes that bear a session's marks, of whatever home; visit ends the walk by a true result. */
typedef bool leftover_visit(void *arg, const char *op, pid_t pid);
int leftover_each(const char *session_id, leftover_visit *visit, void *arg, struct err *e);

/* What is known beside the run's files. */
struct leftover_kin {
	struct proc_id worker;	    /* stopped by the caller, or pid 0 */
	const struct proc_id *seen; /* below a worker while it lived */
	size_t nseen;
};
/*
 * Ends all that runs of one without a worker, or with one that is stopped, as endops_run(). The caller holds
 * the lock, or keeps the worker stopped. run_fd -1: the directory is gone; it is known by its marks. kin NULL: none.
 */
int leftover_end(const struct home *h, const struct session *s, int run_fd, const struct leftover_kin *kin,
    struct endops_result *out, struct err *e);
/* 0, or -1 with *e where not all of it was ended: ERR_REFUSED, ERR_TIMEOUT. */
int leftover_check(const struct session *s, const struct endops_result *r, struct err *e);

/*
 * Both, of one that is queued or has crashed. A resume has what outlived its predecessor's worker for its
 * own from its first moment on, also in the queue: nobody else sees to that any more.
 */
int leftover_end_all(const struct home *h, const struct session *s, int run_fd, struct err *e);

#endif
