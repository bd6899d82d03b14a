#include "stdin.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { READ_CHUNK = 65536 };

void
stdin_expect(const char *what)
{
	if (isatty(STDIN_FILENO) == 1)
		cli_note("reads %s from this terminal; Ctrl-D at the beginning of a line ends it", what);
}

void
stdin_expect_document(const char *path)
{
	if (strcmp(path, "-") == 0)
		stdin_expect("a flow document");
}

int
stdin_read(const char *what, size_t most, struct buf *to, struct err *e)
{
	char *room;
	ssize_t n;

	stdin_expect(what);
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
