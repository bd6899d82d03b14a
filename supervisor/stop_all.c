/* Stopping everything: live runs, those in the queue, automatic resumes that wait, and what dead workers left. */
#include "stop_all.h"

#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "seek.h"

#define STOPPED_WITH_ALL "it was stopped with all others"

void
stop_all_init(struct stop_all *s)
{
	memset(s, 0, sizeof(*s));
	TAILQ_INIT(&s->resumes);
}

static void
forget(struct daemon *d, struct queued_resume *r)
{
	TAILQ_REMOVE(&d->stop_all.resumes, r, entry);
	free(r);
}

void
stop_all_clear(struct daemon *d)
{
	while (!TAILQ_EMPTY(&d->stop_all.resumes))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		forget(d, TAILQ_FIRST(&d->stop_all.resumes));
}

const char *
stop_all_gives_up(const struct daemon *d)
{
	return d->phase == PHASE_STOPPING && d->stop_all.rows ? STOPPED_WITH_ALL : NULL;
}

const char *
stop_all_gave_up(const struct daemon *d, const char *run_id)
{
	if (seek_has_mark(&d->home, run_id, SEEK_KILLED))
		return "it was killed";
	return seek_has_mark(&d->home, run_id, SEEK_STOPPED) ? STOPPED_WITH_ALL : stop_all_gives_up(d);
}

void
stop_all_mark(const struct daemon *d, const char *run_id, const struct err *why)
{
	struct err e = {0};
	int run_fd;

	if (!d->stop_all.rows || why->code == ERR_BUSY || seek_has_mark(&d->home, run_id, SEEK_STOPPED))
		return;
	run_fd = rundir_open(&d->home, run_id, &e);
	if (run_fd < 0 || seek_set_mark(run_fd, SEEK_STOPPED, &e) != 0)
		log_line(LOG_ERROR, "run %s: it may go on with the next supervisor: %s", run_id, e.msg);
	fd_close(&run_fd);
}

/* ---- Live runs ---- */

static enum job_result
stop_job(struct daemon *d, struct job *j, struct err *e)
{
	bool now = j->to == STATUS_CANCELLED;
	struct worker *w = worker_find(d, j->run_id);
	struct err ignored = {0};
	struct json *payload;
	char id[UUID_TEXT];

	if (w == NULL)
		return JOB_DONE;
	payload = json_set(json_object(), "mode", json_cstr(now ? "now" : "drain"));
	if (control_insert(d->store, j->run_id, "stop", payload, id, e) == 0) {
		daemon_worked(d);
		worker_poke(w);
		return JOB_DONE;
	}
	if (e->code == ERR_BUSY)
		return JOB_BUSY;
	/* It ended meanwhile, or there is no room for a row: then it is told directly. */
	if (e->code != ERR_REFUSED)
		stop_all_mark(d, j->run_id, e);
	if (e->code != ERR_REFUSED && w->channel.fd >= 0)
		(void)message_send(w->channel.fd, MSG_DRAIN,
		    json_set(json_object(), "now", json_bool(now)), -1, &ignored);
	return e->code == ERR_REFUSED ? JOB_DONE : JOB_FAILED;
}

void
stop_all_run(struct daemon *d, const char *run_id, bool now)
{
	struct job *j = job_new(stop_job, run_id, true);

	if (j != NULL)
		j->to = now ? STATUS_CANCELLED : STATUS_RUNNING;
	jobs_add(d, j, false);
}

/* ---- What waits ---- */

static void
cancel(struct daemon *d, const char *run_id)
{
	queue_move(d, run_id, STATUS_CANCELLED, "run.cancelled.queued", NULL, false);
}

static int
on_restarting(void *arg, const struct session *s)
{
	struct daemon *d = arg;

	if (session_is_copy(s, &d->home))
		return 0;
	d->stop_all.looked = false;
	restart_give_up(d, s->run_id, stop_all_gives_up(d));
	return 0;
}

static bool
is_known(const struct daemon *d, const char *run_id)
{
	const struct queued_resume *r;

	TAILQ_FOREACH(r, &d->stop_all.resumes, entry)
	{
		if (strcmp(r->run_id, run_id) == 0)
			return true;
	}
	return false;
}

static int
on_queued(void *arg, const struct session *s)
{
	struct daemon *d = arg;
	struct queued_resume *r;

	/* One that somebody asked for since is the next supervisor's. */
	if (queue_is_left_alone(d, s) || (!d->stop_all.first && s->restarts_done == 0))
		return 0;
	d->stop_all.looked = false;
	if (s->resumed_from_run[0] == '\0') {
		cancel(d, s->run_id);
		return 0;
	}
	if (is_known(d, s->run_id))
		return 0;
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		log_line(LOG_ERROR, "run %s is not cancelled yet: out of memory", s->run_id);
		return 0;
	}
	strlcpy(r->run_id, s->run_id, sizeof(r->run_id));
	TAILQ_INSERT_TAIL(&d->stop_all.resumes, r, entry);
	return 0;
}

static enum job_result
look_job(struct daemon *d, struct job *j, struct err *e)
{
	static const struct session_filter restarting = {.restarting = true},
		queued = {.statuses = {STATUS_QUEUED}, .nstatuses = 1};

	(void)j;
	d->stop_all.looked = true;
	if (session_list(d->store, &restarting, on_restarting, d, e) != 0 ||
	    session_list(d->store, &queued, on_queued, d, e) != 0) {
		d->stop_all.looked = false;
		return JOB_FAILED;
	}
	d->stop_all.first = false;
	return JOB_DONE;
}

static void
look(struct daemon *d)
{
	if (!jobs_has(&d->jobs, look_job, ""))
		jobs_add(d, job_new(look_job, "", true), false);
}

/* One step with it; false when it is cancelled now. */
static bool
still_waits(struct daemon *d, struct queued_resume *r)
{
	if (!r->asked) {
		r->asked = report_ask_running(d, r->run_id);
		return true;
	}
	if (report_is_asked(d, r->run_id))
		return true;
	if (d->stop_all.now && !r->ended) {
		r->ended = true;
		kept_end_run(d, r->run_id);
	}
	return kept_is_watched(d, r->run_id);
}

static void
follow_resumes(struct daemon *d)
{
	struct queued_resume *r, *next;

	for (r = TAILQ_FIRST(&d->stop_all.resumes); r != NULL; r = next) {
		next = TAILQ_NEXT(r, entry);
		if (still_waits(d, r))
			continue;
		cancel(d, r->run_id);
		forget(d, r);
	}
}

/* ---- All of it ---- */

void
stop_all_begin(struct daemon *d, bool rows, bool now)
{
	struct stop_all *s = &d->stop_all;
	struct worker *w;

	d->phase = PHASE_STOPPING;
	s->now = s->now || now;
	if (rows) {
		s->rows = s->first = true;
		s->looked = false;
		look(d);
		/* Of what cannot be written it is kept now that it is stopped. */
		jobs_wake_all(d);
	}
	for (w = worker_after(d, ""); w != NULL; w = worker_after(d, w->run_id))
		stop_all_run(d, w->run_id, now);
	if (s->now)
		kept_end_all(d);
}

bool
stop_all_waits(struct daemon *d)
{
	follow_resumes(d);
	if (d->stop_all.now && d->stop_all.rows)
		errands_stop_notices(d);
	/* A report may yet say that something runs. */
	return d->workers.count > 0 || kept_goes_on(d, NULL) ||
	    d->reports.started + d->reports.waiting > 0 || !TAILQ_EMPTY(&d->stop_all.resumes) ||
	    (d->stop_all.rows && d->errands.counts[ERRAND_RESTART] + d->errands.counts[ERRAND_NOTIFY] > 0);
}

bool
stop_all_is_over(struct daemon *d)
{
	if (!d->stop_all.rows || d->stop_all.looked)
		return true;
	look(d);
	return false;
}
