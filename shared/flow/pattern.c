/* Patterns that a document holds. */
#include "model.h"
#include "pattern.h"

static void
refuse(struct reader *r, const char *key, const struct json *v, const struct err *why)
{
	if (why->code == ERR_NOMEM)
		out_of_memory(r);
	else if (why->code == ERR_LIMIT)
		hint(problem(r, v, "the pattern of \"%s\" is too costly: %s", key, why->msg),
		    "counts are written out: a{100} is 100 places, and a pattern may have %d", PATTERN_MAX_PLACES);
	else
		hint_of(problem(r, v, "\"%s\" is no extended regular expression: %s", key, why->msg), why);
}

void
check_pattern(struct reader *r, const char *key, const struct json *v)
{
	const char *text = keep_text(r, key, v);
	struct pattern *p = NULL;
	struct err e = {0};

	if (text == NULL)
		return;
	if (strlen(text) > FLOW_MAX_PATTERN)
		problem(r, v, "the pattern of \"%s\" has more than %d bytes", key, FLOW_MAX_PATTERN);
	else if (pattern_new(text, PATTERN_MAX_PLACES, &p, &e) != 0)
		refuse(r, key, v, &e);
	pattern_free(p);
}
