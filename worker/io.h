/*
 * The helper thread for everything that may wait: SQLite, digests, large responses, and the two
 * logs of the run directory. Jobs own their bytes; the thread blocks all signals and logs nothing.
 * What takes long is handed on to threads beside it (IO_LENGTHY_MOST at once), so that nothing ever
 * waits behind the digest of a large file but other large files. Only this module (and the
 * checkpoint writer) knows about threads.
 */
#ifndef WORKER_IO_H
#define WORKER_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"
#include "flowsup/home.h"
#include "flowsup/store.h"

/* Jobs stand in one queue: a busy database keeps those behind it for so long; then a timer of the
 * loop tries again. */
enum { IO_BUSY_MS = 50 };

enum { IO_LENGTHY_MOST = 4 };

/* What jobs work with, on the thread's side. A lengthy job has a context without the store. */
struct io_context {
	const struct home *home;
	int run_fd, ops_fd;
	const char *run_id;
	struct store *store; /* NULL unless it is open: by io_store() */
	const atomic_bool *enough; /* what a lengthy job is at is of no use any more */
};

struct io_job;
typedef void io_work(struct io_job *job, struct io_context *c);
typedef void io_done(struct io_job *job, void *owner);

/*
 * First member of each kind of job. `work` runs on the thread, in the order of io_submit, and
 * leaves 0 or -1 in result, with error. `done` then runs in the loop (io_take) and owns the job.
 * A `work` that finds that it would take long sets `lengthy` and returns: it is called again, on
 * another thread, beside what was submitted after it. io_close gives up what is still being done
 * there: such a job has no result.
 */
struct io_job {
	struct io_job *next;
	io_work *work;
	io_done *done;
	bool lengthy, given_up;
	int result;
	struct err error;
};

enum io_log { IO_LOG_EVENTS, IO_LOG_ATTEMPTS, IO_LOGS };

struct io;
/* Borrows home and the descriptors. Opens events.jsonl and attempts.log for appending; the thread begins
 * to open the database, which takes a while, and is needed by the first job at the latest. */
int io_open(const struct home *home, int run_fd, int ops_fd, const char *run_id, struct io **out,
    struct err *e);
/* Never waits. Consumes the job. */
void io_submit(struct io *io, struct io_job *job);
/*
 * Takes whole lines; the thread writes what came within IO_LOG_DELAY_MS by one write. A failure
 * keeps the lines and is tried again with the next ones; io_log_trouble tells. ERR_NOMEM.
 */
int io_append(struct io *io, enum io_log log, struct slice lines, struct err *e);
enum { IO_LOG_DELAY_MS = 20 };
/* Lines that were taken by now are written before any job that is submitted from now on. */
void io_logs_first(struct io *io);
/* True once after the state changed; *e is set while the logs cannot be written. */
bool io_log_trouble(struct io *io, bool *failing, struct err *e);
/* Readable when io_take has something. */
int io_event_fd(const struct io *io);
/* Calls done(job, owner) for each finished job; returns how many. */
size_t io_take(struct io *io, void *owner);
/* Jobs submitted and not yet handed to `done`. */
size_t io_pending(const struct io *io);
/* Waits until the thread has done everything but lengthy jobs, ends it, calls `done` for what is
 * left, frees. */
void io_close(struct io *io, void *owner);

/* On the thread's side: the open store, opened at first use and again after io_store_close. */
int io_store(struct io_context *c, struct store **out, struct err *e);
void io_store_close(struct io_context *c);

#endif
