/* flowsup supervisor: the daemon itself, and what people ask of it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autostart.h"
#include "cli.h"
#include "client.h"
#include "daemon.h"
#include "leftover.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/store.h"
#include "output.h"
#include "render.h"
#include "seek.h"
#include "unwatched.h"

/* ---- supervisor ---- */

static const struct cli_option options[] = {
    {.name = "foreground", .kind = CLI_FLAG, .help = "stay here and log to standard error"},
    {.name = "idle-exit", .kind = CLI_DURATION, .value = "TIME",
	.help = "leave after so long without runs (10m; 0: never)"},
    {.name = "ready-fd", .kind = CLI_INT, .value = "N", .help = "write a byte to descriptor N once ready",
	.least = 3, .most = INT32_MAX, .rare = true},
    {.name = "handover-fd", .kind = CLI_INT, .value = "N", .help = "used by `supervisor restart`",
	.least = 3, .most = INT32_MAX, .rare = true},
    CLI_END};

static int
be_supervisor(struct cli *c, struct err *e)
{
	struct daemon_options o = {.home = c->home, .foreground = cli_flag(c, "foreground")};
	int rc;

	/* In the foreground somebody looks after it: it leaves when it is told to. */
	o.idle_exit_ns = cli_int(c, "idle-exit", o.foreground ? 0 : DAEMON_IDLE_EXIT_NS);
	o.ready_fd = (int)cli_int(c, "ready-fd", -1);
	o.handover_fd = (int)cli_int(c, "handover-fd", -1);
	rc = daemon_main(&o, e);
	/* Of several that were started at once all but one leave, and nothing is wrong. */
	return rc != 0 && e->code == ERR_BUSY && !o.foreground ? 0 : rc;
}

static int
start_detached(struct cli *c, struct err *e)
{
	int64_t idle_ns = cli_int(c, "idle-exit", DAEMON_IDLE_EXIT_NS);
	struct home h;
	int rc;

	if (home_open(c->home, true, &h, e) != 0)
		return -1;
	/* One that has just died, or hangs, may still have lock and socket. */
	if (client_is_answered(&h)) {
		cli_note("'%s' has a supervisor already", h.path);
		home_close(&h);
		return 0;
	}
	rc = client_ensure(&h, idle_ns, NULL, e);
	home_close(&h);
	return rc;
}

static int
run_supervisor(struct cli *c, struct err *e)
{
	bool itself = cli_flag(c, "foreground") || cli_flag(c, "ready-fd") || cli_flag(c, "handover-fd");

	return itself ? be_supervisor(c, e) : start_detached(c, e);
}

static const char *const examples[] = {
    "flowsup supervisor                  # start it now, not with the first run",
    "flowsup supervisor --foreground     # below systemd or in a container", NULL};

const struct command cmd_supervisor = {
    .name = "supervisor",
    .group = CLI_GROUP_SYSTEM,
    .synopsis = "[--foreground] [--idle-exit TIME]",
    .summary = "start the supervisor",
    .examples = examples,
    .details = "Commands that need one start it; it leaves after 10 minutes without runs.\n"
	       "In the foreground it stays until SIGTERM. Workers outlive it.",
    .options = options,
    .operands = "",
    .serves = true,
    .run = run_supervisor,
};

/* ---- supervisor status ---- */

static void
print_workers(struct output *out, const struct json *workers)
{
	static const struct column columns[] = {
	    {.title = "RUN"}, {.title = "PID", .right = true, .drop = 2}, {.title = "STATE"},
	    {.title = "DONE", .right = true, .drop = 1}};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	struct json_iter it = json_iterate(workers);
	const struct json *w;
	struct slice name;
	int64_t pid;
	char progress[PROGRESS_TEXT];
	bool stalled;

	while (json_next(&it, &name, &w)) {
		pid = 0;
		(void)json_int64(json_get(w, "pid"), &pid);
		stalled = json_is_true(json_get(w, "stalled"));
		table_printf(t, OUT_PLAIN, "%.*s", (int)name.len, name.data);
		table_printf(t, OUT_PLAIN, "%lld", (long long)pid);
		table_text(t, stalled ? OUT_WARN : OUT_PLAIN,
		    stalled ? "stalled" : json_cstr_of(json_get(w, "state")));
		table_text(t, OUT_PLAIN, render_progress(w, progress));
	}
	table_print(t, out, "");
}

static void
print_left(struct output *out, const struct json *status)
{
	int64_t kept = 0;

	if (json_int64(json_get(status, "kept_operations"), &kept) && kept > 0)
		out_printf(out, ", %lld %s without a worker", (long long)kept, kept == 1 ? "operation" : "operations");
	if (json_is_true(json_get(status, "stopping")))
		out_puts(out, "; it stops every run, then leaves");
	out_puts(out, "\n");
}

/* That none runs is an answer: with JSON an object without a process. */
static int
say_none(const struct cli *c, const char *why)
{
	static const char *const unknown[] = {"pid", "version", "unwritten", "unwritten_why", "stopping", "resuming",
	    "looked_at", "strays", "kept_operations", "kept_runs", "database_lost"};
	struct json *o = NULL;
	size_t i;

	cli_note("%s", why);
	cli_hint("flowsup supervisor   # commands that need one start it");
	if (!c->json)
		return 0;
	o = json_set(json_set(json_object(), "runs", json_int(0)), "workers", json_object());
	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		o = json_set(o, unknown[i], json_null());
	out_json(c->out, o);
	return 0;
}

/* As home_open(); 1 where there is none yet, which was said. */
static int
open_home(const struct cli *c, struct home *h, struct err *e)
{
	if (home_open(c->home, false, h, e) == 0)
		return 0;
	if (e->code != ERR_NOTFOUND)
		return -1;
	err_wrap(e, "no supervisor runs");
	return 1;
}

static int
ask_status(const struct cli *c, struct json **status, struct err *e)
{
	struct home h;
	int rc = open_home(c, &h, e);

	if (rc != 0)
		return rc;
	rc = client_status(&h, CLIENT_ANSWER_MS, status, e);
	if (rc != 0 && (e->code == ERR_TIMEOUT || e->code == ERR_BUSY))
		(void)client_say_silent(&h, e);
	if (rc != 0 && e->code == ERR_NOTFOUND) {
		err_set(e, ERR_NOTFOUND, "no supervisor runs for '%s'", h.path);
		rc = 1;
	}
	home_close(&h);
	return rc;
}

static int
run_status(struct cli *c, struct err *e)
{
	struct json *status = NULL;
	int64_t pid = 0, runs = 0;
	int rc = ask_status(c, &status, e);

	if (rc != 0)
		return rc < 0 ? -1 : say_none(c, e->msg);
	if (c->json) {
		out_json(c->out, status);
		return 0;
	}
	(void)json_int64(json_get(status, "pid"), &pid);
	(void)json_int64(json_get(status, "runs"), &runs);
	out_printf(c->out, "supervisor %lld, version %s, %lld %s", (long long)pid,
	    json_cstr_of(json_get(status, "version")), (long long)runs, runs == 1 ? "run" : "runs");
	print_left(c->out, status);
	if (runs > 0)
		print_workers(c->out, json_get(status, "workers"));
	json_unref(status);
	return 0;
}

static const char *const status_examples[] = {"flowsup supervisor status --json", NULL};

const struct command cmd_supervisor_status = {
    .name = "supervisor status",
    .group = CLI_GROUP_SYSTEM,
    .synopsis = "",
    .summary = "show the supervisor and its workers",
    .examples = status_examples,
    .operands = "",
    .json = true,
    .run = run_status,
};

/* ---- supervisor stop ---- */

static const struct cli_option stop_options[] = {
    {.name = "all", .kind = CLI_FLAG, .help = "stop every run as well, and wait for their ends"},
    {.name = "now", .kind = CLI_FLAG, .help = "with --all: end running operations too"},
    {.name = "timeout", .letter = 't', .kind = CLI_DURATION, .value = "TIME",
	.help = "with --all: wait no longer; exit 3"},
    CLI_END};

enum { NAMES_MOST = 3, STOP_NOW_S = 120 /* without --timeout: grace, and then some */ };

/* Nothing goes on; what that means for rows is not on the disk. */
static void
say_what_is_unwritten(const struct json *status)
{
	const char *why = json_cstr_of(json_get(status, "unwritten_why"));

	cli_note("every run has ended; waits until that is recorded%s%s",
	    why == NULL || *why == '\0' ? "" : ": ", why == NULL ? "" : why);
}

/* ": A, B" of the elements of an array, or of the members of an object. */
static void
add_names(struct buf *to, const struct json *names)
{
	size_t i, most = json_length(names) < NAMES_MOST ? json_length(names) : NAMES_MOST;
	struct json_iter it = json_iterate(names);
	bool is_list = json_type(names) == JSON_ARRAY;
	const struct json *value;
	struct slice name;

	for (i = 0; i < most && json_next(&it, &name, &value); i++) {
		buf_puts(to, i > 0 ? ", " : ": ");
		buf_slice(to, is_list ? json_text(value) : name);
	}
	if (json_length(names) > NAMES_MOST)
		buf_puts(to, ", ...");
}

static void
add_awaited(struct buf *to, int64_t n, const char *what)
{
	if (n > 0)
		buf_printf(to, "%s%lld %s%s", to->len > 0 ? ", and of " : "", (long long)n, what, n == 1 ? "" : "s");
}

/* Whether a worker stands still: it hears nothing until somebody has it go on. */
static void
say_stopped_workers(const struct json *workers)
{
	struct json_iter it = json_iterate(workers);
	const struct json *w;
	struct proc_stat st;
	struct slice run;
	int64_t pid;

	while (json_next(&it, &run, &w)) {
		if (!json_int64(json_get(w, "pid"), &pid) || pid < 1 || pid > INT32_MAX ||
		    proc_stat_read((pid_t)pid, &st, NULL) != 0 || (st.state != 'T' && st.state != 't'))
			continue;
		cli_note("run %.*s: its worker, process %lld, is stopped", (int)run.len, run.data, (long long)pid);
		cli_hint("kill -CONT %lld   # or end it: flowsup kill %.*s", (long long)pid, (int)run.len, run.data);
	}
}

static void
say_what_is_waited_for(const struct json *status)
{
	const struct json *workers = json_get(status, "workers");
	int64_t kept = 0, resuming = 0, looked_at = 0;
	struct buf text = {0};

	(void)json_int64(json_get(status, "kept_operations"), &kept);
	(void)json_int64(json_get(status, "resuming"), &resuming);
	(void)json_int64(json_get(status, "looked_at"), &looked_at);
	add_awaited(&text, (int64_t)json_length(workers), "run");
	add_names(&text, workers);
	add_awaited(&text, kept, "operation");
	if (kept > 0) {
		buf_puts(&text, " whose worker is dead");
		add_names(&text, json_get(status, "kept_runs"));
	}
	add_awaited(&text, resuming, "automatic resume");
	add_awaited(&text, looked_at, "report on a dead run");
	if (text.len == 0)
		say_what_is_unwritten(status);
	else
		cli_note("waits for the end of %s", buf_text(&text));
	buf_clear(&text);
	say_stopped_workers(workers);
}

/* What goes on all the same: runs that a supervisor serves or will start, and what dead workers left. */
struct going_on {
	const struct home *home;
	struct leftovers *left;
	size_t count;
	char run[RUN_ID_TEXT];
	const char *how;
	bool unknown; /* the database does not know it */
	struct err failed;
};

static bool
has_worker(const struct home *h, const struct session *s)
{
	int fd = rundir_open(h, s->run_id, NULL);
	bool held = false;

	if (fd >= 0 && run_lock_held(fd, &held, NULL) != 0)
		held = false;
	fd_close(&fd);
	return held;
}

/* Nobody sees to what is left of a crashed run but a resume, which would be looked at itself. */
static bool
has_left(struct going_on *g, const struct session *s)
{
	const struct json *running = json_get(s->metadata, "running_operations");
	struct attempts a = {0};
	int run_fd, n;

	if (s->resumed_as_run[0] != '\0')
		return false;
	run_fd = rundir_open(g->home, s->run_id, NULL);
	if (run_fd < 0 || attempts_read(run_fd, &a, NULL) != 0)
		attempts_clear(&a);
	/* Where none of its operations runs, strays may: they are known without a look at every process. */
	if (running != NULL && json_length(running) == 0)
		n = (int)leftover_strays(&a);
	else
		n = leftovers_count(g->left, s->run_id, run_fd, &a, &g->failed);
	attempts_clear(&a);
	fd_close(&run_fd);
	return n > 0;
}

/* A command looks after one in its foreground: no supervisor stops it, and the command is not told of this. */
static const char FOREGROUND[] = "goes on in the foreground of its command";

/* How it goes on, or NULL. */
static const char *
goes_on(struct going_on *g, const struct session *s)
{
	bool marked = seek_has_mark(g->home, s->run_id, SEEK_STOPPED) || seek_has_mark(g->home, s->run_id, SEEK_KILLED);

	if (session_is_copy(s, g->home))
		return NULL;
	if (s->status == STATUS_CRASHED) {
		if (session_is_restarting(s) && !marked)
			return "waits for its automatic resume";
		return has_left(g, s) ? "has crashed, and operations of it still run" : NULL;
	}
	if (json_is_true(json_get(s->policy, "foreground")))
		return has_worker(g->home, s) ? FOREGROUND : NULL;
	if (s->status == STATUS_QUEUED)
		return marked ? NULL : "is queued";
	if (has_worker(g->home, s))
		return "goes on";
	/* A crash that is not recorded. */
	return has_left(g, s) ? "has no worker, and operations of it still run" : NULL;
}

static void
note_going_on(struct going_on *g, const char *run_id, const char *how, bool unknown)
{
	if (g->count++ > 0 && (g->how != FOREGROUND || how == FOREGROUND))
		return;
	strlcpy(g->run, run_id, sizeof(g->run));
	g->how = how;
	g->unknown = unknown;
}

static int
see_going_on(void *arg, const struct session *s)
{
	struct going_on *g = arg;
	const char *how = goes_on(g, s);

	if (how != NULL)
		note_going_on(g, s->run_id, how, false);
	return g->failed.code != ERR_NONE;
}

/* One that the database does not know, as after it was removed: no supervisor stops what it never heard of. */
static int
look_at_unknown(struct going_on *g, struct store *store, const char *run_id, struct err *e)
{
	struct err why = {0};
	struct attempts a = {0};
	struct session s;
	bool held = false;
	int run_fd = rundir_open(g->home, run_id, NULL), left = 0;

	if (run_fd < 0)
		return 0;
	if (run_lock_held(run_fd, &held, NULL) != 0)
		held = false;
	if (!held && attempts_read(run_fd, &a, NULL) == 0 && a.nopen + a.nstrays > 0)
		left = leftovers_count(g->left, run_id, run_fd, &a, e);
	attempts_clear(&a);
	fd_close(&run_fd);
	if (left < 0)
		return -1;
	if (!held && left == 0)
		return 0;
	if (store != NULL && session_read(store, run_id, &s, &why) == 0)
		session_clear(&s);
	else if (store == NULL || why.code == ERR_NOTFOUND)
		note_going_on(g, run_id, held ? "is not in the database, and its worker lives"
					     : "is not in the database, and operations of it still run", true);
	else {
		*e = why;
		return -1;
	}
	return 0;
}

static int
look_at_directories(struct going_on *g, struct store *store, struct err *e)
{
	int fd = openat(g->home->fd, HOME_RUNS, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (dir == NULL) {
		fd_close(&fd);
		return errno == ENOENT ? 0 : err_sys(e, ERR_IO, errno, "'%s/" HOME_RUNS "'", g->home->path);
	}
	while (rc == 0 && (entry = readdir(dir)) != NULL)
		if (run_id_is_valid(entry->d_name))
			rc = look_at_unknown(g, store, entry->d_name, e);
	closedir(dir);
	return rc;
}

/* The supervisor that was to wait has left: by itself after the last end, or because somebody ended it. */
static int
check_all_ended(const struct home *h, struct err *e)
{
	static const struct session_filter all = {.nstatuses = 5,
	    .statuses = {STATUS_STARTING, STATUS_RUNNING, STATUS_PAUSED, STATUS_QUEUED, STATUS_CRASHED}};
	struct going_on g = {.home = h, .left = leftovers_new(h)};
	struct store *s = NULL;
	int rc = g.left == NULL ? err_nomem(e) : store_open(h, STORE_COMMAND, false, STORE_BUSY_MS, &s, e);

	/* Where the database was removed, and no other is there yet, directories tell of runs all the same. */
	if (rc != 0 && g.left != NULL && e->code == ERR_NOTFOUND) {
		err_clear(e);
		rc = 0;
	} else if (rc == 0) {
		rc = session_list(s, &all, see_going_on, &g, e);
	}
	if (rc == 0 && g.failed.code == ERR_NONE)
		rc = look_at_directories(&g, s, e);
	store_close(s);
	leftovers_free(g.left);
	if (rc == 0 && g.failed.code != ERR_NONE) {
		*e = g.failed;
		rc = -1;
	}
	if (rc != 0 || g.count == 0)
		return rc;
	err_set(e, ERR_RUNNING, "the supervisor has left, and %zu run%s not at %s end: run %s %s", g.count,
	    g.count == 1 ? " is" : "s are", g.count == 1 ? "its" : "their", g.run, g.how);
	if (g.unknown)
		return err_hint(e, "flowsup doctor");
	return g.how == FOREGROUND ? err_hint(e, "flowsup stop %s", g.run) : err_hint(e, "flowsup supervisor stop --all");
}

/* It has left with something to say; what goes on is worse than that, and is said instead of it. */
static int
name_going_on(const struct home *h, struct err *e)
{
	struct err worse = {0};

	if (e->code != ERR_RUNNING && e->code != ERR_TIMEOUT && check_all_ended(h, &worse) != 0 &&
	    worse.code == ERR_RUNNING) {
		cli_note("%s", e->msg);
		*e = worse;
	}
	return -1;
}

/* The first of these runs, by name or as an array, in whose operation this is called. */
static bool
called_in(const struct json *runs, char run_id[RUN_ID_TEXT])
{
	struct json_iter it = json_iterate(runs);
	bool is_list = json_type(runs) == JSON_ARRAY;
	char mark[sizeof("FLOWSUP_RUN_ID=") + RUN_ID_TEXT];
	const struct json *value;
	struct slice name;

	while (json_next(&it, &name, &value)) {
		name = is_list ? json_text(value) : name;
		snprintf(mark, sizeof(mark), "FLOWSUP_RUN_ID=%.*s", (int)name.len, name.data);
		if (!proc_descends_from_marked(getpid(), mark))
			continue;
		snprintf(run_id, RUN_ID_TEXT, "%.*s", (int)name.len, name.data);
		return true;
	}
	return false;
}

/* It would wait for the operation that waits for it. */
static int
check_called_outside(const struct home *h, struct err *e)
{
	char run_id[RUN_ID_TEXT];
	struct json *status = NULL;
	bool inside;

	if (!proc_descends_from_marked(getpid(), "FLOWSUP_RUN_ID="))
		return 0;
	if (client_status(h, CLIENT_ANSWER_MS, &status, e) != 0)
		return -1;
	inside = called_in(json_get(status, "workers"), run_id) || called_in(json_get(status, "kept_runs"), run_id);
	json_unref(status);
	if (!inside)
		return 0;
	err_set(e, ERR_REFUSED, "it would wait for its own end: it is called in an operation of run %s", run_id);
	return err_hint(e, "flowsup supervisor stop --all --timeout 0   # stops this run too, and does not wait");
}

/* Of one that is about to leave, which knows; asking the database would leave its log behind. */
static void
ask_unwatched(const struct home *h, struct unwatched *u)
{
	struct json *status = NULL;
	const struct json *runs;
	const char *first;
	int64_t n = 0;

	if (client_status(h, CLIENT_ANSWER_MS, &status, &(struct err){0}) != 0)
		return;
	runs = json_get(status, "kept_runs");
	first = json_cstr_of(json_at(runs, 0));
	if (first != NULL && json_int64(json_get(status, "kept_operations"), &n)) {
		u->ops = (unsigned)n;
		u->runs = (unsigned)json_length(runs);
		snprintf(u->run, sizeof(u->run), "%s", first);
	}
	json_unref(status);
}

/* Where none runs. What cannot be looked at is not said. */
static void
look_for_unwatched(const struct home *h, struct unwatched *u)
{
	struct store *s = NULL;
	struct err e = {0};

	if (store_open(h, STORE_DRY, false, STORE_BUSY_MS, &s, &e) == 0)
		(void)unwatched_count(h, s, u, &e);
	store_close(s);
}

/* What goes on without it has its limits from it alone. */
static void
say_unwatched(const struct unwatched *u)
{
	struct buf text = {0};

	if (u->ops > 0) {
		unwatched_text(u, &text);
		cli_note("%s until a supervisor runs", buf_text(&text));
		cli_hint("flowsup supervisor   # or: flowsup stop %s", u->run);
	}
	buf_clear(&text);
}

static int
run_stop(struct cli *c, struct err *e)
{
	struct client_stop how = {.all = cli_flag(c, "all"), .now = cli_flag(c, "now"),
	    .limit_ns = cli_int(c, "timeout", cli_flag(c, "now") ? STOP_NOW_S * NS_PER_S : -1),
	    .waits = say_what_is_waited_for};
	struct unwatched u = {0};
	bool was_up = false;
	struct home h;
	int rc;

	if ((how.now || cli_flag(c, "timeout")) && !how.all) {
		err_set(e, ERR_USAGE, "--%s belongs to --all: without it runs go on",
		    how.now ? "now" : "timeout");
		return err_hint(e, "flowsup supervisor stop --all --now");
	}
	rc = open_home(c, &h, e);
	if (rc > 0)
		cli_note("%s", e->msg);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	/* Runs may go on without a supervisor: one is needed to stop them. */
	rc = how.all ? client_ensure(&h, CLIENT_IDLE_DEFAULT, NULL, e) : 0;
	if (rc == 0 && how.all && !how.now && how.limit_ns < 0 && check_called_outside(&h, e) != 0) {
		home_close(&h);
		return -1;
	}
	if (rc == 0 && !how.all)
		ask_unwatched(&h, &u);
	if (rc == 0)
		rc = client_stop(&h, &how, &was_up, e);
	if (how.all)
		rc = rc == 0 ? check_all_ended(&h, e) : name_going_on(&h, e);
	if (rc != 0 && e->code == ERR_RUNNING && !how.now && !err_has_hint(e))
		err_hint(e, "flowsup supervisor stop --all --now");
	if (rc == 0 && !was_up)
		cli_note("no supervisor runs for '%s'", h.path);
	if (rc == 0 && !how.all && !was_up)
		look_for_unwatched(&h, &u);
	if (rc == 0 && !how.all)
		say_unwatched(&u);
	home_close(&h);
	return rc;
}

static const char *const stop_examples[] = {
    "flowsup supervisor stop         # runs go on; the next command starts it again",
    "flowsup supervisor stop --all   # before the machine is switched off", NULL};

const struct command cmd_supervisor_stop = {
    .name = "supervisor stop",
    .group = CLI_GROUP_SYSTEM,
    .synopsis = "[--all [--now] [--timeout TIME]]",
    .summary = "have the supervisor leave",
    .examples = stop_examples,
    .options = stop_options,
    .operands = "",
    .run = run_stop,
};

/* ---- supervisor restart ---- */

static int
run_restart(struct cli *c, struct err *e)
{
	struct home h;
	int rc;

	if (home_open(c->home, true, &h, e) != 0)
		return -1;
	rc = client_restart(&h, e);
	if (rc != 0 && e->code == ERR_NOTFOUND)
		rc = client_ensure(&h, CLIENT_IDLE_DEFAULT, NULL, e);
	home_close(&h);
	return rc;
}

static const char *const restart_examples[] = {
    "flowsup supervisor restart          # after an upgrade; runs do not notice", NULL};

const struct command cmd_supervisor_restart = {
    .name = "supervisor restart",
    .group = CLI_GROUP_SYSTEM,
    .synopsis = "",
    .summary = "have the supervisor execute itself anew",
    .examples = restart_examples,
    .operands = "",
    .run = run_restart,
};
