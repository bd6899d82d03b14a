/* kill: ends a run now, worker and operations, and proves that nothing is left. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "cli.h"
#include "client.h"
#include "elsewhere.h"
#include "flowsup/checkpoint.h"
#include "flowsup/endops.h"
#include "flowsup/flow.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "hold.h"
#include "leftover.h"
#include "output.h"
#include "seek.h"
#include "target.h"

enum {
	TRY_MS = 100,
	LOCK_LIMIT_MS = 10000
};

static const int interruptions[] = {SIGHUP, SIGINT, SIGTERM};
enum { INTERRUPTIONS = sizeof(interruptions) / sizeof(interruptions[0]) };

static const char *const examples[] = {
    "flowsup kill @last    # worker and operations are gone when it returns", NULL};

struct killing {
	struct cli *c;
	struct target *t;
	int run_fd; /* -1: the directory is gone */
	int lock_fd;
	bool copied; /* what it left is another home's */
	bool moved; /* this call ended it */
	struct attempts attempts;
	struct endops_result ended;
	struct err row;	       /* why the row could not be written */
	/* Processes that nothing tells of: an operation was to leave what it started; the worker was dead, and nobody
	 * took up what lost its parent; or who did knows of some that may be anybody's. */
	bool leaves;
	struct leftover_unknown unknown;
	bool seen_below; /* whatever lost its parent was below the worker */
	struct proc_id worker; /* as the log tells, in this boot; or pid 0 */
	struct proc_id *seen; /* what descended from the worker */
	size_t nseen, seen_cap;
	int standing_fd; /* the worker, while it is stopped, or -1 */
	struct sigaction before[INTERRUPTIONS];
};

/* ---- The worker ---- */

static bool
worker_from_log(struct killing *k, struct proc_id *id)
{
	attempts_clear(&k->attempts);
	if (k->run_fd < 0 || attempts_read(k->run_fd, &k->attempts, NULL) != 0 ||
	    !k->attempts.has_place)
		return false;
	*id = k->attempts.worker;
	return true;
}

/* One that has not written its line yet is known to its supervisor alone. */
static bool
worker_from_supervisor(struct killing *k, struct proc_id *id)
{
	struct json *status = NULL;
	const struct json *worker;
	int64_t pid = 0;

	if (!client_is_up(&k->t->home) || client_status(&k->t->home, CLIENT_ANSWER_MS, &status, NULL) != 0)
		return false;
	worker = json_get(json_get(status, "workers"), k->t->session.run_id);
	if (!json_int64(json_get(worker, "pid"), &pid) || pid <= 0 || pid > INT32_MAX)
		pid = 0;
	json_unref(status);
	return pid > 0 && proc_identify((pid_t)pid, id, NULL) == 0;
}

/* A proc_each. */
static int
note_seen(void *arg, const struct proc_stat *st, int pidfd)
{
	struct killing *k = arg;
	struct proc_id *more;
	size_t cap = k->seen_cap ? k->seen_cap * 2 : 64;

	(void)pidfd;
	if (k->nseen == k->seen_cap) {
		more = reallocarray(k->seen, cap, sizeof(*more));
		if (more == NULL) {
			cli_note("run %s: memory runs out; what left its session and its environment may live on",
			    k->t->session.run_id);
			return 1;
		}
		k->seen = more;
		k->seen_cap = cap;
	}
	k->seen[k->nseen++] = (struct proc_id){st->pid, st->start_ticks};
	return 0;
}

/*
 * With the worker goes the only trace of what left its session and its environment: it is looked for
 * before, while the worker stands still and starts nothing.
 */
static void
look_below(struct killing *k, struct proc_id id, int pidfd)
{
	struct err e = {0};

	k->nseen = 0;
	k->seen_below = true;
	if (proc_signal(pidfd, SIGSTOP, &e) != 0 ||
	    proc_each_descendant(id.pid, own_is_apart, note_seen, k, &e) < 0)
		cli_note("run %s: below worker %d: %s", k->t->session.run_id, (int)id.pid, e.msg);
}

static void
kill_process(struct killing *k, struct proc_id id)
{
	struct err e = {0};
	int pidfd = proc_open(id, &e);

	if (pidfd >= 0 && proc_is_alive(id))
		look_below(k, id, pidfd);
	if (pidfd >= 0 && proc_signal(pidfd, SIGKILL, &e) != 0)
		cli_note("run %s: worker %d: %s", k->t->session.run_id, (int)id.pid, e.msg);
	fd_close(&pidfd);
}

static bool
find_worker(struct killing *k, struct proc_id *id)
{
	return worker_from_log(k, id) || worker_from_supervisor(k, id) ||
	    seek_worker(&k->t->home, k->t->session.run_id, id, &(struct err){0}) > 0;
}

static void
kill_worker(struct killing *k)
{
	struct proc_id id;

	if (find_worker(k, &id))
		kill_process(k, id);
}

/*
 * Where the lock was taken away, or cannot be taken, there is still the process, known by its command line and, while its
 * supervisor lives, by that. All are ended until none is found.
 */
static int
take_away_process(struct killing *k, struct err *e)
{
	const struct timespec pause = {0, TRY_MS * NS_PER_MS};
	int64_t until = clock_monotonic_ns() + LOCK_LIMIT_MS * NS_PER_MS;
	struct proc_id id;
	int found;

	while ((found = seek_worker(&k->t->home, k->t->session.run_id, &id, e)) > 0) {
		if (clock_monotonic_ns() >= until)
			return err_set(e, ERR_TIMEOUT, "run %s: its worker %d does not end",
			    k->t->session.run_id, (int)id.pid);
		kill_process(k, id);
		nanosleep(&pause, NULL);
	}
	return found;
}

static int
take_away_unlocked(struct killing *k, const struct err *why, struct err *e)
{
	if (k->run_fd >= 0)
		cli_note("run %s: %s; its worker is known by its command line", k->t->session.run_id,
		    why->msg);
	return take_away_process(k, e);
}

/* ---- The operations ---- */

/* Ends what runs, and adds it to what this call has ended already; what did not end then is counted now. */
static int
end_operations(struct killing *k, struct proc_id worker, struct err *e)
{
	const struct leftover_kin kin = {.worker = worker, .seen = k->seen, .nseen = k->nseen};
	struct endops_result r = {0};

	if (leftover_end(&k->t->home, &k->t->session, k->run_fd, &kin, &r, e) != 0)
		return -1;
	r.found += k->ended.found - k->ended.lasting;
	r.killed += k->ended.killed;
	endops_clear(&k->ended);
	k->ended = r;
	return 0;
}

/* The stopped worker, for whoever interrupts this: the row says that it was killed, and it must not stand on. */
static volatile sig_atomic_t standing = -1;

static void
on_leave(int sig)
{
	(void)proc_signal(standing, SIGKILL, NULL);
	hold_leave(sig);
}

static void
take_along(struct killing *k, int pidfd)
{
	struct sigaction leaves = {.sa_handler = on_leave};
	size_t i;

	k->standing_fd = standing = pidfd;
	for (i = 0; i < INTERRUPTIONS; i++)
		if (sigaction(interruptions[i], NULL, &k->before[i]) == 0 && k->before[i].sa_handler != SIG_IGN)
			(void)sigaction(interruptions[i], &leaves, NULL);
}

static void
stands_no_more(struct killing *k)
{
	size_t i;

	if (k->standing_fd < 0)
		return;
	(void)proc_signal(k->standing_fd, SIGKILL, NULL);
	for (i = 0; i < INTERRUPTIONS; i++)
		(void)sigaction(interruptions[i], &k->before[i], NULL);
	standing = -1;
	fd_close(&k->standing_fd);
}

/*
 * While the worker stands still, what loses its parent comes to it, and nothing gets out of sight, whatever an
 * operation starts as its answer to TERM. Where it cannot be made to stand, or they cannot be ended, that is
 * done after its end.
 */
static void
end_below_worker(struct killing *k)
{
	struct err e = {0};
	struct proc_id id;
	int pidfd;

	if (!find_worker(k, &id) || !proc_is_alive(id) || (pidfd = proc_open(id, NULL)) < 0)
		return;
	take_along(k, pidfd);
	if ((proc_stop(id, pidfd, &e) != 0 || end_operations(k, id, &e) != 0) && e.code != ERR_NOTFOUND)
		cli_note("run %s: worker %d: %s", k->t->session.run_id, (int)id.pid, e.msg);
}

/* Whoever has the lock knows that there is no worker. */
static int
take_away_worker(struct killing *k, struct err *e)
{
	int64_t until = clock_monotonic_ns() + LOCK_LIMIT_MS * NS_PER_MS;
	struct err why = {0};

	if (k->run_fd < 0)
		return take_away_unlocked(k, &why, e);
	for (;;) {
		k->lock_fd = run_lock_take(k->run_fd, k->moved ? 0 : TRY_MS, &why);
		if (k->lock_fd >= 0)
			return 0;
		if (why.code == ERR_NOTFOUND || why.code == ERR_PERMISSION)
			return take_away_unlocked(k, &why, e);
		if (why.code != ERR_BUSY) {
			*e = why;
			return -1;
		}
		if (clock_monotonic_ns() >= until)
			break;
		kill_worker(k);
		k->lock_fd = run_lock_take(k->run_fd, TRY_MS, &why);
		if (k->lock_fd >= 0)
			return 0;
	}
	return err_set(e, ERR_TIMEOUT,
	    "run %s: its lock is still held, by a worker that does not end or by a resume",
	    k->t->session.run_id);
}

/* ---- The row ---- */

/* First the row: the worker's death must not be taken for a crash. */
static int
store_end(struct killing *k, struct err *e)
{
	if (status_is_terminal(k->t->session.status))
		return 0;
	return session_transition(k->t->store, k->t->session.run_id, STATUS_CANCELLED,
	    "run.cancelled.killed", NULL, -1, &k->moved, e);
}

static int
check_place(struct killing *k, struct err *e)
{
	struct buf hint = {0};
	bool here, other_boot;

	if (k->run_fd < 0)
		return 0;
	if (attempts_read(k->run_fd, &k->attempts, e) != 0 ||
	    endops_is_here(&k->attempts, &here, &other_boot, e) != 0)
		return -1;
	k->leaves = !other_boot && attempts_any_leaves(&k->attempts);
	if (k->attempts.has_place && !other_boot)
		k->worker = k->attempts.worker;
	if (here)
		return 0;
	err_set(e, ERR_REFUSED, "run %s belongs to host %s or another pid namespace of it",
	    k->t->session.run_id, k->attempts.place.host);
	if (!status_is_terminal(k->t->session.status) || k->t->session.status == STATUS_CRASHED) {
		target_lost_hint(k->c->home, &k->t->session, &hint);
		cli_hint_whole(k->c, &hint, e);
	}
	buf_clear(&hint);
	return -1;
}

/* What was started as an answer to TERM, and lost its parent, has come to the supervisor. */
static int
end_late_strays(struct killing *k, struct err *e)
{
	struct attempts now = {0};
	bool any;

	if (k->seen_below || k->run_fd < 0)
		return 0;
	leftover_have_looked(&k->t->home);
	if (attempts_read(k->run_fd, &now, e) != 0)
		return -1;
	any = leftover_strays(&now) > 0;
	attempts_clear(&k->attempts);
	k->attempts = now;
	return any ? end_operations(k, (struct proc_id){0}, e) : 0;
}

/* Of a run whose worker was dead, or of one that it goes on from. */
static void
look_for_unknown(struct killing *k)
{
	const struct session *s = &k->t->session;

	if ((k->seen_below && s->resumed_from_run[0] == '\0') || k->worker.pid == 0 || s->resumed_as_run[0] != '\0' ||
	    (!k->moved && s->status != STATUS_CRASHED))
		return;
	leftover_look_unknown(&k->t->home, k->t->store, s, &k->attempts, &k->unknown);
	k->unknown.orphaned = k->unknown.orphaned && !k->seen_below;
}

/* ---- Saying it ---- */

static bool
may_be_left(const struct killing *k)
{
	return (k->leaves && !k->seen_below) || k->unknown.orphaned || k->unknown.silent != 0 || k->unknown.n > 0;
}

static void
tell_what_may_be_left(const struct killing *k)
{
	const char *run_id = k->t->session.run_id;

	if (k->leaves && !k->seen_below)
		cli_note("run %s: operations with leave: what these have started in sessions of their own, without "
		    "their environment, is known to nobody once its parent is gone", run_id);
	leftover_tell_unknown(&k->unknown, run_id);
}

static void
print_json(const struct killing *k)
{
	struct json *o = json_set(json_object(), "run", json_cstr(k->t->session.run_id));

	o = json_set(o, "status", json_cstr(status_word(k->t->session.status)));
	o = json_set(o, "killed", json_bool(k->moved));
	o = json_set(o, "processes", json_uint(k->ended.found));
	o = json_set(o, "sigkill", json_uint(k->ended.killed));
	o = json_set(o, "left", json_ref(k->ended.left));
	o = json_set(o, "may_be_left", json_bool(may_be_left(k)));
	out_json(k->c->out, o);
}

static int
tell(const struct killing *k, struct err *e)
{
	const char *run_id = k->t->session.run_id;
	struct buf text = {0};
	int rc = 0;

	if (k->c->json)
		print_json(k);
	else if (!k->moved && k->copied)
		cli_note("run %s had already ended (%s); what it left belongs to that directory", run_id,
		    status_word(k->t->session.status));
	else if (!k->moved && k->ended.found == 0)
		cli_note("run %s had already ended (%s), and nothing %s runs", run_id,
		    status_word(k->t->session.status), may_be_left(k) ? "that is known to be of it" : "of it");
	else
		cli_note("run %s%s%s%s; processes of operations ended: %u (%u by SIGKILL)", run_id,
		    k->moved ? ": killed" : " had already ended (",
		    k->moved ? "" : status_word(k->t->session.status), k->moved ? "" : ")", k->ended.found,
		    k->ended.killed);
	if (json_length(k->ended.left) > 0) {
		endops_tell_left(&k->ended, &text);
		rc = err_set(e, ERR_TIMEOUT, "run %s: it could not be proved that nothing is left: %s",
		    run_id, buf_text(&text));
		err_hint(e, "ps -o pid,ppid,pgid,lstart,args -e");
	}
	if (!k->c->json)
		tell_what_may_be_left(k);
	buf_clear(&text);
	return rc;
}

/* What was asked for is done all the same: a full disk keeps no process alive. */
static int
tell_unwritten(const struct killing *k, struct err *e)
{
	if (json_length(k->ended.left) > 0)
		(void)tell(k, &(struct err){0});
	err_set(e, ERR_IO, "run %s: its processes were ended (%u of operations) and it is not resumed by itself, "
	    "but its row could not be written: %s", k->t->session.run_id, k->ended.found, k->row.msg);
	return err_hint(e, "flowsup doctor");
}

static void
mark_killed(const struct killing *k)
{
	struct err e = {0};

	if (k->run_fd >= 0 && seek_set_mark(k->run_fd, SEEK_KILLED, &e) != 0)
		cli_note("run %s: %s; its policy may resume it", k->t->session.run_id, e.msg);
}

/* A worker writes its count once a second at most, and this one had no last word. Without a checkpoint
 * the count stays what it is. */
static void
store_count(const struct killing *k)
{
	const struct ckpt_load_options o = {.lock_held = k->lock_fd >= 0};
	struct ckpt_report report = {0};
	struct json *state = NULL;
	struct err e = {0};
	struct json *saved = NULL;

	if (!k->moved || k->run_fd < 0 || (ckpt_load(k->run_fd, &o, &state, &report, &e) != 0 &&
		(e.code != ERR_NOTFOUND || rundir_read_json(k->run_fd, RUN_CARRY, &state, &e) != 0)))
		return;
	if (flow_progress(k->run_fd, state, &saved, &e) == 0 &&
	    session_counted(k->t->store, k->t->session.run_id, saved, &e) != 0)
		cli_note("run %s: how much is done could not be written: %s", k->t->session.run_id, e.msg);
	json_unref(saved);
	json_unref(state);
}

/* What runs of it is another home's: here it loses its place in queues, and its key. */
static int
kill_copy(struct killing *k, const char *owner, struct err *e)
{
	const char *run_id = k->t->session.run_id;
	struct buf where = {0};

	k->copied = true;
	if (session_give_up(k->t->store, run_id, "it was killed", NULL, e) != 0 || store_end(k, e) != 0 ||
	    control_end_job(k->t->store, run_id, e) != 0)
		return -1;
	client_mention(&k->t->home, run_id);
	k->ended.left = json_array();
	if (k->ended.left == NULL)
		return err_nomem(e);
	elsewhere_tell(&k->t->session, owner, &where);
	cli_note("run %s is %s: no process was ended", run_id, buf_text(&where));
	buf_clear(&where);
	return target_reload(k->t, e) == 0 ? tell(k, e) : -1;
}

/* What it has of the run it takes away when it goes on. */
static bool
tell_stopped(const struct killing *k)
{
	bool stopped = false;
	pid_t pid = client_supervisor(&k->t->home, &stopped);

	if (pid == 0 || !stopped)
		return false;
	cli_note("the supervisor, process %d, is stopped: it hears of this when it goes on", (int)pid);
	cli_hint("kill -CONT %d", (int)pid);
	return true;
}

static int
kill_run(struct killing *k, struct err *e)
{
	const char *owner;
	int rc;

	if (session_home(&k->t->session, &k->t->home, &owner) == SESSION_HOME_OTHER)
		return kill_copy(k, owner, e);
	if (check_place(k, e) != 0)
		return -1;
	/* Rows that cannot be written keep nothing alive. */
	if (session_give_up(k->t->store, k->t->session.run_id, "it was killed", NULL, &k->row) == 0)
		(void)store_end(k, &k->row);
	if (k->row.code != ERR_NONE)
		mark_killed(k);
	end_below_worker(k);
	rc = take_away_worker(k, e);
	stands_no_more(k);
	if (rc != 0 || end_operations(k, (struct proc_id){0}, e) != 0 || end_late_strays(k, e) != 0)
		return -1;
	look_for_unknown(k);
	/* The job is over: nobody will take what was queued for it. */
	if (k->row.code != ERR_NONE ||
	    control_end_job(k->t->store, k->t->session.run_id, &k->row) != 0)
		return tell_unwritten(k, e);
	store_count(k);
	if (tell_stopped(k))
		return target_reload(k->t, e) == 0 ? tell(k, e) : -1;
	client_drop_values(&k->t->home, k->t->session.run_id);
	client_mention(&k->t->home, k->t->session.run_id);
	return target_reload(k->t, e) == 0 ? tell(k, e) : -1;
}

/* Gone is no reason to let it run on. */
static int
open_run(struct killing *k, struct err *e)
{
	k->run_fd = seek_rundir(&k->t->home, &k->t->session, e);
	if (k->run_fd >= 0)
		return 0;
	if (e->code != ERR_IO)
		return -1;
	cli_note("%s; worker and operations are known by command line, descent and marks", e->msg);
	err_clear(e);
	return 0;
}

static int
run(struct cli *c, struct err *e)
{
	struct killing k = {.c = c, .run_fd = -1, .lock_fd = -1, .standing_fd = -1};
	struct target t;
	int rc;

	if (target_of(c, c->operands[0], true, &t, e) != 0)
		return -1;
	k.t = &t;
	rc = open_run(&k, e);
	if (rc == 0)
		rc = kill_run(&k, e);
	endops_clear(&k.ended);
	attempts_clear(&k.attempts);
	free(k.seen);
	leftover_unknown_clear(&k.unknown);
	fd_close(&k.lock_fd);
	fd_close(&k.run_fd);
	target_close(&t);
	return rc;
}

const struct command cmd_kill = {
    .name = "kill",
    .group = CLI_GROUP_STEER,
    .synopsis = "RUN",
    .summary = "end a run and all of its processes now",
    .examples = examples,
    .details = "Processes are known by pid and start time, by group, descent and marks.\n"
	       "What could not be proved to be gone is named.",
    .min_operands = 1,
    .max_operands = 1,
    .operands = "live",
    .json = true,
    .this_run = true,
    .run = run,
};
