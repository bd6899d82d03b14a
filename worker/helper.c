/* A short command whose first line of output is wanted, such as one that prints a version. */
#include "agent.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"

enum { WHY_TEXT = 64 };

static void
read_line(int fd, char to[HELPER_OUTPUT])
{
	ssize_t n = pread(fd, to, HELPER_OUTPUT - 1, 0);

	to[n > 0 ? n : 0] = '\0';
	to[strcspn(to, "\r\n")] = '\0';
}

/* What it left in its group goes with it. The zombie is ours or was reaped with adopted ones. */
static void
finish(struct helper *h, bool late)
{
	helper_done *done = h->done;
	void *arg = h->arg;
	char text[HELPER_OUTPUT] = "", why[WHY_TEXT] = "printed nothing";
	struct proc_end end = {0};
	struct err e = {0};

	proc_signal_group(h->pid, SIGKILL, &e);
	if (proc_wait(h->pidfd, false, &end, &e) != 1)
		end = (struct proc_end){0};
	h->pid = 0; /* reaped: the number may be somebody else's now */
	if (late)
		snprintf(why, sizeof(why), "took longer than %d s", HELPER_S);
	else if (end.signaled)
		snprintf(why, sizeof(why), "was ended by %s", proc_signal_name(end.code));
	else if (end.code != 0)
		snprintf(why, sizeof(why), "failed with exit status %d", end.code);
	else
		read_line(h->out_fd, text);
	helper_clear(h);
	done(arg, text, why);
}

static void
helper_ready(void *arg, short revents)
{
	(void)revents;
	finish(arg, false);
}

static void
limit_due(void *arg)
{
	finish(arg, true);
}

/* Marks would make it a part of an operation that does not run yet. */
static char **
without_marks(char *const *envp)
{
	size_t n = 0, kept = 0;
	char **list;

	while (envp[n] != NULL)
		n++;
	list = calloc(n + 1, sizeof(*list));
	for (n = 0; list != NULL && envp[n] != NULL; n++)
		if (strncmp(envp[n], "FLOWSUP_", 8) != 0)
			list[kept++] = envp[n];
	return list;
}

static int
start(struct helper *h, const struct given *given, char **argv, char **envp, struct err *e)
{
	struct proc_spawn s = PROC_SPAWN_INIT;
	struct proc_child child;

	s.path = argv[0];
	s.search_path = given->search_path;
	s.argv = argv;
	s.envp = envp;
	s.cwd = given->cwd;
	s.new_session = true;
	s.die_with = getpid();
	s.fds[0] = (struct proc_fd){.from = h->out_fd, .to = STDOUT_FILENO};
	s.nfds = 1;
	proc_spawn_limit_files(&s, HELPER_FILE_MOST);
	if (proc_start(&s, &child, NULL, e) != 0)
		return -1;
	h->pid = child.id.pid;
	h->pidfd = child.pidfd;
	return 0;
}

int
helper_start(struct helper *h, struct worker *w, uint32_t i, const struct provider_words *words,
    helper_done *done, void *arg, struct err *e)
{
	char **argv = provider_words_list(words), **envp = NULL;
	struct given given;
	int rc = -1;

	*h = (struct helper){.w = w, .pidfd = -1, .out_fd = -1, .done = done, .arg = arg};
	if (context_prepare(w, i, &given, e) == 0)
		envp = without_marks(given.envp);
	h->out_fd = memfd_create("helper", MFD_CLOEXEC);
	if (argv == NULL || envp == NULL)
		err_nomem(e);
	else if (h->out_fd < 0)
		err_sys(e, ERR_IO, errno, "cannot make a file in memory");
	else
		rc = start(h, &given, argv, envp, e);
	free(argv);
	free(envp);
	if (rc == 0)
		rc = poller_watch(&w->loop, &h->source, h->pidfd, POLLIN, helper_ready, h, e);
	if (rc == 0)
		rc = timer_arm(&w->loop.timers, &h->limit,
		    clock_monotonic_ns() + HELPER_S * NS_PER_S, limit_due, h, e);
	if (rc != 0)
		helper_clear(h);
	return rc;
}

void
helper_clear(struct helper *h)
{
	siginfo_t info;
	struct err e = {0};

	if (h->w == NULL)
		return;
	poller_unwatch(&h->w->loop, &h->source);
	timer_disarm(&h->w->loop.timers, &h->limit);
	/* While it is our child its number is the group's, also when it is a zombie. */
	if (h->pid > 0 && waitid(P_PIDFD, (id_t)h->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		proc_signal_group(h->pid, SIGKILL, &e);
	fd_close(&h->pidfd);
	fd_close(&h->out_fd);
	h->w = NULL;
}
