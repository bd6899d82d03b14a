/*
 * A database whose write lock somebody else holds: how late the worker's loop is meanwhile, how many
 * operations end, and how long after it is free the controls are applied that wait.
 *
 * The lag is seen from outside: every 10 ms a connection greets the worker as a new supervisor would,
 * and the loop's next turn answers; the figure is the whole way there and back.
 *
 *	bench_busy [SECONDS]	(30)
 */
#include "run_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <sqlite3.h>

#include "figure.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"

enum { SECONDS_HELD = 30, OPERATIONS_A_SECOND = 10, EVERY_US = 10000, CONTROLS = 20,
	SAMPLES = 1 << 16, LEAST_ENDED_A_SECOND = 2 };

static double samples[SAMPLES];
static size_t nsamples;

/* ---- The run ---- */

static void
make_run(struct run_fixture *r, int seconds)
{
	struct buf text = {0};
	int i;

	buf_puts(&text, "name: busy\nconcurrency: 1\nmax_ops: 10000\nplan:\n"
			"  - {id: p, run: 'sleep 0.1', foreach: [0");
	for (i = 1; i < (seconds + 10) * OPERATIONS_A_SECOND; i++)
		buf_printf(&text, ",%d", i);
	buf_puts(&text, "]}\n");
	run_make(r, buf_text(&text), NULL, NULL);
	buf_clear(&text);
}

static int
count_saved(struct run_fixture *r)
{
	char *events = run_file(r, RUN_EVENTS), *at = events;
	int n = 0;

	while ((at = strstr(at, "\"event\":\"CheckpointSaved\"")) != NULL) {
		n++;
		at++;
	}
	free(events);
	return n;
}

/* ---- The lag ---- */

static void
greet(struct run_fixture *r)
{
	struct json *hello = json_set(json_object(), "role", json_cstr("supervisor"));
	double start = seconds_of(CLOCK_MONOTONIC);
	struct message m;
	struct err e = {0};
	struct pollfd p;
	bool ready = false;
	int fd = ipc_connect(r->run_fd, RUN_SOCKET, &e);

	assert_works(fd, e);
	hello = json_set(hello, "major", json_int(PROTOCOL_MAJOR));
	hello = json_set(hello, "minor", json_int(PROTOCOL_MINOR));
	assert_works(message_send(fd, MSG_HELLO, hello, -1, &e), e);
	while (!ready) {
		p = (struct pollfd){.fd = fd, .events = POLLIN};
		assert_int_equal(poll(&p, 1, -1), 1);
		assert_int_equal(message_recv(fd, FROM_WORKER, &m, NULL, &e), 1);
		ready = m.type == MSG_READY;
		message_clear(&m);
	}
	if (nsamples < SAMPLES)
		samples[nsamples++] = seconds_of(CLOCK_MONOTONIC) - start;
	close(r->link);
	r->link = fd;
}

static void
greet_for(struct run_fixture *r, double seconds)
{
	double until = seconds_of(CLOCK_MONOTONIC) + seconds;

	while (seconds_of(CLOCK_MONOTONIC) < until) {
		greet(r);
		usleep(EVERY_US);
	}
}

static int
compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
percentile(unsigned percent)
{
	qsort(samples, nsamples, sizeof(samples[0]), compare);
	return 1e3 * samples[(nsamples - 1) * percent / 100];
}

/* ---- Controls ---- */

/* Queued while the worker stands still, so that all of them wait when the lock is taken. */
static sqlite3 *
queue_and_lock(struct run_fixture *r)
{
	char path[600], id[UUID_TEXT];
	struct err e = {0};
	sqlite3 *db;
	int i;

	kill(r->worker, SIGSTOP);
	for (i = 0; i < CONTROLS; i++)
		assert_works(control_insert(r->store, r->run_id, "resume", NULL, id, &e), e);
	snprintf(path, sizeof(path), "%s/state.db", r->home.path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_busy_timeout(db, 10000), SQLITE_OK);
	if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		give_up("bench_busy", sqlite3_errmsg(db));
	kill(r->worker, SIGCONT);
	return db;
}

static int
count_open(void *arg, const struct control *c)
{
	*(int *)arg += c->applied_at == 0;
	return 0;
}

static int
open_controls(struct run_fixture *r)
{
	struct err e = {0};
	int n = 0;

	assert_works(control_list(r->store, r->run_id, true, count_open, &n, &e), e);
	return n;
}

int
main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : SECONDS_HELD, before, ended;
	struct run_fixture r;
	double start, idle_p99, idle_max;
	char beside[96];
	sqlite3 *db;

	make_run(&r, seconds);
	run_start(&r);
	run_wait_text(&r, RUN_EVENTS, "\"event\":\"NodeStarted\"");
	greet_for(&r, 1);
	idle_p99 = percentile(99);
	idle_max = percentile(100);
	nsamples = 0;
	db = queue_and_lock(&r);
	before = count_saved(&r);
	greet_for(&r, seconds);
	ended = count_saved(&r) - before;
	if (open_controls(&r) != CONTROLS)
		give_up("bench_busy", "controls were stamped while the lock was held");
	start = seconds_of(CLOCK_MONOTONIC);
	if (sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
		give_up("bench_busy", sqlite3_errmsg(db));
	sqlite3_close(db);
	while (open_controls(&r) > 0)
		usleep(1000);
	start = seconds_of(CLOCK_MONOTONIC) - start;
	snprintf(beside, sizeof(beside), "%zu looks in %d s; free database: p99 %.3f, max %.3f", nsamples,
	    seconds, idle_p99, idle_max);
	figure("busy.lag.p99", percentile(99), "ms", "<25", beside);
	figure("busy.lag.max", percentile(100), "ms", "<25", "-");
	figure("busy.ended", ended, "operations", "-", "of 0.1 s each, one at a time");
	figure("busy.applied", 1e3 * start, "ms", "-", "20 controls, from the end of the lock");
	kill(r.worker, SIGTERM);
	run_expect(&r, STATUS_CRASHED, "run.crashed.terminated");
	run_clear(&r);
	return ended >= seconds * LEAST_ENDED_A_SECOND ? 0 : 1;
}
