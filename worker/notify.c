/*
 * flowsup-worker --notify: becomes the command that is told of an event, with the environment and in
 * the directory of the run. What it prints goes into notify.log of the run's directory.
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/places.h"
#include "notify.h"

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_STARTED = 126 };

/* The supervisor ends it, with its group, before; where that has died, the command ends by itself. */
enum { ALARM_S = 40 };

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

static void
become(char **argv, char **envp, struct err *e)
{
	struct buf path = {0};

	if (proc_find_program(argv[0], places_variable(envp, "PATH"), &path, e) != 0)
		return;
	(void)alarm(ALARM_S);
	execve(buf_text(&path), argv, envp);
	(void)alarm(0);
	err_sys(e, ERR_ENVIRONMENT, errno, "execute '%s'", argv[0]);
	buf_clear(&path);
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
		if (run_fd >= 0 && prepare(run_fd, &envp, &block, &e) == 0) {
			become(argv, envp, &e);
			status = EXIT_NOT_FOUND;
		}
		fd_close(&run_fd);
		home_close(&h);
	}
	fprintf(stderr, "%s\n", e.msg);
	free(envp);
	free(block);
	return status;
}
