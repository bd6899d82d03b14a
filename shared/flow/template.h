#ifndef FLOWSUP_FLOW_TEMPLATE_H
#define FLOWSUP_FLOW_TEMPLATE_H

#include "flowsup/flow.h"

struct template_reference {
	enum flow_reference ref;
	struct slice name; /* ID or NAME */
	struct slice whole; /* from {{ to }} */
};

/*
 * Looks at text, which begins with "{{". 1: *out is a reference. 0: it stands for itself (no letter
 * follows). -1 with ERR_DOCUMENT: a letter follows and it is no reference.
 */
int template_at(const char *text, struct template_reference *out, struct err *e);
/* The next "{{" from *at on that is not escaped; *at is moved behind what template_at found there.
 * 1, 0 at the end of the text, or -1. */
int template_next(const char **at, struct template_reference *out, struct err *e);

#endif
