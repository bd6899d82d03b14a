/*
 * What lies in files beside a checkpoint and is recorded in it with size and digest: outputs, responses that
 * are files, artifacts. One judgement, for a resume and for who verifies.
 */
#ifndef FLOWSUP_EVIDENCE_H
#define FLOWSUP_EVIDENCE_H

#include <stdbool.h>

#include "flowsup/err.h"
#include "flowsup/json.h"

enum evidence {
	EVIDENCE_RIGHT,	     /* as recorded */
	EVIDENCE_UNRECORDED, /* it is there, and no digest says what it was */
	EVIDENCE_ABSENT,     /* nothing is there */
	EVIDENCE_WRONG
};

/*
 * All of the next three: *why gets words that go on after the name, unless it is there and right. -1 with
 * *e: it could not be read to the end, or memory ran out.
 */
/* The response of an entry that ckpt_is_file, or an `output_as` that is an object. A relative name lies below run_fd. */
int evidence_of_file(int run_fd, const struct json *recorded, enum evidence *out, struct buf *why,
    struct err *e);
/* An artifact of an entry; the root is that of all artifacts. */
struct evidence_root {
	int fd;	     /* -1: see absent */
	bool absent; /* there is none; else it cannot be used */
};
int evidence_of_artifact(const struct evidence_root *root, const char *op, const char *path, const struct json *entry,
    enum evidence *out, struct buf *why, struct err *e);
/* The response itself, by its result_digest. */
int evidence_of_response(const struct json *entry, enum evidence *out, struct err *e);

/* The artifacts of a completed entry: those of its contract, then what is recorded beside that. NULL: not a
 * path. Stops at and returns what visit returns unless that is 0. */
typedef int evidence_visit(void *arg, const char *path);
int evidence_each_artifact(const struct json *contract, const struct json *entry, evidence_visit *visit, void *arg);

#endif
