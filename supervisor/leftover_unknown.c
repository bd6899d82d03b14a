/* What came to the supervisor without marks, of a run whose worker has died, and is not proved to be of it. */
#include <string.h>

#include "cli.h"
#include "client.h"
#include "leftover.h"

enum { SHOWN = 8, WORDS_SHOWN = 60, WORDS_BYTES = 4096, CHAIN_MOST = 1000 };

void
leftover_add_process(struct buf *to, pid_t pid)
{
	char words[WORDS_BYTES];
	ssize_t len = proc_command(pid, words, sizeof(words)), i;

	for (i = 0; i + 1 < len; i++)
		if (words[i] == '\0')
			words[i] = ' ';
	buf_printf(to, "process %d", (int)pid);
	if (len > 0)
		buf_printf(to, " (%.*s)", WORDS_SHOWN, words);
}

static void
note(struct leftover_unknown *out, pid_t pid)
{
	out->pids = json_append(out->pids != NULL ? out->pids : json_array(), json_int(pid));
	if (out->n++ >= SHOWN)
		return;
	buf_puts(&out->text, out->n > 1 ? ", " : "");
	leftover_add_process(&out->text, pid);
}

static bool
names(const struct json *runs, const char *run_id)
{
	struct json_iter it = json_iterate(runs);
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (slice_is(json_text(one), run_id))
			return true;
	return false;
}

/* Whether s or one that it goes on from is among the runs. */
static bool
may_be_of(struct store *store, const struct session *s, const struct json *runs)
{
	char run_id[RUN_ID_TEXT];
	struct session before;
	unsigned n;

	if (names(runs, s->run_id))
		return true;
	strlcpy(run_id, s->resumed_from_run, sizeof(run_id));
	for (n = 0; run_id[0] != '\0' && n < CHAIN_MOST; n++) {
		if (names(runs, run_id))
			return true;
		if (session_read(store, run_id, &before, &(struct err){0}) != 0)
			return false;
		strlcpy(run_id, before.resumed_from_run, sizeof(run_id));
		session_clear(&before);
	}
	return false;
}

static void
note_named(struct store *store, const struct session *s, const struct attempts *a, const struct json *strays,
    struct leftover_unknown *out)
{
	struct json_iter it = json_iterate(strays);
	const struct json *one;
	struct proc_stat st;
	struct proc_id id;
	int64_t pid;
	size_t i;

	while (json_next(&it, NULL, &one)) {
		if (!json_int64(json_get(one, "pid"), &pid) || pid < 1 || pid > INT32_MAX ||
		    !json_uint64(json_get(one, "start"), &id.start_ticks) ||
		    !may_be_of(store, s, json_get(one, "runs")))
			continue;
		id.pid = (pid_t)pid;
		if (!proc_is_alive(id) || proc_stat_read(id.pid, &st, NULL) != 0)
			continue;
		/* What is in the session of an attempt is known by that. */
		for (i = 0; i < a->nopen && a->open[i].id.pid != st.session; i++)
			;
		if (i == a->nopen)
			note(out, id.pid);
	}
}

void
leftover_look_unknown(const struct home *h, struct store *store, const struct session *s,
    const struct attempts *a, struct leftover_unknown *out)
{
	struct proc_id supervisor = {0};
	struct json *status = NULL;
	bool stopped;
	pid_t pid = client_supervisor(h, &stopped);
	size_t i;

	out->orphaned = pid == 0 || proc_identify(pid, &supervisor, NULL) != 0 ||
	    supervisor.start_ticks > a->worker.start_ticks;
	if (pid != 0 && (stopped || client_status(h, CLIENT_ANSWER_MS, &status, NULL) != 0))
		out->silent = pid;
	note_named(store, s, a, json_get(status, "strays"), out);
	json_unref(status);
	for (i = 0; a->nstrays > 0 && attempts_any_leaves(a) && i < a->nstrays; i++)
		if (attempts_stray_lives(a, i)) {
			note(out, a->strays[i].pid);
			out->left++;
		}
}

void
leftover_have_looked(const struct home *h)
{
	struct json *status = NULL;
	bool stopped;

	if (client_supervisor(h, &stopped) != 0 && !stopped &&
	    client_status(h, CLIENT_ANSWER_MS, &status, NULL) == 0)
		json_unref(status);
}

void
leftover_tell_unknown(const struct leftover_unknown *u, const char *run_id)
{
	if (u->silent != 0)
		cli_note("run %s: supervisor %d, which may have got processes of it, does not answer", run_id,
		    (int)u->silent);
	if (u->orphaned)
		cli_note("run %s: its worker had died, and the supervisor that had started it: what operations have "
		    "started in sessions of their own, without their environment, is known to nobody once its parent "
		    "is gone", run_id);
	if (u->n > 0)
		cli_note("run %s: may be of it%s: %s%s", run_id,
		    u->left == u->n ? ", or was left by an operation with leave" : ", or of another run or command that ended "
			"with it", buf_text(&u->text), u->n > SHOWN ? ", and more" : "");
}

void
leftover_unknown_clear(struct leftover_unknown *u)
{
	buf_clear(&u->text);
	json_unref(u->pids);
	*u = (struct leftover_unknown){.n = 0};
}
