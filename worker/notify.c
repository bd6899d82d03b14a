/*
 * flowsup-worker --notify: runs the command that is told of an event, with the environment and in
 * the directory of the run. What it prints goes into notify.log of the run's directory.
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
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/places.h"
#include "notify.h"

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_STARTED = 126 };

/* The supervisor ends the group before; where that has died, we do. */
enum { LIMIT_S = 40, LOOK_MS = 1000 };

#define NOTIFY_LOG "notify.log"

static int
put_output(int run_fd, struct err *e)
{
	int fd = openat(run_fd, NOTIFY_LOG, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc = 0;

	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot open '%s'", NOTIFY_LOG);
	if (dup2(fd, STDOUT_FILENO) < 0)
		rc = err_sys(e, ERR_IO, errno, "dup2");
	fd_close(&fd);
	return rc;
}

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
	return environ_read(run_fd, block, envp, e) == 0 && put_output(run_fd, e) == 0 ? 0 : -1;
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
run_command(char **argv, char **envp, struct err *e)
{
	struct proc_spawn what = PROC_SPAWN_INIT;
	int64_t until = clock_monotonic_ns() + LIMIT_S * NS_PER_S;
	struct proc_end end = {0};
	struct proc_child child;
	struct pollfd fd = {.events = POLLIN};
	int i, r;

	what.path = argv[0];
	what.search_path = places_variable(envp, "PATH");
	what.argv = argv;
	what.envp = envp;
	what.die_with = getpid();
	for (i = STDIN_FILENO; i <= STDERR_FILENO; i++)
		what.fds[what.nfds++] = (struct proc_fd){i, i};
	if (proc_start(&what, &child, NULL, e) != 0)
		return EXIT_NOT_FOUND;
	fd.fd = child.pidfd;
	while ((r = proc_wait(child.pidfd, false, &end, e)) == 0) {
		if (clock_monotonic_ns() >= until)
			(void)kill(0, SIGKILL);
		(void)poll(&fd, 1, LOOK_MS);
	}
	fd_close(&child.pidfd);
	return r > 0 ? end_alike(&end) : EXIT_NOT_STARTED;
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
			status = run_command(argv, envp, &e);
		fd_close(&run_fd);
		home_close(&h);
	}
	if (e.code != ERR_NONE)
		fprintf(stderr, "%s\n", e.msg);
	free(envp);
	free(block);
	return status;
}
