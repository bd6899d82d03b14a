#include "withheld.h"

#include "flowsup/config.h"

#include <string.h>

#include "flowsup/buf.h"
#include "flowsup/ipc.h"

static const char *const endings[] = {"_TOKEN", "_SECRET", "_PASSWORD", "_KEY"};

bool
withheld_is(const char *entry)
{
	size_t len = strcspn(entry, "="), ending, i;

	for (i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		ending = strlen(endings[i]);
		if (len > ending && strncmp(entry + len - ending, endings[i], ending) == 0)
			return true;
	}
	return false;
}

bool
withheld_has(const struct json *names, const char *name)
{
	return json_find(names, NULL, name) != NULL;
}

struct json *
withheld_names(char *const *environment, struct err *e)
{
	struct json *names = json_array();
	struct config config;
	bool store;

	if (config_read(NULL, &config, e) != 0) {
		json_unref(names);
		return NULL;
	}
	store = config.secrets == CONFIG_SECRETS_STORE;
	config_clear(&config);
	for (; !store && *environment != NULL; environment++)
		if (withheld_is(*environment))
			names = json_append(names,
			    json_string_lossy((struct slice){*environment, strcspn(*environment, "=")}, NULL));
	if (names == NULL)
		err_nomem(e);
	return names;
}

const char *
withheld_find(char *const *environment, const char *name)
{
	size_t len = strlen(name);

	for (; environment != NULL && *environment != NULL; environment++)
		if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
			return *environment;
	return NULL;
}

int
withheld_gather(const struct json *names, char *const *first, char *const *second, struct err *e)
{
	struct json_iter it = json_iterate(names);
	const struct json *one;
	const char *name, *entry;
	struct buf text = {0};
	int fd = -1;

	if (json_length(names) == 0)
		return -1;
	while (json_next(&it, NULL, &one)) {
		name = json_cstr_of(one);
		entry = name == NULL ? NULL : withheld_find(first, name);
		if (entry == NULL && name != NULL)
			entry = withheld_find(second, name);
		if (entry != NULL)
			buf_add(&text, entry, strlen(entry) + 1);
	}
	if (buf_ok(&text, e) == 0 && text.len > WITHHELD_BYTES)
		err_set(e, ERR_LIMIT, "the withheld environment values have more than %zu bytes",
		    WITHHELD_BYTES);
	else if (!text.failed)
		fd = ipc_memfd("flowsup-withheld", buf_view(&text), e);
	if (text.data != NULL)
		explicit_bzero(text.data, text.len);
	buf_clear(&text);
	return fd;
}

struct json *
withheld_missing(const struct json *names, char *const *environment, struct err *e)
{
	struct json *missing = json_array();
	struct json_iter it = json_iterate(names);
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (json_cstr_of(one) != NULL && withheld_find(environment, json_cstr_of(one)) == NULL)
			missing = json_append(missing, json_ref(one));
	if (missing == NULL)
		err_nomem(e);
	return missing;
}
