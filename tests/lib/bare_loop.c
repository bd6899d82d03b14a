/*
 * The floor: what a loop in C that does nothing but its work reaches. Layer after layer, as many at
 * once as the workload says.
 */
#include "workload.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/proc.h"

enum { LINE = 256 /* of the journal, an outcome */, LINES_MOST = 256 };

/* ---- The journal ---- */

struct journal {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int fd, told_fd;
	size_t waiting;
	unsigned saved; /* under the lock */
	bool leaving;
};

static void
journal_write(int fd, size_t lines)
{
	static const char text[LINE * LINES_MOST] = "x";

	if (write(fd, text, lines * LINE) < 0 || fdatasync(fd) != 0)
		abort();
}

static void *
journal_main(void *arg)
{
	const uint64_t one = 1;
	struct journal *j = arg;
	size_t n;

	pthread_mutex_lock(&j->lock);
	while (j->waiting > 0 || !j->leaving) {
		if (j->waiting == 0) {
			pthread_cond_wait(&j->wake, &j->lock);
			continue;
		}
		n = j->waiting < LINES_MOST ? j->waiting : LINES_MOST;
		j->waiting -= n;
		pthread_mutex_unlock(&j->lock);
		journal_write(j->fd, n);
		pthread_mutex_lock(&j->lock);
		j->saved += (unsigned)n;
		if (write(j->told_fd, &one, sizeof(one)) < 0)
			abort();
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

static void
journal_begin(struct journal *j, int dir)
{
	*j = (struct journal){.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
	j->fd = openat(dir, "journal", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	j->told_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(j->fd >= 0 && j->told_fd >= 0);
	assert_int_equal(pthread_create(&j->thread, NULL, journal_main, j), 0);
}

static void
journal_add(struct journal *j)
{
	pthread_mutex_lock(&j->lock);
	j->waiting++;
	pthread_mutex_unlock(&j->lock);
	pthread_cond_signal(&j->wake);
}

static unsigned
journal_saved(struct journal *j)
{
	unsigned saved;
	uint64_t count;

	if (read(j->told_fd, &count, sizeof(count)) < 0)
		return 0;
	pthread_mutex_lock(&j->lock);
	saved = j->saved;
	pthread_mutex_unlock(&j->lock);
	return saved;
}

static void
journal_end(struct journal *j)
{
	pthread_mutex_lock(&j->lock);
	j->leaving = true;
	pthread_mutex_unlock(&j->lock);
	pthread_cond_signal(&j->wake);
	pthread_join(j->thread, NULL);
	close(j->fd);
	close(j->told_fd);
}

/* ---- The loop ---- */

struct loop {
	const struct workload *w;
	struct pollfd polled[WORKLOAD_MOST_AT_ONCE + 1];
	unsigned running, started, ended, saved;
	unsigned layer, layer_end; /* operations below layer_end may start */
	int dir, null;
	struct journal *journal; /* or NULL */
	int serial_fd;		 /* of a journal written in the loop, or -1 */
};

static int
start_one(const struct loop *l)
{
	char name[32], *argv[] = {(char[]){"/bin/true"}, NULL}, *envp[] = {NULL};
	struct proc_spawn s = PROC_SPAWN_INIT;
	struct proc_child child;
	struct err e = {0};
	int out, err;

	snprintf(name, sizeof(name), "o%u.out", l->started);
	out = openat(l->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	snprintf(name, sizeof(name), "o%u.err", l->started);
	err = openat(l->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(out >= 0 && err >= 0);
	s.path = argv[0];
	s.argv = argv;
	s.envp = envp;
	s.new_session = true;
	s.fds[0] = (struct proc_fd){l->null, 0};
	s.fds[1] = (struct proc_fd){out, 1};
	s.fds[2] = (struct proc_fd){err, 2};
	s.nfds = 3;
	assert_works(proc_start(&s, &child, NULL, &e), e);
	close(out);
	close(err);
	return child.pidfd;
}

static void
one_ended(struct loop *l, unsigned place)
{
	struct proc_end end;
	struct err e = {0};

	assert_int_equal(proc_wait(l->polled[place].fd, false, &end, &e), 1);
	close(l->polled[place].fd);
	l->polled[place] = l->polled[--l->running];
	l->ended++;
	if (l->journal != NULL)
		journal_add(l->journal);
	if (l->serial_fd >= 0)
		journal_write(l->serial_fd, 1);
}

/* What waits for it may start once an outcome counts: saved where there is a journal. */
static void
open_layers(struct loop *l)
{
	unsigned count = l->journal != NULL ? l->saved : l->ended;

	while (count >= l->layer_end && l->layer + 1 < l->w->nlayers)
		l->layer_end += l->w->layers[++l->layer];
}

static void
turn(struct loop *l)
{
	unsigned n = l->running, fds = n;

	if (l->journal != NULL && workload_has_edges(l->w))
		l->polled[fds++] = (struct pollfd){l->journal->told_fd, POLLIN, 0};
	assert_true(poll(l->polled, fds, -1) > 0);
	if (fds > n && l->polled[n].revents != 0)
		l->saved = journal_saved(l->journal);
	while (n-- > 0)
		if (l->polled[n].revents != 0)
			one_ended(l, n);
	open_layers(l);
}

static void
run_loop(struct loop *l)
{
	const unsigned all = workload_size(l->w);

	l->layer_end = l->w->layers[0];
	while (l->ended < all) {
		while (l->running < l->w->at_once && l->started < l->layer_end) {
			l->polled[l->running++] = (struct pollfd){start_one(l), POLLIN, 0};
			l->started++;
		}
		turn(l);
	}
}

static void
with_files(const struct workload *w, int dir, bool journal)
{
	const bool serial = journal && w->at_once == 1 && workload_has_edges(w);
	struct loop l = {.w = w, .dir = dir, .serial_fd = -1};
	struct journal j;

	l.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(l.null >= 0);
	if (serial) {
		l.serial_fd = openat(dir, "journal", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
		assert_true(l.serial_fd >= 0);
	} else if (journal) {
		journal_begin(&j, dir);
		l.journal = &j;
	}
	run_loop(&l);
	if (l.journal != NULL)
		journal_end(&j);
	if (serial)
		close(l.serial_fd);
	close(l.null);
}

/* ---- Without anything ---- */

static void
start_by_vfork(void)
{
	char *const argv[] = {(char[]){"/bin/true"}, NULL}, *const envp[] = {NULL};
	pid_t pid = vfork();

	if (pid == 0) {
		execve(argv[0], argv, envp);
		_exit(127);
	}
	assert_true(pid > 0);
}

static void
by_vfork(const struct workload *w)
{
	unsigned started = 0, ended = 0, all = workload_size(w);

	while (ended < all) {
		for (; started < all && started - ended < w->at_once; started++)
			start_by_vfork();
		assert_true(waitpid(-1, NULL, 0) > 0);
		ended++;
	}
}

struct measured
workload_by_bare_loop(const struct workload *w, enum bare kind)
{
	struct stopwatch watch;
	struct measured m;
	struct test_dir dir;

	assert_true(kind != BARE_VFORK || !workload_has_edges(w));
	test_dir_make(&dir);
	watch = stopwatch_start();
	if (kind == BARE_VFORK)
		by_vfork(w);
	else
		with_files(w, dir.fd, kind == BARE_JOURNAL);
	m = stopwatch_stop(watch, workload_size(w));
	test_dir_remove(&dir);
	return m;
}
