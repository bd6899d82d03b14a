/*
 * resume: the graph with what was added while the run was going. What a parent that runs again on
 * purpose has added leaves it, with all that descends from that; then everything is looked at anew.
 */
#include <stdlib.h>
#include <string.h>

#include "flowsup/provider.h"
#include "resuming.h"

static const char *
node_of(const struct json *entry)
{
	return json_cstr_of(json_get(entry, "node_id"));
}

/* ---- Providers ---- */

int
resuming_read_providers(struct resuming *r, struct err *e)
{
	struct provider_search search;
	struct provider *p;
	struct err ignored = {0};
	size_t i;

	if (provider_search_init(&search, r->environment, e) != 0)
		return -1;
	json_unref(r->settings);
	json_unref(r->copying);
	r->settings = json_object();
	r->copying = json_object();
	for (i = 0; i < r->flow->nroles; i++) {
		if (r->flow->roles[i].provider == NULL ||
		    provider_load(&search, r->flow->roles[i].provider, &p, &ignored) != 0)
			continue;
		r->settings = json_set(r->settings, r->flow->roles[i].name,
		    json_bool(p->reads_user_settings));
		r->copying = json_set(r->copying, r->flow->roles[i].name,
		    json_bool(p->starts[PROVIDER_FORK] != NULL));
		provider_free(p);
	}
	provider_search_clear(&search);
	return r->settings != NULL && r->copying != NULL ? 0 : err_nomem(e);
}

/* ---- The graph ---- */

static void
note_misfit(void *arg, const struct json *entry, const char *why)
{
	struct resuming *r = arg;
	struct json *one = json_set(json_object(), "entry", json_ref(entry));

	r->misfits = json_append(r->misfits, json_set(one, "message", json_string_lossy(slice_of(why), NULL)));
}

static struct json *
without_dropped(const struct resuming *r)
{
	struct json_iter it = json_iterate(json_get(r->state, "spawned"));
	struct json *kept = json_array();
	const struct json *entry;

	while (json_next(&it, NULL, &entry))
		if (node_of(entry) == NULL || json_get(r->dropped, node_of(entry)) == NULL)
			kept = json_append(kept, json_ref(entry));
	return json_set(json_ref(r->state), "spawned", kept);
}

static int
rebuild(struct resuming *r, struct err *e)
{
	json_unref(r->kept);
	json_unref(r->misfits);
	flow_free(r->flow);
	r->flow = NULL;
	r->misfits = json_array();
	r->kept = without_dropped(r);
	if (r->kept == NULL)
		return err_nomem(e);
	if (flow_from_state(r->kept, &r->flow, &r->flow_error) != 0 ||
	    flow_rebuild(r->flow, r->kept, 0, note_misfit, r, &r->flow_error) != 0) {
		if (r->flow_error.code == ERR_NOMEM)
			return err_nomem(e);
		r->flow_failed = true;
	}
	return r->misfits != NULL ? 0 : err_nomem(e);
}

/* ---- What leaves ---- */

static bool
names_dropped(const struct resuming *r, const struct json *entry, const char *member)
{
	const char *node = json_cstr_of(json_get(entry, member));

	return node != NULL && json_get(r->dropped, node) != NULL;
}

static size_t
drop(struct resuming *r, const struct json *entry)
{
	if (node_of(entry) == NULL || json_get(r->dropped, node_of(entry)) != NULL)
		return 0;
	r->dropped = json_set(r->dropped, node_of(entry), json_ref(entry));
	return 1;
}

/* Descendants, however they are ordered. */
static size_t
drop_descendants(struct resuming *r)
{
	const struct json *entry;
	struct json_iter it;
	size_t n, all = 0;

	do {
		it = json_iterate(json_get(r->state, "spawned"));
		for (n = 0; json_next(&it, NULL, &entry);)
			if (names_dropped(r, entry, "parent_id") || names_dropped(r, entry, "escalated_from"))
				n += drop(r, entry);
		all += n;
	} while (n > 0 && r->dropped != NULL);
	return all;
}

static size_t
drop_more(struct resuming *r)
{
	size_t i, n = 0;

	for (i = r->flow->nplanned; i < r->plan.nrows; i++)
		if (r->plan.rows[i].emitter_runs_again)
			n += drop(r, flow_grown(r->flow, (uint32_t)i)->entry);
	return n > 0 ? n + drop_descendants(r) : 0;
}

int
resuming_examine_grown(struct resuming *r, struct err *e)
{
	size_t n;

	json_unref(r->dropped);
	r->dropped = json_object();
	do {
		resume_plan_clear(&r->plan);
		if (rebuild(r, e) != 0)
			return -1;
		r->input.state = r->kept;
		r->input.flow = r->flow_failed ? NULL : r->flow;
		r->input.added = json_get(r->state, "spawned");
		r->input.dropped = r->dropped;
		r->input.misfits = r->misfits;
		if (resuming_examine_input(r, e) != 0)
			return -1;
		n = r->flow_failed ? 0 : drop_more(r);
		if (r->dropped == NULL)
			return err_nomem(e);
	} while (n > 0);
	return 0;
}
