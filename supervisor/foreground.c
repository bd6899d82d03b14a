#include "foreground.h"

#include <unistd.h>

#include "daemon.h"
#include "flowsup/clock.h"
#include "flowsup/endops.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "follow.h"

/* ---- In the daemon ---- */

static int
fail_start(struct daemon *d, const char *run_id, struct err *e)
{
	struct err ignored = {0};

	(void)session_transition(d->store, run_id, STATUS_FAILED, reason_of_failed_start(e), e->msg, -1,
	    NULL, &ignored);
	return -1;
}

int
foreground_begin(struct daemon *d, struct err *e)
{
	struct foreground *f = d->options.only;
	char place[PROC_PLACE_TEXT];
	struct proc_failure failure;
	struct session s;
	bool moved = false;
	int run_fd, rc;

	if (f->values_fd >= 0 && secrets_put(d, f->run_id, f->values_fd, e) != 0)
		return -1;
	proc_place_text(&d->here, place);
	if (session_starting(d->store, f->run_id, place, &moved, e) != 0)
		return -1;
	if (!moved)
		return err_set(e, ERR_REFUSED, "run %s was ended before it started", f->run_id);
	run_fd = rundir_open(&d->home, f->run_id, e);
	if (run_fd < 0)
		return fail_start(d, f->run_id, e);
	rc = worker_start(d, f->run_id, run_fd, f->lock_fd, &failure, e);
	fd_close(&run_fd);
	if (rc != 0)
		return fail_start(d, f->run_id, e);
	worker_let_go(worker_find(d, f->run_id));
	if (session_read(d->store, f->run_id, &s, e) == 0) {
		watchdog_set(worker_find(d, f->run_id), s.policy);
		session_clear(&s);
	}
	return 0;
}

void
foreground_signal(struct daemon *d, int sig)
{
	struct foreground *f = d->options.only;
	bool now = f->signals++ > 0;

	log_line(LOG_WARNING, "%s: run %s %s", proc_signal_name(sig), f->run_id,
	    now ? "is ended now" : "starts nothing more; once more ends what runs");
	stop_all_run(d, f->run_id, now);
}

bool
foreground_is_over(const struct daemon *d)
{
	return d->workers.count == 0 && daemon_is_quiet(d) && errands_count(d) == 0;
}

/* ---- The command ---- */

/* The policy of orphans is "end" here: nothing outlives this process. */
static int
end_operations(const struct home *h, const struct session *s, struct err *e)
{
	struct endops_result r = {0};
	struct attempts a = {0};
	struct buf text = {0};
	const struct endops_request q = {.home = h,
	    .run_id = s->run_id,
	    .session_id = s->session_id,
	    .attempts = &a,
	    .grace_most_ns = -1,
	    .class = "cancelled"};
	int run_fd = rundir_open(h, s->run_id, e), rc = -1;

	if (run_fd >= 0)
		rc = attempts_read(run_fd, &a, e);
	if (rc == 0)
		rc = endops_run(&q, &r, e);
	if (rc == 0 && json_length(r.left) > 0) {
		endops_tell_left(&r, &text);
		cli_note("run %s: not everything could be ended: %s", s->run_id, buf_text(&text));
	}
	buf_clear(&text);
	endops_clear(&r);
	attempts_clear(&a);
	fd_close(&run_fd);
	return rc;
}

static int
tell_end(const struct home *h, const char *home_option, const struct session *s, struct err *e)
{
	struct output display;

	if (s->status == STATUS_CRASHED && end_operations(h, s, e) != 0)
		return -1;
	if (!status_is_terminal(s->status))
		return err_set(e, ERR_INTERNAL, "run %s has no end: it is %s", s->run_id,
		    status_word(s->status));
	out_init(&display, STDERR_FILENO);
	follow_say_end(&display, h, home_option, s);
	(void)out_end(&display, &(struct err){0});
	return status_exit(s->status, s->reason_code);
}

static int
read_end(const struct home *h, const char *home_option, const char *run_id, struct err *e)
{
	struct store *store = NULL;
	struct session s;
	int rc = store_open(h, STORE_COMMAND, false, STORE_BUSY_MS, &store, e);

	if (rc == 0)
		rc = session_read(store, run_id, &s, e);
	store_close(store);
	if (rc != 0)
		return -1;
	rc = tell_end(h, home_option, &s, e);
	session_clear(&s);
	return rc;
}

int
foreground_run(const struct cli *c, const struct home *h, struct foreground *f, struct err *e)
{
	const struct daemon_options o = {
	    .home = c->home, .foreground = true, .ready_fd = -1, .handover_fd = -1, .only = f};

	return daemon_main(&o, e) == 0 ? read_end(h, c->home, f->run_id, e) : -1;
}
