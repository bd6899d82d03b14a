/* The mailbox of a run, and of the runs that it resumes. */
#include <string.h>

#include "flowsup/log.h"
#include "mailbox.h"
#include "paste.h"
#include "render.h"
#include "view.h"

/* ---- One ---- */

/* Results are matched by prefix, never by equality: they carry owners and reasons. */
static const char *
control_state(const struct control *c, const struct session *s)
{
	static const struct {
		const char *prefix, *state;
	} table[] = {
	    {"applied: resolved", "resolved"},
	    {"abandoned: resolved", "resolved"},
	    {"rejected: run reached terminal", "never landed"},
	    {"rejected: the job ended", "never landed"},
	    {"applied", "applied"},
	    {"abandoned", "resolved"},
	    {"rejected", "rejected"},
	};
	size_t i;

	if (c->applied_at > 0 && c->result != NULL)
		for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
			if (strncmp(c->result, table[i].prefix, strlen(table[i].prefix)) == 0)
				return table[i].state;
	if (c->claimed_at > 0)
		return "claimed";
	/* A crashed run's rows wait for the run that resumes it. */
	if (status_is_terminal(s->status) && s->status != STATUS_CRASHED)
		return "never landed";
	return "queued";
}

/* Who claimed it: the claim's own text, which a person's verdict quotes; a result replaces it, and then
 * it was the run's worker, for claimed rows never change hands. */
static struct json *
control_owner(const struct control *c, const struct session *s)
{
	static const char claim[] = "applying:";
	const char *at = c->result != NULL ? strstr(c->result, claim) : NULL;

	if (c->claimed_at == 0)
		return json_null();
	if (at == NULL)
		return json_cstr(s->run_id);
	at += sizeof(claim) - 1;
	return json_string_lossy((struct slice){at, strcspn(at, "'")}, NULL);
}

/* No worker will report any more what came of it. */
static bool
is_lost(const struct control *c, const struct session *s)
{
	return c->claimed_at > 0 && c->applied_at == 0 && status_is_terminal(s->status);
}

static struct json *
resolve_command(const char *home_option, const char *id, const char *as)
{
	struct buf b = {0};
	struct json *text;

	buf_puts(&b, "flowsup ctl resolve ");
	if (home_option != NULL) {
		buf_puts(&b, "--home ");
		text_shell_word(&b, home_option);
		buf_putc(&b, ' ');
	}
	buf_printf(&b, "%.8s --as %s", id, as);
	text = b.failed ? NULL : json_string_lossy(buf_view(&b), NULL);
	buf_clear(&b);
	return text;
}

struct json *
mailbox_resolve_commands(struct json *o, const char *home_option, const char *id)
{
	struct json *all = json_append(json_array(), resolve_command(home_option, id, "abandoned"));

	o = json_set(o, "command", resolve_command(home_option, id, "abandoned"));
	return json_set(o, "commands", json_append(all, resolve_command(home_option, id, "applied")));
}

struct json *
mailbox_control(const struct control *c, const struct session *s, const char *home_option)
{
	struct json *o = json_object();

	o = json_set(o, "id", json_cstr(c->id));
	o = json_set(o, "run", json_cstr(s->run_id));
	o = json_set(o, "verb", json_text_or_null(c->verb));
	o = json_set(o, "state", json_cstr(control_state(c, s)));
	o = json_set(o, "owner", control_owner(c, s));
	o = json_set(o, "payload", c->payload != NULL ? json_ref(c->payload) : json_null());
	o = json_set(o, "created_at", view_time(c->created_at));
	o = json_set(o, "claimed_at", view_time(c->claimed_at));
	o = json_set(o, "applied_at", view_time(c->applied_at));
	if (is_lost(c, s))
		o = mailbox_resolve_commands(o, home_option, c->id);
	else
		o = json_set(json_set(o, "command", json_null()), "commands", json_array());
	return json_set(o, "result", json_text_or_null(c->result));
}

/* ---- Of a job ---- */

struct collecting {
	struct json **to;
	const struct session *session;
	const char *home_option;
	bool lost; /* no others */
};

static int
collect(void *arg, const struct control *c)
{
	struct collecting *l = arg;

	if (!l->lost || is_lost(c, l->session))
		*l->to = json_append(*l->to, mailbox_control(c, l->session, l->home_option));
	return *l->to == NULL;
}

static int
collect_run(struct store *st, const struct session *s, const struct collecting *how, struct err *e)
{
	struct collecting l = *how;

	l.session = s;
	if (control_list(st, s->run_id, false, collect, &l, e) != 0)
		return -1;
	return *l.to != NULL ? 0 : err_nomem(e);
}

/* The oldest run first. */
static int
collect_up_to(struct store *st, const char *run_id, const struct collecting *how, struct err *e)
{
	struct session s;
	int rc;

	if (run_id[0] == '\0')
		return 0;
	if (session_read(st, run_id, &s, e) != 0)
		return -1;
	rc = collect_up_to(st, s.resumed_from_run, how, e);
	if (rc == 0)
		rc = collect_run(st, &s, how, e);
	session_clear(&s);
	return rc;
}

int
mailbox_of_run(struct store *st, const struct session *s, const char *home_option,
    struct json **to, struct err *e)
{
	return collect_run(st, s, &(struct collecting){.to = to, .home_option = home_option}, e);
}

int
mailbox_of_job(struct store *st, const struct session *s, const char *home_option, bool lost,
    struct json **to, struct err *e)
{
	const struct collecting how = {.to = to, .home_option = home_option, .lost = lost};

	return collect_up_to(st, s->resumed_from_run, &how, e) == 0
	    ? mailbox_of_run(st, s, home_option, to, e) : -1;
}

void
mailbox_hint(const struct json *control)
{
	struct json_iter it = json_iterate(json_get(control, "commands"));
	const struct json *one;

	while (json_next(&it, NULL, &one))
		cli_hint("%s", json_cstr_of(one));
}

void
mailbox_tell_lost(const struct cli *c, struct store *st, const struct session *s)
{
	struct json *all = json_array();
	const struct collecting how = {.to = &all, .home_option = c->home, .lost = true};
	const struct json *one;
	struct json_iter it;
	struct err e = {0};

	if (collect_up_to(st, s->run_id, &how, &e) != 0)
		cli_note("controls of run %s cannot be read: %s", s->run_id, e.msg);
	it = json_iterate(all);
	while (json_next(&it, NULL, &one)) {
		cli_note("control %.8s (%s): run %s had claimed it; whether it took effect is not known, and "
			 "nobody applies it again", render_member(one, "id"), render_member(one, "verb"),
		    render_member(one, "run"));
		mailbox_hint(one);
	}
	json_unref(all);
}
