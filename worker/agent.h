/*
 * Operations with an instruction: an agent's command line, described by a provider.
 *
 *	agents.c	providers, versions and conversations of a run
 *	agent.c		one attempt, up to its start
 *	agent_files.c	what must be durable before the start; the conversation's lock (io thread)
 *	agent_output.c	its output while it runs and when it has ended (io thread)
 *	helper.c	a short command whose output is wanted
 */
#ifndef WORKER_AGENT_H
#define WORKER_AGENT_H

#include "flowsup/exits.h"
#include "flowsup/provider.h"
#include "outcome.h"
#include "worker.h"

enum {
	AGENT_LOOK_MS = 250,	    /* between two looks at the output of one that runs */
	AGENT_LOCK_MS = 500,	    /* between two tries to get a conversation */
	AGENT_VERSION_MS = 20,	    /* between two looks whether the version is known */
	AGENT_TELL_MS = 1000,	    /* what is waited for longer is told */
	AGENT_VERSION_TEXT = 128,
	AGENT_UUID_TEXT = 37,
	HELPER_S = 30, /* a helper that takes longer is ended */
	HELPER_OUTPUT = 4096,
	HELPER_FILE_MOST = 64 << 20 /* of what it says, in memory, and of each file that it writes */
};
#define AGENT_LOOK_BYTES ((uint64_t)8 << 20) /* per job, so that others are not kept waiting */
#define AGENT_INSTRUCTION "instruction"
#define AGENT_ANSWER "answer"
#define AGENT_LAST "last-message"
#define AGENT_CHAT "chat"
#define HOME_CONVERSATIONS "conversations"

/* ---- helper.c ---- */

/* text: what it wrote, ended at the first line, or "" when it failed; why says then how. */
typedef void helper_done(void *arg, const char *text, const char *why);
struct helper {
	struct worker *w;
	int pidfd, out_fd;
	pid_t pid;
	struct poller_source source;
	struct timer limit;
	helper_done *done;
	void *arg;
};
/*
 * Starts words in the environment and directory of i's next attempt, without its marks, so that
 * nobody takes it for a part of an operation. done is called once, later. It dies with the worker.
 */
int helper_start(struct helper *h, struct worker *w, uint32_t i, const struct provider_words *words,
    helper_done *done, void *arg, struct err *e);
void helper_clear(struct helper *h); /* harmless on a zeroed one */

/* ---- One attempt ---- */

struct agent {
	unsigned refs; /* the attempt, and jobs that are under way; only the loop counts */
	struct worker *w;
	uint32_t op, from; /* from: whose conversation is continued, or OP_NO_INDEX */
	unsigned number;
	const struct provider *p;
	enum provider_start start;
	char *cwd, *home, *prompt;
	char sid[PROVIDER_MAX_ID + 1], dir[OP_FILE_TEXT], version[AGENT_VERSION_TEXT];
	char *old, *old_store, *store, *chat, *kept; /* kept: our copy of the chat as it is now */
	struct provider_words words;
	struct helper helper;
	bool version_known, sid_known;
	const void *asks; /* what its helper asks for the version of: one at a time, the others wait for the answer */
	const char *waits_for, *waits_next; /* what holds it up, and was told, is told when it takes long; or NULL */
	int64_t minting_ns; /* since when its helper makes an id */

	int lock_fd;
	bool lock_exclusive;
	char lock_name[2 * 16 + 6];

	/* while it runs */
	struct provider_reading *reading;
	int answer_fd;
	uint64_t read_to;
	struct err trouble; /* of reading */
	bool looking, ended, hung;
	enum op_class limit; /* that has passed, while what came before it is still being read; or CLASS_NONE */
	uint64_t limit_size; /* of the output by then */
	bool whole_by_limit; /* it was ended for a limit without a worker, and wrote nothing from then on */
	unsigned steps; /* of the signal plan that were taken */
	struct timer look, drain, again, tell;
};

/* Takes a from PREPARING to its start, or settles it. */
void agent_prepare(struct attempt_run *a);
/* Nothing more is started: what waits before its start gives its slot back, and its helper is ended. */
void agent_give_back_all(struct worker *w);
/* For a, without anything in it; NULL without memory. */
struct agent *agent_new(struct attempt_run *a);
/* a outlived the worker that started it: goes on from the record of its start. Blocks. */
int agent_taken(struct attempt_run *a, struct err *e);
void agent_free(struct agent *g); /* drops the attempt's reference */
void agent_unref(struct agent *g);
/* The file that the child gets as standard input; the caller closes it. */
int agent_stdin(const struct agent *g, struct err *e);
/* Its process runs. */
void agent_started(struct attempt_run *a);
/*
 * A limit of that class has passed, or a stop ends it. True: its final record was there by then, and it is ended as one that
 * does not leave; or some of its output is still to be read, and then that or the class decides.
 */
bool agent_may_have_ended(struct attempt_run *a, enum op_class limit);
/* Its process has ended, or is about to be ended for another reason. */
void agent_quiet(struct attempt_run *a);
/* A new UUID, for a conversation. */
int agent_mint_id(char to[PROVIDER_MAX_ID + 1], struct err *e);
/* The next step of the signal plan before SIGTERM; NULL: none is left. */
const struct provider_signal *agent_next_signal(struct agent *g);

/* ---- agent_files.c, on the io thread ---- */

/* mark: the text of the file `started`, empty when it needs none. */
int agent_files_make(struct agent *g, struct io_context *c, struct slice mark, struct err *e);
/* Copies the chat of a conversation into the attempt's directory, and notes where. */
int agent_keep_chat(struct agent *g, int ops_fd, const char *id, struct err *e);
void agent_unlock(struct agent *g);
void agent_lock_owner(struct agent *g, struct proc_id id);

/* ---- agent_output.c ---- */

/* On the io thread: reads what has come since, at most AGENT_LOOK_BYTES when not last. */
int agent_read(struct agent *g, int out_fd, bool last, struct outcome_patience *patience, struct err *e);
/* On the io thread: what the output says decides class and message; in is made to lead to the
 * answer. */
void agent_outcome(struct agent *g, struct outcome_input *in, struct outcome *o,
    const struct io_context *c);

/* ---- agents.c ---- */

int agents_init(struct worker *w, struct err *e);
void agents_clear(struct worker *w);
/* NULL when i has no instruction. */
const struct provider *agents_provider(const struct worker *w, uint32_t i);
/* The provider of a role, or NULL: it has none, or none that could be loaded. */
const struct provider *agents_role_provider(const struct worker *w, const struct flow_role *role);
/* i was added. */
void agents_added(struct worker *w, uint32_t i);
/* Its response stands in ops/<op>.<attempt>/answer, not in its output. */
bool agents_has_answer(const struct worker *w, uint32_t i);
/* The conversation in i's outcome, borrowed, or NULL. */
const struct json *agents_conversation(const struct worker *w, uint32_t i);
void agents_settled(struct worker *w, uint32_t i, const struct json *conversation);
/* It was to continue a conversation that is lost, and may begin a new one. */
/*
 * agent_interrupted.c: the end of i's attempt in ops_fd/dir is unknown: its next one goes on in that
 * conversation, where it can be continued. Blocks.
 */
void agents_interrupt(struct worker *w, uint32_t i, int ops_fd, const char *dir);
/* Those of the runs before, by what the resume found. Blocks. */
void agents_read_interrupted(struct worker *w);
const struct json *agents_interrupted(const struct worker *w, uint32_t i); /* or NULL */
/* That conversation is lost. False: there was none. */
bool agents_begin_anew(struct worker *w, uint32_t i);
void agents_tell_interrupted(const struct worker *w, uint32_t i, struct buf *to);
bool agents_is_degraded(const struct worker *w, uint32_t i);
unsigned agents_inheritors(const struct worker *w, uint32_t i);
/*
 * Versions, each of a command's words and of its program's file as it is. agents_version_get: ASK is for the caller to do, whose *asked
 * goes to agents_version_put (NULL: it gave up), whatever comes of it; others ASKED meanwhile wait.
 */
enum version_known { VERSION_KNOWN, VERSION_ASK, VERSION_ASKED, VERSION_NONE };
enum version_known agents_version_get(const struct worker *w, const char *program, struct slice words,
    char to[AGENT_VERSION_TEXT], const void **asked);
void agents_version_put(struct worker *w, const void *asked, const char *version);

#endif
