/*
 * How a document becomes a flow. One table of keys per kind of object (keys.c) says what may stand
 * where, how it is read, where it lands, and what the manual calls it.
 *
 *	read.c     the entry points: text, file, normalised document
 *	values.c   readers of single values        keys.c  the tables
 *	settings.c roles, environments, folding    plan.c  operations, foreach, names
 *	schema.c   schemas of responses        schema_fits.c  and what they say about one
 *	own.c      planner and synthesis as operations   planner.c  a planner's answer
 *	graph.c    edges, order, cycles            refs.c  templates and conversations against the graph
 *	forewarn.c what cannot come to a good end
 *	grow.c     operations that are added while it runs, live and from a checkpoint
 */
#ifndef FLOWSUP_FLOW_MODEL_H
#define FLOWSUP_FLOW_MODEL_H

#include "arena.h"
#include "flowsup/flow.h"

/* Whose document it is decides what is allowed. */
enum origin {
	ORIGIN_PERSON,	/* as somebody wrote it */
	ORIGIN_STARTED, /* the same, with what a command line says at the top of it */
	ORIGIN_MODEL,	/* a document whose plan is a planner's answer */
	ORIGIN_OWN,    /* normalised: flow.json, one-liners; texts may stand for any bytes */
	ORIGIN_STATE   /* from a checkpoint's plan and config */
};

/* A flow and what it owns; struct flow is its first member. */
struct flow_owned {
	struct flow f;
	enum origin origin;
	struct arena arena;
	struct flow_op *ops;
	const struct json **declared; /* per operation: its object in the document */
	uint32_t *order, *successors;
	uint32_t *by_id; /* operations in order of their ids */
	struct json *document;
	char *digest; /* f.digest */
	const struct flow_how *const *role_hows; /* by role, then without one: what an operation that
						  * says nothing else is given */
	struct growth *growth; /* grow.c; NULL: it does not grow */
	size_t written; /* operations written by hand: those of a literal foreach do not count */
	struct json_where plan_where;
};

/* One entry of `plan`: an operation, or the operations of a literal foreach. */
struct draft {
	const struct json *object;
	const char *id;
	const struct json *needs, *dep_indices;
	const struct flow_env *own_env;
	size_t nown_env;
	uint32_t first, count; /* its operations */
	bool each;	       /* a literal foreach: its operations are id.0, id.1, ... */
	bool own;	       /* of `planner` or `synthesis`: no entry of the plan */
	struct json_where where;
};

/* A name that `needs` and templates may use. */
struct name {
	const char *id;
	uint32_t draft, first, count;
	bool each; /* stands for all operations of a foreach */
	struct json_where where;
};

struct reader {
	struct flow_owned *own;
	enum origin origin;
	struct flow_diagnostics *d;
	bool failed, nomem;
	char context[96]; /* put before messages: `operation "fetch": ` */
	const struct json *entry; /* of the plan, while it is read: name_entry() puts it there */
	struct interned interned;
	/* from the document's top level */
	const struct json *plan, *roles_object, *env_object, *defaults;
	struct flow_how base; /* what `defaults` say, or the built-in values */
	struct flow_role *roles;
	struct draft *drafts;
	size_t ndrafts;
	size_t ops_cap;
	struct name *names;
	size_t nnames;
	struct fold_cache *folds;
	uint64_t edges;
};

enum { FLOW_MAX_EDGES = 4000000, FLOW_MAX_PATTERN = 512 };

/* ---- Problems ---- */

/* Adds a problem at a value (NULL: at the document as a whole). Returns it for hint(), never NULL. */
struct flow_diagnostic *problem(struct reader *r, const struct json *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct flow_diagnostic *problem_at(struct reader *r, struct json_where where, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct flow_diagnostic *warning(struct reader *r, const struct json *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A sentence. */
void hint(struct flow_diagnostic *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What an error has of it. */
void hint_of(struct flow_diagnostic *p, const struct err *e);
/* The declared argument whose name is nearest, or NULL, from the document; -1: out of memory. */
int flow_arg_nearest(const struct flow *f, const char *name, const char **nearest);
void out_of_memory(struct reader *r);
/* In order of position; e is the first that is no warning, as "NAME:LINE:COLUMN: text". */
void diagnostics_sort(struct flow_diagnostics *d);
int diagnostics_error(const struct flow_diagnostics *d, const char *name, enum err_code code,
    struct err *e);

/* ---- Keys ---- */

enum object {
	OBJECT_DOCUMENT,
	OBJECT_DEFAULTS,
	OBJECT_OPERATION,
	OBJECT_ROLE,
	OBJECT_NEED,
	OBJECT_WHEN,
	OBJECT_ENV,
	OBJECT_RETRY,
	OBJECT_SILENCE,
	OBJECT_LIMITS,
	OBJECT_FOREACH,
	OBJECT_AGENT,
	OBJECT_ARG,
	OBJECT_NOTIFY,
	OBJECT_RESTART,
	OBJECT_ORPHANS,
	OBJECT_CONFIG,
	OBJECT_KEEP,
	OBJECTS
};

enum {
	KEY_REQUIRED = 1,
	KEY_STATE = 2,	     /* only in a checkpoint's plan */
	KEY_OWN = 4,	     /* only in documents of our own making and in a checkpoint's plan */
	KEY_INSTRUCTION = 8 /* only for operations with `instruction` */
};

struct key;
/* Reads v to `to` (the struct's address plus the key's offset), or adds a problem. */
typedef void key_read(struct reader *r, const struct key *k, const struct json *v, void *to);

struct key {
	const char *name;
	key_read *read;
	size_t offset;
	const char *type; /* for messages and the manual: "a duration such as 90s or 2h30m" */
	unsigned flags;
	int64_t least, most;
	const char *const *words; /* of a choice, NULL-terminated */
};
struct key_table {
	const char *what; /* "an operation" */
	const struct key *keys;
	size_t nkeys;
};
extern const struct key_table key_tables[OBJECTS];

/* Reads every member of v by the table into the struct at `to`. */
void read_object(struct reader *r, enum object kind, const struct json *v, void *to);

/* Where the keys of each kind land. */
struct document_fields {
	struct flow f;
	const struct json *plan, *roles, *env, *defaults;
};
struct op_fields {
	const char *id;
	const struct json *run, *exec, *instruction;
	const struct json *needs, *dep_indices, *env, *artifacts, *foreach, *item;
	const struct json *node_id, *task, *depends_on, *ignored;
	const char *agent_id;
	bool never;
	struct flow_how how;
};
struct need_fields {
	const char *op;
	unsigned on;
	const struct json *when;
};
struct when_fields {
	const char *pointer;
	const struct json *equals, *exists, *matches;
};
struct foreach_fields {
	const char *op, *pointer;
};
struct agent_fields {
	const char *assignee;
	const char *instruction;
};
struct role_fields {
	struct flow_role role;
	const struct json *env;
};
struct env_fields {
	bool required;
};
struct arg_fields {
	unsigned type;
	const struct json *otherwise;
	const struct json *required; /* NULL: unless it has a default */
	const char *help;
};
struct notify_fields {
	const struct json *command;
	unsigned on;
};
struct restart_fields {
	unsigned on, attempts, failed;
};
struct keep_fields {
	int64_t days, runs, failed_days;
};
struct config_fields {
	struct keep_fields keep;
	const struct json *notify;
	unsigned secrets, durability;
	int64_t inline_limit, watchdog_ns;
};
struct orphans_fields {
	int64_t keep_ns;
};

/* ---- Readers of values (values.c); `to` points at what is named ---- */

key_read read_text;	   /* const char *, not empty */
key_read read_any_text;	   /* const char * */
key_read read_id;	   /* const char * */
key_read read_command;	   /* const struct json *: a text, not blank */
key_read read_bool;	   /* bool */
key_read read_unsigned;	   /* unsigned */
key_read read_int64;	   /* int64_t */
key_read read_factor;	   /* double */
key_read read_duration;	   /* int64_t, nanoseconds */
key_read read_cpu;	   /* int64_t, whole seconds */
key_read read_size;	   /* int64_t, bytes */
key_read read_word;	   /* unsigned: index in words */
key_read read_flag_word;   /* bool: index in words */
key_read read_json;	   /* const struct json *, any value */
key_read read_json_object; /* const struct json * */
key_read read_json_array;  /* const struct json * */
key_read read_texts_json;  /* const struct json *: an array of texts */
key_read read_paths;	   /* const char *const *: relative paths, NULL-terminated */
key_read read_pointer;	   /* const char *: RFC 6901 */
key_read read_umask;	   /* int */
key_read read_nice;	   /* struct flow_how */
key_read read_retry, read_limits, read_silence; /* struct flow_how */
key_read read_retry_on;	   /* const struct json * */
key_read read_notify, read_restart, read_orphans, read_reactive, read_agent, read_args;
key_read read_keep;	    /* struct keep_fields */
key_read read_inline_limit; /* int64_t, bytes */
key_read read_schema;	    /* const struct json *: schema.h */
key_read read_command_list; /* const struct json *: an argv */

bool is_id(const char *text);
/* Adds a problem when v is no extended regular expression, or one that could take long (pattern.c). */
void check_pattern(struct reader *r, const char *key, const struct json *v);
/* What a value is, for messages: "a text", "an integer". */
const char *found(const struct json *v);
/* The text of a JSON string as our C string, kept by the arena; NULL with a problem. */
const char *keep_text(struct reader *r, const char *key, const struct json *v);
/* Any bytes as a JSON string that keep_text reads back in documents of our own. */
struct json *bytes_string(struct slice bytes);

/* ---- settings.c ---- */

void read_defaults(struct reader *r);
void read_roles(struct reader *r);
void read_run_env(struct reader *r);
const struct flow_role *find_role(const struct reader *r, const char *name);
/* Adds a problem when `at` names no role. */
void check_role(struct reader *r, const struct json *at);
/* Reads an `env` object to an interned array. */
const struct flow_env *read_env(struct reader *r, const struct json *object, size_t *n);
/* The run's, role's and operation's environment, and the role's and operation's artifacts, into how. */
void fold_settings(struct reader *r, struct flow_how *how, const struct flow_env *own, size_t nown);
void settings_clear(struct reader *r);
/* role_hows, from what `defaults`, the run and each role say. */
void make_role_hows(struct reader *r);
/* How an operation with `how` runs as `role`: the settings of its own role are exchanged. From the
 * flow's own memory; -1 when it runs out. */
int how_as_role(struct flow_owned *own, const struct flow_how *how, const struct flow_role *role,
    struct flow_how *out);

/* grow.c */
void growth_clear(struct flow_owned *own);
size_t growth_find(const struct flow_owned *own, const char *id);

/* ---- own.c ---- */

/* The entry to make, kept by the flow; NULL: none. Of the synthesis when all others are read. */
const struct json *planner_entry(struct reader *r);
const struct json *synthesis_entry(struct reader *r);
/* Whether this id in a plan of our own making is the planner's or the synthesis'. */
bool is_own(const struct reader *r, const char *id);
void find_own(struct flow *f);
/* Problems of an entry that a model wrote. */
void check_model_entry(struct reader *r, const struct json *object, const struct flow_how *how);

/* ---- plan.c, graph.c, refs.c: each leaves when the one before found a problem ---- */

void read_plan(struct reader *r);
/* Makes r->context of r->entry, once there is something to say. */
void name_entry(struct reader *r);
const struct name *find_name(const struct reader *r, const char *id);
/* Adds "no operation is called ..." with the nearest name. */
void dangling(struct reader *r, const struct json *at, const char *key, const char *id);
void read_edges(struct reader *r);
void make_graph(struct reader *r);
/* Kahn's order into own->order, which has room; unmet is scratch of nops. How many it could place. */
size_t order_operations(struct flow_owned *own, uint32_t *unmet);
void check_references(struct reader *r);
/* Adds warnings, of a document without problems. */
void forewarn(struct reader *r);

/* read.c: document is consumed. d must not be NULL. */
int model_read(struct json *document, enum origin origin, const char *name,
    struct flow_diagnostics *d, struct flow **out, struct err *e);

static inline struct flow_owned *
owned(const struct flow *f)
{
	return (struct flow_owned *)(uintptr_t)f;
}

/* Consumes digest, which may be NULL: then it is not known. */
static inline void
set_digest(struct flow_owned *own, char *digest)
{
	own->digest = digest;
	own->f.digest = digest;
}

#endif
