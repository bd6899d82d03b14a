/* Signs of life of an operation: new output, and processor time. */
#include "flowsup/clock.h"
#include "flowsup/proc.h"

enum { LIFE_LOOKS = 4, LIFE_LEAST_MS = 100 };

static int
add_cpu(void *arg, const struct proc_stat *st, int pidfd)
{
	(void)pidfd;
	*(uint64_t *)arg += st->cpu_ticks;
	return 0;
}

/* What ends takes its time with it: any change is a sign, not a larger sum alone. */
static bool
has_worked(struct proc_life *l, const struct proc_operation *of)
{
	uint64_t cpu = 0;
	bool worked;

	if (proc_each_of_operation(of, add_cpu, &cpu, NULL) < 0)
		return true;
	worked = cpu != l->cpu;
	l->cpu = cpu;
	return worked;
}

bool
proc_life_look(struct proc_life *l, uint64_t bytes, const struct proc_operation *of)
{
	bool alive = bytes != l->bytes || (of != NULL && has_worked(l, of));

	if (alive)
		l->since_ns = clock_monotonic_ns();
	l->bytes = bytes;
	return alive;
}

int64_t
proc_life_next(const struct proc_life *l, int64_t silence_ns)
{
	int64_t now = clock_monotonic_ns(), step = silence_ns / LIFE_LOOKS;

	if (step < LIFE_LEAST_MS * NS_PER_MS)
		step = LIFE_LEAST_MS * NS_PER_MS;
	if (l->since_ns + silence_ns > now && l->since_ns + silence_ns < now + step)
		return l->since_ns + silence_ns;
	return now + step;
}
