/*
 * dag.*: graphs of /bin/true, outcomes durable before what follows starts, beside make, ninja and the
 * bare loop with the same promise.
 *
 *	dags [OPERATIONS [ROUNDS [BUDGET_SECONDS]]]
 *
 * A chain of half as many, one -> all -> one, and 20 layers that share them, each operation needing
 * all of the layer before.
 */
#include "contest.h"

#include "figure.h"

enum { LAYERS = 20, PAR = 2 };

static void
dag(const char *what, struct workload w, const struct contest_options *o, const char *bound)
{
	const unsigned ninja = RUN_PEERS + 2;
	static struct contest c;
	char name[64], peer[128];

	assert_string_equal(peers[ninja - RUN_PEERS].name, "ninja");
	c = (struct contest){.workload = w, .rounds = o->rounds, .budget_s = o->budget_s / 3};
	contest_run(&c);
	snprintf(name, sizeof(name), "dag.%s", what);
	figure(name, contest_rate(&c, RUN_FULL), "ops/s", "more than ninja", contest_peers(&c));
	snprintf(name, sizeof(name), "dag.%s.ninja", what);
	if (contest_rate(&c, ninja) > 0)
		figure(name, contest_ratio(&c, RUN_FULL, ninja), "of ninja", "> 1", "-");
	snprintf(name, sizeof(name), "dag.%s.loop", what);
	snprintf(peer, sizeof(peer), "loop with journal %.0f ops/s (median of %u)",
	    contest_rate(&c, RUN_BARE_JOURNAL), c.runs);
	figure(name, contest_ratio(&c, RUN_FULL, RUN_BARE_JOURNAL), "of loop", bound, peer);
	snprintf(name, sizeof(name), "dag.%s.relaxed", what);
	figure(name, contest_rate(&c, RUN_RELAXED), "ops/s", "-", "durability relaxed");
}

int
main(int argc, char **argv)
{
	struct contest_options o = contest_options(argc, argv, 1000, 5);
	const unsigned chain = o.operations / 2, width = o.operations / LAYERS;

	dag("chain", workload_layers(chain < WORKLOAD_MOST_LAYERS ? chain : WORKLOAD_MOST_LAYERS, 1, 1),
	    &o, ">= 0.85");
	dag("fan", workload_fan(o.operations, PAR), &o, "-");
	dag("layered", workload_layers(LAYERS, width > 0 ? width : 1, PAR), &o, "-");
	return 0;
}
