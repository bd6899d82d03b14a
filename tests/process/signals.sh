#!/usr/bin/env bash
# Signals to supervisor and worker: each leaves, does what is asked, or goes on. stop --all has a bound.
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" && cd "$T/work" || exit 1

start_long() { # -> $id, $worker
	id=$("$FLOWSUP" start -- sleep 600)
	wait_until worker_is_ready "$id"
	wait_until status_is "$id" running
	worker=$(worker_pid "$id")
}

# ---- The supervisor ----
start_long
pid=$(supervisor_pid)
kill -USR1 "$pid" && kill -USR2 "$pid" && kill -ALRM "$pid"
check "signals without meaning are logged" wait_until logged "SIGALRM means nothing"
mv "$FLOWSUP_HOME/supervisor.log" "$T/old.log"
kill -HUP "$pid"
check "SIGHUP: the log is opened anew" wait_until logged "SIGHUP: opened the log anew"
equal "it is still the same one" "$pid" "$(supervisor_pid)"
check "with its worker" worker_is_ready "$id"
kill -QUIT "$pid"
check "SIGQUIT: it leaves" wait_until gone "$pid"
check "and says why" logged "leaves: SIGQUIT"
check "its worker goes on" alive "$worker"

"$FLOWSUP" supervisor --foreground 2>"$T/foreground" &
pid=$!
wait_until eval '[ "$(supervisor_pid)" = "$pid" ]'
kill -HUP "$pid"
wait "$pid"
equal "in the foreground SIGHUP has it leave" 0 $?
matches "with a word" "leaves: SIGHUP" "$(cat "$T/foreground")"

# ---- The worker ----
kill -HUP "$worker" && kill -USR1 "$worker" && kill -USR2 "$worker" && kill -ALRM "$worker"
"$FLOWSUP" list >/dev/null
check "a worker goes on through signals without meaning" alive "$worker"
for signal in INT QUIT TERM; do
	kill -$signal "$worker"
	"$FLOWSUP" wait "$id" 2>/dev/null
	equal "SIG$signal: exit 137" 137 $?
	equal "SIG$signal: it was asked to leave" "run.crashed.terminated" "$(run_fact "$id" reason)"
	matches "SIG$signal: by this signal" "asked to leave by a signal \(SIG$signal\)" "$("$FLOWSUP" show "$id")"
	"$FLOWSUP" kill "$id" 2>/dev/null
	start_long
done

# ---- stop --all ----
"$FLOWSUP" supervisor stop --timeout 1s 2>/dev/null
equal "--timeout without --all is refused" 2 $?
stop_still "$worker"
timeout "$LIMIT" "$FLOWSUP" pause "$id" --wait=0 2>/dev/null
equal "a control that is followed for no time is looked at once" 3 $?
"$FLOWSUP" supervisor stop --all --now --timeout 100ms 2>"$T/err"
equal "a worker that stands still: exit 3 in time" 3 $?
matches "it says whose end it waits for" "waits for the end of 1 run: $id" "$(cat "$T/err")"
matches "and what is going on" "not every run is at its end" "$(cat "$T/err")"
timeout "$LIMIT" "$FLOWSUP" supervisor stop --all --now --timeout 0 2>/dev/null
equal "so is their end" 3 $?
kill -CONT "$worker"
check "the run is stopped all the same" wait_until status_is "$id" cancelled
wait_until eval '[ "$(supervisors | count)" = 0 ]'
for round in 1 2 3 4 5; do
	"$FLOWSUP" supervisor
	pid=$(supervisor_pid)
	"$FLOWSUP" supervisor stop
	gone "$pid" || break
done
equal "when stop returns the process has gone" "5 yes" "$round $(gone "$pid" && echo yes)"
plan
