/* What all agents of a run share: providers by role, versions of programs, conversations. */
#include "agent.h"

#include <stdlib.h>
#include <sys/stat.h>

/* A command that was asked for a version: its words, and its program's file as it was then. */
struct known_version {
	struct known_version *next;
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	struct buf words;
	char text[AGENT_VERSION_TEXT];
	bool known; /* else somebody asks */
};

struct agents {
	struct provider **providers; /* per role, NULL where no instruction uses it */
	struct json **conversations; /* per operation */
	bool *degraded; /* per operation: it begins a conversation in place of one that is lost */
	uint32_t *inheritors;	     /* per operation: how many continue its conversation */
	struct known_version *versions;
};

static size_t
role_index(const struct worker *w, uint32_t i)
{
	return (size_t)(w->flow->ops[i].how->role - w->flow->roles);
}

/* What flow_check_providers accepts is loaded here once more, to be kept. */
static int
load_providers(struct worker *w, const struct provider_search *search, const bool *settled, struct err *e)
{
	struct agents *all = w->agents;
	const struct flow_op *op;
	uint32_t i;

	for (i = 0; i < w->flow->nops; i++) {
		op = &w->flow->ops[i];
		if (op->kind != FLOW_INSTRUCTION || op->how->role == NULL || settled[i] ||
		    all->providers[role_index(w, i)] != NULL)
			continue; /* what was added without a role that is known has ended, or is refused */
		if (provider_load(search, op->how->role->provider, &all->providers[role_index(w, i)],
			e) != 0)
			return -1;
	}
	return 0;
}

/* What has an outcome when the run begins starts nothing any more, unless it takes messages. */
static bool *
settled_at_first(const struct worker *w)
{
	const struct json *ops = json_get(w->state, "ops");
	bool *settled = calloc(w->flow->nops + 1, sizeof(*settled));
	size_t i;

	for (i = 0; settled != NULL && i < w->flow->nops; i++)
		settled[i] = json_get(ops, w->flow->ops[i].id) != NULL;
	return settled;
}

/* Roles that only what has an outcome, or what may be added, has: without their provider the latter is rejected. */
static void
load_others(struct worker *w, const struct provider_search *search)
{
	struct err ignored = {0};
	size_t i;

	for (i = 0; i < w->flow->nroles; i++)
		if (w->agents->providers[i] == NULL && w->flow->roles[i].provider != NULL &&
		    provider_load(search, w->flow->roles[i].provider, &w->agents->providers[i],
			&ignored) != 0)
			w->agents->providers[i] = NULL;
}

static int
make_tables(struct worker *w, struct err *e)
{
	size_t n = reactive_most(w) + 1;
	struct agents *all = w->agents;

	all->providers = calloc(w->flow->nroles + 1, sizeof(struct provider *));
	all->conversations = calloc(n, sizeof(struct json *));
	all->inheritors = calloc(n, sizeof(*all->inheritors));
	all->degraded = calloc(n, sizeof(*all->degraded));
	return all->degraded == NULL || all->providers == NULL || all->conversations == NULL || all->inheritors == NULL
	    ? err_nomem(e) : 0;
}

static void
count_inheritors(struct worker *w)
{
	size_t i, from;

	for (i = 0; i < w->flow->nops; i++) {
		if (w->flow->ops[i].how->inherit_context == NULL)
			continue;
		from = flow_find(w->flow, w->flow->ops[i].how->inherit_context);
		if (from != SIZE_MAX)
			w->agents->inheritors[from]++;
	}
	for (i = w->flow->nplanned; i < w->flow->nops; i++)
		if (flow_grown(w->flow, (uint32_t)i)->kind == FLOW_GROWN_RETRY)
			w->agents->inheritors[i] +=
			    w->agents->inheritors[flow_grown(w->flow, (uint32_t)i)->parent];
}

/* What a resume was told by --allow-degraded-context. */
static void
read_degraded(struct worker *w)
{
	struct json_iter it = json_iterate(json_get(json_get(w->state, "config"), "degraded"));
	const struct json *item;
	size_t i;

	while (json_next(&it, NULL, &item)) {
		i = json_cstr_of(item) != NULL ? flow_find(w->flow, json_cstr_of(item)) : SIZE_MAX;
		if (i != SIZE_MAX)
			w->agents->degraded[i] = true;
	}
}

static bool
any_instruction(const struct flow *f)
{
	size_t i;

	for (i = 0; i < f->nops && f->ops[i].kind != FLOW_INSTRUCTION; i++)
		;
	return i < f->nops;
}

int
agents_init(struct worker *w, struct err *e)
{
	struct provider_search search;
	bool *settled;
	int rc;

	if (!any_instruction(w->flow) && (w->reactive == NULL || w->flow->nroles == 0))
		return 0;
	w->agents = calloc(1, sizeof(*w->agents));
	if (w->agents == NULL || make_tables(w, e) != 0)
		return err_nomem(e);
	if (provider_search_init(&search, w->environment, e) != 0)
		return -1;
	settled = settled_at_first(w);
	rc = settled == NULL ? err_nomem(e) : flow_check_providers(w->flow, &search, settled, NULL, NULL, e);
	if (rc == 0)
		rc = load_providers(w, &search, settled, e);
	if (rc == 0)
		load_others(w, &search);
	free(settled);
	provider_search_clear(&search);
	count_inheritors(w);
	read_degraded(w);
	agents_read_interrupted(w);
	return rc;
}

static void
free_version(struct known_version *v)
{
	buf_clear(&v->words);
	free(v);
}

void
agents_clear(struct worker *w)
{
	struct agents *all = w->agents;
	struct known_version *v;
	size_t i;

	if (all == NULL)
		return;
	for (i = 0; all->providers != NULL && i < w->flow->nroles; i++)
		provider_free(all->providers[i]);
	for (i = 0; all->conversations != NULL && i < w->flow->nops; i++)
		json_unref(all->conversations[i]);
	while ((v = all->versions) != NULL) {
		all->versions = v->next;
		free_version(v);
	}
	free(all->providers);
	free(all->conversations);
	free(all->inheritors);
	free(all->degraded);
	free(all);
	w->agents = NULL;
}

const struct provider *
agents_provider(const struct worker *w, uint32_t i)
{
	const struct flow_op *op = &w->flow->ops[i];

	return op->kind == FLOW_INSTRUCTION ? agents_role_provider(w, op->how->role) : NULL;
}

const struct provider *
agents_role_provider(const struct worker *w, const struct flow_role *role)
{
	return w->agents == NULL || role == NULL ? NULL : w->agents->providers[role - w->flow->roles];
}

void
agents_added(struct worker *w, uint32_t i)
{
	const char *inherit = w->flow->ops[i].how->inherit_context;

	if (w->agents == NULL)
		return;
	if (inherit != NULL)
		w->agents->inheritors[flow_find(w->flow, inherit)]++;
	if (flow_grown(w->flow, i)->kind == FLOW_GROWN_RETRY)
		w->agents->inheritors[i] = w->agents->inheritors[flow_grown(w->flow, i)->parent];
}

bool
agents_has_answer(const struct worker *w, uint32_t i)
{
	const struct provider *p = agents_provider(w, i);

	return p != NULL && (p->format != PROVIDER_TEXT || !p->keep_ansi);
}

const struct json *
agents_conversation(const struct worker *w, uint32_t i)
{
	return w->agents == NULL ? NULL : w->agents->conversations[i];
}

void
agents_settled(struct worker *w, uint32_t i, const struct json *conversation)
{
	if (w->agents == NULL || conversation == NULL || w->agents->inheritors[i] == 0)
		return;
	json_unref(w->agents->conversations[i]);
	w->agents->conversations[i] = json_ref(conversation);
}

unsigned
agents_inheritors(const struct worker *w, uint32_t i)
{
	return w->agents->inheritors[i];
}

bool
agents_is_degraded(const struct worker *w, uint32_t i)
{
	return w->agents->degraded[i];
}

/* ---- Versions ---- */

static struct known_version *
find_version(const struct worker *w, struct slice words, const struct stat *st)
{
	struct known_version *v;

	for (v = w->agents->versions; v != NULL; v = v->next)
		if (v->dev == st->st_dev && v->ino == st->st_ino &&
		    v->changed.tv_sec == st->st_mtim.tv_sec &&
		    v->changed.tv_nsec == st->st_mtim.tv_nsec && slice_eq(buf_view(&v->words), words))
			break;
	return v;
}

static struct known_version *
add_version(const struct worker *w, struct slice words, const struct stat *st)
{
	struct known_version *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	buf_add(&v->words, words.data, words.len);
	if (v->words.failed) {
		free_version(v);
		return NULL;
	}
	v->dev = st->st_dev;
	v->ino = st->st_ino;
	v->changed = st->st_mtim;
	v->next = w->agents->versions;
	w->agents->versions = v;
	return v;
}

/* Without memory it is not asked for. */
enum version_known
agents_version_get(const struct worker *w, const char *program, struct slice words,
    char to[AGENT_VERSION_TEXT], const void **asked)
{
	struct known_version *v;
	struct stat st;

	if (stat(program, &st) != 0)
		return VERSION_NONE;
	v = find_version(w, words, &st);
	if (v != NULL && v->known)
		snprintf(to, AGENT_VERSION_TEXT, "%s", v->text);
	if (v != NULL)
		return v->known ? VERSION_KNOWN : VERSION_ASKED;
	*asked = v = add_version(w, words, &st);
	return v != NULL ? VERSION_ASK : VERSION_NONE;
}

/* What nobody asks any more is asked by the next attempt. */
void
agents_version_put(struct worker *w, const void *asked, const char *version)
{
	struct known_version **at = &w->agents->versions, *v;

	while (*at != asked)
		at = &(*at)->next;
	v = *at;
	v->known = version != NULL;
	if (v->known) {
		snprintf(v->text, sizeof(v->text), "%s", version);
		return;
	}
	*at = v->next;
	free_version(v);
}
