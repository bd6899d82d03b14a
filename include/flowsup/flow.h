/*
 * Flow documents: reading (YAML, JSON), the model, the graph, and the two directions between a
 * flow and the plan of a checkpoint. Keys are described in flowsup-flow(5).
 */
#ifndef FLOWSUP_FLOW_H
#define FLOWSUP_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flowsup/err.h"
#include "flowsup/json.h"

enum {
	FLOW_MAX_ID = 64,
	FLOW_MAX_PLAN = 200,	    /* without max_ops, for a person's or planner's document */
	FLOW_MAX_OPERATIONS = 100000, /* in all */
	FLOW_MAX_AT_ONCE = FLOW_MAX_OPERATIONS, /* concurrency, --jobs */
	FLOW_DEFAULT_MAX_SPAWN = 20,
	FLOW_DEFAULT_GRACE_S = 10,
	FLOW_MAX_DEP_VARIABLES = 1000 /* FLOWSUP_DEP_<ID>; above only FLOWSUP_DEPS */
};

enum flow_kind { FLOW_RUN, FLOW_EXEC, FLOW_INSTRUCTION };
enum flow_on { FLOW_ON_SUCCESS, FLOW_ON_FAILURE, FLOW_ON_ALWAYS };
enum flow_response { FLOW_RESPONSE_TEXT, FLOW_RESPONSE_JSON, FLOW_RESPONSE_JSONL, FLOW_RESPONSE_NONE };
enum flow_when { FLOW_WHEN_ALWAYS, FLOW_WHEN_EQUALS, FLOW_WHEN_EXISTS, FLOW_WHEN_MATCHES };

/* All pointers below are borrowed from the flow, which is immutable once made. A time of 0 means
 * "none given". Strings are NUL-terminated without NUL inside; they are UTF-8 but for what came
 * from a command line (argv, items), which may be any bytes. */
struct flow_edge {
	uint32_t op; /* index of the predecessor */
	uint8_t on;   /* enum flow_on */
	uint8_t when; /* enum flow_when */
	const char *pointer;	       /* into the predecessor's response */
	const struct json *value;      /* equals: the value; exists: true or false; matches: the ERE */
};

struct flow_env {
	const char *name;
	const char *value; /* NULL: only `required`; a leading "~/" is the home directory (flow_home_path) */
	bool required;
};

struct flow_retry {
	unsigned attempts; /* in all; 1: no retry */
	int64_t backoff_ns, max_ns;
	double factor;
	bool jitter;
	const struct json *on; /* array of exit codes and class names, or NULL: every failure */
};

struct flow_role {
	const char *name, *provider, *model, *escalate_to;
	const struct json *args;      /* array of strings or NULL */
	const char *const *artifacts; /* NULL-terminated */
	const struct flow_env *env;
	size_t nenv;
};

/*
 * How an operation runs: what many operations have in common. Operations of one `foreach`, and
 * others that say the same, share one; so 100,000 operations cost little more than their ids.
 */
struct flow_how {
	const struct flow_role *role; /* of assignee, or NULL */
	const char *assignee;
	const char *inherit_context;
	enum flow_response response;
	const struct json *schema;
	const char *const *artifacts; /* role's and operation's folded together, NULL-terminated */
	const char *const *own_artifacts; /* the operation's alone, or NULL */
	int64_t timeout_ns;
	int64_t grace_ns; /* never 0: FLOW_DEFAULT_GRACE_S when none was given */
	int64_t silence_ns;
	bool silence_notify, silence_strict;
	struct flow_retry retry;
	bool gate_approve;
	bool idempotent; /* true but for `idempotent: false` */
	bool keeper, context, output_merged, tty, messages, leave;
	bool has_nice;
	int nice;
	int umask; /* -1: the submitter's */
	const struct flow_env *env; /* run's, role's and operation's folded, later ones win */
	size_t nenv;
	const struct flow_env *own_env; /* the operation's alone */
	size_t nown_env;
	const char *cwd; /* relative ones to the submitter's; a leading "~/" as in flow_env */
	int64_t limit_cpu_s, limit_memory_bytes, limit_files; /* -1: the submitter's */
	const struct json *foreach_pointer; /* {op, pointer} when over a response, else NULL */
};

struct flow_op {
	const char *id;
	const char *text;	  /* of run and instruction, else NULL */
	const char *const *argv;  /* of exec, NULL-terminated, else NULL */
	const char *item; /* of foreach and --each, for {{item}} and $1; NULL else */
	const struct flow_how *how;
	const struct flow_edge *needs; /* one per predecessor, ascending by op */
	const uint32_t *successors; /* indices of operations that need this one, ascending */
	uint32_t nneeds, nsuccessors;
	enum flow_kind kind;
	bool never; /* it needs of an empty foreach what an empty one does not give: it is skipped */
	struct json_where where; /* of the id in the document */
};

struct flow {
	const char *name, *prompt; /* prompt may be ""; name is NULL when the document gives none */
	unsigned concurrency;	   /* 0: number of CPUs */
	int64_t timeout_ns;
	int64_t max_ops;  /* -1: not given */
	bool fail_fast, model_commands;
	unsigned escalate_max;
	const struct flow_op *ops; /* those of the plan, then those that were added while it ran */
	size_t nops, nplanned;
	const uint32_t *order; /* a topological order of all operations, nops long; flow_reorder */
	const struct flow_role *roles;
	size_t nroles;
	const struct flow_env *env;
	size_t nenv;
	const struct json *notify, *restart, *orphans, *reactive, *planner, *synthesis, *args;
	const struct json *arguments; /* values of args, by name; NULL before they are given */
	const char *playbook;	      /* the name it was found by, or NULL */
	size_t planner_op, synthesis_op; /* indices of the operations these are; SIZE_MAX: none */
	bool unplanned; /* only the planner is known yet: its answer makes the others */
	int64_t watchdog_ns;
	const struct json *document; /* normalised; what flow.json holds; NULL once dropped */
	const char *digest; /* CKPT_DIGEST of the bytes of the file that it was read from, or NULL */
};

#define FLOW_NO_OP UINT32_MAX

/* A flow is reference-counted only by its one owner: made by the readers, freed once. */
void flow_free(struct flow *f);
/* Gives the memory of f->document back when neither flow.json nor a plan is to be made any more
 * (a worker with 50,000 operations). Everything else in f stays. */
void flow_drop_document(struct flow *f);

/* What was wrong, or worth saying, in a document; many at once. */
struct flow_diagnostic {
	bool warning;
	struct json_where where; /* line 0: the document as a whole */
	char message[512];
	char hint[256];
	bool command; /* the hint is one that can be pasted; else it is a sentence */
};
struct flow_diagnostics {
	struct flow_diagnostic *items;
	size_t count, cap;
	size_t suppressed; /* beyond FLOW_MAX_DIAGNOSTICS */
};
enum { FLOW_MAX_DIAGNOSTICS = 50 };
void flow_diagnostics_clear(struct flow_diagnostics *d);
/* A further one, empty; NULL where there are FLOW_MAX_DIAGNOSTICS (counted then) or no memory is left. */
struct flow_diagnostic *flow_diagnostics_add(struct flow_diagnostics *d);

struct flow_source {
	const char *name; /* for messages: the path, or "standard input" */
	struct slice text;
	bool json; /* by the name's ending or because the text begins with { ; else YAML */
};

/*
 * Reads, validates and normalises a document. Executes nothing. On error -1 with ERR_DOCUMENT (or
 * ERR_SYNTAX, ERR_LIMIT, ERR_NOMEM): e->msg is the first problem as
 * "FILE:LINE:COLUMN: text", e->hint its hint; *d (may be NULL) has all of them.
 */
int flow_read(const struct flow_source *source, struct flow **out, struct flow_diagnostics *d,
    struct err *e);
/* The same from a path or "-" (standard input), with the size limit applied while reading. */
int flow_read_file(const char *path, struct flow **out, struct flow_diagnostics *d, struct err *e);
/* A file of either syntax as one JSON object, with positions and no look at what it says; one with nothing in it, or
 * only comments, has no members. */
int flow_read_object(const char *path, struct json **out, struct err *e);
/* From a normalised document (flow.json). Borrows doc. */
int flow_from_document(const struct json *doc, struct flow **out, struct err *e);

/* One-liners. argv and commands are NULL-terminated. */
int flow_from_command(const char *name, char *const *argv, struct flow **out, struct err *e);
struct flow_each {
	const char *command;	  /* shell text; the item is $1 */
	const struct slice *items;
	size_t nitems;
	const char *name;
};
/* ids each.0, each.1, ...; items may hold any byte but NUL. */
int flow_from_each(const struct flow_each *each, struct flow **out, struct err *e);
/* A planner alone, for a prompt; the role is one of roles, which is borrowed. */
int flow_from_planner(const char *role, const char *prompt, const struct json *roles,
    struct flow **out, struct err *e);
int flow_from_chain(const char *name, char *const *commands, struct flow **out, struct err *e);

/* Changes asked for on the command line, applied to the normalised document. */
struct flow_overrides {
	const char *file; /* of the document, for messages; or NULL */
	const char *name;	  /* NULL: as it is */
	unsigned concurrency;	  /* 0: as it is */
	int64_t timeout_ns;	  /* 0: as it is */
	int64_t max_ops;	  /* -1: as it is */
	bool fail_fast;
	const char *reactive; /* "off" or "all"; NULL: as it is */
	const struct json *notify, *restart; /* NULL: as it is; an empty restart: none */
	int64_t watchdog_ns;		     /* 0: as it is */
	const struct json *arguments;	     /* of flow_arguments(); NULL: as it is */
	const char *prompt, *playbook;	     /* NULL: as it is */
};
/* Consumes f. */
int flow_override(struct flow *f, const struct flow_overrides *o, struct flow **out, struct err *e);

/* A declared argument; everything is borrowed from the flow. */
struct flow_arg {
	const char *name, *type;      /* type: "string", "integer", "number" or "boolean" */
	const char *help;	      /* or NULL */
	const struct json *otherwise; /* its default, or NULL */
	bool required;
};
/* The i-th of them; false behind the last. */
bool flow_arg_at(const struct flow *f, size_t i, struct flow_arg *out);
/*
 * Values for all arguments, by name: what was given (an object of texts as people write them, or
 * NULL), else the default, else "". ERR_USAGE names the first argument that is not declared, does not fit
 * its type, or is missing; *d (may be NULL) gets all of them.
 */
int flow_arguments(const struct flow *f, const struct json *given, struct json **out, struct flow_diagnostics *d,
    struct err *e);

/* Index of an operation by id, or SIZE_MAX. O(log n). */
size_t flow_find(const struct flow *f, const char *id);

/*
 * Of a document that somebody wrote: adds a problem when its plan has more than FLOW_MAX_PLAN operations
 * and nobody has said max_ops, which flow_override may do. 0 when there is none, -1 with ERR_DOCUMENT.
 * name is that of flow_source (NULL: none).
 */
int flow_check_size(const struct flow *f, const char *name, struct flow_diagnostics *d,
    struct err *e);

/* ---- While it runs: pure functions ---- */

enum flow_outcome { FLOW_COMPLETED, FLOW_FAILED, FLOW_SKIPPED, FLOW_CANCELLED };
/* Whether the label of an edge lets a settled predecessor pass, whatever its condition says. */
bool flow_edge_fits(const struct flow_edge *edge, enum flow_outcome outcome);
/*
 * Whether a settled predecessor lets the edge pass: `on` success: it completed; failure: it failed;
 * always: it settled at all, also skipped. Then `when` is asked of its response (NULL: there is
 * none; exists: false holds then, everything else does not). `matches` looks at a string as it is
 * and at other values in their encoding, at most FLOW_MAX_MATCH bytes of it. 0 with *holds, or -1:
 * ERR_LIMIT when the pattern takes too many steps, each time it is asked; ERR_NOMEM.
 */
int flow_edge_holds(const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response, bool *holds, struct err *e);
/* The same for one of f's edges: how many items a foreach had, which is recorded as its response, is
 * no answer; and the whole of a printed text is asked without one newline at its end (also equal with it). */
int flow_need_holds(const struct flow *f, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response, bool *holds, struct err *e);
/* Why it does not hold, where its label fits: the edge and the beginning of the value. */
void flow_need_unmet(const struct flow *f, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response, struct buf *to);
#define FLOW_MAX_MATCH ((size_t)64 << 10)

/* JSON lines that are read some at a time; values that are kept count together. */
struct flow_lines {
	const char *at, *end;
	size_t number; /* of the next one, from 1 */
	size_t values_left;
};
/* Reads lines until about so many bytes of them are read; empty ones are passed over. */
int flow_parse_lines(struct flow_lines *l, size_t bytes, struct json **out, struct err *e);
int flow_too_many_values(struct err *e); /* -1, ERR_LIMIT */

/*
 * A response that is in a file, which `recorded` names, as its operation declares it. Blocks, and reads all of it:
 * ERR_LIMIT for more than JSON_MAX_RESPONSE bytes or JSON_MAX_RESPONSE_VALUES values, ERR_NOTFOUND, ERR_REFUSED
 * where it is not the file that was recorded, ERR_IO, ERR_NOMEM. A relative name lies below run_fd.
 */
int flow_response_read(int run_fd, const struct json *recorded, enum flow_response kind, bool completed,
    struct json **out, struct err *e);

/*
 * All conditions on the response of one operation, for such a response: it is read once for them. Borrows from the
 * flow, but not its table of operations, so that they can be asked on a thread while that grows.
 */
struct flow_asked_edge {
	struct flow_edge edge;
	char *key;
};
struct flow_asked {
	const char *id;
	const struct flow_how *how;
	enum flow_outcome outcome;
	struct flow_asked_edge *edges;
	size_t count; /* 0: nobody asks */
};
int flow_asked_init(struct flow_asked *a, const struct flow *f, uint32_t from, enum flow_outcome outcome,
    struct err *e);
void flow_asked_clear(struct flow_asked *a);
/* What came of each, or why the file cannot be read; for flow_answer_*. NULL without memory. Blocks. */
struct json *flow_asked_answers(const struct flow_asked *a, int run_fd, const struct json *recorded);
/* ERR_LIMIT: it cannot be answered, and so the operation whose condition it is fails. */
int flow_answer_holds(const struct json *answers, const struct flow_edge *edge, bool *holds, struct err *e);
void flow_answer_unmet(const struct json *answers, const struct flow_edge *edge, struct buf *to);

/* The same for entries of a checkpoint (or NULL): first flow_answers_read of each predecessor, which adds to
 * *all (NULL: nothing yet) where its response is in a file and somebody asks. Blocks. */
int flow_answers_read(const struct flow *f, uint32_t from, enum flow_outcome outcome, int run_fd,
    const struct json *entry, struct json **all, struct err *e);
int flow_need_holds_entry(const struct flow *f, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *entry, const struct json *all, bool *holds, struct err *e);
void flow_need_unmet_entry(const struct flow *f, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *entry, const struct json *all, struct buf *to);

/*
 * Asks a JSON response (of jsonl: each of its lines) by the operation's schema; without one
 * everything fits. 0, or -1: ERR_DOCUMENT names the first value that does not fit by its pointer,
 * ERR_LIMIT when the answer would take too long, ERR_NOMEM. Blocks for a large response.
 */
int flow_schema_fits(const struct flow_how *how, const struct json *response, struct err *e);
/* The same for some lines of a response that is jsonl, of which the first has this index. */
int flow_schema_fits_lines(const struct flow_how *how, const struct json *lines, size_t first,
    struct err *e);

/* Whether a failure of this class (with this exit code or signal) after `attempts` attempts in all
 * is tried again. `crash` must be named by `on`. */
bool flow_retry_applies(const struct flow_retry *r, const char *failure, int code,
    unsigned attempts);
/* The pause before attempt number attempts + 1: backoff * factor^(attempts - 1), at most max; with
 * jitter between half of it and all of it, by `random` (any 64 bits). */
int64_t flow_retry_delay_ns(const struct flow_retry *r, unsigned attempts, uint64_t random);

/* Templates: {{ops.ID.response}} {{artifacts.ID}} {{prompt}} {{args.NAME}} {{item}}; "\\{{" stands
 * for "{{", and "{{" before anything but a letter for itself. */
enum flow_reference {
	FLOW_REF_RESPONSE,
	FLOW_REF_ARTIFACTS,
	FLOW_REF_PROMPT,
	FLOW_REF_ARG,
	FLOW_REF_ITEM
};
/* Whether text must be rendered: it has a reference or an escaped one. */
bool flow_has_template(const char *text);
/* Whether it has one that a value would be put in the place of. */
bool flow_has_reference(const char *text);
/* Appends a text without references, where "\\{{" stands for "{{". */
void flow_unescape(const char *text, struct buf *to);
/* Appends what a reference stands for; name is ID, NAME or empty. 0 or -1. */
typedef int flow_resolve(void *arg, enum flow_reference ref, struct slice name, struct buf *to,
    struct err *e);
/* Appends text with every reference resolved. -1 with ERR_DOCUMENT for a bad template, ERR_NOMEM, or
 * what resolve said. */
int flow_render(const char *text, flow_resolve *resolve, void *arg, struct buf *to, struct err *e);
enum { FLOW_MAX_RENDERED_VALUE = 64 << 10 }; /* of an exec item or env value, by the caller */

/* Whether path begins with "~/", or is "~". */
bool flow_is_home_path(const char *path);
/* Appends path with that replaced by the home directory, where named is the value of HOME, or NULL
 * (place_home). -1 with ERR_ENVIRONMENT when there is none. */
int flow_home_path(const char *path, const char *named, struct buf *to, struct err *e);

/* ---- Growing: operations that are added while a flow runs ---- */

enum flow_grown_kind {
	FLOW_GROWN_SPAWN, /* asked for by its parent */
	FLOW_GROWN_RETRY, /* another try: takes the place of its parent, which is the end of a chain */
	FLOW_GROWN_ITEM	  /* of a foreach over a response: its parent is the template */
};
struct flow_grown {
	enum flow_grown_kind kind;
	uint32_t parent;  /* FLOW_NO_OP: none was recorded (older checkpoints) */
	uint32_t emitter; /* who asked: the parent, but of a retry whom `escalated_from` names */
	const struct json *entry; /* of spawned[], as it was given; held */
};

/* Whether its document lets it grow: by reactive, escalate_to, or foreach over a response. */
bool flow_may_grow(const struct flow *f);
/* Whether operations of a role (NULL: without one) may ask for more. */
bool flow_reactive_allows(const struct flow *f, const char *role);
/* How many operations may be asked for in all (max_spawn), and how many may be added by whatever. */
size_t flow_max_spawn(const struct flow *f);
size_t flow_max_growth(const struct flow *f);
/*
 * Whether work that `emitter` asks for may run as `role`: -1 says why it could then do more. Which
 * arguments allow what is known to the agent's program alone, so only equal ones are no more; and
 * there must be no variable that emitter has not. NULL: no role, with the account's full authority.
 */
int flow_check_authority(const struct flow_role *emitter, const struct flow_role *role,
    struct err *e);
/* Whether a person has said in the document that role tries again what emitter fails at. */
bool flow_is_declared_escalation(const struct flow_role *emitter, const struct flow_role *role);
/* The role of that name, or NULL. */
const struct flow_role *flow_find_role(const struct flow *f, const char *name);

/*
 * Makes f able to take up to `room` more operations. plan is the array of the state, with node ids.
 * Addresses of operations stay what they are from here on, however many are added.
 */
int flow_grow_begin(struct flow *f, const struct json *plan, size_t room, struct err *e);
/*
 * Adds the operation that an entry of spawned[] describes, with its edges: behind its parent; as a
 * retry between its parent and what needs that; as an item beside its template. The same function
 * builds the graph live and from a checkpoint, so both are the same. *out is its index. ERR_REFUSED
 * says what is wrong with the entry, ERR_NOTFOUND that its parent is not (yet) there, ERR_LIMIT that
 * there is no room. Changes nothing on error but ERR_NOMEM.
 */
int flow_grow(struct flow *f, const struct json *entry, uint32_t *out, struct err *e);
/* All of state.spawned (their parents first, whatever order they stand in), and what a foreach that
 * has ended means for what needs it. problem is called for each entry that cannot be added. */
typedef void flow_grow_problem(void *arg, const struct json *entry, const char *why);
int flow_rebuild(struct flow *f, const struct json *state, size_t room, flow_grow_problem *problem,
    void *arg, struct err *e);
/* The foreach i is done, its items are added: what needs it waits for them, whatever it says itself. */
int flow_expanded(struct flow *f, uint32_t i, struct err *e);

/* NULL for an operation of the plan. */
const struct flow_grown *flow_grown(const struct flow *f, uint32_t i);
/* NULL when none is known. */
const char *flow_node_id(const struct flow *f, uint32_t i);
/* SIZE_MAX: none has it. */
size_t flow_find_node(const struct flow *f, const char *node_id);
/* The last of the chain of retries that stands for i; i itself when there is none. */
uint32_t flow_final(const struct flow *f, uint32_t i);
bool flow_is_replaced(const struct flow *f, uint32_t i);
/* Whose conversation i is to go on in: the last try's at what it names, as that has it to go on in, unless it
 * is one of another program. SIZE_MAX: i goes on in none. */
size_t flow_inherited(const struct flow *f, uint32_t i);
/* The first of its chain, and how many retries are in that. */
uint32_t flow_stands_for(const struct flow *f, uint32_t i);
unsigned flow_chain_length(const struct flow *f, uint32_t i);
/* Whether i is the synthesis or another try of it; and whether it is one of these or came of one, however
 * remotely. The synthesis and its tries stand behind everything that is not the latter. */
bool flow_is_synthesis(const struct flow *f, uint32_t i);
bool flow_is_of_synthesis(const struct flow *f, uint32_t i);
/* How many are the latter. */
size_t flow_count_of_synthesis(const struct flow *f);
/* Makes f->order whole again after growth: predecessors first, and last of all what is of the synthesis. */
int flow_reorder(struct flow *f, struct err *e);

/* ---- Checkpoint side ---- */

/* plan and config as an initial state wants them (before flow_drop_document): plan[i] with agent_id, dep_indices, assignee,
 * artifacts, node_id (nodes[i], 32 hex digits) and the operation as declared. */
struct json *flow_plan(const struct flow *f, const char *const *node_ids);
struct json *flow_config(const struct flow *f);
/* The inverse: a flow from a state's plan and config. ERR_REFUSED names the entry. */
int flow_from_state(const struct json *state, struct flow **out, struct err *e);

/*
 * Whether a state makes a flow that can go on, for a resume and for who verifies alike. Each thing that
 * does not fit is told, with the number of the check in RESUME of flowsup(7) and, of what was added, its
 * name. What lies outside the checkpoint (files, variables, programs, roles) is no part of this.
 */
enum { FLOW_CHECK_LOADED = 1, FLOW_CHECK_PLAN = 2, FLOW_CHECK_ENTRY = 8, FLOW_CHECK_CHAIN = 9 };
typedef void flow_state_problem(void *arg, int check, const char *op, const char *text);
/* All of it: flow_from_state, flow_rebuild and the parts below. *out is the flow with what was added, or NULL
 * when none can be made. -1 only with ERR_NOMEM. */
int flow_judge_state(const struct json *state, flow_state_problem *tell, void *arg, struct flow **out,
    struct err *e);
/* False, and told, when there is nothing planned. */
bool flow_judge_plan(const struct flow *f, flow_state_problem *tell, void *arg);
/* Outcomes in `ops` of what is no operation of f. */
void flow_judge_outcomes(const struct flow *f, const struct json *state, flow_state_problem *tell, void *arg);
/* Entries of `spawned` as they stand, and one that flow_rebuild says cannot be added. */
void flow_judge_added(const struct json *state, flow_state_problem *tell, void *arg);
void flow_judge_misfit(const struct json *entry, const char *why, flow_state_problem *tell, void *arg);
/*
 * How far a run with this state has come, as its row has it: {"done","total","growth"}. How many operations are
 * settled, with those skipped for what it holds; how many there are, with those that were added; and of what kinds
 * these are, with the requests that were rejected before (config.rejected); null where there was nothing of it.
 */
int flow_progress(int run_fd, const struct json *state, struct json **out, struct err *e);
/* A flow of a state as a normalised document, for flow_from_document (before flow_drop_document). A
 * predecessor's `task` is an `instruction` in it. NULL when memory ran out. */
struct json *flow_as_document(const struct flow *f);

/*
 * For how long operations outlive their worker without a resume, by the document's `orphans` (NULL:
 * not given): 0: they are ended, FLOW_ORPHANS_KEPT: for any time.
 */
int64_t flow_orphans_ns(const struct json *orphans);
#define FLOW_ORPHANS_KEPT INT64_MAX
#define FLOW_ORPHANS_S (24 * INT64_C(3600))

#define CONFIG_DEADLINE "deadline_ms" /* in a state's config: when the run's deadline is, since the epoch */
/* there too, of one that resumes another: the session that the chain began with; keys of idempotence are its */
#define CONFIG_ORIGIN "origin_session"
/* there too, where fail_fast is set: operations (an object by id) whose failure a person's resume has kept, so that
 * it keeps nothing from being started any more */
#define CONFIG_KEPT "kept_failures"

/* ---- Planning ---- */

#define FLOW_PLANNER "planner" /* ids of the operations that the keys of these names make */
#define FLOW_SYNTHESIS "synthesis"
enum { FLOW_PLAN_FEEDBACKS = 2 }; /* an answer that is no plan is answered so often */

struct provider_search;
/*
 * Whether a planner's answer (a list of operations, or {"plan": list}) is a plan of f, which is
 * unplanned: *plan is that list, cut to max_ops or FLOW_MAX_PLAN operations, the items of a list
 * that is written in it each being one, with *left_out of them gone. -1 with ERR_DOCUMENT: e->msg
 * says all that is wrong, for who has to answer again. What a model
 * may not ask for (executed text, a directory, variables) is wrong too unless model_commands says
 * otherwise. Borrows f, which must have its document; search as for flow_check_providers.
 */
int flow_plan_accept(const struct flow *f, const struct provider_search *search,
    const struct json *answer, struct json **plan, size_t *left_out, struct err *e);
/* Of an accepted plan, the operations for each element of a list that is empty: {"count": N, "ops": the ids of the
 * first of them}, new; JSON null where there is none. NULL: memory ran out. */
struct json *flow_empty_lists(const struct json *plan);
/* Member of a recorded context, of a planner: see flowsup-checkpoint(5). */
#define FLOW_PLANNER_CONTEXT "planner_feedback"
/* What a state says of the plan in it, whoever was told: operations of the planner's answer that are not in it, as
 * {"left_out": how many, "allowed": how many there may be}, and its empty lists. JSON null: none. NULL: memory ran out. */
struct json *flow_recorded_cut(const struct json *state);
struct json *flow_recorded_empty_lists(const struct json *state);
/* Appends empty lists as a sentence. */
void flow_empty_lists_text(const struct json *empty, struct buf *to);
/* The flow that f becomes by an accepted plan: the planner stays operation 0. A pure function of both,
 * so that it comes out the same from a checkpoint. */
int flow_with_plan(const struct flow *f, const struct json *plan, struct flow **out, struct err *e);
/* Appends what an answer must look like, for the end of the planner's instruction. */
void flow_planner_format(const struct flow *f, struct buf *to);

/* ---- Drawing ---- */

/* In the order of the words that `--graph` and `--format` take; then the text without lines, in words. */
enum flow_graph_format { FLOW_GRAPH_TEXT, FLOW_GRAPH_DOT, FLOW_GRAPH_MERMAID, FLOW_GRAPH_SVG,
	FLOW_GRAPH_PLAIN };
/* label (may be NULL) gives a word to show beside an operation, such as its state. */
typedef const char *flow_graph_label(void *arg, size_t op);
void flow_graph(const struct flow *f, enum flow_graph_format format, flow_graph_label *label,
    void *arg, struct buf *to);
/* The same, and in text for a terminal of so many columns ids take half of it at most (10 columns at least):
 * the rest of a longer one is cut off. 0: none is. */
void flow_graph_within(const struct flow *f, enum flow_graph_format format, int width, flow_graph_label *label,
    void *arg, struct buf *to);

#endif
