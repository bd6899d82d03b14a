/* The two syntaxes of a flow document, read to one JSON value with positions. */
#ifndef FLOWSUP_FLOW_DOCUMENT_H
#define FLOWSUP_FLOW_DOCUMENT_H

#include "flowsup/flow.h"

enum {
	DOCUMENT_MAX_ANCHORS = 10000,
	DOCUMENT_MAX_EXPANDED = 1000000 /* values that aliases add */
};
#define DOCUMENT_MAX_EXPANDED_BYTES JSON_MAX_DOCUMENT

/*
 * Reads YAML 1.2 (core schema, one document, no tags but those of the schema) or JSON. Duplicate
 * names, names that are no strings, NUL, invalid UTF-8, nesting above JSON_MAX_DEPTH and texts above
 * JSON_MAX_DOCUMENT are refused. An alias is the anchored value itself, shared; how much aliases
 * may add is bounded. Merge keys mean nothing. On error -1 and *where says at which place (line 0:
 * the document as a whole); the message does not repeat it.
 */
int document_read(const struct flow_source *source, struct json **out, struct json_where *where,
    struct err *e);
/* The same, where a text with nothing in it, or only comments, is an object without members. */
int document_read_settings(const struct flow_source *source, struct json **out, struct json_where *where,
    struct err *e);

#endif
