#!/usr/bin/env bash
# The log of a run that takes something over begins with the line of a worker that is dead: its number is
# not shown as that of the run's worker.
. "$(dirname "$0")/lib.sh"

id=$("$FLOWSUP" start -- sh -c "until [ -e '$T/go' ]; do sleep 0.02; done")
wait_until worker_is_ready "$id"
wait_until status_is "$id" running
worker=$(worker_pid "$id")
true &
dead=$!
wait "$dead"
log=$FLOWSUP_HOME/runs/$id/attempts.log
grep '"kind":"worker"' "$log" | tail -n 1 | sed -E "s/\"pid\":[0-9]+/\"pid\":$dead/" >>"$log"
shown() { json "$("$FLOWSUP" show "$id" --json)" worker_pid; }
equal "show has the one that the supervisor knows" "$worker" "$(shown)"
out=$("$FLOWSUP" resume "$id" 2>&1)
equal "a resume says that it is alive" "0 flowsup: run $id is alive (its worker is starting)" "$? $out"
touch "$T/go"
check "the run ends" wait_until status_is "$id" completed
plan
