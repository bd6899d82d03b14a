/* Ends of processes that came to us as their worker died, before a report has said what they were. */
#include <stdlib.h>
#include <string.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"
#include "kept_private.h"

enum {
	ENDS_MOST = 1024, /* held at once, the latest */
	US_PER_S = 1000000
};

struct unclaimed {
	TAILQ_ENTRY(unclaimed) entry;
	struct proc_id id;
	struct proc_end end;
	double time;
};

static struct unclaimed *
find(const struct daemon *d, struct proc_id id)
{
	struct unclaimed *u;

	TAILQ_FOREACH(u, &d->kept.ends, entry)
	{
		if (u->id.pid == id.pid && u->id.start_ticks == id.start_ticks)
			return u;
	}
	return NULL;
}

static void
forget(struct daemon *d, struct unclaimed *u)
{
	TAILQ_REMOVE(&d->kept.ends, u, entry);
	d->kept.nends--;
	free(u);
}

void
kept_clear_ends(struct daemon *d)
{
	while (!TAILQ_EMPTY(&d->kept.ends))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		forget(d, TAILQ_FIRST(&d->kept.ends));
}

static void
hold(struct daemon *d, struct proc_id id, const struct proc_end *end, double time)
{
	struct unclaimed *u = calloc(1, sizeof(*u)), *old;

	if (u == NULL)
		return; /* then its end is unknown, as it is without a supervisor */
	*u = (struct unclaimed){.id = id, .end = *end, .time = time};
	TAILQ_INSERT_TAIL(&d->kept.ends, u, entry);
	d->kept.nends++;
	/* NOLINTBEGIN(clang-analyzer-unix.Malloc): what was freed has left the list */
	while ((old = TAILQ_FIRST(&d->kept.ends)) != NULL && d->kept.nends > ENDS_MOST)
		forget(d, old);
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
}

void
kept_hold(struct daemon *d, struct proc_id id, const struct proc_end *end)
{
	hold(d, id, end, (double)clock_wall_ns() / (double)NS_PER_S);
}

bool
kept_claim(struct daemon *d, struct kept_op *o)
{
	struct unclaimed *u = find(d, o->id);
	bool written;

	if (u == NULL)
		return false;
	kept_set_end(o, &u->end, u->time, "supervisor");
	written = kept_write_end(d, o, &(struct err){0});
	forget(d, u);
	return written;
}

/* ---- As JSON ---- */

static int64_t
microseconds(const struct timeval *t)
{
	return (int64_t)t->tv_sec * US_PER_S + t->tv_usec;
}

static struct json *
end_handed(struct proc_id id, const struct proc_end *end, double time)
{
	struct json *o = json_set(json_object(), "pid", json_int(id.pid));

	o = json_set(o, "start", json_uint(id.start_ticks));
	o = json_set(o, "code", json_int(end->code));
	o = json_set(o, "signaled", json_bool(end->signaled));
	o = json_set(o, "dumped", json_bool(end->dumped));
	o = json_set(o, "user_us", json_int(microseconds(&end->usage.ru_utime)));
	o = json_set(o, "system_us", json_int(microseconds(&end->usage.ru_stime)));
	o = json_set(o, "max_rss_kib", json_int(end->usage.ru_maxrss));
	return json_set(o, "time", json_real(time));
}

static void
set_microseconds(const struct json *o, const char *name, struct timeval *to)
{
	int64_t us = 0;

	(void)json_int64(json_get(o, name), &us);
	*to = (struct timeval){us / US_PER_S, us % US_PER_S};
}

bool
kept_read_end(const struct json *o, struct proc_id *id, struct proc_end *end, double *time)
{
	int64_t pid = 0, code = 0, rss = 0;

	*end = (struct proc_end){.known = true,
	    .signaled = json_is_true(json_get(o, "signaled")),
	    .dumped = json_is_true(json_get(o, "dumped"))};
	if (!json_int64(json_get(o, "pid"), &pid) || !json_uint64(json_get(o, "start"), &id->start_ticks) ||
	    !json_int64(json_get(o, "code"), &code) || !json_int64(json_get(o, "max_rss_kib"), &rss) ||
	    !json_double(json_get(o, "time"), time))
		return false;
	set_microseconds(o, "user_us", &end->usage.ru_utime);
	set_microseconds(o, "system_us", &end->usage.ru_stime);
	end->usage.ru_maxrss = (long)rss;
	end->code = (int)code;
	id->pid = (pid_t)pid;
	return true;
}

/* ---- A resume asks ---- */

/* A report is yet to come: what cannot be written is held for it. */
static int
settle_unclaimed(struct daemon *d, struct kept_op *o, struct json **end, struct err *e)
{
	struct unclaimed *u = find(d, o->id);

	if (u == NULL)
		return 0;
	kept_set_end(o, &u->end, u->time, "supervisor");
	*end = end_handed(u->id, &u->end, u->time);
	if (!kept_write_end(d, o, e))
		return -1;
	forget(d, u);
	return 0;
}

int
kept_settle(struct daemon *d, const char *run_id, const struct json *line, struct json **end, struct err *e)
{
	struct kept_op o, *there;

	*end = NULL;
	if (!run_id_is_valid(run_id) || !kept_read_line(line, run_id, &o))
		return err_set(e, ERR_PROTOCOL, "a start line is not understood");
	there = kept_find(d, o.id);
	if (there != NULL && there->tries == 0) {
		/* It may have ended since its process was last looked at. */
		if (there->over_ns != 0 || !proc_is_alive(there->id))
			kept_look_at_end(there, clock_monotonic_ns());
		there = kept_find(d, o.id);
	}
	if (there == NULL)
		return settle_unclaimed(d, &o, end, e);
	if (there->tries == 0)
		return err_set(e, ERR_BUSY, "who has it has not told yet how it ended");
	*end = end_handed(there->id, &there->end, there->time);
	return kept_try(there, e) ? 0 : -1;
}

/* ---- restart ---- */

struct json *
kept_ends_handed(const struct daemon *d)
{
	struct json *all = json_array();
	const struct kept_run *r;
	const struct unclaimed *u;
	const struct kept_op *o;
	struct proc_end end;

	TAILQ_FOREACH(u, &d->kept.ends, entry)
	{
		all = json_append(all, end_handed(u->id, &u->end, u->time));
	}
	/* A child that is not reaped tells it again. */
	TAILQ_FOREACH(r, &d->kept.runs, entry)
	{
		TAILQ_FOREACH(o, &r->ops, entry)
		{
			if (o->tries > 0 && proc_wait(o->process.fd, true, &end, &(struct err){0}) < 1)
				all = json_append(all, end_handed(o->id, &o->end, o->time));
		}
	}
	return all;
}

void
kept_take_ends(struct daemon *d, const struct json *handed)
{
	struct json_iter it = json_iterate(handed);
	const struct json *one;
	struct proc_end end;
	struct proc_id id;
	double time;

	while (json_next(&it, NULL, &one)) {
		if (kept_read_end(one, &id, &end, &time))
			hold(d, id, &end, time);
		else
			log_line(LOG_ERROR, "an end that was handed over is not understood");
	}
}
