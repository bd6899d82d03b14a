/* The keys of a provider's file: objects by tables of keys, and values that stand alone. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"
#include "provider_keys.h"

enum { KEYS_MOST = 32 };

/* ---- Problems ---- */

int
key_refuse(struct source *s, const struct json *at, const char *fmt, ...)
{
	struct json_where where = {0};
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (at != NULL && json_position(at, &where))
		return err_set(s->e, ERR_DOCUMENT, "%s:%u:%u: %s", s->file, (unsigned)where.line,
		    (unsigned)where.column, text);
	return err_set(s->e, ERR_DOCUMENT, "%s: %s", s->file, text);
}

int
key_wrong_type(struct source *s, const struct key *k, const struct json *v, const char *wanted)
{
	return key_refuse(s, v, "\"%s\" must be %s, not %s", k->name, wanted, json_type_name(v));
}

int
key_members(struct source *s, const struct key *k, const struct json *v, enum json_type type,
    const char *what, size_t least, size_t most)
{
	char wanted[64];

	if (json_type(v) != type) {
		snprintf(wanted, sizeof(wanted), "%s of %s", type == JSON_ARRAY ? "a list" : "an object", what);
		return key_wrong_type(s, k, v, wanted);
	}
	if (json_length(v) < least)
		return key_refuse(s, v, "\"%s\" has no %s", k->name, what);
	if (json_length(v) > most)
		return key_refuse(s, v, "\"%s\" has %zu %s, and may have at most %zu", k->name, json_length(v), what,
		    most);
	return 0;
}

int
key_unknown(struct source *s, const char *what, const struct json *at, const char *const *names,
    size_t n)
{
	struct slice name = json_text(at);
	char shown[81];
	const char *nearest;

	snprintf(shown, sizeof(shown), "%.*s", (int)(name.len > 80 ? 80 : name.len), name.data);
	key_refuse(s, at, "%s \"%s\"", what, shown);
	nearest = text_nearest(shown, names, n);
	if (nearest != NULL)
		err_advice(s->e, "did you mean \"%s\"?", nearest);
	return -1;
}

static int
unknown_key(struct source *s, const struct table *t, const struct json *name)
{
	const char *names[KEYS_MOST];
	char what[96];
	size_t i;

	for (i = 0; i < t->count; i++)
		names[i] = t->keys[i].name;
	snprintf(what, sizeof(what), "%s has no key", t->what);
	return key_unknown(s, what, name, names, t->count);
}

int
keys_read(struct source *s, const struct table *t, const struct json *v, void *to)
{
	struct json_iter it = json_iterate(v);
	const struct json *value;
	struct slice name;
	bool seen[KEYS_MOST] = {false};
	size_t i;

	if (json_type(v) != JSON_OBJECT)
		return key_refuse(s, v, "%s must be an object, not %s", t->what, json_type_name(v));
	while (json_next(&it, &name, &value)) {
		for (i = 0; i < t->count && !slice_is(name, t->keys[i].name); i++)
			;
		if (i == t->count)
			return unknown_key(s, t, json_iter_name(&it));
		seen[i] = true;
		if (t->keys[i].read(s, &t->keys[i], value, (char *)to + t->keys[i].offset) != 0)
			return -1;
	}
	for (i = 0; i < t->count; i++)
		if (t->keys[i].required && !seen[i])
			return key_refuse(s, v, "%s needs the key \"%s\"", t->what, t->keys[i].name);
	return 0;
}

/* ---- Single values ---- */

int
key_text(struct source *s, const struct key *k, const struct json *v, void *to)
{
	const char *text = json_cstr_of(v);

	if (text == NULL || text[0] == '\0')
		return key_wrong_type(s, k, v, "a text");
	*(const char **)to = text;
	return 0;
}

int
key_any_text(struct source *s, const struct key *k, const struct json *v, void *to)
{
	if (json_cstr_of(v) == NULL)
		return key_wrong_type(s, k, v, "a text");
	*(const char **)to = json_cstr_of(v);
	return 0;
}

/* A text, or null for "nothing known". */
int
key_text_or_null(struct source *s, const struct key *k, const struct json *v, void *to)
{
	return json_type(v) == JSON_NULL ? 0 : key_text(s, k, v, to);
}

int
key_bool(struct source *s, const struct key *k, const struct json *v, void *to)
{
	if (json_type(v) != JSON_BOOL)
		return key_wrong_type(s, k, v, "true or false");
	*(bool *)to = json_is_true(v);
	return 0;
}

int
key_word_index(struct source *s, const struct key *k, const struct json *v, unsigned *out)
{
	const char *text = json_cstr_of(v);
	char what[96];
	size_t n;

	if (text == NULL)
		return key_wrong_type(s, k, v, "a text");
	for (n = 0; k->words[n] != NULL; n++)
		if (strcmp(text, k->words[n]) == 0) {
			*out = (unsigned)n;
			return 0;
		}
	snprintf(what, sizeof(what), "\"%s\" cannot be", k->name);
	return key_unknown(s, what, v, k->words, n);
}

int
key_word(struct source *s, const struct key *k, const struct json *v, void *to)
{
	return key_word_index(s, k, v, to);
}

int
key_duration(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct err e = {0};

	if (json_cstr_of(v) == NULL)
		return key_wrong_type(s, k, v, "a duration such as \"10s\"");
	if (duration_parse(json_text(v), to, &e) != 0)
		return key_refuse(s, v, "\"%s\": %s", k->name, e.msg);
	return 0;
}

int
key_names(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;

	if (json_type(v) != JSON_ARRAY)
		return key_wrong_type(s, k, v, "a list of texts");
	while (json_next(&it, NULL, &item))
		if (json_cstr_of(item) == NULL || strchr(json_cstr_of(item), '=') != NULL)
			return key_refuse(s, item, "\"%s\" holds names of variables", k->name);
	*(const struct json **)to = v;
	return 0;
}

/* Words as they stand on a command line. */
int
key_words(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;

	if (key_members(s, k, v, JSON_ARRAY, "words", 1, SIZE_MAX) != 0)
		return -1;
	while (json_next(&it, NULL, &item))
		if (json_cstr_of(item) == NULL || json_cstr_of(item)[0] == '\0')
			return key_refuse(s, item, "\"%s\" holds words", k->name);
	*(const struct json **)to = v;
	return 0;
}

int
key_texts(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct json_iter it = json_iterate(v);
	const struct json *value;
	struct slice name;

	if (json_type(v) != JSON_OBJECT)
		return key_wrong_type(s, k, v, "an object of texts");
	while (json_next(&it, &name, &value))
		if (json_cstr_of(value) == NULL || name.len == 0 || memchr(name.data, '=', name.len))
			return key_refuse(s, value, "a variable has a name and a text");
	*(const struct json **)to = v;
	return 0;
}

/* ---- Words with places ---- */

static int
check_places(struct source *s, const struct json *v)
{
	const char *text = json_cstr_of(v);
	enum provider_place place;
	int n;

	if (text == NULL)
		return key_refuse(s, v, "a word must be a text, not %s", json_type_name(v));
	for (; *text != '\0'; text += n > 0 ? n : 1) {
		n = *text == '{' ? place_at(text, &place) : 0;
		if (n < 0) {
			key_refuse(s, v, "\"%.60s\" holds a place that is not known", json_cstr_of(v));
			return err_advice(s->e, "places are {model} {args} {sid} {old} {old8} {cwd} {home} {out} "
					      "{prompt} {store} {chat}");
		}
		if (n > 0 && place == PLACE_ARGS && strcmp(json_cstr_of(v), "{args}") != 0)
			return key_refuse(s, v, "{args} is a word of its own");
	}
	return 0;
}

static int
check_group(struct source *s, const struct json *v)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;

	while (json_next(&it, NULL, &item))
		if (check_places(s, item) != 0)
			return -1;
	return 0;
}

int
key_argv(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;
	bool first = true;

	if (key_members(s, k, v, JSON_ARRAY, "words", 1, SIZE_MAX) != 0)
		return -1;
	while (json_next(&it, NULL, &item)) {
		if (first && (json_cstr_of(item) == NULL || json_cstr_of(item)[0] == '\0'))
			return key_refuse(s, item, "the first word is the program");
		first = false;
		if (json_type(item) == JSON_ARRAY ? check_group(s, item) : check_places(s, item))
			return -1;
	}
	*(const struct json **)to = v;
	return 0;
}

int
key_pattern(struct source *s, const struct key *k, const struct json *v, void *to)
{
	if (key_text(s, k, v, to) != 0)
		return -1;
	return check_places(s, v);
}

bool
provider_argv_has(const struct json *argv, enum provider_place wanted)
{
	struct json_iter it = json_iterate(argv);
	const struct json *item;
	enum provider_place place;
	const char *text;
	int n;

	while (json_next(&it, NULL, &item)) {
		/* Groups are flat: of a group its words are looked at. */
		if (json_type(item) == JSON_ARRAY && provider_argv_has(item, wanted))
			return true;
		for (text = json_cstr_of(item); text != NULL && *text != '\0'; text += n > 0 ? n : 1) {
			n = *text == '{' ? place_at(text, &place) : 0;
			if (n > 0 && place == wanted)
				return true;
		}
	}
	return false;
}
