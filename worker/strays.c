/*
 * Processes that an operation left in sessions of their own. They are found by descent (what lost
 * its parent has become our child) and by the marks in their environment, and ended through
 * pidfds: TERM once, the operation's grace, KILL.
 */
#include "keeper.h"
#include "taken.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"

/* A sweep looks at every process there is: the part of the time that all of them may take is a promise
 * to the operations, which want the processor too. */
enum { SWEEP_RATION = 200, SWEEP_SOONEST_MS = 20, MARKS_MOST = 256 << 10 };

struct stray {
	struct worker *w;
	struct stray *previous, *following;
	struct proc_id id;
	int pidfd;
	uint32_t op; /* OP_NO_INDEX: it hides whose it is */
	unsigned attempt;
	bool killed;
	struct poller_source source;
	struct timer timer;
};

/* Which attempt a process belongs to, as its environment says. */
struct marks {
	char op[FLOW_MAX_ID + 1];
	char attempt[16];
	char session[UUID_TEXT];
};

static void
copy_mark(const char *entry, const char *name, char *to, size_t size)
{
	size_t len = strlen(name);

	if (strncmp(entry, name, len) == 0)
		snprintf(to, size, "%s", entry + len);
}

static bool
read_marks(pid_t pid, struct buf *text, struct marks *out)
{
	char path[32];
	size_t at;
	int fd, rc;

	memset(out, 0, sizeof(*out));
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	buf_reset(text);
	rc = fs_read_all(&fs_real, "proc.environ", fd, MARKS_MOST, text, NULL);
	fd_close(&fd);
	if (rc != 0 || text->failed)
		return false;
	for (at = 0; at < text->len; at += strlen(text->data + at) + 1) {
		copy_mark(text->data + at, "FLOWSUP_OP_ID=", out->op, sizeof(out->op));
		copy_mark(text->data + at, "FLOWSUP_ATTEMPT=", out->attempt, sizeof(out->attempt));
		copy_mark(text->data + at, "FLOWSUP_SESSION_ID=", out->session,
		    sizeof(out->session));
	}
	return out->op[0] != '\0';
}

/* ---- One stray ---- */

static struct attempt_run *
attempt_of(const struct stray *s)
{
	struct attempt_run *a = s->op != OP_NO_INDEX ? s->w->ops[s->op].live : NULL;

	return a != NULL && a->number == s->attempt && s->w->ops[s->op].state == OP_ENDING ? a : NULL;
}

static void
stray_free(struct stray *s)
{
	poller_unwatch(&s->w->loop, &s->source);
	timer_disarm(&s->w->loop.timers, &s->timer);
	fd_close(&s->pidfd);
	if (s->previous != NULL)
		s->previous->following = s->following;
	else
		s->w->strays = s->following;
	if (s->following != NULL)
		s->following->previous = s->previous;
	free(s);
}

static void
stray_gone(struct stray *s)
{
	struct attempt_run *a = attempt_of(s);

	stray_free(s);
	if (a != NULL && a->strays > 0) {
		a->strays--;
		ending_look(a);
	}
}

static void
stray_ready(void *arg, short revents)
{
	(void)revents;
	stray_gone(arg);
}

static void
stray_due(void *arg)
{
	struct stray *s = arg;
	struct err e = {0};

	if (s->killed) {
		log_line(LOG_WARNING, "process %d, a leftover, does not end by SIGKILL",
		    (int)s->id.pid);
		stray_gone(s);
		return;
	}
	s->killed = true;
	if (proc_signal(s->pidfd, SIGKILL, &e) != 0)
		log_line(LOG_WARNING, "%s", e.msg);
	if (timer_arm(&s->w->loop.timers, &s->timer,
		clock_monotonic_ns() + ENDING_GIVE_UP_S * NS_PER_S, stray_due, s, &e) != 0)
		worker_error(s->w, &e);
}

static bool
is_known(const struct worker *w, const struct proc_stat *st)
{
	const struct stray *s;

	for (s = w->strays; s != NULL; s = s->following)
		if (s->id.pid == st->pid && s->id.start_ticks == st->start_ticks)
			return true;
	return false;
}

static void
stray_link(struct stray *s)
{
	struct worker *w = s->w;

	s->following = w->strays;
	if (w->strays != NULL)
		w->strays->previous = s;
	w->strays = s;
}

/* One word for people is enough, whenever the next one is found. */
static void
tell(struct worker *w, uint32_t op, pid_t pid)
{
	bool *told = op != OP_NO_INDEX ? &w->ops[op].leftover_told : &w->hidden_leftover_told;

	event_begin(w, "NodeLeftover");
	if (op != OP_NO_INDEX)
		event_op(w, op);
	event_int(w, "pid", pid);
	if (*told)
		event_int(w, "again", 1);
	event_end(w);
	*told = true;
}

static int
stray_new(struct worker *w, const struct proc_stat *st, uint32_t op, unsigned attempt,
    struct err *e)
{
	int64_t grace = op != OP_NO_INDEX ? w->flow->ops[op].how->grace_ns
					  : FLOW_DEFAULT_GRACE_S * NS_PER_S;
	struct stray *s = calloc(1, sizeof(*s));
	struct attempt_run *a;

	if (s == NULL)
		return err_nomem(e);
	s->w = w;
	s->id = (struct proc_id){.pid = st->pid, .start_ticks = st->start_ticks};
	s->op = op;
	s->attempt = attempt;
	s->pidfd = proc_open(s->id, e);
	stray_link(s);
	if (s->pidfd < 0) { /* it has just ended */
		stray_free(s);
		return 0;
	}
	if (poller_watch(&w->loop, &s->source, s->pidfd, POLLIN, stray_ready, s, e) != 0 ||
	    timer_arm(&w->loop.timers, &s->timer, clock_monotonic_ns() + grace, stray_due, s, e) != 0) {
		stray_free(s);
		return -1;
	}
	if (proc_signal(s->pidfd, SIGTERM, e) != 0)
		log_line(LOG_WARNING, "%s", e->msg);
	a = attempt_of(s);
	if (a != NULL) {
		a->strays++;
		a->leftovers++;
	} else if (op != OP_NO_INDEX) {
		events_late_leftover(w, op, attempt);
	}
	tell(w, op, st->pid);
	return 0;
}

/* ---- A pass ---- */

struct pass {
	struct worker *w;
	struct buf text;
	struct err *e;
	unsigned found;
	bool unmarked; /* what hides whose it is counts too: nothing runs any more */
};

/* The group of an attempt that is not over is the business of ending.c; that of one that was taken
 * over only while its leader lives. */
static bool
is_in_live_session(const struct worker *w, const struct proc_stat *st)
{
	const struct attempt_run *a;

	for (a = w->live; a != NULL; a = a->following)
		if (a->pidfd >= 0 && a->id.pid == st->session && (a->taken == NULL || !a->exited))
			return true;
	return false;
}

/* While an attempt runs, what it has put into other sessions is its own affair. */
static bool
is_still_wanted(const struct worker *w, uint32_t op, unsigned attempt)
{
	const struct attempt_run *a = w->ops[op].live;

	if (w->flow->ops[op].how->leave)
		return true;
	/* Below a keeper it may run before that has said so: then there is no pidfd yet. */
	return a != NULL && a->number == attempt && !a->exited;
}

/* A process that cleared its environment: ours by descent, whoever's of the operations. */
static int
visit_unmarked(struct pass *p, const struct proc_stat *st)
{
	if (!p->unmarked || p->w->any_leaves)
		return 0;
	p->found++;
	return stray_new(p->w, st, OP_NO_INDEX, 0, p->e);
}

static bool
is_session_of_ours(const struct worker *w, const char *session)
{
	const struct door *d = NULL;

	if (strcmp(session, w->session_id) == 0)
		return true;
	while ((d = link_next_door(w, d)) != NULL)
		if (strcmp(session, link_door_session(d)) == 0)
			return true;
	return false;
}

static int
visit(void *arg, const struct proc_stat *st, int pidfd)
{
	struct pass *p = arg;
	struct marks marks;
	unsigned attempt;
	size_t op;

	(void)pidfd;
	if (is_in_live_session(p->w, st) || is_known(p->w, st) || keeper_is_one(p->w, st->pid) ||
	    own_is_apart(st->pid))
		return 0;
	if (!read_marks(st->pid, &p->text, &marks) || !is_session_of_ours(p->w, marks.session))
		return visit_unmarked(p, st);
	op = flow_find(p->w->flow, marks.op);
	attempt = (unsigned)strtoul(marks.attempt, NULL, 10);
	if (op == SIZE_MAX || is_still_wanted(p->w, (uint32_t)op, attempt))
		return 0;
	p->found++;
	return stray_new(p->w, st, (uint32_t)op, attempt, p->e);
}

static void
pass_done(struct worker *w, struct pass *p, int rc, struct err *e)
{
	if (rc < 0 && e->code == ERR_NOMEM)
		worker_error(w, e);
	else if (rc < 0 && e->code != ERR_NONE)
		log_line(LOG_WARNING, "looking for leftovers: %s", e->msg);
	buf_clear(&p->text);
}

static void
ration(struct worker *w, int64_t begun)
{
	int64_t now = clock_monotonic_ns();

	w->sweep_next_ns = now + (now - begun) * SWEEP_RATION;
	if (w->sweep_next_ns < now + SWEEP_SOONEST_MS * NS_PER_MS)
		w->sweep_next_ns = now + SWEEP_SOONEST_MS * NS_PER_MS;
}

static void
sweep(struct worker *w)
{
	struct err e = {0};
	struct pass p = {.w = w, .e = &e};
	int64_t begun = clock_monotonic_ns();

	timer_disarm(&w->loop.timers, &w->sweep);
	pass_done(w, &p, proc_each_descendant(getpid(), own_is_apart, visit, &p, &e), &e);
	ration(w, begun);
}

static void
sweep_due(void *arg)
{
	sweep(arg);
}

/* While an operation runs, its process is such a child: then only a pass can tell. */
bool
strays_possible(const struct worker *w)
{
	siginfo_t info = {0};

	return w->alive > 0 || waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0;
}

/* What bears the marks of a session, be it our child or not. */
static void
pass_marked(struct pass *p, const char *session_id)
{
	char session[64];
	struct buf home = {0};
	const char *marks[2];

	snprintf(session, sizeof(session), "FLOWSUP_SESSION_ID=%s", session_id);
	buf_printf(&home, "FLOWSUP_HOME=%s", p->w->home.path);
	marks[0] = session;
	marks[1] = buf_text(&home);
	pass_done(p->w, p, proc_each_marked(marks, 2, visit, p, p->e), p->e);
	buf_clear(&home);
}

void
strays_after(struct attempt_run *a)
{
	struct worker *w = a->w;
	struct err e = {0};
	struct pass p = {.w = w, .e = &e};

	if (a->taken != NULL) {
		/* Of what was copied, all that may still live is somebody else's. */
		if (taken_door(a) != NULL)
			pass_marked(&p, link_door_session(taken_door(a)));
		return;
	}
	if (!strays_possible(w))
		return;
	if (clock_monotonic_ns() >= w->sweep_next_ns)
		sweep(w);
	else if (!timer_is_armed(&w->sweep) &&
	    timer_arm(&w->loop.timers, &w->sweep, w->sweep_next_ns, sweep_due, w, &e) != 0)
		worker_error(w, &e);
}

bool
strays_pass(struct worker *w)
{
	struct err e = {0};
	struct pass p = {.w = w, .e = &e};
	const struct door *d = NULL;

	timer_disarm(&w->loop.timers, &w->sweep);
	pass_marked(&p, w->session_id);
	while ((d = link_next_door(w, d)) != NULL)
		pass_marked(&p, link_door_session(d));
	p.unmarked = true;
	if (strays_possible(w))
		pass_done(w, &p, proc_each_descendant(getpid(), own_is_apart, visit, &p, &e), &e);
	return p.found == 0 && w->strays == NULL;
}

void
strays_clear(struct worker *w)
{
	while (w->strays != NULL)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		stray_free(w->strays);
}
