/*
 * HOLD_OPEN=MARK, HOLD_OPEN_OF=NAME, HOLD_OPEN_AT=N: the N-th openat(2) of a file of that name waits while
 * the file MARK exists, and the file MARK.waits says so.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void
hold(const char *mark)
{
	const struct timespec pause = {0, 10000000};
	char said[4096];

	for (; access(mark, F_OK) == 0; nanosleep(&pause, NULL)) {
		snprintf(said, sizeof(said), "%s.waits", mark);
		close(open(said, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
}

int
openat(int dir, const char *name, int flags, ...)
{
	static int (*real)(int, const char *, int, mode_t);
	static int count;
	const char *mark = getenv("HOLD_OPEN"), *of = getenv("HOLD_OPEN_OF"), *at = getenv("HOLD_OPEN_AT");
	mode_t mode = 0;
	va_list more;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "openat");
	va_start(more, flags);
	if ((flags & O_CREAT) != 0)
		mode = va_arg(more, mode_t);
	va_end(more);
	if (mark != NULL && of != NULL && at != NULL && strcmp(name, of) == 0 && ++count == atoi(at))
		hold(mark);
	return real(dir, name, flags, mode);
}
