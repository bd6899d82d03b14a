/*
 * death.latency: from SIGKILL to a worker to `crashed`, in the database, and by the end of the first
 * `flowsup list` that shows it (called again and again). The supervisor runs, the operation sleeps.
 *
 *	bench_death [TRIES]	(50)
 */
#include "bench_home.h"

#include <signal.h>
#include <unistd.h>

enum { TRIES = 50, LIST_S = 60 };

static pid_t
worker_of(const struct bench_home *b)
{
	struct attempts a;
	struct err e = {0};
	pid_t pid;
	int fd = rundir_open(&b->home, b->run_id, &e);

	if (fd < 0 || attempts_read_place(fd, &a, &e) != 0)
		give_up("the worker", e.msg);
	pid = a.worker.pid;
	attempts_clear(&a);
	close(fd);
	return pid;
}

/* A new run, its worker killed: since when, in seconds. */
static double
kill_one(struct bench_home *b)
{
	char *start[] = {(char[]){"flowsup"}, (char[]){"start"}, (char[]){"--"}, (char[]){"sleep"},
	    (char[]){"100000"}, NULL};
	pid_t worker;
	double from;

	bench_start(b, start);
	bench_await(b, STATUS_RUNNING);
	worker = worker_of(b);
	from = seconds_of(CLOCK_MONOTONIC);
	if (worker <= 1 || kill(worker, SIGKILL) != 0)
		give_up("bench_death", "there is no worker to kill");
	return from;
}

/* Its operation goes on without it. */
static void
clear(struct bench_home *b)
{
	char *stop[] = {(char[]){"flowsup"}, (char[]){"kill"}, b->run_id, NULL};

	bench_flowsup(b, stop, NULL);
}

static void
until_listed(const struct bench_home *b)
{
	char *list[] = {(char[]){"flowsup"}, (char[]){"list"}, (char[]){"-n"}, (char[]){"1"}, NULL};
	double end = seconds_of(CLOCK_MONOTONIC) + LIST_S;
	char out[BENCH_OUTPUT];

	do {
		if (seconds_of(CLOCK_MONOTONIC) > end)
			give_up("list", "never said that the run crashed");
		bench_flowsup(b, list, out);
	} while (strstr(out, b->run_id) == NULL || strstr(out, "crashed") == NULL);
}

static void
print(const char *where, struct samples *s)
{
	char name[64], tries[32];

	snprintf(tries, sizeof(tries), "%d tries", s->count);
	snprintf(name, sizeof(name), "death.latency.%s.median", where);
	figure(name, sample_percentile(s, 50), "ms", "<100", tries);
	snprintf(name, sizeof(name), "death.latency.%s.max", where);
	figure(name, sample_percentile(s, 100), "ms", "<100", "-");
}

int
main(int argc, char **argv)
{
	static struct samples stored, listed;
	int tries = bench_tries(argc, argv, 1, TRIES), i;
	struct bench_home b = {0};
	double from;

	bench_home_make(&b);
	for (i = 0; i < tries; i++) {
		from = kill_one(&b);
		bench_await(&b, STATUS_CRASHED);
		sample_add(&stored, 1e3 * (seconds_of(CLOCK_MONOTONIC) - from));
		clear(&b);
		from = kill_one(&b);
		until_listed(&b);
		sample_add(&listed, 1e3 * (seconds_of(CLOCK_MONOTONIC) - from));
		clear(&b);
	}
	print("row", &stored);
	print("list", &listed);
	bench_home_remove(&b);
	return 0;
}
