#include <string.h>

#include "plan.h"
#include "problems.h"
#include "start.h"

static const char *const kinds[] = {"run", "exec", "instruction"};

static struct json *
bytes(const char *text)
{
	return json_string_lossy(slice_of(text), NULL);
}

static struct json *
operation_json(const struct flow *f, const struct flow_op *op)
{
	struct json *o = json_set(json_object(), "id", json_cstr(op->id)), *list;
	const char *const *argument;
	uint32_t i;

	if (op->text != NULL)
		o = json_set(o, kinds[op->kind], bytes(op->text));
	if (op->argv != NULL) {
		list = json_array();
		for (argument = op->argv; *argument != NULL; argument++)
			list = json_append(list, bytes(*argument));
		o = json_set(o, kinds[op->kind], list);
	}
	o = json_set(o, "item", op->item != NULL ? bytes(op->item) : json_null());
	o = json_set(o, "assignee", op->how->assignee != NULL ? json_cstr(op->how->assignee) : json_null());
	list = json_array();
	for (i = 0; i < op->nneeds; i++)
		list = json_append(list, json_cstr(f->ops[op->needs[i].op].id));
	return json_set(o, "needs", list);
}

static struct json *
operations_json(const struct flow *f)
{
	struct json *list = json_array();
	size_t i;

	for (i = 0; i < f->nops; i++)
		list = json_append(list, operation_json(f, &f->ops[f->order[i]]));
	return list;
}

struct json *
plan_of(const struct flow *f, struct json *o)
{
	o = json_set(o, "name", f->name != NULL ? bytes(f->name) : json_null());
	o = json_set(o, "operations", json_uint(f->nops));
	return json_set(o, "ops", operations_json(f));
}

struct json *
plan_document(const struct flow *f, const char *path, const struct flow_diagnostics *d)
{
	struct json *o = json_set(json_object(), "file", bytes(problems_file(path)));
	struct buf name = {0};

	o = json_set(o, "valid", json_bool(f != NULL));
	if (f != NULL)
		o = plan_of(f, o);
	if (f != NULL && f->name == NULL) {
		start_name(path, &name);
		o = json_set(o, "name", name.failed ? NULL : json_string_lossy(buf_view(&name), NULL));
		buf_clear(&name);
	}
	return json_set(o, "problems", problems_json(d));
}

void
plan_tell_unplanned(const struct flow *f, struct output *out)
{
	if (f->unplanned)
		out_printf(out, "What the planner answers is done behind it%s.\n", f->synthesis != NULL
			? "; the synthesis comes last, and not at all when the planner fails" : "");
}

int
plan_draw(struct output *out, const struct flow *f, int64_t asked, flow_graph_label *label, void *arg,
    struct err *e)
{
	bool text = asked == FLOW_GRAPH_TEXT;
	enum flow_graph_format format = text && !(out->colour && out->unicode) ? FLOW_GRAPH_PLAIN
	    : (enum flow_graph_format)asked;
	struct buf b = {0};
	int r;

	flow_graph_within(f, format, out->width, label, arg, &b);
	r = buf_ok(&b, e);
	if (r == 0 && text && out->width > 0)
		plan_lines(out, buf_view(&b), format == FLOW_GRAPH_TEXT);
	else if (r == 0)
		out_text(out, buf_view(&b), true);
	buf_clear(&b);
	return r;
}
