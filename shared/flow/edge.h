/* What asked.c shares with edge.c: conditions of edges without a flow, so that they can be asked anywhere. */
#ifndef FLOWSUP_FLOW_EDGE_H
#define FLOWSUP_FLOW_EDGE_H

#include "flowsup/flow.h"

/* flow_need_holds and flow_need_unmet of an operation that is called `id` and runs so. */
int edge_holds(const struct flow_how *how, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response, bool *holds, struct err *e);
void edge_unmet(const char *id, const struct flow_how *how, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *response, struct buf *to);
/* {"pointer":…, "equals"|"exists"|"matches":…} of an edge that has a condition. */
struct json *edge_condition(const struct flow_edge *edge);

#endif
