/*
 * control.latency: from the return of `flowsup pause` to the closed gate, with the wake-up through
 * the supervisor; and with the supervisor killed, from the durable row to the closed gate, which the
 * worker then finds by its tick. The gate's instant is that of the row's stamp, which comes after it.
 *
 *	bench_control [TRIES [TRIES WITHOUT SUPERVISOR]]	(100, 20)
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "figure.h"
#include "flowsup/clock.h"
#include "flowsup/home.h"
#include "flowsup/proc.h"
#include "flowsup/store.h"

extern char **environ;

enum { TRIES = 100, TRIES_ALONE = 20, MOST_TRIES = 1000, OUTPUT = 4096 };

struct bench {
	struct test_dir dir;
	struct home home;
	struct store *store;
	char run_id[RUN_ID_TEXT];
	struct buf program;
	double samples[MOST_TRIES];
	int count;
};

/* Runs flowsup with these words; its output goes to `to` (NULL: nowhere). */
static void
flowsup(struct bench *b, char *const *words, char to[OUTPUT])
{
	posix_spawn_file_actions_t actions;
	int pipes[2], status;
	ssize_t n, have = 0;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		give_up("pipe", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (posix_spawn(&pid, buf_text(&b->program), &actions, NULL, words, environ) != 0)
		give_up("spawn", buf_text(&b->program));
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	while (to != NULL && have < OUTPUT - 1 && (n = read(pipes[0], to + have, (size_t)(OUTPUT - 1 - have))) > 0)
		have += n;
	if (to != NULL)
		to[have] = '\0';
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		give_up(words[1], "did not succeed");
	close(pipes[0]);
}

/* ---- The run ---- */

static bool
is_running(void *arg)
{
	struct bench *b = arg;
	struct session s = {0};
	struct err e = {0};
	bool yes;

	if (session_read(b->store, b->run_id, &s, &e) != 0)
		give_up("read", e.msg);
	yes = s.status == STATUS_RUNNING;
	session_clear(&s);
	return yes;
}

static void
begin(struct bench *b)
{
	char *start[] = {(char[]){"flowsup"}, (char[]){"start"}, (char[]){"--"}, (char[]){"sleep"},
	    (char[]){"100000"}, NULL};
	char out[OUTPUT];
	struct err e = {0};

	test_dir_make(&b->dir);
	if (setenv("FLOWSUP_HOME", b->dir.path, 1) != 0 ||
	    proc_relative_to_self("../../bin/flowsup", &b->program, &e) != 0)
		give_up("bench_control", "cannot begin");
	flowsup(b, start, out);
	snprintf(b->run_id, sizeof(b->run_id), "%.*s", RUN_ID_TEXT - 1, out);
	if (home_open(b->dir.path, false, &b->home, &e) != 0 ||
	    store_open(&b->home, STORE_COMMAND, false, STORE_BUSY_MS, &b->store, &e) != 0)
		give_up("open", e.msg);
	if (!test_wait_for(is_running, b))
		give_up("bench_control", "the run never began");
}

static void
end(struct bench *b)
{
	char *stop[] = {(char[]){"flowsup"}, (char[]){"kill"}, b->run_id, NULL};
	char *leave[] = {(char[]){"flowsup"}, (char[]){"supervisor"}, (char[]){"stop"}, NULL};

	flowsup(b, stop, NULL);
	flowsup(b, leave, NULL);
	store_close(b->store);
	home_close(&b->home);
	buf_clear(&b->program);
	test_dir_remove(&b->dir);
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
applied_at(struct bench *b)
{
	struct err e = {0};
	double at = 0;

	while (at == 0) {
		if (control_list(b->store, b->run_id, false, keep_last, &at, &e) != 0)
			give_up("list", e.msg);
		if (at == 0)
			usleep(200);
	}
	return at;
}

static void
sample(struct bench *b, double from)
{
	double late = applied_at(b) - from;

	if (b->count < MOST_TRIES)
		b->samples[b->count++] = late > 0 ? late : 0;
}

static int
compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
percentile(struct bench *b, int percent)
{
	qsort(b->samples, (size_t)b->count, sizeof(b->samples[0]), compare);
	return 1e3 * b->samples[(b->count - 1) * percent / 100];
}

/* What one commit of the database takes here. */
static double
commit_ms(struct bench *b, int tries)
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
with_supervisor(struct bench *b, int tries)
{
	char *pause[] = {(char[]){"flowsup"}, (char[]){"pause"}, b->run_id, NULL};
	char *resume[] = {(char[]){"flowsup"}, (char[]){"ctl"}, (char[]){"resume"}, b->run_id,
	    (char[]){"--wait"}, NULL};
	double commit = commit_ms(b, tries), median;
	char beside[96];

	for (b->count = 0; b->count < tries;) {
		flowsup(b, pause, NULL);
		sample(b, wall());
		flowsup(b, resume, NULL);
	}
	median = percentile(b, 50);
	snprintf(beside, sizeof(beside), "a commit %.3f ms (x%.1f), %d tries", commit, median / commit,
	    b->count);
	figure("control.latency.median", median, "ms", "<10", beside);
	figure("control.latency.max", percentile(b, 100), "ms", "-", "-");
}

static void
kill_supervisor(struct bench *b)
{
	char *status[] = {(char[]){"flowsup"}, (char[]){"supervisor"}, (char[]){"status"},
	    (char[]){"--json"}, NULL};
	char out[OUTPUT], *at;
	int pid;

	flowsup(b, status, out);
	at = strstr(out, "\"pid\":");
	pid = at != NULL ? atoi(at + 6) : 0;
	if (pid <= 1 || kill(pid, SIGKILL) != 0)
		give_up("bench_control", "there is no supervisor to kill");
}

/* A command would start a supervisor: the row is written as a command writes it, and that is all. */
static void
without_supervisor(struct bench *b, int tries)
{
	char id[UUID_TEXT];
	struct err e = {0};
	double from;
	int i;

	kill_supervisor(b);
	for (i = 0, b->count = 0; i < 2 * tries; i++) {
		if (control_insert(b->store, b->run_id, i % 2 ? "resume" : "pause", NULL, id, &e) != 0)
			give_up("insert", e.msg);
		from = wall();
		if (i % 2 == 0)
			sample(b, from);
		else
			(void)applied_at(b);
		/* The next one at another point between two ticks. */
		usleep((useconds_t)(i * 137000 % 2000000));
	}
	figure("control.alone.median", percentile(b, 50), "ms", "-", "supervisor killed");
	figure("control.alone.max", percentile(b, 100), "ms", "<=2100", "the tick is 2 s");
}

int
main(int argc, char **argv)
{
	int tries = argc > 1 ? atoi(argv[1]) : TRIES, alone = argc > 2 ? atoi(argv[2]) : TRIES_ALONE;
	static struct bench b;

	if (tries < 1 || tries > MOST_TRIES || alone < 1 || alone > MOST_TRIES)
		give_up("bench_control", "from 1 to 1000 tries");
	begin(&b);
	with_supervisor(&b, tries);
	without_supervisor(&b, alone);
	end(&b);
	return 0;
}
