/* JSON lines. */
#include <string.h>

#include "flowsup/flow.h"

int
flow_too_many_values(struct err *e)
{
	return err_set(e, ERR_LIMIT, "a JSON response may have %zu values", JSON_MAX_RESPONSE_VALUES);
}

/* The reader counts lines from the one that it was given. */
static int
in_line(size_t number, struct err *e)
{
	static const char first[] = "line 1, ";
	size_t len = sizeof(first) - 1;

	if (strncmp(e->msg, first, len) == 0)
		memmove(e->msg, e->msg + len, strlen(e->msg + len) + 1);
	return err_wrap(e, "JSON line %zu", number);
}

int
flow_parse_lines(struct flow_lines *l, size_t bytes, struct json **out, struct err *e)
{
	struct json_options options = {.max_bytes = JSON_MAX_RESPONSE, .values_left = &l->values_left};
	const char *begin = l->at, *lf;
	struct json_failure why;
	struct json *lines = json_array(), *value;

	for (; l->at < l->end && (size_t)(l->at - begin) < bytes; l->at = lf + 1, l->number++) {
		lf = memchr(l->at, '\n', (size_t)(l->end - l->at));
		if (lf == NULL)
			lf = l->end;
		if (lf == l->at)
			continue;
		if (json_parse((struct slice){l->at, (size_t)(lf - l->at)}, &options, &value, &why, e) != 0) {
			json_unref(lines);
			if (why.fault == JSON_FAULT_MANY)
				flow_too_many_values(e);
			return in_line(l->number, e);
		}
		lines = json_append(lines, value);
	}
	*out = lines;
	return lines == NULL ? err_nomem(e) : 0;
}
