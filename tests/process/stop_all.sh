#!/usr/bin/env bash
# supervisor stop --all where more is to be stopped than live workers: automatic resumes that wait, what dead
# workers left running, resumes in the queue. Exit status 0 only where nothing goes on.
. "$(dirname "$0")/lib.sh"

fact() { json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$1\"")" "$2"; }
# op RUN FILE: the process of its operation, which the operation has written there.
there() { [ -s "$1" ]; }
crash() { # RUN: kills its worker, whose death is then known, and what it left
	wait_until worker_is_ready "$1" && kill -KILL "$(worker_pid "$1")"
	wait_until status_is "$1" crashed
}
# crash_late RUN: as after many restarts, the next one comes in a minute.
crash_late() {
	wait_until worker_is_ready "$1"
	sql "UPDATE sessions SET restarts_done = 9 WHERE run_id = '$1'"
	crash "$1"
}
# begin NAME OPTION...: a run whose operation ends when $T/go-NAME is there.
begin() {
	local name=$1
	shift
	run=$("$FLOWSUP" start "$@" -- sh -c "echo \$\$ >'$T/$name.new'; mv '$T/$name.new' '$T/$name'; until [ -e '$T/go-$name' ]; do sleep 0.02; done; echo $name >>'$T/ran'")
	wait_until there "$T/$name"
	op=$(cat "$T/$name")
}
stop_all() { timeout "$LIMIT" "$FLOWSUP" supervisor stop --all "$@" 2>"$T/said"; }
has_fact() { [ "$(json "$("$FLOWSUP" supervisor status --json)" "$1")" = "$2" ]; }
nobody() { equal "$1: no supervisor, socket or lock is left" "0 no" "$(supervisors | count) $([ -e "$FLOWSUP_HOME/supervisor.sock" ] && echo yes || echo no)"; }
gives_up() { # NAME RUN
	equal "$1: the job is given up, and can be resumed" "crashed 0 false null true" \
		"$(fact "$2" status) $(fact "$2" restarts_left) $(fact "$2" restarting) $(fact "$2" resumed_as) $(fact "$2" resumable)"
	matches "$1: the run says why" '"not_restarted":"it was stopped with all others"' "$("$FLOWSUP" show --json "$2")"
	matches "$1: to people too" "not resumed by itself: it was stopped with all others" "$("$FLOWSUP" show "$2" | paste -sd' ' | tr -s ' ')"
}

# ---- A job that waits for its automatic resume ----
begin late --restart 3
crash_late "$run"
wait_until has_fact kept_operations 1
timeout "$LIMIT" "$FLOWSUP" supervisor stop --all 2>"$T/said" &
stopper=$!
check "drain: it waits for what a dead worker left" wait_until grep -q "waits for the end of 1 operation whose worker is dead: $run" "$T/said"
check "which goes on" alive "$op"
equal "status says what it waits for" "true 1" "$(status=$("$FLOWSUP" supervisor status --json); echo "$(json "$status" stopping) $(json "$status" kept_operations)")"
matches "with its run" "\"kept_runs\":\\[\"$run\"\\]" "$("$FLOWSUP" supervisor status --json)"
matches "to people too" "0 runs, 1 operation without a worker; it stops every run, then leaves" "$("$FLOWSUP" supervisor status)"
"$FLOWSUP" supervisor restart 2>"$T/err"
equal "no restart meanwhile" 5 $?
matches "for it is about to leave" "it stops every run and is about to leave.*hint: flowsup supervisor status" "$(tr '\n' ' ' <"$T/err")"
equal "nobody is told to kill it" 0 "$(grep -c 'KILL\|does not answer' "$T/err")"
"$FLOWSUP" start -- true >"$T/next" 2>"$T/err" &
starter=$!
wait_until there "$T/next"
next=$(cat "$T/next")
wait "$starter"
equal "a start meanwhile leaves its run to the next supervisor" queued "$(fact "$next" status)"
matches "and says so" "run $next is queued.*about to leave.*hint: flowsup supervisor status" "$(tr '\n' ' ' <"$T/err")"
equal "without a word of killing" 0 "$(grep -c 'KILL\|does not answer' "$T/err")"
check "a queue can be set" timeout 5 "$FLOWSUP" queue set other --slots 3
"$FLOWSUP" stop "$next" 2>/dev/null
touch "$T/go-late"
wait "$stopper"
equal "drain: 0 when it has ended" "0 true" "$? $(gone "$op" && echo true)"
nobody drain
gives_up drain "$run"
matches "its end is written down" "has ended without its worker; a resume takes its end over" "$("$FLOWSUP" show --json "$run")"
two=$("$FLOWSUP" resume "$run" 2>/dev/null)
"$FLOWSUP" wait "$two" 2>/dev/null
equal "by hand it goes on" "0 1" "$? $(grep -c late "$T/ran")"

begin later --restart 3
crash_late "$run"
stop_all --now
equal "now: it is ended" "0 true" "$? $(gone "$op" && echo true)"
nobody now
gives_up now "$run"
check "how it ended is written down" eval 'grep -qs SIGTERM\\\|15 "$FLOWSUP_HOME/runs/$run"/ops/*/exit.json'
matches "and that it was stopped" cancelled "$(cat "$FLOWSUP_HOME/runs/$run"/ops/*/stopped.json)"
equal "the row names nothing that runs" "0" "$("$FLOWSUP" list --json -n 100 | grep -c '"running_operations":[1-9]')"

# ---- Without a policy; a supervisor that finds all of it; one that does not heed SIGTERM ----
cat >"$T/deaf.yaml" <<END
plan:
  - {id: deaf, grace: 200ms, run: 'trap "" TERM; echo \$\$ >"$T/deaf.new"; mv "$T/deaf.new" "$T/deaf"; while :; do sleep 0.02; done'}
END
run=$("$FLOWSUP" start "$T/deaf.yaml")
wait_until there "$T/deaf"
op=$(cat "$T/deaf")
one=$("$FLOWSUP" start -- sh -c "touch '$T/alive'; exec sleep 1000")
wait_until [ -e "$T/alive" ]
crash "$run"
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
stop_all --now
equal "a supervisor that has just been started ends everything" 0 $?
check "also what does not heed SIGTERM" gone "$op"
equal "and runs that it has yet to adopt" "cancelled crashed" "$(fact "$one" status) $(fact "$run" status)"
nobody found

# ---- A resume in the queue has what outlived its predecessor's worker ----
"$FLOWSUP" queue set q --slots 1
queued_resume() { # NAME: its operation runs, and its slot is another's
	begin "$1" --queue q
	crash "$run"
	busy=$("$FLOWSUP" start --queue q -- sh -c "touch '$T/busy-$1'; until [ -e '$T/go-busy-$1' ]; do sleep 0.02; done")
	wait_until [ -e "$T/busy-$1" ]
	two=$("$FLOWSUP" resume "$run" 2>/dev/null)
	equal "$1: a resume waits in the queue" "queued" "$(fact "$two" status)"
}
queued_resume wait
timeout "$LIMIT" "$FLOWSUP" supervisor stop --all 2>"$T/said" &
stopper=$!
wait_until has_fact stopping true
touch "$T/go-busy-wait"
check "drain: what it is to take over is waited for" wait_until has_fact kept_operations 1
not_watched() { ! "$FLOWSUP" supervisor status --json | grep -q "\"$busy\":{"; }
wait_until not_watched
equal "it stays in the queue for so long" queued "$(fact "$two" status)"
check "and the operation goes on" alive "$op"
touch "$T/go-wait"
wait "$stopper"
equal "then it is cancelled" "0 cancelled run.cancelled.queued" "$? $(fact "$two" status) $(fact "$two" reason)"
check "and nothing of it runs" gone "$op"
nobody "queued resume"
three=$("$FLOWSUP" resume "$two" 2>/dev/null)
"$FLOWSUP" wait "$three" 2>/dev/null
equal "its end was not lost" "0 1" "$? $(grep -c wait "$T/ran")"

queued_resume end
stop_all --now
equal "now: what it was to take over is ended" "0 cancelled cancelled true" "$? $(fact "$two" status) $(fact "$busy" status) $(gone "$op" && echo true)"
nobody "queued resume, now"
# One in the foreground of a command is left to that command, and said.
"$FLOWSUP" start --foreground -- sh -c 'until [ -e "$0" ]; do sleep 0.02; done' "$T/go-front" 2>/dev/null &
front=$!
foreground_runs() { [ "$("$FLOWSUP" list --status running --json | grep -c .)" = 1 ]; }
wait_until foreground_runs
run=$(json "$("$FLOWSUP" list --status running --json)" id)
"$FLOWSUP" queue set else --slots 1 # has a supervisor started
stop_all --now
equal "one in the foreground goes on, and that is no success" 3 $?
matches "it is named, with what stops it" "run $run goes on in the foreground of its command.*hint: flowsup stop $run" "$(tr '\n' ' ' <"$T/said")"
check "it was left alone" kill -0 "$front"
touch "$T/go-front"
wait "$front"
equal "and ends as it would have" 0 $?
stop_all
equal "then nothing goes on" 0 $?

# The commands of notify are waited for, or ended as well.
teller() { # NAME
	run=$("$FLOWSUP" start --notify "[\"sh\",\"-c\",\"echo \$\$ >$T/$1.new; mv $T/$1.new $T/$1; until [ -e $T/go-$1 ]; do sleep 0.02; done; echo $1 >>$T/told\"]" -- false)
	wait_until there "$T/$1"
	op=$(cat "$T/$1")
}
teller heard
stop_all &
stopper=$!
wait_until has_fact stopping true
check "a command of notify goes on" alive "$op"
touch "$T/go-heard"
wait "$stopper"
equal "and is waited for" "0 heard" "$? $(cat "$T/told")"
teller unheard
stop_all --now
equal "now: it is ended" "0 true" "$? $(gone "$op" && echo true)"
matches "which is its outcome" 'killed: everything was stopped' "$("$FLOWSUP" show "$run" --json)"

# A worker that stands still hears nothing of it.
begin still
wait_until worker_is_ready "$run"
worker=$(worker_pid "$run")
stop_still "$worker"
timeout "$LIMIT" "$FLOWSUP" supervisor stop --all --now 2>"$T/said" &
stopper=$!
check "a stopped worker is named" wait_until grep -q "run $run: its worker, process $worker, is stopped" "$T/said"
check "with what has it go on, or ends it" wait_until grep -q "hint: kill -CONT $worker   # or end it: flowsup kill $run" "$T/said"
kill -CONT "$worker"
wait "$stopper"
equal "it goes on, and all of it ends" "0 true" "$? $(gone "$op" && echo true)"

# In an operation it would wait for itself.
cat >"$T/inside" <<'END'
"$FLOWSUP" supervisor stop --all 2>"$T/inside.said"
echo $? >"$T/inside.rc"
"$FLOWSUP" supervisor stop --all --timeout 0 2>/dev/null
echo $? >>"$T/inside.rc"
END
export FLOWSUP T
run=$("$FLOWSUP" start -- sh "$T/inside")
"$FLOWSUP" wait "$run" >/dev/null 2>&1
matches "called in an operation it is refused" "it would wait for its own end: it is called in an operation of run $run" "$(cat "$T/inside.said")"
matches "with what does not wait" "hint: flowsup supervisor stop --all --timeout 0" "$(cat "$T/inside.said")"
equal "which stops its run as well" "4 3" "$(paste -sd' ' "$T/inside.rc")"
stop_all
equal "then nothing goes on" 0 $?

nothing_is_ours() { [ -z "$(ours)" ]; }
check "nothing is left running" wait_until nothing_is_ours
plan
