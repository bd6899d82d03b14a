#!/usr/bin/env bash
# Supervisors that start by themselves from inside an operation outlive it: they are none of what it left.
. "$(dirname "$0")/lib.sh"

export FLOWSUP T
inner=$T/inner go=$T/go
# By its default it is there, too.
mkdir -p "$T/state" && ln -s "$inner" "$T/state/flowsup"
inner_supervisor() { FLOWSUP_HOME=$inner supervisor_pid; }
inner_status() { FLOWSUP_HOME=$inner run_status "$1"; }
there() { [ -s "$1" ]; }
# begin NAME REST: a run that starts another one in the other home, then does the rest.
begin() {
	run=$("$FLOWSUP" start -- sh -c "\"\$FLOWSUP\" --home '$inner' start -- sh -c 'until [ -e \"$go.$1\" ]; do sleep 0.02; done' >'$T/$1.new'
		mv '$T/$1.new' '$T/$1'; $2")
	wait_until there "$T/$1"
	theirs=$(cat "$T/$1")
}
status_is_theirs() { [ "$(inner_status "$theirs")" = "$1" ]; }

begin ended :
wait_until status_is "$run" completed
equal "a run ends whose operation had a supervisor of another home started" completed "$(run_status "$run")"
check "that supervisor goes on" alive "$(inner_supervisor)"
wait_until status_is_theirs running
equal "and its run" running "$(inner_status "$theirs")"
touch "$go.ended"
wait_until status_is_theirs completed
equal "which completes" completed "$(inner_status "$theirs")"
equal "nothing of it was taken for a leftover" "" \
	"$("$FLOWSUP" show "$run" --json | grep -o '"leftovers":[1-9][0-9]*')"
FLOWSUP_HOME=$inner "$FLOWSUP" supervisor stop

begin killed 'sleep 1000'
wait_until status_is_theirs running
"$FLOWSUP" kill "$run" >/dev/null 2>&1
first=$(inner_supervisor)
check "kill of such a run leaves it alone" alive "$first"
equal "and its run" running "$(inner_status "$theirs")"
FLOWSUP_HOME=$inner "$FLOWSUP" supervisor stop
touch "$go.killed"

# A worker whose supervisor has left hangs below the operation's worker.
begin left "until [ -e '$T/end' ]; do sleep 0.02; done"
wait_until status_is_theirs running
FLOWSUP_HOME=$inner "$FLOWSUP" supervisor stop
touch "$T/end"
wait_until status_is "$run" completed
equal "a worker without its supervisor goes on too" running "$(inner_status "$theirs")"
touch "$go.left"
wait_until status_is_theirs completed
equal "to its end" completed "$(inner_status "$theirs")"

# ---- One that was called in its foreground: however its home was named, and with the marks of the operation ----
# is_spared NAME HOW: HOW calls it in the operation of a run.
is_spared() {
	local run pid
	run=$("$FLOWSUP" start -- sh -c "$2 </dev/null >'$T/foreground' 2>&1 &
		until \"\$FLOWSUP\" supervisor status --home '$inner' | grep -q ^supervisor; do sleep 0.02; done
		touch '$T/up-$1'; until [ -e '$T/end-$1' ]; do sleep 0.02; done")
	wait_until [ -e "$T/up-$1" ]
	pid=$(inner_supervisor)
	equal "$1: it is no leftover while the run goes on" 0 "$(run_fact "$run" running_operations)"
	touch "$T/end-$1"
	wait_until status_is "$run" completed
	check "$1: the end of the run leaves it alone" alive "$pid"
	equal "$1: nothing was taken for a leftover" "" "$("$FLOWSUP" show "$run" --json | grep -o '"leftovers":[1-9][0-9]*')"
	FLOWSUP_HOME=$inner "$FLOWSUP" supervisor stop
	wait_until gone "$pid"
	run=$("$FLOWSUP" start -- sh -c "$2 </dev/null >'$T/foreground' 2>&1 &
		until \"\$FLOWSUP\" supervisor status --home '$inner' | grep -q ^supervisor; do sleep 0.02; done
		touch '$T/again-$1'; exec sleep 1000")
	wait_until [ -e "$T/again-$1" ]
	pid=$(inner_supervisor)
	"$FLOWSUP" kill "$run" >/dev/null 2>&1
	check "$1: so does a kill" alive "$pid"
	FLOWSUP_HOME=$inner "$FLOWSUP" supervisor stop
	wait_until gone "$pid"
}
is_spared environment "FLOWSUP_HOME='$inner' setsid \"\$FLOWSUP\" supervisor --foreground"
is_spared word "setsid \"\$FLOWSUP\" supervisor --foreground '--home=$inner'"
is_spared relative "cd '$T' && setsid \"\$FLOWSUP\" --home inner supervisor --foreground"
is_spared unmarked "setsid env -i XDG_STATE_HOME='$T/state' PATH=\"\$PATH\" \"\$FLOWSUP\" supervisor --foreground"

# The same home: the supervisor died, and a command in the operation starts the next one.
"$FLOWSUP" queue set q --slots 1
one=$("$FLOWSUP" start --queue q -- sh -c "until [ -e '$go.one' ]; do sleep 0.02; done")
two=$("$FLOWSUP" start --queue q -- true)
run=$("$FLOWSUP" start -- sh -c "until [ -e '$T/look' ]; do sleep 0.02; done; \"\$FLOWSUP\" list; until [ -e '$T/over' ]; do sleep 0.02; done")
wait_until status_is "$run" running
wait_until status_is "$one" running
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
touch "$T/look"
wait_until one_supervisor
next=$(supervisors)
touch "$T/over"
wait_until status_is "$run" completed
check "so does one of the same home" alive "$next"
touch "$go.one"
wait_until status_is "$two" completed
equal "and starts what waits" completed "$(run_status "$two")"
plan
