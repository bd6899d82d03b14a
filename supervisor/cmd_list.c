#include <string.h>

#include "cli.h"
#include "flowsup/checkpoint.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "output.h"
#include "render.h"
#include "seek.h"
#include "target.h"
#include "view.h"

enum { EXIT_RECOVERED = 6, LIMIT_MOST = 100000000,
	LINES_KEPT = 5 /* the command, titles, a note with its hint, the prompt */ };

static const char *const examples[] = {
    "flowsup list                         # newest first",
    "flowsup list --status running -n 5   # the latest five that run",
    "flowsup list --resumable             # what can go on",
    "flowsup list --since 1d --json       # for programs, one object a line",
    NULL};

static const struct cli_option options[] = {
    {.name = "status", .letter = 's', .kind = CLI_LIST, .value = "WORD",
	.help = "only runs with this status; may be repeated", .complete = "status"},
    {.name = "label", .letter = 'l', .kind = CLI_PAIR, .value = "KEY=VALUE",
	.help = "only runs with this label; may be repeated"},
    {.name = "since", .kind = CLI_DURATION, .value = "TIME",
	.help = "only runs made in the last TIME", .least = 1},
    {.name = "resumable", .letter = 'r', .kind = CLI_FLAG, .help = "only runs that can go on"},
    {.name = "number", .letter = 'n', .kind = CLI_INT, .value = "N", .help = "at most N runs; 0: all",
	.least = 0, .most = LIMIT_MOST},
    {.name = "check", .kind = CLI_FLAG, .help = "load each checkpoint; exit 6 if one lost its tail"},
    CLI_END};

/* ---- Filter ---- */

static int
advise_words(const char *const *words, struct err *e)
{
	struct buf all = {0};
	size_t i;

	for (i = 0; i < STATUS_COUNT; i++)
		buf_printf(&all, "%s%s", i > 0 ? ", " : "one of ", words[i]);
	err_advice(e, "%s", buf_text(&all));
	buf_clear(&all);
	return -1;
}

static int
filter_statuses(const struct cli *c, struct session_filter *f, struct err *e)
{
	const char *words[STATUS_COUNT], *text, *near;
	enum run_status status;
	size_t i;

	for (i = 0; i < STATUS_COUNT; i++)
		words[i] = status_word((enum run_status)i);
	for (i = 0; i < cli_count(c, "status"); i++) {
		text = cli_nth(c, "status", i);
		status = status_from_word(text);
		if (status == STATUS_COUNT) {
			near = text_nearest(text, words, STATUS_COUNT);
			err_set(e, ERR_USAGE, "--status: no status is called \"%s\"", text);
			return near == NULL ? advise_words(words, e)
					    : cli_hint_instead(c, text, strlen(text), near, e);
		}
		if (f->nstatuses < STATUS_COUNT)
			f->statuses[f->nstatuses++] = status;
	}
	return 0;
}

/* ---- A table ---- */

static void
add_row(struct table *t, const struct json *run)
{
	char text[DURATION_TEXT], progress[PROGRESS_TEXT];
	struct buf b = {0};

	table_text(t, OUT_PLAIN, render_member(run, "id"));
	table_text(t, OUT_PLAIN, render_member(run, "name"));
	render_status(run, &b);
	table_text(t, render_status_style(render_member(run, "status")), buf_text(&b));
	table_text(t, OUT_PLAIN, render_progress(run, progress));
	table_text(t, OUT_PLAIN, render_seconds(render_age(run, "created_at"), text));
	table_text(t, OUT_PLAIN, render_seconds(render_number(run, "duration", -1), text));
	if (json_get(run, "checkpoint") != NULL)
		table_text(t, OUT_PLAIN, render_member(run, "checkpoint"));
	else
		table_text(t, OUT_PLAIN, "");
	buf_reset(&b);
	render_next(run, &b);
	table_text(t, OUT_DIM, buf_text(&b));
	buf_clear(&b);
}

/* The same of one of which its row says all: of ten thousand each value counts. */
static void
add_plain_row(struct table *t, const struct session *s)
{
	char text[DURATION_TEXT], progress[PROGRESS_TEXT];
	const char *status = status_word(s->status);
	struct buf b = {0};

	table_text(t, OUT_PLAIN, s->run_id);
	table_text(t, OUT_PLAIN, s->name);
	table_text(t, render_status_style(status), status);
	table_text(t, OUT_PLAIN, render_counts(s->done, s->total, progress));
	table_text(t, OUT_PLAIN, render_seconds(render_since(s->created_at), text));
	table_text(t, OUT_PLAIN, render_seconds(view_duration(s), text));
	table_text(t, OUT_PLAIN, "");
	if (s->resumed_as_run[0] != '\0')
		render_resumed_as(s->resumed_as_run, &b);
	table_text(t, OUT_DIM, buf_text(&b));
	buf_clear(&b);
}

static struct table *
new_table(void)
{
	static const struct column columns[] = {
	    {.title = "RUN"},
	    /* Of five columns of a name nobody learns as much as of what is done. */
	    {.title = "NAME", .least = 5, .most = COLUMNS_OF_NAME, .drop = 3},
	    {.title = "STATUS", .least = 9, .drop = 1},
	    {.title = "DONE", .right = true, .drop = 2},
	    {.title = "AGE", .right = true, .drop = 4},
	    {.title = "TOOK", .right = true, .drop = 5},
	    {.title = "CHECKPOINT"},
	    {.title = "NEXT", .below = "next"},
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

/* ---- The walk ---- */

struct listing {
	const struct view *view;
	struct json *runs;   /* array; or */
	struct table *table; /* where nothing but its rows is wanted */
	struct json *lacking; /* the first that was found without its worker, or NULL */
	bool resumable_only;
	size_t count;
	int64_t most; /* 0: all */
	bool more;    /* there are further ones */
	struct err err;
};

/* Consumes run. */
static int
keep_run(struct listing *l, struct json *run)
{
	if (run == NULL)
		return -1;
	if (l->resumable_only && !json_is_true(json_get(run, "resumable"))) {
		json_unref(run);
		return 0;
	}
	if (l->lacking == NULL && view_lacks_worker(run))
		l->lacking = json_ref(run);
	l->count++;
	if (l->table != NULL) {
		add_row(l->table, run);
		json_unref(run);
		return 0;
	}
	l->runs = json_append(l->runs, run);
	return l->runs == NULL ? err_nomem(&l->err) : 0;
}

static int
add_run(void *arg, const struct session *s)
{
	struct listing *l = arg;

	if (l->most > 0 && l->count >= (size_t)l->most) {
		l->more = true;
		return 1;
	}
	if (l->table == NULL)
		return keep_run(l, view_run(l->view, s, &l->err));
	if (!session_is_plain(s) || !view_has_directory(l->view, s))
		return keep_run(l, view_run_brief(l->view, s, &l->err));
	if (!l->resumable_only) {
		add_plain_row(l->table, s);
		l->count++;
	}
	return 0;
}

static void
listing_clear(struct listing *l)
{
	json_unref(l->runs);
	json_unref(l->lacking);
	table_free(l->table);
	l->runs = l->lacking = NULL;
	l->table = NULL;
}

/* The rows are read whole before anything is printed: a reader that pauses (`| less`) must not
 * keep a snapshot of the database open. */
static int
walk(struct listing *l, struct store *s, const struct session_filter *f, struct err *e)
{
	listing_clear(l);
	l->count = 0;
	l->more = false;
	if (f->brief)
		l->table = new_table();
	else
		l->runs = json_array();
	if (l->table == NULL && l->runs == NULL)
		return err_nomem(e);
	if (session_list(s, f, add_run, l, e) != 0)
		return -1;
	if (l->err.code == ERR_NONE)
		return 0;
	*e = l->err;
	return -1;
}

/* A run that lacks its worker is waited for, and then all are looked at anew. The second begins for all
 * with the end of the first walk: each has been looked at before. */
static int
walk_settled(struct listing *l, struct store *s, const struct session_filter *f, struct err *e)
{
	int64_t until_ns;

	if (walk(l, s, f, e) != 0)
		return -1;
	until_ns = clock_monotonic_ns() + VIEW_SETTLE_MS * NS_PER_MS;
	while (l->lacking != NULL) {
		if (view_settle(l->view, view_run_brief, until_ns, &l->lacking, e) != 0 || walk(l, s, f, e) != 0)
			return -1;
		if (clock_monotonic_ns() >= until_ns)
			break;
	}
	return 0;
}

/* ---- Output ---- */

/* How many of them were printed: those that fit into so many lines (0: all). Consumes t. */
static size_t
print_table(struct output *out, struct table *t, const struct json *runs, int lines)
{
	struct json_iter it = json_iterate(runs);
	const struct json *run;

	while (json_next(&it, NULL, &run))
		add_row(t, run);
	return table_print_most(t, out, "", lines);
}

static void
print_lines(struct output *out, const struct json *runs)
{
	struct json_iter it = json_iterate(runs);
	const struct json *run;

	while (out_open(out) && json_next(&it, NULL, &run))
		out_json(out, json_ref(run));
}

/* ---- Checkpoints ---- */

static void
tell_report(const struct json *run, const struct ckpt_report *report)
{
	struct buf line = {0};

	if (report->status == CKPT_CLEAN)
		return;
	ckpt_report_line(report, &line);
	cli_note("run %s: %s", render_member(run, "id"), buf_text(&line));
	buf_clear(&line);
}

/* The status of all that is listed is that of the worst: a file that is missing or cannot be read, then a
 * checkpoint that is refused, then one that lost its end. */
static void
worsen(int *status, int found)
{
	const int order[] = {0, EXIT_RECOVERED, err_exit_status(ERR_CHECKPOINT), err_exit_status(ERR_IO)};
	const int n = sizeof(order) / sizeof(order[0]);
	int was = 0, now = 0;

	while (was < n && order[was] != *status)
		was++;
	while (now < n && order[now] != found)
		now++;
	if (now > was)
		*status = found;
}

/* What is as bad as a damaged checkpoint: without these files no resume goes on from it. */
static struct json *
check_files(int fd, bool started, struct json *run, int *status)
{
	struct json *problems = NULL;
	struct json_iter it;
	const struct json *one;

	if (seek_problems(fd, started, &problems, &(struct err){0}) != 0)
		return json_set(run, "problems", NULL);
	it = json_iterate(problems);
	while (json_next(&it, NULL, &one)) {
		cli_note("run %s: %s", render_member(run, "id"), render_member(one, "error"));
		worsen(status, err_exit_status(ERR_IO));
	}
	return json_set(run, "problems", problems);
}

/* A resume would be refused: there is no command that goes on from here. */
static struct json *
not_resumable(struct json *run)
{
	if (!json_is_true(json_get(run, "resumable")))
		return run;
	return json_set(json_set(run, "resumable", json_bool(false)), "resume_command", json_null());
}

struct judged {
	const char *id;
	struct json *problems; /* all of the run's */
	size_t found;
};

static void
note_judged(void *arg, int check, const char *op, const char *text)
{
	struct judged *j = arg;

	(void)check;
	cli_note("run %s: its checkpoint: %s%s%s", j->id, op != NULL ? op : "", op != NULL ? ": " : "", text);
	j->problems = json_append(j->problems, seek_problem(CKPT_BASE, text));
	j->found++;
}

/* What was loaded may still make no run that could go on. */
static struct json *
check_state(struct json *run, const struct json *state, int format, const char **word, int *status)
{
	struct judged j = {.id = render_member(run, "id")};
	struct flow *flow = NULL;

	if (json_get(run, "problems") == NULL)
		return run;
	j.problems = json_ref(json_get(run, "problems"));
	if (seek_judge(state, format, note_judged, &j, &flow, &(struct err){0}) != 0) {
		json_unref(j.problems);
		return json_set(run, "problems", NULL);
	}
	flow_free(flow);
	if (j.found > 0) {
		*word = ckpt_status_name(CKPT_REFUSED);
		worsen(status, err_exit_status(ERR_CHECKPOINT));
		run = not_resumable(run);
	}
	return json_set(run, "problems", j.problems);
}

static struct json *
check_one(const struct home *h, struct json *run, int *status)
{
	struct ckpt_load_options o = {0};
	struct ckpt_report report = {0};
	struct json *state = NULL;
	struct err e = {0};
	int fd = rundir_open(h, render_member(run, "id"), &e);
	bool started, none = false;
	const char *word;

	if (fd < 0) {
		cli_note("%s", e.msg);
		worsen(status, err_exit_status(ERR_IO));
		return json_set(run, "checkpoint", json_cstr("no directory"));
	}
	started = seek_has_started(fd, render_number(run, "started_at", 0));
	run = check_files(fd, started, run, status);
	if (run_lock_held(fd, &o.lock_held, &e) != 0)
		o.lock_held = false;
	if (ckpt_load(fd, &o, &state, &report, &e) == 0) {
		word = ckpt_status_name(report.status);
		if (report.status != CKPT_CLEAN)
			worsen(status, EXIT_RECOVERED);
		run = check_state(run, state, report.format, &word, status);
	} else {
		(void)seek_refuse_lost(fd, started, &report, &e);
		none = e.code == ERR_NOTFOUND;
		word = none ? "none" : ckpt_status_name(CKPT_REFUSED);
		if (!none) {
			worsen(status, err_exit_status(ERR_CHECKPOINT));
			run = not_resumable(run);
		}
	}
	if (!none)
		tell_report(run, &report);
	if (err_has_hint(&e))
		cli_hint("%s", err_hint_text(&e));
	json_unref(state);
	fd_close(&fd);
	run = json_set(run, "checkpoint", json_cstr(word));
	return json_set(run, "checkpoint_recovery", none ? json_null() : ckpt_report_json(&report));
}

static int
check_all(const struct home *h, struct json **runs, int *status, struct err *e)
{
	struct json *checked = json_array();
	struct json_iter it = json_iterate(*runs);
	const struct json *run;

	while (json_next(&it, NULL, &run))
		checked = json_append(checked, check_one(h, json_ref(run), status));
	if (checked == NULL)
		return err_nomem(e);
	json_unref(*runs);
	*runs = checked;
	return 0;
}

static void
say_none(bool filtered)
{
	if (filtered) {
		cli_note("no run fits");
		return;
	}
	cli_note("there are no runs yet");
	cli_hint("flowsup start -- echo hello");
}

/* Who asks for nothing in particular on a terminal gets the newest, which would scroll away else:
 * how many lines there are for them, 0: any number. */
static int
lines_for_runs(const struct cli *c, bool filtered)
{
	int lines = c->out->height - LINES_KEPT;

	if (cli_flag(c, "number") || filtered || c->json || cli_flag(c, "check") || !c->out->terminal)
		return 0;
	return lines > 0 ? lines : 1;
}

static void
say_more(struct cli *c)
{
	out_flush(c->out);
	cli_note("there are older runs");
	cli_hint("flowsup list -n 0");
}

static int
print_list(struct cli *c, struct target *t, struct session_filter *f, struct err *e)
{
	struct view v;
	struct listing l = {.view = &v, .resumable_only = cli_flag(c, "resumable")};
	bool filtered = f->nstatuses > 0 || f->labels != NULL || f->since > 0 || l.resumable_only;
	int lines = lines_for_runs(c, filtered), status = 0, r;
	struct table *table;

	l.most = lines > 0 ? lines : cli_int(c, "number", 0);
	f->brief = !c->json && !cli_flag(c, "check");
	view_init(&v, &t->home, t->store, c->home);
	r = walk_settled(&l, t->store, f, e);
	if (r == 0 && cli_flag(c, "check"))
		r = check_all(&t->home, &l.runs, &status, e);
	if (r == 0 && l.count == 0) {
		say_none(filtered);
	} else if (r == 0 && c->json) {
		print_lines(c->out, l.runs);
	} else if (r == 0) {
		table = l.table != NULL ? l.table : new_table();
		l.table = NULL;
		l.more |= print_table(c->out, table, l.runs, lines) < l.count && lines > 0;
	}
	if (r == 0 && l.more && !cli_flag(c, "number"))
		say_more(c);
	listing_clear(&l);
	view_clear(&v);
	return r == 0 ? status : -1;
}

static int
run(struct cli *c, struct err *e)
{
	struct session_filter f = {0};
	struct json *labels = NULL;
	struct target t;
	int64_t since = cli_int(c, "since", 0);
	int r;

	if (filter_statuses(c, &f, e) != 0 || cli_pairs(c, "label", &labels, e) != 0)
		return -1;
	f.labels = labels;
	f.limit = cli_flag(c, "resumable") ? 0 : cli_int(c, "number", 0);
	if (since > 0)
		f.since = (double)(clock_wall_ns() - since) / (double)NS_PER_S;
	r = target_open(c, &t, e);
	if (r != 0 && e->code == ERR_NOTFOUND) {
		err_clear(e);
		say_none(false);
		r = 0;
	} else if (r == 0) {
		target_wake(&t);
		r = print_list(c, &t, &f, e);
		target_close(&t);
	}
	json_unref(labels);
	return r;
}

const struct command cmd_list = {
    .name = "list",
    .group = CLI_GROUP_LOOK,
    .synopsis = "[--status WORD] [--label KEY=VALUE] [--since TIME] [-n N]",
    .summary = "list runs, newest first",
    .examples = examples,
    .options = options,
    .operands = "",
    .json = true,
    .run = run,
};
