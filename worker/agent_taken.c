/* An agent's attempt that outlived its worker: known again by the record of its start. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "flowsup/fs.h"
#include "taken.h"

enum { AGENT_RECORD_MOST = 1 << 20 };

struct json *
agent_read_record(int ops_fd, const char *name, struct err *e)
{
	const struct json_options o = {.max_bytes = AGENT_RECORD_MOST};
	struct json *record = NULL;
	struct buf text = {0};
	int dir = openat(ops_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		err_set(e, ERR_NOTFOUND, "ops/%s is not there", name);
	else if (fs_read_private_file(dir, AGENT_RECORD, AGENT_RECORD_MOST, &text, e) == 0)
		(void)json_parse(buf_view(&text), &o, &record, NULL, e);
	fd_close(&dir);
	buf_clear(&text);
	return record;
}

static int
copy(const struct json *record, const char *name, char **to, struct err *e)
{
	const char *text = json_cstr_of(json_get(record, name));

	if (text == NULL)
		return 0;
	*to = strdup(text);
	return *to != NULL ? 0 : err_nomem(e);
}

static void
copy_short(const struct json *record, const char *name, char *to, size_t size)
{
	const char *text = json_cstr_of(json_get(record, name));

	snprintf(to, size, "%s", text != NULL ? text : "");
}

static enum provider_start
start_of(const struct json *record)
{
	struct slice word = json_text(json_get(record, "start"));

	return slice_is(word, "resume") ? PROVIDER_RESUME
	    : slice_is(word, "fork")	? PROVIDER_FORK : PROVIDER_NEW;
}

int
agent_taken(struct attempt_run *a, struct err *e)
{
	struct json *record = agent_read_record(a->taken->ops_fd, a->taken->dir, e);
	struct agent *g = record != NULL ? agent_new(a) : NULL;
	int rc = -1;

	if (record != NULL && g == NULL)
		err_nomem(e);
	if (g != NULL) {
		g->start = start_of(record);
		g->sid_known = g->version_known = true;
		copy_short(record, "version", g->version, sizeof(g->version));
		copy_short(record, "id", g->sid, sizeof(g->sid));
		rc = copy(record, "continues", &g->old, e);
		if (rc == 0)
			rc = copy(record, "home", &g->home, e);
		if (rc == 0)
			rc = copy(record, "cwd", &g->cwd, e);
		if (rc == 0)
			rc = copy(record, "store", &g->store, e);
	}
	if (rc == 0)
		agent_started(a);
	json_unref(record);
	return rc;
}
