/*
 * The command line: one table per command makes the parser, the help and the completions.
 *
 * How to add a command: write cmd_NAME.c with
 *
 *	static const struct cli_option options[] = {
 *		{"force", 'f', CLI_FLAG, NULL, "do it although ..."},
 *		{"grace", 0, CLI_DURATION, "TIME", "how long ..."},
 *		CLI_END};
 *	static int
 *	run(struct cli *c, struct err *e)
 *	{
 *		bool force = cli_flag(c, "force");
 *		int64_t grace_ns = cli_int(c, "grace", 10 * NS_PER_S);
 *		...
 *		return 0;
 *	}
 *	const struct command cmd_NAME = {.name = "NAME", .group = CLI_GROUP_STEER, ...};
 *
 * and add one line X(NAME) to the list in main.c. Describe command and options in man/flowsup.1: a
 * test compares the two. A name may be two words ("ctl status"; the variable is cmd_ctl_status).
 */
#ifndef FLOWSUP_CLI_H
#define FLOWSUP_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "flowsup/err.h"
#include "flowsup/json.h"

struct output;

enum cli_kind {
	CLI_FLAG,
	CLI_STRING,   /* the last one counts */
	CLI_INT,      /* decimal; least and most bound it where most > least */
	CLI_DURATION, /* nanoseconds; least 1: no time at all is refused */
	CLI_SIZE,     /* bytes, at most INT64_MAX */
	CLI_CHOICE,   /* one of the words in `value`, which reads "one|two|three" */
	CLI_LIST,     /* a text, may be repeated */
	CLI_PAIR      /* KEY=VALUE, may be repeated; the key is not empty */
};

struct cli_option {
	const char *name; /* long name without "--" */
	char letter;	  /* 0: none */
	enum cli_kind kind;
	const char *value; /* what help calls it: "N", "TIME"; for CLI_CHOICE the words */
	const char *help;  /* one short line */
	int64_t least, most;
	/* The value may lack; only as --name=VALUE then, and cli_flag() says that it was given. */
	bool optional_value;
	const char *complete; /* what a text is: as one word of command->operands; or NULL */
	bool rare; /* in the help only with --all, where all would not fit a screen */
	bool alone; /* takes the place of the operands */
};
#define CLI_END {NULL, 0, CLI_FLAG, NULL, NULL, 0, 0, false, NULL, false, false}

/* Sections of `flowsup help`, in this order. */
enum cli_group {
	CLI_GROUP_START,
	CLI_GROUP_LOOK,
	CLI_GROUP_STEER,
	CLI_GROUP_INSIDE,
	CLI_GROUP_FILES,
	CLI_GROUP_SYSTEM,
	CLI_GROUPS
};

struct cli;
struct command {
	const char *name;
	const char *also; /* another name for it ("ctl stop"), not listed in the help; or NULL */
	enum cli_group group;
	const char *synopsis; /* behind the name; further forms on further lines */
	const char *summary;  /* one line without a full stop */
	/* NULL-terminated, at most five lines that can be pasted: "flowsup ...   # what it does". */
	const char *const *examples;
	const char *details; /* further text of the help, at most ten lines, or NULL */
	const struct cli_option *options; /* ended by CLI_END, or NULL */
	size_t min_operands, max_operands; /* max: CLI_ANY for any number */
	/* For completion: what each operand is, of the words in offer_kind(); "run|file" is either, "get|set"
	 * stands for itself, "run..." repeats. */
	const char *operands;
	bool runs_tail;			   /* what stands behind "--" is a command of its own */
	bool json;			   /* takes --json */
	bool this_run;			   /* takes --this-run */
	bool serves; /* may become the supervisor, whose signals are its own: they are not told as interruptions */
	/* Returns an exit status, or -1 with *e, which is printed at the edge. */
	int (*run)(struct cli *c, struct err *e);
	/* --help with operands, where these say what the help is about; or NULL. */
	int (*help)(struct cli *c, struct err *e);
	/* Gives the error of an option that cannot be read a better hint, by the operands before it; or NULL. */
	void (*misread)(const struct cli *c, struct err *e);
};
#define CLI_ANY SIZE_MAX

struct cli_value {
	bool given;
	int64_t number;
	const char **texts; /* as given, in order; borrowed from argv */
	size_t ntexts;
};

/* One parsed command line. Texts are borrowed from argv. */
struct cli {
	const struct command *command;
	const struct command *const *commands; /* the whole table, NULL-terminated */
	const char *home;		       /* --home or NULL, for home_open() */
	bool json, utc, this_run, help;
	char *const *operands; /* NULL-terminated */
	size_t noperands;
	size_t tail;   /* index of the first operand behind `--`; noperands when there is none */
	bool has_tail; /* there was a `--` */
	struct cli_value *values; /* by index in command->options */
	char **argv;		  /* the whole command line, as given */
	mode_t umask;		  /* the caller's, before this program set 077 */
	struct output *out;
	struct json *problems; /* with --json what an error consists of: a member of it; or NULL */
	struct cli_hints *hints; /* those that have no room in an error */
	struct json *warnings; /* with --json: of what is made nevertheless, a member of that; or NULL */
};

/* The values. The name must be in the command's table (asserted). */
bool cli_flag(const struct cli *c, const char *name); /* whether the option was given */
bool cli_dry_run(const struct cli *c); /* whether the command has such an option and it was given */
int64_t cli_int(const struct cli *c, const char *name, int64_t otherwise); /* int, duration, size */
const char *cli_text(const struct cli *c, const char *name, const char *otherwise);
/* Number of times a list or pair was given, and the i-th text. */
size_t cli_count(const struct cli *c, const char *name);
const char *cli_nth(const struct cli *c, const char *name, size_t i);

/* As if the text, which must stay until cli_clear(), had stood before all that was given: of a string it
 * is what counts where nothing was given, of a pair where its key was not. */
int cli_prepend(struct cli *c, const char *name, const char *text, struct err *e);

/* All values of a CLI_PAIR as one object (the last of a name counts), NULL when none was given. */
int cli_pairs(const struct cli *c, const char *name, struct json **out, struct err *e);

/* The options that every command takes; ended by CLI_END. */
extern const struct cli_option cli_common[];
/* Whether the command takes this common option (--json and --this-run are not for all). */
bool cli_takes(const struct command *cmd, const struct cli_option *common);

/*
 * Parses argv (argv[0] is the program) against the table. On error -1 with ERR_USAGE and a hint that
 * names what is nearest. c is zeroed first; free with cli_clear() also after an error.
 */
int cli_parse(struct cli *c, const struct command *const *commands, char **argv, struct err *e);
void cli_clear(struct cli *c);
/* Parses, runs, prints errors and hints, ends the output; returns the exit status. */
int cli_main(const struct command *const *commands, char **argv, mode_t umask_of_caller);

/* Whether there are commands of two words that begin with this one. */
bool cli_is_family(const struct command *const *commands, const char *name);
/* The second word of a family that is nearest to what was written; or NULL. */
const char *cli_nearest_second(const struct command *const *commands, const char *one, const char *two);
/* ERR_USAGE: there is no such command; the one that other programs call so, maybe with options, or the
 * nearest one, or NULL. */
const char *cli_unknown(const struct command *const *commands, const char *name, struct err *e);

/* Help from the tables. */
/* Of all commands (with `all` a line of each) and of one (with `all` what is seldom needed as well): what
 * is shown without fits a screen of 24 lines. */
void cli_help_commands(struct output *out, const struct command *const *commands, bool all);
void cli_help(struct output *out, const struct command *const *commands, const struct command *cmd, bool all);
const struct command *cli_find(const struct command *const *commands, const char *name);

/* `flowsup: <message>` and `hint: <hint>`, or `note: <advice>`, on standard error (with json: one object);
 * neutralised. Commands of a hint get the --home of this call. */
void cli_print_error(const struct err *e, bool json);
/* `flowsup: ` and a line, on standard error. */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_advice(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* err_hint() of a command of any length: one that has no room in *e is kept as long as c. Returns -1. */
int cli_hint_whole(const struct cli *c, const struct buf *command, struct err *e);
/* What owns those. -1 with ERR_NOMEM. */
int cli_hints_init(struct cli *c, struct err *e);
void cli_hints_clear(struct cli *c);
/* Appends a hint as it is printed. */
void cli_hint_text(struct buf *to, const char *hint);
/*
 * The hint is the whole command line as it was given, with `instead` in place of the `len` bytes at `at`,
 * which lie in one of its words; NULL: without that word. Returns -1.
 */
int cli_hint_instead(const struct cli *c, const char *at, size_t len, const char *instead, struct err *e);
/* The same with a command, which may have options, in place of the word `name`. */
int cli_hint_command(const struct cli *c, const char *name, const char *instead, struct err *e);
/* The same with the value that stands apart from an option that takes one only behind `=` joined to it; false,
 * without a hint, where there is none such, or it is not this operand (NULL: any). */
bool cli_hint_joined(const struct cli *c, const char *operand, struct err *e);
/* The word that is that option, where this operand could be the value; or NULL. */
const char *cli_apart(const struct cli *c, const char *operand);
/* The same with a further word behind all. */
int cli_hint_with(const struct cli *c, const char *further, struct err *e);
/* The same without operands; with `instead`, or NULL, in place of the word `at`. */
int cli_hint_alone(const struct cli *c, const char *at, const char *instead, struct err *e);
/* The same with `--` before the operand `program`, and before that what is ours of the long options behind it; where
 * it is a line for a shell, with a shell, and several lines as a chain. */
int cli_hint_behind_dashes(const struct cli *c, const char *program, struct err *e);

#endif
