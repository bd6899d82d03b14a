/* end.c: `flowsup-worker --end`. */
#ifndef WORKER_END_H
#define WORKER_END_H

struct end_arguments {
	const char *home, *run_id;
	const char *op;	   /* NULL: all */
	const char *class; /* for stopped.json */
	int lock_fd;	   /* that holds the run's lock; -1: it is taken here */
};

enum { END_LOCK_MS = 1000 };
/* Exit statuses; supervisor/kept.c knows them too. */
enum {
	END_DONE = 0,
	END_RESUMED = 3, /* another run has taken over */
	END_FAILED = 74,
	END_LATER = 75 /* somebody has the run's lock, or the database is busy */
};
int end_main(const struct end_arguments *a);

#endif
