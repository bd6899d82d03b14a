#include "withheld.h"

#include "flowsup/config.h"

#include <stdlib.h>
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

static int
are_stored(bool *store, struct err *e)
{
	struct config config;

	if (config_read(NULL, &config, e) != 0)
		return -1;
	*store = config.secrets == CONFIG_SECRETS_STORE;
	config_clear(&config);
	return 0;
}

void
withheld_take_out(char **environment)
{
	char **to = environment;
	bool store = false;

	if (are_stored(&store, NULL) == 0 && store)
		return;
	for (; *environment != NULL; environment++)
		if (!withheld_is(*environment))
			*to++ = *environment;
	*to = NULL;
}

struct json *
withheld_names(char *const *environment, struct err *e)
{
	struct json *names = json_array();
	bool store;

	if (are_stored(&store, e) != 0) {
		json_unref(names);
		return NULL;
	}
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

void
withheld_wipe(struct buf *block)
{
	if (block->data != NULL)
		explicit_bzero(block->data, block->len);
	buf_clear(block);
}

static bool
is_wanted(const char *entry, const struct json *names, char *const *present)
{
	struct json_iter it = json_iterate(names);
	const struct json *one;
	size_t len = strcspn(entry, "=");

	while (json_next(&it, NULL, &one))
		if (json_cstr_of(one) != NULL && json_text(one).len == len &&
		    strncmp(json_cstr_of(one), entry, len) == 0)
			return withheld_find(present, json_cstr_of(one)) == NULL;
	return false;
}

int
withheld_read(int fd, const struct json *names, char *const *present, struct buf *block, char ***list,
    struct err *e)
{
	size_t at, n = 0;
	char **all;

	if (ipc_memfd_read(fd, WITHHELD_BYTES, block, e) != 0)
		return -1;
	if (block->len > 0 && block->data[block->len - 1] != '\0')
		return err_set(e, ERR_PROTOCOL, "the withheld environment values are cut off");
	all = calloc(json_length(names) + 1, sizeof(*all));
	if (all == NULL)
		return err_nomem(e);
	for (at = 0; at < block->len && n < json_length(names); at += strlen(block->data + at) + 1)
		if (is_wanted(block->data + at, names, present))
			all[n++] = block->data + at;
	*list = all;
	return 0;
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
