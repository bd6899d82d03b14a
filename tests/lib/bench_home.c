#include "bench_home.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/proc.h"

extern char **environ;

enum { AWAIT_S = 60 };

/* ---- Programs ---- */

bool
bench_call(const char *path, char *const *words, char to[BENCH_OUTPUT])
{
	posix_spawn_file_actions_t actions;
	int pipes[2], status, failed;
	ssize_t n, have = 0;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		give_up("pipe", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	failed = posix_spawn(&pid, path, &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	if (failed != 0)
		give_up(path, strerror(failed));
	while (to != NULL && have < BENCH_OUTPUT - 1 &&
	    (n = read(pipes[0], to + have, (size_t)(BENCH_OUTPUT - 1 - have))) > 0)
		have += n;
	if (to != NULL)
		to[have] = '\0';
	if (waitpid(pid, &status, 0) != pid)
		give_up("waitpid", strerror(errno));
	close(pipes[0]);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void
bench_flowsup(const struct bench_home *b, char *const *words, char to[BENCH_OUTPUT])
{
	if (!bench_call(buf_text(&b->program), words, to))
		give_up(words[1], "did not succeed");
}

void
bench_start(struct bench_home *b, char *const *words)
{
	char out[BENCH_OUTPUT];

	bench_flowsup(b, words, out);
	snprintf(b->run_id, sizeof(b->run_id), "%.*s", RUN_ID_TEXT - 1, out);
}

/* ---- The home ---- */

void
bench_home_make(struct bench_home *b)
{
	struct err e = {0};

	test_dir_make(&b->dir);
	if (setenv("FLOWSUP_HOME", b->dir.path, 1) != 0 ||
	    proc_relative_to_self("../../bin/flowsup", &b->program, &e) != 0 ||
	    home_open(b->dir.path, true, &b->home, &e) != 0 ||
	    store_open(&b->home, STORE_COMMAND, true, STORE_BUSY_MS, &b->store, &e) != 0)
		give_up("cannot begin", e.msg);
}

void
bench_home_remove(struct bench_home *b)
{
	char *leave[] = {(char[]){"flowsup"}, (char[]){"supervisor"}, (char[]){"stop"}, NULL};

	bench_flowsup(b, leave, NULL);
	store_close(b->store);
	home_close(&b->home);
	buf_clear(&b->program);
	test_dir_remove(&b->dir);
}

enum run_status
bench_status(const struct bench_home *b)
{
	struct session s = {0};
	struct err e = {0};
	enum run_status status;

	if (session_read(b->store, b->run_id, &s, &e) != 0)
		give_up("read", e.msg);
	status = s.status;
	session_clear(&s);
	return status;
}

void
bench_await(const struct bench_home *b, enum run_status wanted)
{
	double end = seconds_of(CLOCK_MONOTONIC) + AWAIT_S;

	while (bench_status(b) != wanted) {
		if (seconds_of(CLOCK_MONOTONIC) > end)
			give_up("never came true", status_word(wanted));
		usleep(BENCH_POLL_US);
	}
}

/* ---- Samples ---- */

int
bench_tries(int argc, char **argv, int at, int otherwise)
{
	int tries = argc > at ? atoi(argv[at]) : otherwise;

	if (tries < 1 || tries > BENCH_TRIES_MOST)
		give_up(argv[0], "from 1 to 1000 tries");
	return tries;
}

void
sample_add(struct samples *s, double ms)
{
	if (s->count < BENCH_TRIES_MOST)
		s->ms[s->count++] = ms > 0 ? ms : 0;
}

static int
compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
sample_percentile(struct samples *s, int percent)
{
	qsort(s->ms, (size_t)s->count, sizeof(s->ms[0]), compare);
	return s->ms[(s->count - 1) * percent / 100];
}
