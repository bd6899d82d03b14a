#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flowsup/endops.h"

#include "flowsup/clock.h"
#include "flowsup/exits.h"
#include "flowsup/fs.h"

enum {
	GIVE_UP_S = 10,	     /* after the last KILL: what stands in the kernel is left to it */
	LATE_GRACE_MS = 500, /* of what was born while the others ended */
	ASKED_ROUNDS = 3,    /* what is found later gets no TERM, which may make more of it */
	POLL_MOST_MS = 200,
	SIGNAL_WAIT_MOST_MS = 600000 /* what a start line may ask for between two signals */
};

struct victim {
	struct proc_id id;
	int pidfd;
	const char *op; /* borrowed from the attempts, or NULL */
	const struct json *plan; /* signals before TERM, borrowed; or NULL */
	size_t step;
	int64_t grace_ns, due_ns; /* due: its next signal */
	bool termed, killed, gone, spared;
};

struct ending {
	const struct endops_request *q;
	struct buf home_mark, op_mark;
	struct json *sessions; /* of the run and of those whose attempts it has taken over */
	struct victim *all;
	size_t count, cap;
	struct pollfd *polled;
	unsigned killed;
	struct json *unproven; /* pid as text -> {"pid","op","why"} */
	const struct attempt **meant; /* whose leaders are looked for */
	const struct attempt *of; /* whose processes the walk under way finds */
	int64_t grace_ns;
	bool grown;  /* the walk found one that was not known */
	bool unasked; /* what is found gets KILL at once */
	bool failed; /* a visit failed: *e says why */
	struct err *e;
};

void
endops_clear(struct endops_result *r)
{
	json_unref(r->left);
	*r = (struct endops_result){0};
}

/* ---- Where pids mean something ---- */

int
endops_is_here(const struct attempts *a, bool *here, bool *other_boot, struct err *e)
{
	struct proc_place now;

	*here = true;
	*other_boot = false;
	if (!a->has_place)
		return 0;
	if (proc_place_here(&now, e) != 0)
		return -1;
	*here = proc_place_is(&a->place, &now, other_boot);
	return 0;
}

/* ---- Finding ---- */

static struct victim *
find_known(const struct ending *n, const struct proc_stat *st)
{
	size_t i;

	for (i = 0; i < n->count; i++)
		if (n->all[i].id.pid == st->pid && n->all[i].id.start_ticks == st->start_ticks)
			return &n->all[i];
	return NULL;
}

static int
visit_failed(struct ending *n)
{
	n->failed = true;
	return -1;
}

static int
grow(struct ending *n)
{
	size_t cap = n->cap ? n->cap * 2 : 16;
	struct victim *all = reallocarray(n->all, cap, sizeof(*all));
	struct pollfd *polled;

	if (all == NULL)
		return err_nomem(n->e);
	n->all = all;
	polled = reallocarray(n->polled, cap, sizeof(*polled));
	if (polled == NULL)
		return err_nomem(n->e);
	n->polled = polled;
	n->cap = cap;
	return 0;
}

/* A proc_each: takes the process among those to be ended. The pidfd was opened by the walk, which
 * checked that it is the process it saw. */
static int
add(void *arg, const struct proc_stat *st, int pidfd)
{
	struct ending *n = arg;
	struct victim v = {.id = {st->pid, st->start_ticks}};

	if (find_known(n, st) != NULL)
		return 0;
	if (n->count == n->cap && grow(n) != 0)
		return visit_failed(n);
	v.op = n->of != NULL ? n->of->op : NULL;
	v.plan = n->of != NULL ? json_get(n->of->line, "signals") : NULL;
	v.grace_ns = n->grace_ns;
	v.pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 0);
	if (v.pidfd < 0) {
		err_sys(n->e, ERR_IO, errno, "hold process %d", (int)st->pid);
		return visit_failed(n);
	}
	n->all[n->count++] = v;
	n->grown = true;
	return 0;
}

/* A proc_each: one that an operation was allowed to leave. */
static int
spare(void *arg, const struct proc_stat *st, int pidfd)
{
	struct victim *v = find_known(arg, st);

	(void)pidfd;
	if (v != NULL && v->op == NULL)
		v->spared = v->gone = true;
	return 0;
}

/* A proc_each: notes what may be the run's, without a proof that would allow to end it. */
static int
note_unproven(void *arg, const struct proc_stat *st, int pidfd)
{
	struct ending *n = arg;
	struct json *one;
	char key[16];

	(void)pidfd;
	if (find_known(n, st) != NULL)
		return 0;
	one = json_set(json_object(), "pid", json_int(st->pid));
	snprintf(key, sizeof(key), "%d", (int)st->pid);
	one = json_set(one, "op", json_cstr(n->of->op));
	one = json_set(one, "why",
	    json_cstr("it is in the operation's process group, but its leader has ended and it bears "
		      "no mark of this run"));
	n->unproven = json_set(n->unproven, key, one);
	if (n->unproven != NULL)
		return 0;
	err_nomem(n->e);
	return visit_failed(n);
}

/* What came of a walk; a visit that fails ends it without saying so. */
static int
walked(const struct ending *n, int visited)
{
	return visited < 0 || n->failed ? -1 : 0;
}

static int64_t
grace_of(const struct attempt *a, int64_t most)
{
	int64_t ms = FLOW_DEFAULT_GRACE_S * INT64_C(1000), ns;

	if (!json_int64(json_get(a->line, "grace_ms"), &ms) || ms < 0 || ms > INT32_MAX)
		ms = FLOW_DEFAULT_GRACE_S * INT64_C(1000);
	ns = ms * NS_PER_MS;
	return most >= 0 && ns > most ? most : ns;
}

static bool
is_meant(const struct ending *n, const struct attempt *a)
{
	return (n->q->only == NULL || strcmp(a->op, n->q->only) == 0) &&
	    (n->q->spares == NULL || !n->q->spares(n->q->arg, a));
}

/* Before the first signal, so that nobody takes what we do for its own end. Where there is no room it
 * is ended all the same. */
static void
record_stop(const struct ending *n, const struct attempt *a)
{
	char dir[ATTEMPT_DIR_TEXT];
	int run_fd, ops_fd = -1;

	if (n->q->class == NULL || !proc_is_alive(a->id))
		return;
	run_fd = rundir_open(n->q->home, a->run != NULL ? a->run : n->q->run_id, NULL);
	if (run_fd >= 0)
		ops_fd = fs_open_private_dir(run_fd, RUN_OPS, NULL);
	if (ops_fd >= 0)
		(void)stop_record_write(ops_fd, attempt_dir(a->op, a->attempt, dir), a->id, n->q->class,
		    NULL);
	fd_close(&ops_fd);
	fd_close(&run_fd);
}

/* A proc_of_leader. */
static int
add_of_leader(void *arg, size_t leader, const struct proc_stat *st, int pidfd)
{
	struct ending *n = arg;

	n->of = n->meant[leader];
	n->grace_ns = grace_of(n->of, n->q->grace_most_ns);
	return add(n, st, pidfd);
}

/* Of leaders that still have their numbers, also as zombies. One walk: with many processes each one
 * takes long, and what is to end goes on meanwhile. */
static int
find_by_leaders(struct ending *n)
{
	const struct attempts *a = n->q->attempts;
	struct proc_id *leaders = calloc(a->nopen + 1, sizeof(*leaders));
	size_t count = 0, i;
	int rc = 0;

	n->meant = calloc(a->nopen + 1, sizeof(*n->meant));
	if (leaders == NULL || n->meant == NULL)
		rc = err_nomem(n->e);
	for (i = 0; rc == 0 && i < a->nopen; i++)
		if (is_meant(n, &a->open[i])) {
			record_stop(n, &a->open[i]);
			leaders[count] = a->open[i].id;
			n->meant[count++] = &a->open[i];
		}
	if (count > 0)
		rc = walked(n, proc_each_of_leaders(leaders, count, own_is_apart, add_of_leader, n, n->e));
	free(leaders);
	n->of = NULL;
	return rc;
}

/* A keeper leaves by itself when it has written how its operation ended. */
static bool
is_keeper(const struct ending *n, struct proc_id id)
{
	const struct attempts *a = n->q->attempts;
	size_t i;

	for (i = 0; i < a->nopen; i++)
		if (a->open[i].reaper.pid == id.pid && a->open[i].reaper.start_ticks == id.start_ticks)
			return true;
	return false;
}

static int
find_also(struct ending *n)
{
	struct proc_stat st = {0};
	int pidfd, r = 0;
	size_t i;

	for (i = 0; r == 0 && i < n->q->nalso; i++) {
		const struct proc_id id = n->q->also[i];

		if (is_keeper(n, id) || !proc_is_alive(id) || (pidfd = proc_open(id, NULL)) < 0)
			continue;
		st.pid = id.pid;
		st.start_ticks = id.start_ticks;
		r = add(n, &st, pidfd);
		fd_close(&pidfd);
	}
	return r;
}

/* A proc_each. */
static int
add_below(void *arg, const struct proc_stat *st, int pidfd)
{
	const struct proc_id id = {st->pid, st->start_ticks};

	return is_keeper(arg, id) ? 0 : add(arg, st, pidfd);
}

static int
find_below(struct ending *n)
{
	const struct proc_id below = n->q->below;

	if (below.pid == 0 || !proc_is_alive(below))
		return 0;
	return walked(n, proc_each_descendant(below.pid, own_is_apart, add_below, n, n->e));
}

/* A proc_of_leader. */
static int
add_of_stray(void *arg, size_t leader, const struct proc_stat *st, int pidfd)
{
	(void)leader;
	return add(arg, st, pidfd);
}

static int
add_stray(struct ending *n, struct proc_id id)
{
	struct proc_stat st = {.pid = id.pid, .start_ticks = id.start_ticks};
	int pidfd = proc_open(id, NULL), rc;

	if (pidfd < 0)
		return 0;
	rc = add(n, &st, pidfd);
	fd_close(&pidfd);
	return rc;
}

static bool
may_end_strays(const struct ending *n)
{
	const struct endops_request *q = n->q;

	return q->attempts->nstrays > 0 && q->strays == ENDOPS_STRAYS_END && q->only == NULL &&
	    !attempts_any_leaves(q->attempts);
}

/* With their groups and what descends from them. */
static int
find_strays(struct ending *n)
{
	const struct attempts *a = n->q->attempts;
	size_t i;

	if (!may_end_strays(n))
		return 0;
	for (i = 0; i < a->nstrays; i++)
		if (attempts_stray_lives(a, i) && add_stray(n, a->strays[i]) != 0)
			return -1;
	return walked(n, proc_each_of_leaders(a->strays, a->nstrays, own_is_apart, add_of_stray, n, n->e));
}

struct marked {
	struct ending *n;
	proc_each *each;
};

/* A proc_each. */
static int
visit_marked(void *arg, const struct proc_stat *st, int pidfd)
{
	const struct marked *m = arg;

	/* One that was called in its foreground bears the marks of the operation that it was called in. */
	return own_is_apart(st->pid) ? 0 : m->each(m->n, st, pidfd);
}

/* Every session's marks, with a third one where that is asked for. */
static int
walk_marked(struct ending *n, const char *op_mark, proc_each *each)
{
	struct marked m = {n, each};
	struct json_iter it = json_iterate(n->sessions);
	struct buf session = {0};
	const struct json *one;
	int rc = 0;

	while (rc == 0 && json_next(&it, NULL, &one)) {
		const char *marks[3] = {NULL, buf_text(&n->home_mark), op_mark};

		buf_reset(&session);
		buf_printf(&session, "FLOWSUP_SESSION_ID=%s", json_cstr_of(one));
		rc = buf_ok(&session, n->e);
		marks[0] = buf_text(&session);
		if (rc == 0)
			rc = walked(n, proc_each_marked(marks, op_mark != NULL ? 3 : 2, visit_marked, &m, n->e));
	}
	buf_clear(&session);
	return rc;
}

static int
find_by_marks(struct ending *n)
{
	return walk_marked(n, n->q->only != NULL ? buf_text(&n->op_mark) : NULL, add);
}

static int
spare_operation(struct ending *n, const char *op)
{
	char op_mark[sizeof("FLOWSUP_OP_ID=") + FLOW_MAX_ID];

	snprintf(op_mark, sizeof(op_mark), "FLOWSUP_OP_ID=%s", op);
	return walk_marked(n, op_mark, spare);
}

static bool
is_open(const struct ending *n, const char *op)
{
	size_t i;

	for (i = 0; i < n->q->attempts->nopen; i++)
		if (strcmp(n->q->attempts->open[i].op, op) == 0)
			return true;
	return false;
}

/* After the marks: of what they found, that which an operation with `leave` left after its end, and
 * that of operations that are left alone. */
static int
spare_left(struct ending *n)
{
	const struct flow *f = n->q->flow;
	size_t i;

	for (i = 0; f != NULL && n->grown && i < f->nops; i++)
		if (f->ops[i].how->leave && !is_open(n, f->ops[i].id) &&
		    spare_operation(n, f->ops[i].id) != 0)
			return -1;
	for (i = 0; n->q->spares != NULL && n->grown && i < n->q->attempts->nopen; i++)
		if (n->q->spares(n->q->arg, &n->q->attempts->open[i]) &&
		    spare_operation(n, n->q->attempts->open[i].op) != 0)
			return -1;
	return 0;
}

static int
find_unproven(struct ending *n)
{
	size_t i;

	for (i = 0; i < n->q->attempts->nopen; i++) {
		n->of = &n->q->attempts->open[i];
		if (!is_meant(n, n->of))
			continue;
		/* A living process with the leader's number is another one: its group is another too. */
		if (killpg(n->of->id.pid, 0) != 0 ||
		    proc_identify(n->of->id.pid, &(struct proc_id){0}, NULL) == 0)
			continue;
		if (walked(n, proc_each_in_group(n->of->id.pid, note_unproven, n, n->e)) != 0)
			return -1;
	}
	n->of = NULL;
	return 0;
}

/* ---- Ending ---- */

static bool
has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN) != 0;
}

/* One step of the plan: its signal, and how long is waited behind it. */
static bool
read_step(const struct json *plan, size_t step, int *sig, int64_t *wait_ns)
{
	const struct json *one = json_at(plan, step);
	int64_t number, ms;

	if (!json_int64(json_at(one, 0), &number) || number < 1 || number >= NSIG ||
	    !json_int64(json_at(one, 1), &ms) || ms < 0 || ms > SIGNAL_WAIT_MOST_MS)
		return false;
	*sig = (int)number;
	*wait_ns = ms * NS_PER_MS;
	return true;
}

/* The next signal: those of the plan, TERM, KILL, once each; what is not asked any more gets KILL alone. */
static int
signal_next(struct ending *n, struct victim *v, struct err *e)
{
	int64_t wait = v->grace_ns;
	int sig = SIGKILL;

	if (n->unasked)
		v->termed = true;
	if (!v->termed && !read_step(v->plan, v->step++, &sig, &wait)) {
		sig = SIGTERM;
		v->termed = true;
	} else if (sig == SIGKILL && v->termed) {
		v->killed = true;
		n->killed++;
	}
	v->due_ns = clock_monotonic_ns() + wait;
	return proc_signal(v->pidfd, sig, e);
}

static int
signal_new(struct ending *n, size_t from, struct err *e)
{
	for (; from < n->count; from++) {
		struct victim *v = &n->all[from];

		/* What was seen and ended by itself before it could be spared. */
		if (!v->gone && has_ended(v->pidfd))
			v->gone = v->spared = true;
		if (!v->gone && signal_next(n, v, e) != 0)
			return -1;
	}
	return 0;
}

/* Waits until something ends or a KILL is due; false when nothing lives any more. */
static bool
wait_a_little(struct ending *n)
{
	int64_t next = clock_monotonic_ns() + POLL_MOST_MS * NS_PER_MS, now;
	nfds_t count = 0;
	size_t i;

	for (i = 0; i < n->count; i++) {
		if (n->all[i].gone)
			continue;
		n->polled[count++] = (struct pollfd){.fd = n->all[i].pidfd, .events = POLLIN};
		if (!n->all[i].killed && n->all[i].due_ns < next)
			next = n->all[i].due_ns;
	}
	if (count == 0)
		return false;
	now = clock_monotonic_ns();
	poll(n->polled, count, next > now ? (int)((next - now) / NS_PER_MS) + 1 : 0);
	return true;
}

static int
look_at_all(struct ending *n, struct err *e)
{
	int64_t now = clock_monotonic_ns();
	size_t i;

	for (i = 0; i < n->count; i++) {
		struct victim *v = &n->all[i];

		if (v->gone || (v->gone = has_ended(v->pidfd)) || v->killed || v->due_ns > now)
			continue;
		if (signal_next(n, v, e) != 0)
			return -1;
	}
	return 0;
}

/* When the last of them gets KILL. */
static int64_t
last_kill(const struct ending *n)
{
	int64_t last = clock_monotonic_ns(), at, wait;
	size_t i, step;
	int sig;

	for (i = 0; i < n->count; i++) {
		at = n->all[i].due_ns + n->all[i].grace_ns;
		for (step = n->all[i].step; read_step(n->all[i].plan, step, &sig, &wait); step++)
			at += wait;
		if (!n->all[i].gone && at > last)
			last = at;
	}
	return last;
}

static int
end_known(struct ending *n, struct err *e)
{
	int64_t until = last_kill(n) + GIVE_UP_S * NS_PER_S;

	while (wait_a_little(n) && clock_monotonic_ns() < until)
		if (look_at_all(n, e) != 0)
			return -1;
	return look_at_all(n, e);
}

static bool
any_left(const struct ending *n)
{
	size_t i;

	for (i = 0; i < n->count; i++)
		if (!n->all[i].gone)
			return true;
	return false;
}

/*
 * First round: everything, by all ways. Then marks, and what a stopped worker has below it, since groups
 * went with their leaders: again until a pass finds nothing new, for a process may be born behind the
 * walk's back, or as another's answer to TERM. What goes on like that is not asked any more.
 */
static int
end_all(struct ending *n)
{
	int64_t grace_most_ns = n->q->grace_most_ns;
	size_t before = 0;
	unsigned round;

	if (find_by_leaders(n) != 0)
		return -1;
	n->grace_ns = grace_most_ns >= 0 && grace_most_ns < FLOW_DEFAULT_GRACE_S * NS_PER_S
	    ? grace_most_ns
	    : FLOW_DEFAULT_GRACE_S * NS_PER_S;
	if (find_also(n) != 0)
		return -1;
	for (round = 0;; round++) {
		/* At first what descent found counts too: it may hold what `leave` spares. */
		n->grown = before == 0 && n->count > 0;
		n->unasked = round >= ASKED_ROUNDS;
		if (find_below(n) != 0 || find_strays(n) != 0 || find_by_marks(n) != 0 || spare_left(n) != 0)
			return -1;
		if (!n->grown && before == n->count)
			return 0;
		if (signal_new(n, before, n->e) != 0 || end_known(n, n->e) != 0)
			return -1;
		before = n->count;
		if (any_left(n))
			return 0;
		n->grace_ns = LATE_GRACE_MS * NS_PER_MS;
	}
}

/* ---- The result ---- */

static struct json *
list_left(const struct ending *n)
{
	struct json *left = json_array(), *one;
	struct json_iter it = json_iterate(n->unproven);
	const struct json *noted;
	size_t i;

	for (i = 0; i < n->count; i++) {
		if (n->all[i].gone)
			continue;
		one = json_set(json_object(), "pid", json_int(n->all[i].id.pid));
		one = json_set(one, "op",
		    n->all[i].op != NULL ? json_cstr(n->all[i].op) : json_null());
		one = json_set(one, "why", json_cstr("it does not end by SIGKILL"));
		left = json_append(left, one);
	}
	while (json_next(&it, NULL, &noted))
		left = json_append(left, json_ref(noted));
	return left;
}

void
endops_tell_left(const struct endops_result *r, struct buf *to)
{
	struct json_iter it = json_iterate(r->left);
	const struct json *one;
	const char *op;
	int64_t pid;
	bool first = true;

	while (json_next(&it, NULL, &one)) {
		op = json_cstr_of(json_get(one, "op"));
		if (!json_int64(json_get(one, "pid"), &pid))
			continue;
		buf_printf(to, "%sprocess %lld", first ? "" : "; ", (long long)pid);
		if (op != NULL)
			buf_printf(to, " of operation %s", op);
		buf_printf(to, ": %s", json_cstr_of(json_get(one, "why")));
		first = false;
	}
}

static void
ending_clear(struct ending *n)
{
	size_t i;

	for (i = 0; i < n->count; i++)
		fd_close(&n->all[i].pidfd);
	free(n->all);
	free(n->polled);
	free(n->meant);
	json_unref(n->unproven);
	json_unref(n->sessions);
	buf_clear(&n->home_mark);
	buf_clear(&n->op_mark);
}

/* Operations that a run has taken over bear the marks of the run that started them. */
static int
add_session_of(struct ending *n, const char *run_id, struct err *e)
{
	struct launch_read l;
	int run_fd = rundir_open(n->q->home, run_id, e), rc;

	if (run_fd < 0)
		return -1;
	rc = launch_read(run_fd, &l, e);
	fd_close(&run_fd);
	if (rc != 0)
		return -1;
	n->sessions = json_set(n->sessions, run_id, json_cstr(l.session_id));
	launch_read_clear(&l);
	return n->sessions != NULL ? 0 : err_nomem(e);
}

static int
make_marks(struct ending *n)
{
	const struct attempts *a = n->q->attempts;
	size_t i;

	n->sessions = json_set(json_object(), n->q->run_id, json_cstr(n->q->session_id));
	if (n->sessions == NULL)
		return err_nomem(n->e);
	for (i = 0; i < a->nopen; i++)
		if (a->open[i].run != NULL && json_get(n->sessions, a->open[i].run) == NULL &&
		    add_session_of(n, a->open[i].run, n->e) != 0)
			return -1;
	buf_printf(&n->home_mark, "FLOWSUP_HOME=%s", n->q->home->path);
	buf_printf(&n->op_mark, "FLOWSUP_OP_ID=%s", n->q->only != NULL ? n->q->only : "");
	return buf_ok(&n->home_mark, n->e) != 0 || buf_ok(&n->op_mark, n->e) != 0 ? -1 : 0;
}

static void
count(const struct ending *n, struct endops_result *r)
{
	size_t i;

	for (i = 0; i < n->count; i++) {
		r->found += !n->all[i].spared;
		r->lasting += !n->all[i].gone;
	}
	r->killed = n->killed;
}

int
endops_run(const struct endops_request *q, struct endops_result *out, struct err *e)
{
	struct ending n = {.q = q, .unproven = json_object(), .e = e};
	struct endops_result r = {0};
	bool here = true, other_boot = false;
	int rc = n.unproven != NULL ? endops_is_here(q->attempts, &here, &other_boot, e) : err_nomem(e);

	if (rc == 0 && !here) {
		r.elsewhere = true;
	} else if (rc == 0 && !other_boot) {
		rc = make_marks(&n);
		if (rc == 0)
			rc = end_all(&n);
		if (rc == 0)
			rc = find_unproven(&n);
	}
	if (rc == 0) {
		count(&n, &r);
		r.left = list_left(&n);
		rc = r.left != NULL ? 0 : err_nomem(e);
	}
	if (rc == 0)
		*out = r;
	else
		err_wrap(e, "ending what is left of the run");
	ending_clear(&n);
	return rc;
}
