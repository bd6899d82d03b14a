/*
 * Loading, strict and validated, in MB a second of processor time: a base with 128 records of
 * 64 KiB, and a base of so many MB; each time in a new program, which has its memory yet to get.
 * Beside: the same files read whole and looked through for valid UTF-8, nothing more.
 * Then deltas: one append and one new member in a container of 1,000, 10,000 and 100,000; outcomes
 * saved with such a context, unchanged or with one member replaced; and a whole context from outside
 * against the one before.
 *
 *	bench_load [MB]	(100)
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt_workload.h"
#include "figure.h"

enum { MB = 100, LOADS = 5, RECORDS = 128, RECORD = 65536, DELTAS = 200 };

static char *
filler(size_t len)
{
	static char text[RECORD + 1];
	size_t i;

	for (i = 0; i < len; i++)
		text[i] = (char)('a' + i % 26);
	text[len] = '\0';
	return text;
}

static void
load(int run_fd)
{
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};

	if (ckpt_load(run_fd, NULL, &state, &report, &e) != 0)
		give_up("load", e.msg);
}

/* ---- The loop beside ---- */

static size_t
sequence_length(unsigned char lead)
{
	return lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
}

static bool
is_utf8(const unsigned char *p, size_t n)
{
	size_t i = 0, k, len;

	for (; i < n; i += len) {
		len = sequence_length(p[i]);
		if (len == 0 || len > n - i)
			return false;
		for (k = 1; k < len; k++)
			if ((p[i + k] & 0xc0) != 0x80)
				return false;
	}
	return true;
}

static void
look_through_file(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	unsigned char *bytes;
	size_t got = 0;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st) != 0 || (bytes = malloc((size_t)st.st_size + 1)) == NULL)
		give_up("plain loop", name);
	while (n > 0 && (n = read(fd, bytes + got, (size_t)st.st_size - got)) > 0)
		got += (size_t)n;
	if (n < 0 || got != (size_t)st.st_size || !is_utf8(bytes, got))
		give_up("plain loop", "not what was written");
	free(bytes);
	close(fd);
}

static void
look_through(int run_fd)
{
	look_through_file(run_fd, CKPT_BASE);
	look_through_file(run_fd, CKPT_JOURNAL);
}

/* What this program does when it is called as `bench_load WORK FD`: the seconds go to its output. */
static int
be_child(const char *work, int run_fd)
{
	double seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID);

	if (strcmp(work, "load") == 0)
		load(run_fd);
	else
		look_through(run_fd);
	printf("%.9f\n", seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds);
	return 0;
}

/* Seconds of processor time in a program of its own. */
static double
seconds_in_child(const char *work, const struct fixture *fx)
{
	char command[64];
	double seconds;
	FILE *child;
	int fd = dup(fx->run_fd); /* stays open in the child */

	snprintf(command, sizeof(command), "exec /proc/%d/exe %s %d", (int)getpid(), work, fd);
	child = fd >= 0 ? popen(command, "re") : NULL;
	if (child == NULL || fscanf(child, "%lf", &seconds) != 1 || pclose(child) != 0)
		give_up(work, "the child failed");
	close(fd);
	return seconds;
}

static double
megabytes(const struct fixture *fx)
{
	struct stat base, journal;

	if (fstatat(fx->run_fd, CKPT_BASE, &base, 0) != 0 ||
	    fstatat(fx->run_fd, CKPT_JOURNAL, &journal, 0) != 0)
		give_up("load", "no files");
	return (double)(base.st_size + journal.st_size) / 1e6;
}

static double
best_rate(const char *work, const struct fixture *fx)
{
	double best = 0, rate;
	int i;

	for (i = 0; i < LOADS; i++) {
		rate = megabytes(fx) / seconds_in_child(work, fx);
		best = rate > best ? rate : best;
	}
	return best;
}

static void
rate(const char *name, const char *bound, const char *what, const struct fixture *fx)
{
	double loaded = best_rate("load", fx), looked = best_rate("look", fx);
	char peer[96];

	snprintf(peer, sizeof(peer), "%s; read and UTF-8 alone %.0f: x%.2f", what, looked, loaded / looked);
	figure(name, loaded, "MB/s", bound, peer);
}

static void
make_journal(struct fixture *fx)
{
	struct json *state = fixture_state(RECORDS);
	struct ckpt_options o = fixture_options(fx, NULL);
	struct ckpt_writer *w = NULL;
	struct err e = {0};
	char id[16];
	int i;

	o.compact_bytes = UINT64_MAX / 4;
	if (ckpt_writer_open(&o, state, &w, &e) != 0)
		give_up("open", e.msg);
	for (i = 0; i < RECORDS; i++) {
		snprintf(id, sizeof(id), "op-%d", i);
		if (ckpt_admit(w, CKPT_OP, fixture_entry(id, filler(RECORD)), NULL, NULL, &e) != 0 ||
		    ckpt_flush(w, &e) != 0)
			give_up("admit", e.msg);
	}
	if (ckpt_writer_close(w, false, &e) != 0)
		give_up("close", e.msg);
	json_unref(state);
}

static void
make_base(struct fixture *fx, unsigned mb)
{
	struct json *state = fixture_state(0), *ops = json_object();
	struct err e = {0};
	unsigned i;
	char id[16];

	for (i = 0; i < mb * 1000u; i++) {
		snprintf(id, sizeof(id), "op-%u", i);
		ops = json_set(ops, id, fixture_entry(id, filler(930)));
	}
	state = json_set(state, "ops", ops);
	if (ckpt_write_new(NULL, fx->run_fd, CKPT_BASE, 3, state, &e) != 0)
		give_up("write", e.msg);
	json_unref(state);
}

/* ---- Deltas ---- */

static struct json *
container(bool array, unsigned n)
{
	struct json *c = array ? json_array() : json_object();
	char name[16];
	unsigned i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		c = array ? json_append(c, json_int(i)) : json_set(c, name, json_int(i));
	}
	return json_set(json_object(), "c", c);
}

/* Seconds of processor time for one change and its difference; *nodes copied and *values made for
 * one, *bytes of the patch. */
static double
one_delta(bool array, unsigned n, double *nodes, double *values, double *bytes)
{
	struct json *old = container(array, n), *next, *c, *patch;
	struct json_counters before = {0};
	double start = 0;
	char name[24];
	int i;

	/* The first ones find memory that nobody has touched. */
	for (i = -DELTAS; i < DELTAS; i++) {
		if (i == 0) {
			before = json_counters();
			start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
		}
		snprintf(name, sizeof(name), "new%d", i);
		c = json_ref(json_get(old, "c"));
		c = array ? json_append(c, json_int(i)) : json_set(c, name, json_int(i));
		next = json_set(json_ref(old), "c", c);
		patch = json_diff(old, next);
		if (patch == NULL)
			give_up("delta", "no memory");
		*bytes = (double)json_encoded_length(patch);
		json_unref(patch);
		json_unref(old);
		old = next;
	}
	start = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start;
	*nodes = (double)(json_counters().nodes_made - before.nodes_made) / DELTAS;
	*values = (double)(json_counters().values_made - before.values_made) / DELTAS;
	json_unref(old);
	return start / DELTAS;
}

static void
deltas(bool array)
{
	static const unsigned sizes[] = {1000, 10000, 100000};
	double nodes, values, bytes, first = 0, cpu;
	char name[48], peer[128];
	size_t i;

	for (i = 0; i < 3; i++) {
		cpu = one_delta(array, sizes[i], &nodes, &values, &bytes);
		first = i == 0 ? cpu : first;
		snprintf(name, sizeof(name), "delta.%s.%u", array ? "append" : "member", sizes[i]);
		snprintf(peer, sizeof(peer), "x%.2f of 1000; %.1f nodes copied, %.1f values made; patch %.0f bytes",
		    cpu / first, nodes, values, bytes);
		figure(name, 1e6 * cpu, "us", i == 2 ? "<=3x that at 1000" : "-", peer);
	}
}

/* ---- Saving a fixed change of a growing context ---- */

static struct json *
nested_change(const struct json *context, int i)
{
	struct json *inner = json_set(json_ref(json_get(context, "c")), "k7", json_int(i + 1000000));

	return json_set(json_ref(context), "c", inner);
}

static double
wait_for(struct ckpt_writer *w, double since)
{
	struct ckpt_ack ack;
	struct err e = {0};

	if (ckpt_flush(w, &e) != 0)
		give_up("flush", e.msg);
	while (ckpt_take_ack(w, &ack))
		json_unref(ack.identity);
	return seconds_of(CLOCK_MONOTONIC) - since;
}

/*
 * DELTAS transitions, each with the context as it was or with one nested member replaced; one at a
 * time for cost and latency, then all at once for the length of the queue.
 */
static void
saving(struct fixture *fx, unsigned n, bool changed)
{
	struct json *state = fixture_state(1), *context = container(false, n), *next;
	struct ckpt_options o;
	struct ckpt_writer *w = NULL;
	struct json_counters before, after;
	struct err e = {0};
	double cpu, latency = 0, start;
	uint64_t queue = 0;
	char name[48], peer[128];
	int i;

	fixture_again(fx);
	o = fixture_options(fx, NULL);
	o.compact_records = UINT64_MAX;
	o.compact_bytes = UINT64_MAX / 4;
	state = json_set(state, "flow_context", json_ref(context));
	if (ckpt_writer_open(&o, state, &w, &e) != 0)
		give_up("open", e.msg);
	before = json_counters();
	cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	for (i = 0; i < 2 * DELTAS; i++) {
		next = changed ? nested_change(context, i) : json_ref(context);
		json_unref(context);
		context = next;
		start = seconds_of(CLOCK_MONOTONIC);
		if (ckpt_admit(w, CKPT_OP, fixture_entry("op-0", "r"), json_ref(context), NULL, &e) != 0)
			give_up("admit", e.msg);
		if (i < DELTAS)
			latency += wait_for(w, start);
		else {
			struct ckpt_progress p = ckpt_progress(w);

			queue = p.admitted - p.acked > queue ? p.admitted - p.acked : queue;
		}
		if (i == DELTAS - 1) {
			cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
			after = json_counters();
		}
	}
	wait_for(w, 0);
	snprintf(name, sizeof(name), "delta.save.%s.%u", changed ? "nested" : "unchanged", n);
	snprintf(peer, sizeof(peer), "%.1f values and %.1f nodes made; acknowledged in %.0f us; queue of %d: %llu",
	    (double)(after.values_made - before.values_made) / DELTAS,
	    (double)(after.nodes_made - before.nodes_made) / DELTAS, 1e6 * latency / DELTAS, DELTAS,
	    (unsigned long long)queue);
	figure(name, 1e6 * cpu / DELTAS, "us", n == 100000 ? "<=3x that at 1000" : "-", peer);
	if (ckpt_writer_close(w, false, &e) != 0)
		give_up("close", e.msg);
	json_unref(context);
	json_unref(state);
}

static void
savings(struct fixture *fx, bool changed)
{
	static const unsigned sizes[] = {1000, 10000, 100000};
	size_t i;

	for (i = 0; i < 3; i++)
		saving(fx, sizes[i], changed);
}

static void
foreign(unsigned mb)
{
	struct json *old = json_object(), *same = NULL, *patch;
	struct buf text = {0};
	const struct json_options o = {.max_bytes = JSON_MAX_PROGRAM};
	struct err e = {0};
	double start;
	char name[32];
	unsigned i;

	for (i = 0; i < mb * 1000u; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		old = json_set(old, name, json_cstr(filler(980)));
	}
	json_write(&text, old);
	if (buf_ok(&text, &e) != 0 || json_parse(buf_view(&text), &o, &same, NULL, &e) != 0)
		give_up("foreign", e.msg);
	start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	same = json_rebase(old, json_set(same, "k1", json_cstr("changed")));
	patch = json_diff(old, same);
	start = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start;
	if (json_length(patch) != 1)
		give_up("foreign", "not one operation");
	snprintf(name, sizeof(name), "delta.foreign.%uMB", mb);
	figure(name, 1e3 * start, "ms", "linear", "rebase and difference, one member changed");
	json_unref(patch);
	json_unref(same);
	json_unref(old);
	buf_clear(&text);
}

int
main(int argc, char **argv)
{
	unsigned mb = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : MB;
	struct fixture fx;
	char name[32];

	if (argc == 3)
		return be_child(argv[1], atoi(argv[2]));
	use_fast_directory();
	fixture_make(&fx);
	make_journal(&fx);
	rate("load.rate.journal", ">=500", "128 records of 64 KiB", &fx);
	fixture_again(&fx);
	make_base(&fx, mb / 10 > 0 ? mb / 10 : 1);
	rate("load.rate.tenth", "linear", "a tenth of the next", &fx);
	fixture_again(&fx);
	make_base(&fx, mb);
	snprintf(name, sizeof(name), "load.rate.base.%uMB", mb);
	rate(name, ">=500", "1 KB an outcome", &fx);
	deltas(true);
	deltas(false);
	savings(&fx, false);
	savings(&fx, true);
	foreign(1);
	foreign(mb / 10 > 0 ? mb / 10 : 1);
	foreign(mb);
	fixture_remove(&fx);
	return 0;
}
