/* Following all places of a pattern through a text at once. */
#include <stdlib.h>
#include <string.h>

#include "flowsup/json.h"
#include "pattern.h"

#define NO_CHAR UINT32_MAX
enum { NO_UTF8 = 0x110000, PLACES_OF_STEP = 16, RANGES_OF_STEP = 8 };

struct run {
	const struct pattern *p;
	uint32_t *met; /* by place: the turn in which it was reached last */
	uint16_t *now, *next, *pending;
	size_t nnow, nnext;
	uint32_t turn;
	uint32_t before, after; /* the characters around the point that is reached */
	uint64_t steps;
	bool found;
};

/* ---- Characters ---- */

static bool
goes_on(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

uint32_t
pattern_char(struct slice text, size_t *len)
{
	int32_t c = json_utf8_next(text.data, text.len, len);

	if (c < 0) {
		c = json_surrogate_next(text.data, text.len);
		*len = c < 0 ? 1 : 3;
	}
	return c < 0 ? NO_UTF8 + (uint32_t)(unsigned char)text.data[0] : (uint32_t)c;
}

struct slice
pattern_beginning(struct slice text, size_t bytes)
{
	size_t len = bytes;

	if (text.len <= bytes)
		return text;
	while (len > 0 && bytes - len < 3 && goes_on(text.data[len]))
		len--;
	text.len = goes_on(text.data[len]) ? bytes : len;
	return text;
}

static bool
is_in_ranges(const struct pattern *p, const struct pattern_class *class, uint32_t c)
{
	size_t i;

	for (i = class->range; i < class->range + class->nranges; i++)
		if (c >= p->ranges[i].first && c <= p->ranges[i].last)
			return true;
	return false;
}

static bool
stands_at(struct run *r, const struct place *place, uint32_t c)
{
	const struct pattern_class *class;

	if (place->kind == PLACE_CHAR)
		return place->c == c;
	if (place->kind == PLACE_ANY)
		return true;
	class = &r->p->classes[place->a];
	if (c < 128)
		return (class->ascii[c / 64] >> c % 64 & 1) != class->negated;
	r->steps += class->nranges / RANGES_OF_STEP;
	return is_in_ranges(r->p, class, c) != class->negated;
}

static bool
is_word(uint32_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* ---- Points between characters ---- */

static bool
holds(const struct run *r, enum place_kind kind)
{
	bool left = is_word(r->before), right = is_word(r->after);

	switch ((int)kind) {
	case PLACE_BEGIN:
		return r->before == NO_CHAR;
	case PLACE_END:
		return r->after == NO_CHAR;
	case PLACE_WORD:
		return left != right;
	case PLACE_NO_WORD:
		return left == right;
	case PLACE_WORD_BEGIN:
		return !left && right;
	default:
		return left && !right;
	}
}

static void
meet(struct run *r, size_t *pending, size_t place)
{
	if (r->met[place] == r->turn)
		return;
	r->met[place] = r->turn;
	r->steps++;
	r->pending[(*pending)++] = (uint16_t)place;
}

/* This place and all that can be reached from it without a character, at the point of this turn. */
static void
reach(struct run *r, size_t from)
{
	const struct place *place;
	size_t pending = 0, at;

	meet(r, &pending, from);
	while (pending > 0) {
		at = r->pending[--pending];
		place = &r->p->places[at];
		if (place->kind == PLACE_FOUND) {
			r->found = true;
		} else if (place->kind == PLACE_SPLIT) {
			meet(r, &pending, place->b);
			meet(r, &pending, place->a);
		} else if (place->kind < PLACE_SPLIT) {
			r->next[r->nnext++] = (uint16_t)at;
		} else if (holds(r, place->kind)) {
			meet(r, &pending, at + 1);
		}
	}
}

/* The point behind c: what stood at it goes on, and whatever begins, begins here too. */
static void
step(struct run *r, uint32_t c)
{
	uint16_t *gone = r->now;
	size_t i;

	r->turn++;
	r->nnext = 0;
	for (i = 0; i < r->nnow; i++)
		if (stands_at(r, &r->p->places[r->now[i]], c))
			reach(r, (size_t)r->now[i] + 1);
	reach(r, 0);
	r->now = r->next;
	r->nnow = r->nnext;
	r->next = gone;
}

static int
follow(struct run *r, struct slice text, struct err *e)
{
	uint32_t c = NO_CHAR;
	size_t at = 0, len = 0;

	do {
		r->before = c;
		at += len;
		c = NO_CHAR;
		if (at < text.len)
			c = pattern_char((struct slice){text.data + at, text.len - at}, &len);
		r->after = c;
		step(r, r->before);
		if (r->steps > PATTERN_STEPS)
			return err_set(e, ERR_LIMIT, "the pattern takes too many steps");
	} while (!r->found && c != NO_CHAR);
	return 0;
}

/* ---- Room ---- */

struct few {
	uint32_t met[PATTERN_FEW_PLACES];
	uint16_t lists[3 * PATTERN_FEW_PLACES];
};

static void
take_room(struct run *r, uint32_t *met, uint16_t *lists, size_t each)
{
	r->met = met;
	r->now = lists;
	r->next = lists + each;
	r->pending = lists + 2 * each;
	memset(r->met, 0, r->p->nplaces * sizeof(*r->met));
}

int
pattern_fits(const struct pattern *p, struct slice text, bool *fits, uint64_t *steps, struct err *e)
{
	struct run r = {.p = p, .steps = p->nplaces / PLACES_OF_STEP};
	size_t n = p->nplaces;
	uint32_t *met = NULL;
	struct few room;
	int rc;

	if (n <= PATTERN_FEW_PLACES) {
		take_room(&r, room.met, room.lists, PATTERN_FEW_PLACES);
	} else {
		met = calloc(n, sizeof(*met) + 3 * sizeof(uint16_t));
		if (met == NULL)
			return err_nomem(e);
		take_room(&r, met, (uint16_t *)(met + n), n);
	}
	rc = follow(&r, text, e);
	free(met);
	if (steps != NULL)
		*steps = r.steps;
	if (rc == 0)
		*fits = r.found;
	return rc;
}
