/*
 * The workloads of the benchmarks of the executor: layers of operations that run /bin/true, each
 * operation needing all of the layer before; and what runs them: the worker, bare loops in C that
 * stand for the floor, and other people's programs. Each function ends the benchmark on failure.
 */
#ifndef FLOWSUP_TEST_WORKLOAD_H
#define FLOWSUP_TEST_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "run_fixture.h"

enum { WORKLOAD_MOST_LAYERS = 500, WORKLOAD_MOST_AT_ONCE = 64 };

struct workload {
	unsigned layers[WORKLOAD_MOST_LAYERS]; /* how many operations each has */
	unsigned nlayers, at_once;
};

struct measured {
	double seconds; /* 0: could not be measured */
	double cpu_us;	/* of an operation, the operation's own included */
	double rate;	/* operations a second */
};

struct workload workload_flat(unsigned operations, unsigned at_once);
struct workload workload_layers(unsigned layers, unsigned width, unsigned at_once);
/* 1 -> width -> 1 */
struct workload workload_fan(unsigned width, unsigned at_once);
unsigned workload_size(const struct workload *w);
bool workload_has_edges(const struct workload *w);
struct flow *workload_flow(const struct workload *w);

/* What this process and its children have used since, an operation. */
struct stopwatch {
	double wall, cpu;
};
struct stopwatch stopwatch_start(void);
struct measured stopwatch_stop(struct stopwatch s, size_t operations);

/* The worker, from its start to its end, by a run fixture. */
struct measured workload_by_worker(const struct workload *w, bool durable);

/* bare_loop.c */
enum bare {
	BARE_VFORK,  /* vfork and waitpid, nothing else; only without edges */
	BARE_FILES,  /* a pidfd loop, output to files */
	BARE_JOURNAL /* the same, and each outcome durable in a journal: grouped, on a thread; what
		      * follows waits for it. Where nothing is parallel: in the loop. */
};
struct measured workload_by_bare_loop(const struct workload *w, enum bare kind);

/* peers.c */
struct peer {
	const char *name, *program;
	bool edges;	/* it can run graphs */
	unsigned share; /* it gets one of so many of the operations: it is slow, and rates compare */
};
extern const struct peer peers[];
extern const size_t npeers;
bool peer_is_installed(const struct peer *p);
struct measured workload_by_peer(const struct workload *w, const struct peer *p);

#endif
