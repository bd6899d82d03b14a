#include "flowsup/places.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/buf.h"
#include "flowsup/proc.h"

const char *
places_variable(char *const *envp, const char *name)
{
	size_t len = strlen(name);

	if (envp == NULL)
		return getenv(name);
	for (; *envp != NULL; envp++)
		if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=')
			return *envp + len + 1;
	return NULL;
}

size_t
place_stem(const char *file, const char *const *endings)
{
	size_t len = strlen(file), n;

	for (; *endings != NULL && file[0] != '.'; endings++) {
		n = strlen(*endings);
		if (len > n && strcmp(file + len - n, *endings) == 0)
			return len - n;
	}
	return 0;
}

const char *
place_home(const char *named)
{
	const struct passwd *account;

	if (named != NULL && named[0] == '/')
		return named;
	account = getpwuid(getuid());
	return account != NULL && account->pw_dir[0] == '/' ? account->pw_dir : NULL;
}

int
place_config(char *const *envp, const char *name, char **out, struct err *e)
{
	const char *config = places_variable(envp, "XDG_CONFIG_HOME"), *home = place_home(places_variable(envp, "HOME"));
	char *path = NULL;
	int n = 0;

	if (config != NULL && config[0] == '/')
		n = asprintf(&path, "%s/flowsup/%s", config, name);
	else if (home != NULL)
		n = asprintf(&path, "%s/.config/flowsup/%s", home, name);
	if (n < 0)
		return err_nomem(e);
	*out = path;
	return 0;
}

/* flowsup stands in bin, its worker two levels deeper than bin's parent. */
int
place_data(const char *name, char **out, struct err *e)
{
	static const char *const places[] = {"../share/flowsup", "../../share/flowsup"};
	struct buf path = {0};
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		buf_reset(&path);
		if (proc_relative_to_self(places[i], &path, e) != 0) {
			buf_clear(&path);
			return -1;
		}
		if (access(buf_text(&path), F_OK) == 0)
			break;
	}
	buf_printf(&path, "/%s", name);
	*out = buf_steal(&path);
	return *out != NULL ? 0 : err_nomem(e);
}
