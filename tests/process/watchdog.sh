#!/usr/bin/env bash
# Workers that show no sign of life: shown as stalled, killed only where the run asks for it, and never
# while they are stopped.
. "$(dirname "$0")/lib.sh"

preload=$BUILD/tests/preload
export HANG=$T/hang
fact() { json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$1\"")" "$2"; }
is() { [ "$(fact "$1" status)" = "$2" ]; }
marked() { [[ $("$FLOWSUP" list --json | grep "^{\"id\":\"$1\"") =~ \"marks\":\[\"$2\" ]]; }
stalled_status() { "$FLOWSUP" supervisor status | grep "^$1" | grep -q stalled; }
# The supervisor's clock jumps by hours; its workers have their own.
supervise() { LD_PRELOAD=$preload/hang.so${LD_PRELOAD:+:$LD_PRELOAD} movable "$FLOWSUP" supervisor; }
cat >"$T/plain.yaml" <<END
plan: [{id: op, run: 'until [ -e "$T/go" ]; do sleep 0.02; done'}]
END
(echo "watchdog: 60s"; cat "$T/plain.yaml") >"$T/watched.yaml"

# ---- Stopped ----
supervise
plain=$("$FLOWSUP" start "$T/plain.yaml")
watched=$("$FLOWSUP" start "$T/watched.yaml")
wait_until worker_is_ready "$plain"
wait_until worker_is_ready "$watched"
worker=$(worker_pid "$watched")
marked "$plain" stalled && not_ok "a worker that goes on is stalled"
other=$(worker_pid "$plain")
stop_still "$worker"
stop_still "$other"
check "a stopped worker is shown as stalled" wait_until they_pass_until marked "$plain" stalled
check "also by supervisor status" stalled_status "$plain"
check "so is one with a watchdog" wait_until marked "$watched" stalled
# Longer than its limit, and at each the supervisor looks.
limits_pass
limits_pass
limits_pass
check "a stopped worker is not killed" alive "$worker"
equal "its run is not judged" running "$(fact "$watched" status)"
kill -CONT "$worker" "$other"

# ---- Stuck ----
touch "$HANG"
wait_until [ -e "$HANG.$worker" ]
wait_until [ -e "$HANG.$other" ]
check "a stuck worker with a watchdog is killed" wait_until they_pass_until is "$watched" crashed
equal "for that reason" run.crashed.watchdog "$(fact "$watched" reason)"
equal "without one it is not" running "$(fact "$plain" status)"
rm "$HANG"
touch "$T/go"
check "and goes on when it can" wait_until is "$plain" completed

# ---- Adopted ----
rm "$T/go"
watched=$("$FLOWSUP" start "$T/watched.yaml")
wait_until worker_is_ready "$watched"
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
supervise
check "another supervisor adopts it" wait_until worker_is_ready "$watched"
worker=$(worker_pid "$watched")
touch "$HANG"
wait_until [ -e "$HANG.$worker" ]
check "and watches it" wait_until they_pass_until is "$watched" crashed
equal "for the same reason" run.crashed.watchdog "$(fact "$watched" reason)"
rm "$HANG"
touch "$T/go"
plan
