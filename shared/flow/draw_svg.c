/* A flow as a picture for a browser: one SVG file that needs nothing else. Layers run from left to right. */
#include <stdio.h>
#include <stdlib.h>

#include "draw.h"
#include "flowsup/log.h"
#include "layers.h"

enum {
	ITEMS_APART = 12,   /* of one foreach; more are one box */
	ID_CELLS = 34, LABEL_CELLS = 28,
	ID_CELL = 80, SMALL_CELL = 67, /* tenths of a pixel that a character takes */
	BOX_HEIGHT = 40, BOX_PITCH = 54, BEND_PITCH = 18, BOX_LEAST = 90,
	MARGIN = 40, GAP = 56, GAP_MORE = 400, LANE = 6, TITLE = 26,
	ALL_CELLS = 1 << 20
};

enum line_kind {
	LINE_NEED,
	LINE_SPAWN,   /* to what its operation asked for, or an item of a foreach */
	LINE_ORIGIN,  /* the same, without waiting for it */
	LINE_TRY,     /* to another try */
	LINE_SPLICED, /* to what waits for that in place of the first one */
};
static const char *const line_classes[] = {[LINE_NEED] = "need", [LINE_SPAWN] = "spawn",
    [LINE_ORIGIN] = "origin", [LINE_TRY] = "try", [LINE_SPLICED] = "spliced"};

struct svg_line {
	const struct flow_edge *edge; /* NULL: LINE_ORIGIN */
	enum line_kind kind;
	uint32_t op; /* where it ends */
};
struct picture {
	const struct drawing *d;
	struct buf *to;
	struct draw_units u;
	struct svg_line *about; /* of each line */
	struct layers_line *lines;
	size_t nlines;
	struct layers layers;
	long *left, *width; /* of each column; left of one more is where the last gap ends */
	long top, bottom;
};

static const char style[] =
    "text{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:11px;fill:#222}"
    ".id{font-size:13px;font-weight:bold}.name{font-size:16px;font-weight:bold}"
    ".op rect{fill:#fff;stroke:#555;stroke-width:1.3}"
    ".completed rect{fill:#e7f4e7;stroke:#2e7d32}"
    ".failed rect{fill:#fde8e8;stroke:#b71c1c;stroke-width:3}"
    ".interrupted rect{fill:#fde8e8;stroke:#b71c1c;stroke-width:2;stroke-dasharray:9 3}"
    ".cancelled rect{fill:#f6efe0;stroke:#8a6100;stroke-dasharray:9 3}"
    ".reading rect{fill:#e3effc;stroke:#0d4f9c}"
    ".running rect{fill:#e3effc;stroke:#0d4f9c;stroke-width:2}"
    ".waiting rect{fill:#fff6d6;stroke:#8a6100;stroke-width:2;stroke-dasharray:5 3}"
    ".skipped rect{fill:#f3f3f3;stroke:#777;stroke-dasharray:2 3}"
    ".pending rect{fill:#fff;stroke:#777}"
    ".replaced .id{text-decoration:line-through}"
    ".op .inner{fill:none;stroke-width:1}"
    "path{fill:none;stroke:#555;stroke-width:1.2}"
    ".failure{stroke-dasharray:7 4}.always{stroke-dasharray:2 3}"
    ".spawn,.origin{stroke:#6a1b9a;stroke-dasharray:9 3 2 3}.origin{stroke-dasharray:1 5}"
    ".try,.spliced{stroke:#b34700;stroke-width:2.6}.spliced{stroke-width:2}"
    "marker path{fill:#555;stroke:none}"
    ".when{text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:3px}";

/* ---- Text ---- */

/* U+FFFE and U+FFFF are no characters of XML; everything else that is none is gone by then. */
static size_t
not_xml(const char *at, size_t len)
{
	return len >= 3 && memcmp(at, "\xEF\xBF", 2) == 0 && (unsigned char)at[2] >= 0xBE ? 3 : 0;
}

static void
put_character(struct buf *to, const char *at, size_t len)
{
	if (not_xml(at, len) > 0)
		buf_puts(to, "\xEF\xBF\xBD");
	else if (*at == '<' || *at == '>')
		buf_puts(to, *at == '<' ? "&lt;" : "&gt;");
	else if (*at == '&')
		buf_puts(to, "&amp;");
	else if (*at == '"' || *at == '\'')
		buf_puts(to, *at == '"' ? "&quot;" : "&#39;");
	else
		buf_add(to, at, len);
}

static size_t
character_length(struct slice text)
{
	size_t len = 1;

	while (len < text.len && ((unsigned char)text.data[len] & 0xC0) == 0x80)
		len++;
	return len;
}

/* Wide ones stand in East Asian scripts and among the symbols beyond. */
static size_t
character_cells(struct slice text)
{
	return (unsigned char)text.data[0] >= 0xE3 ? 2 : 1;
}

/* Appends at most so many cells of text, made harmless and escaped. How many it takes. */
static size_t
put_text(struct buf *to, struct slice text, size_t most)
{
	struct buf clean = {0};
	struct slice rest;
	size_t cells = 0, len;

	text_neutralise(&clean, text, false);
	for (rest = buf_view(&clean); rest.len > 0; rest.data += len, rest.len -= len) {
		len = character_length(rest);
		if (cells + character_cells(rest) > most - (rest.len > len)) {
			buf_puts(to, "\xE2\x80\xA6");
			cells++;
			break;
		}
		put_character(to, rest.data, len);
		cells += character_cells(rest);
	}
	if (clean.failed)
		to->failed = true;
	buf_clear(&clean);
	return cells;
}

static void
put_id(const struct picture *p, uint32_t op, struct buf *to)
{
	put_text(to, slice_of(p->d->f->ops[op].id), ALL_CELLS);
}

/* ---- States ---- */

/* A group shows the first that one of its operations is in. */
static const struct {
	const char *word, *mark;
} states[] = {{"failed", "\xE2\x9C\x97"}, {"interrupted", "\xE2\x9A\xA1"}, {"cancelled", "\xE2\x97\xBC"},
    {"running", "\xE2\x96\xB6"}, {"reading", "\xE2\x96\xB7"}, {"waiting", "\xE2\x80\x96"}, {"pending", "\xE2\x97\x8B"},
    {"skipped", "\xE2\x80\x93"}, {"completed", "\xE2\x9C\x93"}};
enum { STATES = sizeof(states) / sizeof(states[0]) };

static size_t
state_of(const struct picture *p, const struct draw_unit *u)
{
	size_t first = STATES, k;
	const char *word;
	uint32_t i;

	for (i = 0; i < u->count; i++) {
		word = draw_label(p->d, u->first + i);
		for (k = 0; word != NULL && k < first; k++)
			if (strcmp(states[k].word, word) == 0)
				first = k;
	}
	return first;
}

static const char *const kinds[] = {
    [FLOW_RUN] = "run", [FLOW_EXEC] = "exec", [FLOW_INSTRUCTION] = "instruction"};

static void
put_kind(const struct flow_op *op, struct buf *to)
{
	buf_puts(to, kinds[op->kind]);
	if (op->how->assignee != NULL)
		buf_printf(to, " by %s", op->how->assignee);
}

/* What is said below the name, not escaped yet. */
static void
describe(const struct picture *p, const struct draw_unit *u, struct buf *to)
{
	const struct flow *f = p->d->f;
	const struct flow_grown *g = flow_grown(f, u->first);
	struct buf label = {0};
	size_t state = state_of(p, u);

	draw_unit_label(p->d, u, &label);
	if (state < STATES)
		buf_printf(to, "%s ", states[state].mark);
	if (label.len > 2)
		buf_puts(to, buf_text(&label) + 2);
	else
		put_kind(&f->ops[u->first], to);
	if (g != NULL && g->kind != FLOW_GROWN_ITEM)
		buf_puts(to, g->kind == FLOW_GROWN_RETRY ? ", another try" : ", spawned");
	if (flow_is_replaced(f, u->first))
		buf_puts(to, ", replaced");
	if (label.failed)
		to->failed = true;
	buf_clear(&label);
}

/* ---- What is drawn ---- */

/* Small groups are drawn one by one. */
static int
find_boxes(struct picture *p)
{
	const struct flow *f = p->d->f;
	struct draw_units found = {calloc(f->nops + 1, sizeof(*found.units)), 0,
	    calloc(f->nops + 1, sizeof(*found.unit_of))};
	struct draw_unit *u, *end;
	uint32_t i, apart;

	p->u.units = calloc(f->nops + 1, sizeof(*p->u.units));
	p->u.unit_of = found.unit_of;
	if (found.units == NULL || found.unit_of == NULL || p->u.units == NULL) {
		free(found.units);
		return -1;
	}
	draw_find_units(f, &found);
	for (u = found.units, end = u + found.nunits; u < end; u++) {
		apart = u->count <= ITEMS_APART;
		for (i = 0; i < u->count; i++) {
			if (apart || i == 0)
				p->u.units[p->u.nunits++] =
				    (struct draw_unit){u->first + i, apart ? 1 : u->count, 0};
			p->u.unit_of[u->first + i] = (uint32_t)p->u.nunits - 1;
		}
	}
	free(found.units);
	return 0;
}

static enum line_kind
kind_of(const struct flow *f, uint32_t from, uint32_t op)
{
	const struct flow_grown *g = flow_grown(f, op), *before = flow_grown(f, from);

	if (g != NULL && g->kind == FLOW_GROWN_RETRY && g->parent == from)
		return LINE_TRY;
	if (g != NULL && (g->kind == FLOW_GROWN_SPAWN || g->parent == from))
		return LINE_SPAWN;
	if (before != NULL && before->kind == FLOW_GROWN_RETRY)
		return LINE_SPLICED;
	return LINE_NEED;
}

static void
add_line(struct picture *p, const struct flow_edge *edge, uint32_t from, uint32_t op)
{
	struct layers_line *line = &p->lines[p->nlines];

	line->from = p->u.unit_of[from];
	line->to = p->u.unit_of[op];
	p->about[p->nlines++] =
	    (struct svg_line){edge, edge == NULL ? LINE_ORIGIN : kind_of(p->d->f, from, op), op};
}

/* Lines from the items of a group are one. */
static void
add_lines(struct picture *p, uint32_t op)
{
	const struct flow_grown *g = flow_grown(p->d->f, op);
	const struct flow_edge *edges;
	uint32_t n = draw_edges_to(p->d, op, &edges), i;

	for (i = 0; i < n; i++)
		if (i == 0 || p->u.unit_of[edges[i].op] != p->u.unit_of[edges[i - 1].op])
			add_line(p, &edges[i], edges[i].op, op);
	if (g != NULL && g->kind == FLOW_GROWN_SPAWN && n == 0 && g->parent != FLOW_NO_OP)
		add_line(p, NULL, g->parent, op);
}

static int
find_lines(struct picture *p)
{
	const struct flow_edge *edges;
	size_t most = 1, i;

	for (i = 0; i < p->u.nunits; i++)
		most += draw_edges_to(p->d, p->u.units[i].first, &edges) + 1;
	p->lines = calloc(most, sizeof(*p->lines));
	p->about = calloc(most, sizeof(*p->about));
	if (p->lines == NULL || p->about == NULL)
		return -1;
	for (i = 0; i < p->u.nunits; i++)
		add_lines(p, p->u.units[i].first);
	return 0;
}

/* ---- Columns ---- */

static long
pixels(size_t cells, long cell)
{
	return ((long)cells * cell + 9) / 10;
}

/* What stands beside a line, not escaped; "" mostly. */
static const char *
line_label(const struct svg_line *about, struct buf *to)
{
	buf_reset(to);
	if (about->kind == LINE_TRY)
		return "another try";
	if (about->edge != NULL)
		draw_condition(about->edge, to);
	return to->len > 0 ? buf_text(to) + 1 : "";
}

static void
widen(long *width, long least)
{
	*width = *width > least ? *width : least;
}

static void
measure_boxes(struct picture *p)
{
	struct buf text = {0}, drawn = {0};
	size_t i;
	long *width;

	for (i = 0; i < p->u.nunits; i++) {
		width = &p->width[p->layers.places[i].layer];
		buf_reset(&text);
		buf_reset(&drawn);
		draw_unit_name(p->d->f, &p->u.units[i], &text);
		widen(width, 20 + pixels(put_text(&drawn, buf_view(&text), ID_CELLS), ID_CELL));
		buf_reset(&text);
		describe(p, &p->u.units[i], &text);
		widen(width, 20 + pixels(put_text(&drawn, buf_view(&text), ALL_CELLS), SMALL_CELL));
	}
	if (text.failed || drawn.failed)
		p->to->failed = true;
	buf_clear(&text);
	buf_clear(&drawn);
}

static long
middle(const struct picture *p, uint32_t place)
{
	return p->top + (long)p->layers.places[place].y;
}

/* Left of each column: room for the turns of lines, and for what stands beside those that end there. */
static int
find_columns(struct picture *p)
{
	uint32_t n = p->layers.nlayers, i;
	long gap = GAP + (p->layers.height < 40 * GAP_MORE ? (long)p->layers.height / 40 : GAP_MORE), x;
	struct buf text = {0}, drawn = {0};
	size_t k, cells;

	p->left = calloc((size_t)n + 1, sizeof(*p->left));
	p->width = calloc((size_t)n + 1, sizeof(*p->width));
	if (p->left == NULL || p->width == NULL)
		return -1;
	for (i = 0; i <= n; i++) {
		p->left[i] = i == 0 || i == n ? MARGIN : gap;
		p->width[i] = BOX_LEAST;
	}
	measure_boxes(p);
	for (k = 0; k < p->nlines; k++) {
		buf_reset(&drawn);
		cells = put_text(&drawn, slice_of(line_label(&p->about[k], &text)), LABEL_CELLS);
		if (cells > 0)
			widen(&p->left[p->layers.places[p->lines[k].to].layer],
			    pixels(cells, SMALL_CELL) + MARGIN);
	}
	for (x = 0, i = 0; i <= n; x = p->left[i] + p->width[i], i++)
		p->left[i] += x;
	if (text.failed || drawn.failed)
		p->to->failed = true;
	buf_clear(&text);
	buf_clear(&drawn);
	return 0;
}

/* ---- Lines ---- */

static long
column_left(const struct picture *p, uint32_t place)
{
	return p->left[p->layers.places[place].layer];
}

static long
column_right(const struct picture *p, uint32_t place)
{
	return column_left(p, place) + p->width[p->layers.places[place].layer];
}

static void
curve(const struct picture *p, uint32_t from, uint32_t to)
{
	long x1 = column_right(p, from), x2 = column_left(p, to), half = (x1 + x2) / 2;

	buf_printf(p->to, "C%ld %ld %ld %ld %ld %ld", half, middle(p, from), half, middle(p, to), x2,
	    middle(p, to));
}

static void
put_path(const struct picture *p, const struct layers_line *line)
{
	long aside = 10 + 3 * (long)(line->lane % 8);
	uint32_t from = line->from, k;

	buf_printf(p->to, "M%ld %ld", column_right(p, from), middle(p, from));
	if (line->below) {
		buf_printf(p->to, "H%ldV%ldH%ldV%ldH%ld", column_right(p, from) + aside,
		    p->bottom + LANE * (long)line->lane, column_left(p, line->to) - aside,
		    middle(p, line->to), column_left(p, line->to));
		return;
	}
	for (k = 0; k < line->nbends; from = line->bend + k++) {
		curve(p, from, line->bend + k);
		buf_printf(p->to, "H%ld", column_right(p, line->bend + k));
	}
	curve(p, from, line->to);
}

static void
put_line_label(const struct picture *p, const struct layers_line *line, const char *label)
{
	uint32_t last = line->nbends > 0 ? line->bend + line->nbends - 1 : line->from;
	long x = column_left(p, line->to), y = middle(p, line->to);

	if (line->below) {
		x -= MARGIN + pixels(LABEL_CELLS, SMALL_CELL) / 2 > x / 2 ? x / 2 : MARGIN;
	} else {
		x = (x + column_right(p, last)) / 2;
		y = (y + middle(p, last)) / 2;
	}
	buf_printf(p->to, "<text class=\"when\" x=\"%ld\" y=\"%ld\">", x, y - 3);
	put_text(p->to, slice_of(label), LABEL_CELLS);
	buf_puts(p->to, "</text>");
}

static void
put_line(const struct picture *p, size_t i, struct buf *text)
{
	static const char *const on[] = {"", " failure", " always"};
	static const char *const words[] = {"", ", spawned", ", spawned, does not wait", ", another try",
	    ", waits for the further try"};
	const struct layers_line *line = &p->lines[i];
	const struct svg_line *about = &p->about[i];
	const struct draw_unit *from = &p->u.units[line->from];
	const char *label = line_label(about, text);
	struct buf name = {0};

	buf_puts(p->to, "<g><title>");
	draw_unit_name(p->d->f, from, &name);
	put_text(p->to, buf_view(&name), ALL_CELLS);
	buf_puts(p->to, " \xE2\x86\x92 ");
	put_id(p, about->op, p->to);
	if (label[0] != '\0' && about->kind != LINE_TRY)
		buf_puts(p->to, ", ");
	if (about->kind != LINE_TRY)
		put_text(p->to, slice_of(label), ALL_CELLS);
	buf_printf(p->to, "%s</title><path class=\"%s%s\" marker-end=\"url(#end)\" d=\"",
	    words[about->kind], line_classes[about->kind],
	    about->edge != NULL && about->kind != LINE_TRY ? on[about->edge->on] : "");
	put_path(p, line);
	buf_puts(p->to, "\"/>");
	if (label[0] != '\0')
		put_line_label(p, line, label);
	buf_puts(p->to, "</g>\n");
	if (name.failed)
		p->to->failed = true;
	buf_clear(&name);
}

/* ---- Boxes ---- */

static void
put_title(const struct picture *p, const struct draw_unit *u, const char *said)
{
	const struct flow *f = p->d->f;
	const struct flow_op *op = &f->ops[u->first];
	const struct flow_grown *g = flow_grown(f, u->first);
	struct buf kind = {0};

	buf_puts(p->to, "<title>");
	put_id(p, u->first, p->to);
	if (u->count > 1) {
		buf_puts(p->to, " to ");
		put_id(p, u->first + u->count - 1, p->to);
	}
	buf_puts(p->to, "\n");
	put_text(p->to, slice_of(said), ALL_CELLS);
	if (draw_label(p->d, u->first) != NULL) {
		buf_puts(p->to, "\n");
		put_kind(op, &kind);
		put_text(p->to, buf_view(&kind), ALL_CELLS);
	}
	if (g != NULL && g->parent != FLOW_NO_OP) {
		buf_puts(p->to, g->kind == FLOW_GROWN_RETRY ? "\nanother try at " :
			g->kind == FLOW_GROWN_SPAWN ? "\nspawned by " : "\nan item of ");
		put_id(p, g->kind == FLOW_GROWN_RETRY ? flow_stands_for(f, u->first) : g->parent, p->to);
	}
	if (flow_is_replaced(f, u->first)) {
		buf_puts(p->to, "\nreplaced by ");
		put_id(p, flow_final(f, u->first), p->to);
	}
	buf_puts(p->to, op->how->gate_approve ? "\nneeds approval" : "");
	buf_puts(p->to, op->how->foreach_pointer != NULL ? "\nfor each item</title>" : "</title>");
	if (kind.failed)
		p->to->failed = true;
	buf_clear(&kind);
}

static void
put_outline(const struct picture *p, size_t i, const char *class, long by, long round)
{
	uint32_t layer = p->layers.places[i].layer;

	buf_printf(p->to,
	    "<rect%s x=\"%ld\" y=\"%ld\" width=\"%ld\" height=\"%ld\" rx=\"%ld\"/>", class,
	    p->left[layer] + by, middle(p, (uint32_t)i) - BOX_HEIGHT / 2 + by, p->width[layer] - 2 * by,
	    (long)BOX_HEIGHT - 2 * by, round);
}

/* A pill was added while it ran, a double outline is another try, one behind the other a group. */
static void
put_box(const struct picture *p, size_t i, struct buf *said)
{
	const struct draw_unit *u = &p->u.units[i];
	const struct flow_grown *g = flow_grown(p->d->f, u->first);
	size_t state = state_of(p, u);
	long x = p->left[p->layers.places[i].layer] + 10, y = middle(p, (uint32_t)i);
	struct buf name = {0};

	buf_reset(said);
	describe(p, u, said);
	buf_printf(p->to, "<g class=\"op %s%s\">", state < STATES ? states[state].word : "planned",
	    flow_is_replaced(p->d->f, u->first) ? " replaced" : "");
	put_title(p, u, buf_text(said));
	if (u->count > 1)
		put_outline(p, i, "", -3, 6);
	put_outline(p, i, "", 0, g != NULL ? 16 : 4);
	if (g != NULL && g->kind == FLOW_GROWN_RETRY)
		put_outline(p, i, " class=\"inner\"", 3, 13);
	buf_printf(p->to, "<text class=\"id\" x=\"%ld\" y=\"%ld\">", x, y - 3);
	draw_unit_name(p->d->f, u, &name);
	put_text(p->to, buf_view(&name), ID_CELLS);
	buf_printf(p->to, "</text><text x=\"%ld\" y=\"%ld\">", x, y + 12);
	put_text(p->to, buf_view(said), ALL_CELLS);
	buf_puts(p->to, "</text></g>\n");
	if (name.failed)
		p->to->failed = true;
	buf_clear(&name);
}

/* ---- The file ---- */

static void
put_all(const struct picture *p)
{
	const char *name = p->d->f->name != NULL ? p->d->f->name : "flow";
	long width = p->left[p->layers.nlayers], height;
	struct buf text = {0};
	size_t i;

	height = p->bottom + LANE * (long)p->layers.nlanes + MARGIN / 2;
	buf_printf(p->to,
	    "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%ld\" height=\"%ld\" "
	    "viewBox=\"0 0 %ld %ld\">\n<title>",
	    width, height, width, height);
	put_text(p->to, slice_of(name), ALL_CELLS);
	buf_printf(p->to,
	    "</title>\n<style>%s</style>\n<defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" "
	    "refY=\"4\" markerUnits=\"userSpaceOnUse\" markerWidth=\"8\" markerHeight=\"8\" "
	    "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n"
	    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
	    "<text class=\"name\" x=\"%d\" y=\"%d\">",
	    style, MARGIN, TITLE);
	put_text(p->to, slice_of(name), ALL_CELLS);
	buf_puts(p->to, "</text>\n");
	for (i = 0; i < p->nlines; i++)
		put_line(p, i, &text);
	for (i = 0; i < p->u.nunits; i++)
		put_box(p, i, &text);
	buf_puts(p->to, "</svg>\n");
	if (text.failed)
		p->to->failed = true;
	buf_clear(&text);
}

void
draw_svg(const struct drawing *d)
{
	struct picture p = {.d = d, .to = d->to, .top = TITLE + 20};

	if (find_boxes(&p) != 0 || find_lines(&p) != 0 ||
	    layers_make(&p.layers, p.u.nunits, p.lines, p.nlines, BOX_PITCH, BEND_PITCH) != 0 ||
	    find_columns(&p) != 0) {
		d->to->failed = true;
	} else {
		p.bottom = p.top + (long)p.layers.height + MARGIN / 2;
		put_all(&p);
	}
	layers_clear(&p.layers);
	free(p.left);
	free(p.width);
	free(p.lines);
	free(p.about);
	free(p.u.units);
	free(p.u.unit_of);
}
