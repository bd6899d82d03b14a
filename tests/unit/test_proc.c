/* Starting. The program is also the child: it executes itself with a word that says what
 * to do (main, at the end). */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "fault_alloc.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/proc.h"

#define SELF "/proc/self/exe"

static struct test_dir dir;
static int fds_before;
static char *no_environment[] = {NULL};

/* ---- The child's side ---- */

/* What a descriptor leads to: "null", or the first byte of a file ("-" when empty). */
static void
print_fd(FILE *to, int fd)
{
	struct stat st, null;
	char byte = '-';

	if (fstat(fd, &st) != 0 || stat("/dev/null", &null) != 0)
		exit(3);
	if (S_ISCHR(st.st_mode) && st.st_rdev == null.st_rdev)
		fprintf(to, "%d=null ", fd);
	else if (pread(fd, &byte, 1, 0) >= 0)
		fprintf(to, "%d=%c ", fd, byte);
	else
		fprintf(to, "%d=? ", fd);
}

/* Lists every open descriptor into the file `path`. */
static int
child_list_fds(const char *path)
{
	int list[256], count = 0, i;
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *entry;
	FILE *to;

	while (fds != NULL && (entry = readdir(fds)) != NULL)
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(fds))
			list[count++] = atoi(entry->d_name);
	closedir(fds);
	to = fopen(path, "w");
	if (to == NULL)
		return 3;
	for (i = 0; i < count; i++)
		print_fd(to, list[i]);
	return fclose(to) == 0 ? 0 : 3;
}

/* ---- Helpers ---- */

static int
set_up(void **state)
{
	(void)state;
	fds_before = test_count_fds();
	test_dir_make(&dir);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	test_dir_remove(&dir);
	assert_int_equal(test_count_fds(), fds_before);
	children_none();
	return 0;
}


/* Runs argv with standard output to a file, and returns what stands there; to be freed. */
static char *
output_of(struct proc_spawn spawn)
{
	struct proc_child child;
	struct proc_end end;
	int out = openat(dir.fd, "out", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(out >= 0);
	spawn.envp = no_environment;
	spawn.fds[spawn.nfds++] = (struct proc_fd){out, 1};
	child = child_start(&spawn);
	fd_close(&out);
	end = child_finish(&child);
	assert_false(end.signaled);
	assert_int_equal(end.code, 0);
	return test_file_read(dir.fd, "out");
}

static bool
has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	return at != NULL && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

/* ---- Descriptors ---- */

/* Puts a file that holds `letter` at descriptor `at`. */
static void
place_file(int at, char letter)
{
	char text[2] = {letter, '\0'}, name[2] = {letter, '\0'};
	int fd;

	test_file_write(dir.fd, name, text);
	fd = openat(dir.fd, name, O_RDONLY | O_CLOEXEC);
	assert_int_equal(dup3(fd, at, O_CLOEXEC), at);
	fd_close(&fd);
}

struct mapping {
	struct proc_fd fds[PROC_MAX_FDS];
	unsigned nfds;
	const char *seen;
};

static void
check_mapping(const struct mapping *m)
{
	char path[PATH_MAX];
	char *argv[] = {(char[]){"self"}, (char[]){"fds"}, path, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	struct proc_child child;
	char *seen;

	snprintf(path, sizeof(path), "%s/seen", dir.path);
	spawn.path = SELF;
	spawn.argv = argv;
	spawn.envp = no_environment;
	memcpy(spawn.fds, m->fds, sizeof(spawn.fds));
	spawn.nfds = m->nfds;
	child = child_start(&spawn);
	assert_int_equal(child_finish(&child).code, 0);
	seen = test_file_read(dir.fd, "seen");
	assert_string_equal(seen, m->seen);
	free(seen);
}

static void
test_proc__descriptors_are_mapped_whatever_collides(void **state)
{
	/* 20 leads to a, 21 to b, 22 to c. */
	static const struct mapping cases[] = {
	    {{{0, 0}}, 0, "0=null 1=null 2=null "},
	    {{{20, 0}, {21, 1}, {22, 2}}, 3, "0=a 1=b 2=c "},
	    {{{20, 0}, {20, 1}, {20, 2}}, 3, "0=a 1=a 2=a "},
	    {{{20, 21}, {21, 20}}, 2, "0=null 1=null 2=null 20=b 21=a "},
	    {{{20, 21}, {21, 22}, {22, 20}}, 3, "0=null 1=null 2=null 20=c 21=a 22=b "},
	    {{{20, 21}, {21, 22}}, 2, "0=null 1=null 2=null 21=a 22=b "},
	    {{{21, 22}, {20, 21}}, 2, "0=null 1=null 2=null 21=a 22=b "},
	    {{{20, 20}}, 1, "0=null 1=null 2=null 20=a "},
	    {{{20, 20}, {20, 21}, {21, 0}}, 3, "0=b 1=null 2=null 20=a 21=a "},
	    {{{20, 30}, {30, 20}}, 0, "0=null 1=null 2=null "},
	    {{{22, 2}, {20, 5}, {21, 23}, {20, 22}}, 4, "0=null 1=null 2=c 5=a 22=a 23=b "},
	};
	size_t i;
	int fd;

	(void)state;
	place_file(20, 'a');
	place_file(21, 'b');
	place_file(22, 'c');
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_mapping(&cases[i]);
	for (fd = 20; fd <= 22; fd++)
		close(fd);
}

static void
test_proc__standard_descriptors_can_be_exchanged(void **state)
{
	static const struct mapping swapped = {{{0, 2}, {1, 0}, {2, 1}}, 3, "0=b 1=c 2=a "};
	int keep[3], fd;

	(void)state;
	for (fd = 0; fd < 3; fd++) {
		keep[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 50);
		assert_true(keep[fd] >= 0);
		place_file(fd, (char)('a' + fd));
	}
	check_mapping(&swapped);
	for (fd = 0; fd < 3; fd++) {
		assert_int_equal(dup2(keep[fd], fd), fd);
		fd_close(&keep[fd]);
	}
}

static void
test_proc__nothing_that_was_inherited_goes_on(void **state)
{
	static const struct mapping none = {{{0, 0}}, 0, "0=null 1=null 2=null "};
	int fd = fcntl(dir.fd, F_DUPFD, 40);

	(void)state;
	/* Without close-on-exec, as a shell may have left it to us. */
	assert_true(fd >= 40);
	check_mapping(&none);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	fd_close(&fd);
}

/* ---- State of the child ---- */

static void
on_signal(int sig)
{
	(void)sig;
}

/* The C library refuses to touch the signals it keeps to itself; who started the tests may have left
 * one ignored all the same. The handler is the first member of the kernel's structure. */
static void
ignore_by_the_kernel(int sig)
{
	unsigned long action[8] = {(unsigned long)SIG_IGN};

	assert_int_equal(syscall(SYS_rt_sigaction, sig, action, NULL, _NSIG / 8), 0);
}

static void
test_proc__signals_are_as_new(void **state)
{
	static const char *const lines[] = {"SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000",
	    "SigCgt:\t0000000000000000"};
	char *argv[] = {(char[]){"cat"}, (char[]){"/proc/self/status"}, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	sigset_t all, before, after;
	char *text;
	size_t i;

	(void)state;
	signal(SIGUSR1, on_signal);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	spawn.path = "cat";
	spawn.argv = argv;
	text = output_of(spawn);
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_true(has_line(text, lines[i]));
	free(text);
	sigprocmask(SIG_SETMASK, &before, &after);
	assert_int_equal(sigismember(&after, SIGTERM), 1);
	assert_true(signal(SIGUSR1, SIG_DFL) == on_signal);
}

/* As a kernel before 5.3, or a filter around a container, answers. */
static void
forbid_clone3(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(77);
}

static void
test_proc__without_clone3(void **state)
{
	char *argv[] = {(char[]){"cat"}, (char[]){"/proc/self/status"}, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	int status;
	pid_t pid;

	(void)state;
	spawn.path = "cat";
	spawn.argv = argv;
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		forbid_clone3();
		signal(SIGPIPE, SIG_IGN);
		signal(SIGUSR1, on_signal);
		_exit(has_line(output_of(spawn), "SigIgn:\t0000000000000000") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* no filters here */
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
test_proc__sessions_and_groups(void **state)
{
	char *argv[] = {(char[]){"self"}, (char[]){"pause"}, NULL};
	static const struct {
		bool session, group;
	} cases[] = {{false, false}, {false, true}, {true, false}, {true, true}};
	struct proc_stat own, st;
	struct err e = {0};
	size_t i;

	(void)state;
	assert_works(proc_stat_read(getpid(), &own, &e), e);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct proc_spawn spawn = PROC_SPAWN_INIT;
		struct proc_child child;
		pid_t self;

		spawn.path = SELF;
		spawn.argv = argv;
		spawn.envp = no_environment;
		spawn.new_session = cases[i].session;
		spawn.new_group = cases[i].group;
		child = child_start(&spawn);
		self = child.id.pid;
		assert_works(proc_stat_read(self, &st, &e), e);
		assert_int_equal(st.session, cases[i].session ? self : own.session);
		assert_int_equal(st.pgrp, cases[i].session || cases[i].group ? self : own.pgrp);
		assert_int_equal(st.ppid, getpid());
		assert_true(st.start_ticks == child.id.start_ticks);
		assert_works(proc_signal(child.pidfd, SIGKILL, &e), e);
		assert_true(child_finish(&child).signaled);
	}
}

/* Whether it was read or reckoned; a few of so many are made at the turn of a tick. */
static void
test_proc__start_time_is_what_proc_shows(void **state)
{
	char *argv[] = {(char[]){"true"}, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	struct proc_child child;
	struct proc_stat st;
	struct err e = {0};
	unsigned n;

	(void)state;
	spawn.path = "true";
	spawn.argv = argv;
	spawn.envp = no_environment;
	for (n = 0; n < 500; n++) {
		child = child_start(&spawn);
		assert_works(proc_stat_read(child.id.pid, &st, &e), e); /* not reaped yet */
		assert_true(st.start_ticks == child.id.start_ticks);
		assert_false(child_finish(&child).signaled);
	}
}

static void
test_proc__umask_priority_and_limits(void **state)
{
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"},
	    (char[]){"umask; ulimit -n; ulimit -f; nice"}, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	mode_t before = umask(077);
	char *text;

	(void)state;
	spawn.path = "sh";
	spawn.argv = argv;
	spawn.umask = 027;
	spawn.set_umask = true;
	spawn.nice = 7;
	spawn.set_nice = true;
	spawn.rlimits[0] = (struct proc_rlimit){RLIMIT_NOFILE, {123, 123}};
	spawn.rlimits[1] = (struct proc_rlimit){RLIMIT_FSIZE, {51200, RLIM_INFINITY}};
	spawn.nrlimits = 2;
	text = output_of(spawn);
	assert_string_equal(text, "0027\n123\n100\n7\n");
	free(text);
	assert_int_equal(umask(before), 077);
}

static void
test_proc__directories(void **state)
{
	char *argv[] = {(char[]){"pwd"}, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	char inner[PATH_MAX];
	char *text, *real = realpath(dir.path, NULL);

	(void)state;
	assert_non_null(real);
	assert_int_equal(mkdirat(dir.fd, "inner", 0700), 0);
	snprintf(inner, sizeof(inner), "%s/inner\n", real);
	spawn.path = "pwd";
	spawn.argv = argv;
	spawn.cwd_fd = dir.fd;
	text = output_of(spawn);
	assert_memory_equal(text, real, strlen(real));
	assert_string_equal(text + strlen(real), "\n");
	free(text);
	spawn.cwd = "inner";
	text = output_of(spawn);
	assert_string_equal(text, inner);
	free(text);
	inner[strlen(inner) - 1] = '\0';
	spawn.cwd = inner;
	spawn.cwd_fd = -1;
	text = output_of(spawn);
	assert_memory_equal(text, inner, strlen(inner));
	free(text);
	free(real);
}

static void
test_proc__relative_search_paths_count_from_the_directory(void **state)
{
	char *argv[] = {(char[]){"tool"}, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	char *text;

	(void)state;
	assert_int_equal(mkdirat(dir.fd, "bin", 0700), 0);
	test_file_write(dir.fd, "bin/tool", "#!/bin/sh\necho found\n");
	assert_int_equal(fchmodat(dir.fd, "bin/tool", 0700, 0), 0);
	spawn.path = "tool";
	spawn.argv = argv;
	spawn.search_path = "/nowhere:bin";
	spawn.cwd = dir.path;
	text = output_of(spawn);
	assert_string_equal(text, "found\n");
	free(text);
}

static void
test_proc__the_start_line(void **state)
{
	char *argv[] = {(char[]){"true"}, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	struct proc_child child;
	char expected[128], *text;
	int fd = openat(dir.fd, "log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	(void)state;
	spawn.path = "true";
	spawn.argv = argv;
	spawn.envp = no_environment;
	spawn.log_fd = fd;
	spawn.log_before = slice_of("{\"pid\":");
	spawn.log_between = slice_of(",\"start\":");
	spawn.log_after = slice_of("}\n");
	/* The number of the log is taken in the child: the line must be written before. */
	spawn.fds[0] = (struct proc_fd){dir.fd, fd};
	spawn.nfds = 1;
	child = child_start(&spawn);
	snprintf(expected, sizeof(expected), "{\"pid\":%d,\"start\":%llu}\n", (int)child.id.pid,
	    (unsigned long long)child.id.start_ticks);
	child_finish(&child);
	text = test_file_read(dir.fd, "log");
	assert_string_equal(text, expected);
	free(text);
	fd_close(&fd);
}

/* ---- What goes wrong ---- */

static char huge[200 * 1024];

struct failing {
	const char *path, *cwd, *search_path;
	const char *argument;
	const char *step;
	int sys;
	enum err_code code;
	const char *message, *hint;
};

static void
check_failing(const struct failing *f)
{
	char *argv[] = {(char[]){"x"}, (char *)(uintptr_t)f->argument, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	struct proc_child child = {.pidfd = -77};
	struct proc_failure failure = {0};
	struct err e = {0};

	spawn.path = f->path;
	spawn.cwd = f->cwd;
	spawn.search_path = f->search_path;
	spawn.argv = argv;
	spawn.envp = no_environment;
	assert_fails(proc_start(&spawn, &child, &failure, &e), f->code, e);
	assert_string_equal(failure.step, f->step);
	assert_int_equal(failure.sys, f->sys);
	assert_int_equal(e.sys, f->sys);
	assert_non_null(strstr(e.msg, f->message));
	if (f->hint != NULL)
		assert_string_equal(e.hint, f->hint);
	assert_int_equal(child.pidfd, -77);
}

static void
make_program(const char *name, const char *text, mode_t mode)
{
	test_file_write(dir.fd, name, text);
	assert_int_equal(fchmodat(dir.fd, name, mode, 0), 0);
}

static void
test_proc__failures_are_told_exactly(void **state)
{
	static const struct failing cases[] = {
	    {"clade", NULL, ".", NULL, "execute", ENOENT, ERR_ENVIRONMENT,
		"cannot execute \"clade\": No such file or directory", "did you mean \"claude\"?"},
	    {"zzzzzzz", NULL, ".", NULL, "execute", ENOENT, ERR_ENVIRONMENT, "\"zzzzzzz\"", ""},
	    {"", NULL, ".", NULL, "execute", ENOENT, ERR_ENVIRONMENT, "\"\"", ""},
	    {"./none", NULL, NULL, NULL, "execute", ENOENT, ERR_ENVIRONMENT, "\"./none\"", ""},
	    {"plain", NULL, "/nowhere:.", NULL, "execute", EACCES, ERR_ENVIRONMENT,
		"\"plain\": Permission denied", ""},
	    {"./plain", NULL, NULL, NULL, "execute", EACCES, ERR_ENVIRONMENT, "Permission denied", ""},
	    {"directory", NULL, ".", NULL, "execute", EACCES, ERR_ENVIRONMENT, "Permission", NULL},
	    {"./directory", NULL, NULL, NULL, "execute", EACCES, ERR_ENVIRONMENT, "Permission", NULL},
	    {"./plain/x", NULL, NULL, NULL, "execute", ENOTDIR, ERR_ENVIRONMENT, "directory", NULL},
	    {"nohead", NULL, ".", NULL, "execute", ENOEXEC, ERR_ENVIRONMENT, "format error",
		"a script needs a first line such as #!/bin/sh"},
	    {"./nointerpreter", NULL, NULL, NULL, "execute", ENOENT, ERR_ENVIRONMENT, "No such file",
		"./nointerpreter exists; the interpreter in its first line does not"},
	    {"true", "missing", NULL, NULL, "change directory", ENOENT, ERR_ENVIRONMENT,
		"cannot change to directory \"missing\"", ""},
	    {"true", "plain", NULL, NULL, "change directory", ENOTDIR, ERR_ENVIRONMENT,
		"\"plain\": Not a directory", ""},
	    {"/bin/true", "missing", NULL, NULL, "change directory", ENOENT, ERR_ENVIRONMENT,
		"cannot change to directory \"missing\"", ""},
	    {"true", "missing", "/bin:", NULL, "change directory", ENOENT, ERR_ENVIRONMENT,
		"cannot change to directory \"missing\"", ""},
	    {"true", NULL, NULL, huge, "execute", E2BIG, ERR_ENVIRONMENT, "Argument list too long",
		"arguments and environment are too large together: pass data by file"},
	};
	char old[PATH_MAX];
	size_t i;

	(void)state;
	make_program("claude", "#!/bin/sh\n", 0700);
	make_program("plain", "", 0600);
	make_program("nohead", "echo never\n", 0700);
	make_program("nointerpreter", "#!/no/such/interpreter\n", 0700);
	assert_int_equal(mkdirat(dir.fd, "directory", 0700), 0);
	memset(huge, 'x', sizeof(huge) - 1);
	assert_non_null(getcwd(old, sizeof(old)));
	assert_int_equal(chdir(dir.path), 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_failing(&cases[i]);
	assert_int_equal(chdir(old), 0);
}

static void
test_proc__steps_of_the_child_that_fail(void **state)
{
	char *argv[] = {(char[]){"true"}, NULL};
	struct proc_spawn base = PROC_SPAWN_INIT, spawn;
	struct proc_child child;
	struct proc_failure failure;
	struct err e = {0};
	int closed = dup(dir.fd), full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	close(closed);
	base.path = "true";
	base.argv = argv;
	base.envp = no_environment;

	spawn = base;
	spawn.fds[0] = (struct proc_fd){closed, 1};
	spawn.nfds = 1;
	assert_fails(proc_start(&spawn, &child, &failure, &e), ERR_IO, e);
	assert_string_equal(failure.step, "duplicate descriptors");
	assert_int_equal(failure.sys, EBADF);
	/* In the way of another, so that it is moved first. */
	spawn.fds[1] = (struct proc_fd){dir.fd, closed};
	spawn.nfds = 2;
	assert_fails(proc_start(&spawn, &child, &failure, &e), ERR_IO, e);
	assert_string_equal(failure.step, "duplicate descriptors");

	spawn = base;
	spawn.log_fd = full;
	spawn.log_before = slice_of("x");
	assert_fails(proc_start(&spawn, &child, &failure, &e), ERR_NOSPACE, e);
	assert_string_equal(failure.step, "write the start line");
	assert_int_equal(failure.sys, ENOSPC);

	spawn = base;
	spawn.rlimits[0] = (struct proc_rlimit){RLIMIT_NOFILE, {200, 100}};
	spawn.nrlimits = 1;
	assert_fails(proc_start(&spawn, &child, &failure, &e), ERR_ENVIRONMENT, e);
	assert_string_equal(failure.step, "set a limit");
	assert_int_equal(failure.sys, EINVAL);

	spawn = base;
	spawn.die_with = getppid();
	assert_fails(proc_start(&spawn, &child, &failure, &e), ERR_IO, e);
	assert_string_equal(failure.step, "tie to the parent");

	spawn = base;
	spawn.cwd_fd = full;
	assert_fails(proc_start(&spawn, &child, NULL, &e), ERR_ENVIRONMENT, e);
	assert_fails(proc_start(&spawn, &child, NULL, NULL), ERR_ENVIRONMENT, e);
	fd_close(&full);
}

static void
test_proc__a_start_without_memory(void **state)
{
	char *argv[] = {(char[]){"x"}, NULL};
	struct proc_spawn spawn = PROC_SPAWN_INIT;
	struct proc_child child = {.pidfd = -1};
	struct err e = {0};
	unsigned long n;

	(void)state;
	spawn.path = "true";
	spawn.argv = argv;
	spawn.envp = no_environment;
	for (n = 1;; n++) {
		fault_alloc_arm(n, false);
		if (proc_start(&spawn, &child, NULL, &e) == 0)
			break;
		assert_true(fault_alloc_disarm());
		assert_int_equal(e.code, ERR_NOMEM);
	}
	assert_false(fault_alloc_disarm());
	assert_true(n > 1);
	child_finish(&child);
	/* A hint is a favour: without memory for it the error is the same. */
	make_program("claude", "#!/bin/sh\n", 0700);
	spawn.path = "clade";
	spawn.search_path = "/nowhere:.";
	spawn.cwd = dir.path;
	for (n = 2; n < 20; n++) {
		fault_alloc_arm(n, true);
		assert_int_equal(proc_start(&spawn, &child, NULL, &e), -1);
		fault_alloc_disarm();
		assert_true(e.code == ERR_ENVIRONMENT || e.code == ERR_NOMEM);
	}
	assert_string_equal(e.hint, "did you mean \"claude\"?");
}


#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    TEST(test_proc__descriptors_are_mapped_whatever_collides),
    TEST(test_proc__standard_descriptors_can_be_exchanged),
    TEST(test_proc__nothing_that_was_inherited_goes_on),
    TEST(test_proc__signals_are_as_new),
    TEST(test_proc__without_clone3),
    TEST(test_proc__sessions_and_groups),
    TEST(test_proc__start_time_is_what_proc_shows),
    TEST(test_proc__umask_priority_and_limits),
    TEST(test_proc__directories),
    TEST(test_proc__relative_search_paths_count_from_the_directory),
    TEST(test_proc__the_start_line),
    TEST(test_proc__failures_are_told_exactly),
    TEST(test_proc__steps_of_the_child_that_fail),
    TEST(test_proc__a_start_without_memory),
};

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "fds") == 0)
		return child_list_fds(argv[2]);
	if (argc == 2 && strcmp(argv[1], "pause") == 0)
		child_pause();
	/* As those that were ignored by whoever executed this program. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGRTMAX, SIG_IGN);
	ignore_by_the_kernel(32);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
