#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "flowsup/checkpoint.h"
#include "flowsup/fs.h"
#include "flowsup/home.h"

struct fixture {
	struct test_dir dir;
	struct home home;
	char run_id[RUN_ID_TEXT];
	struct json *flow;
	struct launch launch;
};

/* Linked with --wrap=flock: somebody looks while a lock is about to be taken. */
static struct fixture *looks;
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

int
__wrap_flock(int fd, int operation)
{
	struct fixture *f = looks;
	char name[64];

	looks = NULL;
	if (f != NULL) {
		snprintf(name, sizeof(name), ".new-%s", f->run_id);
		assert_int_equal(faccessat(f->home.runs_fd, name, F_OK, 0), 0);
		assert_int_equal(rundir_stage(&f->home, name), RUNDIR_IN_MAKING);
	}
	return __real_flock(fd, operation);
}

static int
create(const struct fixture *f, struct err *e)
{
	int making, rc = rundir_create(&f->home, &f->launch, &making, e);

	if (rc == 0) {
		assert_int_equal(rundir_stage(&f->home, f->run_id), RUNDIR_IN_MAKING);
		rundir_born(&f->home, f->run_id, &making);
		assert_int_equal(rundir_stage(&f->home, f->run_id), RUNDIR_BORN);
	}
	return rc;
}

static char *const argv[] = {(char[]){"flowsup"}, (char[]){"start"}, (char[]){"\xff.yaml"}, NULL};
static char *const environment[] = {(char[]){"PATH=/bin"}, (char[]){"EMPTY="},
    (char[]){"FLOWSUP_RUN_ID=x"}, (char[]){"FLOWSUP_HOME=/h"}, (char[]){"LINES=a\nb"},
    (char[]){"API_TOKEN=secret"}, NULL};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = {0};

	assert_non_null(f);
	test_dir_make(&f->dir);
	assert_works(home_open(f->dir.path, true, &f->home, &e), e);
	assert_works(run_id_make(f->run_id, &e), e);
	f->flow = json_set(json_object(), "name", json_cstr("n"));
	f->launch = (struct launch){.run_id = f->run_id,
	    .session_id = "0123456789abcdef0123456789abcdef",
	    .invocation_id = "0123456789ab",
	    .kind = "flow",
	    .name = "n",
	    .argv = argv,
	    .cwd = "/tmp",
	    .umask = 027,
	    .environment = environment,
	    .flow = f->flow};
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	json_unref(f->flow);
	home_close(&f->home);
	test_dir_remove(&f->dir);
	free(f);
	return 0;
}

static int
count_entries(int dirfd)
{
	DIR *d = fdopendir(openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	int n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)) != NULL)
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(d);
	return n;
}

static void
expect_mode(int fd, const char *name, mode_t mode)
{
	struct stat st;

	assert_int_equal(fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode & (mode_t)~(mode_t)S_IFMT, mode);
}

static void
test_rundir__holds_what_a_worker_needs(void **state)
{
	static const char *const files[] = {RUN_FLOW, RUN_LAUNCH, RUN_ENVIRON, RUN_LOCK};
	struct fixture *f = *state;
	struct launch_read l;
	struct err e = {0};
	size_t i;
	int fd;

	assert_works(create(f, &e), e);
	fd = rundir_open(&f->home, f->run_id, &e);
	assert_true(fd >= 0);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		expect_mode(fd, files[i], 0600);
	assert_int_equal(count_entries(fd), 4);
	assert_int_equal(count_entries(f->home.runs_fd), 1);

	assert_works(launch_read(fd, &l, &e), e);
	assert_string_equal(l.session_id, f->launch.session_id);
	assert_string_equal(l.invocation_id, f->launch.invocation_id);
	assert_string_equal(l.kind, "flow");
	assert_string_equal(l.cwd, "/tmp");
	assert_null(l.resumed_from);
	assert_int_equal(l.umask, 027);
	assert_non_null(l.options);
	launch_read_clear(&l);
	close(fd);
}

static void
test_rundir__limits_come_back_as_they_were(void **state)
{
	struct fixture *f = *state;
	struct launch_read l;
	struct err e = {0};
	struct rlimit r;
	unsigned i;
	int fd;

	assert_works(create(f, &e), e);
	fd = rundir_open(&f->home, f->run_id, &e);
	assert_works(launch_read(fd, &l, &e), e);
	assert_true(l.nrlimits > 4);
	for (i = 0; i < l.nrlimits; i++) {
		assert_int_equal(
		    getrlimit((__rlimit_resource_t)l.rlimits[i].resource, &r), 0);
		assert_true(l.rlimits[i].value.rlim_cur == r.rlim_cur);
		assert_true(l.rlimits[i].value.rlim_max == r.rlim_max);
	}
	launch_read_clear(&l);
	close(fd);
}

static void
test_rundir__the_environment_comes_back(void **state)
{
	static const char *const wanted[] = {"PATH=/bin", "EMPTY=", "FLOWSUP_HOME=/h", "LINES=a\nb",
	    "API_TOKEN=secret"};
	struct fixture *f = *state;
	struct err e = {0};
	char *block, **envp;
	size_t i;
	int fd;

	assert_works(create(f, &e), e);
	fd = rundir_open(&f->home, f->run_id, &e);
	assert_works(environ_read(fd, &block, &envp, &e), e);
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		assert_string_equal(envp[i], wanted[i]);
	assert_null(envp[i]);
	free(block);
	free(envp);
	assert_int_equal(unlinkat(fd, RUN_ENVIRON, 0), 0);
	test_file_write(fd, RUN_ENVIRON, "PATH=/bi");
	assert_int_equal(fchmodat(fd, RUN_ENVIRON, 0600, 0), 0);
	assert_fails(environ_read(fd, &block, &envp, &e), ERR_IO, e);
	close(fd);
}

static void
test_rundir__an_empty_environment(void **state)
{
	static char *const none[] = {NULL};
	struct fixture *f = *state;
	struct err e = {0};
	char *block, **envp;
	int fd;

	f->launch.environment = none;
	assert_works(create(f, &e), e);
	fd = rundir_open(&f->home, f->run_id, &e);
	assert_works(environ_read(fd, &block, &envp, &e), e);
	assert_null(envp[0]);
	free(block);
	free(envp);
	close(fd);
}

static void
test_rundir__carries_a_state(void **state)
{
	struct fixture *f = *state;
	struct json *carry = json_set(json_object(), "ops", json_object());
	struct err e = {0};
	char *text;
	int fd;

	f->launch.carry = carry;
	f->launch.resumed_from = "20260101T000000-000000";
	assert_works(create(f, &e), e);
	fd = rundir_open(&f->home, f->run_id, &e);
	text = test_file_read(fd, RUN_CARRY);
	assert_string_equal(text, "{\"ops\":{}}\n");
	free(text);
	close(fd);
	json_unref(carry);
}

static void
test_rundir__never_takes_anothers_place(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};
	struct stat before, after;

	assert_works(create(f, &e), e);
	assert_int_equal(fstatat(f->home.runs_fd, f->run_id, &before, 0), 0);
	assert_fails(create(f, &e), ERR_CREATE, e);
	assert_int_equal(fstatat(f->home.runs_fd, f->run_id, &after, 0), 0);
	assert_true(before.st_ino == after.st_ino);
	assert_int_equal(count_entries(f->home.runs_fd), 1);
}

/* Files that cannot grow: every place where writing may fail, one after the other. */
static void
test_rundir__leaves_nothing_when_it_fails(void **state)
{
	struct fixture *f = *state;
	rlim_t limit;
	int status, failures = 0;
	pid_t pid;

	for (limit = 0; limit < 2000; limit += 60) {
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			struct rlimit r = {limit, limit};
			struct err e = {0};

			signal(SIGXFSZ, SIG_IGN);
			if (setrlimit(RLIMIT_FSIZE, &r) != 0)
				_exit(2);
			_exit(create(f, &e) == 0 ? 0 : 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
		failures += WEXITSTATUS(status);
		if (WEXITSTATUS(status) == 0)
			break;
		assert_int_equal(count_entries(f->home.runs_fd), 0);
	}
	assert_true(failures > 5);
	assert_int_equal(count_entries(f->home.runs_fd), 1);
}

static void
test_rundir__a_cwd_that_cannot_be_kept(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};

	f->launch.cwd = "/tmp/\xff";
	assert_fails(create(f, &e), ERR_ENVIRONMENT, e);
	assert_int_equal(count_entries(f->home.runs_fd), 0);
}

static void
test_rundir__opens_runs_only(void **state)
{
	static const char *const names[] = {"..", "", ".new-x", "20260101T000000-00000a"};
	struct fixture *f = *state;
	struct err e = {0};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_fails(rundir_open(&f->home, names[i], &e), ERR_NOTFOUND, e);
	assert_int_equal(symlinkat("/tmp", f->home.runs_fd, "20260101T000000-00000b"), 0);
	assert_int_equal(rundir_open(&f->home, "20260101T000000-00000b", &e), -1);
}

static void
test_rundir__is_removed_whole(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};

	assert_works(create(f, &e), e);
	assert_works(rundir_remove(&f->home, f->run_id, &e), e);
	assert_int_equal(count_entries(f->home.runs_fd), 0);
	assert_fails(rundir_remove(&f->home, "..", &e), ERR_NOTFOUND, e);
}

static void
test_rundir__launch_that_is_damaged_or_newer(void **state)
{
	static const struct {
		const char *text;
		enum err_code code;
	} cases[] = {
	    {"", ERR_SYNTAX},
	    {"{", ERR_SYNTAX},
	    {"[]", ERR_IO},
	    {"{}", ERR_IO},
	    {"{\"launch_version\":2}", ERR_REFUSED},
	    {"{\"launch_version\":1,\"umask\":18,\"options\":{}}", ERR_IO},
	    {"{\"launch_version\":1,\"umask\":18,\"options\":{},\"session_id\":\"a\",\"kind\":\"flow\","
	     "\"invocation_id\":\"b\",\"name\":\"\",\"cwd\":\"/\",\"limits\":{\"cpu\":[1]}}",
		ERR_IO},
	    {"{\"launch_version\":1,\"umask\":18,\"options\":{},\"session_id\":\"a\",\"kind\":\"flow\","
	     "\"invocation_id\":\"b\",\"name\":\"\",\"cwd\":\"x\"}",
		ERR_IO},
	};
	struct fixture *f = *state;
	struct launch_read l;
	struct err e;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		e = (struct err){0};
		test_file_write(f->dir.fd, RUN_LAUNCH, cases[i].text);
		assert_int_equal(fchmodat(f->dir.fd, RUN_LAUNCH, 0600, 0), 0);
		assert_fails(launch_read(f->dir.fd, &l, &e), cases[i].code, e);
		assert_non_null(strstr(e.msg, RUN_LAUNCH));
	}
}

/* ---- The run's lock ---- */

static void
test_rundir__lock_tells_whether_a_worker_lives(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};
	bool held = true;
	int fd, lock, status;
	pid_t pid;

	assert_works(create(f, &e), e);
	fd = rundir_open(&f->home, f->run_id, &e);
	assert_works(run_lock_held(fd, &held, &e), e);
	assert_false(held);
	lock = run_lock_take(fd, 0, &e);
	assert_true(lock >= 0);
	assert_works(run_lock_held(fd, &held, &e), e);
	assert_true(held);
	assert_fails(run_lock_take(fd, 0, &e), ERR_BUSY, e);
	/* The forked one inherits the description; the lock goes with its last holder. */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	close(lock);
	assert_works(run_lock_held(fd, &held, &e), e);
	assert_true(held);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	lock = run_lock_take(fd, 1000, &e);
	assert_true(lock >= 0);
	close(lock);
	close(fd);
}

static void
test_rundir__a_lock_file_is_never_made_anew(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};
	bool held;
	int fd;

	assert_works(create(f, &e), e);
	fd = rundir_open(&f->home, f->run_id, &e);
	assert_int_equal(unlinkat(fd, RUN_LOCK, 0), 0);
	assert_fails(run_lock_take(fd, 0, &e), ERR_NOTFOUND, e);
	assert_fails(run_lock_held(fd, &held, &e), ERR_NOTFOUND, e);
	assert_int_equal(mkfifoat(fd, RUN_LOCK, 0600), 0);
	assert_fails(run_lock_take(fd, 0, &e), ERR_IDENTITY, e);
	close(fd);
}

static void
test_rundir__in_making_is_never_taken_for_cut_off(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};

	looks = f;
	assert_works(create(f, &e), e);
	assert_null(looks);
}

static const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    CASE(test_rundir__holds_what_a_worker_needs),
    CASE(test_rundir__limits_come_back_as_they_were),
    CASE(test_rundir__the_environment_comes_back),
    CASE(test_rundir__an_empty_environment),
    CASE(test_rundir__carries_a_state),
    CASE(test_rundir__never_takes_anothers_place),
    CASE(test_rundir__leaves_nothing_when_it_fails),
    CASE(test_rundir__a_cwd_that_cannot_be_kept),
    CASE(test_rundir__opens_runs_only),
    CASE(test_rundir__is_removed_whole),
    CASE(test_rundir__launch_that_is_damaged_or_newer),
    CASE(test_rundir__lock_tells_whether_a_worker_lives),
    CASE(test_rundir__a_lock_file_is_never_made_anew),
    CASE(test_rundir__in_making_is_never_taken_for_cut_off),
};

TEST_MAIN("rundir", tests)
