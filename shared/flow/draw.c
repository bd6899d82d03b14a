/* A flow as a picture: text for terminals, dot, mermaid; draw_svg.c has the one that needs no other program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "flowsup/log.h"

enum { NEEDS_SHOWN = 8, LABELS_SHOWN = 4, WIDEST_ID = 32, ID_LEAST = 10, RAIL_COLUMNS = 13 };

const char *
draw_label(const struct drawing *d, size_t op)
{
	return d->label != NULL ? d->label(d->arg, op) : NULL;
}

static const char *const on_words[] = {"", "on failure", "always"};

/* ---- What the synthesis waits for beside what it needs ---- */

/* It comes last, also behind what was added meanwhile, unless that came of the synthesis itself. What
 * others stand behind is waited for with these. */
static bool
is_waited_for(const struct flow *f, uint32_t i)
{
	return i >= f->nplanned && !flow_is_of_synthesis(f, i) && f->ops[i].nsuccessors == 0;
}

static uint32_t
count_waited_for(const struct flow *f)
{
	uint32_t i, n = 0;

	for (i = (uint32_t)f->nplanned; i < f->nops; i++)
		n += is_waited_for(f, i);
	return n;
}

static struct draw_edges
edges_of_last(const struct flow *f, uint32_t of, uint32_t more)
{
	const struct flow_op *op = &f->ops[of];
	struct draw_edges edges = {calloc(op->nneeds + more + 1, sizeof(*edges.list)), 0};
	uint32_t i, need = 0;

	for (i = 0; edges.list != NULL && i < f->nops; i++) {
		if (need < op->nneeds && op->needs[need].op == i)
			edges.list[edges.count++] = op->needs[need++];
		else if (is_waited_for(f, i))
			edges.list[edges.count++] = (struct flow_edge){.op = i, .on = FLOW_ON_ALWAYS};
	}
	return edges;
}

static void
find_last(struct drawing *d)
{
	const struct flow *f = d->f;
	uint32_t i, more;

	if (f->synthesis_op == SIZE_MAX || f->nplanned == f->nops || (more = count_waited_for(f)) == 0)
		return;
	d->last = calloc(f->nops, sizeof(*d->last));
	d->to->failed |= d->last == NULL;
	for (i = (uint32_t)f->synthesis_op; !d->to->failed && i < f->nops; i++)
		if (flow_is_synthesis(f, i)) {
			d->last[i] = edges_of_last(f, i, more);
			d->to->failed |= d->last[i].list == NULL;
		}
}

static void
clear_last(struct drawing *d)
{
	size_t i;

	for (i = 0; d->last != NULL && i < d->f->nops; i++)
		free(d->last[i].list);
	free(d->last);
}

uint32_t
draw_edges_to(const struct drawing *d, uint32_t op, const struct flow_edge **edges)
{
	bool last = d->last != NULL && d->last[op].list != NULL;

	*edges = last ? d->last[op].list : d->f->ops[op].needs;
	return last ? d->last[op].count : d->f->ops[op].nneeds;
}

/* ---- Text: one line an operation or foreach, level by level ---- */

static size_t
base_length(const char *id)
{
	const char *dot = strrchr(id, '.');

	return dot != NULL ? (size_t)(dot - id) : strlen(id);
}

/* Consecutive items of one foreach say and need the same and differ in their number only. */
static bool
is_item(const struct flow *f, const struct flow_op *op)
{
	const struct flow_grown *g = flow_grown(f, (uint32_t)(op - f->ops));

	return g != NULL && g->kind == FLOW_GROWN_ITEM;
}

static bool
are_siblings(const struct flow *f, const struct flow_op *a, const struct flow_op *b)
{
	size_t len = base_length(a->id);

	if (a->how == b->how && a->item != NULL && f->nplanned < f->nops && is_item(f, a) && is_item(f, b))
		return true;
	return a->item != NULL && b->item != NULL && a->how == b->how && a->text == b->text &&
	    a->argv == b->argv && a->needs == b->needs && base_length(b->id) == len &&
	    memcmp(a->id, b->id, len) == 0;
}

void
draw_find_units(const struct flow *f, struct draw_units *l)
{
	size_t i;

	for (i = 0; i < f->nops; i++) {
		if (i > 0 && are_siblings(f, &f->ops[i - 1], &f->ops[i])) {
			l->units[l->nunits - 1].count++;
		} else {
			l->units[l->nunits++] = (struct draw_unit){(uint32_t)i, 1, 0};
		}
		l->unit_of[i] = (uint32_t)l->nunits - 1;
	}
}

static void
find_levels(const struct drawing *d, struct draw_units *l)
{
	const struct flow_edge *edges;
	struct draw_unit *u;
	uint32_t n, k, below;
	size_t i;

	for (i = 0; i < d->f->nops; i++) {
		u = &l->units[l->unit_of[d->f->order[i]]];
		n = draw_edges_to(d, d->f->order[i], &edges);
		for (k = 0; k < n && u->first == d->f->order[i]; k++) {
			below = l->units[l->unit_of[edges[k].op]].level + 1;
			u->level = below > u->level ? below : u->level;
		}
	}
}

static int
compare_units(const void *a, const void *b)
{
	const struct draw_unit *x = a, *y = b;

	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	return x->first < y->first ? -1 : 1;
}

void
draw_unit_name(const struct flow *f, const struct draw_unit *u, struct buf *to)
{
	const char *id = f->ops[u->first].id;

	if (u->count == 1)
		buf_puts(to, id);
	else
		buf_printf(to, "%.*s.* (%u)", (int)base_length(id), id, u->count);
}

void
draw_condition(const struct flow_edge *edge, struct buf *to)
{
	static const char *const words[] = {[FLOW_WHEN_EQUALS] = "=", [FLOW_WHEN_EXISTS] = "exists",
	    [FLOW_WHEN_MATCHES] = "~"};

	if (edge->on != FLOW_ON_SUCCESS)
		buf_printf(to, " %s", on_words[edge->on]);
	if (edge->when == FLOW_WHEN_ALWAYS)
		return;
	buf_printf(to, " when %s %s ", edge->pointer[0] != '\0' ? edge->pointer : "response",
	    words[edge->when]);
	json_write(to, edge->value);
}

/* Ids are of one byte a column; one that is cut keeps its end, by which those that begin alike differ. */
static void
draw_text_id(const struct drawing *d, const char *id, size_t len, struct buf *to)
{
	bool whole = d->id_most == 0 || len <= d->id_most;
	size_t tail = whole ? 0 : (d->id_most - 1) / 2;

	buf_add(to, id, whole ? len : d->id_most - 1 - tail);
	if (!whole)
		buf_puts(to, d->plain ? "~" : "\xe2\x80\xa6");
	buf_add(to, id + len - tail, tail);
}

static void
draw_text_name(const struct drawing *d, const struct draw_unit *u, struct buf *to)
{
	const char *id = d->f->ops[u->first].id;

	draw_text_id(d, id, u->count == 1 ? strlen(id) : base_length(id), to);
	if (u->count > 1)
		buf_printf(to, ".* (%u)", u->count);
}

/* "a, b.* (20), c on failure, and 47 more" */
static void
draw_needs(const struct drawing *d, const struct draw_units *l, const struct draw_unit *of_op)
{
	const struct flow_edge *needs;
	uint32_t n = draw_edges_to(d, of_op->first, &needs), i, rest = 0;
	const struct draw_unit *u;
	unsigned shown = 0;

	for (i = 0; i < n; i++) {
		u = &l->units[l->unit_of[needs[i].op]];
		/* A whole foreach is one word; a part of it is named one by one. */
		if (shown == NEEDS_SHOWN) {
			rest++;
			continue;
		}
		buf_puts(d->to, shown++ > 0 ? ", " : d->plain ? "  needs " : "  \xe2\x86\x90 ");
		if (needs[i].op == u->first && i + u->count <= n &&
		    needs[i + u->count - 1].op == u->first + u->count - 1) {
			draw_text_name(d, u, d->to);
			draw_condition(&needs[i], d->to);
			i += u->count - 1;
		} else {
			draw_text_id(d, d->f->ops[needs[i].op].id, strlen(d->f->ops[needs[i].op].id), d->to);
			draw_condition(&needs[i], d->to);
		}
	}
	if (rest > 0)
		buf_printf(d->to, ", and %u more", rest);
}

/* "running", or "997 completed, 3 running" of a foreach. */
void
draw_unit_label(const struct drawing *d, const struct draw_unit *u, struct buf *to)
{
	const char *words[LABELS_SHOWN] = {NULL}, *word;
	unsigned counts[LABELS_SHOWN] = {0}, n = 0, k;
	uint32_t i;

	for (i = 0; i < u->count; i++) {
		word = draw_label(d, u->first + i);
		for (k = 0; word != NULL && k < n && strcmp(words[k], word) != 0; k++)
			;
		if (word == NULL || k == LABELS_SHOWN)
			continue;
		words[k] = word;
		counts[k]++;
		n = k == n ? n + 1 : n;
	}
	for (k = 0; k < n; k++) {
		buf_puts(to, k > 0 ? ", " : "  ");
		if (u->count > 1)
			buf_printf(to, "%u ", counts[k]);
		buf_puts(to, words[k]);
	}
}

static void
draw_rail(const struct draw_units *l, size_t i, bool plain, struct buf *to)
{
	bool first = i == 0 || l->units[i - 1].level != l->units[i].level;
	bool last = i + 1 == l->nunits || l->units[i + 1].level != l->units[i].level;

	if (first)
		buf_printf(to, "%3u ", l->units[i].level + 1);
	else
		buf_puts(to, "    ");
	if (plain)
		return;
	if (first && last)
		buf_puts(to, "\xe2\x94\x80\xe2\x94\x80 ");
	else if (first)
		buf_puts(to, "\xe2\x94\xac\xe2\x94\x80 ");
	else
		buf_puts(to, last ? "\xe2\x94\x94\xe2\x94\x80 " : "\xe2\x94\x9c\xe2\x94\x80 ");
}

/* A sign that stands for what was cut off has three bytes, and one column. */
static size_t
name_columns(const struct buf *name)
{
	size_t i, n = 0;

	for (i = 0; i < name->len; i++)
		n += ((unsigned char)name->data[i] & 0xc0) != 0x80;
	return n;
}

static size_t
name_column(const struct drawing *d, const struct draw_units *l)
{
	struct buf b = {0};
	size_t widest = 0, i;

	for (i = 0; i < l->nunits; i++) {
		buf_reset(&b);
		draw_text_name(d, &l->units[i], &b);
		if (name_columns(&b) > widest && name_columns(&b) <= WIDEST_ID)
			widest = name_columns(&b);
	}
	buf_clear(&b);
	return widest;
}

/* Where it comes from, of what was added; one that stands behind its parent shows that by itself. */
static void
draw_origin(const struct drawing *d, uint32_t i)
{
	const struct flow_grown *g = flow_grown(d->f, i);

	if (g == NULL)
		return;
	if (g->kind == FLOW_GROWN_RETRY)
		buf_printf(d->to, "  [another try at %s]", d->f->ops[flow_stands_for(d->f, i)].id);
	else if (g->kind == FLOW_GROWN_SPAWN && d->f->ops[i].nneeds == 0 && g->parent != FLOW_NO_OP)
		buf_printf(d->to, "  [spawned by %s]", d->f->ops[g->parent].id);
	else if (g->kind == FLOW_GROWN_SPAWN)
		buf_puts(d->to, "  [spawned]");
}

/* Sorted units are drawn from a copy: unit_of leads into the unsorted ones. */
static void
draw_text_units(const struct drawing *d, const struct draw_units *l, const struct draw_units *sorted)
{
	size_t column = name_column(d, l), used, i;
	struct buf line = {0};

	for (i = 0; i < sorted->nunits; i++) {
		const struct draw_unit *u = &sorted->units[i];
		const struct flow_op *op = &d->f->ops[u->first];

		draw_rail(sorted, i, d->plain, d->to);
		buf_reset(&line);
		draw_text_name(d, u, &line);
		for (used = name_columns(&line); used < column && (op->nneeds > 0 || d->label != NULL); used++)
			buf_putc(&line, ' ');
		draw_unit_label(d, u, &line);
		buf_slice(d->to, buf_view(&line));
		draw_needs(d, l, u);
		if (op->how->gate_approve)
			buf_puts(d->to, "  [needs approval]");
		if (op->how->foreach_pointer != NULL)
			buf_puts(d->to, "  [for each item]");
		draw_origin(d, u->first);
		buf_putc(d->to, '\n');
	}
	if (line.failed)
		d->to->failed = true;
	buf_clear(&line);
}

static void
draw_text(const struct drawing *d)
{
	size_t n = d->f->nops;
	struct draw_units l = {calloc(n + 1, sizeof(*l.units)), 0, calloc(n + 1, sizeof(*l.unit_of))};
	struct draw_units sorted = {calloc(n + 1, sizeof(*l.units)), 0, NULL};

	if (l.units == NULL || l.unit_of == NULL || sorted.units == NULL) {
		d->to->failed = true;
	} else {
		draw_find_units(d->f, &l);
		find_levels(d, &l);
		memcpy(sorted.units, l.units, l.nunits * sizeof(*l.units));
		sorted.nunits = l.nunits;
		qsort(sorted.units, sorted.nunits, sizeof(*sorted.units), compare_units);
		draw_text_units(d, &l, &sorted);
	}
	free(l.units);
	free(l.unit_of);
	free(sorted.units);
}

/* ---- dot and mermaid ---- */

/* In a quoted string of dot (or HTML entities in one of mermaid), on one line. */
static void
add_quoted(const struct drawing *d, bool dot, struct slice text)
{
	struct buf clean = {0};
	size_t i;

	text_neutralise(&clean, text, false);
	for (i = 0; i < clean.len; i++) {
		char c = clean.data[i];

		if (dot && (c == '"' || c == '\\'))
			buf_putc(d->to, '\\');
		if (!dot && c == '"')
			buf_puts(d->to, "#quot;");
		else if (!dot && c == '#')
			buf_puts(d->to, "#35;");
		else if (!dot && (c == '<' || c == '>'))
			buf_puts(d->to, c == '<' ? "#lt;" : "#gt;");
		else
			buf_putc(d->to, c);
	}
	if (clean.failed)
		d->to->failed = true;
	buf_clear(&clean);
}

static void
add_node_label(const struct drawing *d, bool dot, size_t op)
{
	const char *label = draw_label(d, op);

	add_quoted(d, dot, slice_of(d->f->ops[op].id));
	if (d->f->ops[op].how->gate_approve)
		buf_puts(d->to, dot ? "\\n(approve)" : "<br>(approve)");
	if (label != NULL) {
		buf_puts(d->to, dot ? "\\n" : "<br>");
		add_quoted(d, dot, slice_of(label));
	}
}

/* The condition without its first blank; empty for "completed". */
static void
draw_dot_edge(const struct drawing *d, const struct flow_edge *edge, size_t to, struct slice condition)
{
	static const char *const styles[] = {"solid", "dashed", "dotted"};

	buf_printf(d->to, "\tn%u -> n%zu", edge->op, to);
	if (condition.len > 0) {
		buf_printf(d->to, " [style=%s, label=\"", styles[edge->on]);
		add_quoted(d, true, condition);
		buf_puts(d->to, "\"]");
	}
	buf_puts(d->to, ";\n");
}

static void
draw_mermaid_edge(const struct drawing *d, const struct flow_edge *edge, size_t to, struct slice condition)
{
	static const char *const arrows[] = {"-->", "-.->", "==>"};

	buf_printf(d->to, "    n%u %s", edge->op, arrows[edge->on]);
	if (condition.len > 0) {
		buf_puts(d->to, "|\"");
		add_quoted(d, false, condition);
		buf_puts(d->to, "\"|");
	}
	buf_printf(d->to, " n%zu\n", to);
}

static void
draw_edges(const struct drawing *d, size_t op,
    void (*draw_edge)(const struct drawing *, const struct flow_edge *, size_t, struct slice))
{
	const struct flow_edge *edges;
	uint32_t n = draw_edges_to(d, (uint32_t)op, &edges), i;
	struct buf text = {0};

	for (i = 0; i < n; i++) {
		buf_reset(&text);
		draw_condition(&edges[i], &text);
		draw_edge(d, &edges[i], op,
		    text.len > 0 ? (struct slice){text.data + 1, text.len - 1} : (struct slice){"", 0});
	}
	buf_clear(&text);
}

static const char *
dot_style(const struct flow *f, uint32_t i)
{
	const struct flow_grown *g = flow_grown(f, i);

	if (g == NULL)
		return "";
	return g->kind == FLOW_GROWN_RETRY ? ", style=\"rounded,bold\"" : ", style=\"rounded,dashed\"";
}

static void
draw_dot(const struct drawing *d)
{
	size_t i;

	buf_puts(d->to, "digraph flow {\n\trankdir=LR;\n\tnode [shape=box, style=rounded];\n");
	if (d->f->name != NULL) {
		buf_puts(d->to, "\tlabel=\"");
		add_quoted(d, true, slice_of(d->f->name));
		buf_puts(d->to, "\";\n");
	}
	for (i = 0; i < d->f->nops; i++) {
		buf_printf(d->to, "\tn%zu [label=\"", i);
		add_node_label(d, true, i);
		buf_printf(d->to, "\"%s];\n", dot_style(d->f, (uint32_t)i));
	}
	for (i = 0; i < d->f->nops; i++)
		draw_edges(d, i, draw_dot_edge);
	buf_puts(d->to, "}\n");
}

static void
draw_mermaid(const struct drawing *d)
{
	/* Planned, spawned, another try, item. */
	static const char *const brackets[][2] = {{"[", "]"}, {"(", ")"}, {"[[", "]]"}, {"(", ")"}};
	const struct flow_grown *grown;
	size_t i;

	buf_puts(d->to, "flowchart LR\n");
	for (i = 0; i < d->f->nops; i++) {
		grown = flow_grown(d->f, (uint32_t)i);
		buf_printf(d->to, "    n%zu%s\"", i, brackets[grown == NULL ? 0 : 1 + grown->kind][0]);
		add_node_label(d, false, i);
		buf_printf(d->to, "\"%s\n", brackets[grown == NULL ? 0 : 1 + grown->kind][1]);
	}
	for (i = 0; i < d->f->nops; i++)
		draw_edges(d, i, draw_mermaid_edge);
}

static void
draw(struct drawing *d, enum flow_graph_format format)
{
	find_last(d);
	switch (format) {
	case FLOW_GRAPH_TEXT:
	case FLOW_GRAPH_PLAIN:
		draw_text(d);
		break;
	case FLOW_GRAPH_DOT:
		draw_dot(d);
		break;
	case FLOW_GRAPH_MERMAID:
		draw_mermaid(d);
		break;
	case FLOW_GRAPH_SVG:
		draw_svg(d);
		break;
	}
	clear_last(d);
}

void
flow_graph(const struct flow *f, enum flow_graph_format format, flow_graph_label *label, void *arg,
    struct buf *to)
{
	flow_graph_within(f, format, 0, label, arg, to);
}

void
flow_graph_within(const struct flow *f, enum flow_graph_format format, int width, flow_graph_label *label,
    void *arg, struct buf *to)
{
	const int half = (width - RAIL_COLUMNS) / 2;
	struct drawing d = {.f = f, .label = label, .arg = arg, .to = to, .plain = format == FLOW_GRAPH_PLAIN};

	if (width > 0)
		d.id_most = half > ID_LEAST ? (size_t)half : ID_LEAST;
	draw(&d, format);
}
