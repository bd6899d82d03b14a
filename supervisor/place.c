/* Whether the home that this supervisor holds is still the one at its path. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "daemon.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"

/* What cannot be looked at is not taken for lost: a parent's permissions may change and change back. */
static bool
leads_to(int dirfd, const char *name, int flags, struct fs_identity to)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, flags) != 0)
		return errno != ENOENT && errno != ENOTDIR;
	return fs_same(fs_identity_of(&st), to);
}

static bool
leads_to_open(int dirfd, const char *name, int flags, int fd)
{
	struct stat st;

	return fstat(fd, &st) != 0 || leads_to(dirfd, name, flags, fs_identity_of(&st));
}

static const char *
lost(struct daemon *d)
{
	/* In the foreground of one run it holds neither. */
	if (d->lock_fd >= 0 && !leads_to_open(AT_FDCWD, d->home.path, 0, d->home.fd))
		return "its state directory was removed or replaced";
	if (d->lock_fd >= 0 &&
	    !leads_to_open(d->home.fd, HOME_LOCK, AT_SYMLINK_NOFOLLOW, d->lock_fd))
		return "its lock's file was removed or replaced";
	if (store_has_moved(d->store))
		return "its database was removed or replaced";
	return NULL;
}

bool
daemon_lost_home(struct daemon *d)
{
	const char *what = lost(d);

	if (what == NULL)
		return false;
	/* Who was told to stop everything still reaches the workers: they have the same file. */
	if (d->phase == PHASE_STOPPING)
		return false;
	if (d->phase != PHASE_LEAVING)
		log_line(LOG_ERROR, "'%s': %s; %u worker%s without a supervisor", d->home.path,
		    what, d->workers.count, d->workers.count == 1 ? " goes on" : "s go on");
	daemon_leave(d, what);
	return true;
}

void
place_note_door(struct daemon *d)
{
	struct stat st;

	d->door = (struct fs_identity){0};
	if (fstatat(d->home.fd, HOME_SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0)
		d->door = fs_identity_of(&st);
}

bool
place_has_door(const struct daemon *d)
{
	return leads_to(d->home.fd, HOME_SOCKET, AT_SYMLINK_NOFOLLOW, d->door);
}

/* Without the socket's name no command finds this supervisor, and its lock keeps every other away. */
static void
open_door_again(struct daemon *d)
{
	struct err e = {0};

	if (d->phase == PHASE_LEAVING || d->activated || place_has_door(d))
		return;
	log_line(LOG_WARNING, "'%s' was removed or replaced; listens anew", HOME_SOCKET);
	while (clients_accept(d))
		;
	loop_close(&d->loop, &d->listener);
	if (daemon_listen(d, &e) == 0)
		return;
	log_line(LOG_ERROR, "%s", e.msg);
	daemon_leave(d, "nobody can reach it");
}

void
place_look(void *daemon)
{
	struct daemon *d = daemon;

	if (!daemon_lost_home(d)) {
		open_door_again(d);
		queue_notice(d);
	}
	loop_set_timer(&d->loop, TIMER_PLACE, clock_monotonic_ns() + PLACE_LOOK_MS * NS_PER_MS);
}
