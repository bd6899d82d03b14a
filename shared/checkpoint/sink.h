/*
 * Where an encoded state goes, piece by piece, so that a large one needs no memory of its own size.
 * What a loader would refuse for its size or depth is refused here.
 */
#ifndef CHECKPOINT_SINK_H
#define CHECKPOINT_SINK_H

#include "flowsup/buf.h"
#include "flowsup/err.h"

struct sink {
	struct buf b; /* written to by the encoder; whole when the sink has no `put` */
	int (*put)(void *arg, struct slice piece, struct err *e);
	void *arg;
	size_t total; /* bytes that were put */
	unsigned depth; /* open brackets before b */
};

/* Between two values: gives on what came together, if that is worth a call. -1 with ERR_NOMEM,
 * ERR_LIMIT, or what put said. */
int sink_pass(struct sink *s, struct err *e);
/* A value that is encoded already. */
int sink_encoded(struct sink *s, struct slice encoding, struct err *e);
/* The end of the text: gives on what is left. */
int sink_end(struct sink *s, struct err *e);
void sink_clear(struct sink *s);

/* Deepest nesting of brackets in an encoded text. */
unsigned text_depth(struct slice text);

#endif
