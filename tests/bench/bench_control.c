/*
 * control.latency: from the return of `flowsup pause` to the closed gate, with the wake-up through
 * the supervisor; and with the supervisor killed, from the durable row to the closed gate, which the
 * worker then finds by its tick. The gate's instant is that of the row's stamp, which comes after it.
 *
 *	bench_control [TRIES [TRIES WITHOUT SUPERVISOR]]	(100, 20)
 */
#include "bench_home.h"

#include <signal.h>
#include <unistd.h>

#include "flowsup/clock.h"

enum { TRIES = 100, TRIES_ALONE = 20 };

/* ---- The run ---- */

static void
begin(struct bench_home *b)
{
	char *start[] = {(char[]){"flowsup"}, (char[]){"start"}, (char[]){"--"}, (char[]){"sleep"},
	    (char[]){"100000"}, NULL};

	bench_home_make(b);
	bench_start(b, start);
	bench_await(b, STATUS_RUNNING);
}

static void
end(struct bench_home *b)
{
	char *stop[] = {(char[]){"flowsup"}, (char[]){"kill"}, b->run_id, NULL};

	bench_flowsup(b, stop, NULL);
	bench_home_remove(b);
}

/* ---- Times ---- */

static double
wall(void)
{
	return (double)clock_wall_ns() / (double)NS_PER_S;
}

static int
keep_last(void *arg, const struct control *c)
{
	*(double *)arg = c->applied_at;
	return 0;
}

/* When the newest control was applied. */
static double
applied_at(struct bench_home *b)
{
	struct err e = {0};
	double at = 0;

	while (at == 0) {
		if (control_list(b->store, b->run_id, false, keep_last, &at, &e) != 0)
			give_up("list", e.msg);
		if (at == 0)
			usleep(BENCH_POLL_US);
	}
	return at;
}

/* What one commit of the database takes here. */
static double
commit_ms(struct bench_home *b, int tries)
{
	double start = seconds_of(CLOCK_MONOTONIC);
	struct err e = {0};
	int i;

	for (i = 0; i < tries; i++)
		if (session_progress(b->store, b->run_id, 0, 1, &e) != 0)
			give_up("commit", e.msg);
	return 1e3 * (seconds_of(CLOCK_MONOTONIC) - start) / tries;
}

static void
with_supervisor(struct bench_home *b, int tries)
{
	char *pause[] = {(char[]){"flowsup"}, (char[]){"pause"}, b->run_id, NULL};
	char *resume[] = {(char[]){"flowsup"}, (char[]){"ctl"}, (char[]){"resume"}, b->run_id,
	    (char[]){"--wait"}, NULL};
	double commit = commit_ms(b, tries), median, from;
	struct samples samples = {0};
	char beside[96];
	int i;

	for (i = 0; i < tries; i++) {
		bench_flowsup(b, pause, NULL);
		from = wall();
		sample_add(&samples, 1e3 * (applied_at(b) - from));
		bench_flowsup(b, resume, NULL);
	}
	median = sample_percentile(&samples, 50);
	snprintf(beside, sizeof(beside), "a commit %.3f ms (x%.1f), %d tries", commit, median / commit, tries);
	figure("control.latency.median", median, "ms", "<10", beside);
	figure("control.latency.max", sample_percentile(&samples, 100), "ms", "-", "-");
}

static void
kill_supervisor(struct bench_home *b)
{
	char *status[] = {(char[]){"flowsup"}, (char[]){"supervisor"}, (char[]){"status"},
	    (char[]){"--json"}, NULL};
	char out[BENCH_OUTPUT], *at;
	int pid;

	bench_flowsup(b, status, out);
	at = strstr(out, "\"pid\":");
	pid = at != NULL ? atoi(at + 6) : 0;
	if (pid <= 1 || kill(pid, SIGKILL) != 0)
		give_up("bench_control", "there is no supervisor to kill");
}

/* A command would start a supervisor: the row is written as a command writes it, and that is all. */
static void
without_supervisor(struct bench_home *b, int tries)
{
	struct samples samples = {0};
	char id[UUID_TEXT];
	struct err e = {0};
	double from, at;
	int i;

	kill_supervisor(b);
	for (i = 0; i < 2 * tries; i++) {
		if (control_insert(b->store, b->run_id, i % 2 ? "resume" : "pause", NULL, id, &e) != 0)
			give_up("insert", e.msg);
		from = wall();
		at = applied_at(b);
		if (i % 2 == 0)
			sample_add(&samples, 1e3 * (at - from));
		/* The next one at another point between two ticks. */
		usleep((useconds_t)(i * 137000 % 2000000));
	}
	figure("control.alone.median", sample_percentile(&samples, 50), "ms", "-", "supervisor killed");
	figure("control.alone.max", sample_percentile(&samples, 100), "ms", "<=2100", "the tick is 2 s");
}

int
main(int argc, char **argv)
{
	int tries = bench_tries(argc, argv, 1, TRIES), alone = bench_tries(argc, argv, 2, TRIES_ALONE);
	struct bench_home b = {0};

	begin(&b);
	with_supervisor(&b, tries);
	without_supervisor(&b, alone);
	end(&b);
	return 0;
}
