/* Each time that /proc is opened to be listed adds a byte to the file named by COUNT_WALKS. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

DIR *
opendir(const char *path)
{
	static DIR *(*real)(const char *);
	const char *to = getenv("COUNT_WALKS");
	int fd = -1;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "opendir");
	if (to != NULL && strcmp(path, "/proc") == 0)
		fd = open(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd >= 0) {
		if (write(fd, "w", 1) != 1)
			abort();
		close(fd);
	}
	return real(path);
}
