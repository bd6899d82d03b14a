/* What became of each operation, derived from the checkpoint, the log of attempts and the graph. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "flowsup/checkpoint.h"
#include "flowsup/clock.h"
#include "flowsup/exits.h"
#include "flowsup/fs.h"
#include "flowsup/proc.h"
#include "seek.h"
#include "view_ops.h"

static const char *const words[] = {
    [OP_PENDING] = "pending",
    [OP_RUNNING] = "running",
    [OP_READING] = "reading",
    [OP_WAITING] = "waiting",
    [OP_COMPLETED] = "completed",
    [OP_FAILED] = "failed",
    [OP_SKIPPED] = "skipped",
    [OP_CANCELLED] = "cancelled",
    [OP_INTERRUPTED] = "interrupted",
};

/* ---- Attempts ---- */

int64_t
view_number(const struct json *object, const char *name, int64_t otherwise)
{
	int64_t n;

	return json_int64(json_get(object, name), &n) ? n : otherwise;
}

static void
place_leftover(const struct run_files *f, struct op_view *ops, struct attempt_line *line)
{
	const struct json *v = attempt_line_json(line);
	const char *id = json_cstr_of(json_get(v, "op"));
	size_t op = slice_is(json_text(json_get(v, "kind")), "leftover") && id != NULL
	    ? flow_find(f->flow, id) : SIZE_MAX;

	if (op != SIZE_MAX)
		ops[op].leftovers++;
}

/* The end of a turn may be written after the next one's start, which its child writes itself. */
static void
place_line(const struct run_files *f, struct op_view *ops, struct attempt_line *line)
{
	size_t op = line->op == NULL ? SIZE_MAX : flow_find(f->flow, line->op);

	if (line->kind == ATTEMPT_LINE_STRAY)
		return;
	if (line->kind == ATTEMPT_LINE_OTHER)
		place_leftover(f, ops, line);
	if (op == SIZE_MAX)
		return;
	if (line->kind == ATTEMPT_LINE_START) {
		ops[op].before = ops[op].end;
		ops[op].start = attempt_line_json(line);
		ops[op].end = NULL;
	} else if (ops[op].start != NULL && line->attempt == view_number(ops[op].start, "attempt", 1)) {
		ops[op].end = attempt_line_json(line);
		ops[op].leftovers += view_number(ops[op].end, "leftovers", 0);
	} else if (ops[op].start != NULL && line->attempt + 1 == view_number(ops[op].start, "attempt", 1)) {
		ops[op].before = attempt_line_json(line);
		ops[op].leftovers += view_number(ops[op].before, "leftovers", 0);
	} else if (line->attempt > view_number(ops[op].end, "attempt", 0)) {
		/* What could not be started has an end alone. */
		ops[op].before = ops[op].end;
		ops[op].end = attempt_line_json(line);
	}
}

static void
place_attempts(const struct run_files *f, struct op_view *ops)
{
	size_t i;

	for (i = 0; i < f->attempts.nlines; i++)
		place_line(f, ops, &f->attempts.lines[i]);
}

struct proc_id
view_start_id(const struct json *start)
{
	struct proc_id id = {0};
	int64_t pid;

	if (json_int64(json_get(start, "pid"), &pid) && pid > 0 && pid <= INT32_MAX &&
	    json_uint64(json_get(start, "start"), &id.start_ticks))
		id.pid = (pid_t)pid;
	return id;
}

static bool
is_alive(const struct run_files *f, const struct json *start)
{
	struct proc_id id = view_start_id(start);

	if (f->lock_held)
		return true;
	return id.pid > 0 && view_survivors(&f->attempts) > 0 && proc_is_alive(id);
}

/* Whether another attempt was to follow: the worker has told it, else its rule does. */
static bool
was_to_follow(const struct run_files *f, size_t op, const struct op_view *v)
{
	struct slice told = json_text(json_get(v->recent, "end"));
	const char *class = json_cstr_of(json_get(v->end, "class"));

	if (told.len > 0)
		return slice_is(told, "NodeRetrying");
	return class != NULL &&
	    flow_retry_applies(&f->flow->ops[op].how->retry, class, (int)view_number(v->end, "code", 0),
		(unsigned)view_number(v->end, "attempt", 1));
}

/* An attempt that failed is no outcome where another was to follow: a run that ended before it did has
 * cancelled the operation. */
static enum op_state
state_of_end(const struct run_files *f, const struct session *s, size_t op, const struct op_view *v)
{
	struct slice class = json_text(json_get(v->end, "class"));

	if (slice_is(class, "completed"))
		return OP_COMPLETED;
	if (slice_is(class, "cancelled") || slice_is(json_text(json_get(v->recent, "end")), "NodeCancelled"))
		return OP_CANCELLED;
	if (!was_to_follow(f, op, v))
		return OP_FAILED;
	if (f->lock_held)
		return OP_WAITING;
	return status_is_terminal(s->status) && s->status != STATUS_CRASHED ? OP_CANCELLED : OP_INTERRUPTED;
}

/* ---- The graph ---- */

bool
view_is_settled(enum op_state s)
{
	return s == OP_COMPLETED || s == OP_FAILED || s == OP_SKIPPED;
}

enum flow_outcome
view_outcome(enum op_state s)
{
	return s == OP_COMPLETED ? FLOW_COMPLETED : s == OP_FAILED ? FLOW_FAILED : FLOW_SKIPPED;
}

/* Whether a settled predecessor means that the edge never opens, as the worker judges it; by its
 * condition only where its label fits. A response that is not saved yet is not known here. */
static bool
is_blocked(const struct flow *f, const struct flow_edge *edge, const struct op_view *from,
    bool *by_condition)
{
	enum flow_outcome outcome = view_outcome(from->state);
	bool holds = true;

	if (!view_is_settled(from->state))
		return false;
	*by_condition = flow_edge_fits(edge, outcome);
	if (!*by_condition)
		return true;
	if (from->entry == NULL && from->state != OP_SKIPPED)
		return false;
	return flow_need_holds_entry(f, edge, outcome, from->entry, from->answers, &holds, NULL) == 0 && !holds;
}

bool
view_is_unmet(const struct flow *f, const struct flow_edge *edge, const struct op_view *from)
{
	bool by_condition = false;

	return is_blocked(f, edge, from, &by_condition) && by_condition;
}

static bool
nothing_is_withheld(const struct run_files *f, const struct session *s)
{
	if (s->status == STATUS_COMPLETED)
		return true;
	/* A deadline that passed on the way withheld what the count lacks. */
	return s->status == STATUS_FAILED && s->reason_code != NULL && !f->flow->fail_fast &&
	    strcmp(s->reason_code, "run.failed.operation") == 0 && s->done >= s->total;
}

/* The worker tells the database what waits for a person. */
static bool
waits_for_approval(const struct session *s, const char *id)
{
	return (s->status == STATUS_RUNNING || s->status == STATUS_PAUSED) &&
	    json_find(json_get(s->metadata, "waiting"), "op", id) != NULL;
}

static enum op_state
state_of_unstarted(const struct run_files *f, const struct session *s, size_t op,
    struct op_view *ops)
{
	const struct flow_op *o = &f->flow->ops[op];
	bool by_condition;
	size_t i;

	if (o->never) {
		ops[op].blocker = op;
		return OP_SKIPPED;
	}
	for (i = 0; i < o->nneeds; i++) {
		if (!is_blocked(f->flow, &o->needs[i], &ops[o->needs[i].op], &by_condition))
			continue;
		ops[op].blocker = by_condition ? op : o->needs[i].op;
		return OP_SKIPPED;
	}
	if (waits_for_approval(s, o->id))
		return OP_WAITING;
	/* A run that finished all it could leaves out only what its conditions forbade. */
	return nothing_is_withheld(f, s) ? OP_SKIPPED : OP_PENDING;
}

/* An agent's operation with an outcome goes on with another turn, for messages. */
static bool
is_in_further_turn(const struct run_files *f, const struct op_view *v)
{
	return v->entry != NULL && v->start != NULL && v->end == NULL &&
	    view_number(v->start, "attempt", 1) > view_number(v->entry, "attempts", 1) && is_alive(f, v->start);
}

/* Its mark, which is durable before it is started, was all that its worker came to. */
static bool
has_mark(const struct run_files *f, const char *op)
{
	const struct json *state = view_state(f);
	int64_t before = view_number(json_get(json_get(state, "config"), "attempts"), op, 0);
	char dir[ATTEMPT_DIR_TEXT], path[sizeof(RUN_OPS) + ATTEMPT_DIR_TEXT + sizeof("/started")];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s/started", RUN_OPS, attempt_dir(op, (unsigned)before + 1, dir));
	return fstatat(f->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool
was_begun(const struct run_files *f, const struct session *s, size_t op)
{
	return s->status == STATUS_CRASHED && !f->lock_held && has_mark(f, f->flow->ops[op].id);
}

static enum op_state
state_of(const struct run_files *f, const struct session *s, size_t op, struct op_view *ops)
{
	struct op_view *v = &ops[op];

	if (is_in_further_turn(f, v))
		return OP_RUNNING;
	if (v->entry != NULL)
		return slice_is(json_text(json_get(v->entry, "status")), "completed") ? OP_COMPLETED
										      : OP_FAILED;
	if (v->start == NULL)
		return was_begun(f, s, op) ? OP_INTERRUPTED : state_of_unstarted(f, s, op, ops);
	if (v->end != NULL)
		return state_of_end(f, s, op, v);
	/* A stop did not wait for what it left to be read. */
	if (!f->lock_held && slice_is(json_text(json_get(v->recent, "end")), "NodeCancelled"))
		return OP_CANCELLED;
	if (f->lock_held && json_is_true(json_get(v->recent, "reading")))
		return OP_READING;
	return is_alive(f, v->start) ? OP_RUNNING : OP_INTERRUPTED;
}

/* ---- As JSON ---- */

static struct json *
member_or_null(const struct json *object, const char *name)
{
	const struct json *v = json_get(object, name);

	return v == NULL ? json_null() : json_ref(v);
}

/* Class, code and signal of how it ended; NULL when it has not, or when nothing went wrong. */
static const struct json *
ending(const struct op_view *v)
{
	if (v->state != OP_COMPLETED && v->state != OP_FAILED && v->state != OP_CANCELLED)
		return NULL;
	return v->entry != NULL ? json_get(v->entry, "error") : v->end;
}

static int64_t
signal_of(const struct op_view *v)
{
	const struct json *end = ending(v);
	bool killed = slice_is(json_text(json_get(end, "class")), "signal");

	/* Ended by us, behind its result: before that is saved only the log of attempts tells. */
	if (end == NULL && v->state == OP_COMPLETED)
		return view_number(json_get(v->entry, CKPT_END), "signal", view_number(v->end, "signal", 0));
	return view_number(end, "signal", killed ? view_number(end, "code", 0) : 0);
}

/*
 * Whether a process ended with a status of its own. What could not be started has an errno in `code`;
 * what no process was started for has no time of its start; and the class "exit" stands with 0 only
 * where nobody knows how it ended.
 */
static bool
has_exit_status(const struct op_view *v)
{
	const struct json *end = ending(v);
	struct slice class = json_text(json_get(end, "class"));

	if (signal_of(v) > 0 || slice_is(class, "spawn"))
		return false;
	if (v->entry == NULL ? v->start == NULL : json_get(v->entry, "started_at") == NULL)
		return false;
	return !slice_is(class, "exit") || view_number(end, "code", 0) != 0;
}

static struct json *
exit_json(const struct op_view *v)
{
	const struct json *end = ending(v);

	if (end == NULL && json_type(json_get(v->entry, CKPT_END)) == JSON_OBJECT)
		return member_or_null(json_get(v->entry, CKPT_END), "code");
	if (end == NULL)
		return v->state == OP_COMPLETED && signal_of(v) == 0 ? json_int(0) : json_null();
	return has_exit_status(v) ? member_or_null(end, "code") : json_null();
}

static struct json *
signal_json(const struct op_view *v)
{
	int64_t signal = signal_of(v);

	return signal > 0 && signal < INT32_MAX ? json_cstr(proc_signal_name((int)signal)) : json_null();
}

static struct json *
needs_json(const struct run_files *f, size_t op)
{
	const struct flow_op *o = &f->flow->ops[op];
	struct json *needs = json_array();
	size_t i;

	for (i = 0; i < o->nneeds; i++)
		needs = json_append(needs, json_cstr(f->flow->ops[o->needs[i].op].id));
	return needs;
}

static struct json *
attempt_json(const struct op_view *v)
{
	int64_t attempt = view_number(v->start, "attempt", 0);

	return json_int(view_number(v->entry, "attempts", attempt));
}

static struct json *
class_json(const struct op_view *v)
{
	if (v->entry != NULL)
		return member_or_null(json_get(v->entry, "error"), "class");
	return member_or_null(v->end, "class");
}

static struct json *
id_or_null(const struct run_files *f, uint32_t i)
{
	return i == FLOW_NO_OP ? json_null() : json_cstr(f->flow->ops[i].id);
}

/* Of what was added, and of what another try stands for. */
static struct json *
with_origin(const struct run_files *f, uint32_t i, struct json *o)
{
	static const char *const kinds[] = {[FLOW_GROWN_SPAWN] = "spawned",
	    [FLOW_GROWN_RETRY] = "retry", [FLOW_GROWN_ITEM] = "item"};
	const struct flow_grown *g = flow_grown(f->flow, i);

	if (g != NULL) {
		o = json_set(o, "added", json_cstr(kinds[g->kind]));
		o = json_set(o, "node_id", member_or_null(g->entry, "node_id"));
		o = json_set(o, "parent", id_or_null(f, g->parent));
		if (g->kind == FLOW_GROWN_RETRY)
			o = json_set(o, "escalated_from", id_or_null(f, g->emitter));
	}
	if (flow_is_replaced(f->flow, i))
		o = json_set(o, "replaced_by", json_cstr(f->flow->ops[flow_final(f->flow, i)].id));
	return o;
}

/* Of what runs the kernel knows it, also where no event tells. */
static struct json *
started_json(const struct op_view *v)
{
	double now = (double)clock_wall_ns() / (double)NS_PER_S;

	if (v->state == OP_RUNNING && v->entry == NULL && json_get(v->recent, "started_at") == NULL)
		return json_real(now - view_process_age(view_start_id(v->start).start_ticks));
	return member_or_null(v->entry != NULL ? v->entry : v->recent, "started_at");
}

static struct json *
ended_json(const struct op_view *v)
{
	bool over = v->state == OP_COMPLETED || v->state == OP_FAILED || v->state == OP_CANCELLED ||
	    v->state == OP_READING;

	return v->entry != NULL ? member_or_null(v->entry, "ended_at")
	    : over		? member_or_null(v->recent, "ended_at")
				: json_null();
}

static struct json *
operation_json(const struct run_files *f, const struct session *s, size_t op,
    const struct op_view *ops)
{
	const struct op_view *v = &ops[op];
	struct json *o = json_object();
	bool running = v->state == OP_RUNNING;

	o = json_set(o, "id", json_cstr(f->flow->ops[op].id));
	o = json_set(o, "state", json_cstr(words[v->state]));
	/* What stands in a checkpoint that no resume takes is shown, but nobody gets it back. */
	o = json_set(o, "saved", json_bool(v->entry != NULL && f->state_error.code == ERR_NONE));
	o = json_set(o, "attempt", attempt_json(v));
	o = json_set(o, "exit", exit_json(v));
	o = json_set(o, "signal", signal_json(v));
	o = json_set(o, "class", class_json(v));
	o = json_set(o, "why", view_why(f, s, op, ops));
	o = json_set(o, "replayed", json_bool(v->carried));
	o = json_set(o, "started_at", started_json(v));
	o = json_set(o, "ended_at", ended_json(v));
	o = json_set(o, "pid", running ? member_or_null(v->start, "pid") : json_null());
	o = json_set(o, "elapsed",
	    running ? json_real(view_process_age(view_start_id(v->start).start_ticks)) : json_null());
	o = json_set(o, "progress", running ? member_or_null(v->recent, "fraction") : json_null());
	o = json_set(o, "progress_text", running ? member_or_null(v->recent, "text") : json_null());
	o = json_set(o, "silent_since", running ? member_or_null(v->recent, "silent_since") : json_null());
	o = json_set(o, "leftovers", json_int(v->leftovers));
	o = json_set(o, "needs", needs_json(f, op));
	if (v->rejected != NULL)
		o = json_set(o, "rejected", json_ref(v->rejected));
	return with_origin(f, (uint32_t)op, o);
}

/* ---- What is in the file and not saved ---- */

static struct json *
with_saved(struct json *saved, struct slice line, bool *whole)
{
	struct json *event = NULL;
	struct err e = {0};
	struct slice op;

	if (json_parse(line, NULL, &event, NULL, &e) != 0)
		return saved;
	op = json_text(json_get(event, "op"));
	if (slice_is(json_text(json_get(event, "event")), "CheckpointSaved") && op.len > 0)
		saved = json_setn(saved, op, json_bool(true));
	*whole &= saved != NULL;
	json_unref(event);
	return saved;
}

/* The operations of which the run's events say that they were saved; NULL when that is not known. */
static struct json *
saved_by_events(const struct run_files *f)
{
	struct json *saved = json_object();
	struct buf text = {0};
	struct err e = {0};
	bool whole = saved != NULL;
	const char *at, *lf;

	if (fs_read_private_file(f->fd, RUN_EVENTS, JSON_MAX_PROGRAM, &text, &e) != 0)
		whole = false;
	at = text.data;
	while (whole && (lf = memchr(at, '\n', text.len - (size_t)(at - text.data))) != NULL) {
		saved = with_saved(saved, (struct slice){at, (size_t)(lf - at)}, &whole);
		at = lf + 1;
	}
	buf_clear(&text);
	if (!whole) {
		json_unref(saved);
		return NULL;
	}
	return saved;
}

/*
 * While storage fails, which the row cannot say where the database is on it too, a record can stand in the
 * journal although its fsync failed. A reader cannot tell it from others; but only what was acknowledged is
 * called saved.
 */
static void
drop_unsaved(const struct run_files *f, const struct session *s, struct op_view *ops)
{
	struct json *saved;
	size_t i;

	if (f->trouble.len == 0 && (s->reason_code == NULL || strcmp(s->reason_code, STORAGE_TROUBLE) != 0))
		return;
	saved = saved_by_events(f);
	for (i = 0; i < f->flow->nops; i++)
		if (!ops[i].carried && json_get(saved, f->flow->ops[i].id) == NULL)
			ops[i].entry = NULL;
	json_unref(saved);
}

static bool
is_pending(const struct json *entry)
{
	return slice_is(json_text(json_get(entry, "status")), "pending");
}

/* The entry with the outcome of an operation, or NULL. */
static const struct json *
recorded(const struct run_files *f, size_t i)
{
	const struct flow_grown *g = flow_grown(f->flow, (uint32_t)i);

	if (g == NULL)
		return json_get(json_get(view_state(f), "ops"), f->flow->ops[i].id);
	return is_pending(g->entry) ? NULL : g->entry;
}

struct json *
view_carried(const struct run_files *f)
{
	const struct json *ops = json_get(f->carry, "ops"), *entry;
	struct json *all = ops != NULL ? json_ref(ops) : json_object();
	struct json_iter it = json_iterate(json_get(f->carry, "spawned"));
	size_t i;

	while (json_next(&it, NULL, &entry)) {
		i = flow_find_node(f->flow, json_cstr_of(json_get(entry, "node_id")));
		if (i != SIZE_MAX && !is_pending(entry))
			all = json_set(all, f->flow->ops[i].id, json_bool(true));
	}
	return all;
}

/* It may hold a slot already and wait for something that only its event tells. */
static bool
may_hold_slot(const struct run_files *f, const struct op_view *v, size_t op)
{
	return v->start == NULL && f->lock_held && f->flow->ops[op].kind == FLOW_INSTRUCTION;
}

/* Events are read only where something was started, or an agent's start may wait, and has no saved outcome. */
static struct json *
recent_of(const struct run_files *f, struct op_view *ops)
{
	struct json *recent = NULL;
	size_t i;

	for (i = 0; i < f->flow->nops; i++) {
		if (ops[i].entry != NULL || (ops[i].start == NULL && !may_hold_slot(f, &ops[i], i)))
			continue;
		if (recent == NULL && (recent = view_recent(f)) == NULL)
			break;
		ops[i].recent = json_get(recent, f->flow->ops[i].id);
	}
	return recent;
}

/* Of a run that has rejected nothing no events are read for it. */
static struct json *
rejected_of(const struct run_files *f, const struct session *s, struct op_view *ops)
{
	bool any = json_length(json_get(json_get(s->metadata, META_GROWTH), "rejected")) > 0;
	struct json *rejected = any ? view_rejected(f->fd, view_state(f)) : NULL;
	size_t i;

	for (i = 0; rejected != NULL && i < f->flow->nops; i++)
		ops[i].rejected = json_get(rejected, f->flow->ops[i].id);
	return rejected;
}

static bool
has_unstarted_successor(const struct run_files *f, const struct op_view *ops, size_t i)
{
	const struct flow_op *op = &f->flow->ops[i];
	uint32_t s;

	for (s = 0; s < op->nsuccessors; s++)
		if (ops[op->successors[s]].entry == NULL && ops[op->successors[s]].start == NULL)
			return true;
	return false;
}

/* Files are read only for conditions that decide something here. Without memory it is not known what they say. */
static struct json *
read_answers(const struct run_files *f, struct op_view *ops)
{
	struct json *answers = NULL;
	struct err e = {0};
	enum flow_outcome outcome;
	size_t i;

	for (i = 0; i < f->flow->nops && e.code == ERR_NONE; i++) {
		outcome = slice_is(json_text(json_get(ops[i].entry, "status")), "completed") ? FLOW_COMPLETED : FLOW_FAILED;
		if (ckpt_is_file(ops[i].entry) && has_unstarted_successor(f, ops, i))
			(void)flow_answers_read(f->flow, (uint32_t)i, outcome, f->fd, ops[i].entry, &answers, &e);
	}
	for (i = 0; i < f->flow->nops; i++)
		ops[i].answers = answers;
	return answers;
}

static struct json *
operations_json(const struct run_files *f, const struct session *s, struct op_view *ops)
{
	struct json *carried = view_carried(f), *array = json_array(), *recent, *rejected, *answers;
	size_t i, op;

	for (i = 0; i < f->flow->nops; i++) {
		ops[i].blocker = SIZE_MAX;
		ops[i].entry = recorded(f, i);
		ops[i].carried = ops[i].entry != NULL && json_get(carried, f->flow->ops[i].id) != NULL;
	}
	json_unref(carried);
	place_attempts(f, ops);
	drop_unsaved(f, s, ops);
	/* A further turn, or another attempt, was made here. */
	for (i = 0; i < f->flow->nops; i++)
		ops[i].carried = ops[i].carried && ops[i].end == NULL;
	recent = recent_of(f, ops);
	rejected = rejected_of(f, s, ops);
	answers = read_answers(f, ops);
	/* In an order in which predecessors come first: skipping goes from one to the next. */
	for (i = 0; i < f->flow->nops; i++) {
		op = f->flow->order[i];
		ops[op].state = state_of(f, s, op, ops);
	}
	for (i = 0; i < f->flow->nops; i++)
		array = json_append(array, operation_json(f, s, i, ops));
	json_unref(recent);
	json_unref(rejected);
	json_unref(answers);
	return array;
}

int
view_lost_responses(struct run_files *f, struct err *e)
{
	const struct json *entry;
	const char *path, *why;
	struct buf text = {0};
	struct stat st;
	size_t i;
	int fd;

	for (i = 0; f->flow != NULL && i < f->flow->nops; i++) {
		entry = recorded(f, i);
		path = ckpt_is_file(entry) ? json_cstr_of(json_get(json_get(entry, "response"), "file")) : NULL;
		fd = path != NULL ? fs_open_recorded(f->fd, path, &st, &why) : -1;
		if (path != NULL && fd < 0) {
			buf_reset(&text);
			buf_printf(&text, "the response of operation \"%s\" ('%s') %s", f->flow->ops[i].id, path, why);
			f->problems = json_append(f->problems, seek_problem(path, buf_text(&text)));
		}
		fd_close(&fd);
	}
	i = text.failed || f->problems == NULL;
	buf_clear(&text);
	return i == 0 ? 0 : err_nomem(e);
}

struct json *
view_operations(const struct run_files *f, const struct session *s)
{
	struct op_view *ops;
	struct json *array;

	if (f->flow == NULL)
		return json_array();
	ops = calloc(f->flow->nops + 1, sizeof(*ops));
	if (ops == NULL)
		return NULL;
	array = operations_json(f, s, ops);
	free(ops);
	return array;
}
