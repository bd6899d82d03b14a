/* A graph in layers: layer by the longest path, order by the mean of neighbours, places by least squares. */
#include <stdlib.h>
#include <string.h>

#include "layers.h"

enum {
	SWEEPS = 4,
	LONGEST_BENT = 40,    /* layers that a line may cross with bends */
	BENDS_PER_BOX = 4,    /* and how many there may be in all */
	BENDS_ALWAYS = 1000
};

/* Neighbours of each place, in one array. */
struct adjacency {
	uint32_t *first; /* of place i: items[first[i]] to items[first[i + 1] - 1] */
	uint32_t *items;
};
struct work {
	struct layers *l;
	struct layers_line *lines;
	size_t nlines, nparts;
	double heights[2]; /* of a box, of a bend */
	double farthest; /* from the middle that anything may wish to be: else layers would wander off */
	struct adjacency before, behind; /* over parts of lines: from one layer to the next */
	uint32_t *order, *layer_at; /* places by layer; where each layer begins */
	struct block *blocks;
};

/* ---- Layers ---- */

static void
adjacency_clear(struct adjacency *a)
{
	free(a->first);
	free(a->items);
}

static int
adjacency_make(struct adjacency *a, size_t nplaces, size_t nitems)
{
	a->first = calloc(nplaces + 2, sizeof(*a->first));
	a->items = calloc(nitems + 1, sizeof(*a->items));
	return a->first != NULL && a->items != NULL ? 0 : -1;
}

/* Counts stand one further on, so that filling moves each to where it begins. */
static void
adjacency_sum(struct adjacency *a, size_t nplaces)
{
	size_t i;

	for (i = 2; i <= nplaces + 1; i++)
		a->first[i] += a->first[i - 1];
}

static void
adjacency_put(struct adjacency *a, uint32_t place, uint32_t item)
{
	a->items[a->first[place + 1]++] = item;
}

/* Kahn's order; boxes on a circle or behind one stay in the layer that they have got so far. */
static int
find_layers(struct work *w)
{
	struct layers_place *places = w->l->places;
	size_t n = w->l->nboxes, head, tail = 0, i;
	struct adjacency out = {0};
	uint32_t *unmet = calloc(n + 1, sizeof(*unmet)), *queue = calloc(n + 1, sizeof(*queue)), k, to;
	int r = -1;

	if (unmet == NULL || queue == NULL || adjacency_make(&out, n, w->nlines) != 0)
		goto out;
	for (i = 0; i < w->nlines; i++) {
		out.first[w->lines[i].from + 2]++;
		unmet[w->lines[i].to]++;
	}
	adjacency_sum(&out, n);
	for (i = 0; i < w->nlines; i++)
		adjacency_put(&out, w->lines[i].from, w->lines[i].to);
	for (i = 0; i < n; i++)
		if (unmet[i] == 0)
			queue[tail++] = (uint32_t)i;
	for (head = 0; head < tail; head++) {
		for (k = out.first[queue[head]]; k < out.first[queue[head] + 1]; k++) {
			to = out.items[k];
			if (places[to].layer <= places[queue[head]].layer)
				places[to].layer = places[queue[head]].layer + 1;
			if (--unmet[to] == 0)
				queue[tail++] = to;
		}
	}
	r = 0;
out:
	adjacency_clear(&out);
	free(unmet);
	free(queue);
	return r;
}

/* ---- Lines ---- */

static void
count_bends(struct work *w)
{
	size_t most = BENDS_PER_BOX * w->l->nboxes + BENDS_ALWAYS, bends = 0, i;
	struct layers_line *line;
	uint32_t from, to;

	for (i = 0; i < w->nlines; i++) {
		line = &w->lines[i];
		from = w->l->places[line->from].layer;
		to = w->l->places[line->to].layer;
		line->bend = (uint32_t)(w->l->nboxes + bends);
		line->nbends = 0;
		line->below = to <= from || to - from > LONGEST_BENT || bends + (to - from - 1) > most;
		if (line->below)
			continue;
		line->nbends = to - from - 1;
		bends += line->nbends;
		w->nparts += line->nbends + 1;
	}
	w->l->nplaces = w->l->nboxes + bends;
}

/* Lines below that begin or end at the same box share a lane, by whichever end has more of them. */
static int
find_lanes(struct work *w)
{
	size_t n = w->l->nboxes, i;
	uint32_t *degree = calloc(2 * n + 1, sizeof(*degree)), *lane = calloc(2 * n + 1, sizeof(*lane));
	struct layers_line *line;
	size_t end;

	for (i = 0; degree != NULL && lane != NULL && i < w->nlines; i++) {
		degree[w->lines[i].from] += w->lines[i].below;
		degree[n + w->lines[i].to] += w->lines[i].below;
	}
	for (i = 0; degree != NULL && lane != NULL && i < w->nlines; i++) {
		line = &w->lines[i];
		if (!line->below)
			continue;
		end = degree[line->from] >= degree[n + line->to] ? line->from : n + line->to;
		if (lane[end] == 0)
			lane[end] = ++w->l->nlanes;
		line->lane = lane[end] - 1;
	}
	free(degree);
	free(lane);
	return degree != NULL && lane != NULL ? 0 : -1;
}

static int
place_bends(struct work *w)
{
	struct layers_place *places = realloc(w->l->places, (w->l->nplaces + 1) * sizeof(*places));
	const struct layers_line *line;
	uint32_t k;
	size_t i;

	if (places == NULL)
		return -1;
	w->l->places = places;
	for (i = 0; i < w->nlines; i++) {
		line = &w->lines[i];
		for (k = 0; k < line->nbends; k++)
			places[line->bend + k] =
			    (struct layers_place){places[line->from].layer + 1 + k, 0};
	}
	return 0;
}

/* The k-th place on a line. */
static uint32_t
on_line(const struct layers_line *line, uint32_t k)
{
	if (k == 0)
		return line->from;
	return k <= line->nbends ? line->bend + k - 1 : line->to;
}

static int
join_parts(struct work *w)
{
	const struct layers_line *line;
	size_t i;
	uint32_t k;

	if (adjacency_make(&w->before, w->l->nplaces, w->nparts) != 0 ||
	    adjacency_make(&w->behind, w->l->nplaces, w->nparts) != 0)
		return -1;
	for (i = 0; i < w->nlines; i++) {
		line = &w->lines[i];
		for (k = 0; !line->below && k <= line->nbends; k++) {
			w->behind.first[on_line(line, k) + 2]++;
			w->before.first[on_line(line, k + 1) + 2]++;
		}
	}
	adjacency_sum(&w->before, w->l->nplaces);
	adjacency_sum(&w->behind, w->l->nplaces);
	for (i = 0; i < w->nlines; i++) {
		line = &w->lines[i];
		for (k = 0; !line->below && k <= line->nbends; k++) {
			adjacency_put(&w->behind, on_line(line, k), on_line(line, k + 1));
			adjacency_put(&w->before, on_line(line, k + 1), on_line(line, k));
		}
	}
	return 0;
}

/* ---- Order and places ---- */

static double
height_of(const struct work *w, uint32_t place)
{
	return w->heights[place >= w->l->nboxes];
}

/* In each layer boxes and bends as they were given, the layers in the middle of each other. */
static int
stack(struct work *w)
{
	struct layers *l = w->l;
	uint32_t *at, layer;
	double y;
	size_t i;

	for (i = 0; i < l->nboxes; i++)
		if (l->places[i].layer >= l->nlayers)
			l->nlayers = l->places[i].layer + 1;
	w->order = calloc(l->nplaces + 1, sizeof(*w->order));
	at = w->layer_at = calloc((size_t)l->nlayers + 2, sizeof(*w->layer_at));
	if (w->order == NULL || at == NULL)
		return -1;
	for (i = 0; i < l->nplaces; i++)
		at[l->places[i].layer + 2]++;
	for (layer = 2; layer <= l->nlayers + 1; layer++)
		at[layer] += at[layer - 1];
	for (i = 0; i < l->nplaces; i++)
		w->order[at[l->places[i].layer + 1]++] = (uint32_t)i;
	for (layer = 0; layer < l->nlayers; layer++) {
		for (y = 0, i = at[layer]; i < at[layer + 1]; i++)
			y -= height_of(w, w->order[i]) / 2;
		w->farthest = -y > w->farthest ? -y : w->farthest;
		for (i = at[layer]; i < at[layer + 1]; i++) {
			l->places[w->order[i]].y = y + height_of(w, w->order[i]) / 2;
			y += height_of(w, w->order[i]);
		}
	}
	return 0;
}

/* Neighbours that stand side by side and want to come nearer than they may: moved as one. */
struct block {
	double sum;	 /* of the wishes of its members, less what stands before them in the layer */
	uint32_t count, place;
	double wish;
};

/* In the middle of its neighbours; what has none stays. */
static double
wish_of(const struct work *w, const struct adjacency *a, uint32_t place)
{
	uint32_t from = a->first[place], to = a->first[place + 1], k;
	double sum = 0, wish;

	for (k = from; k < to; k++)
		sum += w->l->places[a->items[k]].y;
	wish = to > from ? sum / (to - from) : w->l->places[place].y;
	if (wish < -w->farthest)
		return -w->farthest;
	return wish > w->farthest ? w->farthest : wish;
}

static int
compare_wishes(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	if (x->wish != y->wish)
		return x->wish < y->wish ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static double
mean(const struct block *b)
{
	return b->sum / b->count;
}

/*
 * Each as near to its wish as order and distance allow: the least sum of squares, by joining
 * neighbours that would overlap (isotonic regression).
 */
static void
settle(struct work *w, uint32_t from, uint32_t to)
{
	struct block *blocks = w->blocks;
	double taken = 0, half;
	uint32_t i, k, at, n = 0;

	for (i = from; i < to; i++) {
		half = height_of(w, blocks[i].place) / 2;
		w->order[i] = blocks[i].place;
		blocks[from + n] = (struct block){.sum = blocks[i].wish - taken - half, .count = 1};
		taken += 2 * half;
		for (n++; n > 1 && mean(&blocks[from + n - 2]) >= mean(&blocks[from + n - 1]); n--) {
			blocks[from + n - 2].sum += blocks[from + n - 1].sum;
			blocks[from + n - 2].count += blocks[from + n - 1].count;
		}
	}
	for (taken = 0, at = from, i = from; i < from + n; i++) {
		for (k = 0; k < blocks[i].count; k++, at++) {
			half = height_of(w, w->order[at]) / 2;
			w->l->places[w->order[at]].y = mean(&blocks[i]) + taken + half;
			taken += 2 * half;
		}
	}
}

static void
sweep_layer(struct work *w, uint32_t layer, const struct adjacency *by)
{
	uint32_t from = w->layer_at[layer], to = w->layer_at[layer + 1], i;

	for (i = from; i < to; i++)
		w->blocks[i] =
		    (struct block){.place = w->order[i], .wish = wish_of(w, by, w->order[i])};
	qsort(&w->blocks[from], to - from, sizeof(*w->blocks), compare_wishes);
	settle(w, from, to);
}

static void
sweep(struct work *w)
{
	uint32_t n = w->l->nlayers, i;
	unsigned s;

	for (s = 0; s < SWEEPS; s++) {
		for (i = 1; i < n; i++)
			sweep_layer(w, i, &w->before);
		for (i = n; i > 1 && s + 1 < SWEEPS; i--)
			sweep_layer(w, i - 2, &w->behind);
	}
}

/* The uppermost begins at 0. */
static void
move_up(struct work *w)
{
	struct layers *l = w->l;
	double top = 0, bottom = 0, half;
	size_t i;

	for (i = 0; i < l->nplaces; i++) {
		half = height_of(w, (uint32_t)i) / 2;
		if (i == 0 || l->places[i].y - half < top)
			top = l->places[i].y - half;
		if (i == 0 || l->places[i].y + half > bottom)
			bottom = l->places[i].y + half;
	}
	for (i = 0; i < l->nplaces; i++)
		l->places[i].y -= top;
	l->height = bottom - top;
}

int
layers_make(struct layers *l, size_t nboxes, struct layers_line *lines, size_t nlines,
    double box_height, double bend_height)
{
	struct work w = {.l = l, .lines = lines, .nlines = nlines, .heights = {box_height, bend_height}};
	int r = -1;

	memset(l, 0, sizeof(*l));
	l->nboxes = l->nplaces = nboxes;
	l->places = calloc(nboxes + 1, sizeof(*l->places));
	if (l->places == NULL || find_layers(&w) != 0)
		goto out;
	count_bends(&w);
	w.blocks = calloc(l->nplaces + 1, sizeof(*w.blocks));
	if (w.blocks == NULL || find_lanes(&w) != 0 || place_bends(&w) != 0 || join_parts(&w) != 0 ||
	    stack(&w) != 0)
		goto out;
	sweep(&w);
	move_up(&w);
	r = 0;
out:
	adjacency_clear(&w.before);
	adjacency_clear(&w.behind);
	free(w.order);
	free(w.layer_at);
	free(w.blocks);
	if (r != 0)
		layers_clear(l);
	return r;
}

void
layers_clear(struct layers *l)
{
	free(l->places);
	memset(l, 0, sizeof(*l));
}
