/* From the text of a pattern to its places. */
#include "pattern.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ENDLESS UINT_MAX
enum { SHORTHAND = 0x40000000 };

enum node_kind { NODE_NOTHING, NODE_PLACE, NODE_BOTH, NODE_EITHER, NODE_REPEAT };

struct node {
	enum node_kind kind;
	struct place place;
	size_t x, y;
	unsigned least, most;
};

struct reading {
	const char *at;
	struct pattern *p;
	struct node *nodes; /* grows: nodes are named by their number */
	size_t nnodes;
	size_t max_places;
	unsigned depth;
	struct err *e;
};

/* ---- What it is made of ---- */

/* A list with room for one more; its size is a power of two, or it is empty. */
static void *
grown(void *list, size_t count, size_t each)
{
	if (count > 0 && (count & (count - 1)) != 0)
		return list;
	return reallocarray(list, count == 0 ? 1 : 2 * count, each);
}

static int
add_node(struct reading *r, const struct node *n, size_t *out)
{
	struct node *more = grown(r->nodes, r->nnodes, sizeof(*more));

	if (more == NULL)
		return err_nomem(r->e);
	r->nodes = more;
	more[r->nnodes] = *n;
	*out = r->nnodes++;
	return 0;
}

static int
add_place_node(struct reading *r, enum place_kind kind, uint32_t c, size_t *out)
{
	const struct node n = {.kind = NODE_PLACE, .place = {.kind = kind, .c = c}};

	return add_node(r, &n, out);
}

static int
add_pair(struct reading *r, enum node_kind kind, size_t x, size_t y, size_t *out)
{
	const struct node n = {.kind = kind, .x = x, .y = y};

	return add_node(r, &n, out);
}

/* ---- Classes ---- */

static void
add_ascii(struct pattern_class *class, uint32_t first, uint32_t last)
{
	for (; first <= last && first < 128; first++)
		class->ascii[first / 64] |= UINT64_C(1) << first % 64;
}

/* Only the class that was begun last is added to: its ranges stand in a row. */
static int
add_range(struct reading *r, struct pattern_class *class, uint32_t first, uint32_t last)
{
	struct pattern_range *more;

	add_ascii(class, first, last);
	if (last < 128)
		return 0;
	more = grown(r->p->ranges, r->p->nranges, sizeof(*more));
	if (more == NULL)
		return err_nomem(r->e);
	r->p->ranges = more;
	more[r->p->nranges++] = (struct pattern_range){first < 128 ? 128 : first, last};
	class->nranges++;
	return 0;
}

static int
begin_class(struct reading *r, struct pattern_class **out)
{
	struct pattern_class *more = grown(r->p->classes, r->p->nclasses, sizeof(*more));

	if (more == NULL)
		return err_nomem(r->e);
	r->p->classes = more;
	more += r->p->nclasses++;
	*more = (struct pattern_class){.range = r->p->nranges};
	*out = more;
	return 0;
}

static int
class_node(struct reading *r, size_t *out)
{
	const struct node n = {.kind = NODE_PLACE,
	    .place = {.kind = PLACE_CLASS, .a = (uint16_t)(r->p->nclasses - 1)}};

	return add_node(r, &n, out);
}

static const struct {
	const char *name;
	const char *ranges; /* pairs */
} named[] = {
    {"alnum", "09AZaz"}, {"alpha", "AZaz"}, {"blank", "  \t\t"}, {"cntrl", "\1\37\177\177"},
    {"digit", "09"}, {"graph", "!~"}, {"lower", "az"}, {"print", " ~"}, {"punct", "!/:@[`{~"},
    {"space", "  \t\r"}, {"upper", "AZ"}, {"xdigit", "09AFaf"}, {"word", "09AZaz__"},
};

static void
add_named(struct pattern_class *class, size_t i)
{
	const char *p;

	for (p = named[i].ranges; *p != '\0'; p += 2)
		add_ascii(class, (unsigned char)p[0], (unsigned char)p[1]);
	if (strcmp(named[i].name, "cntrl") == 0)
		add_ascii(class, 0, 0);
}

static size_t
find_named(struct slice name)
{
	size_t i;

	for (i = 0; i < sizeof(named) / sizeof(named[0]) && !slice_is(name, named[i].name); i++)
		;
	return i;
}

/* \d and the like, of which the capital letter stands for all others. */
static int
add_shorthand(struct reading *r, struct pattern_class *class, char letter)
{
	struct pattern_class all = {0};
	const char *name = strchr("dD", letter) != NULL ? "digit" : strchr("wW", letter) != NULL ? "word" : "space";

	add_named(&all, find_named(slice_of(name)));
	if (letter >= 'a') {
		class->ascii[0] |= all.ascii[0];
		class->ascii[1] |= all.ascii[1];
		return 0;
	}
	class->ascii[0] |= ~all.ascii[0];
	class->ascii[1] |= ~all.ascii[1];
	return add_range(r, class, 128, UINT32_MAX - 1);
}

/* ---- Escapes ---- */

static int
read_hex(struct reading *r, size_t digits, uint32_t *code)
{
	static const char hex[] = "0123456789abcdef0123456789ABCDEF";
	const char *digit;

	for (*code = 0; digits > 0; digits--, r->at++) {
		digit = *r->at != '\0' ? strchr(hex, *r->at) : NULL;
		if (digit == NULL)
			return err_set(r->e, ERR_DOCUMENT, "\\x needs two and \\u four hexadecimal digits");
		*code = *code << 4 | (uint32_t)((digit - hex) % 16);
	}
	return 0;
}

static int
unknown_escape(struct reading *r, char c)
{
	err_set(r->e, ERR_DOCUMENT, "\\%c is not known", c);
	if (c >= '0' && c <= '9')
		err_advice(r->e, "nothing refers back to a group: write out what may stand there");
	else
		err_advice(r->e, "known are \\d \\w \\s \\D \\W \\S \\b \\B \\n \\r \\t \\f \\v \\xHH \\uHHHH, "
				 "and classes such as [[:alpha:]]");
	return -1;
}

/* Behind the backslash: a character, or SHORTHAND with its letter. */
static int
read_escape(struct reading *r, uint32_t *code)
{
	static const char letters[] = "nrtfv", controls[] = "\n\r\t\f\v";
	const char *letter;
	size_t len;
	char c = *r->at;

	if (c == '\0')
		return err_set(r->e, ERR_DOCUMENT, "a backslash ends it");
	*code = pattern_char(slice_of(r->at), &len);
	r->at += len;
	if (strchr("dwsDWS", c) != NULL) {
		*code = SHORTHAND + (unsigned char)c;
		return 0;
	}
	letter = strchr(letters, c);
	if (letter != NULL)
		*code = (unsigned char)controls[letter - letters];
	else if (c == 'x' || c == 'u')
		return read_hex(r, c == 'x' ? 2 : 4, code);
	else if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return unknown_escape(r, c);
	return 0;
}

/* ---- [ ] ---- */

static int
read_named(struct reading *r, struct pattern_class *class)
{
	const char *begin = r->at + 2, *end = strstr(begin, ":]");
	size_t i;

	if (r->at[1] != ':')
		return err_set(r->e, ERR_DOCUMENT, "[%c is not known in [ ]", r->at[1]);
	i = end == NULL ? SIZE_MAX : find_named((struct slice){begin, (size_t)(end - begin)});
	if (i >= sizeof(named) / sizeof(named[0])) {
		err_set(r->e, ERR_DOCUMENT, "a class in [ ] has no such name: \"%.20s\"", r->at);
		return err_advice(r->e, "known are [:alpha:] [:digit:] [:alnum:] [:upper:] [:lower:] [:xdigit:] "
					"[:space:] [:blank:] [:punct:] [:cntrl:] [:print:] [:graph:]");
	}
	add_named(class, i);
	r->at = end + 2;
	return 0;
}

static int
read_member(struct reading *r, uint32_t *code)
{
	size_t len;

	if (*r->at == '\0')
		return err_set(r->e, ERR_DOCUMENT, "a [ is not closed");
	if (*r->at != '\\') {
		*code = pattern_char(slice_of(r->at), &len);
		r->at += len;
		return 0;
	}
	r->at++;
	if (*r->at == 'b') {
		r->at++;
		*code = '\b';
		return 0;
	}
	return read_escape(r, code);
}

static int
read_members(struct reading *r, struct pattern_class *class)
{
	uint32_t first, last;

	if (*r->at == '[' && strchr(":.=", r->at[1]) != NULL && r->at[1] != '\0')
		return read_named(r, class);
	if (read_member(r, &first) != 0)
		return -1;
	if (first >= SHORTHAND)
		return add_shorthand(r, class, (char)(first - SHORTHAND));
	last = first;
	if (r->at[0] == '-' && r->at[1] != ']' && r->at[1] != '\0') {
		r->at++;
		if (read_member(r, &last) != 0)
			return -1;
		if (last < first || last >= SHORTHAND)
			return err_set(r->e, ERR_DOCUMENT, "a range in [ ] ends before it begins");
	}
	return add_range(r, class, first, last);
}

static int
read_class(struct reading *r, size_t *out)
{
	struct pattern_class *class;
	const char *first;

	if (begin_class(r, &class) != 0)
		return -1;
	if (*r->at == '^') {
		class->negated = true;
		r->at++;
	}
	for (first = r->at; *r->at != ']' || r->at == first;)
		if (read_members(r, class) != 0)
			return -1;
	r->at++;
	return class_node(r, out);
}

/* ---- One thing, perhaps repeated ---- */

static int read_choice(struct reading *r, size_t *out);

static int
read_group(struct reading *r, size_t *out)
{
	if (r->at[0] == '?' && r->at[1] != ':') {
		err_set(r->e, ERR_DOCUMENT, "(?%.1s is not known", r->at + 1);
		return err_advice(r->e, "of (? only (?:...) is known: nothing looks ahead or behind, has a name or "
					"sets an option");
	}
	r->at += *r->at == '?' ? 2 : 0;
	if (r->depth++ == PATTERN_MAX_DEPTH)
		return err_set(r->e, ERR_LIMIT, "its groups are too deep");
	if (read_choice(r, out) != 0)
		return -1;
	if (*r->at != ')')
		return err_set(r->e, ERR_DOCUMENT, "a ( is not closed");
	r->at++;
	r->depth--;
	return 0;
}

static int
read_escaped(struct reading *r, size_t *out)
{
	static const char points[] = "bB<>`'";
	static const enum place_kind kinds[] = {PLACE_WORD, PLACE_NO_WORD, PLACE_WORD_BEGIN, PLACE_WORD_END,
	    PLACE_BEGIN, PLACE_END};
	const char *point = *r->at != '\0' ? strchr(points, *r->at) : NULL;
	struct pattern_class *class;
	uint32_t code;

	if (point != NULL) {
		r->at++;
		return add_place_node(r, kinds[point - points], 0, out);
	}
	if (read_escape(r, &code) != 0)
		return -1;
	if (code < SHORTHAND)
		return add_place_node(r, PLACE_CHAR, code, out);
	if (begin_class(r, &class) != 0 || add_shorthand(r, class, (char)(code - SHORTHAND)) != 0)
		return -1;
	return class_node(r, out);
}

static int
read_thing(struct reading *r, size_t *out)
{
	uint32_t code;
	size_t len;

	if (strchr("*+?{", *r->at) != NULL) {
		err_set(r->e, ERR_DOCUMENT, "nothing stands before %c", *r->at);
		return err_advice(r->e, "write \\%c for the character itself", *r->at);
	}
	code = pattern_char(slice_of(r->at), &len);
	r->at += len;
	switch (code) {
	case '(':
		return read_group(r, out);
	case '[':
		return read_class(r, out);
	case '\\':
		return read_escaped(r, out);
	case '.':
		return add_place_node(r, PLACE_ANY, 0, out);
	case '^':
		return add_place_node(r, PLACE_BEGIN, 0, out);
	case '$':
		return add_place_node(r, PLACE_END, 0, out);
	default:
		return add_place_node(r, PLACE_CHAR, code, out);
	}
}

static bool
read_number(struct reading *r, unsigned *n)
{
	const char *begin = r->at;

	for (*n = 0; *r->at >= '0' && *r->at <= '9'; r->at++)
		*n = *n > PATTERN_MAX_COUNT ? *n : *n * 10 + (unsigned)(*r->at - '0');
	return r->at > begin;
}

/* Behind the brace. */
static int
read_counts(struct reading *r, struct node *n)
{
	bool any = read_number(r, &n->least);

	n->most = n->least;
	if (*r->at == ',') {
		r->at++;
		if (read_number(r, &n->most))
			any = true;
		else
			n->most = ENDLESS;
	}
	if (*r->at != '}' || (!any && n->most != ENDLESS) || n->least > n->most) {
		err_set(r->e, ERR_DOCUMENT, "a { has no count behind it, as in {2} or {1,3}");
		return err_advice(r->e, "write \\{ for the character itself");
	}
	if (n->least > PATTERN_MAX_COUNT || (n->most != ENDLESS && n->most > PATTERN_MAX_COUNT))
		return err_set(r->e, ERR_LIMIT, "a count is above %d", PATTERN_MAX_COUNT);
	r->at++;
	return 0;
}

/* That it is lazy (a ? behind it) does not change whether anything fits. */
static int
read_repetition(struct reading *r, struct node *n)
{
	char c = *r->at++;

	n->least = c == '+';
	n->most = c == '?' ? 1 : ENDLESS;
	if (c == '{' && read_counts(r, n) != 0)
		return -1;
	if (*r->at == '?')
		r->at++;
	else if (*r->at == '+')
		return err_set(r->e, ERR_DOCUMENT, "+ stands behind another repetition");
	return 0;
}

static int
read_repeated(struct reading *r, size_t *out)
{
	struct node n = {.kind = NODE_REPEAT};

	if (read_thing(r, out) != 0)
		return -1;
	while (*r->at != '\0' && strchr("*+?{", *r->at) != NULL) {
		n.x = *out;
		if (read_repetition(r, &n) != 0 || add_node(r, &n, out) != 0)
			return -1;
	}
	return 0;
}

/* A ) that closes nothing stands for itself. */
static int
read_row(struct reading *r, size_t *out)
{
	const struct node nothing = {.kind = NODE_NOTHING};
	size_t next;

	if (add_node(r, &nothing, out) != 0)
		return -1;
	while (*r->at != '\0' && *r->at != '|' && (*r->at != ')' || r->depth == 0))
		if (read_repeated(r, &next) != 0 || add_pair(r, NODE_BOTH, *out, next, out) != 0)
			return -1;
	return 0;
}

static int
read_choice(struct reading *r, size_t *out)
{
	size_t next;

	if (read_row(r, out) != 0)
		return -1;
	while (*r->at == '|') {
		r->at++;
		if (read_row(r, &next) != 0 || add_pair(r, NODE_EITHER, *out, next, out) != 0)
			return -1;
	}
	return 0;
}

/* ---- Places ---- */

static int
put(struct reading *r, const struct place *place)
{
	struct place *more;

	if (r->p->nplaces >= r->max_places)
		return err_set(r->e, ERR_LIMIT, "it has more than %zu places", r->max_places);
	more = grown(r->p->places, r->p->nplaces, sizeof(*more));
	if (more == NULL)
		return err_nomem(r->e);
	r->p->places = more;
	more[r->p->nplaces++] = *place;
	return 0;
}

static int
put_split(struct reading *r, size_t a, size_t b)
{
	const struct place split = {PLACE_SPLIT, (uint16_t)a, (uint16_t)b, 0};

	return put(r, &split);
}

static int put_node(struct reading *r, size_t node);

static int
put_either(struct reading *r, const struct node *n)
{
	size_t split = r->p->nplaces, end;

	if (put_split(r, split + 1, 0) != 0 || put_node(r, n->x) != 0)
		return -1;
	end = r->p->nplaces;
	if (put_split(r, 0, 0) != 0)
		return -1;
	r->p->places[split].b = (uint16_t)r->p->nplaces;
	if (put_node(r, n->y) != 0)
		return -1;
	r->p->places[end].a = r->p->places[end].b = (uint16_t)r->p->nplaces;
	return 0;
}

/* As often as one may want, also not at all. */
static int
put_endless(struct reading *r, const struct node *n)
{
	size_t split = r->p->nplaces;

	if (put_split(r, split + 1, 0) != 0 || put_node(r, n->x) != 0 || put_split(r, split, split) != 0)
		return -1;
	r->p->places[split].b = (uint16_t)r->p->nplaces;
	return 0;
}

/* Each may be the last; until the end is known, each split leads to the one before it. */
static int
put_optional(struct reading *r, const struct node *n, unsigned times)
{
	size_t last = SIZE_MAX, split, before;

	for (; times > 0; times--) {
		split = r->p->nplaces;
		if (put_split(r, split + 1, last == SIZE_MAX ? split : last) != 0 || put_node(r, n->x) != 0)
			return -1;
		last = split;
		if (r->p->nplaces == split + 1)
			break; /* nothing, as often as one may want, is nothing */
	}
	for (split = last; split != SIZE_MAX; split = before == split ? SIZE_MAX : before) {
		before = r->p->places[split].b;
		r->p->places[split].b = (uint16_t)r->p->nplaces;
	}
	return 0;
}

static int
put_repeat(struct reading *r, const struct node *n)
{
	size_t begin = r->p->nplaces;
	unsigned i;

	for (i = 0; i < n->least; i++) {
		begin = r->p->nplaces;
		if (put_node(r, n->x) != 0)
			return -1;
		if (r->p->nplaces == begin)
			return 0;
	}
	if (n->most != ENDLESS)
		return put_optional(r, n, n->most - n->least);
	return n->least == 0 ? put_endless(r, n) : put_split(r, begin, r->p->nplaces + 1);
}

static int
put_node(struct reading *r, size_t node)
{
	const struct node *n = &r->nodes[node];

	switch (n->kind) {
	case NODE_NOTHING:
		return 0;
	case NODE_PLACE:
		return put(r, &n->place);
	case NODE_BOTH:
		return put_node(r, n->x) != 0 ? -1 : put_node(r, n->y);
	case NODE_EITHER:
		return put_either(r, n);
	case NODE_REPEAT:
		break;
	}
	return put_repeat(r, n);
}

/* ---- The whole ---- */

int
pattern_new(const char *text, size_t places, struct pattern **out, struct err *e)
{
	struct reading r = {.at = text, .max_places = places, .e = e};
	const struct place found = {.kind = PLACE_FOUND};
	size_t root;
	int rc;

	r.p = calloc(1, sizeof(*r.p));
	if (r.p == NULL)
		return err_nomem(e);
	rc = read_choice(&r, &root);
	if (rc == 0)
		rc = put_node(&r, root);
	if (rc == 0)
		rc = put(&r, &found);
	free(r.nodes);
	if (rc != 0) {
		pattern_free(r.p);
		return -1;
	}
	*out = r.p;
	return 0;
}

void
pattern_free(struct pattern *p)
{
	if (p == NULL)
		return;
	free(p->places);
	free(p->classes);
	free(p->ranges);
	free(p);
}
