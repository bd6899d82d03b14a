/* Texts of a document with what their templates stand for. */
#include "given.h"

#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "plan.h"

static int
resolve_response(struct building *b, struct slice id, struct buf *to, struct err *e)
{
	const struct worker *w = b->w;
	char name[FLOW_MAX_ID + 1];
	const struct json *response;
	size_t from;

	snprintf(name, sizeof(name), "%.*s", (int)id.len, id.data);
	from = flow_find(w->flow, name);
	if (from != SIZE_MAX)
		from = flow_final(w->flow, (uint32_t)from);
	if (from == SIZE_MAX || !op_is_settled(&w->ops[from]))
		return err_set(e, ERR_DOCUMENT, "{{ops.%s.response}} is not there yet", name);
	response = w->ops[from].response;
	if (w->ops[from].by_reference)
		return err_set(e, ERR_LIMIT, "the response of %s is too large for a template; "
		    "read the file FLOWSUP_DEP_<ID>", name);
	if (response == NULL || json_type(response) == JSON_NULL)
		return 0;
	if (json_type(response) == JSON_STRING)
		buf_slice(to, json_text(response));
	else
		json_write(to, response);
	return 0;
}

/* Of the operation that stands for it, where another try took its place. */
static int
resolve_artifacts(struct building *b, struct slice id, struct buf *to, struct err *e)
{
	struct worker *w = b->w;
	char name[FLOW_MAX_ID + 1];
	size_t from;

	snprintf(name, sizeof(name), "%.*s", (int)id.len, id.data);
	from = flow_find(w->flow, name);
	if (from != SIZE_MAX)
		from = flow_final(w->flow, (uint32_t)from);
	buf_printf(to, "%s/%s", w->artifacts_path, from != SIZE_MAX ? w->flow->ops[from].id : name);
	return from != SIZE_MAX ? artifact_dir_keep(w, (uint32_t)from, e) : 0;
}

static int
resolve_args(struct building *b, struct slice name, struct buf *to, struct err *e)
{
	const struct json *value = json_getn(b->w->args, name);

	if (value == NULL)
		return err_set(e, ERR_DOCUMENT, "{{args.%.*s}} has no value", (int)name.len,
		    name.data);
	if (json_type(value) == JSON_STRING)
		buf_slice(to, json_text(value));
	else
		json_write(to, value);
	return 0;
}

static int
resolve(void *arg, enum flow_reference ref, struct slice name, struct buf *to, struct err *e)
{
	struct building *b = arg;
	const struct flow_op *def = &b->w->flow->ops[b->op];

	switch (ref) {
	case FLOW_REF_RESPONSE:
		return resolve_response(b, name, to, e);
	case FLOW_REF_ARTIFACTS:
		return resolve_artifacts(b, name, to, e);
	case FLOW_REF_PROMPT:
		buf_puts(to, b->w->flow->prompt);
		return 0;
	case FLOW_REF_ARG:
		return resolve_args(b, name, to, e);
	case FLOW_REF_ITEM:
		buf_puts(to, def->item == NULL ? "" : def->item);
		return 0;
	}
	return err_set(e, ERR_INTERNAL, "unknown template");
}

bool
given_is_literal(const struct worker *w, uint32_t i)
{
	const struct flow_grown *g = flow_grown(w->flow, i);

	return g != NULL && g->kind == FLOW_GROWN_SPAWN;
}

/* What it is given by who asked for it. */
static void
add_given_context(const struct worker *w, uint32_t i, struct buf *to)
{
	const struct json *context = given_context(w, i);

	if (context == NULL)
		return;
	buf_puts(to, "[CONTEXT]\n");
	json_write_pretty(to, context);
	buf_puts(to, "\n[/CONTEXT]\n\n");
}

const struct json *
given_context(const struct worker *w, uint32_t i)
{
	const struct flow_grown *g = flow_grown(w->flow, i);
	const struct json *context = g != NULL && g->kind == FLOW_GROWN_SPAWN
	    ? json_get(g->entry, "context") : NULL;

	return context != NULL && json_type(context) != JSON_NULL ? context : NULL;
}

int
context_instruction(struct worker *w, uint32_t i, struct buf *to, struct err *e)
{
	struct building b = {.w = w, .op = i};
	const char *text = w->flow->ops[i].text;

	messages_before_instruction(w, i, to);
	if (!agents_provider(w, i)->shell)
		add_given_context(w, i, to);
	if (given_is_literal(w, i)) {
		buf_puts(to, text);
		return buf_ok(to, e);
	}
	if (agents_provider(w, i)->shell) {
		flow_unescape(text, to);
		return buf_ok(to, e);
	}
	if (flow_render(text, resolve, &b, to, e) != 0)
		return err_wrap(e, "instruction");
	if (plan_is_awaited(w, i))
		plan_instruction(w, to);
	if (flow_is_synthesis(w->flow, i) && synthesis_instruction(w, to, e) != 0)
		return -1;
	if (buf_ok(to, e) == 0 && memchr(buf_text(to), '\0', to->len) == NULL)
		return 0;
	return to->failed ? -1 : err_set(e, ERR_LIMIT, "instruction: a response in it holds a NUL; let "
	    "the agent read the file FLOWSUP_DEP_<ID>");
}

int
given_rendered(struct building *b, const char *what, const char *text, struct err *e)
{
	size_t from = b->text->len;

	if (!flow_has_template(text)) {
		buf_add(b->text, text, strlen(text) + 1);
		return 0;
	}
	if (flow_render(text, resolve, b, b->text, e) != 0)
		return err_wrap(e, "%s", what);
	if (b->text->failed)
		return err_nomem(e);
	if (b->text->len - from > FLOW_MAX_RENDERED_VALUE ||
	    memchr(b->text->data + from, '\0', b->text->len - from) != NULL)
		return err_set(e, ERR_LIMIT, "%s is longer than 64 KiB or holds a NUL; "
		    "read the response from the file FLOWSUP_DEP_<ID>", what);
	buf_putc(b->text, '\0');
	return 0;
}
