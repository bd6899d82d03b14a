/*
 * The writer: one thread that owns the files and the state.
 *
 *	admit  ->  waiting  ->  (thread) pending  ->  append or fresh base  ->  acked  ->  take_ack
 *
 * `waiting`, `acked`, progress and the flags belong to the mutex; everything else to the thread
 * between its start and its end (commit.h). An item is acknowledged when an fsync covers it and the
 * names still lead to our files.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base.h"
#include "commit.h"
#include "entry.h"
#include "room.h"

enum { RETRY_FIRST_S = 1, RETRY_MOST_S = 60, LOOK_S = 1 };

struct ckpt_writer {
	struct ckpt_options o;
	char *run_id;
	pthread_t thread;
	int event_fd;

	pthread_mutex_t mutex;
	pthread_cond_t work, settled;
	struct list waiting, acked;
	struct ckpt_progress progress;
	uint64_t tickets, asked; /* asked: tries at once */
	bool closing, abandon, retry, ended;
	bool urgent;		      /* what waits does not wait for others any longer */
	struct timespec gather_until; /* of the first that waits */

	/* The thread's own. */
	struct committer c;
	unsigned retry_s;
	struct timespec retry_at, look_at;
	struct room room; /* with which the last try failed; known only if room was what it lacked */
};

/* ---- Telling the loop ---- */

static void
signal_event(struct ckpt_writer *w)
{
	const uint64_t one = 1;
	ssize_t n;

	/* EAGAIN says that the counter is full, and then it is readable: eventfd(2). */
	do
		n = write(w->event_fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
}

/* With the mutex held. */
static void
set_health(struct ckpt_writer *w, enum ckpt_health health, const struct err *why)
{
	w->progress.health = health;
	if (health == CKPT_HEALTHY)
		err_clear(&w->progress.why);
	else
		w->progress.why = *why;
}

static void
copy_counts(struct ckpt_writer *w)
{
	struct ckpt_progress *p = &w->progress;

	p->journal_bytes = w->c.files.journal_bytes_all;
	p->records = w->c.files.records_all;
	p->bases = w->c.files.bases_all;
	p->directory_sync = w->c.files.place.directory_sync;
	memcpy(p->generation, w->c.files.generation, sizeof(p->generation));
}

/* What became durable; also called when that was nothing, for the counts. */
static void
acknowledge(void *arg, struct list *done, const struct err *end)
{
	struct ckpt_writer *w = arg;
	const bool any = done->head != NULL;

	pthread_mutex_lock(&w->mutex);
	/* Tickets are given in the order of the list: its last one is the highest. */
	if (any)
		w->progress.acked = list_last(done)->ack.ticket;
	if (end != NULL)
		set_health(w, CKPT_STOPPED, end);
	copy_counts(w);
	list_move(&w->acked, done);
	pthread_cond_broadcast(&w->settled);
	pthread_mutex_unlock(&w->mutex);
	/* Without the mutex, which is the first thing that the loop wants when it wakes up. */
	if (any)
		signal_event(w);
}

/* ---- Trouble ---- */

static void
schedule_retry(struct ckpt_writer *w)
{
	struct timespec now;

	w->retry_s = w->retry_s == 0 ? RETRY_FIRST_S : w->retry_s * 2;
	if (w->retry_s > RETRY_MOST_S)
		w->retry_s = RETRY_MOST_S;
	clock_gettime(CLOCK_MONOTONIC, &now);
	w->retry_at = w->look_at = now;
	w->retry_at.tv_sec += (time_t)w->retry_s;
	w->look_at.tv_sec += LOOK_S;
}

/* answered: the latest wish for a try at once that this try was made after. */
static void
trouble(struct ckpt_writer *w, uint64_t answered, const struct err *e)
{
	const enum ckpt_health health = commit_error_is_final(e) ? CKPT_STOPPED : CKPT_STORAGE;

	schedule_retry(w);
	pthread_mutex_lock(&w->mutex);
	set_health(w, health, e);
	w->progress.answered = answered;
	copy_counts(w);
	signal_event(w);
	pthread_cond_broadcast(&w->settled);
	pthread_mutex_unlock(&w->mutex);
}

static void
recovered(struct ckpt_writer *w)
{
	w->retry_s = 0;
	pthread_mutex_lock(&w->mutex);
	if (w->progress.health == CKPT_STORAGE) {
		set_health(w, CKPT_HEALTHY, NULL);
		signal_event(w);
	}
	pthread_mutex_unlock(&w->mutex);
}

/* One turn with everything that waits. */
static void
turn(struct ckpt_writer *w, uint64_t answered)
{
	const bool again = w->retry_s > 0;
	struct err e = {0};

	/* Taken before a try, so that room which comes while it fails is noticed afterwards. */
	if (again)
		w->room = room_of(w->c.files.place.run_fd);
	if (commit(&w->c, again, &e) == 0) {
		recovered(w);
		return;
	}
	if (!again)
		w->room = room_of(w->c.files.place.run_fd);
	w->room.known = w->room.known && e.code == ERR_NOSPACE;
	trouble(w, answered, &e);
}

/* ---- The thread ---- */

/* With the mutex held: waits for more to commit together. True: it is time. */
static bool
gathered(struct ckpt_writer *w)
{
	if (w->o.gather_ms == 0 || w->urgent || w->closing || w->c.pending.head != NULL)
		return true;
	return pthread_cond_timedwait(&w->work, &w->mutex, &w->gather_until) == ETIMEDOUT;
}

static bool
is_before(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* Asks for a try when there is more room. A file system may take its time: without the mutex. */
static void
look_for_room(struct ckpt_writer *w)
{
	bool grew;

	pthread_mutex_unlock(&w->mutex);
	grew = room_grew(w->room, room_of(w->c.files.place.run_fd));
	pthread_mutex_lock(&w->mutex);
	w->retry |= grew;
	clock_gettime(CLOCK_MONOTONIC, &w->look_at);
	w->look_at.tv_sec += LOOK_S;
}

/* With the mutex held: waits in trouble, at most until the next look or try. */
static void
wait_in_trouble(struct ckpt_writer *w)
{
	const bool look = w->room.known && is_before(w->look_at, w->retry_at);

	if (pthread_cond_timedwait(&w->work, &w->mutex, look ? &w->look_at : &w->retry_at) !=
	    ETIMEDOUT)
		return;
	if (look)
		look_for_room(w);
	else
		w->retry = true;
}

/* With the mutex held: waits until there is something to do. False: the end. */
static bool
wait_for_work(struct ckpt_writer *w)
{
	for (;;) {
		const enum ckpt_health health = w->progress.health;
		const bool idle = w->waiting.head == NULL && w->c.pending.head == NULL;

		if (w->abandon || health == CKPT_STOPPED)
			return false;
		if (health == CKPT_STORAGE) {
			/* A last try for what waits, before the end. */
			if (w->closing || w->retry)
				return true;
			wait_in_trouble(w);
			continue;
		}
		if (!idle && gathered(w))
			return true;
		if (!idle)
			continue;
		if (w->closing)
			return false;
		pthread_cond_wait(&w->work, &w->mutex);
	}
}

static void *
run(void *arg)
{
	struct ckpt_writer *w = arg;
	uint64_t asked;
	bool last;

	pthread_mutex_lock(&w->mutex);
	while (wait_for_work(w)) {
		/* In trouble the end comes after one more try, whatever its result. */
		last = w->closing && w->progress.health == CKPT_STORAGE;
		w->retry = w->urgent = false;
		asked = w->asked;
		list_move(&w->c.pending, &w->waiting);
		pthread_mutex_unlock(&w->mutex);
		turn(w, asked);
		pthread_mutex_lock(&w->mutex);
		if (last && w->progress.health != CKPT_HEALTHY)
			break;
	}
	w->ended = true;
	pthread_cond_broadcast(&w->settled);
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

static int
start_thread(struct ckpt_writer *w, struct err *e)
{
	sigset_t all, before;
	int sys;

	/* Signals belong to the loop: the thread is born with all of them blocked. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sys = pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (sys != 0)
		return err_sys(e, ERR_IO, sys, "cannot start the checkpoint's thread");
	return 0;
}

/* ---- Opening and closing ---- */

static int
init_locks(struct ckpt_writer *w, struct err *e)
{
	pthread_condattr_t attr;
	int sys;

	sys = pthread_mutex_init(&w->mutex, NULL);
	if (sys == 0)
		sys = pthread_condattr_init(&attr);
	if (sys != 0)
		return err_sys(e, ERR_IO, sys, "cannot make a lock");
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	sys = pthread_cond_init(&w->work, &attr);
	if (sys == 0)
		sys = pthread_cond_init(&w->settled, &attr);
	pthread_condattr_destroy(&attr);
	return sys == 0 ? 0 : err_sys(e, ERR_IO, sys, "cannot make a lock");
}

static void
writer_free(struct ckpt_writer *w)
{
	list_clear(&w->waiting);
	list_clear(&w->acked);
	committer_clear(&w->c);
	fd_close(&w->event_fd);
	free(w->run_id);
	free(w);
}

static struct ckpt_writer *
writer_new(const struct ckpt_options *o, const struct json *state, struct err *e)
{
	struct ckpt_writer *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		err_nomem(e);
		return NULL;
	}
	list_init(&w->waiting);
	list_init(&w->c.pending);
	w->c.o = &w->o;
	w->c.durable = acknowledge;
	w->c.arg = w;
	list_init(&w->acked);
	w->event_fd = -1;
	w->o = *o;
	if (w->o.fs == NULL)
		w->o.fs = &fs_real;
	w->run_id = strdup(o->run_id);
	w->o.run_id = w->run_id;
	if (w->run_id == NULL) {
		err_nomem(e);
		goto fail;
	}
	if ((o->version == 3 ? state_init_packed : state_init)(&w->c.tip, state, e) != 0)
		goto fail;
	w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->event_fd < 0) {
		err_sys(e, ERR_IO, errno, "eventfd");
		goto fail;
	}
	return w;
fail:
	writer_free(w);
	return NULL;
}

int
ckpt_writer_open(const struct ckpt_options *o, const struct json *state, struct ckpt_writer **out,
    struct err *e)
{
	struct ckpt_writer *w;

	assert(o->version == 2 || o->version == 3);
	assert(o->compact_records > 0 && o->compact_bytes > 0 && o->first_sequence > 0);
	if (state_check(state, NULL, e) != 0) {
		if (e != NULL && e->code != ERR_NOMEM)
			e->code = ERR_DOCUMENT;
		return err_wrap(e, "the initial state");
	}
	w = writer_new(o, state, e);
	if (w == NULL)
		return -1;
	if (init_locks(w, e) != 0 || files_open(&w->c.files, &w->o, &w->c.tip, e) != 0) {
		writer_free(w);
		return err_wrap(e, "checkpoint");
	}
	copy_counts(w);
	if (start_thread(w, e) != 0) {
		files_withdraw(&w->c.files);
		writer_free(w);
		return -1;
	}
	*out = w;
	return 0;
}

int
ckpt_writer_close(struct ckpt_writer *w, bool abandon, struct err *e)
{
	uint64_t missing;
	int result = 0;

	pthread_mutex_lock(&w->mutex);
	w->closing = true;
	w->abandon = abandon;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->mutex);
	/* A system call that can still change the files is waited for. */
	pthread_join(w->thread, NULL);
	missing = w->tickets - w->progress.acked;
	if (missing > 0) {
		if (w->progress.health != CKPT_HEALTHY && e != NULL)
			*e = w->progress.why;
		else
			err_set(e, ERR_IO, "abandoned");
		result = err_wrap(e, "checkpoint: %ju outcome%s not saved", (uintmax_t)missing,
		    missing == 1 ? " was" : "s were");
	} else if (w->progress.health == CKPT_STOPPED) {
		if (e != NULL)
			*e = w->progress.why;
		result = err_wrap(e, "checkpoint");
	}
	files_close(&w->c.files);
	pthread_cond_destroy(&w->work);
	pthread_cond_destroy(&w->settled);
	pthread_mutex_destroy(&w->mutex);
	writer_free(w);
	return result;
}

/* ---- What the loop calls ---- */

/* With the mutex held. What joins others that gather needs no wake-up. */
static void
put_waiting(struct ckpt_writer *w, struct item *i, bool now)
{
	const bool first = w->waiting.head == NULL;

	list_add(&w->waiting, i);
	if (w->o.gather_ms > 0 && first) {
		clock_gettime(CLOCK_MONOTONIC, &w->gather_until);
		w->gather_until.tv_nsec += (long)w->o.gather_ms * 1000000;
		w->gather_until.tv_sec += w->gather_until.tv_nsec / 1000000000;
		w->gather_until.tv_nsec %= 1000000000;
	}
	if (now)
		w->urgent = true;
	if (w->o.gather_ms == 0 || first || now)
		pthread_cond_signal(&w->work);
}

static int
admit(struct ckpt_writer *w, enum ckpt_kind kind, struct json *entry, struct json *context, bool now,
    uint64_t *ticket, struct err *e)
{
	struct item *i = item_new(kind, entry, context, e);

	if (i == NULL)
		return -1;
	pthread_mutex_lock(&w->mutex);
	if (w->progress.health == CKPT_STOPPED) {
		if (e != NULL)
			*e = w->progress.why;
		pthread_mutex_unlock(&w->mutex);
		item_free(i);
		if (e != NULL)
			e->code = ERR_REFUSED;
		return err_wrap(e, "checkpoint: stopped");
	}
	i->ack.ticket = ++w->tickets;
	w->progress.admitted = w->tickets;
	if (ticket != NULL)
		*ticket = w->tickets;
	put_waiting(w, i, now);
	pthread_mutex_unlock(&w->mutex);
	return 0;
}

/* Changes of the context are what somebody waits for. */
int
ckpt_admit(struct ckpt_writer *w, enum ckpt_kind kind, struct json *entry, struct json *context,
    uint64_t *ticket, struct err *e)
{
	return admit(w, kind, entry, context, kind == CKPT_CONTEXT, ticket, e);
}

int
ckpt_admit_now(struct ckpt_writer *w, enum ckpt_kind kind, struct json *entry, struct json *context,
    uint64_t *ticket, struct err *e)
{
	return admit(w, kind, entry, context, true, ticket, e);
}

void
ckpt_hurry(struct ckpt_writer *w)
{
	pthread_mutex_lock(&w->mutex);
	if (w->waiting.head != NULL && !w->urgent) {
		w->urgent = true;
		pthread_cond_signal(&w->work);
	}
	pthread_mutex_unlock(&w->mutex);
}

int
ckpt_event_fd(const struct ckpt_writer *w)
{
	return w->event_fd;
}

bool
ckpt_take_ack(struct ckpt_writer *w, struct ckpt_ack *out)
{
	struct item *i;
	uint64_t count;

	pthread_mutex_lock(&w->mutex);
	i = list_take(&w->acked);
	/* Reset under the mutex, so that no acknowledgement slips in between; EAGAIN: it was 0. */
	if (i == NULL)
		while (read(w->event_fd, &count, sizeof(count)) < 0 && errno == EINTR)
			continue;
	pthread_mutex_unlock(&w->mutex);
	if (i == NULL)
		return false;
	*out = i->ack;
	i->ack.identity = NULL;
	item_free(i);
	return true;
}

struct ckpt_progress
ckpt_progress(struct ckpt_writer *w)
{
	struct ckpt_progress p;

	pthread_mutex_lock(&w->mutex);
	p = w->progress;
	pthread_mutex_unlock(&w->mutex);
	return p;
}

uint64_t
ckpt_retry_now(struct ckpt_writer *w)
{
	uint64_t number;

	pthread_mutex_lock(&w->mutex);
	w->retry = true;
	number = ++w->asked;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->mutex);
	return number;
}

int
ckpt_flush(struct ckpt_writer *w, struct err *e)
{
	int result = 0;

	pthread_mutex_lock(&w->mutex);
	w->urgent = true;
	pthread_cond_signal(&w->work);
	while (w->progress.acked != w->tickets && w->progress.health == CKPT_HEALTHY && !w->ended)
		pthread_cond_wait(&w->settled, &w->mutex);
	if (w->progress.acked != w->tickets || w->progress.health != CKPT_HEALTHY) {
		if (e != NULL)
			*e = w->progress.why;
		result = -1;
	}
	pthread_mutex_unlock(&w->mutex);
	return result;
}
