#include <stdio.h>
#include <string.h>

#include "session_row.h"

/*
 * What a person may write for a run. A full-length id is looked for in its own space only; anything
 * shorter is a prefix in all four, and two matches anywhere are one too many.
 */
struct space {
	const char *word;
	size_t full; /* length of a whole id */
	enum statement exact, prefix;
};
static const struct space spaces[] = {
    {"run", RUN_ID_TEXT - 1, Q_SESSION_READ, Q_PREFIX_RUN},
    {"session", UUID_TEXT - 1, Q_BY_SESSION, Q_PREFIX_SESSION},
    {"invocation", INVOCATION_ID_TEXT - 1, Q_BY_INVOCATION, Q_PREFIX_INVOCATION},
    {"play", UUID_TEXT - 1, Q_BY_PLAY, Q_PREFIX_PLAY},
};
enum { SPACES = sizeof(spaces) / sizeof(spaces[0]), CANDIDATES = 2 };

struct candidate {
	const struct space *space;
	char id[UUID_TEXT];
};

/* Ids are below '~' in every character. */
static bool
is_prefix(const char *target)
{
	return *target != '\0' && strlen(target) < UUID_TEXT &&
	    strspn(target, "0123456789abcdefT-") == strlen(target);
}

/* 1: found, 0: none. All statements of `exact` give the run's id first. */
static int
by_id(struct store *s, const struct space *space, const char *id, char run_id[RUN_ID_TEXT],
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, space->exact, e);
	int rc;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, id))
		return err_nomem(e);
	rc = store_step(s, q, e);
	if (rc == 1) {
		column_copy(q, 0, run_id, RUN_ID_TEXT);
		sqlite3_reset(q);
	}
	return rc;
}

static int
by_full_id(struct store *s, const char *target, char run_id[RUN_ID_TEXT], struct err *e)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < SPACES && rc == 0; i++)
		if (strlen(target) == spaces[i].full)
			rc = by_id(s, &spaces[i], target, run_id, e);
	return rc;
}

static int
collect(struct store *s, const struct space *space, const char *prefix,
    struct candidate found[CANDIDATES], size_t *count, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, space->prefix, e);
	char end[UUID_TEXT + 1];
	int rc = 0;

	if (q == NULL)
		return -1;
	snprintf(end, sizeof(end), "%s~", prefix);
	if (!bind_text(q, 1, prefix) || !bind_text(q, 2, end))
		return err_nomem(e);
	while (*count < CANDIDATES && (rc = store_step(s, q, e)) == 1) {
		found[*count].space = space;
		column_copy(q, 0, found[*count].id, sizeof(found[*count].id));
		++*count;
	}
	sqlite3_reset(q);
	return rc < 0 ? -1 : 0;
}

static int
by_prefix(struct store *s, const char *target, char run_id[RUN_ID_TEXT], struct err *e)
{
	struct candidate found[CANDIDATES];
	size_t i, count = 0;

	for (i = 0; i < SPACES && count < CANDIDATES; i++)
		if (collect(s, &spaces[i], target, found, &count, e) != 0)
			return -1;
	if (count == 0)
		return 0;
	if (count == 1)
		return by_id(s, found[0].space, found[0].id, run_id, e);
	err_set(e, ERR_AMBIGUOUS, "'%s' may be %s %s or %s %s", target, found[0].space->word,
	    found[0].id, found[1].space->word, found[1].id);
	return err_hint(e, "flowsup list");
}

static int
by_name(struct store *s, enum statement which, const char *text, const char *next, struct session *out,
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, which, e);
	struct err why = {0};

	if (q == NULL)
		return -1;
	if (session_only(s, q, out, &why) == 0)
		return 0;
	if (why.code == ERR_NOTFOUND) {
		err_set(e, ERR_NOTFOUND, "%s", text);
		return err_hint(e, "%s", next);
	}
	if (e != NULL)
		*e = why;
	return -1;
}

/* An invocation or a play outlives its runs. */
static int
tell_none(struct store *s, const char *target, struct err *e)
{
	struct candidate found[CANDIDATES];
	size_t i, count = 0;

	for (i = 0; is_prefix(target) && i < SPACES && count == 0; i++)
		if (collect(s, &spaces[i], target, found, &count, e) != 0)
			return -1;
	if (count == 0)
		return session_no_run(target, e);
	err_set(e, ERR_NOTFOUND, "%s %s has no run any more", found[0].space->word, found[0].id);
	return err_hint(e, "flowsup list");
}

int
session_resolve(struct store *s, const char *target, struct session *out, struct err *e)
{
	char run_id[RUN_ID_TEXT] = "";
	int rc;

	if (strcmp(target, "@last") == 0)
		return by_name(s, Q_LAST, "there is no run yet", "flowsup help start", out, e);
	if (strcmp(target, "@last-failed") == 0)
		return by_name(s, Q_LAST_FAILED, "no run has failed", "flowsup list", out, e);
	rc = is_prefix(target) ? by_full_id(s, target, run_id, e) : 0;
	if (rc == 0 && is_prefix(target))
		rc = by_prefix(s, target, run_id, e);
	if (rc < 0)
		return -1;
	if (rc == 0 || run_id[0] == '\0')
		return tell_none(s, target, e);
	return session_read(s, run_id, out, e);
}
