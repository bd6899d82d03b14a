/* resume: what is said before, instead of and about it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "flowsup/log.h"
#include "in_flight.h"
#include "lacking.h"
#include "paste.h"
#include "resuming.h"
#include "view.h"

enum { ID_COLUMN = 10 };

void
resuming_tell_report(const struct resuming *r)
{
	struct buf line = {0};

	if (!r->has_checkpoint || r->report.status == CKPT_CLEAN)
		return;
	ckpt_report_line(&r->report, &line);
	cli_note("%s: %s", r->label, buf_text(&line));
	buf_clear(&line);
}

/* ---- The same of several operations is one line ---- */

/* Adds op to those that a text is told of; op NULL: of the run as a whole. Consumes lines. */
static struct json *
add_line(struct json *lines, const char *op, const struct buf *text)
{
	struct slice key = buf_view(text);
	const struct json *old = json_getn(lines, key);
	struct json *ops = old != NULL ? json_ref(old) : json_array();

	return json_setn(lines, key, op != NULL ? json_append(ops, json_cstr(op)) : ops);
}

static void
name_operations(const struct json *ops, struct buf *to)
{
	struct json_iter it = json_iterate(ops);
	const struct json *one;
	size_t n = json_length(ops);

	if (n > 0)
		buf_puts(to, n == 1 ? "operation " : "operations ");
	while (json_next(&it, NULL, &one))
		buf_printf(to, "%s%s", json_cstr_of(one), --n > 0 ? ", " : json_length(ops) > 1 ? ", each: " : ": ");
}

/* In the order in which they were added; frees them. */
static void
tell_lines(struct json *lines)
{
	struct json_iter it = json_iterate(lines);
	struct buf line = {0};
	const struct json *ops;
	struct slice text;

	while (json_next(&it, &text, &ops)) {
		buf_reset(&line);
		name_operations(ops, &line);
		buf_slice(&line, text);
		cli_note("%s", buf_text(&line));
	}
	buf_clear(&line);
	json_unref(lines);
}

void
resuming_tell_unheard(const struct resuming *r)
{
	struct json_iter it = json_iterate(r->unheard);
	const struct json *one;
	bool stopped = false;
	pid_t pid;

	while (json_next(&it, NULL, &one))
		cli_note("%s", json_cstr_of(one));
	pid = r->unheard != NULL ? client_supervisor(&r->t->home, &stopped) : 0;
	if (pid != 0 && stopped)
		cli_hint("kill -CONT %d", (int)pid);
}

/* ---- The commands that would lift refusals ---- */

enum { LIFT_FAILED, LIFT_DENIED, LIFT_HOPELESS, LIFT_IN_FLIGHT, LIFT_ARTIFACTS, LIFT_CONTEXT, LIFT_DROP, LIFTS };
static const struct {
	const char *flag; /* as failures name it */
	const char *option, *other; /* one or the other */
} lifts[] = {
    [LIFT_FAILED] = {RESUME_LIFTS_FAILED, "retry-failed", "keep-failed"},
    [LIFT_DENIED] = {RESUME_LIFTS_DENIED, "keep-failed", "retry-failed"},
    /* Given, it is what LIFT_DENIED names. */
    [LIFT_HOPELESS] = {RESUME_LIFTS_HOPELESS, "keep-failed", NULL},
    [LIFT_IN_FLIGHT] = {"rerun-in-flight", "rerun-in-flight", NULL},
    [LIFT_ARTIFACTS] = {"accept-missing-artifacts", "accept-missing-artifacts", NULL},
    [LIFT_CONTEXT] = {"allow-degraded-context", "allow-degraded-context", NULL},
    [LIFT_DROP] = {"drop-respawned", "drop-respawned", NULL},
};
/* Flags that no refusal asks for, and that are given again all the same. */
static const char *const kept_words[] = {"rerun-changed", "take-over"};
enum { KEPT_WORDS = sizeof(kept_words) / sizeof(kept_words[0]) };

#define WITHOUT "without-env" /* is given with a name */

/* Which of them it is that the flag of a failure names; LIFTS: none. */
static size_t
lift_of(const struct json *failure)
{
	const char *flag = json_cstr_of(json_get(failure, "flag"));
	size_t i = 0;

	while (flag != NULL && i < LIFTS && strcmp(lifts[i].flag, flag) != 0)
		i++;
	return flag != NULL ? i : LIFTS;
}

const char *
resuming_lift(const struct json *failure)
{
	size_t lift = lift_of(failure);

	return lift < LIFTS ? lifts[lift].option : NULL;
}

static bool
stands_behind(const struct json *failure, const char *option)
{
	struct json_iter it = json_iterate(json_get(failure, "behind"));
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (slice_is(json_text(one), option))
			return true;
	return false;
}

static void
add_home(const struct resuming *r, struct buf *to)
{
	if (r->c->home != NULL) {
		buf_puts(to, " --home ");
		text_shell_word(to, r->c->home);
	}
}

/* What the environment lacks: it is given before, and the command stays as it is. */
static bool
asks_for(const struct json *failure)
{
	return json_get(failure, "variable") != NULL || json_get(failure, "directory") != NULL ||
	    json_get(failure, "needed") != NULL;
}

/* A variable that has to be set is asked for first. */
static void
ask_for(const struct json *failure, struct buf *to)
{
	const char *variable = json_cstr_of(json_get(failure, "variable"));
	const char *directory = json_cstr_of(json_get(failure, "directory"));

	if (directory != NULL) {
		buf_puts(to, "mkdir -p ");
		text_shell_word(to, directory);
		buf_puts(to, "; ");
	}
	if (variable == NULL || getenv(variable) != NULL)
		return;
	lacking_command(variable, to);
	buf_puts(to, "; ");
}

/* What no command gives: the first of it. */
static void
say_needed(const struct json *failure, bool more, struct buf *to)
{
	const char *needed = json_cstr_of(json_get(failure, "needed"));

	if (needed == NULL)
		return;
	buf_puts(to, "   # once ");
	text_shell_word(to, needed);
	buf_puts(to, more ? " and what else is missing can be used" : " can be used");
}

static void
base_command(const struct resuming *r, struct buf *to)
{
	size_t i;

	buf_puts(to, r->fork ? "flowsup fork " : "flowsup resume ");
	text_shell_word(to, r->name);
	for (i = 0; r->fork && i < cli_count(r->c, "from"); i++) {
		buf_puts(to, " --from ");
		text_shell_word(to, cli_nth(r->c, "from", i));
	}
	add_home(r, to);
}

/* fork has not all of them. */
static bool
is_given(const struct resuming *r, const char *flag)
{
	return !(r->fork && strcmp(flag, "take-over") == 0) && cli_flag(r->c, flag);
}

static void
add_without(struct buf *to, const char *name)
{
	buf_puts(to, " --" WITHOUT " ");
	text_shell_word(to, name);
}

/* What becomes of failures: one option for all of them. */
static bool
says_failed(size_t lift)
{
	return lift == LIFT_FAILED || lift == LIFT_DENIED || lift == LIFT_HOPELESS;
}

/* What was given already must be given again; but for what the lift to come says in one way or the other. */
static void
add_given(const struct resuming *r, size_t lift, struct buf *to)
{
	size_t i;

	for (i = 0; i < KEPT_WORDS; i++)
		if (is_given(r, kept_words[i]))
			buf_printf(to, " --%s", kept_words[i]);
	for (i = 0; i < LIFTS; i++)
		if (!(says_failed(i) && says_failed(lift)) && i != lift && i != LIFT_HOPELESS && cli_flag(r->c, lifts[i].option))
			buf_printf(to, " --%s", lifts[i].option);
	/* What is required cannot be left out. */
	for (i = 0; i < cli_count(r->c, WITHOUT); i++)
		if (json_find(r->plan.failures, "variable", cli_nth(r->c, WITHOUT, i)) == NULL)
			add_without(to, cli_nth(r->c, WITHOUT, i));
}

int
resuming_of_elsewhere(const struct resuming *r, const char *host, struct err *e)
{
	struct in_flight of = {0};
	struct buf hint = {0};

	if (r->is_run)
		in_flight_look(&r->t->home, &r->t->session, false, NULL, &of);
	of.asks = of.asks && !cli_flag(r->c, lifts[LIFT_IN_FLIGHT].option);
	err_set(e, ERR_REFUSED, "%s belongs to host %s or another pid namespace of it, where its worker may live%s",
	    r->label, host, of.asks ? "; and what must not be repeated had been started, and has no outcome" : "");
	base_command(r, &hint);
	add_given(r, LIFTS, &hint);
	if (of.asks)
		buf_printf(&hint, " --%s", lifts[LIFT_IN_FLIGHT].option);
	buf_puts(&hint, " --take-over   # if it is dead there");
	cli_hint_whole(r->c, &hint, e);
	buf_clear(&hint);
	return -1;
}

static bool
any_failure_has(const struct resuming *r, const char *flag)
{
	return json_find(r->plan.failures, "flag", flag) != NULL;
}

/* What would be refused next where failures run again: what failed had added something that has an outcome. */
static bool
asks_next_for_drop(const struct resuming *r)
{
	return !r->fork && r->is_run && !cli_flag(r->c, lifts[LIFT_DROP].option) &&
	    json_is_true(json_get(r->t->session.metadata, META_LOSES_ADDED));
}

/* The same: what failed for its conversation has to begin another one. */
static bool
asks_next_for_context(const struct resuming *r, const struct json *failure)
{
	const char *op = json_cstr_of(json_get(failure, "op"));
	size_t i;

	for (i = 0; i < r->plan.nrows; i++)
		if (r->plan.rows[i].action == RESUME_REFUSED && r->plan.rows[i].check == 3 &&
		    resume_lost_conversation(r->plan.rows[i].entry) &&
		    (op == NULL || strcmp(op, r->flow->ops[i].id) == 0))
			return !cli_flag(r->c, lifts[LIFT_CONTEXT].option);
	return false;
}

/* Of one failure, by way 0 or 1; false when there is no such way. */
static bool
command_of(const struct resuming *r, const struct json *failure, int way, struct buf *to)
{
	size_t lift = lift_of(failure);
	const char *name = json_cstr_of(json_get(failure, "name"));
	bool asks = asks_for(failure);
	size_t i;

	if (way > 1 || (lift == LIFTS ? (name == NULL && !asks) || way > 0 : way > 0 && lifts[lift].other == NULL))
		return false;
	ask_for(failure, to);
	base_command(r, to);
	add_given(r, lift, to);
	for (i = 0; i < LIFTS; i++)
		if (i != lift && i != LIFT_HOPELESS && !(says_failed(i) && says_failed(lift)) &&
		    stands_behind(failure, lifts[i].option) &&
		    !cli_flag(r->c, lifts[i].option))
			buf_printf(to, " --%s", lifts[i].option);
	if (lift != LIFTS)
		buf_printf(to, " --%s", way == 0 ? lifts[lift].option : lifts[lift].other);
	else if (!asks)
		add_without(to, name);
	if (((lift == LIFT_FAILED && way == 0) || (lift == LIFT_DENIED && way == 1)) && asks_next_for_drop(r) &&
	    !stands_behind(failure, lifts[LIFT_DROP].option))
		buf_printf(to, " --%s", lifts[LIFT_DROP].option);
	if (lift == LIFT_FAILED && way == 0 && asks_next_for_context(r, failure) &&
	    !stands_behind(failure, lifts[LIFT_CONTEXT].option))
		buf_printf(to, " --%s", lifts[LIFT_CONTEXT].option);
	say_needed(failure, false, to);
	return true;
}

static bool
all_can_be_lifted(const struct resuming *r)
{
	struct json_iter it = json_iterate(r->plan.failures);
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (lift_of(one) == LIFTS && json_get(one, "name") == NULL && !asks_for(one))
			return false;
	return true;
}

/* Of what no option lifts, nor a new beginning: what shows how to mend it. NULL: there is none of that kind. */
static const char *
mending(const struct resuming *r)
{
	struct json_iter it = json_iterate(r->plan.failures);
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (json_cstr_of(json_get(one, "hint")) != NULL)
			return json_cstr_of(json_get(one, "hint"));
	return NULL;
}

/* What becomes of failures is said for all of them by one option. */
static bool
is_said_already(const struct resuming *r, size_t lift)
{
	return (lift == LIFT_DENIED || lift == LIFT_HOPELESS) &&
	    (any_failure_has(r, RESUME_LIFTS_FAILED) || (lift == LIFT_HOPELESS && any_failure_has(r, RESUME_LIFTS_DENIED)));
}

static void
say_all_needed(const struct resuming *r, struct buf *to)
{
	struct json_iter it = json_iterate(r->plan.failures);
	const struct json *one, *first = NULL;
	bool more = false;

	while (json_next(&it, NULL, &one)) {
		if (json_get(one, "needed") == NULL)
			continue;
		more = more || (first != NULL && !json_equal(json_get(first, "needed"), json_get(one, "needed")));
		first = first != NULL ? first : one;
	}
	say_needed(first, more, to);
}

/* The command that lifts all of them at once; where there is none, the one that begins a run anew; nothing
 * for a directory, which has none. */
static void
whole_command(const struct resuming *r, struct buf *to)
{
	struct json_iter it = json_iterate(r->plan.failures);
	const struct json *one;
	size_t i;

	if (mending(r) != NULL) {
		buf_puts(to, mending(r));
		return;
	}
	if (!all_can_be_lifted(r) && r->is_run) {
		buf_puts(to, "flowsup rerun ");
		text_shell_word(to, r->name);
		add_home(r, to);
		buf_puts(to, "   # no option lifts all of this: from the beginning");
		return;
	}
	if (!all_can_be_lifted(r))
		return;
	if (any_failure_has(r, RESUME_LIFTS_HOPELESS) && !r->fork &&
	    paste_with_room(to, r->has_home ? &r->t->home : NULL, r->c->home, &r->t->session))
		return;
	while (json_next(&it, NULL, &one))
		ask_for(one, to);
	base_command(r, to);
	add_given(r, LIFTS, to);
	for (i = 0; i < LIFTS; i++)
		if (!cli_flag(r->c, lifts[i].option) && !is_said_already(r, i) &&
		    (any_failure_has(r, lifts[i].flag) ||
						   (i == LIFT_CONTEXT && asks_next_for_context(r, NULL)) ||
		    (i == LIFT_DROP && any_failure_has(r, lifts[LIFT_FAILED].flag) && asks_next_for_drop(r))))
			buf_printf(to, " --%s", lifts[i].option);
	it = json_iterate(r->plan.failures);
	while (json_next(&it, NULL, &one))
		if (json_get(one, "name") != NULL)
			add_without(to, json_cstr_of(json_get(one, "name")));
	say_all_needed(r, to);
}

static void
tell_failures(const struct resuming *r)
{
	struct json_iter it = json_iterate(r->plan.failures);
	struct json *lines = json_object();
	struct buf line = {0}, command = {0};
	const struct json *one;

	while (json_next(&it, NULL, &one)) {
		const char *op = json_cstr_of(json_get(one, "op"));
		const char *message = json_cstr_of(json_get(one, "message"));

		buf_reset(&line);
		buf_reset(&command);
		buf_puts(&line, message != NULL ? message : "");
		if (command_of(r, one, 0, &command))
			buf_printf(&line, "; lifted by: %s", buf_text(&command));
		buf_reset(&command);
		if (command_of(r, one, 1, &command))
			buf_printf(&line, "; or lifted by: %s", buf_text(&command));
		lines = add_line(lines, op, &line);
	}
	buf_clear(&line);
	buf_clear(&command);
	tell_lines(lines);
}

/* ---- What a flag costs ---- */

/* What outlived its worker, or its end, where it is not taken over; NULL: nothing of that kind is given up. */
static const char *
given_up(const struct resuming *r, size_t i)
{
	enum resume_action action = r->plan.rows[i].action;
	const char *word = json_cstr_of(json_get(json_get(r->facts, r->flow->ops[i].id), "survivor"));

	if (word == NULL || strcmp(word, "stopped") == 0 || (action != RESUME_RUN && action != RESUME_SKIP))
		return NULL;
	/* What runs again says so itself. */
	return strcmp(word, "running") != 0 ? "; how it ended is not carried over"
	    : action == RESUME_SKIP	  ? "; its process is ended" : "";
}

/* Consumes lines. */
static struct json *
add_loss(const struct resuming *r, size_t i, struct json *lines)
{
	const struct resume_row *row = &r->plan.rows[i];
	const char *lost = given_up(r, i);
	struct buf text = {0};

	buf_printf(&text, "%s%s%s%s%s%s", row->reason,
	    row->action == RESUME_SKIP ? ": it is not run" : "",
	    row->rerun && row->had_outcome ? "; its recorded outcome is not carried over" : "", lost != NULL ? lost : "",
	    row->lifted != NULL ? "; by --" : "", row->lifted != NULL ? row->lifted : "");
	lines = add_line(lines, r->flow->ops[i].id, &text);
	buf_clear(&text);
	return lines;
}

static int
keep_second_last(void *arg, const struct transition *t)
{
	enum run_status *last = arg; /* the one before the last, the last */

	last[0] = last[1];
	last[1] = t->status;
	return 0;
}

/* The gate is no part of a checkpoint; an automatic resume has it closed again. */
static void
tell_gate(const struct resuming *r)
{
	enum run_status last[2] = {STATUS_COUNT, STATUS_COUNT};

	if (r->is_run && !r->by_policy && session_transitions(r->t->store, r->t->session.run_id, keep_second_last, last,
			     NULL) == 0 &&
	    last[0] == STATUS_PAUSED)
		cli_note("%s was paused; the new run begins with the gate open", r->label);
}

static void
tell_dropped(const struct resuming *r)
{
	struct json_iter it = json_iterate(r->plan.dropped);
	struct json *lines = json_object();
	struct buf text = {0};
	const struct json *one;
	const char *how;

	while (json_next(&it, NULL, &one)) {
		buf_reset(&text);
		how = json_cstr_of(json_get(one, "unsaved"));
		buf_printf(&text, "left out (%s), because %s, which had added it, %s",
		    how != NULL ? how : json_cstr_of(json_get(one, "status")), json_cstr_of(json_get(one, "parent")),
		    json_cstr_of(json_get(one, "parent_fate")));
		lines = add_line(lines, json_cstr_of(json_get(one, "id")), &text);
	}
	buf_clear(&text);
	tell_lines(lines);
}

static void
tell_values(const struct resuming *r)
{
	struct json_iter it = json_iterate(r->launch.withheld);
	const struct json *name;
	char *const *held;

	while (json_next(&it, NULL, &name))
		if (json_cstr_of(name) != NULL && resuming_goes_without(r->c, json_cstr_of(name)))
			cli_note("the value of %s is left out; by --" WITHOUT, json_cstr_of(name));
	for (held = r->held; held != NULL && *held != NULL; held++)
		cli_note("the value of %.*s is taken from the supervisor, which has kept it", (int)strcspn(*held, "="),
		    *held);
}

void
resuming_tell_losses(const struct resuming *r)
{
	struct json_iter it = json_iterate(r->plan.added), it_lost;
	struct json *lines = json_object();
	const struct json *name;
	size_t i;

	if (r->root_problem != NULL)
		cli_note("%s; new artifacts go to the new run's directory; by "
			 "--accept-missing-artifacts", r->root_problem);
	for (i = 0; i < r->plan.nrows; i++)
		if (r->plan.rows[i].rerun || r->plan.rows[i].lifted != NULL || given_up(r, i) != NULL ||
		    (r->plan.rows[i].action == RESUME_SKIP && r->input.flags.keep_failed))
			lines = add_loss(r, i, lines);
	tell_lines(lines);
	tell_dropped(r);
	it_lost = json_iterate(r->plan.lost);
	while (json_next(&it_lost, NULL, &name))
		cli_note("operation %s: was started, and is not in the checkpoint; it may run again; by "
			 "--rerun-in-flight", json_cstr_of(name));
	tell_values(r);
	while (json_next(&it, NULL, &name))
		cli_note("%s was not recorded and is taken from this environment",
		    json_cstr_of(name));
	if (!r->fork)
		tell_gate(r);
}

/* ---- The table, and the same as JSON ---- */

/* What concerns no single operation, or one that has no row. */
static void
add_failures_of_all(const struct resuming *r, struct table *t)
{
	struct json_iter it = json_iterate(r->plan.failures);
	const struct json *one;
	const char *op;

	while (json_next(&it, NULL, &one)) {
		op = json_cstr_of(json_get(one, "op"));
		if (op != NULL && (r->flow == NULL || flow_find(r->flow, op) != SIZE_MAX ||
		    json_find(r->plan.dropped, "id", op) != NULL))
			continue;
		table_text(t, OUT_PLAIN, op != NULL ? op : "-");
		table_text(t, OUT_BAD, resume_action_word(RESUME_REFUSED));
		table_text(t, OUT_PLAIN, json_cstr_of(json_get(one, "message")));
	}
}

/* Refused where it has an outcome that only --drop-respawned gives up. */
static void
add_dropped(const struct resuming *r, const struct json *dropped, struct table *t)
{
	const char *id = json_cstr_of(json_get(dropped, "id"));
	const struct json *failure = json_find(r->plan.failures, "op", id);
	const char *how = json_cstr_of(json_get(dropped, "unsaved"));

	table_text(t, OUT_PLAIN, id);
	if (failure != NULL) {
		table_text(t, OUT_BAD, resume_action_word(RESUME_REFUSED));
		table_text(t, OUT_PLAIN, json_cstr_of(json_get(failure, "message")));
	} else {
		table_text(t, OUT_DIM, "left out");
		table_printf(t, OUT_PLAIN, "%s, which had added it, %s%s%s",
		    json_cstr_of(json_get(dropped, "parent")), json_cstr_of(json_get(dropped, "parent_fate")),
		    how != NULL ? "; " : "", how != NULL ? how : "");
	}
}

static const enum out_style action_styles[] = {
    [RESUME_RUN] = OUT_BUSY,
    [RESUME_REPLAY] = OUT_GOOD,
    [RESUME_KEEP_FAILED] = OUT_BAD,
    [RESUME_TAKE_OVER] = OUT_BUSY,
    [RESUME_SKIP] = OUT_DIM,
    [RESUME_REFUSED] = OUT_BAD,
};

static void
print_table(struct resuming *r)
{
	static const struct column columns[] = {
	    {.title = "OPERATION", .least = ID_COLUMN, .id = true}, {.title = "ACTION"},
	    {.title = "REASON", .below = "reason"}};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	struct json_iter it = json_iterate(r->plan.dropped);
	const struct json *dropped;
	size_t i;

	for (i = 0; i < r->plan.nrows; i++) {
		const struct resume_row *row = &r->plan.rows[i];

		table_text(t, OUT_PLAIN, r->flow->ops[i].id);
		table_text(t, action_styles[row->action], resume_action_word(row->action));
		table_text(t, OUT_PLAIN, row->reason);
	}
	while (json_next(&it, NULL, &dropped))
		add_dropped(r, dropped, t);
	add_failures_of_all(r, t);
	table_print(t, r->c->out, "");
}

/* The flag that allows it, or would. */
static struct json *
lifted_by(const struct resuming *r, size_t i)
{
	const struct resume_row *row = &r->plan.rows[i];
	const struct json *failure = row->action == RESUME_REFUSED
	    ? json_find(r->plan.failures, "op", r->flow->ops[i].id)
	    : NULL;
	const char *flag = row->lifted != NULL ? row->lifted : json_cstr_of(json_get(failure, "flag"));

	/* Where several would, the first: `commands` of the failure has them all. */
	return flag != NULL ? json_string_lossy((struct slice){flag, strcspn(flag, "|")}, NULL) : json_null();
}

/* The first of those that lift what it is refused for, or null. */
static struct json *
row_command(const struct resuming *r, size_t i)
{
	const struct json *failure = r->plan.rows[i].action == RESUME_REFUSED
	    ? json_find(r->plan.failures, "op", r->flow->ops[i].id) : NULL;
	struct buf command = {0};
	struct json *text = json_null();

	if (failure != NULL && command_of(r, failure, 0, &command)) {
		json_unref(text);
		text = command.failed ? NULL : json_string_lossy(buf_view(&command), NULL);
	}
	buf_clear(&command);
	return text;
}

static struct json *
rows_json(const struct resuming *r)
{
	struct json *rows = json_array(), *one;
	size_t i;

	for (i = 0; i < r->plan.nrows; i++) {
		const struct resume_row *row = &r->plan.rows[i];

		one = json_set(json_object(), "id", json_cstr(r->flow->ops[i].id));
		one = json_set(one, "action", json_cstr(resume_action_word(row->action)));
		one = json_set(one, "reason", json_string_lossy(slice_of(row->reason), NULL));
		one = json_set(one, "rerun", json_bool(row->rerun));
		one = json_set(one, "lifted_by", lifted_by(r, i));
		one = json_set(one, "command", row_command(r, i));
		rows = json_append(rows, one);
	}
	return rows;
}

/* `command`, the first of them or null, and `commands`. */
static struct json *
with_commands(const struct resuming *r, struct json *failure)
{
	struct json *all = json_array();
	const struct json *first;
	struct buf command = {0};
	int way;

	for (way = 0; command_of(r, failure, way, &command); way++) {
		all = json_append(all, command.failed ? NULL : json_string_lossy(buf_view(&command), NULL));
		buf_reset(&command);
	}
	buf_clear(&command);
	first = json_at(all, 0);
	failure = json_set(failure, "command", first != NULL ? json_ref(first) : json_null());
	return json_set(failure, "commands", all);
}

static struct json *
failures_json(const struct resuming *r)
{
	struct json_iter it = json_iterate(r->plan.failures);
	struct json *all = json_array();
	const struct json *one;

	while (json_next(&it, NULL, &one))
		all = json_append(all, with_commands(r, json_ref(one)));
	return all;
}

/* What lifts all that it is refused for, as the hint says it, or null. */
static struct json *
whole_json(const struct resuming *r)
{
	struct buf command = {0};
	struct json *text;

	if (!resume_is_accepted(&r->plan))
		whole_command(r, &command);
	text = command.failed ? NULL : command.len == 0 ? json_null() : json_string_lossy(buf_view(&command), NULL);
	buf_clear(&command);
	return text;
}

struct json *
resuming_json(const struct resuming *r)
{
	struct json *o = json_set(json_object(), r->is_run ? "run" : "directory",
	    json_string_lossy(slice_of(r->name), NULL));

	o = json_set(o, "accepted", json_bool(resume_is_accepted(&r->plan)));
	o = json_set(o, "command", whole_json(r));
	o = json_set(o, "operations", rows_json(r));
	o = json_set(o, "failures", failures_json(r));
	o = json_set(o, "dropped", r->plan.dropped != NULL ? json_ref(r->plan.dropped) : json_array());
	o = json_set(o, "environment_added", json_ref(r->plan.added));
	o = json_set(o, "document", r->launch.document != NULL ? json_cstr(r->launch.document) : json_null());
	o = json_set(o, "document_changes", r->changes != NULL ? json_ref(r->changes) : json_array());
	o = json_set(o, "document_error", r->unreadable != NULL ? json_ref(r->unreadable) : json_null());
	o = json_set(o, "unheard", r->unheard != NULL ? json_ref(r->unheard) : json_array());
	return json_set(o, "checkpoint_recovery",
	    r->has_checkpoint ? ckpt_report_json(&r->report) : json_null());
}

/* ---- Verdicts ---- */

static int
hint_whole(const struct resuming *r, struct err *e)
{
	struct buf command = {0};

	whole_command(r, &command);
	if (command.len > 0)
		cli_hint_whole(r->c, &command, e);
	buf_clear(&command);
	return -1;
}

/* Check 10 alone is no matter of what was recorded: this environment cannot run it. */
static bool
lacks_environment_alone(const struct resuming *r)
{
	struct json_iter it = json_iterate(r->plan.failures);
	const struct json *one;
	int64_t check;

	while (json_next(&it, NULL, &one))
		if (!json_int64(json_get(one, "check"), &check) || check != 10)
			return false;
	return true;
}

/* tail: what else is said. */
static int
set_refused(const struct resuming *r, const char *tail, struct err *e)
{
	bool here = lacks_environment_alone(r);

	err_set(e, here ? ERR_ENVIRONMENT : ERR_REFUSED, "%s cannot be %s %s%s", r->label,
	    r->fork ? "forked" : "resumed", here ? "here" : "faithfully", tail);
	return hint_whole(r, e);
}

int
resuming_refused(struct resuming *r, struct err *e)
{
	size_t n = json_length(r->plan.failures);
	char tail[64];

	if (r->c->json)
		out_json(r->c->out, resuming_json(r));
	else
		tell_failures(r);
	snprintf(tail, sizeof(tail), ": %zu reason%s; nothing was started", n, n == 1 ? "" : "s");
	return set_refused(r, tail, e);
}

int
resuming_dry_run(struct resuming *r, struct err *e)
{
	/* Of several, each says which it is. */
	if (!r->c->json && !r->fork && cli_flag(r->c, "all-crashed"))
		out_printf(r->c->out, "%s:\n", r->label);
	if (r->c->json)
		out_json(r->c->out, resuming_json(r));
	else
		print_table(r);
	if (resume_is_accepted(&r->plan))
		return 0;
	if (!r->c->json)
		tell_failures(r);
	return set_refused(r, "", e);
}
