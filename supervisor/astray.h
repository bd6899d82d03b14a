/*
 * Processes that have come to this supervisor, a subreaper, from operations whose worker has died, or that were
 * allowed to leave them, without session and environment of these. Nothing that the kernel keeps says whose they
 * were. But whoever comes here comes from something: a worker that has died, or a process that was here before. All
 * children are looked at as a worker dies, before it is reaped: what is new then is of the runs of those that have
 * died since the last look, and of those whose processes were here at that. Where this is one run alone, that is a
 * proof, and is written into its log of attempts (ATTEMPT_LINE_STRAY), which whoever ends the run's processes goes
 * by; else it is kept for those who ask, and nobody ends it.
 */
#ifndef FLOWSUP_SUPERVISOR_ASTRAY_H
#define FLOWSUP_SUPERVISOR_ASTRAY_H

#include <stdbool.h>
#include <sys/queue.h>

#include "flowsup/json.h"
#include "flowsup/proc.h"

struct daemon;
struct worker;

/* A child of ours that we did not start, but workers did, or theirs. */
struct astray {
	TAILQ_ENTRY(astray) entry;
	struct proc_id id;
	struct json *of; /* the runs that it may be of: {RUN: true} */
	bool others;	 /* or of nothing that is a run */
	bool known;	 /* by its marks or its program: it is none, and may leave some */
	bool written;
	bool seen;	 /* by the look under way */
};

struct astrays {
	TAILQ_HEAD(astray_list, astray) list;
	bool errands; /* there were some since the last look, which may have left something */
	bool blind;   /* what came since then is not known */
};

void astrays_init(struct astrays *s);
void astrays_clear(struct daemon *d);
/* dead: a worker that has ended and is not reaped, or NULL. */
void astray_look(struct daemon *d, const struct worker *dead);
/* Adds "strays": [{"pid","start","runs":[RUN]}], the first ASTRAY_SHOWN that nothing is written of. */
enum { ASTRAY_SHOWN = 32, ASTRAY_RUNS_SHOWN = 16 };
struct json *astray_describe(const struct daemon *d, struct json *o);

/* For `restart`. */
struct json *astrays_handed(const struct daemon *d);
void astrays_take(struct daemon *d, const struct json *handed);

#endif
