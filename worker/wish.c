#include "wish.h"

#include <string.h>

#include "agent.h"

const char *
wish_reject_word(enum wish_reject r)
{
	static const char *const words[] = {
#define X(name, word) word,
	    WISH_REJECTS(X)
#undef X
	};

	return words[r];
}

static const struct flow_op *
op_of(const struct worker *w, uint32_t i)
{
	return &w->flow->ops[i];
}

/* ---- Form ---- */

/* What the command adds for itself, and the checkpoint's way to say the same, are not offered. */
static int
unknown_member(struct slice name, const char *const *known, struct err *e)
{
	struct buf text = {0};
	size_t i;

	buf_printf(&text, "a request has no member \"%.*s\": it may have", (int)(name.len < 64 ? name.len : 64),
	    name.data);
	for (i = 0; known[i] != NULL; i++)
		if (strcmp(known[i], "id") != 0 && strcmp(known[i], "operation") != 0)
			buf_printf(&text, "%s %s", i > 0 ? "," : "", known[i]);
	if (buf_ok(&text, e) == 0)
		err_set(e, ERR_REFUSED, "%s", buf_text(&text));
	buf_clear(&text);
	return -1;
}

static int
check_members(const struct json *request, const char *const *known, struct err *e)
{
	struct json_iter it = json_iterate(request);
	const struct json *value;
	struct slice name;
	size_t i;

	while (json_next(&it, &name, &value)) {
		for (i = 0; known[i] != NULL && !slice_is(name, known[i]); i++)
			;
		if (known[i] == NULL)
			return unknown_member(name, known, e);
	}
	return 0;
}

static int
take_text(const struct json *request, const char *name, const struct json **out, struct err *e)
{
	const struct json *v = json_get(request, name);

	*out = NULL;
	if (v == NULL || json_type(v) == JSON_NULL)
		return 0;
	if (json_cstr_of(v) == NULL || json_text(v).len == 0)
		return err_set(e, ERR_REFUSED, "\"%s\" must be a text, not empty and without NUL", name);
	*out = v;
	return 0;
}

static const struct {
	const char *word;
	enum flow_kind kind;
} works[] = {{"instruction", FLOW_INSTRUCTION}, {"run", FLOW_RUN}, {"exec", FLOW_EXEC}};
enum { WORKS = sizeof(works) / sizeof(works[0]) };

static bool
is_given(const struct json *request, const char *name)
{
	const struct json *v = json_get(request, name);

	return v != NULL && json_type(v) != JSON_NULL;
}

/* {"run": …}, or {"operation": "run", "instruction": …} as the checkpoint has it. */
static int
find_work(const struct json *request, struct wish *out, enum wish_reject *why, struct err *e)
{
	/* Words of an older format for an instruction. */
	static const char *const older[] = {"operate", "chat", "communicate", "ReAct"};
	const struct json *operation = json_get(request, "operation");
	size_t i, n = 0;

	for (i = 0; i < WORKS; i++) {
		if (!is_given(request, works[i].word))
			continue;
		out->kind = works[i].kind;
		out->what = json_get(request, works[i].word);
		n++;
	}
	if (n > 1)
		return err_set(e, ERR_REFUSED, "it says more than one thing to do");
	if (n == 0) {
		*why = WISH_NULL_CHILD;
		return err_set(e, ERR_REFUSED, "it says nothing to do: \"instruction\", \"run\" or \"exec\"");
	}
	if (operation == NULL || json_type(operation) == JSON_NULL)
		return 0;
	for (i = 0; i < sizeof(older) / sizeof(older[0]); i++)
		if (slice_is(json_text(operation), older[i]) && out->kind == FLOW_INSTRUCTION)
			return 0;
	for (i = 0; i < WORKS && !slice_is(json_text(operation), works[i].word); i++)
		;
	if (i == WORKS || (works[i].kind != out->kind && out->kind != FLOW_INSTRUCTION))
		return err_set(e, ERR_REFUSED, "its \"operation\" is not what it says to do");
	out->kind = works[i].kind;
	return 0;
}

static bool
is_blank(struct slice text)
{
	size_t i;

	for (i = 0; i < text.len && strchr(" \t\r\n", text.data[i]) != NULL; i++)
		;
	return i == text.len;
}

static int
check_words(const struct json *what, enum wish_reject *why, struct err *e)
{
	struct json_iter it = json_iterate(what);
	const struct json *word;

	if (json_type(what) != JSON_ARRAY)
		return err_set(e, ERR_REFUSED, "\"exec\" must be a list: program and arguments");
	while (json_next(&it, NULL, &word))
		if (json_cstr_of(word) == NULL)
			return err_set(e, ERR_REFUSED, "\"exec\" must be a list of texts without NUL");
	if (json_length(what) > 0 && json_text(json_at(what, 0)).len > 0)
		return 0;
	*why = WISH_NULL_CHILD;
	return err_set(e, ERR_REFUSED, "\"exec\" names no program");
}

static int
check_work(const struct wish *wish, enum wish_reject *why, struct err *e)
{
	if (wish->kind == FLOW_EXEC)
		return check_words(wish->what, why, e);
	if (json_type(wish->what) != JSON_STRING || (json_cstr_of(wish->what) == NULL))
		return err_set(e, ERR_REFUSED, "what is to be done must be a text without NUL");
	if (!is_blank(json_text(wish->what)))
		return 0;
	*why = WISH_NULL_CHILD;
	return err_set(e, ERR_REFUSED, "what is to be done is blank");
}

static int
check_context(const struct json *request, struct wish *out, struct err *e)
{
	const struct json *v = json_get(request, "independent");

	if (v != NULL && json_type(v) != JSON_BOOL && json_type(v) != JSON_NULL)
		return err_set(e, ERR_REFUSED, "\"independent\" must be true or false");
	out->independent = json_is_true(v);
	v = json_get(request, "context");
	if (v == NULL || json_type(v) == JSON_NULL)
		return 0;
	if (json_encoded_length(v) > WISH_CONTEXT_MOST)
		return err_set(e, ERR_REFUSED, "\"context\" may have %d bytes of JSON", WISH_CONTEXT_MOST);
	out->context = v;
	return 0;
}

static int
read_form(const struct json *request, struct wish *out, enum wish_reject *why, struct err *e)
{
	static const char *const known[] = {"instruction", "run", "exec", "operation", "assignee",
	    "independent", "reason", "context", "key", "id", NULL};

	if (request == NULL || json_type(request) == JSON_NULL) {
		*why = WISH_NULL_CHILD;
		return err_set(e, ERR_REFUSED, "there is nothing in it");
	}
	if (json_type(request) != JSON_OBJECT)
		return err_set(e, ERR_REFUSED, "a request must be an object, not %s",
		    json_type_name(request));
	if (check_members(request, known, e) != 0 || find_work(request, out, why, e) != 0 ||
	    check_work(out, why, e) != 0 || check_context(request, out, e) != 0 ||
	    take_text(request, "reason", &out->reason, e) != 0)
		return -1;
	return take_text(request, "key", &out->key, e);
}

/* ---- Who may ask for what ---- */

bool
wish_reads_settings(const struct worker *w, uint32_t i)
{
	const struct provider *p = agents_role_provider(w, op_of(w, i)->how->role);

	return p == NULL || p->reads_user_settings;
}

static int
check_allowed(const struct worker *w, uint32_t emitter, struct err *e)
{
	const struct flow_role *role = op_of(w, emitter)->how->role;
	const struct json *reactive = w->flow->reactive;

	if (flow_reactive_allows(w->flow, role != NULL ? role->name : NULL))
		return 0;
	if (reactive == NULL || slice_is(json_text(reactive), "off"))
		err_set(e, ERR_REFUSED, "not allowed: reactive is off");
	else if (role == NULL)
		err_set(e, ERR_REFUSED,
		    "not allowed: an operation without a role may ask only with reactive: all");
	else
		err_set(e, ERR_REFUSED, "not allowed: reactive does not name the role %s", role->name);
	return err_hint(e, "man 5 flowsup-flow   # GROWTH: \"reactive\" at the top of the document");
}

static int
find_role(const struct worker *w, const char *name, const struct flow_role **out, struct err *e)
{
	*out = flow_find_role(w->flow, name);
	return *out != NULL ? 0 : err_set(e, ERR_REFUSED, "there is no role \"%.64s\"", name);
}

/* What a model asks for is work for a model, unless a person has said otherwise. */
static int
check_model(const struct worker *w, uint32_t emitter, const struct wish *wish, struct err *e)
{
	const struct provider *p = agents_role_provider(w, wish->role);

	if (op_of(w, emitter)->kind != FLOW_INSTRUCTION || w->flow->model_commands)
		return 0;
	if (wish->kind != FLOW_INSTRUCTION)
		return err_set(e, ERR_REFUSED,
		    "an agent may not ask for commands: model_commands is not true");
	if (p != NULL && p->shell)
		return err_set(e, ERR_REFUSED,
		    "an agent may not ask for shell text (role %s): model_commands is not true",
		    wish->role->name);
	return 0;
}

/* For whatever reason it runs: the rule that a resume applies too. */
static int
check_settings(const struct worker *w, uint32_t emitter, const struct wish *wish, struct err *e)
{
	const struct provider *p = agents_role_provider(w, wish->role);

	if (wish->kind != FLOW_INSTRUCTION)
		return 0;
	if (wish->role == NULL)
		return err_set(e, ERR_REFUSED, "an instruction needs a role: say which by \"assignee\"");
	if (p == NULL)
		return err_set(e, ERR_REFUSED, "role %s has no provider that could be used",
		    wish->role->name);
	if (p->reads_user_settings && !wish_reads_settings(w, emitter))
		return err_set(e, ERR_REFUSED, "role %s reads settings of the user, and the operation that "
		    "asks does not", wish->role->name);
	return 0;
}

static int
check_rights(const struct worker *w, uint32_t emitter, const struct wish *wish, struct err *e)
{
	if (check_settings(w, emitter, wish, e) != 0 || check_model(w, emitter, wish, e) != 0)
		return -1;
	if (w->flow->model_commands)
		return 0;
	return flow_check_authority(op_of(w, emitter)->how->role, wish->role, e);
}

/* ---- Cycles ---- */

static bool
same_context(const struct json *recorded, const struct json *asked)
{
	if (recorded == NULL || json_type(recorded) == JSON_NULL)
		return asked == NULL;
	return asked != NULL && json_equal(recorded, asked);
}

static bool
is_same_work(const struct worker *w, uint32_t i, const struct wish *wish)
{
	const struct flow_op *op = op_of(w, i);
	const struct flow_grown *g = flow_grown(w->flow, i);

	return op->kind == FLOW_INSTRUCTION && op->how->role == wish->role && op->text != NULL &&
	    slice_is(json_text(wish->what), op->text) &&
	    same_context(g != NULL ? json_get(g->entry, "context") : NULL, wish->context);
}

/* An agent that hands its own task on, word for word, would do so for ever. */
static int
check_cycle(const struct worker *w, uint32_t emitter, const struct wish *wish,
    enum wish_reject *why, struct err *e)
{
	const struct flow_grown *g;
	uint32_t i;

	if (wish->kind != FLOW_INSTRUCTION || op_of(w, emitter)->kind != FLOW_INSTRUCTION ||
	    wish->key != NULL)
		return 0;
	for (i = emitter; i != FLOW_NO_OP; i = g != NULL ? g->parent : FLOW_NO_OP) {
		g = flow_grown(w->flow, i);
		if (!is_same_work(w, i, wish))
			continue;
		*why = WISH_CYCLE;
		return err_set(e, ERR_REFUSED, "it is the task of %s itself, for the same role", op_of(w, i)->id);
	}
	return 0;
}

/* ---- Both ---- */

int
wish_spawn(const struct worker *w, uint32_t emitter, const struct json *request, struct wish *out,
    enum wish_reject *why, struct err *e)
{
	const struct json *assignee;

	*out = (struct wish){.role = op_of(w, emitter)->how->role};
	*why = WISH_BUILDER_ERROR;
	if (check_allowed(w, emitter, e) != 0 || read_form(request, out, why, e) != 0 ||
	    take_text(request, "assignee", &assignee, e) != 0)
		return -1;
	if (assignee != NULL && find_role(w, json_cstr_of(assignee), &out->role, e) != 0)
		return -1;
	if (check_rights(w, emitter, out, e) != 0)
		return -1;
	return check_cycle(w, emitter, out, why, e);
}

static int
escalation_form(const struct json *request, const struct json **to, struct wish *out, struct err *e)
{
	static const char *const known[] = {"to", "reason", "id", NULL};

	*to = NULL;
	if (request == NULL || json_is_true(request))
		return 0;
	if (json_type(request) == JSON_STRING) {
		*to = request;
		return 0;
	}
	if (json_type(request) != JSON_OBJECT)
		return err_set(e, ERR_REFUSED, "\"escalate\" is true, a role, or {to, reason}, not %s",
		    json_type_name(request));
	if (check_members(request, known, e) != 0 || take_text(request, "to", to, e) != 0)
		return -1;
	return take_text(request, "reason", &out->reason, e);
}

static int
check_retry(const struct worker *w, uint32_t emitter, const struct wish *wish, struct err *e)
{
	const struct flow_op *op = op_of(w, emitter);
	const struct provider *p = agents_role_provider(w, wish->role);

	if (op->kind == FLOW_INSTRUCTION && p != NULL && p->shell && flow_has_reference(op->text))
		return err_set(e, ERR_REFUSED, "role %s takes shell text, and %s has templates",
		    wish->role->name, op->id);
	return check_settings(w, emitter, wish, e);
}

int
wish_escalation(const struct worker *w, uint32_t emitter, const struct json *request, bool failed,
    struct wish *out, enum wish_reject *why, struct err *e)
{
	const struct flow_role *own = op_of(w, emitter)->how->role;
	const char *declared = own != NULL ? own->escalate_to : NULL;
	const struct json *to;
	const char *name;

	*out = (struct wish){.retry = true, .kind = op_of(w, emitter)->kind};
	*why = WISH_BUILDER_ERROR;
	if (escalation_form(request, &to, out, e) != 0)
		return -1;
	name = to != NULL ? json_cstr_of(to) : declared;
	if (name == NULL)
		return err_set(e, ERR_REFUSED, own != NULL
		    ? "its role has no escalate_to: say to which role" : "say to which role");
	/* Where the document itself names the role, a person has allowed it. */
	if ((declared == NULL || strcmp(declared, name) != 0) && !failed &&
	    check_allowed(w, emitter, e) != 0)
		return -1;
	if (find_role(w, name, &out->role, e) != 0 || check_retry(w, emitter, out, e) != 0)
		return -1;
	return flow_is_declared_escalation(own, out->role) ? 0 : check_rights(w, emitter, out, e);
}
