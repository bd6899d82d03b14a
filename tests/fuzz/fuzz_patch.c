/*
 * Patches and differences. The input is one JSON array: its first element is a document, the
 * second another document, the third a patch. The difference of the documents must lead from one
 * to the other, rebasing must change nothing but identity, and a patch must apply wholly or leave
 * its document as it was.
 */
#include <stdint.h>
#include <stdlib.h>

#include "flowsup/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static struct json *
object_from(const struct json *v)
{
	return json_type(v) == JSON_OBJECT ? json_ref(v) :
					      json_set(json_object(), "v", v == NULL ? json_null() : json_ref(v));
}

static void
check_diff(const struct json *a, const struct json *b)
{
	struct json *patch = json_diff(a, b), *result = NULL, *rebased, *nothing;

	must(patch != NULL);
	must(json_equal(a, b) == (json_length(patch) == 0));
	must(json_patch(a, patch, &result, NULL) == 0);
	must(json_equal(result, b));
	rebased = json_rebase(a, json_ref(b));
	must(rebased != NULL && json_equal(rebased, b));
	nothing = json_diff(rebased, b);
	must(nothing != NULL && json_length(nothing) == 0);
	json_unref(nothing);
	json_unref(rebased);
	json_unref(result);
	json_unref(patch);
}

static void
check_patch(const struct json *a, const struct json *patch)
{
	struct buf before = {0}, after = {0};
	struct json *result = NULL;
	struct err e = {0};

	json_write(&before, a);
	if (json_patch(a, patch, &result, &e) == 0) {
		struct buf text = {0};
		struct json *again = NULL;

		/* What a patch makes must be readable. */
		json_write(&text, result);
		must(json_parse(buf_view(&text), NULL, &again, NULL, NULL) == 0);
		must(json_equal(again, result));
		check_diff(a, result);
		check_diff(result, a);
		buf_clear(&text);
		json_unref(again);
		json_unref(result);
	} else
		must(e.code == ERR_SYNTAX || e.code == ERR_REFUSED);
	json_write(&after, a);
	must(slice_eq(buf_view(&before), buf_view(&after)));
	buf_clear(&before);
	buf_clear(&after);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_options o = {.max_depth = 64};
	struct json *v = NULL, *a, *b;

	if (json_parse((struct slice){(const char *)data, size}, &o, &v, NULL, NULL) == -1)
		return -1;
	a = object_from(json_at(v, 0));
	b = object_from(json_at(v, 1));
	check_diff(a, b);
	check_diff(b, a);
	if (json_at(v, 2) != NULL)
		check_patch(a, json_at(v, 2));
	json_unref(a);
	json_unref(b);
	json_unref(v);
	return 0;
}
