#!/usr/bin/env bash
# stop --all while the database cannot be written: nothing goes on that it calls ended, and what it has stopped is
# not taken up again when it can.
. "$(dirname "$0")/lib.sh"

export FAIL_SYNC=$T/fail FAIL_SYNC_OF=state.db
preload=$BUILD/tests/preload/fail_sync.so
failing() { LD_PRELOAD=$preload${LD_PRELOAD:+:$LD_PRELOAD} "$@"; }
fact() { json "$("$FLOWSUP" list --json -n 1000 | grep "^{\"id\":\"$1\"")" "$2"; }
has_fact() { [ "$(json "$("$FLOWSUP" supervisor status --json 2>/dev/null)" "$1")" = "$2" ]; }
stop_now() { failing timeout "$LIMIT" "$FLOWSUP" supervisor stop --all --now 2>"$T/said"; }
begin() { # OPTION...: a run, whose operation is then $op
	rm -f "$T/op"
	run=$("$FLOWSUP" start "$@" -- sh -c "echo x >>'$T/ran'; echo \$\$ >'$T/op.new'; mv '$T/op.new' '$T/op'; until [ -e '$T/go' ]; do sleep 0.02; done")
	wait_until [ -s "$T/op" ]
	wait_until worker_is_ready "$run"
	op=$(cat "$T/op")
	worker=$(worker_pid "$run")
}

# ---- A worker that died meanwhile ----
failing "$FLOWSUP" supervisor
begin
touch "$FAIL_SYNC"
kill -KILL "$worker"
wait_until gone "$worker"
check "a death cannot be recorded" wait_until logged "run $run: .*state.db"
check "what runs of it is known all the same" wait_until has_fact kept_operations 1
matches "and told" "0 runs, 1 operation without a worker" "$("$FLOWSUP" supervisor status 2>/dev/null)"
check "and goes on" alive "$op"
pid=$(supervisor_pid)
stop_now
equal "now: that it is not recorded is said" 74 $?
matches "with the reason" "not recorded.*state.db" "$(cat "$T/said")"
check "nothing goes on" gone "$op"
check "the supervisor has left" gone "$pid"
rm "$FAIL_SYNC"
failing "$FLOWSUP" supervisor
check "the next one records it" wait_until status_is "$run" crashed

# ---- Jobs that would go on by themselves: live, waiting for a resume, queued ----
begin --restart 3
late=$run late_op=$op
sql "UPDATE sessions SET restarts_done = 9 WHERE run_id = '$late'"
kill -KILL "$worker"
wait_until status_is "$late" crashed
begin --restart 3
"$FLOWSUP" queue set q --slots 1
"$FLOWSUP" start --queue q -- sh -c "echo x >>'$T/ran'; exec sleep 1000" >/dev/null
queued=$("$FLOWSUP" start --queue q -- sh -c "echo x >>'$T/ran'")
wait_until status_is "$queued" queued
ran() { grep -c x "$T/ran"; }
wait_until eval '[ "$(ran)" = 4 ]'
before=$(ran)
touch "$FAIL_SYNC"
stop_now
equal "jobs: that it is not recorded is said" 74 $?
check "nothing of them goes on" eval 'gone "$op" && gone "$late_op"'
rm "$FAIL_SYNC"
failing "$FLOWSUP" supervisor
is_given_up() { [ "$(fact "$1" status) $(fact "$1" restarts_left) $(fact "$1" resumed_as)" = "$2 0 null" ]; }
check "a live one has ended, and is not resumed" wait_until is_given_up "$run" crashed
check "one that waited for its resume is given up" wait_until is_given_up "$late" crashed
check "a queued one is cancelled" wait_until status_is "$queued" cancelled
matches "with the reason" '"not_restarted":"it was stopped with all others"' "$("$FLOWSUP" show --json "$run")"
equal "and nothing has started again" "$before" "$(ran)"
plan
