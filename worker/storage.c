/*
 * When the state's storage fails. Nothing is started meanwhile; what runs goes on. Two kinds of
 * trouble: the writer cannot save outcomes (it tries again by itself), and an attempt could not get
 * its files or its line in attempts.log (which ends when the reserve can be allocated again).
 *
 * The reserve is a file of the state directory with nothing in it but room. It is given back at the
 * first trouble, so that the database can still take what the run has to say and what people ask of
 * it, on a file system where there is no other room.
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"

enum { RESERVE_BYTES = 512 << 10, START_FIRST_S = 1, START_MOST_S = 60 };

/* ---- The reserve: on the io thread ---- */

struct reserve_job {
	struct io_job job;
	bool wanted;
	bool end_line; /* a child's line in attempts.log may have been cut */
};

/* Zeros where the file system cannot allocate. */
static int
fill(int fd, struct err *e)
{
	static const char zeros[4096];
	size_t done;

	for (done = 0; done < RESERVE_BYTES; done += sizeof(zeros))
		if (fs_write_all(&fs_real, "reserve.fill", fd, (struct slice){zeros, sizeof(zeros)}, e) != 0)
			return -1;
	return 0;
}

static int
allocate(int fd, struct err *e)
{
	if (fallocate(fd, 0, 0, RESERVE_BYTES) == 0)
		return 0;
	if (errno != EOPNOTSUPP)
		return err_sys(e, ERR_IO, errno, "cannot allocate the reserve");
	return fill(fd, e);
}

static int
end_cut_line(const struct io_context *c, struct err *e)
{
	int fd = openat(c->run_fd, RUN_ATTEMPTS, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC), rc;

	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot open '%s'", RUN_ATTEMPTS);
	rc = fs_write_all(&fs_real, "attempts.line", fd, slice_of("\n"), e);
	fd_close(&fd);
	return rc;
}

static void
reserve_work(struct io_job *job, struct io_context *c)
{
	const struct reserve_job *j = (struct reserve_job *)job;
	int fd = openat(c->home->fd, HOME_RESERVE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	job->result = fd >= 0 ? 0 : err_sys(&job->error, ERR_IO, errno, "cannot open the reserve");
	if (fd >= 0 && j->wanted)
		job->result = allocate(fd, &job->error);
	if (job->result == 0 && j->end_line)
		job->result = end_cut_line(c, &job->error);
	if (fd >= 0 && (!j->wanted || job->result != 0) && ftruncate(fd, 0) != 0)
		job->result = err_sys(&job->error, ERR_IO, errno, "cannot empty the reserve");
	fd_close(&fd);
}

static void trouble_over(struct worker *w);

static void
reserve_done(struct io_job *job, void *owner)
{
	const struct reserve_job *j = (struct reserve_job *)job;
	struct worker *w = owner;

	w->storage.busy = false;
	w->storage.reserved = j->wanted && job->result == 0;
	/* Where it is files that lack there may be room all the same: the pause between tries holds. */
	if (w->storage.reserved && w->storage.start_fails &&
	    clock_monotonic_ns() >= w->storage.start_next_ns) {
		w->storage.start_fails = false;
		trouble_over(w);
	}
	free(job);
}

static void
reserve(struct worker *w, bool wanted)
{
	struct reserve_job *j;

	if (w->storage.busy && wanted)
		return;
	j = calloc(1, sizeof(*j));
	if (j == NULL)
		return; /* the next tick tries again */
	j->job.work = reserve_work;
	j->job.done = reserve_done;
	j->wanted = wanted;
	j->end_line = wanted && w->storage.start_fails;
	w->storage.busy = true;
	io_submit(w->io, &j->job);
}

/* ---- Beginning and end of trouble ---- */

/* The time that `--storage-timeout` gives is over. */
static void
limit_due(void *arg)
{
	struct worker *w = arg;

	log_line(LOG_ERROR, "storage has failed for too long");
	w->storage.over = true;
	worker_error(w, &w->trouble);
}

static void
trouble(struct worker *w, const struct err *why)
{
	struct buf text = {0};
	struct err e = {0};

	if (w->closed & CLOSED_STORAGE)
		return;
	admission_close(w, CLOSED_STORAGE);
	control_release(w);
	w->trouble = *why;
	log_line(LOG_ERROR, "the state cannot be saved: %s", why->msg);
	event_begin(w, "CheckpointError");
	event_text(w, "message", why->msg);
	event_end(w);
	reserve(w, false);
	buf_printf(&text, "checkpoints cannot be written (%s); no operation is started", why->msg);
	control_status(w, STATUS_RUNNING, "run.running.storage", buf_text(&text));
	buf_clear(&text);
	if (w->storage_timeout_ns > 0 && timer_arm(&w->loop.timers, &w->storage.limit,
		clock_monotonic_ns() + w->storage_timeout_ns, limit_due, w, &e) != 0)
		worker_error(w, &e);
}

static void
trouble_over(struct worker *w)
{
	if (!(w->closed & CLOSED_STORAGE) || w->storage.writer_fails || w->storage.start_fails)
		return;
	timer_disarm(&w->loop.timers, &w->storage.limit);
	admission_reopen(w, CLOSED_STORAGE);
	w->loop.again = true;
	log_line(LOG_INFO, "the state is saved again");
	event_begin(w, "CheckpointWorks");
	event_end(w);
	reserve(w, true);
	status_of_gates(w, "run.running.started");
}

/* Who waits for a record is told that it is not there, and goes on: the writer keeps it and may save it yet. */
static void
let_go(struct worker *w, const struct err *why)
{
	struct err e = {0};

	err_set(&e, ERR_UNCERTAIN, "the run is to end, and its state cannot be saved: %s; whether this will be "
	    "recorded is not known", why->msg);
	reactive_abandon(w, &e);
}

static void
try_failed(struct worker *w, const struct err *why)
{
	if (w->storage.trying == STORAGE_TRY_LAST) {
		w->storage.tried = true;
		return;
	}
	w->storage.trying = STORAGE_TRY_NONE;
	let_go(w, why);
}

void
storage_writer(struct worker *w, const struct ckpt_progress *p)
{
	w->storage.writer_fails = p->health == CKPT_STORAGE;
	if (!w->storage.writer_fails) {
		w->storage.trying = STORAGE_TRY_NONE;
		w->storage.tried = false;
		trouble_over(w);
		return;
	}
	/* A try that had begun before the last one was asked for is not the last one. */
	if (w->storage.trying != STORAGE_TRY_NONE && p->answered >= w->storage.last_try)
		try_failed(w, &p->why);
	trouble(w, &p->why);
}

void
storage_start_failed(struct worker *w, const struct err *why)
{
	int wait = w->storage.start_wait_s * 2;

	wait = wait < START_FIRST_S ? START_FIRST_S : wait > START_MOST_S ? START_MOST_S : wait;
	w->storage.start_wait_s = wait;
	w->storage.start_next_ns = clock_monotonic_ns() + wait * NS_PER_S;
	w->storage.start_fails = true;
	trouble(w, why);
}

void
storage_start_worked(struct worker *w)
{
	w->storage.start_wait_s = 0;
}

bool
storage_gave_up(const struct worker *w)
{
	return w->storage.tried;
}

bool
storage_ends_run(const struct worker *w)
{
	return w->storage.writer_fails && admission_over(w);
}

/* Operations that are left running ask the next worker. */
static bool
keeps_waiting(const struct worker *w)
{
	return !(w->closed & CLOSED_TERMINATED) && reactive_is_awaited(w);
}

/* Nothing may start any more: what waits to be saved gets one more chance, when nothing runs or when what
 * runs waits for it, and so would never end. */
void
storage_turn(struct worker *w)
{
	enum storage_try now = w->running == 0 ? STORAGE_TRY_LAST : STORAGE_TRY_AWAITED;

	if (!storage_ends_run(w) || w->writer_stopped || w->storage.trying >= now ||
	    (now == STORAGE_TRY_AWAITED && !keeps_waiting(w)))
		return;
	w->storage.trying = now;
	w->storage.last_try = ckpt_retry_now(w->writer);
}

void
storage_tick(struct worker *w)
{
	if (w->storage.writer_fails || w->storage.reserved ||
	    clock_monotonic_ns() < w->storage.start_next_ns)
		return;
	reserve(w, true);
}

void
storage_clear(struct worker *w)
{
	timer_disarm(&w->loop.timers, &w->storage.limit);
}

/* ---- What was executed and not saved ---- */

enum { UNSAVED_NAMES = 20 };

void
storage_name_unsaved(const struct worker *w, struct buf *to)
{
	size_t n, named = 0, executed = w->unsaved_count - w->unsaved_pending;
	const struct unsaved *u;

	for (n = 0; n < w->unsaved_count && named < UNSAVED_NAMES; n++) {
		u = &w->unsaved[(w->unsaved_first + n) % w->unsaved_cap];
		if (u->pending)
			continue;
		buf_printf(to, "%s%s", named++ == 0 ? "executed and not saved: " : ", ",
		    w->flow->ops[u->op].id);
	}
	if (executed > UNSAVED_NAMES)
		buf_printf(to, " and %zu more", executed - UNSAVED_NAMES);
}
