/* What a flow would do, for programs and for people. */
#ifndef FLOWSUP_PLAN_H
#define FLOWSUP_PLAN_H

#include "flowsup/flow.h"
#include "output.h"

/* Adds name, operations (their number) and ops, in an order in which they could run. Consumes o. */
struct json *plan_of(const struct flow *f, struct json *o);
/* The same with the file (its path, or "-"), whether it is valid (f may be NULL) and what is to be said about
 * it. The name is the one that its run would have. */
struct json *plan_document(const struct flow *f, const char *path, const struct flow_diagnostics *d);
/* The format that was asked for; of a text only one that draws where lines may be drawn. */
enum flow_graph_format plan_picture(const struct output *out, int64_t asked);

#endif
