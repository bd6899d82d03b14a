#include "policy.h"

#include <string.h>

#include "flowsup/proc.h"

static const struct json *
notify_command(const struct json *notify)
{
	return json_type(notify) == JSON_ARRAY ? notify : json_get(notify, "command");
}

static const char *
notify_on(const struct json *notify)
{
	return slice_is(json_text(json_get(notify, "on")), "all") ? "all" : "problems";
}

static int64_t
restarts(const struct json *restart)
{
	int64_t n = POLICY_RESTARTS;

	/* What it says of failures alone asks for no restart. */
	if (restart == NULL || (json_get(restart, "on") == NULL && json_get(restart, "attempts") == NULL))
		return 0;
	(void)json_int64(json_get(restart, "attempts"), &n);
	return n;
}

static bool
has_unrepeatable(const struct flow *f)
{
	size_t i;

	for (i = 0; i < f->nops; i++)
		if (!f->ops[i].how->idempotent)
			return true;
	return f->unplanned;
}

int
policy_of(const struct flow *f, const struct json *withheld, bool foreground, struct policy *out,
    struct err *e)
{
	struct json *o = json_object();

	*out = (struct policy){0};
	if (f->notify != NULL && notify_command(f->notify) != NULL) {
		o = json_set(o, "notify",
		    json_set(json_object(), "command", json_ref(notify_command(f->notify))));
		out->notify = notify_on(f->notify);
	}
	if (f->watchdog_ns > 0)
		o = json_set(o, "watchdog_ns", json_int(f->watchdog_ns));
	if (slice_is(json_text(json_get(f->restart, "failed")), "retry"))
		o = json_set(o, POLICY_RETRIES_FAILED, json_bool(true));
	if (has_unrepeatable(f))
		o = json_set(o, POLICY_UNREPEATABLE, json_bool(true));
	if (json_length(withheld) > 0)
		o = json_set(o, "withheld", json_ref(withheld));
	if (foreground)
		o = json_set(o, "foreground", json_bool(true));
	out->object = o;
	out->restarts = foreground ? 0 : restarts(f->restart);
	return o != NULL ? 0 : err_nomem(e);
}

void
policy_clear(struct policy *p)
{
	json_unref(p->object);
	*p = (struct policy){0};
}

int
policy_check_notify(const struct json *notify, const char *search_path, struct err *e)
{
	const char *program = json_cstr_of(json_at(notify_command(notify), 0));
	struct buf found = {0};
	int r = program == NULL ? 0 : proc_find_program(program, search_path, &found, e);

	buf_clear(&found);
	if (r == 0)
		return 0;
	err_wrap(e, "notify");
	return err_advice(e, "the first word is a program, found in PATH or named by its path");
}

/* ---- Options ---- */

enum { NOTIFY_MOST = 65536 };
#define NOTIFY_FORM "a program, or as JSON an argv: '[\"notify-send\", \"flowsup\"]'"

static int
read_notify(const char *text, struct json **out, struct err *e)
{
	const struct json_options o = {.max_bytes = NOTIFY_MOST};

	if (text[0] != '[' && text[0] != '{') {
		if (text[0] == '\0') {
			err_set(e, ERR_USAGE, "--notify: the command is empty");
			return err_advice(e, NOTIFY_FORM);
		}
		*out = json_append(json_array(), json_string_lossy(slice_of(text), NULL));
		return *out != NULL ? 0 : err_nomem(e);
	}
	if (json_parse(slice_of(text), &o, out, NULL, e) == 0)
		return 0;
	err_wrap(e, "--notify");
	return err_advice(e, NOTIFY_FORM);
}

/* What the flow says of failures stays. */
static struct json *
make_restart(const struct json *now, int64_t attempts)
{
	const struct json *failed = json_get(now, "failed");
	struct json *o = json_object();

	if (attempts > 0)
		o = json_set(json_set(o, "on", json_cstr("crash")), "attempts", json_int(attempts));
	return failed != NULL ? json_set(o, "failed", json_ref(failed)) : o;
}

int
policy_options(const struct cli *c, const struct json *now, struct json **notify,
    struct json **restart, struct err *e)
{
	*notify = *restart = NULL;
	if (cli_flag(c, "restart")) {
		*restart = make_restart(now, cli_int(c, "restart", 0));
		if (*restart == NULL)
			return err_nomem(e);
	}
	if (!cli_flag(c, "notify") || read_notify(cli_text(c, "notify", ""), notify, e) == 0)
		return 0;
	json_unref(*restart);
	*restart = NULL;
	return -1;
}
