/* From templates to the words of a command. */
#include <stdlib.h>

#include "provider_private.h"

const char *const place_words[PLACE_COUNT] = {
#define X(name, word) word,
    PROVIDER_PLACES(X)
#undef X
};

enum { PLACE_LONGEST = 16 };

int
place_at(const char *text, enum provider_place *place)
{
	size_t len = strspn(text + 1, "abcdefghijklmnopqrstuvwxyz0123456789_");
	unsigned i;

	/* A brace before anything but a word in braces is a brace: JSON in an argument stays, and so does a{3}. */
	if (len == 0 || text[1] < 'a' || text[1] > 'z' || len > PLACE_LONGEST || text[1 + len] != '}')
		return 0;
	for (i = 0; i < PLACE_COUNT; i++)
		if (slice_is((struct slice){text + 1, len}, place_words[i])) {
			*place = (enum provider_place)i;
			return (int)len + 2;
		}
	return -1;
}

int
provider_expand(const struct provider *p, const char *text, const struct provider_values *values,
    struct buf *to, struct err *e)
{
	enum provider_place place;
	int n;

	while (*text != '\0') {
		n = *text == '{' ? place_at(text, &place) : 0;
		if (n <= 0) {
			buf_putc(to, *text++);
			continue;
		}
		if (values->at[place] == NULL)
			return err_set(e, ERR_DOCUMENT, "provider %s: {%s} has no value here", p->name,
			    place_words[place]);
		buf_puts(to, values->at[place]);
		text += n;
	}
	return buf_ok(to, e);
}

static int
add_word(struct provider_words *out, const struct provider *p, const char *text,
    const struct provider_values *values, struct err *e)
{
	size_t from = out->text.len;

	if (provider_expand(p, text, values, &out->text, e) != 0)
		return -1;
	if (out->text.len - from > PROVIDER_MAX_ARGUMENT) {
		err_set(e, ERR_LIMIT, "provider %s: a word of the command has more than %zu bytes", p->name,
		    PROVIDER_MAX_ARGUMENT);
		return err_advice(e, "a provider whose \"prompt\" is stdin or file takes a text of any length");
	}
	buf_putc(&out->text, '\0');
	out->count++;
	return buf_ok(&out->text, e);
}

static int
add_args(struct provider_words *out, const struct json *args, struct err *e)
{
	struct json_iter it = json_iterate(args);
	const struct json *item;
	const char *text;

	while (json_next(&it, NULL, &item)) {
		text = json_cstr_of(item);
		if (text == NULL)
			return err_set(e, ERR_DOCUMENT, "an argument of the role is no text");
		buf_add(&out->text, text, strlen(text) + 1);
		out->count++;
	}
	return buf_ok(&out->text, e);
}

/* Whether everything that the group stands for is there. */
static bool
has_values(const struct json *group, const struct provider_values *values)
{
	struct json_iter it = json_iterate(group);
	const struct json *item;
	enum provider_place place;
	const char *text;
	int n;

	while (json_next(&it, NULL, &item))
		for (text = json_cstr_of(item); *text != '\0'; text += n > 0 ? n : 1) {
			n = *text == '{' ? place_at(text, &place) : 0;
			if (n > 0 && values->at[place] == NULL)
				return false;
		}
	return true;
}

static int
add_group(struct provider_words *out, const struct provider *p, const struct json *group,
    const struct provider_values *values, struct err *e)
{
	struct json_iter it = json_iterate(group);
	const struct json *item;

	if (!has_values(group, values))
		return 0;
	while (json_next(&it, NULL, &item))
		if (add_word(out, p, json_cstr_of(item), values, e) != 0)
			return -1;
	return 0;
}

int
provider_words(const struct provider *p, const struct json *argv,
    const struct provider_values *values, struct provider_words *out, struct err *e)
{
	struct json_iter it = json_iterate(argv);
	const struct json *item;
	int rc;

	*out = (struct provider_words){0};
	while (json_next(&it, NULL, &item)) {
		if (json_type(item) == JSON_ARRAY)
			rc = add_group(out, p, item, values, e);
		else if (slice_is(json_text(item), "{args}"))
			rc = add_args(out, values->args, e);
		else
			rc = add_word(out, p, json_cstr_of(item), values, e);
		if (rc != 0) {
			provider_words_clear(out);
			return -1;
		}
	}
	return 0;
}

char **
provider_words_list(const struct provider_words *w)
{
	char **list = calloc(w->count + 1, sizeof(*list)), *at = w->text.data;
	size_t i;

	for (i = 0; list != NULL && i < w->count; i++) {
		list[i] = at;
		at += strlen(at) + 1;
	}
	return list;
}

void
provider_words_clear(struct provider_words *w)
{
	buf_clear(&w->text);
	w->count = 0;
}

/* ---- What is no instruction ---- */

int
provider_takes(const struct provider *p, struct slice instruction, struct err *e)
{
	struct json_iter it = json_iterate(p->commands);
	const struct json *one;
	struct slice begin;

	if (p->instruction_most > 0 && instruction.len > p->instruction_most)
		return err_set(e, ERR_LIMIT, "the instruction has %zu bytes, and %s reads %llu", instruction.len, p->name,
		    (unsigned long long)p->instruction_most);
	while (instruction.len > 0 && strchr(" \t\r\n", instruction.data[0]) != NULL && instruction.data[0] != '\0') {
		instruction.data++;
		instruction.len--;
	}
	while (json_next(&it, NULL, &one)) {
		begin = json_text(one);
		if (instruction.len < begin.len || memcmp(instruction.data, begin.data, begin.len) != 0)
			continue;
		err_set(e, ERR_DOCUMENT, "the instruction begins with \"%s\", which %s takes for a command of its own",
		    begin.data, p->name);
		return err_advice(e, "words before it");
	}
	return 0;
}
