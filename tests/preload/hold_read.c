/* While the file named by HOLD_READ exists, a worker that reads (pread) beyond the first MiB of a file
 * stays there: a file that takes as long as a test wants. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FREE_BYTES = 1 << 20 };

static void
hold(off_t at)
{
	const struct timespec pause = {0, 20000000};
	const char *mark = getenv("HOLD_READ");

	while (at >= FREE_BYTES && mark != NULL && access(mark, F_OK) == 0 &&
	    strcmp(program_invocation_short_name, "flowsup-worker") == 0)
		nanosleep(&pause, NULL);
}

ssize_t
pread(int fd, void *to, size_t len, off_t at)
{
	static ssize_t (*real)(int, void *, size_t, off_t);

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "pread");
	hold(at);
	return real(fd, to, len, at);
}

ssize_t
pread64(int fd, void *to, size_t len, off_t at)
{
	return pread(fd, to, len, at);
}
