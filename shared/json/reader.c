/*
 * The reader: jsmn finds the tokens, everything else is checked here.
 *
 * 1. tokens.c says where the next string, word or container stands, but for what is wrong with it.
 * 2. read_text() goes through the text and the tokens side by side and builds the value. It looks
 *    at every byte between tokens itself, and into every token.
 *
 * Finished values wait on one stack (items) until their container closes; frames are the
 * containers that are open.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "scan.h"
#include "tokens.h"

enum {
	NAME_CACHE = 64,
	FIRST_ITEMS = 64,
	FIRST_FRAMES = 8,
	NAME_SHOWN = 60,
};

static const struct {
	const char *name;
	const char *text;
	enum err_code code;
} faults[] = {
    [JSON_OK] = {"ok", "no error", ERR_NONE},
    [JSON_FAULT_SYNTAX] = {"syntax", "syntax error", ERR_SYNTAX},
    [JSON_FAULT_UTF8] = {"invalid_utf8", "invalid UTF-8", ERR_SYNTAX},
    [JSON_FAULT_DUPLICATE] = {"duplicate_member", "member name appears twice", ERR_SYNTAX},
    [JSON_FAULT_NOT_FINITE] = {"not_finite", "number too large for a double", ERR_SYNTAX},
    [JSON_FAULT_DEPTH] = {"too_deep", "nested too deeply", ERR_LIMIT},
    [JSON_FAULT_SIZE] = {"too_large", "text too large", ERR_LIMIT},
    [JSON_FAULT_MANY] = {"too_many", "too many values", ERR_LIMIT},
    [JSON_FAULT_EMPTY] = {"empty", "no value", ERR_SYNTAX},
    [JSON_FAULT_TRUNCATED] = {"truncated", "text ends before the value does", ERR_SYNTAX},
    [JSON_FAULT_TRAILING] = {"trailing_text", "text after the value", ERR_SYNTAX},
    [JSON_FAULT_MEMORY] = {"out_of_memory", "out of memory", ERR_NOMEM},
};

const char *
json_fault_name(enum json_fault fault)
{
	return faults[fault].name;
}

/* A container that is not closed yet. */
struct frame {
	enum json_type type;
	size_t base; /* of its items on the stack */
	struct json_where where;
	uint64_t seen;	    /* one bit by name hash: not set, no such name so far */
	struct trie *index; /* once there are more than SMALL_OBJECT members */
	int64_t replace;    /* the member whose value the next value replaces, or NO_PLACE */
};

struct reader {
	struct scan in;
	size_t pos;
	struct tokens *tokens;
	const struct json_options *o;
	unsigned max_depth;

	struct json **item;
	size_t items, items_cap;
	struct frame *frame;
	size_t depth, frames_cap;
	struct json *name[NAME_CACHE];

	uint32_t line; /* of pos, kept up at every line feed between tokens */
	size_t line_start;
};

enum state { S_VALUE, S_FIRST_VALUE, S_NAME, S_FIRST_NAME, S_AFTER, S_DONE, S_FAULT };

/* ---- faults ---- */

static enum state
fault(struct reader *r, enum json_fault kind, size_t at, const char *detail)
{
	scan_fault(&r->in, kind, at, detail);
	return S_FAULT;
}

static enum state
syntax(struct reader *r, size_t at, const char *expected)
{
	scan_syntax(&r->in, at, expected);
	return S_FAULT;
}

static enum state
no_memory(struct reader *r)
{
	return fault(r, JSON_FAULT_MEMORY, r->pos, NULL);
}

/* Lines are counted only here, for the one place that is reported. */
static void
locate(struct json_where *where, const char *text)
{
	const char *p = text, *end = text + where->offset, *feed;

	where->line = 1;
	while (p < end && (feed = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		where->line++;
		p = feed + 1;
	}
	where->column = (uint32_t)(end - p) + 1;
}

/* The name that begins there as it is written, or its beginning. */
static struct slice
written_name(const struct reader *r, size_t at)
{
	struct slice name = {r->in.text + at, 1};

	while (at + name.len < r->in.len && name.len < NAME_SHOWN && name.data[name.len] != '"')
		name.len += name.data[name.len] == '\\' ? 2 : 1;
	if (at + name.len < r->in.len && name.data[name.len] == '"')
		name.len++;
	while (name.len > 1 && at + name.len < r->in.len && (name.data[name.len] & 0xc0) == 0x80)
		name.len--;
	return name;
}

static int
report(struct reader *r, struct json_failure *failure, struct err *e)
{
	const struct json_where *w = &r->in.failure.where;
	enum json_fault f = r->in.failure.fault;
	struct slice name;

	locate(&r->in.failure.where, r->in.text);
	if (failure != NULL)
		*failure = r->in.failure;
	if (f == JSON_FAULT_MEMORY)
		return err_nomem(e);
	if (f == JSON_FAULT_DEPTH)
		return err_set(e, faults[f].code, "line %u, column %u: nested more than %u deep",
		    w->line, w->column, r->max_depth);
	if (f == JSON_FAULT_DUPLICATE && r->o != NULL && r->o->tell_names) {
		name = written_name(r, w->offset);
		return err_set(e, faults[f].code, "line %u, column %u: the name %.*s stands here twice",
		    w->line, w->column, (int)name.len, name.data);
	}
	return err_set(e, faults[f].code, "line %u, column %u: %s%s%s", w->line, w->column,
	    faults[f].text, r->in.detail != NULL ? ": " : "", r->in.detail != NULL ? r->in.detail : "");
}

/* ---- between tokens ---- */

static void
skip_space(struct reader *r)
{
	for (; r->pos < r->in.len && scan_is_space(r->in.text[r->pos]); r->pos++)
		if (r->in.text[r->pos] == '\n') {
			r->line++;
			r->line_start = r->pos + 1;
		}
}

static bool
at_char(const struct reader *r, char c)
{
	return r->pos < r->in.len && r->in.text[r->pos] == c;
}

/* The position of `at`, which lies in the current line. NULL when positions are not kept. */
static const struct json_where *
here(const struct reader *r, size_t at, struct json_where *where)
{
	if (r->o == NULL || !r->o->positions)
		return NULL;
	*where = (struct json_where){at, r->line, (uint32_t)(at - r->line_start) + 1};
	return where;
}

/* The next token if it is of this type and starts here. */
static bool
take_token(struct reader *r, enum token_type type, size_t *end)
{
	if (tokens_take(r->tokens, type, r->pos, end))
		return true;
	if (tokens_failed(r->tokens))
		no_memory(r);
	return false;
}

/* ---- numbers and literals ---- */

static struct json *
new_literal(const struct literal *l, const struct json_where *where)
{
	struct json *v;

	if (where == NULL)
		return l->type == JSON_NULL ? json_null() : json_bool(l->truth);
	v = json_alloc(l->type, sizeof(*v), where);
	if (v != NULL && l->truth)
		v->flags |= F_TRUE;
	return v;
}

/* What stands where a value should, and is none behind its first `good` bytes. */
static void
no_value(struct reader *r, const char *p, size_t n, size_t good)
{
	size_t digit = n > 0 && p[0] == '-';
	bool number = digit < n && p[digit] >= '0' && p[digit] <= '9';

	syntax(r, r->pos + good, number ? "this does not belong in a number" :
	    n > 0 ? "expected a value; a text stands in double quotes" : "expected a value");
}

static struct json *
read_number(struct reader *r, const char *p, size_t n, const struct json_where *where)
{
	struct slice text = {p, n};
	bool whole, real, finite = true;
	size_t good = scan_number(p, n, &whole, &real);
	struct json *v;

	if (!whole || good < n) {
		no_value(r, p, n, good);
		return NULL;
	}
	v = real ? json_read_real(text, where, &finite) : json_read_integer(text, where);
	if (v == NULL && finite)
		no_memory(r);
	else if (v == NULL)
		fault(r, JSON_FAULT_NOT_FINITE, r->pos, NULL);
	return v;
}

static struct json *
read_word(struct reader *r)
{
	size_t end = r->in.len, agrees = 0;
	const bool found = take_token(r, TOKEN_WORD, &end);
	const char *p = r->in.text + r->pos;
	size_t n = end - r->pos;
	const struct literal *l = scan_literal(p, n, &agrees);
	struct json_where room;
	const struct json_where *where = here(r, r->pos, &room);
	struct json *v;

	/* Any other word that begins as one. */
	if (l != NULL && agrees == 1 && n > 1)
		l = NULL;
	if (l != NULL && (!found || agrees != n || l->text[agrees] != '\0')) {
		syntax(r, r->pos + agrees, "expected true, false or null");
		return NULL;
	}
	if (l == NULL && !found) {
		bool whole, real;

		no_value(r, p, n, scan_number(p, n, &whole, &real));
		return NULL;
	}
	v = l != NULL ? new_literal(l, where) : read_number(r, p, n, where);
	if (v == NULL && r->in.failure.fault == JSON_OK)
		no_memory(r);
	r->pos += n;
	return v;
}

/* ---- strings ---- */

/* The string whose closing quote stands at end. */
static struct json *
build_string(struct reader *r, size_t end)
{
	size_t from = r->pos + 1, len = 0;
	struct json_where room;
	const struct json_where *where = here(r, r->pos, &room);
	uint8_t flags = 0;
	struct text *s;

	if (from == end && where == NULL) {
		r->pos = end + 1;
		return json_string((struct slice){"", 0});
	}
	s = json_text_alloc(JSON_STRING, end - from, where);
	if (s == NULL) {
		no_memory(r);
		return NULL;
	}
	len = json_plain_copy(s->data, r->in.text + from, end - from);
	if (from + len == end)
		flags = F_PLAIN;
	else {
		size_t more = 0;

		if (scan_string(&r->in, from + len, end, s->data + len, &more, &flags) == -1) {
			json_free_memory(&s->head);
			return NULL;
		}
		s = json_text_trim(s, len + more);
	}
	s->head.flags |= flags;
	r->pos = end + 1;
	return &s->head;
}

static bool
take_string(struct reader *r, size_t *end)
{
	if (take_token(r, TOKEN_STRING, end))
		return true;
	scan_broken_string(&r->in, r->pos);
	return false;
}

static struct json *
read_string(struct reader *r)
{
	size_t end;

	return take_string(r, &end) ? build_string(r, end) : NULL;
}

/* ---- stacks ---- */

static int
push_item(struct reader *r, struct json *v)
{
	size_t cap;
	struct json **more;

	if (r->items == r->items_cap) {
		cap = r->items_cap == 0 ? FIRST_ITEMS : r->items_cap * 2;
		more = realloc(r->item, cap * sizeof(*more));
		if (more == NULL) {
			json_unref(v);
			no_memory(r);
			return -1;
		}
		r->item = more;
		r->items_cap = cap;
	}
	r->item[r->items++] = v;
	return 0;
}

static int
push_frame(struct reader *r, enum json_type type)
{
	struct json_where room = {0};
	struct frame *more;
	size_t cap;

	if (r->depth == r->frames_cap) {
		cap = r->frames_cap == 0 ? FIRST_FRAMES : r->frames_cap * 2;
		more = realloc(r->frame, cap * sizeof(*more));
		if (more == NULL) {
			no_memory(r);
			return -1;
		}
		r->frame = more;
		r->frames_cap = cap;
	}
	here(r, r->pos, &room);
	r->frame[r->depth++] = (struct frame){
	    .type = type, .base = r->items, .where = room, .replace = NO_PLACE};
	return 0;
}

/* ---- member names ---- */

static uint32_t
quick_hash(struct slice s)
{
	uint32_t first = 0, last = 0;

	if (s.len >= sizeof(first)) {
		memcpy(&first, s.data, sizeof(first));
		memcpy(&last, s.data + s.len - sizeof(last), sizeof(last));
	} else if (s.len > 0) {
		first = (unsigned char)s.data[0];
		last = (uint32_t)(unsigned char)s.data[s.len / 2] << 8 |
		    (unsigned char)s.data[s.len - 1];
	}
	return (first ^ last * 31 ^ (uint32_t)s.len) * 2654435761u >> 16;
}

/* Most names of a text come again and again; those are one value. */
static struct json *
read_name(struct reader *r, uint32_t *hash)
{
	bool positions = r->o != NULL && r->o->positions;
	struct json **slot, *v, *known;
	struct slice raw;
	size_t end;

	if (!take_string(r, &end))
		return NULL;
	raw = (struct slice){r->in.text + r->pos + 1, end - r->pos - 1};
	*hash = quick_hash(raw);
	slot = &r->name[*hash % NAME_CACHE];
	/* Only plain names get in, so an equal raw text is an equal name. */
	if (!positions && *slot != NULL && slice_eq(text_slice(*slot), raw)) {
		r->pos = end + 1;
		return json_ref(*slot);
	}
	v = build_string(r, end);
	if (v == NULL)
		return NULL;
	*hash = quick_hash(text_slice(v));
	if (positions || !(v->flags & F_PLAIN))
		return v;
	known = json_known_name(text_slice(v));
	if (known != NULL) {
		json_unref(v);
		v = known;
	}
	json_unref(*slot);
	*slot = json_ref(v);
	return v;
}

static size_t
members_of(const struct reader *r, const struct frame *f)
{
	return (r->items - f->base) / 2;
}

static struct slice
name_of(const struct reader *r, const struct frame *f, size_t member)
{
	return text_slice(r->item[f->base + 2 * member]);
}

static int64_t
find_indexed(const struct reader *r, const struct frame *f, struct slice name, uint32_t hash)
{
	struct trie_entries found = trie_find(f->index, hash);
	unsigned i;

	for (i = 0; i < found.count; i++)
		if (trie_entry_hash(found.entry[i]) == hash &&
		    slice_eq(name_of(r, f, trie_entry_place(found.entry[i])), name))
			return trie_entry_place(found.entry[i]);
	return NO_PLACE;
}

static int
index_member(struct reader *r, struct frame *f, size_t member, uint32_t hash)
{
	if (trie_add(&f->index, hash, (uint32_t)member) == 0)
		return 0;
	no_memory(r);
	return -1;
}

/* The first time that there are too many members to look at one after the other. */
static int
index_all(struct reader *r, struct frame *f)
{
	size_t i, members = members_of(r, f);

	for (i = 0; i < members; i++)
		if (index_member(r, f, i, trie_hash(name_of(r, f, i))) == -1)
			return -1;
	return 0;
}

/* The member of the open object that has this name, or NO_PLACE; `hash` when there is an index. */
static int64_t
find_member(const struct reader *r, const struct frame *f, struct slice name, uint32_t quick,
    uint32_t hash)
{
	size_t i, members = members_of(r, f);

	if (f->index != NULL)
		return find_indexed(r, f, name, hash);
	if (!(f->seen & UINT64_C(1) << (quick & 63)))
		return NO_PLACE;
	for (i = 0; i < members; i++)
		if (slice_eq(name_of(r, f, i), name))
			return (int64_t)i;
	return NO_PLACE;
}

static bool
may_repeat(const struct reader *r, struct slice name)
{
	if (r->o == NULL || !r->o->last_wins)
		return false;
	return r->depth > 1 || r->o->unique_top == NULL || !slice_is(name, r->o->unique_top);
}

static enum state
add_name(struct reader *r, struct json *name, uint32_t quick, size_t at)
{
	struct frame *f = &r->frame[r->depth - 1];
	size_t members = members_of(r, f);
	uint32_t hash = members >= SMALL_OBJECT ? trie_hash(text_slice(name)) : 0;
	int64_t before = find_member(r, f, text_slice(name), quick, hash);

	if (before != NO_PLACE) {
		bool fine = may_repeat(r, text_slice(name));

		json_unref(name);
		f->replace = before;
		return fine ? S_VALUE : fault(r, JSON_FAULT_DUPLICATE, at, NULL);
	}
	f->seen |= UINT64_C(1) << (quick & 63);
	if (members == SMALL_OBJECT && index_all(r, f) == -1) {
		json_unref(name);
		return S_FAULT;
	}
	if (push_item(r, name) == -1)
		return S_FAULT;
	if (members >= SMALL_OBJECT && index_member(r, f, members, hash) == -1)
		return S_FAULT;
	return S_VALUE;
}

/* ---- the states ---- */

static enum state
close_container(struct reader *r);

static enum state
read_member_name(struct reader *r, bool first)
{
	struct json *name;
	uint32_t quick = 0;
	enum state next;
	size_t at;

	skip_space(r);
	if (first && at_char(r, '}'))
		return close_container(r);
	if (!at_char(r, '"'))
		return syntax(r, r->pos, first ? "expected a member name or '}'" :
						 "expected a member name");
	at = r->pos;
	name = read_name(r, &quick);
	if (name == NULL)
		return S_FAULT;
	next = add_name(r, name, quick, at);
	if (next == S_FAULT)
		return next;
	skip_space(r);
	if (!at_char(r, ':'))
		return syntax(r, r->pos, "expected ':'");
	r->pos++;
	return next;
}

/* Puts a finished value where it belongs. */
static enum state
add_value(struct reader *r, struct json *v)
{
	struct frame *f = r->depth > 0 ? &r->frame[r->depth - 1] : NULL;
	struct json **old;

	if (v == NULL)
		return S_FAULT;
	if (f == NULL || f->replace == NO_PLACE)
		return push_item(r, v) == -1 ? S_FAULT : S_AFTER;
	old = &r->item[f->base + 2 * (size_t)f->replace + 1];
	f->replace = NO_PLACE;
	json_unref(*old);
	*old = v;
	return S_AFTER;
}

static enum state
close_container(struct reader *r)
{
	struct frame *f = &r->frame[r->depth - 1];
	size_t n = r->items - f->base;
	struct json **items = n > 0 ? &r->item[f->base] : NULL;
	bool positions = r->o != NULL && r->o->positions;
	struct json *v = json_build(f->type, items, f->type == JSON_OBJECT ? n / 2 : n, f->index,
	    positions ? &f->where : NULL);

	if (v == NULL)
		return no_memory(r);
	r->pos++;
	r->items = f->base;
	r->depth--;
	return add_value(r, v);
}

static enum state
open_container(struct reader *r, enum json_type type)
{
	if (r->depth == r->max_depth)
		return fault(r, JSON_FAULT_DEPTH, r->pos, NULL);
	if (!take_token(r, type == JSON_OBJECT ? TOKEN_OBJECT : TOKEN_ARRAY, NULL))
		return syntax(r, r->pos, "expected a value");
	if (push_frame(r, type) == -1)
		return S_FAULT;
	r->pos++;
	return type == JSON_OBJECT ? S_FIRST_NAME : S_FIRST_VALUE;
}

static bool
take_value(struct reader *r)
{
	size_t *left = r->o != NULL ? r->o->values_left : NULL;

	if (left == NULL)
		return true;
	if (*left == 0)
		return false;
	--*left;
	return true;
}

static enum state
read_value(struct reader *r, bool first)
{
	skip_space(r);
	if (r->pos == r->in.len)
		return syntax(r, r->pos, r->depth == 0 ? NULL : "expected a value");
	if (r->in.text[r->pos] != ']' && !take_value(r))
		return fault(r, JSON_FAULT_MANY, r->pos, NULL);
	switch (r->in.text[r->pos]) {
	case '{':
		return open_container(r, JSON_OBJECT);
	case '[':
		return open_container(r, JSON_ARRAY);
	case '"':
		return add_value(r, read_string(r));
	case ']':
		if (first)
			return close_container(r);
		return syntax(r, r->pos, "expected a value");
	default:
		return add_value(r, read_word(r));
	}
}

static enum state
read_separator(struct reader *r)
{
	bool object;

	if (r->depth == 0)
		return S_DONE;
	object = r->frame[r->depth - 1].type == JSON_OBJECT;
	skip_space(r);
	if (at_char(r, object ? '}' : ']'))
		return close_container(r);
	if (!at_char(r, ','))
		return syntax(r, r->pos, object ? "expected ',' or '}'" : "expected ',' or ']'");
	r->pos++;
	return object ? S_NAME : S_VALUE;
}

static enum state
read_text(struct reader *r)
{
	enum state s = S_VALUE;

	while (s < S_DONE) {
		if (s == S_VALUE || s == S_FIRST_VALUE)
			s = read_value(r, s == S_FIRST_VALUE);
		else if (s == S_AFTER)
			s = read_separator(r);
		else
			s = read_member_name(r, s == S_FIRST_NAME);
	}
	if (s == S_FAULT)
		return s;
	skip_space(r);
	if (r->pos < r->in.len)
		return fault(r, JSON_FAULT_TRAILING, r->pos, NULL);
	return s;
}

/* As read_text; what it makes lies together if that was asked for. */
static enum state
read_packed(struct reader *r)
{
	struct slab slab = {0};
	enum state s;

	if (r->o == NULL || !r->o->together)
		return read_text(r);
	slab_enter(&slab);
	s = read_text(r);
	slab_leave(&slab);
	return s;
}

/* ---- */

static void
clear_reader(struct reader *r)
{
	size_t i;

	for (i = 0; i < r->items; i++)
		json_unref(r->item[i]);
	for (i = 0; i < r->depth; i++)
		trie_drop(r->frame[i].index);
	for (i = 0; i < NAME_CACHE; i++)
		json_unref(r->name[i]);
	tokens_close(r->tokens);
	free(r->item);
	free(r->frame);
}

static bool
is_blank(struct slice text)
{
	size_t i = 0;

	while (i < text.len && scan_is_space(text.data[i]))
		i++;
	return i == text.len;
}

static enum state
start(struct reader *r, size_t max_bytes)
{
	if (r->in.len > max_bytes || r->in.len > INT_MAX)
		return fault(r, JSON_FAULT_SIZE, 0, NULL);
	if (is_blank((struct slice){r->in.text, r->in.len}))
		return fault(r, JSON_FAULT_EMPTY, 0, NULL);
	if (r->in.len >= 3 && memcmp(r->in.text, "\xef\xbb\xbf", 3) == 0)
		return fault(r, JSON_FAULT_SYNTAX, 0, "byte order mark");
	return S_VALUE;
}

int
json_parse(struct slice text, const struct json_options *o, struct json **out,
    struct json_failure *failure, struct err *e)
{
	struct reader r = {.in = {.text = text.data, .len = text.len}, .o = o, .line = 1};
	enum state s;

	r.max_depth = o != NULL && o->max_depth > 0 ? o->max_depth : JSON_MAX_DEPTH;
	s = start(&r, o != NULL && o->max_bytes > 0 ? o->max_bytes : JSON_MAX_DOCUMENT);
	if (s != S_FAULT) {
		r.tokens = tokens_open(text.data, text.len);
		s = r.tokens == NULL ? no_memory(&r) : read_packed(&r);
	}
	if (s == S_DONE) {
		*out = r.item[0];
		r.items = 0;
		if (failure != NULL)
			*failure = (struct json_failure){.fault = JSON_OK};
	}
	clear_reader(&r);
	return s == S_DONE ? 0 : report(&r, failure, e);
}
