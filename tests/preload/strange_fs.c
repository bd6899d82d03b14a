/* Every file system is the one whose number STRANGE_FS gives (hexadecimal), for whoever asks. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/statfs.h>

int
fstatfs(int fd, struct statfs *st)
{
	static int (*next)(int fd, struct statfs *st);
	const char *number = getenv("STRANGE_FS");
	int result;

	if (next == NULL)
		*(void **)(&next) = dlsym(RTLD_NEXT, "fstatfs");
	result = next(fd, st);
	if (result == 0 && number != NULL)
		st->f_type = strtol(number, NULL, 16);
	return result;
}
