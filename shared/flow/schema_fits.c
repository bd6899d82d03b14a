/* Asking a value by a schema that read_schema() has found good. */
#include "schema.h"

#include <stdio.h>
#include <stdlib.h>

#include "flowsup/flow.h"
#include "model.h"
#include "pattern.h"

enum { POINTER_SHOWN = 200 };

/* A pattern is read when it is first met and serves every text of the response. */
struct compiled {
	const struct json *text;
	struct pattern *pattern;
};

struct asking {
	const struct json *root;
	struct buf at;	/* the pointer of the value that is asked */
	struct buf why; /* the first violation */
	unsigned quiet; /* inside a choice: a violation there need not be one of the whole */
	unsigned depth;
	uint32_t steps;
	struct compiled *patterns;
	size_t npatterns;
	bool broken; /* with e: no answer */
	struct err *e;
};
/* operand is what stands behind the keyword in schema. */
typedef bool asks(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value);

static bool fits(struct asking *a, const struct json *schema, const struct json *value);

static bool __attribute__((format(printf, 2, 3)))
violated(struct asking *a, const char *fmt, ...)
{
	size_t len = a->at.len;
	va_list ap;

	if (a->quiet > 0 || a->broken || a->why.len > 0)
		return false;
	buf_printf(&a->why, "at \"%.*s%s\": ", (int)(len > POINTER_SHOWN ? POINTER_SHOWN : len),
	    buf_text(&a->at), len > POINTER_SHOWN ? "..." : "");
	va_start(ap, fmt);
	buf_vprintf(&a->why, fmt, ap);
	va_end(ap);
	return false;
}

static bool
broken(struct asking *a, int already_set)
{
	(void)already_set;
	a->broken = true;
	return false;
}

/* ---- Any value ---- */

static bool
is_whole(const struct json *value)
{
	double d = 0.5;

	return json_type(value) == JSON_INTEGER ||
	    (json_type(value) == JSON_REAL && json_double(value, &d) && d >= -1e15 && d <= 1e15 &&
		(double)(int64_t)d == d);
}

static bool
is_of_type(const char *name, const struct json *value)
{
	static const char *const names[] = {[JSON_NULL] = "null", [JSON_BOOL] = "boolean",
	    [JSON_INTEGER] = "number", [JSON_REAL] = "number", [JSON_STRING] = "string",
	    [JSON_ARRAY] = "array", [JSON_OBJECT] = "object"};

	if (strcmp(name, "integer") == 0)
		return is_whole(value);
	return strcmp(name, names[json_type(value)]) == 0;
}

/* The i-th of the names, NULL behind the last: one name may stand without a list. */
static const char *
type_name(const struct json *operand, size_t i)
{
	if (json_type(operand) == JSON_ARRAY)
		return i < json_length(operand) ? json_cstr_of(json_at(operand, i)) : NULL;
	return i == 0 ? json_cstr_of(operand) : NULL;
}

static bool
asks_type(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	struct buf wanted = {0};
	const char *name;
	size_t i;

	(void)schema;
	(void)keyword;
	for (i = 0; (name = type_name(operand, i)) != NULL; i++)
		if (is_of_type(name, value))
			return true;
	if (a->quiet > 0)
		return false;
	for (i = 0; (name = type_name(operand, i)) != NULL; i++)
		buf_printf(&wanted, "%s%s", i > 0 ? " or " : "", name);
	violated(a, "is %s, and the type must be %s", found(value), buf_text(&wanted));
	buf_clear(&wanted);
	return false;
}

/* Less, equal, greater as -1, 0, 1. */
static int
compare_numbers(const struct json *x, const struct json *y)
{
	double dx = 0, dy = 0;
	int64_t ix, iy;

	if (json_int64(x, &ix) && json_int64(y, &iy))
		return ix < iy ? -1 : ix > iy;
	(void)json_double(x, &dx);
	(void)json_double(y, &dy);
	return dx < dy ? -1 : dx > dy;
}

static bool
asks_enum(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	struct json_iter it = json_iterate(operand);
	const struct json *item;

	(void)schema;
	while (json_next(&it, NULL, &item))
		if (json_same(item, value))
			return true;
	if (json_length(operand) == 1)
		return violated(a, "is not the value of \"%s\"", keyword);
	return violated(a, "is none of the %zu values of \"%s\"", json_length(operand), keyword);
}

static bool
asks_const(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	(void)schema;
	return json_same(operand, value) || violated(a, "is not the value of \"%s\"", keyword);
}

static bool
asks_all(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	struct json_iter it = json_iterate(operand);
	const struct json *item;

	(void)schema;
	(void)keyword;
	while (json_next(&it, NULL, &item))
		if (!fits(a, item, value))
			return false;
	return true;
}

/* How many of the schemas fit, counted up to `enough`. */
static unsigned
count_fitting(struct asking *a, const struct json *schemas, const struct json *value,
    unsigned enough)
{
	struct json_iter it = json_iterate(schemas);
	const struct json *item;
	unsigned n = 0;

	a->quiet++;
	while (n < enough && !a->broken && json_next(&it, NULL, &item))
		n += fits(a, item, value);
	a->quiet--;
	return n;
}

static bool
fits_none(struct asking *a, const char *keyword, const struct json *operand)
{
	if (json_length(operand) == 1)
		return violated(a, "does not fit the schema of \"%s\"", keyword);
	return violated(a, "fits none of the %zu schemas of \"%s\"", json_length(operand), keyword);
}

static bool
asks_any(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	(void)schema;
	return count_fitting(a, operand, value, 1) == 1 || fits_none(a, keyword, operand);
}

static bool
asks_one(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	unsigned n = count_fitting(a, operand, value, 2);

	(void)schema;
	if (n == 1)
		return !a->broken;
	return n == 0 ? fits_none(a, keyword, operand)
	    : violated(a, "fits more than one of the %zu schemas of \"%s\"", json_length(operand), keyword);
}

static bool
asks_not(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	bool does;

	(void)schema;
	a->quiet++;
	does = fits(a, operand, value);
	a->quiet--;
	return (!does && !a->broken) || violated(a, "fits the schema of \"%s\"", keyword);
}

static bool
asks_ref(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	const char *text = json_cstr_of(operand);

	(void)schema;
	(void)keyword;
	return fits(a, json_pointer_get(a->root, slice_of(text + 1), NULL), value);
}

/* ---- Lengths and numbers ---- */

static uint64_t
length_of(const struct json *value)
{
	struct slice text = json_text(value);
	uint64_t characters = 0;
	size_t i;

	if (json_type(value) != JSON_STRING)
		return json_length(value);
	for (i = 0; i < text.len; i++)
		characters += ((unsigned char)text.data[i] & 0xc0) != 0x80;
	return characters;
}

static bool
asks_least_length(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	uint64_t length = length_of(value), least = 0;

	(void)schema;
	(void)json_uint64(operand, &least);
	return length >= least || violated(a, "has %llu, and \"%s\" is %llu",
	    (unsigned long long)length, keyword, (unsigned long long)least);
}

static bool
asks_most_length(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	uint64_t length = length_of(value), most = 0;

	(void)schema;
	(void)json_uint64(operand, &most);
	return length <= most || violated(a, "has %llu, and \"%s\" is %llu",
	    (unsigned long long)length, keyword, (unsigned long long)most);
}

static bool
asks_bound(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	bool exclusive = keyword[0] == 'e', lower = strstr(keyword, "inimum") != NULL;
	int order = compare_numbers(value, operand);
	struct buf bound = {0};

	(void)schema;
	if ((lower ? order > 0 : order < 0) || (order == 0 && !exclusive))
		return true;
	json_write(&bound, operand);
	violated(a, "is beyond the \"%s\" of %.40s", keyword, buf_text(&bound));
	buf_clear(&bound);
	return false;
}

static const struct pattern *
pattern_of(struct asking *a, const struct json *text)
{
	struct compiled *more;
	size_t i;

	for (i = 0; i < a->npatterns; i++)
		if (a->patterns[i].text == text)
			return a->patterns[i].pattern;
	more = reallocarray(a->patterns, a->npatterns + 1, sizeof(*more));
	if (more == NULL)
		return NULL;
	a->patterns = more;
	more[i].text = text;
	/* It was read with the document, so only memory can be missing. */
	if (pattern_new(json_cstr_of(text), PATTERN_MAX_PLACES, &more[i].pattern, NULL) != 0)
		return NULL;
	a->npatterns++;
	return more[i].pattern;
}

static bool
asks_pattern(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	const struct pattern *pattern = pattern_of(a, operand);
	uint64_t steps;
	bool does;

	(void)schema;
	if (pattern == NULL)
		return broken(a, err_nomem(a->e));
	if (pattern_fits(pattern, pattern_beginning(json_text(value), FLOW_MAX_MATCH), &does, &steps, a->e) != 0)
		return broken(a, err_wrap(a->e, "at \"%.*s\": \"%s\"", POINTER_SHOWN, buf_text(&a->at), keyword));
	a->steps += (uint32_t)(steps / SCHEMA_PATTERN_STEPS);
	return does ||
	    violated(a, "does not match the \"%s\" \"%.80s\"", keyword, json_text(operand).data);
}

/* ---- Containers ---- */

static bool
fits_below(struct asking *a, struct slice token, const struct json *schema,
    const struct json *value)
{
	size_t len = a->at.len;
	bool does;

	json_pointer_add(&a->at, token);
	if (a->at.failed)
		return broken(a, err_nomem(a->e));
	does = fits(a, schema, value);
	a->at.len = len;
	a->at.data[len] = '\0';
	return does;
}

/* Each item, of which the first has this index. */
static bool
fit_from(struct asking *a, const struct json *schema, const struct json *items, size_t index)
{
	struct json_iter it = json_iterate(items);
	const struct json *item;
	char token[24];

	for (; json_next(&it, NULL, &item); index++) {
		snprintf(token, sizeof(token), "%zu", index);
		if (!fits_below(a, slice_of(token), schema, item))
			return false;
	}
	return true;
}

static bool
asks_items(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	(void)schema;
	(void)keyword;
	return fit_from(a, operand, value, 0);
}

static bool
asks_properties(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	struct json_iter it = json_iterate(operand);
	const struct json *item, *member;
	struct slice name;

	(void)schema;
	(void)keyword;
	while (json_next(&it, &name, &item)) {
		member = json_getn(value, name);
		if (member != NULL && !fits_below(a, name, item, member))
			return false;
	}
	return true;
}

static bool
asks_required(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	struct json_iter it = json_iterate(operand);
	const struct json *name;

	(void)schema;
	while (json_next(&it, NULL, &name))
		if (json_getn(value, json_text(name)) == NULL)
			return violated(a, "the member \"%.80s\" is missing, which is \"%s\"",
			    json_text(name).data, keyword);
	return true;
}

static bool
asks_additional(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	const struct json *named = json_get(schema, "properties");
	struct json_iter it = json_iterate(value);
	const struct json *member;
	struct slice name;

	(void)keyword;
	while (json_next(&it, &name, &member))
		if (json_getn(named, name) == NULL && !fits_below(a, name, operand, member))
			return false;
	return true;
}

/* ---- Unique items: sorted by a digest, so that only neighbours are compared ---- */

struct item {
	uint64_t digest;
	const struct json *value;
};

static uint64_t
mix(uint64_t digest, struct slice bytes)
{
	size_t i;

	for (i = 0; i < bytes.len; i++)
		digest = (digest ^ (unsigned char)bytes.data[i]) * UINT64_C(0x100000001b3);
	return digest;
}

/* Equal values have equal digests. A container's is its length and its scalars': their order does
 * not matter, and containers deeper in it count by their length alone. */
static uint64_t
digest_of(const struct json *value, bool inside)
{
	struct json_iter it = json_iterate(value);
	const struct json *item;
	struct slice name;
	uint64_t sum = json_length(value) + (uint64_t)json_type(value);
	double d;

	if (json_double(value, &d)) {
		d = d == 0 ? 0 : d; /* -0.0 */
		return mix(1, (struct slice){(const char *)&d, sizeof(d)});
	}
	if (json_type(value) == JSON_STRING)
		return mix(2, json_text(value));
	if (json_type(value) == JSON_BOOL)
		return json_is_true(value) ? 3 : 4;
	while (!inside && json_next(&it, &name, &item))
		sum += mix(digest_of(item, true), name);
	return sum;
}

static int
compare_items(const void *x, const void *y)
{
	uint64_t a = ((const struct item *)x)->digest, b = ((const struct item *)y)->digest;

	return a < b ? -1 : a > b;
}

static bool
are_unique(struct asking *a, struct item *items, size_t n)
{
	size_t i, k;

	qsort(items, n, sizeof(*items), compare_items);
	for (i = 0; i < n && !a->broken; i++)
		for (k = i + 1; k < n && items[k].digest == items[i].digest; k++) {
			if (json_same(items[i].value, items[k].value))
				return false;
			if (++a->steps > SCHEMA_STEPS)
				return broken(a, err_set(a->e, ERR_LIMIT,
				    "its items are too much alike to be compared by its schema"));
		}
	return true;
}

static bool
asks_unique(struct asking *a, const struct json *schema, const char *keyword,
    const struct json *operand, const struct json *value)
{
	struct json_iter it = json_iterate(value);
	size_t n = json_length(value), i;
	struct item *items;
	bool unique;

	(void)schema;
	if (!json_is_true(operand) || n < 2)
		return true;
	items = calloc(n, sizeof(*items));
	if (items == NULL)
		return broken(a, err_nomem(a->e));
	for (i = 0; i < n && json_next(&it, NULL, &items[i].value); i++)
		items[i].digest = digest_of(items[i].value, false);
	unique = are_unique(a, items, n);
	free(items);
	return unique || violated(a, "holds equal items, and \"%s\" is true", keyword);
}

/* ---- A schema ---- */

#define OF(type) (1u << (type))
#define ANY (~0u)
#define NUMBERS (OF(JSON_INTEGER) | OF(JSON_REAL))
#define X(keyword, read, asks, types) {keyword, asks, types},
static const struct {
	const char *name;
	asks *ask;
	unsigned types;
} questions[] = {SCHEMA_KEYWORDS(X)};
#undef X

static bool
ask(struct asking *a, const struct json *schema, struct slice name, const struct json *operand,
    const struct json *value)
{
	size_t i;

	for (i = 0; !slice_is(name, questions[i].name); i++)
		;
	if (questions[i].ask == NULL || !(questions[i].types & OF(json_type(value))))
		return true;
	return questions[i].ask(a, schema, questions[i].name, operand, value);
}

static bool
fits(struct asking *a, const struct json *schema, const struct json *value)
{
	struct json_iter it = json_iterate(schema);
	const struct json *operand;
	struct slice name;
	bool does = true;

	if (a->broken)
		return false;
	if (++a->steps > SCHEMA_STEPS || a->depth == SCHEMA_FITS_DEPTH)
		return broken(a, err_set(a->e, ERR_LIMIT, "it is too %s to be asked by its schema",
		    a->depth == SCHEMA_FITS_DEPTH ? "deep" : "large"));
	if (json_type(schema) == JSON_BOOL)
		return json_is_true(schema) || violated(a, "nothing may stand here");
	a->depth++;
	while (does && json_next(&it, &name, &operand))
		does = ask(a, schema, name, operand, value);
	a->depth--;
	return does;
}

static int
verdict(struct asking *a, bool does)
{
	if (a->broken)
		return -1;
	if (does)
		return 0;
	if (buf_ok(&a->why, a->e) < 0)
		return -1;
	return err_set(a->e, ERR_DOCUMENT, "%s", buf_text(&a->why));
}

static void
asking_clear(struct asking *a)
{
	size_t i;

	for (i = 0; i < a->npatterns; i++)
		pattern_free(a->patterns[i].pattern);
	free(a->patterns);
	buf_clear(&a->at);
	buf_clear(&a->why);
}

int
flow_schema_fits_lines(const struct flow_how *how, const struct json *lines, size_t first,
    struct err *e)
{
	struct asking a = {.root = how->schema, .e = e};
	int rc;

	if (how->schema == NULL)
		return 0;
	rc = verdict(&a, fit_from(&a, how->schema, lines, first));
	asking_clear(&a);
	return rc;
}

int
flow_schema_fits(const struct flow_how *how, const struct json *response, struct err *e)
{
	struct asking a = {.root = how->schema, .e = e};
	int rc;

	if (how->schema == NULL)
		return 0;
	if (how->response == FLOW_RESPONSE_JSONL)
		return flow_schema_fits_lines(how, response, 0, e);
	rc = verdict(&a, fits(&a, how->schema, response));
	asking_clear(&a);
	return rc;
}
