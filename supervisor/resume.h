/*
 * Whether a run can go on, and how: a pure examination of what was recorded. Faithful or refused:
 * nothing is dropped, guessed, or replayed as finished without evidence unless a flag says so, and
 * then what was lost is named. The numbers of the checks are those of flowsup(7), RESUME.
 */
#ifndef FLOWSUP_RESUME_H
#define FLOWSUP_RESUME_H

#include <stdbool.h>
#include <stddef.h>

#include "flowsup/checkpoint.h"
#include "flowsup/err.h"
#include "flowsup/flow.h"
#include "flowsup/home.h"
#include "flowsup/json.h"

/* member, option, what it does, whether it is seldom needed */
#define RESUME_FLAG_TABLE(X)                                                                     \
	X(retry_failed, "retry-failed",                                                          \
	    "run failed operations again, side effects too", false)                              \
	X(keep_failed, "keep-failed",                                                            \
	    "keep failures; what needs them is skipped", false)                                  \
	X(rerun_in_flight, "rerun-in-flight",                                                    \
	    "repeat what is marked idempotent: false", false)                                    \
	X(accept_missing_artifacts, "accept-missing-artifacts",                                  \
	    "run again what lost artifacts or its output", true)                                 \
	X(allow_degraded_context, "allow-degraded-context",                                      \
	    "new conversations where old ones are lost", true)                                   \
	X(rerun_changed, "rerun-changed",                                                        \
	    "run what the document defines in another way now", false)                           \
	X(drop_respawned, "drop-respawned",                                                      \
	    "leave out what was added by what runs again", true)

/* A failure may be kept, or run again; a verdict is kept rather than asked for again. */
#define RESUME_LIFTS_FAILED "retry-failed|keep-failed"
#define RESUME_LIFTS_DENIED "keep-failed|retry-failed"
/* It would fail again. */
#define RESUME_LIFTS_HOPELESS "keep-failed"

struct resume_flags {
#define X(member, option, help, seldom) bool member;
	RESUME_FLAG_TABLE(X)
#undef X
};

enum resume_action {
	RESUME_RUN,	    /* will run, for the first time or again */
	RESUME_REPLAY,	    /* completed: its recorded response counts */
	RESUME_KEEP_FAILED, /* failed, and stays failed */
	RESUME_TAKE_OVER,   /* outlived its worker: it still runs, or how it ended is known */
	RESUME_SKIP,	    /* an edge to a settled predecessor does not hold */
	RESUME_REFUSED
};
const char *resume_action_word(enum resume_action action);

/*
 * What was found outside the checkpoint, gathered by resume_facts: object, by operation id, of
 *	"artifacts":  text, why a declared artifact fails (absent: all are as recorded)
 *	"unverified": integer, artifacts without a recorded digest
 *	"response":   text, why the file of a response fails
 *	"output":     text, why the file of an output fails that the response does not say
 *	"conversation": text, why its conversation cannot be continued
 *	"started":    true, a durable mark that an attempt was started
 *	"survivor":   "running", "ended" or "stopped": its latest attempt, that the log has no end of; of a dry
 *		      run also "unknown": somebody may know more, whom a resume asks
 *	"unusable":   text, how it is, and why it cannot be taken over all the same
 *	"start":      object, the start line of that attempt
 *	"interrupted": object, the start line of one whose end nobody knows
 */
struct resume_input {
	const struct json *state;	 /* of the checkpoint; NULL: there is none */
	const struct ckpt_report *report; /* NULL without a checkpoint */
	const struct err *load_error;	 /* why the checkpoint was refused, or NULL */
	const struct flow *flow;	 /* NULL: flow_error says why there is none */
	const struct err *flow_error;
	const struct attempts *attempts;
	bool no_attempts; /* there is no such file: nothing is known of what was started */
	bool lost_attempts; /* of a run here, whose worker had begun it: it is gone or damaged, and tells of nothing */
	bool hidden_start; /* its last line is torn, and may be that of a start whose process lives */
	bool lacks_list; /* in a response there was no list for a foreach (META_FORK_FROM) */
	bool lacks_room; /* max_ops had no room for the list of a foreach or for a further try (META_MAX_OPS) */
	bool may_have_gone_on; /* it is a copy, and what its original has started since is not known */
	const struct json *facts;
	const struct json *answers; /* to conditions on responses in files, by operation (flow_answers_read); or NULL */
	const char *directory; /* that the run was started in; NULL: neither it nor programs are looked for */
	const char *artifact_root_problem; /* NULL: it is there */
	/* What runs again by request, by operation id, or NULL: {"why": TEXT, "flag": OPTION} or, where it
	 * cannot, also "problem": TEXT. The flow has its definition as it will run. */
	const struct json *again;
	/* Of a run that was added to (resume_added.c); each may be NULL. state and flow are without
	 * what is dropped. */
	const struct json *added;    /* spawned[] with all that was recorded */
	const struct json *dropped;  /* entries whose parents run again on purpose, by node id */
	const struct json *misfits;  /* [{"entry","message"}]: entries that cannot be rebuilt */
	const struct json *settings; /* by role: whether its provider's program reads the user's settings;
				      * a role without a provider that can be used is not in it */
	const struct json *copying; /* of a fork, by role: whether its program can copy a conversation, and as
				     * settings otherwise; else NULL */
	char *const *recorded_environment, *const *current_environment; /* NULL-terminated */
	const struct json *withheld; /* names that no file holds, or NULL */
	const struct json *kept_out; /* they, and those to be left out */
	char *const *held_environment; /* values that the supervisor has of them, or NULL */
	bool values_come; /* from the supervisor: this environment needs none of them */
	struct resume_flags flags;
};

struct resume_row {
	enum resume_action action;
	const char *flag; /* that lifts a refusal, without dashes; NULL: none does */
	int check;	  /* of a refusal; 0 otherwise */
	char *reason;	  /* owned; never NULL */
	bool rerun;	  /* begins anew: a recorded outcome, or attempts, do not count any more */
	bool renewed;	  /* it comes to something else than those behind it have seen */
	bool had_outcome; /* one is recorded */
	bool emitter_runs_again; /* of one that was added: it is to be dropped */
	bool degraded;	  /* begins a new conversation in place of one that is lost */
	const char *lifted; /* the flag that allowed what is done, without dashes; or NULL */
	const struct json *entry; /* of the recorded outcome, or NULL; of the state that was examined */
	int64_t turn;	    /* resume_open_turn() */
	unsigned attempts;  /* that the run started, by its log */
};

struct resume_plan {
	struct resume_row *rows; /* by index of the flow's operations */
	size_t nrows;
	/* [{"check":N,"op":ID or null,"message":TEXT,"flag":OPTION or null}]; empty: accepted.
	 * Beside them, where it is so: "name" (of what is withheld and may be left out), "variable" (it has to
	 * be set), "directory" (it has to be made), "needed" (what has to be there, as people call it), "hint" (the
	 * command that shows how to mend it). */
	struct json *failures;
	/* [{"id","parent","parent_fate","status","unsaved"}]: added, and not carried over; parent_fate: "runs
	 * again" or "is left out"; unsaved: how it is though no outcome is recorded, or null */
	struct json *dropped;
	struct json *lost; /* ids: started, and not in the checkpoint; may run once more with leave */
	struct json *added; /* names (array) that the record lacks and this environment has */
	size_t counts[RESUME_REFUSED + 1];
};

/* 0 with *out also when the resume is refused; -1 with ERR_NOMEM. */
int resume_examine(const struct resume_input *in, struct resume_plan *out, struct err *e);
bool resume_is_accepted(const struct resume_plan *p);
void resume_plan_clear(struct resume_plan *p);

/* Gathers facts: opens artifacts, reads response files, looks for marks in ops/. Blocks.
 * read_only: nothing will be written to the artifact root. *problem_of_root is NULL or malloc'ed text. */
int resume_facts(int run_fd, const struct json *state, bool read_only, struct json **out, char **problem_of_root,
    struct err *e);

/*
 * resume_carry.c: the state that the new run starts from. It is what is recorded, with every member, but
 * for the outcomes that do not count any more. artifact_root is absolute, or NULL for a new one inside the
 * new run's directory; old_run what resumed_from shall say. Files of responses, and of outputs that a
 * response does not hold byte for byte (CKPT_OUTPUT, CKPT_ATTEMPT_PATH), are named by the old run's path, and
 * operations without a node id get one. NULL with ERR_NOMEM or ERR_IO (no random bytes).
 */
struct json *resume_carry(const struct resume_input *in, const struct resume_plan *p,
    const char *old_run, const char *old_path, const char *artifact_root, struct err *e);

/* Whether an attempt of it that was interrupted leaves the next one its conversation. */
bool resume_goes_on(const struct flow_op *op, const struct resume_row *row);

/* Whether its output may differ from what is made of its recorded response, and nothing says its bytes. */
bool resume_output_unknown(const struct flow_op *op, const struct json *entry);

/* resume_added.c: what was added while the run was going. */
/* The entries of spawned[] and config.spawn_ordinals as the new run has them. NULL: no memory. */
struct json *resume_carried_added(const struct resume_input *in, const struct resume_plan *p,
    const char *old_path);
struct json *resume_ordinals(const struct resume_input *in);
/* Of op's recorded outcome: as the new run has it (files by the old run's path). */
struct json *resume_carried_entry(const struct flow_op *op, const struct json *entry,
    const char *old_path);
/* Why an added operation that is to run must not, and the command that tells more of it or NULL; false when it may. */
bool resume_must_not_run(const struct resume_input *in, size_t i, struct buf *why, const char **hint);
/* Failures that concern entries as they stand, and what is dropped: appended to plan's. */
int resume_judge_added(const struct resume_input *in, struct resume_plan *plan, struct err *e);

/* Counts of attempts of operations that will run, which go on where they were: object by id. */
struct json *resume_attempts(const struct resume_input *in, const struct resume_plan *p);

/* The turn of an agent's operation that was to take messages and did not end well; 0: none. The
 * outcome of the turns before it is recorded as entry, and stays. */
int64_t resume_open_turn(const struct json *state, const char *op, const struct json *entry);
/* Whether a person said no at its gate: it failed by that, and by nothing that it did. */
bool resume_was_denied(const struct flow_op *op, const struct json *entry);
/* Whether it is a foreach that failed for the length of its list: a resume has the same list. */
bool resume_lacked_room(const struct resume_input *in, const struct flow_op *op, const struct json *entry);
/* Whether it failed because its conversation was lost: the next try needs a new one. */
bool resume_lost_conversation(const struct json *entry);
/* Its entry, as it was before that turn. */
struct json *resume_turn_entry(const struct json *entry);

/* The artifact root of a state, absolute: recorded relative ones lie in the run directory. */
char *resume_artifact_root(const struct json *state, const char *run_path);

#endif
