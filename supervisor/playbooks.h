/* Playbooks: flow documents that are found by name. */
#ifndef FLOWSUP_PLAYBOOKS_H
#define FLOWSUP_PLAYBOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "flowsup/err.h"

struct cli;

/* ./.flowsup/playbooks, the user's configuration, the installed data: the first one wins. */
enum { PLAYBOOK_PLACES = 3 };

struct playbook {
	char *name, *path;
	bool hidden; /* one of the same name stands in a place before */
	const char *rival; /* path of another one in the same directory: neither can be meant; or NULL */
};
struct playbooks {
	struct playbook *list; /* by name, then by place */
	size_t count;
	char *places[PLAYBOOK_PLACES]; /* NULL where there is none */
};

int playbooks_find(struct playbooks *out, struct err *e);
void playbooks_clear(struct playbooks *p);
/* ERR_AMBIGUOUS: it has a rival. */
int playbook_refuse(const struct playbook *p, struct err *e);
/* Behind `play` the name is a command: a playbook that is called so is started by its path. */
bool playbook_is_command(const char *name);
/*
 * The path of NAME.yaml or NAME.json, to be freed. ERR_NOTFOUND, ERR_AMBIGUOUS where both stand in one directory;
 * where `name` is the first operand of the call `c`, or else NULL, the hint is that call with what was meant.
 */
int playbook_path(const struct cli *c, const char *name, char **out, struct err *e);

#endif
