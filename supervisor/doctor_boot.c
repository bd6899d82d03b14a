/* Whether runs go on after a boot, and what makes them. */
#include <stdlib.h>

#include "doctor.h"
#include "flowsup/buf.h"
#include "flowsup/log.h"
#include "flowsup/proc.h"
#include "service.h"

#define UNIT_HINT "systemctl --user enable --now flowsup-supervisor.service; loginctl enable-linger"

/* Cron looks for programs in /usr/bin and /bin alone. */
static void
add_program(struct buf *to)
{
	struct buf path = {0};

	if (proc_relative_to_self("flowsup", &path, &(struct err){0}) == 0)
		text_shell_word(to, buf_text(&path));
	else
		buf_puts(to, "flowsup");
	buf_clear(&path);
}

static void
add_reboot(struct buf *to, const char *command)
{
	struct buf line = {0};

	buf_printf(&line, "@reboot %s", command);
	text_shell_word(to, buf_text(&line));
	buf_clear(&line);
}

static bool
has_cron(void)
{
	struct buf path = {0};
	bool has = proc_find_program("crontab", getenv("PATH"), &path, &(struct err){0}) == 0;

	buf_clear(&path);
	return has;
}

/* The unit is for the default state directory, and not every machine has cron. */
static void
say_not(struct doctor *d)
{
	struct buf hint = {0}, line = {0};
	bool is_default = home_is_default(&d->home), cron = has_cron();

	add_program(&line);
	buf_puts(&line, " supervisor");
	if (!is_default) {
		buf_puts(&line, " --home ");
		text_shell_word(&line, d->home.path);
	}
	if (is_default) {
		buf_puts(&hint, UNIT_HINT);
		if (cron)
			buf_printf(&hint, "   # or in crontab -e: @reboot %s", buf_text(&line));
	} else if (cron) {
		buf_puts(&hint, "{ crontab -l; echo ");
		add_reboot(&hint, buf_text(&line));
		buf_puts(&hint, "; } | crontab -   # the units of flowsup have the default state directory");
	} else {
		buf_printf(&hint, "%s   # by what starts programs at a boot", buf_text(&line));
	}
	doctor_say(d, GRADE_NOTE, "boot", buf_text(&hint),
	    "after a boot, queued runs and restarts wait for the next flowsup command");
	buf_clear(&line);
	buf_clear(&hint);
}

void
doctor_boot(struct doctor *d)
{
	switch (service_boot(&d->home)) {
	case SERVICE_BOOT_UNIT:
		doctor_say(d, GRADE_OK, "boot", NULL, "flowsup-supervisor.service goes on with runs after a boot");
		break;
	case SERVICE_BOOT_LOGIN:
		doctor_say(d, GRADE_NOTE, "boot", "loginctl enable-linger   # at the boot itself",
		    "flowsup-supervisor.service goes on with runs when you log in after a boot");
		break;
	case SERVICE_BOOT_CRON:
		doctor_say(d, GRADE_OK, "boot", NULL, "@reboot in the crontab goes on with runs after a boot");
		break;
	case SERVICE_BOOT_NOT:
	case SERVICE_BOOTS:
		say_not(d);
		break;
	}
}
