#!/usr/bin/env bash
# start --unique where jobs do not just run and end: crashes that are answered, what outlives a worker,
# runs that are replaced before they run.
. "$(dirname "$0")/lib.sh"

fact() { json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$1\"")" "$2"; }
is() { [ "$(fact "$1" status)" = "$2" ]; }
reason_is() { [ "$(fact "$1" reason)" = "$2" ]; }
resumed() { [[ $(fact "$1" resumed_as) =~ ^[0-9] ]]; }
# start GO OPTION...: a run until $T/go-GO is there, its process in $T/pids-GO.
start() {
	local go=$1
	shift
	"$FLOWSUP" start "$@" -- sh -c "echo \$\$ >> '$T/pids-$go'; until [ -e '$T/go-$go' ]; do sleep 0.02; done" 2>"$T/said"
}
go() { touch "$T/go-$1"; }
began() { [ -s "$T/pids-$1" ]; }
crash() { # RUN: kills its worker
	wait_until worker_is_ready "$1" && kill -KILL "$(worker_pid "$1")"
}

# ---- An automatic resume goes on with the job's key, before those that came since ----
first=$(start a --unique k --restart 3)
wait_until began a
second=$(start b --unique k --if-running queue)
wait_until reason_is "$second" run.queued.unique
crash "$first"
wait_until resumed "$first"
next=$(fact "$first" resumed_as)
check "the job that crashed goes on" wait_until is "$next" running
third=$(start c --unique k --if-running queue)
wait_until reason_is "$third" run.queued.unique
equal "who came since waits on" "queued queued" "$(fact "$second" status) $(fact "$third" status)"
check "and was not started" test ! -e "$T/pids-b"
go a
check "its end frees the key" wait_until is "$second" running
equal "in order" queued "$(fact "$third" status)"
wait_until is "$next" completed
go b
check "for the last one, too" wait_until is "$third" running
go c
wait_until is "$third" completed
plan
