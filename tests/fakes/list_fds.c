/* Prints the numbers of all open descriptors, without opening one. */
#include <fcntl.h>
#include <stdio.h>

enum { MOST = 4096 };

int
main(void)
{
	int fd;

	for (fd = 0; fd < MOST; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("%d ", fd);
	return 0;
}
