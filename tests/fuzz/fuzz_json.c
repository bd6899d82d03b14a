/*
 * The JSON reader and writer on any bytes. What is accepted must come back from its own canonical
 * encoding as an equal value, with that encoding, and of the announced length; what is refused
 * must say why and where.
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

static void
check_refusal(struct slice text, const struct json_failure *failure, const struct err *e)
{
	must(failure->fault != JSON_OK);
	must(failure->where.offset <= text.len);
	must(failure->where.line >= 1 && failure->where.column >= 1);
	must(e->code == ERR_SYNTAX || e->code == ERR_LIMIT);
	must(strncmp(e->msg, "line ", 5) == 0);
}

static void
check_again(const struct json *v, void (*write)(struct buf *, const struct json *), bool canonical)
{
	struct buf first = {0}, second = {0};
	struct json *again = NULL;

	write(&first, v);
	must(json_parse(buf_view(&first), NULL, &again, NULL, NULL) == 0);
	must(json_equal(v, again) && json_equal(again, v));
	write(&second, again);
	must(slice_eq(buf_view(&first), buf_view(&second)));
	must(!canonical || json_encoded_length(v) == first.len);
	json_unref(again);
	buf_clear(&first);
	buf_clear(&second);
}

/* Every way to read must agree on what is JSON; last_wins only takes duplicates besides. */
static void
check_modes(struct slice text, const struct json *v)
{
	struct json_options loose = {.last_wins = true}, positions = {.positions = true},
			    together = {.together = true};
	struct json *other = NULL;

	if (json_parse(text, &loose, &other, NULL, NULL) == 0) {
		must(v == NULL || json_equal(v, other));
		json_unref(other);
	} else
		must(v == NULL);
	if (json_parse(text, &together, &other, NULL, NULL) == 0) {
		must(v != NULL && json_equal(v, other));
		json_unref(other);
	} else
		must(v == NULL);
	if (json_parse(text, &positions, &other, NULL, NULL) == 0) {
		struct json_where where;

		must(v != NULL && json_equal(v, other) && json_position(other, &where));
		json_unref(other);
	} else
		must(v == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	struct json_failure failure = {.fault = JSON_OK};
	struct json *v = NULL;
	struct err e = {0};

	if (json_parse(text, NULL, &v, &failure, &e) == 0) {
		check_again(v, json_write, true);
		check_again(v, json_write_pretty, false);
	} else
		check_refusal(text, &failure, &e);
	check_modes(text, v);
	json_unref(v);
	return 0;
}
