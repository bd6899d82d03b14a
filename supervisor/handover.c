/*
 * `restart`: this process executes the program anew. Its children stay its children, and lock,
 * socket and connections to workers stay open; a memfd says which descriptor is what:
 *
 *	{"lock":N,"listener":N,"booted":BOOL,"workers":{RUN:{"pid":N,"start":N,"process":N,
 *	    "channel":N,"heartbeat":N,"ended":BOOL,"done":N,"total":N}},
 *	    "kept":[{"run":RUN,"resumed":BOOL,"until_ns":N,"operations":[start lines]}],
 *	    "strays":[{"pid":N,"start":N,"of":{RUN:true},"others":BOOL,"known":BOOL,"written":BOOL}],
 *	    "secrets":{RUN:{"values":N}},
 *	    "errands":[{"kind":N,"run":RUN,"event":TEXT,"pid":N,"start":N,"process":N,"said":N,"until":N}]}
 *
 * -1 stands for what there is none of. Everything else is closed by exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autostart.h"
#include "daemon.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"

#define HANDOVER_BYTES ((size_t)64 << 20)

/* ---- Giving ---- */

/* What was not let go leaves as this program does, and its run still waits. */
static bool
is_let_go(const struct worker *w)
{
	return w->gate < 0 && !w->withdrawn;
}

static struct json *
worker_handed(const struct worker *w)
{
	struct json *o = json_set(json_object(), "pid", json_int(w->id.pid));

	o = json_set(o, "start", json_uint(w->id.start_ticks));
	o = json_set(o, "process", json_int(w->process.fd));
	o = json_set(o, "channel", json_int(w->channel.fd));
	o = json_set(o, "heartbeat", json_int(w->heartbeat));
	o = json_set(o, "ready", json_bool(w->state == WORKER_READY));
	o = json_set(o, "ended", json_bool(w->ended));
	if (w->watchdog_ns > 0)
		o = json_set(o, "watchdog_ns", json_int(w->watchdog_ns));
	o = json_set(o, "done", json_int(w->done));
	return json_set(o, "total", json_int(w->total));
}

static struct json *
errand_handed(const struct errand *a)
{
	struct json *o = json_set(json_object(), "kind", json_int((int64_t)a->kind));

	o = json_set(o, "run", json_cstr(a->run_id));
	if (a->event != NULL)
		o = json_set(o, "event", json_cstr(a->event));
	o = json_set(o, "pid", json_int(a->id.pid));
	o = json_set(o, "start", json_uint(a->id.start_ticks));
	o = json_set(o, "process", json_int(a->process.fd));
	o = json_set(o, "said", json_int(a->said));
	return json_set(o, "until", json_int(a->until_ns));
}

static struct json *
errands_handed(struct daemon *d)
{
	struct json *all = json_array();
	struct errand *a;

	TAILQ_FOREACH(a, &d->errands.list, entry)
	{
		all = json_append(all, errand_handed(a));
	}
	return all;
}

static struct json *
secrets_handed(struct daemon *d)
{
	struct json *all = json_object();
	struct secret *s;

	TAILQ_FOREACH(s, &d->secrets.list, entry)
	{
		all = json_set(all, s->run_id, json_set(json_object(), "values", json_int(s->fd)));
	}
	return all;
}

static struct json *
everything(struct daemon *d)
{
	struct json *workers = json_object(), *o = json_object();
	struct worker *w;

	for (w = worker_after(d, ""); w != NULL; w = worker_after(d, w->run_id))
		if (is_let_go(w))
			workers = json_set(workers, w->run_id, worker_handed(w));
	o = json_set(o, "lock", json_int(d->lock_fd));
	o = json_set(o, "listener", json_int(d->listener.fd));
	o = json_set(o, "booted", json_bool(d->booted));
	o = json_set(o, "activated", json_bool(d->activated));
	o = json_set(o, "ends", kept_ends_handed(d));
	o = json_set(o, "kept", kept_handed(d));
	o = json_set(o, "strays", astrays_handed(d));
	o = json_set(o, "errands", errands_handed(d));
	o = json_set(o, "secrets", secrets_handed(d));
	return json_set(o, "workers", workers);
}

static int
keep_open(int fd, bool open)
{
	return fd < 0 ? 0 : fcntl(fd, F_SETFD, open ? 0 : FD_CLOEXEC);
}

static int
keep_all_open(struct daemon *d, bool open)
{
	int rc = keep_open(d->lock_fd, open) | keep_open(d->listener.fd, open);
	struct errand *a;
	struct secret *s;
	struct worker *w;

	TAILQ_FOREACH(s, &d->secrets.list, entry)
	{
		rc |= keep_open(s->fd, open);
	}
	TAILQ_FOREACH(a, &d->errands.list, entry)
	{
		rc |= keep_open(a->process.fd, open) | keep_open(a->said, open);
	}

	for (w = worker_after(d, ""); w != NULL; w = worker_after(d, w->run_id))
		rc |= !is_let_go(w) ? 0 : keep_open(w->process.fd, open) | keep_open(w->channel.fd, open) |
		    keep_open(w->heartbeat, open);
	return rc;
}

static int
describe(struct daemon *d, struct err *e)
{
	struct json *all = everything(d);
	struct buf text = {0};
	int fd = -1;

	if (all == NULL) {
		err_nomem(e);
		return -1;
	}
	json_write(&text, all);
	if (buf_ok(&text, e) == 0)
		fd = ipc_memfd("flowsup-handover", buf_view(&text), e);
	json_unref(all);
	buf_clear(&text);
	return fd;
}

static void
execute(struct daemon *d, int fd, struct err *e)
{
	struct autostart_words words;
	char *argv[AUTOSTART_WORDS];
	struct buf program = {0};
	sigset_t none, before;
	char **envp;

	if (proc_relative_to_self("flowsup", &program, e) != 0)
		return;
	/* What the service manager told this process stays told. */
	envp = autostart_environment(&d->home, true, e);
	if (envp == NULL) {
		buf_clear(&program);
		return;
	}
	autostart_arguments(&words, d->home.path, d->options.foreground, d->options.idle_exit_ns, -1,
	    fd);
	memcpy(argv, words.argv, sizeof(argv));
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, &before);
	if (keep_all_open(d, true) != 0 || keep_open(fd, true) != 0)
		err_sys(e, ERR_IO, errno, "fcntl");
	else {
		log_line(LOG_INFO, "executes itself anew");
		execve(buf_text(&program), argv, envp);
		err_sys(e, ERR_ENVIRONMENT, errno, "execute '%s'", buf_text(&program));
	}
	keep_all_open(d, false);
	sigprocmask(SIG_SETMASK, &before, NULL);
	autostart_environment_free(envp);
	buf_clear(&program);
}

int
handover_execute(struct daemon *d, struct err *e)
{
	struct err again = {0};
	int fd;

	/* The listening socket may be unwatched just now, but it is open. */
	fd = describe(d, e);
	if (fd < 0)
		return -1;
	/* SQLite's locks end with its descriptors; its file is closed in order. */
	store_close(d->store);
	d->store = NULL;
	execute(d, fd, e);
	fd_close(&fd);
	if (daemon_open_store(d, &again) != 0)
		daemon_leave(d, "the database cannot be opened again");
	return -1;
}

/* ---- Taking ---- */

/* A descriptor that is open, now close-on-exec; -1 when there is none. */
static int
take_fd(const struct json *o, const char *name)
{
	int64_t fd = -1;

	if (!json_int64(json_get(o, name), &fd) || fd < 3 || fd > INT32_MAX)
		return -1;
	return fcntl((int)fd, F_SETFD, FD_CLOEXEC) == 0 ? (int)fd : -1;
}

static void
take_process(struct worker *w, const struct json *o)
{
	struct err e = {0};
	struct proc_id id = {0};
	int64_t pid = 0;
	int fd = take_fd(o, "process");

	(void)json_int64(json_get(o, "pid"), &pid);
	(void)json_uint64(json_get(o, "start"), &id.start_ticks);
	id.pid = (pid_t)pid;
	if (fd >= 0 && pid > 0 && worker_set_process(w, id, fd, &e) != 0)
		log_line(LOG_ERROR, "run %s: %s", w->run_id, e.msg);
}

static void
take_worker(struct daemon *d, const char *run_id, const struct json *o)
{
	struct err e = {0};
	struct worker *w = run_id_is_valid(run_id) ? worker_new(d, run_id, &e) : NULL;
	int channel = take_fd(o, "channel");

	if (w == NULL) {
		log_line(LOG_ERROR, "a worker that was handed over is not known: %s", e.msg);
		fd_close(&channel);
		return;
	}
	w->heartbeat = take_fd(o, "heartbeat");
	w->ended = json_is_true(json_get(o, "ended"));
	watchdog_set(w, o);
	(void)json_int64(json_get(o, "done"), &w->done);
	(void)json_int64(json_get(o, "total"), &w->total);
	w->state = json_is_true(json_get(o, "ready")) ? WORKER_READY : WORKER_STARTING;
	take_process(w, o);
	if (channel < 0 || worker_set_channel(w, channel, &e) != 0)
		adopt_lost(d, w);
	else if (w->id.pid == 0)
		w->state = WORKER_GREETED; /* it was asked who it is, and answers to us now */
}

static void
take_workers(struct daemon *d, const struct json *workers)
{
	struct json_iter it = json_iterate(workers);
	const struct json *value;
	struct slice name;

	while (json_next(&it, &name, &value)) {
		const char *run_id = json_cstr_of(json_iter_name(&it));

		if (run_id != NULL)
			take_worker(d, run_id, value);
	}
}

static void
take_errand(struct daemon *d, const struct json *o)
{
	struct errand a = {.process = SOURCE_INIT, .said = take_fd(o, "said")};
	const char *run_id = json_cstr_of(json_get(o, "run"));
	int64_t kind = -1, pid = 0;
	struct err e = {0};

	(void)json_int64(json_get(o, "kind"), &kind);
	(void)json_int64(json_get(o, "pid"), &pid);
	(void)json_uint64(json_get(o, "start"), &a.id.start_ticks);
	(void)json_int64(json_get(o, "until"), &a.until_ns);
	a.process.fd = take_fd(o, "process");
	if (run_id == NULL || kind < 0 || kind >= ERRAND_KINDS || pid <= 0) {
		fd_close(&a.process.fd);
		fd_close(&a.said);
		return;
	}
	strlcpy(a.run_id, run_id, sizeof(a.run_id));
	a.kind = (enum errand_kind)kind;
	a.id.pid = (pid_t)pid;
	a.event = strdup(json_get(o, "event") != NULL ? json_text(json_get(o, "event")).data : "");
	if (errand_take(d, &a, &e) != 0)
		log_line(LOG_ERROR, "run %s: %s", a.run_id, e.msg);
	free(a.event);
}

static void
take_secrets(struct daemon *d, const struct json *secrets)
{
	struct json_iter it = json_iterate(secrets);
	const struct json *value;
	struct err e = {0};
	const char *run_id;
	int fd;

	while (json_next(&it, NULL, &value)) {
		run_id = json_cstr_of(json_iter_name(&it));
		fd = take_fd(value, "values");
		if (fd >= 0 && run_id != NULL && secrets_put(d, run_id, fd, &e) != 0)
			log_line(LOG_ERROR, "run %s: its withheld values: %s", run_id, e.msg);
	}
}

static void
take_errands(struct daemon *d, const struct json *errands)
{
	struct json_iter it = json_iterate(errands);
	const struct json *one;

	while (json_next(&it, NULL, &one))
		take_errand(d, one);
}

/*
 * What else was given is not known, and the lock is among it: exec closes all of it. Workers are
 * adopted as after a crash of the supervisor. Returns only when that fails too.
 */
static void
begin_with_nothing(struct daemon *d)
{
	struct autostart_words words;
	char *argv[AUTOSTART_WORDS];
	struct buf program = {0};
	struct err e = {0};
	sigset_t none;

	log_line(LOG_ERROR, "what was handed over is not understood; begins without");
	autostart_arguments(&words, d->home.path, d->options.foreground, d->options.idle_exit_ns, -1,
	    -1);
	memcpy(argv, words.argv, sizeof(argv));
	sigemptyset(&none);
	if (proc_relative_to_self("flowsup", &program, &e) == 0 &&
	    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0 &&
	    sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		execve(buf_text(&program), argv, d->envp);
	buf_clear(&program);
}

int
handover_take(struct daemon *d, int fd, int *listener, struct err *e)
{
	const struct json_options options = {.max_bytes = HANDOVER_BYTES};
	struct json *all = NULL;
	struct buf text = {0};
	int rc = ipc_memfd_read(fd, HANDOVER_BYTES, &text, e);

	if (rc == 0)
		rc = json_parse(buf_view(&text), &options, &all, NULL, e);
	fd_close(&fd);
	buf_clear(&text);
	if (rc != 0) {
		begin_with_nothing(d);
		return -1;
	}
	d->lock_fd = take_fd(all, "lock");
	*listener = take_fd(all, "listener");
	d->booted = json_is_true(json_get(all, "booted"));
	d->activated = json_is_true(json_get(all, "activated"));
	if (d->lock_fd >= 0) {
		take_workers(d, json_get(all, "workers"));
		kept_take_ends(d, json_get(all, "ends"));
		kept_take(d, json_get(all, "kept"));
		astrays_take(d, json_get(all, "strays"));
		take_errands(d, json_get(all, "errands"));
		take_secrets(d, json_get(all, "secrets"));
	} else
		fd_close(listener);
	json_unref(all);
	return 0;
}
