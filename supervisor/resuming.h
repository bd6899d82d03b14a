/*
 * One resume under way, shared by the files of the command:
 *
 *	cmd_resume.c    which run is meant, and whether there is anything to resume
 *	resume_survivors.c  attempts that outlived their worker
 *	resume_read.c   what was recorded          resume_tell.c  what is said about it
 *	resume_carry.c  the state it starts from
 *	resume.c, resume_conditions.c  what becomes of each operation, and the checks
 *	resume_make.c   the new run                resume_elsewhere.c  a directory that is no run here
 *	resume_original.c  the run that such a directory is a copy of
 *	resume_older.c  whether that holds more
 *	resume_grown.c  the graph with what was added, and without what is dropped
 *	cmd_fork.c, resume_copy.c  a fork: the same examination, but a run of its own
 *	resume_changed.c  what has become of the document since
 */
#ifndef FLOWSUP_RESUMING_H
#define FLOWSUP_RESUMING_H

#include "cli.h"
#include "output.h"
#include "resume.h"
#include "target.h"

/* Members of the metadata of a run that has gone on from such a directory: its path, and its session. */
#define META_RESUMED_DIRECTORY "resumed_directory"
#define META_RESUMED_SESSION "resumed_session"

struct resuming {
	struct cli *c;
	struct target *t;
	bool has_home; /* t is open */
	bool is_run;   /* t->session is the run; else a directory elsewhere, without a row */
	/* of a directory, resume_original.c: the run of this home that it was moved away from, or is a copy
	 * of, or ""; whether that has completed; whether nobody here knows what it has done since */
	char original[RUN_ID_TEXT], original_session[UUID_TEXT], original_invocation[INVOCATION_ID_TEXT];
	char original_origin[UUID_TEXT];
	bool original_completed, may_have_gone_on;
	bool original_is_here; /* its directory is */
	char *name;    /* what commands call it: the run's id, or the directory's path */
	char *label;   /* for messages: "run ID", or the path in quotes */
	int run_fd, lock_fd;
	char *run_path; /* absolute */
	bool has_launch, has_attempts, lost_attempts, hidden_start, has_checkpoint, load_failed, flow_failed;
	struct launch_read launch;
	struct attempts attempts;
	struct json *state, *document, *facts;
	/* resume_grown.c: state without what is dropped; the entries that are, by node id; those that
	 * cannot be rebuilt; what providers read, and can copy */
	struct json *kept, *dropped, *misfits, *settings, *copying;
	/* resume_changed.c: [{"op","setting","change"}], op or setting null; why the document cannot be
	 * read, or NULL; and what runs again by request (resume_input) */
	struct json *changes, *unreadable, *again;
	bool redefined;	      /* what is recorded says what the document says now, in part */
	bool redefined_badly; /* so: flow_error says why */
	bool fork;	      /* the new run is no successor: nothing of the old one is ended or taken */
	bool strays_stay;     /* strays of the old one are not ended, and are the new one's */
	bool by_policy;	      /* the supervisor asks, nobody else */
	struct ckpt_report report; /* of the file as it is; state is migrated already */
	struct flow *flow;
	struct err load_error, flow_error;
	char *root_problem;
	struct json *answers; /* resume_input */
	struct json *unheard; /* texts: what the supervisor may know, and was not or could not be asked; or NULL */
	struct json *asked;    /* names whose values no file holds, without --without-env */
	struct json *withheld; /* names whose values no file will hold */
	char *environment_block, **environment;
	struct buf held_block; /* values that the supervisor has, and this environment has not */
	char **held, **sources; /* they; and they with the recorded environment behind */
	struct resume_input input;
	struct resume_flags supposed; /* beside those given: to see what would be refused next */
	struct resume_plan plan;
	char new_run[RUN_ID_TEXT]; /* of a directory from the reading on; else once it is made */
};

/* Names and opens the run of t->session. */
int resuming_take_session(struct resuming *r, struct err *e);
/* Copies what operations that are reused have below root to the new run, which has its directory. */
int resuming_copy_artifacts(const struct resuming *r, const char *root, struct err *e);
/* Copies the files of attempts that are taken over, or whose conversation goes on, to the new run, which has
 * its directory. */
int resuming_copy_attempts(const struct resuming *r, struct err *e);
/* resume_examine of r->input, which is told what conditions on responses in files come to. */
int resuming_examine_input(struct resuming *r, struct err *e);
/* Reads everything of run_fd; writes nothing. A refused checkpoint is no error here. */
int resuming_read(struct resuming *r, struct err *e);
/* An error about a file of a directory that is no run here: names the directory, as seek_damaged_for_good() does a
 * run, and what can still be had. Returns -1. */
int resuming_damaged(const struct resuming *r, struct err *e);
/* Compares the document with what is recorded, and with --rerun-changed puts new definitions in the place
 * of recorded ones, in memory. */
int resuming_compare(struct resuming *r, struct err *e);
void resuming_tell_changes(const struct resuming *r);
/* --without-env names it. */
bool resuming_goes_without(const struct cli *c, const char *name);
/* ERR_NOTFOUND: --without-env names what is not one of `withheld`, and no other run can be meant. */
int resuming_check_without(const struct resuming *r, const struct json *withheld, struct err *e);
/* Of one that is refused also what would be refused next, were the options given that lift what is refused
 * first: those failures stand behind the others, with the options ("behind", an array). */
int resuming_examine(struct resuming *r, struct err *e);
/* What the programs of the roles read, and can copy; a role whose provider is not there is left out. */
int resuming_read_providers(struct resuming *r, struct err *e);
int resuming_examine_grown(struct resuming *r, struct err *e);
/* What is as large as the run: not needed any more once the new one is made and told of. */
void resuming_forget(struct resuming *r);
void resuming_clear(struct resuming *r);

/* Adds to the facts what became of attempts without an end. With the lock it waits for ends that are
 * about to be written down. */
int resuming_survivors(struct resuming *r, struct err *e);
/* attempts.log as the new run begins with it: nothing when nothing is taken over. */
int resuming_taken_lines(const struct resuming *r, struct buf *to, struct err *e);
/* Of the plan: whether something is taken over that still runs; whether an attempt without an end is not. */
bool resuming_takes_running(const struct resuming *r);
bool resuming_repeats(const struct resuming *r);
/* The ops/ directory that has an attempt's files, or -1. */
int resuming_open_ops(const struct resuming *r, const struct attempt *a);
/* For endops: leaves alone what is taken over. arg is the resuming. */
bool resuming_spares(void *arg, const struct attempt *a);

/* What the supervisor may know and has not said. Consumes text. */
int resuming_unheard(struct resuming *r, struct json *text, struct err *e);
/* A checkpoint that is not clean: one line on standard error. */
void resuming_tell_report(const struct resuming *r);
/* What may be otherwise than it is shown, for nobody has said it. */
void resuming_tell_unheard(const struct resuming *r);
/* What will run again or is lost because of a flag, before it is done. */
void resuming_tell_losses(const struct resuming *r);
/* With --wait: follows the run itself, which lives; exits by its outcome. */
int resuming_follow_live(const struct resuming *r, struct err *e);
/* The option that lifts a failure, where one does that needs no value; of several the first. NULL: none. */
const char *resuming_lift(const struct json *failure);
struct json *resuming_json(const struct resuming *r);
/* Both list every reason; refused also sets *e. */
int resuming_refused(struct resuming *r, struct err *e);
int resuming_dry_run(struct resuming *r, struct err *e);

/* Ends leftovers, makes the run, wakes the supervisor, prints the id, follows it with --wait. The
 * caller holds the lock. Returns an exit status or -1. */
int resuming_go_on(struct resuming *r, struct err *e);

/*
 * Takes a directory given by its path. 0 when it stands for a run of this home: its id is in run_id.
 * 1 when it is none: r holds it locked and is ready to be read. -1 with *e.
 */
int resuming_elsewhere(struct resuming *r, const char *path, char run_id[RUN_ID_TEXT],
    struct err *e);
/* Whether none of its attempts runs, nor its worker, as far as can be seen from here. -1 with ERR_REFUSED. */
/* Without --take-over: ERR_REFUSED, with whatever else is known to be asked, and the command that says all of it. */
int resuming_of_elsewhere(const struct resuming *r, const char *host, struct err *e);
int resuming_at_rest(const struct resuming *r, struct err *e);
int resuming_still_running(const struct resuming *r, const char *op, pid_t pid, struct err *e);
/* Whether another process has the lock of what is resumed, if there is one; waits so long for it to leave. */
int resuming_lock_held(const struct resuming *r, int wait_ms, bool *held, struct err *e);
/* ERR_REFUSED where somebody has the lock of such a directory. */
int resuming_check_unlocked(const struct resuming *r, struct err *e);
/*
 * Of such a directory, which has been read: looks for the run of this home that it is a copy of, which is
 * refused where that would be, and otherwise resumed by it: its lock is taken, without --dry-run, and its log
 * of attempts stands in the place of the copy's.
 */
int resuming_find_original(struct resuming *r, struct err *e);
/* That of the run that such a directory is of, whoever began it; NULL: it names none. */
const char *resuming_session(const struct resuming *r);
/* ERR_REFUSED where a run of this home has gone on from such a directory, whose run it does not know. */
int resuming_check_once(const struct resuming *r, struct err *e);
/* ERR_REFUSED where the run that r is a copy of, whose directory and log these are, holds what the copy lacks. */
int resuming_check_older(const struct resuming *r, int run_fd, const struct attempts *own, struct err *e);
/* ERR_REFUSED where something runs that bears the marks of its session, of whatever home. r has its flow. */
int resuming_check_marks(const struct resuming *r, struct err *e);
/* ERR_REFUSED: it holds work that is not done, but the run went on from there and has completed. */
int resuming_original_completed(const struct resuming *r, struct err *e);
/* Session ids are of this form; those of other programs may be anything. */
bool resuming_is_session(const char *id);
/* Of such a directory: its new run has a row, so whoever waits for the lock hears of it. */
void resuming_unlock(const struct resuming *r);

#endif
