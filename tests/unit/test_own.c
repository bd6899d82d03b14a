/* Supervisors and workers among other processes. The program is also the process that is looked at. */
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "flowsup/proc.h"

#define SELF "/proc/self/exe"
#define HOME_OF_CHILD "OWN_HOME"
#define STAMPED "OWN_STAMP" /* in place of its own number */
#define RUN "20261129T101500-ab12cd"

static struct test_dir dir;
static struct home home;

/* ---- The child's side ---- */

static _Noreturn void
child_wait(void)
{
	/* Ends by itself should the test be ended before it. */
	alarm(600);
	(void)!write(STDOUT_FILENO, "", 1);
	for (;;)
		pause();
}

/* Like a supervisor: it has the lock, and its number stands there. */
static int
child_lock(const char *path)
{
	const char *stamped = getenv(STAMPED);
	struct err e = {0};
	struct home h;
	int fd;

	if (home_open(path, false, &h, &e) != 0 || (fd = home_lock_take(&h, &e)) < 0)
		return 3;
	if (dprintf(fd, "{\"pid\":%ld}\n", stamped != NULL ? atol(stamped) : (long)getpid()) < 0)
		return 4;
	child_wait();
}

/* ---- Helpers ---- */

/* words: NULL-terminated. path: of the home whose lock it is to have, or NULL. Returns when it has it. */
static struct proc_child
start(const char *const *words, const char *path, const char *stamped)
{
	char home_entry[600], stamp_entry[64], *envp[3] = {NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	struct proc_child child = {.pidfd = -1};
	struct err e = {0};
	int ready[2];
	char byte;

	snprintf(home_entry, sizeof(home_entry), HOME_OF_CHILD "=%s", path != NULL ? path : "");
	snprintf(stamp_entry, sizeof(stamp_entry), STAMPED "=%s", stamped != NULL ? stamped : "");
	envp[0] = home_entry;
	envp[1] = stamped != NULL ? stamp_entry : NULL;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	spawn.path = SELF;
	memcpy(&spawn.argv, &words, sizeof(spawn.argv));
	spawn.envp = envp;
	spawn.new_session = true;
	spawn.fds[spawn.nfds++] = (struct proc_fd){ready[1], STDOUT_FILENO};
	assert_works(proc_start(&spawn, &child, NULL, &e), e);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

static void
end(struct proc_child *child)
{
	struct err e = {0};

	assert_works(proc_signal(child->pidfd, SIGKILL, &e), e);
	assert_int_equal(waitpid(child->id.pid, NULL, 0), child->id.pid);
	fd_close(&child->pidfd);
}

static bool
is_apart(const char *const *words, const char *path, const char *stamped)
{
	struct proc_child child = start(words, path, stamped);
	bool is = own_is_apart(child.id.pid);

	end(&child);
	return is;
}

static int
setup(void **state)
{
	struct err e = {0};

	(void)state;
	test_dir_make(&dir);
	assert_works(home_open(dir.path, true, &home, &e), e);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	home_close(&home);
	test_dir_remove(&dir);
	return 0;
}

/* ---- Supervisors ---- */

static void
test_own__a_supervisor_however_its_home_was_named(void **state)
{
	const char *const full[] = {"flowsup", "supervisor", "--home", dir.path, "--idle-exit=0ms", NULL};
	const char *const bare[] = {"flowsup", "supervisor", "--foreground", NULL};
	const char *const before[] = {"/usr/bin/flowsup", "--home", "somewhere/relative", "supervisor", NULL};
	int fds = test_count_fds();

	(void)state;
	assert_true(is_apart(full, dir.path, NULL));
	assert_true(is_apart(bare, dir.path, NULL));
	assert_true(is_apart(before, dir.path, NULL));
	assert_int_equal(test_count_fds(), fds);
}

/* A word is soon said: the lock has to fit. */
static void
test_own__a_word_alone_makes_no_supervisor(void **state)
{
	const char *const words[] = {"flowsup", "supervisor", "--home", dir.path, NULL};
	const char *const others[] = {"flowsup", "list", "--home", dir.path, NULL};

	(void)state;
	assert_false(is_apart(words, NULL, NULL));
	assert_false(is_apart(words, dir.path, "1"));
	assert_false(is_apart(others, dir.path, NULL));
	assert_false(own_is_apart(getpid()));
	assert_false(own_is_apart(INT_MAX));
}

static void
test_own__one_without_the_lock_beside_one_that_has_it(void **state)
{
	const char *const words[] = {"flowsup", "supervisor", "--home", dir.path, NULL};
	struct proc_child real = start(words, dir.path, NULL), other = start(words, NULL, NULL);

	(void)state;
	assert_true(own_is_apart(real.id.pid));
	assert_false(own_is_apart(other.id.pid));
	end(&other);
	end(&real);
}

/* ---- Workers ---- */

static void
test_own__a_worker_while_somebody_has_the_lock_of_its_run(void **state)
{
	const char *const words[] = {"/libexec/flowsup-worker", "--home", dir.path, "--run", RUN, NULL};
	const char *const unnamed[] = {"other", "--home", dir.path, "--run", RUN, NULL};
	const char *const homeless[] = {"flowsup-worker", "--run", RUN, NULL};
	struct err e = {0};
	int run_fd, lock;

	(void)state;
	assert_false(is_apart(words, NULL, NULL));
	assert_int_equal(mkdirat(home.runs_fd, RUN, 0700), 0);
	run_fd = rundir_open(&home, RUN, &e);
	assert_true(run_fd >= 0);
	test_file_write(run_fd, RUN_LOCK, "");
	assert_int_equal(fchmodat(run_fd, RUN_LOCK, 0600, 0), 0);
	assert_false(is_apart(words, NULL, NULL));
	lock = run_lock_take(run_fd, 0, &e);
	assert_works(lock, e);
	assert_true(is_apart(words, NULL, NULL));
	assert_false(is_apart(unnamed, NULL, NULL));
	assert_false(is_apart(homeless, NULL, NULL));
	fd_close(&lock);
	assert_false(is_apart(words, NULL, NULL));
	fd_close(&run_fd);
}

static const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    CASE(test_own__a_supervisor_however_its_home_was_named),
    CASE(test_own__a_word_alone_makes_no_supervisor),
    CASE(test_own__one_without_the_lock_beside_one_that_has_it),
    CASE(test_own__a_worker_while_somebody_has_the_lock_of_its_run),
};

int
main(void)
{
	const char *path = getenv(HOME_OF_CHILD);

	if (path != NULL && path[0] != '\0')
		return child_lock(path);
	if (path != NULL)
		child_wait();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("own", tests, NULL, NULL);
}
