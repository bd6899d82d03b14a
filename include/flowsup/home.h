/*
 * The state directory and the run directories in it (flowsup-supervisor(8), FILES).
 */
#ifndef FLOWSUP_HOME_H
#define FLOWSUP_HOME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"
#include "flowsup/json.h"
#include "flowsup/proc.h"

#define HOME_DATABASE "state.db"
#define HOME_LOCK "supervisor.lock"
#define HOME_SOCKET "supervisor.sock"
#define HOME_LOG "supervisor.log"
#define HOME_RESERVE "reserve" /* room for the database when there is no other; worker/storage.c */
#define HOME_RUNS "runs"

#define RUN_FLOW "flow.json"
#define RUN_LAUNCH "launch.json"
#define RUN_ENVIRON "environ"
#define RUN_LOCK "worker.lock"
#define RUN_ATTEMPTS "attempts.log"
#define RUN_EVENTS "events.jsonl"
#define RUN_MAKING "making"    /* until the run has its row; see rundir_create */
#define RUN_CARRY "carry.json" /* state that a resumed run starts from; see rundir_create */
#define RUN_TAKEN_OVER "taken_over" /* in it: start lines by operation */
#define RUN_OPS "ops"
#define RUN_CONTEXT "context"
#define RUN_ARTIFACTS "artifacts"
#define RUN_SOCKET "worker.sock"

enum { RUN_ID_TEXT = 23, UUID_TEXT = 33, INVOCATION_ID_TEXT = 13 };
/* What SQLite's longest file name leaves for the directory. */
enum { HOME_MAX_PATH = 480 };

struct home {
	char *path; /* absolute, without symbolic links: operations are marked by it */
	int fd;
	int runs_fd;
};

/*
 * --home, else $FLOWSUP_HOME, else ${XDG_STATE_HOME:-~/.local/state}/flowsup (the account's home
 * from the password database when HOME is not set). With create, missing directories are made
 * (0700, durable); without, ERR_NOTFOUND. ERR_PERMISSION when owned by somebody else or writable by
 * others; ERR_ENVIRONMENT on a remote file system or with a path above HOME_MAX_PATH; ERR_CREATE.
 */
int home_open(const char *option, bool create, struct home *out, struct err *e);
/* Where home_open says ERR_NOTFOUND: whether it could make what lacks, which it does not do here: *path, below
 * *below, which exists (the caller clears both, also after an error). ERR_PERMISSION names the directory that
 * cannot be written to. */
int home_may_be_made(const char *option, struct buf *path, struct buf *below, struct err *e);
/* Whether it is the one that is taken where nobody names any. */
bool home_is_default(const struct home *h);
void home_close(struct home *h);
/* Adds to *e what to do where e->sys says that a path of the state directory
 * cannot be used, and nothing else is said. Returns -1. */
int home_hint(const char *path, struct err *e);
/* Whether a run was ever started here, by what it left in runs/. A directory alone is none: its row
 * comes after it, and a worker after its row. */
bool home_had_runs(const struct home *h);

/* YYYYMMDDTHHMMSS-xxxxxx in UTC; 32 hex digits (UUID version 4); 12 hex digits. getrandom(2). */
int run_id_make(char to[RUN_ID_TEXT], struct err *e);
bool run_id_is_valid(const char *text);
int uuid_make(char to[UUID_TEXT], struct err *e);
/* Many of them with few system calls. */
int uuids_make(char (*to)[UUID_TEXT], size_t count, struct err *e);
int invocation_id_make(char to[INVOCATION_ID_TEXT], struct err *e);

/* What start, resume, fork and rerun hand to the worker. */
struct launch {
	const char *run_id, *session_id, *invocation_id;
	const char *kind, *name; /* "flow", "agent", "play" */
	char *const *argv;	 /* of the command that made the run, NULL-terminated */
	const char *cwd;	 /* absolute, of the submitter */
	mode_t umask;
	char *const *environment; /* the submitter's, NULL-terminated; without FLOWSUP_* names but
				   * FLOWSUP_HOME */
	const char *resumed_from; /* run id or NULL */
	const char *document; /* absolute path that the flow was read from; or NULL */
	const char *document_digest; /* of its bytes, where the flow is what they say; or NULL */
	const struct json *options; /* object: durability, checkpoint_format, compact_records,
				     * compact_bytes, storage_timeout_ns, foreground, watch...; or NULL */
	const struct json *flow;    /* normalised document */
	const struct json *withheld; /* names in `environment` whose values are not written; or NULL */
	const struct json *carry;   /* state to go on from, or NULL for a new run; its member
				     * RUN_TAKEN_OVER goes to the worker alone */
	struct slice attempts;	    /* attempts.log as it begins; len 0: there is none yet */
	const struct json *limits;  /* of an earlier launch.json; NULL: those of this process */
};
#define RUN_NEW_PREFIX ".new-"
/*
 * Creates runs/<run id> durably and whole: made under a name that begins with RUN_NEW_PREFIX, filled,
 * fsynced, renamed, fsynced. Nothing is left on error. Limits (getrlimit) and who and when are
 * recorded too. Until rundir_born() a file RUN_MAKING, locked by *making, tells that it has no row yet.
 * ERR_CREATE, ERR_NOSPACE, ERR_IO.
 */
int rundir_create(const struct home *h, const struct launch *l, int *making, struct err *e);
/* It has its row. Closes *making. */
void rundir_born(const struct home *h, const char *run_id, int *making);
enum rundir_stage { RUNDIR_BORN, RUNDIR_IN_MAKING, RUNDIR_CUT_OFF };
/* Of a directory in runs/: RUNDIR_CUT_OFF when whoever made it has gone. Where there is a row, it is born
 * all the same: a power loss may bring the file back. */
enum rundir_stage rundir_stage(const struct home *h, const char *name);
/* Opens runs/<id> pinned: O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC, owner and mode checked. */
int rundir_open(const struct home *h, const char *run_id, struct err *e);
int rundir_remove(const struct home *h, const char *run_id, struct err *e);
/* In a state's config: runs (their ids by absolute path, an object) that it goes on from and that were resumed from
 * a directory of another name. */
#define CONFIG_RUN_DIRECTORIES "run_directories"
/*
 * A state that was recorded in the run directory run_path (absolute; of run_id, or NULL), or was carried to it:
 * artifact root, responses, outputs and conversations that it names below the directory of this or of an
 * earlier run count as where that is now: here, beside it, or in the home (or NULL). With another name a
 * response has another digest. What is not found keeps its name. Consumes state. NULL with ERR_NOMEM.
 */
struct json *rundir_follow_move(struct json *state, const char *run_path, const char *run_id,
    const struct home *h, struct err *e);
/* A file of a run that holds one JSON value. ERR_NOTFOUND, ERR_SYNTAX with a position; the message
 * begins with the file's name. */
int rundir_read_json(int run_fd, const char *name, struct json **out, struct err *e);

/* launch.json as read back. Everything is owned by `object`. */
struct launch_read {
	struct json *object;
	const char *session_id, *invocation_id, *kind, *name, *cwd, *resumed_from;
	const char *document; /* where the flow was read from, or NULL */
	const char *document_digest; /* as it was then; NULL: not known, or what is recorded differs from it */
	mode_t umask;
	struct proc_rlimit rlimits[PROC_MAX_RLIMITS];
	unsigned nrlimits;
	const struct json *options; /* never NULL */
	const struct json *limits;  /* as they stand in the file, for struct launch; or NULL */
	const struct json *withheld; /* names that environ lacks, their values come another way; or NULL */
};
int launch_read(int run_fd, struct launch_read *out, struct err *e);
void launch_read_clear(struct launch_read *l);
/* The name of a recorded resource limit: "nofile". */
const char *launch_limit_name(int resource);
/* environ: *block is one malloc'ed text, *envp a malloc'ed NULL-terminated array into it. */
int environ_read(int run_fd, char **block, char ***envp, struct err *e);

/*
 * The run's lock: an open file description lock (fcntl(2) F_OFD_SETLK) on worker.lock. Whoever
 * holds it knows that no worker exists. Returns a descriptor that holds it (close-on-exec; the
 * supervisor passes it to the worker), or -1 with ERR_BUSY when somebody has it. wait_ms > 0
 * tries again until then (a child between vfork and exec may still hold it). ERR_NOTFOUND without a
 * lock file (it is made with the run directory), ERR_PERMISSION where it may not be written,
 * ERR_IDENTITY when the name leads elsewhere.
 */
int run_lock_take(int run_fd, int wait_ms, struct err *e);
/* For a run at its end, whose worker may be about to leave, or dead with such a child. */
enum { RUN_LOCK_OVER_MS = 1000 };
/* Whether somebody holds it, without taking it. */
int run_lock_held(int run_fd, bool *held, struct err *e);
/* The same for the supervisor's lock of a home. */
int home_lock_take(const struct home *h, struct err *e);
/* The process that has it, by what it wrote there; 0: none is known. */
pid_t home_lock_holder(const struct home *h);
/*
 * Whether a process is a supervisor or a worker, of whichever home: its command line says so, and it has the lock
 * of a home, however that was named, or somebody has that of the run. A proc_apart: such a one and all below it
 * belong to no operation that it was started from, also where it bears the marks of one.
 */
bool own_is_apart(pid_t pid);

/* ---- attempts.log ---- */

/*
 * One JSON object a line, at most ATTEMPT_MAX_LINE bytes with its LF, each by one O_APPEND write.
 *   first line, by each worker: {"kind":"worker","host":…,"boot_id":…,"pid_namespace":N,"pid":…,"start":…}
 *   by the child before exec:   {"kind":"start","op":ID,"attempt":N,"pid":P,"start":T,"reaper":P,
 *       "reaper_start":T,"grace_ms":N,"limit_ms":N,"silence_ms":N,"strict":true,"leave":true,
 *       "signals":[[N,MS],…],"token":TEXT,"messages":[[FIRST,LAST],…],"more":true}
 *   by a resume, for each attempt that its run takes over: the same line with "run":RUN_ID, the run
 *       that started it and has its files, behind a copy of that run's worker line
 *   by the worker:              {"kind":"end","op":ID,"attempt":N,"class":…,"code":…}
 *   by the worker, for each process that is found to be left after that: {"kind":"leftover","op":ID,"attempt":N}
 *   by the supervisor, for each process without marks and session that the death of this run's worker, and nothing
 *       else, can have brought to it, and by a resume that leaves it alone: {"kind":"stray","pid":P,"start":T}
 * Members that say nothing are left out. limit_ms is a moment of CLOCK_MONOTONIC; signals are sent
 * before SIGTERM, one after the other; messages are ranges of indices of operator_messages; "more"
 * says that ranges did not fit and stand in ops/<op>.<attempt>/started. A last line without LF is
 * no line.
 */
enum { ATTEMPT_MAX_LINE = 512 };
enum attempt_line_kind { ATTEMPT_LINE_OTHER, ATTEMPT_LINE_WORKER, ATTEMPT_LINE_START, ATTEMPT_LINE_END,
	ATTEMPT_LINE_STRAY };
struct attempt_line {
	enum attempt_line_kind kind;
	unsigned attempt; /* of a start or an end, else 0 */
	const char *op;	  /* the same, else NULL */
	struct slice text;
	struct json *json; /* NULL until somebody asks: attempt_line_json() */
};
struct attempt {
	const char *op;
	unsigned attempt;
	struct proc_id id; /* process group and session leader of the operation */
	struct proc_id reaper; /* who writes its exit.json when its worker is dead; pid 0: nobody */
	const char *run; /* that started it, where that is not the log's; or NULL */
	const struct json *line;
};
/* Owns whatever hangs on its members. */
struct attempts {
	/* Every whole line, in order. A start is written by the child itself, an end by the worker's helper
	 * thread: the end of one attempt may stand behind the start of the next. */
	struct attempt_line *lines;
	size_t nlines;
	struct attempt *open; /* starts without an end */
	size_t nopen;
	struct attempt *stopped; /* starts whose end is that a stop ended them */
	size_t nstopped;
	struct proc_id *strays; /* of which operation is not known */
	size_t nstrays;
	bool has_place;
	struct proc_place place; /* of the latest worker line */
	struct proc_id worker;	 /* the same */
	size_t damaged; /* whole lines that are not JSON objects: set aside, counted */
	bool torn;	/* the last line had no LF */
	struct buf text; /* of the lines */
	char *names;	 /* of their operations */
};
int attempts_read(int run_fd, struct attempts *out, struct err *e);
/* Only place and worker, without a look at the lines of operations. */
int attempts_read_place(int run_fd, struct attempts *out, struct err *e);
/* The latest line of a worker, or NULL. */
struct attempt_line *attempts_worker_line(const struct attempts *a);
/* The line as a value, read once and owned by the log it is of; NULL: out of memory. */
const struct json *attempt_line_json(struct attempt_line *line);
/* Whether an operation was allowed to leave processes: a stray may be one of these. */
bool attempts_any_leaves(const struct attempts *a);
/* A stray that lives; false of what is in the session of an attempt without an end, which is known by that. */
bool attempts_stray_lives(const struct attempts *a, size_t stray);
/* Appends a line to text. */
void attempts_stray_line(struct proc_id id, struct buf *to);
void attempts_clear(struct attempts *a);

#endif
