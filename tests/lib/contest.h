/*
 * The worker beside bare loops and other people's programs on one workload: in rounds, in which
 * each has its turn, so that all meet the same machine. Medians; a ratio is the median of the
 * ratios of the rounds.
 */
#ifndef FLOWSUP_TEST_CONTEST_H
#define FLOWSUP_TEST_CONTEST_H

#include "workload.h"

enum contest_runner {
	RUN_FULL,
	RUN_RELAXED,
	RUN_BARE_VFORK,
	RUN_BARE_FILES,
	RUN_BARE_JOURNAL,
	RUN_PEERS, /* and so on, by their place in `peers` */
	RUN_MOST = RUN_PEERS + 8
};
enum { CONTEST_MOST_ROUNDS = 15 };

struct contest {
	struct workload workload;
	unsigned rounds, runs; /* asked for, and made */
	double budget_s;       /* no round begins that would end after it, but the first; 0: none */
	struct measured of[RUN_MOST][CONTEST_MOST_ROUNDS];
};

/* Runs everything that can run this workload and is installed. */
void contest_run(struct contest *c);
double contest_rate(const struct contest *c, unsigned runner); /* 0: was not run */
double contest_ratio(const struct contest *c, unsigned runner, unsigned to);
/* The CPU of an operation beyond that by `to`, in microseconds. */
double contest_cpu_beyond(const struct contest *c, unsigned runner, unsigned to);
/* "make 2926, ninja 1519, tsp -": the rates of all of them but the worker. */
const char *contest_peers(const struct contest *c);

/* Options of the programs: [OPERATIONS [ROUNDS [BUDGET_SECONDS]]]. */
struct contest_options {
	unsigned operations, rounds;
	double budget_s;
};
struct contest_options contest_options(int argc, char **argv, unsigned operations, unsigned rounds);

#endif
