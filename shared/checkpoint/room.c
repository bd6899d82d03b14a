#include <sys/statvfs.h>

#include "room.h"

struct room
room_of(int fd)
{
	struct statvfs v;

	if (fstatvfs(fd, &v) != 0)
		return (struct room){0};
	/* Free, not available: part of it may be kept for root, and that is who we may be. */
	return (struct room){.known = true, .blocks = v.f_bfree, .files = v.f_ffree};
}

bool
room_grew(struct room before, struct room now)
{
	return before.known && now.known &&
	    (now.blocks > before.blocks || now.files > before.files);
}
