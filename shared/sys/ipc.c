/* Packets between our processes, on sockets of one machine. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/ipc.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

enum {
	SOCKET_KIND = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
	SEALS_WANTED = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK,
};

/* sun_path has room for 108 bytes; a link in /proc stands for a directory of any length. */
static int
make_address(int dirfd, const char *name, struct sockaddr_un *to, struct err *e)
{
	int n;

	assert(name[0] != '\0' && strchr(name, '/') == NULL);
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (dirfd == AT_FDCWD)
		n = snprintf(to->sun_path, sizeof(to->sun_path), "%s", name);
	else
		n = snprintf(to->sun_path, sizeof(to->sun_path), "/proc/self/fd/%d/%s", dirfd, name);
	if (n < 0 || (size_t)n >= sizeof(to->sun_path))
		return err_sys(e, ERR_IO, ENAMETOOLONG, "socket %.40s...", name);
	return 0;
}

int
ipc_listen(int dirfd, const char *name, int backlog, struct err *e)
{
	struct sockaddr_un address;
	int fd;

	if (make_address(dirfd, name, &address, e) != 0)
		return -1;
	fd = socket(AF_UNIX, SOCKET_KIND, 0);
	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot create a socket");
	/* On Linux the file that bind makes takes its mode from here. */
	if (fchmod(fd, 0600) != 0 ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(fd, backlog) != 0) {
		err_sys(e, errno == EADDRINUSE ? ERR_BUSY : ERR_IO, errno,
		    "cannot listen at socket %s", name);
		fd_close(&fd);
	}
	return fd;
}

static enum err_code
code_of_connect(int sys)
{
	switch (sys) {
	case ENOENT:
	case ECONNREFUSED:
		return ERR_NOTFOUND;
	case EAGAIN:
		return ERR_BUSY;
	case EACCES:
	case EPERM:
		return ERR_PERMISSION;
	default:
		return ERR_IO;
	}
}

int
ipc_connect(int dirfd, const char *name, struct err *e)
{
	struct sockaddr_un address;
	int fd;

	if (make_address(dirfd, name, &address, e) != 0)
		return -1;
	fd = socket(AF_UNIX, SOCKET_KIND, 0);
	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot create a socket");
	/* Between Unix sockets connect(2) never waits when non-blocking: it is done, or refused. */
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		err_sys(e, code_of_connect(errno), errno, "cannot connect to socket %s", name);
		fd_close(&fd);
	}
	return fd;
}

int
ipc_pair(int fds[2], struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCKET_KIND, 0, pair) != 0)
		return err_sys(e, ERR_IO, errno, "cannot create a pair of sockets");
	fds[0] = pair[0];
	fds[1] = pair[1];
	return 0;
}

static int
check_peer(int fd, pid_t *peer, struct err *e)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
		return err_sys(e, ERR_IO, errno, "cannot tell who connected");
	if (who.uid != geteuid() && who.uid != 0)
		return err_set(e, ERR_PERMISSION, "refused a connection of user %ju",
		    (uintmax_t)who.uid);
	if (peer != NULL)
		*peer = who.pid;
	return 0;
}

pid_t
ipc_peer(int fd)
{
	struct ucred who = {0};
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 ? who.pid : 0;
}

int
ipc_accept(int listener, pid_t *peer, struct err *e)
{
	int fd;

	do
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		return err_sys(e, errno == EAGAIN ? ERR_BUSY : ERR_IO, errno, "cannot accept");
	if (check_peer(fd, peer, e) != 0)
		fd_close(&fd);
	return fd;
}

/* Room for one descriptor beside a packet. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static void
attach_fd(struct msghdr *msg, union control *room, int fd)
{
	struct cmsghdr *head;

	memset(room, 0, sizeof(*room));
	msg->msg_control = room->bytes;
	msg->msg_controllen = sizeof(room->bytes);
	head = CMSG_FIRSTHDR(msg);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
}

int
ipc_send(int fd, struct slice packet, int pass_fd, struct err *e)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)packet.data, .iov_len = packet.len};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	union control room;
	ssize_t n;

	/* An empty packet cannot be told from the end of the connection. */
	if (packet.len == 0 || packet.len > IPC_MAX_PACKET)
		return err_set(e, ERR_PROTOCOL, "a packet of %zu bytes: 1 to %d are allowed",
		    packet.len, IPC_MAX_PACKET);
	if (pass_fd >= 0)
		attach_fd(&msg, &room, pass_fd);
	do
		n = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	if (errno == EAGAIN || errno == ENOBUFS)
		return 1;
	return err_sys(e, ERR_IO, errno, "cannot send a packet");
}

/* The descriptors that came with msg: the first to *first, any more are closed. How many. */
static unsigned
take_fds(struct msghdr *msg, int *first)
{
	struct cmsghdr *head;
	unsigned count = 0;
	size_t i, n;
	int fd;

	for (head = CMSG_FIRSTHDR(msg); head != NULL; head = CMSG_NXTHDR(msg, head)) {
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(fd));
			if (count++ == 0)
				*first = fd;
			else
				fd_close(&fd);
		}
	}
	return count;
}

/* recvmsg gave nothing: the end, or an empty packet, which nobody of ours sends. */
static int
report_nothing(int fd, struct err *e)
{
	struct pollfd look = {.fd = fd, .events = POLLRDHUP};

	if (poll(&look, 1, 0) >= 0 && (look.revents & (POLLHUP | POLLRDHUP)) != 0)
		return err_set(e, ERR_NOTFOUND, "the other side has closed the connection");
	return err_set(e, ERR_PROTOCOL, "an empty packet");
}

static int
report_receive(int sys, struct err *e)
{
	if (sys == EAGAIN)
		return 0;
	if (sys == ECONNRESET)
		return err_set(e, ERR_NOTFOUND, "the other side has closed the connection");
	return err_sys(e, ERR_IO, sys, "cannot receive a packet");
}

int
ipc_recv(int fd, struct buf *to, int *passed, struct err *e)
{
	struct iovec part = {.iov_len = IPC_MAX_PACKET};
	union control room;
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room.bytes,
	    .msg_controllen = sizeof(room.bytes)};
	unsigned fds;
	int first = -1, result = -1;
	ssize_t n;

	if (passed != NULL)
		*passed = -1;
	buf_reset(to);
	part.iov_base = buf_reserve(to, IPC_MAX_PACKET);
	if (part.iov_base == NULL)
		return err_nomem(e);
	do
		n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return report_receive(errno, e);
	fds = take_fds(&msg, &first);
	if ((msg.msg_flags & MSG_TRUNC) != 0)
		err_set(e, ERR_PROTOCOL, "a packet of more than %d bytes", IPC_MAX_PACKET);
	else if ((msg.msg_flags & MSG_CTRUNC) != 0 || fds > 1)
		err_set(e, ERR_PROTOCOL, "a packet with more than one descriptor");
	else if (n == 0)
		report_nothing(fd, e);
	else
		result = 1;
	to->len = result == 1 ? (size_t)n : 0;
	to->data[to->len] = '\0';
	if (passed == NULL || result != 1)
		fd_close(&first);
	if (passed != NULL)
		*passed = first;
	return result;
}

static int
create_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	/* Kernels before 6.3 do not know the flag; later ones may insist on it. */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

int
ipc_memfd(const char *name, struct slice bytes, struct err *e)
{
	int fd = create_memfd(name);

	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot create a file in memory");
	if (fs_write_all(&fs_real, "memfd.write", fd, bytes, e) != 0)
		goto fail;
	if (fcntl(fd, F_ADD_SEALS, SEALS_WANTED | F_SEAL_SEAL) != 0) {
		err_sys(e, ERR_IO, errno, "cannot seal a file in memory");
		goto fail;
	}
	return fd;
fail:
	fd_close(&fd);
	return -1;
}

int
ipc_memfd_check(int fd, struct err *e)
{
	int seals = fcntl(fd, F_GET_SEALS);

	/* Without seals a peer could go on changing what was checked; the call fails for a pipe or
	 * a device, which could keep us waiting. */
	if (seals < 0 || (seals & SEALS_WANTED) != SEALS_WANTED)
		return err_set(e, ERR_PROTOCOL, "the descriptor that came is no sealed memfd");
	return 0;
}

int
ipc_memfd_read(int fd, size_t max, struct buf *to, struct err *e)
{
	if (ipc_memfd_check(fd, e) != 0)
		return -1;
	return fs_read_all(&fs_real, "memfd.read", fd, max, to, e);
}
