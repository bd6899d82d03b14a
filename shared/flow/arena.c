#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

enum { BLOCK_BYTES = 64 << 10, FIRST_SLOTS = 64, SMALL_TEXT = 256 };

struct arena_block {
	struct arena_block *next;
	alignas(max_align_t) char bytes[];
};

struct arena_held {
	struct arena_held *next;
	struct json *value;
};

struct intern_slot {
	const void *piece; /* NULL: free */
	size_t len;
	uint64_t hash;
};

static char *
add_block(struct arena *a, size_t size)
{
	struct arena_block *b;

	if (size > SIZE_MAX - sizeof(*b))
		return NULL;
	b = malloc(sizeof(*b) + size);
	if (b == NULL)
		return NULL;
	b->next = a->blocks;
	a->blocks = b;
	return b->bytes;
}

void *
arena_take(struct arena *a, size_t len)
{
	size_t size = (len + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	char *p;

	if (size < len)
		return NULL;
	if (size > BLOCK_BYTES / 4)
		return add_block(a, size);
	if (size > a->left) {
		p = add_block(a, BLOCK_BYTES);
		if (p == NULL)
			return NULL;
		a->next = p;
		a->left = BLOCK_BYTES;
	}
	p = a->next;
	a->next += size;
	a->left -= size;
	return p;
}

void *
arena_copy(struct arena *a, const void *bytes, size_t len)
{
	void *p = arena_take(a, len > 0 ? len : 1);

	if (p != NULL && len > 0)
		memcpy(p, bytes, len);
	return p;
}

int
arena_hold(struct arena *a, const struct json *value)
{
	struct arena_held *h = arena_take(a, sizeof(*h));

	if (h == NULL)
		return -1;
	h->value = json_ref(value);
	h->next = a->held;
	a->held = h;
	return 0;
}

void
arena_clear(struct arena *a)
{
	struct arena_held *h;
	struct arena_block *b, *next;

	for (h = a->held; h != NULL; h = h->next)
		json_unref(h->value);
	for (b = a->blocks; b != NULL; b = next) {
		next = b->next;
		free(b);
	}
	*a = (struct arena){0};
}

/*
 * As FNV-1a, but by words, for settings are large and mostly alike; so high bits are brought down. The table
 * holds a document's own words, and a bad spread costs only its author's time.
 */
static uint64_t
hash_of(const unsigned char *p, size_t len)
{
	uint64_t h = UINT64_C(14695981039346656037) ^ len, word;
	size_t i;

	for (i = 0; i < len; i += sizeof(word)) {
		word = 0;
		memcpy(&word, p + i, len - i < sizeof(word) ? len - i : sizeof(word));
		h = (h ^ word) * UINT64_C(1099511628211);
		h ^= h >> 32;
	}
	return h;
}

static struct intern_slot *
slot_for(struct intern_slot *slots, size_t cap, const void *bytes, size_t len, uint64_t hash)
{
	size_t i = (size_t)hash & (cap - 1);

	while (slots[i].piece != NULL && (slots[i].hash != hash || slots[i].len != len ||
	    memcmp(slots[i].piece, bytes, len) != 0))
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static int
grow(struct interned *t)
{
	size_t cap = t->cap ? 2 * t->cap : FIRST_SLOTS, i;
	struct intern_slot *slots = calloc(cap, sizeof(*slots));

	if (slots == NULL)
		return -1;
	for (i = 0; i < t->cap; i++)
		if (t->slots[i].piece != NULL)
			*slot_for(slots, cap, t->slots[i].piece, t->slots[i].len,
			    t->slots[i].hash) = t->slots[i];
	free(t->slots);
	t->slots = slots;
	t->cap = cap;
	return 0;
}

const void *
intern(struct interned *t, const void *bytes, size_t len)
{
	uint64_t hash = hash_of(bytes, len);
	struct intern_slot *slot;

	if (2 * t->used >= t->cap && grow(t) < 0)
		return NULL;
	slot = slot_for(t->slots, t->cap, bytes, len, hash);
	if (slot->piece != NULL)
		return slot->piece;
	slot->piece = arena_copy(t->arena, bytes, len);
	if (slot->piece == NULL)
		return NULL;
	slot->len = len;
	slot->hash = hash;
	t->used++;
	return slot->piece;
}

const char *
intern_text(struct interned *t, struct slice text)
{
	struct buf b = {0};
	const char *kept = NULL;
	char small[SMALL_TEXT];

	if (text.len < sizeof(small)) {
		if (text.len > 0)
			memcpy(small, text.data, text.len);
		small[text.len] = '\0';
		return intern(t, small, text.len + 1);
	}
	buf_slice(&b, text);
	if (!b.failed)
		kept = intern(t, buf_text(&b), text.len + 1);
	buf_clear(&b);
	return kept;
}

void
interned_clear(struct interned *t)
{
	free(t->slots);
	*t = (struct interned){0};
}
