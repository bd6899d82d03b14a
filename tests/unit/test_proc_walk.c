/* Knowing processes again, and finding those that belong together. The program is also the child. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_alloc.h"
#include "flowsup/fs.h"
#include "flowsup/proc.h"
#include "shared/sys/proc_private.h"

#define SELF "/proc/self/exe"
#define MARK "FLOWSUP_SESSION_ID=walk-test"

/* A text of this process alone: the same test may run beside it, and must find and end none of its own. */
struct own {
	char text[64];
};

static struct own
own(const char *head, const char *tail)
{
	struct own o;

	snprintf(o.text, sizeof(o.text), "%s%d%s", head, (int)getpid(), tail);
	return o;
}

#define HOME "FLOWSUP_HOME=/walk test"

enum { FAMILY = 3 };

/* ---- The child's side ---- */

static _Noreturn int
child_pause(void)
{
	/* Ends by itself should the test be ended before it. */
	alarm(600);
	for (;;)
		pause();
}

/* FAMILY children, each in a session of its own when asked. */
static int
child_family(bool sessions)
{
	int i;

	for (i = 0; i < FAMILY; i++) {
		if (fork() == 0) {
			if (sessions)
				setsid();
			return child_pause();
		}
	}
	return child_pause();
}

static void *
pausing_thread(void *arg)
{
	(void)arg;
	child_pause();
}

/* Its first thread leaves, another stays. */
static int
child_headless(void)
{
	pthread_t other;

	if (pthread_create(&other, NULL, pausing_thread, NULL) != 0)
		return 3;
	pthread_exit(NULL);
}

static int
child_named(const char *name)
{
	prctl(PR_SET_NAME, name, 0, 0, 0);
	return child_pause();
}

/* ---- Helpers ---- */

static struct proc_child
start(const char *word, const char *argument, char *const *envp)
{
	char *argv[] = {(char[]){"self"}, (char *)(uintptr_t)word, (char *)(uintptr_t)argument, NULL};
	char *no_environment[] = {NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	struct proc_child child = {.pidfd = -1};
	struct err e = {0};

	spawn.path = SELF;
	spawn.argv = argv;
	spawn.envp = envp != NULL ? envp : no_environment;
	spawn.new_session = true;
	assert_works(proc_start(&spawn, &child, NULL, &e), e);
	return child;
}

static int
count_one(void *arg, const struct proc_stat *st, int pidfd)
{
	(void)arg;
	assert_true(st->pid > 1);
	assert_true((fcntl(pidfd, F_GETFD) & FD_CLOEXEC) != 0);
	return 0;
}

static int
kill_one(void *arg, const struct proc_stat *st, int pidfd)
{
	struct err e = {0};

	(void)arg;
	(void)st;
	assert_works(proc_signal(pidfd, SIGKILL, &e), e);
	return 0;
}

static int
stop_at_once(void *arg, const struct proc_stat *st, int pidfd)
{
	int *calls = arg;

	(void)st;
	(void)pidfd;
	++*calls;
	return 1;
}

static void
end_child(struct proc_child *child)
{
	struct err e = {0};

	assert_works(proc_signal(child->pidfd, SIGKILL, &e), e);
	assert_int_equal(waitpid(child->id.pid, NULL, 0), child->id.pid);
	fd_close(&child->pidfd);
}

/* Descendants that we got as a subreaper. */
static int
reap_all(void **state)
{
	(void)state;
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		continue;
	assert_int_equal(errno, ECHILD);
	return 0;
}

struct expected {
	int (*count)(const struct proc_child *child);
	const struct proc_child *child;
	int wanted;
};

static bool
is_count(void *arg)
{
	const struct expected *x = arg;

	return x->count(x->child) == x->wanted;
}

static void
wait_for_count(int (*count)(const struct proc_child *), const struct proc_child *child, int wanted)
{
	struct expected x = {count, child, wanted};

	assert_true(test_wait_for(is_count, &x));
}

static int
count_group(const struct proc_child *child)
{
	struct err e = {0};
	int n = proc_each_in_group(child->id.pid, count_one, NULL, &e);

	assert_works(n, e);
	return n;
}

static int
count_descendants(const struct proc_child *child)
{
	struct err e = {0};
	int n = proc_each_descendant(child->id.pid, NULL, count_one, NULL, &e);

	assert_works(n, e);
	return n;
}

static int
count_marked(const struct proc_child *child)
{
	const struct own home = own(HOME, "x");
	const char *marks[] = {MARK, home.text};
	struct err e = {0};
	int n = proc_each_marked(marks, 2, count_one, NULL, &e);

	(void)child;
	assert_works(n, e);
	return n;
}

/* ---- Tests ---- */

static void
test_walk__lines_with_any_name(void **state)
{
#define REST " 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 4 0 987654321 22 23"
	static const char *const good[] = {"10 (a) S" REST, "10 () S" REST, "10 (a) R 1 (b) S" REST,
	    "10 (\n) Z 9 9\n) S" REST, "10 ((((()) S" REST, "10 (\xff\xfe) S" REST, "10 ( ) ) S" REST};
	static const char *const bad[] = {"", "10", "10 (a", "10 (a)", "10 (a) ", ("x (a) S" REST),
	    "10 (a) S 2 3 4", "10 (a) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 x"};
	struct proc_stat st;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(proc_stat_parse(good[i], &st));
		assert_int_equal(st.pid, 10);
		assert_int_equal(st.state, 'S');
		assert_int_equal(st.ppid, 2);
		assert_int_equal(st.pgrp, 3);
		assert_int_equal(st.session, 4);
		assert_int_equal(st.cpu_ticks, 12 + 13);
		assert_int_equal(st.threads, 18);
		assert_int_equal(st.start_ticks, 4);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(proc_stat_parse(bad[i], &st));
}

static bool
has_taken_name(void *arg)
{
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/comm", *(pid_t *)arg);
	return proc_read_small(path, line, sizeof(line)) > 0 && line[0] == ')';
}

static void
test_walk__a_process_with_a_hostile_name(void **state)
{
	struct proc_child child = start("named", ") R 1 (\n(", NULL);
	struct proc_stat st;
	struct err e = {0};

	(void)state;
	assert_true(test_wait_for(has_taken_name, &child.id.pid));
	assert_works(proc_stat_read(child.id.pid, &st, &e), e);
	assert_int_equal(st.ppid, getpid());
	assert_int_equal(st.session, child.id.pid);
	assert_true(st.start_ticks == child.id.start_ticks);
	assert_true(proc_is_alive(child.id));
	end_child(&child);
}

static void
test_walk__a_number_given_anew_is_another_process(void **state)
{
	struct proc_child child = start("pause", NULL, NULL);
	struct proc_id other = {child.id.pid, child.id.start_ticks + 1};
	struct err e = {0};
	int fd;

	(void)state;
	assert_false(proc_is_alive(other));
	assert_fails(proc_open(other, &e), ERR_NOTFOUND, e);
	fd = proc_open(child.id, &e);
	assert_works(fd, e);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	fd_close(&fd);
	end_child(&child);
	assert_false(proc_is_alive(child.id));
	assert_fails(proc_open(child.id, &e), ERR_NOTFOUND, e);
	assert_fails(proc_open((struct proc_id){0, 0}, &e), ERR_NOTFOUND, e);
	assert_fails(proc_open((struct proc_id){-1, 0}, &e), ERR_NOTFOUND, e);
	assert_fails(proc_identify(-5, &other, &e), ERR_NOTFOUND, e);
}

static void
test_walk__ourselves(void **state)
{
	struct proc_place here, again;
	struct proc_id self;
	struct err e = {0};

	(void)state;
	assert_works(proc_identify(getpid(), &self, &e), e);
	assert_int_equal(self.pid, getpid());
	assert_true(self.start_ticks > 0);
	assert_true(proc_is_alive(self));
	assert_works(proc_place_here(&here, &e), e);
	assert_works(proc_place_here(&again, &e), e);
	assert_memory_equal(&here, &again, sizeof(here));
	assert_int_equal(strlen(here.boot_id), BOOT_ID_TEXT - 1);
	assert_true(here.pid_namespace != 0);
	assert_true(here.host[0] != '\0');
}

static bool
shows_zombie(void *arg)
{
	struct proc_stat st;

	return proc_stat_read(*(pid_t *)arg, &st, NULL) == 0 && st.state == 'Z';
}

static void
test_walk__a_process_whose_first_thread_left_is_alive(void **state)
{
	struct proc_child child = start("headless", NULL, NULL);

	(void)state;
	assert_true(test_wait_for(shows_zombie, &child.id.pid));
	assert_true(proc_is_alive(child.id));
	assert_int_equal(count_group(&child), 1);
	end_child(&child);
}

static void
test_walk__a_group(void **state)
{
	struct proc_child child = start("family", NULL, NULL), other = start("pause", NULL, NULL);
	struct err e = {0};
	int calls = 0;

	(void)state;
	wait_for_count(count_group, &child, FAMILY + 1);
	assert_int_equal(count_group(&other), 1);
	assert_int_equal(proc_each_in_group(child.id.pid, stop_at_once, &calls, &e), 1);
	assert_int_equal(calls, 1);
	assert_int_equal(proc_each_in_group(child.id.pid, kill_one, NULL, &e), FAMILY + 1);
	/* The first is a zombie now, which is not counted, and still holds the number. */
	wait_for_count(count_group, &child, 0);
	assert_works(proc_signal_group(child.id.pid, SIGTERM, &e), e);
	assert_int_equal(waitpid(child.id.pid, NULL, 0), child.id.pid);
	fd_close(&child.pidfd);
	end_child(&other);
}

static void
test_walk__groups_that_are_never_signalled(void **state)
{
	const pid_t refused[] = {0, 1, -1, getpgrp()};
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_fails(proc_signal_group(refused[i], 0, &e), ERR_INTERNAL, e);
}

static void
test_walk__descendants_in_other_sessions(void **state)
{
	struct proc_child child = start("sessions", NULL, NULL);
	struct err e = {0};

	(void)state;
	wait_for_count(count_descendants, &child, FAMILY);
	wait_for_count(count_group, &child, 1);
	/* We are above both. */
	assert_true(proc_each_descendant(getpid(), NULL, count_one, NULL, &e) >= FAMILY + 1);
	assert_int_equal(proc_each_descendant(child.id.pid, NULL, kill_one, NULL, &e), FAMILY);
	wait_for_count(count_descendants, &child, 0);
	end_child(&child);
}

struct counted {
	int of[3];
};

static int
count_of_leader(void *arg, size_t leader, const struct proc_stat *st, int pidfd)
{
	struct counted *c = arg;

	(void)st;
	assert_true(pidfd >= 0);
	assert_true(leader < 3);
	c->of[leader]++;
	return 0;
}

static void
test_walk__of_many_leaders(void **state)
{
	struct proc_child group = start("family", NULL, NULL), apart = start("sessions", NULL, NULL);
	const struct proc_id leaders[] = {apart.id, group.id, {group.id.pid, group.id.start_ticks + 1}};
	struct counted c = {0}, other = {0};
	struct err e = {0};

	(void)state;
	wait_for_count(count_group, &group, FAMILY + 1);
	wait_for_count(count_descendants, &apart, FAMILY);
	assert_int_equal(proc_each_of_leaders(leaders, 3, NULL, count_of_leader, &c, &e), 2 * (FAMILY + 1));
	assert_int_equal(c.of[0], FAMILY + 1);
	assert_int_equal(c.of[1], FAMILY + 1);
	assert_int_equal(c.of[2], 0);
	/* Another process with that number is none. */
	assert_int_equal(proc_each_of_leaders(leaders + 2, 1, NULL, count_of_leader, &other, &e), 0);
	assert_int_equal(proc_each_of_leaders(leaders, 0, NULL, count_of_leader, &other, &e), 0);
	assert_int_equal(proc_each_descendant(apart.id.pid, NULL, kill_one, NULL, &e), FAMILY);
	assert_int_equal(proc_each_in_group(group.id.pid, kill_one, NULL, &e), FAMILY + 1);
	wait_for_count(count_group, &group, 0);
	assert_int_equal(waitpid(group.id.pid, NULL, 0), group.id.pid);
	fd_close(&group.pidfd);
	end_child(&apart);
}

/* By its session, its group, its descendants and its marks. */
static void
test_walk__of_an_operation(void **state)
{
	struct own run = own("FLOWSUP_RUN_ID=run", "");
	char *marked[] = {run.text, (char[]){"FLOWSUP_OP_ID=op"},
	    (char[]){"FLOWSUP_ATTEMPT=2"}, NULL};
	char *other[] = {run.text, (char[]){"FLOWSUP_OP_ID=op"},
	    (char[]){"FLOWSUP_ATTEMPT=1"}, NULL};
	struct proc_child leader = start("sessions", NULL, NULL), away = start("sessions", NULL, marked),
			  before = start("pause", NULL, other);
	struct proc_operation of;
	struct err e = {0};

	(void)state;
	wait_for_count(count_descendants, &leader, FAMILY);
	wait_for_count(count_descendants, &away, FAMILY);
	proc_operation_init(&of, leader.id, strchr(run.text, '=') + 1, "op", 2);
	assert_int_equal(proc_each_of_operation(&of, count_one, NULL, &e), 2 * (FAMILY + 1));
	/* Another process has its number: what was there before it bears its marks by chance. */
	of.leader.start_ticks = UINT64_MAX;
	assert_int_equal(proc_each_of_operation(&of, count_one, NULL, &e), 0);
	/* It has gone: only what bears the marks is left. */
	of.leader = (struct proc_id){.pid = 1, .start_ticks = leader.id.start_ticks};
	assert_int_equal(proc_each_of_operation(&of, kill_one, NULL, &e), FAMILY + 1);
	assert_int_equal(waitpid(away.id.pid, NULL, 0), away.id.pid);
	fd_close(&away.pidfd);
	assert_int_equal(proc_each_descendant(leader.id.pid, NULL, kill_one, NULL, &e), FAMILY);
	end_child(&leader);
	end_child(&before);
}

static void
test_walk__descendants_without_memory(void **state)
{
	struct err e = {0};
	unsigned long n;

	(void)state;
	for (n = 1;; n++) {
		fault_alloc_arm(n, false);
		if (proc_each_descendant(getpid(), NULL, count_one, NULL, &e) >= 0)
			break;
		assert_true(fault_alloc_disarm());
		assert_int_equal(e.code, ERR_NOMEM);
	}
	assert_false(fault_alloc_disarm());
	assert_true(n > 1);
}

/* 1 MiB of environment with the marks at its end, as a submitter's large one would make. */
static char **
large_environment(const char *first, const char *second)
{
	enum { ENTRIES = 16, EACH = 64 * 1024 };
	char **env = calloc(ENTRIES + 3, sizeof(*env));
	int i;

	assert_non_null(env);
	for (i = 0; i < ENTRIES; i++) {
		env[i] = malloc(EACH);
		assert_non_null(env[i]);
		memset(env[i], 'x', EACH - 1);
		env[i][EACH - 1] = '\0';
		/* What looks like a mark inside a value is none. */
		memcpy(env[i], "A=" MARK " ", sizeof("A=" MARK));
	}
	env[ENTRIES] = strdup(first);
	env[ENTRIES + 1] = strdup(second);
	return env;
}

static void
free_environment(char **env)
{
	size_t i;

	for (i = 0; env[i] != NULL; i++)
		free(env[i]);
	free(env);
}

static void
test_walk__marks_in_the_environment(void **state)
{
	const struct own home = own(HOME, "x"), longer = own(HOME, "x2"), shorter = own(HOME, "");
	const char *const others[][2] = {{MARK, longer.text}, {MARK "2", home.text}, {"X" MARK, home.text},
	    {MARK, shorter.text}};
	char **env = large_environment(MARK, home.text);
	struct proc_child child = start("sessions", NULL, env), strangers[4];
	const char *marks[] = {MARK, home.text};
	struct err e = {0};
	size_t i;

	(void)state;
	free_environment(env);
	for (i = 0; i < 4; i++) {
		env = large_environment(others[i][0], others[i][1]);
		strangers[i] = start("pause", NULL, env);
		free_environment(env);
	}
	wait_for_count(count_marked, NULL, FAMILY + 1);
	assert_true(proc_descends_from_marked(child.id.pid, MARK));
	assert_false(proc_descends_from_marked(child.id.pid, MARK "3"));
	assert_true(proc_descends_from_marked(child.id.pid, "FLOWSUP_SESSION_ID="));
	assert_false(proc_descends_from_marked(child.id.pid, "FLOWSUP_SESSION="));
	assert_true(proc_descends_from_called(child.id.pid, "self"));
	assert_false(proc_descends_from_called(child.id.pid, "sel"));
	assert_false(proc_descends_from_called(getpid(), "self"));
	assert_int_equal(proc_each_marked(marks, 2, kill_one, NULL, &e), FAMILY + 1);
	wait_for_count(count_marked, NULL, 0);
	for (i = 0; i < 4; i++) {
		assert_true(proc_is_alive(strangers[i].id));
		end_child(&strangers[i]);
	}
	end_child(&child);
}

/* Executes itself, and so on, and is without an environment for a moment each time. */
static int
child_restless(char **argv)
{
	alarm(600); /* outlives exec */
	execv(SELF, argv);
	return 3;
}

static void
test_walk__marks_of_one_that_executes_a_program(void **state)
{
	struct own home = own(HOME, "x");
	char *env[] = {(char[]){MARK}, home.text, NULL};
	struct proc_child child = start("restless", NULL, env);
	int i, found = 0;

	(void)state;
	for (i = 0; i < 200; i++)
		found += count_marked(NULL);
	end_child(&child);
	assert_int_equal(found, 200);
}

/* Clears its environment, so that only its parent tells. */
static int
child_forgetful(void)
{
	pid_t child = fork();

	if (child == 0) {
		execle(SELF, "self", "pause", (char *)NULL, (char *[]){NULL});
		_exit(3);
	}
	return child_pause();
}

static int
remember(void *arg, const struct proc_stat *st, int pidfd)
{
	pid_t *pid = arg;

	(void)pidfd;
	*pid = st->pid;
	return 0;
}

static bool
has_no_environment(void *arg)
{
	char path[64], text[8];

	snprintf(path, sizeof(path), "/proc/%d/environ", *(pid_t *)arg);
	return proc_read_small(path, text, sizeof(text)) == 0;
}

static void
test_walk__descent_from_a_marked_one(void **state)
{
	char *env[] = {(char[]){MARK}, NULL};
	struct proc_child child = start("forgetful", NULL, env);
	struct err e = {0};
	pid_t inner = 0;

	(void)state;
	wait_for_count(count_descendants, &child, 1);
	assert_int_equal(proc_each_descendant(child.id.pid, NULL, remember, &inner, &e), 1);
	assert_true(test_wait_for(has_no_environment, &inner));
	assert_true(proc_descends_from_marked(inner, MARK));
	assert_false(proc_descends_from_marked(getpid(), MARK));
	assert_false(proc_descends_from_marked(0, MARK));
	assert_int_equal(proc_each_descendant(child.id.pid, NULL, kill_one, NULL, &e), 1);
	end_child(&child);
}

static void
test_walk__marks_that_would_fit_everybody_are_refused(void **state)
{
	static const char *const none[] = {"X"};
	struct err e = {0};

	(void)state;
	assert_fails(proc_each_marked(none, 0, kill_one, NULL, &e), ERR_INTERNAL, e);
	assert_fails(proc_each_marked(none, 1, kill_one, NULL, &e), ERR_INTERNAL, e);
	assert_false(proc_descends_from_marked(getpid(), ""));
}

static int
count_called(const struct proc_child *child)
{
	const struct own this = own("exactly", " this");
	const char *const words[] = {"self", "pause", this.text, NULL};
	struct err e = {0};
	int n = proc_each_command(words, count_one, NULL, &e);

	(void)child;
	assert_works(n, e);
	return n;
}

static void
test_walk__a_command_line_word_by_word(void **state)
{
	const struct own this = own("exactly", " this"), few = own("exactly", ""), less = own("exactly", " thi"),
		more = own("exactly", " this ");
	const char *const words[] = {"self", "pause", this.text, NULL}, *const none[] = {NULL};
	struct proc_child one = start("pause", this.text, NULL);
	struct proc_child others[] = {start("pause", few.text, NULL), start("pause", less.text, NULL),
	    start("pause", more.text, NULL), start("pause", NULL, NULL)};
	struct err e = {0};
	size_t i;

	(void)state;
	wait_for_count(count_called, NULL, 1);
	assert_int_equal(proc_each_command(words, kill_one, NULL, &e), 1);
	wait_for_count(count_called, NULL, 0);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_true(proc_is_alive(others[i].id));
		end_child(&others[i]);
	}
	end_child(&one);
	assert_fails(proc_each_command(none, kill_one, NULL, &e), ERR_INTERNAL, e);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, reap_all)
static const struct CMUnitTest tests[] = {
    TEST(test_walk__lines_with_any_name),
    TEST(test_walk__a_process_with_a_hostile_name),
    TEST(test_walk__a_number_given_anew_is_another_process),
    TEST(test_walk__ourselves),
    TEST(test_walk__a_process_whose_first_thread_left_is_alive),
    TEST(test_walk__a_group),
    TEST(test_walk__groups_that_are_never_signalled),
    TEST(test_walk__descendants_in_other_sessions),
    TEST(test_walk__of_many_leaders),
    TEST(test_walk__of_an_operation),
    TEST(test_walk__descendants_without_memory),
    TEST(test_walk__marks_in_the_environment),
    TEST(test_walk__marks_of_one_that_executes_a_program),
    TEST(test_walk__descent_from_a_marked_one),
    TEST(test_walk__marks_that_would_fit_everybody_are_refused),
    TEST(test_walk__a_command_line_word_by_word),
};

int
main(int argc, char **argv)
{
	struct err e = {0};

	if (argc > 2 && strcmp(argv[1], "named") == 0)
		return child_named(argv[2]);
	if (argc > 1 && strcmp(argv[1], "pause") == 0)
		return child_pause();
	if (argc > 1 && strcmp(argv[1], "family") == 0)
		return child_family(false);
	if (argc > 1 && strcmp(argv[1], "sessions") == 0)
		return child_family(true);
	if (argc > 1 && strcmp(argv[1], "headless") == 0)
		return child_headless();
	if (argc > 1 && strcmp(argv[1], "forgetful") == 0)
		return child_forgetful();
	if (argc > 1 && strcmp(argv[1], "restless") == 0)
		return child_restless(argv);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	if (proc_set_subreaper(&e) != 0) {
		print_error("%s\n", e.msg);
		return 1;
	}
	return cmocka_run_group_tests_name("proc_walk", tests, NULL, NULL);
}
