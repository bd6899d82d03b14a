/*
 * A pseudo-terminal whose other side is a file: what programs print line by line on a terminal only.
 * It is no controlling terminal of anybody, changes no byte and echoes nothing; nothing can be typed.
 */
#ifndef WORKER_KEEP_TTY_H
#define WORKER_KEEP_TTY_H

#include "flowsup/buf.h"

enum { TTY_COLUMNS = 80, TTY_ROWS = 24 };

struct keep_tty {
	int master; /* -1: there is none */
	int file;   /* owned */
	struct buf held; /* printed and not in the file yet, for want of room */
};

/* Opens one; *slave is the side of the operation. file is duplicated. */
int keep_tty_open(struct keep_tty *t, int file, int *slave, struct err *e);
/* Copies what has been printed. False once nothing more can come: every slave side is closed. */
bool keep_tty_copy(struct keep_tty *t);
/* Whether it is to be watched for more: not while what it has given finds no room. */
bool keep_tty_wants_more(const struct keep_tty *t);
/* The operation has ended: copies what it has printed up to then. False while that finds no room. */
bool keep_tty_drain(struct keep_tty *t);
void keep_tty_clear(struct keep_tty *t);

#endif
