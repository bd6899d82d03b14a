#!/usr/bin/env bash
# The units below a real service manager, in namespaces of their own: a user's systemd that starts the
# supervisor when somebody connects, sees it killed and hung, and starts another that adopts what runs.
if [ -z "${INSIDE:-}" ]; then
	if [ ! -x /usr/lib/systemd/systemd ] || ! unshare -m -p -f -C --mount-proc true 2>/dev/null; then
		echo "ok 1 - units below systemd: no systemd here, or no namespaces # SKIP"
		echo 1..1
		exit 0
	fi
	INSIDE=1 unshare -m -p -f -C --mount-proc bash "$0"
	status=$?
	# The groups that it made below ours are empty now: all that was in them ended with its namespace.
	while IFS=: read -r _ _ own; do
		find /sys/fs/cgroup/{,*}"$own"/{app.slice,init.scope} -depth -type d -exec rmdir {} + 2>/dev/null
	done </proc/self/cgroup
	exit $status
fi
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

none() { skip "units below systemd: $*"; plan; }
if ! mount --make-rprivate / || ! mount -t tmpfs none /run; then none "no file systems can be mounted"; fi
mkdir -p /run/systemd/system /run/user "$T/h/.config/systemd/user"
mkdir -m 700 "$T/runtime"
export HOME=$T/h XDG_RUNTIME_DIR=$T/runtime FLOWSUP_HOME=$T/h/.local/state/flowsup PATH=$T/installed/bin:$PATH
unset DBUS_SESSION_BUS_ADDRESS XDG_STATE_HOME XDG_CONFIG_HOME
# What the test asks with, and what is started by the manager alone, are the installed ones.
make -s -C "$ROOT" BUILD="$BUILD" install PREFIX="$T/installed" >/dev/null || exit 1
FLOWSUP=$T/installed/bin/flowsup
units=$HOME/.config/systemd/user
cp "$T/installed/lib/systemd/user/"* "$units"
mkdir "$units/flowsup-supervisor.service.d"
printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nWatchdogSec=5\nRestartSec=100ms\n' \
	>"$units/flowsup-supervisor.service.d/soon.conf"

env -u FLOWSUP_HOME /usr/lib/systemd/systemd --user --log-target=console >"$T/manager" 2>&1 &
manager=$!
up() { [ -S "$XDG_RUNTIME_DIR/systemd/private" ] || gone "$manager"; }
wait_until up
[ -S "$XDG_RUNTIME_DIR/systemd/private" ] || none "it does not come up: $(tail -n 1 "$T/manager")"
of_unit() { systemctl --user show -p "$1" --value flowsup-supervisor.service; }
is() { [ "$(of_unit "$1")" = "$2" ]; }
main() { of_unit MainPID; }

systemctl --user start flowsup-supervisor.socket || { sed 's/^/# /' "$T/manager"; none "its socket unit does not start"; }
equal "nothing runs before somebody asks" inactive "$(of_unit ActiveState)"
id=$("$FLOWSUP" start -- sh -c 'until [ -e "'"$T"'/go" ]; do sleep 0.05; done; echo done')
check "who connects has it started, and it says that it is ready" wait_until is ActiveState active
equal "by the manager, in the foreground" "$(main)" "$(supervisor_pid)"
wait_until worker_is_ready "$id"

first=$(main)
worker=$(worker_pid "$id")
anew() { [ "$(main)" != "$1" ] && [ "$(main)" != 0 ] && is ActiveState active; }
adopted() { [ "$(worker_pid "$id")" = "$worker" ] && worker_is_ready "$id"; }
kill -KILL "$first"
check "killed, it is started again" wait_until anew "$first"
check "and adopts the worker, which went on" wait_until adopted

second=$(main)
kill -STOP "$second"
check "hung, it is ended by the watchdog and started again" wait_until anew "$second"
check "and adopts the worker once more" wait_until adopted

third=$(main)
systemctl --user reload flowsup-supervisor.service
equal "a reload executes it anew in place" "0 $third" "$? $(main)"
check "with its worker" wait_until adopted

systemctl --user stop flowsup-supervisor.socket flowsup-supervisor.service 2>/dev/null
equal "a stop ends it" inactive "$(of_unit ActiveState)"
check "and nothing of a run" alive "$worker"
touch "$T/go"
check "which goes on to its end" wait_until gone "$worker"
systemctl --user start flowsup-supervisor.socket
"$FLOWSUP" wait "$id" 2>/dev/null
equal "that the next one knows of" "0 completed" "$? $(run_status "$id")"
equal "it ran once" "done" "$("$FLOWSUP" logs "$id")"
plan
