#!/usr/bin/env bash
# The wall clock jumps an hour forward and back (a suspend, a correction): nobody is declared dead, and
# limits fire by their own clocks.
. "$(dirname "$0")/lib.sh"

export CLOCK_JUMP=$T/jump
fact() { json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$1\"")" "$2"; }
is() { [ "$(fact "$1" status)" = "$2" ]; }
marks() { "$FLOWSUP" list --json | grep "^{\"id\":\"$1\"" | grep -oE '"marks":\[[^]]*\]'; }
wall() { jump "$CLOCK_JUMP" "$1"; }
settle() { "$FLOWSUP" supervisor status >/dev/null; "$FLOWSUP" list >/dev/null; }
stalled_status() { "$FLOWSUP" supervisor status | grep "^$1" | grep -q stalled; }
(export LD_PRELOAD=$BUILD/tests/preload/clock.so CLOCK_OF=flowsup; exec "$FLOWSUP" supervisor)

cat >"$T/limits.yaml" <<END
timeout: 30m
watchdog: 10m
plan:
  - {id: long, timeout: 20m, run: 'until [ -e "$T/go" ]; do sleep 0.02; done'}
  - {id: after, needs: [long], run: 'true'}
END
cat >"$T/short.yaml" <<END
plan: [{id: op, timeout: 4s, grace: 1s, run: 'touch "$T/began"; exec sleep 1000'}]
END
run=$("$FLOWSUP" start "$T/limits.yaml")
wait_until worker_is_ready "$run"
wait_until is "$run" running
worker=$(worker_pid "$run")
for by in 3600 -3600 7200 0; do
	wall "$by"
	settle
	check "a jump to ${by}s: the worker lives" alive "$worker"
	equal "and its run goes on" running "$(fact "$run" status)"
	equal "it is not called stalled" '"marks":[]' "$(marks "$run")"
	stalled_status "$run" && not_ok "nor by supervisor status"
done

# One that shows no sign of life is, and at the first look, also after a jump back.
stuck=$("$FLOWSUP" start "$T/limits.yaml")
wait_until worker_is_ready "$stuck"
stop_still "$(worker_pid "$stuck")"
wall -3600
limits_pass
check "a stuck worker is called stalled after a jump back" stalled_status "$stuck"
equal "also by list" '"marks":["stalled"]' "$(marks "$stuck")"
kill -CONT "$(worker_pid "$stuck")"
wall 0

# A limit of 4 seconds, across two jumps, is one of 4 seconds.
short=$("$FLOWSUP" start "$T/short.yaml")
wait_until [ -e "$T/began" ]
wall 3600
settle
wall -3600
check "a limit fires, and not an hour late" wait_until is "$short" failed
now=$(awk -v tick="$(getconf CLK_TCK)" '{ print int($1 * tick) }' /proc/uptime)
began=$(sed -nE 's/.*"kind":"start","op":"op".*"start":([0-9]+).*/\1/p' "$FLOWSUP_HOME/runs/$short/attempts.log")
check "not early" [ $((now - began)) -ge $((4 * $(getconf CLK_TCK) - 1)) ]

# Order and ids hold although time went back.
one=$("$FLOWSUP" start -- true)
wall -7200
two=$("$FLOWSUP" start -- true)
check "what was started last is the last" wait_until is "$two" completed
newest=$("$FLOWSUP" list --json -n 1 | sed -nE 's/^\{"id":"([^"]*)".*/\1/p')
equal "also for list" "$two" "$newest"
wall 3600
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
"$FLOWSUP" supervisor
check "a supervisor of another time adopts the worker" wait_until worker_is_ready "$run"
touch "$T/go"
check "the run completes" wait_until is "$run" completed
wait_until is "$one" completed
plan
