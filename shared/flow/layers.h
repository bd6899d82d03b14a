/*
 * Where the boxes of a graph stand when it is drawn in layers, and through which free places the lines
 * between them go. Knows nothing about what is drawn.
 *
 * A box stands one layer behind the farthest of what leads to it. A line over several layers bends at a
 * place of its own in each of them, so that it meets no box; lines for which that would cost too much,
 * and those that do not lead onwards, pass below all boxes, in lanes.
 */
#ifndef FLOWSUP_FLOW_LAYERS_H
#define FLOWSUP_FLOW_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct layers_line {
	uint32_t from, to; /* boxes; given by the caller, the rest is filled in */
	uint32_t bend;	   /* its first place; it has one in each layer between its ends */
	uint32_t nbends;
	uint32_t lane; /* with `below` */
	bool below;
};
struct layers_place {
	uint32_t layer;
	double y; /* of its middle */
};
struct layers {
	struct layers_place *places; /* boxes, then bends */
	size_t nboxes, nplaces;
	uint32_t nlayers, nlanes;
	double height; /* what all boxes and bends take; the first begins at 0 */
};

/*
 * Fills in *l and the lines for `nboxes` boxes of one height. Costs a few steps for each line and place,
 * and sorting. A circle among the lines harms nothing. -1 when memory runs out.
 */
int layers_make(struct layers *l, size_t nboxes, struct layers_line *lines, size_t nlines,
    double box_height, double bend_height);
void layers_clear(struct layers *l);

#endif
