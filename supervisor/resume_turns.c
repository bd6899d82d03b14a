#include "resume.h"

/* As the worker counts, in turns.c. */
static int64_t
last_marked(const struct json *state, const char *op)
{
	struct json_iter it = json_iterate(json_get(json_get(state, "flow_context"), "operator_messages"));
	const struct json *message;
	int64_t turn, last = 0;

	while (json_next(&it, NULL, &message))
		if (slice_is(json_text(json_get(message, "rendered_into_op")), op) &&
		    json_int64(json_get(message, "turn"), &turn) && turn > last)
			last = turn;
	return last;
}

int64_t
resume_open_turn(const struct json *state, const char *op, const struct json *entry)
{
	const struct json *conversation = json_get(entry, "conversation");
	int64_t marked, had = 0;

	if (conversation == NULL || json_is_true(json_get(conversation, "tentative")))
		return 0;
	marked = last_marked(state, op);
	if (!json_int64(json_get(entry, "turns"), &had))
		had = 1;
	return marked > had ? marked : 0;
}

struct json *
resume_turn_entry(const struct json *entry)
{
	return json_remove(json_set(json_ref(entry), "status", json_cstr("completed")), slice_of("error"));
}
