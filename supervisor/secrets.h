/* Withheld values in the supervisor's hands: a sealed memfd for each run that needs one, until its job
 * is over. They are never read here, and die with this process. */
#ifndef FLOWSUP_SUPERVISOR_SECRETS_H
#define FLOWSUP_SUPERVISOR_SECRETS_H

#include <stdbool.h>
#include <sys/queue.h>

#include "flowsup/home.h"
#include "flowsup/json.h"
#include "flowsup/store.h"

struct daemon;

struct secret {
	TAILQ_ENTRY(secret) entry;
	char run_id[RUN_ID_TEXT];
	int fd;
	bool offered; /* its run has crashed, and waits to be resumed by hand */
};
/* Of so many crashed runs; of more the oldest lose theirs. */
enum { SECRETS_CRASHED_MOST = 256 };

struct secrets {
	TAILQ_HEAD(secret_list, secret) list;
	unsigned count;
};

void secrets_init(struct secrets *secrets);
void secrets_clear(struct daemon *d);
/* Keeps fd for a run, in place of what there was. Consumes it, also on error: ERR_PROTOCOL when it is
 * no sealed memfd, ERR_LIMIT when it holds too much, or too many are kept. */
int secrets_put(struct daemon *d, const char *run_id, int fd, struct err *e);
/* The descriptor for a run, -1 when there is none. Borrowed. */
int secrets_of(struct daemon *d, const char *run_id);
/* A run of the same job goes on: it has now what `from` had, unless it came with its own. */
void secrets_move(struct daemon *d, const char *from, const char *to);
void secrets_drop(struct daemon *d, const char *run_id);
/* Whether a run needs values that are not at hand; takes over those of the run that it resumes. */
bool secrets_lack(struct daemon *d, const struct session *s);
/* Drops them when the job is over; of a crashed run they are kept, within SECRETS_CRASHED_MOST, until it
 * goes on or is killed. */
void secrets_settle(struct daemon *d, const struct session *s);
/* Looks at the run's row when it has any. */
void secrets_ended(struct daemon *d, const char *run_id);

#endif
