/*
 * JSON values: immutable, reference-counted, with structural sharing; the strict reader (RFC 8259);
 * the writer; pointers (RFC 6901); and the patch subset and differences of two versions.
 *
 * Reference counts are atomic: a value may be shared between threads. A value is never changed
 * once more than one reference to it exists; functions that "change" a value make a new root that
 * shares everything else with the old one.
 *
 * Ownership. A `struct json *` parameter is consumed, a `const struct json *` is borrowed, and a
 * returned `struct json *` is owned by the caller. Functions that build return NULL when memory
 * runs out and take NULL for "an earlier step failed": then they free what they were given and
 * return NULL. So a whole object is built without a check and looked at once:
 *
 *	o = json_set(json_object(), "op", json_cstr("build"));
 *	o = json_set(o, "attempt", json_int(1));
 *	if (o == NULL)
 *		return err_nomem(e);
 */
#ifndef FLOWSUP_JSON_H
#define FLOWSUP_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"

struct json;

enum json_type {
	JSON_NULL,
	JSON_BOOL,
	JSON_INTEGER, /* exact, of any length */
	JSON_REAL,    /* had a fraction or an exponent; a finite double */
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT
};

struct json *json_ref(const struct json *v);
void json_unref(struct json *v); /* NULL is harmless; iterative, whatever the depth */
/* How many containers stand in one another: 0 for a scalar, 1 for [] and {}. A result above `most`
 * says only that; nothing below is looked at. */
unsigned json_depth(const struct json *v, unsigned most);

struct json *json_null(void);
struct json *json_bool(bool b);
struct json *json_int(int64_t i);
struct json *json_uint(uint64_t u);
struct json *json_real(double d); /* NULL also for NaN and infinity */
/* Text must be UTF-8, where a lone surrogate may stand as its three bytes; else NULL. */
struct json *json_string(struct slice text);
struct json *json_cstr(const char *text);
struct json *json_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Any bytes: what is not UTF-8 becomes U+FFFD, and *replaced (may be NULL) says whether. */
struct json *json_string_lossy(struct slice bytes, bool *replaced);
struct json *json_text_or_null(const char *text); /* lossy; null for NULL and "" */
struct json *json_array(void);
struct json *json_object(void);

enum json_type json_type(const struct json *v);
const char *json_type_name(const struct json *v); /* "string", "integer", ... for messages */
bool json_is_true(const struct json *v);	  /* NULL is not */
/* True and *out when v is an integer (never a real or bool) that fits. NULL does not fit. */
bool json_int64(const struct json *v, int64_t *out);
bool json_uint64(const struct json *v, uint64_t *out);
/* True and *out when v is an integer or real; an integer is rounded to the nearest double. */
bool json_double(const struct json *v, double *out);
/* The decoded bytes of a string, borrowed; an empty slice with NULL data for anything else. May
 * hold NUL. */
struct slice json_text(const struct json *v);
/* The same NUL-terminated, or NULL when v is no string or holds a NUL or a lone surrogate. */
const char *json_cstr_of(const struct json *v);
bool json_has_lone_surrogate(const struct json *v);

/* Elements of an array, members of an object, 0 otherwise. */
size_t json_length(const struct json *v);
/* Borrowed, NULL when absent or v is of another type (or NULL). O(log n) at worst. */
const struct json *json_at(const struct json *array, size_t index);
const struct json *json_get(const struct json *object, const char *name);
const struct json *json_getn(const struct json *object, struct slice name);
/* The first element that is this text, or with `name` whose member of that name is it. O(n). */
const struct json *json_find(const struct json *array, const char *name, const char *text);

/* Members in insertion order, elements in order. it is valid while the container is held. */
struct json_iter {
	const struct json *container;
	size_t position;
	const void *leaf; /* private */
	size_t leaf_end;  /* private */
};
struct json_iter json_iterate(const struct json *container);
/* name may be NULL; for elements *name is an empty slice. False at the end. Amortised O(1). */
bool json_next(struct json_iter *it, struct slice *name, const struct json **value);
/* The name of the member that json_next returned last, as a JSON string with its position. */
const struct json *json_iter_name(const struct json_iter *it);

/* A member is replaced in place or added at the end. A removed one leaves the order of the rest. */
struct json *json_set(struct json *object, const char *name, struct json *value);
struct json *json_setn(struct json *object, struct slice name, struct json *value);
struct json *json_remove(struct json *object, struct slice name); /* absent: unchanged */
struct json *json_append(struct json *array, struct json *value);
struct json *json_put(struct json *array, size_t index, struct json *value); /* index < length */
struct json *json_insert(struct json *array, size_t index, struct json *value); /* <= length */
struct json *json_erase(struct json *array, size_t index);

/* Deep equality; 1, 1.0 and true are three different values; member order does not count. Stops
 * where both sides are the same node. */
bool json_equal(const struct json *a, const struct json *b);
/* The same, but numbers are equal by their exact value, everywhere: 1 and 1.0, 0 and -0.0. What
 * people compare by. */
bool json_same(const struct json *a, const struct json *b);

/* ---- Reading ---- */

enum {
	JSON_MAX_DEPTH = 512,
};
#define JSON_MAX_DOCUMENT ((size_t)16 << 20)
#define JSON_MAX_REQUEST ((size_t)1 << 20)
#define JSON_MAX_RESPONSE ((size_t)64 << 20)
#define JSON_MAX_RESPONSE_VALUES ((size_t)1000000) /* in memory about 128 bytes each */
#define JSON_MAX_LINE ((size_t)256 << 20)
#define JSON_MAX_PROGRAM ((size_t)1 << 30)

/* Where a text went wrong, or where a value stood: 1-based line and column (in bytes). */
struct json_where {
	size_t offset;
	uint32_t line;
	uint32_t column;
};

/* Why a text was refused; the code is stable and goes into reports. */
enum json_fault {
	JSON_OK,
	JSON_FAULT_SYNTAX,
	JSON_FAULT_UTF8,
	JSON_FAULT_DUPLICATE,
	JSON_FAULT_NOT_FINITE,
	JSON_FAULT_DEPTH,
	JSON_FAULT_SIZE,
	JSON_FAULT_MANY,
	JSON_FAULT_EMPTY,
	JSON_FAULT_TRUNCATED, /* ends before the value does */
	JSON_FAULT_TRAILING,
	JSON_FAULT_MEMORY
};

struct json_options {
	size_t max_bytes;	/* 0: JSON_MAX_DOCUMENT */
	unsigned max_depth;	/* 0: JSON_MAX_DEPTH */
	bool last_wins;		/* duplicates: the last member counts (version 2 files) */
	const char *unique_top; /* with last_wins: this top-level name is refused twice all the same */
	bool together;		/* the values will be kept and dropped as a whole: pack them */
	bool positions;		/* keep json_where of every value and member name */
	bool tell_names;	/* an error may hold a name of the text, which is no payload */
	size_t *values_left;	/* how many values may still come, this text's are taken off; NULL: any */
};

struct json_failure {
	enum json_fault fault;
	struct json_where where;
};

/*
 * Reads one JSON text. The only reader of this program (RFC 8259; no byte order mark, no duplicate
 * names, nothing behind the value but white space). o and failure may be NULL. On error -1,
 * *failure says where, and e is ERR_SYNTAX, ERR_LIMIT or ERR_NOMEM with a message that begins
 * "line L, column C: ". Input never drives recursion; time is linear in text.len.
 */
int json_parse(struct slice text, const struct json_options *o, struct json **out,
    struct json_failure *failure, struct err *e);
const char *json_fault_name(enum json_fault fault); /* "duplicate_member", ... */

/* Where a value (or member name) of a text read with `positions` stood. */
bool json_position(const struct json *v, struct json_where *where);
/* For readers of other syntaxes (YAML): sets the position of a value nobody else holds yet. */
struct json *json_set_position(struct json *v, struct json_where where);
/* As json_setn with a name that is a string value (consumed): a new member keeps this very value
 * as its name, with its position. */
struct json *json_set_named(struct json *object, struct json *name, struct json *value);

/* ---- Writing ---- */

/* Appends the canonical encoding: compact, members in order, everything but printable ASCII as
 * \uXXXX (with \" \\ \b \f \n \r \t), reals in the shortest form that reads back the same. */
void json_write(struct buf *to, const struct json *v);
/* The same for people: two spaces of indentation, UTF-8 kept, control characters escaped. */
void json_write_pretty(struct buf *to, const struct json *v);
/* Appends `text` as a quoted, escaped JSON string. */
void json_write_string(struct buf *to, struct slice text);
/* Length that json_write would append; SIZE_MAX when memory runs out, which takes a value nested
 * deeper than JSON_MAX_DEPTH. */
size_t json_encoded_length(const struct json *v);

/* ---- Characters of texts: UTF-8, RFC 3629 ---- */

/* The character at p, n > 0, and its length; -1 when it is no UTF-8, with the length of what can
 * be thrown away. Surrogates are -1 as well. */
int32_t json_utf8_next(const char *p, size_t n, size_t *len);
/* A surrogate in the three bytes it would have if it were a character, as lone ones have in texts of values;
 * or -1. */
int32_t json_surrogate_next(const char *p, size_t n);

/* ---- Pointers, RFC 6901 ---- */

/* Borrowed, NULL with ERR_SYNTAX (bad pointer) or ERR_NOTFOUND. */
const struct json *json_pointer_get(const struct json *root, struct slice pointer, struct err *e);
/* Appends "/" and the token escaped (~0, ~1). */
void json_pointer_add(struct buf *pointer, struct slice token);

/* ---- Patches: the strict subset of RFC 6902 that flowsup-checkpoint(5) describes ---- */

/*
 * Applies an array of operations to root, wholly or not at all: *out is a new value, or -1 with
 * ERR_SYNTAX (not of the subset), ERR_REFUSED (does not apply, or path and value together are
 * deeper than JSON_MAX_DEPTH) or ERR_NOMEM, the message naming the operation's index. root is
 * borrowed.
 */
int json_patch(const struct json *root, const struct json *operations, struct json **out,
    struct err *e);
/*
 * The operations that lead from one object to another, as a JSON array; both borrowed. Work is
 * proportional to what changed where both are versions of one value: equal nodes are not entered.
 * A container below the root in which so much changed that its replacement is shorter is replaced.
 */
struct json *json_diff(const struct json *from, const struct json *to);
/* `to` with every subtree that equals its counterpart in `from` replaced by from's node. Consumes
 * `to`, borrows `from`. O(total). Members keep the order they have in `from`, new ones come last:
 * as after the patch. */
struct json *json_rebase(const struct json *from, struct json *to);

/* ---- Counters, for tests of algorithmic cost; per process, not reset by the library ---- */
struct json_counters {
	uint64_t nodes_made;	/* containers' inner nodes and leaves that were copied or made */
	uint64_t values_made;	/* values allocated */
	uint64_t nodes_visited; /* nodes entered by json_diff */
};
struct json_counters json_counters(void);

#endif
