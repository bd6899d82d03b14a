/* Limits of operations whose worker is dead, and for how long they are kept at all. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "kept_private.h"

enum {
	LOOK_MS = 50,	   /* for what others write of one that has ended */
	GONE_SECONDS = 10, /* for the end of one that is not our child */
	ENDS_AT_ONCE = 32, /* helpers of one run */
	AGAIN_MS = 1000,   /* after a try to end something */
	AGAIN_FAILED_MS = 10000
};

/* Exit statuses of flowsup-worker --end (worker/end.h). */
enum { END_DONE = 0, END_RESUMED = 3, END_LATER = 75 };

#define POLICY "orphans"

/* Where a helper finds the run's lock. */
#define LOCK_FD 3
#define LOCK_FD_WORD "3"

/* ---- For how long ---- */

static struct kept_run *
find(const struct daemon *d, const char *run_id)
{
	struct kept_run *r;

	TAILQ_FOREACH(r, &d->kept.runs, entry)
	{
		if (strcmp(r->run_id, run_id) == 0)
			return r;
	}
	return NULL;
}

/* The moment stands in the row from the first report on, so that no restart of ours moves it. */
static bool
stored_until(const struct daemon *d, const struct session *s, int64_t *until_ns)
{
	const struct json *o = json_get(s->metadata, POLICY);
	int64_t ms;

	if (!slice_is(json_text(json_get(o, "boot_id")), d->here.boot_id) ||
	    !json_int64(json_get(o, "until_ms"), &ms))
		return false;
	*until_ns = ms * NS_PER_MS;
	return true;
}

static int
store_until(struct daemon *d, const char *run_id, const struct json *seconds, int64_t *until_ns,
    struct err *e)
{
	struct json *o;
	int64_t s;

	*until_ns = INT64_MAX;
	if (!json_int64(seconds, &s) || s < 0 || s > INT64_MAX / NS_PER_S / 2)
		return 0;
	*until_ns = clock_monotonic_ns() + s * NS_PER_S;
	o = json_set(json_object(), "boot_id", json_cstr(d->here.boot_id));
	o = json_set(o, "until_ms", json_int(*until_ns / NS_PER_MS));
	if (o == NULL)
		return err_nomem(e);
	daemon_worked(d);
	return session_metadata(d->store, run_id, POLICY, o, e);
}

/* Whoever told it to stop now was told that nothing of it runs on. */
static int
is_stopped_now(struct daemon *d, const char *run_id, bool *is, struct err *e)
{
	struct control_standing at;

	if (control_standing(d->store, run_id, &at, e) != 0)
		return -1;
	*is = at.stopped_now;
	return 0;
}

static bool
ends_all(const struct daemon *d)
{
	return d->phase == PHASE_STOPPING && d->stop_all.now;
}

static bool
ends_at_once(const struct json *seconds)
{
	int64_t s;

	return json_int64(seconds, &s) && s == 0;
}

static enum job_result
policy_job(struct daemon *d, struct job *j, struct err *e)
{
	struct kept_run *r = find(d, j->run_id);
	struct session s = {0};
	bool stopped = false;
	int64_t until = clock_monotonic_ns();
	int rc;

	if (r == NULL)
		return JOB_DONE;
	rc = session_read(d->store, j->run_id, &s, e);
	if (rc == 0)
		rc = is_stopped_now(d, j->run_id, &stopped, e);
	stopped = stopped || ends_all(d);
	/* Nothing is written before the crash is; then another report asks again. What ends with its worker needs no
	 * moment that is written down. */
	if (rc == 0 && !stopped && s.status != STATUS_QUEUED && !status_is_terminal(s.status))
		until = ends_at_once(j->value) ? until : INT64_MAX;
	else if (rc == 0 && !stopped && !stored_until(d, &s, &until))
		rc = store_until(d, j->run_id, j->value, &until, e);
	if (rc == 0) {
		r->until_ns = until;
		r->resumed = r->resumed || s.resumed_as_run[0] != '\0';
		kept_arm(d);
	}
	session_clear(&s);
	if (rc != 0)
		return e->code == ERR_NOTFOUND ? JOB_DONE : JOB_FAILED;
	return JOB_DONE;
}

void
kept_ask_policy(struct kept_run *r, const struct json *orphans)
{
	struct job *j = job_new(policy_job, r->run_id, true);

	if (j == NULL)
		return;
	j->value = orphans != NULL ? json_ref(orphans) : NULL;
	jobs_add(r->daemon, j, false);
}

/* ---- Ending something ---- */

static struct kept_end *
end_of(const struct kept_run *r, const char *op)
{
	struct kept_end *n;

	TAILQ_FOREACH(n, &r->ends, entry)
	{
		if (strcmp(n->op, op) == 0)
			return n;
	}
	return NULL;
}

bool
kept_is_ending(const struct kept_run *r)
{
	return end_of(r, "") != NULL;
}

/* The lock goes with the last one that needs it. */
static void
end_free(struct kept_end *n)
{
	struct kept_run *r = n->run;

	loop_close(&r->daemon->loop, &n->helper);
	TAILQ_REMOVE(&r->ends, n, entry);
	r->nends--;
	free(n);
	if (TAILQ_EMPTY(&r->ends))
		fd_close(&r->lock_fd);
}

void
kept_forget_ends(struct kept_run *r)
{
	while (!TAILQ_EMPTY(&r->ends))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		end_free(TAILQ_FIRST(&r->ends));
}

static void
try_again(struct kept_run *r, const char *op, int64_t in_ms)
{
	int64_t at = clock_monotonic_ns() + in_ms * NS_PER_MS;
	struct kept_op *o;

	if (op[0] == '\0')
		r->again_ns = at;
	TAILQ_FOREACH(o, &r->ops, entry)
	{
		if (strcmp(o->op, op) == 0)
			o->again_ns = at;
	}
}

static void
helper_ended(struct kept_end *n, const struct proc_end *end)
{
	struct kept_run *r = n->run;
	struct daemon *d = r->daemon;
	int status = end->known && !end->signaled ? end->code : -1;
	bool all = n->op[0] == '\0';

	astray_look(d, NULL);
	try_again(r, n->op, status == END_DONE || status == END_LATER ? AGAIN_MS : AGAIN_FAILED_MS);
	if (status == END_RESUMED)
		r->resumed = true;
	end_free(n);
	if (all && !r->resumed && !r->beside_row)
		kept_store_list(r);
	kept_arm(d);
	kept_run_look(r);
}

bool
kept_helper_reap(struct kept_run *r, pid_t pid)
{
	struct proc_end end = {0};
	struct kept_end *n;

	TAILQ_FOREACH(n, &r->ends, entry)
	{
		if (n->pid == pid && proc_wait(n->helper.fd, false, &end, &(struct err){0}) == 1) {
			helper_ended(n, &end);
			return true;
		}
	}
	return false;
}

static void
on_helper(void *arg)
{
	struct kept_end *n = arg;

	children_reap(n->run->daemon);
}

static int
execute(const struct kept_end *n, const char *class, struct proc_child *child, struct err *e)
{
	const struct daemon *d = n->run->daemon;
	const char *argv[] = {"flowsup-worker", "--home", d->home.path, "--end", n->run->run_id, "--class",
	    class, "--lock-fd", LOCK_FD_WORD, n->op[0] != '\0' ? "--operation" : NULL, n->op, NULL};
	char *words[sizeof(argv) / sizeof(argv[0])];
	struct proc_spawn what = PROC_SPAWN_INIT;

	memcpy(words, argv, sizeof(argv));
	what.path = d->worker_path;
	what.argv = words;
	what.envp = d->envp;
	what.new_session = true;
	what.fds[what.nfds++] = (struct proc_fd){d->log_fd, STDERR_FILENO};
	what.fds[what.nfds++] = (struct proc_fd){n->run->lock_fd, LOCK_FD};
	return proc_start(&what, child, NULL, e);
}

/* It has somebody's lock: a resume is at it, or a command that ends it. */
static int
take_lock(struct kept_run *r, struct err *e)
{
	int run_fd;

	if (r->lock_fd >= 0)
		return 0;
	run_fd = rundir_open(&r->daemon->home, r->run_id, e);
	if (run_fd >= 0)
		r->lock_fd = run_lock_take(run_fd, 0, e);
	fd_close(&run_fd);
	return r->lock_fd >= 0 ? 0 : -1;
}

static int
start_helper(struct kept_end *n, const char *class, struct err *e)
{
	struct kept_run *r = n->run;
	struct proc_child child;

	if (take_lock(r, e) != 0 || execute(n, class, &child, e) != 0)
		return -1;
	n->pid = child.id.pid;
	if (loop_add(&r->daemon->loop, &n->helper, child.pidfd, on_helper, n, e) == 0)
		return 0;
	fd_close(&child.pidfd); /* it does its work and is reaped like a stranger */
	return -1;
}

/* op "": all. Each has a helper of its own: one that does not heed SIGTERM holds up no other. */
static void
end_some(struct kept_run *r, const char *op, const char *class)
{
	struct kept_end *n = calloc(1, sizeof(*n) + strlen(op) + 1);
	struct err e = {0};

	try_again(r, op, AGAIN_FAILED_MS);
	astray_look(r->daemon, NULL);
	if (n == NULL) {
		log_line(LOG_ERROR, "run %s: out of memory", r->run_id);
		return;
	}
	n->run = r;
	n->helper.fd = -1;
	memcpy(n->op, op, strlen(op) + 1);
	TAILQ_INSERT_TAIL(&r->ends, n, entry);
	r->nends++;
	if (start_helper(n, class, &e) == 0) {
		log_line(LOG_INFO, "run %s: ends %s, whose worker is dead (%s)", r->run_id,
		    op[0] != '\0' ? op : "its operations", class);
		return;
	}
	if (e.code == ERR_BUSY)
		try_again(r, op, AGAIN_MS);
	else
		log_line(LOG_ERROR, "run %s: %s", r->run_id, e.msg);
	end_free(n);
}

void
kept_end_all(struct daemon *d)
{
	struct kept_run *r;

	TAILQ_FOREACH(r, &d->kept.runs, entry)
	{
		r->until_ns = clock_monotonic_ns();
	}
	kept_arm(d);
}

void
kept_end_run(struct daemon *d, const char *run_id)
{
	struct kept_run *r = kept_run_of(d, run_id);

	if (r == NULL)
		return;
	r->beside_row = true;
	r->until_ns = clock_monotonic_ns();
	if (!kept_is_ending(r))
		end_some(r, "", "cancelled");
	kept_arm(d);
	kept_run_look(r);
}

/* ---- One operation ---- */

static uint64_t
output_bytes(const struct kept_op *o)
{
	static const char *const suffixes[] = {".out", ".err"};
	struct buf path = {0};
	uint64_t bytes = 0;
	struct stat st;
	size_t i;

	for (i = 0; i < 2; i++) {
		buf_reset(&path);
		buf_printf(&path, "%s.%u%s", o->op, o->attempt, suffixes[i]);
		if (!path.failed && o->ops_fd >= 0 &&
		    fstatat(o->ops_fd, buf_text(&path), &st, AT_SYMLINK_NOFOLLOW) == 0)
			bytes += (uint64_t)st.st_size;
	}
	buf_clear(&path);
	return bytes;
}

static void
look_for_sign(struct kept_op *o)
{
	struct proc_operation of;

	proc_operation_init(&of, o->id, o->files, o->op, o->attempt);
	(void)proc_life_look(&o->life, output_bytes(o), o->strict ? NULL : &of);
}

/* The class of a limit that has passed, or NULL. */
static const char *
passed(struct kept_op *o, int64_t now)
{
	if (o->limit_ns > 0 && o->limit_ns <= now)
		return "timeout";
	if (o->silence_ns == 0 || o->look_ns > now)
		return NULL;
	look_for_sign(o);
	o->look_ns = proc_life_next(&o->life, o->silence_ns);
	return clock_monotonic_ns() - o->life.since_ns >= o->silence_ns ? "silence" : NULL;
}

void
kept_look_at_end(struct kept_op *o, int64_t now)
{
	struct proc_end end;

	if (kept_has_record(o->run->daemon, o)) {
		kept_over(o);
		return;
	}
	if (o->reaper.pid > 0 && o->reaper.pid != getpid() && proc_is_alive(o->reaper))
		return;
	if (proc_end_of_reaped(o->process.fd, &end) > 0) {
		kept_told(o, &end, "kernel");
		return;
	}
	if (now - o->over_ns < GONE_SECONDS * NS_PER_S)
		return;
	log_line(LOG_WARNING, "run %s: how operation %s ended is not known", o->run->run_id, o->op);
	kept_over(o);
}

/* ---- The timer ---- */

/* When o is to be looked at next. */
static int64_t
next_of(const struct kept_op *o)
{
	int64_t next = INT64_MAX;

	if (o->tries > 0)
		return o->write_ns;
	if (o->over_ns != 0)
		return clock_monotonic_ns() + LOOK_MS * NS_PER_MS;
	/* A helper that ends has the next look taken. */
	if (o->run->resumed || o->run->nends >= ENDS_AT_ONCE || end_of(o->run, o->op) != NULL ||
	    end_of(o->run, "") != NULL)
		return next;
	if (o->limit_ns > 0)
		next = o->limit_ns;
	if (o->silence_ns > 0 && o->look_ns < next)
		next = o->look_ns;
	return next < o->again_ns ? o->again_ns : next;
}

void
kept_arm(struct daemon *d)
{
	int64_t next = INT64_MAX, at;
	const struct kept_run *r;
	const struct kept_op *o;

	TAILQ_FOREACH(r, &d->kept.runs, entry)
	{
		at = r->until_ns < r->again_ns ? r->again_ns : r->until_ns;
		if (!r->resumed && end_of(r, "") == NULL && at < next)
			next = at;
		TAILQ_FOREACH(o, &r->ops, entry)
		{
			at = next_of(o);
			if (at < next)
				next = at;
		}
	}
	if (next != INT64_MAX)
		loop_set_timer(&d->loop, TIMER_KEPT, next);
}

static void
look_at_limits(struct kept_run *r, int64_t now)
{
	const char *class;
	struct kept_op *o;

	if (r->resumed || end_of(r, "") != NULL)
		return;
	if (r->until_ns <= now && r->again_ns <= now) {
		end_some(r, "", "cancelled");
		return;
	}
	TAILQ_FOREACH(o, &r->ops, entry)
	{
		if (o->over_ns != 0 || o->tries > 0 || o->again_ns > now || end_of(r, o->op) != NULL)
			continue;
		class = r->nends < ENDS_AT_ONCE ? passed(o, now) : NULL;
		if (class != NULL)
			end_some(r, o->op, class);
	}
}

/* r may go with its last operation. */
static void
look_at_ends(struct kept_run *r, int64_t now)
{
	struct kept_op *o, *next;

	for (o = TAILQ_FIRST(&r->ops); o != NULL; o = next) {
		next = TAILQ_NEXT(o, entry);
		if (o->tries > 0 && o->write_ns <= now)
			kept_write(o);
		else if (o->tries == 0 && o->over_ns != 0)
			kept_look_at_end(o, now);
	}
}

void
kept_due(void *daemon)
{
	struct daemon *d = daemon;
	int64_t now = clock_monotonic_ns();
	struct kept_run *r, *next;

	for (r = TAILQ_FIRST(&d->kept.runs); r != NULL; r = next) {
		next = TAILQ_NEXT(r, entry);
		look_at_limits(r, now);
		look_at_ends(r, now);
	}
	kept_arm(d);
}
