/*
 * start --foreground: this process is the supervisor of one run alone. It holds no lock but the run's,
 * listens to nobody, and leaves with the run's end; signals reach the run as `stop`.
 */
#ifndef FLOWSUP_SUPERVISOR_FOREGROUND_H
#define FLOWSUP_SUPERVISOR_FOREGROUND_H

#include "cli.h"
#include "flowsup/home.h"

struct daemon;

struct foreground {
	const char *run_id;
	int lock_fd;   /* of the run; stays the caller's and held to the end */
	int values_fd; /* withheld values, or -1 */
	unsigned signals; /* how many asked for its end */
};

/* Serves the run, which is in the database as queued, to its end; returns its exit status, or -1. */
int foreground_run(const struct cli *c, const struct home *h, struct foreground *f, struct err *e);

/* ---- For the daemon ---- */

/* Starts the worker. */
int foreground_begin(struct daemon *d, struct err *e);
/* The first signal drains, each further one ends what runs. */
void foreground_signal(struct daemon *d, int sig);
bool foreground_is_over(const struct daemon *d);

#endif
