/* Whether runs go on after a boot, and what makes them. */
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

/* The unit is for the default state directory. */
static void
say_not(struct doctor *d)
{
	struct buf hint = {0}, line = {0};

	buf_puts(&line, "@reboot ");
	add_program(&line);
	buf_puts(&line, " supervisor");
	if (home_is_default(&d->home)) {
		buf_printf(&hint, UNIT_HINT "   # or in crontab -e: %s", buf_text(&line));
	} else {
		buf_puts(&line, " --home ");
		text_shell_word(&line, d->home.path);
		buf_puts(&hint, "{ crontab -l; echo ");
		text_shell_word(&hint, buf_text(&line));
		buf_puts(&hint, "; } | crontab -   # the units of flowsup have the default state directory");
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
