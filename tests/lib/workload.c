/* Shapes, and the worker. */
#include "workload.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "figure.h"
#include "flowsup/flow.h"
#include "flowsup/status.h"

struct workload
workload_layers(unsigned layers, unsigned width, unsigned at_once)
{
	struct workload w = {.nlayers = layers, .at_once = at_once};
	unsigned i;

	assert_true(layers <= WORKLOAD_MOST_LAYERS && at_once <= WORKLOAD_MOST_AT_ONCE);
	for (i = 0; i < layers; i++)
		w.layers[i] = width;
	return w;
}

struct workload
workload_flat(unsigned operations, unsigned at_once)
{
	return workload_layers(1, operations, at_once);
}

struct workload
workload_fan(unsigned width, unsigned at_once)
{
	struct workload w = workload_layers(3, 1, at_once);

	w.layers[1] = width;
	return w;
}

unsigned
workload_size(const struct workload *w)
{
	unsigned i, n = 0;

	for (i = 0; i < w->nlayers; i++)
		n += w->layers[i];
	return n;
}

bool
workload_has_edges(const struct workload *w)
{
	return w->nlayers > 1;
}

struct flow *
workload_flow(const struct workload *w)
{
	struct buf text = {0};
	struct flow_source source = {.name = "bench"};
	struct flow *flow = NULL;
	struct err e = {0};
	unsigned layer, i, n, before = 0, at = 0;

	buf_printf(&text, "name: bench\nconcurrency: %u\nmax_ops: %u\nplan:\n", w->at_once,
	    workload_size(w));
	for (layer = 0; layer < w->nlayers; layer++) {
		for (i = 0; i < w->layers[layer]; i++) {
			buf_printf(&text, "  - {id: o%u, exec: [/bin/true]", at + i);
			for (n = before; n < at; n++)
				buf_printf(&text, "%so%u", n == before ? ", needs: [" : ", ", n);
			buf_puts(&text, at > before ? "]}\n" : "}\n");
		}
		before = at;
		at += w->layers[layer];
	}
	source.text = buf_view(&text);
	assert_works(flow_read(&source, &flow, NULL, &e), e);
	buf_clear(&text);
	return flow;
}

static double
cpu_seconds(int who)
{
	struct rusage u;

	assert_int_equal(getrusage(who, &u), 0);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

struct stopwatch
stopwatch_start(void)
{
	return (struct stopwatch){seconds_of(CLOCK_MONOTONIC),
	    cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN)};
}

struct measured
stopwatch_stop(struct stopwatch s, size_t operations)
{
	const double n = (double)operations;
	struct stopwatch now = stopwatch_start();

	return (struct measured){.seconds = now.wall - s.wall,
	    .cpu_us = (now.cpu - s.cpu) * 1e6 / n,
	    .rate = n / (now.wall - s.wall)};
}

struct measured
workload_by_worker(const struct workload *w, bool durable)
{
	struct measured m;
	struct stopwatch watch;
	struct run_fixture r;

	run_make_flow(&r, workload_flow(w), durable ? NULL : "{\"durability\": \"relaxed\"}", NULL);
	watch = stopwatch_start();
	run_start(&r);
	assert_int_equal(waitpid(r.worker, &r.status, 0), r.worker);
	m = stopwatch_stop(watch, workload_size(w));
	r.worker = 0;
	run_expect(&r, STATUS_COMPLETED, "run.completed.all");
	run_clear(&r);
	return m;
}
