/*
 * What each control does.
 *
 * pause, resume, stop:       apply -> stamp. Applying again after a crash is harmless.
 * message, approve, deny:    claim, durable -> context, durable -> stamp. A crash in between leaves a
 *                            claimed row, which nobody ever applies again by itself.
 */
#include "control.h"

#include <stdio.h>
#include <string.h>

#include "flowsup/log.h"

enum { ERROR_TEXT = 500, NAME_MOST = 128 };

/* ---- Verbs that are applied again without harm ---- */

static void
apply_pause(struct worker *w, const struct json *payload)
{
	(void)payload;
	if (w->gate_closed)
		return;
	gate_close(w);
	status_of_gates(w, "run.running.started");
}

static void
apply_resume(struct worker *w, const struct json *payload)
{
	(void)payload;
	if (!w->gate_closed)
		return;
	gate_open(w);
	status_of_gates(w, "run.running.resumed");
}

static void
apply_stop(struct worker *w, const struct json *payload)
{
	admission_close(w, CLOSED_STOP);
	if (!slice_is(json_text(json_get(payload, "mode")), "now"))
		return;
	w->stop_now = true;
	ending_stop_all(w);
}

/* ---- Verbs that are applied once ---- */

static void
stamp_error(struct worker *w, struct control_row *r, const struct err *why)
{
	char result[CONTROL_RESULT_TEXT];
	size_t len = strlen(why->msg);

	if (len > ERROR_TEXT) /* between characters, never inside one */
		for (len = ERROR_TEXT; len > 0 && ((unsigned char)why->msg[len] & 0xc0) == 0x80; len--)
			;
	snprintf(result, sizeof(result), "rejected:error:%.*s", (int)len, why->msg);
	control_stamp(w, r, result, false);
}

/* The context with the effect is durable. What comes after r has perhaps not waited for it. */
static void
effect_durable(struct worker *w, void *arg, bool durable)
{
	struct control_row *r = arg;
	bool alone = w->controls_held != r;

	if (!alone)
		w->controls_held = NULL;
	if (r->op != OP_NO_INDEX && durable)
		approval_landed(w, r->op);
	if (durable) {
		control_stamp(w, r, "applied", alone);
		return;
	}
	/* Whether it will be found by a resume is not known: the claim says so. */
	log_line(LOG_WARNING, "control %s: the checkpoint writer has stopped", r->id);
	control_row_free(r);
	if (!alone)
		control_apply_next(w);
}

static void
commit_effect(struct worker *w, struct control_row *r)
{
	struct err e = {0};

	w->controls_held = r;
	if (flow_context_commit(w, effect_durable, r, &e) == 0) {
		/* A stop must get through although storage fails. */
		if (w->closed & CLOSED_STORAGE)
			control_release(w);
		return;
	}
	w->controls_held = NULL;
	stamp_error(w, r, &e);
}

/* What a file of text or an argument cannot hold is not changed silently. */
static bool
is_plain(const struct json *text)
{
	return text == NULL || json_cstr_of(text) != NULL;
}

/* What is with the operation that was named; id NULL: none was. */
static void
reject(struct worker *w, struct control_row *r, const char *word, const char *id, const char *why)
{
	char result[CONTROL_RESULT_TEXT];

	if (id != NULL && why != NULL)
		snprintf(result, sizeof(result), "rejected:%s: %.*s %s", word, NAME_MOST, id, why);
	else
		snprintf(result, sizeof(result), "rejected:%s", word);
	control_stamp(w, r, result, false);
}

static void
reject_message(struct worker *w, struct control_row *r)
{
	const struct json *to = json_get(r->payload, "to");

	reject(w, r, "no-pending-ops", to != NULL ? json_cstr_of(to) : NULL, messages_why_not(w, to));
}

static void
take_message(struct worker *w, struct control_row *r)
{
	struct err e = {0};
	bool have;

	if (!is_plain(json_get(r->payload, "text")) || !is_plain(json_get(r->payload, "to"))) {
		err_set(&e, ERR_USAGE, "its text is no text, or holds a NUL or half a character");
		stamp_error(w, r, &e);
		return;
	}
	if (turns_taking(w)) {
		if (turns_append(w, r->payload, r->created_at, &e) != 0)
			stamp_error(w, r, &e);
		else
			commit_effect(w, r);
		return;
	}
	if (messages_have_taker(w, json_get(r->payload, "to"), &have, &e) != 0)
		stamp_error(w, r, &e);
	else if (!have)
		reject_message(w, r);
	else if (messages_append(w, r->payload, r->created_at, &e) != 0)
		stamp_error(w, r, &e);
	else
		commit_effect(w, r);
}

static void
take_verdict(struct worker *w, struct control_row *r)
{
	const char *id = json_cstr_of(json_get(r->payload, "op"));
	struct err e = {0};

	r->op = approval_find_waiting(w, r->payload);
	if (r->op == OP_NO_INDEX)
		reject(w, r, "not-waiting", id, approval_why_not(w, id));
	else if (approval_record(w, r->op, strcmp(r->verb, "approve") == 0, r->payload, &e) != 0)
		stamp_error(w, r, &e);
	else
		commit_effect(w, r);
}

/* Storage has failed: what waits for it goes on waiting by itself, and the rows behind it go on. */
void
control_release(struct worker *w)
{
	if (w->controls_held == NULL)
		return;
	w->controls_held = NULL;
	control_apply_next(w);
}

/* ---- All of them ---- */

static const struct control_verb verbs[] = {
    {.word = "pause", .apply = apply_pause},
    {.word = "resume", .apply = apply_resume},
    {.word = "stop", .apply = apply_stop, .of_agent = true},
    {.word = "message", .take = take_message, .of_agent = true, .held = true},
    {.word = "approve", .take = take_verdict, .of_agent = true},
    {.word = "deny", .take = take_verdict, .of_agent = true},
};

const struct control_verb *
control_find_verb(const struct worker *w, const char *word)
{
	size_t i;

	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].word, word) == 0 &&
		    (verbs[i].of_agent || strcmp(w->launch.kind, "agent") != 0))
			return &verbs[i];
	return NULL;
}
