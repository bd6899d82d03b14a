#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flowsup/provider.h"
#include "resume_private.h"
#include "seek.h"

const char *
resume_action_word(enum resume_action action)
{
	static const char *const words[] = {
	    [RESUME_RUN] = "will run",
	    [RESUME_REPLAY] = "replayed",
	    [RESUME_KEEP_FAILED] = "stays failed",
	    [RESUME_TAKE_OVER] = "taken over",
	    [RESUME_SKIP] = "skipped",
	    [RESUME_REFUSED] = "refused",
	};

	return words[action];
}

/* ---- Failures and rows ---- */

void
resume_fail(struct resume_plan *p, int check, const char *op, const char *flag, const char *fmt, ...)
{
	struct buf text = {0};
	struct json *one;
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	one = json_set(json_object(), "check", json_int(check));
	one = json_set(one, "op", op != NULL ? json_cstr(op) : json_null());
	one = json_set(one, "message", text.failed ? NULL : json_string_lossy(buf_view(&text), NULL));
	one = json_set(one, "flag", flag != NULL ? json_cstr(flag) : json_null());
	p->failures = json_append(p->failures, one);
	buf_clear(&text);
}

void
resume_fail_with(struct resume_plan *p, const char *member, const char *text)
{
	size_t n = json_length(p->failures);

	if (n > 0)
		p->failures = json_put(p->failures, n - 1,
		    json_set(json_ref(json_at(p->failures, n - 1)), member, json_cstr(text)));
}

void
resume_decide(struct examining *x, size_t i, enum resume_action action, const char *fmt, ...)
{
	struct resume_row *row = &x->plan->rows[i];
	struct buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	free(row->reason);
	row->action = action;
	row->reason = buf_steal(&text);
	x->failed = x->failed || row->reason == NULL;
}

void
resume_refuse(struct examining *x, size_t i, int check, const char *flag, const char *reason)
{
	x->plan->rows[i].check = check;
	x->plan->rows[i].flag = flag;
	x->plan->rows[i].lifted = NULL;
	resume_decide(x, i, RESUME_REFUSED, "%s", reason);
	resume_fail(x->plan, check, x->in->flow->ops[i].id, flag, "%s", reason);
}

/* ---- History ---- */

static void
add_line(struct examining *x, struct attempt_line *line)
{
	size_t i = line->op != NULL ? flow_find(x->in->flow, line->op) : SIZE_MAX;
	struct history *h;

	if (i == SIZE_MAX)
		return;
	h = &x->history[i];
	if (line->kind == ATTEMPT_LINE_START) {
		h->started = true;
		h->end = NULL;
		if (line->attempt > h->attempts)
			h->attempts = line->attempt;
	} else if (line->attempt >= h->attempts) {
		h->end = line;
	}
}

const struct json *
resume_end_member(struct examining *x, size_t i, const char *name)
{
	const struct json *line = NULL;

	if (x->history[i].end == NULL)
		return NULL;
	line = attempt_line_json(x->history[i].end);
	x->failed = x->failed || line == NULL;
	return json_get(line, name);
}

static void
read_history(struct examining *x)
{
	size_t i;

	for (i = 0; i < x->in->attempts->nlines; i++)
		add_line(x, &x->in->attempts->lines[i]);
	for (i = 0; i < x->in->flow->nops; i++)
		x->plan->rows[i].attempts = x->history[i].attempts;
	for (i = 0; i < x->in->flow->nops; i++)
		if (json_is_true(json_get(json_get(x->in->facts, x->in->flow->ops[i].id), "started")))
			x->history[i].started = true;
}

/* ---- The run as a whole: checks 1 and 2, and what this version cannot carry on ---- */

/* What starts nothing any more needs no role. NULL: no memory. */
static bool *
settled_of(const struct examining *x)
{
	bool *settled = calloc(x->plan->nrows + 1, sizeof(*settled));
	const struct resume_row *row;
	size_t i;

	for (i = 0; settled != NULL && i < x->plan->nrows; i++) {
		row = &x->plan->rows[i];
		settled[i] = row->turn == 0 && (row->action == RESUME_REPLAY || row->action == RESUME_KEEP_FAILED ||
		    (row->action == RESUME_REFUSED && row->entry != NULL));
	}
	return settled;
}

/* A new run would be refused for the same. */
static void
check_providers(struct examining *x)
{
	struct flow_diagnostics d = {0};
	struct err e = {0};
	bool *settled = settled_of(x);
	size_t i;

	x->failed = x->failed || settled == NULL;
	if (settled == NULL || flow_check_providers(x->in->flow, NULL, settled, NULL, &d, &e) == 0)
		goto out;
	for (i = 0; i < d.count; i++)
		if (!d.items[i].warning) {
			resume_fail(x->plan, 2, NULL, NULL, "%s", d.items[i].message);
			if (d.items[i].command && d.items[i].hint[0] != '\0')
				resume_fail_with(x->plan, "hint", d.items[i].hint);
		}
	if (d.count == 0)
		resume_fail(x->plan, 2, NULL, NULL, "%s", e.msg);
out:
	free(settled);
	flow_diagnostics_clear(&d);
}

void
resume_state_problem(void *arg, int check, const char *op, const char *text)
{
	resume_fail(arg, check, op, NULL, "%s", text);
}

/* False when there is nothing further to look at. */
static bool
check_whole(struct examining *x)
{
	const struct resume_input *in = x->in;

	if (in->load_error != NULL) {
		resume_fail(x->plan, 1, NULL, NULL, "%s", in->load_error->msg);
		if (err_has_hint(in->load_error))
			resume_fail_with(x->plan, "hint", err_hint_text(in->load_error));
		return false;
	}
	if (in->flow == NULL) {
		resume_fail(x->plan, 2, NULL, NULL, "%s", in->flow_error->msg);
		return false;
	}
	return flow_judge_plan(in->flow, resume_state_problem, x->plan);
}

/* ---- One operation with a recorded outcome ---- */

static const char *
failed_policy(const struct examining *x)
{
	const struct json *restart = json_get(json_get(x->in->state, "config"), "restart");
	const char *policy = json_cstr_of(json_get(restart, "failed"));

	if (x->in->flags.retry_failed)
		return "retry";
	if (x->in->flags.keep_failed)
		return "keep";
	return policy != NULL ? policy : "";
}

static bool
may_repeat(const struct examining *x, size_t i)
{
	return x->in->flow->ops[i].how->idempotent || x->in->flags.rerun_in_flight;
}

static bool
digest_matches(struct examining *x, const struct json *entry)
{
	const char *recorded = json_cstr_of(json_get(entry, "result_digest"));
	const struct json *response = json_get(entry, "response");

	if (json_get(entry, "result_digest") == NULL || json_type(json_get(entry, "result_digest")) == JSON_NULL)
		return true;
	if (recorded == NULL || response == NULL)
		return false;
	/* Many say the same. Of values that are no text equal ones may be encoded in two ways. */
	if ((json_text(x->digested).data == NULL || json_type(response) != JSON_STRING ||
		!slice_eq(json_text(x->digested), json_text(response))) &&
	    ckpt_digest(response, x->digest, NULL) != 0) {
		x->digested = NULL;
		x->failed = true;
		return true;
	}
	x->digested = response;
	return strcmp(recorded, x->digest) == 0;
}

const char *
resume_fact(const struct examining *x, size_t i, const char *name)
{
	return json_cstr_of(json_get(json_get(x->in->facts, x->in->flow->ops[i].id), name));
}

/* A fork leaves out what it begins with. */
static bool
begins_fork(const struct examining *x, size_t i)
{
	return slice_is(json_text(json_get(json_get(x->in->again, x->in->flow->ops[i].id), "flag")), "from");
}

/* Check 5, whatever becomes of the outcome: who edited one did not ask for that. True when it was refused. */
static bool
refuse_response(struct examining *x, size_t i)
{
	if (x->plan->rows[i].entry == NULL || digest_matches(x, x->plan->rows[i].entry))
		return false;
	resume_refuse(x, i, 5, NULL, "its recorded response does not match its digest: edited or damaged");
	return true;
}

/*
 * Check 4: whether something that it made is lost, and that decides: it runs again, or is refused. Those behind it
 * are given its output, its response where that is a file, and the artifacts of what completed.
 */
static bool
decide_lost(struct examining *x, size_t i, bool with_artifacts)
{
	static const struct {
		const char *fact, *refusal;
	} things[] = {
	    {"artifacts", "it lost its artifacts, ended already, and is marked idempotent: false"},
	    {"output", "it lost its output, ended already, and is marked idempotent: false"},
	    {"response", "it lost its response, ended already, and is marked idempotent: false"},
	};
	const char *lost = NULL;
	size_t k;

	for (k = with_artifacts ? 0 : 1; k < sizeof(things) / sizeof(things[0]); k++)
		if ((lost = resume_fact(x, i, things[k].fact)) != NULL)
			break;
	if (lost == NULL)
		return false;
	if (!x->in->flags.accept_missing_artifacts) {
		resume_refuse(x, i, 4, "accept-missing-artifacts", lost);
	} else if (!may_repeat(x, i)) {
		resume_refuse(x, i, 7, "rerun-in-flight", things[k].refusal);
	} else {
		x->plan->rows[i].rerun = true;
		x->plan->rows[i].lifted = "accept-missing-artifacts";
		resume_decide(x, i, RESUME_RUN, "runs again: %s", lost);
	}
	return true;
}

/* Its latest attempt outlived the worker, and was not ended by a command since. */
static bool
is_survivor(const struct examining *x, size_t i)
{
	const char *word = resume_fact(x, i, "survivor");

	return word != NULL && strcmp(word, "stopped") != 0;
}

/* Of one that runs again all the same, how its latest attempt was given up; before the words for that. */
static const char *
given_up(const struct examining *x, size_t i)
{
	const char *word = resume_fact(x, i, "survivor");

	return !is_survivor(x, i)	     ? ""
	    : strcmp(word, "running") == 0 ? "is ended and "
	    : strcmp(word, "ended") == 0   ? "has ended without its worker, and "
					   : "its end is not known yet; ";
}

static void
take_over(struct examining *x, size_t i)
{
	const char *word = resume_fact(x, i, "survivor");

	if (strcmp(word, "unknown") == 0)
		resume_decide(x, i, RESUME_TAKE_OVER, "its end is not known yet: a resume asks first%s", may_repeat(x, i)
			? ", and runs it again where nobody knows"
			: ", and is refused without --rerun-in-flight where nobody knows");
	else
		resume_decide(x, i, RESUME_TAKE_OVER, "%s", strcmp(word, "running") == 0
			? "still runs" : "has ended without its worker");
}

/* A turn that was to take messages is done again, and nothing before it. False when there is none. */
static bool
decide_turn(struct examining *x, size_t i)
{
	int64_t turn = x->plan->rows[i].turn, recorded = 0;

	if (turn == 0 || decide_lost(x, i, false))
		return turn != 0;
	json_int64(json_get(x->plan->rows[i].entry, "attempts"), &recorded);
	if ((int64_t)x->history[i].attempts > recorded && is_survivor(x, i))
		take_over(x, i);
	else if (x->in->may_have_gone_on && !may_repeat(x, i))
		resume_refuse(x, i, 7, "rerun-in-flight",
		    "a further turn of it may have been started by the run that this is a copy of; it is marked idempotent: false");
	else if ((int64_t)x->history[i].attempts > recorded && !may_repeat(x, i))
		resume_refuse(x, i, 7, "rerun-in-flight",
		    "a further turn of it was started, left no outcome, and it is marked idempotent: false");
	else
		resume_decide(x, i, RESUME_REPLAY, "completed; turn %lld, for messages, runs again",
		    (long long)turn);
	return true;
}

/* What another try stands for is judged by that: it is neither run again nor a failure. */
static bool
decide_replaced(struct examining *x, size_t i)
{
	const struct flow *f = x->in->flow;
	bool completed = slice_is(json_text(json_get(x->plan->rows[i].entry, "status")), "completed");

	if (!flow_is_replaced(f, (uint32_t)i))
		return false;
	if (!decide_lost(x, i, false))
		resume_decide(x, i, completed ? RESUME_REPLAY : RESUME_KEEP_FAILED, "%s; %s stands for it",
		    completed ? "completed" : "failed", f->ops[flow_final(f, (uint32_t)i)].id);
	return true;
}

/* The synthesis stands behind everything that was added, too, but for what came of itself. */
static size_t
added_rerun(const struct examining *x)
{
	const struct flow *f = x->in->flow;
	size_t i;

	for (i = f->nplanned; i < f->nops; i++)
		if (x->plan->rows[i].renewed && !flow_is_of_synthesis(f, (uint32_t)i))
			return i;
	return SIZE_MAX;
}

/* The first of what it needs that runs again, or that was skipped for what does; SIZE_MAX: none. */
static size_t
needs_rerun(const struct examining *x, size_t i)
{
	const struct flow_op *op = &x->in->flow->ops[i];
	uint32_t n;

	for (n = 0; n < op->nneeds; n++)
		if (x->plan->rows[op->needs[n].op].renewed)
			return op->needs[n].op;
	return i == x->in->flow->synthesis_op ? added_rerun(x) : SIZE_MAX;
}

bool
resume_was_denied(const struct flow_op *op, const struct json *entry)
{
	return op->how->gate_approve && slice_is(json_text(json_get(json_get(entry, "error"), "class")), "denied");
}

bool
resume_lacked_room(const struct resume_input *in, const struct flow_op *op, const struct json *entry)
{
	struct slice class = json_text(json_get(json_get(entry, "error"), "class"));

	return op->how->foreach_pointer != NULL && ((in->lacks_room && slice_is(class, "limit")) ||
	    (in->lacks_list && (slice_is(class, "response") || slice_is(class, "limit"))));
}

/* What may be done about it. */
static const char *
lift_of_failure(const struct examining *x, size_t i)
{
	const struct flow_op *op = &x->in->flow->ops[i];
	const struct json *entry = x->plan->rows[i].entry;

	return resume_was_denied(op, entry)		  ? RESUME_LIFTS_DENIED
	    : resume_lacked_room(x->in, op, entry) ? RESUME_LIFTS_HOPELESS
						     : RESUME_LIFTS_FAILED;
}

static void
decide_failed(struct examining *x, size_t i)
{
	const char *policy = failed_policy(x);
	bool denied = resume_was_denied(&x->in->flow->ops[i], x->plan->rows[i].entry);
	const char *message = json_cstr_of(json_get(json_get(x->plan->rows[i].entry, "error"), "message"));
	size_t before = needs_rerun(x, i);

	if (x->in->flags.retry_failed || x->in->flags.keep_failed)
		x->plan->rows[i].lifted = x->in->flags.retry_failed ? "retry-failed" : "keep-failed";
	if (strcmp(policy, "retry") == 0 && decide_turn(x, i))
		return;
	if (strcmp(policy, "retry") == 0) {
		x->plan->rows[i].rerun = true;
		/* What it had further tries for leaves with them, and only that says why. */
		resume_decide(x, i, RESUME_RUN, "failed (%s), %s%s%s", message ? message : "no reason",
		    denied ? "asks for approval again" : "runs again", before != SIZE_MAX ? ", as does " : "",
		    before != SIZE_MAX ? x->in->flow->ops[before].id : "");
	} else if (strcmp(policy, "keep") != 0 && before != SIZE_MAX) {
		/* It failed at what is not to be any more; rerun_behind() looks whether it may. */
		resume_decide(x, i, RESUME_RUN, "failed (%s)", message ? message : "no reason");
	} else if (strcmp(policy, "keep") != 0) {
		struct buf text = {0};

		buf_printf(&text, "it failed: %s", message ? message : "no reason");
		resume_refuse(x, i, 3, lift_of_failure(x, i), buf_text(&text));
		buf_clear(&text);
	} else if (!decide_lost(x, i, false)) {
		resume_decide(x, i, RESUME_KEEP_FAILED, "failed (%s)", message ? message : "no reason");
	}
}

static void
decide_replayed(struct examining *x, size_t i)
{
	const char *artifacts = "", *output = "";
	int64_t unverified = 0;

	json_int64(json_get(json_get(x->in->facts, x->in->flow->ops[i].id), "unverified"), &unverified);
	if (unverified > 0)
		artifacts = "; artifacts not verified (no digest was recorded)";
	if (resume_output_unknown(&x->in->flow->ops[i], x->plan->rows[i].entry))
		output = "; output not verified (no digest was recorded)";
	resume_decide(x, i, RESUME_REPLAY, "completed%s%s", artifacts, output);
}

static void
decide_completed(struct examining *x, size_t i)
{
	if (!decide_lost(x, i, true) && !decide_turn(x, i))
		decide_replayed(x, i);
}

/* ---- One without ---- */

/* Its attempts ended by failures that are tried again: nothing is unknown, and the live run would
 * have gone on in the same way. */
static bool
waits_for_retry(struct examining *x, size_t i)
{
	const struct history *h = &x->history[i];
	const char *class = json_cstr_of(resume_end_member(x, i, "class"));
	int64_t code = 0;

	if (class == NULL || strcmp(class, "completed") == 0 || strcmp(class, "cancelled") == 0)
		return false;
	/* An answer that was no plan is answered, and one that was refused for good has an outcome. */
	if (x->in->flow->unplanned && i == x->in->flow->planner_op && strcmp(class, "response") == 0)
		return true;
	json_int64(resume_end_member(x, i, "code"), &code);
	return flow_retry_applies(&x->in->flow->ops[i].how->retry, class, (int)code, h->attempts);
}

static const char *
why_run_again(struct examining *x, size_t i)
{
	const char *class = json_cstr_of(resume_end_member(x, i, "class"));

	if (resume_fact(x, i, "unusable") != NULL)
		return resume_fact(x, i, "unusable");
	/* By a command, or by the limit of what outlives its worker. */
	if (class == NULL && resume_fact(x, i, "survivor") != NULL && !is_survivor(x, i))
		return "was ended when its worker was dead";
	if (class == NULL)
		return "was in flight when its worker ended";
	if (strcmp(class, "completed") == 0)
		return "was executed, but its outcome was not saved";
	if (strcmp(class, "cancelled") == 0)
		return "was ended by a stop";
	return waits_for_retry(x, i) ? "failed, and its next attempt was not started"
				     : "failed, but its outcome was not saved";
}

/* Whether a line that would tell of a start may be missing or unreadable. */
static bool
log_is_doubtful(const struct examining *x)
{
	return x->in->no_attempts || x->in->attempts->torn || x->in->attempts->damaged > 0;
}

/* Whether the torn last line may be the start of an attempt that this log tells nothing else of. */
static bool
may_be_hidden(struct examining *x, size_t i)
{
	return x->history[i].attempts == 0 || waits_for_retry(x, i);
}

/* Why it must not simply be started; false when it may. */
static bool
is_unknown(struct examining *x, size_t i, struct buf *why)
{
	const struct history *h = &x->history[i];

	if (x->in->lost_attempts && x->history[i].end == NULL) {
		buf_printf(why, "%s is %s, so it may have been started", RUN_ATTEMPTS,
		    x->in->no_attempts ? "gone" : "damaged");
		return true;
	}
	if (x->in->hidden_start && may_be_hidden(x, i)) {
		buf_printf(why, "the last line of %s is torn, so it may have been started", RUN_ATTEMPTS);
		return true;
	}
	if (x->in->flow->ops[i].how->idempotent ||
	    (h->started && !x->in->attempts->torn && waits_for_retry(x, i) && !x->in->may_have_gone_on))
		return false;
	if (h->started && !waits_for_retry(x, i))
		buf_printf(why, "it %s, and is marked idempotent: false", why_run_again(x, i));
	else if (x->in->no_attempts)
		buf_printf(why, "there is no %s, so it may have been started; it is marked "
				"idempotent: false", RUN_ATTEMPTS);
	else if (log_is_doubtful(x))
		buf_printf(why, "%s is damaged, so it may have been started; it is marked "
				"idempotent: false", RUN_ATTEMPTS);
	else if (x->in->may_have_gone_on)
		buf_puts(why, "it may have been started by the run that this is a copy of, whose files are not here; "
			      "it is marked idempotent: false");
	return why->len > 0;
}

static void
decide_unfinished(struct examining *x, size_t i)
{
	struct buf why = {0};
	bool unknown = is_unknown(x, i, &why);

	if (is_survivor(x, i)) {
		take_over(x, i);
	} else if (resume_fact(x, i, "killed") != NULL) {
		x->plan->rows[i].lifted = "retry-failed";
		resume_decide(x, i, RESUME_RUN, "failed (ended by %s), runs again", resume_fact(x, i, "killed"));
	} else if (unknown && !x->in->flags.rerun_in_flight) {
		resume_refuse(x, i, 7, "rerun-in-flight", buf_text(&why));
	} else if (unknown) {
		x->plan->rows[i].lifted = "rerun-in-flight";
		resume_decide(x, i, RESUME_RUN, "%s; it runs all the same", buf_text(&why));
	} else if (x->history[i].started) {
		resume_decide(x, i, RESUME_RUN, "%s", why_run_again(x, i));
	} else {
		resume_decide(x, i, RESUME_RUN, "not started yet");
	}
	buf_clear(&why);
}

/* ---- By request ---- */

/* What was done already is done a second time, so only with leave where that matters. A failure has
 * that leave: who names it wants it to run. False when nothing was done, or nothing asks for it. */
static bool
decide_again(struct examining *x, size_t i)
{
	const struct json *how = json_get(x->in->again, x->in->flow->ops[i].id);
	const char *problem = json_cstr_of(json_get(how, "problem"));
	const char *why = json_cstr_of(json_get(how, "why"));
	bool failed = slice_is(json_text(json_get(x->plan->rows[i].entry, "status")), "failed");
	struct resume_row *row = &x->plan->rows[i];
	struct buf text = {0};

	if (problem != NULL)
		resume_refuse(x, i, 2, NULL, problem);
	if (how == NULL || problem != NULL || (x->plan->rows[i].entry == NULL && !x->history[i].started))
		return problem != NULL;
	buf_printf(&text, "%s, it was started before, and it is marked idempotent: false", why);
	if (!failed && !may_repeat(x, i) && !waits_for_retry(x, i)) {
		resume_refuse(x, i, 7, "rerun-in-flight", buf_text(&text));
	} else {
		row->rerun = true;
		row->lifted = json_cstr_of(json_get(how, "flag"));
		resume_decide(x, i, RESUME_RUN, "%sruns again: %s", given_up(x, i), why);
	}
	buf_clear(&text);
	return true;
}

/* ---- What follows from the predecessors ---- */

static enum flow_outcome
outcome_of(enum resume_action action)
{
	return action == RESUME_REPLAY ? FLOW_COMPLETED
	    : action == RESUME_KEEP_FAILED ? FLOW_FAILED : FLOW_SKIPPED;
}

/* An operation whose predecessor runs again has seen what is not to be any more. */
static void
rerun_behind(struct examining *x, size_t i)
{
	const struct flow_op *op = &x->in->flow->ops[i];
	struct resume_row *row = &x->plan->rows[i];
	size_t before = needs_rerun(x, i);

	if ((x->plan->rows[i].entry == NULL && row->action != RESUME_TAKE_OVER) || row->rerun ||
	    row->action == RESUME_REFUSED || before == SIZE_MAX)
		return;
	if (!may_repeat(x, i)) {
		resume_refuse(x, i, 7, "rerun-in-flight",
		    "what it needs runs again, and it is marked idempotent: false");
		return;
	}
	row->rerun = x->plan->rows[i].entry != NULL;
	row->lifted = op->how->idempotent ? NULL : "rerun-in-flight";
	resume_decide(x, i, RESUME_RUN, "%sruns again, because %s does",
	    given_up(x, i), x->in->flow->ops[before].id);
}

static void
skip_behind(struct examining *x, size_t i)
{
	const struct flow_op *op = &x->in->flow->ops[i];
	struct err e = {0};
	uint32_t n;

	if (x->plan->rows[i].action != RESUME_RUN)
		return;
	if (op->never) {
		resume_decide(x, i, RESUME_SKIP, "a condition of its edges is not met");
		return;
	}
	for (n = 0; n < op->nneeds; n++) {
		const struct flow_edge *edge = &op->needs[n];
		enum resume_action before = x->plan->rows[edge->op].action;
		bool holds = true;

		if (before == RESUME_RUN || before == RESUME_TAKE_OVER || before == RESUME_REFUSED)
			continue;
		if (flow_need_holds_entry(x->in->flow, edge, outcome_of(before),
			x->plan->rows[edge->op].entry, x->in->answers, &holds, &e) != 0)
			x->failed |= e.code != ERR_LIMIT; /* which the worker fails it with */
		if (holds)
			continue;
		resume_decide(x, i, RESUME_SKIP, "%s %s", x->in->flow->ops[edge->op].id,
		    before == RESUME_SKIP ? "is skipped"
			: before == RESUME_KEEP_FAILED ? "failed" : "does not lead here");
		return;
	}
}

/* ---- What the checkpoint has lost ---- */

/* What was added while the run went is recorded before it starts. Where an end of the journal is gone with
 * such entries, a durable mark still says what was started and must not be repeated. */
static void
check_lost(struct examining *x)
{
	struct json_iter it = json_iterate(x->in->facts);
	const struct json *fact;
	struct slice name;
	const char *op;

	while (json_next(&it, &name, &fact)) {
		op = json_cstr_of(json_iter_name(&it));
		if (op == NULL || !json_is_true(json_get(fact, "started")) ||
		    flow_find(x->in->flow, op) != SIZE_MAX || json_find(x->in->added, "spawn_id", op) != NULL)
			continue;
		if (x->in->flags.rerun_in_flight)
			x->plan->lost = json_append(x->plan->lost, json_cstr(op));
		else
			resume_fail(x->plan, 7, op, "rerun-in-flight",
			    "it was started and must not be repeated, and the checkpoint has no entry of it");
	}
	x->failed = x->failed || x->plan->lost == NULL;
}

/* ---- All of it ---- */

/* Refused only because it must not be repeated: with leave for that it runs again, and what is behind it is
 * asked for as well, so that the one flag lifts nothing that was not said. */
static bool
would_repeat(const struct resume_row *row)
{
	return row->action == RESUME_REFUSED && row->check == 7 && row->entry != NULL;
}

static void
decide_one(struct examining *x, size_t i)
{
	const char *status = json_cstr_of(json_get(x->plan->rows[i].entry, "status"));

	x->plan->rows[i].had_outcome = status != NULL;
	if (!begins_fork(x, i) && refuse_response(x, i))
		;
	else if (decide_again(x, i))
		;
	else if (status == NULL)
		decide_unfinished(x, i);
	else if (decide_replaced(x, i))
		;
	else if (strcmp(status, "completed") == 0)
		decide_completed(x, i);
	else
		decide_failed(x, i);
	rerun_behind(x, i);
	skip_behind(x, i);
	x->plan->rows[i].renewed = x->plan->rows[i].rerun || would_repeat(&x->plan->rows[i]) ||
	    (x->plan->rows[i].entry == NULL && x->plan->rows[i].action == RESUME_RUN && needs_rerun(x, i) != SIZE_MAX);
	resume_check_environment(x, i);
	resume_check_conversation(x, i);
	resume_check_turn(x, i);
	resume_check_added(x, i);
}

/* NULL also of what was added and is pending. */
static const struct json *
outcome_entry(const struct examining *x, size_t i)
{
	const struct flow_grown *g = flow_grown(x->in->flow, (uint32_t)i);

	if (g == NULL)
		return json_get(x->entries, x->in->flow->ops[i].id);
	return slice_is(json_text(json_get(g->entry, "status")), "pending") ? NULL : g->entry;
}

static void
examine_operations(struct examining *x)
{
	const struct flow *f = x->in->flow;
	struct err ignored = {0}, *e = &ignored;
	size_t i;

	x->entries = json_get(x->in->state, "ops");
	for (i = 0; i < f->nops; i++) {
		struct resume_row *row = &x->plan->rows[i];

		row->entry = outcome_entry(x, i);
		if (i < f->nplanned)
			row->turn = resume_open_turn(x->in->state, f->ops[i].id, row->entry);
	}
	if (resume_judge_added(x->in, x->plan, e) != 0)
		x->failed = true;
	flow_judge_outcomes(f, x->in->state, resume_state_problem, x->plan);
	read_history(x);
	if (x->in->artifact_root_problem != NULL && !x->in->flags.accept_missing_artifacts)
		resume_fail(x->plan, 4, NULL, "accept-missing-artifacts", "%s", x->in->artifact_root_problem);
	/* Predecessors first: what becomes of one decides what becomes of those behind it. */
	for (i = 0; i < f->nops; i++)
		decide_one(x, f->order[i]);
	check_providers(x);
	resume_check_emitters(x);
	resume_check_variables(x);
	resume_check_programs(x);
	check_lost(x);
	for (i = 0; i < f->nops; i++)
		x->plan->counts[x->plan->rows[i].action]++;
}

static int
allocate(struct examining *x, struct err *e)
{
	size_t n = x->in->flow->nops;

	x->plan->rows = calloc(n + 1, sizeof(*x->plan->rows));
	x->history = calloc(n + 1, sizeof(*x->history));
	if (x->plan->rows == NULL || x->history == NULL)
		return err_nomem(e);
	x->plan->nrows = n;
	return 0;
}

int
resume_examine(const struct resume_input *in, struct resume_plan *out, struct err *e)
{
	struct resume_plan p = {
	    .failures = json_array(), .added = json_array(), .dropped = json_array(), .lost = json_array()};
	struct examining x = {.in = in, .plan = &p};
	int rc = 0;

	x.failed = p.failures == NULL || p.added == NULL || p.dropped == NULL || p.lost == NULL;
	if (!x.failed && check_whole(&x)) {
		rc = allocate(&x, e);
		if (rc == 0)
			examine_operations(&x);
	}
	if (rc == 0 && (x.failed || p.failures == NULL))
		rc = err_nomem(e);
	free(x.history);
	lacking_clear(&x.lacking);
	if (rc == 0)
		*out = p;
	else
		resume_plan_clear(&p);
	return rc;
}

bool
resume_is_accepted(const struct resume_plan *p)
{
	return json_length(p->failures) == 0;
}

void
resume_plan_clear(struct resume_plan *p)
{
	size_t i;

	for (i = 0; i < p->nrows; i++)
		free(p->rows[i].reason);
	free(p->rows);
	json_unref(p->failures);
	json_unref(p->dropped);
	json_unref(p->lost);
	json_unref(p->added);
	*p = (struct resume_plan){0};
}

/* ---- What goes on ---- */

struct json *
resume_attempts(const struct resume_input *in, const struct resume_plan *p)
{
	const struct json *before = json_get(json_get(in->state, "config"), "attempts"), *earlier;
	struct json *counts = json_object();
	const struct resume_row *row;
	size_t i;

	/* One that runs again by request begins anew, and so does what needs it. What this run did not
	 * start has the count that it was given. */
	for (i = 0; i < p->nrows; i++) {
		row = &p->rows[i];
		if ((row->action != RESUME_RUN || row->renewed) && row->action != RESUME_TAKE_OVER && row->turn == 0)
			continue;
		earlier = json_get(before, in->flow->ops[i].id);
		if (row->attempts > 0)
			counts = json_set(counts, in->flow->ops[i].id, json_uint(row->attempts));
		else if (earlier != NULL)
			counts = json_set(counts, in->flow->ops[i].id, json_ref(earlier));
	}
	return counts;
}
