/* Ignores SIGTERM, says so in the file named, and stays until it is killed. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	int fd;

	if (argc != 2 || signal(SIGTERM, SIG_IGN) == SIG_ERR)
		return 2;
	fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "deaf\n", 5) != 5 || close(fd) != 0)
		return 2;
	for (;;)
		pause();
}
