#!/usr/bin/env bash
# stop and kill: live, crashed, ended runs; nothing of a killed run is left.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

cat >flow.json <<-END
	{"name": "flow", "plan": [
	 {"id": "long", "grace": "1s", "run": "setsid sleep 1000 & echo \$! >other; echo \$\$ >pid; sleep 1000"},
	 {"id": "next", "needs": ["long"], "run": "echo next >>count"}]}
END
begin() {
	rm -f pid other
	run=$("$FLOWSUP" start flow.json)
	wait_until [ -s pid ]
	wait_until worker_is_ready "$run"
	pid=$(cat pid) other=$(cat other) worker=$(worker_pid "$run")
}

# ---- kill ----
begin
out=$("$FLOWSUP" kill "$run" 2>&1)
equal "kill succeeds" 0 $?
check "the worker is gone" gone "$worker"
check "the operation is gone" gone "$pid"
check "what moved to another session too" gone "$other"
equal "the run is cancelled" "cancelled" "$(run_status "$run")"
equal "by a kill" "run.cancelled.killed" "$(run_fact "$run" reason_code)$(run_fact "$run" reason)"
out=$("$FLOWSUP" kill "$run" 2>&1)
equal "a second one changes nothing" 0 $?
matches "and says so" "already ended" "$out"

# ---- kill of one that hears of its end by its row ----
hold_kill() { # until hold is removed: between the row and the worker, which has a pause to apply
	stop_still "$worker"
	"$FLOWSUP" pause "$run" --wait=0 2>/dev/null
	rm -f hold.waits
	: >hold
	HOLD_OPEN=hold HOLD_OPEN_OF=attempts.log HOLD_OPEN_AT=2 \
		LD_PRELOAD=$BUILD/tests/preload/hold_open.so${LD_PRELOAD:+:$LD_PRELOAD} "$FLOWSUP" kill "$run" 2>"$T/err" &
	killer=$!
	wait_until [ -e hold.waits ]
	equal "the row is at its end first" cancelled "$(run_status "$run")"
	kill -CONT "$worker"
}
hears() { grep -q 'ended by somebody else' "$FLOWSUP_HOME/runs/$run/worker.log"; }
begin
hold_kill
check "its worker hears of it" wait_until hears
check "and leaves the operations to whoever did that" alive "$pid"
rm hold
wait $killer
matches "who counts them" 'processes of operations ended: [1-9]' "$(cat "$T/err")"
check "they are gone" gone "$pid"
begin
hold_kill
{ kill -KILL $killer; wait $killer; } 2>/dev/null
check "unless that one has gone: then it ends them itself" wait_until gone "$pid"
check "and leaves" wait_until gone "$worker"
rm hold

# ---- kill of one that has just saved something ----
cat >early.json <<-'END'
	{"name": "early", "plan": [
	 {"id": "a", "run": "true"}, {"id": "b", "needs": ["a"], "run": "true"},
	 {"id": "c", "needs": ["b"], "run": "touch begun; sleep 1000"}]}
END
rm -f begun
run=$("$FLOWSUP" start early.json)
wait_until [ -e begun ]
check "it is killed" "$FLOWSUP" kill "$run"
equal "what it has saved counts, in the list as in show" "2/3" "$(run_fact "$run" done)/$(run_fact "$run" total)"

# ---- kill of many ----
# However many operations run: what is to end is looked for together, and not one by one.
ops_begun() { [ "$(cat "$FLOWSUP_HOME/runs/$run/ops/"*.out 2>/dev/null | wc -l)" -eq "$1" ]; }
walks_of_kill() { # of so many operations
	run=$(seq "$1" | "$FLOWSUP" start -j "$1" --each 'echo begun; sleep 1000')
	wait_until ops_begun "$1"
	rm -f "$T/walks"
	LD_PRELOAD=$BUILD/tests/preload/count_walks.so COUNT_WALKS=$T/walks "$FLOWSUP" kill "$run" 2>"$T/err"
	grep -q 'processes of operations ended: [1-9]' "$T/err" && wc -c <"$T/walks"
}
few=$(walks_of_kill 1)
many=$(walks_of_kill 12)
# It looks again until all have ended, which may take some a while.
check "kill of twelve operations does not look through all processes for each ($few, $many)" \
	[ "$many" -lt $((12 * few)) ]

# ---- kill of what left session and environment ----
cat >astray.json <<-END
	{"name": "astray", "plan": [
	 {"id": "a", "run": "(env -i setsid sh -c 'sleep 1000 & echo \$! >other' &); echo \$\$ >pid; sleep 1000"}]}
END
rm -f pid other
run=$("$FLOWSUP" start astray.json)
wait_until [ -s pid ] && wait_until [ -s other ]
stray=$(cat other)
check "it lives" alive "$stray"
check "kill succeeds" "$FLOWSUP" kill "$run"
check "and it is gone" gone "$stray"

# ---- kill when nothing can be written ----
begin
out=$(trap '' XFSZ; ulimit -f 0; "$FLOWSUP" stop "$run" 2>&1)
equal "a stop that cannot be written: exit 74" 74 $?
matches "says what needs no room" "end it without a record: flowsup kill $run" "$out"
out=$(trap '' XFSZ; ulimit -f 0; "$FLOWSUP" kill "$run" 2>&1)
equal "a row that cannot be written: exit 74" 74 $?
matches "says what was done and what not" "processes were ended.*row could not be written" "$out"
check "the worker is gone" gone "$worker"
check "the operation is gone" gone "$pid"
check "its supervisor records it as killed" wait_until status_is "$run" cancelled
equal "and no crash" run.cancelled.killed "$(run_fact "$run" reason_code)$(run_fact "$run" reason)"

rm -f pid
cat >counted.yaml <<-'END'
	plan: [{id: one, run: 'true'}, {id: two, needs: [one], run: 'echo $$ >pid; sleep 1000'}]
END
run=$("$FLOWSUP" start counted.yaml)
wait_until [ -s pid ]
# Before the worker has written how many are done: it does that once a second.
(trap '' XFSZ; ulimit -f 0; exec "$FLOWSUP" kill "$run") 2>/dev/null
check "one that has done something, too" wait_until status_is "$run" cancelled
one_is_done() { [ "$(run_fact "$run" "done")" = 1 ]; }
check "with what its checkpoint holds" wait_until one_is_done

# ---- which a policy does not answer ----
rm -f pid
cat >revived.yaml <<-'END'
	restart: {on: crash, attempts: 3}
	plan: [{id: a, run: 'echo $$ >pid; sleep 1000'}]
END
run=$("$FLOWSUP" start revived.yaml)
wait_until [ -s pid ]
(trap '' XFSZ; ulimit -f 0; exec "$FLOWSUP" kill "$run") 2>/dev/null
check "a killed run with a restart policy ends too" wait_until status_is "$run" cancelled
equal "nothing resumes it" null "$(run_fact "$run" resumed_as)"
# One whose row says that it crashed already, and that waits to be resumed.
rm -f pid
run=$("$FLOWSUP" start revived.yaml)
wait_until [ -s pid ]
worker=$(worker_pid "$run")
supervisor=$(supervisor_pid)
stop_still "$supervisor"
kill -KILL "$worker"
(trap '' XFSZ; ulimit -f 0; exec "$FLOWSUP" kill "$run") 2>/dev/null
kill -CONT "$supervisor"
check "also one whose worker was dead before" wait_until status_is "$run" cancelled

# ---- kill of what a dead worker left ----
begin
kill -KILL "$worker"
wait_until is_crashed "$run"
check "the operation lives on" alive "$pid"
check "kill works on a crashed run" "$FLOWSUP" kill "$run"
check "its operation is gone" gone "$pid"
equal "it stays crashed" crashed "$(run_status "$run")"

# ---- stop ----
begin
check "stop --now is applied" "$FLOWSUP" stop "$run" --now --wait
"$FLOWSUP" wait "$run" 2>/dev/null
equal "the run ends as cancelled" 143 $?
check "its operation is gone" gone "$pid"
check "the next one never ran" [ ! -e count ]
out=$("$FLOWSUP" stop "$run" 2>&1)
equal "a second one is refused" 4 $?
matches "because the run has ended" "already ended" "$out"

begin
kill -KILL "$worker"
wait_until is_crashed "$run"
out=$("$FLOWSUP" stop "$run" 2>&1)
equal "stop ends what runs of a crashed run" 0 $?
check "its operation is gone" gone "$pid"
matches "which can still be resumed" "resume $run" "$("$FLOWSUP" list --json | grep -F "$run")"
"$FLOWSUP" stop "$run" 2>/dev/null
equal "when nothing runs there is nothing to stop" 4 $?
"$FLOWSUP" stop "$run" --now --drain 2>/dev/null
equal "two modes are one too many" 2 $?

# ---- Its worker dies before it has heard of the stop ----
control_states() { "$FLOWSUP" ctl status "$run" --json | sed -nE 's/.*"state":"([a-z ]*)".*/\1/p'; }
begin
stop_still "$worker"
"$FLOWSUP" stop "$run" --now --wait=0 2>/dev/null
kill -KILL "$worker"
check "stop --now, then the worker dies: its operation is ended" wait_until gone "$pid"
check "the run has crashed" wait_until is_crashed "$run"
equal "the stop has been applied" applied "$(control_states)"
matches "the run says that it was being stopped" "SIGKILL; it was being stopped" "$("$FLOWSUP" show "$run")"
again=$("$FLOWSUP" resume "$run" 2>/dev/null)
check "a resume is not stopped by it" wait_until status_is "$again" running
"$FLOWSUP" kill "$again" 2>/dev/null

# ---- While it stops ----
cat >slow.yaml <<-'END'
	concurrency: 1
	plan:
	  - {id: a, run: ': >runs; until [ -e go ]; do sleep 0.02; done'}
	  - {id: b, needs: [a], run: 'true'}
	  - {id: c, run: 'true'}
END
rm -f runs go
run=$("$FLOWSUP" start slow.yaml)
wait_until [ -e runs ]
worker=$(worker_pid "$run")
is_null() { "$FLOWSUP" show "$run" --json | grep -q '"stopping":null'; }
check "nobody has stopped it" is_null
stop_still "$worker"
"$FLOWSUP" stop "$run" --wait=0 2>/dev/null
matches "a stop that waits for its worker is seen" "running \(stopping\) .* stopping for [0-9.a-z]*, when its worker answers" \
	"$("$FLOWSUP" list -n 1)"
matches "also by programs" '"marks":\["stopping"\],"stopping":\{"since":[0-9.]+,"mode":"drain","applied":false\}' "$("$FLOWSUP" list -n 1 --json)"
kill -CONT "$worker"
matches_soon "one that was applied says what it waits for" "stop +stopping for [0-9.a-z]*; waits for the end of a"$'\n' "$FLOWSUP" show "$run"
matches "and that nothing more is started" "c +pending +not started any more: the run is stopping" "$("$FLOWSUP" show "$run")"
matches "list too" "running \(stopping\) .* stopping for [0-9.a-z]*"$'\n' "$("$FLOWSUP" list -n 1)"$'\n'
: >go
"$FLOWSUP" wait "$run" 2>/dev/null
check "at its end it stops no more" is_null

# ---- The supervisor stands still ----
begin
supervisor=$(supervisor_pid)
stop_still "$supervisor"
said=$("$FLOWSUP" kill "$run" 2>&1)
equal "kill needs no supervisor" "0 cancelled" "$? $(run_status "$run")"
check "the operation is gone" gone "$pid"
matches "and says that it is stopped" "the supervisor, process $supervisor, is stopped: it hears of this when it goes on.*hint: kill -CONT $supervisor" \
	"$(tr '\n' ' ' <<<"$said")"
"$FLOWSUP" start -- true >"$T/out" 2>"$T/err" &
starter=$!
check "a start says what it waits for" wait_until grep -q "waits for the supervisor, process $supervisor, which is stopped" "$T/err"
check "and what has it go on" wait_until grep -q "hint: kill -CONT $supervisor" "$T/err"
kill -CONT "$supervisor"
wait $starter
equal "then it is done" 0 $?

plan
