/*
 * `watchdog: TIME`: a worker whose count stands still for so long is killed, which makes its run a
 * crashed one. One that is stopped (SIGSTOP, a debugger) is alive: nobody can count then. Time is
 * CLOCK_MONOTONIC, which a suspended machine does not spend.
 */
#include <signal.h>
#include <unistd.h>

#include "daemon.h"
#include "flowsup/clock.h"
#include "flowsup/log.h"

enum { LOOK_LEAST_MS = 500, LOOK_MOST_MS = 10000, LOOKS_A_LIMIT = 4 };

static int64_t
look_every_ns(int64_t limit_ns)
{
	int64_t ns = limit_ns / LOOKS_A_LIMIT;

	if (ns < LOOK_LEAST_MS * NS_PER_MS)
		return LOOK_LEAST_MS * NS_PER_MS;
	return ns > LOOK_MOST_MS * NS_PER_MS ? LOOK_MOST_MS * NS_PER_MS : ns;
}

static bool
is_stopped(const struct worker *w)
{
	struct proc_stat st;
	struct err e = {0};

	return proc_stat_read(w->id.pid, &st, &e) == 0 && (st.state == 'T' || st.state == 't');
}

/* Whether there is, or may be, a sign of life since the look that began to count. */
static bool
shows_life(struct worker *w)
{
	uint64_t beats;

	/* Without the file, or its process, there is nothing to go by. */
	if (w->heartbeat < 0 || w->id.pid == 0 || w->process.fd < 0 ||
	    pread(w->heartbeat, &beats, sizeof(beats), 0) != (ssize_t)sizeof(beats))
		return true;
	if (beats == w->watched_beats && !is_stopped(w))
		return false;
	w->watched_beats = beats;
	return true;
}

static void
look_at(struct worker *w, int64_t now)
{
	struct err e = {0};

	if (shows_life(w)) {
		w->watched_since_ns = now;
		return;
	}
	if (w->bitten || now - w->watched_since_ns < w->watchdog_ns)
		return;
	log_line(LOG_WARNING, "run %s: its worker %ld has shown no sign of life for %llds and is killed",
	    w->run_id, (long)w->id.pid, (long long)((now - w->watched_since_ns) / NS_PER_S));
	w->bitten = true;
	if (proc_signal(w->process.fd, SIGKILL, &e) != 0)
		log_line(LOG_ERROR, "run %s: %s", w->run_id, e.msg);
}

void
watchdog_set(struct worker *w, const struct json *policy)
{
	int64_t limit = 0;

	if (!json_int64(json_get(policy, "watchdog_ns"), &limit) || limit <= 0)
		return;
	w->watchdog_ns = limit;
	w->watched_since_ns = clock_monotonic_ns();
	loop_set_timer(&w->daemon->loop, TIMER_WATCHDOG,
	    w->watched_since_ns + look_every_ns(limit));
}

void
watchdogs_look(void *daemon)
{
	struct daemon *d = daemon;
	int64_t now = clock_monotonic_ns();
	struct worker *w;

	for (w = worker_after(d, ""); w != NULL; w = worker_after(d, w->run_id)) {
		if (w->watchdog_ns == 0)
			continue;
		look_at(w, now);
		loop_set_timer(&d->loop, TIMER_WATCHDOG, now + look_every_ns(w->watchdog_ns));
	}
}
