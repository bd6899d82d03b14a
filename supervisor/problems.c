#include <string.h>

#include "cli.h"
#include "problems.h"

const char *
problems_file(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : path;
}

void
problems_print(const char *file, const struct flow_diagnostics *d, bool warnings)
{
	const struct flow_diagnostic *p;
	const char *mark = warnings ? "warning: " : "";
	size_t i;

	for (i = 0; i < d->count; i++) {
		p = &d->items[i];
		if (p->warning != warnings)
			continue;
		if (p->where.line > 0)
			cli_note("%s:%u:%u: %s%s", file, p->where.line, p->where.column, mark,
			    p->message);
		else
			cli_note("%s: %s%s", file, mark, p->message);
		if (p->hint[0] != '\0')
			cli_hint("%s", p->hint);
	}
}

size_t
problems_count(const struct flow_diagnostics *d)
{
	size_t i, n = d->suppressed;

	for (i = 0; i < d->count; i++)
		n += !d->items[i].warning;
	return n;
}

static struct json *
problem_json(const struct flow_diagnostic *p)
{
	struct json *o = json_object();

	if (p->where.line > 0) {
		o = json_set(o, "line", json_uint(p->where.line));
		o = json_set(o, "column", json_uint(p->where.column));
	}
	o = json_set(o, "message", json_string_lossy(slice_of(p->message), NULL));
	if (p->hint[0] != '\0')
		o = json_set(o, "hint", json_string_lossy(slice_of(p->hint), NULL));
	return json_set(o, "warning", json_bool(p->warning));
}

struct json *
problems_json(const struct flow_diagnostics *d)
{
	struct json *list = json_array();
	size_t i;

	for (i = 0; i < d->count; i++)
		list = json_append(list, problem_json(&d->items[i]));
	return list;
}
