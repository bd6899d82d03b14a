/* From a command line of `start` to a flow that may be started. */
#ifndef FLOWSUP_START_H
#define FLOWSUP_START_H

#include "cli.h"
#include "flowsup/buf.h"
#include "flowsup/flow.h"
#include "flowsup/home.h"

/*
 * Reads the document, or makes one of --each, --chain or `-- CMD`; applies what the command line
 * changes; refuses more operations than were asked for. Creates nothing. *out is the caller's; NULL where
 * --each has no items.
 */
int start_flow(struct cli *c, struct flow **out, struct err *e);

/* For struct command: the option belongs to a command that lacks its `--`, where the first operand is one. */
void start_misread(const struct cli *c, struct err *e);
/* The document that a command line of `start` names (or "-"), NULL: none. */
const char *start_path(const struct cli *c);
/* The options of start; the first START_OWN_OPTIONS of them are for what only start can do. */
extern const struct cli_option start_options[];
enum { START_OWN_OPTIONS = 4 };
/* What a run of a document without a name is called: its file without the ending. */
void start_name(const char *path, struct buf *to);
/* Reads a document (path or "-"), with every problem told, or left in c->problems. */
int start_document(struct cli *c, const char *path, struct flow **out, struct err *e);
/*
 * Applies the options of start, and what o has already (its name yields to --name), to *f, and
 * refuses more operations than were asked for. file is for messages, or NULL. *f is replaced; on error
 * it is freed and NULL.
 */
int start_change(struct cli *c, const char *file, struct flow_overrides *o, struct flow **f,
    struct err *e);
/* Where a flow comes from. */
struct start_source {
	const char *document; /* path that it was read from, or NULL; a relative one counts from here */
	/* Of rerun, or NULL: the options of launch that hold where the command line gives none, the
	 * run whose document it is, and what was recorded of the file. */
	const struct json *options;
	const char *rerun_of;
	const char *digest;
};
/* Looks at the environment, creates the run and hands it over, as the options of start say: everything
 * from a flow on. Returns an exit status, or -1. */
int start_launch(struct cli *c, const struct flow *f, const struct start_source *from, struct err *e);
/* A run that could not be recorded because the database is busy: 5 would mean that it is queued. Returns
 * rc. */
int start_nothing(int rc, struct err *e);
/* What --json shows of a run that was just made; adds to o, which it consumes. */
struct json *start_made_json(struct json *o, const struct home *h, const char *run_id,
    const char *session_id, const char *invocation_id);
/* "agent" for one operation that is an agent's: by its instruction, or as a command line that its
 * provider knows to continue; "play" for a playbook; else "flow". */
int start_kind(const struct flow *f, const char **out, struct err *e);
/*
 * Whether this environment can run it: required variables are set, and the programs of `exec` are there
 * for operations that need no other. The others' may be made meanwhile: of those a bare name that is
 * not found is a warning, as is a directory of one that needs no other. All of it is added to *d, nothing
 * is printed. ERR_ENVIRONMENT names the operation; where several things are missing it counts them.
 */
int start_check_environment(const struct flow *f, struct flow_diagnostics *d, struct err *e);

#endif
