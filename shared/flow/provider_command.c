/* A person's own command line for an agent: where its instruction stands, if it can be continued. */
#include "provider_private.h"

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static bool
is_listed(const struct json *list, const char *word)
{
	struct json_iter it = json_iterate(list);
	const struct json *item;
	const char *text;
	size_t len;

	while (json_next(&it, NULL, &item)) {
		text = json_cstr_of(item);
		len = strlen(text);
		/* Also as --option=value. */
		if (strncmp(word, text, len) == 0 && (word[len] == '\0' || word[len] == '='))
			return true;
	}
	return false;
}

size_t
provider_command_prompt(const struct provider *p, const char *const *argv)
{
	const char *program = json_cstr_of(json_at(p->starts[PROVIDER_NEW], 0));
	size_t i, at = 0;

	if (p->command_resume == NULL || strcmp(base_name(argv[0]), base_name(program)) != 0)
		return 0;
	for (i = 1; argv[i] != NULL; i++) {
		if (is_listed(p->command_unless, argv[i]))
			return 0;
		if (at == 0 && is_listed(p->command_prompt, argv[i]) && argv[i + 1] != NULL &&
		    argv[i + 1][0] != '-' && argv[i + 1][0] != '\0')
			at = i + 1, i++;
	}
	return at;
}
