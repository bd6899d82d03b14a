#include "roles.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/flow.h"
#include "flowsup/places.h"

static const char *const endings[] = {".yaml", ".json", NULL};

static int
read_role(const char *directory, const char *name, struct json **out, struct err *e)
{
	struct buf path = {0};
	size_t i;
	int r = 0;

	*out = NULL;
	for (i = 0; r == 0 && *out == NULL && endings[i] != NULL; i++) {
		buf_reset(&path);
		buf_printf(&path, "%s/%s%s", directory, name, endings[i]);
		r = buf_ok(&path, e);
		if (r == 0 && access(buf_text(&path), F_OK) == 0)
			r = flow_read_object(buf_text(&path), out, e);
	}
	buf_clear(&path);
	return r;
}

int
role_find(const char *name, struct json **out, struct err *e)
{
	char *directory = NULL;
	int r;

	*out = NULL;
	if (name[0] == '.' || strchr(name, '/') != NULL)
		return 0;
	if (place_config(NULL, "roles", &directory, e) != 0)
		return -1;
	r = directory != NULL ? read_role(directory, name, out, e) : 0;
	free(directory);
	return r;
}

static int
add_all(const char *directory, struct json **all, struct err *e)
{
	DIR *dir = opendir(directory);
	const struct dirent *entry;
	struct json *role;
	char name[256];
	int r = 0;

	if (dir == NULL)
		return errno == ENOENT || errno == ENOTDIR
		    ? 0 : err_sys(e, ERR_IO, errno, "cannot read %s", directory);
	while (r == 0 && (entry = readdir(dir)) != NULL) {
		if (place_stem(entry->d_name, endings) == 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)place_stem(entry->d_name, endings), entry->d_name);
		r = read_role(directory, name, &role, e);
		if (r == 0 && role != NULL)
			*all = json_set(*all, name, role);
	}
	closedir(dir);
	return r;
}

int
roles_all(struct json **out, struct err *e)
{
	struct json *all = json_object();
	char *directory = NULL;
	int r = place_config(NULL, "roles", &directory, e);

	if (r == 0 && directory != NULL)
		r = add_all(directory, &all, e);
	free(directory);
	if (r == 0 && all == NULL)
		r = err_nomem(e);
	if (r != 0)
		json_unref(all);
	else
		*out = all;
	return r;
}

/* ---- For a checkpoint of an older program ---- */

static int
add_missing(const struct json *entry, struct json **roles, bool *any, struct err *e)
{
	const char *name = json_cstr_of(json_get(entry, "assignee"));
	struct json *role;

	if (name == NULL || json_get(*roles, name) != NULL)
		return 0;
	if (role_find(name, &role, e) != 0)
		return -1;
	if (role == NULL)
		return 0;
	*any = true;
	*roles = json_set(*roles, name, role);
	return *roles != NULL ? 0 : err_nomem(e);
}

struct json *
roles_complete(struct json *state, struct err *e)
{
	static const char *const lists[] = {"plan", "spawned"};
	const struct json *config = json_get(state, "config"), *entry;
	struct json *roles = json_type(json_get(config, "roles")) == JSON_OBJECT
	    ? json_ref(json_get(config, "roles")) : json_object();
	struct json_iter it;
	bool any = false;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		it = json_iterate(json_get(state, lists[i]));
		while (json_next(&it, NULL, &entry))
			if (add_missing(entry, &roles, &any, e) != 0) {
				json_unref(roles);
				json_unref(state);
				return NULL;
			}
	}
	if (any)
		state = json_set(state, "config", json_set(json_ref(config), "roles", json_ref(roles)));
	json_unref(roles);
	if (state == NULL)
		err_nomem(e);
	return state;
}
