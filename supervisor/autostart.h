/* Starting a supervisor from a command: in its own session, holding nothing of the command's. */
#ifndef FLOWSUP_SUPERVISOR_AUTOSTART_H
#define FLOWSUP_SUPERVISOR_AUTOSTART_H

#include <stdbool.h>
#include <stdint.h>

#include "flowsup/err.h"
#include "flowsup/home.h"

#define AUTOSTART_WORKER "../libexec/flowsup/flowsup-worker" /* from the directory of this program */
#define AUTOSTART_READY "r" /* what the supervisor writes when it answers */
#define AUTOSTART_FAILED 'f' /* and when it cannot: behind it type, text and hint, a line each */

/*
 * Executes this program as the home's supervisor and waits for at most limit_ms until it answers
 * commands. *ready is false when it left without: somebody else was first and will answer.
 * ERR_ENVIRONMENT when it cannot be executed; ERR_TIMEOUT; ERR_IO; or what it failed of.
 */
int autostart(const struct home *h, int64_t idle_exit_ns, int limit_ms, bool *ready, struct err *e);

/* Before a run is made: that the program is there which executes it. ERR_ENVIRONMENT. */
int autostart_check_worker(struct err *e);

/* This process's environment without names that begin with FLOWSUP_, and FLOWSUP_HOME; with `service`
 * also what a service manager told this process. */
char **autostart_environment(const struct home *h, bool service, struct err *e);
void autostart_environment_free(char **envp);
/* The arguments of a supervisor; the numbers are written into text, which must live as long.
 * Pass -1 for a descriptor that there is none of. */
enum { AUTOSTART_WORDS = 12, AUTOSTART_NUMBER = 48 };
struct autostart_words {
	char idle[AUTOSTART_NUMBER], ready[AUTOSTART_NUMBER], handover[AUTOSTART_NUMBER];
	const char *argv[AUTOSTART_WORDS];
};
void autostart_arguments(struct autostart_words *to, const char *home, bool foreground,
    int64_t idle_exit_ns, int ready_fd, int handover_fd);

#endif
