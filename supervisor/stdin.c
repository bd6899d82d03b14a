#include "stdin.h"

#include <errno.h>
#include <unistd.h>

enum { READ_CHUNK = 65536 };

int
stdin_read(size_t most, struct buf *to, struct err *e)
{
	char *room;
	ssize_t n;

	for (;;) {
		room = buf_reserve(to, READ_CHUNK);
		if (room == NULL)
			return err_nomem(e);
		n = read(STDIN_FILENO, room, READ_CHUNK);
		if (n == 0)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EBADF)
			return err_set(e, ERR_USAGE, "standard input is closed");
		if (n < 0)
			return err_sys(e, ERR_ENVIRONMENT, errno, "standard input");
		to->len += (size_t)n;
		if (to->len > most)
			return err_set(e, ERR_LIMIT, "standard input: more than %zu bytes", most);
	}
}
