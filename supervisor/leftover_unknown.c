/* What came to the supervisor unmarked, of a run whose worker has died: it may be anybody's. */
#include "cli.h"
#include "client.h"
#include "leftover.h"

enum { SHOWN = 8, WORDS_SHOWN = 60, WORDS_BYTES = 4096 };

struct looking {
	struct leftover_unknown *out;
	const struct attempts *attempts;
	uint64_t since_ticks;
};

/* What is in the session of an attempt is known by that. */
static bool
is_of_attempt(const struct attempts *a, pid_t session)
{
	size_t i;

	for (i = 0; i < a->nopen; i++)
		if (a->open[i].id.pid == session)
			return true;
	return false;
}

/* A proc_each. */
static int
note(void *arg, const struct proc_stat *st, int pidfd)
{
	const struct looking *l = arg;
	struct leftover_unknown *out = l->out;
	char words[WORDS_BYTES];
	ssize_t len, i;

	(void)pidfd;
	if (st->start_ticks < l->since_ticks || is_of_attempt(l->attempts, st->session) ||
	    out->n++ >= SHOWN)
		return 0;
	len = proc_command(st->pid, words, sizeof(words));
	for (i = 0; i + 1 < len; i++)
		if (words[i] == '\0')
			words[i] = ' ';
	buf_printf(&out->text, "%sprocess %d", out->n > 1 ? ", " : "", (int)st->pid);
	if (len > 0)
		buf_printf(&out->text, " (%.*s)", WORDS_SHOWN, words);
	return 0;
}

void
leftover_look_unknown(const struct home *h, const struct session *s, const struct attempts *a,
    struct leftover_unknown *out)
{
	/* That which it resumes has started some before. */
	struct looking l = {out, a, s->resumed_from_run[0] != '\0' ? 0 : a->worker.start_ticks};
	struct proc_id supervisor = {0};
	struct err e = {0};
	bool stopped;
	pid_t pid = client_supervisor(h, &stopped);

	out->orphaned = pid == 0 || proc_identify(pid, &supervisor, NULL) != 0 ||
	    supervisor.start_ticks > a->worker.start_ticks;
	if (!out->orphaned && leftover_each_unknown(pid, note, &l, &e) < 0) {
		cli_note("run %s: below supervisor %d: %s", s->run_id, (int)pid, e.msg);
		out->orphaned = true;
	}
}

void
leftover_tell_unknown(const struct leftover_unknown *u, const char *run_id)
{
	if (u->orphaned)
		cli_note("run %s: its worker had died, and the supervisor that had started it: what operations have "
		    "started in sessions of their own, without their environment, is known to nobody once its parent "
		    "is gone", run_id);
	if (u->n > 0)
		cli_note("run %s: may be of it, as of any run whose worker has died: %s%s", run_id,
		    buf_text(&u->text), u->n > SHOWN ? ", and more" : "");
}
