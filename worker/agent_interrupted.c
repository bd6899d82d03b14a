/*
 * Agents whose end nobody knows. Their conversation is there, as far as it had come: the next attempt
 * goes on in it, and is told so. One that turns out to be lost begins anew.
 */
#include <fcntl.h>
#include <stdio.h>

#include "agent.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"

static bool
can_continue(const struct provider *p)
{
	return p != NULL &&
	    (p->starts[PROVIDER_RESUME] != NULL || p->starts[PROVIDER_FORK] != NULL);
}

/* ---- Its id ---- */

/* As the output said it, where it was not given to the agent at its start. */
static struct json *
id_of_output(const struct provider *p, int ops_fd, const char *dir)
{
	const struct provider_end unknown = {.known = false};
	struct provider_result result = {0};
	struct provider_reading *r = NULL;
	struct json *id = NULL;
	char name[OP_FILE_TEXT + 8];
	struct err e = {0};
	int fd;

	snprintf(name, sizeof(name), "%s.out", dir);
	fd = openat(ops_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && provider_reading_new(p, NULL, NULL, &r, &e) == 0 && provider_reading_feed_file(r, fd, &e) == 0 &&
	    provider_reading_finish(r, &unknown, &result, &e) == 0 && result.id != NULL)
		id = json_string_lossy(slice_of(result.id), NULL);
	provider_result_clear(&result);
	provider_reading_free(r);
	fd_close(&fd);
	return id;
}

/* ---- What is known of it ---- */

static void
copy(struct json **to, const struct json *from, const char *name)
{
	if (json_get(from, name) != NULL)
		*to = json_set(*to, name, json_ref(json_get(from, name)));
}

/* NULL when it had no conversation that could be continued. */
static struct json *
conversation_of(const struct provider *p, int ops_fd, const char *dir)
{
	struct json *record = agent_record_read(ops_fd, dir, NULL), *o = json_object(), *id;

	copy(&o, record, "provider");
	copy(&o, record, "id");
	copy(&o, record, "home");
	copy(&o, record, "cwd");
	copy(&o, record, "store");
	json_unref(record);
	id = json_get(o, "id") == NULL ? id_of_output(p, ops_fd, dir) : NULL;
	if (id != NULL)
		o = json_set(o, "id", id);
	if (json_get(o, "id") != NULL || json_get(o, "store") != NULL)
		return o;
	json_unref(o);
	return NULL;
}

void
agents_interrupt(struct worker *w, uint32_t i, int ops_fd, const char *dir)
{
	const struct provider *p = agents_provider(w, i);
	struct json *o = can_continue(p) ? conversation_of(p, ops_fd, dir) : NULL;

	if (o == NULL)
		return;
	w->interrupted = json_set(w->interrupted != NULL ? w->interrupted : json_object(),
	    w->flow->ops[i].id, o);
	if (w->interrupted == NULL)
		log_line(LOG_WARNING, "ops/%s: its conversation begins anew: out of memory",
		    w->flow->ops[i].id);
}

static void
read_one(struct worker *w, uint32_t i, const struct json *start)
{
	const char *op = w->flow->ops[i].id;
	const char *run = json_cstr_of(json_get(start, "run"));
	char dir[OP_FILE_TEXT];
	struct buf path = {0};
	int64_t attempt;
	int fd = -1;

	if (run == NULL || !run_id_is_valid(run) ||
	    !json_int64(json_get(start, "attempt"), &attempt) || attempt < 1 || attempt > INT32_MAX)
		return;
	buf_printf(&path, "%s/" RUN_OPS, run);
	if (!path.failed)
		fd = openat(w->home.runs_fd, buf_text(&path),
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		agents_interrupt(w, i, fd, op_file_name(w, i, (unsigned)attempt, "", dir));
	if (json_is_true(json_get(start, CKPT_SHARED)) && json_get(w->interrupted, op) != NULL)
		w->interrupted = json_set(w->interrupted, op,
		    json_set(json_ref(json_get(w->interrupted, op)), CKPT_SHARED, json_bool(true)));
	fd_close(&fd);
	buf_clear(&path);
}

void
agents_read_interrupted(struct worker *w)
{
	struct json_iter it = json_iterate(json_get(json_get(w->state, "config"), "interrupted"));
	const struct json *start;
	size_t i;

	while (json_next(&it, NULL, &start)) {
		i = flow_find(w->flow, json_cstr_of(json_iter_name(&it)));
		if (i != SIZE_MAX)
			read_one(w, (uint32_t)i, start);
	}
}

const struct json *
agents_interrupted(const struct worker *w, uint32_t i)
{
	return json_get(w->interrupted, w->flow->ops[i].id);
}

bool
agents_begin_anew(struct worker *w, uint32_t i)
{
	if (agents_interrupted(w, i) == NULL)
		return false;
	w->interrupted = json_remove(w->interrupted, slice_of(w->flow->ops[i].id));
	return true;
}

void
agents_tell_interrupted(const struct worker *w, uint32_t i, struct buf *to)
{
	if (agents_interrupted(w, i) != NULL)
		buf_puts(to, "[INTERRUPTED]\nYour work on this was interrupted: how far it had come is not "
			     "known. Look at what is there\nalready, and go on from it. The task was:\n"
			     "[/INTERRUPTED]\n\n");
}
