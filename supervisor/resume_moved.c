/*
 * resume: files of conversations that lie in the run's own directory. They are recorded by where that
 * directory was; it may have been moved since, or be a copy, which has copies of its own of them.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/home.h"
#include "resuming.h"

/* What stands behind the last "/RUN/ops/" of a path, or NULL. */
static const char *
below_ops(const struct resuming *r, const char *path)
{
	const char *id = json_cstr_of(json_get(r->launch.object, "run_id"));
	const char *found = NULL, *next = path;
	struct buf mark = {0};

	if (id == NULL)
		return NULL;
	buf_printf(&mark, "/%s/%s/", id, RUN_OPS);
	while ((next = strstr(next, buf_text(&mark))) != NULL) {
		found = next + mark.len;
		next++;
	}
	buf_clear(&mark);
	return found;
}

/* Where it is now, or NULL when it is where it was, or not here. */
static struct json *
moved_path(const struct resuming *r, const char *path)
{
	const char *rest = path != NULL ? below_ops(r, path) : NULL;
	struct buf here = {0};
	struct json *now = NULL;

	if (rest == NULL)
		return NULL;
	buf_printf(&here, "%s/%s/%s", r->run_path, RUN_OPS, rest);
	if (strcmp(buf_text(&here), path) != 0 && faccessat(r->run_fd, buf_text(&here), F_OK, 0) == 0)
		now = json_cstr(buf_text(&here));
	buf_clear(&here);
	return now;
}

/* An entry whose conversation's files have been moved, as it is now; NULL: nothing to be changed. */
static struct json *
moved_entry(const struct resuming *r, const struct json *entry)
{
	static const char *const members[] = {"store", "chat"};
	const struct json *recorded = json_get(entry, "conversation");
	struct json *conversation = NULL, *now;
	size_t i;

	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		now = moved_path(r, json_cstr_of(json_get(recorded, members[i])));
		if (now != NULL)
			conversation = json_set(conversation != NULL ? conversation : json_ref(recorded),
			    members[i], now);
	}
	return conversation != NULL ? json_set(json_ref(entry), "conversation", conversation) : NULL;
}

int
resuming_follow_move(struct resuming *r, struct err *e)
{
	struct json *ops, *spawned, *now;
	const struct json *one;
	struct json_iter it;
	struct slice id;
	size_t i;

	if (r->state == NULL || !r->has_launch)
		return 0;
	ops = json_ref(json_get(r->state, "ops"));
	it = json_iterate(json_get(r->state, "ops"));
	while (json_next(&it, &id, &one))
		if ((now = moved_entry(r, one)) != NULL)
			ops = json_setn(ops, id, now);
	spawned = json_ref(json_get(r->state, "spawned"));
	it = json_iterate(json_get(r->state, "spawned"));
	for (i = 0; json_next(&it, NULL, &one); i++)
		if ((now = moved_entry(r, one)) != NULL)
			spawned = json_put(spawned, i, now);
	if (json_get(r->state, "ops") != NULL)
		r->state = json_set(r->state, "ops", ops);
	if (r->state != NULL && json_get(r->state, "spawned") != NULL)
		r->state = json_set(r->state, "spawned", spawned);
	return r->state != NULL ? 0 : err_nomem(e);
}
