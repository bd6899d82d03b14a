/*
 * After a worker's death: what its checkpoint still holds. A helper process with limits on memory
 * and time reads the run's files; the supervisor itself parses none, and gets one packet.
 */
#ifndef FLOWSUP_SUPERVISOR_REPORT_H
#define FLOWSUP_SUPERVISOR_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "flowsup/home.h"
#include "flowsup/proc.h"
#include "loop.h"

struct daemon;

enum {
	REPORT_AT_ONCE = 2,
	REPORT_SECONDS = 60,	 /* then it is killed */
	REPORT_CPU_SECONDS = 30, /* RLIMIT_CPU */
	REPORT_RUNS = 4096	 /* more wait in vain: `show` loads a checkpoint itself */
};
#define REPORT_MOST ((size_t)64 << 20) /* of what it says */
#define REPORT_MEMORY ((rlim_t)2 << 30) /* RLIMIT_AS: a base of JSON_MAX_PROGRAM and its values */

enum report_for { REPORT_CRASH, REPORT_COUNT, REPORT_RUNNING };

struct report {
	TAILQ_ENTRY(report) entry;
	struct daemon *daemon;
	char run_id[RUN_ID_TEXT];
	struct proc_id id; /* pid 0: not started yet */
	struct source process, channel;
	int64_t until_ns;
	bool answered;
	enum report_for about;
};
TAILQ_HEAD(report_list, report);

struct reports {
	struct report_list list; /* started ones first */
	unsigned started, waiting;
};

void reports_init(struct reports *reports);
void reports_clear(struct daemon *d);
void report_ask(struct daemon *d, const char *run_id);
/* Of a killed run, of which nothing is left, only what is done. */
void report_ask_count(struct daemon *d, const char *run_id);
/* What runs of a resume in the queue, or of a run whose crash cannot be recorded yet, for the table of kept.h; false:
 * there is no room for it now. */
bool report_ask_running(struct daemon *d, const char *run_id);
bool report_is_asked(const struct daemon *d, const char *run_id);
/* Also while its count is not in the row yet. */
bool report_is_awaited(const struct daemon *d, const char *run_id);
/* The one with this process, or NULL. */
struct report *report_of(struct daemon *d, pid_t pid);
void report_ended(struct report *r, const struct proc_end *end);
void reports_late(void *daemon); /* timer */

#endif
