/* With real processes, started as operations are: own session, marks in their environment. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/endops.h"

static const char session[] = "e0d0e0d0e0d0e0d0e0d0e0d0e0d0e0d0";

struct fixture {
	struct test_dir dir;
	struct home home;
	int run_fd, log_fd;
	struct proc_child child;
	char home_mark[700];
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct proc_place here;
	struct buf line = {0};
	struct err e = {0};

	assert_non_null(f);
	/* What loses its parent comes to us, as it would come to a supervisor: so that it is reaped. */
	assert_works(proc_set_subreaper(&e), e);
	test_dir_make(&f->dir);
	assert_works(home_open(f->dir.path, true, &f->home, &e), e);
	snprintf(f->home_mark, sizeof(f->home_mark), "FLOWSUP_HOME=%s", f->home.path);
	f->run_fd = f->dir.fd;
	f->log_fd = openat(f->run_fd, RUN_ATTEMPTS, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	assert_true(f->log_fd >= 0);
	assert_works(proc_place_here(&here, &e), e);
	buf_printf(&line,
	    "{\"kind\":\"worker\",\"host\":\"%s\",\"boot_id\":\"%s\",\"pid_namespace\":%llu,\"pid\":1,"
	    "\"start\":1}\n",
	    here.host, here.boot_id, (unsigned long long)here.pid_namespace);
	assert_int_equal(write(f->log_fd, line.data, line.len), line.len);
	buf_clear(&line);
	f->child.pidfd = -1;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	/* Only what a failed test left: our own children. */
	if (f->child.pidfd >= 0) {
		kill(f->child.id.pid, SIGKILL);
		close(f->child.pidfd);
	}
	close(f->log_fd);
	home_close(&f->home);
	test_dir_remove(&f->dir);
	free(f);
	return 0;
}

/* Starts `sh -c text` with a start line; ready when the file "ready" is there. */
static void
start(struct fixture *f, const char *text, int grace_ms)
{
	char mark[64], path[800], after[64];
	char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)text, NULL};
	char *envp[] = {mark, f->home_mark, (char[]){"FLOWSUP_OP_ID=a"}, path,
	    (char[]){"PATH=/usr/bin:/bin"}, NULL};
	struct proc_spawn s = PROC_SPAWN_INIT;
	struct err e = {0};

	snprintf(mark, sizeof(mark), "FLOWSUP_SESSION_ID=%s", session);
	snprintf(path, sizeof(path), "D=%s", f->dir.path);
	snprintf(after, sizeof(after), ",\"grace_ms\":%d}\n", grace_ms);
	s.path = "/bin/sh";
	s.argv = argv;
	s.envp = envp;
	s.new_session = true;
	s.log_fd = f->log_fd;
	s.log_before = slice_of("{\"kind\":\"start\",\"op\":\"a\",\"attempt\":1,\"pid\":");
	s.log_between = slice_of(",\"start\":");
	s.log_after = slice_of(after);
	assert_works(proc_start(&s, &f->child, NULL, &e), e);
}

static bool
is_there(void *arg)
{
	struct fixture *f = arg;
	struct stat st;

	return fstatat(f->dir.fd, "ready", &st, 0) == 0 && st.st_size > 0;
}

static int
run_endops(struct fixture *f, const struct flow *flow, const struct attempts *a,
    struct endops_result *r, struct err *e)
{
	const struct endops_request q = {.home = &f->home,
	    .run_id = "20261129T000000-aaaaaa",
	    .session_id = session,
	    .attempts = a,
	    .flow = flow,
	    .grace_most_ns = -1};

	return endops_run(&q, r, e);
}

static void
end(struct fixture *f, struct endops_result *r)
{
	struct attempts a;
	struct err e = {0};

	assert_works(attempts_read(f->run_fd, &a, &e), e);
	assert_works(run_endops(f, NULL, &a, r, &e), e);
	attempts_clear(&a);
}

static void
reap(struct fixture *f)
{
	int status;

	assert_int_equal(waitpid(f->child.id.pid, &status, 0), f->child.id.pid);
	close(f->child.pidfd);
	f->child.pidfd = -1;
	/* Grandchildren that came to us. */
	while (waitpid(-1, &status, WNOHANG) > 0)
		;
}

static pid_t
read_pid(struct fixture *f, const char *name)
{
	char *text = test_file_read(f->dir.fd, name);
	pid_t pid = (pid_t)atoi(text);

	free(text);
	assert_true(pid > 0);
	return pid;
}

static bool
lives(pid_t pid)
{
	struct proc_stat st;

	return proc_stat_read(pid, &st, NULL) == 0 && !proc_stat_is_zombie(&st);
}

static void
test_endops__term_ends_a_group(void **state)
{
	struct fixture *f = *state;
	struct endops_result r;
	pid_t pid;

	start(f, "sleep 1000 & echo $! >$D/pid; echo x >$D/ready; wait", 60000);
	assert_true(test_wait_for(is_there, f));
	pid = read_pid(f, "pid");
	end(f, &r);
	assert_int_equal(r.found, 2);
	assert_int_equal(r.killed, 0);
	assert_int_equal(json_length(r.left), 0);
	assert_false(lives(pid));
	endops_clear(&r);
	reap(f);
}

static void
test_endops__kill_ends_what_ignores_term(void **state)
{
	struct fixture *f = *state;
	struct endops_result r;

	start(f, "trap '' TERM; echo x >$D/ready; while :; do sleep 1000; done", 50);
	assert_true(test_wait_for(is_there, f));
	end(f, &r);
	assert_true(r.killed >= 1);
	assert_int_equal(json_length(r.left), 0);
	endops_clear(&r);
	reap(f);
}

static void
test_endops__finds_what_moved_to_another_session(void **state)
{
	struct fixture *f = *state;
	struct endops_result r;
	pid_t pid;

	/* Its parent leaves: neither group nor descent lead to it, only its marks. */
	start(f, "setsid sh -c 'echo $$ >$D/pid; echo x >$D/ready; exec sleep 1000' & exit 0", 60000);
	assert_true(test_wait_for(is_there, f));
	pid = read_pid(f, "pid");
	end(f, &r);
	assert_true(r.found >= 1);
	assert_int_equal(json_length(r.left), 0);
	assert_false(lives(pid));
	endops_clear(&r);
	reap(f);
}

/* What a TERM handler starts while the others end. */
static void
test_endops__finds_what_is_born_late(void **state)
{
	struct fixture *f = *state;
	struct endops_result r;

	start(f,
	    "trap 'setsid sh -c \"echo \\$\\$ >$D/pid; exec sleep 1000\" & wait; exit' TERM; "
	    "echo x >$D/ready; while :; do sleep 0.01; done",
	    3000);
	assert_true(test_wait_for(is_there, f));
	end(f, &r);
	assert_int_equal(json_length(r.left), 0);
	assert_false(lives(read_pid(f, "pid")));
	endops_clear(&r);
	reap(f);
}

static void
test_endops__never_touches_a_stranger_with_the_number(void **state)
{
	struct fixture *f = *state;
	struct endops_result r;
	char line[200];
	pid_t stranger = fork();
	int status;

	assert_true(stranger >= 0);
	if (stranger == 0) {
		setsid();
		pause();
		_exit(0);
	}
	/* The pid of the line, another start time: a later process of that number. */
	snprintf(line, sizeof(line),
	    "{\"kind\":\"start\",\"op\":\"a\",\"attempt\":1,\"pid\":%d,\"start\":1}\n", (int)stranger);
	assert_int_equal(write(f->log_fd, line, strlen(line)), strlen(line));
	end(f, &r);
	assert_int_equal(r.found, 0);
	assert_int_equal(json_length(r.left), 0);
	assert_true(lives(stranger));
	endops_clear(&r);
	assert_int_equal(kill(stranger, SIGKILL), 0);
	assert_int_equal(waitpid(stranger, &status, 0), stranger);
}

/* In the group of a leader that has ended, without a mark: named, not ended. */
static void
test_endops__says_what_it_could_not_prove(void **state)
{
	struct fixture *f = *state;
	struct endops_result r;
	struct buf text = {0};
	int status;
	pid_t pid;

	start(f, "env -i sh -c 'echo $$ >'$D'/pid; echo x >'$D'/ready; exec sleep 1000' & exit 0", 60000);
	assert_true(test_wait_for(is_there, f));
	reap(f);
	pid = read_pid(f, "pid");
	end(f, &r);
	assert_int_equal(json_length(r.left), 1);
	assert_true(lives(pid));
	endops_tell_left(&r, &text);
	assert_non_null(strstr(buf_text(&text), "of operation a"));
	buf_clear(&text);
	endops_clear(&r);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	end(f, &r);
	assert_int_equal(json_length(r.left), 0);
	endops_clear(&r);
}

static void
test_endops__a_run_of_another_place(void **state)
{
	static const struct {
		const char *host, *boot;
		uint64_t ns;
		bool here, other_boot;
	} cases[] = {
	    {NULL, NULL, 0, true, false},
	    {"renamed", NULL, 0, true, false},
	    {"another", NULL, 7, false, false},
	    {"another", "another", 0, false, false},
	    {NULL, "another", 0, true, true},
	    {NULL, "another", 7, true, true},
	    {NULL, NULL, 7, false, false},
	};
	struct attempts a = {.has_place = true};
	struct proc_place now;
	struct err e = {0};
	bool here, other_boot;
	size_t i;

	(void)state;
	assert_works(proc_place_here(&now, &e), e);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		a.place = now;
		if (cases[i].host != NULL)
			snprintf(a.place.host, sizeof(a.place.host), "%s", cases[i].host);
		if (cases[i].boot != NULL)
			snprintf(a.place.boot_id, sizeof(a.place.boot_id), "%s", cases[i].boot);
		if (cases[i].ns != 0)
			a.place.pid_namespace = cases[i].ns;
		assert_works(endops_is_here(&a, &here, &other_boot, &e), e);
		assert_int_equal(here, cases[i].here);
		assert_int_equal(other_boot, cases[i].other_boot);
	}
}

static void
test_endops__spares_what_may_be_left(void **state)
{
	struct fixture *f = *state;
	struct flow_how how = {.leave = true};
	struct flow_op op = {.id = "a", .how = &how};
	struct flow flow = {.ops = &op, .nops = 1};
	static const char line[] = "{\"kind\":\"end\",\"op\":\"a\",\"attempt\":1}\n";
	struct endops_result r;
	struct attempts a;
	struct err e = {0};
	pid_t pid;
	int status;

	start(f, "setsid sh -c 'echo $$ >$D/pid; echo x >$D/ready; exec sleep 1000' & exit 0", 1000);
	assert_true(test_wait_for(is_there, f));
	assert_int_equal(write(f->log_fd, line, sizeof(line) - 1), sizeof(line) - 1);
	pid = read_pid(f, "pid");
	assert_works(attempts_read(f->run_fd, &a, &e), e);
	assert_works(run_endops(f, &flow, &a, &r, &e), e);
	assert_int_equal(r.found, 0);
	assert_true(lives(pid));
	endops_clear(&r);
	/* Without the permission it is ended. */
	how.leave = false;
	assert_works(run_endops(f, &flow, &a, &r, &e), e);
	assert_int_equal(r.found, 1);
	assert_false(lives(pid));
	endops_clear(&r);
	attempts_clear(&a);
	waitpid(pid, &status, 0);
	reap(f);
}

static const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    CASE(test_endops__term_ends_a_group),
    CASE(test_endops__kill_ends_what_ignores_term),
    CASE(test_endops__finds_what_moved_to_another_session),
    CASE(test_endops__finds_what_is_born_late),
    CASE(test_endops__never_touches_a_stranger_with_the_number),
    CASE(test_endops__says_what_it_could_not_prove),
    CASE(test_endops__spares_what_may_be_left),
    cmocka_unit_test(test_endops__a_run_of_another_place),
};

TEST_MAIN("endops", tests)
