#include <string.h>

#include "flowsup/provider.h"
#include "start.h"

/* Whatever can add operations makes a flow of it. */
static bool
is_single(const struct flow *f)
{
	return f->nops == 1 && f->ops[0].how->foreach_pointer == NULL && f->reactive == NULL &&
	    f->planner == NULL && f->synthesis == NULL;
}

static int
is_agents(const char *provider, bool *yes, struct err *e)
{
	struct provider_search search;
	struct provider *p = NULL;
	int r;

	if (provider_search_init(&search, NULL, e) != 0)
		return -1;
	r = provider_load(&search, provider, &p, e);
	if (r == 0)
		*yes = !p->shell;
	provider_free(p);
	provider_search_clear(&search);
	return r;
}

/* A program whose name is a provider's. What is wrong with its file is no matter of a plain command. */
static int
is_own_command(const char *const *argv, bool *yes, struct err *e)
{
	const char *slash = strrchr(argv[0], '/');
	struct provider_search search;
	struct provider *p = NULL;
	struct err ignored = {0};

	if (provider_search_init(&search, NULL, e) != 0)
		return -1;
	*yes = provider_load(&search, slash != NULL ? slash + 1 : argv[0], &p, &ignored) == 0 &&
	    provider_command_prompt(p, argv) > 0;
	provider_free(p);
	provider_search_clear(&search);
	return 0;
}

int
start_kind(const struct flow *f, const char **out, struct err *e)
{
	bool agents = false;

	*out = f->playbook != NULL ? "play" : "flow";
	if (f->playbook != NULL || !is_single(f) || f->ops[0].kind == FLOW_RUN)
		return 0;
	if (f->ops[0].kind == FLOW_INSTRUCTION
		? is_agents(f->ops[0].how->role->provider, &agents, e) != 0
		: is_own_command(f->ops[0].argv, &agents, e) != 0)
		return -1;
	if (agents)
		*out = "agent";
	return 0;
}
