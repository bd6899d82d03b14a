/* Which files of output there are: of one run, or of the chain of runs that it goes on with. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "flowsup/fs.h"
#include "logs.h"
#include "seek.h"
#include "view.h"

enum { CHAIN_MOST = 1000 };

static struct logs_source *
find_source(struct logs *l, const char *op)
{
	size_t i = l->n;

	while (i-- > 0)
		if (strcmp(l->sources[i].op, op) == 0)
			return &l->sources[i];
	return NULL;
}

void
logs_source_clear(struct logs_source *s)
{
	free(s->op);
	free(s->run);
	free(s->origin);
	fd_close(&s->fd);
	buf_clear(&s->line);
}

static int
add_source(struct logs *l, const char *run, const struct logs_line *line, struct err *e)
{
	struct logs_source *grown, s = {.attempt = line->attempt, .fd = -1};

	if (l->n == l->cap) {
		grown = reallocarray(l->sources, l->cap * 2 + 16, sizeof(*grown));
		if (grown == NULL)
			return err_nomem(e);
		l->sources = grown;
		l->cap = l->cap * 2 + 16;
	}
	s.op = strdup(line->op);
	s.run = strdup(run);
	s.origin = line->origin != NULL ? strdup(line->origin) : NULL;
	if (s.op == NULL || s.run == NULL || (s.origin == NULL && line->origin != NULL)) {
		logs_source_clear(&s);
		return err_nomem(e);
	}
	l->sources[l->n++] = s;
	return 0;
}

/* A later attempt takes the place of an earlier one, and stands where it started. */
static void
forget_source(struct logs *l, const char *op)
{
	struct logs_source *old = find_source(l, op);
	size_t i;

	if (old == NULL)
		return;
	i = (size_t)(old - l->sources);
	logs_source_clear(old);
	memmove(old, old + 1, (l->n - i - 1) * sizeof(*old));
	l->n--;
}

int
logs_take_line(struct logs *l, const char *run, const struct logs_line *line, bool every, struct err *e)
{
	enum attempt_line_kind kind = line->kind;
	int64_t attempt = line->attempt;
	const char *op = line->op;
	struct logs_source *s;

	if (op == NULL || strchr(op, '/') != NULL || (l->only != NULL && strcmp(l->only, op) != 0))
		return 0;
	if (kind == ATTEMPT_LINE_END) {
		s = find_source(l, op);
		if (s != NULL && s->attempt == attempt)
			s->ended = true;
		else if (s == NULL)
			l->unstarted = attempt;
		return 0;
	}
	if (kind != ATTEMPT_LINE_START || (l->attempt > 0 && attempt != l->attempt))
		return 0;
	s = find_source(l, op);
	if (!every)
		forget_source(l, op);
	else if (s != NULL && s->attempt != attempt)
		s->ended = true; /* if nobody was left to say so */
	return add_source(l, run, line, e);
}

/* -1 with *e: nothing can be told of this run. */
static int
read_starts(struct logs *l, const struct session *s, struct attempts *a, struct err *e)
{
	int fd = seek_rundir(&l->t->home, s, e), r;

	if (fd < 0)
		return -1;
	r = seek_attempts(fd, seek_has_started(fd, s->started_at), a, e);
	fd_close(&fd);
	return r == 0 ? 0 : seek_damaged(s, e);
}

static int
take_one(struct logs *l, const char *run, struct attempt_line *line, struct err *e)
{
	struct logs_line taken = {.op = line->op, .kind = line->kind, .attempt = line->attempt};

	if (line->kind == ATTEMPT_LINE_START)
		taken.origin = json_cstr_of(json_get(attempt_line_json(line), "run"));
	return logs_take_line(l, run, &taken, false, e);
}

/* What an earlier run of the chain did not leave is said; the rest is printed all the same. */
static int
take_attempts(struct logs *l, const char *run, struct err *e)
{
	bool itself = strcmp(run, l->t->session.run_id) == 0;
	struct session s;
	struct attempts a;
	size_t i;
	int r;

	if (session_read(l->t->store, run, &s, e) != 0)
		return -1;
	r = read_starts(l, &s, &a, e);
	session_clear(&s);
	if (r != 0 && !itself && e->code == ERR_IO) {
		cli_note("%s; what it ran is not shown", e->msg);
		err_clear(e);
		return 0;
	}
	if (r != 0)
		return -1;
	for (i = 0; r == 0 && i < a.nlines; i++)
		r = take_one(l, run, &a.lines[i], e);
	attempts_clear(&a);
	return r;
}

/* Who did what the run did not do itself. */
static void
take_earlier(const struct session *s, char to[RUN_ID_TEXT])
{
	const char *forked = json_cstr_of(json_get(s->metadata, "forked_from"));

	strlcpy(to, s->resumed_from_run[0] == '\0' && forked != NULL ? forked : s->resumed_from_run,
	    RUN_ID_TEXT);
}

/*
 * A resumed run did not run again what was saved; the output of that lies with the run that ran it.
 * The oldest run of the chain comes first, so that a later attempt takes the place of an earlier.
 */
int
logs_take_chain(struct logs *l, struct err *e)
{
	char (*ids)[RUN_ID_TEXT] = calloc(CHAIN_MOST, sizeof(*ids));
	struct session s;
	size_t n = 0;
	int r = 0;

	if (ids == NULL)
		return err_nomem(e);
	memcpy(ids[n++], l->t->session.run_id, RUN_ID_TEXT);
	take_earlier(&l->t->session, ids[n]);
	while (n < CHAIN_MOST - 1 && ids[n][0] != '\0' &&
	    session_read(l->t->store, ids[n], &s, e) == 0) {
		take_earlier(&s, ids[++n]);
		session_clear(&s);
	}
	err_clear(e);
	while (r == 0 && n-- > 0)
		r = take_attempts(l, ids[n], e);
	free(ids);
	return r;
}

static void
keep_carried(struct logs *l, const struct json *carried)
{
	const char *own = l->t->session.run_id;
	size_t i, kept = 0;

	for (i = 0; i < l->n; i++)
		if (strcmp(l->sources[i].run, own) == 0 || json_get(carried, l->sources[i].op) == NULL) {
			logs_source_clear(&l->sources[i]);
		} else {
			l->sources[kept] = l->sources[i];
			l->sources[kept++].ended = true;
		}
	l->n = kept;
}

int
logs_take_carried(struct logs *l, struct err *e)
{
	char earlier[RUN_ID_TEXT];
	struct run_files f;
	struct json *carried;
	int r = 0;

	take_earlier(&l->t->session, earlier);
	if (earlier[0] == '\0')
		return 0;
	if (run_files_open(&l->t->home, &l->t->session, true, &f, e) != 0)
		return -1;
	carried = f.flow != NULL ? view_carried(&f) : json_object();
	run_files_close(&f);
	r = carried != NULL ? logs_take_chain(l, e) : err_nomem(e);
	if (r == 0)
		keep_carried(l, carried);
	json_unref(carried);
	return r;
}
