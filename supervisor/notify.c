#include "notify.h"

#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "flowsup/clock.h"
#include "flowsup/log.h"
#include "paste.h"

enum { EVENT_TEXT = 128 };

/* ---- What is told ---- */

/* "waiting:OP" is the event "waiting" of an operation, "storage:9" one of the run. */
static struct json *
add_event(struct json *o, const char *event)
{
	const char *colon = strchr(event, ':');
	size_t len = colon != NULL ? (size_t)(colon - event) : strlen(event);
	bool op = colon != NULL && strncmp(event, "waiting:", len + 1) == 0;

	o = json_set(o, "event", json_string_lossy((struct slice){event, len}, NULL));
	return json_set(o, "op", op ? json_text_or_null(colon + 1) : json_null());
}

static struct json *
take_text(struct buf *b)
{
	struct json *text = b->failed ? NULL : json_string_lossy(buf_view(b), NULL);

	buf_clear(b);
	return text;
}

static bool
is_resumable(const struct session *s)
{
	return status_is_terminal(s->status) && reason_is_resumable(s->reason_code);
}

/* Whoever gets it may have another state directory, or none named. */
static struct json *
resume_command(const char *home, const struct session *s)
{
	struct buf b = {0};

	if (!is_resumable(s))
		return json_null();
	paste_resume(&b, NULL, home, s);
	return take_text(&b);
}

static struct json *
keep_command(const char *home, const struct session *s)
{
	struct buf b = {0};

	return is_resumable(s) && paste_keep(&b, NULL, home, s) ? take_text(&b) : json_null();
}

struct json *
notify_payload(const char *home, const struct session *s, const char *event, double at)
{
	struct json *o = add_event(json_object(), event);
	const struct json *growth = json_get(s->metadata, META_GROWTH), *cut = json_get(s->metadata, META_PLAN_CUT);
	const struct json *empty = json_get(s->metadata, META_PLAN_EMPTY);

	o = json_set(o, "at", json_real(at));
	o = json_set(o, "run", json_cstr(s->run_id));
	o = json_set(o, "name", json_text_or_null(s->name));
	o = json_set(o, "status", json_cstr(status_word(s->status)));
	o = json_set(o, "reason", json_text_or_null(s->reason_code));
	o = json_set(o, "reason_text", json_text_or_null(s->reason));
	o = json_set(o, "exit_status",
	    status_is_terminal(s->status) ? json_int(status_exit(s->status, s->reason_code)) : json_null());
	o = json_set(o, "done", json_int(s->done));
	o = json_set(o, "total", json_int(s->total));
	o = json_set(o, META_GROWTH, growth != NULL ? json_ref(growth) : json_null());
	o = json_set(o, META_PLAN_CUT, cut != NULL ? json_ref(cut) : json_null());
	o = json_set(o, META_PLAN_EMPTY, empty != NULL ? json_ref(empty) : json_null());
	o = json_set(o, "restarting", json_bool(session_is_restarting(s)));
	o = json_set(o, "resume_command", resume_command(home, s));
	o = json_set(o, "keep_command", keep_command(home, s));
	return json_set(o, "home", json_string_lossy(slice_of(home), NULL));
}

/* ---- The command ---- */

/* flowsup-worker --notify: gives it the environment and the directory of the run. */
static const char **
make_argv(struct daemon *d, const struct session *s, struct err *e)
{
	const struct json *command = json_get(json_get(s->policy, "notify"), "command");
	const char *const before[] = {"flowsup-worker", "--home", d->home.path, "--notify", s->run_id,
	    "--"};
	size_t own = sizeof(before) / sizeof(before[0]), n = json_length(command), i;
	const char **argv;

	if (n == 0) {
		err_set(e, ERR_INTERNAL, "no command is recorded");
		return NULL;
	}
	argv = calloc(own + n + 1, sizeof(*argv));
	if (argv == NULL) {
		err_nomem(e);
		return NULL;
	}
	memcpy(argv, before, sizeof(before));
	for (i = 0; i < n; i++)
		argv[own + i] = json_text(json_at(command, i)).data;
	return argv;
}

static int
start_command(struct daemon *d, const struct session *s, const char *event, double at, struct err *e)
{
	struct errand_plan plan = {
	    .kind = ERRAND_NOTIFY,
	    .run_id = s->run_id,
	    .event = event,
	    .program = d->worker_path,
	    .keep_said = true,
	    .limit_ns = NOTIFY_LIMIT_S * NS_PER_S,
	};
	struct json *payload = notify_payload(d->home.path, s, event, at);
	const char **argv = make_argv(d, s, e);
	struct buf text = {0};
	int rc = -1;

	if (payload != NULL) {
		json_write(&text, payload);
		buf_putc(&text, '\n');
	} else if (argv != NULL) {
		err_nomem(e);
	}
	plan.argv = argv;
	plan.input = buf_view(&text);
	if (payload != NULL && argv != NULL && buf_ok(&text, e) == 0)
		rc = errand_start(d, &plan, e);
	json_unref(payload);
	buf_clear(&text);
	free(argv);
	return rc;
}

static enum job_result
finish_job(struct daemon *d, struct job *j, struct err *e)
{
	const char *event = json_cstr_of(j->value);

	if (notice_finish(d->store, j->run_id, event, j->text, e) != 0)
		return JOB_FAILED;
	daemon_worked(d);
	return JOB_DONE;
}

static void
finish(struct daemon *d, const char *run_id, const char *event, const char *outcome)
{
	struct job *j = job_new(finish_job, run_id, true);

	if (j == NULL)
		return;
	j->value = json_cstr(event);
	j->text = strdup(outcome);
	if (j->value != NULL && j->text != NULL) {
		jobs_add(d, j, false);
		return;
	}
	job_free(j);
	log_line(LOG_ERROR, "run %s: notify: out of memory", run_id);
}

void
notify_ended(struct errand *r, const struct proc_end *end)
{
	char outcome[ERRAND_TEXT];
	bool well = end->known && !end->signaled && end->code == 0;

	errand_outcome(r, end, outcome);
	if (!well)
		log_line(LOG_WARNING, "run %s: notify of '%s': %s", r->run_id, r->event, outcome);
	finish(r->daemon, r->run_id, r->event, outcome);
	notify_look(r->daemon);
}

/* ---- Which ---- */

struct pending {
	char run_id[RUN_ID_TEXT], event[EVENT_TEXT];
	double at;
};
struct gathered {
	struct daemon *daemon;
	const char *only; /* this run's alone, or NULL */
	struct pending list[NOTIFY_AT_ONCE];
	unsigned count, most;
};

/* A death is told when it is known what the checkpoint holds: that may be more than the row says, or less. A
 * worker that has stored its own crash is not gone yet. */
static bool
is_too_early(struct daemon *d, const struct notice *n)
{
	return report_is_awaited(d, n->run_id) ||
	    (strcmp(n->event, status_word(STATUS_CRASHED)) == 0 && worker_find(d, n->run_id) != NULL);
}

static int
gather(void *arg, const struct notice *n)
{
	struct gathered *g = arg;
	struct pending *p = &g->list[g->count];

	if (g->count == g->most)
		return 1;
	if (g->only != NULL && strcmp(g->only, n->run_id) != 0)
		return 0;
	if (is_too_early(g->daemon, n))
		return 0;
	strlcpy(p->run_id, n->run_id, sizeof(p->run_id));
	strlcpy(p->event, n->event, sizeof(p->event));
	p->at = n->at;
	g->count++;
	return 0;
}

/* The row's count is written once a second at most; a worker says more. */
static void
take_count(struct daemon *d, struct session *s)
{
	const struct worker *w = worker_find(d, s->run_id);

	if (w == NULL || status_is_terminal(s->status) || w->done < s->done)
		return;
	s->done = w->done;
	s->total = w->total;
}

/* Claimed before it is started: an event is never told twice, whoever dies. */
static int
send_one(struct daemon *d, const struct pending *p, struct err *e)
{
	struct err why = {0};
	struct session s;
	bool claimed = false;

	if (session_read(d->store, p->run_id, &s, e) != 0)
		return e->code == ERR_NOTFOUND ? 0 : -1;
	if (notice_claim(d->store, p->run_id, p->event, &claimed, e) != 0) {
		session_clear(&s);
		return -1;
	}
	daemon_worked(d);
	take_count(d, &s);
	if (claimed && start_command(d, &s, p->event, p->at, &why) != 0) {
		log_line(LOG_WARNING, "run %s: notify of '%s': %s", p->run_id, p->event, why.msg);
		finish(d, p->run_id, p->event, why.msg);
	}
	session_clear(&s);
	return 0;
}

static enum job_result
look_job(struct daemon *d, struct job *j, struct err *e)
{
	struct gathered g = {.daemon = d, .most = NOTIFY_AT_ONCE - d->errands.counts[ERRAND_NOTIFY]};
	unsigned i;

	(void)j;
	g.only = d->options.only != NULL ? d->options.only->run_id : NULL;
	if (g.most == 0 || d->phase != PHASE_WORKING)
		return JOB_DONE;
	if (notice_list(d->store, NULL, gather, &g, e) != 0)
		return JOB_FAILED;
	for (i = 0; i < g.count; i++)
		if (send_one(d, &g.list[i], e) != 0)
			return JOB_FAILED;
	return JOB_DONE;
}

void
notify_look(struct daemon *d)
{
	if (d->errands.counts[ERRAND_NOTIFY] < NOTIFY_AT_ONCE && !jobs_has(&d->jobs, look_job, ""))
		jobs_add(d, job_new(look_job, "", true), false);
}
