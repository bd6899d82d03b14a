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

# ---- Nothing of what is replaced lives when the new run starts ----
# One process that does not heed SIGTERM, and one that has left its group. Their numbers are in $T/pids-GO.
cat >"$T/held.yaml" <<END
defaults: {grace: 200ms}
plan:
  - {id: deaf, run: 'trap "" TERM; setsid sh -c "echo \$\$ >> $T/pids; exec sleep 1000" & echo \$\$ >> $T/pids; while :; do sleep 0.05; done'}
END
both_began() { [ -e "$T/pids" ] && [ "$(count <"$T/pids")" = 2 ]; }
held() { # OPTION...: starts it
	rm -f "$T/pids"
	"$FLOWSUP" start "$T/held.yaml" "$@" 2>"$T/said"
}
# replacer OPTION...: a run that notes which of them it finds.
replacer() {
	rm -f "$T/found"
	"$FLOWSUP" start --if-running replace "$@" -- sh -c "grep -sl '^State:.[^Z]' \$(sed 's|.*|/proc/&/status|' '$T/pids') >'$T/found.new'; mv '$T/found.new' '$T/found'" 2>"$T/said"
}
# replaces NAME OPTION...: what goes on with the key is replaced.
replaces() {
	local name=$1 new
	shift
	new=$(replacer "$@")
	check "$name: the new run starts" wait_until is "$new" completed
	equal "$name: and finds nothing of what it replaced" "" "$(cat "$T/found")"
}
# crash_late RUN: as after many restarts, the next one comes in a minute.
crash_late() {
	wait_until worker_is_ready "$1"
	sql "UPDATE sessions SET restarts_done = 9 WHERE run_id = '$1'"
	crash "$1"
	wait_until is "$1" crashed
}
one=$(held --unique live)
wait_until both_began
wait_until worker_is_ready "$one"
replaces "running" --unique live

# Its worker dies with the stop unanswered: nobody but the supervisor ends what is there.
one=$(held --unique deaf)
wait_until both_began
wait_until worker_is_ready "$one"
worker=$(worker_pid "$one")
stop_still "$worker"
new=$(replacer --unique deaf)
equal "its stop stands with the new run" 1 "$(sql "SELECT COUNT(*) FROM session_controls c JOIN sessions s ON s.id = c.session_id WHERE s.run_id = '$one'")"
kill -KILL "$worker"
check "dead before it heard of its stop: the new run starts" wait_until is "$new" completed
equal "dead before it heard of its stop: and finds nothing" "" "$(cat "$T/found")"
equal "after it waited for what was left" 1 "$(sql "SELECT COUNT(*) FROM status_transitions t JOIN sessions s ON s.id = t.session_id WHERE s.run_id = '$new' AND t.reason = 'waits for what run $one left'")"

one=$(held --unique dead --restart 3)
wait_until both_began
crash_late "$one"
replaces "waiting for its automatic resume" --unique dead
equal "and is not resumed" "0 null" "$(fact "$one" restarts_left) $(fact "$one" resumed_as)"

# A resume in the queue has what its predecessor's worker left.
inherited() { # KEY: $one crashed, $two runs with the key, $three resumes $one and waits
	one=$(held --unique "$1")
	wait_until both_began
	crash "$one"
	wait_until is "$one" crashed
	two=$(start "$1" --unique "$1")
	wait_until is "$two" running
	three=$("$FLOWSUP" resume "$one" 2>/dev/null)
	wait_until reason_is "$three" run.queued.unique
}
inherited heir
replaces "a resume that waits" --unique heir
equal "it never starts" "cancelled run.cancelled.queued" "$(fact "$three" status) $(fact "$three" reason)"
inherited stopped
check "stop of a resume that waits" "$FLOWSUP" stop "$three" 2>/dev/null
they_are_gone() { local pid; for pid in $(cat "$T/pids"); do gone "$pid" || return; done; }
check "ends what it has taken over, too" they_are_gone
equal "it never starts" cancelled "$(fact "$three" status)"
"$FLOWSUP" stop --now "$two" 2>/dev/null

# ---- Replaced while it waits, and while it starts ----
one=$(start d --unique early)
wait_until is "$one" running
two=$(start e --unique early --if-running queue)
wait_until reason_is "$two" run.queued.unique
touch "$T/pids"
replaces "one that waits" --unique early
check "it was not started" test ! -e "$T/pids-e"
equal "it is cancelled" "cancelled run.cancelled.queued" "$(fact "$two" status) $(fact "$two" reason)"

one=$("$FLOWSUP" start --unique begins -- sh -c 'exec sleep 1000')
wait_until worker_is_ready "$one"
worker=$(worker_pid "$one")
stop_still "$worker"
# As between its start and its first transition.
sql "UPDATE sessions SET status = 'starting', reason_code = 'run.starting.forked' WHERE run_id = '$one'"
new=$(replacer --unique begins)
wait_until reason_is "$new" run.queued.unique
kill -CONT "$worker"
check "one that is starting makes way" wait_until is "$new" completed
equal "by a stop" cancelled "$(fact "$one" status)"
plan
