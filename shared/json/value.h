/*
 * The inside of a JSON value, for the files of this directory only.
 *
 * A container is a small head and a tree of nodes. The tree is a B+ tree by position: leaves hold
 * elements (one pointer each) or members (name and value), inner nodes count what lies below each
 * child. Values and nodes have reference counts of their own, so versions of a container share
 * every node that no change passed through. A node may be written in place only when it and
 * everything above it up to the head has exactly one reference.
 *
 * An object of more than SMALL_OBJECT members has an index besides: a trie over a keyed hash of
 * the name, whose entries are positions in the tree. Positions must therefore stay, and a member
 * removed from such an object leaves an empty place until half of all places are empty.
 */
#ifndef FLOWSUP_JSON_VALUE_H
#define FLOWSUP_JSON_VALUE_H

#include <stdatomic.h>

#include "flowsup/json.h"
#include "slab.h"

enum {
	FAN = 32,	   /* children of an inner node, places of a leaf */
	SMALL_OBJECT = 16, /* members that are looked for one after the other */
	NO_PLACE = -1,
};

enum {
	F_IMMORTAL = 1, /* static or interned: never counted, never freed, never written */
	F_POSITION = 2, /* a struct json_where stands before the value */
	F_PLAIN = 4,	/* string: printable ASCII without " and \, so encoded as it is */
	F_LONE = 8,	/* string: holds a lone surrogate */
	F_NUL = 16,	/* string: holds a NUL */
	F_BIG = 32,	/* integer: a struct text of digits, too large for int64_t */
	F_TRUE = 64,
	F_SLAB = 128, /* its memory goes back to slab_free() */
};

struct json {
	atomic_uint refs;
	uint8_t type;
	uint8_t flags;
};

struct number {
	struct json head;
	union {
		int64_t i;
		double d;
	};
};

struct text {
	struct json head;
	uint32_t len;
	char data[]; /* and a NUL behind */
};

struct array {
	struct json head;
	union {
		struct {
			uint32_t used; /* places in the tree */
			uint32_t dead; /* of these, empty */
		};
		struct json *next_dead; /* while it waits to be freed */
	};
	struct node *root; /* NULL when there is no place */
};

struct object {
	struct array seq;
	struct trie *index; /* NULL up to SMALL_OBJECT members */
};

struct node {
	atomic_uint refs;
	unsigned height : 8; /* 0: a leaf */
	unsigned width : 2;  /* pointers per place: 1 or 2 */
	unsigned slab : 1;   /* its memory goes back to slab_free() */
	unsigned count : 8;
	unsigned cap : 8;
};

struct leaf {
	struct node head;
	struct json *item[]; /* a place that is empty holds NULL */
};

struct inner {
	struct node head;
	uint32_t end[FAN]; /* places in this child and all before it */
	struct node *child[FAN];
};

static inline bool
is_container(const struct json *v)
{
	return v != NULL && v->type >= JSON_ARRAY;
}

static inline bool
is_unique(const struct json *v)
{
	return !(v->flags & F_IMMORTAL) && atomic_load_explicit(&v->refs, memory_order_acquire) == 1;
}

/* Takes const off; only for values that is_unique() or for counting references. */
static inline struct json *
writable(const struct json *v)
{
	return (struct json *)(uintptr_t)v;
}

static inline const struct number *
number_of(const struct json *v)
{
	return (const struct number *)(const void *)v;
}

static inline const struct text *
text_of(const struct json *v)
{
	return (const struct text *)(const void *)v;
}

static inline const struct array *
array_of(const struct json *v)
{
	return (const struct array *)(const void *)v;
}

static inline const struct object *
object_of(const struct json *v)
{
	return (const struct object *)(const void *)v;
}

static inline struct slice
text_slice(const struct json *v)
{
	return (struct slice){text_of(v)->data, text_of(v)->len};
}

/* value.c */

void json_count_node(void);
void json_count_visit(void);
/* A value of `size` bytes with one reference, of which the head is filled in; with the position
 * before it when where is not NULL. */
void *json_alloc(enum json_type type, size_t size, const struct json_where *where);
void json_free_memory(struct json *v);
/* A string of len bytes that the caller fills in; flags too. */
struct text *json_text_alloc(enum json_type type, size_t len, const struct json_where *where);
/* Gives back what behind len was not needed. */
struct text *json_text_trim(struct text *t, size_t len);
/* Takes one reference away; a container that dies is linked to *dead. */
void json_drop(struct json *v, struct json **dead);
void json_free_dead(struct json *dead);
/* number.c */

/* Both take the text of a number of correct grammar; NULL when memory runs out. *finite is false
 * when a real is too large for a double; then nothing is returned. */
struct json *json_read_integer(struct slice digits, const struct json_where *where);
struct json *json_read_real(struct slice digits, const struct json_where *where, bool *finite);
enum { NUMBER_MAX = 40 };
size_t json_format_real(double d, char out[NUMBER_MAX]);

/* utf8.c */

/* How many bytes from p on need no thought: printable ASCII except \ (and "). */
size_t json_plain_run(const char *p, size_t n);
/* The same, copying them; up to n bytes of `to` are written even if fewer count. */
size_t json_plain_copy(char *to, const char *p, size_t n);
size_t json_utf8_put(char *to, uint32_t c);

/* seq.c: the trees. A root may be NULL, which is the empty tree. */

size_t seq_size(const struct node *n);
void seq_ref(struct node *n);
void seq_drop(struct node *n, struct json **dead);
/* The leaf that holds place `at` and the number of its first place. */
const struct leaf *seq_find(const struct node *root, size_t at, size_t *first);
/* The pointers at place `at`, which may be written; NULL when memory runs out. */
struct json **seq_edit(struct node **root, size_t at);
/* Puts `width` pointers before place `at`. 0, or -1: the items are dropped, *root is a valid tree
 * of unknown content. */
int seq_insert(struct node **root, size_t at, unsigned width, struct json *const *item);
int seq_erase(struct node **root, size_t at);
/* A tree of n places; the items are taken over on success only. */
int seq_build(struct node **root, unsigned width, struct json *const *items, size_t n);
/*
 * How many places from `at` on, counted from the start (or from the end when `back`), are held by
 * the same nodes or by the same pointers in both trees.
 */
size_t seq_same(const struct node *a, const struct node *b, size_t at, bool back);

/* index.c */

struct trie;
struct trie_entries {
	const uint64_t *entry;
	unsigned count;
};

uint32_t trie_hash(struct slice name);
static inline uint32_t
trie_entry_hash(uint64_t entry)
{
	return (uint32_t)(entry >> 32);
}
static inline uint32_t
trie_entry_place(uint64_t entry)
{
	return (uint32_t)entry;
}
/* All entries with this hash are among these. */
struct trie_entries trie_find(const struct trie *root, uint32_t hash);
/* 0, or -1 when memory ran out; *root is a valid trie either way. */
int trie_add(struct trie **root, uint32_t hash, uint32_t place);
int trie_remove(struct trie **root, uint32_t hash, uint32_t place);
void trie_ref(struct trie *t);
void trie_drop(struct trie *t);

/* container.c */

/* Takes n elements, or n members as name, value, name, value; on failure (NULL) the caller still
 * owns them. The index (may be NULL when n <= SMALL_OBJECT) must hold places 0 to n-1. */
struct json *json_build(enum json_type type, struct json *const *items, size_t n,
    struct trie *index, const struct json_where *where);
/* The place of a member, or NO_PLACE. */
int64_t json_place(const struct json *object, struct slice name);
/* The places of a container, empty ones included, and what is there. */
size_t json_places(const struct json *container);
struct json *const *json_at_place(const struct json *container, size_t place);
/* Makes *container unshared and returns the pointers at `place`, which may then be written. */
struct json **json_edit_place(struct json **container, size_t place);

/* string.c: names of members */

/* The interned name (not counted), or NULL when there is none. */
struct json *json_known_name(struct slice name);
/* A string for this name, interned if it is known. */
struct json *json_name(struct slice name);
/* The same for a name that the program's text holds: interned from now on if it can be. */
struct json *json_intern_name(struct slice name);

/* writer.c */

/* Length of the encoding, or limit + 1 as soon as it is longer than limit. */
size_t json_encoded_length_to(const struct json *v, size_t limit);

#endif
