#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "render.h"

enum { READ_CHUNK = 65536, LINE_MOST = 1 << 20 };

/* ---- A growing file ---- */

void
tail_init(struct tail *t, int dirfd, const char *name)
{
	*t = (struct tail){.dirfd = dirfd, .name = name, .fd = -1};
}

static bool
is_open(struct tail *t)
{
	if (t->fd < 0)
		t->fd = openat(t->dirfd, t->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return t->fd >= 0;
}

void
tail_to_end(struct tail *t)
{
	struct stat st;

	if (is_open(t) && fstat(t->fd, &st) == 0)
		t->at = st.st_size;
}

void
tail_close(struct tail *t)
{
	fd_close(&t->fd);
	buf_clear(&t->pending);
}

/* Gives away the whole lines in `pending` and keeps the rest. */
static int
give_lines(struct tail *t, tail_line *each, void *arg, struct err *e)
{
	const char *start = t->pending.data, *end = start + t->pending.len, *lf;
	size_t rest;
	int r = 0;

	while (r == 0 && (lf = memchr(start, '\n', (size_t)(end - start))) != NULL) {
		if (!t->skipping)
			r = each(arg, (struct slice){start, (size_t)(lf - start)}, e);
		t->skipping = false;
		start = lf + 1;
	}
	rest = (size_t)(end - start);
	memmove(t->pending.data, start, rest);
	t->pending.len = rest;
	if (rest > LINE_MOST) {
		t->skipping = true;
		t->pending.len = 0;
	}
	return r;
}

int
tail_read(struct tail *t, tail_line *each, void *arg, struct err *e)
{
	char *room;
	ssize_t n;
	int r;

	if (!is_open(t))
		return 0;
	for (;;) {
		room = buf_reserve(&t->pending, READ_CHUNK);
		if (room == NULL)
			return err_nomem(e);
		n = pread(t->fd, room, READ_CHUNK, t->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, ERR_IO, errno, "%s", t->name);
		if (n == 0)
			return 0;
		t->at += n;
		t->pending.len += (size_t)n;
		r = give_lines(t, each, arg, e);
		if (r != 0)
			return r;
	}
}

/* ---- Counting ---- */

enum event_kind {
	EVENT_OTHER,
	EVENT_STARTED,
	EVENT_COMPLETED,
	EVENT_FAILED,
	EVENT_SKIPPED,
	EVENT_PROGRESS,
	EVENT_STOPPED, /* runs no more, without an outcome */
	EVENT_READING,
	EVENT_SAVED
};

/* The word is what a line for people says of it; NULL: no line. */
static const struct {
	const char *name;
	enum event_kind kind;
	const char *word;
} kinds[] = {
    {"RunStarted", EVENT_OTHER, "run started"},
    {"NodeStarted", EVENT_STARTED, "started"},
    {"NodeTakenOver", EVENT_STARTED, "taken over"},
    {"NodeReading", EVENT_READING, "has ended; what it left is read"},
    {"NodeCompleted", EVENT_COMPLETED, "completed"},
    {"NodeFailed", EVENT_FAILED, "failed"},
    {"NodeCancelled", EVENT_STOPPED, "cancelled"},
    {"NodeSkipped", EVENT_SKIPPED, "skipped"},
    {"NodeRetrying", EVENT_STOPPED, "failed, and is tried again"},
    {"NodeSilent", EVENT_OTHER, "is silent"},
    {"NodeHeard", EVENT_OTHER, "is not silent any more"},
    {"NodeLeftover", EVENT_OTHER, "left processes behind, which were ended"},
    {"NodePaused", EVENT_OTHER, "waits at the gate"},
    {"NodeWaiting", EVENT_OTHER, "waits for approval"},
    {"NodeSpawned", EVENT_OTHER, "spawned"},
    {"PlanRejected", EVENT_OTHER, NULL},
    {"PlanAccepted", EVENT_OTHER, "the plan is accepted"},
    {"NodeEscalated", EVENT_OTHER, "escalated"},
    {"SpawnRejected", EVENT_OTHER, "asked in vain"},
    {"NodeProgress", EVENT_PROGRESS, "is at"},
    {"NodeReady", EVENT_OTHER, NULL},
    {"CheckpointSaved", EVENT_SAVED, NULL},
    {"CheckpointError", EVENT_OTHER, "checkpoint cannot be written"},
    {"MessageNotRendered", EVENT_OTHER, "messages reached no operation"},
    {"ControlApplied", EVENT_OTHER, "control applied"},
    {"ControlRejected", EVENT_OTHER, "control rejected"},
    {"DeadlineClosed", EVENT_OTHER, "deadline: nothing more is started"},
    {"RunEnded", EVENT_OTHER, "run ended"},
};

static size_t
kind_of(const struct json *event)
{
	struct slice name = json_text(json_get(event, "event"));
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (slice_is(name, kinds[i].name))
			return i;
	return SIZE_MAX;
}

static size_t
find_running(const struct tally *t, const char *op)
{
	size_t i;

	for (i = 0; i < t->nrunning; i++)
		if (strcmp(t->running[i].op, op) == 0)
			return i;
	return SIZE_MAX;
}

static void
drop_running(struct tally *t, const char *op)
{
	size_t i = find_running(t, op);

	if (i == SIZE_MAX)
		return;
	free(t->running[i].op);
	free(t->running[i].text);
	memmove(&t->running[i], &t->running[i + 1], (t->nrunning - i - 1) * sizeof(*t->running));
	t->nrunning--;
}

static int
add_running(struct tally *t, const struct json *event, const char *op, struct err *e)
{
	struct running *grown, r = {.attempt = 1, .progress = -1};

	drop_running(t, op);
	if (t->nrunning == t->cap) {
		grown = reallocarray(t->running, t->cap * 2 + 16, sizeof(*grown));
		if (grown == NULL)
			return err_nomem(e);
		t->running = grown;
		t->cap = t->cap * 2 + 16;
	}
	r.op = strdup(op);
	if (r.op == NULL)
		return err_nomem(e);
	(void)json_int64(json_get(event, "attempt"), &r.attempt);
	r.since = render_number(event, "started_at", render_number(event, "time", 0)); /* taken over: it began earlier */
	t->running[t->nrunning++] = r;
	return 0;
}

struct running *
tally_running(struct tally *t, const char *op)
{
	size_t i = find_running(t, op);

	return i != SIZE_MAX ? &t->running[i] : NULL;
}

static int
note_progress(struct tally *t, const struct json *event, const char *op, struct err *e)
{
	struct running *r = tally_running(t, op);
	const char *text = render_member(event, "text");
	double fraction = render_number(event, "fraction", -1);
	char *copy;

	if (r == NULL)
		return 0;
	copy = strdup(text);
	if (copy == NULL)
		return err_nomem(e);
	/* What would read the same is not told again. */
	r->progress_told = r->progress_told && floor(fraction * 100) == floor(r->progress * 100) &&
	    strcmp(r->text, text) == 0;
	free(r->text);
	r->text = copy;
	r->progress = fraction;
	return 0;
}

int
tally_event(struct tally *t, const struct json *event, struct err *e)
{
	size_t which = kind_of(event);
	const char *op = json_cstr_of(json_get(event, "op"));

	if (which == SIZE_MAX)
		return 0;
	switch (kinds[which].kind) {
	case EVENT_STARTED:
		return op == NULL ? 0 : add_running(t, event, op, e);
	case EVENT_FAILED:
		t->failed++;
		t->executed++;
		break;
	case EVENT_COMPLETED:
		t->executed++;
		break;
	case EVENT_SAVED:
		t->saved += json_get(event, "op") != NULL;
		return 0;
	case EVENT_SKIPPED:
		t->skipped++;
		break;
	case EVENT_STOPPED:
		break;
	case EVENT_READING:
		if (op != NULL && tally_running(t, op) != NULL)
			tally_running(t, op)->ended = render_number(event, "ended_at", render_number(event, "time", 0));
		return 0;
	case EVENT_PROGRESS:
		return op == NULL ? 0 : note_progress(t, event, op, e);
	case EVENT_OTHER:
		return 0;
	}
	if (op != NULL)
		drop_running(t, op);
	return 0;
}

void
tally_clear(struct tally *t)
{
	while (t->nrunning > 0) {
		free(t->running[--t->nrunning].op);
		free(t->running[t->nrunning].text);
	}
	free(t->running);
	json_unref(t->rejected);
	*t = (struct tally){0};
}

/* ---- A line for people ---- */

enum { CLOCK_AT = 11, CLOCK_LENGTH = 8 }; /* HH:MM:SS within RFC 3339 */

static void
add_detail(const struct json *event, struct buf *to)
{
	static const char *const members[] = {"message", "cause", "verb", "status", "reason", "retry", "why"};
	struct slice text;
	int64_t attempt;
	size_t i;

	if (json_int64(json_get(event, "attempt"), &attempt) && attempt > 1)
		buf_printf(to, " (attempt %lld)", (long long)attempt);
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		text = json_text(json_get(event, members[i]));
		if (text.len == 0)
			continue;
		buf_puts(to, ": ");
		buf_slice(to, text);
		return;
	}
}

/* In the words of show. */
static bool
add_cause(const struct json *event, struct buf *to)
{
	const char *cause = render_member(event, "cause"), *state = render_member(event, "cause_state");

	if (cause[0] == '\0' || state[0] == '\0')
		return false;
	buf_puts(to, ": ");
	if (json_get(event, "why") != NULL)
		buf_puts(to, render_member(event, "why"));
	else
		render_cause(to, render_member(event, "op"), cause, state);
	return true;
}

/* What a run leaves out when it ends has not begun, so that is no end of it. NULL: no such event. */
static const char *
unstarted(const struct json *event)
{
	static const char *const words[][2] = {
	    {"not started", "was not started"},
	    {"nobody approved it before the run ended", "was not started: nobody approved it"},
	};
	const char *why = render_member(event, "why");
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(render_member(event, "event"), "NodeCancelled") == 0 && strcmp(why, words[i][0]) == 0)
			return words[i][1];
	return NULL;
}

/* The next attempt is not started by this run. */
static bool
is_deferred_retry(const struct json *event)
{
	return slice_is(json_text(json_get(event, "event")), "NodeRetrying") && json_is_true(json_get(event, "deferred"));
}

const char *
event_waits_for(const struct json *event)
{
	const char *what = json_cstr_of(json_get(event, "for"));

	return slice_is(json_text(json_get(event, "event")), "NodeWaiting") && what != NULL &&
		strcmp(what, "approval") != 0 ? what : NULL;
}

/* Of many requests that are rejected for the same reason the first says it all. */
static bool
is_same_rejection(struct tally *t, const struct json *event)
{
	struct buf key = {0};
	bool same;

	if (!slice_is(json_text(json_get(event, "event")), "SpawnRejected"))
		return false;
	buf_printf(&key, "%s %s%s", render_member(event, "op"), render_member(event, "reason"),
	    json_get(event, "due") != NULL ? " due" : "");
	if (t->rejected == NULL)
		t->rejected = json_object();
	same = !key.failed && json_getn(t->rejected, buf_view(&key)) != NULL;
	t->rejected_again += same;
	if (!same && !key.failed)
		t->rejected = json_setn(t->rejected, buf_view(&key), json_bool(true));
	buf_clear(&key);
	return same;
}

static void
add_rejections(const struct tally *t, const struct json *event, struct buf *to)
{
	if (t->rejected_again == 0 || !slice_is(json_text(json_get(event, "event")), "RunEnded"))
		return;
	buf_printf(to, "; %zu more request%s asked for in vain, for reasons told above", t->rejected_again,
	    t->rejected_again == 1 ? " was" : "s were");
}

static bool
is_try_refused(const struct json *event)
{
	return slice_is(json_text(json_get(event, "event")), "SpawnRejected") && json_is_true(json_get(event, "due"));
}

bool
event_line(struct tally *t, const struct json *event, bool utc, struct buf *to)
{
	size_t which = kind_of(event);
	struct slice op = json_text(json_get(event, "op"));
	char when[TIME_TEXT];

	if (which == SIZE_MAX || kinds[which].word == NULL || json_get(event, "again") != NULL ||
	    is_same_rejection(t, event))
		return false;
	time_format(render_number(event, "time", 0), utc, when);
	if (strlen(when) > CLOCK_AT + CLOCK_LENGTH)
		buf_printf(to, "%.*s  ", CLOCK_LENGTH, when + CLOCK_AT);
	if (op.len > 0) {
		buf_slice(to, op);
		buf_putc(to, ' ');
	}
	if (unstarted(event) != NULL) {
		buf_puts(to, unstarted(event));
		return true;
	}
	if (is_deferred_retry(event))
		buf_puts(to, "failed; its next attempt is left to a resume");
	else if (is_try_refused(event))
		buf_puts(to, "gets no further try");
	else if (event_waits_for(event) != NULL)
		buf_printf(to, "waits for %s", event_waits_for(event));
	else
		buf_puts(to, kinds[which].word);
	if (strcmp(kinds[which].name, "MessageNotRendered") == 0)
		buf_printf(to, ": %.0f", render_number(event, "count", 0));
	if (kinds[which].kind == EVENT_PROGRESS) {
		buf_putc(to, ' ');
		render_percent(render_number(event, "fraction", 0), render_member(event, "text"), to);
	}
	if (kinds[which].kind != EVENT_SKIPPED || !add_cause(event, to))
		add_detail(event, to);
	render_leftovers(event, "; ", to);
	add_rejections(t, event, to);
	return true;
}
