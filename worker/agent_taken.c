/* An agent's attempt that outlived its worker: known again by the record of its start. */
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "taken.h"

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
	struct json *record = agent_record_read(a->taken->ops_fd, a->taken->dir, e);
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
