/*
 * The subset of JSON Schema that a document may demand of a response (flowsup-flow(5), SCHEMAS).
 * One list of keywords: schema.c knows what may stand behind each, schema_fits.c what each asks of
 * a value.
 */
#ifndef FLOWSUP_FLOW_SCHEMA_H
#define FLOWSUP_FLOW_SCHEMA_H

/* keyword, reader of its operand, question, types of the values it concerns; what has no question
 * only describes. */
#define SCHEMA_KEYWORDS(X)                                                                         \
	X("type", read_types, asks_type, ANY)                                                      \
	X("enum", read_choices, asks_enum, ANY)                                                    \
	X("const", read_anything, asks_const, ANY)                                                 \
	X("properties", read_named, asks_properties, OF(JSON_OBJECT))                              \
	X("required", read_names, asks_required, OF(JSON_OBJECT))                                  \
	X("additionalProperties", read_schema_at, asks_additional, OF(JSON_OBJECT))                \
	X("minProperties", read_count, asks_least_length, OF(JSON_OBJECT))                         \
	X("maxProperties", read_count, asks_most_length, OF(JSON_OBJECT))                          \
	X("items", read_schema_at, asks_items, OF(JSON_ARRAY))                                     \
	X("minItems", read_count, asks_least_length, OF(JSON_ARRAY))                               \
	X("maxItems", read_count, asks_most_length, OF(JSON_ARRAY))                                \
	X("uniqueItems", read_truth, asks_unique, OF(JSON_ARRAY))                                  \
	X("minLength", read_count, asks_least_length, OF(JSON_STRING))                             \
	X("maxLength", read_count, asks_most_length, OF(JSON_STRING))                              \
	X("pattern", read_pattern, asks_pattern, OF(JSON_STRING))                                  \
	X("minimum", read_bound, asks_bound, NUMBERS)                                              \
	X("maximum", read_bound, asks_bound, NUMBERS)                                              \
	X("exclusiveMinimum", read_bound, asks_bound, NUMBERS)                                     \
	X("exclusiveMaximum", read_bound, asks_bound, NUMBERS)                                     \
	X("allOf", read_schemas, asks_all, ANY)                                                    \
	X("anyOf", read_schemas, asks_any, ANY)                                                    \
	X("oneOf", read_schemas, asks_one, ANY)                                                    \
	X("not", read_schema_at, asks_not, ANY)                                                    \
	X("$ref", read_ref, asks_ref, ANY)                                                         \
	X("$defs", read_definitions, NULL, ANY)                                                    \
	X("$schema", read_note, NULL, ANY)                                                         \
	X("$comment", read_note, NULL, ANY)                                                        \
	X("title", read_note, NULL, ANY)                                                           \
	X("description", read_note, NULL, ANY)                                                     \
	X("default", read_anything, NULL, ANY)                                                     \
	X("examples", read_anything, NULL, ANY)

enum {
	SCHEMA_DEPTH = 32,	  /* schemas in one another, and references one behind the other */
	SCHEMA_DEFINITIONS = 256, /* in $defs */
	SCHEMA_FITS_DEPTH = 2048, /* questions in one another; a value has at most JSON_MAX_DEPTH */
	SCHEMA_STEPS = 1 << 25,	  /* questions in all: every second byte of the longest response */
	SCHEMA_PATTERN_STEPS = 16 /* of a pattern are a question */
};

#define SCHEMA_DEFS "#/$defs/"

#endif
