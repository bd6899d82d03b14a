/* One line a figure: name, value, unit, bound, and the peer's value of the same run ("-": none). */
#ifndef FLOWSUP_TEST_FIGURE_H
#define FLOWSUP_TEST_FIGURE_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void
figure(const char *name, double value, const char *unit, const char *bound, const char *peer)
{
	printf("%-28s %14.3f %-12s %-28s %s\n", name, value, unit, bound, peer);
	fflush(stdout);
}

static inline double
seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline _Noreturn void
give_up(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

#endif
