/* Signs of life of a process group: new output, and processor time. */
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

bool
proc_life_look(struct proc_life *l, uint64_t bytes, pid_t group, bool strict)
{
	uint64_t cpu = l->cpu;
	bool alive;

	if (!strict) {
		cpu = 0;
		proc_each_in_group(group, add_cpu, &cpu, NULL);
	}
	alive = bytes != l->bytes || cpu != l->cpu;
	if (alive)
		l->since_ns = clock_monotonic_ns();
	l->bytes = bytes;
	l->cpu = cpu;
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
