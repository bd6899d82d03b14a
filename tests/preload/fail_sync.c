/*
 * While the file named by FAIL_SYNC exists, fsync and fdatasync fail for files and directories whose
 * path holds FAIL_SYNC_OF; without that name, for those of a checkpoint. While it holds something, they
 * wait instead, and the file FAIL_SYNC.waits says so.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int
fails(int fd)
{
	const char *mark = getenv("FAIL_SYNC"), *of = getenv("FAIL_SYNC_OF");
	char link[64], path[4096];
	ssize_t n;

	if (mark == NULL || access(mark, F_OK) != 0)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return 0;
	path[n] = '\0';
	if (of != NULL)
		return strstr(path, of) != NULL;
	return strstr(path, "/checkpoint.json") != NULL || strstr(path, "/staging") != NULL;
}

/* Whether it had to wait, and has. */
static int
waits(void)
{
	const struct timespec pause = {0, 10000000};
	const char *mark = getenv("FAIL_SYNC");
	char said[4096];
	struct stat st;
	int waited = 0;

	for (; stat(mark, &st) == 0 && st.st_size > 0; nanosleep(&pause, NULL)) {
		snprintf(said, sizeof(said), "%s.waits", mark);
		close(open(said, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		waited = 1;
	}
	return waited;
}

static int
call(const char *name, int fd)
{
	int (*real)(int);

	if (fails(fd) && !waits()) {
		errno = EIO;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, name);
	return real(fd);
}

int
fsync(int fd)
{
	return call("fsync", fd);
}

int
fdatasync(int fd)
{
	return call("fdatasync", fd);
}
