/* Rows in the mailbox of a run: pause, ctl resume, ctl status. */
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "client.h"
#include "ctl.h"
#include "flowsup/clock.h"
#include "mailbox.h"
#include "output.h"
#include "paste.h"
#include "render.h"
#include "target.h"
#include "view.h"

/*
 * A live worker answers in milliseconds, and within 2 s where nothing woke it: so long its verdict is waited
 * for where nobody said --wait. The looks for it begin close together.
 */
enum { VERDICT_MS = 2500, LOOK_FIRST_MS = 2, LOOK_MS = 50 };
#define NOT_WAITING "rejected:not-waiting" /* a verdict that nothing waits for */
#define NO_TAKER "rejected:no-pending-ops" /* a message, with words where an operation was named */

/* ---- Sending one ---- */

static const struct cli_option send_options[] = {
    CTL_WAIT_OPTION,
    CLI_END};

/* Where a control stands: its row, and the run that it hangs on. */
struct standing {
	struct json *control;
	const char *state; /* of it */
	bool open, dead; /* no outcome yet; none will come by itself */
};

/* It went over to the run that resumed its run. */
static int
go_along(struct target *t, const char *id, const char *run_id, struct err *e)
{
	cli_note("control %.8s goes on with run %s, which resumed %s", id, run_id, t->session.run_id);
	return target_find(t, run_id, e);
}

/*
 * The run is read before the row: then an end of the run has what became of the row before it. What a
 * dead worker has claimed stays as it is.
 */
static int
look_at(struct target *t, const char *id, struct standing *to, struct err *e)
{
	char run_id[RUN_ID_TEXT];
	struct control c;
	bool moved;

	do {
		if (target_reload(t, e) != 0 || control_read(t->store, id, &c, run_id, e) != 0)
			return -1;
		moved = strcmp(run_id, t->session.run_id) != 0;
		to->control = moved ? NULL : mailbox_control(&c, &t->session, NULL);
		control_clear(&c);
		if (moved && go_along(t, id, run_id, e) != 0)
			return -1;
	} while (moved);
	if (to->control == NULL)
		return err_nomem(e);
	to->state = render_member(to->control, "state");
	to->dead = strcmp(to->state, "claimed") == 0 && status_is_terminal(t->session.status);
	to->open = !to->dead &&
	    (strcmp(to->state, "queued") == 0 || strcmp(to->state, "claimed") == 0);
	return 0;
}

static int
tell_rejected(const char *id, const char *result, const char *run_id, struct err *e)
{
	err_set(e, ERR_REFUSED, "control %.8s: %s%s", id, result, strcmp(result, NO_TAKER) == 0
	    ? ": no operation of the run that takes messages is still to start" : "");
	if (strncmp(result, NO_TAKER, strlen(NO_TAKER)) == 0)
		return err_hint(e, "flowsup show %s   # its operations", run_id);
	return strncmp(result, NOT_WAITING, strlen(NOT_WAITING)) == 0
	    ? err_hint(e, "flowsup waiting   # what waits now, and the commands that answer") : -1;
}

/* The outcome as the exit status has it. */
static int
tell_outcome(struct cli *c, const char *id, struct standing *at, struct err *e)
{
	const char *result = render_member(at->control, "result");

	if (at->open)
		return err_set(e, ERR_RUNNING, "control %.8s: %s; nothing more is known in that time", id,
		    at->state);
	if (at->dead) {
		err_set(e, ERR_RUNNING, "control %.8s: the worker of run %s died after it had claimed it: whether it "
		    "took effect is not known, and nobody applies it again", id,
		    render_member(at->control, "run"));
		return err_hint(e, "flowsup ctl resolve %.8s --as abandoned   # or: --as applied", id);
	}
	if (strncmp(result, "applied", strlen("applied")) != 0) {
		return tell_rejected(id, result[0] != '\0' ? result : at->state, render_member(at->control, "run"), e);
	}
	if (!c->json)
		cli_note("%s for run %s: %s", render_member(at->control, "verb"),
		    render_member(at->control, "run"), result);
	return 0;
}

/* Why a control is not carried out at once; NULL when a live worker does that. */
static const char *
why_later(const struct session *s, const char *verb)
{
	if (s->status == STATUS_QUEUED)
		return "it takes effect when the run is started";
	if (status_is_terminal(s->status))
		return "it waits for the run that resumes this one";
	if (strcmp(s->kind, "agent") == 0 && strcmp(verb, "message") == 0)
		return "its agent gets it with its next turn";
	return NULL;
}

/*
 * Returns when it has come to something, or at `until` (0: without end); where `live` says that verb also as
 * soon as no live worker will do it at once. *at owns its row.
 */
static int
wait_for_it(struct target *t, const char *id, int64_t until, const char *live, struct standing *at,
    struct err *e)
{
	int look_ms = LOOK_FIRST_MS;

	for (;; look_ms = look_ms < LOOK_MS / 2 ? look_ms * 2 : LOOK_MS) {
		if (look_at(t, id, at, e) != 0)
			return -1;
		if (!at->open || (until != 0 && clock_monotonic_ns() >= until) ||
		    (live != NULL && why_later(&t->session, live) != NULL))
			return 0;
		json_unref(at->control);
		at->control = NULL;
		usleep((useconds_t)look_ms * 1000);
	}
}

static int
follow_control(struct cli *c, struct target *t, const char *id, int64_t until, struct err *e)
{
	struct standing at = {0};
	int r = wait_for_it(t, id, until, NULL, &at, e);

	if (r == 0 && c->json)
		out_json(c->out, json_ref(at.control));
	if (r == 0)
		r = tell_outcome(c, id, &at, e);
	json_unref(at.control);
	return r;
}

/* Accepted, and nothing more is known yet. */
static void
tell_accepted(const struct target *t, const char *verb)
{
	const char *why = why_later(&t->session, verb);

	cli_note("%s queued for run %s: %s", verb, t->session.run_id,
	    why != NULL ? why : "its worker has not answered yet");
	cli_hint("flowsup ctl status %s", t->session.run_id);
}

static void
show_sent(struct cli *c, const struct target *t, const char *id, const struct standing *at)
{
	struct json *o = json_object();
	const struct json *result = at->control != NULL ? json_get(at->control, "result") : NULL;

	o = json_set(o, "id", json_cstr(id));
	o = json_set(o, "run", json_cstr(t->session.run_id));
	o = json_set(o, "state", json_cstr(at->control != NULL ? at->state : "queued"));
	o = json_set(o, "result", result != NULL ? json_ref(result) : json_null());
	out_json(c->out, o);
}

/*
 * The row stands, whatever comes of the looks for its outcome: a failure to read it changes no status.
 */
static int
tell_verdict(struct cli *c, struct target *t, const char *verb, const char *id, struct err *e)
{
	int64_t until = clock_monotonic_ns() + VERDICT_MS * NS_PER_MS;
	struct standing at = {0};
	struct err unread = {0};
	int r = 0;

	store_set_busy(t->store, VERDICT_MS);
	if (wait_for_it(t, id, until, verb, &at, &unread) != 0)
		at = (struct standing){.open = true};
	store_set_busy(t->store, STORE_BUSY_MS);
	if (c->json)
		show_sent(c, t, id, &at);
	else if (at.open)
		tell_accepted(t, verb);
	if (!at.open)
		r = tell_outcome(c, id, &at, e);
	json_unref(at.control);
	return r;
}

/* Who waits only so long does not wait longer for the database. */
static int
insert(struct target *t, const char *verb, struct json *payload, int64_t limit, char id[UUID_TEXT],
    struct err *e)
{
	int64_t most = STORE_BUSY_MS * NS_PER_MS, least = LOOK_MS * NS_PER_MS;
	int rc;

	if (limit >= 0 && limit < most)
		store_set_busy(t->store, (int)((limit > least ? limit : least) / NS_PER_MS));
	rc = control_insert(t->store, t->session.run_id, verb, payload, id, e);
	store_set_busy(t->store, STORE_BUSY_MS);
	return rc == 0 || e->code != ERR_BUSY ? rc : err_wrap(e, "nothing was queued for run %s",
	    t->session.run_id);
}

/* One that takes nothing any more goes on as another. */
static int
hint_resume(const struct cli *c, struct target *t, struct err *e)
{
	struct buf command = {0};

	if (err_has_hint(e) || target_reload(t, &(struct err){0}) != 0 || !view_is_resumable(&t->session) ||
	    session_is_restarting(&t->session))
		return -1;
	paste_resume(&command, &t->home, c->home, &t->session);
	cli_hint_whole(c, &command, e);
	buf_clear(&command);
	return -1;
}

int
ctl_send(struct cli *c, struct target *t, const char *verb, struct json *payload, struct err *e)
{
	int64_t limit = cli_int(c, "wait", -1), until = limit < 0 ? 0 : clock_monotonic_ns() + limit;
	char id[UUID_TEXT];
	struct err poked = {0};

	if (target_check_own(c, &t->home, &t->session, e) != 0 || target_check_seen(c, t, e) != 0) {
		json_unref(payload);
		return -1;
	}
	if (insert(t, verb, payload, limit, id, e) != 0)
		return e->code == ERR_REFUSED && strcmp(verb, "stop") != 0 ? hint_resume(c, t, e) : -1;
	/* The row is the request. The message only makes it fast, so that its failure changes nothing. */
	(void)client_poke(&t->home, t->session.run_id, &poked);
	if (!cli_flag(c, "wait"))
		return tell_verdict(c, t, verb, id, e);
	if (c->json)
		out_json(c->out, json_set(json_set(json_object(), "id", json_cstr(id)), "run",
		    json_cstr(t->session.run_id)));
	else
		cli_note("%s queued for run %s", verb, t->session.run_id);
	out_flush(c->out);
	return follow_control(c, t, id, until, e);
}

static int
send_verb(struct cli *c, const char *verb, struct err *e)
{
	struct target t;
	int r;

	if (target_of(c, c->operands[0], true, &t, e) != 0)
		return -1;
	r = ctl_send(c, &t, verb, NULL, e);
	target_close(&t);
	return r;
}

static int
run_pause(struct cli *c, struct err *e)
{
	return send_verb(c, "pause", e);
}

static int
run_resume(struct cli *c, struct err *e)
{
	return send_verb(c, "resume", e);
}

static const char *const pause_examples[] = {
    "flowsup pause @last                # what runs goes on, nothing new is started",
    "flowsup ctl resume @last           # opens the gate again",
    "flowsup pause @last --wait=5s      # until the gate is closed",
    NULL};

const struct command cmd_pause = {
    .name = "pause",
    .also = "ctl pause",
    .group = CLI_GROUP_STEER,
    .synopsis = "RUN [--wait[=TIME]]",
    .summary = "start nothing more for now",
    .examples = pause_examples,
    .options = send_options,
    .min_operands = 1,
    .max_operands = 1,
    .operands = "run",
    .json = true,
    .this_run = true,
    .run = run_pause,
};

static const char *const resume_examples[] = {
    "flowsup ctl resume @last           # a paused run goes on", NULL};

const struct command cmd_ctl_resume = {
    .name = "ctl resume",
    .group = CLI_GROUP_STEER,
    .synopsis = "RUN [--wait[=TIME]]",
    .summary = "open the gate of a paused run",
    .examples = resume_examples,
    .options = send_options,
    .details = "A run that crashed or was stopped is resumed by: flowsup resume RUN",
    .min_operands = 1,
    .max_operands = 1,
    .operands = "run",
    .json = true,
    .this_run = true,
    .run = run_resume,
};

/* ---- ctl status ---- */

static void
add_row(struct table *t, const struct json *c)
{
	char age[DURATION_TEXT];
	const char *state = render_member(c, "state");
	bool open = strcmp(state, "queued") == 0 || strcmp(state, "claimed") == 0;
	struct buf asked = {0};

	render_asked(c, &asked);
	render_asker(c, &asked);
	table_printf(t, OUT_PLAIN, "%.8s", render_member(c, "id"));
	table_text(t, OUT_PLAIN, buf_text(&asked));
	buf_clear(&asked);
	table_text(t, open ? OUT_WARN : OUT_PLAIN, state);
	table_text(t, OUT_PLAIN, render_seconds(render_age(c, "created_at"), age));
	table_text(t, OUT_PLAIN, render_member(c, "owner"));
	table_text(t, OUT_PLAIN, render_member(c, "result"));
}

static void
print_controls(struct cli *c, const struct json *all)
{
	static const struct column columns[] = {
	    {.title = "CONTROL"}, {.title = "VERB"}, {.title = "STATE"},
	    {.title = "AGE", .right = true, .drop = 1}, {.title = "OWNER", .drop = 2},
	    {.title = "RESULT", .below = "result"},
	};
	struct table *t = c->json ? NULL : table_new(columns, sizeof(columns) / sizeof(columns[0]));
	struct json_iter it = json_iterate(all);
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (c->json)
			out_json(c->out, json_ref(one));
		else
			add_row(t, one);
	if (!c->json)
		table_print(t, c->out, "");
}

static void
tell_lost(const struct json *all)
{
	struct json_iter it = json_iterate(all);
	const struct json *one;

	while (json_next(&it, NULL, &one)) {
		if (render_member(one, "command")[0] == '\0')
			continue;
		cli_note("control %.8s: the worker that claimed it is dead; only a person can say what came of it",
		    render_member(one, "id"));
		mailbox_hint(one);
	}
}

static int
run_status_command(struct cli *c, struct err *e)
{
	struct json *all = json_array();
	struct target t;
	int r = target_of(c, c->operands[0], true, &t, e);

	if (r != 0)
		goto out;
	r = c->this_run ? mailbox_of_run(t.store, &t.session, c->home, &all, e)
			: mailbox_of_job(t.store, &t.session, c->home, false, &all, e);
	if (r == 0 && json_length(all) == 0) {
		cli_note("run %s got no controls", t.session.run_id);
	} else if (r == 0) {
		print_controls(c, all);
		if (!c->json)
			tell_lost(all);
	}
	target_close(&t);
out:
	json_unref(all);
	return r;
}

static const char *const status_examples[] = {
    "flowsup ctl status @last    # what was asked of it, and what came of that", NULL};

const struct command cmd_ctl_status = {
    .name = "ctl status",
    .group = CLI_GROUP_STEER,
    .synopsis = "[RUN]",
    .summary = "show the controls of a run",
    .examples = status_examples,
    .max_operands = 1,
    .operands = "run",
    .json = true,
    .this_run = true,
    .run = run_status_command,
};
