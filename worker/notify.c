/*
 * flowsup-worker --notify: runs the command that is told of an event, with the environment and in
 * the directory of the run. The first part of what it prints is kept in notify.log of the run's directory.
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/places.h"
#include "notify.h"

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_STARTED = 126 };

/* The supervisor ends the group before; where that has died, we do. */
enum { LIMIT_S = 40, LOOK_MS = 1000 };

enum {
	KEPT_OF_STREAM = 64 << 10, /* of standard output, and of standard error, of one command */
	KEPT_OF_RUN = 1 << 20,	   /* then nothing is added to NOTIFY_LOG any more */
	KEPT_FOR_OUTCOME = 4096,
	PIPE_BYTES = 64 << 10
};

#define NOTIFY_LOG "notify.log"

/* ---- What it prints ---- */

/* One of its two streams, read from a pipe for as long as anybody has the other end, so that nobody is
 * held up or killed for printing much. The first part is kept. */
struct stream {
	int from;
	int log;     /* NOTIFY_LOG, or -1: not any more */
	size_t left; /* of what may still be kept there */
	int also;    /* a second place for the first bytes, or -1 */
	size_t also_left;
};
enum { STREAM_OUT, STREAM_ERR, STREAMS };

static int
open_log(int run_fd, struct stream streams[STREAMS], struct err *e)
{
	int fd = openat(run_fd, NOTIFY_LOG, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t left = KEPT_OF_STREAM;
	struct stat st;
	int i;

	if (fd < 0 || fstat(fd, &st) != 0) {
		err_sys(e, ERR_IO, errno, "cannot open '%s'", NOTIFY_LOG);
		fd_close(&fd);
		return -1;
	}
	if (st.st_size >= KEPT_OF_RUN)
		fd_close(&fd); /* the last line says so */
	else if ((off_t)left > KEPT_OF_RUN - st.st_size)
		left = (size_t)(KEPT_OF_RUN - st.st_size);
	for (i = 0; i < STREAMS; i++) {
		streams[i].log = fd;
		streams[i].left = left;
	}
	return 0;
}

static int
open_streams(int run_fd, struct stream streams[STREAMS], int ends[STREAMS], struct err *e)
{
	int i, both[2];

	for (i = 0; i < STREAMS; i++) {
		if (pipe2(both, O_CLOEXEC) != 0 || fcntl(both[0], F_SETFL, O_NONBLOCK) != 0)
			return err_sys(e, ERR_IO, errno, "pipe2");
		streams[i] = (struct stream){.from = both[0], .log = -1, .also = -1};
		ends[i] = both[1];
	}
	/* The supervisor takes the first line of it into the outcome. */
	streams[STREAM_ERR].also = STDERR_FILENO;
	streams[STREAM_ERR].also_left = KEPT_FOR_OUTCOME;
	return open_log(run_fd, streams, e);
}

static void
keep(struct stream *s, struct slice text)
{
	static const char cut[] = "\n[more was printed; flowsup keeps no more of it]\n";
	size_t n = text.len < s->left ? text.len : s->left;
	struct err e = {0};

	if (s->log < 0)
		return;
	s->left -= n;
	if (fs_write_all(&fs_real, "notify.log", s->log, (struct slice){text.data, n}, &e) == 0 && n == text.len)
		return;
	if (e.code == ERR_NONE)
		(void)fs_write_all(&fs_real, "notify.log", s->log, slice_of(cut), &e);
	if (e.code != ERR_NONE)
		fprintf(stderr, "cannot write '%s': %s\n", NOTIFY_LOG, e.msg);
	s->log = -1;
}

/* What is there, at most as much as a pipe holds. */
static void
drain(struct stream *s)
{
	static char bytes[PIPE_BYTES];
	ssize_t n = read(s->from, bytes, sizeof(bytes));
	size_t also = n > 0 && (size_t)n > s->also_left ? s->also_left : n > 0 ? (size_t)n : 0;
	struct err e = {0};

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		fd_close(&s->from);
		return;
	}
	keep(s, (struct slice){bytes, (size_t)n});
	s->also_left -= also;
	if (also > 0 && fs_write_all(&fs_real, "notify.said", s->also, (struct slice){bytes, also}, &e) != 0)
		s->also_left = 0;
}

/* Until one of them has something, or `also` (-1: none), at most for so long (-1: without an end). */
static void
wait_and_drain(struct stream streams[STREAMS], int also, int most_ms)
{
	struct pollfd fds[STREAMS + 1];
	int i;

	for (i = 0; i < STREAMS; i++)
		fds[i] = (struct pollfd){streams[i].from, POLLIN, 0};
	fds[STREAMS] = (struct pollfd){also, POLLIN, 0};
	if (poll(fds, STREAMS + 1, most_ms) <= 0)
		return;
	for (i = 0; i < STREAMS; i++)
		if (fds[i].revents != 0)
			drain(&streams[i]);
}

static bool
is_open(const struct stream streams[STREAMS])
{
	return streams[STREAM_OUT].from >= 0 || streams[STREAM_ERR].from >= 0;
}

/*
 * What the command left running may print, too, and the supervisor waits for us: a process of its own, in
 * the command's group, reads on until the last of them has ended.
 */
static void
drain_on(struct stream streams[STREAMS])
{
	int i;

	for (i = 0; i < STREAMS; i++)
		if (streams[i].from >= 0)
			drain(&streams[i]);
	/* Without it they are told that nobody listens. */
	if (!is_open(streams) || fork() != 0)
		return;
	while (is_open(streams))
		wait_and_drain(streams, -1, -1);
	_exit(0);
}

/* ---- The command ---- */

static int
prepare(int run_fd, char ***envp, char **block, struct err *e)
{
	struct launch_read launch;

	if (launch_read(run_fd, &launch, e) != 0)
		return -1;
	umask(launch.umask);
	/* A directory that is gone meanwhile keeps nobody from being told. */
	if (chdir(launch.cwd) != 0 && chdir("/") != 0)
		err_sys(e, ERR_IO, errno, "chdir");
	launch_read_clear(&launch);
	return environ_read(run_fd, block, envp, e);
}

/* As it ended. */
static int
end_alike(const struct proc_end *end)
{
	static const struct rlimit none = {0, 0};

	if (!end->signaled)
		return end->known ? end->code : EXIT_NOT_STARTED;
	/* Its core is enough. */
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal(end->code, SIG_DFL);
	(void)raise(end->code);
	return EXIT_NOT_STARTED;
}

/* In our group, which is ended with us and all that the command started when its time is over. */
static int
start_command(char **argv, char **envp, const int ends[STREAMS], struct proc_child *child, struct err *e)
{
	struct proc_spawn what = PROC_SPAWN_INIT;

	what.path = argv[0];
	what.search_path = places_variable(envp, "PATH");
	what.argv = argv;
	what.envp = envp;
	what.die_with = getpid();
	what.fds[what.nfds++] = (struct proc_fd){STDIN_FILENO, STDIN_FILENO};
	what.fds[what.nfds++] = (struct proc_fd){ends[STREAM_OUT], STDOUT_FILENO};
	what.fds[what.nfds++] = (struct proc_fd){ends[STREAM_ERR], STDERR_FILENO};
	return proc_start(&what, child, NULL, e);
}

static int
watch_command(struct proc_child *child, struct stream streams[STREAMS], struct err *e)
{
	int64_t until = clock_monotonic_ns() + LIMIT_S * NS_PER_S;
	struct proc_end end = {0};
	int r;

	while ((r = proc_wait(child->pidfd, false, &end, e)) == 0) {
		if (clock_monotonic_ns() >= until)
			(void)kill(0, SIGKILL);
		wait_and_drain(streams, child->pidfd, LOOK_MS);
	}
	fd_close(&child->pidfd);
	drain_on(streams);
	return r > 0 ? end_alike(&end) : EXIT_NOT_STARTED;
}

static int
run_command(int run_fd, char **argv, char **envp, struct err *e)
{
	struct stream streams[STREAMS] = {{.from = -1, .log = -1}, {.from = -1, .log = -1}};
	int ends[STREAMS] = {-1, -1}, status = EXIT_NOT_STARTED;
	struct proc_child child;
	bool started = false;
	int i;

	if (open_streams(run_fd, streams, ends, e) == 0) {
		started = start_command(argv, envp, ends, &child, e) == 0;
		status = EXIT_NOT_FOUND;
	}
	for (i = 0; i < STREAMS; i++)
		fd_close(&ends[i]);
	return started ? watch_command(&child, streams, e) : status;
}

int
notify_main(const char *home, const char *run_id, char **argv)
{
	char *block = NULL, **envp = NULL;
	struct home h;
	struct err e = {0};
	int run_fd = -1, status = EXIT_NOT_STARTED;

	if (home_open(home, false, &h, &e) == 0) {
		run_fd = rundir_open(&h, run_id, &e);
		if (run_fd >= 0 && prepare(run_fd, &envp, &block, &e) == 0)
			status = run_command(run_fd, argv, envp, &e);
		fd_close(&run_fd);
		home_close(&h);
	}
	if (e.code != ERR_NONE)
		fprintf(stderr, "%s\n", e.msg);
	free(envp);
	free(block);
	return status;
}
