#include "service.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"

enum { FIRST_FD = 3, TEXT_MOST = 8192 };

static const char *const own[] = {"NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
    "WATCHDOG_USEC", "WATCHDOG_PID"};

bool
service_is_own(const char *entry)
{
	size_t i, len;

	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		len = strlen(own[i]);
		if (strncmp(entry, own[i], len) == 0 && entry[len] == '=')
			return true;
	}
	return false;
}

/* ---- Saying ---- */

void
service_notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t len = path != NULL ? strlen(path) : 0;
	int fd;

	if (len < 2 || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	/* A name that begins with '@' is in the abstract namespace. */
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	/* Whoever does not listen to it will say so by its own means. */
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	fd_close(&fd);
}

/* A decimal number of the environment that is meant for this process; -1: there is none. */
static int64_t
number_for_us(const char *name, const char *pid_name)
{
	const char *text = getenv(name), *pid = getenv(pid_name);
	char *end;
	long long n;

	if (text == NULL || text[0] == '\0' || (pid != NULL && strtoll(pid, NULL, 10) != getpid()))
		return -1;
	n = strtoll(text, &end, 10);
	return *end == '\0' && n > 0 ? n : -1;
}

int64_t
service_watchdog_ns(void)
{
	int64_t us = number_for_us("WATCHDOG_USEC", "WATCHDOG_PID");

	return us > 0 && us < INT64_MAX / 1000 ? us * 1000 : 0;
}

/* ---- The socket ---- */

static bool
is_ours(const struct home *h, int fd)
{
	struct sockaddr_un at = {0};
	socklen_t len = sizeof(at), size = sizeof(int);
	int type = 0, listens = 0;
	struct stat there, home;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0 || at.sun_family != AF_UNIX)
		return false;
	return fstatat(h->fd, HOME_SOCKET, &home, AT_SYMLINK_NOFOLLOW) == 0 &&
	    stat(at.sun_path, &there) == 0 && there.st_dev == home.st_dev &&
	    there.st_ino == home.st_ino;
}

int
service_listener(const struct home *h, struct err *e)
{
	int64_t count = getenv("LISTEN_PID") == NULL ? -1 : number_for_us("LISTEN_FDS", "LISTEN_PID");
	int flags;

	if (count < 1)
		return -1;
	if (count > 1 || !is_ours(h, FIRST_FD))
		return err_set(e, ERR_ENVIRONMENT,
		    "the socket that the service manager gave is not '%s/" HOME_SOCKET "'", h->path);
	flags = fcntl(FIRST_FD, F_GETFL);
	if (flags < 0 || fcntl(FIRST_FD, F_SETFL, flags | O_NONBLOCK) != 0 ||
	    fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) != 0)
		return err_sys(e, ERR_IO, errno, "fcntl");
	return FIRST_FD;
}

/* ---- Where processes are left ---- */

/* Their units do not end what they have started (KillMode=process), or not by default. */
static const char *const harmless[] = {"cron.service", "crond.service", "atd.service", "init.scope",
    "flowsup-supervisor.service"};

static bool
ends_in(const char *text, size_t len, const char *ending)
{
	size_t n = strlen(ending);

	return len >= n && strncmp(text + len - n, ending, n) == 0;
}

static bool
is_harmless(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (strlen(harmless[i]) == len && strncmp(name, harmless[i], len) == 0)
			return true;
	return false;
}

enum service_fate
service_fate_of(const char *cgroup, bool kill_user_processes)
{
	const char *line = strstr(cgroup, "0::/"), *name, *slash;
	size_t len;

	if (line == NULL)
		return SERVICE_STAYS;
	line += strlen("0::");
	len = strcspn(line, "\n");
	for (name = line, slash = line; slash < line + len; slash++)
		if (*slash == '/')
			name = slash + 1;
	len -= (size_t)(name - line);
	if (is_harmless(name, len))
		return SERVICE_STAYS;
	if (strncmp(name, "session-", strlen("session-")) == 0 && ends_in(name, len, ".scope"))
		return kill_user_processes ? SERVICE_ENDS_WITH_SESSION : SERVICE_STAYS;
	return ends_in(name, len, ".service") ? SERVICE_ENDS_WITH_UNIT : SERVICE_STAYS;
}

static void
read_text(const char *path, char to[TEXT_MOST])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, TEXT_MOST - 1);

	to[n > 0 ? n : 0] = '\0';
	fd_close(&fd);
}

static bool
logind_kills(void)
{
	char text[TEXT_MOST];
	const char *at = text;

	read_text("/etc/systemd/logind.conf", text);
	while ((at = strstr(at, "KillUserProcesses=yes")) != NULL) {
		if (at == text || at[-1] == '\n')
			return true;
		at++;
	}
	return false;
}

enum service_fate
service_fate_here(void)
{
	char text[TEXT_MOST];

	read_text("/proc/self/cgroup", text);
	return service_fate_of(text, logind_kills());
}
