/*
 * How attempts end. The process decides, by its pidfd; never the end of its output. It stays a
 * zombie until nothing of its group is left, so that the group's number cannot be given to others
 * while signals are sent to it.
 */
#include "agent.h"

#include "keeper.h"
#include "taken.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"

static void stop_due(void *arg);

static void
arm(struct attempt_run *a, struct timer *t, int64_t at, timer_fire *fire)
{
	struct err e = {0};

	if (timer_arm(&a->w->loop.timers, t, at, fire, a, &e) != 0)
		worker_error(a->w, &e);
}

/* ---- TERM once, grace, KILL ---- */

static void
signal_group(struct attempt_run *a, int sig)
{
	struct err e = {0};

	if (a->taken != NULL)
		taken_signal(a, sig); /* not our child: its number is not pinned for us */
	else if (proc_signal_group(a->id.pid, sig, &e) != 0)
		log_line(LOG_WARNING, "ops/%s: %s", a->w->flow->ops[a->op].id, e.msg);
}

static void
send_term(struct attempt_run *a)
{
	int64_t grace = a->w->flow->ops[a->op].how->grace_ns;

	assert(a->stopping == STOP_NONE || a->stopping == STOP_STEP);
	a->stopping = STOP_TERM;
	signal_group(a, SIGTERM);
	arm(a, &a->stop, clock_monotonic_ns() + grace, stop_due);
}

/* What a provider asks for comes before TERM, once each. What a process has left behind when it
 * ended did not ask for anything. */
static void
send_next(struct attempt_run *a)
{
	const struct provider_signal *next = a->exited ? NULL : agent_next_signal(a->agent);

	if (next == NULL) {
		send_term(a);
		return;
	}
	a->stopping = STOP_STEP;
	signal_group(a, next->signal);
	arm(a, &a->stop, clock_monotonic_ns() + next->wait_ns, stop_due);
}

static void
stop_due(void *arg)
{
	struct attempt_run *a = arg;

	if (a->stopping == STOP_STEP) {
		send_next(a);
		return;
	}
	if (a->stopping == STOP_TERM) {
		a->stopping = STOP_KILL;
		signal_group(a, SIGKILL);
		arm(a, &a->stop, clock_monotonic_ns() + ENDING_GIVE_UP_S * NS_PER_S, stop_due);
		return;
	}
	if (!a->exited) { /* in the kernel, without an end in sight: all that is left is to wait */
		log_line(LOG_WARNING, "ops/%s: process %d does not end by SIGKILL",
		    a->w->flow->ops[a->op].id, (int)a->id.pid);
		return;
	}
	a->stopping = STOP_GIVE_UP;
	ending_look(a);
}

void
ending_stop(struct attempt_run *a, enum op_class why)
{
	if (a->exited || a->forced != CLASS_NONE)
		return;
	a->forced = why;
	timer_disarm(&a->w->loop.timers, &a->limit);
	timer_disarm(&a->w->loop.timers, &a->silence);
	agent_quiet(a);
	if (a->stopping == STOP_NONE)
		send_next(a);
}

void
ending_drain(struct attempt_run *a)
{
	if (a->exited || a->stopping != STOP_NONE)
		return;
	timer_disarm(&a->w->loop.timers, &a->limit);
	timer_disarm(&a->w->loop.timers, &a->silence);
	agent_quiet(a);
	send_next(a);
}

/* ---- What is left of the group ---- */

/*
 * Whether a child of ours lives in the group of a's process, which is itself a zombie: asked for
 * stopped children only, the kernel answers ECHILD when none that could ever stop is there. What
 * an operation left behind has become our child, because we are a subreaper.
 */
static bool
group_is_inhabited(const struct attempt_run *a)
{
	siginfo_t info = {0};

	return waitid(P_PGID, (id_t)a->id.pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0;
}

static int
count_one(void *arg, const struct proc_stat *st, int pidfd)
{
	(void)pidfd;
	(void)st;
	++*(unsigned *)arg;
	return 0;
}

static void
count_leftovers(struct attempt_run *a)
{
	unsigned n = 0;

	if (proc_each_in_group(a->id.pid, count_one, &n, NULL) >= 0)
		a->leftovers += n;
}

/* Reaps: from here on the group's number is not ours any more. */
static void
attempt_over(struct attempt_run *a)
{
	struct worker *w = a->w;
	struct err e = {0};

	if (a->keeper != NULL)
		keeper_release(a);
	else if (a->taken == NULL && a->pidfd >= 0 && proc_wait(a->pidfd, false, &a->end, &e) < 0)
		log_line(LOG_WARNING, "ops/%s: %s", w->flow->ops[a->op].id, e.msg);
	timer_disarm(&w->loop.timers, &a->stop);
	fd_close(&a->pidfd);
	w->pinned--;
	op_become(&w->ops[a->op], OP_SETTLING);
	w->settling++;
	admission_slot_free(w);
	outcome_begin(a);
}

void
ending_look(struct attempt_run *a)
{
	bool inhabited;

	assert(a->exited);
	/* What one that was taken over has left is known by its marks alone (strays.c). */
	inhabited = a->taken == NULL && a->stopping != STOP_GIVE_UP && !a->w->flow->ops[a->op].how->leave &&
	    group_is_inhabited(a);
	if (inhabited && a->leftovers == a->strays)
		count_leftovers(a);
	if (inhabited && a->stopping == STOP_NONE)
		send_term(a);
	if (!inhabited && a->strays == 0)
		attempt_over(a);
}

void
ending_exited(struct attempt_run *a, const struct proc_end *end)
{
	a->end = *end;
	a->exited = true;
	a->w->alive--;
	if (a->ended_at == 0)
		a->ended_at = (double)clock_wall_ns() / (double)NS_PER_S;
	a->w->pinned++;
	poller_unwatch(&a->w->loop, &a->source);
	timer_disarm(&a->w->loop.timers, &a->limit);
	timer_disarm(&a->w->loop.timers, &a->silence);
	agent_quiet(a);
	op_become(&a->w->ops[a->op], OP_ENDING);
	if (!a->w->flow->ops[a->op].how->leave)
		strays_after(a);
	ending_look(a);
}

static void
process_ready(void *arg, short revents)
{
	struct attempt_run *a = arg;
	struct proc_end end = {.known = false};
	struct err e = {0};
	int rc = proc_wait(a->pidfd, true, &end, &e);

	(void)revents;
	if (rc < 0)
		log_line(LOG_ERROR, "ops/%s: %s", a->w->flow->ops[a->op].id, e.msg);
	if (rc != 0)
		ending_exited(a, &end);
}

void
ending_watch_process(struct attempt_run *a)
{
	const struct proc_end unknown = {.known = false};
	struct err e = {0};

	if (a->pidfd < 0)
		ending_exited(a, &unknown);
	else if (poller_watch(&a->w->loop, &a->source, a->pidfd, POLLIN, process_ready, a, &e) != 0)
		worker_error(a->w, &e);
}

/* Adopted processes are reaped as they end; ours are left to their pidfds. A zombie of ours that
 * is pinned can hide an adopted one from us until it is released: hence the flag stays set. */
static void
reap_adopted(struct worker *w)
{
	const struct attempt_run *a;
	siginfo_t info;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
			w->children_changed = false;
			return;
		}
		for (a = w->live; a != NULL; a = a->following)
			if (a->pidfd >= 0 && a->keeper == NULL && a->id.pid == info.si_pid)
				return;
		keeper_reaped(w, info.si_pid);
		waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
	}
}

/* Whether somebody waits for the end of a process that has no pidfd here. */
static bool
children_matter(const struct worker *w)
{
	return w->pinned > 0 || w->strays != NULL || w->keepers != NULL;
}

static void
hear_children(void *arg)
{
	struct worker *w = arg;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	timer_disarm(&w->loop.timers, &w->hear_again);
	w->children_changed = true;
}

/*
 * Each end of an operation's process is told twice: by its pidfd, and by SIGCHLD, which wakes the loop
 * once more. What has been adopted can stay a zombie for a moment, so unless somebody waits the signal
 * is let go for that long: neither blocked nor handled, it is not even sent.
 */
static void
ignore_children(struct worker *w)
{
	struct err e = {0};
	sigset_t set;

	if (timer_arm(&w->loop.timers, &w->hear_again,
		clock_monotonic_ns() + ENDING_HEAR_AGAIN_MS * NS_PER_MS, hear_children, w, &e) != 0) {
		worker_error(w, &e);
		return;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void
ending_children(struct worker *w)
{
	struct attempt_run *a, *following;

	if (timer_is_armed(&w->hear_again) && children_matter(w))
		hear_children(w);
	if (!w->children_changed)
		return;
	reap_adopted(w);
	if (!w->children_changed && !children_matter(w) &&
	    (w->alive > 0 || w->ready.count > 0))
		ignore_children(w);
	for (a = w->pinned > 0 ? w->live : NULL; a != NULL; a = following) {
		following = a->following;
		if (w->ops[a->op].state == OP_ENDING)
			ending_look(a);
	}
}

/* ---- Limits, and a stop ---- */

/* What an agent has said to its end by then counts all the same. */
static void
limit_passed(struct attempt_run *a, enum op_class class)
{
	if (!agent_may_have_ended(a, class))
		ending_stop(a, class);
}

/* What is being ended after its final record has a result, whoever wants it to end. */
void
ending_stop_all(struct worker *w)
{
	struct attempt_run *a;

	w->stopped_now = true;
	for (a = w->live; a != NULL; a = a->following)
		if (w->ops[a->op].state == OP_RUNNING && (a->agent == NULL || !a->agent->hung))
			limit_passed(a, CLASS_CANCELLED);
		else
			outcome_hurry(a);
}

static void
limit_due(void *arg)
{
	limit_passed(arg, CLASS_TIMEOUT);
}

static uint64_t
output_bytes(const struct attempt_run *a)
{
	struct stat out = {0}, err = {0};
	char name[OP_FILE_TEXT];

	if (fstat(a->out_fd, &out) != 0)
		out.st_size = 0;
	op_file_name(a->w, a->op, a->number, ".err", name);
	if (fstatat(a->w->ops_fd, name, &err, AT_SYMLINK_NOFOLLOW) != 0)
		err.st_size = 0;
	return (uint64_t)out.st_size + (uint64_t)err.st_size;
}

static bool
gives_sign(struct attempt_run *a)
{
	const struct door *door = a->taken != NULL ? taken_door(a) : NULL;
	const struct flow_op *op = &a->w->flow->ops[a->op];
	struct proc_operation of;

	proc_operation_init(&of, a->id, door != NULL ? link_door_run(door) : a->w->run_id, op->id, a->number);
	return proc_life_look(&a->life, output_bytes(a), op->how->silence_strict ? NULL : &of);
}

static void
tell_silence(struct attempt_run *a)
{
	int64_t limit_ns = a->w->flow->ops[a->op].how->silence_ns;
	int64_t since_ns = clock_wall_ns() - (clock_monotonic_ns() - a->life.since_ns);

	event_begin(a->w, "NodeSilent");
	event_op(a->w, a->op);
	if (limit_ns % NS_PER_S == 0)
		event_int(a->w, "seconds", limit_ns / NS_PER_S);
	else
		event_real(a->w, "seconds", (double)limit_ns / (double)NS_PER_S);
	event_real(a->w, "since", (double)since_ns / (double)NS_PER_S);
	event_end(a->w);
}

static void
silence_due(void *arg)
{
	struct attempt_run *a = arg;
	struct worker *w = a->w;
	const struct flow_how *how = a->w->flow->ops[a->op].how;

	if (gives_sign(a) && a->silent_told) {
		a->silent_told = false;
		event_of_op(w, "NodeHeard", a->op);
	}
	if (clock_monotonic_ns() - a->life.since_ns >= how->silence_ns && !a->silent_told) {
		a->silent_told = true;
		tell_silence(a);
		if (!how->silence_notify) {
			limit_passed(a, CLASS_SILENCE);
			return;
		}
	}
	arm(a, &a->silence, proc_life_next(&a->life, how->silence_ns), silence_due);
}

void
ending_watch(struct attempt_run *a)
{
	int64_t left = turns_time_left_ns(a->w, a->op);

	a->w->alive++;
	if (a->keeper == NULL)
		ending_watch_process(a);
	ending_limits(a, left > 0 ? a->started_ns + left : 0);
}

void
ending_limits(struct attempt_run *a, int64_t limit_ns)
{
	const struct flow_how *how = a->w->flow->ops[a->op].how;

	if (limit_ns > 0)
		arm(a, &a->limit, limit_ns, limit_due);
	if (how->silence_ns > 0) {
		a->life.since_ns = clock_monotonic_ns();
		arm(a, &a->silence, proc_life_next(&a->life, how->silence_ns), silence_due);
	}
}
