/* The table of workers, and what each says. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/heartbeat.h"
#include "flowsup/log.h"
#include "daemon.h"

static int
compare_runs(const struct worker *a, const struct worker *b)
{
	return strcmp(a->run_id, b->run_id);
}

static int
compare_pids(const struct worker *a, const struct worker *b)
{
	return a->id.pid < b->id.pid ? -1 : a->id.pid > b->id.pid;
}

/* Not RB_GENERATE_STATIC: libbsd's needs a macro that system headers take as a name. */
#define GENERATED static __attribute__((unused))
RB_GENERATE_INTERNAL(workers_by_run, worker, by_run, compare_runs, GENERATED)
RB_GENERATE_INTERNAL(workers_by_pid, worker, by_pid, compare_pids, GENERATED)

struct worker *
worker_find(struct daemon *d, const char *run_id)
{
	struct worker key;

	strlcpy(key.run_id, run_id, sizeof(key.run_id));
	return RB_FIND(workers_by_run, &d->workers.by_run, &key);
}

struct worker *
worker_of(struct daemon *d, pid_t pid)
{
	struct worker key = {.id = {.pid = pid}};

	return RB_FIND(workers_by_pid, &d->workers.by_pid, &key);
}

struct worker *
worker_after(struct daemon *d, const char *run_id)
{
	struct worker key, *w;

	strlcpy(key.run_id, run_id, sizeof(key.run_id));
	w = RB_NFIND(workers_by_run, &d->workers.by_run, &key);
	if (w != NULL && strcmp(w->run_id, run_id) == 0)
		w = RB_NEXT(workers_by_run, &d->workers.by_run, w);
	return w;
}

struct worker *
worker_new(struct daemon *d, const char *run_id, struct err *e)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		err_nomem(e);
		return NULL;
	}
	assert(worker_find(d, run_id) == NULL);
	w->daemon = d;
	w->process.fd = w->channel.fd = w->heartbeat = w->gate = -1;
	strlcpy(w->run_id, run_id, sizeof(w->run_id));
	RB_INSERT(workers_by_run, &d->workers.by_run, w);
	d->workers.count++;
	return w;
}

void
worker_know(struct worker *w, const struct session *s)
{
	w->done = s->done;
	w->total = s->total;
}

void
worker_free(struct worker *w)
{
	struct daemon *d = w->daemon;

	loop_close(&d->loop, &w->process);
	loop_close(&d->loop, &w->channel);
	fd_close(&w->heartbeat);
	fd_close(&w->gate);
	RB_REMOVE(workers_by_run, &d->workers.by_run, w);
	if (w->id.pid != 0)
		RB_REMOVE(workers_by_pid, &d->workers.by_pid, w);
	d->workers.count--;
	free(w);
}

const char *
worker_state_word(enum worker_state state)
{
	static const char *const words[] = {[WORKER_STARTING] = "starting",
	    [WORKER_READY] = "ready",
	    [WORKER_LOST] = "unreachable",
	    [WORKER_GREETED] = "greeted"};

	return words[state];
}

/* ---- What it says ---- */

static void
on_hello(struct worker *w, const struct message *m)
{
	/* Run and version were looked at already; nothing follows from it. */
	(void)w;
	(void)m;
}

static void
on_ready(struct worker *w, const struct message *m)
{
	int64_t pid = 0;

	w->tries = 0;
	if (w->state == WORKER_GREETED || w->id.pid == 0) {
		if (json_int64(json_get(m->body, "pid"), &pid) && pid > 0 && pid <= INT32_MAX)
			adopt_known(w->daemon, w, (pid_t)pid);
	}
	w->state = WORKER_READY;
	clients_tell_changed(w->daemon, w->run_id, status_word(STATUS_RUNNING), NULL);
}

static void
on_progress(struct worker *w, const struct message *m)
{
	(void)json_int64(json_get(m->body, "done"), &w->done);
	(void)json_int64(json_get(m->body, "total"), &w->total);
	daemon_worked(w->daemon);
	if (json_is_true(json_get(m->body, "notice")))
		notify_look(w->daemon);
	clients_tell_progress(w->daemon, w->run_id, w->done, w->total);
}

static void
on_ended(struct worker *w, const struct message *m)
{
	const char *status = json_cstr_of(json_get(m->body, "status"));
	const char *reason = json_cstr_of(json_get(m->body, "reason"));

	w->ended = true;
	log_line(LOG_INFO, "run %s: %s (%s)", w->run_id, status == NULL ? "ended" : status,
	    reason == NULL ? "" : reason);
	daemon_worked(w->daemon);
	if (status != NULL)
		clients_tell_changed(w->daemon, w->run_id, status, reason);
	secrets_ended(w->daemon, w->run_id);
	/* Its row is at its end: somebody may want to know. */
	notify_look(w->daemon);
	if (status != NULL && strcmp(status, status_word(STATUS_CRASHED)) == 0)
		restart_consider(w->daemon, w->run_id);
}

typedef void worker_message_fn(struct worker *w, const struct message *m);

static worker_message_fn *const handlers[MESSAGE_TYPES] = {
    [MSG_HELLO] = on_hello,
    [MSG_READY] = on_ready,
    [MSG_PROGRESS] = on_progress,
    [MSG_ENDED] = on_ended,
};

/* A worker speaks for its own run alone. */
static bool
speaks_for(const struct worker *w, const struct message *m)
{
	const char *run = json_cstr_of(json_get(m->body, "run"));

	return run != NULL ? strcmp(run, w->run_id) == 0 : m->type == MSG_HELLO;
}

static void
disconnect(struct worker *w, const char *why)
{
	if (why != NULL)
		log_line(LOG_WARNING, "run %s: connection to its worker closed: %s", w->run_id, why);
	loop_close(&w->daemon->loop, &w->channel);
	adopt_lost(w->daemon, w);
}

/* One packet; false when there is none, or the connection is gone. */
static bool
read_one(struct worker *w)
{
	struct message m;
	struct err e = {0};
	bool known;
	int passed = -1;
	int rc = message_recv(w->channel.fd, FROM_WORKER, &m, &passed, &e);

	if (rc == 0)
		return false;
	if (rc < 0) {
		disconnect(w, e.code == ERR_NOTFOUND ? NULL : e.msg);
		return false;
	}
	known = handlers[m.type] != NULL && speaks_for(w, &m);
	/* One that another supervisor started brings its count along. */
	if (known && m.type == MSG_READY && w->heartbeat < 0) {
		w->heartbeat = passed;
		passed = -1;
	}
	fd_close(&passed);
	if (known)
		handlers[m.type](w, &m);
	message_clear(&m);
	if (!known)
		disconnect(w, "a message for another run, or not for the supervisor");
	return known;
}

static void
on_channel(void *arg)
{
	struct worker *w = arg;
	unsigned i;

	for (i = 0; i < WORKER_PACKETS_A_TURN; i++)
		if (!read_one(w))
			return;
}

void
worker_read_rest(struct worker *w)
{
	while (w->channel.fd >= 0 && read_one(w))
		;
}

int
worker_set_channel(struct worker *w, int fd, struct err *e)
{
	if (loop_add(&w->daemon->loop, &w->channel, fd, on_channel, w, e) == 0)
		return 0;
	fd_close(&fd);
	return -1;
}

static void
on_process(void *arg)
{
	struct worker *w = arg;
	struct daemon *d = w->daemon;
	struct proc_end end = {0};
	struct err e = {0};
	pid_t pid = w->id.pid;

	children_reap(d);
	w = worker_of(d, pid);
	/* Not a child of ours (another supervisor's): it has ended, nobody can tell us how. */
	if (w != NULL && proc_wait(w->process.fd, true, &end, &e) < 0)
		worker_gone(w, &(struct proc_end){.known = false}, NULL);
}

int
worker_set_process(struct worker *w, struct proc_id id, int pidfd, struct err *e)
{
	struct worker *other;

	if (loop_add(&w->daemon->loop, &w->process, pidfd, on_process, w, e) != 0) {
		fd_close(&pidfd);
		return -1;
	}
	w->id = id;
	other = RB_INSERT(workers_by_pid, &w->daemon->workers.by_pid, w);
	if (other == NULL)
		return 0;
	w->id.pid = 0;
	loop_close(&w->daemon->loop, &w->process);
	return err_set(e, ERR_PROTOCOL, "process %ld is the worker of run %s", (long)id.pid,
	    other->run_id);
}

void
worker_poke(struct worker *w)
{
	struct err e = {0};
	struct json *body;

	if (w->channel.fd < 0) {
		if (w->state == WORKER_LOST)
			loop_set_timer(&w->daemon->loop, TIMER_ADOPT, clock_monotonic_ns());
		return;
	}
	body = json_set(json_object(), "run", json_cstr(w->run_id));
	/* A full queue holds pokes that it has not read yet: one is as good as two. */
	if (body == NULL || message_send(w->channel.fd, MSG_POKE, body, -1, &e) < 0)
		log_line(LOG_WARNING, "run %s: cannot wake its worker: %s", w->run_id, e.msg);
}

/* ---- Alive but stuck ---- */

bool
worker_is_stalled(const struct worker *w)
{
	struct heartbeat last;

	return w->heartbeat >= 0 &&
	    pread(w->heartbeat, &last, sizeof(last), 0) == (ssize_t)sizeof(last) &&
	    clock_monotonic_ns() - last.at_ns >= WORKER_STALLED_MS * NS_PER_MS;
}
