#include <stdlib.h>
#include <string.h>

#define JSMN_STATIC
#define JSMN_STRICT
#define JSMN_PARENT_LINKS
#include <jsmn.h>

#include "scan.h"
#include "tokens.h"

enum { WINDOW = 1024 }; /* tokens: they and the text that they cover fit into a near cache */

struct tokens {
	const char *text;
	size_t len;
	jsmn_parser parser;
	jsmntok_t *token;
	size_t room, next; /* next: the first one that was not taken */
	bool over, failed;

	/* Where the next long string stands, once it has been looked for; from: where to look for it. */
	bool known;
	size_t from, end;

	jsmntok_t first[]; /* room for those that `token` leads to until there have to be more */
};

static const jsmntype_t types[] = {[TOKEN_STRING] = JSMN_STRING, [TOKEN_WORD] = JSMN_PRIMITIVE,
    [TOKEN_OBJECT] = JSMN_OBJECT, [TOKEN_ARRAY] = JSMN_ARRAY};

static bool
may_hold(const jsmntok_t *t)
{
	return t->type == JSMN_OBJECT || t->type == JSMN_ARRAY;
}

/* ---- What jsmn still needs of what was taken ---- */

/* Moves a token and those around it to the front, outermost first; returns how many these are. */
static int
keep_around(jsmntok_t *token, int innermost)
{
	int up, next, n;

	/* The links are turned round to lead inwards. */
	for (up = innermost, next = -1; up >= 0;) {
		const int parent = token[up].parent;

		token[up].parent = next;
		next = up;
		up = parent;
	}
	/* Each stands behind the one around it, so none is written over before it was moved. */
	for (n = 0; next >= 0; n++) {
		const jsmntok_t moved = token[next];

		next = moved.parent;
		token[n] = moved;
		token[n].parent = n - 1;
	}
	return n;
}

/* All were taken: there remain those that are open, and a string before a colon that is yet to come. */
static void
drop_taken(struct tokens *t)
{
	jsmn_parser *p = &t->parser;
	jsmntok_t last = {.parent = -2};
	int n;

	if (p->toknext > 0 && (int)p->toknext - 1 != p->toksuper)
		last = t->token[p->toknext - 1];
	const bool keep_last = last.parent == p->toksuper;

	n = keep_around(t->token, p->toksuper);
	p->toksuper = n - 1;
	if (keep_last) {
		last.parent = n - 1;
		t->token[n++] = last;
	}
	p->toknext = (unsigned)n;
	t->next = (size_t)n;
}

/* ---- Finding more ---- */

/*
 * How far jsmn looks back for the container that is open, each time it comes to an end. SIZE_MAX
 * when what stands before a colon is in no container: that is no JSON, and no bound of the way.
 */
static size_t
way_back(const struct tokens *t)
{
	int open = t->parser.toksuper;

	if (open >= 0 && !may_hold(&t->token[open]))
		open = t->token[open].parent; /* it was the name of the member */
	if (open >= 0 && !may_hold(&t->token[open]))
		return SIZE_MAX;
	return t->parser.toknext - (unsigned)(open > 0 ? open : 0);
}

static void
look_for_string(struct tokens *t)
{
	if (t->known)
		return;
	t->known = scan_long_string(t->text, t->len, &t->from, &t->end);
	if (!t->known)
		t->from = t->len; /* none is left: there is no need to look again */
}

/* The token of the long string, and the parser behind it. */
static void
add_string(struct tokens *t)
{
	jsmn_parser *p = &t->parser;

	t->token[p->toknext++] = (jsmntok_t){JSMN_STRING, (int)t->from + 1, (int)t->end, 0, p->toksuper};
	if (p->toksuper >= 0)
		t->token[p->toksuper].size++;
	p->pos = (unsigned)t->end + 1;
}

static bool
is_full(const struct tokens *t)
{
	return t->parser.toknext == t->room;
}

/*
 * Lets jsmn find tokens while there is room, but for the long strings, over which it goes a byte at a
 * time: it is stopped before one and goes on behind it. A stop costs the way back, so it is made only
 * where the string is longer than that.
 */
static void
fill(struct tokens *t)
{
	jsmn_parser *p = &t->parser;
	size_t stop;

	while (!t->over && !is_full(t)) {
		look_for_string(t);
		if (t->known && t->end - t->from < way_back(t)) {
			t->from = t->end + 1;
			t->known = false;
			continue;
		}
		stop = t->known ? t->from : t->len;
		jsmn_parse(p, t->text, stop, t->token, (unsigned)t->room);
		if (is_full(t))
			return;
		if (!t->known || p->pos != stop) {
			t->over = true;
			return;
		}
		add_string(t);
		t->from = t->end + 1;
		t->known = false;
	}
}

static void
release(struct tokens *t)
{
	if (t->token != t->first)
		free(t->token);
}

static bool
make_room(struct tokens *t)
{
	jsmntok_t *more = malloc(2 * t->room * sizeof(*more));

	if (more == NULL)
		return false;
	memcpy(more, t->token, t->next * sizeof(*more));
	release(t);
	t->token = more;
	t->room *= 2;
	return true;
}

static void
find_more(struct tokens *t)
{
	drop_taken(t);
	if (t->next > t->room / 2 && !make_room(t))
		t->failed = t->over = true;
	else
		fill(t);
}

/* ---- */

/* jsmn wants something behind a number; at the top there is nothing. */
static bool
find_bare_word(struct tokens *t)
{
	size_t from = 0, to;

	while (from < t->len && scan_is_space(t->text[from]))
		from++;
	if (from == t->len || strchr("{[\"", t->text[from]) != NULL)
		return false;
	for (to = from; to < t->len && !scan_ends_word(t->text[to]); to++)
		;
	t->token[0] = (jsmntok_t){JSMN_PRIMITIVE, (int)from, (int)to, 0, -1};
	t->parser.toknext = 1;
	t->over = true;
	return true;
}

struct tokens *
tokens_open(const char *text, size_t len)
{
	const size_t room = len < WINDOW ? len + 1 : WINDOW;
	struct tokens *t = malloc(sizeof(*t) + room * sizeof(t->first[0]));

	if (t == NULL)
		return NULL;
	*t = (struct tokens){.text = text, .len = len, .room = room};
	t->token = t->first;
	jsmn_init(&t->parser);
	if (!find_bare_word(t))
		fill(t);
	return t;
}

void
tokens_close(struct tokens *t)
{
	if (t == NULL)
		return;
	release(t);
	free(t);
}

bool
tokens_take(struct tokens *t, enum token_type type, size_t start, size_t *end)
{
	const jsmntok_t *next;

	if (t->next == t->parser.toknext && !t->over)
		find_more(t);
	next = &t->token[t->next];
	if (t->next == t->parser.toknext || next->type != types[type] ||
	    (size_t)next->start != start + (type == TOKEN_STRING))
		return false;
	if (type == TOKEN_STRING || type == TOKEN_WORD)
		*end = (size_t)next->end;
	t->next++;
	return true;
}

bool
tokens_failed(const struct tokens *t)
{
	return t->failed;
}
