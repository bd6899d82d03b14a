#include "contest.h"

#include "figure.h"

static bool
can_run(const struct contest *c, unsigned runner)
{
	bool edges = workload_has_edges(&c->workload);
	const struct peer *p;

	if (runner < RUN_PEERS)
		return runner != RUN_BARE_VFORK || !edges;
	if (runner - RUN_PEERS >= npeers)
		return false;
	p = &peers[runner - RUN_PEERS];
	return (p->edges || !edges) && peer_is_installed(p);
}

static struct measured
run_one(const struct workload *w, unsigned runner)
{
	switch (runner) {
	case RUN_FULL:
	case RUN_RELAXED:
		return workload_by_worker(w, runner == RUN_FULL);
	case RUN_BARE_VFORK:
		return workload_by_bare_loop(w, BARE_VFORK);
	case RUN_BARE_FILES:
		return workload_by_bare_loop(w, BARE_FILES);
	case RUN_BARE_JOURNAL:
		return workload_by_bare_loop(w, BARE_JOURNAL);
	default:
		return workload_by_peer(w, &peers[runner - RUN_PEERS]);
	}
}

void
contest_run(struct contest *c)
{
	double begun = seconds_of(CLOCK_MONOTONIC), took;
	unsigned runner;

	assert_true(c->rounds > 0 && c->rounds <= CONTEST_MOST_ROUNDS);
	for (c->runs = 0; c->runs < c->rounds; c->runs++) {
		took = seconds_of(CLOCK_MONOTONIC) - begun;
		if (c->runs > 0 && c->budget_s > 0 && took + took / c->runs > c->budget_s)
			break;
		for (runner = 0; runner < RUN_PEERS + npeers; runner++)
			if (can_run(c, runner))
				c->of[runner][c->runs] = run_one(&c->workload, runner);
	}
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), compare);
	return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double
contest_rate(const struct contest *c, unsigned runner)
{
	double values[CONTEST_MOST_ROUNDS];
	unsigned n;

	for (n = 0; n < c->runs; n++)
		values[n] = c->of[runner][n].rate;
	return median(values, c->runs);
}

double
contest_ratio(const struct contest *c, unsigned runner, unsigned to)
{
	double values[CONTEST_MOST_ROUNDS];
	unsigned n;

	for (n = 0; n < c->runs; n++)
		values[n] = c->of[to][n].rate > 0 ? c->of[runner][n].rate / c->of[to][n].rate : 0;
	return median(values, c->runs);
}

double
contest_cpu_beyond(const struct contest *c, unsigned runner, unsigned to)
{
	double values[CONTEST_MOST_ROUNDS];
	unsigned n;

	for (n = 0; n < c->runs; n++)
		values[n] = c->of[runner][n].cpu_us - c->of[to][n].cpu_us;
	return median(values, c->runs);
}

const char *
contest_peers(const struct contest *c)
{
	static char text[512];
	size_t n, at = 0;
	double rate;

	text[0] = '\0';
	if (contest_rate(c, RUN_BARE_VFORK) > 0)
		at = (size_t)snprintf(text, sizeof(text), "vfork %.0f", contest_rate(c, RUN_BARE_VFORK));
	for (n = 0; n < npeers; n++) {
		if (!peers[n].edges && workload_has_edges(&c->workload))
			continue;
		rate = contest_rate(c, RUN_PEERS + (unsigned)n);
		at += (size_t)snprintf(text + at, sizeof(text) - at, rate > 0 ? "%s%s %.0f" : "%s%s not run",
		    at > 0 ? ", " : "", peers[n].name, rate);
	}
	return text;
}

struct contest_options
contest_options(int argc, char **argv, unsigned operations, unsigned rounds)
{
	struct contest_options o = {operations, rounds, 0};

	if (argc > 1)
		o.operations = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		o.rounds = (unsigned)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		o.budget_s = strtod(argv[3], NULL);
	if (o.operations < 8 || o.rounds < 1 || o.rounds > CONTEST_MOST_ROUNDS)
		give_up(argv[0], "[OPERATIONS (8 or more) [ROUNDS (15 at most) [BUDGET_SECONDS]]]");
	return o;
}
