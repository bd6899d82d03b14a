/*
 * What there is to say about runs, as JSON values. Commands print these; nothing here prints. The
 * members are described in flowsup(1), JSON.
 */
#ifndef FLOWSUP_VIEW_H
#define FLOWSUP_VIEW_H

#include "flowsup/flow.h"
#include "flowsup/home.h"
#include "flowsup/json.h"
#include "flowsup/store.h"
#include "leftover.h"
#include "rundirs.h"

struct view {
	const struct home *home;
	struct store *store;
	const char *home_option; /* --home as given, repeated in commands to paste; or NULL */
	struct json *supervisor; /* client_status, or NULL: none listens */
	struct proc_place here;
	bool has_here;
	struct leftovers *left; /* or NULL: they are not asked for */
	struct rundirs *dirs;
	struct waits *waits; /* or NULL: what queued runs wait for is said as their rows have it */
};
/* Asks a running supervisor what it knows; starts none. Borrows all but what it asks for. */
void view_init(struct view *v, const struct home *h, struct store *s, const char *home_option);
void view_clear(struct view *v);

/* One run without its operations: what `list --json` shows. NULL with *e. */
struct json *view_run(const struct view *v, const struct session *s, struct err *e);
/* Whether the run's directory is there. */
bool view_has_directory(const struct view *v, const struct session *s);
/* What a table of runs shows of one that is not plain (store.h) or lacks its directory, and no more. */
struct json *view_run_brief(const struct view *v, const struct session *s, struct err *e);
/* Whether it starts nothing more while what runs may end, as the views have it: {"stopping":...,"draining":...}.
 * NULL: out of memory. */
struct json *view_ending(struct store *store, const struct session *s);
/* With operations, transitions, controls and the state of its checkpoint: `show --json`. */
struct json *view_run_full(const struct view *v, const struct session *s, struct err *e);
/*
 * A run whose row says that it runs and whose lock is free is marked so. For a moment that is so of
 * each run that ends: its row is read before the lock. So what is shown is settled first.
 */
#define MARK_NO_WORKER "no worker"
enum { VIEW_SETTLE_MS = 1000, VIEW_SETTLE_STEP_MS = 20 };
bool view_lacks_worker(const struct json *run);
typedef struct json *view_fn(const struct view *v, const struct session *s, struct err *e);
/*
 * Makes *run anew from its row until it is not marked so any more, or until that time, and at least
 * once. Not inside a walk over rows: its snapshot would stay. -1 with *e, *run stays.
 */
int view_settle(const struct view *v, view_fn *make, int64_t until_ns, struct json **run,
    struct err *e);

#define STORAGE_TROUBLE "run.running.storage" /* the reason of a run that cannot save */

/* The files of one run, opened together. */
struct run_files {
	int fd;
	bool lock_held, lock_free; /* neither: there is none that can be asked */
	bool stopped; /* a stop was applied; the caller says so */
	const char *waits; /* of a run in the queue what it waits for, from the caller; or NULL */
	struct flow *flow;     /* NULL: could not be read, flow_error says why */
	struct json *problems; /* seek_problems(); with the state only, else NULL */
	struct json *state;    /* of the checkpoint, or NULL */
	struct json *carry;    /* state that a resumed run began with, or NULL */
	struct json *report;   /* checkpoint_recovery, or NULL when there is no checkpoint */
	struct buf trouble;    /* why its worker cannot save at this moment, which the row may not say; or empty */
	struct attempts attempts;
	struct err flow_error, state_error;
};
/* with_state loads the checkpoint too. -1 when the run directory cannot be opened (ERR_IO: gone) or
 * memory ends; unreadable files in it are told in the struct. */
int run_files_open(const struct home *h, const struct session *s, bool with_state,
    struct run_files *f, struct err *e);
void run_files_close(struct run_files *f);
/* What it goes on from: its checkpoint's state, or, of a resumed run that has saved none yet, what it began with; or
 * NULL. */
const struct json *view_state(const struct run_files *f);

/* An array with one object for each operation, in the document's order. NULL: out of memory. */
struct json *view_operations(const struct run_files *f, const struct session *s);
/* Of files with their state and flow: what had an outcome in the run that this one resumes, an object
 * with their ids. NULL: out of memory. */
struct json *view_carried(const struct run_files *f);
/* By operation how many of its requests were rejected, by reason: by this run, as its events say, and before
 * (config.rejected_by_operation, of the run's state; NULL: by none). NULL: out of memory. */
struct json *view_rejected(int run_fd, const struct json *state);
/* How many operations of a run with a dead worker still run. */
unsigned view_survivors(const struct attempts *a);
/* By its row alone: it came to an end from which it can go on, and nothing does so yet. */
bool view_is_resumable(const struct session *s);
/* Why it is as it is; of one that its policy gave up, also why. */
void view_reason(const struct session *s, struct buf *to);
/* Of one that has crashed and had automatic resumes, or was to: appends that none follows, and why. Else false. */
bool view_given_up(const struct session *s, struct buf *to);
double view_duration(const struct session *s); /* seconds; -1: never started */
struct json *view_time(double at); /* null for 0: not known */
/* Seconds since a process with this start time began. */
double view_process_age(uint64_t start_ticks);

#endif
