/* An agent's output: looked at while it runs, judged when it has ended. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"

enum { READ_PIECE = 256 << 10 };

/* Its output is its answer, byte for byte. */
static bool
is_raw(const struct agent *g)
{
	return g->p->format == PROVIDER_TEXT && g->p->keep_ansi;
}

/* ---- On the io thread ---- */

static int
write_answer(void *arg, struct slice text, struct err *e)
{
	struct agent *g = arg;

	return fs_write_all(&fs_real, "agent.answer", g->answer_fd, text, e);
}

static int
open_answer(struct agent *g, struct err *e)
{
	char name[OP_FILE_TEXT + sizeof(AGENT_ANSWER) + 1];

	if (g->answer_fd >= 0)
		return 0;
	snprintf(name, sizeof(name), "%s/" AGENT_ANSWER, g->dir);
	g->answer_fd = openat(g->w->ops_fd, name,
	    O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return g->answer_fd >= 0 ? 0 : err_sys(e, ERR_IO, errno, "cannot create ops/%s", name);
}

int
agent_read(struct agent *g, int out_fd, bool last, struct outcome_patience *patience, struct err *e)
{
	uint64_t stop = g->read_to + AGENT_LOOK_BYTES;
	char *piece = malloc(READ_PIECE);
	ssize_t n = 0;
	int rc = piece == NULL ? err_nomem(e) : is_raw(g) ? 0 : open_answer(g, e);

	/* Of a raw answer only the beginning matters here: whether there is one. */
	while (rc == 0 && ((last && !is_raw(g)) || g->read_to < stop)) {
		if (patience != NULL && outcome_is_enough(patience)) {
			rc = err_set(e, ERR_INTERRUPTED, "interrupted");
			break;
		}
		n = pread(out_fd, piece, READ_PIECE, (off_t)g->read_to);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		g->read_to += (uint64_t)n;
		rc = provider_reading_feed(g->reading, (struct slice){piece, (size_t)n}, e);
	}
	if (rc == 0 && n < 0)
		rc = err_sys(e, ERR_IO, errno, "cannot read the output");
	free(piece);
	return rc;
}

/* The end of a file below ops/, as far as messages look at it; a file that is not there is empty. */
static void
read_tail(int dir, const char *name, size_t most, struct buf *to)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	char *at;
	ssize_t n;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		most = (size_t)st.st_size < most ? (size_t)st.st_size : most;
		at = buf_reserve(to, most + 1);
		n = at == NULL ? 0
			       : pread(fd, at, most,
				     (size_t)st.st_size > most ? st.st_size - (off_t)most : 0);
		to->len += n > 0 ? (size_t)n : 0;
	}
	fd_close(&fd);
}

static enum op_class
class_named(const char *word)
{
	unsigned c;

	for (c = 0; c < OP_CLASS_COUNT; c++)
		if (strcmp(op_class_word((enum op_class)c), word) == 0)
			return (enum op_class)c;
	return CLASS_AGENT_ERROR;
}

static struct json *
add_text(struct json *o, const char *name, const char *text)
{
	return text == NULL || text[0] == '\0'
	    ? o : json_set(o, name, json_string_lossy(slice_of(text), NULL));
}

static const char *
id_of(const struct agent *g, const struct provider_result *r)
{
	if (r->id != NULL)
		return r->id;
	if (provider_argv_has(g->p->starts[g->start], PLACE_SID))
		return g->sid;
	return g->start == PROVIDER_RESUME ? g->old : NULL;
}

/* NULL when there is nothing to continue. */
static struct json *
conversation(const struct agent *g, const struct provider_result *r)
{
	const char *id = id_of(g, r);
	struct json *o;

	if ((id == NULL && g->store == NULL) ||
	    (g->p->starts[PROVIDER_RESUME] == NULL && g->p->starts[PROVIDER_FORK] == NULL))
		return NULL;
	o = json_set(json_object(), "provider", json_cstr(g->p->name));
	o = add_text(o, "version", g->version);
	o = add_text(o, "id", id);
	o = add_text(o, "home", g->home);
	o = add_text(o, "cwd", g->cwd);
	o = add_text(o, "store", g->store);
	o = add_text(o, "chat", g->kept);
	return r->acknowledged ? o : json_set(o, "tentative", json_bool(true));
}

/* Without a copy the agent's own file is looked for when the conversation is continued. */
static void
keep_chat(struct agent *g, const struct io_context *c, const struct provider_result *r)
{
	struct err e = {0};

	if (g->p->keeps_chat && r->acknowledged && id_of(g, r) != NULL)
		agent_keep_chat(g, c->ops_fd, id_of(g, r), &e);
}

/* Unless it had said all by then, a limit that has passed has decided already, and so has a stop. */
static bool
is_decided(const struct agent *g, const struct outcome_input *in, const struct outcome *o)
{
	if (o->class == CLASS_TIMEOUT || o->class == CLASS_SILENCE)
		return !g->hung;
	return o->class == CLASS_CANCELLED || (!g->hung && outcome_used_up_cpu(&in->end, in->op->how));
}

static void
take_verdict(struct outcome *o, const struct provider_result *r)
{
	if (r->class == NULL) {
		free(o->message);
		o->message = NULL;
		o->class = CLASS_NONE;
		return;
	}
	if (r->class[0] != '\0')
		o->class = class_named(r->class);
	free(o->message);
	o->message = strdup(r->message);
}

/* From here on the answer is what was said, not the records around it. */
static int
lead_to_answer(struct agent *g, const struct provider_result *r, struct outcome_input *in,
    struct outcome *o, struct err *e)
{
	struct stat st;

	if (is_raw(g))
		return 0;
	o->lossy = r->lossy;
	if (open_answer(g, e) != 0)
		return -1;
	if (r->has_answer && write_answer(g, buf_view(&r->answer), e) != 0)
		return -1;
	if (fstat(g->answer_fd, &st) != 0)
		return err_sys(e, ERR_IO, errno, "cannot look at the answer");
	in->out_fd = g->answer_fd;
	in->size = (uint64_t)st.st_size;
	snprintf(in->file, sizeof(in->file), RUN_OPS "/%s/" AGENT_ANSWER, g->dir);
	return 0;
}

static int
judge(struct agent *g, struct outcome_input *in, struct outcome *o, const struct io_context *c,
    struct err *e)
{
	struct buf errors = {0}, out = {0};
	struct provider_end end = {.known = in->end.known, .signaled = in->end.signaled,
	    .code = in->end.code, .dumped = in->end.dumped};
	struct provider_result r = {0};
	char name[OP_FILE_TEXT + sizeof(AGENT_LAST) + 1];
	int rc;

	snprintf(name, sizeof(name), "%s.err", g->dir);
	read_tail(c->ops_fd, name, PROVIDER_MAX_ERROR, &errors);
	snprintf(name, sizeof(name), "%s/" AGENT_LAST, g->dir);
	if (g->p->writes_out)
		read_tail(c->ops_fd, name, PROVIDER_MAX_ANSWER, &out);
	end.errors = buf_view(&errors);
	end.out = buf_view(&out);
	rc = g->trouble.code != ERR_NONE ? -1 : agent_read(g, in->out_fd, true, in->patience, e);
	if (rc != 0 && g->trouble.code != ERR_NONE)
		*e = g->trouble;
	/* Of one whose end nobody knows a complete final record tells enough. */
	if (rc == 0 && !end.known && !provider_reading_ended(g->reading))
		goto out;
	if (rc == 0)
		g->hung |= g->whole_by_limit && provider_reading_ended(g->reading);
	end.hung = g->hung || !end.known;
	if (rc == 0)
		rc = provider_reading_finish(g->reading, &end, &r, e);
	if (rc == 0) {
		keep_chat(g, c, &r);
		o->conversation = conversation(g, &r);
		o->usage = r.usage != NULL ? json_ref(r.usage) : NULL;
		if (!is_decided(g, in, o))
			take_verdict(o, &r);
		rc = lead_to_answer(g, &r, in, o, e);
	}
out:
	provider_result_clear(&r);
	buf_clear(&errors);
	buf_clear(&out);
	return rc;
}

void
agent_outcome(struct agent *g, struct outcome_input *in, struct outcome *o,
    const struct io_context *c)
{
	struct err e = {0};

	if (judge(g, in, o, c, &e) == 0)
		return;
	if (o->class != CLASS_NONE)
		return;
	free(o->message);
	o->class = CLASS_RESPONSE;
	o->message = strdup(e.msg);
}

/* ---- In the loop ---- */

struct look_job {
	struct io_job job;
	struct agent *agent;
	int out_fd; /* a duplicate: the attempt may be over before the job runs */
};

static void look_due(void *arg);
static bool look(struct attempt_run *a);

static void
drain_due(void *arg)
{
	struct attempt_run *a = arg;

	if (a->exited || a->stopping != STOP_NONE)
		return;
	a->agent->hung = true;
	log_line(LOG_INFO, "ops/%s: gave its final record and does not leave; it is ended",
	    a->w->flow->ops[a->op].id);
	ending_drain(a);
}

static void
arm(struct attempt_run *a, struct timer *t, int64_t in_ns, timer_fire *fire)
{
	struct err e = {0};

	if (timer_arm(&a->w->loop.timers, t, clock_monotonic_ns() + in_ns, fire, a, &e) != 0)
		worker_error(a->w, &e);
}

static void
look_work(struct io_job *job, struct io_context *c)
{
	struct look_job *j = (struct look_job *)job;

	(void)c;
	job->result = agent_read(j->agent, j->out_fd, false, NULL, &job->error);
}

static void
after_look(struct attempt_run *a)
{
	struct agent *g = a->agent;

	bool ended = provider_reading_ended(g->reading);

	if (!g->ended && ended)
		arm(a, &g->drain, g->p->drain_ns, drain_due);
	else if (g->ended && !ended) /* the line went on: that was no record */
		timer_disarm(&a->w->loop.timers, &g->drain);
	g->ended = ended;
}

/* More than that it has not written by its limit, if it is not to be read. */
static void
decide_limit(struct attempt_run *a)
{
	struct agent *g = a->agent;

	if (g->ended)
		drain_due(a);
	else
		ending_stop(a, g->limit);
	g->limit = CLASS_NONE;
}

static void
look_done(struct io_job *job, void *owner)
{
	struct look_job *j = (struct look_job *)job;
	struct worker *w = owner;
	struct agent *g = j->agent;
	struct attempt_run *a = w->ops[g->op].live;

	g->looking = false;
	if (job->result != 0 && g->trouble.code == ERR_NONE)
		g->trouble = job->error;
	if (a != NULL && a->agent == g && w->ops[g->op].state == OP_RUNNING) {
		if (job->result == 0)
			after_look(a);
		if (g->limit != CLASS_NONE && (job->result != 0 || g->read_to >= g->limit_size || !look(a)))
			decide_limit(a);
		else if (job->result == 0 && !g->looking)
			arm(a, &g->look, AGENT_LOOK_MS * NS_PER_MS, look_due);
	}
	fd_close(&j->out_fd);
	agent_unref(g);
	free(j);
}

static uint64_t
output_size(const struct attempt_run *a)
{
	struct stat st;

	return fstat(a->out_fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* False: there is no memory, or no descriptor, for it. */
static bool
look(struct attempt_run *a)
{
	struct agent *g = a->agent;
	struct look_job *j = calloc(1, sizeof(*j));

	if (j != NULL)
		j->out_fd = fcntl(a->out_fd, F_DUPFD_CLOEXEC, 0);
	if (j == NULL || j->out_fd < 0) {
		free(j);
		return false;
	}
	j->job.work = look_work;
	j->job.done = look_done;
	j->agent = g;
	g->refs++;
	g->looking = true;
	io_submit(a->w->io, &j->job);
	return true;
}

/* What cannot be looked at now is lost to nobody: it is read later, or at the end. */
static void
look_due(void *arg)
{
	struct attempt_run *a = arg;

	if (output_size(a) <= a->agent->read_to || !look(a))
		arm(a, &a->agent->look, AGENT_LOOK_MS * NS_PER_MS, look_due);
}

bool
agent_may_have_ended(struct attempt_run *a, enum op_class limit)
{
	struct agent *g = a->agent;

	if (g == NULL || is_raw(g) || a->exited || a->stopping != STOP_NONE)
		return false;
	if (g->limit != CLASS_NONE) /* the other limit waits for the same */
		return true;
	g->limit_size = output_size(a);
	if (g->looking || (g->limit_size > g->read_to && look(a))) {
		timer_disarm(&a->w->loop.timers, &g->look);
		g->limit = limit;
		return true;
	}
	if (g->ended)
		drain_due(a);
	return g->ended;
}

void
agent_started(struct attempt_run *a)
{
	struct agent *g = a->agent;
	struct err e = {0};
	bool text = g->p->format == PROVIDER_TEXT && !is_raw(g);

	agent_lock_owner(g, a->id);
	if (provider_reading_new(g->p, text ? write_answer : NULL, g, &g->reading, &e) != 0) {
		worker_error(a->w, &e);
		return;
	}
	if (!is_raw(g))
		arm(a, &g->look, AGENT_LOOK_MS * NS_PER_MS, look_due);
}

void
agent_quiet(struct attempt_run *a)
{
	if (a->agent == NULL)
		return;
	timer_disarm(&a->w->loop.timers, &a->agent->look);
	timer_disarm(&a->w->loop.timers, &a->agent->drain);
}

const struct provider_signal *
agent_next_signal(struct agent *g)
{
	return g == NULL || g->steps == g->p->nsignals ? NULL : &g->p->signals[g->steps++];
}
