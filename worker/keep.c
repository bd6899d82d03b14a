#include "keep.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/exits.h"
#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "flowsup/ipc.h"
#include "flowsup/json.h"
#include "flowsup/log.h"
#include "keep_tty.h"
#include "start_line.h"

enum { KEEP_OK = 0, KEEP_NOT = 70, WRITE_AGAIN_MS = 1000, WRITE_TRIES = 600 };
#define SPEC_MOST ((size_t)64 << 20)

struct keep {
	struct buf spec;
	struct json *numbers;
	const char *texts[KEEP_TEXTS];
	char dir[ATTEMPT_DIR_TEXT];
	char **words, **environment; /* each NULL-terminated, into spec */
	int channel, pidfd;
	struct proc_id id;
	struct keep_tty tty;
};

/* ---- What to start ---- */

static char **
take_texts(char **at, const char *end, size_t count)
{
	char **list = calloc(count + 1, sizeof(*list));
	size_t i;

	for (i = 0; list != NULL && i < count; i++) {
		if (*at >= end) {
			free(list);
			return NULL;
		}
		list[i] = *at;
		*at += strlen(*at) + 1;
	}
	return list;
}

static size_t
number_of(const struct json *o, const char *name)
{
	uint64_t n = 0;

	return json_uint64(json_get(o, name), &n) && n < SPEC_MOST ? (size_t)n : 0;
}

static int
read_spec(struct keep *k, struct err *e)
{
	const struct json_options o = {.max_bytes = IPC_MAX_PACKET};
	char *at, *end, **fixed;

	if (ipc_memfd_read(KEEP_SPEC, SPEC_MOST, &k->spec, e) != 0)
		return -1;
	at = memchr(k->spec.data, '\n', k->spec.len);
	end = k->spec.data + k->spec.len;
	if (at == NULL || end[-1] != '\0')
		return err_set(e, ERR_INTERNAL, "a keeper was given nothing to start");
	if (json_parse((struct slice){k->spec.data, (size_t)(at - k->spec.data)}, &o, &k->numbers, NULL,
		e) != 0)
		return -1;
	at++;
	fixed = take_texts(&at, end, KEEP_TEXTS);
	if (fixed != NULL)
		memcpy(k->texts, fixed, sizeof(k->texts));
	free(fixed);
	k->words = take_texts(&at, end, number_of(k->numbers, "words"));
	k->environment = take_texts(&at, end, number_of(k->numbers, "environment"));
	return fixed != NULL && k->words != NULL && k->environment != NULL ? 0 : err_nomem(e);
}

static void
set_numbers(const struct keep *k, struct proc_spawn *s)
{
	struct json_iter it = json_iterate(json_get(k->numbers, "limits"));
	const struct json *one;
	int64_t value;
	uint64_t soft, hard;

	s->set_umask = json_int64(json_get(k->numbers, "umask"), &value);
	s->umask = s->set_umask ? (mode_t)value : 0;
	s->set_nice = json_int64(json_get(k->numbers, "nice"), &value);
	s->nice = s->set_nice ? (int)value : 0;
	while (json_next(&it, NULL, &one) && s->nrlimits < PROC_MAX_RLIMITS) {
		if (!json_int64(json_at(one, 0), &value) || !json_uint64(json_at(one, 1), &soft) ||
		    !json_uint64(json_at(one, 2), &hard))
			continue;
		s->rlimits[s->nrlimits].resource = (int)value;
		s->rlimits[s->nrlimits].value.rlim_cur = (rlim_t)soft;
		s->rlimits[s->nrlimits++].value.rlim_max = (rlim_t)hard;
	}
}

/* One terminal for both: *slave is ours to close once it is handed on, -1 when there is none. */
static int
set_output(struct keep *k, struct proc_spawn *s, int *slave, struct err *e)
{
	int out = KEEP_OUT, err = KEEP_ERR;

	*slave = -1;
	if (json_is_true(json_get(k->numbers, "tty"))) {
		if (keep_tty_open(&k->tty, KEEP_OUT, slave, e) != 0)
			return -1;
		out = err = *slave;
	}
	s->fds[0] = (struct proc_fd){KEEP_IN, STDIN_FILENO};
	s->fds[1] = (struct proc_fd){out, STDOUT_FILENO};
	s->fds[2] = (struct proc_fd){err, STDERR_FILENO};
	s->nfds = 3;
	return 0;
}

static int
start(struct keep *k, struct err *e)
{
	struct proc_spawn s = PROC_SPAWN_INIT;
	char rest[ATTEMPT_MAX_LINE];
	struct proc_child child;
	struct proc_id me;
	int slave = -1, rc;

	if (proc_identify(getpid(), &me, e) != 0)
		return -1;
	snprintf(rest, sizeof(rest), ",\"reaper\":%d,\"reaper_start\":%llu%s", (int)me.pid,
	    (unsigned long long)me.start_ticks, k->texts[KEEP_LINE_REST]);
	set_numbers(k, &s);
	s.path = k->texts[KEEP_PATH];
	s.search_path = json_is_true(json_get(k->numbers, "search")) ? k->texts[KEEP_SEARCH_PATH] : NULL;
	s.argv = k->words;
	s.envp = k->environment;
	s.cwd = k->texts[KEEP_CWD];
	s.new_session = true;
	s.log_fd = KEEP_LOG;
	s.log_before = slice_of(k->texts[KEEP_LINE_BEFORE]);
	s.log_between = slice_of(k->texts[KEEP_LINE_BETWEEN]);
	s.log_after = slice_of(rest);
	rc = set_output(k, &s, &slave, e);
	if (rc == 0)
		rc = proc_start(&s, &child, NULL, e);
	fd_close(&slave);
	if (rc != 0)
		return -1;
	k->id = child.id;
	k->pidfd = child.pidfd;
	return 0;
}

/* ---- Until it has ended ---- */

static void
tell(struct keep *k, const struct keep_message *m)
{
	struct err e = {0};

	if (k->channel >= 0 &&
	    ipc_send(k->channel, (struct slice){(const char *)m, sizeof(*m)}, -1, &e) < 0)
		fd_close(&k->channel);
}

/* Waits for the process, or (pidfd -1) for the worker's leave; a worker that dies is noticed. */
static void
wait_for(struct keep *k, int pidfd, int timeout_ms)
{
	struct pollfd fds[3] = {{.fd = pidfd, .events = POLLIN}, {.fd = k->channel, .events = POLLIN},
	    {.fd = keep_tty_wants_more(&k->tty) ? k->tty.master : -1, .events = POLLIN}};

	if (k->tty.held.len > 0 && timeout_ms < 0)
		timeout_ms = WRITE_AGAIN_MS;
	if (poll(fds, 3, timeout_ms) < 0)
		return;
	if (k->tty.master >= 0 && !keep_tty_copy(&k->tty))
		fd_close(&k->tty.master);
	/* The worker never writes: this is its end of the channel, closed. */
	if (fds[1].revents != 0)
		fd_close(&k->channel);
}

static int
await_end(struct keep *k, struct proc_end *end, struct err *e)
{
	int rc;

	while ((rc = proc_wait(k->pidfd, true, end, e)) == 0)
		wait_for(k, k->pidfd, -1);
	return rc < 0 ? -1 : 0;
}

/* Without room it is tried again as long as nobody else knows how it ended: but for a run that was removed. */
static void
write_exit(struct keep *k, const struct proc_end *end)
{
	struct exit_record r = {.id = k->id, .end = *end, .by = "keeper"};
	struct err e = {0};
	unsigned n;

	r.time = (double)clock_wall_ns() / (double)NS_PER_S;
	for (n = 0; e.sys != ENOENT; n++) {
		e = (struct err){0};
		if (exit_record_write(KEEP_OPS, k->dir, &r, &e) == 0)
			return;
		if (n == 0)
			log_line(LOG_ERROR, "ops/%s: its end is not kept yet: %s", k->dir, e.msg);
		if (k->channel >= 0)
			wait_for(k, -1, -1); /* the worker has it, and either saves it or dies */
		else
			wait_for(k, -1, WRITE_AGAIN_MS);
	}
}

/* What it has printed is in the file before its end is told: then it is read. */
static void
drain(struct keep *k)
{
	unsigned n;

	for (n = 0; n < WRITE_TRIES && k->tty.master >= 0 && !keep_tty_drain(&k->tty); n++)
		wait_for(k, -1, WRITE_AGAIN_MS);
}

/* What was started is only known by its directory from here on: the environment may hold secrets, and
 * this process may live for days. */
static void
forget_spec(struct keep *k)
{
	snprintf(k->dir, sizeof(k->dir), "%s", k->texts[KEEP_DIR]);
	explicit_bzero(k->spec.data, k->spec.len);
	buf_clear(&k->spec);
	json_unref(k->numbers);
	free(k->words);
	free(k->environment);
	k->numbers = NULL;
	k->words = k->environment = NULL;
	memset(k->texts, 0, sizeof(k->texts));
}

static int
keep(struct keep *k, struct err *e)
{
	struct keep_message m = {.kind = KEEP_STARTED, .id = k->id};
	int fd;

	tell(k, &m);
	for (fd = KEEP_IN; fd <= KEEP_LOG; fd++)
		close(fd);
	close(KEEP_LOCK);
	close(KEEP_SPEC);
	forget_spec(k);
	if (await_end(k, &m.end, e) != 0)
		return -1;
	drain(k);
	m.kind = KEEP_ENDED;
	tell(k, &m); /* first: a live worker does not wait for the disk */
	write_exit(k, &m.end);
	while (k->channel >= 0)
		wait_for(k, -1, -1);
	return proc_wait(k->pidfd, false, &m.end, e) < 0 ? -1 : 0;
}

static int
run(struct keep *k, struct err *e)
{
	struct keep_message m = {.kind = KEEP_FAILED};

	if (read_spec(k, e) == 0 && start(k, e) == 0)
		return keep(k, e);
	m.e = *e;
	tell(k, &m);
	return k->channel >= 0 ? 0 : -1; /* the worker says it better */
}

/* Who ends everything of a session or a service by SIGTERM does not mean the witness of its end. */
int
keep_main(void)
{
	struct keep k = {.channel = KEEP_CHANNEL, .pidfd = -1, .tty = {.master = -1, .file = -1}};
	struct err e = {0};
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "flowsup-keep", 0, 0, 0);
	if (run(&k, &e) == 0)
		return KEEP_OK;
	log_line(LOG_ERROR, "keeper: %s", e.msg); /* NOLINT(clang-analyzer-unix.Malloc): the process ends */
	return KEEP_NOT;
}
