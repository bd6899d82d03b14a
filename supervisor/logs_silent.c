/* What is said where operations have written nothing: who sees nothing should know why, and where to look. */
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "logs.h"
#include "render.h"
#include "view.h"

enum { NAMED_MOST = 3 };

static off_t
size_of_stderr(const struct logs *l, const struct logs_source *s)
{
	struct buf name = {0};
	struct stat st = {0};
	int fd = rundir_open(&l->t->home, s->run, NULL);

	if (fd < 0)
		return 0;
	buf_printf(&name, RUN_OPS "/%s.%lld.err", s->op, (long long)s->attempt);
	if (fstatat(fd, buf_text(&name), &st, AT_SYMLINK_NOFOLLOW) != 0)
		st.st_size = 0;
	buf_clear(&name);
	fd_close(&fd);
	return st.st_size;
}

static bool
tell_of_stderr(const struct logs *l)
{
	const struct logs_source *s = l->n == 1 ? &l->sources[0] : NULL;
	char word[SHELL_WORD_TEXT];
	off_t size;

	if (s == NULL || cli_flag(l->c, "stderr"))
		return false;
	size = size_of_stderr(l, s);
	if (size == 0)
		return false;
	cli_note("%s wrote nothing on standard output, but %lld byte%s on standard error", s->op,
	    (long long)size, size == 1 ? "" : "s");
	cli_hint("flowsup logs --stderr %s %s", s->run, shell_word(word, s->op));
	return true;
}

/* It is not as it should be, and what is known of that is known of the attempt that was asked for. */
static bool
is_to_be_told(const struct logs *l, const struct json *op)
{
	const char *state = render_member(op, "state");

	if (l->only != NULL && strcmp(render_member(op, "id"), l->only) != 0)
		return false;
	if (l->attempt > 0 && render_number(op, "attempt", 0) != (double)l->attempt)
		return false;
	return strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0 || strcmp(state, "interrupted") == 0;
}

static void
tell_of(const struct json *op)
{
	const char *id = render_member(op, "id"), *state = render_member(op, "state");

	cli_note("%s %s%s: %s", id, strcmp(state, "failed") == 0 ? "" : "was ", state, render_member(op, "why"));
}

void
logs_tell_record(const struct logs *l)
{
	struct err ignored = {0};
	struct json *ops = NULL;
	const struct json *op;
	struct json_iter it;
	struct run_files f;
	size_t n = 0;

	if (run_files_open(&l->t->home, &l->t->session, true, &f, &ignored) != 0)
		return;
	ops = view_operations(&f, &l->t->session);
	it = json_iterate(ops);
	while (json_next(&it, NULL, &op))
		if (is_to_be_told(l, op) && n++ < NAMED_MOST)
			tell_of(op);
	if (n > NAMED_MOST)
		cli_note("and %zu more", n - NAMED_MOST);
	if (n > 0)
		cli_hint("flowsup show %s", l->t->session.run_id);
	json_unref(ops);
	run_files_close(&f);
}

void
logs_tell_silence(const struct logs *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->sources[i].at > 0)
			return;
	if (l->tail != 0 && l->unread == 0 && !tell_of_stderr(l))
		logs_tell_record(l);
}
