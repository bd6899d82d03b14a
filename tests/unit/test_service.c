#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "supervisor/service.h"

static void
test_service__fate_of_what_is_left(void **state)
{
	static const struct {
		const char *cgroup;
		bool kills;
		enum service_fate fate;
	} cases[] = {
	    {"", true, SERVICE_STAYS},
	    {"0::/\n", true, SERVICE_STAYS},
	    {"0::/init.scope\n", true, SERVICE_STAYS},
	    {"0::/user.slice/user-1000.slice/session-3.scope\n", false, SERVICE_STAYS},
	    {"0::/user.slice/user-1000.slice/session-3.scope\n", true, SERVICE_ENDS_WITH_SESSION},
	    {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n", true, SERVICE_STAYS},
	    {"0::/system.slice/cron.service\n", true, SERVICE_STAYS},
	    {"0::/system.slice/nightly.service\n", false, SERVICE_ENDS_WITH_UNIT},
	    {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/nightly.service\n", false,
		SERVICE_ENDS_WITH_UNIT},
	    {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/flowsup-supervisor.service\n",
		false, SERVICE_STAYS},
	    {"12:pids:/x\n1:name=systemd:/y\n0::/system.slice/web.service", false, SERVICE_ENDS_WITH_UNIT},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(service_fate_of(cases[i].cgroup, cases[i].kills), cases[i].fate);
}

static void
test_service__names_for_this_process_alone(void **state)
{
	(void)state;
	assert_true(service_is_own("NOTIFY_SOCKET=/run/x"));
	assert_true(service_is_own("WATCHDOG_USEC=1"));
	assert_false(service_is_own("NOTIFY_SOCKETS=1"));
	assert_false(service_is_own("PATH=/bin"));
}

static void
test_service__watchdog_is_for_one_process(void **state)
{
	char pid[32];

	(void)state;
	unsetenv("WATCHDOG_USEC");
	assert_int_equal(service_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "1500000", 1);
	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(service_watchdog_ns(), INT64_C(1500000000));
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(service_watchdog_ns(), 0);
	setenv("WATCHDOG_PID", pid, 1);
	setenv("WATCHDOG_USEC", "soon", 1);
	assert_int_equal(service_watchdog_ns(), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_service__fate_of_what_is_left),
    cmocka_unit_test(test_service__names_for_this_process_alone),
    cmocka_unit_test(test_service__watchdog_is_for_one_process),
};

TEST_MAIN("service", tests)
