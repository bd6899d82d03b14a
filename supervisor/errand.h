/*
 * Commands that the supervisor runs for a run: to tell somebody of an event, and to resume. Each in a
 * session of its own and with a limit on its time; when that is over its group is killed.
 */
#ifndef FLOWSUP_SUPERVISOR_ERRAND_H
#define FLOWSUP_SUPERVISOR_ERRAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "flowsup/home.h"
#include "flowsup/proc.h"
#include "loop.h"

struct daemon;

enum errand_kind { ERRAND_NOTIFY, ERRAND_RESTART, ERRAND_KEEP, ERRAND_KINDS };
enum { ERRAND_TEXT = 512 };

struct errand {
	TAILQ_ENTRY(errand) entry;
	struct daemon *daemon;
	enum errand_kind kind;
	char run_id[RUN_ID_TEXT];
	char *event; /* of ERRAND_NOTIFY; owned */
	struct proc_id id;
	struct source process; /* pidfd */
	int said; /* memfd that holds what it wrote to standard error, or -1 */
	int64_t until_ns;
	bool late; /* its time was over */
	bool stopped; /* killed with everything else */
};
TAILQ_HEAD(errand_list, errand);

struct errands {
	struct errand_list list;
	unsigned counts[ERRAND_KINDS];
};

void errands_init(struct errands *errands);
void errands_clear(struct daemon *d); /* they go on by themselves */
unsigned errands_count(const struct daemon *d);
struct errand *errand_of(struct daemon *d, pid_t pid);
/* The one of this kind, run and event (NULL: any) that is under way, or NULL. */
struct errand *errand_find(struct daemon *d, enum errand_kind kind, const char *run_id,
    const char *event);
/*
 * Executes argv with `input` on standard input, nothing on standard output, and with `keep_said` what
 * it says as an error is kept, else goes into our log. ERR_* as proc_start.
 */
struct errand_plan {
	enum errand_kind kind;
	const char *run_id, *event;
	const char *program;
	const char *const *argv;
	struct slice input;
	bool keep_said;
	int64_t limit_ns;
};
int errand_start(struct daemon *d, const struct errand_plan *plan, struct err *e);
/* Enters one that another supervisor started and handed over; consumes the descriptors. */
int errand_take(struct daemon *d, const struct errand *given, struct err *e);
/* Called where children are reaped; frees r. */
void errand_ended(struct errand *r, const struct proc_end *end);
/* "exit 3", "SIGKILL after 30s"; the first line of what it said behind it. */
void errand_outcome(const struct errand *r, const struct proc_end *end, char to[ERRAND_TEXT]);
/* The command that it hinted at last; false: none. */
bool errand_hint(const struct errand *r, char to[ERRAND_TEXT]);
void errands_late(void *daemon); /* timer */
/* Kills the commands of notify that run; each has its outcome as always. */
void errands_stop_notices(struct daemon *d);

#endif
