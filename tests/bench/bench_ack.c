/*
 * Acknowledged transitions a second, 256 bytes and 16 KiB each, one at a time and as fast as they
 * can be admitted, without compaction and with it; beside a plain loop of append and fsync of the
 * same bytes, and a commit each in SQLite (WAL, synchronous=FULL), in the same directory. What is compared
 * runs by turns, in rounds: a disk is slower in one minute than in another. Of the rounds the median counts.
 *
 *	bench_ack [TRANSITIONS]	(2,000)
 */
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include "ckpt_workload.h"
#include "figure.h"

enum { TRANSITIONS = 2000, ROUNDS = 10 };

static unsigned transitions = TRANSITIONS / ROUNDS; /* of a round */

static char *
filler(size_t len)
{
	static char text[16385];

	memset(text, 'x', len);
	text[len] = '\0';
	return text;
}

static void
drain(struct ckpt_writer *w)
{
	struct ckpt_ack ack;
	struct err e = {0};

	if (ckpt_flush(w, &e) != 0)
		give_up("flush", e.msg);
	while (ckpt_take_ack(w, &ack))
		json_unref(ack.identity);
}

static double
run_writer(struct fixture *fx, size_t bytes, bool one_at_a_time, bool compacting)
{
	struct json *state = fixture_state(0);
	struct ckpt_options o;
	struct ckpt_writer *w = NULL;
	struct err e = {0};
	double start;
	unsigned i;

	fixture_again(fx);
	o = fixture_options(fx, NULL);
	if (!compacting) {
		o.compact_records = o.compact_bytes = UINT64_MAX / 4;
		o.literal_limits = true;
	}
	if (ckpt_writer_open(&o, state, &w, &e) != 0)
		give_up("open", e.msg);
	start = seconds_of(CLOCK_MONOTONIC);
	for (i = 0; i < transitions; i++) {
		char id[16];

		snprintf(id, sizeof(id), "op-%u", i);
		if (ckpt_admit(w, CKPT_OP, fixture_entry(id, filler(bytes)), NULL, NULL, &e) != 0)
			give_up("admit", e.msg);
		if (one_at_a_time)
			drain(w);
	}
	drain(w);
	start = seconds_of(CLOCK_MONOTONIC) - start;
	if (ckpt_writer_close(w, false, &e) != 0)
		give_up("close", e.msg);
	json_unref(state);
	return transitions / start;
}

/* The same number of bytes as a record has. */
static double
run_plain(struct fixture *fx, size_t bytes)
{
	const size_t len = bytes + 200;
	char *line = calloc(1, len);
	double start;
	unsigned i;
	int fd;

	fixture_again(fx);
	fd = openat(fx->run_fd, "plain", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || line == NULL)
		give_up("plain", "cannot start");
	start = seconds_of(CLOCK_MONOTONIC);
	for (i = 0; i < transitions; i++)
		if (write(fd, line, len) != (ssize_t)len || fsync(fd) != 0)
			give_up("plain", "write or fsync");
	start = seconds_of(CLOCK_MONOTONIC) - start;
	close(fd);
	free(line);
	return transitions / start;
}

static void
sql(sqlite3 *db, const char *text)
{
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		give_up(text, sqlite3_errmsg(db));
}

static double
run_sqlite(struct fixture *fx, size_t bytes)
{
	sqlite3_stmt *insert = NULL;
	sqlite3 *db = NULL;
	char path[640];
	double start;
	unsigned i;

	fixture_again(fx);
	snprintf(path, sizeof(path), "%s/%s/peer.db", fx->home.path, FIXTURE_RUN);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		give_up("sqlite", sqlite3_errmsg(db));
	sql(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(id TEXT PRIMARY KEY, r)");
	if (sqlite3_prepare_v2(db, "INSERT INTO t VALUES(?1,?2)", -1, &insert, NULL) != SQLITE_OK)
		give_up("sqlite", sqlite3_errmsg(db));
	start = seconds_of(CLOCK_MONOTONIC);
	for (i = 0; i < transitions; i++) {
		char id[16];

		snprintf(id, sizeof(id), "op-%u", i);
		sqlite3_bind_text(insert, 1, id, -1, SQLITE_TRANSIENT);
		sqlite3_bind_text(insert, 2, filler(bytes), (int)bytes, SQLITE_STATIC);
		if (sqlite3_step(insert) != SQLITE_DONE)
			give_up("sqlite", sqlite3_errmsg(db));
		sqlite3_reset(insert);
	}
	start = seconds_of(CLOCK_MONOTONIC) - start;
	sqlite3_finalize(insert);
	sqlite3_close(db);
	return transitions / start;
}

static int
by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double values[ROUNDS])
{
	qsort(values, ROUNDS, sizeof(values[0]), by_value);
	return (values[(ROUNDS - 1) / 2] + values[ROUNDS / 2]) / 2;
}

static void
measure(struct fixture *fx, const char *size, size_t bytes)
{
	double plain[ROUNDS], database[ROUNDS], single[ROUNDS], together[ROUNDS], compacting[ROUNDS];
	double of_plain[ROUNDS], of_database[ROUNDS];
	char name[64], peer[64];
	size_t i;

	for (i = 0; i < ROUNDS; i++) {
		plain[i] = run_plain(fx, bytes);
		single[i] = run_writer(fx, bytes, true, false);
		of_plain[i] = single[i] / plain[i];
		database[i] = run_sqlite(fx, bytes);
		together[i] = run_writer(fx, bytes, false, false);
		of_database[i] = together[i] / database[i];
		compacting[i] = run_writer(fx, bytes, true, true);
	}
	snprintf(name, sizeof(name), "ack.rate.%s.single", size);
	snprintf(peer, sizeof(peer), "plain loop %.0f (x%.2f)", median(plain), median(of_plain));
	figure(name, median(single), "1/s", "goal >=0.9x plain", peer);
	snprintf(name, sizeof(name), "ack.rate.%s.together", size);
	snprintf(peer, sizeof(peer), "SQLite %.0f (x%.1f)", median(database), median(of_database));
	figure(name, median(together), "1/s", "goal >=5x SQLite", peer);
	snprintf(name, sizeof(name), "ack.rate.%s.compacting", size);
	figure(name, median(compacting), "1/s", "reported", "one at a time, defaults");
}

int
main(int argc, char **argv)
{
	struct fixture fx;

	if (argc > 1)
		transitions = (unsigned)strtoul(argv[1], NULL, 10) / ROUNDS;
	if (transitions == 0)
		transitions = 1;
	fixture_make(&fx);
	measure(&fx, "256B", 256);
	measure(&fx, "16KiB", 16384);
	fixture_remove(&fx);
	return 0;
}
