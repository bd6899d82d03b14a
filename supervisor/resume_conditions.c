/* resume: what must hold beside the outcomes: variables, conversations, and whoever asked for more. */
#include <string.h>

#include "resume_private.h"

#define SESSION_LOST "session_lost" /* class of an attempt whose conversation was not to be had */
#define DEGRADE "allow-degraded-context"

static const char said_lost[] = "the last attempt to go on in it found it lost";

/* ---- Environment: checks 10 and 12 ---- */

static bool
has_name(char *const *list, const char *name)
{
	size_t len = strlen(name);

	for (; list != NULL && *list != NULL; list++)
		if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
			return true;
	return false;
}

/* Its value is in no file, and nobody here has it. */
static bool
lacks_withheld(const struct resume_input *in, const char *name)
{
	return !in->values_come && json_find(in->withheld, NULL, name) != NULL &&
	    !has_name(in->current_environment, name) && !has_name(in->held_environment, name);
}

static bool
is_left_out(const struct resume_input *in, const char *name)
{
	return json_find(in->kept_out, NULL, name) != NULL && json_find(in->withheld, NULL, name) == NULL;
}

static void
require(struct examining *x, size_t i, const char *name)
{
	const struct resume_input *in = x->in;
	bool withheld = json_find(in->withheld, NULL, name) != NULL;

	if (has_name(in->recorded_environment, name) || json_find(x->plan->added, NULL, name) != NULL ||
	    (withheld && !lacks_withheld(in, name)))
		return;
	if (!withheld && !is_left_out(in, name) && has_name(in->current_environment, name)) {
		x->plan->added = json_append(x->plan->added, json_cstr(name));
		x->failed = x->failed || x->plan->added == NULL;
		return;
	}
	if (lacking_add(&x->lacking, name, in->flow->ops[i].id, NULL) != 0)
		x->failed = true;
	if (x->plan->rows[i].action == RESUME_REFUSED)
		return;
	x->plan->rows[i].check = 10;
	resume_decide(x, i, RESUME_REFUSED, "it requires the variable %s, which is not set", name);
}

/* What is refused for something else would run once that is lifted, and is asked about it at once. */
void
resume_check_environment(struct examining *x, size_t i)
{
	const struct flow_how *how = x->in->flow->ops[i].how;
	enum resume_action action = x->plan->rows[i].action;
	size_t n;

	for (n = 0; n < how->nenv && (action == RESUME_RUN || action == RESUME_REFUSED); n++)
		if (lacking_is_required(how, n))
			require(x, i, how->env[n].name);
}

static void
fail_with(struct examining *x, int check, const char *flag, const char *member, const char *name,
    const struct buf *text)
{
	resume_fail(x->plan, check, NULL, flag, "%s", buf_text(text));
	resume_fail_with(x->plan, member, name);
}

/* Each once: "variable" has to be set, "name" may be left out. */
void
resume_check_variables(struct examining *x)
{
	struct json_iter it = json_iterate(x->in->withheld);
	const struct json *one;
	struct buf text = {0};
	const char *name;
	size_t i;

	for (i = 0; i < x->lacking.count; i++) {
		name = x->lacking.all[i].name;
		buf_reset(&text);
		lacking_text(&x->lacking.all[i], x->in->flow->nops, &text);
		if (is_left_out(x->in, name))
			buf_puts(&text, "; it cannot be left out");
		else if (lacks_withheld(x->in, name))
			buf_puts(&text, "; its value was kept out of files");
		fail_with(x, 10, NULL, "variable", name, &text);
	}
	while (json_next(&it, NULL, &one)) {
		name = json_cstr_of(one);
		if (name == NULL || !lacks_withheld(x->in, name) || lacking_has(&x->lacking, name))
			continue;
		buf_reset(&text);
		buf_printf(&text, "the variable %s is not set, and its value was kept out of files", name);
		fail_with(x, 12, "without-env", "name", name, &text);
	}
	buf_clear(&text);
}

/* ---- Conversations: checks 6 and 11 ---- */

/* Whether a fork must leave it to the earlier run. What stands in a file of its own is copied by us. */
static bool
cannot_be_copied(const struct examining *x, size_t i, const struct json *conversation)
{
	const struct flow_role *role = x->in->flow->ops[i].how->role;
	const struct json *can = role != NULL ? json_get(x->in->copying, role->name) : NULL;

	return can != NULL && !json_is_true(can) && json_get(conversation, "store") == NULL &&
	    json_get(conversation, "chat") == NULL;
}

/* Whether it holds a turn of i already, which went on in it alone. */
static bool
has_gone_on(const struct examining *x, size_t i, size_t from)
{
	const char *id = json_cstr_of(json_get(json_get(x->plan->rows[from].entry, "conversation"), "id"));

	return x->in->copying != NULL && id != NULL &&
	    slice_is(json_text(json_get(json_get(x->plan->rows[i].entry, "conversation"), "id")), id);
}

bool
resume_lost_conversation(const struct json *entry)
{
	return slice_is(json_text(json_get(json_get(entry, "error"), "class")), SESSION_LOST);
}

/* Its latest attempt says that it is lost; the next one would say the same. What was interrupted begins
 * anew by itself. */
static bool
has_found_it_lost(struct examining *x, size_t i)
{
	const struct json *entry = x->plan->rows[i].entry;
	const char *op = x->in->flow->ops[i].id;
	const struct json *before = json_get(json_get(x->in->state, "config"), "interrupted");

	if (entry != NULL)
		return resume_lost_conversation(entry);
	return slice_is(json_text(resume_end_member(x, i, "class")), SESSION_LOST) &&
	    json_get(before, op) == NULL && json_get(json_get(x->in->facts, op), "interrupted") == NULL;
}

/* Why i cannot go on in the conversation in a recorded outcome; NULL: it can. */
static const char *
conversation_problem(struct examining *x, size_t i, size_t from, int *check)
{
	const struct json *conversation = json_get(x->plan->rows[from].entry, "conversation");

	*check = 6;
	if (conversation == NULL)
		return "none was recorded";
	if (json_is_true(json_get(conversation, "tentative")))
		return "no turn of it was acknowledged";
	if (cannot_be_copied(x, i, conversation))
		return "it is that of the earlier run, and its program cannot copy one";
	*check = 11;
	return resume_fact(x, from, "conversation");
}

static void
begin_anew_or_refuse(struct examining *x, size_t i, int check, const char *why)
{
	struct resume_row *row = &x->plan->rows[i];

	row->degraded = x->in->flags.allow_degraded_context;
	if (!row->degraded) {
		resume_refuse(x, i, check, DEGRADE, why);
		return;
	}
	row->lifted = DEGRADE;
	if (row->turn == 0)
		resume_decide(x, i, RESUME_RUN, "runs in a new conversation: %s", why);
	else
		resume_decide(x, i, RESUME_REPLAY, "completed; turn %lld, for messages, runs in a new conversation: %s",
		    (long long)row->turn, why);
}

void
resume_check_turn(struct examining *x, size_t i)
{
	struct buf text = {0};

	if (x->plan->rows[i].turn == 0 || x->plan->rows[i].action != RESUME_REPLAY || !has_found_it_lost(x, i) ||
	    json_is_true(json_get(json_get(x->plan->rows[i].entry, "conversation"), CKPT_LOST)))
		return;
	buf_printf(&text, "its conversation cannot be continued: %s", said_lost);
	begin_anew_or_refuse(x, i, 6, buf_text(&text));
	buf_clear(&text);
}

/* A predecessor that runs again makes a conversation anew; or none, as before. */
static void
check_unmade(struct examining *x, size_t i, size_t from)
{
	const struct flow *f = x->in->flow;
	enum resume_action action = x->plan->rows[from].action;
	struct buf text = {0};

	if (flow_grown(f, (uint32_t)i) != NULL)
		return;
	if (action == RESUME_SKIP) {
		buf_printf(&text, "the conversation of %s cannot be continued: it is skipped", f->ops[from].id);
		begin_anew_or_refuse(x, i, 6, buf_text(&text));
	} else if (action == RESUME_RUN && x->in->flags.allow_degraded_context && has_found_it_lost(x, i)) {
		x->plan->rows[i].degraded = true;
		x->plan->rows[i].lifted = DEGRADE;
		resume_decide(x, i, RESUME_RUN, "%s; in a new conversation where %s makes none", x->plan->rows[i].reason,
		    f->ops[from].id);
	}
	buf_clear(&text);
}

void
resume_check_conversation(struct examining *x, size_t i)
{
	const struct flow *f = x->in->flow;
	size_t from = flow_inherited(f, (uint32_t)i);
	const char *why;
	struct buf text = {0};
	bool lost;
	int check;

	if (from == SIZE_MAX || x->plan->rows[i].action != RESUME_RUN)
		return;
	if (x->plan->rows[from].action != RESUME_REPLAY && x->plan->rows[from].action != RESUME_KEEP_FAILED) {
		check_unmade(x, i, from);
		return;
	}
	why = conversation_problem(x, i, from, &check);
	lost = why == NULL && has_found_it_lost(x, i);
	if (lost) {
		check = 6;
		why = said_lost;
	}
	if (why == NULL && has_gone_on(x, i, from)) {
		buf_printf(&text, "%s; the conversation of %s has gone on since, and the copy has that too",
		    x->plan->rows[i].reason, f->ops[from].id);
		resume_decide(x, i, RESUME_RUN, "%s", buf_text(&text));
		buf_clear(&text);
	}
	/* What was added forks a conversation where there is one. */
	if (why == NULL || (check == 6 && !lost && flow_grown(f, (uint32_t)i) != NULL))
		return;
	buf_printf(&text, "the conversation of %s cannot be continued: %s", f->ops[from].id, why);
	begin_anew_or_refuse(x, i, check, buf_text(&text));
	buf_clear(&text);
}

/* ---- What was added: checks 8 and 9 ---- */

/* In the run itself, or in one that it goes on from. */
static bool
was_ever_started(const struct examining *x, size_t i)
{
	const struct json *before = json_get(json_get(x->in->state, "config"), "attempts");
	int64_t attempts;

	return x->history[i].started ||
	    (json_int64(json_get(before, x->in->flow->ops[i].id), &attempts) && attempts > 0);
}

/* Nobody can have asked who never ran. An emitter in flight may have: it runs again, and asks again. */
static void
check_emitter(struct examining *x, size_t i, const struct flow_grown *g)
{
	struct buf text = {0};

	if (g->kind != FLOW_GROWN_RETRY || x->plan->rows[g->emitter].entry != NULL ||
	    was_ever_started(x, g->emitter))
		return;
	buf_printf(&text, "it replaces %s, which has no outcome and was never started",
	    x->in->flow->ops[g->emitter].id);
	resume_refuse(x, i, 9, NULL, buf_text(&text));
	buf_clear(&text);
}

void
resume_check_added(struct examining *x, size_t i)
{
	const struct flow_grown *g = flow_grown(x->in->flow, (uint32_t)i);
	struct resume_row *row = &x->plan->rows[i];
	const char *hint = NULL;
	struct buf why = {0};

	if (g == NULL)
		return;
	check_emitter(x, i, g);
	if (row->action == RESUME_RUN && resume_must_not_run(x->in, i, &why, &hint)) {
		resume_refuse(x, i, 8, NULL, buf_text(&why));
		if (hint != NULL)
			resume_fail_with(x->plan, "hint", hint);
	}
	buf_clear(&why);
}

static bool
runs_again(const struct examining *x, uint32_t i)
{
	return i != FLOW_NO_OP && x->plan->rows[i].renewed;
}

void
resume_check_emitters(struct examining *x)
{
	const struct flow *f = x->in->flow;
	const struct flow_grown *g;
	size_t i;

	for (i = f->nplanned; i < f->nops; i++) {
		g = flow_grown(f, (uint32_t)i);
		x->plan->rows[i].emitter_runs_again = runs_again(x, g->parent) || runs_again(x, g->emitter);
	}
}
