/* Packets over SOCK_SEQPACKET Unix sockets, with credentials and sealed memfds. */
#ifndef FLOWSUP_IPC_H
#define FLOWSUP_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"

enum { IPC_MAX_PACKET = 65536 };

/* All sockets: close-on-exec, non-blocking. Paths longer than sun_path are reached through
 * /proc/self/fd of dirfd; `name` is a single component. The socket's file has mode 0600. ERR_BUSY
 * when the name is taken: who holds the lock that decides removes a left one before. */
int ipc_listen(int dirfd, const char *name, int backlog, struct err *e);
/* ERR_NOTFOUND when nobody listens (ENOENT, ECONNREFUSED), ERR_BUSY when its backlog is full. */
int ipc_connect(int dirfd, const char *name, struct err *e);
int ipc_pair(int fds[2], struct err *e);
/* The process that listens at the other end of a connection; 0 when it cannot be told (another pid
 * namespace). */
pid_t ipc_peer(int fd);
/* -1 with ERR_BUSY when there is nothing to accept; checks SO_PEERCRED: same uid or root, else
 * ERR_PERMISSION. *peer (may be NULL) is the peer's pid. */
int ipc_accept(int listener, pid_t *peer, struct err *e);

/* One packet, MSG_DONTWAIT|MSG_NOSIGNAL, with a descriptor beside it or -1. 0; 1 when the peer's
 * queue is full; -1 ERR_PROTOCOL (too long, or empty) or ERR_IO (gone). */
int ipc_send(int fd, struct slice packet, int pass_fd, struct err *e);
/*
 * One packet into `to` (reset first). *passed gets a descriptor (close-on-exec) or -1; when passed
 * is NULL one that comes is closed. 1: got one; 0: none waits; -1: ERR_NOTFOUND at the end of the
 * connection, ERR_PROTOCOL for a packet over IPC_MAX_PACKET or an empty one.
 */
int ipc_recv(int fd, struct buf *to, int *passed, struct err *e);

/* A sealed memfd with these bytes (F_SEAL_WRITE|GROW|SHRINK|SEAL), -1 on error. */
int ipc_memfd(const char *name, struct slice bytes, struct err *e);
/* ERR_PROTOCOL when fd is no memfd that is sealed like these. */
int ipc_memfd_check(int fd, struct err *e);
/* Reads a peer's memfd, never maps it. ERR_PROTOCOL when it is not sealed, ERR_LIMIT above max. */
int ipc_memfd_read(int fd, size_t max, struct buf *to, struct err *e);

#endif
