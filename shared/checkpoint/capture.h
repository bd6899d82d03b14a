/* A coherent copy of the bytes of a published pair. */
#ifndef CHECKPOINT_CAPTURE_H
#define CHECKPOINT_CAPTURE_H

#include "flowsup/checkpoint.h"
#include "publish.h"
#include "refusal.h"

struct capture {
	struct pin base, journal; /* open for reading; journal.fd -1 for version 1 and 2 */
	struct buf base_bytes, journal_bytes;
	struct json *root; /* the parsed base */
	int version;
	char generation[CKPT_GENERATION_TEXT];
	bool in_journal; /* what was refused is the journal, not the base */
};

enum capture_result {
	CAPTURE_OK,
	CAPTURE_AGAIN,	 /* something changed meanwhile; r and e say what, should it be the last try */
	CAPTURE_REFUSED, /* r and e say why; the base is refused, there is no prefix */
	CAPTURE_ERROR	 /* e: ERR_NOTFOUND, ERR_PERMISSION, ERR_IO, ERR_NOMEM */
};

/* One try. c is filled as far as it came; clear it whatever the result. */
enum capture_result capture_take(struct capture *c, int run_fd, const struct ckpt_load_options *o,
    struct ckpt_report *report, struct refusal *r, struct err *e);
void capture_clear(struct capture *c);

/* ckpt_load() that leaves the capture with the caller, who clears it. */
int load_captured(struct capture *c, int run_fd, const struct ckpt_load_options *o,
    struct json **state, struct ckpt_report *report, struct err *e);

#endif
