#ifndef FLOWSUP_WORKER_NOTIFY_H
#define FLOWSUP_WORKER_NOTIFY_H

/* Returns an exit status when `argv` could not be executed; says why on standard error. */
int notify_main(const char *home, const char *run_id, char **argv);

#endif
