#!/usr/bin/env bash
# Supervisors that start by themselves from inside an operation outlive it: they are none of what it left.
. "$(dirname "$0")/lib.sh"

export FLOWSUP T
inner=$T/inner go=$T/go
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
