/*
 * scale.ops: one run of ever more operations of /bin/true, durability full: time of an operation
 * beside that of the bare loop with a journal in the same minute, the worker's highest resident
 * memory, bytes written. And what it takes to resume such a run when nothing is left, beside make and
 * ninja with nothing to do: resume.saved for one whose worker died when every outcome was saved, which
 * becomes a new run with a checkpoint of its own; resume.nothing for one that has completed.
 *
 *	scale_ops [MOST_OPERATIONS [BUDGET_SECONDS [LEAST_OPERATIONS]]]	(100000, none, 1000)
 *
 * The last operation of a run waits, so that the worker can be looked at when all the others have
 * ended, and the run be recorded as crashed before it ends.
 */
#include "workload.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "figure.h"
#include "flowsup/flow.h"
#include "flowsup/proc.h"
#include "flowsup/status.h"

enum { AT_ONCE = 2, BARE_OPERATIONS = 3000, RESUME_LARGE = 50000, RESUME_SMALL = 1000, ROUNDS = 3 };

struct size {
	unsigned operations;
	double most_mib; /* 0: no bound of its own */
};

static const struct size sizes[] = {
    {1000, 0}, {2000, 8}, {10000, 0}, {50000, 48}, {100000, 0}};

/* ---- Other programs ---- */

/* Runs it and returns the seconds it took; ends the benchmark when it fails. */
static double
timed(const char *dir, const char *const *argv)
{
	char path[4096], *envp[] = {path, (char[]){"HOME=/nonexistent"}, NULL}, *args[8] = {NULL};
	struct proc_spawn s = PROC_SPAWN_INIT;
	struct proc_child child;
	struct buf program = {0};
	struct err e = {0};
	double begun = seconds_of(CLOCK_MONOTONIC);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), status;
	size_t n;

	snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
	for (n = 0; argv[n] != NULL && n < 7; n++)
		args[n] = strdup(argv[n]);
	if (strchr(argv[0], '/') != NULL)
		assert_works(proc_relative_to_self(argv[0], &program, &e), e);
	else
		assert_works(proc_find_program(argv[0], getenv("PATH"), &program, &e), e);
	s.path = buf_text(&program);
	s.argv = args;
	s.envp = envp;
	s.cwd = dir;
	s.fds[0] = (struct proc_fd){null, 0};
	s.fds[1] = (struct proc_fd){null, 1};
	s.fds[2] = (struct proc_fd){null, 2};
	s.nfds = 3;
	assert_works(proc_start(&s, &child, NULL, &e), e);
	assert_int_equal(waitpid(child.id.pid, &status, 0), child.id.pid);
	begun = seconds_of(CLOCK_MONOTONIC) - begun;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		give_up(argv[0], "failed");
	close(child.pidfd);
	close(null);
	buf_clear(&program);
	while (n-- > 0)
		free(args[n]);
	return begun;
}

static double
middle(const double *v)
{
	double low = v[0] < v[1] ? v[0] : v[1], high = v[0] < v[1] ? v[1] : v[0];

	return v[2] < low ? low : v[2] > high ? high : v[2];
}

/* Stamp files that are there already. */
static void
nothing_for_make(const struct test_dir *dir, unsigned operations)
{
	struct buf text = {0};
	char name[32];
	unsigned i;

	buf_puts(&text, "all:\n");
	for (i = 0; i < operations; i++)
		buf_printf(&text, "all: o%u\no%u:\n\ttouch $@\n", i, i);
	test_file_write(dir->fd, "Makefile", buf_text(&text));
	buf_reset(&text);
	buf_puts(&text, "rule r\n  command = touch $out\n");
	for (i = 0; i < operations; i++)
		buf_printf(&text, "build o%u: r\n", i);
	test_file_write(dir->fd, "build.ninja", buf_text(&text));
	buf_clear(&text);
	for (i = 0; i < operations; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		test_file_write(dir->fd, name, "");
	}
}

static double
peer_with_nothing(const struct test_dir *dir, const char *program)
{
	const char *const argv[] = {program, NULL};
	struct peer p = {.program = program};
	double took[ROUNDS];
	int i;

	if (!peer_is_installed(&p))
		return 0;
	timed(dir->path, argv); /* ninja wants its own log of having done it */
	for (i = 0; i < ROUNDS; i++)
		took[i] = timed(dir->path, argv);
	return middle(took);
}

static void
resume_figure(const char *what, unsigned operations, double seconds, const char *peer)
{
	char name[64];

	snprintf(name, sizeof(name), "resume.%s.%u", what, operations);
	figure(name, seconds * 1e3, "ms", operations == RESUME_LARGE ? "<= ninja" : "-", peer);
}

static void
resume_nothing(struct run_fixture *r, unsigned operations)
{
	const char *const dead[] = {"../../bin/flowsup", "resume", r->run_id, "--wait", "--home",
	    r->home.path, NULL};
	const char *const stop[] = {"../../bin/flowsup", "supervisor", "stop", "--home", r->home.path,
	    NULL};
	const char *const completed[] = {"../../bin/flowsup", "resume", "@last", "--wait", "--home",
	    r->home.path, NULL};
	double saved, nothing[ROUNDS], by_make, by_ninja;
	struct test_dir dir;
	char peer[128];
	int i;

	saved = timed(NULL, dead);
	timed(NULL, stop);
	for (i = 0; i < ROUNDS; i++)
		nothing[i] = timed(NULL, completed);
	test_dir_make(&dir);
	nothing_for_make(&dir, operations);
	by_make = peer_with_nothing(&dir, "make");
	by_ninja = peer_with_nothing(&dir, "ninja");
	test_dir_remove(&dir);
	snprintf(peer, sizeof(peer), "make %.0f, ninja %.0f (0: not run)", by_make * 1e3, by_ninja * 1e3);
	resume_figure("saved", operations, saved, peer);
	resume_figure("nothing", operations, middle(nothing), peer);
}

/* ---- The run ---- */

static struct flow *
make_flow(unsigned operations)
{
	struct buf text = {0};
	struct flow_source source = {.name = "scale"};
	struct flow *flow = NULL;
	struct err e = {0};
	unsigned i;

	buf_printf(&text, "name: scale\nconcurrency: %d\nmax_ops: %u\nplan:\n", AT_ONCE, operations);
	for (i = 0; i + 1 < operations; i++)
		buf_printf(&text, "  - {id: o%u, exec: [/bin/true]}\n", i);
	buf_puts(&text, "  - {id: last, run: ': >$TEST_DIR/begun; until [ -e $TEST_DIR/go ]; do sleep 0.01; "
			"done'}\n");
	source.text = buf_view(&text);
	assert_works(flow_read(&source, &flow, NULL, &e), e);
	buf_clear(&text);
	return flow;
}

/* A number behind `name` in a file of /proc/PID. */
static double
proc_number(pid_t pid, const char *file, const char *name)
{
	char path[64], line[256];
	double value = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	in = fopen(path, "re");
	if (in == NULL)
		give_up(path, "cannot be read");
	while (fgets(line, sizeof(line), in) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtod(line + strlen(name), NULL);
	fclose(in);
	return value;
}

static void
await_begun(struct run_fixture *r)
{
	const struct timespec pause = {.tv_nsec = 2000000};

	while (faccessat(r->dir.fd, "begun", F_OK, 0) != 0) {
		if (kill(r->worker, 0) != 0 || waitpid(r->worker, &r->status, WNOHANG) != 0)
			give_up("the worker", "ended early");
		nanosleep(&pause, NULL);
	}
}

/* Every outcome is saved, and the run counts as crashed. Returns the worker's highest memory in MiB. */
static double
crash_at_end(struct run_fixture *r)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	double peak = 0, now;
	struct err e = {0};
	bool moved = false;

	while (!moved)
		assert_works(session_transition(r->store, r->run_id, STATUS_CRASHED, "run.crashed.signal",
				 NULL, -1, &moved, &e), e);
	test_file_write(r->dir.fd, "go", "");
	while (waitpid(r->worker, &r->status, WNOHANG) == 0) {
		now = proc_number(r->worker, "status", "VmHWM:") / 1024;
		peak = now > peak ? now : peak; /* a zombie has none */
		nanosleep(&pause, NULL);
	}
	r->worker = 0;
	return peak;
}

static double
one_size(const struct size *size, double first_ratio)
{
	const struct workload flat = workload_flat(
	    size->operations < BARE_OPERATIONS ? size->operations : BARE_OPERATIONS, AT_ONCE);
	const double n = size->operations;
	struct run_fixture r;
	struct measured bare;
	double took, ratio, peak, bytes;
	char name[64], peer[128], bound[64] = "-";

	run_make_flow(&r, make_flow(size->operations), NULL, NULL);
	took = seconds_of(CLOCK_MONOTONIC);
	run_start(&r);
	await_begun(&r);
	took = seconds_of(CLOCK_MONOTONIC) - took;
	bytes = proc_number(r.worker, "io", "wchar:");
	bare = workload_by_bare_loop(&flat, BARE_JOURNAL);
	ratio = took / n * bare.rate;
	peak = crash_at_end(&r);
	snprintf(name, sizeof(name), "scale.ops.%u.time", size->operations);
	snprintf(peer, sizeof(peer), "%.2f x the loop's; %.2f of the first ratio", ratio,
	    first_ratio > 0 ? ratio / first_ratio : 1);
	figure(name, took / n * 1e6, "us/op", "flat, +- 20 % of ratio", peer);
	snprintf(name, sizeof(name), "scale.ops.%u.memory", size->operations);
	if (size->most_mib > 0)
		snprintf(bound, sizeof(bound), "<= %.0f", size->most_mib);
	figure(name, peak, "MiB", bound, "VmHWM");
	snprintf(name, sizeof(name), "scale.ops.%u.bytes", size->operations);
	figure(name, bytes / n, "bytes/op", "linear", "written by the worker");
	if (size->operations == RESUME_LARGE || size->operations == RESUME_SMALL)
		resume_nothing(&r, size->operations);
	run_clear(&r);
	return ratio;
}

int
main(int argc, char **argv)
{
	const unsigned long most = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	const double budget = argc > 2 ? strtod(argv[2], NULL) : 0, begun = seconds_of(CLOCK_MONOTONIC);
	const unsigned long least = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	double first = 0, each = 0, from, ratio;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i].operations <= most; i++) {
		if (sizes[i].operations < least)
			continue;
		if (budget > 0 && seconds_of(CLOCK_MONOTONIC) - begun + each * sizes[i].operations > budget) {
			printf("# scale.ops.%u: NOT RUN, it would take longer than %.0f s\n",
			    sizes[i].operations, budget);
			continue;
		}
		from = seconds_of(CLOCK_MONOTONIC);
		ratio = one_size(&sizes[i], first);
		each = (seconds_of(CLOCK_MONOTONIC) - from) / sizes[i].operations;
		if (first <= 0)
			first = ratio;
	}
	return 0;
}
