/* Waiting for what was started, and what is known of programs. The program is also the child: it
 * executes itself with a word that says what to do (main, at the end). */
#include "test.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "flowsup/fs.h"
#include "flowsup/proc.h"

#define SELF "/proc/self/exe"

static int fds_before;
static char *no_environment[] = {NULL};

static int
set_up(void **state)
{
	(void)state;
	fds_before = test_count_fds();
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	assert_int_equal(test_count_fds(), fds_before);
	children_none();
	return 0;
}

/* ---- Ends ---- */

static void
test_proc_wait__ends_are_told_apart(void **state)
{
	static const struct {
		const char *command;
		bool signaled;
		int code;
	} cases[] = {{"exit 0", false, 0}, {"exit 7", false, 7}, {"exit 255", false, 255},
	    {"kill -TERM $$", true, SIGTERM}, {"kill -KILL $$", true, SIGKILL}};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	struct proc_child child;
	struct proc_end end;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = {(char[]){"sh"}, (char[]){"-c"},
		    (char *)(uintptr_t)cases[i].command, NULL};

		spawn.path = "sh";
		spawn.argv = argv;
		spawn.envp = no_environment;
		child = child_start(&spawn);
		end = child_finish(&child);
		assert_true(end.known);
		assert_int_equal(end.signaled, cases[i].signaled);
		assert_int_equal(end.code, cases[i].code);
		assert_true(end.usage.ru_maxrss > 0);
	}
}

static void
test_proc_wait__looking_does_not_reap(void **state)
{
	char *argv[] = {(char[]){"self"}, (char[]){"pause"}, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	struct proc_end end = {0};
	struct proc_child child;
	struct proc_id again;
	struct pollfd ready;
	struct err e = {0};

	(void)state;
	spawn.path = SELF;
	spawn.argv = argv;
	spawn.envp = no_environment;
	child = child_start(&spawn);
	assert_int_equal(proc_wait(child.pidfd, true, &end, &e), 0);
	assert_int_equal(proc_wait(child.pidfd, false, &end, &e), 0);
	assert_false(end.known);
	assert_true(proc_is_alive(child.id));
	assert_works(proc_signal(child.pidfd, SIGTERM, &e), e);
	ready = (struct pollfd){.fd = child.pidfd, .events = POLLIN};
	assert_int_equal(poll(&ready, 1, 60000), 1);
	assert_int_equal(proc_wait(child.pidfd, true, &end, &e), 1);
	assert_int_equal(end.code, SIGTERM);
	/* A zombie: to be found, but not alive. */
	assert_works(proc_identify(child.id.pid, &again, &e), e);
	assert_true(again.start_ticks == child.id.start_ticks);
	assert_false(proc_is_alive(child.id));
	assert_int_equal(proc_wait(child.pidfd, false, &end, &e), 1);
	assert_fails(proc_wait(child.pidfd, false, &end, &e), ERR_NOTFOUND, e);
	assert_works(proc_signal(child.pidfd, SIGTERM, &e), e);
	assert_fails(proc_identify(child.id.pid, &again, &e), ERR_NOTFOUND, e);
	fd_close(&child.pidfd);
}

static bool
is_gone(void *arg)
{
	const struct proc_id *id = arg;

	return !proc_is_alive(*id);
}

static void
test_proc_wait__a_child_dies_with_its_parent(void **state)
{
	char *argv[] = {(char[]){"self"}, (char[]){"pause"}, NULL};
	struct proc_id id = {0};
	int pipes[2];
	pid_t middle;

	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	middle = fork();
	if (middle == 0) {
		struct proc_spawn spawn = PROC_SPAWN_INIT;
		struct proc_child child;

		spawn.path = SELF;
		spawn.argv = argv;
		spawn.envp = no_environment;
		spawn.die_with = getpid();
		if (proc_start(&spawn, &child, NULL, NULL) != 0 ||
		    write(pipes[1], &child.id, sizeof(child.id)) != sizeof(child.id))
			_exit(1);
		pause();
	}
	assert_int_equal(read(pipes[0], &id, sizeof(id)), sizeof(id));
	assert_true(proc_is_alive(id));
	kill(middle, SIGKILL);
	assert_int_equal(waitpid(middle, NULL, 0), middle);
	assert_true(test_wait_for(is_gone, &id));
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- Many ---- */

enum { STARTS = 2000, STARTERS = 4, STARTS_EACH = 50 };

static void
run_true(unsigned times)
{
	char *argv[] = {(char[]){"true"}, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	struct proc_child child;
	unsigned i;

	spawn.path = "/bin/true";
	spawn.argv = argv;
	spawn.envp = no_environment;
	for (i = 0; i < times; i++) {
		child = child_start(&spawn);
		assert_int_equal(child_finish(&child).code, 0);
	}
}

static void
test_proc_wait__thousands_leave_nothing(void **state)
{
	int before = test_count_fds();

	(void)state;
	run_true(STARTS);
	assert_int_equal(test_count_fds(), before);
}

static void *
starter(void *arg)
{
	run_true(STARTS_EACH);
	return arg;
}

static void
test_proc_wait__threads_start_at_the_same_time(void **state)
{
	pthread_t threads[STARTERS];
	int i;

	(void)state;
	for (i = 0; i < STARTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, starter, NULL), 0);
	for (i = 0; i < STARTERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* ---- This program, and names ---- */

static void
test_proc_wait__programs_are_found(void **state)
{
	struct buf found = {0};
	struct err e = {0};

	(void)state;
	assert_works(proc_find_program("sh", NULL, &found, &e), e);
	assert_true(buf_text(&found)[0] == '/');
	buf_reset(&found);
	assert_works(proc_find_program("/bin/sh", "/nowhere", &found, &e), e);
	assert_string_equal(buf_text(&found), "/bin/sh");
	buf_reset(&found);
	assert_works(proc_find_program("sh", "::/nowhere:/bin:", &found, &e), e);
	assert_string_equal(buf_text(&found), "/bin/sh");
	buf_reset(&found);
	assert_fails(proc_find_program("sh", "", &found, &e), ERR_ENVIRONMENT, e);
	assert_int_equal(found.len, 0);
	buf_clear(&found);
}

static void
test_proc_wait__paths_relative_to_this_program(void **state)
{
	struct buf path = {0}, up = {0};
	char self[PATH_MAX];
	struct err e = {0};
	ssize_t n = readlink(SELF, self, sizeof(self) - 1);

	(void)state;
	assert_true(n > 0);
	self[n] = '\0';
	assert_works(proc_relative_to_self(strrchr(self, '/') + 1, &path, &e), e);
	assert_string_equal(buf_text(&path), self);
	*strrchr(self, '/') = '\0';
	*strrchr(self, '/') = '\0';
	strcat(self, "/x/y");
	assert_works(proc_relative_to_self("../x/y", &up, &e), e);
	assert_string_equal(buf_text(&up), self);
	buf_clear(&path);
	buf_clear(&up);
}

static void
test_proc_wait__signal_names(void **state)
{
	(void)state;
	assert_string_equal(proc_signal_name(SIGTERM), "SIGTERM");
	assert_string_equal(proc_signal_name(SIGSYS), "SIGSYS");
	assert_string_equal(proc_signal_name(42), "signal 42");
	assert_string_equal(proc_signal_name(0), "signal 0");
	assert_string_equal(proc_signal_name(64), "signal 64");
	assert_string_equal(proc_signal_name(-1), "unknown signal");
	assert_string_equal(proc_signal_name(65), "unknown signal");
}
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    TEST(test_proc_wait__ends_are_told_apart),
    TEST(test_proc_wait__looking_does_not_reap),
    TEST(test_proc_wait__a_child_dies_with_its_parent),
    TEST(test_proc_wait__thousands_leave_nothing),
    TEST(test_proc_wait__threads_start_at_the_same_time),
    TEST(test_proc_wait__programs_are_found),
    TEST(test_proc_wait__paths_relative_to_this_program),
    TEST(test_proc_wait__signal_names),
};

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "pause") == 0)
		child_pause();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("proc_wait", tests, NULL, NULL);
}
