#include "astray.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "leftover.h"

void
astrays_init(struct astrays *s)
{
	*s = (struct astrays){.errands = false};
	TAILQ_INIT(&s->list);
}

static void
forget(struct daemon *d, struct astray *a)
{
	TAILQ_REMOVE(&d->astrays.list, a, entry);
	json_unref(a->of);
	free(a);
}

void
astrays_clear(struct daemon *d)
{
	while (!TAILQ_EMPTY(&d->astrays.list))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		forget(d, TAILQ_FIRST(&d->astrays.list));
}

/* ---- Who is here ---- */

struct look {
	struct daemon *d;
	struct astray_list fresh;
	bool failed;
};

static struct astray *
find(const struct daemon *d, pid_t pid)
{
	struct astray *a;

	TAILQ_FOREACH(a, &d->astrays.list, entry)
	{
		if (a->id.pid == pid)
			return a;
	}
	return NULL;
}

static struct astray *
add(struct daemon *d, struct proc_id id)
{
	struct astray *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		log_line(LOG_ERROR, "process %ld, which came from a run, is not watched: out of memory", (long)id.pid);
		d->astrays.blind = true;
		return NULL;
	}
	a->id = id;
	a->seen = true;
	return a;
}

/* A child's number is its own until it is reaped here. */
static void
see(void *arg, pid_t pid)
{
	struct look *l = arg;
	struct proc_stat st;
	struct astray *a;

	if (worker_of(l->d, pid) != NULL || report_of(l->d, pid) != NULL || errand_of(l->d, pid) != NULL)
		return;
	if ((a = find(l->d, pid)) != NULL && proc_stat_read(pid, &st, NULL) == 0 &&
	    st.start_ticks == a->id.start_ticks) {
		a->seen = true;
		return;
	}
	if (proc_stat_read(pid, &st, NULL) != 0 || proc_stat_is_zombie(&st))
		return;
	a = add(l->d, (struct proc_id){pid, st.start_ticks});
	if (a != NULL)
		TAILQ_INSERT_TAIL(&l->fresh, a, entry);
}

/* ---- Whose they may be ---- */

static bool
has_died(const struct worker *w)
{
	struct proc_end end;

	return w->process.fd >= 0 && proc_wait(w->process.fd, true, &end, &(struct err){0}) == 1;
}

/* NULL: out of memory. */
static struct json *
sources(struct daemon *d, const struct worker *dead, bool *others)
{
	struct json *of = json_object();
	struct json_iter it;
	const struct json *value;
	struct slice run;
	struct astray *a;
	struct worker *w;

	*others = d->astrays.blind || d->astrays.errands || errands_count(d) > 0;
	for (w = worker_after(d, ""); w != NULL; w = worker_after(d, w->run_id)) {
		if (w != dead && !has_died(w))
			continue;
		of = json_set(of, w->run_id, json_bool(true));
	}
	TAILQ_FOREACH(a, &d->astrays.list, entry)
	{
		*others = *others || a->others;
		it = json_iterate(a->of);
		while (json_next(&it, &run, &value))
			of = json_setn(of, run, json_bool(true));
	}
	return of;
}

/* A supervisor that was started inside an operation may leave what is of its own runs. */
static void
settle(struct astray *a, const struct json *of, bool others)
{
	char run_id[RUN_ID_TEXT];

	a->others = others;
	a->known = leftover_is_ours(a->id.pid);
	if (a->known) {
		a->others = others || own_is_apart(a->id.pid);
	} else if (leftover_run_of(a->id.pid, run_id)) {
		a->known = true;
		a->others = false;
		a->of = json_set(json_object(), run_id, json_bool(true));
		return;
	}
	a->of = of != NULL ? json_ref(of) : NULL;
	a->others = a->others || of == NULL;
}

/* ---- What is known for ever ---- */

static bool
is_proved(const struct astray *a)
{
	return !a->known && !a->others && json_length(a->of) == 1;
}

/* A line that was cut for want of room is ended first. */
static int
append(int run_fd, struct proc_id id, struct err *e)
{
	struct buf text = {0};
	int fd, rc;

	buf_putc(&text, '\n');
	attempts_stray_line(id, &text);
	rc = buf_ok(&text, e);
	fd = rc == 0 ? openat(run_fd, RUN_ATTEMPTS, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (rc == 0 && (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len))
		rc = err_sys(e, ERR_IO, errno, "write to '%s'", RUN_ATTEMPTS);
	fd_close(&fd);
	buf_clear(&text);
	return rc;
}

static void
write_down(struct daemon *d, struct astray *a)
{
	struct json_iter it = json_iterate(a->of);
	const struct json *value;
	char run_id[RUN_ID_TEXT];
	struct err e = {0};
	struct slice run;
	int run_fd;

	if (!is_proved(a) || a->written || !json_next(&it, &run, &value) || run.len >= sizeof(run_id))
		return;
	memcpy(run_id, run.data, run.len);
	run_id[run.len] = '\0';
	run_fd = rundir_open(&d->home, run_id, &e);
	a->written = run_fd >= 0 && append(run_fd, a->id, &e) == 0;
	if (a->written)
		log_line(LOG_INFO, "run %s: process %ld of it has come here", run_id, (long)a->id.pid);
	else
		log_line(LOG_WARNING, "run %s: process %ld of it has come here, which is not written down: %s", run_id,
		    (long)a->id.pid, e.msg);
	fd_close(&run_fd);
}

/* ---- A look ---- */

void
astray_look(struct daemon *d, const struct worker *dead)
{
	struct look l = {.d = d};
	struct astray *a, *next;
	struct err e = {0};
	struct json *of;
	bool others;

	TAILQ_INIT(&l.fresh);
	TAILQ_FOREACH(a, &d->astrays.list, entry)
	{
		a->seen = false;
	}
	l.failed = proc_each_child(see, &l, &e) != 0;
	/* Who died after that is among them too: that is no proof then, and no wrong one. */
	if (!TAILQ_EMPTY(&l.fresh)) {
		of = sources(d, dead, &others);
		TAILQ_FOREACH(a, &l.fresh, entry)
		{
			settle(a, of, others);
		}
		json_unref(of);
	}
	for (a = TAILQ_FIRST(&d->astrays.list); a != NULL && !l.failed; a = next) {
		next = TAILQ_NEXT(a, entry);
		if (!a->seen)
			forget(d, a);
	}
	TAILQ_CONCAT(&d->astrays.list, &l.fresh, entry);
	d->astrays.blind = l.failed;
	d->astrays.errands = errands_count(d) > 0;
	TAILQ_FOREACH(a, &d->astrays.list, entry)
	{
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		write_down(d, a);
	}
}

struct json *
astray_describe(const struct daemon *d, struct json *o)
{
	struct json *all = json_array(), *one, *runs;
	struct json_iter it;
	const struct json *value;
	const struct astray *a;
	struct slice run;

	TAILQ_FOREACH(a, &d->astrays.list, entry)
	{
		if (a->known || a->written || json_length(all) >= ASTRAY_SHOWN || !proc_is_alive(a->id))
			continue;
		runs = json_array();
		it = json_iterate(a->of);
		while (json_length(runs) < ASTRAY_RUNS_SHOWN && json_next(&it, &run, &value))
			runs = json_append(runs, json_string(run));
		one = json_set(json_object(), "pid", json_int(a->id.pid));
		one = json_set(one, "start", json_uint(a->id.start_ticks));
		all = json_append(all, json_set(one, "runs", runs));
	}
	return json_set(o, "strays", all);
}

/* ---- restart ---- */

struct json *
astrays_handed(const struct daemon *d)
{
	struct json *all = json_array(), *one;
	const struct astray *a;

	TAILQ_FOREACH(a, &d->astrays.list, entry)
	{
		one = json_set(json_object(), "pid", json_int(a->id.pid));
		one = json_set(one, "start", json_uint(a->id.start_ticks));
		one = json_set(one, "of", a->of != NULL ? json_ref(a->of) : json_object());
		one = json_set(one, "others", json_bool(a->others));
		one = json_set(one, "known", json_bool(a->known));
		all = json_append(all, json_set(one, "written", json_bool(a->written)));
	}
	return all;
}

/* From one that knew of none whatever is here may be anybody's. */
void
astrays_take(struct daemon *d, const struct json *handed)
{
	struct json_iter it = json_iterate(handed);
	const struct json *one;
	struct astray *a;
	uint64_t start;
	int64_t pid;

	d->astrays.blind = handed == NULL;
	while (json_next(&it, NULL, &one)) {
		if (!json_int64(json_get(one, "pid"), &pid) || pid < 1 || pid > INT32_MAX ||
		    !json_uint64(json_get(one, "start"), &start) ||
		    (a = add(d, (struct proc_id){(pid_t)pid, start})) == NULL)
			continue;
		a->of = json_ref(json_get(one, "of"));
		a->others = json_is_true(json_get(one, "others"));
		a->known = json_is_true(json_get(one, "known"));
		a->written = json_is_true(json_get(one, "written"));
		TAILQ_INSERT_TAIL(&d->astrays.list, a, entry);
	}
}
