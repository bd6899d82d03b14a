#include "children.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "test.h"

struct proc_child
child_start(const struct proc_spawn *spawn)
{
	struct proc_child child = {.pidfd = -1};
	struct err e = {0};

	assert_works(proc_start(spawn, &child, NULL, &e), e);
	return child;
}

struct proc_end
child_finish(struct proc_child *child)
{
	struct pollfd ready = {.fd = child->pidfd, .events = POLLIN};
	struct proc_end end = {0};
	struct err e = {0};

	while (poll(&ready, 1, -1) < 0)
		assert_int_equal(errno, EINTR);
	assert_int_equal(proc_wait(child->pidfd, false, &end, &e), 1);
	fd_close(&child->pidfd);
	return end;
}

void
children_none(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

void
child_pause(void)
{
	alarm(600);
	for (;;)
		pause();
}
