/*
 * The supervisor: what its parts share. One process per home, held by the lock of home.h.
 *
 *	working -> stopping (stop_all.h; leaves after the last end)
 *	   |  \________|___> leaving (socket unlinked, lock released, workers go on)
 *	   \_______________> restarting (executes itself anew when nothing is half done)
 */
#ifndef FLOWSUP_SUPERVISOR_DAEMON_H
#define FLOWSUP_SUPERVISOR_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "flowsup/proc.h"
#include "flowsup/protocol.h"
#include "flowsup/store.h"
#include "astray.h"
#include "children.h"
#include "clients.h"
#include "errand.h"
#include "foreground.h"
#include "jobs.h"
#include "kept.h"
#include "loop.h"
#include "notify.h"
#include "report.h"
#include "restart.h"
#include "secrets.h"
#include "stop_all.h"

/* ---- For cmd_supervisor.c ---- */

struct daemon_options {
	const char *home;     /* as for home_open() */
	bool foreground;      /* logs to standard error; says so when another one has the lock */
	int64_t idle_exit_ns; /* leaves after so long without runs; 0: never */
	int ready_fd;	      /* gets one byte once commands are answered, then is closed; or -1 */
	int handover_fd;      /* from the supervisor that executed this one; or -1 */
	struct foreground *only; /* serves this run alone (foreground.h), without the home; or NULL */
};
#define DAEMON_IDLE_EXIT_NS (600 * INT64_C(1000000000))
/* Serves until it is stopped, or idle for long enough. ERR_BUSY when the home has a supervisor. */
int daemon_main(const struct daemon_options *o, struct err *e);

/* ---- For its parts ---- */

enum daemon_timer {
	TIMER_BUSY,	  /* the database was busy */
	TIMER_APART,	  /* jobs that wait apart */
	TIMER_ADOPT,	  /* workers not reached yet */
	TIMER_REPORT,	  /* a report takes too long */
	TIMER_ERRAND,	  /* so does a command of ours */
	TIMER_RESTART,	  /* a crashed run waits for its turn */
	TIMER_WATCHDOG,
	TIMER_KEEP,    /* old runs are looked for */
	TIMER_SERVICE, /* the service manager wants to hear from us */
	TIMER_CLIENTS,	  /* connections that say nothing */
	TIMER_REFUSED,	  /* how many more were refused is to be said */
	TIMER_CHECKPOINT, /* of the database */
	TIMER_IDLE,
	TIMER_KEPT, /* limits and ends of operations that outlived their worker */
	TIMER_QUIET, /* stopped waiting for a quiet moment to execute itself */
	TIMER_PLACE, /* whether its home is still at its path */
	TIMER_FIRST, /* process 1 waits no longer for ends of runs */
	TIMERS
};
_Static_assert((int)TIMERS <= (int)LOOP_TIMERS, "the loop has a place for each timer");

enum daemon_phase { PHASE_WORKING, PHASE_STOPPING, PHASE_LEAVING, PHASE_RESTARTING };

enum {
	DAEMON_FILES_LEAST = 40,      /* open files: its own, and one run at a time */
	DAEMON_FILES_FEW = 256,	      /* then runs wait for one another */
	DAEMON_BUSY_MS = 10,	      /* SQLite's own waiting: hardly any */
	DAEMON_CHECKPOINT_MS = 10000, /* after work, so often */
	PLACE_LOOK_MS = 2000,	      /* so often whether the home is still there */
	DAEMON_QUIET_MS = 5000,	      /* for reports and writes before it executes itself */
	DAEMON_FIRST_MS = 30000,      /* process 1 waits so long for runs that it stops as it leaves */
	DAEMON_LOG_BYTES = 4 << 20,   /* then supervisor.log becomes supervisor.log.1 */
	DAEMON_LOG_LOOK_MS = 1000     /* at most so often its size is looked at */
};

struct daemon {
	struct daemon_options options;
	struct home home;
	struct store *store;
	struct proc_place here;
	/* Of this boot: the supervisor before this one was its process 1, so that nothing of it runs; 0: none. */
	uint64_t gone_namespace;
	bool booted; /* the supervisor before this one ran before the last boot */
	int lock_fd, log_fd;
	int64_t log_looked_ns;
	char *worker_path, *own_path;
	char **envp; /* for workers and for itself: FLOWSUP_HOME is the only name of ours */
	uint64_t descriptors; /* RLIMIT_NOFILE */

	enum daemon_phase phase;
	const char *cause; /* why it leaves, for the log */
	struct loop loop;
	struct source listener, signals;
	struct jobs jobs;
	struct workers workers;
	struct reports reports;
	struct kept kept;
	struct astrays astrays;
	struct errands errands;
	struct restart_list restarts;
	struct stop_all stop_all;
	struct secrets secrets;
	struct clients clients;
	struct fs_identity door; /* the socket's name, as this supervisor made it */
	bool activated;	  /* the listening socket is the service manager's: its name stays */
	bool scan_wanted; /* look for runs that are not known yet */
	bool crowded;	  /* runs wait for descriptors */
	bool more_queued; /* than one scan takes up */
	struct store_mark queue_mark; /* of the database, when the queue was thought of last */
	unsigned queue_looks;	      /* that still follow from that */
};

/* daemon_log.c */
int daemon_log_init(struct daemon *d, struct err *e);
/* The log's file anew; false with errno. */
bool daemon_log_open(struct daemon *d);
/* Two files of DAEMON_LOG_BYTES at most, and what is logged between two looks. */
void daemon_log_bound(struct daemon *d);

/* daemon.c */
/* Nothing to supervise, nothing half done. */
bool daemon_is_idle(const struct daemon *d);
bool daemon_is_quiet(const struct daemon *d);
void daemon_leave(struct daemon *d, const char *cause);
/* By a signal or a client: workers go on, unless they end with this process. */
void daemon_told_to_leave(struct daemon *d, const char *cause);
void daemon_stop_all(struct daemon *d, bool now);
void daemon_worked(struct daemon *d); /* the database was written to */
int daemon_listen(struct daemon *d, struct err *e);
/* Nobody is served yet, so that it waits for whoever makes or writes the database; later calls hardly do. */
int daemon_open_store(struct daemon *d, struct err *e);

/* place.c */
/* Whether the home, its lock or its database were removed or replaced below it. It then leaves, for
 * what it could still do nobody would see; the next command starts another one, workers go on. */
bool daemon_lost_home(struct daemon *d);
/* The name that it listens at is its own from now on; and whether it still is. */
void place_note_door(struct daemon *d);
bool place_has_door(const struct daemon *d);
void place_look(void *daemon); /* timer */

/* queue.c: runs that wait, and what happens to a run whose poke came */
/* A run that somebody else looks after: the home that this one is a copy of, a command in whose foreground
 * it is, or another host or pid namespace, where its worker may live unless its lock is proof. */
bool queue_is_left_alone(const struct daemon *d, const struct session *s);
void queue_look(struct daemon *d, const char *run_id);
void queue_notice(struct daemon *d);
/* When the line is empty: has a scan that left some out followed by another. */
void queue_rest(struct daemon *d);
/* The queue and, with all, runs that should have a worker. Errors: as the store's. */
enum job_result queue_scan(struct daemon *d, bool all, struct err *e);
/* Whether one more run fits: every run and every client costs descriptors. */
bool queue_has_room(uint64_t descriptors, uint64_t workers, uint64_t clients);
/* A move of the table in status.h as a job; text may be NULL. */
void queue_move(struct daemon *d, const char *run_id, enum run_status to, const char *reason,
    const char *text, bool urgent);

/* keep_rules.c: once a day old runs are removed, as the configuration says */
#define KEEP_FIRST_NS (60 * INT64_C(1000000000)) /* after a start */
void keep_look(void *daemon); /* timer */
void keep_ended(struct errand *r, const struct proc_end *end);

/* adopt.c: workers that another supervisor started */
enum job_result adopt_run(struct daemon *d, const struct session *s, struct err *e);
void adopt_again(void *daemon); /* timer */
/* The connection was lost while the process may live. */
void adopt_lost(struct daemon *d, struct worker *w);
/* The worker said who it is. */
void adopt_known(struct daemon *d, struct worker *w, pid_t pid);

/* handover.c: `restart` */
/* Executes itself with everything in its hands; returns only on error, with all as it was. */
int handover_execute(struct daemon *d, struct err *e);
/* Takes over: lock, listening socket (source added by the caller: *listener), workers. */
int handover_take(struct daemon *d, int fd, int *listener, struct err *e);

#endif
