/* {{...}} in instructions, arguments and environment values. */
#include "flowsup/log.h"
#include "flowsup/places.h"
#include "template.h"

static const struct {
	const char *before, *after;
	enum flow_reference ref;
} forms[] = {
    {"ops.", ".response", FLOW_REF_RESPONSE},
    {"artifacts.", "", FLOW_REF_ARTIFACTS},
    {"args.", "", FLOW_REF_ARG},
    {"prompt", "", FLOW_REF_PROMPT},
    {"item", "", FLOW_REF_ITEM},
};

static bool
has_name(enum flow_reference ref)
{
	return ref != FLOW_REF_PROMPT && ref != FLOW_REF_ITEM;
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static struct slice
trimmed(const char *from, const char *to)
{
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	return (struct slice){from, (size_t)(to - from)};
}

static bool
parse(struct slice inside, struct template_reference *out)
{
	size_t i, before, after;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		before = strlen(forms[i].before);
		after = strlen(forms[i].after);
		if (inside.len < before + after + has_name(forms[i].ref) ||
		    memcmp(inside.data, forms[i].before, before) != 0 ||
		    memcmp(inside.data + inside.len - after, forms[i].after, after) != 0)
			continue;
		if (!has_name(forms[i].ref) && inside.len != before)
			continue;
		out->ref = forms[i].ref;
		out->name = (struct slice){inside.data + before, inside.len - before - after};
		return memchr(out->name.data, ' ', out->name.len) == NULL;
	}
	return false;
}

int
template_at(const char *text, struct template_reference *out, struct err *e)
{
	const char *first = text + 2, *end;
	struct slice inside;

	first += strspn(first, " \t");
	if (!is_letter(*first))
		return 0;
	end = strstr(first, "}}");
	if (end == NULL) {
		err_set(e, ERR_DOCUMENT, "\"%.20s...\" is not closed by }}", text);
		return err_advice(e, "write \\{{ where {{ stands for itself");
	}
	inside = trimmed(first, end);
	if (parse(inside, out)) {
		out->whole = (struct slice){text, (size_t)(end + 2 - text)};
		return 1;
	}
	err_set(e, ERR_DOCUMENT, "{{%.*s}} is no template",
	    (int)(inside.len > 80 ? 80 : inside.len), inside.data);
	return err_advice(e, "templates are {{ops.ID.response}} {{artifacts.ID}} {{prompt}} "
			   "{{args.NAME}} {{item}}; write \\{{ where {{ stands for itself");
}

int
template_next(const char **at, struct template_reference *out, struct err *e)
{
	const char *start = *at, *p;
	int r;

	for (p = start; (p = strstr(p, "{{")) != NULL; p += 2) {
		if (p > start && p[-1] == '\\')
			continue;
		r = template_at(p, out, e);
		if (r < 0)
			return -1;
		if (r == 1) {
			*at = p + out->whole.len;
			return 1;
		}
	}
	*at = start + strlen(start);
	return 0;
}

bool
flow_has_reference(const char *text)
{
	struct template_reference ref;
	const char *p;

	for (p = text; (p = strstr(p, "{{")) != NULL; p += 2)
		if ((p == text || p[-1] != '\\') && template_at(p, &ref, NULL) == 1)
			return true;
	return false;
}

bool
flow_has_template(const char *text)
{
	return strstr(text, "\\{{") != NULL || flow_has_reference(text);
}

/* Literal text: "\{{" loses its backslash. */
static void
add_literal(struct buf *to, struct slice text)
{
	size_t i;

	for (i = 0; i < text.len; i++)
		if (text.len - i < 3 || memcmp(text.data + i, "\\{{", 3) != 0)
			buf_putc(to, text.data[i]);
}

void
flow_unescape(const char *text, struct buf *to)
{
	add_literal(to, slice_of(text));
}

int
flow_render(const char *text, flow_resolve *resolve, void *arg, struct buf *to, struct err *e)
{
	struct template_reference ref;
	const char *at = text, *literal;
	int r;

	do {
		literal = at;
		r = template_next(&at, &ref, e);
		if (r < 0)
			return -1;
		if (r == 1)
			add_literal(to, (struct slice){literal, (size_t)(ref.whole.data - literal)});
		else
			add_literal(to, slice_of(literal));
		if (r == 1 && resolve(arg, ref.ref, ref.name, to, e) < 0)
			return -1;
	} while (r == 1);
	return buf_ok(to, e);
}

bool
flow_is_home_path(const char *path)
{
	return path[0] == '~' && (path[1] == '/' || path[1] == '\0');
}

int
flow_home_path(const char *path, const char *named, struct buf *to, struct err *e)
{
	const char *home;

	if (flow_is_home_path(path)) {
		home = place_home(named);
		if (home == NULL) {
			err_set(e, ERR_ENVIRONMENT, "'%s': HOME names no directory, and the account has none",
			    path);
			return err_advice(e, "set HOME to a directory");
		}
		buf_puts(to, home);
		path++;
	}
	buf_puts(to, path);
	return buf_ok(to, e);
}
