#include "restart.h"

#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "flowsup/clock.h"
#include "flowsup/log.h"
#include "paste.h"

enum { EXIT_BUSY = 5, EXIT_STATE = 74 };

int64_t
restart_pause_ns(int64_t done)
{
	int64_t ms = RESTART_FIRST_MS;

	while (done-- > 0 && ms < RESTART_MOST_MS)
		ms *= 2;
	return (ms < RESTART_MOST_MS ? ms : RESTART_MOST_MS) * NS_PER_MS;
}

bool
restart_was_quick(const struct session *s)
{
	double began = s->started_at > 0 ? s->started_at : s->created_at;
	double lived = s->ended_at - began;

	/* A clock that was set back says nothing. */
	return lived >= 0 && lived < RESTART_QUICK_S;
}

static struct restart *
find(struct daemon *d, const char *run_id)
{
	struct restart *r;

	TAILQ_FOREACH(r, &d->restarts, entry)
	{
		if (strcmp(r->run_id, run_id) == 0)
			return r;
	}
	return NULL;
}

static void
forget(struct daemon *d, struct restart *r)
{
	TAILQ_REMOVE(&d->restarts, r, entry);
	free(r);
}

void
restarts_clear(struct daemon *d)
{
	struct restart *r;

	while ((r = TAILQ_FIRST(&d->restarts)) != NULL)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		forget(d, r);
}

static void
schedule(struct daemon *d, struct restart *r, int64_t pause_ns)
{
	r->due_ns = clock_monotonic_ns() + pause_ns;
	loop_set_timer(&d->loop, TIMER_RESTART, r->due_ns);
}

/* ---- The decision ---- */

void
restart_tell_command(struct daemon *d, const char *run_id, struct buf *to)
{
	struct session s;

	if (session_read(d->store, run_id, &s, &(struct err){0}) != 0) {
		paste_command(to, "resume", NULL, run_id, NULL);
		return;
	}
	paste_resume(to, NULL, NULL, &s);
	session_clear(&s);
}

/* What lifts the refusal the refused command has said. */
static void
log_given_up(struct daemon *d, const struct job *j)
{
	struct buf command = {0};

	if (j->value != NULL)
		buf_slice(&command, json_text(j->value));
	else
		restart_tell_command(d, j->run_id, &command);
	log_line(LOG_WARNING, "run %s is not resumed by itself: %s; to go on: %s", j->run_id,
	    j->text != NULL ? j->text : "it was given up", buf_text(&command));
	buf_clear(&command);
}

static enum job_result
give_up_job(struct daemon *d, struct job *j, struct err *e)
{
	bool did = false;

	if (session_give_up(d->store, j->run_id, j->text, &did, e) != 0) {
		if (e->code == ERR_NOTFOUND)
			return JOB_DONE;
		stop_all_mark(d, j->run_id, e);
		return JOB_FAILED;
	}
	secrets_ended(d, j->run_id);
	if (!did)
		return JOB_DONE;
	log_given_up(d, j);
	daemon_worked(d);
	clients_tell_changed(d, j->run_id, status_word(STATUS_CRASHED), NULL);
	/* Its key and its slot are free. */
	d->scan_wanted = true;
	return JOB_DONE;
}

/* command: that goes on, where it is known; or NULL. */
static void
give_up(struct daemon *d, const char *run_id, const char *why, const char *command)
{
	struct job *j = job_new(give_up_job, run_id, true);
	struct restart *r = find(d, run_id);

	if (r != NULL && r->due_ns != 0)
		forget(d, r);
	if (j != NULL) {
		j->text = strdup(why);
		j->value = command != NULL ? json_string_lossy(slice_of(command), NULL) : NULL;
	}
	jobs_add(d, j, false);
}

void
restart_give_up(struct daemon *d, const char *run_id, const char *why)
{
	give_up(d, run_id, why, NULL);
}

static void
wait_for_turn(struct daemon *d, const struct session *s)
{
	struct restart *r = find(d, s->run_id);
	struct proc_place there;

	if (r != NULL)
		return;
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		log_line(LOG_ERROR, "run %s is not resumed by itself: out of memory", s->run_id);
		return;
	}
	strlcpy(r->run_id, s->run_id, sizeof(r->run_id));
	r->take_over = d->gone_namespace != 0 && proc_place_parse(s->place, &there) &&
	    strcmp(there.boot_id, d->here.boot_id) == 0 && there.pid_namespace == d->gone_namespace;
	TAILQ_INSERT_TAIL(&d->restarts, r, entry);
	/* This process was executed anew while the resume was under way. */
	if (errand_find(d, ERRAND_RESTART, s->run_id, NULL) != NULL) {
		r->tries = 1;
		return;
	}
	schedule(d, r, restart_pause_ns(s->restarts_done));
	log_line(LOG_INFO, "run %s is resumed by itself in %llds (%lld left)", s->run_id,
	    (long long)(restart_pause_ns(s->restarts_done) / NS_PER_S), (long long)s->restarts_left);
}

static void
consider(struct daemon *d, const struct session *s)
{
	if (!session_is_restarting(s) || session_is_copy(s, &d->home))
		return;
	if (stop_all_gave_up(d, s->run_id) != NULL)
		restart_give_up(d, s->run_id, stop_all_gave_up(d, s->run_id));
	else if (restart_was_quick(s) && s->quick_deaths + 1 >= RESTART_QUICK_DEATHS)
		restart_give_up(d, s->run_id, "its workers died soon after their start, one after the other");
	else
		wait_for_turn(d, s);
}

static enum job_result
consider_job(struct daemon *d, struct job *j, struct err *e)
{
	struct session s;

	if (session_read(d->store, j->run_id, &s, e) != 0)
		return e->code == ERR_NOTFOUND ? JOB_DONE : JOB_FAILED;
	consider(d, &s);
	session_clear(&s);
	return JOB_DONE;
}

void
restart_consider(struct daemon *d, const char *run_id)
{
	jobs_add(d, job_new(consider_job, run_id, true), false);
}

static int
on_found(void *arg, const struct session *s)
{
	consider(arg, s);
	return 0;
}

int
restart_scan(struct daemon *d, struct err *e)
{
	const struct session_filter f = {.restarting = true, .oldest_first = true};

	return session_list(d->store, &f, on_found, d, e);
}

/* ---- The resume ---- */

static void
begin(struct daemon *d, struct restart *r)
{
	const char *argv[] = {"flowsup", "resume", r->run_id, "--by-policy", "--home", d->home.path,
	    r->take_over ? "--take-over" : NULL, NULL};
	const struct errand_plan plan = {
	    .kind = ERRAND_RESTART,
	    .run_id = r->run_id,
	    .program = d->own_path,
	    .argv = argv,
	    .keep_said = true,
	    .limit_ns = RESTART_LIMIT_S * NS_PER_S,
	};
	struct err e = {0};

	if (errand_start(d, &plan, &e) == 0) {
		r->due_ns = 0;
		r->tries++;
		return;
	}
	log_line(LOG_ERROR, "run %s: cannot be resumed now: %s", r->run_id, e.msg);
	schedule(d, r, jobs_pause_ns(r->tries++));
}

void
restarts_due(void *daemon)
{
	struct daemon *d = daemon;
	int64_t now = clock_monotonic_ns();
	struct restart *r;

	TAILQ_FOREACH(r, &d->restarts, entry)
	{
		if (r->due_ns == 0)
			continue;
		/* The next one, or this one executed anew, finds it in the row. */
		if (r->due_ns <= now && d->phase == PHASE_WORKING)
			begin(d, r);
		if (r->due_ns != 0 && d->phase == PHASE_WORKING)
			loop_set_timer(&d->loop, TIMER_RESTART, r->due_ns);
	}
}

static bool
is_worth_another(const struct errand *a, const struct proc_end *end)
{
	return a->late || (end->known && !end->signaled && (end->code == EXIT_BUSY || end->code == EXIT_STATE));
}

void
restart_ended(struct errand *a, const struct proc_end *end)
{
	struct daemon *d = a->daemon;
	struct restart *r = find(d, a->run_id);
	char text[ERRAND_TEXT], command[ERRAND_TEXT];

	if (end->known && !end->signaled && end->code == 0) {
		log_line(LOG_INFO, "run %s was resumed by itself", a->run_id);
	} else if (r != NULL && is_worth_another(a, end) && r->tries < RESTART_TRIES && stop_all_gives_up(d) == NULL) {
		errand_outcome(a, end, text);
		log_line(LOG_INFO, "run %s: its resume failed, and is tried again in %llds: %s", a->run_id,
		    (long long)(restart_pause_ns(r->tries) / NS_PER_S), text);
		schedule(d, r, restart_pause_ns(r->tries));
		return;
	} else {
		errand_outcome(a, end, text);
		give_up(d, a->run_id, text, errand_hint(a, command) ? command : NULL);
	}
	if (r != NULL)
		forget(d, r);
}
