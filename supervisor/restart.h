/*
 * Automatic resumes: `restart: {on: crash, attempts: N}`. A crash waits for its turn, longer each time;
 * then `flowsup resume` is executed for it. The row says how many are left, so that whichever
 * supervisor comes next goes on with it; it says none when the policy gives up.
 */
#ifndef FLOWSUP_SUPERVISOR_RESTART_H
#define FLOWSUP_SUPERVISOR_RESTART_H

#include <stdbool.h>
#include <sys/queue.h>

#include "errand.h"
#include "flowsup/buf.h"
#include "flowsup/store.h"

enum {
	RESTART_FIRST_MS = 1000, /* before the first, doubled with each */
	RESTART_MOST_MS = 60000,
	RESTART_QUICK_S = 10, /* a worker that lived for less died quickly */
	RESTART_QUICK_DEATHS = 3, /* so many in a row are the end of it */
	RESTART_TRIES = 8, /* of one resume that met a busy database or a full disk */
	RESTART_LIMIT_S = 600 /* a resume ends what was left, with its grace */
};

struct restart {
	TAILQ_ENTRY(restart) entry;
	char run_id[RUN_ID_TEXT];
	unsigned tries;
	int64_t due_ns; /* 0: under way */
	bool take_over; /* its pid namespace is gone, with all that ran there */
};
TAILQ_HEAD(restart_list, restart);

/* The pause before a restart when so many were made. */
int64_t restart_pause_ns(int64_t done);
/* Whether this end came soon after the beginning. */
bool restart_was_quick(const struct session *s);

void restarts_clear(struct daemon *d);
/* Appends the command that goes on with a run, as far as its row tells: no file of it is read here. */
void restart_tell_command(struct daemon *d, const char *run_id, struct buf *to);
/* The run has crashed: looks at its row and acts on its policy. */
void restart_consider(struct daemon *d, const char *run_id);
/* None is made any more, unless one is under way that has made its run already. The row says why. */
void restart_give_up(struct daemon *d, const char *run_id, const char *why);
/* All that wait for one, after a start. */
int restart_scan(struct daemon *d, struct err *e);
void restarts_due(void *daemon); /* timer */
void restart_ended(struct errand *r, const struct proc_end *end);

#endif
