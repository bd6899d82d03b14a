/* The supervisor's end, whoever connects to worker.sock, and the progress they are told. */
#include "worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"
#include "flowsup/protocol.h"

#define PROGRESS_LINK_NS (200 * NS_PER_MS)
#define PROGRESS_STORE_NS NS_PER_S

/* Where operations of another run, that were taken over, look for their worker. */
struct door {
	struct worker *w;
	struct door *next;
	char run_id[RUN_ID_TEXT], session[UUID_TEXT];
	int run_fd, fd;
	struct poller_source source;
};

static void supervisor_ready(void *arg, short revents);
static void peer_ready(void *arg, short revents);

static void
link_close(struct link *l)
{
	poller_unwatch(&l->w->loop, &l->source);
	timer_disarm(&l->w->loop.timers, &l->idle);
	fd_close(&l->fd);
	l->serial++;
	l->operation = false;
	l->answered = 0;
}

static void
send_beside(struct worker *w, enum message_type type, struct json *body, int fd)
{
	struct err e = {0};

	if (w->supervisor.fd < 0) {
		json_unref(body);
		return;
	}
	/* A full queue (1) means that nobody reads: what is lost is told anew, or asked for. */
	if (message_send(w->supervisor.fd, type, body, fd, &e) < 0) {
		log_line(LOG_INFO, "the supervisor has gone: %s", e.msg);
		link_close(&w->supervisor);
	}
}

static void
send_to_supervisor(struct worker *w, enum message_type type, struct json *body)
{
	send_beside(w, type, body, -1);
}

static void
greet(struct worker *w)
{
	struct json *hello = json_set(json_object(), "role", json_cstr("worker")), *ready;

	hello = json_set(hello, "major", json_int(PROTOCOL_MAJOR));
	hello = json_set(hello, "minor", json_int(PROTOCOL_MINOR));
	hello = json_set(hello, "run", json_cstr(w->run_id));
	send_to_supervisor(w, MSG_HELLO, hello);
	ready = json_set(json_object(), "run", json_cstr(w->run_id));
	send_beside(w, MSG_READY, json_set(ready, "pid", json_int(getpid())), w->heartbeat_fd);
}

static void
take_supervisor(struct worker *w, int fd)
{
	struct err e = {0};

	if (w->supervisor.fd >= 0)
		link_close(&w->supervisor);
	w->supervisor.fd = fd;
	if (poller_watch(&w->loop, &w->supervisor.source, fd, POLLIN, supervisor_ready, w, &e) != 0) {
		log_line(LOG_ERROR, "%s", e.msg);
		link_close(&w->supervisor);
		return;
	}
	greet(w);
}

static void
drain(struct worker *w, const struct json *body)
{
	admission_close(w, CLOSED_STOP);
	if (json_is_true(json_get(body, "now"))) {
		w->stop_now = true;
		ending_stop_all(w);
	}
}

static void
supervisor_ready(void *arg, short revents)
{
	struct worker *w = arg;
	struct message m = {0};
	struct err e = {0};
	unsigned i;
	int rc = 1;

	(void)revents;
	for (i = 0; i < WORKER_TOLD_A_TURN && w->supervisor.fd >= 0; i++) {
		rc = message_recv(w->supervisor.fd, FROM_SUPERVISOR, &m, NULL, &e);
		if (rc != 1)
			break;
		if (m.type == MSG_POKE)
			control_look(w);
		else if (m.type == MSG_DRAIN)
			drain(w, m.body);
		message_clear(&m);
	}
	if (rc < 0) { /* the run goes on, and a later supervisor connects to worker.sock */
		if (e.code != ERR_NOTFOUND)
			log_line(LOG_WARNING, "the supervisor's end: %s", e.msg);
		link_close(&w->supervisor);
	}
}

/* ---- worker.sock ---- */

static void listener_ready(void *arg, short revents);

static bool
has_free_peer(const struct worker *w)
{
	size_t i;

	for (i = 0; i < WORKER_MAX_PEERS; i++)
		if (w->peers[i].fd < 0)
			return true;
	return false;
}

static void
watch_one(struct worker *w, struct poller_source *source, int fd, poller_ready *ready, void *arg)
{
	bool wanted = has_free_peer(w);
	struct err e = {0};

	if (!wanted)
		poller_unwatch(&w->loop, source);
	else if (source->place == 0 && fd >= 0 &&
	    poller_watch(&w->loop, source, fd, POLLIN, ready, arg, &e) != 0)
		worker_error(w, &e);
}

static void door_ready(void *arg, short revents);

/* Who comes while all peers are taken waits in the listener's queue. */
static void
watch_listener(struct worker *w)
{
	struct door *d;

	watch_one(w, &w->listener, w->listen_fd, listener_ready, w);
	for (d = w->doors; d != NULL; d = d->next)
		watch_one(w, &d->source, d->fd, door_ready, d);
}

static void
close_peer(struct link *l)
{
	link_close(l);
	watch_listener(l->w);
}

static void
peer_idle(void *arg)
{
	close_peer(arg);
}

/* Waits for the peer's next packet. */
static void
await_peer(struct link *l)
{
	struct poller *loop = &l->w->loop;
	struct err e = {0};

	if ((l->source.place == 0 &&
		poller_watch(loop, &l->source, l->fd, POLLIN, peer_ready, l, &e) != 0) ||
	    timer_arm(&loop->timers, &l->idle,
		clock_monotonic_ns() + WORKER_PEER_IDLE_S * NS_PER_S, peer_idle, l, &e) != 0) {
		log_line(LOG_ERROR, "%s", e.msg);
		close_peer(l);
	}
}

static bool
somebody_waits(const struct worker *w)
{
	struct pollfd p = {.fd = w->listen_fd, .events = POLLIN};
	const struct door *d;

	if (poll(&p, 1, 0) == 1)
		return true;
	for (d = w->doors; d != NULL; d = d->next) {
		p.fd = d->fd;
		if (poll(&p, 1, 0) == 1)
			return true;
	}
	return false;
}

/* Who has asked often, and would ask again, keeps nobody out: it may queue as the others do. */
static bool
makes_room(const struct link *l)
{
	return l->answered >= WORKER_PEER_STAY && !has_free_peer(l->w) && somebody_waits(l->w);
}

static void
send_to_peer(struct link *l, enum message_type type, struct json *body, int fd)
{
	struct err e = {0};
	int rc = message_send(l->fd, type, body, fd, &e);

	l->answered++;
	/* A peer that does not read its one answer has gone, or is not worth waiting for. */
	if (rc != 0 || makes_room(l))
		close_peer(l);
	else
		await_peer(l);
}

void
link_answer(struct link *l, struct json *value, int fd)
{
	struct json *body;

	if (l->fd < 0) { /* a request that was spooled: nobody waits */
		json_unref(value);
		return;
	}
	body = json_object();
	if (value != NULL)
		body = json_set(body, "value", value);
	send_to_peer(l, MSG_OK, body, fd);
}

void
link_refuse(struct link *l, const struct err *why)
{
	struct json *body;

	if (l->fd < 0) {
		log_line(LOG_WARNING, "a request that was spooled is refused: %s", why->msg);
		return;
	}
	body = json_set(json_object(), "error", json_cstr(err_type(why->code)));

	body = json_set(body, "message", json_string_lossy(slice_of(why->msg), NULL));
	if (err_has_hint(why))
		body = json_set(body, why->advice ? "advice" : "hint",
		    json_string_lossy(slice_of(err_hint_text(why)), NULL));
	send_to_peer(l, MSG_ERROR, body, -1);
}

static void
peer_said(struct link *l, const struct message *m, int passed)
{
	struct worker *w = l->w;
	struct slice role = json_text(json_get(m->body, "role"));
	struct err e = {0};
	int fd;

	if (m->type == MSG_HELLO && slice_is(role, "supervisor")) {
		fd = l->fd;
		l->fd = -1;
		poller_unwatch(&w->loop, &l->source);
		close_peer(l);
		take_supervisor(w, fd);
	} else if (m->type == MSG_HELLO && slice_is(role, "operation")) {
		l->operation = true;
	} else if (m->type == MSG_REQUEST && l->operation) {
		/* One request at a time: the next is read when this one is answered. */
		poller_unwatch(&w->loop, &l->source);
		timer_disarm(&w->loop.timers, &l->idle);
		emit_request(w, l, m->body, passed);
	} else {
		err_set(&e, ERR_REFUSED, "this worker takes requests of operations only");
		link_refuse(l, &e);
		close_peer(l);
	}
}

static void
peer_ready(void *arg, short revents)
{
	struct link *l = arg;
	struct message m = {0};
	struct err e = {0};
	int passed = -1;
	int rc = message_recv(l->fd, FROM_SUPERVISOR | FROM_OPERATION, &m, &passed, &e);

	(void)revents;
	if (rc < 0) {
		if (e.code != ERR_NOTFOUND)
			log_line(LOG_WARNING, "worker.sock: %s", e.msg);
		close_peer(l);
	}
	if (rc == 1) {
		peer_said(l, &m, passed);
		message_clear(&m);
	}
	fd_close(&passed);
}

static struct link *
free_peer(struct worker *w)
{
	size_t i;

	for (i = 0; i < WORKER_MAX_PEERS; i++)
		if (w->peers[i].fd < 0)
			return &w->peers[i];
	return NULL;
}

static void
accept_peer(struct worker *w, int listen_fd)
{
	struct err e = {0};
	struct link *l = free_peer(w);
	int fd = ipc_accept(listen_fd, NULL, &e);

	if (fd < 0) {
		if (e.code != ERR_BUSY)
			log_line(LOG_WARNING, "worker.sock: %s", e.msg);
		return;
	}
	assert(l != NULL);
	l->fd = fd;
	await_peer(l);
	watch_listener(w);
}

static void
listener_ready(void *arg, short revents)
{
	struct worker *w = arg;

	(void)revents;
	accept_peer(w, w->listen_fd);
}

static void
door_ready(void *arg, short revents)
{
	struct door *d = arg;

	(void)revents;
	accept_peer(d->w, d->fd);
}

/* ---- Doors ---- */

#define FRESH_SOCKET RUN_SOCKET ".new"

/* What is there was left by a worker that died; the run's lock says that none is there. Its place is
 * taken in one step: to whom asks meanwhile, no socket would mean a run that is over. */
static int
listen_at(int run_fd, struct err *e)
{
	int fd;

	if (unlinkat(run_fd, FRESH_SOCKET, 0) != 0 && errno != ENOENT)
		return err_sys(e, ERR_IO, errno, "cannot remove '%s'", FRESH_SOCKET);
	fd = ipc_listen(run_fd, FRESH_SOCKET, WORKER_BACKLOG, e);
	if (fd >= 0 && renameat(run_fd, FRESH_SOCKET, run_fd, RUN_SOCKET) != 0) {
		err_sys(e, ERR_IO, errno, "cannot rename '%s'", FRESH_SOCKET);
		unlinkat(run_fd, FRESH_SOCKET, 0);
		fd_close(&fd);
	}
	return fd;
}

static int
open_door(struct door *d, struct err *e)
{
	struct launch_read l;

	d->run_fd = rundir_open(&d->w->home, d->run_id, e);
	if (d->run_fd < 0 || launch_read(d->run_fd, &l, e) != 0)
		return -1;
	snprintf(d->session, sizeof(d->session), "%s", l.session_id);
	launch_read_clear(&l);
	d->fd = listen_at(d->run_fd, e);
	if (d->fd < 0)
		return -1;
	return poller_watch(&d->w->loop, &d->source, d->fd, POLLIN, door_ready, d, e);
}

static void
close_door(struct door *d, bool keep_name)
{
	poller_unwatch(&d->w->loop, &d->source);
	if (d->fd >= 0 && !keep_name)
		unlinkat(d->run_fd, RUN_SOCKET, 0);
	fd_close(&d->fd);
	fd_close(&d->run_fd);
	free(d);
}

struct door *
link_open_door(struct worker *w, const char *run_id, struct err *e)
{
	struct door *d;

	for (d = w->doors; d != NULL; d = d->next)
		if (strcmp(d->run_id, run_id) == 0)
			return d;
	d = calloc(1, sizeof(*d));
	if (d == NULL) {
		err_nomem(e);
		return NULL;
	}
	d->w = w;
	d->run_fd = d->fd = -1;
	snprintf(d->run_id, sizeof(d->run_id), "%s", run_id);
	if (open_door(d, e) != 0) {
		close_door(d, true);
		return NULL;
	}
	d->next = w->doors;
	w->doors = d;
	return d;
}

int
link_door_ops(const struct door *d, struct err *e)
{
	return fs_open_private_dir(d->run_fd, RUN_OPS, e);
}

const struct door *
link_next_door(const struct worker *w, const struct door *after)
{
	return after == NULL ? w->doors : after->next;
}

const char *
link_door_session(const struct door *d)
{
	return d->session;
}

const char *
link_door_run(const struct door *d)
{
	return d->run_id;
}

/* ---- Beginning and end ---- */

int
link_begin(struct worker *w, struct err *e)
{
	w->listen_fd = listen_at(w->run_fd, e);
	if (w->listen_fd < 0 ||
	    poller_watch(&w->loop, &w->listener, w->listen_fd, POLLIN, listener_ready, w, e) != 0)
		return -1;
	if (w->inherited_fd >= 0) {
		take_supervisor(w, w->inherited_fd);
		w->inherited_fd = -1;
	}
	return 0;
}

void
link_clear(struct worker *w)
{
	struct door *d;
	size_t i;

	for (i = 0; i < WORKER_MAX_PEERS; i++)
		if (w->peers[i].fd >= 0)
			link_close(&w->peers[i]);
	if (w->supervisor.fd >= 0)
		link_close(&w->supervisor);
	while ((d = w->doors) != NULL) {
		w->doors = d->next;
		close_door(d, (w->closed & CLOSED_TERMINATED) != 0);
	}
	if (w->listen_fd >= 0) {
		poller_unwatch(&w->loop, &w->listener);
		fd_close(&w->listen_fd);
		/* Operations that are left running find it deaf, and leave their requests in files. */
		if (!(w->closed & CLOSED_TERMINATED))
			unlinkat(w->run_fd, RUN_SOCKET, 0);
	}
}

/* ---- Progress: the newest only, five times a second to the supervisor, once to the database ---- */

static void
send_progress(struct worker *w, bool notice)
{
	struct json *body = json_set(json_object(), "run", json_cstr(w->run_id));

	body = json_set(body, "done", json_uint(w->counts.done));
	body = json_set(body, "total", json_uint(w->flow->nops));
	body = json_set(body, "saved",
	    json_uint(w->counts.completed + w->counts.failed + w->counts.replaced -
		(w->unsaved_count - w->unsaved_pending)));
	if (notice)
		body = json_set(body, "notice", json_bool(true));
	send_to_supervisor(w, MSG_PROGRESS, json_set(body, "running", json_uint(w->running)));
}

static void
progress_link_due(void *arg)
{
	send_progress(arg, false);
}

void
link_notice(struct worker *w)
{
	send_progress(w, true);
}

struct progress_job {
	struct io_job job;
	int64_t done, total;
};

static void
progress_work(struct io_job *job, struct io_context *c)
{
	struct progress_job *j = (struct progress_job *)job;
	struct store *s;

	job->result = io_store(c, &s, &job->error);
	if (job->result == 0)
		job->result = session_progress(s, c->run_id, j->done, j->total, &job->error);
}

static void
progress_done(struct io_job *job, void *owner)
{
	(void)owner;
	free(job);
}

static void
progress_store_due(void *arg)
{
	struct worker *w = arg;
	struct progress_job *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return; /* the next change tells it */
	w->total_stored = w->flow->nops;
	j->job.work = progress_work;
	j->job.done = progress_done;
	j->done = (int64_t)w->counts.done;
	j->total = (int64_t)w->flow->nops;
	io_submit(w->io, &j->job);
}

static void
arm_progress(struct worker *w, struct timer *t, int64_t in, timer_fire *fire)
{
	struct err e = {0};

	if (!timer_is_armed(t) &&
	    timer_arm(&w->loop.timers, t, clock_monotonic_ns() + in, fire, w, &e) != 0)
		worker_error(w, &e);
}

void
link_progress(struct worker *w)
{
	arm_progress(w, &w->progress_link, PROGRESS_LINK_NS, progress_link_due);
	arm_progress(w, &w->progress_store, PROGRESS_STORE_NS, progress_store_due);
}

void
link_ended(struct worker *w)
{
	struct json *body = json_set(json_object(), "run", json_cstr(w->run_id));

	if (w->supervisor.fd < 0 && w->inherited_fd >= 0) { /* it never came to greet */
		w->supervisor.fd = w->inherited_fd;
		w->inherited_fd = -1;
	}
	body = json_set(body, "status", json_cstr(status_word(w->status)));
	send_to_supervisor(w, MSG_ENDED, json_set(body, "reason", json_cstr(w->reason_code)));
}
