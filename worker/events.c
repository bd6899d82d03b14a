/* events.jsonl and the end lines of attempts.log. */
#include "worker.h"

#include "flowsup/clock.h"
#include "flowsup/log.h"

enum { EVENTS_HELD = 64 << 10 }; /* bytes before they are handed over within a turn */

#define NS_PER_US INT64_C(1000)

/* By whole numbers: to print a binary fraction in decimal costs many times as much, twice an event. */
static void
add_seconds(struct buf *to, int64_t ns)
{
	buf_printf(to, "%lld.%06lld", (long long)(ns / NS_PER_S),
	    (long long)(ns % NS_PER_S / NS_PER_US));
}

static void
add_member(struct buf *to, const char *name)
{
	buf_putc(to, ',');
	json_write_string(to, slice_of(name));
	buf_putc(to, ':');
}

void
event_begin(struct worker *w, const char *name)
{
	buf_puts(&w->events, "{\"event\":");
	json_write_string(&w->events, slice_of(name));
	buf_puts(&w->events, ",\"time\":");
	add_seconds(&w->events, clock_wall_ns());
	buf_puts(&w->events, ",\"mono\":");
	add_seconds(&w->events, clock_monotonic_ns() - w->begun_ns);
	buf_printf(&w->events, ",\"run\":\"%s\"", w->run_id);
}

void
event_text(struct worker *w, const char *name, const char *value)
{
	bool replaced;
	struct json *text = json_string_lossy(slice_of(value), &replaced);

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
	buf_printf(&w->events, "%lld", (long long)value);
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
	json_write_string(&w->events, slice_of(w->flow->ops[i].id));
	if (w->ops[i].attempts > 0)
		event_int(w, "attempt", w->ops[i].attempts);
}

void
event_end(struct worker *w)
{
	buf_puts(&w->events, "}\n");
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

void
events_late_leftover(struct worker *w, uint32_t i, unsigned attempt)
{
	buf_puts(&w->attempts, "{\"kind\":\"leftover\",\"op\":");
	json_write_string(&w->attempts, slice_of(w->flow->ops[i].id));
	buf_printf(&w->attempts, ",\"attempt\":%u}\n", attempt);
}

void
events_attempt_end(struct worker *w, uint32_t i, unsigned attempt, enum op_class class, int code,
    int signal, unsigned leftovers)
{
	buf_puts(&w->attempts, "{\"kind\":\"end\",\"op\":");
	json_write_string(&w->attempts, slice_of(w->flow->ops[i].id));
	buf_printf(&w->attempts, ",\"attempt\":%u,\"class\":\"%s\",\"code\":%d", attempt,
	    op_class_word(class), code);
	if (signal > 0)
		buf_printf(&w->attempts, ",\"signal\":%d", signal);
	if (leftovers > 0)
		buf_printf(&w->attempts, ",\"leftovers\":%u", leftovers);
	buf_puts(&w->attempts, "}\n");
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
