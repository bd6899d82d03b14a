/* Scalars, reference counts, positions, counters. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "value.h"

/*
 * Counting with two plain steps instead of a locked one: exact in one thread, which is all that
 * the tests of cost need, and free of data races in several.
 */
static _Atomic uint64_t nodes_made, values_made, nodes_visited;

static void
count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
	    memory_order_relaxed);
}

void
json_count_node(void)
{
	count(&nodes_made);
}

void
json_count_visit(void)
{
	count(&nodes_visited);
}

struct json_counters
json_counters(void)
{
	return (struct json_counters){
	    .nodes_made = atomic_load_explicit(&nodes_made, memory_order_relaxed),
	    .values_made = atomic_load_explicit(&values_made, memory_order_relaxed),
	    .nodes_visited = atomic_load_explicit(&nodes_visited, memory_order_relaxed),
	};
}

/* ---- memory ---- */

static void *
memory_of(struct json *v)
{
	return v->flags & F_POSITION ? (char *)v - sizeof(struct json_where) : (char *)v;
}

void *
json_alloc(enum json_type type, size_t size, const struct json_where *where)
{
	size_t before = where != NULL ? sizeof(*where) : 0;
	char *memory = slab_take(before + size);
	const bool slab = memory != NULL;
	struct json *v;

	if (!slab && (memory = malloc(before + size)) == NULL)
		return NULL;
	if (where != NULL)
		memcpy(memory, where, sizeof(*where));
	v = (struct json *)(void *)(memory + before);
	atomic_init(&v->refs, 1);
	v->type = (uint8_t)type;
	v->flags = (uint8_t)((where != NULL ? F_POSITION : 0) | (slab ? F_SLAB : 0));
	count(&values_made);
	/* cppcheck-suppress memleak ; it hangs on v, see memory_of() */
	return v;
}

void
json_free_memory(struct json *v)
{
	if (v->flags & F_SLAB)
		slab_free(memory_of(v));
	else
		free(memory_of(v));
}

struct text *
json_text_alloc(enum json_type type, size_t len, const struct json_where *where)
{
	struct text *t;

	if (len > UINT32_MAX - sizeof(*t) - 1)
		return NULL;
	t = json_alloc(type, sizeof(*t) + len + 1, where);
	if (t == NULL)
		return NULL;
	t->len = (uint32_t)len;
	t->data[len] = '\0';
	return t;
}

struct text *
json_text_trim(struct text *t, size_t len)
{
	enum { WORTH_IT = 32 };
	size_t saved = t->len - len;
	size_t before = t->head.flags & F_POSITION ? sizeof(struct json_where) : 0;
	char *memory;

	t->len = (uint32_t)len;
	t->data[len] = '\0';
	if (saved < WORTH_IT)
		return t;
	if (t->head.flags & F_SLAB) {
		slab_shorten(memory_of(&t->head), before + sizeof(*t) + len + saved + 1,
		    before + sizeof(*t) + len + 1);
		return t;
	}
	/* A block that cannot be made smaller is good as it is. */
	memory = realloc(memory_of(&t->head), before + sizeof(*t) + len + 1);
	return memory == NULL ? t : (struct text *)(void *)(memory + before);
}

/* ---- references ---- */

struct json *
json_ref(const struct json *v)
{
	struct json *w = writable(v);

	if (w != NULL && !(w->flags & F_IMMORTAL))
		atomic_fetch_add_explicit(&w->refs, 1, memory_order_relaxed);
	return w;
}

/* Whether the caller's reference was the last; then nobody else can see v any more. */
static bool
was_last(struct json *v)
{
	if (v->flags & F_IMMORTAL)
		return false;
	return atomic_load_explicit(&v->refs, memory_order_acquire) == 1 ||
	    atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) == 1;
}

void
json_drop(struct json *v, struct json **dead)
{
	if (v == NULL || !was_last(v))
		return;
	if (!is_container(v)) {
		json_free_memory(v);
		return;
	}
	((struct array *)(void *)v)->next_dead = *dead;
	*dead = v;
}

void
json_free_dead(struct json *dead)
{
	while (dead != NULL) {
		struct json *v = dead;
		struct array *a = (struct array *)(void *)v;

		dead = a->next_dead;
		seq_drop(a->root, &dead);
		if (v->type == JSON_OBJECT)
			trie_drop(((struct object *)(void *)v)->index);
		json_free_memory(v);
	}
}

void
json_unref(struct json *v)
{
	struct json *dead = NULL;

	json_drop(v, &dead);
	json_free_dead(dead);
}

/* ---- scalars ---- */

enum { SMALL_INTEGERS = 64 };

#define HEAD(t, f) {.refs = 2, .type = (t), .flags = F_IMMORTAL | (f)}

/* Never written, but not const: they are handed out as what any other value is. */
static struct json null_value = HEAD(JSON_NULL, 0);
static struct json false_value = HEAD(JSON_BOOL, 0);
static struct json true_value = HEAD(JSON_BOOL, F_TRUE);

#define N(n) {.head = HEAD(JSON_INTEGER, 0), .i = (n)}
#define N8(n) N(n), N((n) + 1), N((n) + 2), N((n) + 3), N((n) + 4), N((n) + 5), N((n) + 6), N((n) + 7)
static struct number small_integers[SMALL_INTEGERS] = {
    N8(0), N8(8), N8(16), N8(24), N8(32), N8(40), N8(48), N8(56)};

struct json *
json_null(void)
{
	return &null_value;
}

struct json *
json_bool(bool b)
{
	return b ? &true_value : &false_value;
}

struct json *
json_int(int64_t i)
{
	struct number *n;

	if (i >= 0 && i < SMALL_INTEGERS)
		return &small_integers[i].head;
	n = json_alloc(JSON_INTEGER, sizeof(*n), NULL);
	if (n == NULL)
		return NULL;
	n->i = i;
	return &n->head;
}

struct json *
json_uint(uint64_t u)
{
	char digits[24];
	int len;

	if (u <= INT64_MAX)
		return json_int((int64_t)u);
	len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)u);
	return json_read_integer((struct slice){digits, (size_t)len}, NULL);
}

struct json *
json_real(double d)
{
	struct number *n;

	if (!isfinite(d))
		return NULL;
	n = json_alloc(JSON_REAL, sizeof(*n), NULL);
	if (n == NULL)
		return NULL;
	n->d = d;
	return &n->head;
}

enum json_type
json_type(const struct json *v)
{
	return v == NULL ? JSON_NULL : (enum json_type)v->type;
}

const char *
json_type_name(const struct json *v)
{
	static const char *const names[] = {
	    "null", "boolean", "integer", "real", "string", "array", "object"};

	return v == NULL ? "nothing" : names[v->type];
}

bool
json_is_true(const struct json *v)
{
	return v != NULL && v->type == JSON_BOOL && (v->flags & F_TRUE);
}

bool
json_int64(const struct json *v, int64_t *out)
{
	if (v == NULL || v->type != JSON_INTEGER || (v->flags & F_BIG))
		return false;
	*out = number_of(v)->i;
	return true;
}

static bool
big_to_uint64(struct slice digits, uint64_t *out)
{
	uint64_t u = 0;
	size_t i;

	for (i = 0; i < digits.len; i++) {
		unsigned d = (unsigned)(digits.data[i] - '0');

		if (digits.data[i] == '-' || u > (UINT64_MAX - d) / 10)
			return false;
		u = u * 10 + d;
	}
	*out = u;
	return true;
}

bool
json_uint64(const struct json *v, uint64_t *out)
{
	int64_t i;

	if (v == NULL || v->type != JSON_INTEGER)
		return false;
	if (v->flags & F_BIG)
		return big_to_uint64(text_slice(v), out);
	i = number_of(v)->i;
	if (i < 0)
		return false;
	*out = (uint64_t)i;
	return true;
}

bool
json_double(const struct json *v, double *out)
{
	if (v == NULL || (v->type != JSON_INTEGER && v->type != JSON_REAL))
		return false;
	if (v->type == JSON_REAL)
		*out = number_of(v)->d;
	else if (v->flags & F_BIG)
		/* Digits and a sign only: no locale can read them otherwise. */
		*out = strtod(text_of(v)->data, NULL);
	else
		*out = (double)number_of(v)->i;
	return true;
}

/* ---- positions ---- */

bool
json_position(const struct json *v, struct json_where *where)
{
	if (v == NULL || !(v->flags & F_POSITION))
		return false;
	memcpy(where, (const char *)v - sizeof(*where), sizeof(*where));
	return true;
}

static size_t
size_of(const struct json *v)
{
	switch ((enum json_type)v->type) {
	case JSON_NULL:
	case JSON_BOOL:
		return sizeof(struct json);
	case JSON_REAL:
		return sizeof(struct number);
	case JSON_INTEGER:
		if (!(v->flags & F_BIG))
			return sizeof(struct number);
		return sizeof(struct text) + text_of(v)->len + 1;
	case JSON_STRING:
		return sizeof(struct text) + text_of(v)->len + 1;
	case JSON_ARRAY:
		return sizeof(struct array);
	case JSON_OBJECT:
		return sizeof(struct object);
	}
	return 0;
}

/* The same value in memory of its own, with a position. The content moves over if v is unique. */
static struct json *
move_to_position(struct json *v, const struct json_where *where)
{
	size_t size = size_of(v);
	struct json *to = json_alloc((enum json_type)v->type, size, where);

	if (to == NULL)
		return NULL;
	memcpy((char *)to + sizeof(struct json), (char *)v + sizeof(struct json),
	    size - sizeof(struct json));
	to->flags |= v->flags & (uint8_t)~(F_IMMORTAL | F_POSITION | F_SLAB);
	return to;
}

struct json *
json_set_position(struct json *v, struct json_where where)
{
	struct json *to;

	if (v == NULL)
		return NULL;
	assert(is_unique(v) || (v->flags & F_IMMORTAL));
	if (v->flags & F_POSITION) {
		memcpy((char *)v - sizeof(where), &where, sizeof(where));
		return v;
	}
	to = move_to_position(v, &where);
	if (to == NULL)
		json_unref(v);
	else if (!(v->flags & F_IMMORTAL))
		json_free_memory(v);
	return to;
}
