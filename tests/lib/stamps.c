#include "stamps.h"

#include <fcntl.h>
#include <unistd.h>

#include "bench_home.h"
#include "flowsup/proc.h"

enum { NEXT_S = 60 };

void
stamps_make(struct stamps *s, const struct test_dir *dir)
{
	struct buf program = {0};
	struct err e = {0};

	*s = (struct stamps){0};
	snprintf(s->path, sizeof(s->path), "%s/stamps", dir->path);
	s->fd = openat(dir->fd, "stamps", O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (s->fd < 0 || proc_relative_to_self("stamp", &program, &e) != 0 ||
	    strlcpy(s->program, buf_text(&program), sizeof(s->program)) >= sizeof(s->program))
		give_up(s->path, "cannot be made");
	buf_clear(&program);
}

void
stamps_clear(struct stamps *s)
{
	close(s->fd);
}

double
stamps_next(struct stamps *s)
{
	double end = seconds_of(CLOCK_MONOTONIC) + NEXT_S;
	int64_t ns;

	while (pread(s->fd, &ns, sizeof(ns), (off_t)sizeof(ns) * s->count) != (ssize_t)sizeof(ns)) {
		if (seconds_of(CLOCK_MONOTONIC) > end)
			give_up(s->path, "the operation never began");
		usleep(BENCH_POLL_US);
	}
	s->count++;
	return (double)ns * 1e-9;
}
