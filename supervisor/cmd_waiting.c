/* waiting: one list of what waits for a person, over all runs. */
#include <string.h>

#include "cli.h"
#include "flowsup/clock.h"
#include "mailbox.h"
#include "output.h"
#include "paste.h"
#include "render.h"
#include "target.h"
#include "view.h"

static const char *const examples[] = {
    "flowsup waiting          # approvals, and runs that cannot start without you", NULL};

struct listing {
	const struct home *home;
	struct json *all;
	const char *home_option;
};

static struct json *
as_text(struct buf *command)
{
	struct json *v = command->failed ? NULL : json_string_lossy(buf_view(command), NULL);

	buf_clear(command);
	return v;
}

static struct json *
command_text(const struct listing *l, const char *verb, const char *run_id, const char *op)
{
	struct buf b = {0};

	paste_command(&b, verb, l->home_option, run_id, op);
	return as_text(&b);
}

static struct json *
resume_text(const struct listing *l, const struct session *s)
{
	struct buf b = {0};

	paste_resume(&b, NULL, l->home_option, s);
	return as_text(&b);
}

/* other: a command that answers in another way, or NULL. Consumes both. */
static void
add(struct listing *l, const struct session *s, const char *what, const struct json *op,
    const struct json *since, struct json *command, struct json *other)
{
	struct json *commands = json_append(json_array(), command != NULL ? json_ref(command) : NULL);
	struct json *o = json_set(json_object(), "run", json_cstr(s->run_id));

	o = json_set(o, "name", json_cstr(s->name != NULL ? s->name : ""));
	o = json_set(o, "op", op != NULL ? json_ref(op) : json_null());
	o = json_set(o, "for", json_cstr(what));
	o = json_set(o, "since", since != NULL ? json_ref(since) : json_real(s->created_at));
	o = json_set(o, "command", command);
	l->all = json_append(l->all, json_set(o, "commands",
	    other != NULL ? json_append(commands, other) : commands));
}

static void
add_operations(struct listing *l, const struct session *s)
{
	const struct json *list = json_get(s->metadata, "waiting"), *one;
	struct json_iter it = json_iterate(list);
	const char *op;

	while (json_next(&it, NULL, &one)) {
		op = json_cstr_of(json_get(one, "op"));
		if (op != NULL)
			add(l, s, "approval", json_get(one, "op"), json_get(one, "since"),
			    command_text(l, "approve", s->run_id, op), command_text(l, "deny", s->run_id, op));
	}
}

/* It goes on, and starts with its key have been kept waiting for long: somebody has to look. */
static void
add_blocking(struct listing *l, const struct session *s)
{
	const struct json *first = json_get(json_get(s->metadata, "blocks"), "first");
	double since;

	if (json_double(first, &since) &&
	    (double)clock_wall_ns() / (double)NS_PER_S - since >= UNIQUE_LONG_S)
		add(l, s, "a look: it blocks others", NULL, first, command_text(l, "show", s->run_id, NULL), NULL);
}

/* What a dead worker had claimed: a person says what came of it. */
static int
add_lost(void *arg, const char *run_id, const char *name, const struct control *c)
{
	struct listing *l = arg;
	struct json *o = json_set(json_object(), "run", json_cstr(run_id));

	o = json_set(o, "name", json_string_lossy(slice_of(name), NULL));
	o = json_set(o, "op", json_null());
	o = json_set(o, "for", json_cstr("resolve"));
	o = json_set(o, "since", json_real(c->claimed_at));
	l->all = json_append(l->all, mailbox_resolve_commands(o, l->home_option, c->id));
	return l->all == NULL;
}

static int
look(void *arg, const struct session *s)
{
	struct listing *l = arg;
	/* A copy's is asked for where it belongs, and refused here. */
	const bool own = session_owner(s, l->home) == NULL;

	if (own && s->status == STATUS_QUEUED && s->reason_code != NULL &&
	    strcmp(s->reason_code, "run.queued.environment") == 0)
		add(l, s, "environment", NULL, NULL, resume_text(l, s), NULL);
	else if (own && (s->status == STATUS_RUNNING || s->status == STATUS_PAUSED) &&
	    !session_is_draining(s))
		add_operations(l, s);
	add_blocking(l, s);
	return l->all == NULL;
}

static void
print(struct cli *c, const struct json *all)
{
	static const struct column columns[] = {
	    {.title = "RUN"},
	    {.title = "NAME", .least = 5, .most = COLUMNS_OF_NAME, .drop = 3},
	    {.title = "OPERATION", .least = 9, .id = true},
	    {.title = "WAITS FOR", .drop = 1},
	    {.title = "SINCE", .right = true, .drop = 2},
	    {.title = "ANSWER", .below = "answer"},
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	struct json_iter it = json_iterate(all);
	const struct json *one;
	char age[DURATION_TEXT];

	while (json_next(&it, NULL, &one)) {
		table_text(t, OUT_PLAIN, render_member(one, "run"));
		table_text(t, OUT_PLAIN, render_member(one, "name"));
		table_text(t, OUT_BOLD, render_member(one, "op"));
		table_text(t, OUT_WARN, render_member(one, "for"));
		table_text(t, OUT_PLAIN, render_seconds(render_age(one, "since"), age));
		table_text(t, OUT_DIM, render_member(one, "command"));
	}
	table_print(t, c->out, "");
}

static int
list_all(struct cli *c, struct target *t, struct err *e)
{
	static const struct session_filter live = {
	    .statuses = {STATUS_QUEUED, STATUS_RUNNING, STATUS_PAUSED}, .nstatuses = 3,
	    .oldest_first = true};
	struct listing l = {.home = &t->home, .all = json_array(), .home_option = c->home};
	struct json_iter it;
	const struct json *one;
	int r = session_list(t->store, &live, look, &l, e);

	if (r == 0 && l.all != NULL)
		r = control_lost(t->store, add_lost, &l, e);
	if (r == 0 && l.all == NULL)
		r = err_nomem(e);
	if (r == 0 && json_length(l.all) == 0 && !c->json)
		cli_note("nothing waits for a person");
	else if (r == 0 && !c->json)
		print(c, l.all);
	it = json_iterate(l.all);
	while (r == 0 && c->json && json_next(&it, NULL, &one))
		out_json(c->out, json_ref(one));
	json_unref(l.all);
	return r;
}

static int
run(struct cli *c, struct err *e)
{
	struct target t;
	int r;

	r = target_open_any(c, &t, e);
	if (r != 0)
		return r < 0 ? -1 : 0;
	target_wake(&t);
	r = list_all(c, &t, e);
	target_close(&t);
	return r;
}

const struct command cmd_waiting = {
    .name = "waiting",
    .group = CLI_GROUP_LOOK,
    .synopsis = "",
    .summary = "what waits for a person, over all runs",
    .examples = examples,
    .max_operands = 0,
    .operands = "",
    .json = true,
    .run = run,
};
