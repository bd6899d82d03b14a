/*
 * A run of kind agent: one operation, whose conversation goes on for as long as people send messages
 * and its time limit lets it.
 *
 *	a turn ends well -> its outcome is durable -> the controls are read -> messages are claimed, put
 *	into the context with the mark of the next turn, durable, applied -> the next turn starts with
 *	them as its instruction; or, when none came, the operation is settled
 *
 * While a turn runs, messages stay unclaimed: if the worker dies, they go over to the next run. An
 * entry with fewer turns than a message's mark says that the turn for it did not end: a resume does
 * that turn again, in the same conversation. Else it looks at the controls once more, as the run
 * before it would have done.
 */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

#include "changes.h"
#include "flowsup/clock.h"
#include "flowsup/log.h"

enum {
	AGENT_OP = 0,
	LOOKS_MOST = 16, /* that may fail, one a tick, before the run ends without */
	BLOCK_MOST = 512 /* bytes around a message in an instruction */
};

struct turns {
	struct provider *command; /* of a person's own command line; NULL: it has an instruction */
	size_t prompt_at;	  /* the word that is its instruction */
	int64_t number; /* of the turn that ended last; before the first one 0, or what messages say */
	bool open;	/* it has ended, and whether another one follows is not decided */
	bool looking, looked;
	unsigned taken; /* messages for the next turn */
	bool full;	/* the next one does not go with them: it and all behind it are for a later turn */
	unsigned failed_looks;
	int64_t used_ns; /* of the time limit */
	struct outcome last;
	struct turns_total total; /* .saved is of the last one's outcome */
};

static bool
can_continue(const struct provider *p)
{
	return p != NULL && (p->starts[PROVIDER_RESUME] != NULL || p->starts[PROVIDER_FORK] != NULL);
}

/* The file may have changed since the run was started: then the command runs, and takes no message. */
static int
load_command(struct worker *w, struct turns *t, struct err *e)
{
	const char *const *argv = w->flow->ops[AGENT_OP].argv;
	const char *slash = strrchr(argv[0], '/');
	struct provider_search search;
	struct err why = {0};

	if (provider_search_init(&search, w->environment, e) != 0)
		return -1;
	if (provider_load(&search, slash != NULL ? slash + 1 : argv[0], &t->command, &why) != 0)
		log_line(LOG_WARNING, "%s", why.msg);
	else
		t->prompt_at = provider_command_prompt(t->command, argv);
	provider_search_clear(&search);
	return 0;
}

int
turns_init(struct worker *w, struct err *e)
{
	bool own;

	if (strcmp(w->launch.kind, "agent") != 0 || w->flow->nops != 1)
		return 0;
	own = w->flow->ops[AGENT_OP].kind == FLOW_EXEC;
	if (!own && !can_continue(agents_provider(w, AGENT_OP)))
		return 0;
	w->turns = calloc(1, sizeof(*w->turns));
	if (w->turns == NULL)
		return err_nomem(e);
	if (own && load_command(w, w->turns, e) != 0)
		return -1;
	if (own && w->turns->prompt_at == 0)
		turns_clear(w);
	return 0;
}

void
turns_clear(struct worker *w)
{
	if (w->turns != NULL) {
		provider_free(w->turns->command);
		outcome_clear(&w->turns->last);
	}
	free(w->turns);
	w->turns = NULL;
}

static bool
has_begun(const struct turns *t)
{
	return t->last.conversation != NULL;
}

int64_t
turns_time_left_ns(const struct worker *w, uint32_t i)
{
	int64_t limit = w->flow->ops[i].how->timeout_ns, used = w->turns != NULL ? w->turns->used_ns : 0;
	const struct attempt_run *a = w->ops[i].live;

	used += a != NULL ? a->before_ns : 0;

	if (limit == 0)
		return 0;
	return limit - used > 1 ? limit - used : 1;
}

static bool
has_time(const struct worker *w)
{
	int64_t limit = w->flow->ops[AGENT_OP].how->timeout_ns;

	return limit == 0 || w->turns->used_ns < limit;
}

/* ---- Messages ---- */

bool
turns_taking(const struct worker *w)
{
	const struct turns *t = w->turns;

	return t != NULL && t->open && t->total.saved && has_time(w) && !admission_over(w);
}

static bool
is_for_others(const struct worker *w, const struct json *payload)
{
	const struct json *to = json_get(payload, "to");

	return to != NULL && !slice_is(json_text(to), w->flow->ops[AGENT_OP].id);
}

static bool
takes_a_word(const struct worker *w)
{
	const struct provider *p = agents_provider(w, AGENT_OP);

	return w->turns->command != NULL || (p != NULL && p->prompt == PROVIDER_ARGUMENT);
}

/* The kernel takes a word only up to a size, and this one grows with every message. */
static int
check_size(const struct worker *w, const struct json *text, struct err *e)
{
	struct buf block = {0};
	int rc;

	if (!takes_a_word(w))
		return 0;
	turns_instruction(w, AGENT_OP, &block);
	rc = buf_ok(&block, e);
	if (rc == 0 && block.len + json_text(text).len + BLOCK_MOST > PROVIDER_MAX_ARGUMENT)
		rc = err_set(e, ERR_LIMIT, "the command takes its instruction as a word, which would be longer "
					   "than %zu bytes", PROVIDER_MAX_ARGUMENT);
	buf_clear(&block);
	return rc;
}

/* One that would fit alone, and not with those that came before it. */
static bool
is_full_for(const struct worker *w, const struct json *payload)
{
	struct turns *t = w->turns;
	struct err e = {0};

	if (!t->full && t->taken > 0)
		t->full = check_size(w, json_get(payload, "text"), &e) != 0 && e.code == ERR_LIMIT;
	return t->full;
}

bool
turns_hold(const struct worker *w, const struct json *payload)
{
	const struct op *op = &w->ops[AGENT_OP];

	if (w->turns == NULL || op_is_settled(op) || is_for_others(w, payload))
		return false;
	if (turns_taking(w))
		return is_full_for(w, payload);
	return has_begun(w->turns) || w->turns->command != NULL || !messages_can_reach(op);
}

int
turns_append(struct worker *w, const struct json *payload, double ts, struct err *e)
{
	const struct json *have = flow_context_kept(w, CONTEXT_MESSAGES);

	if (is_for_others(w, payload))
		return err_set(e, ERR_NOTFOUND, "there is no such operation");
	if (check_size(w, json_get(payload, "text"), e) != 0)
		return -1;
	if (flow_context_keep(w, CONTEXT_MESSAGES,
		messages_add_turn(have != NULL ? json_ref(have) : NULL, ts, json_get(payload, "text"),
		    w->flow->ops[AGENT_OP].id, w->turns->number + 1), e) != 0)
		return -1;
	w->turns->taken++;
	return 0;
}

void
turns_look_begins(struct worker *w)
{
	if (w->turns != NULL)
		w->turns->looking = w->turns->open && w->turns->total.saved;
}

void
turns_looked(struct worker *w, bool whole)
{
	struct turns *t = w->turns;

	if (t == NULL || !t->looking)
		return;
	t->looking = false;
	/* A database that cannot be read at all must not keep the outcome from people. */
	if (whole || ++t->failed_looks == LOOKS_MOST)
		t->looked = true;
	w->loop.again = true;
}

/* ---- The end of a turn ---- */

static void
tell_turn(struct worker *w, const struct attempt_run *a)
{
	event_begin(w, "TurnCompleted");
	event_op(w, a->op);
	event_int(w, "turn", w->turns->number);
	event_int(w, "ms", (int64_t)((a->ended_at - a->started_at) * 1000));
	event_end(w);
}

/* What is counted of the earlier turns is counted of the operation. */
static struct json *
add_usage(const struct json *before, struct json *now)
{
	struct json_iter it = json_iterate(before);
	struct json *sum = now != NULL ? now : json_object();
	const struct json *value;
	struct slice name;
	int64_t whole, more;
	double a, b = 0;

	while (json_next(&it, &name, &value)) {
		const struct json *have = json_getn(sum, name);

		if (json_int64(value, &whole) && (have == NULL || json_int64(have, &more)))
			sum = json_setn(sum, name, json_int(whole + (have != NULL ? more : 0)));
		else if (json_double(value, &a) && (have == NULL || json_double(have, &b)))
			sum = json_setn(sum, name, json_real(a + (have != NULL ? b : 0)));
	}
	return sum;
}

static void
take_outcome(struct turns *t, struct outcome *o)
{
	struct json *before = t->last.usage;

	t->last.usage = NULL;
	outcome_clear(&t->last);
	t->last = *o;
	*o = (struct outcome){0};
	if (before != NULL)
		t->last.usage = add_usage(before, t->last.usage);
	json_unref(before);
}

static bool
is_usable(const struct turns *t, const struct json *conversation)
{
	if (conversation == NULL || json_is_true(json_get(conversation, "tentative")))
		return false;
	return t->command == NULL || json_cstr_of(json_get(conversation, "id")) != NULL;
}

static bool
can_go_on(const struct worker *w, const struct outcome *o)
{
	return o->class == CLASS_NONE && is_usable(w->turns, o->conversation) && !admission_over(w) &&
	    has_time(w);
}

/*
 * Of a person's own command, whose output says nothing of it: a UUID that follows from the token of
 * its first turn's attempt. The token is durable before the process starts, so that a worker that
 * takes the process over knows the conversation too; the UUID tells nobody the token.
 */
static int
command_sid(const struct attempt_run *a, char to[AGENT_UUID_TEXT], struct err *e)
{
	struct json *token = json_cstr(a->token);
	char digest[CKPT_DIGEST_TEXT];
	const char *hex = digest + sizeof(CKPT_DIGEST_PREFIX) - 1;
	int rc = token == NULL ? err_nomem(e) : ckpt_digest(token, digest, e);

	json_unref(token);
	if (rc == 0) /* version 4, as random as the token */
		snprintf(to, AGENT_UUID_TEXT, "%.8s-%.4s-4%.3s-a%.3s-%.12s", hex, hex + 8, hex + 12,
		    hex + 15, hex + 18);
	return rc;
}

/* NULL: it is not known, or memory ran out, and no turn follows. */
static struct json *
own_conversation(const struct turns *t, const struct attempt_run *a)
{
	struct json *o = json_set(json_object(), "provider", json_cstr(t->command->name));
	char sid[AGENT_UUID_TEXT];
	struct err e = {0};

	if (has_begun(t))
		return json_set(o, "id", json_ref(json_get(t->last.conversation, "id")));
	if (a->token[0] == '\0' || command_sid(a, sid, &e) != 0) {
		json_unref(o);
		return NULL;
	}
	return json_set(o, "id", json_cstr(sid));
}

static void
add_attempt(struct turns_total *t, const struct attempt_run *a)
{
	if (t->started_at == 0)
		t->started_at = a->started_at;
	t->ended_at = a->ended_at;
	t->leftovers += a->leftovers;
	t->hung |= a->agent != NULL && a->agent->hung;
}

bool
turns_keep_open(struct attempt_run *a, struct outcome *o)
{
	struct worker *w = a->w;
	struct turns *t = w->turns;

	if (t == NULL)
		return false;
	add_attempt(&t->total, a);
	t->used_ns += a->before_ns;
	t->used_ns += a->started_ns > 0 ? clock_monotonic_ns() - a->started_ns : 0;
	if (o->class != CLASS_NONE)
		return false;
	if (t->command != NULL)
		o->conversation = own_conversation(t, a);
	t->number++;
	if (!can_go_on(w, o)) {
		o->usage = t->last.usage != NULL ? add_usage(t->last.usage, o->usage) : o->usage;
		return false;
	}
	take_outcome(t, o);
	t->open = true;
	t->total.saved = t->looked = t->looking = t->full = false;
	t->taken = t->failed_looks = 0;
	tell_turn(w, a);
	return true;
}

const struct outcome *
turns_outcome(const struct worker *w)
{
	return &w->turns->last;
}

void
turns_saved(struct worker *w, uint32_t i)
{
	struct turns *t = w->turns;

	if (t == NULL || i != AGENT_OP || !t->open || t->total.saved)
		return;
	t->total.saved = true;
	control_look(w);
}

void
turns_failed(struct worker *w, uint32_t i, struct outcome *o)
{
	const struct turns *t = w->turns;
	struct buf text = {0};

	if (t == NULL || i != AGENT_OP || !has_begun(t))
		return;
	buf_printf(&text, "turn %lld: %s", (long long)t->number + 1, o->message != NULL ? o->message : "");
	free(o->message);
	o->message = buf_steal(&text);
	json_unref(o->response);
	json_unref(o->conversation);
	o->response = t->last.response != NULL ? json_ref(t->last.response) : NULL;
	o->conversation = json_ref(t->last.conversation);
	memcpy(o->digest, t->last.digest, sizeof(o->digest));
	o->lossy = t->last.lossy;
	json_unref(o->output);
	o->output = t->last.output != NULL ? json_ref(t->last.output) : NULL;
	o->of_response = t->last.of_response;
	o->by_reference = t->last.by_reference;
	if (t->last.usage != NULL)
		o->usage = add_usage(t->last.usage, o->usage);
}

struct json *
turns_describe(const struct worker *w, uint32_t i, struct json *entry)
{
	if (w->turns == NULL || i != AGENT_OP || w->turns->number < 2)
		return entry;
	return json_set(entry, "turns", json_int(w->turns->number));
}

/* ---- What follows ---- */

static void
go_on(struct worker *w)
{
	event_begin(w, "MessageRendered");
	event_op(w, AGENT_OP);
	event_int(w, "count", w->turns->taken);
	event_end(w);
	w->ops[AGENT_OP].replayed = false;
	w->turns->open = false;
	w->settling--;
	admission_ready(w, AGENT_OP);
}

static void
finish(struct worker *w)
{
	struct turns *t = w->turns;

	t->open = false;
	settle_turns(w, AGENT_OP, &t->last, &t->total);
}

void
turns_decide(struct worker *w)
{
	struct turns *t = w->turns;

	if (t == NULL || !t->open)
		return;
	/* The marks are durable before the operation starts. */
	if (!admission_over(w) && (!t->looked || w->waits != NULL))
		return;
	if (t->taken > 0)
		go_on(w);
	else
		finish(w);
}

const struct json *
turns_conversation(const struct worker *w, uint32_t i)
{
	return w->turns != NULL && i == AGENT_OP ? w->turns->last.conversation : NULL;
}

void
turns_instruction(const struct worker *w, uint32_t i, struct buf *to)
{
	messages_lines(flow_context_kept(w, CONTEXT_MESSAGES), w->flow->ops[i].id, w->turns->number + 1, to);
}

/* ---- The words of a person's own command ---- */

bool
turns_is_command(const struct worker *w, uint32_t i)
{
	return w->turns != NULL && i == AGENT_OP && w->turns->command != NULL;
}

const char *
turns_command_word(struct worker *w, size_t at, struct buf *scratch)
{
	if (at != w->turns->prompt_at || !has_begun(w->turns))
		return w->flow->ops[AGENT_OP].argv[at];
	buf_reset(scratch);
	turns_instruction(w, AGENT_OP, scratch);
	return scratch->failed ? NULL : buf_text(scratch);
}

int
turns_command_more(struct worker *w, struct provider_words *out, struct err *e)
{
	const struct turns *t = w->turns;
	struct provider_values v = {0};
	char sid[AGENT_UUID_TEXT];

	if (has_begun(t)) {
		v.at[PLACE_OLD] = json_cstr_of(json_get(t->last.conversation, "id"));
		return provider_words(t->command, t->command->command_resume, &v, out, e);
	}
	if (command_sid(w->ops[AGENT_OP].live, sid, e) != 0)
		return -1;
	v.at[PLACE_SID] = sid;
	return provider_words(t->command, t->command->command_new, &v, out, e);
}

/* ---- After a resume ---- */

static struct json *
member(const struct json *entry, const char *name)
{
	const struct json *v = json_get(entry, name);

	return v != NULL && json_type(v) != JSON_NULL ? json_ref(v) : NULL;
}

static void
restore_outcome(struct worker *w, const struct json *entry)
{
	struct outcome *o = &w->turns->last;
	const char *digest = json_cstr_of(json_get(entry, "result_digest"));

	o->response = member(entry, "response");
	o->conversation = member(entry, "conversation");
	o->usage = member(entry, "usage");
	o->artifacts = member(entry, "artifacts");
	o->output = member(entry, CKPT_OUTPUT);
	o->lossy = json_is_true(json_get(entry, "response_lossy"));
	o->by_reference = ckpt_is_file(entry);
	if (digest != NULL)
		snprintf(o->digest, sizeof(o->digest), "%s", digest);
}

/* Its last turn has ended; what nobody had claimed by then came over to this run. */
static void
reopen(struct worker *w, uint32_t i)
{
	op_become(&w->ops[i], OP_SETTLING);
	w->settling++;
	w->ops[i].replayed = true;
	w->turns->open = w->turns->total.saved = true;
}

bool
turns_restore(struct worker *w, uint32_t i, const struct json *entry)
{
	const struct json *messages = flow_context_kept(w, CONTEXT_MESSAGES);
	int64_t marked, had = 0;

	if (w->turns == NULL || i != AGENT_OP)
		return false;
	marked = messages_last_turn(messages, w->flow->ops[i].id);
	/* All of it begins anew: it gets every message at once, and counts behind them. */
	if (entry == NULL) {
		w->turns->number = marked > 0 ? marked - 1 : 0;
		return false;
	}
	if (!json_int64(json_get(entry, "turns"), &had))
		had = 1;
	w->turns->number = had;
	if (!slice_is(json_text(json_get(entry, "status")), "completed") ||
	    !is_usable(w->turns, json_get(entry, "conversation")))
		return false;
	restore_outcome(w, entry);
	if (marked <= had)
		reopen(w, i);
	return true;
}
