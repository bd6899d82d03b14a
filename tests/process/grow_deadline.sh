#!/usr/bin/env bash
# The run's deadline and a stop: nothing starts after it, whatever asks; what is asked for is kept.
. "$(dirname "$0")/lib_grow.sh"

starts_after() { awk '/"event":"DeadlineClosed"/ {on=1} on && /"event":"NodeStarted"/ {n++} END {print n+0}' "$(run_dir)/events.jsonl"; }
# Operations wait for the closing itself, as the worker writes it.
cat >"$T/closed.sh" <<'S'
until grep -q '"event":"DeadlineClosed"' "$FLOWSUP_HOME/runs/$FLOWSUP_RUN_ID/events.jsonl"; do sleep 0.02; done
S

movable "$FLOWSUP" supervisor
has_started() { # OPERATION...
	local op
	for op; do has_event NodeStarted "\"op\":\"$op\"" || return 1; done
}
# late OPERATION...: the deadline passes while these run; then the run goes on to its end.
late() {
	wait_until has_started "$@"
	deadline_passes
	wait_until ended
	deadline_is_ahead
}

# ---- Late spawn, late escalation, a waiter for the slot, a retry, a foreach ----
begin --timeout 1h -j 2 <<'Y'
reactive: all
roles:
  low: {provider: robot, env: {WHO: low}, escalate_to: high}
  high: {provider: robot, env: {WHO: high}}
plan:
  - {id: late, assignee: low, instruction: '. "$T/closed.sh"; flowsup emit spawn --instruction "echo late" 2>"$T/said" && flowsup emit escalate 2>>"$T/said"; echo $?'}
  - {id: fails, assignee: low, instruction: '. "$T/closed.sh"; test $WHO = high'}
  - {id: waits, run: echo no}
  - {id: list, run: 'echo "[1, 2]"', response: json, needs: [late]}
  - {id: each, needs: [list], foreach: "", run: 'echo "$1"'}
Y
late late fails
equal "the run ends by its deadline" "timed_out run.timed_out.deadline" "$(run_status "$RUN") $(run_fact "$RUN" reason)"
"$FLOWSUP" wait "$RUN" >/dev/null 2>"$T/wait.err"
equal "exit 124" 124 $?
equal "its type" FlowTimeoutError "$(run_fact "$RUN" error_type)"
matches "and how to go on is said" "flowsup resume $RUN" "$("$FLOWSUP" show "$RUN")"
equal "nothing started after the closing" 0 "$(starts_after)"
equal "late requests are accepted and deferred" "2 0" "$(grep -c deferred "$T/said") $(output late)"
equal "they are recorded as pending" "pending pending pending" "$(spawned '" ".join(e["status"] for e in s)')"
equal "a late failure is tried again later" True "$(spawned 'any(e.get("escalated_from") == node["fails"] for e in s)')"
matches "and is not said to have been tried" 'exit status 1; fails.s1 is to be tried in its place' "$(shown 'op["fails"]["why"]')"
equal "planned work that was withheld is absent" "['fails', 'late']" "$(spawned 'sorted(o)')"
# The deadline begins anew, and is what the further tries wait for.
tries=$(spawned '" ".join(e["spawn_id"] for e in s if e.get("escalated_from"))')
for n in 1 2; do
	RUN=$("$FLOWSUP" resume "$RUN" 2>/dev/null)
	# shellcheck disable=SC2086 # words are meant
	[ $n = 2 ] && wait_until ended || late $tries
	equal "nor after the deadline of resume $n" 0 "$(starts_after)"
done
equal "a resume runs what was withheld" "completed" "$(run_status "$RUN")"
equal "all of it" True "$(spawned 'all(e["status"] == "completed" for e in s) and {"waits", "list", "each"} <= set(o) and {"late.s1", "late.s2", "fails.s1", "each.0", "each.1"} <= set(by)')"

# ---- Behind the deadline: that is seen, nothing is to be approved, and a stop makes it a cancelled run ----
rm -f "$T"/gates/*
begin --timeout 1h <<'Y'
plan:
  - {id: runs, run: 'until [ -e "$T/gates/go" ]; do sleep 0.05; done'}
  - {id: asks, gate: approve, run: 'true'}
Y
wait_until has_started runs
matches_soon "before it an approval is waited for" "next +flowsup approve $RUN asks" "$FLOWSUP" show "$RUN"
deadline_passes
matches_soon "after it the list says that it has passed" "running \(deadline passed\) .* deadline passed [0-9.a-z]* ago: nothing more is started" \
	"$FLOWSUP" list
deadline_is_ahead
matches "for programs too" '"marks":\["deadline passed"\],"stopping":null,"draining":\{"since":[0-9.]+\}.*"answer_command":null' "$("$FLOWSUP" list --json -n 1)"
matches "show says what is waited for" "deadline +deadline passed [0-9.a-z]* ago: nothing more is started; waits for the end of runs"$'\n' "$("$FLOWSUP" show "$RUN")"
equal "and recommends no approval" 0 "$("$FLOWSUP" show "$RUN" | grep -c '^next')"
matches "nor is one waited for" "nothing waits" "$("$FLOWSUP" waiting 2>&1)"
"$FLOWSUP" stop "$RUN" >/dev/null 2>&1
matches_soon "a stop is seen like any other" "running \(stopping, deadline passed\) .* stopping for" "$FLOWSUP" list
open_gate go
wait_until ended
equal "and has its own outcome" "cancelled run.cancelled.stop" "$(run_status "$RUN") $(run_fact "$RUN" reason)"
"$FLOWSUP" wait "$RUN" >/dev/null 2>&1
equal "exit 143" 143 $?
rm -f "$T"/gates/*

# ---- Another deadline for the resume ----
begin --timeout 1h -j 1 <<'Y'
plan: [{id: a, run: '. "$T/closed.sh"'}, {id: b, run: 'echo "$FLOWSUP_DEADLINE"'}]
Y
late a
equal "work is withheld" timed_out "$(run_status "$RUN")"
RUN=$("$FLOWSUP" resume "$RUN" --timeout 2h 2>/dev/null)
wait_until ended
equal "with another deadline it completes" completed "$(run_status "$RUN")"
check "which operations are told" [ "$(($(output b) - $(date +%s)))" -gt 7000 ]

# ---- Nothing withheld: the deadline has no effect ----
begin --timeout 1h <<'Y'
reactive: all
plan: [{id: a, run: '. "$T/closed.sh"; echo done'}]
Y
late a
equal "a run that had started everything completes" completed "$(run_status "$RUN")"

# ---- Failure keeps its own outcome ----
begin --timeout 1h -j 1 <<'Y'
plan: [{id: a, run: '. "$T/closed.sh"; false'}, {id: b, run: 'true'}]
Y
late a
equal "a failure is a failure, also beside a deadline" "failed run.failed.operation" "$(run_status "$RUN") $(run_fact "$RUN" reason)"

# ---- stop --drain ----
begin <<'Y'
reactive: all
plan:
  - {id: a, run: ': > "$T/gates/runs"; until [ -e "$T/gates/go" ]; do sleep 0.02; done; flowsup emit spawn --run "echo late"'}
  - {id: b, needs: [a], run: echo no}
Y
wait_until [ -e "$T/gates/runs" ]
"$FLOWSUP" stop --drain "$RUN" >/dev/null 2>&1
stopped() { "$FLOWSUP" ctl status "$RUN" --json | grep -q '"state":"applied"'; }
wait_until stopped
open_gate go
wait_until ended
equal "a stop drains in the same way" "cancelled pending ['a']" "$(run_status "$RUN") $(spawned 's[0]["status"]') $(spawned 'list(o)')"
matches "the request was deferred" deferred "$(errors a)"

# ---- A failure while the deadline drains ----
begin --timeout 1h <<'Y'
plan:
  - {id: a, run: '. "$T/closed.sh"; exit 3'}
  - {id: b, needs: [a], run: 'true'}
  - {id: c, needs: [{op: a, on: failure}], run: 'true'}
  - {id: d, needs: [{op: a, on: always}], run: 'true'}
Y
late a
equal "the run has failed" "failed" "$(run_status "$RUN")"
equal "what was withheld is pending, and what could not run is skipped" "skipped pending pending" \
	"$(shown 'op["b"]["state"] + " " + op["c"]["state"] + " " + op["d"]["state"]')"
equal "for that reason" "not started: the deadline had passed" "$(shown 'op["c"]["why"]')"
equal "the run says both" "operation a failed; the deadline passed: 2 of 4 operations have no outcome" "$(run_fact "$RUN" reason_text)"
retry="flowsup resume $RUN --retry-failed" keep="flowsup resume $RUN --keep-failed"
matches "what was withheld may go on with or without what failed" "next +$retry"$'\n'"or +$keep\$" "$("$FLOWSUP" show "$RUN")"
equal "as programs are told" "$keep" "$(run_fact "$RUN" keep_command)"
"$FLOWSUP" watch "$RUN" >"$T/lines" 2>&1
matches "and who watches" "hint: $retry +# to go on"$'\n'"hint: $keep +# to leave what failed\$" "$(cat "$T/lines")"
matches "it does not count as done" "2 of 4 done, 1 failed, 1 skipped" "$("$FLOWSUP" show "$RUN" | grep '^progress')"
matches "as in list" " 2/4 " "$("$FLOWSUP" list -n 1)"
RUN=$("$FLOWSUP" resume "$RUN" --keep-failed 2>/dev/null)
wait_until ended
equal "which does that work" "failed completed completed" "$(run_status "$RUN") $(shown 'op["c"]["state"] + " " + op["d"]["state"]')"
equal "and then there is none left" "null" "$(run_fact "$RUN" keep_command)"

# ---- An attempt that failed, and the next one was not started ----
begin --timeout 1h <<'Y'
roles: {r: {provider: robot}}
plan:
  - {id: again, run: 'exit 3', retry: {attempts: 3, backoff: 1h}}
  - {id: late, run: '. "$T/closed.sh"; exit 4', retry: {attempts: 3, backoff: 1h}}
  - {id: after, needs: [again], run: 'true'}
Y
wait_until has_event NodeRetrying '"op":"again"'
equal_soon "meanwhile it waits" waiting shown 'op["again"]["state"]'
late late
equal "nothing has failed" timed_out "$(run_status "$RUN")"
equal "show calls cancelled what the events do" "cancelled cancelled pending 2" \
	"$(shown 'op["again"]["state"] + " " + op["late"]["state"] + " " + op["after"]["state"]') $(events NodeCancelled)"
matches "and says why" 'exit status 4; its next attempt was not started' "$(shown 'op["late"]["why"]')"
equal "its time is that of its attempt, not of the wait" \
	"$(grep -F '"event":"NodeRetrying"' "$(run_dir)/events.jsonl" | grep -F '"op":"again"' | grep -o '"time":[0-9.]*' | sed "s/0*$//")" \
	"\"time\":$(shown 'op["again"]["ended_at"]')"
matches "it counts as nothing" "0 of 3 done, 0 saved" "$("$FLOWSUP" show "$RUN" | grep '^progress')"
matches "as in list" " 0/3 " "$("$FLOWSUP" list -n 1)"
matches "and at the end of a wait" "0 of 3 done" "$("$FLOWSUP" wait "$RUN" 2>&1)$("$FLOWSUP" watch "$RUN" 2>&1)"

begin --timeout 1h -j 1 <<'Y'
plan:
  - {id: again, run: 'exit 3', retry: {attempts: 3, backoff: 1ms}}
  - {id: late, run: '. "$T/closed.sh"'}
  - {id: never, run: 'true'}
Y
late late
equal "so also of one that waited for a slot again" "timed_out cancelled pending" \
	"$(run_status "$RUN") $(shown 'op["again"]["state"] + " " + op["never"]["state"]')"
why_cancelled() { grep -F '"event":"NodeCancelled"' "$(run_dir)/events.jsonl" | grep -F "\"op\":\"$1\"" | grep -o '"why":"[^"]*"'; }
equal "the events say the same" '"why":"its next attempt was not started" "why":"not started"' "$(why_cancelled again) $(why_cancelled never)"

begin --timeout 1h <<'Y'
roles: {r: {provider: robot}}
planner: {assignee: r, instruction: '. "$T/closed.sh"; echo "no plan"; exit'}
Y
late planner
equal "also a planner whose answer was not fed back any more" "timed_out cancelled" "$(run_status "$RUN") $(shown 'op["planner"]["state"]')"
matches "which a resume asks again" "failed, and its next attempt was not started" "$("$FLOWSUP" resume "$RUN" --dry-run)"

begin <<'Y'
plan: [{id: again, run: 'exit 3', retry: {attempts: 3, backoff: 1h}}]
Y
wait_until has_event NodeRetrying '"op":"again"'
kill -KILL "$(run_fact "$RUN" worker_pid)"
wait_until ended
equal "a worker that dies meanwhile interrupts it" "interrupted" "$(shown 'op["again"]["state"]')"
matches "and that is said" "exit status 3; its next attempt had not started when the worker ended" "$(shown 'op["again"]["why"]')"

# ---- The order of the log is that of what happened ----
begin --timeout 1h -j 8 <<'Y'
roles: {r: {provider: robot}}
plan: [{id: a, assignee: r, foreach: [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20], instruction: 'echo {{item}}'}]
Y
some_ended() { [ "$(events NodeCompleted)" -ge 9 ]; }
wait_until some_ended
deadline_passes
wait_until ended
deadline_is_ahead
equal "what began below a keeper before the closing stands before it" "timed_out 1 0" \
	"$(run_status "$RUN") $(events DeadlineClosed) $(starts_after)"

# ---- FLOWSUP_DEADLINE ----
run_flow --timeout 1h <<'Y'
reactive: all
plan: [{id: a, run: 'flowsup emit spawn --run "echo \$FLOWSUP_DEADLINE"; echo $FLOWSUP_DEADLINE'}]
Y
left=$(($(output a | tail -1) - $(date +%s)))
check "operations know the deadline" [ "$left" -gt 3500 -a "$left" -le 3601 ]
equal "also those that were added" "$(output a | tail -1)" "$(output a.s1)"
at=$(json "$("$FLOWSUP" checkpoint export "$RUN" --json)" deadline_ms)
check "which none sees passed before it has" [ "$at" -gt 0 -a $(($(output a | tail -1) * 1000)) -ge "$at" ]
run_flow <<'Y'
plan: [{id: a, timeout: 900ms, run: 'echo $((FLOWSUP_DEADLINE - $(date +%s)))'}]
Y
check "nor a limit of its own of less than a second" [ "$(output a)" -ge 1 ]
plan
