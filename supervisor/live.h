/*
 * The display of a run that is drawn anew: a bar, one line for each operation that runs, and what waits
 * for a person, with the command that answers it. No line of it is as wide as the terminal.
 */
#ifndef FLOWSUP_LIVE_H
#define FLOWSUP_LIVE_H

#include <termios.h>

#include "events.h"
#include "flowsup/store.h"
#include "output.h"

enum { LIVE_ROWS_MOST = 200 };

struct live {
	struct output *out;
	int run_fd;		 /* borrowed */
	const char *home_option; /* for commands that are shown; or NULL */
	bool shown;		 /* on the terminal's second screen, where it has one */
	bool second_screen;
	int drawn;		 /* lines on the screen that are ours */
	int64_t first_ns;	 /* when the first one is drawn; 0: not yet known */
	struct termios echoing; /* modes of the terminal, where `silent` says that it shows no keys */
	bool silent;
};

/* Draws over what was drawn last; nothing while another process group has the terminal. waits: what a run in
 * the queue waits for, else ""; ending: view_ending(), or NULL. */
void live_draw(struct live *l, const struct session *s, const char *waits, const struct json *ending,
    const struct tally *t);
/* Takes the lines away again; what is printed next stands in their place. */
void live_erase(struct live *l);
/* Others have written since: nothing on the screen is ours. */
void live_forget(struct live *l);

/* Appends the last line that an attempt wrote, by the ending of the file, "out" or "err"; nothing when there is none. */
void live_last_line(int run_fd, const char *op, int64_t attempt, const char *ending, struct buf *to);

#endif
