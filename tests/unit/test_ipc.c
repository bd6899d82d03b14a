#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_alloc.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"

static struct test_dir dir;
static int pair[2] = {-1, -1};
static int fds_before;

static int
set_up(void **state)
{
	struct err e = {0};

	(void)state;
	fds_before = test_count_fds();
	test_dir_make(&dir);
	assert_works(ipc_pair(pair, &e), e);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	test_dir_remove(&dir);
	assert_int_equal(test_count_fds(), fds_before);
	return 0;
}

static bool
is_cloexec_nonblocking(int fd)
{
	return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

/* Makes a directory whose path is far longer than a socket's address, and opens it. */
static int
open_deep_dir(void)
{
	int at = dup(dir.fd), next, i;
	char name[100];

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (i = 0; i < 4; i++) {
		assert_int_equal(mkdirat(at, name, 0700), 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(at);
		at = next;
	}
	return at;
}

static void
test_ipc__a_connection_in_a_deep_directory(void **state)
{
	int deep = open_deep_dir(), listener, client, server;
	struct buf got = {0};
	struct err e = {0};
	struct stat st;
	pid_t peer = 0;

	(void)state;
	listener = ipc_listen(deep, "supervisor.sock", 4, &e);
	assert_works(listener, e);
	assert_int_equal(fstatat(deep, "supervisor.sock", &st, 0), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_fails(ipc_accept(listener, NULL, &e), ERR_BUSY, e);
	client = ipc_connect(deep, "supervisor.sock", &e);
	assert_works(client, e);
	server = ipc_accept(listener, &peer, &e);
	assert_works(server, e);
	assert_int_equal(peer, getpid());
	assert_true(is_cloexec_nonblocking(listener));
	assert_true(is_cloexec_nonblocking(client));
	assert_true(is_cloexec_nonblocking(server));
	assert_int_equal(ipc_send(client, slice_of("{}"), -1, &e), 0);
	assert_int_equal(ipc_recv(server, &got, NULL, &e), 1);
	assert_string_equal(buf_text(&got), "{}");
	fd_close(&client);
	assert_fails(ipc_recv(server, &got, NULL, &e), ERR_NOTFOUND, e);
	assert_fails(ipc_send(server, slice_of("x"), -1, &e), ERR_IO, e);
	fd_close(&server);
	fd_close(&listener);
	buf_clear(&got);
	fd_close(&deep);
}

static void
test_ipc__nobody_listens(void **state)
{
	struct err e = {0};
	int listener, first;

	(void)state;
	assert_fails(ipc_connect(dir.fd, "s", &e), ERR_NOTFOUND, e);
	listener = ipc_listen(dir.fd, "s", 0, &e);
	assert_works(listener, e);
	assert_fails(ipc_listen(dir.fd, "s", 0, &e), ERR_BUSY, e);
	first = ipc_connect(dir.fd, "s", &e);
	assert_works(first, e);
	assert_fails(ipc_connect(dir.fd, "s", &e), ERR_BUSY, e);
	fd_close(&first);
	fd_close(&listener);
	/* The file is still there. */
	assert_fails(ipc_connect(dir.fd, "s", &e), ERR_NOTFOUND, e);
	assert_int_equal(e.sys, ECONNREFUSED);
}

static void
test_ipc__packets_keep_their_bounds(void **state)
{
	struct buf got = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(ipc_recv(pair[1], &got, NULL, &e), 0);
	assert_int_equal(ipc_send(pair[0], slice_of("one"), -1, &e), 0);
	assert_int_equal(ipc_send(pair[0], (struct slice){"t\0o", 3}, -1, &e), 0);
	assert_int_equal(ipc_recv(pair[1], &got, NULL, &e), 1);
	assert_string_equal(buf_text(&got), "one");
	assert_int_equal(ipc_recv(pair[1], &got, NULL, &e), 1);
	assert_int_equal(got.len, 3);
	assert_memory_equal(got.data, "t\0o", 4);
	assert_int_equal(ipc_recv(pair[1], &got, NULL, &e), 0);
	assert_int_equal(got.len, 0);
	buf_clear(&got);
}

static void
test_ipc__sizes_at_the_limit(void **state)
{
	static char bytes[IPC_MAX_PACKET + 1];
	struct buf got = {0};
	struct err e = {0};

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(ipc_send(pair[0], (struct slice){bytes, IPC_MAX_PACKET}, -1, &e), 0);
	assert_int_equal(ipc_recv(pair[1], &got, NULL, &e), 1);
	assert_int_equal(got.len, IPC_MAX_PACKET);
	assert_fails(ipc_send(pair[0], (struct slice){bytes, IPC_MAX_PACKET + 1}, -1, &e),
	    ERR_PROTOCOL, e);
	assert_fails(ipc_send(pair[0], (struct slice){bytes, 0}, -1, &e), ERR_PROTOCOL, e);
	/* From a peer that does not use our code. */
	assert_int_equal(send(pair[0], bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_fails(ipc_recv(pair[1], &got, NULL, &e), ERR_PROTOCOL, e);
	assert_int_equal(got.len, 0);
	assert_int_equal(send(pair[0], bytes, 0, 0), 0);
	assert_fails(ipc_recv(pair[1], &got, NULL, &e), ERR_PROTOCOL, e);
	buf_clear(&got);
}

static void
test_ipc__a_full_queue_is_told(void **state)
{
	static char bytes[IPC_MAX_PACKET];
	struct buf got = {0};
	struct err e = {0};
	int sent = 0, result;

	(void)state;
	while ((result = ipc_send(pair[0], (struct slice){bytes, sizeof(bytes)}, -1, &e)) == 0)
		sent++;
	assert_int_equal(result, 1);
	assert_true(sent > 0);
	while (ipc_recv(pair[1], &got, NULL, &e) == 1)
		sent--;
	assert_int_equal(sent, 0);
	buf_clear(&got);
}

static void
test_ipc__descriptors_travel(void **state)
{
	struct buf got = {0}, content = {0};
	struct err e = {0};
	int memory, passed = -1;

	(void)state;
	memory = ipc_memfd("environment", slice_of("secret"), &e);
	assert_works(memory, e);
	assert_int_equal(ipc_send(pair[0], slice_of("a"), memory, &e), 0);
	assert_int_equal(ipc_recv(pair[1], &got, &passed, &e), 1);
	assert_true(passed >= 0 && passed != memory);
	assert_true((fcntl(passed, F_GETFD) & FD_CLOEXEC) != 0);
	assert_works(ipc_memfd_read(passed, 6, &content, &e), e);
	assert_string_equal(buf_text(&content), "secret");
	fd_close(&passed);
	/* Not asked for: closed, which the count at the end proves. */
	assert_int_equal(ipc_send(pair[0], slice_of("b"), memory, &e), 0);
	assert_int_equal(ipc_recv(pair[1], &got, NULL, &e), 1);
	assert_int_equal(ipc_send(pair[0], slice_of("c"), -1, &e), 0);
	assert_int_equal(ipc_recv(pair[1], &got, &passed, &e), 1);
	assert_int_equal(passed, -1);
	passed = 77;
	assert_int_equal(ipc_recv(pair[1], &got, &passed, &e), 0);
	assert_int_equal(passed, -1);
	fd_close(&memory);
	buf_clear(&got);
	buf_clear(&content);
}

/* What our code never sends: two descriptors, or one beside a packet that is too long. */
static void
send_odd(int fd, size_t len, unsigned nfds)
{
	static char bytes[IPC_MAX_PACKET + 1];
	int passed[2] = {dir.fd, dir.fd};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(passed))];
	} room = {{0}};
	struct iovec part = {.iov_base = bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room.bytes,
	    .msg_controllen = CMSG_SPACE(nfds * sizeof(int))};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(nfds * sizeof(int));
	memcpy(CMSG_DATA(head), passed, nfds * sizeof(int));
	assert_int_equal(sendmsg(fd, &msg, 0), len);
}

static void
test_ipc__nonsense_leaves_no_descriptor(void **state)
{
	struct buf got = {0};
	struct err e = {0};
	int passed = -1;

	(void)state;
	send_odd(pair[0], 10, 2);
	assert_fails(ipc_recv(pair[1], &got, &passed, &e), ERR_PROTOCOL, e);
	assert_int_equal(passed, -1);
	send_odd(pair[0], IPC_MAX_PACKET + 1, 1);
	assert_fails(ipc_recv(pair[1], &got, &passed, &e), ERR_PROTOCOL, e);
	assert_int_equal(passed, -1);
	buf_clear(&got);
}

static void
test_ipc__memfds_are_sealed(void **state)
{
	struct buf content = {0};
	struct err e = {0};
	int memory = ipc_memfd("m", slice_of("12345678"), &e);

	(void)state;
	assert_works(memory, e);
	assert_int_equal(pwrite(memory, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(memory, 4), -1);
	assert_int_equal(ftruncate(memory, 40), -1);
	assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_SEAL), -1);
	assert_fails(ipc_memfd_read(memory, 7, &content, &e), ERR_LIMIT, e);
	assert_int_equal(content.len, 0);
	assert_works(ipc_memfd_read(memory, 8, &content, &e), e);
	/* By position, so that a second reader is not disturbed. */
	assert_works(ipc_memfd_read(memory, 8, &content, &e), e);
	assert_string_equal(buf_text(&content), "1234567812345678");
	fd_close(&memory);
	buf_clear(&content);
}

static void
test_ipc__what_is_not_sealed_is_refused(void **state)
{
	static const unsigned partly[] = {0, F_SEAL_WRITE, F_SEAL_WRITE | F_SEAL_GROW,
	    F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW};
	struct buf content = {0};
	struct err e = {0};
	int fd, pipes[2];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(partly) / sizeof(partly[0]); i++) {
		fd = memfd_create("m", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, partly[i]), 0);
		assert_fails(ipc_memfd_read(fd, 100, &content, &e), ERR_PROTOCOL, e);
		fd_close(&fd);
	}
	test_file_write(dir.fd, "file", "text");
	fd = openat(dir.fd, "file", O_RDONLY | O_CLOEXEC);
	assert_fails(ipc_memfd_read(fd, 100, &content, &e), ERR_PROTOCOL, e);
	fd_close(&fd);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_fails(ipc_memfd_read(pipes[0], 100, &content, &e), ERR_PROTOCOL, e);
	fd_close(&pipes[0]);
	fd_close(&pipes[1]);
	buf_clear(&content);
}

static void
test_ipc__the_end_with_packets_left(void **state)
{
	struct buf got = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(ipc_send(pair[0], slice_of("last"), -1, &e), 0);
	fd_close(&pair[0]);
	assert_int_equal(ipc_recv(pair[1], &got, NULL, &e), 1);
	assert_string_equal(buf_text(&got), "last");
	assert_fails(ipc_recv(pair[1], &got, NULL, &e), ERR_NOTFOUND, e);
	buf_clear(&got);
}

/* Connects as somebody else. Only root can become somebody else. */
static void
connect_as(uid_t uid)
{
	int connected = -1;
	pid_t child = fork();

	if (child == 0) {
		if (setresuid(uid, uid, uid) == 0)
			connected = ipc_connect(dir.fd, "s", NULL);
		_exit(connected >= 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &connected, 0), child);
	assert_int_equal(connected, 0);
}

static void
test_ipc__strangers_are_refused(void **state)
{
	struct err e = {0};
	int listener, fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	listener = ipc_listen(dir.fd, "s", 4, &e);
	assert_works(listener, e);
	assert_int_equal(fchmod(dir.fd, 0711), 0);
	assert_int_equal(fchmodat(dir.fd, "s", 0666, 0), 0);
	connect_as(0);
	fd = ipc_accept(listener, NULL, &e);
	assert_works(fd, e);
	fd_close(&fd);
	connect_as(12345);
	assert_fails(ipc_accept(listener, NULL, &e), ERR_PERMISSION, e);
	fd_close(&listener);
}

static void
test_ipc__without_memory(void **state)
{
	struct buf got = {0};
	struct err e = {0};
	int passed;

	(void)state;
	assert_int_equal(ipc_send(pair[0], slice_of("x"), dir.fd, &e), 0);
	fault_alloc_arm(1, false);
	assert_fails(ipc_recv(pair[1], &got, &passed, &e), ERR_NOMEM, e);
	assert_true(fault_alloc_disarm());
	/* The packet waits until there is room. */
	assert_int_equal(ipc_recv(pair[1], &got, &passed, &e), 1);
	assert_true(passed >= 0);
	fd_close(&passed);
	buf_clear(&got);
}

static void
test_ipc__names_that_do_not_fit(void **state)
{
	char name[200];
	struct err e = {0};

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_fails(ipc_listen(dir.fd, name, 1, &e), ERR_IO, e);
	assert_fails(ipc_connect(dir.fd, name, &e), ERR_IO, e);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    TEST(test_ipc__a_connection_in_a_deep_directory),
    TEST(test_ipc__nobody_listens),
    TEST(test_ipc__packets_keep_their_bounds),
    TEST(test_ipc__sizes_at_the_limit),
    TEST(test_ipc__a_full_queue_is_told),
    TEST(test_ipc__descriptors_travel),
    TEST(test_ipc__nonsense_leaves_no_descriptor),
    TEST(test_ipc__memfds_are_sealed),
    TEST(test_ipc__what_is_not_sealed_is_refused),
    TEST(test_ipc__the_end_with_packets_left),
    TEST(test_ipc__strangers_are_refused),
    TEST(test_ipc__without_memory),
    TEST(test_ipc__names_that_do_not_fit),
};
TEST_MAIN("ipc", tests)
