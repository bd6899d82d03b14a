/* What benchmarks of latencies share: a home of their own, the program called in it, samples. */
#ifndef FLOWSUP_TEST_BENCH_HOME_H
#define FLOWSUP_TEST_BENCH_HOME_H

#include "test.h"

#include "figure.h"
#include "flowsup/home.h"
#include "flowsup/store.h"

enum { BENCH_OUTPUT = 4096, BENCH_TRIES_MOST = 1000, BENCH_POLL_US = 200 };

struct bench_home {
	struct test_dir dir; /* FLOWSUP_HOME from here on */
	struct home home;
	struct store *store;
	struct buf program;
	char run_id[RUN_ID_TEXT]; /* of the latest start */
};
/* Each gives up on failure. */
void bench_home_make(struct bench_home *b);
/* Stops the supervisor and removes the home. Runs have ended before. */
void bench_home_remove(struct bench_home *b);
/* Calls flowsup with these words (the first: "flowsup"); its output goes to `to` (NULL: nowhere). */
void bench_flowsup(const struct bench_home *b, char *const *words, char to[BENCH_OUTPUT]);
/* The same with `start`: notes the run's id. */
void bench_start(struct bench_home *b, char *const *words);
/* Of the latest start. */
enum run_status bench_status(const struct bench_home *b);
/* Looks again and again, for a minute at most. */
void bench_await(const struct bench_home *b, enum run_status wanted);

/* Any program, by its path, and waits for its end: true when it succeeded. Output as above. */
bool bench_call(const char *path, char *const *words, char to[BENCH_OUTPUT]);

/* Of the command line: the number of tries at this place, or `otherwise`. */
int bench_tries(int argc, char **argv, int at, int otherwise);

struct samples {
	double ms[BENCH_TRIES_MOST];
	int count;
};
void sample_add(struct samples *s, double ms);
/* 50: median, 100: the greatest. Sorts. */
double sample_percentile(struct samples *s, int percent);

#endif
