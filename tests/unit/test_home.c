#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "flowsup/proc.h"

/* Linked with --wrap=fs_kind: a network file system cannot be mounted by a test. */
static const char *kind_to_say;
int __real_fs_kind(int fd, const char **name, bool *remote, struct err *e);
int __wrap_fs_kind(int fd, const char **name, bool *remote, struct err *e);

int
__wrap_fs_kind(int fd, const char **name, bool *remote, struct err *e)
{
	if (kind_to_say == NULL)
		return __real_fs_kind(fd, name, remote, e);
	*name = kind_to_say;
	*remote = true;
	return 0;
}

static struct test_dir dir;

static int
setup(void **state)
{
	(void)state;
	unsetenv("FLOWSUP_HOME");
	unsetenv("XDG_STATE_HOME");
	test_dir_make(&dir);
	setenv("HOME", dir.path, 1);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	test_dir_remove(&dir);
	return 0;
}

static void
add_path(char to[1024], const char *name)
{
	snprintf(to, 1024, "%s/%s", dir.path, name);
}

static void
expect_path(const char *option, const char *name)
{
	struct home h;
	struct err e = {0};
	char path[1024];
	struct stat st;

	add_path(path, name);
	assert_works(home_open(option, true, &h, &e), e);
	assert_string_equal(h.path, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(fstat(h.runs_fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_true((fcntl(h.fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(h.runs_fd, F_GETFD) & FD_CLOEXEC) != 0);
	home_close(&h);
	assert_int_equal(h.fd, -1);
}

static void
test_home__is_found_by_the_rule(void **state)
{
	char path[1024];

	(void)state;
	expect_path(NULL, ".local/state/flowsup");
	add_path(path, "xdg");
	setenv("XDG_STATE_HOME", path, 1);
	expect_path(NULL, "xdg/flowsup");
	setenv("XDG_STATE_HOME", "relative", 1); /* the rule of that variable: ignored */
	expect_path(NULL, ".local/state/flowsup");
	setenv("XDG_STATE_HOME", "", 1);
	expect_path(NULL, ".local/state/flowsup");
	add_path(path, "named");
	setenv("FLOWSUP_HOME", path, 1);
	expect_path(NULL, "named");
	add_path(path, "option/deep/er");
	expect_path(path, "option/deep/er");
}

static void
test_home__a_relative_name_becomes_absolute(void **state)
{
	int old = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(chdir(dir.path), 0);
	expect_path("here", "here");
	expect_path("./here/../here", "here");
	assert_int_equal(fchdir(old), 0);
	close(old);
}

/* Two ways to one place must give one name, by which operations are marked. */
static void
test_home__a_link_leads_to_the_one_name(void **state)
{
	char link[1024];

	(void)state;
	assert_int_equal(mkdirat(dir.fd, "real", 0700), 0);
	assert_int_equal(symlinkat("real", dir.fd, "link"), 0);
	add_path(link, "link");
	expect_path(link, "real");
}

static void
test_home__without_HOME_the_account_has_one(void **state)
{
	struct home h;
	struct err e = {0};
	int rc;

	(void)state;
	unsetenv("HOME");
	/* Only looked for: the account's real state directory is not for a test to make. */
	rc = home_open(NULL, false, &h, &e);
	if (rc == 0)
		home_close(&h);
	else
		assert_true(e.code == ERR_NOTFOUND || e.code == ERR_PERMISSION);
	assert_true(rc == 0 || strstr(e.msg, "/.local/state/flowsup") != NULL);
}

static void
test_home__is_not_made_without_create(void **state)
{
	struct home h;
	struct err e = {0};
	char path[1024];
	struct stat st;

	(void)state;
	add_path(path, "absent");
	assert_fails(home_open(path, false, &h, &e), ERR_NOTFOUND, e);
	assert_int_equal(stat(path, &st), -1);
	assert_fails(home_open("", false, &h, &e), ERR_USAGE, e);
}

static void
test_home__others_may_not_write_it(void **state)
{
	static const mode_t modes[] = {0770, 0707, 0777, 01777};
	struct home h;
	struct err e = {0};
	char path[1024];
	size_t i;

	(void)state;
	add_path(path, "open");
	assert_int_equal(mkdir(path, 0700), 0);
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		assert_int_equal(chmod(path, modes[i]), 0);
		assert_fails(home_open(path, true, &h, &e), ERR_PERMISSION, e);
	}
	assert_int_equal(chmod(path, 0755), 0);
	assert_works(home_open(path, true, &h, &e), e);
	assert_int_equal(fchmodat(h.fd, HOME_RUNS, 0777, 0), 0);
	home_close(&h);
	assert_fails(home_open(path, true, &h, &e), ERR_PERMISSION, e);
}

static void
test_home__somebody_elses_is_refused(void **state)
{
	struct home h;
	struct err e = {0};
	char path[1024];

	(void)state;
	if (geteuid() != 0) {
		print_message("# only root can make a directory of somebody else\n");
		skip();
	}
	add_path(path, "theirs");
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_fails(home_open(path, true, &h, &e), ERR_PERMISSION, e);
}

static void
test_home__what_is_no_directory(void **state)
{
	struct home h;
	struct err e = {0};
	char path[1024];

	(void)state;
	test_file_write(dir.fd, "file", "");
	add_path(path, "file");
	assert_int_equal(home_open(path, true, &h, &e), -1);
	assert_non_null(strstr(e.msg, path));
	add_path(path, "file/below");
	assert_int_equal(home_open(path, true, &h, &e), -1);
	assert_non_null(strstr(e.msg, path));
}

static void
test_home__a_remote_file_system_is_refused(void **state)
{
	struct home h;
	struct err e = {0};
	char path[1024];

	(void)state;
	add_path(path, "far");
	kind_to_say = "nfs";
	assert_int_equal(home_open(path, true, &h, &e), -1);
	kind_to_say = NULL;
	assert_int_equal(e.code, ERR_ENVIRONMENT);
	assert_non_null(strstr(e.msg, "nfs"));
	assert_non_null(strstr(e.hint, "flowsup --home "));
}

/* Long names: above what a socket's address holds, up to what SQLite takes, and beyond. */
static void
test_home__long_paths(void **state)
{
	struct home h;
	struct err e = {0};
	char path[1024];
	size_t i, base;

	(void)state;
	base = strlen(dir.path);
	memcpy(path, dir.path, base);
	for (i = base; i < HOME_MAX_PATH; i++)
		path[i] = (i - base) % 100 == 0 ? '/' : 'a';
	if (path[HOME_MAX_PATH - 1] == '/')
		path[HOME_MAX_PATH - 1] = 'a';
	path[HOME_MAX_PATH] = '\0';
	assert_works(home_open(path, true, &h, &e), e);
	assert_string_equal(h.path, path);
	home_close(&h);
	strcat(path, "b");
	assert_fails(home_open(path, true, &h, &e), ERR_ENVIRONMENT, e);
	assert_non_null(strstr(e.msg, "long"));
}

/* ---- The supervisor's lock ---- */

static void
test_home__one_holds_the_lock(void **state)
{
	struct home h;
	struct err e = {0};
	char path[1024];
	int fd, status;
	pid_t pid;

	(void)state;
	add_path(path, "locked");
	assert_works(home_open(path, true, &h, &e), e);
	fd = home_lock_take(&h, &e);
	assert_true(fd >= 0);
	assert_fails(home_lock_take(&h, &e), ERR_BUSY, e);
	/* A child that has the descriptor holds the same lock, whatever its parent does then. */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	close(fd);
	assert_fails(home_lock_take(&h, &e), ERR_BUSY, e);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fd = home_lock_take(&h, &e);
	assert_true(fd >= 0);
	close(fd);
	home_close(&h);
}

static const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    CASE(test_home__is_found_by_the_rule),
    CASE(test_home__a_relative_name_becomes_absolute),
    CASE(test_home__a_link_leads_to_the_one_name),
    CASE(test_home__without_HOME_the_account_has_one),
    CASE(test_home__is_not_made_without_create),
    CASE(test_home__others_may_not_write_it),
    CASE(test_home__somebody_elses_is_refused),
    CASE(test_home__what_is_no_directory),
    CASE(test_home__a_remote_file_system_is_refused),
    CASE(test_home__long_paths),
    CASE(test_home__one_holds_the_lock),
};

TEST_MAIN("home", tests)
