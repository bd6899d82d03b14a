/* Which runs may be removed, and their removal. Used by the command and by the supervisor's daily round. */
#ifndef FLOWSUP_SUPERVISOR_GC_H
#define FLOWSUP_SUPERVISOR_GC_H

#include <stdbool.h>
#include <stdint.h>

#include "flowsup/home.h"
#include "flowsup/store.h"
#include "leftover.h"

struct gc_rules {
	double keep_s;	      /* ended more recently: kept; < 0: no such rule */
	double keep_failed_s; /* the same for runs that did not complete; < 0: keep_s holds */
	int64_t keep_runs;    /* so many newest are kept; < 0: no such rule */
};

struct gc_item {
	char run_id[RUN_ID_TEXT];
	const char *held; /* why it is kept all the same, or NULL: it is removed */
};
struct gc_plan {
	struct gc_item *items; /* old enough; newest first: successors before what they need */
	size_t count, cap;
	size_t kept, needed; /* needed: old enough, but later runs need them */
};
/*
 * Who hears of what is set aside: its files cannot be looked at or taken away, which is nothing to the others.
 * name: in the directory of the runs.
 */
struct gc_aside {
	void (*tell)(void *arg, const char *name, const struct err *why);
	void *arg;
};
/* Waits until no other gc removes: two at once would take each other's directories away. Held until the
 * caller closes it. */
int gc_alone(const struct home *h, int *lock_fd, struct err *e);
/*
 * Reads the rows, and looks at what is old enough; removes nothing. Never among them: what is not at its
 * end, waits for its automatic resume, or has a successor or a fork that stays. What something of runs or
 * holds is held, and stays with what it needs; so does what is set aside, which is in no plan.
 */
int gc_plan(const struct home *h, struct store *s, const struct gc_rules *rules, double now,
    struct leftovers *left, const struct gc_aside *aside, struct gc_plan *out, struct err *e);
void gc_plan_clear(struct gc_plan *p);
/*
 * Removes one: under its lock the directory is renamed, the row deleted, the tree removed. 0; 1 when it
 * is kept because something of it runs or holds it (*why says what), or is set aside (*why is NULL); -1 with *e.
 */
int gc_remove(const struct home *h, struct store *s, const char *run_id, struct leftovers *left,
    const struct gc_aside *aside, const char **why, struct err *e);
#define GC_GONE ".gone-" /* begins the name of a directory that is being removed */
/* Finishes removals that were interrupted, and takes away directories of starts that were cut off. */
int gc_leftovers(const struct home *h, struct store *s, bool dry_run, const struct gc_aside *aside, unsigned *found,
    struct err *e);

#endif
