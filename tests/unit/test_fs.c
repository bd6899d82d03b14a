#include "test.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_alloc.h"
#include "fault_fs.h"
#include "flowsup/fs.h"

static struct test_dir dir;
static struct fault_fs *faults;
static int fds_before;

static int
set_up(void **state)
{
	(void)state;
	fds_before = test_count_fds();
	test_dir_make(&dir);
	faults = fault_fs_new();
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	fault_fs_free(faults);
	test_dir_remove(&dir);
	assert_int_equal(test_count_fds(), fds_before);
	return 0;
}

static int
create(const char *name)
{
	int fd = faults->ops.openat(&faults->ops, "open", dir.fd, name,
	    O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	return fd;
}

static void
check_content(const char *name, const char *wanted)
{
	char *text = test_file_read(dir.fd, name);

	assert_string_equal(text, wanted);
	free(text);
}

static bool
exists(const char *name)
{
	struct stat st;

	return fstatat(dir.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- On any table ---- */

static void
test_fs__writes_go_on_after_interrupts_and_short_ones(void **state)
{
	struct err e = {0};
	int fd = create("f");

	(void)state;
	fault_fs_add(faults, (struct fault){.kind = FAULT_FAIL, .seam = "w", .sys = EINTR});
	fault_fs_add(faults, (struct fault){.kind = FAULT_SHORT, .seam = "w", .call = 2, .bytes = 3});
	fault_fs_add(faults, (struct fault){.kind = FAULT_SHORT, .seam = "w", .call = 3, .bytes = 1});
	assert_works(fs_write_all(&faults->ops, "w", fd, slice_of("0123456789"), &e), e);
	assert_int_equal(fault_fs_calls(faults, "w"), 4);
	assert_int_equal(fault_fs_bytes(faults, "w"), 10);
	check_content("f", "0123456789");
	assert_works(fs_close(&faults->ops, "c", &fd, &e), e);
	assert_int_equal(fd, -1);
}

static void
test_fs__writes_that_fail(void **state)
{
	static const struct {
		int sys;
		enum err_code code;
	} cases[] = {{EIO, ERR_IO}, {ENOSPC, ERR_NOSPACE}, {EDQUOT, ERR_NOSPACE}};
	struct err e = {0};
	int fd = create("f");
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fault_fs_reset(faults);
		fault_fs_add(faults,
		    (struct fault){.kind = FAULT_FAIL, .seam = "w", .sys = cases[i].sys});
		assert_fails(fs_write_all(&faults->ops, "w", fd, slice_of("x"), &e), cases[i].code, e);
		assert_int_equal(e.sys, cases[i].sys);
	}
	fault_fs_reset(faults);
	fault_fs_add(faults, (struct fault){.kind = FAULT_SPACE, .seam = "w", .bytes = 4});
	assert_works(fs_write_all(&faults->ops, "w", fd, slice_of("ab"), &e), e);
	assert_fails(fs_write_all(&faults->ops, "w", fd, slice_of("cdef"), &e), ERR_NOSPACE, e);
	assert_fails(fs_write_all(&faults->ops, "w", fd, slice_of("g"), &e), ERR_NOSPACE, e);
	check_content("f", "abcd");
	fd_close(&fd);
}

static void
test_fs__whole_files_are_read(void **state)
{
	static char large[300000];
	struct buf to = {0};
	struct err e = {0};
	int fd;

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	test_file_write(dir.fd, "f", large);
	fd = openat(dir.fd, "f", O_RDONLY | O_CLOEXEC);
	fault_fs_add(faults, (struct fault){.kind = FAULT_FAIL, .seam = "r", .call = 2, .sys = EINTR});
	fault_fs_add(faults, (struct fault){.kind = FAULT_SHORT, .seam = "r", .call = 4, .bytes = 1});
	buf_puts(&to, "before ");
	assert_works(fs_read_all(&faults->ops, "r", fd, sizeof(large) - 1, &to, &e), e);
	assert_int_equal(to.len, 7 + sizeof(large) - 1);
	assert_memory_equal(to.data, "before xxx", 10);
	assert_string_equal(to.data + 7, large);
	fd_close(&fd);
	buf_clear(&to);
}

static void
test_fs__reads_that_fail_leave_the_buffer(void **state)
{
	struct buf to = {0};
	struct err e = {0};
	int fd;

	(void)state;
	test_file_write(dir.fd, "f", "0123456789");
	fd = openat(dir.fd, "f", O_RDONLY | O_CLOEXEC);
	buf_puts(&to, "kept");
	assert_fails(fs_read_all(&fs_real, "r", fd, 9, &to, &e), ERR_LIMIT, e);
	assert_string_equal(buf_text(&to), "kept");
	assert_fails(fs_read_all(&fs_real, "r", fd, 0, &to, &e), ERR_LIMIT, e);
	fault_fs_add(faults, (struct fault){.kind = FAULT_SHORT, .seam = "r", .bytes = 5});
	fault_fs_add(faults, (struct fault){.kind = FAULT_FAIL, .seam = "r", .call = 2, .sys = EIO});
	assert_fails(fs_read_all(&faults->ops, "r", fd, 100, &to, &e), ERR_IO, e);
	assert_string_equal(buf_text(&to), "kept");
	buf_clear(&to);
	fault_alloc_arm(1, false);
	assert_fails(fs_read_all(&fs_real, "r", fd, 100, &to, &e), ERR_NOMEM, e);
	assert_true(fault_alloc_disarm());
	assert_string_equal(buf_text(&to), "");
	buf_reset(&to);
	assert_works(fs_read_all(&fs_real, "r", fd, 10, &to, &e), e);
	assert_string_equal(buf_text(&to), "0123456789");
	fd_close(&fd);
	buf_clear(&to);
}

static void
test_fs__a_directory_sync_may_be_unknown(void **state)
{
	struct err e = {0};
	bool known = false;

	(void)state;
	assert_works(fs_sync_dir(&faults->ops, "d", dir.fd, &known, &e), e);
	assert_true(known);
	fault_fs_add(faults, (struct fault){.kind = FAULT_FAIL, .seam = "d", .sys = EINVAL});
	assert_works(fs_sync_dir(&faults->ops, "d", dir.fd, &known, &e), e);
	assert_false(known);
	fault_fs_add(faults, (struct fault){.kind = FAULT_FAIL, .seam = "d", .sys = EIO});
	assert_fails(fs_sync_dir(&faults->ops, "d", dir.fd, NULL, &e), ERR_IO, e);
}

static void
test_fs__close_is_called_once(void **state)
{
	struct err e = {0};
	int fd = create("f");

	(void)state;
	fault_fs_add(faults, (struct fault){.kind = FAULT_FAIL, .seam = "c", .sys = EIO});
	assert_fails(fs_close(&faults->ops, "c", &fd, &e), ERR_IO, e);
	assert_int_equal(fd, -1);
	fd = create("f");
	fault_fs_add(faults, (struct fault){.kind = FAULT_FAIL, .seam = "c", .sys = EINTR});
	assert_works(fs_close(&faults->ops, "c", &fd, &e), e);
	assert_int_equal(fd, -1);
}

/* ---- Private directories ---- */

static void
test_fs__private_directories(void **state)
{
	struct err e = {0};
	int fd;

	(void)state;
	assert_int_equal(mkdirat(dir.fd, "good", 0755), 0);
	assert_int_equal(mkdirat(dir.fd, "group", 0700), 0);
	assert_int_equal(fchmodat(dir.fd, "group", 0770, 0), 0);
	assert_int_equal(mkdirat(dir.fd, "others", 0700), 0);
	assert_int_equal(fchmodat(dir.fd, "others", 0702, 0), 0);
	assert_int_equal(symlinkat("good", dir.fd, "link"), 0);
	test_file_write(dir.fd, "file", "");
	fd = fs_open_private_dir(dir.fd, "good", &e);
	assert_works(fd, e);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	fd_close(&fd);
	assert_fails(fs_open_private_dir(dir.fd, "group", &e), ERR_PERMISSION, e);
	/* It can be pasted wherever one is. */
	assert_int_equal(strncmp(e.hint, "chmod go-w /", strlen("chmod go-w /")), 0);
	assert_non_null(strstr(e.hint, "/group"));
	assert_fails(fs_open_private_dir(dir.fd, "others", &e), ERR_PERMISSION, e);
	assert_fails(fs_open_private_dir(dir.fd, "link", &e), ERR_PERMISSION, e);
	assert_fails(fs_open_private_dir(dir.fd, "file", &e), ERR_PERMISSION, e);
	assert_fails(fs_open_private_dir(dir.fd, "none", &e), ERR_NOTFOUND, e);
}

static void
test_fs__directories_are_made_on_the_way(void **state)
{
	char path[1024];
	struct stat st;
	struct err e = {0};
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s//a/./b/c/", dir.path);
	fd = fs_make_private_dirs(path, &e);
	assert_works(fd, e);
	fd_close(&fd);
	assert_int_equal(fstatat(dir.fd, "a/b/c", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	/* Again: nothing to do. */
	fd = fs_make_private_dirs(path, &e);
	assert_works(fd, e);
	fd_close(&fd);
	/* A link on the way is followed, as the last it is not. */
	assert_int_equal(symlinkat("a", dir.fd, "link"), 0);
	snprintf(path, sizeof(path), "%s/link/d", dir.path);
	fd = fs_make_private_dirs(path, &e);
	assert_works(fd, e);
	fd_close(&fd);
	assert_true(exists("a/d"));
	snprintf(path, sizeof(path), "%s/link", dir.path);
	assert_fails(fs_make_private_dirs(path, &e), ERR_PERMISSION, e);
	test_file_write(dir.fd, "file", "");
	snprintf(path, sizeof(path), "%s/file/x", dir.path);
	assert_fails(fs_make_private_dirs(path, &e), ERR_CREATE, e);
	assert_memory_equal(e.msg, path, strlen(path));
	snprintf(path, sizeof(path), "%s/%0300d", dir.path, 0);
	assert_fails(fs_make_private_dirs(path, &e), ERR_CREATE, e);
	assert_int_equal(e.sys, ENAMETOOLONG);
}

/* ---- Small files ---- */

static void
test_fs__private_files(void **state)
{
	struct buf to = {0};
	struct err e = {0};
	int fd;

	(void)state;
	test_file_write(dir.fd, "good", "content");
	assert_works(fs_read_private_file(dir.fd, "good", 7, &to, &e), e);
	assert_string_equal(buf_text(&to), "content");
	assert_fails(fs_read_private_file(dir.fd, "good", 6, &to, &e), ERR_LIMIT, e);
	assert_fails(fs_read_private_file(dir.fd, "none", 6, &to, &e), ERR_NOTFOUND, e);
	assert_int_equal(symlinkat("good", dir.fd, "link"), 0);
	assert_fails(fs_read_private_file(dir.fd, "link", 9, &to, &e), ERR_IDENTITY, e);
	assert_int_equal(linkat(dir.fd, "good", dir.fd, "twin", 0), 0);
	assert_fails(fs_read_private_file(dir.fd, "good", 9, &to, &e), ERR_IDENTITY, e);
	/* A reader of a pipe would wait for a writer. */
	assert_int_equal(mkfifoat(dir.fd, "fifo", 0600), 0);
	assert_fails(fs_read_private_file(dir.fd, "fifo", 9, &to, &e), ERR_IDENTITY, e);
	assert_int_equal(mkdirat(dir.fd, "directory", 0700), 0);
	assert_fails(fs_read_private_file(dir.fd, "directory", 9, &to, &e), ERR_IDENTITY, e);
	assert_fails(fs_read_private_file(AT_FDCWD, "/dev/null", 9, &to, &e), ERR_IDENTITY, e);
	if (geteuid() == 0) {
		test_file_write(dir.fd, "theirs", "x");
		assert_int_equal(fchownat(dir.fd, "theirs", 12345, 12345, 0), 0);
		assert_fails(fs_read_private_file(dir.fd, "theirs", 9, &to, &e), ERR_PERMISSION, e);
		assert_int_equal(mkdirat(dir.fd, "their", 0700), 0);
		assert_int_equal(fchownat(dir.fd, "their", 12345, 12345, 0), 0);
		fd = fs_open_private_dir(dir.fd, "their", &e);
		assert_fails(fd, ERR_PERMISSION, e);
	}
	assert_string_equal(buf_text(&to), "content");
	buf_clear(&to);
}

static void
test_fs__files_are_created_and_replaced(void **state)
{
	struct stat st;
	struct err e = {0};

	(void)state;
	assert_works(fs_create_file(dir.fd, "f", slice_of("one"), &e), e);
	check_content("f", "one");
	assert_int_equal(fstatat(dir.fd, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_fails(fs_create_file(dir.fd, "f", slice_of("two"), &e), ERR_CREATE, e);
	assert_int_equal(e.sys, EEXIST);
	assert_int_equal(symlinkat("nowhere", dir.fd, "link"), 0);
	assert_fails(fs_create_file(dir.fd, "link", slice_of("two"), &e), ERR_CREATE, e);
	assert_false(exists("nowhere"));
	assert_works(fs_replace_file(dir.fd, "f", slice_of("three"), &e), e);
	check_content("f", "three");
	/* A link is replaced, not followed. */
	assert_int_equal(symlinkat("f", dir.fd, "tof"), 0);
	assert_works(fs_replace_file(dir.fd, "tof", slice_of("four"), &e), e);
	check_content("f", "three");
	check_content("tof", "four");
	assert_works(fs_replace_file(dir.fd, "new", slice_of(""), &e), e);
	check_content("new", "");
	assert_int_equal(mkdirat(dir.fd, "d", 0700), 0);
	assert_fails(fs_replace_file(dir.fd, "d", slice_of("x"), &e), ERR_IO, e);
}

static void
test_fs__what_could_not_be_written_is_taken_away(void **state)
{
	static char large[1 << 20];
	struct rlimit before, small;
	struct err e = {0};

	(void)state;
	/* A limit on the size of files is a full disk that everybody can make. */
	assert_works(fs_create_file(dir.fd, "f", slice_of("old"), &e), e);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 1000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	memset(large, 'x', sizeof(large));
	assert_int_equal(fs_create_file(dir.fd, "g", (struct slice){large, sizeof(large)}, &e), -1);
	assert_int_equal(fs_replace_file(dir.fd, "f", (struct slice){large, sizeof(large)}, &e), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(e.sys, EFBIG);
	assert_false(exists("g"));
	check_content("f", "old");
	assert_int_equal(unlinkat(dir.fd, "f", 0), 0);
	/* No temporary file either: the directory is empty. */
	assert_int_equal(unlinkat(AT_FDCWD, dir.path, AT_REMOVEDIR), 0);
}

/* ---- Trees ---- */

static void
make_chain(int at, int depth)
{
	int fd = dup(at), next, i;

	for (i = 0; i < depth; i++) {
		assert_int_equal(mkdirat(fd, "d", 0700), 0);
		test_file_write(fd, "f", "x");
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
}

static void
test_fs__trees_are_removed_at_any_depth(void **state)
{
	enum { DEPTH = 1500 };
	struct rlimit before, few;
	struct err e = {0};

	(void)state;
	assert_int_equal(mkdirat(dir.fd, "tree", 0700), 0);
	make_chain(dir.fd, DEPTH);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_works(fs_remove_tree(dir.fd, "d", &e), e);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_false(exists("d"));
	assert_true(exists("tree"));
}

static void
test_fs__trees_with_everything_in_them(void **state)
{
	struct err e = {0};
	char name[32];
	int i;

	(void)state;
	assert_int_equal(mkdirat(dir.fd, "kept", 0700), 0);
	test_file_write(dir.fd, "kept/file", "x");
	assert_int_equal(mkdirat(dir.fd, "t", 0700), 0);
	assert_int_equal(symlinkat("../kept", dir.fd, "t/link"), 0);
	assert_int_equal(mkfifoat(dir.fd, "t/fifo", 0600), 0);
	assert_int_equal(mkdirat(dir.fd, "t/closed", 0700), 0);
	test_file_write(dir.fd, "t/closed/file", "x");
	assert_int_equal(fchmodat(dir.fd, "t/closed", 0000, 0), 0);
	assert_int_equal(mkdirat(dir.fd, "t/readonly", 0700), 0);
	test_file_write(dir.fd, "t/readonly/file", "x");
	assert_int_equal(fchmodat(dir.fd, "t/readonly", 0500, 0), 0);
	assert_int_equal(mkdirat(dir.fd, "t/many", 0700), 0);
	for (i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "t/many/%d", i);
		if (i % 3 == 0)
			assert_int_equal(mkdirat(dir.fd, name, 0700), 0);
		else
			test_file_write(dir.fd, name, "");
	}
	assert_works(fs_remove_tree(dir.fd, "t", &e), e);
	assert_false(exists("t"));
	assert_true(exists("kept/file"));
	/* Nothing, a file, a link. */
	assert_works(fs_remove_tree(dir.fd, "t", &e), e);
	assert_works(fs_remove_tree(dir.fd, "kept/file", &e), e);
	assert_false(exists("kept/file"));
	assert_int_equal(symlinkat("kept", dir.fd, "link"), 0);
	assert_works(fs_remove_tree(dir.fd, "link", &e), e);
	assert_true(exists("kept"));
}

static void
test_fs__a_tree_without_memory(void **state)
{
	struct err e = {0};
	unsigned long n;

	(void)state;
	make_chain(dir.fd, 40);
	for (n = 1;; n++) {
		e = (struct err){0};
		fault_alloc_arm(n, false);
		if (fs_remove_tree(dir.fd, "d", &e) == 0)
			break;
		assert_true(fault_alloc_disarm());
		assert_true(e.code == ERR_NOMEM || e.code == ERR_IO);
	}
	fault_alloc_disarm();
	assert_false(exists("d"));
	assert_true(n > 3);
}

static void
test_fs__kinds(void **state)
{
	const char *name = NULL;
	struct err e = {0};
	bool remote = true;

	(void)state;
	assert_works(fs_kind(dir.fd, &name, &remote, &e), e);
	assert_non_null(name);
	assert_fails(fs_kind(-1, &name, &remote, &e), ERR_IO, e);
}

/* ---- The table for tests itself ---- */

static void
test_fs__the_order_of_calls_is_recorded(void **state)
{
	struct buf seen = {0};
	struct err e = {0};
	int fd = create("f");

	(void)state;
	assert_works(fs_write_all(&faults->ops, "data", fd, slice_of("x"), &e), e);
	assert_int_equal(faults->ops.fsync(&faults->ops, "sync", fd), 0);
	assert_int_equal(faults->ops.renameat2(&faults->ops, "install", dir.fd, "f", dir.fd, "g", 0), 0);
	assert_works(fs_close(&faults->ops, "close", &fd, &e), e);
	fault_fs_sequence(faults, &seen);
	assert_string_equal(buf_text(&seen),
	    "openat open\nwrite data\nfsync sync\nrenameat2 install\nclose close\n");
	assert_string_equal(faults->calls[3].path, "f");
	assert_string_equal(faults->calls[3].to, "g");
	assert_false(fault_fs_fired(faults));
	buf_clear(&seen);
}

static void
check_killed(struct fault fault, const char *content, const char *last_seam)
{
	struct err e = {0};
	int status, fd;
	pid_t child;

	fault_fs_reset(faults);
	fault_fs_add(faults, fault);
	child = fork();
	if (child == 0) {
		fd = faults->ops.openat(&faults->ops, "open", dir.fd, "k", O_WRONLY | O_CREAT | O_TRUNC,
		    0600);
		fs_write_all(&faults->ops, "write", fd, slice_of("abcdef"), &e);
		faults->ops.fsync(&faults->ops, "sync", fd);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	check_content("k", content);
	assert_string_equal(faults->calls[faults->total - 1].what, last_seam);
	assert_true(fault_fs_fired(faults));
}

static void
test_fs__a_killed_child_can_be_read(void **state)
{
	(void)state;
	check_killed((struct fault){.kind = FAULT_KILL_BEFORE, .seam = "write"}, "", "write");
	check_killed((struct fault){.kind = FAULT_KILL_AFTER, .seam = "write"}, "abcdef", "write");
	check_killed((struct fault){.kind = FAULT_TEAR, .seam = "write", .bytes = 2}, "ab", "write");
	check_killed((struct fault){.kind = FAULT_KILL_BEFORE, .call = 3}, "abcdef", "sync");
}

static void
count_hook(void *arg, const struct fault_call *call)
{
	assert_string_equal(call->path, "f");
	++*(int *)arg;
}

static void
test_fs__hooks_and_faults_that_stay(void **state)
{
	struct stat st;
	int calls = 0, i;

	(void)state;
	test_file_write(dir.fd, "f", "x");
	fault_fs_add(faults, (struct fault){.kind = FAULT_HOOK_BEFORE, .seam = "look", .call = 2,
	    .persistent = true, .hook = count_hook, .arg = &calls});
	for (i = 0; i < 4; i++)
		assert_int_equal(faults->ops.fstatat(&faults->ops, "look", dir.fd, "f", &st, 0), 0);
	assert_int_equal(calls, 3);
	fault_fs_disarm(faults);
	fault_fs_add(faults, (struct fault){.kind = FAULT_FAIL_AFTER, .seam = "remove", .sys = EIO});
	assert_int_equal(faults->ops.unlinkat(&faults->ops, "remove", dir.fd, "f", 0), -1);
	assert_int_equal(errno, EIO);
	assert_false(exists("f"));
	assert_int_equal(faults->ops.unlinkat(&faults->ops, "remove", dir.fd, "f", 0), -1);
	assert_int_equal(errno, ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    TEST(test_fs__writes_go_on_after_interrupts_and_short_ones),
    TEST(test_fs__writes_that_fail),
    TEST(test_fs__whole_files_are_read),
    TEST(test_fs__reads_that_fail_leave_the_buffer),
    TEST(test_fs__a_directory_sync_may_be_unknown),
    TEST(test_fs__close_is_called_once),
    TEST(test_fs__private_directories),
    TEST(test_fs__directories_are_made_on_the_way),
    TEST(test_fs__private_files),
    TEST(test_fs__files_are_created_and_replaced),
    TEST(test_fs__what_could_not_be_written_is_taken_away),
    TEST(test_fs__trees_are_removed_at_any_depth),
    TEST(test_fs__trees_with_everything_in_them),
    TEST(test_fs__a_tree_without_memory),
    TEST(test_fs__kinds),
    TEST(test_fs__the_order_of_calls_is_recorded),
    TEST(test_fs__a_killed_child_can_be_read),
    TEST(test_fs__hooks_and_faults_that_stay),
};
TEST_MAIN("fs", tests)
