#include "waits.h"

#include <stdlib.h>
#include <string.h>

#include "view.h"

enum { NAMED_MOST = 3 };

struct waits {
	const struct home *home;
	struct store *store;
	struct json *queues; /* by name what waits for one of its slots */
};

bool
waits_are_known(const struct session *s)
{
	return s->status == STATUS_QUEUED && s->reason_code != NULL && strcmp(s->reason_code, "run.queued.new") != 0;
}

struct waits *
waits_new(const struct home *h, struct store *s)
{
	struct waits *w = malloc(sizeof(*w));

	if (w == NULL)
		return NULL;
	*w = (struct waits){.home = h, .store = s, .queues = json_object()};
	return w;
}

void
waits_free(struct waits *w)
{
	if (w != NULL)
		json_unref(w->queues);
	free(w);
}

static int
add_holder(void *arg, const char *run_id)
{
	struct json **held_by = arg;

	*held_by = json_append(*held_by, json_cstr(run_id));
	return *held_by == NULL;
}

static struct json *
ask_queue(struct waits *w, const char *name)
{
	struct json *held_by = json_array(), *o = json_object();
	struct err ignored = {0};
	int64_t slots;

	if (queue_holders(w->store, name, &slots, add_holder, &held_by, &ignored) != 0 || slots == 0) {
		json_unref(held_by);
		json_unref(o);
		return ignored.code == ERR_NOMEM ? NULL : json_null();
	}
	o = json_set(o, "queue", json_cstr(name));
	o = json_set(o, "slots", json_int(slots));
	return json_set(o, "held_by", held_by);
}

static struct json *
for_slot(struct waits *w, const struct session *s)
{
	const struct json *known = json_get(w->queues, s->queue);
	struct json *asked;

	if (known != NULL)
		return json_ref(known);
	asked = ask_queue(w, s->queue);
	if (asked != NULL)
		w->queues = json_set(w->queues, s->queue, json_ref(asked));
	return asked;
}

/* What it says of one that has it here as a copy stands in the row: nobody here ends that one. */
static bool
is_copy(const struct waits *w, const char *run_id)
{
	struct err ignored = {0};
	struct session s;
	bool copy;

	if (session_read(w->store, run_id, &s, &ignored) != 0)
		return false;
	copy = session_owner(&s, w->home) != NULL;
	session_clear(&s);
	return copy;
}

static struct json *
for_key(const struct waits *w, const struct session *s)
{
	char holder[RUN_ID_TEXT];
	struct err ignored = {0};
	bool being_ended;
	struct json *o;

	if (unique_holder(w->store, s, holder, &being_ended, &ignored) != 0)
		return ignored.code == ERR_NOMEM ? NULL : json_null();
	if (holder[0] == '\0' || is_copy(w, holder))
		return json_null();
	o = json_set(json_object(), "key", json_text_or_null(s->unique_key));
	o = json_set(o, "held_by", json_append(json_array(), json_cstr(holder)));
	return being_ended ? json_set(o, "being_ended", json_bool(true)) : o;
}

struct json *
waits_of(struct waits *w, const struct session *s)
{
	if (w == NULL || s->status != STATUS_QUEUED || s->reason_code == NULL)
		return json_null();
	if (strcmp(s->reason_code, "run.queued.slot") == 0)
		return for_slot(w, s);
	if (strcmp(s->reason_code, "run.queued.unique") == 0)
		return for_key(w, s);
	return json_null();
}

static void
tell_holders(const struct json *held_by, struct buf *to)
{
	size_t i, n = json_length(held_by);

	for (i = 0; i < n && i < NAMED_MOST; i++)
		buf_printf(to, "%s%s", i == 0 ? " by " : ", ", json_cstr_of(json_at(held_by, i)));
	if (n > NAMED_MOST)
		buf_printf(to, " and %zu more", n - NAMED_MOST);
}

static void
tell(const struct json *o, struct buf *to)
{
	const struct json *held_by = json_get(o, "held_by");
	const char *queue = json_cstr_of(json_get(o, "queue"));
	int64_t slots = 0;

	if (queue == NULL) {
		buf_puts(to, "waits for the key '");
		buf_slice(to, json_text(json_get(o, "key")));
		buf_printf(to, "', held by %srun %s", json_get(o, "being_ended") != NULL ? "what is left of " : "",
		    json_cstr_of(json_at(held_by, 0)));
		return;
	}
	(void)json_int64(json_get(o, "slots"), &slots);
	buf_printf(to, "waits for a slot of queue '%s' (%zu of %lld taken", queue, json_length(held_by),
	    (long long)slots);
	tell_holders(held_by, to);
	buf_putc(to, ')');
}

void
waits_reason(struct waits *w, const struct session *s, struct buf *to)
{
	struct json *o = waits_of(w, s);

	if (json_type(o) == JSON_OBJECT)
		tell(o, to);
	else
		view_reason(s, to);
	json_unref(o);
}
