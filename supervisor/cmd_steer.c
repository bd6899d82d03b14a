/* What a person tells a live run: msg, approve, deny; and ctl resolve, of what was never reported. */
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "ctl.h"
#include "flowsup/fs.h"
#include "flowsup/proc.h"
#include "known_op.h"
#include "output.h"
#include "stdin.h"
#include "target.h"

enum { ACCOUNT_TEXT = 4096 };
#define MESSAGE_MOST ((size_t)1 << 20)

static const struct cli_option msg_options[] = {
    {.name = "to", .kind = CLI_STRING, .value = "OP", .help = "only for this operation",
	.complete = "op"},
    CTL_WAIT_OPTION,
    CLI_END};

static const struct cli_option verdict_options[] = {
    {.name = "note", .kind = CLI_STRING, .value = "TEXT", .help = "why; kept with the verdict"},
    CTL_WAIT_OPTION,
    CLI_END};

/* ---- Who asks ---- */

/*
 * Only a person answers what waits for a person. This keeps obedient models and accidents away, not
 * somebody with the same account who means it.
 */
static int
refuse_operations(const struct cli *c, struct err *e)
{
	/* What left its parents and its environment behind is still below the worker or a keeper. */
	if (!proc_descends_from_marked(getpid(), "FLOWSUP_OP_ID=") &&
	    !proc_descends_from_called(getpid(), "flowsup-worker"))
		return 0;
	return err_set(e, ERR_REFUSED,
	    "%s is for people: it was called from within an operation of a run", c->command->name);
}

static struct json *
account(void)
{
	char text[ACCOUNT_TEXT];
	struct passwd entry, *found = NULL;

	if (getpwuid_r(getuid(), &entry, text, sizeof(text), &found) != 0 || found == NULL)
		return json_printf("uid %u", (unsigned)getuid());
	return json_string_lossy(slice_of(entry.pw_name), NULL);
}

/* ---- msg ---- */

/* The operation gets the exact bytes, or the message is refused: nothing is replaced silently. */
static int
check_text(struct slice text, struct err *e)
{
	struct json *read;
	bool replaced = false;

	if (text.len == 0)
		return err_set(e, ERR_USAGE, "msg: the text is empty");
	if (text.len > MESSAGE_MOST)
		return err_set(e, ERR_LIMIT, "msg: the text has %zu bytes, more than %zu", text.len,
		    MESSAGE_MOST);
	if (memchr(text.data, '\0', text.len) != NULL)
		return err_set(e, ERR_USAGE, "msg: the text holds a NUL");
	read = json_string_lossy(text, &replaced);
	json_unref(read);
	if (read == NULL)
		return err_nomem(e);
	return replaced ? err_set(e, ERR_USAGE, "msg: the text is not valid UTF-8") : 0;
}

static int
read_text(const struct cli *c, struct buf *to, struct err *e)
{
	if (strcmp(c->operands[1], "-") == 0)
		return stdin_read("the message", MESSAGE_MOST, to, e);
	buf_puts(to, c->operands[1]);
	return buf_ok(to, e);
}

static int
add_text(struct json **payload, const char *name, struct slice text, struct err *e)
{
	struct json *value = json_string(text);

	if (value == NULL)
		return err_set(e, ERR_USAGE, "\"%s\" is not valid UTF-8", name);
	*payload = json_set(*payload, name, value);
	return *payload != NULL ? 0 : err_nomem(e);
}

/* A run at its end takes nothing, whatever is named: that is said by ctl_send(). */
static int
check_op(const struct target *t, const char *op, struct err *e)
{
	if (op == NULL || status_is_terminal(t->session.status))
		return 0;
	return known_op_check(&t->home, &t->session, op, t->cli, e);
}

/* op, which may be NULL: the operation that is named. */
static int
send_to(struct cli *c, const char *verb, struct json *payload, const char *op, struct err *e)
{
	struct target t;
	int r;

	if (target_of(c, c->operands[0], true, &t, e) != 0) {
		json_unref(payload);
		return -1;
	}
	r = check_op(&t, op, e);
	if (r == 0)
		r = ctl_send(c, &t, verb, payload, e);
	else
		json_unref(payload);
	target_close(&t);
	return r;
}

static int
run_msg(struct cli *c, struct err *e)
{
	const char *to = cli_text(c, "to", NULL);
	struct json *payload = json_object();
	struct buf text = {0};
	int r = read_text(c, &text, e);

	if (r == 0)
		r = check_text(buf_view(&text), e);
	if (r == 0)
		r = add_text(&payload, "text", buf_view(&text), e);
	if (r == 0 && to != NULL)
		r = add_text(&payload, "to", slice_of(to), e);
	buf_clear(&text);
	if (r == 0)
		return send_to(c, "message", payload, to, e);
	json_unref(payload);
	return r;
}

static const char *const msg_examples[] = {
    "flowsup msg @last 'leave the tests alone'    # to the next that takes messages",
    "flowsup msg @last --to review 'be brief'     # to this one",
    "flowsup msg @last --wait - < changes.txt     # until it is safe with the run",
    NULL};

const struct command cmd_msg = {
    .name = "msg",
    .also = "ctl msg",
    .group = CLI_GROUP_STEER,
    .synopsis = "RUN TEXT [--to OP] [--wait[=TIME]]\nRUN - [--to OP] [--wait[=TIME]]",
    .summary = "tell the next operations something",
    .examples = msg_examples,
    .options = msg_options,
    .details = "Operations with an instruction get it in front of their instruction; commands\n"
	       "with messages: true in the file FLOWSUP_MESSAGES. One operation gets it. What\n"
	       "has started is not reached any more.",
    .min_operands = 2,
    .max_operands = 2,
    .operands = "live",
    .json = true,
    .this_run = true,
    .run = run_msg,
};

/* ---- approve, deny ---- */

/* The verb is the command's name. */
static int
run_verdict(struct cli *c, struct err *e)
{
	const char *note = cli_text(c, "note", NULL);
	struct json *payload = json_object();
	int r = refuse_operations(c, e);

	if (r == 0)
		r = add_text(&payload, "op", slice_of(c->operands[1]), e);
	if (r == 0 && note != NULL)
		r = add_text(&payload, "note", slice_of(note), e);
	if (r == 0) {
		payload = json_set(payload, "by", account());
		if (payload == NULL)
			return err_nomem(e);
		return send_to(c, c->command->name, payload, c->operands[1], e);
	}
	json_unref(payload);
	return r;
}

static const char *const approve_examples[] = {
    "flowsup waiting                 # what waits, and the commands that answer",
    "flowsup approve @last publish   # it may start",
    NULL};

const struct command cmd_approve = {
    .name = "approve",
    .also = "ctl approve",
    .group = CLI_GROUP_STEER,
    .synopsis = "RUN OP [--note TEXT] [--wait[=TIME]]",
    .summary = "let an operation start that waits for approval",
    .examples = approve_examples,
    .options = verdict_options,
    .details = "Not from within an operation. The first verdict counts.",
    .min_operands = 2,
    .max_operands = 2,
    .operands = "gated waiting",
    .json = true,
    .this_run = true,
    .run = run_verdict,
};

static const char *const deny_examples[] = {
    "flowsup deny @last publish --note 'not on a Friday'   # it fails, class denied", NULL};

const struct command cmd_deny = {
    .name = "deny",
    .also = "ctl deny",
    .group = CLI_GROUP_STEER,
    .synopsis = "RUN OP [--note TEXT] [--wait[=TIME]]",
    .summary = "fail an operation that waits for approval",
    .examples = deny_examples,
    .options = verdict_options,
    .details = "Not from within an operation. The first verdict counts.",
    .min_operands = 2,
    .max_operands = 2,
    .operands = "gated waiting",
    .json = true,
    .this_run = true,
    .run = run_verdict,
};

/* ---- ctl resolve ---- */

static const struct cli_option resolve_options[] = {
    {.name = "as", .kind = CLI_CHOICE, .value = "applied|abandoned",
	.help = "what became of it (must be given)"},
    {.name = "by", .kind = CLI_STRING, .value = "WHO", .help = "who says so; else the account"},
    CLI_END};

/* The record is the person's word; what a live worker does is not changed by it. */
static void
warn_of_worker(struct target *t, const char *run_id)
{
	struct session s;
	struct err e = {0};

	if (session_read(t->store, run_id, &s, &e) != 0)
		return;
	if (!status_is_terminal(s.status))
		cli_note("run %s is %s: its worker may still carry it out", run_id, status_word(s.status));
	session_clear(&s);
}

static int
resolve_found(struct cli *c, struct target *t, const char *who, struct err *e)
{
	const char *as = cli_text(c, "as", "");
	char id[UUID_TEXT], run_id[RUN_ID_TEXT];
	bool written;

	if (control_find(t->store, c->operands[0], id, run_id, e) != 0 ||
	    control_resolve(t->store, id, strcmp(as, "applied") == 0, who, &written, e) != 0)
		return -1;
	if (!written) {
		err_set(e, ERR_REFUSED, "control %s is not claimed, or is closed: nothing was written",
		    id);
		return err_hint(e, "flowsup ctl status %s", run_id);
	}
	warn_of_worker(t, run_id);
	if (c->json)
		out_json(c->out, json_set(json_set(json_object(), "id", json_cstr(id)), "run",
		    json_cstr(run_id)));
	else
		cli_note("control %.8s of run %s is recorded as %s, by %s", id, run_id, as, who);
	return 0;
}

static int
run_resolve(struct cli *c, struct err *e)
{
	struct json *who;
	struct target t;
	const char *by = cli_text(c, "by", NULL);
	int r = refuse_operations(c, e);

	if (r != 0)
		return r;
	if (!cli_flag(c, "as") || (by != NULL && by[0] == '\0'))
		return err_set(e, ERR_USAGE,
		    "ctl resolve: say --as applied or --as abandoned, and a --by that is not empty");
	if (target_open(c, &t, e) != 0)
		return -1;
	who = by != NULL ? json_string_lossy(slice_of(by), NULL) : account();
	r = who != NULL ? resolve_found(c, &t, json_cstr_of(who), e) : err_nomem(e);
	json_unref(who);
	target_close(&t);
	return r;
}

static const char *const resolve_examples[] = {
    "flowsup ctl status @last                    # what is claimed, not reported",
    "flowsup ctl resolve 3f2a9c01 --as applied   # a person has looked",
    NULL};

const struct command cmd_ctl_resolve = {
    .name = "ctl resolve",
    .group = CLI_GROUP_STEER,
    .synopsis = "CONTROL --as applied|abandoned [--by WHO]",
    .summary = "close a control whose worker never reported back",
    .examples = resolve_examples,
    .options = resolve_options,
    .details = "Not from within an operation. The claim's text stays in the record.",
    .min_operands = 1,
    .max_operands = 1,
    .operands = "",
    .json = true,
    .run = run_resolve,
};
