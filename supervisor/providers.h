/* Which providers there are, whether their programs are installed, and which version they have. */
#ifndef SUPERVISOR_PROVIDERS_H
#define SUPERVISOR_PROVIDERS_H

#include "flowsup/proc.h"
#include "flowsup/provider.h"

enum { PROVIDERS_S = 20 }; /* for all versions together */

struct provider_state {
	char *name;
	struct provider *provider; /* NULL: its file is broken, and why says how */
	struct err why;
	char *program;	/* full path, or NULL: not installed */
	char *version;	/* neutralised; NULL or "" when it did not say one */
	bool ended;	/* in time, and how; else it was ended */
	struct proc_end end;
	int pidfd, out_fd; /* private */
	pid_t pid;
};
struct provider_states {
	struct provider_state *list;
	size_t count;
};
/* Asks all programs at once and waits for at most PROVIDERS_S; whoever takes longer is ended. */
int providers_look(struct provider_states *out, struct err *e);
void providers_clear(struct provider_states *s);

#endif
