/*
 * What may start, and when. In order, for an operation whose predecessors count: the conditions of
 * its edges; admission (stop, deadline, fail-fast, storage); the pause gate; a person's approval; a
 * slot. Admission and gate are looked at again once the slot is there.
 */
#include "agent.h"
#include "reactive.h"

#include <assert.h>
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"

/* The clock is asked, not only the timer: an event that waits in the loop behind others must not
 * let anything start after the moment has come. */
static void
look_at_deadline(struct worker *w)
{
	if (w->deadline_boot_ns == 0 || (w->closed & CLOSED_DEADLINE) ||
	    clock_boottime_ns() < w->deadline_boot_ns)
		return;
	poller_unwatch(&w->loop, &w->deadline);
	log_line(LOG_INFO, "the deadline has passed");
	admission_close(w, CLOSED_DEADLINE);
	if (!(w->closed & CLOSED_STORAGE)) /* what is wrong with that is said until it is over */
		status_of_gates(w, "run.running.started");
	w->loop.again = true;
}

bool
admission_open(struct worker *w)
{
	look_at_deadline(w);
	return w->closed == 0;
}

bool
admission_over(const struct worker *w)
{
	return (w->closed & ~(unsigned)CLOSED_STORAGE) != 0;
}

/* Behind what began before it: of a start below a keeper is known only when the keeper tells. */
static void
tell_closing(struct worker *w)
{
	if (!w->deadline_untold || w->beginning > 0)
		return;
	w->deadline_untold = false;
	event_begin(w, "DeadlineClosed");
	event_end(w);
}

void
admission_close(struct worker *w, unsigned why)
{
	if ((w->closed & why) == why)
		return;
	w->closed |= why;
	w->deadline_untold |= (why & CLOSED_DEADLINE) != 0;
	w->gives_back |= why != CLOSED_STORAGE; /* after that it goes on */
	tell_closing(w);
}

void
admission_begun(struct worker *w)
{
	w->beginning++;
}

void
admission_began(struct worker *w)
{
	assert(w->beginning > 0);
	w->beginning--;
	tell_closing(w);
}

void
admission_reopen(struct worker *w, unsigned why)
{
	assert((why & ~(unsigned)CLOSED_STORAGE) == 0);
	w->closed &= ~why;
}

void
gate_close(struct worker *w)
{
	w->gate_closed = true;
}

static bool
is_gated(const struct worker *w, uint32_t i)
{
	/* The items of a foreach ask, each for itself. */
	return w->flow->ops[i].how->gate_approve && w->flow->ops[i].how->foreach_pointer == NULL;
}

/* What waited at the gate goes before what has become ready since. */
void
gate_open(struct worker *w)
{
	struct op_list first;
	uint32_t i;

	w->gate_closed = false;
	op_list_init(&first);
	while ((i = op_list_pop(&w->paused, w->ops)) != OP_NO_INDEX) {
		op_become(&w->ops[i], OP_READY);
		op_list_push(is_gated(w, i) ? &w->gated : &first, w->ops, i);
	}
	op_list_prepend(&w->ready, &first, w->ops);
}

void
admission_ready(struct worker *w, uint32_t i)
{
	op_become(&w->ops[i], OP_READY);
	op_list_push(is_gated(w, i) ? &w->gated : &w->ready, w->ops, i);
}

/* All that the synthesis stands behind, also what was added while the run went on, and everything saved.
 * What came of itself is not waited for: that may in turn wait for the synthesis' last try. */
static bool
all_others_ended(const struct worker *w)
{
	return w->counts.done - w->counts.done_of_synthesis == w->flow->nops - flow_count_of_synthesis(w->flow) &&
	    w->unsaved_count == 0 && w->settled.count == 0;
}

void
admission_last(struct worker *w)
{
	uint32_t i = w->synthesis_held;

	if (i == OP_NO_INDEX || !all_others_ended(w))
		return;
	w->synthesis_held = OP_NO_INDEX;
	admission_met(w, i);
}

void
admission_met(void *worker, uint32_t i)
{
	struct worker *w = worker;
	uint32_t cause = OP_NO_INDEX;
	enum op_state judged;
	struct err e = {0};

	if (w->ops[i].state != OP_PENDING)
		return; /* its outcome came with the state the run started from */
	if (flow_is_synthesis(w->flow, i) && !all_others_ended(w)) {
		assert(w->synthesis_held == OP_NO_INDEX || w->synthesis_held == i); /* tries follow each other */
		w->synthesis_held = i;
		return;
	}
	w->counts.judged++;
	if (op_judge_edges(w->ops, w->flow, w->answers, i, &judged, &cause, &e) != 0) {
		if (e.code == ERR_NOMEM)
			worker_error(w, &e);
		else
			settle_failed(w, i, CLASS_RESPONSE, e.msg);
		return;
	}
	if (judged == OP_SKIPPED) {
		settle_skipped(w, i, cause);
		return;
	}
	admission_ready(w, i);
	event_of_op(w, "NodeReady", i);
}

/* Every operation that waits at the gate says so once per gate. */
static void
hold_at_gate(struct worker *w, struct op_list *from)
{
	unsigned n;
	uint32_t i;

	for (n = 0; n < WORKER_GATE_PER_TURN && from->count > 0; n++) {
		i = op_list_pop(from, w->ops);
		op_become(&w->ops[i], OP_PAUSED);
		op_list_push(&w->paused, w->ops, i);
		event_of_op(w, "NodePaused", i);
	}
	if (from->count > 0)
		w->loop.again = true;
}

/* Those that want a person's approval ask for it, whether or not a slot is free. */
static void
pass_approvals(struct worker *w)
{
	unsigned n;
	uint32_t i;

	for (n = 0; n < WORKER_GATE_PER_TURN && w->gated.count > 0; n++) {
		i = op_list_pop(&w->gated, w->ops);
		if (approval_pass(w, i))
			op_list_push(&w->ready, w->ops, i);
	}
	if (w->gated.count > 0)
		w->loop.again = true;
}

/* A foreach over a response starts nothing itself: it takes no slot. */
static void
start_next(struct worker *w)
{
	uint32_t i = op_list_pop(&w->ready, w->ops);

	if (w->flow->ops[i].how->foreach_pointer != NULL) {
		reactive_expand(w, i);
		return;
	}
	w->running++;
	w->counts.starts++;
	spawn_start(w, i);
}

/* What waits before its start, perhaps for a command, does not start any more. */
static void
give_back(struct worker *w)
{
	if (w->gives_back)
		agent_give_back_all(w);
	w->gives_back = false;
}

void
admission_start(struct worker *w)
{
	unsigned starts = 0;

	if (!admission_open(w)) {
		give_back(w);
		return;
	}
	if (w->controls_first) {
		/* A verdict may be among what is looked at: it finds who asks. */
		pass_approvals(w);
		return;
	}
	if (w->gate_closed) {
		hold_at_gate(w, &w->ready);
		hold_at_gate(w, &w->gated);
		return;
	}
	pass_approvals(w);
	while (w->ready.count > 0 && w->running < w->slots && admission_open(w)) {
		if (starts++ == WORKER_STARTS_PER_TURN) {
			w->loop.again = true;
			break;
		}
		start_next(w);
	}
	reactive_expand_more(w);
	messages_commit(w);
}

void
admission_slot_free(struct worker *w)
{
	assert(w->running > 0);
	w->running--;
}

#define NO_NEXT_ATTEMPT "its next attempt was not started"

/* Each announced operation gets exactly one terminal event, also when it never started. What never
 * became ready was not announced. */
static void
cancel_list(struct worker *w, struct op_list *l)
{
	uint32_t i;

	while ((i = op_list_pop(l, w->ops)) != OP_NO_INDEX) {
		op_become(&w->ops[i], OP_CANCELLED);
		w->counts.cancelled++;
		event_begin(w, "NodeCancelled");
		event_op(w, i);
		/* One that waited for another attempt has begun, and is known by how the last one ended. */
		event_text(w, "why", w->ops[i].has_run ? NO_NEXT_ATTEMPT : "not started");
		event_end(w);
	}
}

void
admission_cancel_waiting(struct worker *w)
{
	struct attempt_run *a, *following;
	uint32_t i;

	for (a = w->live; a != NULL; a = following) {
		following = a->following;
		i = a->op;
		if (w->ops[i].state != OP_RETRYING)
			continue;
		attempt_free(a);
		w->retrying--;
		op_become(&w->ops[i], OP_CANCELLED);
		w->counts.cancelled++;
		event_begin(w, "NodeCancelled");
		event_op(w, i);
		event_text(w, "why", NO_NEXT_ATTEMPT);
		event_end(w);
	}
	approval_cancel_waiting(w);
	cancel_list(w, &w->paused);
	cancel_list(w, &w->gated);
	cancel_list(w, &w->ready);
	if (w->reactive != NULL)
		cancel_list(w, &w->reactive->expanding);
}

/* ---- The run's deadline: boot time, so that a suspended machine does not move it ---- */

static void
deadline_ready(void *arg, short revents)
{
	struct worker *w = arg;
	uint64_t expirations;

	(void)revents;
	if (read(w->deadline_fd, &expirations, sizeof(expirations)) < 0)
		return;
	look_at_deadline(w);
}

int
admission_deadline_set(struct worker *w, struct err *e)
{
	int64_t in = w->deadline_wall_ns - clock_wall_ns();
	struct itimerspec when = {0};

	if (w->deadline_wall_ns == 0)
		return 0;
	/* It may have passed, but not by a clock that was set back be further away than it ever was. */
	in = in < 0 ? 0 : in > w->flow->timeout_ns ? w->flow->timeout_ns : in;
	w->deadline_boot_ns = clock_boottime_ns() + in;
	when.it_value.tv_sec = (time_t)(w->deadline_boot_ns / NS_PER_S);
	when.it_value.tv_nsec = (long)(w->deadline_boot_ns % NS_PER_S);
	w->deadline_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->deadline_fd < 0 || timerfd_settime(w->deadline_fd, TFD_TIMER_ABSTIME, &when, NULL) != 0)
		return err_sys(e, ERR_IO, errno, "cannot set the run's deadline");
	return poller_watch(&w->loop, &w->deadline, w->deadline_fd, POLLIN, deadline_ready, w, e);
}
