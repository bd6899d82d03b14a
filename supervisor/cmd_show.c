#include <string.h>

#include "cli.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "output.h"
#include "plan.h"
#include "render.h"
#include "seek.h"
#include "target.h"
#include "view.h"

enum { LABEL_WIDTH = 11, STILL_RUNNING = 3, NAMED_MOST = 3, LOOKS_MOST = 3 };

static const char *const examples[] = {
    "flowsup show                    # the latest run",
    "flowsup show @last-failed       # what went wrong",
    "flowsup show 20261129T1015      # any prefix that fits one run alone",
    "flowsup show --graph svg > run.svg    # for a browser",
    NULL};

static const struct cli_option options[] = {
    {.name = "graph", .letter = 'g', .kind = CLI_CHOICE, .value = "text|dot|mermaid|svg",
	.help = "only the graph, with the state of each operation"},
    {.name = "exit-status", .kind = CLI_FLAG,
	.help = "exit by the outcome; 3 before the end"},
    CLI_END};

/* ---- Text ---- */

static void
label(struct output *out, const char *name)
{
	out_printf(out, "%s%-*s%s", out_style(out, OUT_DIM), LABEL_WIDTH, name,
	    out_style(out, OUT_PLAIN));
}

static void
line(struct output *out, const char *name, const char *text)
{
	if (text[0] == '\0')
		return;
	label(out, name);
	out_text(out, slice_of(text), false);
	out_puts(out, "\n");
}

static void
print_status(struct output *out, const struct json *run)
{
	struct buf b = {0};
	const char *word = render_member(run, "status"), *reason = render_member(run, "reason_text");

	label(out, "status");
	render_status(run, &b);
	out_puts(out, out_style(out, render_status_style(word)));
	out_text(out, buf_view(&b), false);
	out_puts(out, out_style(out, OUT_PLAIN));
	if (reason[0] != '\0') {
		out_puts(out, ": ");
		out_text(out, slice_of(reason), false);
	}
	out_printf(out, " [%s]\n", render_member(run, "reason"));
	buf_clear(&b);
}

static bool
is_under_way(const char *state)
{
	return strcmp(state, "running") == 0 || strcmp(state, "reading") == 0;
}

/* With what it waits for. */
static void
print_stopping(struct output *out, const struct json *run)
{
	struct json_iter it = json_iterate(json_get(run, "ops"));
	const struct json *op;
	struct buf b = {0};
	size_t n = 0;

	render_stopping(run, &b);
	if (b.len > 0)
		while (json_next(&it, NULL, &op))
			if (is_under_way(render_member(op, "state")) && n++ < NAMED_MOST)
				buf_printf(&b, "%s%s", n == 1 ? "; waits for the end of " : ", ",
				    render_member(op, "id"));
	if (n > NAMED_MOST)
		buf_printf(&b, " and %zu more", n - NAMED_MOST);
	line(out, json_type(json_get(run, "stopping")) == JSON_OBJECT ? "stop" : "deadline", buf_text(&b));
	buf_clear(&b);
}

static void
print_time(struct output *out, const char *name, const struct json *run, const char *member,
    bool utc)
{
	double at = render_number(run, member, -1);
	char when[TIME_TEXT], age[DURATION_TEXT];

	if (at <= 0)
		return;
	label(out, name);
	out_printf(out, "%s  (%s ago)\n", time_format(at, utc, when),
	    render_seconds(render_age(run, member), age));
}

static size_t
count_state(const struct json *ops, const char *state)
{
	struct json_iter it = json_iterate(ops);
	const struct json *op;
	size_t n = 0;

	while (json_next(&it, NULL, &op))
		n += strcmp(render_member(op, "state"), state) == 0;
	return n;
}

static size_t
count_saved(const struct json *ops)
{
	struct json_iter it = json_iterate(ops);
	const struct json *op;
	size_t n = 0;

	while (json_next(&it, NULL, &op))
		n += json_is_true(json_get(op, "saved"));
	return n;
}

/* Failures in whose place something else was tried: they do not count as such. */
static size_t
count_replaced(const struct json *ops)
{
	struct json_iter it = json_iterate(ops);
	const struct json *op;
	size_t n = 0;

	while (json_next(&it, NULL, &op))
		n += json_get(op, "replaced_by") != NULL && strcmp(render_member(op, "state"), "failed") == 0;
	return n;
}

/* What is done is counted as everywhere: with what was skipped. */
static void
print_operations_done(struct output *out, const struct json *ops)
{
	size_t failed = count_state(ops, "failed"), skipped = count_state(ops, "skipped");
	size_t replaced = count_replaced(ops);

	out_printf(out, "%zu of %zu done", count_state(ops, "completed") + failed + skipped,
	    json_length(ops));
	if (failed > replaced)
		out_printf(out, ", %zu failed", failed - replaced);
	if (skipped > 0)
		out_printf(out, ", %zu skipped", skipped);
	out_printf(out, ", %zu saved", count_saved(ops));
}

static void
print_progress(struct output *out, const struct json *run)
{
	const struct json *ops = json_get(run, "ops");
	char text[DURATION_TEXT], progress[PROGRESS_TEXT];

	label(out, "progress");
	if (json_length(ops) > 0)
		print_operations_done(out, ops);
	else /* its document cannot be read */
		out_puts(out, render_progress(run, progress));
	if (render_number(run, "duration", -1) >= 0)
		out_printf(out, ", in %s", render_seconds(render_number(run, "duration", -1), text));
	out_puts(out, "\n");
}

static void
print_cut(struct output *out, const struct json *run)
{
	const struct json *cut = json_get(run, META_PLAN_CUT);
	double n = render_number(cut, "left_out", 0);

	if (n <= 0)
		return;
	label(out, "plan");
	out_printf(out, "its last %.0f operation%s left out: there may be at most %.0f\n", n, n > 1 ? "s are" : " is",
	    render_number(cut, "allowed", 0));
}

static void
print_empty(struct output *out, const struct json *run)
{
	const struct json *empty = json_get(run, META_PLAN_EMPTY);
	struct buf b = {0};

	if (json_length(empty) == 0)
		return;
	flow_empty_lists_text(empty, &b);
	line(out, "plan", buf_text(&b));
	buf_clear(&b);
}

static void
print_growth(struct output *out, const struct json *run)
{
	const struct json *growth = json_get(run, META_GROWTH), *n;
	const struct json *rejected = json_get(growth, "rejected");
	double tries, items;
	struct json_iter it = json_iterate(rejected);
	struct slice reason;
	bool any = false;

	if (json_length(growth) == 0)
		return;
	label(out, "added");
	tries = render_number(growth, "escalated", 0);
	items = render_number(growth, "items", 0);
	out_printf(out, "%.0f spawned, %.0f further %s, %.0f item%s", render_number(growth, "spawned", 0), tries,
	    tries > 1 || tries < 1 ? "tries" : "try", items, items > 1 || items < 1 ? "s" : "");
	while (json_next(&it, &reason, &n)) {
		out_puts(out, any ? ", " : "; rejected: ");
		out_printf(out, "%.0f ", render_number(rejected, reason.data, 0));
		out_text(out, reason, false);
		any = true;
	}
	out_puts(out, "\n");
}

/* Of a run that has ended; before that they wait. */
static void
print_messages(struct output *out, const struct json *run)
{
	double n = render_number(run, "messages_unrendered", 0);

	if (n <= 0 || render_number(run, "ended_at", -1) <= 0)
		return;
	label(out, "messages");
	out_printf(out, "%.0f %s applied and reached no operation\n", n, n > 1 ? "were" : "was");
}

static void
print_checkpoint(struct output *out, const struct json *run)
{
	const struct json *c = json_get(run, "checkpoint");
	const char *message = render_member(c, "message"), *reason = render_member(c, "reason");

	if (json_length(c) == 0)
		return;
	label(out, "checkpoint");
	out_text(out, slice_of(render_member(c, "status")), false);
	if (render_number(c, "records_applied", -1) >= 0)
		out_printf(out, ", %.0f record%s in the journal",
		    render_number(c, "records_applied", 0),
		    render_number(c, "records_applied", 0) == 1 ? "" : "s");
	if (reason[0] != '\0')
		out_printf(out, ", %s", reason);
	if (message[0] != '\0') {
		out_puts(out, ": ");
		out_text(out, slice_of(message), false);
	}
	out_puts(out, "\n");
}

static double
operation_time(const struct json *op)
{
	double started = render_number(op, "started_at", -1), ended = render_number(op, "ended_at", -1);
	double elapsed = render_number(op, "elapsed", -1);

	if (elapsed >= 0)
		return elapsed;
	return started > 0 && ended >= started ? ended - started : -1;
}

/* A number above `least`; else the cell stays empty. */
static void
number_cell(struct table *t, double number, double least)
{
	if (number > least)
		table_printf(t, OUT_PLAIN, "%.0f", number);
	else
		table_text(t, OUT_PLAIN, "");
}

/* A status says something only when it is not 0; a failure without one has none. */
static void
ending_cell(struct table *t, const struct json *op)
{
	const char *signal = render_member(op, "signal");

	if (signal[0] != '\0')
		table_text(t, OUT_PLAIN, signal);
	else if (strcmp(render_member(op, "state"), "failed") == 0 && render_number(op, "exit", -1) < 0)
		table_text(t, OUT_PLAIN, "-");
	else
		number_cell(t, render_number(op, "exit", 0), 0);
}

/* How far it is says more of what runs than why it was started. */
static void
why_cell(struct table *t, const struct json *op)
{
	double progress = render_number(op, "progress", -1);
	struct buf b = {0};

	render_percent(progress, render_member(op, "progress_text"), &b);
	if (b.len == 0)
		buf_puts(&b, render_member(op, "why"));
	render_leftovers(op, b.len > 0 ? "; " : "", &b);
	table_text(t, OUT_DIM, buf_text(&b));
	buf_clear(&b);
}

static void
add_operation(struct table *t, const struct json *op)
{
	const char *state = render_member(op, "state");
	char text[DURATION_TEXT];

	table_text(t, OUT_PLAIN, render_member(op, "id"));
	table_text(t, render_status_style(state), state);
	number_cell(t, render_number(op, "attempt", 0), 1);
	ending_cell(t, op);
	table_text(t, OUT_PLAIN, render_seconds(operation_time(op), text));
	table_text(t, OUT_PLAIN, json_is_true(json_get(op, "saved")) ? "saved" : "");
	why_cell(t, op);
}

static void
print_operations(struct output *out, const struct json *run)
{
	static const struct column columns[] = {
	    {.title = "OPERATION", .least = 10, .id = true},
	    {.title = "STATE"},
	    {.title = "ATTEMPT", .right = true, .drop = 1},
	    {.title = "EXIT", .right = true},
	    {.title = "TIME", .right = true, .drop = 2},
	    {.title = "SAVED", .drop = 3},
	    {.title = "WHY", .least = 24, .below = "why"},
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	struct json_iter it = json_iterate(json_get(run, "ops"));
	const struct json *op;

	while (json_next(&it, NULL, &op))
		add_operation(t, op);
	if (table_rows(t) > 0)
		out_puts(out, "\n");
	table_print(t, out, "");
}

static void
print_problems(struct output *out, const struct json *run)
{
	struct json_iter it = json_iterate(json_get(run, "problems"));
	const struct json *one;

	while (json_next(&it, NULL, &one))
		line(out, "problem", render_member(one, "error"));
}

/* A result begins with the word that `state` often is ("rejected:not-waiting"): it is said once. */
static void
print_result(struct output *out, const char *result, const char *state)
{
	size_t len = strlen(state);

	if (strncmp(result, state, len) == 0 && (result[len] == ':' || result[len] == '\0'))
		result += len + strspn(result + len, ": ");
	if (result[0] == '\0')
		return;
	out_puts(out, ": ");
	out_text(out, slice_of(result), false);
}

static void
print_commands(struct output *out, const struct json *control)
{
	struct json_iter it = json_iterate(json_get(control, "commands"));
	const struct json *one;

	while (json_next(&it, NULL, &one))
		line(out, "", json_cstr_of(one));
}

static void
print_controls(struct output *out, const struct json *run)
{
	struct json_iter it = json_iterate(json_get(run, "controls"));
	const struct json *c;
	struct buf asked = {0};
	char age[DURATION_TEXT];
	bool any = false;

	while (json_next(&it, NULL, &c)) {
		out_puts(out, any ? "" : "\n");
		any = true;
		label(out, "control");
		buf_reset(&asked);
		render_asked(c, &asked);
		buf_printf(&asked, " %s, %s ago", render_member(c, "state"),
		    render_seconds(render_age(c, "created_at"), age));
		render_asker(c, &asked);
		out_text(out, buf_view(&asked), false);
		print_result(out, render_member(c, "result"), render_member(c, "state"));
		out_puts(out, "\n");
		print_commands(out, c);
	}
	buf_clear(&asked);
}

static void
print_labels(struct output *out, const struct json *run)
{
	struct json_iter it = json_iterate(json_get(run, "labels"));
	const struct json *value;
	struct buf b = {0};
	struct slice name;

	while (json_next(&it, &name, &value)) {
		buf_puts(&b, b.len > 0 ? " " : "");
		buf_slice(&b, name);
		buf_putc(&b, '=');
		buf_slice(&b, json_text(value));
	}
	line(out, "labels", buf_text(&b));
	buf_clear(&b);
}

static void
print_worker(struct output *out, const struct json *run)
{
	double pid = render_number(run, "worker_pid", 0);

	if (pid <= 0)
		return;
	label(out, "worker");
	out_printf(out, "pid %.0f\n", pid);
}

static void
print_facts(struct output *out, const struct json *run, bool utc)
{
	size_t from = out->pending.len;

	line(out, "run", render_member(run, "id"));
	line(out, "name", render_member(run, "name"));
	print_status(out, run);
	print_stopping(out, run);
	print_progress(out, run);
	print_cut(out, run);
	print_empty(out, run);
	print_growth(out, run);
	print_time(out, "created", run, "created_at", utc);
	print_time(out, "ended", run, "ended_at", utc);
	print_worker(out, run);
	line(out, "resumes", render_member(run, "resumed_from"));
	line(out, "forks", render_member(run, "forked_from"));
	print_labels(out, run);
	print_messages(out, run);
	print_checkpoint(out, run);
	line(out, "directory", render_member(run, "directory"));
	print_problems(out, run);
	out_wrap(out, from, LABEL_WIDTH);
}

static void
print_run(struct output *out, const struct json *run, bool utc)
{
	struct buf b = {0};
	size_t from;

	print_facts(out, run, utc);
	print_operations(out, run);
	out_flush(out);
	from = out->pending.len;
	print_controls(out, run);
	out_wrap(out, from, LABEL_WIDTH);
	if (json_type(json_get(run, "stopping")) != JSON_OBJECT &&
	    json_type(json_get(run, "draining")) != JSON_OBJECT) /* said above */
		render_next(run, &b);
	if (b.len > 0)
		out_puts(out, "\n");
	from = out->pending.len;
	line(out, "next", buf_text(&b));
	line(out, "or", render_member(run, "keep_command"));
	out_wrap(out, from, LABEL_WIDTH);
	buf_clear(&b);
}

/* ---- Graph ---- */

static const char *
state_of(void *arg, size_t op)
{
	return render_member(json_at(arg, op), "state");
}

static int
print_graph(struct cli *c, struct target *t, struct err *e)
{
	struct run_files f;
	struct json *ops;
	int r = -1;

	if (run_files_open(&t->home, &t->session, true, &f, e) != 0)
		return -1;
	ops = view_operations(&f, &t->session);
	if (f.flow == NULL) {
		*e = f.flow_error;
		seek_damaged(&t->session, e);
	} else if (ops == NULL) {
		err_nomem(e);
	} else {
		r = plan_draw(c->out, f.flow, cli_int(c, "graph", FLOW_GRAPH_TEXT), state_of, ops, e);
	}
	json_unref(ops);
	run_files_close(&f);
	return r;
}

/* What mends it, where that is known. */
static void
hint_directory(const struct target *t, struct err *e)
{
	struct err why = {0};
	int fd = rundir_open(&t->home, t->session.run_id, &why);

	fd_close(&fd);
	if (err_has_hint(&why))
		err_hint_of(e, &why);
	else if (status_is_terminal(t->session.status))
		err_hint(e, "flowsup list   # what is known of it without its files");
}

/* What was shown is not all there should be: the first thing that lacks is the command's error. */
static int
tell_problems(const struct target *t, const struct json *problems, struct err *e)
{
	const struct json *first = json_at(problems, 0);

	if (first == NULL)
		return 0;
	err_set(e, ERR_IO, "%s", render_member(first, "error"));
	if (render_member(first, "file")[0] == '\0')
		hint_directory(t, e);
	else if (render_member(first, "hint")[0] != '\0')
		err_hint(e, "%s", render_member(first, "hint"));
	else if (status_is_terminal(t->session.status) && strcmp(render_member(first, "file"), CKPT_BASE) == 0)
		err_hint(e, "flowsup logs %s   # what its operations wrote", t->session.run_id);
	else if (status_is_terminal(t->session.status))
		err_hint(e, "flowsup checkpoint show %s   # what was saved of it", t->session.run_id);
	return seek_damaged(&t->session, e);
}

static bool
is_as_before(const struct session *a, const struct session *b)
{
	const char *reason = a->reason_code == NULL ? "" : a->reason_code;

	return a->status == b->status && strcmp(reason, b->reason_code == NULL ? "" : b->reason_code) == 0 &&
	    strcmp(a->resumed_as_run, b->resumed_as_run) == 0;
}

/* The row may have moved on while its files were read; false when it has, and is the target's now. */
static int
look_again(struct target *t, bool *same, struct err *e)
{
	struct session fresh;

	if (session_read(t->store, t->session.run_id, &fresh, e) != 0)
		return -1;
	*same = is_as_before(&t->session, &fresh);
	session_clear(&t->session);
	t->session = fresh;
	return 0;
}

/* All of one moment: of the row that was there before and after. The session of the target becomes the
 * one that is shown. */
static struct json *
settled_run(const struct view *v, struct target *t, struct err *e)
{
	int64_t until_ns = clock_monotonic_ns() + VIEW_SETTLE_MS * NS_PER_MS;
	struct json *run = NULL;
	bool same = false;
	int tries;

	for (tries = 0; !same && tries < LOOKS_MOST; tries++) {
		json_unref(run);
		run = view_run_full(v, &t->session, e);
		if (run == NULL || (view_lacks_worker(run) && view_settle(v, view_run_full, until_ns, &run, e) != 0) ||
		    look_again(t, &same, e) != 0) {
			json_unref(run);
			return NULL;
		}
	}
	return run;
}

static int
print_all(struct cli *c, struct target *t, struct err *e)
{
	struct json *run;
	struct view v;
	int r;

	view_init(&v, &t->home, t->store, c->home);
	run = settled_run(&v, t, e);
	view_clear(&v);
	if (run == NULL)
		return -1;
	if (c->json)
		out_json(c->out, json_ref(run));
	else
		print_run(c->out, run, c->utc);
	r = tell_problems(t, json_get(run, "problems"), e);
	json_unref(run);
	return r;
}

static int
run(struct cli *c, struct err *e)
{
	struct target t;
	int r;

	if (target_of(c, c->operands[0], false, &t, e) != 0)
		return -1;
	r = cli_flag(c, "graph") && !c->json ? print_graph(c, &t, e) : print_all(c, &t, e);
	if (r == 0 && cli_flag(c, "exit-status"))
		r = status_is_terminal(t.session.status)
		    ? status_exit(t.session.status, t.session.reason_code)
		    : STILL_RUNNING;
	target_close(&t);
	return r;
}

const struct command cmd_show = {
    .name = "show",
    .group = CLI_GROUP_LOOK,
    .synopsis = "[RUN] [--graph text|dot|mermaid|svg] [--exit-status]",
    .summary = "show everything about one run",
    .examples = examples,
    .options = options,
    .max_operands = 1,
    .operands = "run",
    .json = true,
    .this_run = true,
    .run = run,
};
