/* resume: makes a run that has ended without completing go on, as a new run. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "flowsup/endops.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "lacking.h"
#include "leftover.h"
#include "mailbox.h"
#include "policy.h"
#include "resume_private.h"
#include "resuming.h"
#include "withheld.h"
#include "seek.h"

extern char **environ;

enum {
	LOCK_TRIES = 60,   /* another resume ends what runs, with its grace */
	VERDICT_MS = 3000, /* the supervisor, told by the kernel, says how a worker ended */
	VERDICT_LOOK_MS = 50
};

static const char *const examples[] = {
    "flowsup resume @last                 # goes on; prints the new run's id",
    "flowsup resume @last --dry-run       # what would be replayed, run, refused",
    "flowsup resume @last --retry-failed  # failed operations run again",
    "flowsup resume --all-crashed         # every run whose worker died",
    NULL};

static const struct cli_option options[] = {
    {.name = "dry-run", .letter = 'n', .kind = CLI_FLAG, .help = "only say what would be done"},
    {.name = "wait", .letter = 'w', .kind = CLI_FLAG, .help = "follow it; exit by its outcome"},
    {.name = "events", .kind = CLI_STRING, .value = "FD|FILE",
	.help = "with --wait: each event, a line", .complete = "file", .rare = true},
    {.name = "all-crashed", .kind = CLI_FLAG, .help = "every crashed run; no operand",
	.alone = true},
    {.name = "timeout", .kind = CLI_DURATION, .value = "TIME",
	.help = "in place of the recorded deadline, from now on", .least = 1},
    {.name = "notify", .kind = CLI_STRING, .value = "CMD", .help = "in place of the recorded command",
	.complete = "file", .rare = true},
    {.name = "restart", .kind = CLI_INT, .value = "N",
	.help = "in place of the recorded number of restarts", .least = 0,
	.most = POLICY_RESTARTS_MOST, .rare = true},
    {.name = "take-over", .kind = CLI_FLAG,
	.help = "of another host or container: it is dead there"},
    {.name = "without-env", .kind = CLI_LIST, .value = "NAME",
	.help = "go on without this withheld variable"},
    {.name = "by-policy", .kind = CLI_FLAG, .help = "used by the supervisor: counts as a restart",
	.rare = true},
#define X(member, option, text, seldom) {.name = option, .kind = CLI_FLAG, .help = text, .rare = seldom},
    RESUME_FLAG_TABLE(X)
#undef X
    CLI_END};

/* ---- Whether there is anything to resume ---- */

/* What waits for somebody now is the latest of its chain. */
static int
already_resumed(const struct resuming *r, struct err *e)
{
	const struct session *s = &r->t->session;
	struct session latest;
	int rc;

	err_set(e, ERR_REFUSED, "run %s was already resumed, as run %s", s->run_id, s->resumed_as_run);
	if (session_latest(r->t->store, s->run_id, &latest, &(struct err){0}) != 0)
		return err_hint(e, "flowsup show %s", s->resumed_as_run);
	if (latest.status == STATUS_PAUSED || latest.status == STATUS_CRASHED)
		rc = err_hint(e, "flowsup resume %s   # it %s", latest.run_id,
		    latest.status == STATUS_PAUSED ? "is paused" : "has crashed");
	else
		rc = err_hint(e, "flowsup show %s", latest.run_id);
	session_clear(&latest);
	return rc;
}

static int
no_restart(const struct session *s, struct err *e)
{
	return err_set(e, ERR_REFUSED, "run %s is not to be resumed by itself any more", s->run_id);
}

static int
is_locked(const struct resuming *r, struct err *e)
{
	char who[SEEK_WHO_TEXT];

	err_set(e, ERR_BUSY, "run %s is being resumed, or does not leave: %s has its lock",
	    r->t->session.run_id, seek_who(r->run_fd, who));
	return err_hint(e, "flowsup show %s", r->t->session.run_id);
}

/*
 * Takes the run's lock: then no worker lives, and no other resume is at work. While somebody has
 * it the row is read again, for another resume ends by naming the successor.
 */
static int
take_lock(struct resuming *r, struct err *e)
{
	char who[SEEK_WHO_TEXT];
	struct err why = {0};
	unsigned i;

	for (i = 0; i < LOCK_TRIES; i++) {
		r->lock_fd = run_lock_take(r->run_fd, RUN_LOCK_OVER_MS, &why);
		if (target_reload(r->t, e) != 0)
			return -1;
		if (r->t->session.resumed_as_run[0] != '\0')
			return already_resumed(r, e);
		if (r->lock_fd >= 0)
			return r->by_policy && (!session_is_restarting(&r->t->session) ||
			    seek_has_mark(&r->t->home, r->t->session.run_id, SEEK_KILLED))
			    ? no_restart(&r->t->session, e)
			    : 0;
		if (why.code != ERR_BUSY) {
			*e = why;
			return seek_damaged_for_good(&r->t->session, e);
		}
		if (i == 1)
			cli_note("run %s: %s has its lock; waiting", r->t->session.run_id,
			    seek_who(r->run_fd, who));
	}
	return is_locked(r, e);
}

/* Before its worker has written a line the row alone knows where it was started. */
static int
check_row_place(const struct resuming *r, bool *here, struct err *e)
{
	struct proc_place there, now;
	bool other_boot;

	if (!proc_place_parse(r->t->session.place, &there))
		return 0;
	if (proc_place_here(&now, e) != 0)
		return -1;
	*here = proc_place_is(&there, &now, &other_boot);
	return 0;
}

/* Where its worker ran on another host, nothing here tells whether it lives. */
static int
check_place(struct resuming *r, struct err *e)
{
	struct attempts a;
	bool here, other_boot;
	int rc;

	/* One that a worker brought to its end has none; after a crash something of it may still run there. */
	if (status_is_terminal(r->t->session.status) && r->t->session.status != STATUS_CRASHED)
		return 0;
	if (attempts_read_place(r->run_fd, &a, e) != 0)
		return -1;
	rc = endops_is_here(&a, &here, &other_boot, e);
	if (rc == 0 && here)
		rc = check_row_place(r, &here, e);
	if (rc == 0 && !here && cli_flag(r->c, "take-over")) {
		cli_note("run %s is taken over from %s; what of it may run there is not ended",
		    r->t->session.run_id, a.has_place ? a.place.host : "elsewhere");
	} else if (rc == 0 && !here) {
		rc = resuming_of_elsewhere(r, a.has_place ? a.place.host : "(not known)", e);
	}
	attempts_clear(&a);
	return rc;
}

/* Nothing is made, and that is no error: said to people, and with --json as an object. `what` is one word of
 * flowsup(1). */
static int __attribute__((format(printf, 3, 4)))
nothing(const struct resuming *r, const char *what, const char *fmt, ...)
{
	struct buf text = {0};
	struct json *o;
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	cli_note("%s %s", r->label, buf_text(&text));
	if (r->c->json) {
		o = json_set(json_object(), r->is_run ? "run" : "directory",
		    json_string_lossy(slice_of(r->name), NULL));
		o = json_set(o, "nothing", json_cstr(what));
		out_json(r->c->out, json_set(o, "message", json_string_lossy(buf_view(&text), NULL)));
	}
	buf_clear(&text);
	return 0;
}

/* A directory's status is known from its checkpoint alone. */
static bool
has_completed(const struct resuming *r)
{
	const struct resume_row *row;
	size_t i;

	for (i = 0; i < r->plan.nrows; i++) {
		row = &r->plan.rows[i];
		if ((row->action != RESUME_REPLAY && row->action != RESUME_SKIP) || row->turn != 0)
			return false;
	}
	return !r->is_run && r->plan.nrows > 0 && resume_is_accepted(&r->plan);
}

/* Whether it was of this boot and place, so that numbers of processes mean something. */
static bool
is_of_here(const struct resuming *r)
{
	bool here, other_boot;

	return r->is_run && r->t->session.status == STATUS_CRASHED && r->attempts.has_place &&
	    endops_is_here(&r->attempts, &here, &other_boot, &(struct err){0}) == 0 && here && !other_boot;
}

/* Check 7 of what no start line names. */
static void
refuse_stray(struct resuming *r, const char *names, const struct json *pids, const char *why)
{
	struct json_iter it = json_iterate(pids);
	const struct json *one;
	struct buf numbers = {0};
	int64_t pid;

	if (cli_flag(r->c, "rerun-in-flight")) {
		cli_note("%s goes on beside what %s: %s", r->label, why, names);
		return;
	}
	while (json_next(&it, NULL, &one))
		if (json_int64(one, &pid))
			buf_printf(&numbers, " %lld", (long long)pid);
	resume_fail(&r->plan, 7, NULL, "rerun-in-flight", "%s %s, and would run on beside what runs again: end it (kill%s)",
	    names, why, buf_text(&numbers));
	buf_clear(&numbers);
}

/* What is taken over may need a stray; what runs again must not meet one of its own. */
static void
judge_own_strays(struct resuming *r)
{
	bool leaves = r->attempts.nstrays > 0 && attempts_any_leaves(&r->attempts);
	struct json *pids = json_array();
	struct buf names = {0};
	size_t i;

	for (i = 0; i < r->attempts.nstrays && !leaves; i++)
		if (attempts_stray_lives(&r->attempts, i)) {
			buf_puts(&names, names.len > 0 ? ", " : "");
			leftover_add_process(&names, r->attempts.strays[i].pid);
			pids = json_append(pids, json_int(r->attempts.strays[i].pid));
		}
	r->strays_stay = leaves || (json_length(pids) > 0 && resuming_takes_running(r));
	if (r->strays_stay && !leaves && resuming_repeats(r))
		refuse_stray(r, buf_text(&names), pids, "may be of what is taken over, or of what is not");
	json_unref(pids);
	buf_clear(&names);
}

/* No survivor runs beside what runs again (resume.h, check 7), whether or not it is proved to be one. */
static void
judge_strays(struct resuming *r)
{
	struct leftover_unknown unknown = {0};

	if (!is_of_here(r))
		return;
	judge_own_strays(r);
	leftover_look_unknown(&r->t->home, r->t->store, &r->t->session, &r->attempts, &unknown);
	unknown.orphaned = false; /* so it is after each death of a supervisor, and nothing can be done */
	if (unknown.n > unknown.left)
		refuse_stray(r, buf_text(&unknown.text), unknown.pids,
		    "may be of it, or of another run or command that ended with it");
	else
		leftover_tell_unknown(&unknown, r->t->session.run_id);
	leftover_unknown_clear(&unknown);
}

/* Everything is looked at before anything is done. */
static int
resume_examined(struct resuming *r, struct err *e)
{
	if (r->is_run)
		leftover_have_looked(&r->t->home);
	if (resuming_read(r, e) != 0 || resuming_examine(r, e) != 0)
		return -1;
	resuming_tell_report(r);
	resuming_tell_unheard(r);
	judge_strays(r);
	resuming_tell_changes(r);
	if (r->is_run)
		mailbox_tell_lost(r->c, r->t->store, &r->t->session);
	if (has_completed(r))
		return nothing(r, "completed", "has completed: there is nothing to resume");
	if (r->original_completed)
		return resuming_original_completed(r, e);
	if (cli_flag(r->c, "dry-run"))
		return resuming_dry_run(r, e);
	return resume_is_accepted(&r->plan) ? resuming_go_on(r, e) : resuming_refused(r, e);
}

/* The same for a dry run, which takes nothing. */
static int
check_lock(struct resuming *r, struct err *e)
{
	bool held = false;

	if (seek_lock_held(r->run_fd, RUN_LOCK_OVER_MS, &held, e) != 0)
		return seek_damaged_for_good(&r->t->session, e);
	if (target_reload(r->t, e) != 0)
		return -1;
	if (r->t->session.resumed_as_run[0] != '\0')
		return already_resumed(r, e);
	return held ? is_locked(r, e) : 0;
}

static int
resume_dead(struct resuming *r, struct err *e)
{
	int rc;

	if (r->t->session.resumed_as_run[0] != '\0')
		return already_resumed(r, e);
	if (check_place(r, e) != 0)
		return -1;
	rc = cli_flag(r->c, "dry-run") ? check_lock(r, e) : take_lock(r, e);
	return rc == 0 ? resume_examined(r, e) : -1;
}

/* ---- Runs that are not resumed ---- */

static int
resume_paused(struct resuming *r, struct err *e)
{
	char id[UUID_TEXT];
	struct err poked = {0};

	if (cli_flag(r->c, "dry-run"))
		return nothing(r, "paused", "is alive and paused; its gate would be opened");
	if (control_insert(r->t->store, r->t->session.run_id, "resume", NULL, id, e) != 0)
		return -1;
	(void)client_poke(&r->t->home, r->t->session.run_id, &poked);
	return nothing(r, "paused", "is alive and paused: resume queued for it");
}

/* The names that a run in the queue waits for and that this environment lacks, as an error. */
static int
tell_lacking(const struct resuming *r, const struct json *names, struct err *e)
{
	struct json_iter it = json_iterate(names);
	struct buf text = {0}, asked = {0}, flags = {0};
	struct flow *flow = NULL;
	const struct json *one;
	const char *name;
	bool required;

	if (json_length(names) > 0 && seek_flow(r->run_fd, &flow, e) != 0)
		return seek_damaged_for_good(&r->t->session, e);
	while (json_next(&it, NULL, &one)) {
		name = json_text(one).data;
		required = lacking_is_required_in(flow, name);
		if (required) {
			lacking_command(name, &asked);
			buf_puts(&asked, "; ");
		} else {
			buf_printf(&flags, " --without-env %s", name);
		}
		if (required || !resuming_goes_without(r->c, name))
			buf_printf(&text, "%s%s%s", text.len > 0 ? ", " : "", name,
			    required ? " (required)" : "");
	}
	if (text.len > 0) {
		err_set(e, ERR_REFUSED, "run %s waits for values that are not set here: %s",
		    r->t->session.run_id, buf_text(&text));
		required = asked.len > 0;
		buf_printf(&asked, "flowsup resume %s%s   # %s", r->t->session.run_id, buf_text(&flags),
		    required ? "asks for what is required" : "to go without");
		cli_hint_whole(r->c, &asked, e);
	}
	flow_free(flow);
	buf_clear(&text);
	buf_clear(&asked);
	buf_clear(&flags);
	return e->code == ERR_NONE ? 0 : -1;
}

/* It waits for its withheld values, and gets them from this environment. */
static int
supply(struct resuming *r, struct err *e)
{
	const struct json *names = json_get(r->t->session.policy, "withheld");
	struct json *missing = withheld_missing(names, environ, e);
	int values = -1, rc = missing != NULL ? resuming_check_without(r, names, e) : -1;

	if (rc == 0)
		rc = tell_lacking(r, missing, e);
	if (rc == 0 && cli_flag(r->c, "dry-run")) {
		nothing(r, "queued", "waits for withheld values, and would get them from here");
	} else if (rc == 0) {
		values = withheld_gather(names, environ, NULL, e);
		rc = values >= 0 ? client_supply(&r->t->home, r->t->session.run_id, values, e) : -1;
		if (rc == 0)
			nothing(r, "queued", "got the values that it waited for: they were sent");
	}
	fd_close(&values);
	json_unref(missing);
	return rc;
}

/* Of another place nothing else is known. Else the line may be of a worker before, which is dead. */
static bool
is_worker(const struct attempts *a)
{
	bool here = false, other_boot = false;
	struct err e = {0};

	return endops_is_here(a, &here, &other_boot, &e) != 0 || !here || proc_is_alive(a->worker);
}

static int
still_alive(struct resuming *r)
{
	struct attempts a = {0};
	struct err e = {0};

	if (r->t->session.status == STATUS_QUEUED)
		nothing(r, "queued", "waits to be started: %s", r->t->session.reason);
	else if (attempts_read_place(r->run_fd, &a, &e) == 0 && a.has_place && is_worker(&a))
		nothing(r, "alive", "is alive (worker process %d)", (int)a.worker.pid);
	else
		nothing(r, "alive", "is alive (its worker is starting)");
	attempts_clear(&a);
	return 0;
}

/* The lock is free, but the row does not know it yet. Whoever watched the worker knows how it ended
 * and gets the time to say so; then it is written here. */
static int
store_death(struct resuming *r, struct err *e)
{
	int64_t until = clock_monotonic_ns() + VERDICT_MS * NS_PER_MS;

	while (!status_is_terminal(r->t->session.status) && clock_monotonic_ns() < until) {
		usleep(VERDICT_LOOK_MS * 1000);
		if (target_reload(r->t, e) != 0)
			return -1;
	}
	if (status_is_terminal(r->t->session.status))
		return 0;
	r->lock_fd = run_lock_take(r->run_fd, RUN_LOCK_OVER_MS, e);
	if (r->lock_fd < 0)
		return -1;
	if (session_transition(r->t->store, r->t->session.run_id, STATUS_CRASHED,
		"run.crashed.unknown", NULL, -1, NULL, e) != 0)
		return -1;
	fd_close(&r->lock_fd);
	return target_reload(r->t, e);
}

/* It needs no resume, but perhaps a push; with --wait it is waited for all the same. */
static int
resume_live(struct resuming *r, struct err *e)
{
	const struct session *s = &r->t->session;
	int rc;

	if (s->status == STATUS_QUEUED && strcmp(s->reason_code, "run.queued.environment") == 0)
		rc = supply(r, e);
	else
		rc = s->status == STATUS_PAUSED ? resume_paused(r, e) : still_alive(r);
	return rc == 0 ? resuming_follow_live(r, e) : rc;
}

static bool
worker_lives(const struct resuming *r)
{
	struct attempts a = {0};
	struct err e = {0};
	bool lives = attempts_read_place(r->run_fd, &a, &e) != 0 || !a.has_place || proc_is_alive(a.worker);

	attempts_clear(&a);
	return lives;
}

/* A worker that was killed has its lock for a moment yet, and so has a child that has not executed its
 * program: neither is a run that lives. */
static int
look_at_lock(const struct resuming *r, bool *held, struct err *e)
{
	int64_t until = clock_monotonic_ns() + RUN_LOCK_OVER_MS * NS_PER_MS;
	int rc;

	while ((rc = run_lock_held(r->run_fd, held, e)) == 0 && *held && !worker_lives(r) &&
	    clock_monotonic_ns() < until)
		usleep(VERDICT_LOOK_MS * 1000);
	return rc == 0 ? 0 : seek_damaged_for_good(&r->t->session, e);
}

static int
resume_by_status(struct resuming *r, struct err *e)
{
	bool held = false;

	if (target_check_own(r->c, &r->t->home, &r->t->session, e) != 0)
		return -1;
	if (r->t->session.status == STATUS_QUEUED)
		return resume_live(r, e);
	if (!status_is_terminal(r->t->session.status)) {
		if (look_at_lock(r, &held, e) != 0)
			return -1;
		if (held)
			return resume_live(r, e);
		if (cli_flag(r->c, "dry-run"))
			return resume_dead(r, e);
		if (check_place(r, e) != 0)
			return -1;
		if (store_death(r, e) != 0)
			return -1;
	}
	if (r->t->session.status == STATUS_COMPLETED)
		return nothing(r, "completed", "has completed: there is nothing to resume");
	return resume_dead(r, e);
}

/* ---- Which run is meant ---- */

static int
resume_run(struct cli *c, struct target *t, struct err *e)
{
	struct resuming r = {.c = c, .t = t, .has_home = true, .run_fd = -1, .lock_fd = -1,
	    .by_policy = cli_flag(c, "by-policy")};
	int rc = resuming_take_session(&r, e);

	if (rc == 0)
		rc = resume_by_status(&r, e);
	resuming_clear(&r);
	return rc;
}

static int
resume_directory(struct cli *c, struct target *t, const char *path, struct err *e)
{
	struct resuming r = {
	    .c = c, .t = t, .has_home = t->home.path != NULL, .run_fd = -1, .lock_fd = -1,
	    .by_policy = cli_flag(c, "by-policy")};
	char run_id[RUN_ID_TEXT];
	int rc = resuming_elsewhere(&r, path, run_id, e);

	if (rc == 1)
		rc = resume_examined(&r, e);
	else if (rc == 0)
		rc = target_find(t, run_id, e) == 0 ? resume_run(c, t, e) : -1;
	resuming_clear(&r);
	return rc;
}

static bool
is_path(const char *operand)
{
	struct stat st;

	return strchr(operand, '/') != NULL || (stat(operand, &st) == 0 && S_ISDIR(st.st_mode));
}

/* What goes on from a directory needs none: it would be made. */
static int
open_without_database(const struct cli *c, struct target *t)
{
	struct err ignored = {0};

	if (home_open(c->home, false, &t->home, &ignored) != 0)
		return -1;
	if (target_lost_database(&t->home, &ignored))
		return 0;
	home_close(&t->home);
	*t = (struct target){0};
	return -1;
}

/* A checkpoint from elsewhere may be the first thing that this state directory gets. */
static int
open_target(struct cli *c, bool create, bool dry, struct target *t, struct err *e)
{
	*t = (struct target){0};
	if (!create && target_open(c, t, e) == 0)
		return 0;
	if (!create)
		return dry && e->code == ERR_IO ? open_without_database(c, t) : -1;
	if (home_open(c->home, true, &t->home, e) != 0)
		return -1;
	if (store_open(&t->home, STORE_COMMAND, true, STORE_BUSY_MS, &t->store, e) == 0)
		return 0;
	home_close(&t->home);
	*t = (struct target){0};
	return -1;
}

/* ---- All that crashed ---- */

struct crashed {
	char (*ids)[RUN_ID_TEXT];
	size_t count, cap;
};

static int
add_crashed(void *arg, const struct session *s)
{
	struct crashed *all = arg;
	size_t cap = all->cap > 0 ? all->cap * 2 : 16;
	char (*ids)[RUN_ID_TEXT];

	if (s->resumed_as_run[0] != '\0')
		return 0;
	if (all->count == all->cap) {
		ids = reallocarray(all->ids, cap, sizeof(*ids));
		if (ids == NULL)
			return 1;
		all->ids = ids;
		all->cap = cap;
	}
	strlcpy(all->ids[all->count++], s->run_id, RUN_ID_TEXT);
	return 0;
}

/* One that cannot go on does not keep the others from it; the last one's status is the command's. */
static int
resume_each(struct cli *c, struct target *t, const struct crashed *all, struct err *e)
{
	int status = 0, rc;
	size_t i;

	for (i = 0; i < all->count; i++) {
		err_clear(e);
		rc = target_find(t, all->ids[i], e) == 0 ? resume_run(c, t, e) : -1;
		if (rc < 0) {
			cli_print_error(e, c->json);
			rc = err_exit_status(e->code);
		}
		status = rc != 0 ? rc : status;
	}
	err_clear(e);
	return status;
}

static int
resume_crashed(struct cli *c, struct target *t, struct err *e)
{
	const struct session_filter f = {
	    .statuses = {STATUS_CRASHED}, .nstatuses = 1, .oldest_first = true};
	struct crashed all = {0};
	int rc = session_list(t->store, &f, add_crashed, &all, e);

	if (rc == 0 && all.count == 0)
		cli_note("no run waits to be resumed after a crash");
	if (rc == 0)
		rc = resume_each(c, t, &all, e);
	free(all.ids);
	return rc;
}

/* ---- The command ---- */

/* What else was given stands in the hint. */
static int
refuse_operands(const struct cli *c, struct err *e)
{
	err_set(e, ERR_USAGE, "resume: --all-crashed takes no operand");
	return cli_hint_alone(c, NULL, NULL, e);
}

static int
check_usage(const struct cli *c, struct err *e)
{
	bool all = cli_flag(c, "all-crashed");

	if (cli_flag(c, "retry-failed") && cli_flag(c, "keep-failed"))
		return err_set(e, ERR_USAGE, "--retry-failed and --keep-failed exclude each other");
	if (all && c->noperands > 0)
		return refuse_operands(c, e);
	if (all && cli_flag(c, "wait"))
		return err_set(e, ERR_USAGE, "resume: --all-crashed and --wait exclude each other");
	if (cli_flag(c, "events") && !cli_flag(c, "wait")) {
		err_set(e, ERR_USAGE, "resume: --events goes with --wait");
		return cli_hint_with(c, "--wait", e);
	}
	if (all || c->noperands == 1)
		return 0;
	err_set(e, ERR_USAGE, "resume: which run is missing");
	return cli_hint_with(c, "@last", e);
}

/* A run whose row went with its database still has its directory. */
static int
no_session(const struct target *t, const char *id, struct err *e)
{
	char path[PATH_MAX], word[SHELL_WORD_TEXT];

	if (e->code != ERR_NOTFOUND || !run_id_is_valid(id) ||
	    faccessat(t->home.runs_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	err_set(e, ERR_NOTFOUND, "run %s has a directory, and no session in the database", id);
	snprintf(path, sizeof(path), "%s/" HOME_RUNS "/%s", t->home.path, id);
	return err_hint(e, "flowsup resume %s", shell_word(word, path));
}

static int
resume_operand(struct cli *c, struct target *t, struct err *e)
{
	const char *operand = c->operands[0];

	if (is_path(operand))
		return resume_directory(c, t, operand, e);
	return target_find(t, operand, e) == 0 ? resume_run(c, t, e) : no_session(t, operand, e);
}

static int
run(struct cli *c, struct err *e)
{
	bool dry = cli_flag(c, "dry-run"), path = c->noperands > 0 && is_path(c->operands[0]);
	struct target t;
	int rc;

	if (check_usage(c, e) != 0)
		return -1;
	if (cli_flag(c, "all-crashed")) {
		rc = target_open_any(c, &t, e);
		if (rc != 0)
			return rc < 0 ? -1 : 0;
	} else if (open_target(c, path && !dry, path && dry, &t, e) != 0 && !(path && e->code == ERR_NOTFOUND))
		return -1;
	err_clear(e);
	if (!dry && t.store != NULL)
		target_wake(&t);
	rc = cli_flag(c, "all-crashed") ? resume_crashed(c, &t, e) : resume_operand(c, &t, e);
	target_close(&t);
	return rc;
}

const struct command cmd_resume = {
    .name = "resume",
    .group = CLI_GROUP_START,
    .synopsis = "RUN [OPTION]...\n--all-crashed [OPTION]...",
    .summary = "make a run that crashed, failed or was stopped go on",
    .examples = examples,
    .options = options,
    .details = "What completed is replayed, the rest runs in a new run. A resume that would\n"
	       "not be faithful is refused, with the option that allows each deviation.",
    .max_operands = 1,
    .operands = "resumable",
    .json = true,
    .run = run,
};
