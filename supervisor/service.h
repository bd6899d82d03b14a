/* What a service manager gives and wants: sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3). */
#ifndef FLOWSUP_SUPERVISOR_SERVICE_H
#define FLOWSUP_SUPERVISOR_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "flowsup/err.h"
#include "flowsup/home.h"

/* Says "READY=1" and the like to the manager, if there is one. Never blocks. */
void service_notify(const char *text);
/* How often the manager wants to hear from this process at the latest; 0: not at all. */
int64_t service_watchdog_ns(void);
/* The listening socket that came from the manager: close-on-exec, non-blocking. -1 without an error
 * when none came; ERR_ENVIRONMENT when it is not the socket of this home. */
int service_listener(const struct home *h, struct err *e);
/* Whether the entry of an environment is for this process alone ("NOTIFY_SOCKET=..."). */
bool service_is_own(const char *entry);

/* What becomes of processes that are left where this one runs. */
enum service_fate {
	SERVICE_STAYS,
	SERVICE_ENDS_WITH_UNIT,	   /* a service, which ends all of its processes */
	SERVICE_ENDS_WITH_SESSION, /* a login session, and the system ends what it leaves */
};
/* By the text of /proc/self/cgroup and whether logind ends what sessions leave. */
enum service_fate service_fate_of(const char *cgroup, bool kill_user_processes);
enum service_fate service_fate_here(void);

/* What brings runs back after a boot. */
enum service_boot {
	SERVICE_BOOT_NOT,
	SERVICE_BOOT_UNIT,
	SERVICE_BOOT_LOGIN, /* the unit, once its user logs in */
	SERVICE_BOOT_CRON,
	SERVICE_BOOTS
};
/* The unit has the default state directory; another one needs a line of the crontab that names it. */
enum service_boot service_boot(const struct home *h);

#endif
