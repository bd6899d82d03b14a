#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "flowsup/clock.h"
#include "follow.h"
#include "output.h"
#include "target.h"
#include "view.h"

enum { INTERRUPTED = 130 };

static const char *const examples[] = {
    "flowsup wait @last                     # exits by the run's outcome",
    "flowsup wait --timeout 10m RUN RUN     # exit 3: still running then",
    "flowsup wait RUN --json                # prints it as list does, at its end",
    NULL};

static const struct cli_option options[] = {
    {.name = "timeout", .letter = 't', .kind = CLI_DURATION, .value = "TIME",
	.help = "wait no longer; exit 3 when one is not at its end"},
    CLI_END};

struct waiting {
	char (*ids)[RUN_ID_TEXT];
	int64_t until_ns; /* 0: for ever */
	struct output display;
};

/* All names are looked up before the first is waited for: a typing error is told at once. */
static int
resolve_all(struct cli *c, struct target *t, struct waiting *w, struct err *e)
{
	size_t i;

	w->ids = calloc(c->noperands, sizeof(*w->ids));
	if (w->ids == NULL)
		return err_nomem(e);
	for (i = 0; i < c->noperands; i++) {
		if (target_find(t, c->operands[i], e) != 0 || target_latest(c, t, e) != 0)
			return -1;
		memcpy(w->ids[i], t->session.run_id, RUN_ID_TEXT);
	}
	return 0;
}

static int
print_outcome(struct cli *c, struct target *t, const char *run_id, struct err *e)
{
	struct json *o;
	struct view v;

	if (!c->json)
		return 0;
	if (target_find(t, run_id, e) != 0)
		return -1;
	view_init(&v, &t->home, t->store, c->home);
	o = view_run(&v, &t->session, e);
	if (o != NULL && view_settle(&v, view_run, clock_monotonic_ns() + VIEW_SETTLE_MS * NS_PER_MS,
			     &o, e) != 0) {
		json_unref(o);
		o = NULL;
	}
	view_clear(&v);
	if (o == NULL)
		return -1;
	out_json(c->out, o);
	out_flush(c->out);
	return 0;
}

static int
wait_one(struct cli *c, struct target *t, struct waiting *w, const char *run_id, struct err *e)
{
	struct follow f = {
	    .home = &t->home,
	    .store = t->store,
	    .cli = c,
	    .home_option = c->home,
	    .out = &w->display,
	    .events_fd = -1,
	    .utc = c->utc,
	    .this_run = c->this_run,
	};
	int r;

	f.show = follow_how(&w->display, false) == FOLLOW_LIVE ? FOLLOW_LIVE : FOLLOW_QUIET;
	if (w->until_ns != 0) {
		f.timeout_ns = w->until_ns - clock_monotonic_ns();
		if (f.timeout_ns <= 0)
			f.timeout_ns = 1;
	}
	r = follow_run(&f, run_id, e);
	return r >= 0 && r != INTERRUPTED && print_outcome(c, t, run_id, e) != 0 ? -1 : r;
}

/* One after the other: all must end anyway, and the first in order that is not 0 decides. */
static int
wait_all(struct cli *c, struct target *t, struct waiting *w, struct err *e)
{
	int first = 0, r;
	size_t i;

	for (i = 0; i < c->noperands; i++) {
		r = wait_one(c, t, w, w->ids[i], e);
		if (r < 0 || r == INTERRUPTED)
			return r;
		first = first != 0 ? first : r;
	}
	return first;
}

static int
run(struct cli *c, struct err *e)
{
	struct waiting w = {0};
	struct target t;
	int r;

	if (cli_flag(c, "timeout"))
		w.until_ns = clock_monotonic_ns() + cli_int(c, "timeout", 0);
	if (target_open(c, &t, e) != 0)
		return -1;
	target_wake(&t);
	out_init(&w.display, 2);
	r = resolve_all(c, &t, &w, e);
	if (r == 0)
		r = wait_all(c, &t, &w, e);
	(void)out_end(&w.display, &(struct err){0});
	free(w.ids);
	target_close(&t);
	return r;
}

const struct command cmd_wait = {
    .name = "wait",
    .group = CLI_GROUP_LOOK,
    .synopsis = "RUN... [--timeout TIME]",
    .summary = "wait for the end of runs",
    .examples = examples,
    .options = options,
    .details = "Of several runs the first in order whose outcome is not 0 decides the exit.",
    .min_operands = 1,
    .max_operands = CLI_ANY,
    .operands = "run...",
    .json = true,
    .this_run = true,
    .run = run,
};
