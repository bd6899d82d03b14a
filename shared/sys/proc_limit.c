#include <assert.h>

#include "flowsup/proc.h"

void
proc_spawn_limit_files(struct proc_spawn *s, rlim_t bytes)
{
	struct rlimit now;

	assert(s->nrlimits < PROC_MAX_RLIMITS);
	/* It cannot fail, as it is asked for a resource that there is. */
	if (getrlimit(RLIMIT_FSIZE, &now) != 0 || now.rlim_cur <= bytes)
		return;
	now.rlim_cur = bytes;
	s->rlimits[s->nrlimits++] = (struct proc_rlimit){RLIMIT_FSIZE, now};
}
