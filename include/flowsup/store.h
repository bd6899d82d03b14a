/*
 * state.db: the directory of runs and the mailbox for controls. Never asked what an operation
 * returned. SQLite in WAL mode, synchronous=FULL; every write is one BEGIN IMMEDIATE transaction.
 * One connection per process, never across fork. All calls may block (busy database: up to the
 * given limit), but store_was_touched: the worker's loop never calls them, its io thread does.
 */
#ifndef FLOWSUP_STORE_H
#define FLOWSUP_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "flowsup/err.h"
#include "flowsup/home.h"
#include "flowsup/json.h"
#include "flowsup/status.h"

enum { STORE_BUSY_MS = 10000, STORE_SCHEMA_VERSION = 3 /* steps */ };
#define STORE_TICK_NS (2 * INT64_C(1000000000)) /* controls are looked at so often without a wake-up */

struct store;
enum store_role {
	STORE_COMMAND,
	STORE_WORKER,
	STORE_SUPERVISOR, /* runs WAL checkpoints */
	STORE_DRY	  /* reads only, and leaves no trace of that */
};

/* Opens, creates when `create`, migrates older schemas by numbered steps in one transaction (while
 * runs are live only those that change nothing for an older program), refuses a newer one
 * (ERR_REFUSED with a hint). ERR_BUSY, ERR_NOTFOUND, ERR_IO, ERR_NOSPACE.
 * A command that creates nothing reads also where nothing can be written (a read-only file system, a
 * directory without permission to write); its writes then fail with ERR_PERMISSION.
 * STORE_DRY makes no file, changes none and migrates a copy in memory; `create` must be false. */
int store_open(const struct home *h, enum store_role role, bool create, int busy_ms,
    struct store **out, struct err *e);
void store_close(struct store *s);
/* How long later calls wait for a busy database. */
void store_set_busy(struct store *s, int busy_ms);
/* How many steps of the schema wait for live runs to end. */
int store_steps_waiting(const struct store *s);
/* How many steps of a newer program are noted: they change nothing for this one. */
int store_steps_unknown(struct store *s, int *count, struct err *e);
/* Looks at every page, and whether all that this program asks for is there. ERR_IO says what is not. */
int store_verify(struct store *s, struct err *e);
/* Whether the database's name leads elsewhere since it was opened: the file was removed, or another
 * one was put in its place. What is written then is lost to everybody else. */
bool store_has_moved(struct store *s);
int store_checkpoint(struct store *s, struct err *e); /* PRAGMA wal_checkpoint(PASSIVE) */
/* Gives up memory that only makes the next calls faster: statements and pages. */
void store_shrink(struct store *s);

/* How the database's write-ahead log looked; zeroed before first use. */
struct store_mark {
	dev_t dev;
	ino_t ino;
	off_t size;
	int64_t changed_ns;
};
/*
 * Whether somebody may have committed since the last call with this mark. Needs no connection, opens
 * nothing and takes no lock: one fstatat(2). A commit can become visible later than it was written, by
 * as long as its fsync takes: who relies on "no" looks again after that.
 */
bool store_was_touched(const struct home *h, struct store_mark *mark);

/* ---- Sessions: one row a run ---- */

/* Strings are owned by the struct; "" where the column is null. */
struct session {
	char run_id[RUN_ID_TEXT], session_id[UUID_TEXT], invocation_id[INVOCATION_ID_TEXT];
	char origin[UUID_TEXT];		/* session id of the first run of its chain */
	char resumed_from[UUID_TEXT];	/* session id */
	char resumed_from_run[RUN_ID_TEXT]; /* its run id */
	char resumed_as_run[RUN_ID_TEXT];   /* the run that resumed this one, or "" */
	char *kind, *name;
	enum run_status status;
	char *reason_code, *reason;
	double created_at, started_at, ended_at; /* epoch seconds; 0: not yet */
	int64_t done, total;
	struct json *metadata; /* object */
	struct json *labels;   /* object of strings */
	/* Of its job */
	char *queue;	  /* "": in none */
	char *unique_key; /* "": none */
	struct json *policy; /* object, see struct session_new */
	char *notify;	     /* "", "problems", "all" */
	char *place;	     /* of its worker (proc_place_text), "": it had none */
	int64_t restarts_left, restarts_done, quick_deaths;
};
void session_clear(struct session *s);

struct session_new {
	const char *run_id, *session_id, *invocation_id, *kind, *name;
	const char *resumed_from; /* session id or NULL: chain and unclaimed controls go over */
	int64_t done, total; /* done: what a resume replays */
	const struct json *metadata, *labels; /* or NULL; labels hold strings */
	const char *play; /* a playbook's name: the call gets a row of `plays`; or NULL */
	const struct json *arguments; /* of the play, or NULL */
	const char *queue; /* NULL: that of resumed_from, else "default" */
	/* At most one job with this key goes on; NULL: that of resumed_from, else none. */
	const char *unique_key;
	bool behind;	/* where one does: wait for its end. Else ERR_RUNNING, with its run in blocker */
	bool replace;	/* with behind: what runs with the key is told to stop, in the same transaction */
	char *blocker;	/* RUN_ID_TEXT bytes, or NULL; "" when nothing is in the way */
	/* {"notify":{"command":[...]},"watchdog_ns":N,"withheld":[NAME...],"foreground":true}, or NULL */
	const struct json *policy;
	const char *notify; /* "problems", "all", or NULL */
	int64_t restarts_left, restarts_done, quick_deaths;
	const char *place; /* of a worker that is started by the caller (foreground), or NULL */
};
/* Inserts as queued, with its first status transition; with resumed_from in the same transaction
 * also the hand-over. ERR_REFUSED when resumed_from already has a successor (message names it). */
int session_insert(struct store *s, const struct session_new *n, struct err *e);
int session_read(struct store *s, const char *run_id, struct session *out, struct err *e);

/*
 * One move of the table in status.h, with its reason and a status_transitions row, status, end
 * time and counts in one statement. *moved (may be NULL) is false when the run is terminal already or
 * the move is not allowed from where it is: nothing was written. text may be NULL: the table's. A
 * negative `done` leaves the count. A crash of a run that was being stopped says so in its text and
 * gives up its restarts; stops that its worker had not answered have been applied by it.
 */
int session_transition(struct store *s, const char *run_id, enum run_status to,
    const char *reason_code, const char *text, int64_t done, bool *moved, struct err *e);
int session_progress(struct store *s, const char *run_id, int64_t done, int64_t total,
    struct err *e);
/* What was added and what was rejected, as `show --json` has it; null or absent: nothing. */
#define META_GROWTH "growth"
/* Of a run that nobody counts any more: `done`, `total` and `growth` of flow_progress, in one transaction. Requests
 * that were rejected stand in no checkpoint of the run that rejected them: those that the row has stay. */
int session_counted(struct store *s, const char *run_id, const struct json *counts, struct err *e);
/* Member of metadata: true from the first failure that a resume has to be told what to do about. */
#define META_FAILURES "failures"
/* true once a resume that runs failures again loses outcomes of operations that were added. */
#define META_LOSES_ADDED "loses_added"
/* true once an operation has failed because the conversation that it was to go on in was lost. */
#define META_LOST_CONTEXT "lost_context"
/* How many operations a run would have to be allowed to hold what was refused for want of room: the lists of all
 * foreach that failed for it, and further tries that were due. An integer. */
#define META_MAX_OPS "max_ops_wanted"
/* From where a run would have to be forked for lists of foreach that failed because there is none in the response
 * that each is over: ids of these operations. */
#define META_FORK_FROM "fork_from"
/* Of a planner's answer that was cut: {"left_out": how many of its operations, "allowed": how many there may be}. */
#define META_PLAN_CUT "plan_cut"
/* Of a planner's answer with lists that are empty: as flow_empty_lists has it. */
#define META_PLAN_EMPTY "plan_empty"
/* Why a run that its policy should have resumed is not resumed by itself: text. */
#define META_NOT_RESTARTED "not_restarted"
/* The home in which the run was made: {"path","device","inode"}, of its directory. */
#define META_MADE_IN "made_in"
/* Sets one member of metadata, JSON null takes it away; with "waiting" comes a notice for each operation in it. Consumes value. */
int session_metadata(struct store *s, const char *run_id, const char *name, struct json *value,
    struct err *e);

/*
 * Whether a run was made in this home. OTHER: this home is a copy of that one, which is still there
 * (*path, borrowed from s; else NULL): what goes on of the run is that one's. UNKNOWN: nothing of that
 * kind is known, as where the home was moved over file systems.
 */
enum session_home { SESSION_HOME_THIS, SESSION_HOME_OTHER, SESSION_HOME_UNKNOWN };
enum session_home session_home(const struct session *s, const struct home *h, const char **path);
bool session_is_copy(const struct session *s, const struct home *h);
/* The home (borrowed from s) that alone knows what becomes of a run of this copy: one that is not at its end,
 * has crashed or was cancelled, perhaps here alone, and was not resumed. Else NULL. */
const char *session_owner(const struct session *s, const struct home *h);

/* Removes the row of a run that is at its end, and all that hangs on it; 0 also when there is none.
 * ERR_REFUSED when it is not at its end. */
int session_remove(struct store *s, const char *run_id, struct err *e);

struct session_filter {
	enum run_status statuses[STATUS_COUNT]; /* none: all */
	unsigned nstatuses;
	const struct json *labels; /* all of these, or NULL */
	double since;		   /* created at or after; 0: all */
	bool restarting;	   /* only those that wait for an automatic resume */
	const char *unique_key;	   /* only those with this key, or NULL */
	bool foreground;	   /* only those that a command serves itself */
	bool oldest_first;	   /* default newest first */
	bool brief;		   /* what a table shows: see session_is_plain() */
	int64_t limit;		   /* <= 0: all */
};
/*
 * At its end, and nothing goes on from it. Most rows of a long list are of this kind; of these a brief
 * list reads run, name, status, times, progress and what resumed it, of others reason, metadata, policy
 * and its restarts too. The rest is empty or NULL.
 */
bool session_is_plain(const struct session *s);
/* each is given a session that is cleared after it returns; non-zero stops. */
typedef int session_each(void *arg, const struct session *s);
int session_list(struct store *s, const struct session_filter *f, session_each *each, void *arg,
    struct err *e);
struct transition {
	enum run_status status;
	const char *reason_code, *reason;
	double at;
};
typedef int transition_each(void *arg, const struct transition *t);
int session_transitions(struct store *s, const char *run_id, transition_each *each, void *arg,
    struct err *e);

/*
 * Finds the run a person means: run id, or a prefix of a run, session, invocation or play id, or
 * @last, @last-failed. A full-length id skips the ambiguity check. ERR_NOTFOUND (hint: flowsup
 * list), ERR_AMBIGUOUS with the candidates named.
 */
int session_resolve(struct store *s, const char *target, struct session *out, struct err *e);
/* The latest run of its chain of resumes; run_id itself when it was not resumed. */
int session_latest(struct store *s, const char *run_id, struct session *out, struct err *e);

/* ---- Jobs: a run and its resumes ---- */

/* It crashed, and its restart policy will make it go on: no end for who waits for the job. */
bool session_is_restarting(const struct session *s);
/* It is behind its deadline: nothing of it starts, and what runs may end. */
bool session_is_draining(const struct session *s);
/* No automatic resume any more; `why` (NULL: nothing is said) goes into the metadata as
 * "not_restarted". *gave_up (may be NULL) is false when there was none to come. */
int session_give_up(struct store *s, const char *run_id, const char *why, bool *gave_up,
    struct err *e);
/* To "starting", with the place (proc_place_text) of the worker that is about to be. */
int session_starting(struct store *s, const char *run_id, const char *place, bool *moved,
    struct err *e);
/* Whether anything needs a supervisor: a run that is not at its end, one that waits for its automatic
 * resume, a notice that nobody has sent. A run that waits for a person's values alone needs none. */
int store_has_work(struct store *s, bool *any, struct err *e);

/* Counts a start that `run_id` kept from starting; *first is when it first did so, *count how often. */
int session_blocks(struct store *s, const char *run_id, double *first, int64_t *count,
    struct err *e);
#define UNIQUE_LONG_S 3600 /* who blocks others for longer is reported */

enum { QUEUE_NAME_MOST = 64, QUEUE_SLOTS_MOST = 1000000 };
#define QUEUE_DEFAULT "default"
/* [A-Za-z0-9][A-Za-z0-9._-]{0,63} */
bool queue_name_is_valid(const char *name);
struct queue_row {
	const char *name;
	int64_t slots; /* 0: unlimited */
	int64_t running, waiting;
	bool known; /* it was set; else it is only in use */
};
int queue_set(struct store *s, const char *name, int64_t slots, struct err *e);
typedef int queue_each_fn(void *arg, const struct queue_row *q);
int queue_each(struct store *s, queue_each_fn *each, void *arg, struct err *e);

/* What keeps a queued run from being started. */
struct queue_standing {
	bool no_slot;		   /* those before it have all slots of its queue */
	char blocker[RUN_ID_TEXT]; /* an older job with its key; "": none */
	bool being_ended;	   /* of that one only what a stop has left runs */
};
int queue_standing(struct store *s, const struct session *queued, struct queue_standing *out,
    struct err *e);
/* Only what has its key: "" in run_id where it has none or nobody does. */
int unique_holder(struct store *s, const struct session *queued, char run_id[RUN_ID_TEXT], bool *being_ended,
    struct err *e);
/* The jobs that have a slot of this queue, by the runs that go on, oldest first; *slots 0: it has no limit,
 * and none is named. */
typedef int queue_run_fn(void *arg, const char *run_id);
int queue_holders(struct store *s, const char *queue, int64_t *slots, queue_run_fn *each, void *arg,
    struct err *e);
/* Queued runs that may start now, oldest first, and those whose row does not say yet why not. */
int queue_startable(struct store *s, queue_run_fn *each, void *arg, struct err *e);

/* ---- Notices: events that somebody asked to be told of ---- */

/* Made with the transition, for runs with `notify`; each once in a run. */
struct notice {
	const char *run_id, *event, *outcome; /* outcome "": none yet */
	double at, claimed_at, ended_at;      /* 0: not yet */
};
/* Makes one, if the run asked for it (`problem`: it counts as one) and it is not there. */
int notice_add(struct store *s, const char *run_id, const char *event, bool problem, struct err *e);
typedef int notice_each_fn(void *arg, const struct notice *n);
/* Those of a run; run_id NULL: of all runs those that nobody has claimed, oldest first. */
int notice_list(struct store *s, const char *run_id, notice_each_fn *each, void *arg,
    struct err *e);
/* *claimed is false when somebody had it. */
int notice_claim(struct store *s, const char *run_id, const char *event, bool *claimed,
    struct err *e);
/* Those that were claimed by a supervisor that is gone: what became of them nobody can tell. */
int notice_lost(struct store *s, struct err *e);
int notice_finish(struct store *s, const char *run_id, const char *event, const char *outcome,
    struct err *e);

/* ---- Controls ---- */

struct control {
	char id[UUID_TEXT];
	char *verb;
	struct json *payload; /* NULL or object */
	double created_at, claimed_at, applied_at; /* 0: null */
	char *result; /* NULL: null */
};
void control_clear(struct control *c);
/* Inserts while the run goes on, in one statement: it is not at its end, or crashed and about to be
 * resumed by its policy. A queued run has no worker to stop; all else waits for the worker. ERR_REFUSED
 * when it does not go on, or its kind has no consumer for the verb. Consumes payload. */
int control_insert(struct store *s, const char *run_id, const char *verb, struct json *payload,
    char id[UUID_TEXT], struct err *e);
typedef int control_each(void *arg, const struct control *c);
/* pending_only: applied_at is null, oldest first by (created_at, id). */
int control_list(struct store *s, const char *run_id, bool pending_only, control_each *each,
    void *arg, struct err *e);
/* What the controls that were applied to a run have come to; and a stop that still waits to be. */
struct control_standing {
	bool stopped, stopped_now;
	double stop_at; /* created_at of the first stop that was not rejected; 0: none */
	bool stop_asked, stop_asked_now;
	bool paused;
	double paused_at; /* created_at of the pause */
};
int control_standing(struct store *s, const char *run_id, struct control_standing *out, struct err *e);
/* Of all runs: what was claimed by the worker of a run that is at its end, oldest claim first. What came
 * of it nobody will report. */
typedef int control_lost_each(void *arg, const char *run_id, const char *name,
    const struct control *c);
int control_lost(struct store *s, control_lost_each *each, void *arg, struct err *e);
/* One by its whole id, and the run that it hangs on now: what nobody claimed goes over to the run that
 * resumes its run. ERR_NOTFOUND. */
int control_read(struct store *s, const char *id, struct control *out, char run_id[RUN_ID_TEXT],
    struct err *e);
/* Writes claimed_at and "applying:<owner>"; *claimed false when somebody had it. */
int control_claim(struct store *s, const char *id, const char *owner, bool *claimed, struct err *e);
/* Terminal stamp; claim is the text a claimed row must still carry, or NULL for one that must be
 * unclaimed. *written false when the condition matched no row. */
int control_finish(struct store *s, const char *id, const char *claim, const char *result,
    bool *written, struct err *e);
/* The text a claim by `owner` (a run id) writes, for control_finish. */
enum { CONTROL_CLAIM_TEXT = sizeof("applying:") + RUN_ID_TEXT };
void control_claim_text(const char *owner, char to[CONTROL_CLAIM_TEXT]);
/* Finalises what nobody claimed, after the run's terminal status is stored. Rows of a crashed run
 * wait for its resume and are left. */
int control_sweep(struct store *s, const char *run_id, struct err *e);
/* The same where no resume will come (kill, gc): rows of a crashed run too. */
int control_end_job(struct store *s, const char *run_id, struct err *e);
/* Closes a claimed row that was never reported back: "applied: resolved by <who> after the claim
 * '<claim>' was taken and never reported back", or "abandoned: ...". *written false when it was not
 * claimed, or is finished. */
int control_resolve(struct store *s, const char *id, bool applied, const char *who, bool *written,
    struct err *e);
/* The control a person means: its id or an unambiguous prefix. ERR_NOTFOUND, ERR_AMBIGUOUS. */
int control_find(struct store *s, const char *prefix, char id[UUID_TEXT], char run_id[RUN_ID_TEXT],
    struct err *e);

#endif
