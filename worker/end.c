/*
 * `--end`: ends operations of a run whose worker is dead, for its supervisor, which must not wait:
 * because a limit of one has passed, or nobody resumed the run in the time that it is kept for. With
 * the run's lock and after another look at its row: a run that was resumed meanwhile has somebody
 * else who sees to it.
 */
#include "end.h"

#include <fcntl.h>

#include "flowsup/endops.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "flowsup/store.h"

static int
read_flow(int run_fd, struct flow **out, struct err *e)
{
	const struct json_options o = {.max_bytes = JSON_MAX_LINE};
	struct json *document = NULL;
	struct buf text = {0};
	int rc = fs_read_private_file(run_fd, RUN_FLOW, JSON_MAX_LINE, &text, e);

	if (rc == 0)
		rc = json_parse(buf_view(&text), &o, &document, NULL, e);
	if (rc == 0)
		rc = flow_from_document(document, out, e);
	json_unref(document);
	buf_clear(&text);
	return rc;
}

static void
tell(const struct end_arguments *a, const struct endops_result *r)
{
	struct buf text = {0};

	log_line(LOG_INFO, "run %s: %u process%s of %s %s ended (%s), %u by SIGKILL", a->run_id,
	    r->found, r->found == 1 ? "" : "es", a->op != NULL ? a->op : "its operations", r->found == 1 ? "was" : "were",
	    a->class, r->killed);
	if (json_length(r->left) > 0) {
		endops_tell_left(r, &text);
		log_line(LOG_WARNING, "run %s: it could not be proved that nothing is left: %s",
		    a->run_id, buf_text(&text));
	}
	buf_clear(&text);
}

static int
end(const struct end_arguments *a, const struct home *h, const struct session *s, int run_fd,
    struct err *e)
{
	struct endops_request q = {.home = h, .run_id = a->run_id, .session_id = s->session_id,
	    .only = a->op, .grace_most_ns = -1, .class = a->class};
	struct endops_result r = {0};
	struct attempts attempts = {0};
	struct flow *flow = NULL;
	int rc;

	/* Without it, what an operation may leave is not known; then nothing may. */
	if (read_flow(run_fd, &flow, &(struct err){0}) != 0)
		flow = NULL;
	rc = attempts_read(run_fd, &attempts, e);
	q.attempts = &attempts;
	q.flow = flow;
	if (rc == 0)
		rc = endops_run(&q, &r, e);
	if (rc == 0)
		tell(a, &r);
	endops_clear(&r);
	attempts_clear(&attempts);
	flow_free(flow);
	return rc == 0 ? END_DONE : END_FAILED;
}

/* Under its lock a run that should have a worker has none: its crash could not be recorded yet. A resume in the queue
 * has what outlived its predecessor's worker. */
static bool
is_ours(const struct session *s)
{
	if (s->resumed_as_run[0] != '\0')
		return false;
	return s->status == STATUS_QUEUED ? s->resumed_from_run[0] != '\0'
					  : s->status == STATUS_CRASHED || !status_is_terminal(s->status);
}

static int
end_locked(const struct end_arguments *a, const struct home *h, int run_fd, struct err *e)
{
	struct session s = {0};
	struct store *store;
	int rc = END_FAILED;

	if (store_open(h, STORE_COMMAND, false, STORE_BUSY_MS, &store, e) != 0)
		return e->code == ERR_BUSY ? END_LATER : END_FAILED;
	if (session_read(store, a->run_id, &s, e) == 0)
		rc = is_ours(&s) ? end(a, h, &s, run_fd, e) : END_RESUMED;
	else if (e->code == ERR_BUSY)
		rc = END_LATER;
	session_clear(&s);
	store_close(store);
	return rc;
}

int
end_main(const struct end_arguments *a)
{
	struct home h = {.fd = -1, .runs_fd = -1};
	struct err e = {0};
	int run_fd = -1, lock = -1, rc = END_FAILED;

	if (home_open(a->home, false, &h, &e) == 0)
		run_fd = rundir_open(&h, a->run_id, &e);
	if (run_fd >= 0)
		lock = a->lock_fd >= 0 && fcntl(a->lock_fd, F_SETFD, FD_CLOEXEC) == 0
		    ? a->lock_fd
		    : run_lock_take(run_fd, END_LOCK_MS, &e);
	if (lock >= 0)
		rc = end_locked(a, &h, run_fd, &e);
	else if (run_fd >= 0 && e.code == ERR_BUSY)
		rc = END_LATER;
	if (rc == END_FAILED)
		log_line(LOG_ERROR, "run %s: its operations cannot be ended: %s", a->run_id, e.msg);
	fd_close(&lock);
	fd_close(&run_fd);
	home_close(&h);
	return rc;
}
