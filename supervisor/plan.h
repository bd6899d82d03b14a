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
/* Prints it in the format that was asked for; a text with lines only where such may be drawn, and on a
 * terminal so that it fits. label: as of flow_graph(). */
int plan_draw(struct output *out, const struct flow *f, int64_t asked, flow_graph_label *label, void *arg,
    struct err *e);
/* Where a planner has yet to say what is done: a line that tells it; else nothing. */
void plan_tell_unplanned(const struct flow *f, struct output *out);
/* Prints a drawing so that it fits the terminal; rails: with lines that lead from level to level. */
void plan_lines(struct output *out, struct slice text, bool rails);

#endif
