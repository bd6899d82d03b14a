/* gc: removes old runs that nothing needs any more. */
#include <stdio.h>

#include "cli.h"
#include "flowsup/clock.h"
#include "flowsup/config.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "gc.h"
#include "output.h"
#include "problems.h"
#include "target.h"

enum { DAYS_MOST = 36500, RUNS_MOST = 100000000 };
#define DAY_S 86400.0

static const char *const examples[] = {
    "flowsup gc --dry-run                       # what would be removed",
    "flowsup gc                                 # and it is removed",
    "flowsup gc --keep-days 30 --keep-n 1000    # younger, or of the newest, stay", NULL};

static const struct cli_option options[] = {
    {.name = "keep-days", .kind = CLI_INT, .value = "N", .help = "keep what ended in N days",
	.least = 0, .most = DAYS_MOST},
    {.name = "keep-n", .kind = CLI_INT, .value = "N", .help = "keep the newest N runs", .least = 0,
	.most = RUNS_MOST},
    {.name = "dry-run", .letter = 'n', .kind = CLI_FLAG, .help = "only say what would be removed"},
    CLI_END};

struct tally {
	struct cli *c;
	const struct home *home;
	size_t removed, held, aside;
	int status; /* of the first that was set aside */
};

static void
tell_one(struct cli *c, const char *run_id, const char *why)
{
	struct json *o;

	if (!c->json) {
		if (why != NULL)
			cli_note("run %s is kept: %s", run_id, why);
		else
			out_printf(c->out, "%s\n", run_id);
		return;
	}
	o = json_set(json_object(), "id", json_cstr(run_id));
	o = json_set(o, "removed", json_bool(why == NULL && !cli_flag(c, "dry-run")));
	out_json(c->out, json_set(o, "kept_because", why != NULL ? json_cstr(why) : json_null()));
}

/* Once it is away, the row goes with the next gc. */
static void
tell_aside(void *arg, const char *name, const struct err *why)
{
	char word[SHELL_WORD_TEXT];
	struct tally *sum = arg;
	struct buf path = {0};

	sum->aside++;
	sum->status = sum->status != 0 ? sum->status : err_exit_status(why->code);
	if (sum->c->json && run_id_is_valid(name))
		tell_one(sum->c, name, why->msg);
	out_flush(sum->c->out);
	cli_note("%s", why->msg);
	if (err_has_hint(why)) {
		cli_hint("%s", err_hint_text(why));
	} else {
		buf_printf(&path, "%s/" HOME_RUNS "/%s", sum->home->path, name);
		cli_hint("ls -ld %s   # whoever knows what it is moves it away, or makes it ours", shell_word(word, buf_text(&path)));
	}
	buf_clear(&path);
}

static int
remove_all(struct cli *c, struct target *t, const struct gc_plan *p, struct leftovers *left, const struct gc_aside *aside,
    struct tally *sum, struct err *e)
{
	const char *why;
	size_t i;
	int rc = 0;

	for (i = 0; i < p->count; i++) {
		why = p->items[i].held;
		rc = why != NULL ? 1 : 0;
		if (rc == 0 && !cli_flag(c, "dry-run"))
			rc = gc_remove(&t->home, t->store, p->items[i].run_id, left, aside, &why, e);
		if (rc < 0)
			return -1;
		if (rc == 1 && why == NULL)
			continue;
		sum->removed += rc == 0;
		sum->held += rc == 1;
		tell_one(c, p->items[i].run_id, why);
	}
	return 0;
}

/* Of the command line, else of the configuration. */
static int
find_rules(struct cli *c, struct gc_rules *rules, struct err *e)
{
	struct config config;

	*rules = (struct gc_rules){-1, -1, cli_int(c, "keep-n", -1)};
	if (cli_flag(c, "keep-days"))
		rules->keep_s = (double)cli_int(c, "keep-days", 0) * DAY_S;
	if (cli_flag(c, "keep-days") || cli_flag(c, "keep-n"))
		return 0;
	if (problems_config(c, &config, "", e) != 0)
		return -1;
	*rules = (struct gc_rules){(double)config.keep_days * DAY_S,
	    (double)config.keep_failed_days * DAY_S, config.keep_runs};
	config_clear(&config);
	return 0;
}

static void
tell_sum(const struct cli *c, const struct gc_plan *p, const struct tally *sum, unsigned leftovers)
{
	bool dry = cli_flag(c, "dry-run");
	struct buf more = {0};

	if (p->needed > 0)
		buf_printf(&more, " (%zu because later runs need %s)", p->needed, p->needed == 1 ? "it" : "them");
	if (sum->aside > 0)
		buf_printf(&more, ", and %zu left", sum->aside);
	cli_note("%zu run%s %sremoved, %zu kept%s%s", sum->removed,
	    sum->removed == 1 ? "" : "s", dry ? "would be " : "", p->kept + sum->held, buf_text(&more),
	    leftovers == 0 ? "" : dry ? "; leftovers would be taken away too" : "; leftovers were taken away too");
	buf_clear(&more);
}

static int
collect_with(struct cli *c, struct target *t, const struct gc_rules *rules, struct leftovers *left, struct err *e)
{
	double now = (double)clock_wall_ns() / (double)NS_PER_S;
	struct tally sum = {.c = c, .home = &t->home};
	const struct gc_aside aside = {tell_aside, &sum};
	struct gc_plan plan;
	unsigned found = 0;
	int rc;

	if (gc_leftovers(&t->home, t->store, cli_flag(c, "dry-run"), &aside, &found, e) != 0 ||
	    gc_plan(&t->home, t->store, rules, now, left, &aside, &plan, e) != 0)
		return -1;
	rc = remove_all(c, t, &plan, left, &aside, &sum, e);
	tell_sum(c, &plan, &sum, found);
	gc_plan_clear(&plan);
	return rc != 0 ? rc : sum.status;
}

static int
collect(struct cli *c, struct target *t, struct err *e)
{
	struct leftovers *left;
	struct gc_rules rules;
	int rc;

	if (find_rules(c, &rules, e) != 0)
		return -1;
	left = leftovers_new(&t->home);
	rc = left != NULL ? collect_with(c, t, &rules, left, e) : err_nomem(e);
	leftovers_free(left);
	return rc;
}

static int
run(struct cli *c, struct err *e)
{
	struct target t;
	int rc, lock = -1;

	rc = target_open_any(c, &t, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	/* What a dead worker's row says must be true before its run is judged by it. */
	if (!cli_flag(c, "dry-run")) {
		target_wake(&t);
		rc = gc_alone(&t.home, &lock, e);
	}
	if (rc == 0)
		rc = collect(c, &t, e);
	fd_close(&lock);
	target_close(&t);
	return rc;
}

const struct command cmd_gc = {
    .name = "gc",
    .group = CLI_GROUP_SYSTEM,
    .synopsis = "[--keep-days N] [--keep-n N] [--dry-run]",
    .summary = "remove old runs at once (--dry-run: only name them)",
    .examples = examples,
    .details = "Without --keep-days and --keep-n it removes at once what is not of the newest\n"
	       "1000 runs and ended 30 days ago, or 90 if it did not complete: `keep` in\n"
	       "config.yaml has these numbers.\n"
	       "A run that is not at its end stays, and so does one that others were\n"
	       "resumed or forked from, while they stay. With both, a run stays by either.",
    .options = options,
    .operands = "",
    .json = true,
    .run = run,
};
