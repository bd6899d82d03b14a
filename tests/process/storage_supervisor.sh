#!/usr/bin/env bash
# The supervisor on a state directory without room, and on one whose database cannot be synchronised:
# nothing is called done that is not recorded, it stays, and everything goes on afterwards.
# shellcheck source=lib_disk.sh
. "$(dirname "$0")/lib_disk.sh"

fact() { json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$1\"")" "$2"; }
is() { [ "$(fact "$1" status)" = "$2" ]; }
rows() { sql 'SELECT COUNT(*) FROM sessions'; }
long() { "$FLOWSUP" start "$@" -- sh -c "until [ -e '$T/go' ]; do sleep 0.02; done"; }

if ! mount_disk 2000; then
	skip "no room (this user may not mount)"
else
	export FLOWSUP_HOME=$T/disk/home
	run=$(long)
	two=$(long --restart 2)
	wait_until worker_is_ready "$run"
	wait_until worker_is_ready "$two"
	pid=$(supervisor_pid)
	before=$(rows)
	fill
	out=$("$FLOWSUP" start -- true 2>"$T/said")
	status=$?
	check "a start without room fails (status $status)" [ "$status" = 73 -o "$status" = 74 ]
	equal "prints no id" "" "$out"
	matches "and says why" "[Nn]o space left|full" "$(cat "$T/said")"
	equal "nothing of it is left" "$before $before" "$(rows) $(ls "$FLOWSUP_HOME/runs" | grep -c .)"
	kill -KILL "$(worker_pid "$run")" "$(worker_pid "$two")"
	check "the supervisor lives on" alive "$pid"
	tells() { "$FLOWSUP" show "$run" | grep -qE "no worker.*this could not be recorded yet: '.*state.db': .*(full|[Nn]o space)"; }
	check "show says what keeps it from recording a death" wait_until tells
	check "and answers" [ "$(supervisor_pid)" = "$pid" ]
	room
	check "with room again a death is recorded" wait_until is "$run" crashed
	resumed() { [[ $(fact "$two" resumed_as) =~ ^[0-9] ]]; }
	check "and a restart made" wait_until resumed
	touch "$T/go"
	check "which completes" wait_until is "$(fact "$two" resumed_as)" completed
	next=$("$FLOWSUP" start -- true)
	check "new runs run" wait_until is "$next" completed
	equal "it was one supervisor all the time" "$pid" "$(supervisor_pid)"
	"$FLOWSUP" kill "$run" 2>/dev/null
	"$FLOWSUP" supervisor stop
	rm "$T/go"

	# An end that cannot be recorded is not waited for without end.
	run=$(long)
	wait_until worker_is_ready "$run"
	pid=$(supervisor_pid)
	fill
	kill -KILL "$(worker_pid "$run")"
	timeout "$LIMIT" "$FLOWSUP" supervisor stop --all --now 2>"$T/said"
	equal "a stop of every run without room ends" 74 $?
	matches "and has said what it waits for" "every run has ended; waits until that is recorded: .*(full|[Nn]o space)" \
		"$(cat "$T/said")"
	matches "and what is missing" "(not recorded.*(full|[Nn]o space)|how 1 operation ended is not written down)" "$(cat "$T/said")"
	check "the supervisor has left" gone "$pid"
	room
	"$FLOWSUP" list >/dev/null
	check "the next one records it" wait_until is "$run" crashed
	"$FLOWSUP" kill "$run" 2>/dev/null
	"$FLOWSUP" supervisor stop
fi

# ---- A database that cannot be synchronised ----
export FLOWSUP_HOME=$T/home FAIL_SYNC=$T/fail FAIL_SYNC_OF=state.db
preload=$BUILD/tests/preload/fail_sync.so
failing() { LD_PRELOAD=$preload${LD_PRELOAD:+:$LD_PRELOAD} "$@"; }
failing "$FLOWSUP" supervisor
run=$(long)
wait_until worker_is_ready "$run"
pid=$(supervisor_pid)
before=$(rows)
touch "$FAIL_SYNC"
out=$(failing "$FLOWSUP" start -- true 2>"$T/said")
equal "a start whose row is not on the disk fails" 74 $?
equal "and prints no id" "" "$out"
kill -KILL "$(worker_pid "$run")"
check "the supervisor says that it cannot record a death" wait_until logged "run $run: .*state.db"
check "and stays" alive "$pid"
rm "$FAIL_SYNC"
check "then it does" wait_until is "$run" crashed
equal "no run came of the start that failed" "$before" "$(rows)"
touch "$T/go"
next=$("$FLOWSUP" start -- true)
check "and new runs run" wait_until is "$next" completed

# ---- Who waits is told what for ----
says() { grep -qE "$1" "$T/said"; }
touch "$FAIL_SYNC"
"$FLOWSUP" start --wait -- true >"$T/out" 2>"$T/said" &
waits=$!
check "a run that cannot be recorded as started: who waits is told" \
	wait_until says "is not started yet: the supervisor cannot record it: run .*state.db"
it=$(cat "$T/out")
lists() { "$FLOWSUP" "$@" | grep -qE "queued.* the supervisor cannot record its start: '$FLOWSUP_HOME/state.db': "; }
check "list says the same" wait_until lists list -n 1
check "and show" wait_until lists show "$it"
rm "$FAIL_SYNC"
wait "$waits"
equal "then it goes on" 0 $?
rm "$T/go"
"$FLOWSUP" start --wait -- sh -c "touch '$T/begun'; until [ -e '$T/go' ]; do sleep 0.02; done" >"$T/out" 2>"$T/said" &
waits=$!
wait_until [ -e "$T/begun" ]
touch "$FAIL_SYNC" "$T/go"
check "one whose end cannot be recorded: who waits is told, too" \
	wait_until says "has ended; waits until that can be recorded in '$FLOWSUP_HOME/state.db'"
rm "$FAIL_SYNC"
wait "$waits"
equal "then its end is known" 0 $?
plan
