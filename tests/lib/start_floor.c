#include "start_floor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_home.h"

enum { PAGE = 4096 + 24, PAGES_OF_START = 12, PAGES_OF_MOVE = 6 };

static const struct {
	const char *name;
	size_t bytes;
} files[] = {{"flow.json", 60}, {"launch.json", 600}, {"environ", 1500}, {"worker.lock", 0}};

static const char *const directories[] = {"ops", "artifacts", "staging"};

static void
must(bool good, const char *what)
{
	if (!good)
		give_up(what, strerror(errno));
}

void
start_floor_make(struct start_floor *f)
{
	*f = (struct start_floor){0};
	test_dir_make(&f->dir);
	f->log_fd = openat(f->dir.fd, "log", O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	must(f->log_fd >= 0, "log");
}

void
start_floor_remove(struct start_floor *f)
{
	close(f->log_fd);
	test_dir_remove(&f->dir);
}

static int
begin_file(int dir, const char *name, size_t bytes)
{
	static const char text[PAGE * PAGES_OF_START];
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	must(fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes, name);
	sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return fd;
}

static int
write_file(int dir, const char *name, size_t bytes)
{
	int fd = begin_file(dir, name, bytes);

	must(fsync(fd) == 0, name);
	return fd;
}

static void
commit(struct start_floor *f, size_t pages)
{
	static const char text[PAGE * PAGES_OF_START];

	must(write(f->log_fd, text, PAGE * pages) > 0 && fdatasync(f->log_fd) == 0, "commit");
}

double
start_floor_fsync(struct start_floor *f, int tries)
{
	struct samples samples = {0};
	int fd = write_file(f->dir.fd, "appended", 256), i;
	double from;

	for (i = 0; i < tries; i++) {
		must(write(fd, "a few bytes", 11) == 11, "append");
		from = seconds_of(CLOCK_MONOTONIC);
		must(fsync(fd) == 0, "fsync");
		sample_add(&samples, 1e3 * (seconds_of(CLOCK_MONOTONIC) - from));
	}
	close(fd);
	return sample_percentile(&samples, 50);
}

/* The run's directory, opened: as rundir_create() makes it. */
static int
make_run(struct start_floor *f)
{
	enum { FILES = sizeof(files) / sizeof(files[0]) };
	char name[64], making[80];
	int dir, fds[FILES], i;

	snprintf(name, sizeof(name), "run%d", f->made++);
	snprintf(making, sizeof(making), ".new-%s", name);
	must(mkdirat(f->dir.fd, making, 0700) == 0, making);
	dir = openat(f->dir.fd, making, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dir >= 0, making);
	for (i = 0; i < FILES; i++)
		fds[i] = begin_file(dir, files[i].name, files[i].bytes);
	for (i = 0; i < FILES; i++)
		must(fsync(fds[i]) == 0 && close(fds[i]) == 0, files[i].name);
	must(fsync(dir) == 0 && renameat(f->dir.fd, making, f->dir.fd, name) == 0 && fsync(f->dir.fd) == 0, name);
	/* The database: its log, and the directory that a new connection makes sure of. */
	commit(f, PAGES_OF_START);
	must(fdatasync(f->dir.fd) == 0, "directory");
	return dir;
}

/* As the checkpoint's base and journal are published. */
static void
publish(int dir, const char *name)
{
	int staging = openat(dir, "staging", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	close(write_file(staging, "new", 400));
	must(renameat(staging, "new", dir, name) == 0 && fsync(dir) == 0 && fsync(staging) == 0, name);
	close(staging);
}

double
start_floor_return(struct start_floor *f)
{
	double from = seconds_of(CLOCK_MONOTONIC), took;
	int dir = make_run(f);

	took = 1e3 * (seconds_of(CLOCK_MONOTONIC) - from);
	close(dir);
	return took;
}

double
start_floor_exec(struct start_floor *f, struct stamps *s)
{
	char *operation[] = {s->program, s->path, NULL};
	double from = seconds_of(CLOCK_MONOTONIC);
	int dir = make_run(f);
	size_t i;

	commit(f, PAGES_OF_MOVE); /* queued -> starting */
	for (i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		must(mkdirat(dir, directories[i], 0700) == 0, directories[i]);
	publish(dir, "checkpoint.json.journal");
	publish(dir, "checkpoint.json");
	close(dir);
	must(bench_call(s->program, operation, NULL), "stamp");
	return 1e3 * (stamps_next(s) - from);
}
