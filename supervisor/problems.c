#include <string.h>

#include "cli.h"
#include "flowsup/config.h"
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
		else if (file != NULL)
			cli_note("%s: %s%s", file, mark, p->message);
		else
			cli_note("%s%s", mark, p->message);
		if (p->hint[0] != '\0')
			(p->command ? cli_hint : cli_advice)("%s", p->hint);
	}
	if (d->suppressed > 0 && !warnings)
		cli_note("%s%sand %zu more", file != NULL ? file : "", file != NULL ? ": " : "",
		    d->suppressed);
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
	struct buf command = {0};

	if (p->command)
		cli_hint_text(&command, p->hint);
	o = json_set(o, "line", p->where.line > 0 ? json_uint(p->where.line) : json_null());
	o = json_set(o, "column", p->where.line > 0 ? json_uint(p->where.column) : json_null());
	o = json_set(o, "message", json_string_lossy(slice_of(p->message), NULL));
	o = json_set(o, "hint", json_text_or_null(buf_text(&command)));
	buf_clear(&command);
	o = json_set(o, "advice", p->command ? json_null() : json_text_or_null(p->hint));
	return json_set(o, "warning", json_bool(p->warning));
}

void
problems_warn(struct cli *c, const char *file, const struct flow_diagnostics *d)
{
	size_t i;

	if (!c->json) {
		problems_print(file, d, true);
		return;
	}
	for (i = 0; i < d->count; i++)
		if (d->items[i].warning)
			c->warnings = json_append(c->warnings != NULL ? c->warnings : json_array(),
			    problem_json(&d->items[i]));
}

void
problems_warn_of(struct cli *c, const char *text, const char *hint)
{
	struct flow_diagnostic one = {.warning = true, .command = true};

	if (!c->json) {
		cli_note("%s", text);
		cli_hint("%s", hint);
		return;
	}
	strlcpy(one.message, text, sizeof(one.message));
	strlcpy(one.hint, hint, sizeof(one.hint));
	c->warnings = json_append(c->warnings != NULL ? c->warnings : json_array(), problem_json(&one));
}

struct json *
problems_take_warnings(struct cli *c)
{
	struct json *all = c->warnings != NULL ? c->warnings : json_array();

	c->warnings = NULL;
	return all;
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

size_t
problems_refuse(struct cli *c, const char *file, const struct flow_diagnostics *d)
{
	size_t n = problems_count(d);

	if (c->json && d->count > 0) {
		json_unref(c->problems);
		c->problems = problems_json(d);
	}
	if (!c->json && n > 1)
		problems_print(file, d, false);
	return n;
}

int
problems_config(struct cli *c, struct config *config, const char *behind, struct err *e)
{
	struct flow_diagnostics d = {0};
	int rc = config_read_all(NULL, config, &d, e);

	if (rc != 0) {
		problems_tell(c, config->path, &d, behind, e);
		config_clear(config);
	}
	flow_diagnostics_clear(&d);
	return rc;
}

int
problems_tell(struct cli *c, const char *file, const struct flow_diagnostics *d, const char *behind,
    struct err *e)
{
	size_t n = e->code != ERR_NOMEM ? problems_refuse(c, file, d) : 0;

	return n > 1 ? err_set(e, e->code, "%s: %zu problems%s", file, n, behind) : -1;
}
