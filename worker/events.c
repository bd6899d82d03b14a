/* events.jsonl and the end lines of attempts.log. */
#include "worker.h"

#include "flowsup/clock.h"
#include "flowsup/log.h"

enum { EVENTS_HELD = 64 << 10 }; /* bytes before they are handed over within a turn */

#define NS_PER_US INT64_C(1000)
#define US_PER_S INT64_C(1000000)

/* Nothing here is printed by a format: several events are written for each operation. */
#define PUT(to, text) buf_add((to), (text), sizeof(text) - 1)

static void
add_seconds(struct buf *to, int64_t ns)
{
	int64_t us = ns / NS_PER_US, part;
	char fraction[] = ".000000";
	size_t at = sizeof(fraction) - 1;

	if (us < 0)
		us = 0;
	buf_int(to, us / US_PER_S);
	for (part = us % US_PER_S; part > 0; part /= 10)
		fraction[--at] = (char)('0' + part % 10);
	buf_add(to, fraction, sizeof(fraction) - 1);
}

/* Names of members and events, ids and words of ours need no escapes. */
static void
add_plain(struct buf *to, const char *text)
{
	buf_putc(to, '"');
	buf_puts(to, text);
	buf_putc(to, '"');
}

static void
add_member(struct buf *to, const char *name)
{
	buf_putc(to, ',');
	add_plain(to, name);
	buf_putc(to, ':');
}

void
event_begin(struct worker *w, const char *name)
{
	PUT(&w->events, "{\"event\":");
	add_plain(&w->events, name);
	PUT(&w->events, ",\"time\":");
	add_seconds(&w->events, clock_wall_ns());
	PUT(&w->events, ",\"mono\":");
	add_seconds(&w->events, clock_monotonic_ns() - w->begun_ns);
	PUT(&w->events, ",\"run\":");
	add_plain(&w->events, w->run_id);
}

static bool
is_plain(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
			return false;
	return true;
}

void
event_text(struct worker *w, const char *name, const char *value)
{
	struct json *text;
	bool replaced;

	if (is_plain(value)) {
		add_member(&w->events, name);
		add_plain(&w->events, value);
		return;
	}
	text = json_string_lossy(slice_of(value), &replaced);
	if (text == NULL) {
		w->events.failed = true;
		return;
	}
	add_member(&w->events, name);
	json_write(&w->events, text);
	json_unref(text);
}

void
event_true(struct worker *w, const char *name)
{
	add_member(&w->events, name);
	buf_puts(&w->events, "true");
}

void
event_int(struct worker *w, const char *name, int64_t value)
{
	add_member(&w->events, name);
	buf_int(&w->events, value);
}

void
event_real(struct worker *w, const char *name, double value)
{
	add_member(&w->events, name);
	buf_printf(&w->events, "%.6f", value);
}

void
event_op(struct worker *w, uint32_t i)
{
	add_member(&w->events, "op");
	add_plain(&w->events, w->flow->ops[i].id);
	if (w->ops[i].attempts > 0)
		event_int(w, "attempt", w->ops[i].attempts);
}

void
event_end(struct worker *w)
{
	PUT(&w->events, "}\n");
	/* One turn can have as many events as there are operations. */
	if (w->events.len > EVENTS_HELD)
		events_flush(w);
}

void
event_of_op(struct worker *w, const char *name, uint32_t i)
{
	event_begin(w, name);
	event_op(w, i);
	event_end(w);
}

/* ---- attempts.log ---- */

static void
attempt_begin(struct worker *w, const char *kind, uint32_t i, unsigned attempt)
{
	PUT(&w->attempts, "{\"kind\":");
	add_plain(&w->attempts, kind);
	add_member(&w->attempts, "op");
	add_plain(&w->attempts, w->flow->ops[i].id);
	add_member(&w->attempts, "attempt");
	buf_uint(&w->attempts, attempt);
}

void
events_late_leftover(struct worker *w, uint32_t i, unsigned attempt)
{
	attempt_begin(w, "leftover", i, attempt);
	PUT(&w->attempts, "}\n");
}

void
events_attempt_end(struct worker *w, uint32_t i, unsigned attempt, enum op_class class, int code,
    int signal, unsigned leftovers)
{
	attempt_begin(w, "end", i, attempt);
	add_member(&w->attempts, "class");
	add_plain(&w->attempts, op_class_word(class));
	if (code >= 0) {
		add_member(&w->attempts, "code");
		buf_int(&w->attempts, code);
	}
	if (signal > 0) {
		add_member(&w->attempts, "signal");
		buf_int(&w->attempts, signal);
	}
	if (leftovers > 0) {
		add_member(&w->attempts, "leftovers");
		buf_uint(&w->attempts, leftovers);
	}
	PUT(&w->attempts, "}\n");
}

static void
flush(struct worker *w, enum io_log log, struct buf *lines)
{
	struct err e = {0};

	if (lines->len == 0)
		return;
	if (buf_ok(lines, &e) != 0 || io_append(w->io, log, buf_view(lines), &e) != 0) {
		log_line(LOG_ERROR, "events are lost: %s", e.msg);
		buf_clear(lines);
	}
	buf_reset_within(lines, 2 * EVENTS_HELD);
}

void
events_flush(struct worker *w)
{
	flush(w, IO_LOG_EVENTS, &w->events);
	flush(w, IO_LOG_ATTEMPTS, &w->attempts);
}

void
events_then(struct worker *w, struct io_job *job)
{
	events_flush(w);
	io_logs_first(w->io);
	io_submit(w->io, job);
}
