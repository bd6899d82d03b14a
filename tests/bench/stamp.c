/* The operation of the benchmarks of latencies: appends the monotonic clock's nanoseconds to a file that
 * is there. It is linked with the C library alone, so that its first instruction comes soon after exec.
 *
 *	stamp FILE
 */
#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	struct timespec t;
	int64_t ns;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	fd = argc == 2 ? open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	return fd >= 0 && write(fd, &ns, sizeof(ns)) == (ssize_t)sizeof(ns) ? 0 : 1;
}
