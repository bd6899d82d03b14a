/*
 * control.latency: from the row of `flowsup pause` to the closed gate, with the wake-up through the
 * supervisor (the command returns when it has the verdict); and the same with the supervisor killed,
 * where the worker finds the row by its tick. The gate's instant is that of the row's stamp, which comes after it.
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

struct taken {
	double created_at, applied_at;
};

static int
keep_last(void *arg, const struct control *c)
{
	struct taken *to = arg;

	*to = (struct taken){c->created_at, c->applied_at};
	return 0;
}

/* From the row to the stamp of the newest control, once it has one. */
static double
taken_ms(struct bench_home *b)
{
	struct taken last = {0};
	struct err e = {0};

	while (last.applied_at == 0) {
		if (control_list(b->store, b->run_id, false, keep_last, &last, &e) != 0)
			give_up("list", e.msg);
		if (last.applied_at == 0)
			usleep(BENCH_POLL_US);
	}
	return 1e3 * (last.applied_at - last.created_at);
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
	double commit = commit_ms(b, tries), median;
	struct samples samples = {0};
	char beside[96];
	int i;

	for (i = 0; i < tries; i++) {
		bench_flowsup(b, pause, NULL);
		sample_add(&samples, taken_ms(b));
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
	double ms;
	int i;

	kill_supervisor(b);
	for (i = 0; i < 2 * tries; i++) {
		if (control_insert(b->store, b->run_id, i % 2 ? "resume" : "pause", NULL, id, &e) != 0)
			give_up("insert", e.msg);
		ms = taken_ms(b);
		if (i % 2 == 0)
			sample_add(&samples, ms);
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
