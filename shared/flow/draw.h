/* What the pictures of a flow share; private to draw*.c. */
#ifndef FLOWSUP_FLOW_DRAW_H
#define FLOWSUP_FLOW_DRAW_H

#include "model.h"

struct draw_edges {
	struct flow_edge *list;
	uint32_t count;
};

struct drawing {
	const struct flow *f;
	flow_graph_label *label;
	void *arg;
	struct buf *to;
	bool plain; /* text without lines and signs */
	size_t id_most; /* text: a longer id is cut to this; 0: none is */
	struct draw_edges *last; /* by operation, of the synthesis and its tries; NULL: they wait for no more
				  * than they need */
};

/* Operations that one foreach made, or a single one. */
struct draw_unit {
	uint32_t first, count;
	uint32_t level;
};
struct draw_units {
	struct draw_unit *units; /* room for one of each operation; in the document's order */
	size_t nunits;
	uint32_t *unit_of; /* by operation */
};

void draw_find_units(const struct flow *f, struct draw_units *l);
/* Append "id" or "id.* (20)"; "  running" or "  17 completed, 3 running"; " on failure when /ok = true". */
void draw_unit_name(const struct flow *f, const struct draw_unit *u, struct buf *to);
void draw_unit_label(const struct drawing *d, const struct draw_unit *u, struct buf *to);
void draw_condition(const struct flow_edge *edge, struct buf *to);
/* The lines that lead to an operation, ascending by op; how many. */
uint32_t draw_edges_to(const struct drawing *d, uint32_t op, const struct flow_edge **edges);
/* What the caller says beside an operation, or NULL. */
const char *draw_label(const struct drawing *d, size_t op);

void draw_svg(const struct drawing *d);

#endif
