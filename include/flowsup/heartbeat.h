/* What a worker writes at each of its ticks into a memfd that its supervisor reads. */
#ifndef FLOWSUP_HEARTBEAT_H
#define FLOWSUP_HEARTBEAT_H

#include <stdint.h>

/* The file's own time would be the wall clock's, which may be set while a worker lives. */
struct heartbeat {
	uint64_t count;
	int64_t at_ns; /* CLOCK_MONOTONIC; of the start, until the first one */
};

#endif
