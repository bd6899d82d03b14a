#include <assert.h>
#include <string.h>

#include "members.h"

static const struct {
	char letter;
	enum json_type type;
	const char *word;
} types[] = {
    {'s', JSON_STRING, "a string"},
    {'i', JSON_INTEGER, "an integer"},
    {'b', JSON_BOOL, "true or false"},
    {'o', JSON_OBJECT, "an object"},
};

static int
check_type(struct slice name, char letter, const struct json *value, struct err *e)
{
	size_t i = 0;
	int64_t number;

	while (i < sizeof(types) / sizeof(types[0]) && types[i].letter != letter)
		i++;
	assert(i < sizeof(types) / sizeof(types[0]));
	if (json_type(value) != types[i].type)
		return err_set(e, ERR_PROTOCOL, "member '%.*s' is not %s", (int)name.len, name.data,
		    types[i].word);
	if (letter == 's' && json_cstr_of(value) == NULL)
		return err_set(e, ERR_PROTOCOL, "member '%.*s' holds a character that it may not",
		    (int)name.len, name.data);
	if (letter == 'i' && !json_int64(value, &number))
		return err_set(e, ERR_PROTOCOL, "member '%.*s' is out of range", (int)name.len,
		    name.data);
	return 0;
}

int
members_check(const char *spec, const struct json *object, struct err *e)
{
	while (*spec != '\0') {
		bool optional = *spec == '?';
		const char *name = spec + optional;
		const char *colon = strchr(name, ':');
		struct slice key;
		const struct json *value;

		assert(colon != NULL && colon[1] != '\0');
		key = (struct slice){name, (size_t)(colon - name)};
		value = json_getn(object, key);
		if (value == NULL && !optional)
			return err_set(e, ERR_PROTOCOL, "member '%.*s' is missing", (int)key.len,
			    key.data);
		if (value != NULL && check_type(key, colon[1], value, e) != 0)
			return -1;
		spec = colon + 2;
		while (*spec == ' ')
			spec++;
	}
	return 0;
}
