/*
 * Providers: how an agent's command line is started, continued, read and judged. A provider is a
 * file, flowsup-provider(5); nothing here knows the name of any program.
 */
#ifndef FLOWSUP_PROVIDER_H
#define FLOWSUP_PROVIDER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"
#include "flowsup/json.h"

enum {
	PROVIDER_FORMAT = 1, /* of the file */
	PROVIDER_MAX_SIGNALS = 4,
	PROVIDER_MAX_NAME = 64,
	PROVIDER_DRAIN_S = 10, /* for what has given its final record, unless the file says otherwise */
	PROVIDER_MAX_ID = 512	/* bytes of a conversation's id */
};
#define PROVIDER_MAX_FILE ((size_t)1 << 20)
/* The kernel takes no longer argument (MAX_ARG_STRLEN, with its NUL). */
#define PROVIDER_MAX_ARGUMENT (((size_t)128 << 10) - 1)
/* A longer line of JSON lines is passed over and counted: memory stays bounded whatever comes. */
#define PROVIDER_MAX_LINE ((size_t)8 << 20)
/* Of one JSON text or array as a whole, and of an answer that is put together. */
#define PROVIDER_MAX_DOCUMENT ((size_t)32 << 20)
#define PROVIDER_MAX_ANSWER ((size_t)32 << 20)
/* Of an error's text and of standard error, as far as messages and patterns look at them. */
#define PROVIDER_MAX_ERROR ((size_t)16 << 10)

enum provider_prompt {
	PROVIDER_STDIN,	   /* the instruction's file is standard input */
	PROVIDER_ARGUMENT, /* {prompt} is the text */
	PROVIDER_FILE	   /* {prompt} is the path of the instruction's file */
};
enum provider_format { PROVIDER_TEXT, PROVIDER_JSON, PROVIDER_JSONL, PROVIDER_JSON_ARRAY };
/* Where the id of a new conversation comes from. */
enum provider_id {
	PROVIDER_ID_NONE,    /* there is none: nothing can be continued */
	PROVIDER_ID_MINTED,  /* {sid}: a UUID made here before the start */
	PROVIDER_ID_COMMAND, /* {sid}: what `mint` prints */
	PROVIDER_ID_FOUND    /* in the output */
};
enum provider_start { PROVIDER_NEW, PROVIDER_RESUME, PROVIDER_FORK, PROVIDER_STARTS };

/* Names in braces that words of an argv may hold. */
#define PROVIDER_PLACES(X)                                                                         \
	X(PLACE_MODEL, "model")                                                                    \
	X(PLACE_SID, "sid")                                                                        \
	X(PLACE_OLD, "old")                                                                        \
	X(PLACE_OLD8, "old8") /* its first eight characters */                                     \
	X(PLACE_CWD, "cwd")                                                                        \
	X(PLACE_OUT, "out")                                                                        \
	X(PLACE_PROMPT, "prompt")                                                                  \
	X(PLACE_STORE, "store")                                                                    \
	X(PLACE_CHAT, "chat")                                                                      \
	X(PLACE_HOME, "home")                                                                      \
	X(PLACE_ARGS, "args") /* a word of its own: all arguments of the role */

enum provider_place {
#define X(name, word) name,
	PROVIDER_PLACES(X)
#undef X
	    PLACE_COUNT
};

/* One step of a stop, before SIGTERM, the operation's grace and SIGKILL. Always to the group. */
struct provider_signal {
	int signal;
	int64_t wait_ns;
};

struct provider_rules; /* conditions and selectors; private */

/* Immutable. All pointers are borrowed from what provider_free releases. */
struct provider {
	const char *name, *title;
	const char *file;     /* path it was read from */
	const char *verified; /* version its samples were taken from, or NULL: unverified */
	const struct json *version; /* argv that prints the version, or NULL */
	bool reads_user_settings;
	bool shell; /* the instruction is shell text: no templates, nothing is prepended */
	bool exit_0_reliable, keep_ansi, writes_out;
	enum provider_prompt prompt;
	uint64_t instruction_most; /* bytes that the program reads of one; 0: all */
	const struct json *commands; /* texts that, where an instruction begins with one, make it a command; or NULL */
	enum provider_format format;
	enum provider_id id;
	const struct json *starts[PROVIDER_STARTS]; /* argv, or NULL */
	const struct json *mint;
	const char *home_variable, *home_default; /* NULL: not bound to a home */
	bool bound_to_cwd;
	const char *store;	  /* name of the conversation's own file, or NULL */
	const char *chat_pattern; /* glob(7) pattern of {chat} with places, or NULL */
	bool keeps_chat; /* a copy of {chat} is kept after each turn, and is what is continued */
	/* Of a person's own command line: options before the instruction, words that keep it from being
	 * continued, and what is added to begin and to continue a conversation. NULL: it cannot be. */
	const struct json *command_prompt, *command_unless, *command_new, *command_resume;
	const struct json *set, *unset; /* of the environment: object of texts, array of names */
	struct provider_signal signals[PROVIDER_MAX_SIGNALS];
	unsigned nsignals;
	int64_t drain_ns;
	bool has_terminal; /* says which record is the last one */
	bool terminal_optional; /* success does not need it: older versions do not write it */
	struct provider_rules *rules;
};

/* Where files are looked for: first `config`/flowsup/providers, then `data`/providers. */
struct provider_search {
	char *config; /* ${XDG_CONFIG_HOME:-~/.config} or NULL */
	char *data;   /* flowsup's data directory beside this executable */
};
/* Of a submitter's environment (NULL: this process's). ERR_NOMEM. */
int provider_search_init(struct provider_search *s, char *const *envp, struct err *e);
void provider_search_clear(struct provider_search *s);

/*
 * Reads and checks the file of a provider. ERR_NOTFOUND when there is none, with the nearest name
 * in the hint; ERR_DOCUMENT or ERR_SYNTAX as "FILE:LINE:COLUMN: text".
 */
int provider_load(const struct provider_search *s, const char *name, struct provider **out,
    struct err *e);
int provider_read(const char *file, const char *name, struct slice text, struct provider **out,
    struct err *e);
void provider_free(struct provider *p);
/* A line that is no cause of a failure: what a command advises, and what `flowsup emit` says of success. */
bool provider_is_chatter(struct slice line);
/* Calls each with every name there is, sorted, once. */
typedef int provider_each(void *arg, const char *name);
int provider_list(const struct provider_search *s, provider_each *each, void *arg, struct err *e);

struct flow;
struct flow_diagnostics;
/*
 * Adds a problem for each instruction of a flow without a provider that is there, that continues a
 * conversation its provider cannot continue, or that holds templates for a shell. 0 when there is
 * none, -1 with ERR_DOCUMENT (ERR_REFUSED for a flow from a state) and the first one. s may be NULL:
 * as this process's environment says. settled says of each operation whether it has its outcome, and needs none
 * any more (NULL: of none). name is for messages (NULL: none).
 */
int flow_check_providers(const struct flow *f, const struct provider_search *s, const bool *settled, const char *name,
    struct flow_diagnostics *d, struct err *e);
/* Whether a document that could be read may be started: flow_check_size() and then, as this process's
 * environment says, flow_check_providers(). */
int flow_check(const struct flow *f, const char *name, struct flow_diagnostics *d, struct err *e);

/* 0: the program takes the text as an instruction, and the whole of it. -1 with ERR_LIMIT or ERR_DOCUMENT. */
int provider_takes(const struct provider *p, struct slice instruction, struct err *e);

/* ---- Starting ---- */

/* What places stand for; NULL: nothing, and groups that hold the place are left out. */
struct provider_values {
	const char *at[PLACE_COUNT]; /* PLACE_ARGS is not used */
	const struct json *args;     /* array of texts or NULL */
};
/* The words of an argv, each with a NUL, one behind the other. */
struct provider_words {
	struct buf text;
	size_t count;
};
/* ERR_LIMIT for a word that the kernel would not take; ERR_DOCUMENT for a place without a value. */
int provider_words(const struct provider *p, const struct json *argv,
    const struct provider_values *values, struct provider_words *out, struct err *e);
/* As an argv with NULL at its end, which points into w; to be freed. NULL: no memory. */
char **provider_words_list(const struct provider_words *w);
void provider_words_clear(struct provider_words *w);
/* Whether an argv (NULL: none) holds a place. */
bool provider_argv_has(const struct json *argv, enum provider_place wanted);
/* A text with places, such as chat_pattern. */
int provider_expand(const struct provider *p, const char *text, const struct provider_values *values,
    struct buf *to, struct err *e);

/* Where the instruction stands in a person's own command line (NULL-terminated); 0: its conversation
 * cannot be continued, or it is no command of this provider's. */
size_t provider_command_prompt(const struct provider *p, const char *const *argv);

/* ---- Reading ---- */

/* Takes a bare text: the answer of a provider whose format is text, as it comes. */
typedef int provider_sink(void *arg, struct slice text, struct err *e);

/*
 * Reads output as it grows; works in any pieces; memory is bounded by the limits above. Escape
 * sequences are taken out first; lines that are no JSON are passed over, and in a record U+FFFD stands
 * for bytes that are no UTF-8.
 */
struct provider_reading;
int provider_reading_new(const struct provider *p, provider_sink *sink, void *arg,
    struct provider_reading **out, struct err *e);
void provider_reading_free(struct provider_reading *r);
int provider_reading_feed(struct provider_reading *r, struct slice bytes, struct err *e);
/* From where fd stands to its end. Blocks. ERR_IO. */
int provider_reading_feed_file(struct provider_reading *r, int fd, struct err *e);
/* The final record has come, be it that the end of its line has not. What follows may show that it was none. */
bool provider_reading_ended(const struct provider_reading *r);

/* How the process ended. */
struct provider_end {
	bool known, signaled, dumped, hung; /* hung: had given its final record and was ended by us */
	int code;
	struct slice out;    /* content of {out}; empty: none */
	struct slice errors; /* end of standard error */
};
/* What came of it. Texts are owned. */
struct provider_result {
	const char *class; /* NULL: success; "" when only the way it ended says what it was */
	char *message;
	bool has_answer; /* of formats other than text */
	bool lossy;	 /* bytes of it that were no UTF-8 became U+FFFD */
	struct buf answer;
	char *id;	   /* of the conversation, as the output says, or NULL */
	bool acknowledged; /* a turn was taken into the conversation */
	struct json *usage;
	uint64_t records, skipped_lines, long_lines;
};
/* After the last feed, once. Borrows end. */
int provider_reading_finish(struct provider_reading *r, const struct provider_end *end,
    struct provider_result *out, struct err *e);
void provider_result_clear(struct provider_result *r);

/* ---- Escape sequences (ECMA-48) ---- */

struct ansi_filter {
	unsigned char state;
};
/* Appends bytes without escape sequences. Sequences may be cut anywhere between two calls. */
void ansi_strip(struct ansi_filter *f, struct slice bytes, struct buf *to);

#endif
