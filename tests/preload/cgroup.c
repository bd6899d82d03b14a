/* /proc/self/cgroup is the file named by CGROUP. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int
open(const char *path, int flags, ...)
{
	static int (*real)(const char *, int, ...);
	const char *other = getenv("CGROUP");
	unsigned mode;
	va_list ap;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "open");
	va_start(ap, flags);
	mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(ap, unsigned) : 0;
	va_end(ap);
	if (other != NULL && strcmp(path, "/proc/self/cgroup") == 0)
		path = other;
	return real(path, flags, mode);
}
