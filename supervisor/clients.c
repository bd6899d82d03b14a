#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"

void
clients_init(struct clients *clients)
{
	memset(clients, 0, sizeof(*clients));
	TAILQ_INIT(&clients->list);
}

/* Some clients are disconnected while others are being told something: freed is freed, so every
 * walk over the list takes the next one first. */
static void
client_free(struct client *c)
{
	struct daemon *d = c->daemon;
	struct err e = {0};

	loop_close(&d->loop, &c->channel);
	TAILQ_REMOVE(&d->clients.list, c, entry);
	d->clients.count--;
	d->clients.subscribers -= c->subscribed;
	free(c);
	if (d->crowded)
		d->scan_wanted = true;
	if (!d->clients.full || d->listener.fd < 0)
		return;
	d->clients.full = false;
	if (loop_add(&d->loop, &d->listener, d->listener.fd, clients_on_accept, d, &e) != 0)
		log_line(LOG_ERROR, "%s", e.msg);
}

/* ---- Saying who is refused: a flood of connections is none of lines ---- */

static void
say_more(struct daemon *d, enum client_refusal which, int64_t now)
{
	unsigned more = d->clients.refused[which].more;

	if (more == 0)
		return;
	log_line(LOG_WARNING, "%u more %s%s %s", more, which == CLIENT_DISCONNECTED ? "client" : "connection",
	    more == 1 ? "" : "s", which == CLIENT_DISCONNECTED ? "disconnected" : "refused");
	d->clients.refused[which].more = 0;
	d->clients.refused[which].said_ns = now;
}

void
clients_say_more(void *daemon)
{
	struct daemon *d = daemon;
	int64_t now = clock_monotonic_ns(), due;
	unsigned i;

	for (i = 0; i < CLIENT_REFUSALS; i++) {
		due = d->clients.refused[i].said_ns + CLIENTS_SAY_MS * NS_PER_MS;
		if (due <= now)
			say_more(d, i, now);
		else if (d->clients.refused[i].more > 0)
			loop_set_timer(&d->loop, TIMER_REFUSED, due);
	}
}

/* Whether this one has a line; else it is counted. */
static bool
has_line(struct daemon *d, enum client_refusal which)
{
	int64_t now = clock_monotonic_ns(), due = d->clients.refused[which].said_ns + CLIENTS_SAY_MS * NS_PER_MS;

	if (d->clients.refused[which].said_ns != 0 && now < due) {
		d->clients.refused[which].more++;
		loop_set_timer(&d->loop, TIMER_REFUSED, due);
		return false;
	}
	say_more(d, which, now);
	d->clients.refused[which].said_ns = now;
	return true;
}

void
clients_clear(struct daemon *d)
{
	struct client *c;
	unsigned i;

	for (i = 0; i < CLIENT_REFUSALS; i++)
		say_more(d, i, clock_monotonic_ns());
	d->clients.full = false;
	while ((c = TAILQ_FIRST(&d->clients.list)) != NULL)
		client_free(c);
}

static void
client_refuse(struct client *c, const char *why)
{
	if (has_line(c->daemon, CLIENT_DISCONNECTED))
		log_line(LOG_WARNING, "client %ld disconnected: %s", (long)c->pid, why);
	client_free(c);
}

/* False when the client is gone now. */
static bool
answer_with(struct client *c, enum message_type type, struct json *body, int beside)
{
	struct err e = {0};
	int rc;

	if (body == NULL) {
		client_refuse(c, "out of memory");
		return false;
	}
	rc = message_send(c->channel.fd, type, body, beside, &e);
	if (rc == 0)
		return true;
	if (rc > 0)
		client_refuse(c, "it does not read");
	else
		client_free(c);
	return false;
}

static bool
answer(struct client *c, enum message_type type, struct json *body)
{
	return answer_with(c, type, body, -1);
}

static bool
answer_error(struct client *c, enum err_code code, const char *text, const char *hint)
{
	struct json *body = json_set(json_object(), "error", json_cstr(err_type(code)));

	body = json_set(body, "message", json_cstr(text));
	if (hint != NULL)
		body = json_set(body, "hint", json_cstr(hint));
	return answer(c, MSG_ERROR, body);
}

/* A peer that says nonsense hears what is wrong with it, and is disconnected. False, as it is gone. */
static bool
refuse_nonsense(struct client *c, const char *why)
{
	if (answer_error(c, ERR_PROTOCOL, why, NULL))
		client_refuse(c, why);
	return false;
}

/* ---- What they ask. Each returns false when the client is gone. ---- */

static bool
on_hello(struct client *c, const struct message *m, int *passed)
{
	int64_t minor = 0;

	(void)passed;
	/* Its major version was looked at when the packet was read. */
	c->newer = json_int64(json_get(m->body, "minor"), &minor) && minor > PROTOCOL_MINOR;
	c->greeted = true;
	return true;
}

/* With what a person can see whether it has left. */
#define SEE_WHETHER "flowsup supervisor status"

/* Who asks for a look at everything, which the next one has anyway, or is a resume that this one makes and
 * cancels then: neither is to wait. */
static bool
is_at_home(const struct client *c, const struct message *m)
{
	return json_is_true(json_get(m->body, "scan")) || errand_of(c->daemon, c->pid) != NULL;
}

static bool
on_poke(struct client *c, const struct message *m, int *passed)
{
	struct daemon *d = c->daemon;
	struct err e = {0};
	const char *run = json_cstr_of(json_get(m->body, "run"));
	bool stays;

	if (run == NULL || !run_id_is_valid(run))
		return refuse_nonsense(c, "a poke without a run id");
	if (d->phase == PHASE_STOPPING && worker_find(d, run) == NULL && !is_at_home(c, m))
		return answer_error(c, ERR_BUSY,
		    "it stops every run and is about to leave; what is asked for is left to the next one", SEE_WHETHER);
	if (*passed >= 0) {
		int values = *passed;

		*passed = -1;
		if (secrets_put(d, run, values, &e) != 0)
			return answer_error(c, e.code, e.msg, NULL);
	}
	/* Answered before anything is done: the run is looked at before this process leaves. Who asked may have gone by
	 * then, because it did not want to wait. */
	stays = answer(c, MSG_ACCEPTED, json_set(json_object(), "run", json_cstr(run)));
	queue_look(d, run);
	if (json_is_true(json_get(m->body, "scan"))) {
		d->scan_wanted = true;
		notify_look(d);
	}
	daemon_worked(d);
	return stays;
}

static bool
on_subscribe(struct client *c, const struct message *m, int *passed)
{
	(void)passed;
	const char *run = json_cstr_of(json_get(m->body, "run"));

	if (run != NULL && !run_id_is_valid(run))
		return refuse_nonsense(c, "a subscription to no run id");
	strlcpy(c->run_id, run == NULL ? "" : run, sizeof(c->run_id));
	c->daemon->clients.subscribers += !c->subscribed;
	c->subscribed = true;
	return answer(c, MSG_OK, json_object());
}

static struct json *
worker_facts(struct worker *w)
{
	struct json *o = json_set(json_object(), "pid", json_int(w->id.pid));

	o = json_set(o, "state", json_cstr(worker_state_word(w->state)));
	o = json_set(o, "stalled", json_bool(worker_is_stalled(w)));
	/* A plan that is still being made has no size; none is empty. */
	o = json_set(o, "done", w->total > 0 ? json_int(w->done) : json_null());
	return json_set(o, "total", w->total > 0 ? json_int(w->total) : json_null());
}

/* One page: the workers behind `after`, and in `next` where to go on. */
static bool
on_status(struct client *c, const struct message *m, int *passed)
{
	struct daemon *d = c->daemon;
	const char *after = json_cstr_of(json_get(m->body, "after"));
	struct json *workers = json_object(), *body = json_object();
	struct worker *w = worker_after(d, after == NULL ? "" : after);
	const char *last = NULL;
	unsigned n;

	(void)passed;
	for (n = 0; w != NULL && n < CLIENTS_PAGE; n++) {
		workers = json_set(workers, w->run_id, worker_facts(w));
		last = w->run_id;
		w = worker_after(d, w->run_id);
	}
	astray_look(d, NULL);
	body = astray_describe(d, json_set(body, "pid", json_int(getpid())));
	body = json_set(body, "version", json_cstr(FLOWSUP_VERSION));
	body = json_set(body, "runs", json_int(d->workers.count));
	body = json_set(body, "workers", workers);
	body = json_set(body, "unwritten", json_int(d->jobs.count));
	body = json_set(body, "unwritten_why",
	    json_string_lossy(slice_of(d->jobs.count > 0 ? d->jobs.last.msg : ""), NULL));
	body = json_set(body, "looked_at", json_int(d->reports.started + d->reports.waiting));
	body = json_set(body, "stopping", json_bool(d->phase == PHASE_STOPPING));
	body = kept_describe(d, json_set(body, "resuming", json_int(d->errands.counts[ERRAND_RESTART])));
	body = json_set(body, "database_lost", json_bool(store_has_moved(d->store)));
	if (w != NULL)
		body = json_set(body, "next", json_cstr(last));
	return answer(c, MSG_STATUS_IS, body);
}

static bool
on_stop(struct client *c, const struct message *m, int *passed)
{
	struct daemon *d = c->daemon;
	bool all = json_is_true(json_get(m->body, "all"));

	(void)passed;
	if (!answer(c, MSG_OK, json_object()))
		return false;
	c->waits = true; /* for what may go wrong with leaving */
	if (all)
		daemon_stop_all(d, json_is_true(json_get(m->body, "now")));
	else
		daemon_told_to_leave(d, "asked to stop");
	return true;
}

/* Of a run that is to be resumed by hand: whoever made it is the same user. */
static bool
on_values(struct client *c, const struct message *m, int *passed)
{
	const char *run = json_cstr_of(json_get(m->body, "run"));
	int fd = run != NULL ? secrets_of(c->daemon, run) : -1;

	(void)passed;
	if (run != NULL && json_is_true(json_get(m->body, "drop"))) {
		secrets_drop(c->daemon, run);
		return answer(c, MSG_OK, json_object());
	}
	if (fd < 0)
		return answer_error(c, ERR_NOTFOUND, "it has no withheld values of this run", NULL);
	return answer_with(c, MSG_OK, json_object(), fd);
}

static bool
on_settle(struct client *c, const struct message *m, int *passed)
{
	struct json *end;
	struct err e = {0};
	int rc = kept_settle(c->daemon, json_cstr_of(json_get(m->body, "run")), json_get(m->body, "line"), &end, &e);

	(void)passed;
	/* Who has the directory that we do not find writes it down there. */
	if (json_is_true(json_get(m->body, "tell")) && end != NULL)
		return answer(c, MSG_OK, json_set(json_object(), "end", end));
	json_unref(end);
	return rc != 0 ? answer_error(c, e.code, e.msg, NULL) : answer(c, MSG_OK, json_object());
}

static bool
on_restart(struct client *c, const struct message *m, int *passed)
{
	struct daemon *d = c->daemon;

	(void)passed;
	(void)m;
	if (d->phase != PHASE_WORKING)
		return answer_error(c, ERR_BUSY, d->phase == PHASE_RESTARTING
			? "it is about to execute itself anew"
			: d->phase == PHASE_STOPPING
			? "it stops every run and is about to leave; the next one is started anew by any command"
			: "it is about to leave; the next one is started anew by any command", SEE_WHETHER);
	c->waits = true;
	d->phase = PHASE_RESTARTING;
	loop_set_timer(&d->loop, TIMER_QUIET, clock_monotonic_ns() + DAEMON_QUIET_MS * NS_PER_MS);
	return answer(c, MSG_OK, json_object());
}

/* passed: the descriptor that came beside the packet; -1 once it is taken. */
typedef bool client_message_fn(struct client *c, const struct message *m, int *passed);

static client_message_fn *const handlers[MESSAGE_TYPES] = {
    [MSG_HELLO] = on_hello,
    [MSG_POKE] = on_poke,
    [MSG_STATUS] = on_status,
    [MSG_STOP] = on_stop,
    [MSG_RESTART] = on_restart,
    [MSG_SUBSCRIBE] = on_subscribe,
    [MSG_VALUES] = on_values,
    [MSG_SETTLE] = on_settle,
};

static bool
handle(struct client *c, const struct message *m, int *passed)
{
	if (handlers[m->type] == NULL || c->greeted == (m->type == MSG_HELLO))
		return refuse_nonsense(c, "a message out of place");
	/* Nothing is accepted that would be done in a file nobody sees: the connection ends, and the
	 * command finds or starts another supervisor. */
	if (m->type != MSG_HELLO && daemon_lost_home(c->daemon) && m->type != MSG_STATUS) {
		client_free(c);
		return false;
	}
	return handlers[m->type](c, m, passed);
}

/* One packet; false when none waits or the client is gone. */
static bool
read_one(struct client *c)
{
	struct message m;
	struct err e = {0};
	bool stays;
	int passed = -1, rc = message_recv(c->channel.fd, FROM_CLIENT, &m, &passed, &e);

	if (rc == 0)
		return false;
	if (rc < 0) {
		/* This program anew, as it is now on the disk, understands one that is newer; no other. */
		if (c->newer)
			err_hint(&e, "flowsup supervisor restart");
		if (e.code == ERR_NOTFOUND)
			client_free(c);
		else if (answer_error(c, ERR_PROTOCOL, e.msg, err_has_hint(&e) ? err_hint_text(&e) : NULL))
			client_refuse(c, e.msg);
		return false;
	}
	stays = handle(c, &m, &passed);
	fd_close(&passed);
	message_clear(&m);
	return stays;
}

static void
on_channel(void *arg)
{
	struct client *c = arg;
	unsigned i;

	for (i = 0; i < CLIENTS_PACKETS_A_TURN; i++)
		if (!read_one(c))
			return;
}

/* ---- Coming and going ---- */

static int
client_add(struct daemon *d, int fd, pid_t pid, struct err *e)
{
	struct client *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		fd_close(&fd);
		return err_nomem(e);
	}
	c->daemon = d;
	c->pid = pid;
	c->since_ns = clock_monotonic_ns();
	if (loop_add(&d->loop, &c->channel, fd, on_channel, c, e) != 0) {
		fd_close(&fd);
		free(c);
		return -1;
	}
	TAILQ_INSERT_TAIL(&d->clients.list, c, entry);
	d->clients.count++;
	loop_set_timer(&d->loop, TIMER_CLIENTS, c->since_ns + CLIENTS_HELLO_MS * NS_PER_MS);
	return 0;
}

static bool
has_room(const struct daemon *d)
{
	/* Commands must get through when runs do not: half of the reserve is for them. */
	return d->clients.count < CLIENTS_MOST &&
	    (d->clients.count < 32 ||
		queue_has_room(d->descriptors, d->workers.count, d->clients.count));
}

static bool
accept_one(struct daemon *d)
{
	struct err e = {0};
	pid_t pid = 0;
	int fd;

	if (!has_room(d)) {
		d->clients.full = true;
		loop_remove(&d->loop, &d->listener);
		return false;
	}
	fd = ipc_accept(d->listener.fd, &pid, &e);
	if (fd < 0 && e.code == ERR_BUSY)
		return false;
	if ((fd < 0 || client_add(d, fd, pid, &e) != 0) && has_line(d, CLIENT_NOT_ACCEPTED))
		log_line(LOG_WARNING, "a connection was refused: %s", e.msg);
	/* Of another user: it is closed, and the next one may be ours. */
	return fd >= 0 || e.code == ERR_PERMISSION;
}

bool
clients_accept(struct daemon *d)
{
	unsigned i;

	for (i = 0; i < CLIENTS_ACCEPTS_A_TURN; i++)
		if (!accept_one(d))
			return false;
	return true;
}

void
clients_on_accept(void *daemon)
{
	(void)clients_accept(daemon);
}

void
clients_serve_all(struct daemon *d)
{
	struct client *c, *next;

	for (c = TAILQ_FIRST(&d->clients.list); c != NULL; c = next) {
		next = TAILQ_NEXT(c, entry);
		on_channel(c);
	}
}

void
clients_silent(void *daemon)
{
	struct daemon *d = daemon;
	int64_t now = clock_monotonic_ns(), due;
	struct client *c, *next;

	for (c = TAILQ_FIRST(&d->clients.list); c != NULL; c = next) {
		next = TAILQ_NEXT(c, entry);
		due = c->since_ns + CLIENTS_HELLO_MS * NS_PER_MS;
		if (c->greeted)
			continue;
		if (due <= now)
			client_refuse(c, "it said nothing");
		else
			loop_set_timer(&d->loop, TIMER_CLIENTS, due);
	}
}

/* ---- Telling subscribers ---- */

static struct json *
change(const char *run_id, const char *status)
{
	return json_set(json_set(json_object(), "run", json_cstr(run_id)), "status",
	    json_cstr(status));
}

static void
tell(struct daemon *d, const char *run_id, const struct json *body)
{
	struct client *c, *next;

	for (c = TAILQ_FIRST(&d->clients.list); c != NULL; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->subscribed && (c->run_id[0] == '\0' || strcmp(c->run_id, run_id) == 0))
			(void)answer(c, MSG_CHANGED, json_ref(body));
	}
}

void
clients_tell_changed(struct daemon *d, const char *run_id, const char *status, const char *reason)
{
	struct json *body;

	if (d->clients.subscribers == 0)
		return;
	body = change(run_id, status);
	if (reason != NULL)
		body = json_set(body, "reason", json_cstr(reason));
	if (body != NULL)
		tell(d, run_id, body);
	else
		log_line(LOG_ERROR, "run %s: subscribers were not told: out of memory", run_id);
	json_unref(body);
}

/* The newest counts replace what was not sent: to a full queue nothing is added. */
void
clients_tell_progress(struct daemon *d, const char *run_id, int64_t done, int64_t total)
{
	struct client *c, *next;
	struct json *body;
	struct err e = {0};

	if (d->clients.subscribers == 0)
		return;
	body = json_set(change(run_id, status_word(STATUS_RUNNING)), "done", json_int(done));
	body = json_set(body, "total", json_int(total));
	for (c = TAILQ_FIRST(&d->clients.list); c != NULL && body != NULL; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (!c->subscribed || strcmp(c->run_id, run_id) != 0)
			continue;
		if (message_send(c->channel.fd, MSG_CHANGED, json_ref(body), -1, &e) < 0)
			client_free(c);
	}
	json_unref(body);
}

void
clients_failed(struct daemon *d, const struct err *why)
{
	struct client *c, *next;

	for (c = TAILQ_FIRST(&d->clients.list); c != NULL; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (!c->waits)
			continue;
		c->waits = false;
		(void)answer_error(c, why->code, why->msg, NULL);
	}
}
