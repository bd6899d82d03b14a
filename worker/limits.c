/*
 * The submitter's resource limits, made such that they can be set. A worker without the right to
 * raise a hard limit can hand on no more than it has itself; an operation that then runs with less
 * is better than one that never starts, but it is said.
 */
#include "worker.h"

#include <string.h>

#include "flowsup/log.h"

static rlim_t
smaller(rlim_t a, rlim_t b)
{
	return a < b ? a : b; /* RLIM_INFINITY is the largest value */
}

/* Tried, because a right to do so (CAP_SYS_RESOURCE) has bounds of its own, as fs.nr_open. */
static bool
may_raise_to(int resource, const struct rlimit *own, rlim_t hard)
{
	struct rlimit raised = {.rlim_cur = own->rlim_cur, .rlim_max = hard};

	return setrlimit((__rlimit_resource_t)resource, &raised) == 0 &&
	    setrlimit((__rlimit_resource_t)resource, own) == 0;
}

/* True when the limit had to be lowered. */
static bool
fit(struct proc_rlimit *l)
{
	struct rlimit own;

	if (getrlimit((__rlimit_resource_t)l->resource, &own) != 0 ||
	    l->value.rlim_max <= own.rlim_max || may_raise_to(l->resource, &own, l->value.rlim_max))
		return false;
	l->value.rlim_max = own.rlim_max;
	l->value.rlim_cur = smaller(l->value.rlim_cur, own.rlim_max);
	return true;
}

/* What an operation inherits from us as it should be need not be set anew in each of them. */
static void
drop_own(struct worker *w)
{
	unsigned n, left = 0;
	struct rlimit own;

	for (n = 0; n < w->launch.nrlimits; n++) {
		if (getrlimit((__rlimit_resource_t)w->launch.rlimits[n].resource, &own) != 0 ||
		    own.rlim_cur != w->launch.rlimits[n].value.rlim_cur ||
		    own.rlim_max != w->launch.rlimits[n].value.rlim_max)
			w->launch.rlimits[left++] = w->launch.rlimits[n];
	}
	w->launch.nrlimits = left;
}

void
limits_fit(struct worker *w)
{
	struct buf names = {0};
	unsigned n;

	for (n = 0; n < w->launch.nrlimits; n++) {
		if (!fit(&w->launch.rlimits[n]))
			continue;
		buf_printf(&names, "%s%s", names.len > 0 ? " " : "",
		    launch_limit_name(w->launch.rlimits[n].resource));
	}
	if (names.len > 0) {
		log_line(LOG_WARNING, "limits of the submitter that this worker may not set are "
		    "lowered to its own: %s", buf_text(&names));
		event_begin(w, "LimitsLowered");
		event_text(w, "limits", buf_text(&names));
		event_end(w);
	}
	buf_clear(&names);
	drop_own(w);
}
