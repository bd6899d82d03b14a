/* Reading a schema: every keyword is known, every operand makes sense, every reference ends. */
#include "schema.h"

#include <stdio.h>
#include <stdlib.h>

#include "flowsup/log.h"
#include "model.h"

struct schema_reader {
	struct reader *r;
	const struct json *root;
	unsigned depth;
};
typedef void read_operand(struct schema_reader *s, const char *keyword, const struct json *v);

static void read_schema_at(struct schema_reader *s, const char *keyword, const struct json *v);

/* ---- Operands ---- */

static const char *const type_names[] = {"null", "boolean", "integer", "number", "string", "array",
    "object"};
enum { TYPE_NAMES = sizeof(type_names) / sizeof(type_names[0]) };

static void
wrong(struct schema_reader *s, const char *keyword, const char *wanted, const struct json *v)
{
	problem(s->r, v, "schema: \"%s\" must be %s, not %s", keyword, wanted, found(v));
}

static void
read_type(struct schema_reader *s, const struct json *v)
{
	const char *text = json_cstr_of(v), *nearest;
	struct flow_diagnostic *p;
	size_t i;

	if (text == NULL) {
		wrong(s, "type", "the name of a type or a list of them", v);
		return;
	}
	for (i = 0; i < TYPE_NAMES; i++)
		if (strcmp(text, type_names[i]) == 0)
			return;
	p = problem(s->r, v, "schema: no value is of type \"%.80s\"", text);
	nearest = text_nearest(text, type_names, TYPE_NAMES);
	if (nearest != NULL)
		hint(p, "did you mean \"%s\"?", nearest);
	else
		hint(p, "types are null, boolean, integer, number, string, array, object");
}

static void
read_types(struct schema_reader *s, const char *keyword, const struct json *v)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;

	if (json_type(v) != JSON_ARRAY)
		read_type(s, v);
	else if (json_length(v) == 0)
		problem(s->r, v, "schema: \"%s\" is empty, so no value would fit", keyword);
	else
		while (json_next(&it, NULL, &item))
			read_type(s, item);
}

static void
read_choices(struct schema_reader *s, const char *keyword, const struct json *v)
{
	if (json_type(v) != JSON_ARRAY)
		wrong(s, keyword, "a list of values", v);
	else if (json_length(v) == 0)
		problem(s->r, v, "schema: \"%s\" is empty, so no value would fit", keyword);
}

static void
read_anything(struct schema_reader *s, const char *keyword, const struct json *v)
{
	(void)s;
	(void)keyword;
	(void)v;
}

static void
read_note(struct schema_reader *s, const char *keyword, const struct json *v)
{
	if (json_type(v) != JSON_STRING)
		wrong(s, keyword, "a text", v);
}

static void
read_truth(struct schema_reader *s, const char *keyword, const struct json *v)
{
	if (json_type(v) != JSON_BOOL)
		wrong(s, keyword, "true or false", v);
}

static void
read_count(struct schema_reader *s, const char *keyword, const struct json *v)
{
	int64_t count;

	if (json_type(v) != JSON_INTEGER)
		wrong(s, keyword, "an integer", v);
	else if (!json_int64(v, &count) || count < 0)
		problem(s->r, v, "schema: \"%s\" must not be negative, and fit 63 bits", keyword);
}

static void
read_bound(struct schema_reader *s, const char *keyword, const struct json *v)
{
	if (json_type(v) == JSON_INTEGER || json_type(v) == JSON_REAL)
		return;
	wrong(s, keyword, "a number", v);
}

static void
read_pattern(struct schema_reader *s, const char *keyword, const struct json *v)
{
	check_pattern(s->r, keyword, v);
}

static void
read_names(struct schema_reader *s, const char *keyword, const struct json *v)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;

	if (json_type(v) != JSON_ARRAY) {
		wrong(s, keyword, "a list of names", v);
		return;
	}
	while (json_next(&it, NULL, &item))
		if (json_type(item) != JSON_STRING)
			wrong(s, keyword, "a list of names", item);
}

/* ---- Schemas in schemas ---- */

static void
read_named(struct schema_reader *s, const char *keyword, const struct json *v)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;

	if (json_type(v) != JSON_OBJECT) {
		wrong(s, keyword, "an object of schemas", v);
		return;
	}
	while (json_next(&it, NULL, &item))
		read_schema_at(s, keyword, item);
}

static void
read_schemas(struct schema_reader *s, const char *keyword, const struct json *v)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;

	if (json_type(v) != JSON_ARRAY || json_length(v) == 0) {
		wrong(s, keyword, "a list of schemas with at least one",
		    v);
		return;
	}
	while (json_next(&it, NULL, &item))
		read_schema_at(s, keyword, item);
}

static void
read_definitions(struct schema_reader *s, const char *keyword, const struct json *v)
{
	if (json_get(s->root, keyword) != v)
		problem(s->r, v, "schema: \"%s\" stands only at the top of a schema", keyword);
	else if (json_length(v) > SCHEMA_DEFINITIONS)
		problem(s->r, v, "schema: more than %d schemas in \"%s\"", SCHEMA_DEFINITIONS, keyword);
	else
		read_named(s, keyword, v);
}

static const char *
nearest_definition(const struct json *defs, const char *name)
{
	const char *names[SCHEMA_DEFINITIONS];
	struct json_iter it = json_iterate(defs);
	const struct json *v;
	size_t n = 0;

	while (n < SCHEMA_DEFINITIONS && json_next(&it, NULL, &v)) {
		names[n] = json_cstr_of(json_iter_name(&it));
		n += names[n] != NULL;
	}
	return text_nearest(name, names, n);
}

/* "#" is the whole schema; everything else is a direct member of its $defs. */
static void
read_ref(struct schema_reader *s, const char *keyword, const struct json *v)
{
	static const char before[] = SCHEMA_DEFS;
	const char *text = json_cstr_of(v), *nearest;
	struct flow_diagnostic *p;

	if (text != NULL && strcmp(text, "#") == 0)
		return;
	if (text == NULL || strncmp(text, before, strlen(before)) != 0 ||
	    strchr(text + strlen(before), '/') != NULL) {
		hint(problem(s->r, v, "schema: \"%s\" leads into the schema's own \"$defs\" only",
			 keyword),
		    "write \"$ref\": \"#/$defs/NAME\"");
		return;
	}
	if (json_pointer_get(s->root, slice_of(text + 1), NULL) != NULL)
		return;
	p = problem(s->r, v, "schema: there is no %.80s", text);
	nearest = nearest_definition(json_get(s->root, "$defs"), text + strlen(before));
	if (nearest != NULL)
		hint(p, "did you mean %s%s?", before, nearest);
}

#define X(keyword, read, asks, types) {keyword, read},
static const struct {
	const char *name;
	read_operand *read;
} keywords[] = {SCHEMA_KEYWORDS(X)};
#undef X
enum { KEYWORDS = sizeof(keywords) / sizeof(keywords[0]) };

static void
unknown_keyword(struct schema_reader *s, const struct json *name)
{
	struct slice text = json_text(name);
	const char *names[KEYWORDS], *nearest;
	struct flow_diagnostic *p;
	char shown[81];
	size_t i;

	snprintf(shown, sizeof(shown), "%.*s", (int)(text.len > 80 ? 80 : text.len), text.data);
	for (i = 0; i < KEYWORDS; i++)
		names[i] = keywords[i].name;
	nearest = text_nearest(shown, names, KEYWORDS);
	p = problem(s->r, name, "schema: \"%s\" is no keyword that responses are asked by", shown);
	if (nearest != NULL)
		hint(p, "did you mean \"%s\"?", nearest);
	else
		hint(p, "man 5 flowsup-flow, SCHEMAS, lists them");
}

static void
read_member(struct schema_reader *s, const struct json *name, const struct json *v)
{
	size_t i;

	for (i = 0; i < KEYWORDS; i++) {
		if (!slice_is(json_text(name), keywords[i].name))
			continue;
		keywords[i].read(s, keywords[i].name, v);
		return;
	}
	unknown_keyword(s, name);
}

static void
read_schema_at(struct schema_reader *s, const char *keyword, const struct json *v)
{
	struct json_iter it = json_iterate(v);
	const struct json *operand;

	if (json_type(v) == JSON_BOOL)
		return;
	if (json_type(v) != JSON_OBJECT) {
		wrong(s, keyword, "a schema", v);
		return;
	}
	if (s->depth == SCHEMA_DEPTH) {
		problem(s->r, v, "schema: more than %d schemas in one another", SCHEMA_DEPTH);
		return;
	}
	s->depth++;
	while (json_next(&it, NULL, &operand))
		read_member(s, json_iter_name(&it), operand);
	s->depth--;
}

/* ---- References that never reach into the value ---- */

enum colour { UNSEEN, OPEN, DONE };
struct circles {
	struct schema_reader *s;
	const struct json *defs;
	unsigned char colours[SCHEMA_DEFINITIONS + 1]; /* of the whole schema, then of each in $defs */
	unsigned depth;
};

static void follow(struct circles *c, size_t place, const struct json *schema,
    const struct json *ref);

static void
follow_ref(struct circles *c, const struct json *ref)
{
	const char *text = json_cstr_of(ref);
	const struct json *wanted, *schema;
	struct json_iter it = json_iterate(c->defs);
	size_t place = 1;

	if (strcmp(text, "#") == 0) {
		follow(c, 0, c->s->root, ref);
		return;
	}
	wanted = json_pointer_get(c->s->root, slice_of(text + 1), NULL);
	for (; json_next(&it, NULL, &schema); place++)
		if (schema == wanted)
			follow(c, place, schema, ref);
}

/* What is asked of the same value. Schemas have at most SCHEMA_DEPTH in one another by now. */
static void
follow_inside(struct circles *c, const struct json *schema)
{
	static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
	const struct json *item;
	struct json_iter it;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (json_get(schema, lists[i]) == NULL)
			continue;
		it = json_iterate(json_get(schema, lists[i]));
		while (json_next(&it, NULL, &item))
			follow_inside(c, item);
	}
	if (json_get(schema, "not") != NULL)
		follow_inside(c, json_get(schema, "not"));
	if (json_get(schema, "$ref") != NULL)
		follow_ref(c, json_get(schema, "$ref"));
}

static void
follow(struct circles *c, size_t place, const struct json *schema, const struct json *ref)
{
	if (c->colours[place] == DONE)
		return;
	if (c->colours[place] == OPEN) {
		problem(c->s->r, ref, "schema: this \"$ref\" leads back to itself");
		return;
	}
	if (c->depth == SCHEMA_DEPTH) {
		problem(c->s->r, ref, "schema: more than %d references one behind the other",
		    SCHEMA_DEPTH);
		return;
	}
	c->colours[place] = OPEN;
	c->depth++;
	follow_inside(c, schema);
	c->depth--;
	c->colours[place] = DONE;
}

static void
check_circles(struct schema_reader *s)
{
	struct circles c = {.s = s, .defs = json_get(s->root, "$defs")};
	struct json_iter it = json_iterate(c.defs);
	const struct json *schema;
	size_t place = 1;

	follow(&c, 0, s->root, NULL);
	for (; c.defs != NULL && json_next(&it, NULL, &schema); place++)
		follow(&c, place, schema, schema);
}

void
read_schema(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct schema_reader s = {.r = r, .root = v};
	bool failed = r->failed;

	if (json_is_true(v)) /* every value fits it, as where there is none */
		return;
	if (json_type(v) != JSON_OBJECT) {
		read_json_object(r, k, v, to);
		return;
	}
	r->failed = false;
	read_schema_at(&s, k->name, v);
	if (!r->failed)
		check_circles(&s);
	r->failed = r->failed || failed;
	*(const struct json **)to = v;
}
