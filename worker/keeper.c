#include "keeper.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/exits.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"
#include "keep.h"

#define SELF "/proc/self/exe"

bool
keeper_is_wanted(const struct worker *w, uint32_t i)
{
	const struct flow_op *def = &w->flow->ops[i];

	return def->kind == FLOW_INSTRUCTION || !def->how->idempotent || def->how->keeper ||
	    def->how->tty; /* somebody has to hold the other side, also without a worker */
}

/* ---- The list ---- */

static struct keeper *
keeper_new(struct attempt_run *a)
{
	struct worker *w = a->w;
	struct keeper *k = calloc(1, sizeof(*k));

	if (k == NULL)
		return NULL;
	k->w = w;
	k->a = a;
	k->fd = -1;
	k->following = w->keepers;
	if (w->keepers != NULL)
		w->keepers->previous = k;
	w->keepers = k;
	a->keeper = k;
	return k;
}

static void
keeper_free(struct keeper *k)
{
	struct worker *w = k->w;

	poller_unwatch(&w->loop, &k->source);
	fd_close(&k->fd);
	if (k->a != NULL)
		k->a->keeper = NULL;
	if (k->previous != NULL)
		k->previous->following = k->following;
	else
		w->keepers = k->following;
	if (k->following != NULL)
		k->following->previous = k->previous;
	free(k);
}

static struct keeper *
find(const struct worker *w, pid_t pid)
{
	struct keeper *k;

	for (k = w->keepers; k != NULL && k->id.pid != pid; k = k->following)
		;
	return k;
}

bool
keeper_is_one(const struct worker *w, pid_t pid)
{
	return find(w, pid) != NULL;
}

void
keeper_release(struct attempt_run *a)
{
	struct keeper *k = a->keeper;

	if (k == NULL)
		return;
	a->keeper = NULL;
	k->a = NULL;
	if (k->id.pid == 0) {
		keeper_free(k);
		return;
	}
	poller_unwatch(&k->w->loop, &k->source);
	fd_close(&k->fd);
}

void
keepers_clear(struct worker *w)
{
	while (w->keepers != NULL)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		keeper_free(w->keepers);
}

/* ---- What it is to start ---- */

static struct json *
limits_of(const struct proc_spawn *s)
{
	struct json *all = json_array(), *one;
	unsigned n;

	for (n = 0; n < s->nrlimits; n++) {
		one = json_append(json_array(), json_int(s->rlimits[n].resource));
		one = json_append(one, json_uint((uint64_t)s->rlimits[n].value.rlim_cur));
		one = json_append(one, json_uint((uint64_t)s->rlimits[n].value.rlim_max));
		all = json_append(all, one);
	}
	return all;
}

static size_t
count_texts(char *const *list)
{
	size_t n = 0;

	while (list[n] != NULL)
		n++;
	return n;
}

static int
add_numbers(const struct proc_spawn *s, bool tty, struct buf *to, struct err *e)
{
	struct json *o = json_set(json_object(), "words", json_uint(count_texts(s->argv)));

	o = json_set(o, "environment", json_uint(count_texts(s->envp)));
	o = json_set(o, "search", json_bool(s->search_path != NULL));
	if (s->set_umask)
		o = json_set(o, "umask", json_int((int64_t)s->umask));
	if (s->set_nice)
		o = json_set(o, "nice", json_int(s->nice));
	o = json_set(o, "limits", limits_of(s));
	if (tty)
		o = json_set(o, "tty", json_bool(true));
	if (o == NULL)
		return err_nomem(e);
	json_write(to, o);
	buf_putc(to, '\n');
	json_unref(o);
	return 0;
}

static void
add_text(struct buf *to, const char *text)
{
	buf_add(to, text, strlen(text) + 1);
}

static void
add_texts(struct buf *to, char *const *list)
{
	for (; *list != NULL; list++)
		add_text(to, *list);
}

/* A sealed memfd, or -1. */
static int
make_spec(const struct attempt_run *a, const struct proc_spawn *s, struct err *e)
{
	bool tty = a->w->flow->ops[a->op].how->tty;
	struct start_line line;
	char dir[ATTEMPT_DIR_TEXT];
	const char *texts[KEEP_TEXTS] = {
	    [KEEP_PATH] = s->path,
	    [KEEP_SEARCH_PATH] = s->search_path != NULL ? s->search_path : "",
	    [KEEP_CWD] = s->cwd,
	    [KEEP_DIR] = attempt_dir(a->w->flow->ops[a->op].id, a->number, dir),
	    [KEEP_LINE_BEFORE] = line.before,
	    [KEEP_LINE_BETWEEN] = START_LINE_BETWEEN,
	    [KEEP_LINE_REST] = line.rest,
	};
	struct buf text = {0};
	int fd = -1, i;

	if (start_line_make(a, &line, e) == 0 && add_numbers(s, tty, &text, e) == 0) {
		for (i = 0; i < KEEP_TEXTS; i++)
			add_text(&text, texts[i]);
		add_texts(&text, s->argv);
		add_texts(&text, s->envp);
		if (buf_ok(&text, e) == 0)
			fd = ipc_memfd("flowsup-keep", buf_view(&text), e);
	}
	buf_clear(&text);
	return fd;
}

/* ---- What it says ---- */

static void
heard_start(struct attempt_run *a, struct proc_id id)
{
	struct err e = {0};

	a->id = id;
	/* It is there until we give leave to reap it. */
	a->pidfd = proc_open(id, &e);
	if (a->pidfd < 0)
		log_line(LOG_ERROR, "ops/%s: %s", a->w->flow->ops[a->op].id, e.msg);
	spawn_started(a);
	if (a->w->stop_now)
		ending_stop(a, CLASS_CANCELLED);
}

/*
 * It has died before it told of a start. A child on its way to its program holds the channel open; so
 * at the end of the channel the start line is there, or nothing was started. False: nothing was.
 */
static bool
lost_at_start(struct keeper *k)
{
	struct attempt_run *a = k->a;
	struct proc_id id;
	struct err e = {0};
	int found = start_line_find(a, k->log_from, &id, &e);

	if (found > 0) {
		heard_start(a, id);
		return true;
	}
	keeper_release(a);
	if (found == 0)
		err_set(&e, ERR_IO, "its keeper ended before it had started it");
	spawn_failed(a, found == 0 ? CLASS_SPAWN : CLASS_CRASH, &e);
	return false;
}

/* It can be reaped, or is: its operation has become our child. */
static void
adopt(struct keeper *k)
{
	struct attempt_run *a = k->a;

	keeper_free(k);
	if (a != NULL && !a->exited)
		ending_watch_process(a);
}

/* A process that dies closes its files before it gives its children away. */
static void
lost(struct keeper *k)
{
	struct attempt_run *a = k->a;

	if (k->w->ops[a->op].state == OP_PREPARING && !lost_at_start(k))
		return;
	log_line(LOG_WARNING, "ops/%s: its keeper has died", k->w->flow->ops[a->op].id);
	if (k->id.pid == 0) {
		adopt(k);
		return;
	}
	poller_unwatch(&k->w->loop, &k->source);
	fd_close(&k->fd);
}

static void
heard(struct keeper *k, const struct keep_message *m)
{
	struct attempt_run *a = k->a;
	struct err e = m->e;

	switch (m->kind) {
	case KEEP_STARTED:
		heard_start(a, m->id);
		break;
	case KEEP_FAILED:
		keeper_release(a);
		spawn_failed(a, CLASS_SPAWN, &e);
		break;
	case KEEP_ENDED:
		poller_unwatch(&k->w->loop, &k->source);
		ending_exited(a, &m->end);
		break;
	}
}

/* False: there is nothing more to be heard from it, now or ever. */
static bool
listen_to(struct keeper *k)
{
	struct keep_message m;
	struct buf packet = {0};
	struct err e = {0};
	int rc = ipc_recv(k->fd, &packet, NULL, &e);
	bool is_message = rc > 0 && packet.len == sizeof(m);

	if (is_message) {
		memcpy(&m, packet.data, sizeof(m));
		heard(k, &m);
	} else if (rc != 0) {
		lost(k);
	}
	buf_clear(&packet);
	return is_message;
}

static void
channel_ready(void *arg, short revents)
{
	(void)revents;
	(void)listen_to(arg);
}

/* With an attempt it has died before its time. What it has said is heard first, before its operation,
 * which is now our child, can be taken for a leftover and be reaped. */
void
keeper_reaped(struct worker *w, pid_t pid)
{
	struct keeper *k = find(w, pid);

	if (k == NULL)
		return;
	/* NOLINTBEGIN(clang-analyzer-unix.Malloc): one that has a number is not freed by what it says */
	while (k->a != NULL && k->fd >= 0 && listen_to(k))
		;
	/* A child on its way to its program holds the channel open: its end is still to come. */
	if (k->a != NULL && k->fd >= 0)
		k->id.pid = 0;
	else
		adopt(k);
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
}

/* ---- Starting ---- */

static int
execute(struct keeper *k, const struct attempt_run *a, int in_fd, int err_fd, int channel, int spec,
    struct err *e)
{
	const struct worker *w = k->w;
	const int from[KEEP_FDS] = {in_fd, a->out_fd, err_fd, w->attempts_fd, w->ops_fd, channel,
	    w->lock_fd, spec};
	char program[] = "flowsup-worker", option[] = "--keep";
	char *argv[] = {program, option, NULL}, *envp[] = {NULL};
	struct proc_spawn s = PROC_SPAWN_INIT;
	struct proc_child child;
	int i;

	s.path = SELF;
	s.argv = argv;
	s.envp = envp; /* without the marks by which an operation's processes are known */
	s.cwd = "/";
	s.new_session = true;
	s.fds[s.nfds++] = (struct proc_fd){STDERR_FILENO, STDERR_FILENO};
	for (i = 0; i < KEEP_FDS; i++)
		s.fds[s.nfds++] = (struct proc_fd){from[i], KEEP_IN + i};
	if (proc_start(&s, &child, NULL, e) != 0)
		return err_wrap(e, "its keeper");
	k->id = child.id;
	fd_close(&child.pidfd); /* it is reaped like whatever comes to us */
	return 0;
}

int
keeper_start(struct attempt_run *a, const struct proc_spawn *s, int in_fd, int err_fd,
    struct err *e)
{
	struct keeper *k = keeper_new(a);
	struct stat st;
	int pair[2] = {-1, -1}, spec = -1, rc = -1;

	if (k == NULL)
		return err_nomem(e);
	k->log_from = fstat(k->w->attempts_fd, &st) == 0 ? st.st_size : 0;
	spec = make_spec(a, s, e);
	if (spec >= 0 && ipc_pair(pair, e) == 0) {
		k->fd = pair[0];
		rc = poller_watch(&k->w->loop, &k->source, k->fd, POLLIN, channel_ready, k, e);
	}
	if (rc == 0)
		rc = execute(k, a, in_fd, err_fd, pair[1], spec, e);
	fd_close(&pair[1]);
	fd_close(&spec);
	if (rc != 0)
		keeper_free(k);
	return rc;
}
