#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "autostart.h"
#include "cli.h"
#include "client.h"
#include "daemon.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"
#include "flowsup/proc.h"

enum { PAUSE_FIRST_MS = 2, PAUSE_MOST_MS = 50, STAMP_BYTES = 1024 };

static int
left_ms(int64_t until_ns)
{
	int64_t ms = (until_ns - clock_monotonic_ns() + NS_PER_MS - 1) / NS_PER_MS;

	return ms < 0 ? 0 : (int)(ms < INT32_MAX ? ms : INT32_MAX);
}

static int64_t
in_ms(int64_t ms)
{
	return clock_monotonic_ns() + ms * NS_PER_MS;
}

static void
pause_ms(int *ms)
{
	const struct timespec t = {0, *ms * NS_PER_MS};

	nanosleep(&t, NULL);
	*ms = *ms * 2 < PAUSE_MOST_MS ? *ms * 2 : PAUSE_MOST_MS;
}

/* ---- One conversation ---- */

static int
send_all(int fd, enum message_type type, struct json *body, int beside, struct err *e)
{
	int rc = body == NULL ? err_nomem(e) : message_send(fd, type, body, beside, e);

	return rc > 0 ? err_set(e, ERR_BUSY, "the supervisor does not read") : rc;
}

static int
connect_and_greet(const struct home *h, struct err *e)
{
	struct json *body = json_set(json_object(), "role", json_cstr("client"));
	int fd = ipc_connect(h->fd, HOME_SOCKET, e);

	body = json_set(body, "major", json_int(PROTOCOL_MAJOR));
	body = json_set(body, "minor", json_int(PROTOCOL_MINOR));
	body = json_set(body, "version", json_cstr(FLOWSUP_VERSION));
	if (fd < 0) {
		json_unref(body);
		return -1;
	}
	if (send_all(fd, MSG_HELLO, body, -1, e) != 0)
		fd_close(&fd);
	return fd;
}

/* 0 when there is something to read, or the end. until_ns 0: waits as long as it takes. */
static int
wait_readable(int fd, int64_t until_ns, struct err *e)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int rc;

	do
		rc = poll(&p, 1, until_ns == 0 ? -1 : left_ms(until_ns));
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return err_set(e, ERR_TIMEOUT, "the supervisor does not answer");
	return rc < 0 ? err_sys(e, ERR_IO, errno, "poll") : 0;
}

/* What the supervisor says as an error becomes ours. */
static int
take_error(const struct message *m, struct err *e)
{
	const char *type = json_cstr_of(json_get(m->body, "error"));
	const char *text = json_cstr_of(json_get(m->body, "message"));
	const char *hint = json_cstr_of(json_get(m->body, "hint"));
	const char *advice = json_cstr_of(json_get(m->body, "advice"));

	err_set(e, type == NULL ? ERR_INTERNAL : err_from_type(type), "supervisor: %s",
	    text == NULL ? "an error" : text);
	if (advice != NULL)
		return err_advice(e, "%s", advice);
	return hint == NULL ? -1 : err_hint(e, "%s", hint);
}

/* The next message, whatever it is; -1: in time there is none, or the connection has ended. */
static int
receive(int fd, int64_t until_ns, struct message *out, struct err *e)
{
	int rc;

	do {
		if (wait_readable(fd, until_ns, e) != 0)
			return -1;
		rc = message_recv(fd, FROM_SUPERVISOR, out, NULL, e);
	} while (rc == 0);
	return rc < 0 ? -1 : 0;
}

/* Clears what is not wanted. */
static int
want(struct message *m, enum message_type wanted, struct err *e)
{
	if (m->type == wanted)
		return 0;
	if (m->type == MSG_ERROR)
		take_error(m, e);
	else
		err_set(e, ERR_PROTOCOL, "the supervisor answers '%s'", message_word(m->type));
	message_clear(m);
	return -1;
}

/* Connects, asks, hears one answer. Consumes body. *said (may be NULL): what is wrong the supervisor answers. */
static int
ask_with(const struct home *h, enum message_type type, struct json *body, int beside, int limit_ms,
    enum message_type wanted, struct message *out, int *keep, bool *said, struct err *e)
{
	int64_t until = in_ms(limit_ms);
	int fd = connect_and_greet(h, e), rc = -1;
	bool heard = false;

	if (fd < 0)
		json_unref(body);
	else if (send_all(fd, type, body, beside, e) == 0) {
		heard = receive(fd, until, out, e) == 0;
		rc = heard ? want(out, wanted, e) : -1;
	}
	if (said != NULL)
		*said = heard;
	if (rc == 0 && keep != NULL)
		*keep = fd;
	else
		fd_close(&fd);
	return rc;
}

/* The number may have been given to another since, or be one of another pid namespace. */
static bool
is_supervisor(pid_t pid)
{
	char path[sizeof("/proc//comm") + 16];
	struct buf name = {0};
	bool is;
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/comm", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	is = fd >= 0 && fs_read_all(&fs_real, "proc.comm", fd, STAMP_BYTES, &name, NULL) == 0 &&
	    slice_is(buf_view(&name), "flowsup\n");
	buf_clear(&name);
	fd_close(&fd);
	return is;
}

pid_t
client_supervisor(const struct home *h, bool *stopped)
{
	pid_t pid = home_lock_holder(h);
	struct proc_stat st;

	if (pid == 0 || !is_supervisor(pid) || proc_stat_read(pid, &st, NULL) != 0)
		return 0;
	*stopped = st.state == 'T' || st.state == 't';
	return pid;
}

bool
client_say_silent(const struct home *h, struct err *e)
{
	char word[SHELL_WORD_TEXT];
	bool stopped;
	pid_t pid = client_supervisor(h, &stopped);

	if (pid == 0)
		return false;
	if (stopped) {
		err_set(e, ERR_TIMEOUT, "the supervisor for '%s', process %ld, is stopped", h->path, (long)pid);
		err_hint(e, "kill -CONT %ld", (long)pid);
		return true;
	}
	err_set(e, ERR_TIMEOUT, "the supervisor for '%s', process %ld, does not answer", h->path, (long)pid);
	err_hint(e, "kill -KILL %ld; flowsup supervisor --home %s   # if it stays so: runs go on", (long)pid,
	    shell_word(word, h->path));
	return true;
}

static void
explain(const struct home *h, struct err *e)
{
	enum err_code code = e->code;

	if (client_say_silent(h, e))
		e->code = code; /* what is done about it hangs on that */
}

/* One that answers is not silent, whatever it answers. */
static int
ask(const struct home *h, enum message_type type, struct json *body, enum message_type wanted,
    struct message *out, int *keep, struct err *e)
{
	bool said;
	int rc = ask_with(h, type, body, -1, CLIENT_ANSWER_MS, wanted, out, keep, &said, e);

	if (rc != 0 && !said && (e->code == ERR_TIMEOUT || e->code == ERR_BUSY))
		explain(h, e);
	return rc;
}

/* Nobody there, or nobody who answers: a reason to start one and to ask again. */
static bool
is_worth_another(const struct err *e)
{
	return e->code == ERR_NOTFOUND || e->code == ERR_TIMEOUT || e->code == ERR_BUSY ||
	    e->code == ERR_IO;
}

/* ---- Poking ---- */

/* Beside the packet goes `beside`, or -1. */
struct poke {
	const char *run_id;
	bool scan;
	int beside, limit_ms;
};

/* One try of something; *said as of ask_with(). */
typedef int once_fn(const struct home *h, const struct poke *p, bool *said, struct err *e);

static int
poke_once(const struct home *h, const struct poke *p, bool *said, struct err *e)
{
	struct json *body = json_set(json_object(), "run", json_cstr(p->run_id));
	struct message answer;

	if (p->scan)
		body = json_set(body, "scan", json_bool(true));
	if (ask_with(h, MSG_POKE, body, p->beside, p->limit_ms, MSG_ACCEPTED, &answer, NULL, said, e) != 0)
		return -1;
	message_clear(&answer);
	return 0;
}

static int
status_once(const struct home *h, const struct poke *unused, bool *said, struct err *e)
{
	struct message answer;

	(void)unused;
	if (ask_with(h, MSG_STATUS, json_object(), -1, CLIENT_ANSWER_MS, MSG_STATUS_IS, &answer, NULL, said, e) != 0)
		return -1;
	message_clear(&answer);
	return 0;
}

bool
client_is_answered(const struct home *h)
{
	struct err e = {0};
	bool said;

	return status_once(h, NULL, &said, &e) == 0 || !is_worth_another(&e);
}

static int
given_up(const struct home *h, bool said, struct err *e)
{
	if (said || client_say_silent(h, e))
		return -1;
	if (e->code == ERR_NOTFOUND)
		e->code = ERR_TIMEOUT;
	err_wrap(e, "no supervisor for '%s'", h->path);
	char word[SHELL_WORD_TEXT];
	return err_hint(e, "flowsup supervisor --foreground --home %s", shell_word(word, h->path));
}

/* Who asks would otherwise not know why nothing happens. False: nobody has the lock. */
static bool
tell_waiting(const struct home *h)
{
	bool stopped;
	pid_t pid = client_supervisor(h, &stopped);

	if (pid == 0)
		return false;
	cli_note("waits for the supervisor, process %ld, which %s", (long)pid, stopped ? "is stopped" : "does not answer");
	if (stopped)
		cli_hint("kill -CONT %ld", (long)pid);
	return true;
}

/*
 * Asks until it is answered or the time is over. Each round that finds nobody starts a supervisor;
 * of several starters one gets the lock, and answers all.
 */
static int
insist(const struct home *h, once_fn *once, const struct poke *arg, int64_t idle_exit_ns, bool *started,
    struct err *e)
{
	int64_t until = in_ms(CLIENT_LIMIT_MS), said_until = in_ms(CLIENT_ANSWER_MS);
	int pause = PAUSE_FIRST_MS;
	struct err start = {0};
	bool ready, said, told = false;

	*started = false;
	while (once(h, arg, &said, e) != 0) {
		if (!is_worth_another(e))
			return -1;
		/* One that is about to leave often has in a moment; one that stops every run may take hours. */
		if (left_ms(until) == 0 || (said && left_ms(said_until) == 0))
			return given_up(h, said, e);
		if (!said && !told && left_ms(said_until) == 0)
			told = tell_waiting(h);
		/* Its queue is full, or it is about to leave: it lives, and needs time. */
		if (e->code == ERR_BUSY) {
			pause_ms(&pause);
			continue;
		}
		if (autostart(h, idle_exit_ns, left_ms(until), &ready, &start) != 0) {
			*e = start;
			return start.code == ERR_TIMEOUT
			    ? given_up(h, false, e)
			    : err_wrap(e, "no supervisor for '%s'", h->path);
		}
		*started = *started || ready;
		if (!ready)
			pause_ms(&pause);
	}
	return 0;
}

static int
poke(const struct home *h, const char *run_id, bool scan, int values_fd, struct err *e)
{
	const struct poke p = {run_id, scan, values_fd, CLIENT_ANSWER_MS};
	bool started;

	return insist(h, poke_once, &p, DAEMON_IDLE_EXIT_NS, &started, e);
}

int
client_poke(const struct home *h, const char *run_id, struct err *e)
{
	return poke(h, run_id, false, -1, e);
}

int
client_nudge(const struct home *h, const char *run_id, struct err *e)
{
	const struct poke p = {run_id, false, -1, CLIENT_GLANCE_MS};

	return poke_once(h, &p, NULL, e);
}

int
client_supply(const struct home *h, const char *run_id, int values_fd, struct err *e)
{
	return poke(h, run_id, false, values_fd, e);
}

int
client_scan(const struct home *h, const char *run_id, struct err *e)
{
	return poke(h, run_id, true, -1, e);
}

void
client_mention(const struct home *h, const char *run_id)
{
	const struct poke p = {run_id, true, -1, CLIENT_ANSWER_MS};
	bool stopped;

	if (client_supervisor(h, &stopped) != 0 && !stopped)
		(void)poke_once(h, &p, NULL, &(struct err){0});
}

int
client_ensure(const struct home *h, int64_t idle_exit_ns, bool *started, struct err *e)
{
	bool ignored;

	if (idle_exit_ns == CLIENT_IDLE_DEFAULT)
		idle_exit_ns = DAEMON_IDLE_EXIT_NS;
	return insist(h, status_once, NULL, idle_exit_ns, started == NULL ? &ignored : started, e);
}

/* One of an older version ends the connection. */
int
client_values(const struct home *h, const char *run_id, struct err *e)
{
	int64_t until = in_ms(CLIENT_ANSWER_MS);
	struct message answer;
	int fd = connect_and_greet(h, e), values = -1, rc;

	rc = fd < 0 ? -1 : send_all(fd, MSG_VALUES, json_set(json_object(), "run", json_cstr(run_id)), -1, e);
	while (rc == 0 && wait_readable(fd, until, e) == 0 &&
	    (rc = message_recv(fd, FROM_SUPERVISOR, &answer, &values, e)) == 0)
		;
	if (rc == 1) {
		if (answer.type != MSG_OK)
			fd_close(&values);
		message_clear(&answer);
	}
	fd_close(&fd);
	return values;
}

void
client_drop_values(const struct home *h, const char *run_id)
{
	struct json *body = json_set(json_object(), "run", json_cstr(run_id));
	struct message answer;
	struct err e = {0};

	body = json_set(body, "drop", json_bool(true));
	if (ask(h, MSG_VALUES, body, MSG_OK, &answer, NULL, &e) == 0)
		message_clear(&answer);
}

int
client_settle(const struct home *h, const char *run_id, const struct json *line, struct json **end,
    struct err *e)
{
	static const char *const members[] = {"op", "attempt", "pid", "start", "run"};
	struct json *body = json_set(json_object(), "run", json_cstr(run_id)), *of = json_object();
	struct message answer;
	size_t i;

	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (json_get(line, members[i]) != NULL)
			of = json_set(of, members[i], json_ref(json_get(line, members[i])));
	if (end != NULL)
		body = json_set(body, "tell", json_bool(true));
	if (ask(h, MSG_SETTLE, json_set(body, "line", of), MSG_OK, &answer, NULL, e) == 0) {
		if (end != NULL)
			*end = json_ref(json_get(answer.body, "end"));
		message_clear(&answer);
		return 0;
	}
	/* It may have closed the connection because it leaves, and listens no more. */
	if (e->code == ERR_NOTFOUND && client_is_up(h))
		return err_set(e, ERR_BUSY, "the supervisor does not answer");
	return -1;
}

bool
client_is_up(const struct home *h)
{
	struct err e = {0};
	int fd = ipc_connect(h->fd, HOME_SOCKET, &e);
	/* One that does not get round to its callers listens all the same. */
	bool up = fd >= 0 || e.code == ERR_BUSY;

	fd_close(&fd);
	return up;
}

/* ---- Following ---- */

int
client_subscribe(const struct home *h, const char *run_id, struct err *e)
{
	struct json *body = json_object();
	struct message answer;
	int fd = -1;

	if (run_id != NULL)
		body = json_set(body, "run", json_cstr(run_id));
	if (ask(h, MSG_SUBSCRIBE, body, MSG_OK, &answer, &fd, e) != 0)
		return -1;
	message_clear(&answer);
	return fd;
}

int
client_next_change(int fd, struct client_change *out, struct err *e)
{
	struct message m;
	int rc = message_recv(fd, FROM_SUPERVISOR, &m, NULL, e);

	if (rc <= 0)
		return rc;
	if (m.type != MSG_CHANGED) {
		message_clear(&m);
		return err_set(e, ERR_PROTOCOL, "the supervisor says something else than a change");
	}
	out->body = m.body;
	out->run_id = json_cstr_of(json_get(m.body, "run"));
	out->status = json_cstr_of(json_get(m.body, "status"));
	out->reason = json_cstr_of(json_get(m.body, "reason"));
	if (out->run_id != NULL && out->status != NULL)
		return 1;
	client_change_clear(out);
	return err_set(e, ERR_PROTOCOL, "the supervisor says a change of nothing");
}

void
client_change_clear(struct client_change *c)
{
	json_unref(c->body);
	*c = (struct client_change){0};
}

/* ---- Asking about itself ---- */

static struct json *
add_page(struct json *all, const struct json *page)
{
	struct json *workers = json_ref(json_get(all, "workers"));
	struct json_iter it = json_iterate(json_get(page, "workers"));
	const struct json *value;
	struct slice name;

	while (json_next(&it, &name, &value))
		workers = json_setn(workers, name, json_ref(value));
	return json_set(all, "workers", workers);
}

int
client_status(const struct home *h, int limit_ms, struct json **out, struct err *e)
{
	struct json *all = NULL, *body;
	struct message page;
	const char *next;

	for (;;) {
		next = json_cstr_of(json_get(all, "next"));
		body = json_object();
		if (next != NULL)
			body = json_set(body, "after", json_cstr(next));
		if (ask_with(h, MSG_STATUS, body, -1, limit_ms, MSG_STATUS_IS, &page, NULL, NULL, e) != 0)
			break;
		if (all != NULL)
			all = add_page(json_remove(all, slice_of("next")), page.body);
		else
			all = json_ref(page.body);
		if (all != NULL && json_get(page.body, "next") != NULL)
			all = json_set(all, "next", json_ref(json_get(page.body, "next")));
		message_clear(&page);
		if (all == NULL)
			return err_nomem(e);
		if (json_get(all, "next") == NULL) {
			*out = json_remove(all, slice_of("type"));
			return *out == NULL ? err_nomem(e) : 0;
		}
	}
	json_unref(all);
	return -1;
}

/* ---- Ending it ---- */

/* Reads until the supervisor closes the connection, which it does last before its lock. */
static int
wait_for_end(int fd, int64_t until_ns, struct err *e)
{
	struct message m;

	while (receive(fd, until_ns, &m, e) == 0) {
		if (want(&m, MSG_OK, e) != 0)
			return -1;
		message_clear(&m);
	}
	return e->code == ERR_NOTFOUND || e->code == ERR_IO ? 0 : -1;
}

static int
wait_for_lock(const struct home *h, int64_t until_ns, struct err *e)
{
	int pause = PAUSE_FIRST_MS, fd;

	while ((fd = home_lock_take(h, e)) < 0 && e->code == ERR_BUSY && !client_is_up(h)) {
		if (left_ms(until_ns) == 0)
			return err_set(e, ERR_TIMEOUT, "the supervisor does not leave");
		pause_ms(&pause);
	}
	/* Held while one listens: the next supervisor is there already. */
	fd_close(&fd);
	return 0;
}

/* Every run has its stop; says now and again, and at least once, whose end is waited for. */
static int
wait_for_runs(const struct home *h, const struct client_stop *how, int fd, struct err *e)
{
	int64_t until = how->limit_ns >= 0 ? clock_monotonic_ns() + how->limit_ns : INT64_MAX;
	int64_t tell = in_ms(CLIENT_TELL_FIRST_MS);
	struct json *status = NULL;
	bool over, told = false;

	while (wait_for_end(fd, tell < until ? tell : until, e) != 0) {
		if (e->code != ERR_TIMEOUT)
			return -1;
		over = clock_monotonic_ns() >= until;
		if (how->waits != NULL && !(over && told) && client_status(h, CLIENT_ANSWER_MS, &status, e) == 0) {
			how->waits(status);
			json_unref(status);
		}
		if (over)
			return err_set(e, ERR_RUNNING,
			    "not every run is at its end; they are being stopped, and the supervisor leaves "
			    "after the last");
		tell = in_ms(CLIENT_TELL_MS);
		told = true;
	}
	return 0;
}

/* The lock is given back a moment before the process has gone. */
static void
wait_for_process(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	(void)poll(&p, 1, CLIENT_LIMIT_MS);
}

static int
wait_for_leaving(const struct home *h, const struct client_stop *how, int fd, struct err *e)
{
	struct proc_id id;
	pid_t pid = ipc_peer(fd);
	int pidfd = pid > 0 && proc_identify(pid, &id, NULL) == 0 ? proc_open(id, NULL) : -1, rc;

	rc = how->all ? wait_for_runs(h, how, fd, e) : wait_for_end(fd, in_ms(CLIENT_LIMIT_MS), e);
	if (rc == 0) {
		err_clear(e);
		rc = wait_for_lock(h, in_ms(CLIENT_LIMIT_MS), e);
	}
	/* It leaves, too, when it says what it could not record. */
	if ((rc == 0 || (e->code != ERR_RUNNING && e->code != ERR_TIMEOUT)) && pidfd >= 0)
		wait_for_process(pidfd);
	fd_close(&pidfd);
	return rc;
}

int
client_stop(const struct home *h, const struct client_stop *how, bool *was_up, struct err *e)
{
	struct json *body = json_set(json_object(), "all", json_bool(how->all));
	struct message answer;
	int fd = -1, rc;

	*was_up = true;
	body = json_set(body, "now", json_bool(how->now));
	if (ask(h, MSG_STOP, body, MSG_OK, &answer, &fd, e) != 0) {
		*was_up = e->code != ERR_NOTFOUND;
		return *was_up ? -1 : 0;
	}
	message_clear(&answer);
	rc = wait_for_leaving(h, how, fd, e);
	fd_close(&fd);
	return rc;
}

int
client_restart(const struct home *h, struct err *e)
{
	int64_t until = in_ms(CLIENT_LIMIT_MS);
	int pause = PAUSE_FIRST_MS, fd = -1, rc;
	struct message answer;

	if (ask(h, MSG_RESTART, json_object(), MSG_OK, &answer, &fd, e) != 0)
		return -1;
	message_clear(&answer);
	rc = wait_for_end(fd, until, e);
	fd_close(&fd);
	if (rc != 0)
		return -1;
	err_clear(e);
	while (status_once(h, NULL, NULL, e) != 0) {
		if (!is_worth_another(e))
			return -1;
		if (left_ms(until) == 0) {
			explain(h, e);
			return -1;
		}
		pause_ms(&pause);
	}
	return 0;
}
