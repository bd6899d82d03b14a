/*
 * The worker of one run: what its parts share. Each part's functions are declared here beside the
 * name of its file; the parts that stand alone (op, timers, loop, io) have headers of their own.
 *
 * One thread, one loop. A turn: handlers note what happened (an exit, an acknowledgement, a
 * finished job, a control); then worker_turn() settles outcomes, starts what may start, and hands
 * the logs to the io thread. Nothing in a turn is proportional to the number of operations.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "flowsup/buf.h"
#include "flowsup/checkpoint.h"
#include "flowsup/flow.h"
#include "flowsup/home.h"
#include "flowsup/ipc.h"
#include "flowsup/json.h"
#include "flowsup/proc.h"
#include "flowsup/status.h"
#include "growth.h"
#include "io.h"
#include "loop.h"
#include "op.h"
#include "rest.h"
#include "telling.h"

/* Descriptors that the supervisor hands over. */
enum { WORKER_LOCK_FD = 3, WORKER_SUPERVISOR_FD = 4, WORKER_HEARTBEAT_FD = 5,
	WORKER_VALUES_FD = 6, /* withheld values of the environment, where there are any */
	WORKER_GATE_FD = 7 /* a byte comes when the run's row says that it starts */ };

enum {
	WORKER_STARTS_PER_TURN = 16, /* so that a thousand starts do not keep an exit waiting */
	WORKER_GATE_PER_TURN = 256,
	WORKER_INLINE_READ = 64 << 10, /* a larger output is read by the io thread */
	WORKER_LEAVE_S = 4,	       /* after SIGTERM; the promise is 5 s */
	WORKER_MAX_PEERS = 32,
	WORKER_BACKLOG = 128, /* of worker.sock: who comes when all peers are busy waits there */
	WORKER_PEER_IDLE_S = 10,
	WORKER_PEER_STAY = 32,	/* answers after which a peer makes room for who waits */
	WORKER_TOLD_A_TURN = 16, /* packets of the supervisor's end; others are served then */
	WORKER_SPARE_DIRS = 64,
	/* An outcome that nothing waits for may wait so long for others, to be saved with them. */
	WORKER_GATHER_MS = 2,
	WORKER_GATHER_RELAXED_MS = 50
};
#define WORKER_INLINE_LIMIT ((uint64_t)1 << 20)

struct worker;
struct emitted;
struct asked;
struct reactive;

/* ---- An attempt that runs ---- */

/* 128 random bits and the operation's index, which leads to the attempt without a search. */
enum { TOKEN_BYTES = 16, TOKEN_TEXT = 2 * TOKEN_BYTES + 1 + 8 + 1, TOKENS_AT_ONCE = 16 };

enum attempt_stop {
	STOP_NONE,
	STOP_STEP,   /* a provider's own signal was sent, before TERM */
	STOP_TERM,   /* TERM was sent, once */
	STOP_KILL,   /* KILL was sent */
	STOP_GIVE_UP /* what cannot even be killed is left to the kernel */
};

struct agent; /* what an attempt of an instruction has besides; agent.h */
struct agents;
struct keeper; /* keeper.h */
struct taken;  /* taken.h */
struct door;   /* link.c */
struct turns;  /* turns.c */

struct attempt_run {
	struct worker *w;
	struct agent *agent; /* or NULL */
	struct taken *taken;   /* it outlived the worker that started it; or NULL */
	struct keeper *keeper; /* whose child its process is; NULL: it is ours */
	struct attempt_run *previous, *following; /* in w->live */
	uint32_t op;
	unsigned number;	/* of the attempt, from 1 */
	struct proc_id id;	/* its process group and session have this pid */
	int pidfd, out_fd;
	struct poller_source source;
	struct timer limit, stop, silence, retry;
	enum attempt_stop stopping;
	enum op_class forced; /* why we ended it: decides whatever the process says about itself */
	bool exited;	      /* a zombie that pins the group's number, until reaped */
	bool silent_told;
	bool begins;	      /* below a keeper, which has not told yet what came of it */
	unsigned leftovers; /* processes that had to be ended after its own had */
	unsigned strays;    /* of them, those in other sessions that are still there */
	int64_t before_ns; /* of its limit, what a command before its start has used */
	int64_t started_ns;
	double started_at, ended_at;
	struct proc_life life;
	struct proc_end end;
	struct attempt_run *marking; /* in w->marking */
	size_t messages;	     /* entries that its start has marked */
	unsigned context_version;    /* of the file it is given; 0: none */
	bool own_artifact_dir;	     /* nobody else's before, so far as anybody knows */
	bool marked_artifact_dir;    /* it bears a time that says that nothing was put into it */
	char token[TOKEN_TEXT];	     /* by which its processes are known to `emit` */
	struct emitted *emitted;     /* NULL until it has asked for something */
	struct asked *asked;	     /* the same, for further operations */
	struct outcome_job *reading; /* its process has ended, and what it left is read; or NULL */
};

/* What came of an attempt: filled by outcome.c, read by settle.c. */
struct outcome {
	enum op_class class;
	int code; /* exit status or signal number; errno of what could not be started */
	int signal; /* what ended it, 0: no signal */
	char *message; /* of a failure; owned */
	struct json *response;
	bool lossy;
	char digest[CKPT_DIGEST_TEXT]; /* "" when there is none */
	/* {"file","size","digest"} of the output where the response may say it in other bytes, or NULL; and
	 * whether that of one that completed says it in the same. */
	struct json *output;
	bool of_response;
	bool by_reference; /* the response is in the output's file */
	struct json *artifacts; /* array or NULL */
	struct json *conversation, *usage; /* of an agent, or NULL */
	size_t left_out; /* operations of a planner's answer that were too many */
	struct json *changes;	/* of the context, that the response asks for; or NULL */
	struct json *asking;	/* a response with members that ask for operations; or NULL */
};
void outcome_clear(struct outcome *o);

/* ---- Admission ---- */

/* Why nothing more is started; several can hold at once. Only `storage` can be taken back. */
enum {
	CLOSED_STOP = 1,
	CLOSED_DEADLINE = 2,
	CLOSED_FAIL_FAST = 4,
	CLOSED_TERMINATED = 8,
	CLOSED_STORAGE = 16,
	CLOSED_ERROR = 32
};

/* What the writer was asked to try once more for: an answer that what runs waits for; the end. */
enum storage_try { STORAGE_TRY_NONE, STORAGE_TRY_AWAITED, STORAGE_TRY_LAST };

struct counts {
	uint64_t done, completed, failed, skipped, cancelled;
	uint64_t done_of_synthesis; /* of done */
	uint64_t replaced; /* failed, and another try stands for them */
	uint64_t turns, starts, judged; /* for tests of the cost of scheduling */
};

/* ---- The whole ---- */

struct link { /* to the supervisor, and whoever connects to worker.sock */
	int fd;
	struct poller_source source;
	struct worker *w;
	uint64_t serial;  /* of the connection: a late answer must not reach another one */
	struct timer idle; /* peers that say nothing make room */
	bool operation;	  /* its hello was that of an operation */
	unsigned answered; /* so many requests, on this connection */
};

struct unsaved {
	uint32_t op;
	bool pending; /* that it was added, not what came of it */
};

/* While the planner is all there is of the flow; plan.h. */
struct planning {
	size_t left_out;     /* operations of the accepted one that were too many */
	bool untold;	     /* it was made of what an earlier worker had recorded */
	struct telling cut_told, empty_told;
	struct json *before; /* the plan that the run began with */
	struct flow *next;   /* its plan is being saved; NULL: it is not */
	struct json *entries; /* what is added to the plan */
};

struct worker {
	struct home home;
	char run_id[RUN_ID_TEXT], session_id[UUID_TEXT], origin[UUID_TEXT];
	int run_fd, ops_fd, artifacts_fd, attempts_fd, null_fd, signal_fd, heartbeat_fd, lock_fd, values_fd;
	char *run_path, *ops_path, *artifacts_path;
	struct launch_read launch;
	struct proc_place place;

	struct flow *flow;
	struct op *ops;
	struct planning planning;
	size_t total_stored; /* operations that the database knows of */
	uint32_t synthesis_held; /* it or its last try misses nothing but the end of all others; OP_NO_INDEX */
	struct json *args; /* values of {{args.NAME}}, or NULL */
	uint64_t inline_limit;
	int64_t storage_timeout_ns; /* 0: none */
	bool relaxed;		 /* durability: a dependent need not wait for acknowledgements */
	struct json *state;	 /* until the writer has it */
	struct ckpt_writer *writer;
	bool writer_stopped;
	struct io *io;
	struct poller loop;
	struct poller_source signals, io_events, acks, deadline;
	int deadline_fd;
	int64_t deadline_boot_ns, deadline_wall_ns; /* 0: none */

	/* settle.c: entries that were admitted and are not acknowledged, in order of tickets */
	struct unsaved *unsaved;
	size_t unsaved_first, unsaved_count, unsaved_cap;
	size_t unsaved_pending; /* of them, those that hold no outcome */
	struct json *answers; /* conditions.c: to conditions on responses in files, by operation; or NULL */
	struct op_list settled; /* their outcomes count; successors are to be told */

	/* admission.c */
	struct op_list ready, paused;
	struct op_list gated; /* ready, but for an approval that is not looked at yet */
	unsigned closed;
	unsigned beginning; /* starts that keepers have not told of */
	bool deadline_untold; /* closed by it, and the event waits for them */
	bool gate_closed, stop_now;
	bool gives_back; /* what waits before its start, in the next turn */
	unsigned slots, running;
	size_t retrying, settling;
	struct attempt_run *live; /* has or had a process, or holds a slot */
	struct counts counts;

	struct proc_id parent; /* the supervisor that started us, as it was then; pid 0: none did */
	struct keeper *keepers;
	struct json *interrupted; /* conversations to go on in, by operation; or NULL */
	struct json *outputs; /* of replayed operations, by id: output_as or attempt_path of their
			       * entries; or NULL */
	struct json *taken; /* start lines by operation, as the run began; or NULL */

	/* artifact_dir.c: empty ones under the names of operations that are over */
	struct {
		uint32_t of[WORKER_SPARE_DIRS];
		bool marked[WORKER_SPARE_DIRS];
		unsigned count;
		enum { DIR_TIMES_UNKNOWN, DIR_TIMES_TELL, DIR_TIMES_TELL_NOTHING } times;
	} spare_dirs;

	struct { /* emit.c */
		unsigned char bits[TOKENS_AT_ONCE][TOKEN_BYTES];
		unsigned left;
	} tokens;

	/* ending.c, strays.c */
	bool children_changed;
	struct timer hear_again; /* armed: SIGCHLD is let go until then */
	unsigned alive;	 /* attempts whose process has not ended */
	unsigned pinned; /* attempts whose process has ended but is not reaped */
	bool any_leaves; /* an operation may leave processes behind */
	bool hidden_leftover_told; /* of one that hides whose it is */
	struct stray *strays;
	int64_t sweep_next_ns;
	struct timer sweep;

	struct agents *agents; /* agents.c; NULL when no operation has an instruction */

	struct turns *turns; /* turns.c; NULL: messages come only before an operation starts */

	/* control.c */
	struct timer tick;
	bool controls_reading, controls_again;
	bool controls_first; /* the first look is not over: nothing starts */
	struct control_queue *controls;
	struct control_row *controls_held; /* the rows behind it wait for its effect to be durable */
	struct stamp_job *unstamped; /* its effect has happened: nothing overtakes it */
	struct stamp_job *late_stamps; /* of effects that nothing waits for any more */
	struct timer stamp_again, late_again;
	bool controls_left; /* the last look has left something that the next tick must look at */
	uint64_t beats;

	struct rest rest; /* rest.h */

	/* status.c */
	struct status_job *statuses, **statuses_last;
	struct timer status_again;
	bool status_writing, running_stored;

	/* flow_context.c */
	struct json *flow_context;   /* with what the program keeps in it */
	struct json *public_context; /* without; NULL until somebody asks */
	unsigned context_version, context_written;
	struct context_wait *waits, **waits_last;

	struct reactive *reactive; /* reactive.c; NULL: nothing is added to this run */

	/* messages.c */
	struct attempt_run *marking; /* starts of this turn whose marks are to be made durable */

	struct telling failures_told; /* settle.c */
	bool lost_context;
	struct telling lost_told;

	/* anew.c */
	bool anew_begun;
	bool any_anew; /* of what the synthesis stands behind */
	bool loses_added;
	struct telling loses_told;

	/* approval.c */
	unsigned waiting;
	struct telling waiting_told;

	struct growth growth; /* reactive.c */

	/* link.c */
	int listen_fd;
	struct poller_source listener;
	struct door *doors; /* of runs whose operations were taken over */
	struct link supervisor, peers[WORKER_MAX_PEERS];
	struct timer progress_link, progress_store;
	int inherited_fd; /* the supervisor's end as handed over, until link_begin */

	/* events.c */
	struct buf events, attempts;
	int64_t begun_ns;

	/* environment.c: what all operations share, sorted by name; context.c: scratch space */
	char *values_block; /* entries that no file holds */
	size_t values_len;
	char *environ_block;
	char **environment;
	size_t environment_count;
	struct buf scratch_text, scratch_argv;

	/* storage.c */
	struct {
		bool writer_fails, start_fails; /* while either: CLOSED_STORAGE */
		enum storage_try trying;
		uint64_t last_try; /* its number, of ckpt_retry_now */
		bool tried;	   /* the writer's last chance before the end has passed */
		bool over;			/* the storage timeout has passed */
		bool reserved, busy;
		int start_wait_s;      /* grows while starts fail again at once */
		int64_t start_next_ns; /* before it no start is tried */
		struct timer limit;
	} storage;

	/* How it ends. */
	int asked_by;	/* signal, once it is asked to leave */
	bool leave_now; /* then: the time for acknowledgements is over */
	bool stopped_now; /* somebody waits for the end of what runs */
	bool disowned;	/* the run's row is terminal by somebody else's hand */
	struct timer disowned_due;
	bool stored;	/* the terminal status is in the database */
	struct timer give_up;
	struct err trouble; /* of CLOSED_ERROR and storage */
	uint32_t first_failed;
	enum run_status status;
	const char *reason_code;
	char *reason;
	bool finished;
};

/* main.c */
/* Memory or a descriptor ran out in the loop, where nobody can be told: closes admission for good;
 * the run ends as failed (run.failed.internal) when what runs has ended. */
void worker_error(struct worker *w, const struct err *e);

/* begin.c: everything up to the first turn; blocks. */
int worker_begin(struct worker *w, const char *home, const char *run_id, struct err *e);
/* What depends on the flow as a whole: descriptors for all that can run at once. */
int worker_fit(struct worker *w, struct err *e);
void worker_clear(struct worker *w);

/* limits.c: lowers what the launch record asks for to what can be set; says so once. */
void limits_fit(struct worker *w);

/* finish.c: the last steps. */
/* Whether nothing runs and nothing can start; after SIGTERM, whether what was admitted is saved. */
bool worker_is_idle(const struct worker *w);
/* Blocks: closes the writer, stores the terminal status, tells the supervisor. False when leftovers
 * of operations are being ended: ask again in a later turn. */
bool worker_finish(struct worker *w);
/* worker_begin failed: stores that the run could not be started. 0 when that was stored. */
int worker_abandon(struct worker *w, const struct err *why);
/* SIGTERM, SIGINT, SIGQUIT. */
void worker_leave(struct worker *w, int sig);

/* admission.c */
bool admission_open(struct worker *w);
/* Closed by something that does not pass. */
bool admission_over(const struct worker *w);
void admission_close(struct worker *w, unsigned why);
/* A start that was admitted takes place elsewhere; what came of it has been told. */
void admission_begun(struct worker *w);
void admission_began(struct worker *w);
void admission_reopen(struct worker *w, unsigned why);
void gate_close(struct worker *w);
void gate_open(struct worker *w);
/* All predecessors of i count: judges its edges and makes it ready or skips it. */
void admission_met(void *worker, uint32_t i);
/* The synthesis, when it waits for nothing but the end of all others and that has come. */
void admission_last(struct worker *w);
void admission_ready(struct worker *w, uint32_t i);
/* Starts what may start now. */
void admission_start(struct worker *w);
void admission_slot_free(struct worker *w);
/* Announces that what waits will not be started. */
void admission_cancel_waiting(struct worker *w);
int admission_deadline_set(struct worker *w, struct err *e);

/* context.c, environment.c, templates.c, deps.c: what an operation is given. The texts are valid
 * until the next call. */
struct given {
	char *const *argv, *const *envp;
	const char *search_path, *cwd;
};
int context_init(struct worker *w, struct err *e);
void context_clear(struct worker *w);
int context_prepare(struct worker *w, uint32_t i, struct given *out, struct err *e);
/* The text of an instruction with its templates resolved. */
int context_instruction(struct worker *w, uint32_t i, struct buf *to, struct err *e);

/*
 * flow_context.c: the shared context. Versions are never changed; each function that changes it
 * makes the next one.
 */
int flow_context_begin(struct worker *w, struct err *e);
void flow_context_clear(struct worker *w);
/* As operations see it; borrowed, NULL when out of memory. */
const struct json *flow_context_public(struct worker *w);
/* An outcome that is being admitted carries `next`, which is consumed. */
void flow_context_became(struct worker *w, struct json *next);
/* A member that the program keeps in it; borrowed, or NULL. */
const struct json *flow_context_kept(const struct worker *w, const char *name);
/* Sets it; value is consumed, NULL means that memory ran out. */
int flow_context_keep(struct worker *w, const char *name, struct json *value, struct err *e);
/* Has the checkpoint writer commit the context as it is now. `saved` is called once: durable, or
 * not, when the writer has stopped. On error it is not called. */
typedef void context_saved(struct worker *w, void *arg, bool durable);
int flow_context_commit(struct worker *w, context_saved *saved, void *arg, struct err *e);
void flow_context_acked(struct worker *w);
void flow_context_abandon(struct worker *w);

/* messages.c */
/* Instructions of agents always; commands where the document says `messages: true`. */
bool messages_taken_by(const struct worker *w, uint32_t i);
/* Whether i finds its messages in the file FLOWSUP_MESSAGES. */
bool messages_by_file(const struct worker *w, uint32_t i);
/* It has not started: what it is given can still change. */
bool messages_can_reach(const struct op *op);
/* Whether an operation that has not started will take a message (to: only this one; or NULL). */
int messages_have_taker(const struct worker *w, const struct json *to, bool *have, struct err *e);
/* When not: what is with the operation that is named, for people; NULL when none is. */
const char *messages_why_not(const struct worker *w, const struct json *to);
/* Puts one into the context: {"text":…,"to":…}. The caller commits it. */
int messages_append(struct worker *w, const struct json *payload, double ts, struct err *e);
/* Marks what a's start renders. True: the start waits for messages_commit and spawn_marked. */
bool messages_claim(struct attempt_run *a);
void messages_commit(struct worker *w);
/* Appends the block of messages for the attempt of i that is being started; nothing when there is
 * none. */
void messages_render(const struct worker *w, uint32_t i, struct buf *to);
/* The same with an empty line behind it, where i has an instruction that takes it. */
void messages_before_instruction(const struct worker *w, uint32_t i, struct buf *to);
void messages_tell_unrendered(struct worker *w);

/*
 * turns.c: a run of kind agent, whose one operation goes on in its conversation as long as there are
 * messages. The outcome of each turn is durable before the next one is thought of.
 */
int turns_init(struct worker *w, struct err *e);
void turns_clear(struct worker *w);
/* Whether a message stays unclaimed for now: its place is the end of the turn, or of one after it where
 * the next one's instruction has no room for it. */
bool turns_hold(const struct worker *w, const struct json *payload);
/* A turn has ended, and messages are taken for the next one. */
bool turns_taking(const struct worker *w);
int turns_append(struct worker *w, const struct json *payload, double ts, struct err *e);
/* One look at the controls; whole: none was missed. */
void turns_look_begins(struct worker *w);
void turns_looked(struct worker *w, bool whole);
/* a has ended well: true when its outcome, which is consumed, may not be the last one. */
bool turns_keep_open(struct attempt_run *a, struct outcome *o);
const struct outcome *turns_outcome(const struct worker *w); /* of the turn that ended last */
void turns_saved(struct worker *w, uint32_t i);
/* Each turn of the loop: goes on with the operation or settles it, once that is decided. */
void turns_decide(struct worker *w);
/* A further turn has failed: o keeps what those before it gave. */
void turns_failed(struct worker *w, uint32_t i, struct outcome *o);
/* The number of turns so far, into an entry; consumes it. */
struct json *turns_describe(const struct worker *w, uint32_t i, struct json *entry);
/* From an entry of the run before (NULL: none): true when its conversation may go on, for messages that
 * its next turn was to take, or that are still queued. */
bool turns_restore(struct worker *w, uint32_t i, const struct json *entry);
/* The conversation that i's next attempt goes on with, borrowed; NULL: it begins. */
const struct json *turns_conversation(const struct worker *w, uint32_t i);
void turns_instruction(const struct worker *w, uint32_t i, struct buf *to);
/* Whether i is a person's own command line: then the word at `at` (NULL: memory ran out; valid as long as
 * scratch), and the words behind all of them. */
bool turns_is_command(const struct worker *w, uint32_t i);
const char *turns_command_word(struct worker *w, size_t at, struct buf *scratch);
struct provider_words;
int turns_command_more(struct worker *w, struct provider_words *out, struct err *e);
/* What is left of i's time limit; 0: it has none. */
int64_t turns_time_left_ns(const struct worker *w, uint32_t i);

/* approval.c */
const struct json *approval_verdict(const struct worker *w, uint32_t i); /* or NULL */
/* i is ready. True: approved. Else it waits from now on, or has failed as denied. */
bool approval_pass(struct worker *w, uint32_t i);
/* The operation that a verdict is for, if it waits for one; else OP_NO_INDEX. */
uint32_t approval_find_waiting(const struct worker *w, const struct json *payload);
/* Why the operation of this id (or NULL) takes no verdict: what follows its name. */
const char *approval_why_not(const struct worker *w, const char *id);
/* Puts the verdict into the context; the caller commits it and calls approval_landed. */
int approval_record(struct worker *w, uint32_t i, bool approved, const struct json *payload,
    struct err *e);
void approval_landed(struct worker *w, uint32_t i);
void approval_cancel_waiting(struct worker *w);
/* Tells the database what waits, if that has changed. */
void approval_tell(struct worker *w);

/* prepare.c: writes what a's start needs, then starts it, or gives its slot back. */
void prepare_start(struct attempt_run *a);
void spawn_marked(struct worker *w, uint32_t i, bool durable);

/* spawn.c */
/* i is ready and has a slot. Goes on to running, or settles it as failed (class spawn). */
void spawn_start(struct worker *w, uint32_t i);
struct attempt_run *attempt_new(struct worker *w, uint32_t i);
void attempt_free(struct attempt_run *a);
/* For what is prepared elsewhere (prepare.c, agent.c), from PREPARING on: starts it; settles it as
 * failed; puts it back among what is ready, and removes the directory ops/<dir> (NULL: none). */
void spawn_now(struct attempt_run *a);
/* Its process is there: on to running. */
void spawn_started(struct attempt_run *a);
void spawn_failed(struct attempt_run *a, enum op_class class, const struct err *e);
void spawn_give_back(struct attempt_run *a, const char *dir);
/* "<op>.<attempt><suffix>" */
enum { OP_FILE_TEXT = FLOW_MAX_ID + 64 };
const char *op_file_name(const struct worker *w, uint32_t i, unsigned attempt, const char *suffix,
    char to[OP_FILE_TEXT]);

/* ending.c: exits, limits, TERM and KILL, leftovers, orphans. */
void ending_watch(struct attempt_run *a);
/* Waits for the end of a process that is our child. */
void ending_watch_process(struct attempt_run *a);
/* Its time limit, at a moment of CLOCK_MONOTONIC (0: none), and its silence. */
void ending_limits(struct attempt_run *a, int64_t limit_ns);
/* Its process has ended, and still pins its number, unless it was taken over. */
void ending_exited(struct attempt_run *a, const struct proc_end *end);
void ending_stop(struct attempt_run *a, enum op_class why);
void ending_stop_all(struct worker *w);
/* It has given its result and does not leave: ends it, and the result stays. */
void ending_drain(struct attempt_run *a);
/* Reaps adopted processes and looks again at attempts whose leftovers are being ended. */
void ending_children(struct worker *w);
/* Something of a may have gone: goes on with it if nothing is left. */
void ending_look(struct attempt_run *a);
enum {
	ENDING_GIVE_UP_S = 5, /* after KILL: what stands in the kernel is left to it */
	ENDING_HEAR_AGAIN_MS = 100 /* so long what was adopted may stay a zombie */
};

/*
 * strays.c: processes of operations that are over, in sessions of their own. A pass over /proc
 * costs far more than starting a small operation; so passes are rationed to a fiftieth of the time.
 */
/* A process has ended: looks for what it left elsewhere now, or soon. a is exited. */
void strays_after(struct attempt_run *a);
/* The last pass, when nothing runs: by marks, and by descent also what has no marks. True when
 * nothing is there any more. */
bool strays_pass(struct worker *w);
/* Whether a child of ours lives that could be a stray. */
bool strays_possible(const struct worker *w);
void strays_clear(struct worker *w);

/* artifacts.c: declared artifacts of earlier attempts go before the next one starts. Blocks. */
int artifacts_remove_stale(int artifacts_fd, const struct flow_op *op, struct err *e);

/* artifact_dir.c */
/* The operation finds its directory. */
int artifact_dir_make(struct attempt_run *a, struct err *e);
/* The attempt is over and its artifacts are looked at: an empty directory may become another's. */
void artifact_dir_over(struct attempt_run *a);
/* Somebody is told the directory's name: it is there, and stays. */
int artifact_dir_keep(struct worker *w, uint32_t i, struct err *e);

/* outcome.c: artifacts and response of an attempt whose processes are gone. */
void outcome_begin(struct attempt_run *a);
/* Somebody wants the end: what is still being read after its grace is given up, and is cancelled. */
void outcome_hurry(struct attempt_run *a);

/* settle.c */
/* The attempt is over: retries it, or settles its operation. Frees a; o stays the caller's. */
void settle_attempt(struct attempt_run *a, struct outcome *o);
/* It is over, and what it left was not read to its end before a stop. Frees a. */
void settle_unread(struct attempt_run *a);
/* An operation that is settled without having been started (a condition that cannot be judged). */
void settle_failed(struct worker *w, uint32_t i, enum op_class class, const char *message);
/* What all turns of an operation were together. */
struct turns_total {
	bool saved; /* their outcome is durable */
	bool hung;
	unsigned leftovers;
	double started_at, ended_at;
};
/* Its turns are over: o (borrowed) is recorded already. */
void settle_turns(struct worker *w, uint32_t i, const struct outcome *o, const struct turns_total *t);
void settle_skipped(struct worker *w, uint32_t i, uint32_t cause);
void settle_replayed(struct worker *w, uint32_t i, const struct json *entry);
/* Takes acknowledgements and the writer's health. */
void settle_acks(struct worker *w);
/* Tells successors of everything that counts. */
void settle_release(struct worker *w);
/* Lets nothing that is unsaved wait for others when nothing else can come of the run. */
void settle_hurry(struct worker *w);
/* In each turn: tells the database whether anything has failed. */
void settle_tell(struct worker *w);

/* An operation without an attempt has come to its end (a foreach over a response). */
void settle_plain(struct worker *w, uint32_t i, struct outcome *o);
/* Admits the entry of an operation that was added; borrows it. */
int settle_pending(struct worker *w, uint32_t i, const struct json *entry, struct err *e);

/* reactive.c, expand.c: what is added while the run goes on. */
/* Rebuilds what the state holds and makes room for more. Before anything looks at operations. */
int reactive_begin(struct worker *w, struct err *e);
void reactive_clear(struct worker *w);
/* How many operations there can ever be. */
size_t reactive_most(const struct worker *w);
/* The entry of an operation that was added, with every field; NULL for one of the plan. Borrowed. */
const struct json *reactive_entry(const struct worker *w, uint32_t i);
/* A request of a running attempt; l is answered at once, when it is recorded, or when storage lets a
 * run end that cannot record it. -1: refused. */
int reactive_request(struct attempt_run *a, struct link *l, bool escalate, const struct json *value,
    struct err *e);
/* What a response asks for; asking is the response. The attempt has succeeded. */
void reactive_members(struct attempt_run *a, const struct json *asking);
bool reactive_is_asking(const struct json *response);
/* The attempt has failed for good: another try, where its role says so. */
void reactive_failed(struct attempt_run *a);
/* What an attempt that is taken over had asked for counts as asked by it. */
int reactive_restore(struct attempt_run *a, struct err *e);
void reactive_forget(struct attempt_run *a);
/* Something that its operation has asked for is not acknowledged yet. */
bool reactive_is_recording(const struct attempt_run *a);
/* The entry of i is acknowledged. */
void reactive_acked(struct worker *w, uint32_t i);
/* Somebody waits for an acknowledgement. */
bool reactive_is_awaited(const struct worker *w);
/* Who waits for one is refused. */
void reactive_abandon(struct worker *w, const struct err *why);
/* Tells the database how many were added and rejected. */
void reactive_tell(struct worker *w);
/* The same of lists for which there was no room: how many operations would have to be allowed. */
void reactive_tell_room(struct worker *w);
/* What conditions_read_list has found there; consumes list. why: it has failed. */
void reactive_list_read(struct worker *w, uint32_t i, struct json *list, const struct err *why);
/* A foreach over a response is ready: its items are added, some in each turn. */
void reactive_expand(struct worker *w, uint32_t i);
/* At the beginning, with what is recorded in place: what a foreach has begun has its room. Blocks. */
void reactive_go_on(struct worker *w);
void reactive_expand_more(struct worker *w);
bool reactive_is_expanding(const struct worker *w);

/* conditions.c */
/* True: somebody asks for what is in the response of i, and that is in a file: it comes to w->settled again when
 * it is answered. */
bool conditions_ask(struct worker *w, uint32_t i);
/* The list of a foreach i in the response of `from`, which is in a file; pointer lasts. reactive_list_read is called
 * when it is read. */
int conditions_read_list(struct worker *w, uint32_t i, uint32_t from, struct slice pointer, struct err *e);

/* storage.c */
/* The writer's health, as it changes. */
void storage_writer(struct worker *w, const struct ckpt_progress *p);
/* An attempt did not get its files for want of room. */
void storage_start_failed(struct worker *w, const struct err *why);
void storage_start_worked(struct worker *w);
/* Before the decision whether the worker is idle. */
void storage_turn(struct worker *w);
/* Whether what is not saved by now will not be: the last chance has passed. */
bool storage_gave_up(const struct worker *w);
/* Nothing can be saved, and nothing more is to start: what runs must not wait for the storage. */
bool storage_ends_run(const struct worker *w);
void storage_tick(struct worker *w);
void storage_clear(struct worker *w);
void storage_name_unsaved(const struct worker *w, struct buf *to);

/* control.c */
void control_first(struct worker *w); /* once io is there */
int control_begin(struct worker *w, struct err *e);
void control_look(struct worker *w);
void control_clear_all(struct worker *w);
void control_release(struct worker *w);
/* The stamp of an effect that has happened and could not be written yet; the caller owns it. */
struct stamp_job *control_take_unstamped(struct worker *w);
int control_write_stamp(struct stamp_job *j, struct store *s, struct err *e);
/* stored: it was written, or somebody else's record stands, which is then said. NULL is harmless. */
void control_free_stamp(struct stamp_job *j, bool stored);

/* status.c: writes a status through the io thread, in order, until it is written; the run's
 * outcome is not written this way. */
void status_begin(struct worker *w);
void control_status(struct worker *w, enum run_status status, const char *reason_code,
    const char *text);
/* The one that deadline and gate make; `open` is the reason where neither holds anything up. */
void status_of_gates(struct worker *w, const char *open);
void status_clear(struct worker *w);

/* emit.c: requests of operations. */
#define EMITTED_FILE "emitted.jsonl" /* in the attempt's directory */
int emit_token(struct attempt_run *a, struct err *e);
/* One request of a peer, which is answered at once or later. Borrows body and passed (-1: none). */
void emit_request(struct worker *w, struct link *l, const struct json *body, int passed);
/* True: a request is being made durable; outcome_begin will be called again. */
bool emit_hold(struct attempt_run *a);
/* Paths that the attempt has reported; borrowed, NULL when none. */
const struct json *emit_artifacts(const struct attempt_run *a);
/* The context with what the attempt and its response (or NULL) ask for, *context NULL when that is
 * nothing. -1 with *e when it does not apply any more. */
int emit_take(struct attempt_run *a, const struct json *of_response, struct json **context,
    struct err *e);
void emit_clear(struct attempt_run *a);
/* The operation that a request (by its id) was answered with before, or OP_NO_INDEX. */
uint32_t emit_known(const struct attempt_run *a, const struct json *value);
int emit_remember(struct attempt_run *a, const struct json *value, uint32_t child, struct err *e);
/* For an attempt that is taken over: a line of EMITTED_FILE, which counts from now on; a request that
 * was spooled, {"verb":…,"value":…}, as if it had just come, and one that cannot be read. Its sender was
 * told that it is kept: refused, it fails the attempt. */
int emit_restore(struct attempt_run *a, const struct json *line, struct err *e);
void emit_spooled(struct attempt_run *a, const struct json *body);
void emit_unreadable(struct attempt_run *a, const struct err *why);
bool emit_is_writing(const struct attempt_run *a);

/* link.c */
/* Answers to an operation's request. value is consumed (NULL: none); fd is borrowed. */
void link_answer(struct link *l, struct json *value, int fd);
void link_refuse(struct link *l, const struct err *why);
int link_begin(struct worker *w, struct err *e);
/* Listens also where operations that another run started look for their worker. */
struct door *link_open_door(struct worker *w, const char *run_id, struct err *e);
int link_door_ops(const struct door *d, struct err *e); /* its ops/; the caller closes it */
/* Sessions of the runs whose operations were taken over: the first for NULL; NULL: no more. */
const struct door *link_next_door(const struct worker *w, const struct door *after);
const char *link_door_session(const struct door *d);
const char *link_door_run(const struct door *d);
void link_clear(struct worker *w);
void link_progress(struct worker *w);
void link_notice(struct worker *w); /* the database holds something that may have to be told */
void link_ended(struct worker *w);

/* events.c: one JSON object a line, built in w->events, handed over at the end of the turn. */
void event_begin(struct worker *w, const char *name);
void event_op(struct worker *w, uint32_t i);
void event_text(struct worker *w, const char *name, const char *value);
void event_int(struct worker *w, const char *name, int64_t value);
void event_real(struct worker *w, const char *name, double value);
void event_true(struct worker *w, const char *name);
void event_end(struct worker *w);
/* {"event":name,…,"op":id,"attempt":n} */
void event_of_op(struct worker *w, const char *name, uint32_t i);
/* code < 0: it is not known. */
void events_attempt_end(struct worker *w, uint32_t i, unsigned attempt, enum op_class class,
    int code, int signal, unsigned leftovers);
/* A process that an attempt left is found, and ended, only after the line of its end. */
void events_late_leftover(struct worker *w, uint32_t i, unsigned attempt);
void events_flush(struct worker *w);
/* A job that tells others what has happened: who knows it by that finds it in the event log. */
void events_then(struct worker *w, struct io_job *job);

/* report.c */
int report_main(const char *home, const char *run_id);

/* ---- anew.c ---- */

/* i has settled, and its state is counted: costs no more than its needs are. */
void anew_settled(struct worker *w, uint32_t i);
/* Looks at all that settled before this run. */
void anew_begin(struct worker *w);
void anew_tell(struct worker *w);

#endif
