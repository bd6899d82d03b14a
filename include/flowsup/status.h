/*
 * The life of a run: statuses, allowed moves and reason codes, as tables.
 *
 *	queued -> starting -> running <-> paused -> completed | failed | timed_out | cancelled
 *	   \__________\__________\_________\______> crashed | cancelled
 *
 * A terminal status is never left. queued, running and paused may also "become" what they are (a new
 * reason), and starting falls back to queued when its worker could not be forked.
 */
#ifndef FLOWSUP_STATUS_H
#define FLOWSUP_STATUS_H

#include <stdbool.h>

#include "flowsup/err.h"

/* name, word, terminal, exit status of `wait` */
#define STATUS_TABLE(X)                                                                            \
	X(STATUS_QUEUED, "queued", false, 3)                                                       \
	X(STATUS_STARTING, "starting", false, 3)                                                   \
	X(STATUS_RUNNING, "running", false, 3)                                                     \
	X(STATUS_PAUSED, "paused", false, 3)                                                       \
	X(STATUS_COMPLETED, "completed", true, 0)                                                  \
	X(STATUS_FAILED, "failed", true, 1)                                                        \
	X(STATUS_TIMED_OUT, "timed_out", true, 124)                                                \
	X(STATUS_CANCELLED, "cancelled", true, 143)                                                \
	X(STATUS_CRASHED, "crashed", true, 137)

enum run_status {
#define X(name, word, terminal, exit) name,
	STATUS_TABLE(X)
#undef X
	    STATUS_COUNT
};

#define REASON_DEADLINE "run.running.deadline"

/* code, text for people, resumable when the run ended by it, exit status (0: the status's own) */
#define REASON_TABLE(X)                                                                            \
	X("run.queued.new", "waits for the supervisor", false, 0)                                  \
	X("run.queued.slot", "waits for a slot of its queue", false, 0)                            \
	X("run.queued.unique", "waits for the end of another run with its key", false, 0)          \
	X("run.queued.environment", "waits for withheld environment values", false, 0)             \
	X("run.queued.descriptors", "waits: too many open files in the supervisor", false, 0)      \
	X("run.starting.forked", "its worker was started", false, 0)                               \
	X("run.running.started", "its worker runs", false, 0)                                      \
	X("run.running.resumed", "the gate was opened", false, 0)                                  \
	X("run.running.storage", "checkpoints cannot be written; no operation is started", false, 0) \
	X("run.running.deadline", "the deadline has passed: nothing more is started, what runs may end", false, 0) \
	X("run.paused.control", "the gate was closed by a control", false, 0)                      \
	X("run.completed.all", "every operation completed", false, 0)                              \
	X("run.failed.operation", "an operation failed", true, 1)                                  \
	X("run.failed.checkpoint", "outcomes could not be saved", true, 74)                        \
	X("run.failed.start", "the run could not be started", true, 78)                            \
	X("run.failed.storage", "its state could not be written before anything began", true, 74)  \
	X("run.failed.internal", "the worker met an internal error", true, 70)                     \
	X("run.timed_out.deadline", "the deadline passed with work undone", true, 124)             \
	X("run.cancelled.stop", "stopped", true, 143)                                              \
	X("run.cancelled.killed", "killed", true, 143)                                             \
	X("run.cancelled.queued", "stopped before it started", true, 143)                          \
	X("run.crashed.signal", "the worker was killed by a signal", true, 137)                    \
	X("run.crashed.exit", "the worker left without an outcome", true, 137)                     \
	X("run.crashed.terminated", "the worker was asked to leave by a signal", true, 137)        \
	X("run.crashed.unknown", "the worker is gone; how it ended is not known", true, 137)       \
	X("run.crashed.watchdog", "its worker showed no sign of life and was killed", true, 137)   \
	X("run.crashed.boot", "the machine was started anew", true, 137)

const char *status_word(enum run_status s);
bool status_is_terminal(enum run_status s);
/* STATUS_COUNT when no status has this word. */
enum run_status status_from_word(const char *word);
bool status_may_become(enum run_status from, enum run_status to);
/* NULL when the code is not in the table. */
const char *reason_text(const char *code);
bool reason_is_resumable(const char *code);
/* The code is in the table and is one of this status ("run.<status>.<cause>"). */
bool reason_belongs_to(const char *code, enum run_status s);
int status_exit(enum run_status s, const char *reason_code);
/* Code of a run that could not be started for this reason: whether the storage of its state failed. */
const char *reason_of_failed_start(const struct err *why);

#endif
