/* Whether a supervisor, and with it the runs that wait, comes back after a boot. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/buf.h"
#include "service.h"

#define WANTS "/default.target.wants/flowsup-supervisor.service"

static bool
is_there(const char *directory, const char *rest)
{
	struct buf path = {0};
	bool there;

	buf_puts(&path, directory);
	buf_puts(&path, rest);
	/* A link that leads nowhere is enabled too, and fails at boot. */
	there = !path.failed && access(buf_text(&path), F_OK) == 0;
	buf_clear(&path);
	return there;
}

static bool
unit_is_enabled(const struct passwd *who)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (is_there("/etc/systemd/user", WANTS))
		return true;
	if (config != NULL && config[0] == '/')
		return is_there(config, "/systemd/user" WANTS);
	return is_there(home != NULL && home[0] == '/' ? home : who->pw_dir, "/.config/systemd/user" WANTS);
}

/* A line that holds the name, which may be empty, as well. */
static bool
crontab_has_it(const char *name)
{
	FILE *table = popen("crontab -l 2>/dev/null", "re");
	char line[1024];
	bool has = false;

	if (table == NULL)
		return false;
	while (fgets(line, sizeof(line), table) != NULL)
		has = has || (strncmp(line, "@reboot", strlen("@reboot")) == 0 &&
				 strstr(line, "flowsup") != NULL && strstr(line, name) != NULL);
	(void)pclose(table);
	return has;
}

enum service_boot
service_boot(const struct home *h)
{
	const struct passwd *who = getpwuid(getuid());

	if (!home_is_default(h))
		return crontab_has_it(h->path) ? SERVICE_BOOT_CRON : SERVICE_BOOT_NOT;
	if (who != NULL && unit_is_enabled(who)) {
		return is_there("/var/lib/systemd/linger/", who->pw_name) ? SERVICE_BOOT_UNIT
									  : SERVICE_BOOT_LOGIN;
	}
	return crontab_has_it("") ? SERVICE_BOOT_CRON : SERVICE_BOOT_NOT;
}
