#!/usr/bin/env bash
# The instant of the run's deadline. The worker is stopped, what it is about to see happens, the boot
# clock passes the deadline, and the worker goes on: it sees everything in one turn. Nothing starts.
. "$(dirname "$0")/lib_grow.sh"

export BOOT_JUMP=$T/boot FAIL_SYNC=$T/sync FAIL_SYNC_OF=/ops/held
preload=$BUILD/tests/preload
(export LD_PRELOAD=$preload/clock.so:$preload/fail_sync.so${LD_PRELOAD:+:$LD_PRELOAD}; exec "$FLOWSUP" supervisor)

started() { # every operation that ever started, in order
	grep '"event":"NodeStarted"' "$(run_dir)/events.jsonl" | grep -oE '"op":"[^"]*"' | cut -d'"' -f4 | paste -sd' '
}
starts_after() { awk '/"event":"DeadlineClosed"/ {on=1} on && /"event":"NodeStarted"/ {n++} END {print n+0}' "$(run_dir)/events.jsonl"; }
state() { stat_field "$1" 1; }
asleep() { [ "$(state "$1")" = S ]; }
# freeze: the worker sees nothing from here on.
freeze() {
	FROZEN=$(worker_pid "$RUN")
	stop_still "$FROZEN"
}
# pass: the deadline of an hour is over, and the worker sees what has come meanwhile.
pass() {
	echo 7200 >"$BOOT_JUMP"
	kill -CONT "$FROZEN"
}
# The process of an operation has ended (and waits for its worker).
op_pid() { sed -nE "s/.*\"kind\":\"start\",\"op\":\"$1\".*\"pid\":([0-9]+).*/\1/p" "$(run_dir)/attempts.log" | tail -1; }
op_gone() { gone "$(op_pid "$1")"; }
# At its end the run says so; a resume with the clock set back does what was withheld.
was_closed() { # name, operations that started
	wait_until ended
	equal "$1: the run ends by its deadline" "timed_out run.timed_out.deadline" "$(run_status "$RUN") $(run_fact "$RUN" reason)"
	equal "$1: nothing started then" "$2 0" "$(started) $(starts_after)"
	rm -f "$BOOT_JUMP"
}
goes_on() { # name, operations that start then
	RUN=$("$FLOWSUP" resume "$RUN" 2>"$T/resume.err") || note "$(cat "$T/resume.err")"
	wait_until ended
	equal "$1: a resume does what was withheld" "completed $2" "$(run_status "$RUN") $(started | tr ' ' '\n' | sort | paste -sd' ')"
}
new() { rm -rf "$T/gates"; mkdir "$T/gates"; begin --timeout 1h "$@"; }
HOLD=': > "$T/gates/$FLOWSUP_OP_ID"; until [ -e "$T/gates/go" ]; do sleep 0.02; done'
runs() { [ -e "$T/gates/$1" ]; }

# ---- A spawn and an escalation that are asked for at the instant ----
new <<Y
reactive: all
roles:
  low: {provider: robot, env: {WHO: low}}
  high: {provider: robot, env: {WHO: high}}
plan:
  - id: a
    assignee: low
    instruction: |
      test \$WHO = low || exit 0
      $HOLD
      flowsup emit spawn --instruction "echo late" 2> "\$T/said.spawn" & echo \$! > "\$T/gates/spawn"
      flowsup emit escalate --to high 2> "\$T/said.escalate" & echo \$! > "\$T/gates/escalate"
      wait
Y
wait_until runs a
freeze
open_gate go
wait_until [ -s "$T/gates/escalate" ]
wait_until asleep "$(cat "$T/gates/spawn")"
wait_until asleep "$(cat "$T/gates/escalate")"
pass
was_closed "a spawn and an escalation" "a"
equal "they are accepted and deferred" "1 1" "$(grep -c deferred "$T/said.spawn") $(grep -c deferred "$T/said.escalate")"
equal "and pending" "pending pending" "$(spawned '" ".join(e["status"] for e in s)')"
names=$(spawned '" ".join(sorted(by))')
goes_on "a spawn and an escalation" "$names"

# ---- An operation fails that another role tries again ----
new <<Y
roles:
  low: {provider: robot, env: {WHO: low}, escalate_to: high}
  high: {provider: robot, env: {WHO: high}}
plan: [{id: a, assignee: low, instruction: 'test \$WHO = high && exit; $HOLD; false'}]
Y
wait_until runs a
freeze
open_gate go
wait_until op_gone a
pass
was_closed "an escalation of a failure" "a"
equal "it is pending" "pending" "$(spawned 's[0]["status"]')"
goes_on "an escalation of a failure" "a.s1"

# ---- The slot becomes free ----
new -j 1 <<Y
plan: [{id: a, run: '$HOLD'}, {id: b, run: 'true'}, {id: c, run: 'true', needs: [a]}]
Y
wait_until runs a
freeze
open_gate go
wait_until op_gone a
pass
was_closed "a waiter for the slot, and one for an outcome" "a"
goes_on "a waiter for the slot" "b c"

# ---- It has its slot, and its start is being saved ----
echo wait >"$FAIL_SYNC"
new -j 1 <<Y
plan: [{id: held, run: 'true', idempotent: false}, {id: b, run: 'true', needs: [held]}]
Y
wait_until [ -e "$FAIL_SYNC.waits" ]
echo 7200 >"$BOOT_JUMP"
rm "$FAIL_SYNC"
was_closed "one with a slot" ""
check "nothing says that it started" bash -c "! ls -R '$(run_dir)/ops' | grep -q started"
goes_on "one with a slot" "b held"

# ---- A further attempt ----
new <<Y
plan: [{id: a, retry: {attempts: 3, backoff: 1ms}, run: 'test \$FLOWSUP_ATTEMPT -gt 1 && exit; $HOLD; false'}]
Y
wait_until runs a
freeze
open_gate go
wait_until op_gone a
pass
was_closed "a further attempt" "a"
equal "its failure is no outcome" "[]" "$(spawned 'list(o)')"
goes_on "a further attempt" "a"

# ---- Items of a foreach ----
new <<Y
plan:
  - {id: list, response: json, run: '$HOLD; echo "[1, 2]"'}
  - {id: each, needs: [list], foreach: "", run: 'true'}
Y
wait_until runs list
freeze
open_gate go
wait_until op_gone list
pass
was_closed "items" "list"
goes_on "items" "each.0 each.1"

# ---- A person's answer; the gate that opens ----
new <<Y
plan: [{id: a, run: 'true', gate: approve}, {id: hold, run: '$HOLD'}]
Y
wait_until runs hold
asks() { "$FLOWSUP" waiting --json | grep -q '"op":"a"'; }
wait_until asks
freeze
"$FLOWSUP" approve "$RUN" a >"$T/approve" 2>&1 & answer=$!
queued() { "$FLOWSUP" ctl status "$RUN" --json | grep -q "\"verb\":\"$1\""; }
wait_until queued approve
pass
wait "$answer"
open_gate go
was_closed "an approval" "hold"
goes_on "an approval, which is kept," "a"

new -j 1 <<Y
plan: [{id: hold, run: '$HOLD'}, {id: b, run: 'true'}]
Y
wait_until runs hold
"$FLOWSUP" pause "$RUN" >/dev/null 2>&1
wait_until status_is "$RUN" paused
freeze
open_gate go
wait_until op_gone hold
"$FLOWSUP" ctl resume "$RUN" >/dev/null 2>&1 & answer=$!
wait_until queued resume
pass
wait "$answer"
was_closed "the gate opens" "hold"
goes_on "the gate opens" "b"

# ---- A planner that has to answer again ----
planner() {
	cat <<Y
roles: {r: {provider: robot}}
planner:
  assignee: r
  instruction: |
    if [ -e "\$T/gates/known" ]; then cat "\$T/plan"; exit; fi
    $HOLD
    cat "\$T/answer"; exit
plan: []
Y
}
echo '[{"id":"x","assignee":"r","instruction":"true"}]' >"$T/plan"
echo 'I would rather not' >"$T/answer"
new < <(planner | grep -v '^plan:')
wait_until runs planner
freeze
open_gate go
wait_until op_gone planner
pass
was_closed "a planner's second answer" "planner"
equal "its first one was no plan" "1 0" "$(events PlanRejected) $(events PlanAccepted)"
open_gate known
goes_on "a planner's second answer" "planner x"

# ---- And one whose answer is a plan ----
cp "$T/plan" "$T/answer"
new < <(planner | grep -v '^plan:')
wait_until runs planner
freeze
open_gate go
wait_until op_gone planner
pass
was_closed "a plan" "planner"
equal "it is kept" "planner x" "$(spawned '" ".join(e["agent_id"] for e in p)')"
goes_on "a plan" "x"

# ---- A synthesis: everybody has finished, or somebody has not ----
synthesis() {
	cat <<Y
roles: {sh: {provider: sh}}
synthesis: {assignee: sh, instruction: 'true'}
reactive: all
plan: [{id: a, run: '$HOLD'}, {id: b, run: 'true'}$1]
Y
}
new -j 2 < <(synthesis "")
wait_until runs a
saved_b() { spawned '"b" in o' | grep -q True; }
wait_until saved_b
freeze
open_gate go
wait_until op_gone a
pass
was_closed "a synthesis of what has all finished" "a b"
equal "only it is withheld" "a b" "$(spawned '" ".join(sorted(o))')"
goes_on "a synthesis" "synthesis"

new -j 2 < <(synthesis ", {id: c, run: 'true', needs: [a]}" | sed 's/; until/; flowsup emit spawn --run true --key k; until/')
wait_until runs a
child_saved() { spawned 's[0]["status"] == "completed" or len(s)' | grep -qE 'True|1'; }
wait_until child_saved
wait_until saved_b
freeze
open_gate go
wait_until op_gone a
pass
was_closed "a synthesis with work pending" "a b"
equal "the rest is pending" "a b pending" "$(spawned '" ".join(sorted(o))') $(spawned 's[0]["status"]')"
goes_on "a synthesis with work pending" "a.s1 c synthesis"
plan
