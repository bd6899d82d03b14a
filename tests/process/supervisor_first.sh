#!/usr/bin/env bash
# A supervisor that is process 1 of a pid namespace: what runs is ended well before it leaves.
. "$(dirname "$0")/lib.sh"

if ! unshare --pid --fork --mount-proc true 2>/dev/null; then
	skip "no pid namespace can be made here"
	plan
	exit 0
fi
row() { sqlite3 "$FLOWSUP_HOME/state.db" "PRAGMA busy_timeout=60000; SELECT status FROM sessions WHERE run_id = '$1'" | tail -1; }
row_is() { [ "$(row "$1")" = "$2" ]; }
begin() { # the supervisor as process 1, its pid as seen from here in $one
	rm -f "$T/began"
	unshare --pid --fork --mount-proc bash -c 'exec "$0" supervisor --foreground' "$FLOWSUP" 2>"$T/log" &
	outer=$!
	wait_until [ -S "$FLOWSUP_HOME/supervisor.sock" ]
	one=$(cat "/proc/$outer/task/$outer/children")
	one=${one// /}
}

cat >"$T/flow.yaml" <<END
plan:
  - id: op
    run: |
      trap 'echo told >"$T/told"; exit 0' TERM
      touch "$T/began"
      while :; do sleep 0.02; done
END
"$FLOWSUP" queue set one --slots 1 >/dev/null 2>&1
"$FLOWSUP" supervisor stop >/dev/null 2>&1
begin
id=$("$FLOWSUP" start --queue one "$T/flow.yaml")
wait_until [ -e "$T/began" ]
behind=$("$FLOWSUP" start --queue one -- true)
equal "it is process 1" 1 "$(sed -nE 's/^NSpid:.*[[:space:]]([0-9]+)$/\1/p' "/proc/$one/status")"
kill -TERM "$one"
wait "$outer"
equal "it leaves well" 0 $?
equal "what ran was told" told "$(cat "$T/told" 2>&1)"
equal "its end is recorded" cancelled "$(row "$id")"
equal "what waits goes on waiting" queued "$(row "$behind")"
matches "it says why it waits" "process 1.*stops 1 run[[:space:]]" "$(cat "$T/log")"
"$FLOWSUP" supervisor >/dev/null 2>&1
next=$("$FLOWSUP" resume "$id" -n 2>&1)
equal "the run can be resumed from another pid namespace: it has ended" 0 $?

cat >"$T/deaf.yaml" <<END
plan: [{id: op, grace: 1h, run: "trap '' TERM; touch '$T/began'; while :; do sleep 0.02; done"}]
END
wait_until row_is "$behind" completed
"$FLOWSUP" supervisor stop >/dev/null 2>&1
begin
id=$("$FLOWSUP" start "$T/deaf.yaml")
wait_until [ -e "$T/began" ]
kill -TERM "$one"
wait_until grep -q 'process 1' "$T/log"
check "it waits for the grace" alive "$one"
kill -TERM "$one"
wait "$outer"
equal "a second signal has it leave" 0 $?

# ---- The container is killed, and the next one has the same home ----
rm -f "$T/began"
begin
id=$("$FLOWSUP" start --restart 3 --unique job -- sh -c "touch '$T/began'; until [ -e '$T/go' ]; do sleep 0.02; done")
wait_until [ -e "$T/began" ]
kill -KILL "$one"
wait "$outer" 2>/dev/null
touch "$T/go"
"$FLOWSUP" supervisor >/dev/null 2>&1
check "its run has crashed" wait_until row_is "$id" crashed
successor() {
	sqlite3 "$FLOWSUP_HOME/state.db" "PRAGMA busy_timeout=60000; SELECT n.run_id FROM sessions n JOIN sessions s
		ON n.resumed_from = s.id WHERE s.run_id = '$id'" | grep T
}
check "and is resumed by its policy, for nothing of it can run" wait_until successor
next=$(successor)
check "to its end" wait_until row_is "$next" completed
matches "the key is free" "^[0-9]{8}T" "$("$FLOWSUP" start --unique job -- true)"
plan
