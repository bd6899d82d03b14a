#include <math.h>
#include <stdio.h>
#include <string.h>

#include "flowsup/clock.h"
#include "render.h"

enum { NOTE_MOST = 60 };

const char *
render_member(const struct json *o, const char *name)
{
	const char *text = json_cstr_of(json_get(o, name));

	return text == NULL ? "" : text;
}

void
render_cause(struct buf *to, const char *op, const char *cause, const char *state)
{
	static const char *const words[][2] = {
	    {"failed", "failed"}, {"skipped", "was skipped"}, {"cancelled", "was cancelled"}};
	const char *what = "did not fail";
	size_t i;

	if (strcmp(op, cause) == 0) {
		buf_puts(to, "a condition of its edges was not met");
		return;
	}
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(state, words[i][0]) == 0)
			what = words[i][1];
	buf_printf(to, "%s %s", cause, what);
}

double
render_number(const struct json *o, const char *name, double otherwise)
{
	double d;

	return json_double(json_get(o, name), &d) ? d : otherwise;
}

const char *
render_seconds(double seconds, char *to)
{
	enum { MOST_YEARS = 200 };

	if (!(seconds >= 0) || seconds > MOST_YEARS * 366.0 * 86400) {
		to[0] = '\0';
		return to;
	}
	/* Above ten seconds nobody reads fractions. */
	if (seconds >= 10)
		seconds = floor(seconds);
	return duration_format((int64_t)(seconds * (double)NS_PER_S), to);
}

const char *
render_counts(int64_t done, int64_t total, char to[PROGRESS_TEXT])
{
	char *at = to;

	if (total <= 0) {
		strlcpy(to, "-", PROGRESS_TEXT);
		return to;
	}
	at = put_number(at, done > 0 ? (uint64_t)done : 0, 1);
	*at++ = '/';
	put_number(at, (uint64_t)total, 1);
	return to;
}

const char *
render_progress(const struct json *o, char to[PROGRESS_TEXT])
{
	return render_counts((int64_t)render_number(o, "done", 0), (int64_t)render_number(o, "total", 0), to);
}

const char *
render_done(int64_t done, int64_t total, char to[PROGRESS_TEXT])
{
	if (total > 0)
		snprintf(to, PROGRESS_TEXT, ", %lld of %lld done", (long long)done, (long long)total);
	else
		to[0] = '\0';
	return to;
}

double
render_since(double at)
{
	double now = (double)clock_wall_ns() / (double)NS_PER_S;

	if (at <= 0)
		return -1;
	return now > at ? now - at : 0;
}

void
render_asked(const struct json *control, struct buf *to)
{
	struct slice op = json_text(json_get(json_get(control, "payload"), "op"));

	buf_puts(to, render_member(control, "verb"));
	if (op.len == 0)
		return;
	buf_putc(to, ' ');
	buf_slice(to, op);
}

void
render_asker(const struct json *control, struct buf *to)
{
	const struct json *payload = json_get(control, "payload");
	struct slice by = json_text(json_get(payload, "by")), note = json_text(json_get(payload, "note"));

	if (by.len > 0) {
		buf_puts(to, " by ");
		buf_slice(to, by);
	}
	if (note.len > 0) {
		buf_puts(to, ": ");
		text_fit(to, note, NOTE_MOST, true);
	}
}

double
render_age(const struct json *o, const char *name)
{
	return render_since(render_number(o, name, -1));
}

enum out_style
render_status_style(const char *word)
{
	static const struct {
		const char *word;
		enum out_style style;
	} table[] = {
	    {"completed", OUT_GOOD}, {"failed", OUT_BAD},	{"crashed", OUT_BAD},
	    {"timed_out", OUT_BAD},  {"running", OUT_BUSY},	{"starting", OUT_BUSY},
	    {"reading", OUT_BUSY},
	    {"paused", OUT_WARN},    {"cancelled", OUT_WARN},	{"interrupted", OUT_WARN},
	    {"waiting", OUT_WARN},   {"skipped", OUT_DIM},	{"pending", OUT_DIM},
	    {"queued", OUT_DIM},
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].word, word) == 0)
			return table[i].style;
	return OUT_PLAIN;
}

void
render_status(const struct json *run, struct buf *to)
{
	const struct json *marks = json_get(run, "marks");
	size_t i, n = json_length(marks);

	buf_puts(to, render_member(run, "status"));
	for (i = 0; i < n; i++)
		buf_printf(to, "%s%s", i == 0 ? " (" : ", ", json_cstr_of(json_at(marks, i)));
	if (n > 0)
		buf_putc(to, ')');
}

void
render_percent(double fraction, const char *text, struct buf *to)
{
	if (!(fraction >= 0) || fraction > 1)
		return;
	buf_printf(to, "%.0f%%", floor(fraction * 100));
	if (text[0] != '\0')
		buf_printf(to, ": %s", text);
}

void
render_leftovers(const struct json *o, const char *before, struct buf *to)
{
	double n = render_number(o, "leftovers", 0);

	if (n >= 1)
		buf_printf(to, "%s%.0f leftover process%s ended", before, n, n < 2 ? "" : "es");
}

void
render_resumed_as(const char *run_id, struct buf *to)
{
	buf_printf(to, "resumed as %s", run_id);
}

void
render_stopping(const struct json *run, struct buf *to)
{
	const struct json *stop = json_get(run, "stopping"), *passed = json_get(run, "draining");
	char age[DURATION_TEXT];

	if (json_type(stop) != JSON_OBJECT && json_type(passed) == JSON_OBJECT)
		buf_printf(to, "deadline passed %s ago: nothing more is started",
		    render_seconds(render_age(passed, "since"), age));
	if (json_type(stop) != JSON_OBJECT)
		return;
	buf_printf(to, "stopping%s for %s", strcmp(render_member(stop, "mode"), "now") == 0 ? " now" : "",
	    render_seconds(render_age(stop, "since"), age));
	if (!json_is_true(json_get(stop, "applied")))
		buf_puts(to, ", when its worker answers");
}

void
render_next(const struct json *run, struct buf *to)
{
	const char *status = render_member(run, "status");
	const char *resume = render_member(run, "resume_command");
	const char *answer = render_member(run, "answer_command");

	render_stopping(run, to);
	if (to->len > 0)
		return;
	if (resume[0] != '\0')
		buf_puts(to, resume);
	else if (answer[0] != '\0')
		buf_puts(to, answer);
	else if (render_member(run, "resumed_as")[0] != '\0')
		render_resumed_as(render_member(run, "resumed_as"), to);
	else if (strcmp(status, "queued") == 0 || strcmp(status, "paused") == 0 ||
	    strcmp(render_member(run, "reason"), "run.running.storage") == 0)
		buf_puts(to, render_member(run, "reason_text"));
}
