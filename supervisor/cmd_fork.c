/* fork: a new run that begins with what an earlier one has done before some operation. */
#include <string.h>

#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "known_op.h"
#include "policy.h"
#include "resuming.h"
#include "seek.h"

static const char *const examples[] = {
    "flowsup fork @last --from report             # report and what needs it, anew",
    "flowsup fork @last --from report --dry-run   # what would be reused, and run",
    NULL};

static const struct cli_option options[] = {
    {.name = "from", .kind = CLI_LIST, .value = "OP", .help = "runs anew with what needs it; may be repeated",
	.complete = "op"},
    {.name = "dry-run", .letter = 'n', .kind = CLI_FLAG, .help = "only say what would be done"},
    {.name = "wait", .letter = 'w', .kind = CLI_FLAG, .help = "follow it; exit by its outcome"},
    {.name = "notify", .kind = CLI_STRING, .value = "CMD", .help = "in place of the recorded command",
	.complete = "file"},
    {.name = "restart", .kind = CLI_INT, .value = "N",
	.help = "in place of the recorded number of restarts", .least = 0,
	.most = POLICY_RESTARTS_MOST},
    {.name = "timeout", .kind = CLI_DURATION, .value = "TIME",
	.help = "in place of the recorded deadline", .least = 1},
    {.name = "without-env", .kind = CLI_LIST, .value = "NAME",
	.help = "go on without this withheld variable"},
#define X(member, option, text, seldom) {.name = option, .kind = CLI_FLAG, .help = text, .rare = seldom},
    RESUME_FLAG_TABLE(X)
#undef X
    CLI_END};

/* ---- Whether it can be forked ---- */

/* What goes on has no end to begin at; and its operations would run beside their repetition. */
static int
check_at_end(const struct resuming *r, struct err *e)
{
	const struct session *s = &r->t->session;

	if (status_is_terminal(s->status))
		return 0;
	err_set(e, ERR_REFUSED, "run %s is %s: only a run that is at its end can be forked", s->run_id,
	    status_word(s->status));
	return err_hint(e, "flowsup wait %s", s->run_id);
}

static int
check_nothing_runs(const struct resuming *r, struct err *e)
{
	struct json_iter it = json_iterate(r->facts);
	const struct json *fact;
	struct slice op;

	while (json_next(&it, &op, &fact)) {
		if (!slice_is(json_text(json_get(fact, "survivor")), "running"))
			continue;
		err_set(e, ERR_REFUSED, "operation %.*s of run %s still runs: it would run beside its "
		    "repetition", (int)op.len, op.data, r->t->session.run_id);
		return err_hint(e, "flowsup resume %s --wait   # or: flowsup kill %s",
		    r->t->session.run_id, r->t->session.run_id);
	}
	return 0;
}

/* How an operation ended whose outcome was not saved is for the run's own resume to take; here it counts
 * as one that was in flight. */
static int
forget_survivors(struct resuming *r, struct err *e)
{
	struct json_iter it = json_iterate(r->facts);
	struct json *facts = json_object();
	const struct json *fact;
	struct slice op;

	while (json_next(&it, &op, &fact))
		facts = json_setn(facts, op, json_remove(json_remove(json_ref(fact), slice_of("survivor")),
		    slice_of("killed")));
	if (facts == NULL)
		return err_nomem(e);
	json_unref(r->facts);
	r->facts = facts;
	return 0;
}

/* ---- Where it begins ---- */

static int
name_starts(struct resuming *r, struct err *e)
{
	size_t i;

	for (i = 0; i < cli_count(r->c, "from"); i++)
		r->again = json_set(r->again, cli_nth(r->c, "from", i),
		    json_set(json_set(json_object(), "why", json_cstr("the fork begins with it")), "flag",
			json_cstr("from")));
	return r->again != NULL ? 0 : err_nomem(e);
}

static bool
is_dropped(const struct resuming *r, const char *op)
{
	return json_find(r->plan.dropped, "id", op) != NULL;
}

static int
check_starts(const struct resuming *r, struct err *e)
{
	const char *op;
	size_t i, at;

	for (i = 0; r->flow != NULL && i < cli_count(r->c, "from"); i++) {
		op = cli_nth(r->c, "from", i);
		at = flow_find(r->flow, op);
		if (at == SIZE_MAX && !is_dropped(r, op))
			return known_op_refuse(r->t->session.run_id, r->flow, op, r->c, e);
		if (at != SIZE_MAX && at == r->flow->planner_op) {
			err_set(e, ERR_REFUSED, "a fork keeps the plan; what begins with the planner is another run");
			return err_hint(e, "flowsup rerun %s", r->t->session.run_id);
		}
	}
	return 0;
}

static int
fork_examined(struct resuming *r, struct err *e)
{
	if (resuming_read(r, e) != 0 || check_nothing_runs(r, e) != 0 || forget_survivors(r, e) != 0 ||
	    name_starts(r, e) != 0 || resuming_examine(r, e) != 0 || check_starts(r, e) != 0)
		return -1;
	resuming_tell_report(r);
	resuming_tell_unheard(r);
	resuming_tell_changes(r);
	if (cli_flag(r->c, "dry-run"))
		return resuming_dry_run(r, e);
	return resume_is_accepted(&r->plan) ? resuming_go_on(r, e) : resuming_refused(r, e);
}

/* While it is read nobody removes it, and no resume takes over what it left. */
static int
hold(struct resuming *r, struct err *e)
{
	bool held = false;

	if (cli_flag(r->c, "dry-run")) {
		if (seek_lock_held(r->run_fd, RUN_LOCK_OVER_MS, &held, e) != 0)
			return seek_damaged_for_good(&r->t->session, e);
		if (!held)
			return 0;
	} else {
		r->lock_fd = run_lock_take(r->run_fd, RUN_LOCK_OVER_MS, e);
		if (r->lock_fd >= 0)
			return 0;
		if (e->code != ERR_BUSY)
			return seek_damaged_for_good(&r->t->session, e);
	}
	err_set(e, ERR_BUSY, "run %s is being resumed or removed by another process", r->t->session.run_id);
	return err_hint(e, "flowsup show %s", r->t->session.run_id);
}

static int
fork_run(struct cli *c, struct target *t, struct err *e)
{
	struct resuming r = {
	    .c = c, .t = t, .has_home = true, .fork = true, .run_fd = -1, .lock_fd = -1};
	int rc = check_at_end(&r, e);

	if (rc == 0)
		rc = resuming_take_session(&r, e);
	if (rc == 0)
		rc = hold(&r, e);
	if (rc == 0)
		rc = fork_examined(&r, e);
	resuming_clear(&r);
	return rc;
}

static int
run(struct cli *c, struct err *e)
{
	struct target t;
	char word[SHELL_WORD_TEXT];
	int rc;

	if (cli_flag(c, "retry-failed") && cli_flag(c, "keep-failed"))
		return err_set(e, ERR_USAGE, "--retry-failed and --keep-failed exclude each other");
	if (cli_count(c, "from") == 0) {
		err_set(e, ERR_USAGE, "fork: --from OP is missing: where does the new run begin?");
		return err_hint(e, "flowsup rerun %s   # from the beginning", shell_word(word, c->operands[0]));
	}
	if (target_open(c, &t, e) != 0)
		return -1;
	if (!cli_flag(c, "dry-run"))
		target_wake(&t);
	rc = target_find(&t, c->operands[0], e) == 0 ? fork_run(c, &t, e) : -1;
	target_close(&t);
	return rc;
}

const struct command cmd_fork = {
    .name = "fork",
    .group = CLI_GROUP_START,
    .synopsis = "RUN --from OP [OPTION]...",
    .summary = "start a new run that reuses what one did before OP",
    .examples = examples,
    .options = options,
    .details = "Checked like a resume. The earlier run may have completed; it stays as it is.",
    .min_operands = 1,
    .max_operands = 1,
    .operands = "run",
    .json = true,
    .run = run,
};
