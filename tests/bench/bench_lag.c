/*
 * How long the loop is kept from its next turn while outcomes are saved: 100 completions at once,
 * each with a response of 65,536 bytes and 65,536 bytes of new context, real fsync, the whole path
 * from admission to the last acknowledgement. A poll() loop with a 1 ms timer stands for the
 * worker's; its lateness is sampled at every tick while something is pending. On a busy machine
 * that shows the machine: beside it stands the processor time that the loop itself spends in one
 * turn, on admitting and on taking acknowledgements.
 *
 *	bench_lag [REPETITIONS]	(20)
 */
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "ckpt_workload.h"
#include "figure.h"
#include "flowsup/fs.h"

enum { COMPLETIONS = 100, PAYLOAD = 65536, REPETITIONS = 20, IDLE_TICKS = 500, SAMPLES = 1 << 20 };
#define TICK 0.001

static double samples[SAMPLES];
static size_t nsamples;
static double busiest_turn; /* processor time of the loop */

static char *
filler(int seed)
{
	static char text[PAYLOAD + 1];
	int i;

	for (i = 0; i < PAYLOAD; i++)
		text[i] = (char)('a' + (seed + i * 7) % 26);
	return text;
}

static struct json *
completion(int i)
{
	char id[16];

	snprintf(id, sizeof(id), "op-%d", i);
	return fixture_entry(id, filler(i));
}

static int
tick_open(void)
{
	const struct itimerspec every = {.it_interval.tv_nsec = 1000000, .it_value.tv_nsec = 1000000};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &every, NULL) != 0)
		give_up("bench_lag", "timerfd");
	return fd;
}

static void
sample(double *last)
{
	const double now = seconds_of(CLOCK_MONOTONIC), late = now - *last - TICK;

	*last = now;
	if (nsamples < SAMPLES)
		samples[nsamples++] = late > 0 ? late : 0;
}

/* Values are made before: what is measured is admission, saving and draining. */
static double
repetition(struct fixture *fx)
{
	struct json *entries[COMPLETIONS], *contexts[COMPLETIONS], *context = json_object();
	struct json *state = fixture_state(COMPLETIONS);
	struct ckpt_options o;
	struct ckpt_writer *w = NULL;
	struct ckpt_ack ack;
	struct err e = {0};
	double start, last;
	int i, acked = 0, admitted = 0, tick;
	uint64_t count;

	fixture_again(fx);
	o = fixture_options(fx, NULL);
	for (i = 0; i < COMPLETIONS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "k%d", i);
		context = json_set(context, name, json_cstr(filler(i + 3)));
		entries[i] = completion(i);
		contexts[i] = json_ref(context);
	}
	if (ckpt_writer_open(&o, state, &w, &e) != 0)
		give_up("open", e.msg);
	tick = tick_open();
	start = last = seconds_of(CLOCK_MONOTONIC);
	while (acked < COMPLETIONS) {
		double turn = seconds_of(CLOCK_THREAD_CPUTIME_ID);
		struct pollfd p[2] = {{.fd = tick, .events = POLLIN},
		    {.fd = ckpt_event_fd(w), .events = POLLIN}};

		/* All complete in one turn of the loop. */
		for (; admitted < COMPLETIONS; admitted++)
			if (ckpt_admit(w, CKPT_OP, entries[admitted], contexts[admitted], NULL, &e) != 0)
				give_up("admit", e.msg);
		poll(p, 2, -1);
		if ((p[0].revents & POLLIN) != 0) {
			if (read(tick, &count, sizeof(count)) == (ssize_t)sizeof(count))
				sample(&last);
		}
		while (ckpt_take_ack(w, &ack)) {
			acked++;
			json_unref(ack.identity);
		}
		turn = seconds_of(CLOCK_THREAD_CPUTIME_ID) - turn;
		busiest_turn = turn > busiest_turn ? turn : busiest_turn;
	}
	start = seconds_of(CLOCK_MONOTONIC) - start;
	if (ckpt_writer_close(w, false, &e) != 0)
		give_up("close", e.msg);
	close(tick);
	json_unref(context);
	json_unref(state);
	return start;
}

/* The same loop with nothing to save: what the machine itself takes. */
static void
idle(int ticks)
{
	struct pollfd p = {.fd = tick_open(), .events = POLLIN};
	double last = seconds_of(CLOCK_MONOTONIC);
	uint64_t count;

	while (ticks-- > 0) {
		poll(&p, 1, -1);
		if (read(p.fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
			sample(&last);
	}
	close(p.fd);
}

static int
compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int
main(int argc, char **argv)
{
	int repetitions = argc > 1 ? atoi(argv[1]) : REPETITIONS, i;
	const char *kind = "?";
	struct fixture fx;
	struct err e = {0};
	double drained = 0;
	char peer[96];
	bool remote;

	fixture_make(&fx);
	idle(IDLE_TICKS);
	qsort(samples, nsamples, sizeof(samples[0]), compare);
	figure("lag.idle.p99", 1e3 * samples[nsamples * 99 / 100], "ms", "-", "nothing pending");
	nsamples = 0;
	for (i = 0; i < repetitions; i++)
		drained += repetition(&fx);
	if (nsamples == 0)
		give_up("bench_lag", "no sample");
	qsort(samples, nsamples, sizeof(samples[0]), compare);
	(void)fs_kind(fx.run_fd, &kind, &remote, &e);
	snprintf(peer, sizeof(peer), "tick 1 ms, %zu samples, %d repetitions, %s", nsamples, repetitions,
	    kind);
	figure("lag.p99", 1e3 * samples[nsamples * 99 / 100], "ms", "<25, goal <2", peer);
	figure("lag.max", 1e3 * samples[nsamples - 1], "ms", "-", "-");
	figure("lag.loop", 1e3 * busiest_turn, "ms", "-", "processor time of the loop's busiest turn");
	figure("lag.drain", 1e3 * drained / repetitions, "ms", "-", "100 x (64 KiB + 64 KiB)");
	fixture_remove(&fx);
	return 0;
}
