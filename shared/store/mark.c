#include <fcntl.h>
#include <sys/stat.h>

#include "flowsup/clock.h"
#include "flowsup/store.h"

/* The file itself is written only by whoever folds the log into it, which commits nothing. */
bool
store_was_touched(const struct home *h, struct store_mark *mark)
{
	struct store_mark now = {0};
	bool same;
	struct stat st;

	if (fstatat(h->fd, HOME_DATABASE "-wal", &st, AT_SYMLINK_NOFOLLOW) == 0) {
		now.dev = st.st_dev;
		now.ino = st.st_ino;
		now.size = st.st_size;
		/* Set by each write, and by nothing that a program could ask for. */
		now.changed_ns = st.st_ctim.tv_sec * NS_PER_S + st.st_ctim.tv_nsec;
	}
	same = now.dev == mark->dev && now.ino == mark->ino && now.size == mark->size &&
	    now.changed_ns == mark->changed_ns;
	*mark = now;
	return !same;
}
