/*
 * A schema and values. The input is one JSON array: the first element is a schema, the others are
 * responses. A schema that a document may hold gives an answer for every value, and the same again
 * after the document was written and read.
 */
#include <stdint.h>
#include <stdlib.h>

#include "flowsup/flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct json *
document_with(const struct json *schema)
{
	struct json *op = json_set(json_object(), "id", json_cstr("a"));

	op = json_set(op, "run", json_cstr("x"));
	op = json_set(op, "response", json_cstr("json"));
	op = json_set(op, "schema", json_ref(schema));
	return json_set(json_object(), "plan", json_append(json_array(), op));
}

static int
ask(const struct flow *f, const struct json *value)
{
	struct err e = {0};

	if (flow_schema_fits(f->ops[0].how, value, &e) == 0)
		return 1;
	if (e.code == ERR_DOCUMENT && e.msg[0] != '\0')
		return 0;
	if (e.code != ERR_LIMIT)
		abort();
	return -1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_options o = {.max_depth = 64};
	struct flow *f = NULL, *again = NULL;
	struct json *v = NULL, *document;
	struct err e = {0};
	size_t i;

	if (size > 4096 || json_parse((struct slice){(const char *)data, size}, &o, &v, NULL, NULL) < 0)
		return -1;
	document = json_at(v, 0) == NULL ? NULL : document_with(json_at(v, 0));
	if (document == NULL || flow_from_document(document, &f, &e) < 0) {
		json_unref(document);
		json_unref(v);
		return 0;
	}
	if (flow_from_document(f->document, &again, &e) < 0)
		abort();
	for (i = 1; i < json_length(v); i++)
		if (ask(f, json_at(v, i)) != ask(again, json_at(v, i)))
			abort();
	flow_free(f);
	flow_free(again);
	json_unref(document);
	json_unref(v);
	return 0;
}
