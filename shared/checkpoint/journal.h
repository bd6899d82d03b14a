/* Records of the journal: one line each. */
#ifndef CHECKPOINT_JOURNAL_H
#define CHECKPOINT_JOURNAL_H

#include "refusal.h"
#include "state.h"

/*
 * Appends one record with its LF. entry and patch are borrowed; patch NULL: no context came with
 * the outcome. *encoded is where the entry's encoding stands in `to`. Check buf_ok().
 */
struct span {
	size_t from, len;
};
void record_encode(struct buf *to, const char *generation, uint64_t seq, enum ckpt_kind kind,
    const struct json *entry, const struct json *patch, struct span *encoded);

/* The next whole line of *rest without its LF. False at the end, with what is left in *rest: a torn tail. */
bool journal_line(struct slice *rest, struct slice *line);

enum record_result {
	RECORD_APPLIED,
	RECORD_STALE, /* whole, but of another generation */
	RECORD_REFUSED,
	RECORD_ERROR /* out of memory */
};
/*
 * Reads one line (without its LF) and applies it to s as record number `seq` of `generation`,
 * wholly or not at all. With RECORD_REFUSED r holds the reason, and offset within the line where
 * known.
 */
enum record_result record_apply(struct slice line, const char *generation, int64_t seq,
    struct state *s, struct refusal *r, struct err *e);
/*
 * What a line that record_apply() found stale wanted to put: *entry is the caller's, NULL of a line of
 * `generation`; and *patch, NULL where none came with it. ERR_NOMEM.
 */
int record_stale(struct slice line, const char *generation, enum ckpt_kind *kind, struct json **entry,
    struct json **patch, struct err *e);

#endif
