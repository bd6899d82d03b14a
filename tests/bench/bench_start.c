/*
 * start.latency: from the call of `flowsup start -- PROGRAM` to its return, to the first instruction of
 * PROGRAM (which writes down the instant itself), and to `completed` in the database; with a running
 * supervisor and without. Beside: a loop in C that takes the same durable steps, round by round in the
 * same run, and what one fsync takes here. The milliseconds hold where that is below 1 ms.
 *
 *	bench_start [TRIES [TRIES WITHOUT SUPERVISOR]]	(100, 20)
 */
#include "bench_home.h"

#include <unistd.h>

#include "start_floor.h"

enum { TRIES = 100, TRIES_ALONE = 20, REST_US = 20000 /* what the run before leaves to do is over */ };

struct series {
	struct samples returned, begun, completed;
};

static struct samples floor_returned, floor_begun;

static void
one_start(struct bench_home *b, struct stamps *s, struct series *to)
{
	char *start[] = {(char[]){"flowsup"}, (char[]){"start"}, (char[]){"--"}, s->program, s->path,
	    NULL};
	double from = seconds_of(CLOCK_MONOTONIC);

	bench_start(b, start);
	sample_add(&to->returned, 1e3 * (seconds_of(CLOCK_MONOTONIC) - from));
	sample_add(&to->begun, 1e3 * (stamps_next(s) - from));
	bench_await(b, STATUS_COMPLETED);
	sample_add(&to->completed, 1e3 * (seconds_of(CLOCK_MONOTONIC) - from));
	usleep(REST_US);
}

static void
print(const char *when, const char *what, struct samples *of, const char *bound, struct samples *beside)
{
	double median = sample_percentile(of, 50), least;
	char name[64], text[96] = "-";

	if (beside != NULL) {
		least = sample_percentile(beside, 50);
		snprintf(text, sizeof(text), "same durable steps in C %.3f ms (x%.1f)", least, median / least);
	}
	snprintf(name, sizeof(name), "%s.%s.median", when, what);
	figure(name, median, "ms", bound, text);
	snprintf(name, sizeof(name), "%s.%s.p99", when, what);
	snprintf(text, sizeof(text), "%d tries", of->count);
	figure(name, sample_percentile(of, 99), "ms", "-", text);
}

static void
with_supervisor(struct bench_home *b, struct stamps *s, struct start_floor *f, int tries)
{
	static struct series series;
	int i;

	for (i = 0; i < tries; i++) {
		one_start(b, s, &series);
		sample_add(&floor_returned, start_floor_return(f));
		sample_add(&floor_begun, start_floor_exec(f, s));
	}
	print("start.latency", "return", &series.returned, "<=6", &floor_returned);
	print("start.latency", "exec", &series.begun, "<=12", &floor_begun);
	print("start.latency", "done", &series.completed, "-", NULL);
}

static void
without_supervisor(struct bench_home *b, struct stamps *s, int tries)
{
	char *leave[] = {(char[]){"flowsup"}, (char[]){"supervisor"}, (char[]){"stop"}, NULL};
	static struct series series;
	int i;

	for (i = 0; i < tries; i++) {
		bench_flowsup(b, leave, NULL);
		one_start(b, s, &series);
	}
	print("start.alone", "return", &series.returned, "<=26", &floor_returned);
	print("start.alone", "exec", &series.begun, "<=32", &floor_begun);
	print("start.alone", "done", &series.completed, "-", NULL);
}

int
main(int argc, char **argv)
{
	int tries = bench_tries(argc, argv, 1, TRIES), alone = bench_tries(argc, argv, 2, TRIES_ALONE);
	struct bench_home b = {0};
	struct start_floor f;
	struct series warm = {0};
	struct stamps s;

	bench_home_make(&b);
	start_floor_make(&f);
	stamps_make(&s, &f.dir);
	one_start(&b, &s, &warm);
	figure("start.fsync", start_floor_fsync(&f, tries), "ms", "<1: the bounds below hold", "-");
	with_supervisor(&b, &s, &f, tries);
	without_supervisor(&b, &s, alone);
	stamps_clear(&s);
	start_floor_remove(&f);
	bench_home_remove(&b);
	return 0;
}
