/*
 * Checkpoints: base and journal, the writer with its thread, the loader with its report.
 *
 * A *state* is one JSON object with the members of a base without `version`, `generation` and
 * `journal_seq`: session_id, prompt, plan, config, max_spawn (optional), flow_context, ops
 * (object by agent id), spawned (array). Files are described in flowsup-checkpoint(5).
 */
#ifndef FLOWSUP_CHECKPOINT_H
#define FLOWSUP_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "flowsup/err.h"
#include "flowsup/fs.h"
#include "flowsup/json.h"

#define CKPT_BASE "checkpoint.json"
#define CKPT_JOURNAL_ENDING ".journal"
#define CKPT_JOURNAL CKPT_BASE CKPT_JOURNAL_ENDING
#define CKPT_STAGING "staging"
#define CKPT_COMPACT_RECORDS UINT64_C(128)
#define CKPT_COMPACT_BYTES UINT64_C(8388608)

enum {
	CKPT_GENERATION_TEXT = 33,
	CKPT_FILE_TEXT = 256 + sizeof(CKPT_JOURNAL_ENDING) /* NAME_MAX(limits.h), and what is put behind it */
};

/* ---- Writer ---- */

enum ckpt_kind {
	CKPT_OP,      /* entry goes to ops, by agent_id */
	CKPT_SPAWNED, /* entry goes to spawned, by node_id */
	CKPT_CONTEXT, /* no entry: a change of context alone, committed by a base */
	CKPT_PLAN     /* entry is an array: what a planner adds to the plan, committed by a base */
};

struct ckpt_options {
	const struct fs_ops *fs;
	int runs_fd; /* pinned handle of runs/, borrowed while the writer lives */
	int run_fd;  /* pinned handle of the run directory, borrowed */
	const char *run_id; /* its name in runs_fd; copied */
	int version; /* 3 or 2; there is no default */
	uint64_t compact_records, compact_bytes; /* positive */
	unsigned gather_ms; /* what is admitted may wait so long for others; 0: it is committed at once */
	bool literal_limits; /* limits were given by hand: no growth with the base's size */
	bool sweep; /* of ckpt_compact(): the caller holds the run's lock, so what is in staging was left there */
	uint64_t first_sequence; /* of the first generation's records; 1 but in tests of exhaustion */
};

enum ckpt_health {
	CKPT_HEALTHY,
	/* Storage fails; nothing is acknowledged; fresh bases are tried by a timer, and when there is
	 * more room than at the last one. */
	CKPT_STORAGE,
	CKPT_STOPPED  /* no remedy; why says so; nothing more will be acknowledged */
};

/* One acknowledged transition, in order of admission. */
struct ckpt_ack {
	uint64_t ticket;
	enum ckpt_kind kind;
	char generation[CKPT_GENERATION_TEXT];
	uint64_t seq; /* 0 when a base holds it */
	struct json *identity; /* agent_id or node_id string, NULL for the other kinds; caller unrefs */
};

struct ckpt_progress {
	enum ckpt_health health;
	struct err why;		/* when not healthy, the latest cause */
	uint64_t admitted, acked; /* tickets */
	uint64_t answered;	/* the latest number of ckpt_retry_now that a try has failed after */
	uint64_t journal_bytes, records, bases; /* written in all by this writer */
	char generation[CKPT_GENERATION_TEXT];
	bool directory_sync;
};

/* How deep values may be nested (json_depth), so that a base that holds them can be read again. */
enum {
	CKPT_MAX_ENTRY_DEPTH = JSON_MAX_DEPTH - 2,
	CKPT_MAX_RESPONSE_DEPTH = CKPT_MAX_ENTRY_DEPTH - 1,
	CKPT_MAX_CONTEXT_DEPTH = JSON_MAX_DEPTH - 1,
	CKPT_MAX_UNKNOWN_DEPTH = JSON_MAX_DEPTH - 3, /* members of version 2, in config.v2_members */
	CKPT_MAX_TAKEN_DEPTH = JSON_MAX_DEPTH - 4 /* its config.v2_members, in config.v2_members.config */
};

struct ckpt_writer;

/*
 * Publishes the initial checkpoint (journal first, then base; blocks for the fsyncs), then starts
 * the writer's thread. Borrows state. The caller holds the run's lock. On error nothing of ours is
 * left that a loader would take for a checkpoint. ERR_CREATE, ERR_IO, ERR_NOSPACE, ERR_IDENTITY.
 */
int ckpt_writer_open(const struct ckpt_options *o, const struct json *state,
    struct ckpt_writer **out, struct err *e);
/*
 * Admits an outcome: gives it the next place in the one order and returns; never waits, never
 * encodes. entry and context are consumed (context NULL: none came with it; for CKPT_CONTEXT entry
 * is NULL). *ticket is its place, from 1. An entry that cannot be admitted (no identity, wrong
 * status, not finite) is ERR_DOCUMENT, one that is nested too deeply ERR_LIMIT, and changes nothing; ERR_REFUSED when the writer stopped.
 */
int ckpt_admit(struct ckpt_writer *w, enum ckpt_kind kind, struct json *entry, struct json *context,
    uint64_t *ticket, struct err *e);
/* The same of what somebody waits for: neither it nor what came before it waits for others. */
int ckpt_admit_now(struct ckpt_writer *w, enum ckpt_kind kind, struct json *entry, struct json *context,
    uint64_t *ticket, struct err *e);
/* What has been admitted does not wait for others any longer. */
void ckpt_hurry(struct ckpt_writer *w);
/* Readable when acknowledgements or a change of health wait; owned by the writer. */
int ckpt_event_fd(const struct ckpt_writer *w);
/* Next acknowledgement, or false. Resets the event when none is left. */
bool ckpt_take_ack(struct ckpt_writer *w, struct ckpt_ack *out);
struct ckpt_progress ckpt_progress(struct ckpt_writer *w);
/* In CKPT_STORAGE: try a fresh base now instead of at the next step of 1, 2, 4 ... 60 s. The number
 * of this wish: progress.answered reaches it when a try that began after it has failed. */
uint64_t ckpt_retry_now(struct ckpt_writer *w);
/* Blocks until everything admitted is acknowledged (0) or health is not CKPT_HEALTHY (-1). */
int ckpt_flush(struct ckpt_writer *w, struct err *e);
/*
 * Lets what is admitted finish (or gives up at once with abandon), ends the thread, frees. Returns
 * 0 only when every admitted transition was acknowledged and the writer had not stopped; the run's outcome
 * depends on it.
 */
int ckpt_writer_close(struct ckpt_writer *w, bool abandon, struct err *e);

/* ---- Loader ---- */

enum ckpt_status { CKPT_CLEAN, CKPT_RECOVERED_PREFIX, CKPT_REFUSED };

/* -1 in a number and "" in a text mean null: unknown, not made up. */
struct ckpt_report {
	enum ckpt_status status;
	int format;
	char generation[CKPT_GENERATION_TEXT];
	int64_t base_bytes, journal_bytes, records_applied, last_seq;
	int64_t in_progress_bytes, stale_records, discarded_tail_bytes;
	int64_t coherence_retries;
	char reason[32];	/* "torn_tail", "sequence_gap", ...; "" when clean */
	char position_file[CKPT_FILE_TEXT]; /* the name of the base or of the journal, or "" */
	int64_t position_line, position_offset;
	int directory_sync; /* 1 supported, 0 unsupported, -1 null */
};

struct ckpt_load_options {
	const struct fs_ops *fs; /* NULL: fs_real */
	bool lock_held;		 /* the run's lock is held by a worker: an unterminated last line is an
				  * append in progress, not a torn tail */
	const char *base_name;	 /* NULL: CKPT_BASE; the journal is this name with ".journal" */
	size_t max_bytes;	 /* 0: JSON_MAX_PROGRAM */
};

/*
 * Loads base and journal below run_fd. 0 for clean and recovered_prefix: *state is the caller's.
 * -1 with ERR_CHECKPOINT when refused; *state is then the valid prefix for diagnosis or NULL. -1
 * with ERR_NOTFOUND (no checkpoint), ERR_PERMISSION, ERR_IO, ERR_NOMEM. *report is always filled.
 */
int ckpt_load(int run_fd, const struct ckpt_load_options *o, struct json **state,
    struct ckpt_report *report, struct err *e);
/* The `checkpoint_recovery` object; never holds payload. NULL when out of memory. */
struct json *ckpt_report_json(const struct ckpt_report *report);
/* One line for people, without newline, for reports that are not clean. */
void ckpt_report_line(const struct ckpt_report *report, struct buf *to);
const char *ckpt_status_name(enum ckpt_status s); /* "clean", ... */

/* ---- Other forms ---- */

/* A member of config: what a file of an older version had and version 3 has no place for; described in
 * flowsup-checkpoint(5). */
#define CKPT_V2_MEMBERS "v2_members"

/* A version 2 (or 1, or version-less) state as version 3 wants it: unknown top-level members go to
 * config.v2_members. Consumes state. */
struct json *ckpt_migrate(struct json *state, int from_version, struct err *e);
/* Writes a state as a complete version 2 file, with what was put into config.v2_members back in its place,
 * or as a version 3 base with an empty journal, into
 * an existing directory where neither name exists. */
int ckpt_write_new(const struct fs_ops *fs, int dirfd, const char *base_name, int version,
    const struct json *state, struct err *e);
/* Publishes a fresh base that holds everything and an empty journal; the caller holds the run's
 * lock and the run is finished. ERR_REFUSED, and nothing is changed, when there is no journal (of an
 * older version) or it holds outcomes of another generation that the base does not. */
int ckpt_compact(const struct ckpt_options *o, struct ckpt_report *report, struct err *e);

/* ---- Digests: BLAKE2b-512 ---- */

/* A member of an entry that was carried over: the files of the attempt that it is the outcome of, without
 * their endings. Only where the response does not hold the output byte for byte. */
#define CKPT_ATTEMPT_PATH "attempt_path"

/* A member of an entry: where those that need it find its output byte for byte. CKPT_OF_RESPONSE, when the
 * response in its form is that; else {"file","size","digest"}. Absent where the response is that anyway, and
 * from an older program. */
#define CKPT_OUTPUT "output_as"
#define CKPT_OF_RESPONSE "response"

/* A member of an entry that completed by its result, whatever became of its process: an object with the
 * `signal` or the `code` by which that ended, where it is known, and CKPT_HUNG: true where it did not leave and
 * was ended. */
#define CKPT_END "end"
#define CKPT_HUNG "hung_after_result"

/* A member of a conversation that is that of the run which this one was forked from: true, and then it is
 * copied by whoever goes on in it. */
#define CKPT_SHARED "shared"

/* A member of a conversation that is not to be had any more: true, and then whoever goes on begins a new one
 * with its last answer. */
#define CKPT_LOST "lost"

/* A member of an entry: true where the response is what the operation said, though it looks like one in a file. */
#define CKPT_LITERAL "response_literal"

/* Whether the response of an entry is in a file, and what stands in its place says which. */
bool ckpt_is_file(const struct json *entry);
/* Whether a response would be taken for that without CKPT_LITERAL: whoever records it as it is then says so. */
bool ckpt_looks_like_file(const struct json *response);

#define CKPT_DIGEST_PREFIX "blake2b:"
enum { CKPT_DIGEST_TEXT = sizeof(CKPT_DIGEST_PREFIX) + 128 };
/* Over the canonical encoding of a value. */
int ckpt_digest(const struct json *value, char to[CKPT_DIGEST_TEXT], struct err *e);
/* Over bytes. */
void ckpt_digest_bytes(struct slice bytes, char to[CKPT_DIGEST_TEXT]);
/* Over a file's bytes from offset 0, streamed by pread; *size its length. */
int ckpt_digest_file(int fd, char to[CKPT_DIGEST_TEXT], uint64_t *size, struct err *e);
/* The same; `enough` (or NULL) is asked before each piece, and once it is true this fails with ERR_INTERRUPTED. */
typedef bool ckpt_enough(void *arg);
int ckpt_digest_file_unless(int fd, ckpt_enough *enough, void *arg, char to[CKPT_DIGEST_TEXT], uint64_t *size,
    struct err *e);

#endif
