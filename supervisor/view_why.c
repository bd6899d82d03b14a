/* Why an operation is where it is: a sentence for `show`. */
#include <fcntl.h>
#include <string.h>

#include "flowsup/checkpoint.h"
#include "flowsup/clock.h"
#include "flowsup/exits.h"
#include "flowsup/fs.h"
#include "live.h"
#include "output.h"
#include "render.h"
#include "seek.h"
#include "view_ops.h"

enum { NAMED_MOST = 3, TEXT_MOST = 60 };

/* "a, b, c and 4 more" of the operations that an edge leads from, where wanted. */
struct names {
	const char *before; /* stands before the first */
	size_t count;
	struct buf *to;
};

static void
add_name(struct names *n, const char *name)
{
	if (n->count < NAMED_MOST)
		buf_printf(n->to, "%s%s", n->count == 0 ? n->before : ", ", name);
	n->count++;
}

static bool
end_names(const struct names *n)
{
	if (n->count > NAMED_MOST)
		buf_printf(n->to, " and %zu more", n->count - NAMED_MOST);
	return n->count > 0;
}

static const char *
before_of(const struct run_files *f, size_t op, size_t edge)
{
	return f->flow->ops[f->flow->ops[op].needs[edge].op].id;
}

/* Whether it is known that all slots are taken. */
static bool
slots_are_taken(const struct run_files *f, const struct op_view *ops)
{
	size_t i, running = 0;

	for (i = 0; i < f->flow->nops; i++)
		running += ops[i].state == OP_RUNNING;
	return f->flow->concurrency > 0 && running >= f->flow->concurrency;
}

static bool
is_open(const struct op_view *v)
{
	return !view_is_settled(v->state);
}

static bool
is_unsaved(const struct op_view *v)
{
	return v->entry == NULL && v->end != NULL;
}

/* Those that it needs; the synthesis stands behind what was added, too, but for what came of itself. */
static void
add_before(const struct run_files *f, size_t op, const struct op_view *ops,
    bool (*wanted)(const struct op_view *v), struct names *n)
{
	const struct flow_op *o = &f->flow->ops[op];
	size_t i, need = 0;

	for (i = 0; i < o->nneeds; i++)
		if (wanted(&ops[o->needs[i].op]))
			add_name(n, before_of(f, op, i));
	for (i = f->flow->nplanned; i < f->flow->nops && flow_is_synthesis(f->flow, (uint32_t)op); i++) {
		while (need < o->nneeds && o->needs[need].op < i)
			need++;
		if ((need == o->nneeds || o->needs[need].op != i) && !flow_is_of_synthesis(f->flow, (uint32_t)i) &&
		    wanted(&ops[i]))
			add_name(n, f->flow->ops[i].id);
	}
}

/* The first failure ends the start of anything: one of this run, or one that it was not told to go on with. */
static bool
is_failing_fast(const struct run_files *f, const struct session *s, const struct op_view *ops)
{
	const struct json *state = view_state(f);
	const struct json *kept = json_get(json_get(state, "config"), CONFIG_KEPT);
	bool any = f->flow->fail_fast && json_is_true(json_get(s->metadata, META_FAILURES));
	size_t i;

	for (i = 0; any && i < f->flow->nops; i++)
		if (ops[i].state == OP_FAILED && !flow_is_replaced(f->flow, (uint32_t)i) &&
		    json_get(kept, f->flow->ops[i].id) == NULL)
			return true;
	return false;
}

/* Of a run that is at its end. */
static void
why_withheld(const struct run_files *f, const struct session *s, const struct op_view *ops, struct buf *to)
{
	bool failed = s->status == STATUS_FAILED && s->reason_code != NULL &&
	    strcmp(s->reason_code, "run.failed.operation") == 0;

	if (failed && is_failing_fast(f, s, ops))
		buf_puts(to, "not started: the run ended with its first failure");
	else if (failed || s->status == STATUS_TIMED_OUT)
		buf_puts(to, "not started: the deadline had passed");
	else if (s->status == STATUS_CRASHED &&
	    (f->attempts.damaged > 0 || f->attempts.torn ||
		seek_lacks_attempts(seek_has_started(f->fd, s->started_at), &f->attempts)))
		buf_puts(to, "whether it was started is not known: " RUN_ATTEMPTS " does not tell");
	else
		buf_puts(to, "not started before the run ended");
}

/* It has its slot, and something else holds it up. */
static bool
add_wait(const struct op_view *v, struct buf *to)
{
	struct slice what = json_text(json_get(v->recent, "waits_for"));

	if (what.len == 0)
		return false;
	buf_puts(to, "waits for ");
	buf_slice(to, what);
	return true;
}

static void
why_unstarted(const struct run_files *f, const struct session *s, size_t op,
    const struct op_view *ops, struct buf *to)
{
	struct names waits = {.before = "needs ", .to = to};
	struct names unsaved = {.before = "waits for the checkpoint to hold ", .to = to};

	add_before(f, op, ops, is_open, &waits);
	if (end_names(&waits))
		return;
	if (status_is_terminal(s->status)) {
		why_withheld(f, s, ops, to);
		return;
	}
	if (f->stopped) {
		buf_puts(to, "not started any more: the run is stopping");
		return;
	}
	if (s->status == STATUS_QUEUED) {
		buf_puts(to, "waits for the run to start, which ");
		if (f->waits != NULL)
			buf_puts(to, f->waits);
		else
			view_reason(s, to);
		return;
	}
	if (session_is_draining(s)) {
		buf_puts(to, "not started any more: the deadline has passed");
		return;
	}
	if (is_failing_fast(f, s, ops)) {
		buf_puts(to, "not started any more: the run ends with its first failure");
		return;
	}
	/* Nothing begins behind what could be lost. */
	add_before(f, op, ops, is_unsaved, &unsaved);
	if (end_names(&unsaved))
		return;
	if (f->trouble.len > 0)
		buf_puts(to, "waits until the state can be saved");
	else if (!add_wait(&ops[op], to))
		buf_puts(to, s->status == STATUS_PAUSED ? "waits at the closed gate" : "waits for a slot");
}

static bool
add_unmet(const struct flow *f, const struct op_view *ops, size_t op, struct buf *to)
{
	const struct flow_edge *edge;
	uint32_t n;

	for (n = 0; n < f->ops[op].nneeds; n++) {
		edge = &f->ops[op].needs[n];
		if (!view_is_unmet(f, edge, &ops[edge->op]))
			continue;
		flow_need_unmet_entry(f, edge, view_outcome(ops[edge->op].state), ops[edge->op].entry,
		    ops[edge->op].answers, to);
		return true;
	}
	return false;
}

static void
why_skipped(const struct run_files *f, const struct op_view *ops, size_t op, struct buf *to)
{
	size_t blocker = ops[op].blocker;

	/* The one that all of it comes from, as its event names it. */
	while (blocker != SIZE_MAX && blocker != op && ops[blocker].state == OP_SKIPPED &&
	    ops[blocker].blocker != SIZE_MAX && ops[blocker].blocker != blocker)
		blocker = ops[blocker].blocker;
	if (blocker == SIZE_MAX)
		blocker = op;
	if (blocker == op && add_unmet(f->flow, ops, op, to))
		return;
	render_cause(to, f->flow->ops[op].id, f->flow->ops[blocker].id,
	    ops[blocker].state == OP_FAILED ? "failed" : ops[blocker].state == OP_SKIPPED ? "skipped" : "completed");
}

/* ---- Why it was started ---- */

/* The rest begins behind what is there. */
static void
separate(struct buf *to)
{
	if (to->len > 0)
		buf_puts(to, "; ");
}

/* Behind what it explains, and not the whole of a long text. */
static void
add_text(struct buf *to, const char *before, struct slice text)
{
	if (text.len == 0)
		return;
	buf_puts(to, before);
	text_fit(to, text, TEXT_MOST, true);
}

static void
add_origin(const struct run_files *f, size_t op, struct buf *to)
{
	const struct flow_grown *g = flow_grown(f->flow, (uint32_t)op);
	const char *item = f->flow->ops[op].item;

	if (g != NULL || item != NULL)
		separate(to);
	if (item != NULL)
		add_text(to, "item ", slice_of(item));
	if (g == NULL)
		return;
	if (g->kind == FLOW_GROWN_ITEM)
		buf_puts(to, item != NULL ? " of " : "item of ");
	else
		buf_printf(to, "%s%s", item != NULL ? "; " : "",
		    g->kind == FLOW_GROWN_RETRY ? "another try of " : "asked for by ");
	buf_puts(to, g->emitter != FLOW_NO_OP ? f->flow->ops[g->emitter].id : "an earlier one");
	add_text(to, ": ", json_text(json_get(g->entry, "reason")));
}

/* What had to go wrong, and what did not matter. */
static void
add_conditions(const struct run_files *f, size_t op, const struct op_view *ops, struct buf *to)
{
	const struct flow_op *o = &f->flow->ops[op];
	struct names because = {.before = "because of the failure of ", .to = to};
	struct names although = {.before = "whatever became of ", .to = to};
	size_t i;

	for (i = 0; i < o->nneeds; i++) {
		if (o->needs[i].on != FLOW_ON_FAILURE)
			continue;
		if (because.count == 0)
			separate(to);
		add_name(&because, before_of(f, op, i));
	}
	end_names(&because);
	for (i = 0; i < o->nneeds; i++) {
		if (o->needs[i].on != FLOW_ON_ALWAYS || ops[o->needs[i].op].state == OP_COMPLETED)
			continue;
		if (although.count == 0)
			separate(to);
		add_name(&although, before_of(f, op, i));
	}
	end_names(&although);
}

/* "exit 3", "timeout": of a line of attempts.log. */
static void
add_class(const struct json *end, const char *status, struct buf *to)
{
	struct slice class = json_text(json_get(end, "class"));

	buf_slice(to, class);
	if (slice_is(class, "exit"))
		buf_printf(to, "%s %lld", status, (long long)view_number(end, "code", 0));
}

static void
add_attempt(const struct op_view *v, struct buf *to)
{
	struct slice class = json_text(json_get(v->before, "class"));

	if (class.len == 0)
		return;
	separate(to);
	if (slice_is(class, "completed")) {
		buf_puts(to, "a further turn");
		return;
	}
	buf_puts(to, "again after ");
	add_class(v->before, "", to);
}

/* Who let it pass its gate; a denial is its outcome, which says so itself. */
static void
add_approval(const struct run_files *f, size_t op, struct buf *to)
{
	const struct json *state = view_state(f);
	const struct json *all = json_get(json_get(state, "flow_context"), "approvals");
	const struct json *verdict = json_get(all, f->flow->ops[op].id);
	char text[DURATION_TEXT];
	double at;

	if (!f->flow->ops[op].how->gate_approve || !slice_is(json_text(json_get(verdict, "verdict")), "approved"))
		return;
	separate(to);
	buf_puts(to, "approved");
	add_text(to, " by ", json_text(json_get(verdict, "by")));
	if (json_double(json_get(verdict, "at"), &at))
		buf_printf(to, " %s ago", duration_format(clock_wall_ns() - (int64_t)(at * (double)NS_PER_S), text));
	add_text(to, ": ", json_text(json_get(verdict, "note")));
}

static void
why_ran(const struct run_files *f, const struct session *s, size_t op, const struct op_view *ops, struct buf *to)
{
	const char *run = json_cstr_of(json_get(ops[op].start, "run"));
	struct names after = {.before = "after ", .to = to};
	size_t i;

	/* Of a run that was resumed by its path its files lie here. */
	if (run != NULL && strcmp(run, s->run_id) != 0) {
		separate(to);
		buf_printf(to, "taken over from run %s", run);
	}
	add_approval(f, op, to);
	add_origin(f, op, to);
	if (flow_grown(f->flow, (uint32_t)op) == NULL)
		add_conditions(f, op, ops, to);
	add_attempt(&ops[op], to);
	for (i = 0; (to->len == 0 || after.count > 0) && i < f->flow->ops[op].nneeds; i++)
		add_name(&after, before_of(f, op, i));
	if (!end_names(&after) && to->len == 0)
		buf_puts(to, "needs nothing");
}

/* ---- All of it ---- */

/* What a program said last before it failed tells more than its status; where the message has it, that was the
 * worker. */
static void
add_last_words(const struct run_files *f, const struct op_view *v, struct slice class, struct slice message,
    struct buf *to)
{
	const char *op = json_cstr_of(json_get(v->start, "op"));
	struct buf line = {0};

	if (v->state != OP_FAILED || v->carried || op == NULL || json_get(v->start, "run") != NULL ||
	    !slice_is(class, "exit") || message.len == 0 || memchr(message.data, ':', message.len) != NULL)
		return;
	live_last_line(f->fd, op, view_number(v->start, "attempt", 1), "err", &line);
	add_text(to, ": ", buf_view(&line));
	buf_clear(&line);
}

/* By its class a document retries it and a script tells it from others; some messages begin with that word, or say
 * no more. */
static void
add_message(struct slice class, struct slice message, struct buf *to)
{
	bool says_it = slice_is(class, "exit") || slice_is(class, "signal") ||
	    (message.len >= class.len && memcmp(message.data, class.data, class.len) == 0);

	if (!says_it) {
		buf_slice(to, class);
		buf_puts(to, ": ");
	}
	buf_slice(to, message);
}

static bool
is_ended_by_us(struct slice class)
{
	return slice_is(class, "timeout") || slice_is(class, "silence") || slice_is(class, "cancelled");
}

/* What a process that was told to end has made of it; its signal is told elsewhere. */
static void
add_status(const struct json *end, struct buf *to)
{
	int64_t code = view_number(end, "code", -1);

	if (code >= 0)
		buf_printf(to, "%sleft with status %lld when told to", to->len > 0 ? "; " : "", (long long)code);
}

/* Of a process that did not leave with 0 by itself, and whose result counts all the same. */
static void
add_end(const struct json *end, struct buf *to)
{
	buf_puts(to, json_is_true(json_get(end, CKPT_HUNG)) ? "did not leave after its result, and was ended"
							     : "gave its result; how its process ended is not known");
	add_status(end, to);
}

static void
why_ended(const struct run_files *f, const struct op_view *v, struct buf *to)
{
	const char *unsaved = json_find(f->problems, "file", CKPT_BASE) == NULL
	    ? "executed, not saved"
	    : "executed; whether it was saved is not known";
	const struct json *error = json_get(v->entry, "error");
	bool was_stopped = slice_is(json_text(json_get(v->end, "class")), "cancelled");
	struct slice message = json_text(json_get(error, "message"));
	struct slice class = json_text(v->entry != NULL ? json_get(error, "class")
							: json_get(v->end, "class"));

	if (v->state == OP_CANCELLED && json_is_true(json_get(v->recent, "reading"))) {
		buf_printf(to, "its process had ended; what it left was not read to its end before the stop%s",
		    v->end == NULL ? ": a resume reads it" : "");
		return;
	}
	if (json_type(json_get(v->entry, CKPT_END)) == JSON_OBJECT)
		add_end(json_get(v->entry, CKPT_END), to);
	else if (message.len > 0)
		add_message(class, message, to);
	else if (class.len > 0 && !slice_is(class, "completed"))
		add_class(v->entry != NULL ? error : v->end, " status", to); /* as a message would say it */
	add_last_words(f, v, class, message, to);
	if (is_ended_by_us(class) && view_number(v->entry != NULL ? error : v->end, "signal", 0) == 0)
		add_status(v->entry != NULL ? error : v->end, to);
	if (v->state == OP_CANCELLED)
		buf_printf(to, "%s%s", to->len > 0 ? "; " : "",
		    was_stopped ? "ended by a stop" : "its next attempt was not started");
	else if (v->end != NULL && (v->entry == NULL || f->state_error.code != ERR_NONE))
		buf_printf(to, "%s%s", to->len > 0 ? "; " : "", unsaved);
	else if (v->carried)
		buf_puts(to, to->len > 0 ? "; replayed" : "replayed from an earlier run");
}

static const char *
how_far(const struct op_view *v)
{
	switch (v->state) {
	case OP_RUNNING:
	case OP_READING:
		return "is being tried";
	case OP_PENDING:
	case OP_WAITING:
		return v->start != NULL ? "is being tried" : "is to be tried";
	case OP_SKIPPED:
		return "was to be tried";
	case OP_COMPLETED:
	case OP_FAILED:
	case OP_CANCELLED:
	case OP_INTERRUPTED:
		break;
	}
	return "was tried";
}

static void
why_replaced(const struct run_files *f, uint32_t op, const struct op_view *ops, struct buf *to)
{
	uint32_t last = flow_final(f->flow, op);

	if (last != op)
		buf_printf(to, "%s%s %s in its place", to->len > 0 ? "; " : "", f->flow->ops[last].id, how_far(&ops[last]));
}

/* What lies beside the output of an attempt without an end, as a resume judges it; *has_outcome: that it takes
 * over. */
static const char *
end_beside(const struct run_files *f, const struct json *start, bool *has_outcome)
{
	const char *op = json_cstr_of(json_get(start, "op")), *run = json_cstr_of(json_get(start, "run"));
	char dir[ATTEMPT_DIR_TEXT], class[STOP_CLASS_TEXT] = "";
	struct exit_record end;
	bool known;
	int fd;

	*has_outcome = false;
	/* That of an earlier run lies there. */
	if (op == NULL || run != NULL)
		return NULL;
	fd = openat(f->fd, RUN_OPS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	attempt_dir(op, (unsigned)view_number(start, "attempt", 1), dir);
	known = fd >= 0 && exit_record_read(fd, dir, view_start_id(start), &end, NULL) == 0;
	if (fd < 0 || stop_record_read(fd, dir, view_start_id(start), class, NULL, NULL) != 0)
		class[0] = '\0';
	fd_close(&fd);
	/* That end was not of its own making: it is no outcome. */
	if (strcmp(class, "cancelled") == 0)
		return "was ended when its worker was dead; no outcome";
	*has_outcome = known || class[0] != '\0';
	return *has_outcome ? "has ended without its worker" : NULL;
}

static void
why_interrupted(const struct run_files *f, const struct session *s, const struct op_view *v, struct buf *to)
{
	const char *beside;
	bool has_outcome;

	if (v->end != NULL) {
		add_class(v->end, " status", to);
		buf_puts(to, "; its next attempt had not started when the worker ended");
		return;
	}
	beside = end_beside(f, v->start, &has_outcome);
	buf_puts(to, beside != NULL ? beside : "was in flight when its worker ended; no outcome");
	/* Whether it was taken over, or given up by a flag, that run shows. */
	if (has_outcome && s->resumed_as_run[0] == '\0')
		buf_puts(to, "; a resume takes its end over");
	else if (has_outcome)
		buf_printf(to, "; its end was left to run %s", s->resumed_as_run);
}

static void
why_retrying(const struct run_files *f, size_t op, const struct op_view *ops, struct buf *to)
{
	const struct op_view *v = &ops[op];
	int64_t next = view_number(v->end, "attempt", 1) + 1, delay_ms = view_number(v->recent, "delay_ms", -1), left;
	unsigned most = f->flow->ops[op].how->retry.attempts;
	char text[DURATION_TEXT];
	double ended;

	buf_printf(to, "waits for its next attempt, %lld", (long long)next);
	if (next <= most)
		buf_printf(to, " of %u", most);
	if (delay_ms >= 0 && json_double(json_get(v->recent, "retrying_at"), &ended)) {
		left = (int64_t)(ended * (double)NS_PER_S) + delay_ms * NS_PER_MS - clock_wall_ns();
		if (left > 0)
			buf_printf(to, ", in %s", duration_format(left, text));
	}
	buf_puts(to, ", after ");
	add_class(v->end, "", to);
	if (slots_are_taken(f, ops))
		buf_puts(to, ", and for a slot");
}

/* ---- Beside it ---- */

/* Why the further try that its role would have it get after its failure was refused, or NULL. */
static const char *
refused_try(const struct run_files *f, uint32_t op, const struct op_view *v)
{
	static const char *const reasons[] = {"escalate_max_reached", "max_spawn_exceeded", "builder_error", NULL};
	const struct flow_role *role = f->flow->ops[op].how->role;
	const char *const *one = reasons;

	if (v->state != OP_FAILED || role == NULL || role->escalate_to == NULL || flow_is_replaced(f->flow, op) ||
	    slice_is(json_text(json_get(json_get(v->entry, "error"), "class")), "denied"))
		return NULL;
	while (*one != NULL && view_number(v->rejected, *one, 0) == 0)
		one++;
	return *one;
}

static void
add_refused_try(const struct flow *f, uint32_t op, const char *why, struct buf *to)
{
	unsigned n = flow_chain_length(f, op);

	separate(to);
	buf_printf(to, "no further try: %s", why);
	if (strcmp(why, "escalate_max_reached") == 0)
		buf_printf(to, " (%u of %u)", n, f->escalate_max);
}

static void
add_rejected(const struct run_files *f, uint32_t op, const struct op_view *v, struct buf *to)
{
	struct json_iter it = json_iterate(v->rejected);
	const char *refused = refused_try(f, op, v);
	const struct json *n;
	struct slice reason;
	bool any = false;
	long long count;

	if (refused != NULL)
		add_refused_try(f->flow, op, refused, to);
	while (json_next(&it, &reason, &n)) {
		count = (long long)view_number(v->rejected, reason.data, 0);
		count -= refused != NULL && slice_is(reason, refused);
		if (count == 0)
			continue;
		if (!any)
			separate(to);
		buf_printf(to, "%s%lld ", any ? ", " : "asked in vain: ", count);
		buf_slice(to, reason);
		any = true;
	}
}

static bool
is_off(const struct flow *f)
{
	return f->reactive == NULL || slice_is(json_text(f->reactive), "off");
}

/* Which members of its response would be requests in another document, or of one that completes. */
static void
find_unasked(const struct run_files *f, size_t op, const struct op_view *v, bool *spawns, bool *escalates)
{
	const struct json *response = json_get(v->entry, "response"), *escalate = json_get(response, "escalate");
	const struct flow_how *how = f->flow->ops[op].how;
	bool may_escalate = how->role != NULL && how->role->escalate_to != NULL, failed = v->state == OP_FAILED;

	*spawns = *escalates = false;
	if (how->response != FLOW_RESPONSE_JSON || (!failed && (v->state != OP_COMPLETED || !is_off(f->flow))))
		return;
	if (failed && is_off(f->flow))
		return;
	*spawns = json_get(response, "spawn") != NULL;
	*escalates = failed ? json_is_true(escalate) || json_type(escalate) == JSON_STRING ||
				  json_type(escalate) == JSON_OBJECT
			    : escalate != NULL && !may_escalate;
}

static void
add_data(const struct run_files *f, size_t op, const struct op_view *v, struct buf *to)
{
	bool spawns, escalates, both;

	find_unasked(f, op, v, &spawns, &escalates);
	if (!spawns && !escalates)
		return;
	both = spawns && escalates;
	separate(to);
	buf_printf(to, "%s in its response %s %s",
	    both ? "\"spawn\" and \"escalate\"" : spawns ? "\"spawn\"" : "\"escalate\"", both ? "are" : "is",
	    v->state != OP_FAILED ? "data: reactive is off" : both ? "no requests: it failed" : "no request: it failed");
}

static void
add_silence(const struct op_view *v, struct buf *to)
{
	char text[DURATION_TEXT];
	double since;

	if (!json_double(json_get(v->recent, "silent_since"), &since))
		return;
	separate(to);
	buf_printf(to, "silent for %s",
	    duration_format(clock_wall_ns() - (int64_t)(since * (double)NS_PER_S), text));
}

struct json *
view_why(const struct run_files *f, const struct session *s, size_t op, const struct op_view *ops)
{
	struct buf b = {0};
	struct json *text;

	switch (ops[op].state) {
	case OP_PENDING:
		why_unstarted(f, s, op, ops, &b);
		break;
	case OP_SKIPPED:
		why_skipped(f, ops, op, &b);
		break;
	case OP_COMPLETED:
	case OP_FAILED:
	case OP_CANCELLED:
		why_ended(f, &ops[op], &b);
		if (!ops[op].carried)
			why_ran(f, s, op, ops, &b);
		why_replaced(f, (uint32_t)op, ops, &b);
		break;
	case OP_WAITING:
		if (ops[op].start != NULL && add_wait(&ops[op], &b))
			break;
		if (ops[op].start != NULL)
			why_retrying(f, op, ops, &b);
		else
			buf_puts(&b, "waits for a person's approval");
		break;
	case OP_INTERRUPTED:
		why_interrupted(f, s, &ops[op], &b);
		break;
	case OP_READING:
		buf_puts(&b, "its process has ended; what it left is read");
		break;
	case OP_RUNNING:
		if (!f->lock_held)
			buf_puts(&b, "still runs, without a worker");
		why_ran(f, s, op, ops, &b);
		add_silence(&ops[op], &b);
		break;
	}
	add_rejected(f, (uint32_t)op, &ops[op], &b);
	add_data(f, op, &ops[op], &b);
	if (b.failed)
		text = NULL;
	else
		text = b.len == 0 ? json_null() : json_string_lossy(buf_view(&b), NULL);
	buf_clear(&b);
	return text;
}
