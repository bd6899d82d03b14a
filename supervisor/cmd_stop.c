/* stop: no further operation starts. A row for a live run; at once where there is no worker. */
#include "cli.h"
#include "client.h"
#include "ctl.h"
#include "flowsup/fs.h"
#include "leftover.h"
#include "output.h"
#include "paste.h"
#include "seek.h"
#include "target.h"

enum { LOCK_MS = 1000, TRIES = 5, AGAIN = 1 /* not an exit status of a control: 0, 3, 4 */ };

static const char *const examples[] = {
    "flowsup stop @last               # what runs ends by itself, no more starts",
    "flowsup stop @last --now         # what runs is ended too",
    "flowsup stop @last --now --wait  # until the worker has taken it",
    NULL};

static const struct cli_option options[] = {
    {.name = "drain", .kind = CLI_FLAG, .help = "let running operations end (the default)"},
    {.name = "now", .kind = CLI_FLAG, .help = "end running operations: TERM, grace, KILL"},
    CTL_WAIT_OPTION,
    CLI_END};

static void
say_done(struct cli *c, const struct session *s, const char *text)
{
	if (c->json)
		out_json(c->out, json_set(json_set(json_object(), "run", json_cstr(s->run_id)),
		    "done", json_cstr(text)));
	else
		cli_note("run %s: %s", s->run_id, text);
}

/* 0 done, AGAIN: it has just been started. The row decides: whoever changes it first wins. */
static int
cancel_queued(struct cli *c, struct target *t, int run_fd, struct err *e)
{
	bool moved = false;

	if (leftover_end_all(&t->home, &t->session, run_fd, e) != 0)
		return -1;
	if (session_transition(t->store, t->session.run_id, STATUS_CANCELLED, "run.cancelled.queued",
		NULL, -1, &moved, e) != 0)
		return -1;
	if (!moved)
		return AGAIN;
	/* Others may have waited for it, and somebody may want to be told. */
	client_mention(&t->home, t->session.run_id);
	say_done(c, &t->session, "cancelled before it was started");
	return 0;
}

/* With its lock, so that it is not started meanwhile; one without its files cannot be. */
static int
stop_queued(struct cli *c, struct target *t, struct err *e)
{
	struct err why = {0};
	int run_fd = rundir_open(&t->home, t->session.run_id, &why), lock = -1, rc;

	if (run_fd >= 0)
		lock = run_lock_take(run_fd, LOCK_MS, &why);
	if (lock < 0 && why.code == ERR_BUSY)
		rc = AGAIN;
	else if ((rc = target_reload(t, e)) == 0)
		rc = t->session.status == STATUS_QUEUED ? cancel_queued(c, t, run_fd, e) : AGAIN;
	fd_close(&lock);
	fd_close(&run_fd);
	return rc;
}

static int
stop_live(struct cli *c, struct target *t, struct err *e)
{
	struct json *payload = json_set(json_object(), "mode",
	    json_cstr(cli_flag(c, "now") ? "now" : "drain"));

	return payload != NULL ? ctl_send(c, t, "stop", payload, e) : err_nomem(e);
}

static int
tell_ended(struct cli *c, struct target *t, const struct endops_result *r, struct err *e)
{
	struct buf text = {0};

	if (leftover_check(&t->session, r, e) != 0)
		return -1;
	if (r->found > 0) {
		say_done(c, &t->session, "its operations were ended; it can still be resumed");
		return 0;
	}
	err_set(e, ERR_REFUSED, "run %s has crashed, and nothing of it runs", t->session.run_id);
	paste_resume(&text, &t->home, c->home, &t->session);
	cli_hint_whole(c, &text, e);
	buf_clear(&text);
	return -1;
}

/* With the run's lock, so that no resume takes up meanwhile what is being ended. */
static int
end_operations(struct cli *c, struct target *t, int run_fd, struct err *e)
{
	struct endops_result r = {0};
	int lock = run_lock_take(run_fd, LOCK_MS, e), rc;

	if (lock < 0 && e->code == ERR_NOTFOUND) {
		seek_damaged(&t->session, e);
		return err_hint(e, "flowsup kill %s", t->session.run_id);
	}
	if (lock < 0)
		return -1;
	rc = leftover_end(&t->home, &t->session, run_fd, NULL, &r, e);
	if (rc == 0)
		rc = tell_ended(c, t, &r, e);
	endops_clear(&r);
	fd_close(&lock);
	return rc;
}

/* What waited for its automatic resume ends here; that nothing of it runs is no refusal then. */
static int
stop_crashed(struct cli *c, struct target *t, struct err *e)
{
	bool gave_up = false;
	int run_fd, rc;

	if (session_give_up(t->store, t->session.run_id, "it was stopped", &gave_up, e) != 0)
		return -1;
	run_fd = seek_rundir(&t->home, &t->session, e);
	if (run_fd < 0)
		return err_hint(e, "flowsup kill %s", t->session.run_id);
	rc = end_operations(c, t, run_fd, e);
	fd_close(&run_fd);
	if (!gave_up || (rc != 0 && e->code != ERR_REFUSED))
		return rc;
	err_clear(e);
	say_done(c, &t->session, "it is not resumed by itself any more");
	return 0;
}

/* One try; AGAIN when the status changed under it. */
static int
try_stop(struct cli *c, struct target *t, struct err *e)
{
	enum run_status before = t->session.status;
	int rc;

	if (target_check_own(c, &t->home, &t->session, e) != 0)
		return -1;
	if (before == STATUS_QUEUED)
		return stop_queued(c, t, e);
	if (before == STATUS_CRASHED)
		return stop_crashed(c, t, e);
	if (status_is_terminal(before))
		return err_set(e, ERR_REFUSED, "run %s has already ended: %s", t->session.run_id,
		    status_word(before));
	rc = stop_live(c, t, e);
	if (rc >= 0 || e->code != ERR_REFUSED)
		return rc;
	if (target_reload(t, &(struct err){0}) != 0 || t->session.status == before)
		return -1;
	err_clear(e);
	return AGAIN;
}

static int
run(struct cli *c, struct err *e)
{
	struct target t;
	unsigned i;
	int rc = AGAIN;

	if (cli_flag(c, "drain") && cli_flag(c, "now"))
		return err_set(e, ERR_USAGE, "stop: --drain and --now exclude each other");
	if (target_of(c, c->operands[0], true, &t, e) != 0)
		return -1;
	for (i = 0; i < TRIES && rc == AGAIN; i++) {
		rc = try_stop(c, &t, e);
		if (rc == AGAIN && target_reload(&t, e) != 0)
			rc = -1;
	}
	if (rc == AGAIN)
		rc = err_set(e, ERR_BUSY, "run %s changes its status all the time", t.session.run_id);
	/* The request itself needs room; what needs none is there, too. */
	if (rc < 0 && (e->code == ERR_NOSPACE || ((e->code == ERR_UNCERTAIN || e->code == ERR_IO) && e->hint[0] == '\0')))
		err_advice(e, "%send it without a record: flowsup kill %s",
		    e->code == ERR_NOSPACE ? "make room, or " : "", t.session.run_id);
	target_close(&t);
	return rc;
}

const struct command cmd_stop = {
    .name = "stop",
    .also = "ctl stop",
    .group = CLI_GROUP_STEER,
    .synopsis = "RUN [--drain | --now] [--wait[=TIME]]",
    .summary = "end a run before its work is done",
    .examples = examples,
    .options = options,
    .details = "A queued run is cancelled at once. Of a crashed run the operations that\n"
	       "still run are ended. A stopped run can be resumed.",
    .min_operands = 1,
    .max_operands = 1,
    .operands = "live",
    .json = true,
    .this_run = true,
    .run = run,
};
