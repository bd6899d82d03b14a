/*
 * Once a day `flowsup gc` is executed, which goes by the configuration. When it last was is the time of a
 * file, so that supervisors that come and go do it no more often.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"

#define KEEP_STAMP "gc.last"
enum { KEEP_EVERY_S = 86400, KEEP_LOOK_S = 3600, KEEP_LIMIT_S = 3600 };

static bool
is_due(const struct daemon *d)
{
	struct stat st;
	int64_t age;

	if (fstatat(d->home.fd, KEEP_STAMP, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT;
	age = clock_wall_ns() / NS_PER_S - st.st_mtim.tv_sec;
	/* A clock that was set back: the stamp is of the future. */
	return age < 0 || age >= KEEP_EVERY_S;
}

static void
stamp(const struct daemon *d)
{
	int fd = openat(d->home.fd, KEEP_STAMP, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || futimens(fd, NULL) != 0)
		log_line(LOG_WARNING, "'%s': %s", KEEP_STAMP, strerror(errno));
	fd_close(&fd);
}

static void
start(struct daemon *d)
{
	const char *argv[] = {"flowsup", "gc", "--home", d->home.path, NULL};
	const struct errand_plan plan = {
	    .kind = ERRAND_KEEP,
	    .run_id = "",
	    .program = d->own_path,
	    .argv = argv,
	    .keep_said = true,
	    .limit_ns = KEEP_LIMIT_S * NS_PER_S,
	};
	struct err e = {0};

	if (errand_start(d, &plan, &e) != 0)
		log_line(LOG_WARNING, "old runs are not looked for: %s", e.msg);
}

void
keep_look(void *daemon)
{
	struct daemon *d = daemon;

	if (d->phase == PHASE_WORKING && d->errands.counts[ERRAND_KEEP] == 0 && is_due(d)) {
		stamp(d);
		start(d);
	}
	loop_set_timer(&d->loop, TIMER_KEEP, clock_monotonic_ns() + KEEP_LOOK_S * NS_PER_S);
}

void
keep_ended(struct errand *r, const struct proc_end *end)
{
	char text[ERRAND_TEXT];

	errand_outcome(r, end, text);
	log_line(LOG_INFO, "gc by the configuration: %s", text);
}
