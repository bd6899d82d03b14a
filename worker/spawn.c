/* Starting an attempt: its files, what must be durable before, the process, its limits. */
#include "agent.h"

#include "keeper.h"
#include "taken.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"

struct attempt_run *
attempt_new(struct worker *w, uint32_t i)
{
	struct attempt_run *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->w = w;
	a->op = i;
	a->pidfd = a->out_fd = -1;
	a->following = w->live;
	if (w->live != NULL)
		w->live->previous = a;
	w->live = a;
	w->ops[i].live = a;
	return a;
}

void
attempt_free(struct attempt_run *a)
{
	struct worker *w = a->w;

	poller_unwatch(&w->loop, &a->source);
	timer_disarm(&w->loop.timers, &a->limit);
	timer_disarm(&w->loop.timers, &a->stop);
	timer_disarm(&w->loop.timers, &a->silence);
	timer_disarm(&w->loop.timers, &a->retry);
	agent_free(a->agent);
	keeper_release(a);
	taken_free(a);
	fd_close(&a->pidfd);
	fd_close(&a->out_fd);
	if (a->previous != NULL)
		a->previous->following = a->following;
	else
		w->live = a->following;
	if (a->following != NULL)
		a->following->previous = a->previous;
	w->ops[a->op].live = NULL;
	emit_clear(a);
	reactive_forget(a);
	free(a);
}

const char *
op_file_name(const struct worker *w, uint32_t i, unsigned attempt, const char *suffix,
    char to[OP_FILE_TEXT])
{
	const char *id = w->flow->ops[i].id;
	char *at = to;

	assert(strlen(id) <= FLOW_MAX_ID && strlen(suffix) < OP_FILE_TEXT - FLOW_MAX_ID - DECIMAL_TEXT);
	at = stpcpy(at, id);
	*at++ = '.';
	at = put_number(at, attempt, 1);
	stpcpy(at, suffix);
	return to;
}

/* ---- Files ---- */

/* For appending, so that standard output and error in one file do not overwrite each other. The
 * descriptor of the output is kept, to read the response from. */
static int
open_output(struct attempt_run *a, const char *suffix, int *fd, struct err *e)
{
	char name[OP_FILE_TEXT];

	op_file_name(a->w, a->op, a->number, suffix, name);
	*fd = openat(a->w->ops_fd, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	return *fd >= 0 ? 0 : err_sys(e, ERR_IO, errno, "cannot create ops/%s", name);
}

/* Never a pipe, and never what the worker itself reads: at once all there is, or nothing. *own is to
 * be closed, -1: nothing is. */
static int
open_input(const struct attempt_run *a, int *fd, int *own, struct err *e)
{
	if (a->agent != NULL)
		*fd = *own = agent_stdin(a->agent, e);
	else
		*fd = a->w->null_fd;
	return *fd >= 0 ? 0 : err_sys(e, ERR_IO, errno, "cannot open standard input");
}

/* ---- What is to happen in the child ---- */

static int
set_rlimit(struct proc_spawn *s, int resource, int64_t value, struct err *e)
{
	unsigned n;

	if (value < 0)
		return 0;
	for (n = 0; n < s->nrlimits; n++)
		if (s->rlimits[n].resource == resource)
			break;
	if (n == PROC_MAX_RLIMITS)
		return err_set(e, ERR_LIMIT, "too many resource limits");
	if (n == s->nrlimits)
		s->nrlimits++;
	s->rlimits[n].resource = resource;
	s->rlimits[n].value.rlim_cur = s->rlimits[n].value.rlim_max = (rlim_t)value;
	return 0;
}

/*
 * The soft limit comes first, as SIGXCPU; what goes on all the same is killed by the kernel once it has
 * used its grace too, or as much of it as the hard limit leaves that is there already.
 */
static int
set_cpu_limit(struct proc_spawn *s, const struct flow_how *how, struct err *e)
{
	struct rlimit there = {.rlim_max = RLIM_INFINITY};
	rlim_t soft, hard;
	unsigned n;

	if (how->limit_cpu_s < 0)
		return 0;
	(void)getrlimit(RLIMIT_CPU, &there); /* fails for no valid argument */
	for (n = 0; n < s->nrlimits; n++)
		if (s->rlimits[n].resource == RLIMIT_CPU)
			there = s->rlimits[n].value;
	if (set_rlimit(s, RLIMIT_CPU, how->limit_cpu_s, e) != 0)
		return -1;
	soft = (rlim_t)how->limit_cpu_s;
	hard = soft + (rlim_t)((how->grace_ns + NS_PER_S - 1) / NS_PER_S);
	if (hard > there.rlim_max)
		hard = there.rlim_max > soft ? there.rlim_max : soft;
	for (n = 0; n < s->nrlimits; n++)
		if (s->rlimits[n].resource == RLIMIT_CPU)
			s->rlimits[n].value.rlim_max = hard;
	return 0;
}

static int
set_limits(const struct worker *w, const struct flow_how *how, struct proc_spawn *s, struct err *e)
{
	unsigned n;

	for (n = 0; n < w->launch.nrlimits; n++)
		s->rlimits[n] = w->launch.rlimits[n];
	s->nrlimits = w->launch.nrlimits;
	s->set_umask = true;
	s->umask = how->umask >= 0 ? (mode_t)how->umask : w->launch.umask;
	s->set_nice = how->has_nice;
	s->nice = how->nice;
	if (set_cpu_limit(s, how, e) != 0 ||
	    set_rlimit(s, RLIMIT_AS, how->limit_memory_bytes, e) != 0)
		return -1;
	return set_rlimit(s, RLIMIT_NOFILE, how->limit_files, e);
}

static void
set_fd(struct proc_spawn *s, int from, int to)
{
	assert(s->nfds < PROC_MAX_FDS);
	s->fds[s->nfds++] = (struct proc_fd){.from = from, .to = to};
}

/* As a child of ours. */
static int
start_own(struct attempt_run *a, struct proc_spawn *s, int in_fd, int err_fd, struct err *e)
{
	struct start_line line;
	struct proc_child child;
	int rc;

	if (start_line_make(a, &line, e) != 0)
		return -1;
	set_fd(s, in_fd, 0);
	set_fd(s, a->out_fd, 1);
	set_fd(s, err_fd, 2);
	s->log_fd = a->w->attempts_fd;
	s->log_before = slice_of(line.before);
	s->log_between = slice_of(START_LINE_BETWEEN);
	s->log_after = slice_of(line.rest);
	rc = proc_start(s, &child, NULL, e);
	s->log_before = s->log_after = (struct slice){0}; /* they were this function's */
	if (rc != 0)
		return -1;
	a->id = child.id;
	a->pidfd = child.pidfd;
	return 0;
}

static int
start_process(struct attempt_run *a, int in_fd, int err_fd, struct err *e)
{
	const struct worker *w = a->w;
	const struct flow_op *def = &w->flow->ops[a->op];
	struct proc_spawn s = PROC_SPAWN_INIT;
	struct given given;

	if (context_prepare(a->w, a->op, &given, e) != 0 || set_limits(w, def->how, &s, e) != 0)
		return -1;
	s.path = def->kind == FLOW_RUN ? "/bin/sh" : given.argv[0];
	s.search_path = given.search_path;
	s.argv = given.argv;
	s.envp = given.envp;
	s.cwd = given.cwd;
	s.new_session = true;
	if (def->how->output_merged)
		err_fd = a->out_fd;
	return keeper_is_wanted(w, a->op) ? keeper_start(a, &s, in_fd, err_fd, e)
					  : start_own(a, &s, in_fd, err_fd, e);
}

static int
start_attempt(struct attempt_run *a, struct err *e)
{
	bool merged = a->w->flow->ops[a->op].how->output_merged;
	int err_fd = -1, in_fd = -1, own_fd = -1, rc;

	rc = open_output(a, ".out", &a->out_fd, e);
	if (rc == 0 && !merged)
		rc = open_output(a, ".err", &err_fd, e);
	if (rc == 0)
		rc = artifact_dir_make(a, e);
	if (rc == 0)
		rc = open_input(a, &in_fd, &own_fd, e);
	if (rc == 0)
		rc = start_process(a, in_fd, err_fd, e);
	fd_close(&own_fd);
	fd_close(&err_fd);
	return rc;
}

/* ---- Outcome of a start ---- */

/* Undoes what an attempt that did not start has made. */
static void
forget_start(struct attempt_run *a)
{
	char name[OP_FILE_TEXT];

	unlinkat(a->w->ops_fd, op_file_name(a->w, a->op, a->number, ".out", name), 0);
	unlinkat(a->w->ops_fd, op_file_name(a->w, a->op, a->number, ".err", name), 0);
	spawn_give_back(a, op_file_name(a->w, a->op, a->number, "", name));
}

static void
is_told(struct attempt_run *a)
{
	if (!a->begins)
		return;
	a->begins = false;
	admission_began(a->w);
}

void
spawn_failed(struct attempt_run *a, enum op_class class, const struct err *e)
{
	struct outcome o = {.class = class, .code = e->sys};
	struct buf text = {0};

	is_told(a);
	/* Not its fault: it waits until there is room again. */
	if (class == CLASS_SPAWN && e->code == ERR_NOSPACE) {
		storage_start_failed(a->w, e);
		forget_start(a);
		return;
	}
	buf_puts(&text, e->msg);
	if (err_has_hint(e))
		buf_printf(&text, "; %s", err_hint_text(e));
	o.message = buf_steal(&text);
	a->ended_at = (double)clock_wall_ns() / (double)NS_PER_S;
	if (a->started_at == 0)
		a->started_at = a->ended_at;
	op_become(&a->w->ops[a->op], OP_SETTLING);
	a->w->settling++;
	admission_slot_free(a->w);
	settle_attempt(a, &o);
	outcome_clear(&o);
}

void
spawn_started(struct attempt_run *a)
{
	struct worker *w = a->w;

	storage_start_worked(w);
	op_become(&w->ops[a->op], OP_RUNNING);
	w->ops[a->op].has_run = true;
	event_begin(w, "NodeStarted");
	event_op(w, a->op);
	event_int(w, "pid", a->id.pid);
	if (a->agent != NULL) {
		event_text(w, "provider", a->agent->p->name);
		event_text(w, "version", a->agent->version);
	}
	event_end(w);
	is_told(a);
	ending_watch(a);
	if (a->agent != NULL)
		agent_started(a);
}

void
spawn_now(struct attempt_run *a)
{
	struct worker *w = a->w;
	struct err e = {0};

	a->started_ns = clock_monotonic_ns();
	a->started_at = (double)clock_wall_ns() / (double)NS_PER_S;
	if (start_attempt(a, &e) != 0)
		spawn_failed(a, CLASS_SPAWN, &e);
	else if (a->keeper == NULL)
		spawn_started(a);
	else {
		/* Its keeper tells. */
		a->begins = true;
		admission_begun(w);
	}
}

/* dir is the attempt's directory, whose marks go with it, or NULL. If it cannot be removed, a resume
 * asks once too often, never once too little. */
void
spawn_give_back(struct attempt_run *a, const char *dir)
{
	struct worker *w = a->w;
	uint32_t i = a->op;
	struct err e = {0};

	if (dir != NULL && fs_remove_tree(w->ops_fd, dir, &e) != 0)
		log_line(LOG_WARNING, "ops/%s cannot be removed: %s", dir, e.msg);
	attempt_free(a);
	w->ops[i].attempts--;
	admission_slot_free(w);
	admission_ready(w, i);
}

void
spawn_start(struct worker *w, uint32_t i)
{
	struct attempt_run *a = attempt_new(w, i);
	struct err e = {0};

	if (a == NULL) {
		/* It stays ready: nothing was done with it yet. */
		admission_slot_free(w);
		op_list_push(&w->ready, w->ops, i);
		err_nomem(&e);
		worker_error(w, &e);
		return;
	}
	op_become(&w->ops[i], OP_PREPARING);
	a->number = ++w->ops[i].attempts;
	w->ops[i].leftover_told = false;
	if (emit_token(a, &e) != 0)
		spawn_failed(a, CLASS_SPAWN, &e);
	else if (!messages_claim(a))
		prepare_start(a);
}
