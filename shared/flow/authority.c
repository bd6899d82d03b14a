/* What an operation that was asked for may be: never more than who asked. */
#include <string.h>

#include "flowsup/flow.h"

static bool
names_variable(const struct flow_role *role, const char *name)
{
	size_t i;

	for (i = 0; i < role->nenv; i++)
		if (strcmp(role->env[i].name, name) == 0)
			return true;
	return false;
}

static const char *
provider_of(const struct flow_role *role)
{
	return role->provider != NULL ? role->provider : "";
}

int
flow_check_authority(const struct flow_role *emitter, const struct flow_role *role, struct err *e)
{
	bool same;
	size_t i;

	if (emitter == NULL || role == NULL || emitter == role)
		return 0;
	same = json_length(role->args) == json_length(emitter->args) &&
	    (json_length(role->args) == 0 || json_equal(role->args, emitter->args));
	if (!same && strcmp(provider_of(role), provider_of(emitter)) != 0)
		return err_set(e, ERR_REFUSED, "role %s is of the provider %s and role %s of %s: what their "
		    "arguments allow cannot be compared", role->name, provider_of(role), emitter->name,
		    provider_of(emitter));
	if (!same)
		return err_set(e, ERR_REFUSED, "the arguments of role %s are not those of role %s, and may "
		    "allow more", role->name, emitter->name);
	for (i = 0; i < role->nenv; i++)
		if (!names_variable(emitter, role->env[i].name))
			return err_set(e, ERR_REFUSED, "role %s has the variable %s, which role %s has not",
			    role->name, role->env[i].name, emitter->name);
	return 0;
}

bool
flow_is_declared_escalation(const struct flow_role *emitter, const struct flow_role *role)
{
	return emitter != NULL && role != NULL && emitter->escalate_to != NULL &&
	    strcmp(emitter->escalate_to, role->name) == 0;
}
