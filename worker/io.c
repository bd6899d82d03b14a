/* The io thread: a queue of jobs, two buffers of log lines, an eventfd for what is done. Beside it
 * the threads for lengthy jobs, which are made when there are such jobs, and their queue. */
#include "io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"

/* More lines than this while the disk refuses them are dropped, oldest first kept, and counted. */
#define IO_LOG_MOST ((size_t)64 << 20)

struct queue {
	struct io_job *first, **last;
};

struct log_buffer {
	struct buf waiting; /* shared, under the lock */
	struct buf writing; /* the thread's own */
	int fd;
	uint64_t dropped;
};

struct io {
	struct io_context context;
	pthread_t thread, lengthy[IO_LENGTHY_MOST];
	pthread_mutex_t lock;
	pthread_cond_t wake, wake_lengthy;
	int event_fd;
	atomic_bool enough;
	/* Under the lock: */
	struct queue todo, lengthy_todo, finished;
	unsigned lengthy_threads, lengthy_idle;
	struct log_buffer logs[IO_LOGS];
	int64_t logs_due_ns; /* when the waiting lines are to be written; 0: none wait */
	bool sleeping, leaving, trouble, trouble_changed;
	struct err trouble_why;
	/* The loop's own: */
	size_t pending;
};

static const char *const log_names[IO_LOGS] = {
	[IO_LOG_EVENTS] = RUN_EVENTS,
	[IO_LOG_ATTEMPTS] = RUN_ATTEMPTS,
};

static void
queue_init(struct queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static void
queue_put(struct queue *q, struct io_job *job)
{
	job->next = NULL;
	*q->last = job;
	q->last = &job->next;
}

static struct io_job *
queue_get(struct queue *q)
{
	struct io_job *job = q->first;

	if (job != NULL) {
		q->first = job->next;
		if (q->first == NULL)
			q->last = &q->first;
	}
	return job;
}

/* ---- The thread ---- */

static void
set_trouble(struct io *io, bool failing, const struct err *why)
{
	if (io->trouble == failing)
		return;
	io->trouble = failing;
	io->trouble_changed = true;
	if (failing)
		io->trouble_why = *why;
}

/* Writes what is in `writing`; a part that was written is taken off, so that no line is doubled. */
static int
write_log(struct log_buffer *l, const char *name, struct err *e)
{
	size_t done = 0;
	ssize_t n;

	while (done < l->writing.len) {
		n = write(l->fd, l->writing.data + done, l->writing.len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_sys(e, ERR_IO, errno, "cannot write '%s'", name);
			break;
		}
		done += (size_t)n;
	}
	if (done > 0 && done < l->writing.len)
		memmove(l->writing.data, l->writing.data + done, l->writing.len - done);
	l->writing.len -= done;
	return l->writing.len == 0 ? 0 : -1;
}

/* Called and returns with the lock held; it is given up while writing. */
static void
write_logs(struct io *io)
{
	struct buf taken[IO_LOGS];
	struct err why = {0};
	int i, failed = 0;

	for (i = 0; i < IO_LOGS; i++) {
		taken[i] = io->logs[i].waiting;
		io->logs[i].waiting = (struct buf){0};
	}
	io->logs_due_ns = 0;
	pthread_mutex_unlock(&io->lock);
	for (i = 0; i < IO_LOGS; i++) {
		if (io->logs[i].writing.len == 0) {
			buf_clear(&io->logs[i].writing);
			io->logs[i].writing = taken[i];
		} else {
			buf_slice(&io->logs[i].writing, buf_view(&taken[i]));
			buf_clear(&taken[i]);
		}
		if (write_log(&io->logs[i], log_names[i], &why) != 0)
			failed = -1;
	}
	pthread_mutex_lock(&io->lock);
	set_trouble(io, failed != 0, &why);
}

/* With the lock held: sleeps until there is a job, or the waiting lines are due, or it must end. */
static void
wait_for_work(struct io *io)
{
	struct timespec until;

	io->sleeping = true;
	if (io->logs_due_ns == 0) {
		pthread_cond_wait(&io->wake, &io->lock);
	} else {
		until.tv_sec = (time_t)(io->logs_due_ns / NS_PER_S);
		until.tv_nsec = (long)(io->logs_due_ns % NS_PER_S);
		pthread_cond_timedwait(&io->wake, &io->lock, &until);
	}
	io->sleeping = false;
}

static void
tell(struct io *io)
{
	const uint64_t one = 1;
	ssize_t n;

	/* Fails only when the counter is full, and then the loop is awake anyway. */
	do
		n = write(io->event_fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
}

static void
finish(struct io *io, struct io_job *job)
{
	bool first = io->finished.first == NULL;

	queue_put(&io->finished, job);
	if (first)
		tell(io);
}

static void *
lengthy_main(void *arg)
{
	struct io *io = arg;
	struct io_context context = io->context;
	struct io_job *job;

	context.store = NULL;
	pthread_mutex_lock(&io->lock);
	while (!io->enough) {
		job = queue_get(&io->lengthy_todo);
		if (job == NULL) {
			io->lengthy_idle++;
			pthread_cond_wait(&io->wake_lengthy, &io->lock);
			io->lengthy_idle--;
			continue;
		}
		pthread_mutex_unlock(&io->lock);
		job->work(job, &context);
		pthread_mutex_lock(&io->lock);
		job->given_up = io->enough;
		finish(io, job);
	}
	pthread_mutex_unlock(&io->lock);
	return NULL;
}

/* With the lock held. False: there is no thread for it, and it is to be done here. */
static bool
hand_on(struct io *io, struct io_job *job)
{
	if (io->lengthy_idle == 0 && io->lengthy_threads < IO_LENGTHY_MOST &&
	    pthread_create(&io->lengthy[io->lengthy_threads], NULL, lengthy_main, io) == 0)
		io->lengthy_threads++;
	if (io->lengthy_threads == 0)
		return false;
	queue_put(&io->lengthy_todo, job);
	pthread_cond_signal(&io->wake_lengthy);
	return true;
}

static void
do_job(struct io *io, struct io_job *job)
{
	pthread_mutex_unlock(&io->lock);
	job->work(job, &io->context);
	pthread_mutex_lock(&io->lock);
	if (job->lengthy && hand_on(io, job))
		return;
	if (job->lengthy) {
		pthread_mutex_unlock(&io->lock);
		job->work(job, &io->context);
		pthread_mutex_lock(&io->lock);
	}
	finish(io, job);
}

static bool
logs_are_due(const struct io *io)
{
	return io->logs_due_ns != 0 &&
	    (io->leaving || clock_monotonic_ns() >= io->logs_due_ns);
}

static void *
thread_main(void *arg)
{
	struct io *io = arg;
	struct io_job *job;
	struct store *store;
	struct err ignored = {0};

	/* Before the first job wants it. What keeps it closed that job finds too, and tells. */
	(void)io_store(&io->context, &store, &ignored);
	pthread_mutex_lock(&io->lock);
	for (;;) {
		if (logs_are_due(io))
			write_logs(io);
		else if ((job = queue_get(&io->todo)) != NULL)
			do_job(io, job);
		else if (io->leaving)
			break;
		else
			wait_for_work(io);
	}
	pthread_mutex_unlock(&io->lock);
	io_store_close(&io->context);
	return NULL;
}

int
io_store(struct io_context *c, struct store **out, struct err *e)
{
	if (c->store == NULL &&
	    store_open(c->home, STORE_WORKER, false, IO_BUSY_MS, &c->store, e) != 0)
		return -1;
	*out = c->store;
	return 0;
}

void
io_store_close(struct io_context *c)
{
	store_close(c->store);
	c->store = NULL;
}

/* ---- The loop's side ---- */

static int
open_logs(struct io *io, struct err *e)
{
	int i;

	for (i = 0; i < IO_LOGS; i++) {
		io->logs[i].fd = openat(io->context.run_fd, log_names[i],
		    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (io->logs[i].fd < 0)
			return err_sys(e, ERR_IO, errno, "cannot open '%s'", log_names[i]);
	}
	return 0;
}

static int
start_thread(struct io *io, struct err *e)
{
	pthread_condattr_t attr;
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&io->wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_cond_init(&io->wake_lengthy, NULL);
	pthread_mutex_init(&io->lock, NULL);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&io->thread, NULL, thread_main, io);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		return 0;
	pthread_cond_destroy(&io->wake);
	pthread_cond_destroy(&io->wake_lengthy);
	pthread_mutex_destroy(&io->lock);
	return err_sys(e, ERR_IO, rc, "cannot start a thread");
}

static void
io_free(struct io *io)
{
	int i;

	for (i = 0; i < IO_LOGS; i++) {
		fd_close(&io->logs[i].fd);
		buf_clear(&io->logs[i].waiting);
		buf_clear(&io->logs[i].writing);
	}
	fd_close(&io->event_fd);
	free(io);
}

int
io_open(const struct home *home, int run_fd, int ops_fd, const char *run_id, struct io **out,
    struct err *e)
{
	struct io *io = calloc(1, sizeof(*io));
	int i;

	if (io == NULL)
		return err_nomem(e);
	io->context = (struct io_context){
	    .home = home, .run_fd = run_fd, .ops_fd = ops_fd, .run_id = run_id,
	    .enough = &io->enough};
	queue_init(&io->todo);
	queue_init(&io->lengthy_todo);
	queue_init(&io->finished);
	for (i = 0; i < IO_LOGS; i++)
		io->logs[i].fd = -1;
	io->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (io->event_fd < 0)
		err_sys(e, ERR_IO, errno, "cannot make an event descriptor");
	else if (open_logs(io, e) == 0 && start_thread(io, e) == 0) {
		*out = io;
		return 0;
	}
	io_free(io);
	return -1;
}

void
io_submit(struct io *io, struct io_job *job)
{
	bool wake;

	assert(job->work != NULL && job->done != NULL);
	io->pending++;
	pthread_mutex_lock(&io->lock);
	queue_put(&io->todo, job);
	wake = io->sleeping;
	pthread_mutex_unlock(&io->lock);
	if (wake)
		pthread_cond_signal(&io->wake);
}

int
io_append(struct io *io, enum io_log log, struct slice lines, struct err *e)
{
	struct log_buffer *l = &io->logs[log];
	bool wake = false;
	int rc = 0;

	if (lines.len == 0)
		return 0;
	pthread_mutex_lock(&io->lock);
	if (l->waiting.len + lines.len > IO_LOG_MOST)
		l->dropped++;
	else
		buf_slice(&l->waiting, lines);
	rc = buf_ok(&l->waiting, e);
	/* A thread that already waits for the moment needs no call. */
	if (io->logs_due_ns == 0) {
		io->logs_due_ns = clock_monotonic_ns() + IO_LOG_DELAY_MS * NS_PER_MS;
		wake = io->sleeping;
	}
	pthread_mutex_unlock(&io->lock);
	if (wake)
		pthread_cond_signal(&io->wake);
	return rc;
}

void
io_logs_first(struct io *io)
{
	pthread_mutex_lock(&io->lock);
	if (io->logs_due_ns != 0)
		io->logs_due_ns = 1;
	pthread_mutex_unlock(&io->lock);
}

bool
io_log_trouble(struct io *io, bool *failing, struct err *e)
{
	bool changed;

	pthread_mutex_lock(&io->lock);
	changed = io->trouble_changed;
	io->trouble_changed = false;
	*failing = io->trouble;
	if (changed && io->trouble)
		*e = io->trouble_why;
	pthread_mutex_unlock(&io->lock);
	return changed;
}

int
io_event_fd(const struct io *io)
{
	return io->event_fd;
}

size_t
io_take(struct io *io, void *owner)
{
	struct io_job *job, *next;
	uint64_t count;
	size_t n = 0;

	/* First the event, then the queue: what is put in between makes a new event. */
	if (read(io->event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN && errno != EINTR)
		return 0;
	pthread_mutex_lock(&io->lock);
	job = io->finished.first;
	queue_init(&io->finished);
	pthread_mutex_unlock(&io->lock);
	for (; job != NULL; job = next) {
		next = job->next;
		io->pending--;
		job->done(job, owner);
		n++;
	}
	return n;
}

size_t
io_pending(const struct io *io)
{
	return io->pending;
}

/* After the io thread, which may have handed something on to the last. */
static void
end_lengthy(struct io *io)
{
	struct io_job *job;
	unsigned n;

	/* Also for those that are just about to wait, under the lock. */
	pthread_mutex_lock(&io->lock);
	pthread_cond_broadcast(&io->wake_lengthy);
	pthread_mutex_unlock(&io->lock);
	for (n = 0; n < io->lengthy_threads; n++)
		pthread_join(io->lengthy[n], NULL);
	while ((job = queue_get(&io->lengthy_todo)) != NULL) {
		job->given_up = true;
		finish(io, job);
	}
}

void
io_close(struct io *io, void *owner)
{
	if (io == NULL)
		return;
	pthread_mutex_lock(&io->lock);
	io->leaving = true;
	io->enough = true;
	pthread_mutex_unlock(&io->lock);
	pthread_cond_signal(&io->wake);
	pthread_join(io->thread, NULL);
	end_lengthy(io);
	io_take(io, owner);
	pthread_cond_destroy(&io->wake);
	pthread_cond_destroy(&io->wake_lengthy);
	pthread_mutex_destroy(&io->lock);
	io_free(io);
}
