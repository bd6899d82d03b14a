#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autostart.h"
#include "cli.h"
#include "client.h"
#include "flowsup/checkpoint.h"
#include "flowsup/config.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "follow.h"
#include "foreground.h"
#include "hold.h"
#include "output.h"
#include "plan.h"
#include "policy.h"
#include "problems.h"
#include "start.h"
#include "target.h"
#include "unique.h"
#include "withheld.h"

extern char **environ;

enum { RECORDS_MOST = 1000000000 };
#define BYTES_MOST (INT64_C(1) << 40)

static const char *const examples[] = {
    "flowsup start nightly.yaml                 # a document; prints the run's id",
    "flowsup start -- make -j4 test             # one command",
    "ls *.wav | flowsup start --each 'flac \"$1\"' -j 4",
    NULL};

const struct cli_option start_options[] = {
    {.name = "each", .kind = CLI_STRING, .value = "CMD",
	.help = "CMD for each line of standard input, as $1", .complete = "file"},
    {.name = "null", .letter = '0', .kind = CLI_FLAG, .help = "items of --each end in NUL",
	.rare = true},
    {.name = "chain", .kind = CLI_FLAG, .help = "the operands are commands, in order"},
    {.name = "planner", .kind = CLI_STRING, .value = "ROLE",
	.help = "ROLE plans how to do the operand, a prompt"},
    {.name = "wait", .letter = 'w', .kind = CLI_FLAG, .help = "follow it; exit by its outcome"},
    {.name = "jobs", .letter = 'j', .kind = CLI_INT, .value = "N", .help = "operations at once",
	.least = 1, .most = FLOW_MAX_AT_ONCE},
    {.name = "timeout", .kind = CLI_DURATION, .value = "TIME",
	.help = "start nothing more after TIME", .least = 1},
    {.name = "max-ops", .kind = CLI_INT, .value = "N", .help = "at most N operations in all",
	.least = 1, .most = FLOW_MAX_OPERATIONS, .rare = true},
    {.name = "reactive", .kind = CLI_CHOICE, .value = "off|all",
	.help = "operations may ask for further ones (all)", .optional_value = true, .rare = true},
    {.name = "fail-fast", .kind = CLI_FLAG, .help = "start nothing more after a failure"},
    {.name = "name", .kind = CLI_STRING, .value = "NAME", .help = "what list shows"},
    {.name = "label", .letter = 'l', .kind = CLI_PAIR, .value = "KEY=VALUE",
	.help = "to find it again; may be repeated"},
    {.name = "arg", .letter = 'a', .kind = CLI_PAIR, .value = "NAME=VALUE",
	.help = "an argument of the flow; may be repeated", .complete = "argument"},
    {.name = "queue", .kind = CLI_STRING, .value = "NAME",
	.help = "wait for a slot of this queue", .complete = "queue"},
    {.name = "unique", .kind = CLI_STRING, .value = "KEY",
	.help = "only one run with KEY goes on at a time"},
    {.name = "if-running", .kind = CLI_CHOICE, .value = UNIQUE_WORDS,
	.help = "with --unique: while another does (skip)", .rare = true},
    {.name = "notify", .kind = CLI_STRING, .value = "CMD",
	.help = "told of problems as JSON; a program, or [argv]", .complete = "file"},
    {.name = "restart", .kind = CLI_INT, .value = "N",
	.help = "after a crash go on by itself, N times at most", .least = 0,
	.most = POLICY_RESTARTS_MOST},
    {.name = "durability", .kind = CLI_CHOICE, .value = "full|relaxed",
	.help = "relaxed: outcomes are saved a little later", .rare = true},
    {.name = "storage-timeout", .kind = CLI_DURATION, .value = "TIME",
	.help = "end when saving fails for so long", .least = 1, .rare = true},
    {.name = "compact-records", .kind = CLI_INT, .value = "N",
	.help = "compact the journal after N records", .least = 1, .most = RECORDS_MOST,
	.rare = true},
    {.name = "compact-bytes", .kind = CLI_SIZE, .value = "SIZE",
	.help = "compact the journal above SIZE", .least = 1, .most = BYTES_MOST, .rare = true},
    {.name = "checkpoint-format", .kind = CLI_INT, .value = "N",
	.help = "3 (default), or 2 for older readers", .least = 2, .most = 3, .rare = true},
    {.name = "foreground", .kind = CLI_FLAG,
	.help = "be its supervisor, and end with it", .rare = true},
    {.name = "events", .kind = CLI_STRING, .value = "FD|FILE",
	.help = "with --wait: each event, a line", .complete = "file", .rare = true},
    {.name = "dry-run", .letter = 'n', .kind = CLI_FLAG,
	.help = "check and show the plan; no side effect"},
    CLI_END};

struct made {
	char run[RUN_ID_TEXT], session[UUID_TEXT], invocation[INVOCATION_ID_TEXT];
	char blocker[RUN_ID_TEXT]; /* goes on with the same key, "": none */
	char *cwd;
	char *document; /* absolute, or NULL */
	const char *kind;
	const struct start_source *from;
	struct json *withheld; /* names */
	int lock_fd;	       /* of a run in the foreground, from before it has a row; or -1 */
	int making;	       /* until it has its row; or -1 */
	char place[PROC_PLACE_TEXT];
};

/* ---- What goes into the launch record ---- */

static struct json *
launch_options(const struct cli *c, const struct json *recorded, struct err *e)
{
	struct json *o = recorded != NULL ? json_ref(recorded) : json_object();
	struct config config;

	if (config_read(NULL, &config, e) != 0) {
		json_unref(o);
		return NULL;
	}
	if (cli_flag(c, "durability") || (config.durability == 1 && recorded == NULL))
		o = json_set(o, "durability", json_cstr(cli_text(c, "durability", "relaxed")));
	if (config.inline_limit != CONFIG_INLINE_LIMIT && recorded == NULL)
		o = json_set(o, "inline_limit", json_int(config.inline_limit));
	config_clear(&config);
	if (cli_flag(c, "storage-timeout"))
		o = json_set(o, "storage_timeout_ns", json_int(cli_int(c, "storage-timeout", 0)));
	if (cli_flag(c, "compact-records"))
		o = json_set(o, "compact_records",
		    json_int(cli_int(c, "compact-records", (int64_t)CKPT_COMPACT_RECORDS)));
	if (cli_flag(c, "checkpoint-format"))
		o = json_set(o, "checkpoint_format", json_int(cli_int(c, "checkpoint-format", 3)));
	if (cli_flag(c, "compact-bytes"))
		o = json_set(o, "compact_bytes",
		    json_int(cli_int(c, "compact-bytes", (int64_t)CKPT_COMPACT_BYTES)));
	if (o == NULL)
		err_nomem(e);
	return o;
}

/* Names of this program's own belong to one run and must not reach another: a flow may start flows. */
static char **
submitted_environment(void)
{
	static const char ours[] = "FLOWSUP_", home[] = "FLOWSUP_HOME=";
	size_t n = 0, kept = 0, i;
	char **names;

	while (environ != NULL && environ[n] != NULL)
		n++;
	names = calloc(n + 1, sizeof(*names));
	if (names == NULL)
		return NULL;
	for (i = 0; i < n; i++)
		if (strncmp(environ[i], ours, strlen(ours)) != 0 ||
		    strncmp(environ[i], home, strlen(home)) == 0)
			names[kept++] = environ[i];
	return names;
}

static int
current_directory(char **out, struct err *e)
{
	char *path = getcwd(NULL, 0);

	/* A directory that was removed, or lies outside this root, has no name to come back to. */
	if (path != NULL && path[0] == '/') {
		*out = path;
		return 0;
	}
	err_sys(e, ERR_ENVIRONMENT, path == NULL ? errno : ENOENT,
	    "the current directory cannot be named");
	free(path);
	return err_hint(e, "cd   # or to another directory that exists");
}

/* NULL without one. A link in it stays: what it leads to may be exchanged. */
static int
absolute_document(struct made *m, struct err *e)
{
	const char *path = m->from->document;

	if (path == NULL)
		return 0;
	if (path[0] == '/')
		m->document = strdup(path);
	else if (asprintf(&m->document, "%s/%s", m->cwd, path) < 0)
		m->document = NULL;
	return m->document != NULL ? 0 : err_nomem(e);
}

static int
make_ids(struct made *m, struct err *e)
{
	if (run_id_make(m->run, e) != 0 || uuid_make(m->session, e) != 0)
		return -1;
	return invocation_id_make(m->invocation, e);
}

static int
create_directory(const struct cli *c, const struct home *h, const struct flow *f,
    struct made *m, struct err *e)
{
	struct launch l = {
	    .run_id = m->run,
	    .session_id = m->session,
	    .invocation_id = m->invocation,
	    .kind = m->kind,
	    .name = f->name,
	    .argv = c->argv,
	    .cwd = m->cwd,
	    .document = m->document,
	    .document_digest = f->digest != NULL ? f->digest : m->from->digest,
	    .umask = c->umask,
	    .flow = f->document,
	};
	struct json *launched = launch_options(c, m->from->options, e);
	char **names = submitted_environment();
	int r;

	l.options = launched;
	l.environment = names;
	l.withheld = m->withheld;
	if (launched == NULL)
		r = -1;
	else
		r = names == NULL ? err_nomem(e) : rundir_create(h, &l, &m->making, e);
	json_unref(launched);
	free(names);
	return r;
}

static int
insert_row(const struct cli *c, struct store *s, const struct flow *f, struct made *m,
    struct err *e)
{
	struct session_new n = {
	    .run_id = m->run,
	    .session_id = m->session,
	    .invocation_id = m->invocation,
	    .kind = m->kind,
	    .play = f->playbook,
	    .arguments = f->arguments,
	    .total = (int64_t)f->nops,
	};
	struct json *labels = NULL, *shown, *metadata = NULL;
	struct policy policy = {0};
	int r;

	if (policy_of(f, m->withheld, cli_flag(c, "foreground"), &policy, e) != 0)
		return -1;
	if (m->from->rerun_of != NULL)
		metadata = json_set(json_object(), "rerun_of", json_cstr(m->from->rerun_of));
	if (cli_pairs(c, "label", &labels, e) != 0) {
		policy_clear(&policy);
		json_unref(metadata);
		return -1;
	}
	n.metadata = metadata;
	/* The database holds text; the document keeps the name's very bytes. */
	shown = json_string_lossy(slice_of(f->name), NULL);
	n.name = json_cstr_of(shown);
	n.labels = labels;
	n.queue = cli_flag(c, "foreground") ? "" : cli_text(c, "queue", NULL);
	n.place = m->place[0] != '\0' ? m->place : NULL;
	n.unique_key = cli_text(c, "unique", NULL);
	n.behind = unique_mode(c) == UNIQUE_QUEUE || unique_mode(c) == UNIQUE_REPLACE;
	n.replace = unique_mode(c) == UNIQUE_REPLACE;
	n.blocker = m->blocker;
	n.policy = policy.object;
	n.notify = policy.notify;
	n.restarts_left = policy.restarts;
	r = shown == NULL || (m->from->rerun_of != NULL && metadata == NULL)
	    ? err_nomem(e) : session_insert(s, &n, e);
	json_unref(shown);
	json_unref(metadata);
	json_unref(labels);
	policy_clear(&policy);
	return r;
}

/* Nobody else takes it for a run that waits, or for one that is dead. */
static int
take_run(const struct home *h, struct made *m, struct err *e)
{
	struct proc_place here;
	int run_fd = rundir_open(h, m->run, e);

	if (run_fd < 0)
		return -1;
	m->lock_fd = run_lock_take(run_fd, 0, e);
	fd_close(&run_fd);
	if (m->lock_fd < 0 || proc_place_here(&here, e) != 0)
		return -1;
	proc_place_text(&here, m->place);
	return 0;
}

/* Directory first, row second: a row always has its directory. Held: an interrupt leaves nothing, or a
 * whole run that the caller is told of. */
static int
create_run(const struct cli *c, const struct home *h, struct store *s, const struct flow *f,
    struct made *m, struct err *e)
{
	struct err ignored = {0};
	int r = make_ids(m, e);

	if (r == 0)
		r = create_directory(c, h, f, m, e);
	if (r == 0 && cli_flag(c, "foreground"))
		r = take_run(h, m, e);
	if (r == 0 && (hold_check(e) != 0 || insert_row(c, s, f, m, e) != 0)) {
		(void)rundir_remove(h, m->run, &ignored);
		fd_close(&m->making);
		r = -1;
	}
	if (r == 0)
		rundir_born(h, m->run, &m->making);
	return r;
}

/* ---- After it exists ---- */

static int
follow_new(const struct cli *c, const struct home *h, struct store *s, const char *run_id,
    int events_fd, struct err *e)
{
	struct output display;
	struct follow f = {
	    .home = h,
	    .store = s,
	    .cli = c,
	    .home_option = c->home,
	    .from_start = true,
	    .out = &display,
	    .events_fd = events_fd,
	    .utc = c->utc,
	};
	int r;

	/* The id alone is on standard output; what is drawn is for the person in front of it. */
	out_init(&display, STDERR_FILENO);
	f.show = follow_how(&display, false);
	r = follow_run(&f, run_id, e);
	(void)out_end(&display, &(struct err){0});
	return r;
}

/* With the values that no file holds. */
static int
hand_over(const struct home *h, const struct made *m, struct err *e)
{
	const char *run_id = m->run;
	int values = withheld_gather(m->withheld, environ, NULL, e), rc = -1;

	if (values >= 0 || json_length(m->withheld) == 0)
		rc = client_supply(h, run_id, values, e);
	fd_close(&values);
	if (rc == 0)
		return 0;
	/* The run is durable: whichever supervisor comes next finds it. */
	cli_note("run %s is queued, but no supervisor took it: %s", run_id, e->msg);
	cli_hint("%s", err_has_hint(e) && !e->advice ? err_hint_text(e) : "flowsup supervisor --foreground");
	err_clear(e);
	return 1;
}

struct json *
start_made_json(struct json *o, const struct home *h, const char *run_id, const char *session_id,
    const char *invocation_id)
{
	struct buf path = {0};

	buf_printf(&path, "%s/" HOME_RUNS "/%s", h->path, run_id);
	o = json_set(o, "id", json_cstr(run_id));
	o = json_set(o, "session_id", json_cstr(session_id));
	o = json_set(o, "invocation_id", json_cstr(invocation_id));
	o = json_set(o, "directory",
	    path.failed ? NULL : json_string_lossy(buf_view(&path), NULL));
	buf_clear(&path);
	return o;
}

static void
print_made(struct cli *c, const struct home *h, const struct made *m, struct hold *hold)
{
	hold_before_writing(hold, STDOUT_FILENO);
	if (c->json)
		out_json(c->out,
		    json_set(start_made_json(json_object(), h, m->run, m->session, m->invocation),
			"warnings", problems_take_warnings(c)));
	else
		out_printf(c->out, "%s\n", m->run);
	out_flush(c->out);
	if (c->out->failed.code != ERR_NONE)
		cli_note("run %s was started all the same", m->run);
	if (cli_flag(c, "foreground"))
		hold_keep(hold);
	else
		hold_tell(m->run);
	hold_end(hold);
}

static int
find_queue(void *arg, const struct queue_row *q)
{
	const char **name = arg;

	/* A name that is nobody's any more: it is there. */
	if (*name != NULL && q->known && strcmp(q->name, *name) == 0)
		*name = NULL;
	return 0;
}

/* A queue that nobody gave slots does not hold anything back: a typing error would not be seen. */
static int
warn_of_queue(struct cli *c, struct store *s, struct err *e)
{
	const char *name = cli_text(c, "queue", NULL), *left = name;
	char text[QUEUE_NAME_MOST + 64], hint[QUEUE_NAME_MOST + 64];

	if (name == NULL || strcmp(name, QUEUE_DEFAULT) == 0)
		return 0;
	if (queue_each(s, find_queue, &left, e) != 0)
		return -1;
	if (left != NULL) {
		snprintf(text, sizeof(text), "queue '%s' has no limit: its runs start at once", name);
		snprintf(hint, sizeof(hint), "flowsup queue set %s --slots 1", name);
		problems_warn_of(c, text, hint);
	}
	return 0;
}

/* It exists: from here on nothing takes it back. */
static int
go_on(struct cli *c, const struct home *h, struct store *s, const struct made *m, int events_fd,
    struct err *e)
{
	struct err why = {0};
	int r = 0;

	if (m->blocker[0] != '\0' && unique_behind(c, h, s, m->run, m->blocker, &why) != 0) {
		cli_print_error(&why, false);
		r = err_exit_status(why.code);
	}
	if (hand_over(h, m, e) != 0)
		r = err_exit_status(ERR_BUSY);
	return r == 0 && cli_flag(c, "wait") ? follow_new(c, h, s, m->run, events_fd, e) : r;
}

int
start_nothing(int rc, struct err *e)
{
	if (rc == 0 || e->code != ERR_BUSY)
		return rc;
	err_wrap(e, "nothing was started");
	e->code = ERR_CREATE;
	return rc;
}

/* No run was made, and that is no error. */
static struct json *
nothing(const char *what)
{
	return json_set(json_set(json_object(), "run", json_null()), "nothing", json_cstr(what));
}

static int
another_goes_on(struct cli *c, const struct home *h, struct store *s, const char *holder, struct err *e)
{
	int r = unique_refused(c, h, s, holder, e);

	if (r == 0 && c->json)
		out_json(c->out, json_set(nothing("unique"), "holder", json_cstr(holder)));
	return r;
}

static int
start_in(struct cli *c, const struct home *h, const struct flow *f, struct made *m, int events_fd,
    struct err *e)
{
	struct store *s = NULL;
	struct hold hold;
	int r = store_open(h, STORE_COMMAND, true, STORE_BUSY_MS, &s, e);

	if (r == 0)
		r = warn_of_queue(c, s, e);
	hold_begin(&hold);
	if (r == 0)
		r = create_run(c, h, s, f, m, e);
	r = start_nothing(r, e);
	if (r == 0)
		print_made(c, h, m, &hold);
	hold_end(&hold);
	if (r == 0 && !cli_flag(c, "foreground")) {
		r = go_on(c, h, s, m, events_fd, e);
	} else if (r != 0 && e->code == ERR_RUNNING && m->blocker[0] != '\0') {
		fd_close(&m->lock_fd); /* there is no run to stay with */
		r = another_goes_on(c, h, s, m->blocker, e);
	}
	store_close(s);
	return r;
}

static int
stay(struct cli *c, const struct home *h, const struct made *m, struct err *e)
{
	struct foreground f = {.run_id = m->run, .lock_fd = m->lock_fd};

	f.values_fd = withheld_gather(m->withheld, environ, NULL, e);
	if (f.values_fd < 0 && json_length(m->withheld) > 0)
		return -1;
	return foreground_run(c, h, &f, e);
}

static int
start_run(struct cli *c, const struct flow *f, const struct start_source *from, int events_fd,
    struct err *e)
{
	struct home h;
	struct made m = {.lock_fd = -1, .making = -1, .from = from};
	struct err lost = {0};
	int r;

	/* What this environment lacks is found before anything is made. */
	if (out_check(c->out, e) != 0 || start_kind(f, &m.kind, e) != 0 ||
	    current_directory(&m.cwd, e) != 0)
		return -1;
	if (home_open(c->home, true, &h, e) != 0) {
		free(m.cwd);
		return -1;
	}
	/* What is to be started needs nothing of what was lost. */
	if (target_lost_database(&h, &lost)) {
		cli_note("%s; they are no runs any more to this program", lost.msg);
		cli_hint("%s", err_hint_text(&lost));
	}
	m.withheld = withheld_names(environ, e);
	r = m.withheld != NULL && absolute_document(&m, e) == 0 ? start_in(c, &h, f, &m, events_fd, e) : -1;
	if (r == 0 && m.lock_fd >= 0)
		r = stay(c, &h, &m, e);
	fd_close(&m.lock_fd);
	json_unref(m.withheld);
	home_close(&h);
	free(m.document);
	free(m.cwd);
	return r;
}

static int
show_plan(struct cli *c, const struct flow *f, struct err *e)
{
	if (c->json) {
		out_json(c->out, json_set(plan_of(f, json_object()), "warnings", problems_take_warnings(c)));
		return 0;
	}
	out_text(c->out, slice_of(f->name == NULL ? "" : f->name), false);
	out_printf(c->out, ": %zu operation%s\n", f->nops, f->nops == 1 ? "" : "s");
	plan_tell_unplanned(f, c->out);
	return plan_draw(c->out, f, FLOW_GRAPH_TEXT, NULL, NULL, e);
}

/* What needs somebody who outlives the run. */
static int
foreground_usage(const struct cli *c, struct err *e)
{
	static const char *const others[] = {"wait", "queue", "restart"};
	enum unique_mode mode = unique_mode(c);
	size_t i;

	if (!cli_flag(c, "foreground"))
		return 0;
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (cli_flag(c, others[i]))
			return err_set(e, ERR_USAGE, "--foreground and --%s exclude each other",
			    others[i]);
	if (mode == UNIQUE_QUEUE || mode == UNIQUE_REPLACE)
		return err_set(e, ERR_USAGE, "--foreground does not wait for other runs: --if-running "
					     "skip or fail");
	return 0;
}

static int
look_around(struct cli *c, const struct flow *f, struct err *e)
{
	struct flow_diagnostics d = {0};
	int r = start_check_environment(f, &d, e);

	if (r == 0 || !c->json)
		problems_warn(c, NULL, &d);
	if (r != 0)
		problems_refuse(c, NULL, &d);
	flow_diagnostics_clear(&d);
	return r;
}

int
start_launch(struct cli *c, const struct flow *f, const struct start_source *from, struct err *e)
{
	int fd = -1, r;
	bool owned = false;

	if (cli_flag(c, "events") && !cli_flag(c, "wait")) {
		err_set(e, ERR_USAGE, "%s: --events goes with --wait", c->command->name);
		return c->has_tail ? err_hint(e, "flowsup %s --help", c->command->name)
				   : cli_hint_with(c, "--wait", e);
	}
	if (unique_usage(c, e) != 0 || foreground_usage(c, e) != 0 || look_around(c, f, e) != 0)
		return -1;
	if (cli_flag(c, "dry-run"))
		return show_plan(c, f, e);
	if (autostart_check_worker(e) != 0)
		return -1;
	if (cli_flag(c, "events") && follow_open_events(cli_text(c, "events", ""), &fd, &owned, e) != 0)
		return -1;
	r = start_run(c, f, from, fd, e);
	if (owned)
		fd_close(&fd);
	return r;
}

/* As xargs -r: whoever looks for work from cron has not failed where there is none. */
static int
nothing_to_do(struct cli *c)
{
	cli_note("--each: standard input holds no items: there is nothing to start");
	if (c->json)
		out_json(c->out, nothing("no_items"));
	return 0;
}

static int
run(struct cli *c, struct err *e)
{
	struct start_source from = {.document = start_path(c)};
	struct flow *f = NULL;
	int r;

	if (start_flow(c, &f, e) != 0)
		return -1;
	if (f == NULL)
		return nothing_to_do(c);
	if (from.document != NULL && strcmp(from.document, "-") == 0)
		from.document = NULL;
	r = start_launch(c, f, &from, e);
	flow_free(f);
	return r;
}

const struct command cmd_start = {
    .name = "start",
    .group = CLI_GROUP_START,
    .synopsis = "[OPTION]... FILE | - | -- CMD... | --planner ROLE PROMPT",
    .summary = "start a flow and leave it running",
    .examples = examples,
    .options = start_options,
    .max_operands = CLI_ANY,
    .operands = "file...",
    .runs_tail = true,
    .json = true,
    .run = run,
    .misread = start_misread,
};
