/*
 * How an operation's process ended, written beside its output by whoever reaps it when its worker may
 * be dead: ops/<op>.<attempt>/exit.json. And, before anybody ends one of a dead worker on purpose:
 * ops/<op>.<attempt>/stopped.json. Both name the process, so that a record is never taken for that of
 * another one.
 */
#ifndef FLOWSUP_EXITS_H
#define FLOWSUP_EXITS_H

#include <stdbool.h>

#include "flowsup/err.h"
#include "flowsup/json.h"
#include "flowsup/proc.h"

#define EXIT_RECORD "exit.json"
#define STOP_RECORD "stopped.json"
#define AGENT_RECORD "agent.json" /* of an agent's: how it was started */

enum { EXIT_BY_TEXT = 16, STOP_CLASS_TEXT = 16, ATTEMPT_DIR_TEXT = 160 };

struct exit_record {
	struct proc_id id;
	struct proc_end end; /* of usage: times and greatest size; all 0 where nobody could know it */
	double time;	     /* epoch seconds */
	char by[EXIT_BY_TEXT]; /* "keeper", "supervisor", "kernel" */
};

/* "<op>.<attempt>", the directory of an attempt below ops/. */
const char *attempt_dir(const char *op, unsigned attempt, char to[ATTEMPT_DIR_TEXT]);

/* ERR_NOTFOUND when there is none. */
struct json *agent_record_read(int ops_fd, const char *dir, struct err *e);

/* Durable and whole, or not there; makes the attempt's directory. Blocks. ERR_IO, ERR_NOSPACE. */
int exit_record_write(int ops_fd, const char *dir, const struct exit_record *r, struct err *e);
/* ERR_NOTFOUND when there is none of this process. */
int exit_record_read(int ops_fd, const char *dir, struct proc_id id, struct exit_record *out,
    struct err *e);

/*
 * That it is being ended, and why: a class of failures ("timeout", "silence", "cancelled"). Durable
 * before the first signal; of several the first one stays.
 */
int stop_record_write(int ops_fd, const char *dir, struct proc_id id, const char *class,
    struct err *e);
/* *time, unless NULL: seconds since the epoch, 0: not told. */
int stop_record_read(int ops_fd, const char *dir, struct proc_id id, char class[STOP_CLASS_TEXT],
    double *time, struct err *e);

#endif
