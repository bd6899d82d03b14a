#include "leftover.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flowsup/fs.h"
#include "seek.h"

enum { ENVIRON_MOST = 256 << 10, COMMAND_MOST = 64 << 10 };

struct leftovers {
	const struct home *home;
	struct json *found; /* {run: {operation: true}}; NULL: not looked for yet */
};

struct leftovers *
leftovers_new(const struct home *h)
{
	struct leftovers *l = calloc(1, sizeof(*l));

	if (l != NULL)
		l->home = h;
	return l;
}

void
leftovers_free(struct leftovers *l)
{
	if (l == NULL)
		return;
	json_unref(l->found);
	free(l);
}

/* ---- Finding ---- */

struct finding {
	struct json *found;
	struct buf environment;
};

static const char *
value_of(const struct buf *environment, const char *name)
{
	size_t len = strlen(name), at;

	for (at = 0; at < environment->len; at += strlen(environment->data + at) + 1)
		if (strncmp(environment->data + at, name, len) == 0)
			return environment->data + at + len;
	return NULL;
}

/* Of one that ends meanwhile nothing is read: it has left nothing. */
static bool
read_environment(pid_t pid, struct buf *to)
{
	char path[32];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	buf_reset(to);
	rc = fs_read_all(&fs_real, "proc.environ", fd, ENVIRON_MOST, to, NULL);
	fd_close(&fd);
	buf_putc(to, '\0'); /* the last entry may lack it */
	return rc == 0 && !to->failed;
}

/* A proc_each. */
static int
note(void *arg, const struct proc_stat *st, int pidfd)
{
	struct finding *f = arg;
	const char *run, *op;
	struct json *ops;

	(void)pidfd;
	if (own_is_apart(st->pid) || !read_environment(st->pid, &f->environment))
		return 0;
	run = value_of(&f->environment, "FLOWSUP_RUN_ID=");
	op = value_of(&f->environment, "FLOWSUP_OP_ID=");
	if (run == NULL || op == NULL)
		return 0;
	ops = json_get(f->found, run) != NULL ? json_ref(json_get(f->found, run)) : json_object();
	f->found = json_set(f->found, run, json_set(ops, op, json_bool(true)));
	return f->found == NULL;
}

static int
look(struct leftovers *l, struct err *e)
{
	struct finding f = {.found = json_object()};
	struct buf home = {0};
	const char *marks[] = {NULL, "FLOWSUP_RUN_ID=", "FLOWSUP_OP_ID="};
	int rc;

	buf_printf(&home, "FLOWSUP_HOME=%s", l->home->path);
	rc = buf_ok(&home, e);
	marks[0] = buf_text(&home);
	if (rc == 0 && proc_each_marked(marks, 3, note, &f, e) < 0)
		rc = -1;
	if (rc == 0 && f.found == NULL)
		rc = err_nomem(e);
	buf_clear(&f.environment);
	buf_clear(&home);
	if (rc == 0)
		l->found = f.found;
	else
		json_unref(f.found);
	return rc;
}

/* ---- Of one session ---- */

struct visiting {
	leftover_visit *visit;
	void *arg;
	struct buf environment;
};

/* A proc_each. */
static int
visit_one(void *arg, const struct proc_stat *st, int pidfd)
{
	struct visiting *v = arg;
	const char *op;

	(void)pidfd;
	if (own_is_apart(st->pid) || !read_environment(st->pid, &v->environment))
		return 0;
	op = value_of(&v->environment, "FLOWSUP_OP_ID=");
	return op != NULL && v->visit(v->arg, op, st->pid);
}

int
leftover_each(const char *session_id, leftover_visit *visit, void *arg, struct err *e)
{
	struct visiting v = {.visit = visit, .arg = arg};
	char mark[sizeof("FLOWSUP_SESSION_ID=") + UUID_TEXT];
	const char *marks[] = {mark, "FLOWSUP_OP_ID="};
	int rc;

	snprintf(mark, sizeof(mark), "FLOWSUP_SESSION_ID=%s", session_id);
	rc = proc_each_marked(marks, 2, visit_one, &v, e);
	buf_clear(&v.environment);
	return rc < 0 ? -1 : 0;
}

/* ---- What comes to the supervisor ---- */

bool
leftover_run_of(pid_t pid, char run_id[RUN_ID_TEXT])
{
	struct buf environment = {0};
	const char *run = NULL;

	if (read_environment(pid, &environment) && value_of(&environment, "FLOWSUP_OP_ID=") != NULL)
		run = value_of(&environment, "FLOWSUP_RUN_ID=");
	if (run != NULL && run_id_is_valid(run))
		strlcpy(run_id, run, RUN_ID_TEXT);
	else
		run = NULL;
	buf_clear(&environment);
	return run != NULL;
}

bool
leftover_is_ours(pid_t pid)
{
	char words[COMMAND_MOST];
	const char *slash;

	if (proc_command(pid, words, sizeof(words)) <= 0)
		return false;
	slash = strrchr(words, '/');
	slash = slash != NULL ? slash + 1 : words;
	return strcmp(slash, "flowsup") == 0 || strcmp(slash, "flowsup-worker") == 0;
}

/* ---- Of one run ---- */

static bool
is_open(const struct attempts *a, const char *op)
{
	size_t i;

	for (i = 0; i < a->nopen; i++)
		if (strcmp(a->open[i].op, op) == 0)
			return true;
	return false;
}

/* As when they are ended: it is an operation with an outcome that may leave something. */
static bool
may_leave(const struct flow *f, const struct attempts *a, const char *op)
{
	size_t i = f != NULL ? flow_find(f, op) : SIZE_MAX;

	return i != SIZE_MAX && f->ops[i].how->leave && !is_open(a, op);
}

static int
count_own(const struct json *ops, int run_fd, const struct attempts *a)
{
	struct json_iter it = json_iterate(ops);
	struct flow *flow = NULL;
	char op[FLOW_MAX_ID + 1];
	const struct json *one;
	struct slice name;
	int n = 0;

	if (json_length(ops) == 0)
		return 0;
	if (run_fd < 0 || seek_flow(run_fd, &flow, NULL) != 0)
		flow = NULL;
	while (json_next(&it, &name, &one)) {
		snprintf(op, sizeof(op), "%.*s", (int)name.len, name.data);
		n += !may_leave(flow, a, op);
	}
	flow_free(flow);
	return n;
}

unsigned
leftover_strays(const struct attempts *a)
{
	unsigned n = 0;
	size_t i;

	if (a->nstrays == 0 || attempts_any_leaves(a))
		return 0;
	for (i = 0; i < a->nstrays; i++)
		n += attempts_stray_lives(a, i);
	return n;
}

int
leftovers_count(struct leftovers *l, const char *run_id, int run_fd, const struct attempts *a, struct err *e)
{
	size_t i;
	int n;

	if (l->found == NULL && look(l, e) != 0)
		return -1;
	n = count_own(json_get(l->found, run_id), run_fd, a) + (int)leftover_strays(a);
	/* What it has taken over bears the marks of the run that started it. */
	for (i = 0; i < a->nopen; i++)
		n += a->open[i].run != NULL &&
		    json_get(json_get(l->found, a->open[i].run), a->open[i].op) != NULL;
	return n;
}

/* ---- The end ---- */

int
leftover_end(const struct home *h, const struct session *s, int run_fd, const struct leftover_kin *kin,
    struct endops_result *out, struct err *e)
{
	struct attempts a = {0};
	struct flow *flow = NULL;
	struct endops_request q = {.home = h,
	    .run_id = s->run_id,
	    .session_id = s->session_id,
	    .attempts = &a,
	    .grace_most_ns = -1,
	    .class = "cancelled"};
	int rc = 0;

	if (kin == NULL)
		leftover_have_looked(h);
	if (kin != NULL) {
		q.below = kin->worker;
		q.also = kin->seen;
		q.nalso = kin->nseen;
	}
	/* Only to know what an operation may leave; a document that cannot be read allows nothing. */
	if (run_fd >= 0 && seek_flow(run_fd, &flow, NULL) == 0)
		q.flow = flow;
	if (run_fd >= 0)
		rc = attempts_read(run_fd, &a, e);
	if (rc == 0)
		rc = endops_run(&q, out, e);
	attempts_clear(&a);
	flow_free(flow);
	return rc;
}

int
leftover_check(const struct session *s, const struct endops_result *r, struct err *e)
{
	struct buf text = {0};

	if (r->elsewhere)
		return err_set(e, ERR_REFUSED, "run %s belongs to another host or pid namespace",
		    s->run_id);
	if (json_length(r->left) == 0)
		return 0;
	endops_tell_left(r, &text);
	err_set(e, ERR_TIMEOUT, "run %s: not everything could be ended: %s", s->run_id,
	    buf_text(&text));
	buf_clear(&text);
	return -1;
}

int
leftover_end_all(const struct home *h, const struct session *s, int run_fd, struct err *e)
{
	struct endops_result r = {0};
	int rc;

	if (s->status == STATUS_QUEUED && s->resumed_from_run[0] == '\0')
		return 0;
	rc = leftover_end(h, s, run_fd, NULL, &r, e);
	if (rc == 0)
		rc = leftover_check(s, &r, e);
	endops_clear(&r);
	return rc;
}
