/* Regular expressions that a document may hold. */
#include <regex.h>
#include <stdlib.h>

#include "model.h"

/* What glibc's matcher could be made slow or huge by: references back, and counts in counts. */
static bool
is_tame(const char *pattern)
{
	const char *p;
	unsigned long product = 1, most, count;

	for (p = pattern; *p != '\0'; p++) {
		if (*p == '\\' && p[1] != '\0') {
			p++;
			if (*p >= '1' && *p <= '9')
				return false;
		} else if (*p == '{' && p[1] >= '0' && p[1] <= '9') {
			for (most = 1, p++; *p != '}' && *p != '\0'; p++) {
				if (*p < '0' || *p > '9')
					continue;
				count = strtoul(p, NULL, 10);
				most = count > most ? count : most;
				while (p[1] >= '0' && p[1] <= '9')
					p++;
			}
			if (most > FLOW_MAX_REPEAT || (product *= most) > FLOW_MAX_REPEAT)
				return false;
			if (*p == '\0')
				break;
		}
	}
	return true;
}

/* The first \d or the like: another language's class, here the letter itself, which nobody means. */
static const char *
foreign_escape(const char *pattern)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char known[] = "wWsSbB";
	const char *p;

	for (p = pattern; (p = strchr(p, '\\')) != NULL && p[1] != '\0'; p += 2)
		if (strchr(letters, p[1]) != NULL && strchr(known, p[1]) == NULL)
			return p;
	return NULL;
}

static void
compile(struct reader *r, const char *key, const struct json *v, const char *pattern)
{
	char why[128];
	regex_t compiled;
	int code = regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB);

	if (code == 0) {
		regfree(&compiled);
	} else if (code == REG_ESPACE) {
		out_of_memory(r);
	} else {
		regerror(code, NULL, why, sizeof(why));
		problem(r, v, "\"%s\" is no extended regular expression: %s", key, why);
	}
}

void
check_pattern(struct reader *r, const char *key, const struct json *v)
{
	const char *pattern = keep_text(r, key, v), *foreign;

	if (pattern == NULL)
		return;
	foreign = foreign_escape(pattern);
	if (strlen(pattern) > FLOW_MAX_PATTERN || !is_tame(pattern))
		hint(problem(r, v, "the pattern of \"%s\" is too costly", key),
		    "at most %d characters, no \\1, and counts {n} that multiply to at most %d",
		    FLOW_MAX_PATTERN, FLOW_MAX_REPEAT);
	else if (foreign != NULL)
		hint(problem(r, v, "the pattern of \"%s\" has \\%c, which extended regular expressions "
				   "do not know", key, foreign[1]),
		    "write [0-9] for \\d, and [[:alpha:]] and the like (regex(7))");
	else
		compile(r, key, v, pattern);
}
