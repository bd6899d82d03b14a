/* What only the run's events tell of operations: without a saved outcome times and how far they are; what
 * they asked for in vain. */
#include <string.h>

#include "events.h"
#include "view_ops.h"

/* Enough for what has run last; a run's events may be many. */
enum { RECENT_MOST = 256 * 1024 };

static const char *const ends[] = {"NodeCompleted", "NodeFailed", "NodeCancelled", "NodeRetrying"};

static bool
is_end(struct slice name)
{
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (slice_is(name, ends[i]))
			return true;
	return false;
}

static struct json *
copy(struct json *o, const char *to, const struct json *event, const char *from)
{
	const struct json *v = json_get(event, from);

	return v == NULL ? o : json_set(o, to, json_ref(v));
}

/* What is read, and what waits for its next attempt, has ended before. */
static struct json *
after_end(const struct json *known, const struct json *event)
{
	struct json *o = known != NULL ? json_ref(known) : json_object();

	if (json_get(known, "ended_at") == NULL)
		o = copy(o, "ended_at", event, "time");
	o = copy(copy(o, "end", event, "event"), "delay_ms", event, "delay_ms");
	return json_get(event, "delay_ms") != NULL ? copy(o, "retrying_at", event, "time") : o;
}

/* What is known of an operation after one more event; an attempt that starts begins anew. */
static struct json *
after(const struct json *known, const struct json *event)
{
	struct slice name = json_text(json_get(event, "event"));

	if (slice_is(name, "NodeStarted"))
		return copy(json_object(), "started_at", event, "time");
	if (slice_is(name, "NodeTakenOver"))
		return copy(json_object(), "started_at", event, "started_at");
	if (slice_is(name, "NodeReading"))
		return json_set(copy(known != NULL ? json_ref(known) : json_object(), "ended_at", event, "ended_at"), "reading",
		    json_bool(true));
	if (is_end(name))
		return after_end(known, event);
	if (slice_is(name, "NodeSilent"))
		return copy(known != NULL ? json_ref(known) : json_object(), "silent_since", event, "since");
	if (slice_is(name, "NodeHeard"))
		return json_remove(known != NULL ? json_ref(known) : json_object(), slice_of("silent_since"));
	if (event_waits_for(event) != NULL)
		return copy(known != NULL ? json_ref(known) : json_object(), "waits_for", event, "for");
	if (slice_is(name, "NodePaused"))
		return json_remove(known != NULL ? json_ref(known) : json_object(), slice_of("waits_for"));
	if (!slice_is(name, "NodeProgress"))
		return NULL;
	return copy(copy(json_remove(known != NULL ? json_ref(known) : json_object(), slice_of("text")),
			"fraction", event, "fraction"),
	    "text", event, "text");
}

static int
take(void *arg, struct slice line, struct err *e)
{
	struct json **recent = arg, *event = NULL, *now;
	struct err ignored = {0};
	struct slice op;

	if (memmem(line.data, line.len, "\"Node", 5) == NULL ||
	    json_parse(line, NULL, &event, NULL, &ignored) != 0)
		return ignored.code == ERR_NOMEM ? err_nomem(e) : 0;
	op = json_text(json_get(event, "op"));
	now = op.len > 0 ? after(json_getn(*recent, op), event) : NULL;
	if (now != NULL)
		*recent = json_setn(*recent, op, now);
	json_unref(event);
	return *recent != NULL ? 0 : err_nomem(e);
}

struct json *
view_recent(const struct run_files *f)
{
	struct json *recent = json_object();
	struct err ignored = {0};
	struct tail t;

	tail_init(&t, f->fd, RUN_EVENTS);
	tail_to_end(&t);
	/* The first line may be half a one, which is no JSON. */
	t.at = t.at > RECENT_MOST ? t.at - RECENT_MOST : 0;
	if (recent != NULL && tail_read(&t, take, &recent, &ignored) != 0 && ignored.code == ERR_NOMEM) {
		json_unref(recent);
		recent = NULL;
	}
	tail_close(&t);
	return recent;
}

/* ---- What was rejected ---- */

static int
take_rejected(void *arg, struct slice line, struct err *e)
{
	static const char name[] = "\"SpawnRejected\"";
	struct json **all = arg, *event = NULL, *of_op;
	struct err ignored = {0};
	struct slice op, reason;

	if (memmem(line.data, line.len, name, sizeof(name) - 1) == NULL ||
	    json_parse(line, NULL, &event, NULL, &ignored) != 0)
		return ignored.code == ERR_NOMEM ? err_nomem(e) : 0;
	op = json_text(json_get(event, "op"));
	reason = json_text(json_get(event, "reason"));
	if (op.len > 0 && reason.len > 0) {
		of_op = json_type(json_getn(*all, op)) == JSON_OBJECT ? json_ref(json_getn(*all, op)) : json_object();
		of_op = json_setn(of_op, reason, json_int(1 + view_number(of_op, reason.data, 0)));
		*all = json_setn(*all, op, of_op);
	}
	json_unref(event);
	return *all != NULL ? 0 : err_nomem(e);
}

struct json *
view_rejected(int run_fd, const struct json *state)
{
	const struct json *before = json_get(json_get(state, "config"), "rejected_by_operation");
	struct json *all = json_type(before) == JSON_OBJECT ? json_ref(before) : json_object();
	struct err ignored = {0};
	struct tail t;

	tail_init(&t, run_fd, RUN_EVENTS);
	if (all != NULL && tail_read(&t, take_rejected, &all, &ignored) != 0 && ignored.code == ERR_NOMEM) {
		json_unref(all);
		all = NULL;
	}
	tail_close(&t);
	return all;
}

/* ---- What keeps it from saving ---- */

static bool
has(struct slice line, const char *text)
{
	return memmem(line.data, line.len, text, strlen(text)) != NULL;
}

/* Of most lines, those of what was saved among them, nothing has to be parsed. */
static int
take_trouble(void *arg, struct slice line, struct err *e)
{
	struct buf *why = arg;
	struct json *event = NULL;
	struct err ignored = {0};
	struct slice name;

	if ((!has(line, "\"CheckpointError\"") && !has(line, "\"CheckpointWorks\"")) ||
	    json_parse(line, NULL, &event, NULL, &ignored) != 0)
		return ignored.code == ERR_NOMEM ? err_nomem(e) : 0;
	name = json_text(json_get(event, "event"));
	if (slice_is(name, "CheckpointError") || slice_is(name, "CheckpointWorks"))
		buf_reset(why);
	if (slice_is(name, "CheckpointError"))
		buf_slice(why, json_text(json_get(event, "message")));
	json_unref(event);
	return 0;
}

void
view_trouble(int run_fd, struct buf *to)
{
	struct err ignored = {0};
	struct tail t;

	tail_init(&t, run_fd, RUN_EVENTS);
	(void)tail_read(&t, take_trouble, to, &ignored);
	tail_close(&t);
}
