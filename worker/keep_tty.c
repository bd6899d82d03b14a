#include "keep_tty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/log.h"

/* The kernel hands on what was printed by a work queue, also after the printer has gone. */
enum { PIECE = 64 << 10, QUIET_MS = 50 };

static int
set_modes(int slave, struct err *e)
{
	const struct winsize size = {.ws_row = TTY_ROWS, .ws_col = TTY_COLUMNS};
	struct termios modes;

	if (tcgetattr(slave, &modes) != 0)
		return err_sys(e, ERR_IO, errno, "cannot read a terminal's modes");
	cfmakeraw(&modes);
	if (tcsetattr(slave, TCSANOW, &modes) != 0 || ioctl(slave, TIOCSWINSZ, &size) != 0)
		return err_sys(e, ERR_IO, errno, "cannot set a terminal's modes");
	return 0;
}

int
keep_tty_open(struct keep_tty *t, int file, int *slave, struct err *e)
{
	*t = (struct keep_tty){.master = -1, .file = -1};
	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (t->master < 0 || grantpt(t->master) != 0 || unlockpt(t->master) != 0)
		return err_sys(e, ERR_IO, errno, "cannot make a pseudo-terminal");
	/* By the descriptor: /dev/pts may be another one here. */
	*slave = ioctl(t->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*slave < 0)
		return err_sys(e, ERR_IO, errno, "cannot open a pseudo-terminal");
	t->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
	if (t->file < 0)
		return err_sys(e, ERR_IO, errno, "cannot keep the output open");
	return set_modes(*slave, e);
}

/* Without room it stays, so the printer waits for room in the end; nothing is lost. */
static bool
write_held(struct keep_tty *t)
{
	ssize_t n;

	while (t->held.len > 0) {
		n = write(t->file, t->held.data, t->held.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		t->held.len -= (size_t)n;
		memmove(t->held.data, t->held.data + n, t->held.len);
	}
	return true;
}

bool
keep_tty_copy(struct keep_tty *t)
{
	char *at;
	ssize_t n;

	while (write_held(t)) {
		at = buf_reserve(&t->held, PIECE);
		if (at == NULL) { /* later, like a write without room */
			t->held.failed = false;
			return true;
		}
		n = read(t->master, at, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		t->held.len += (size_t)n;
	}
	return true;
}

bool
keep_tty_wants_more(const struct keep_tty *t)
{
	return t->master >= 0 && t->held.len == 0;
}

bool
keep_tty_drain(struct keep_tty *t)
{
	struct pollfd p = {.fd = t->master, .events = POLLIN};

	while (keep_tty_copy(t) && t->held.len == 0)
		if (poll(&p, 1, QUIET_MS) == 0)
			break;
	return t->held.len == 0;
}

void
keep_tty_clear(struct keep_tty *t)
{
	buf_clear(&t->held);
	fd_close(&t->master);
	fd_close(&t->file);
}
