/* The supervisor's log: two files, or standard error in the foreground. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"

#define OLD_LOG HOME_LOG ".1"

bool
daemon_log_open(struct daemon *d)
{
	int fd = openat(d->home.fd, HOME_LOG,
	    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return false;
	/* Standard output and error too: what a library prints in its last moment is kept. */
	if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0) {
		fd_close(&fd);
		return false;
	}
	fd_close(&d->log_fd);
	d->log_fd = fd;
	log_init(fd, "supervisor", LOG_INFO);
	return true;
}

void
daemon_log_bound(struct daemon *d)
{
	int64_t now = clock_monotonic_ns();
	struct stat st;

	if (d->options.foreground || now - d->log_looked_ns < DAEMON_LOG_LOOK_MS * NS_PER_MS)
		return;
	d->log_looked_ns = now;
	if (fstat(d->log_fd, &st) != 0 || st.st_size < DAEMON_LOG_BYTES)
		return;
	if (renameat(d->home.fd, HOME_LOG, d->home.fd, OLD_LOG) != 0 || !daemon_log_open(d))
		log_line(LOG_ERROR, "cannot begin a new log: %s", strerror(errno));
}

static int
home_error(const struct daemon *d, int sys, struct err *e)
{
	err_sys(e, ERR_CREATE, sys, "open '%s/" HOME_LOG "'", d->home.path);
	return home_hint(d->home.path, e);
}

int
daemon_log_init(struct daemon *d, struct err *e)
{
	d->log_fd = -1;
	if (!d->options.foreground && !daemon_log_open(d))
		return home_error(d, errno, e);
	if (d->options.foreground) {
		d->log_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (d->log_fd < 0)
			return err_sys(e, ERR_IO, errno, "duplicate standard error");
		/* Of one run people want to know what is wrong; the rest is in its events. */
		log_init(d->log_fd, d->options.only != NULL ? NULL : "supervisor",
		    d->options.only != NULL ? LOG_WARNING : LOG_INFO);
	}
	return 0;
}
