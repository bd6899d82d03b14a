/*
 * The index of large objects: a trie over the 32-bit hash of the name, 4 bits a level, whose ends
 * are small unsorted buckets. Entries hold hash and place; the name itself stands in the tree. The
 * hash has a key of this process, so that nobody can choose names that meet in one bucket.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "value.h"

enum {
	BITS = 4,
	WAYS = 1 << BITS,
	HASH_BITS = 32,
	BUCKET = 16, /* entries before it is split, unless the hash has no bits left */
	FIRST = 4,
};

struct trie {
	atomic_uint refs;
	bool is_inner;
	uint32_t count, cap; /* of a bucket */
};

struct bucket {
	struct trie head;
	uint64_t entry[];
};

struct branch {
	struct trie head;
	struct trie *child[WAYS]; /* may be NULL */
};

/* ---- SipHash-2-4 ---- */

static uint64_t
rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static void
sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static void
sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
}

/* The kernel gives every program 16 random bytes at its start: getauxval(3), AT_RANDOM. Finding
 * them takes a search, whose result is the same for every thread. */
static const void *
random_bytes(void)
{
	static _Atomic uintptr_t found;
	uintptr_t at = atomic_load_explicit(&found, memory_order_relaxed);

	if (at == 0) {
		at = getauxval(AT_RANDOM);
		atomic_store_explicit(&found, at, memory_order_relaxed);
	}
	return (const void *)at;
}

static void
sip_start(uint64_t v[4])
{
	const void *random = random_bytes();
	uint64_t key[2] = {0, 0};

	if (random != NULL)
		memcpy(key, random, sizeof(key));
	v[0] = key[0] ^ UINT64_C(0x736f6d6570736575);
	v[1] = key[1] ^ UINT64_C(0x646f72616e646f6d);
	v[2] = key[0] ^ UINT64_C(0x6c7967656e657261);
	v[3] = key[1] ^ UINT64_C(0x7465646279746573);
}

uint32_t
trie_hash(struct slice name)
{
	uint64_t v[4], word, last = (uint64_t)name.len << 56;
	size_t i, left;

	sip_start(v);
	for (i = 0; i + sizeof(word) <= name.len; i += sizeof(word)) {
		memcpy(&word, name.data + i, sizeof(word));
		sip_word(v, word);
	}
	for (left = 0; i + left < name.len; left++)
		last |= (uint64_t)(unsigned char)name.data[i + left] << (8 * left);
	sip_word(v, last);
	v[2] ^= 0xff;
	for (i = 0; i < 4; i++)
		sip_round(v);
	return (uint32_t)(v[0] ^ v[1] ^ v[2] ^ v[3]);
}

/* ---- nodes ---- */

static struct bucket *
bucket_of(struct trie *t)
{
	return (struct bucket *)(void *)t;
}

static struct branch *
branch_of(struct trie *t)
{
	return (struct branch *)(void *)t;
}

static bool
unique_trie(struct trie *t)
{
	return atomic_load_explicit(&t->refs, memory_order_acquire) == 1;
}

void
trie_ref(struct trie *t)
{
	if (t != NULL)
		atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
}

/* Recurs as deep as the hash has digits. */
void
trie_drop(struct trie *t)
{
	unsigned i;

	if (t == NULL)
		return;
	if (!unique_trie(t) && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (t->is_inner)
		for (i = 0; i < WAYS; i++)
			trie_drop(branch_of(t)->child[i]);
	free(t);
}

static size_t
bucket_bytes(uint32_t cap)
{
	return sizeof(struct bucket) + cap * sizeof(uint64_t);
}

static struct bucket *
new_bucket(uint32_t cap)
{
	struct bucket *b = malloc(bucket_bytes(cap));

	if (b == NULL)
		return NULL;
	json_count_node();
	atomic_init(&b->head.refs, 1);
	b->head.is_inner = false;
	b->head.count = 0;
	b->head.cap = cap;
	return b;
}

static struct branch *
new_branch(void)
{
	struct branch *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	json_count_node();
	atomic_init(&b->head.refs, 1);
	b->head.is_inner = true;
	return b;
}

/* *slot becomes a bucket that may be written, with room for `cap` entries. */
static struct bucket *
own_bucket(struct trie **slot, uint32_t cap)
{
	struct bucket *old = bucket_of(*slot), *b;

	if (unique_trie(&old->head)) {
		if (cap <= old->head.cap)
			return old;
		cap = old->head.cap * 2;
		b = realloc(old, bucket_bytes(cap));
		if (b == NULL)
			return NULL;
		b->head.cap = cap;
		*slot = &b->head;
		return b;
	}
	b = new_bucket(cap > old->head.cap ? old->head.cap * 2 : old->head.cap);
	if (b == NULL)
		return NULL;
	memcpy(b->entry, old->entry, old->head.count * sizeof(b->entry[0]));
	b->head.count = old->head.count;
	trie_drop(&old->head);
	*slot = &b->head;
	return b;
}

static struct branch *
own_branch(struct trie **slot)
{
	struct branch *old = branch_of(*slot), *b;
	unsigned i;

	if (unique_trie(&old->head))
		return old;
	b = new_branch();
	if (b == NULL)
		return NULL;
	for (i = 0; i < WAYS; i++) {
		trie_ref(old->child[i]);
		b->child[i] = old->child[i];
	}
	trie_drop(&old->head);
	*slot = &b->head;
	return b;
}

/* ---- entries ---- */

static unsigned
way(uint32_t hash, int shift)
{
	return hash >> shift & (WAYS - 1);
}

struct trie_entries
trie_find(const struct trie *t, uint32_t hash)
{
	int shift = HASH_BITS - BITS;
	const struct bucket *b;

	for (; t != NULL && t->is_inner; shift -= BITS)
		t = ((const struct branch *)(const void *)t)->child[way(hash, shift)];
	if (t == NULL)
		return (struct trie_entries){NULL, 0};
	b = (const struct bucket *)(const void *)t;
	return (struct trie_entries){b->entry, b->head.count};
}

static int
push(struct trie **slot, uint64_t entry)
{
	struct bucket *b;

	if (*slot == NULL) {
		b = new_bucket(FIRST);
		if (b == NULL)
			return -1;
		*slot = &b->head;
	} else {
		b = own_bucket(slot, (*slot)->count + 1);
		if (b == NULL)
			return -1;
	}
	b->entry[b->head.count++] = entry;
	return 0;
}

static int
split(struct trie **slot, int shift)
{
	struct bucket *old = bucket_of(*slot);
	struct branch *b = new_branch();
	uint32_t i;

	if (b == NULL)
		return -1;
	for (i = 0; i < old->head.count; i++) {
		uint64_t entry = old->entry[i];

		if (push(&b->child[way(trie_entry_hash(entry), shift)], entry) == -1) {
			trie_drop(&b->head);
			return -1;
		}
	}
	trie_drop(&old->head);
	*slot = &b->head;
	return 0;
}

int
trie_add(struct trie **slot, uint32_t hash, uint32_t place)
{
	int shift = HASH_BITS - BITS;

	for (;;) {
		if (*slot != NULL && !(*slot)->is_inner && (*slot)->count >= BUCKET && shift >= 0)
			if (split(slot, shift) == -1)
				return -1;
		if (*slot == NULL || !(*slot)->is_inner)
			return push(slot, (uint64_t)hash << 32 | place);
		if (own_branch(slot) == NULL)
			return -1;
		slot = &branch_of(*slot)->child[way(hash, shift)];
		shift -= BITS;
	}
}

int
trie_remove(struct trie **slot, uint32_t hash, uint32_t place)
{
	uint64_t entry = (uint64_t)hash << 32 | place;
	int shift = HASH_BITS - BITS;
	struct bucket *b;
	uint32_t i;

	for (; *slot != NULL && (*slot)->is_inner; shift -= BITS) {
		if (own_branch(slot) == NULL)
			return -1;
		slot = &branch_of(*slot)->child[way(hash, shift)];
	}
	if (*slot == NULL)
		return 0;
	b = own_bucket(slot, 0);
	if (b == NULL)
		return -1;
	for (i = 0; i < b->head.count; i++)
		if (b->entry[i] == entry) {
			b->entry[i] = b->entry[--b->head.count];
			break;
		}
	return 0;
}
