/*
 * spawn.rate: operations of /bin/true a second by the worker, with relaxed and full durability, at
 * 1, 2 and 8 at once, beside the bare loops and other people's programs in the same run.
 *
 *	spawn_rate [OPERATIONS [ROUNDS [BUDGET_SECONDS]]]
 *
 * Relaxed is compared with the loop that writes output to files, full with the same loop and a
 * journal that is made durable on a thread. CPU is that of the worker and its operations, beyond that
 * of the loop and the same operations.
 */
#include "contest.h"

#include "figure.h"

static void
print(const struct contest *c, bool durable)
{
	const unsigned ours = durable ? RUN_FULL : RUN_RELAXED;
	const unsigned bare = durable ? RUN_BARE_JOURNAL : RUN_BARE_FILES;
	const char *mode = durable ? "full" : "relaxed";
	const unsigned at_once = c->workload.at_once;
	char name[64], peer[128];

	snprintf(name, sizeof(name), "spawn.rate.%s.%u", mode, at_once);
	figure(name, contest_rate(c, ours), "ops/s", durable ? "more than ninja" : "-",
	    contest_peers(c));
	snprintf(peer, sizeof(peer), "loop%s %.0f ops/s (median of %u)",
	    durable ? " with files and journal" : " with files", contest_rate(c, bare), c->runs);
	snprintf(name, sizeof(name), "spawn.ratio.%s.%u", mode, at_once);
	figure(name, contest_ratio(c, ours, bare), "of loop", durable ? ">= 0.90" : ">= 0.85", peer);
	snprintf(name, sizeof(name), "spawn.cpu.%s.%u", mode, at_once);
	figure(name, contest_cpu_beyond(c, ours, bare), "us/op", "<= 120 beyond the loop", peer);
}

int
main(int argc, char **argv)
{
	static const unsigned at_once[] = {1, 2, 8};
	const size_t parts = sizeof(at_once) / sizeof(at_once[0]);
	struct contest_options o = contest_options(argc, argv, 2000, 3);
	static struct contest c;
	size_t i;

	for (i = 0; i < parts; i++) {
		c = (struct contest){.workload = workload_flat(o.operations, at_once[i]),
		    .rounds = o.rounds, .budget_s = o.budget_s / (double)parts};
		contest_run(&c);
		print(&c, false);
		print(&c, true);
	}
	return 0;
}
