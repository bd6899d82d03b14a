/* queue: how many runs of a name may go on at once. */
#include <string.h>

#include "cli.h"
#include "client.h"
#include "flowsup/log.h"
#include "output.h"
#include "target.h"

/* ---- queue list ---- */

struct listing {
	struct cli *c;
	struct table *table;
};

static int
add(void *arg, const struct queue_row *q)
{
	struct listing *l = arg;
	struct json *o;

	if (l->c->json) {
		o = json_set(json_object(), "name", json_cstr(q->name));
		o = json_set(o, "slots", q->slots > 0 ? json_int(q->slots) : json_null());
		o = json_set(o, "running", json_int(q->running));
		out_json(l->c->out, json_set(o, "waiting", json_int(q->waiting)));
		return 0;
	}
	table_text(l->table, OUT_PLAIN, q->name);
	if (q->slots > 0)
		table_printf(l->table, OUT_PLAIN, "%lld", (long long)q->slots);
	else
		table_text(l->table, OUT_DIM, "unlimited");
	table_printf(l->table, OUT_PLAIN, "%lld", (long long)q->running);
	table_printf(l->table, OUT_PLAIN, "%lld", (long long)q->waiting);
	return 0;
}

static void
say_none(void)
{
	cli_note("there are no queues yet; the queue \"default\" has no limit");
	cli_hint("flowsup queue set default --slots 2   # two runs at once");
}

static int
run_list(struct cli *c, struct err *e)
{
	static const struct column columns[] = {{.title = "QUEUE"}, {.title = "SLOTS", .right = true},
	    {.title = "RUNNING", .right = true}, {.title = "WAITING", .right = true}};
	struct listing l = {.c = c};
	struct target t;
	int rc;

	if (target_open(c, &t, e) != 0) {
		if (e->code != ERR_NOTFOUND)
			return -1;
		err_clear(e);
		say_none();
		return 0;
	}
	target_wake(&t);
	if (!c->json)
		l.table = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	rc = queue_each(t.store, add, &l, e);
	if (rc == 0 && l.table != NULL && table_rows(l.table) == 0)
		say_none();
	if (l.table != NULL)
		table_print(l.table, c->out, "");
	target_close(&t);
	return rc;
}

static const char *const list_examples[] = {"flowsup queue list --json", NULL};

const struct command cmd_queue_list = {
    .name = "queue list",
    .group = CLI_GROUP_LOOK,
    .synopsis = "",
    .summary = "show queues, their slots and who waits",
    .examples = list_examples,
    .operands = "",
    .json = true,
    .run = run_list,
};

/* ---- queue set ---- */

static const struct cli_option set_options[] = {
    {.name = "slots", .kind = CLI_INT, .value = "N", .help = "runs at once; 0: no limit", .least = 0,
	.most = QUEUE_SLOTS_MOST},
    CLI_END};

static int
first_queued(void *arg, const char *run_id)
{
	strlcpy(arg, run_id, RUN_ID_TEXT);
	return 1;
}

/* More slots: those that may start now are started. Fewer slots end nothing. */
static int
wake(struct target *t, struct err *e)
{
	char run_id[RUN_ID_TEXT] = "";

	if (queue_startable(t->store, first_queued, run_id, e) != 0)
		return -1;
	return run_id[0] == '\0' ? 0 : client_scan(&t->home, run_id, e);
}

static int
set(struct target *t, const char *name, int64_t slots, struct err *e)
{
	if (!queue_name_is_valid(name)) {
		err_set(e, ERR_USAGE, "queue set: '%.80s' is no name of a queue", name);
		return err_advice(e, "letters, digits, '.', '_' and '-', at most %d", QUEUE_NAME_MOST);
	}
	return queue_set(t->store, name, slots, e) == 0 ? wake(t, e) : -1;
}

static int
run_set(struct cli *c, struct err *e)
{
	struct target t = {0};
	char word[SHELL_WORD_TEXT];
	int rc;

	if (!cli_flag(c, "slots")) {
		err_set(e, ERR_USAGE, "queue set: --slots is missing");
		return err_hint(e, "flowsup queue set %s --slots 2", shell_word(word, c->operands[0]));
	}
	/* A queue may be made before the first run is. */
	if (home_open(c->home, true, &t.home, e) != 0)
		return -1;
	rc = store_open(&t.home, STORE_COMMAND, true, STORE_BUSY_MS, &t.store, e);
	if (rc == 0)
		rc = set(&t, c->operands[0], cli_int(c, "slots", 0), e);
	store_close(t.store);
	home_close(&t.home);
	return rc;
}

static const char *const set_examples[] = {
    "flowsup queue set build --slots 2     # two at once; others wait their turn",
    "flowsup start --queue build nightly.yaml", NULL};

const struct command cmd_queue_set = {
    .name = "queue set",
    .group = CLI_GROUP_STEER,
    .synopsis = "NAME --slots N",
    .summary = "say how many runs of a queue go on at once",
    .examples = set_examples,
    .details = "Runs start in the order they came. Without --queue a run is in the queue\n"
	       "\"default\". What was never set has no limit.",
    .options = set_options,
    .min_operands = 1,
    .max_operands = 1,
    .operands = "queue",
    .run = run_set,
};
