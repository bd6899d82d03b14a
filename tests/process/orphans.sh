#!/usr/bin/env bash
# Operations that outlive their worker, while nobody resumes the run: who writes how they end, their
# limits, the `orphans` policies, and that a supervisor that is started anew goes on with all of it.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

export GO=$T/go
head='name: orphans
concurrency: 8
defaults: {grace: 300ms}
plan:
'
ops() { echo "$FLOWSUP_HOME/runs/$run/ops"; }
started() { grep -q "\"kind\":\"start\",\"op\":\"$1\"" "$FLOWSUP_HOME/runs/$run/attempts.log"; }
start_member() { json "$(grep "\"kind\":\"start\",\"op\":\"$1\"" "$FLOWSUP_HOME/runs/$run/attempts.log")" "$2"; }
exit_member() { json "$(cat "$(ops)/$1.1/exit.json" 2>/dev/null)" "$2"; }
stop_class() { json "$(cat "$(ops)/$1.1/stopped.json" 2>/dev/null)" class; }
has_exit() { [ -e "$(ops)/$1.1/exit.json" ]; }
marked() { "$FLOWSUP" list | grep -F "$run" | grep -qF "crashed ($1 running)"; }
unmarked() { "$FLOWSUP" list | grep -F "$run" | grep -q 'crashed  *[0-9]'; }
no_supervisor() { [ -z "$(supervisors)" ]; }
hears() { supervisor_answers; }
# begin YAML OP...: starts it, waits for the operations' starts, kills the worker.
begin() {
	local op
	printf '%s%s' "$head" "$1" >"$T/flow.yaml"
	shift
	rm -f "$GO"
	limits_are_ahead
	run=$("$FLOWSUP" start "$T/flow.yaml")
	for op; do wait_until started "$op"; done
	wait_until worker_is_ready "$run"
	kill -KILL "$(worker_pid "$run")"
	wait_until status_is "$run" crashed
}
movable "$FLOWSUP" supervisor
wait_go='until [ -e "$GO" ]; do sleep 0.02; done'

# ---- Their ends are written down ----

begin "  - {id: a, run: '$wait_go; exit 3'}
  - {id: b, run: '$wait_go; kill -USR1 \$\$'}
  - {id: c, run: 'touch $T/c; exit 4', needs: [a]}
" a b
check "list says how many run" wait_until marked 2
equal "show too" running,running,pending "$("$FLOWSUP" show "$run" --json | grep -oE '"state":"[a-z]+"' | cut -d'"' -f4 | paste -sd,)"
pid=$(start_member a pid)
touch "$GO"
wait_until has_exit a && wait_until has_exit b
equal "status" 3 "$(exit_member a code)"
equal "signal" "$(kill -l USR1)" "$(exit_member b signal)"
equal "the process" "$pid" "$(exit_member a pid)"
equal "by whom" supervisor "$(exit_member a by)"
check "nothing of it was started any more" test ! -e "$T/c"
check "list says that nothing runs" wait_until unmarked

# ---- Limits ----

begin "  - {id: long, timeout: 1h, run: 'trap \"\" TERM; while :; do sleep 0.05; done'}
  - {id: silent, silence: {after: 1h, strict: true}, run: 'while :; do sleep 0.05; done'}
  - {id: free, keeper: true, run: '$wait_go'}
" long silent free
wait_until they_pass_until has_exit silent
wait_until has_exit long
equal "a limit that passes ends it" timeout "$(stop_class long)"
equal "by SIGKILL after its grace" 9 "$(exit_member long signal)"
equal "silence ends it" silence "$(stop_class silent)"
check "another one goes on" alive "$(start_member free pid)"
check "one of three" wait_until marked 1

# The leader of each waits; what it has moved to another session works, or waits too.
mkfifo "$T/idle" "$T/moved"
begin "  - {id: idle, silence: 1h, run: '(setsid sh -c \"read x < $T/idle\" &); read x < $T/idle'}
  - {id: moved, silence: 1h, run: '(setsid sh -c \"echo \\$\\$ > $T/moved.pid; until [ -e $GO ]; do :; done; echo > $T/moved\" &); read x < $T/moved'}
" idle moved
wait_until [ -s "$T/moved.pid" ]
used() { stat_field "$(cat "$T/moved.pid")" 12; }
has_worked() { [ "$(used)" -gt "$before" ]; }
works_and_passes() {
	before=$(used)
	wait_until has_worked && they_pass_until "$@"
}
wait_until works_and_passes has_exit idle
equal "all of one are silent" silence "$(stop_class idle)"
check "one that works elsewhere goes on" alive "$(start_member moved pid)"
check "nobody ended it" test ! -e "$(ops)/moved.1/stopped.json"
touch "$GO"
check "and ends by itself" wait_until has_exit moved

begin "  - {id: deaf, timeout: 1h, grace: 10m, run: 'trap \"\" TERM; touch $T/deaf; $wait_go'}
  - {id: plain, timeout: 90m, run: 'while :; do sleep 0.05; done'}
" deaf plain
wait_until [ -e "$T/deaf" ]
limits_pass
wait_until [ -e "$FLOWSUP_HOME/runs/$run/ops/deaf.1/stopped.json" ]
check "one that does not heed SIGTERM holds up no other" wait_until has_exit plain
check "and has its grace" alive "$(start_member deaf pid)"
touch "$GO"
check "it ends, too" wait_until has_exit deaf

# ---- A supervisor that dies: the next one goes on ----

begin "  - {id: late, timeout: 1h, run: 'while :; do sleep 0.05; done'}
  - {id: other, run: '$wait_go; exit 6'}
  - {id: third, keeper: true, run: '$wait_go; exit 7'}
" late other third
wait_until marked 3
# shellcheck disable=SC2046
kill -KILL $(supervisors)
wait_until no_supervisor
doctor=$("$FLOWSUP" doctor | paste -sd' ' | tr -s ' ')
matches "while none runs doctor says what nobody sees to" "warning supervisor none runs: 3 operations of run $run, whose worker is dead, run on, and nobody sees to their limits hint: flowsup supervisor" "$doctor"
check "asking for that starts none" no_supervisor
movable "$FLOWSUP" list >/dev/null
check "a command that looks starts one for what is left" supervisor_answers
late=$(start_member late pid)
limits_pass
check "a limit is seen to by the next supervisor" wait_until gone "$late"
equal "and said to be one" timeout "$(stop_class late)"
touch "$GO"
check "a keeper tells it as well" wait_until has_exit third
equal "with its status" 7 "$(exit_member third code)"
if [ "$(uname -r | awk -F. '{print $1 * 100 + $2}')" -ge 615 ]; then
	check "the kernel tells how one ended that is nobody's child here" wait_until has_exit other
	equal "its status" "6 kernel" "$(exit_member other code) $(exit_member other by)"
else
	skip "the kernel tells how one ended that is nobody's child here"
fi

begin "  - {id: a, timeout: 1h, run: 'while :; do sleep 0.05; done'}
" a
wait_until marked 1
movable "$FLOWSUP" supervisor stop 2>"$T/said"
matches "one that is told to leave leaves it said" "1 operation of run $run, whose worker is dead, runs on, and nobody sees to its limits until a supervisor runs.*hint: flowsup supervisor   # or: flowsup stop $run" "$(paste -sd' ' "$T/said")"
"$FLOWSUP" supervisor stop 2>"$T/said"
matches "also where there was none" "nobody sees to its limits until a supervisor runs" "$(cat "$T/said")"
limits_pass
movable "$FLOWSUP" show "$run" >/dev/null
wait_until has_exit a
equal "whoever looks at the run has it ended by its limit" timeout "$(stop_class a)"
"$FLOWSUP" supervisor stop 2>"$T/said"
equal "then there is nothing to be said" "" "$(cat "$T/said")"
movable "$FLOWSUP" supervisor
wait_until hears

# ---- A supervisor that executes itself anew stays the one that reaps ----

begin "  - {id: a, run: '$wait_go; exit 3'}
" a
wait_until marked 1
"$FLOWSUP" supervisor restart >/dev/null 2>&1
touch "$GO"
wait_until has_exit a
equal "after a restart too" "3 supervisor" "$(exit_member a code) $(exit_member a by)"

# ---- Policies ----

head="orphans: end
$head"
begin "  - {id: a, run: 'trap \"\" TERM; while :; do sleep 0.05; done'}
  - {id: b, keeper: true, run: '$wait_go'}
" a b
check "orphans: end ends them" wait_until unmarked
check "all of them" gone "$(start_member b pid)"
equal "as by a stop" cancelled "$(stop_class a)"
head=${head/orphans: end/orphans: \{keep: 1h\}}
begin "  - {id: a, run: '$wait_go'}
" a
check "orphans: {keep: 1h} keeps it at first" alive "$(start_member a pid)"
check "and ends it then" wait_until they_pass_until unmarked
equal "like a stop" cancelled "$(stop_class a)"

# ---- Told to stop now, by a worker that dies before they have ended ----
# Its worker's SIGTERM does not end it; another one does.
printf '%s%s' "${head/orphans: \{keep: 1h\}/orphans: keep}" "  - {id: a, grace: 10m, run: 'n=0; trap \"n=\\\$((n + 1)); echo >> $T/terms; [ \\\$n -lt 2 ] || exit 0\" TERM; touch $T/trapped; while :; do sleep 0.05; done'}
" >"$T/flow.yaml"
run=$("$FLOWSUP" start "$T/flow.yaml")
wait_until [ -e "$T/trapped" ]
wait_until worker_is_ready "$run"
check "stop --now is applied" "$FLOWSUP" stop --now --wait=60s "$run" 2>/dev/null
wait_until [ -e "$T/terms" ]
kill -KILL "$(worker_pid "$run")"
wait_until status_is "$run" crashed
check "what it was told to end is ended by the supervisor" wait_until has_exit a
equal "as by the stop" cancelled "$(stop_class a)"

# ---- What an operation left behind ----
begin "  - {id: a, run: 'setsid sleep 1000 & echo \$! > $T/left; $wait_go; exit 3'}
" a
wait_until marked 1
left=$(cat "$T/left")
touch "$GO"
wait_until has_exit a
wait_until gone "$(start_member a pid)"
check "it lives" alive "$left"
matches_soon "list says so" "${run}[^|]*crashed \(1 running\)" "$FLOWSUP" list -n 1
equal "and show" 1 "$(json "$("$FLOWSUP" show --json "$run")" running_operations)"
"$FLOWSUP" gc --keep-days 0 >/dev/null 2>"$T/said"
matches "gc keeps its run" "run $run is kept: processes that its operations left still run" "$(cat "$T/said")"
check "kill ends it" "$FLOWSUP" kill "$run" 2>/dev/null
check "it is gone" gone "$left"
check "list says that nothing runs" wait_until unmarked
"$FLOWSUP" gc --keep-days 0 >/dev/null 2>&1
check "then gc takes the run away" test ! -e "$FLOWSUP_HOME/runs/$run"

# ---- A number that has been given away ----

head=${head/orphans: \{keep: 1h\}
/}
sleep 1000 &
stranger=$!
begin "  - {id: a, timeout: 1h, run: '$wait_go'}
  - {id: b, timeout: 90m, run: '$wait_go'}
" a b
pid=$(start_member a pid)
wait_until marked 2
# shellcheck disable=SC2046
kill -KILL $(supervisors) "$pid"
wait_until no_supervisor
wait_until gone "$pid"
sed -i "s/\"pid\":$pid,/\"pid\":$stranger,/" "$FLOWSUP_HOME/runs/$run/attempts.log"
movable "$FLOWSUP" supervisor
wait_until hears
limits_pass
wait_until gone "$(start_member b pid)"
check "a stranger with the number is left alone by limits" alive "$stranger"
"$FLOWSUP" stop "$run" >"$T/out" 2>&1
"$FLOWSUP" kill "$run" >>"$T/out" 2>&1
check "by stop and kill" alive "$stranger"
kill "$stranger"
plan
