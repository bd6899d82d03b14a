#!/usr/bin/env bash
# Runs outlive their supervisor, however it ends; every end and every death is recorded.
. "$(dirname "$0")/lib.sh"

# A run that goes on until $T/go-NAME is there.
start() {
	"$FLOWSUP" start -- sh -c "until [ -e '$T/go-$1' ]; do sleep 0.02; done; echo done"
}
go() { touch "$T/go-$1"; }
supervisor_is() { [ "$(supervisor_pid)" = "$1" ]; }
crashed_text() { sed -nE "s/.*run $1 crashed: ([^;]*);.*/\1/p" "$FLOWSUP_HOME/supervisor.log"; }

# ---- Many starters, no supervisor ----
mkdir "$T/ids"
pids=()
for i in $(seq 20); do
	"$FLOWSUP" start -- true >"$T/ids/$i" 2>"$T/ids/$i.err" &
	pids+=($!)
done
bad=0
for pid in "${pids[@]}"; do wait "$pid" || bad=$((bad + 1)); done
equal "twenty starts at once without a supervisor all succeed" 0 "$bad"
equal "they say nothing but their ids" 0 "$(cat "$T"/ids/*.err | count)"
check "there is one supervisor" wait_until one_supervisor
all_completed() { [ "$("$FLOWSUP" list --json -n 1000 | grep -c '"status":"completed"')" -eq 20 ]; }
check "each of the runs completes" wait_until all_completed
equal "each had one worker" 20 "$(cat "$FLOWSUP_HOME"/runs/*/attempts.log | grep -c '"kind":"worker"')"
pid=$(supervisor_pid)
no_zombies() {
	local p
	for p in $(cat "/proc/$pid/task/$pid/children"); do [ "$(stat_field "$p" 1)" != Z ] || return 1; done
}
check "no zombie is left" wait_until no_zombies
"$FLOWSUP" supervisor stop

# ---- The caller's pipes ----
id=$(timeout "$LIMIT" "$FLOWSUP" start -- sh -c 'sleep 1; true')
equal "a substitution gets the id and does not hang" 0 $?
matches "the id is a run's" '^[0-9]{8}T[0-9]{6}-[0-9a-f]{6}$' "$id"
first=$(timeout "$LIMIT" "$FLOWSUP" start -- true | head -c1)
equal "start into head -c1" 2 "$first"
check "start with closed descriptors" bash -c "timeout $LIMIT '$FLOWSUP' start -- true <&- >/dev/null 2>&-"
check "the runs complete" wait_until eval '[ "$("$FLOWSUP" list --json -n 1000 | grep -c completed)" -ge 23 ]'

# ---- A worker's death ----
id=$(start death)
check "its worker is ready" wait_until worker_is_ready "$id"
pid=$(supervisor_pid)
worker=$(worker_pid "$id")
equal "the worker is the supervisor's child" "$pid" "$(stat_field "$worker" 2)"
equal "in a session of its own" "$worker" "$(stat_field "$worker" 4)"
kill -KILL "$worker"
check "the run is crashed" wait_until status_is "$id" crashed
equal "by a signal" run.crashed.signal "$(run_fact "$id" reason)"
check "the log offers the resume" wait_until logged "run $id crashed: .*flowsup resume $id"
equal "and says the signal" "the worker was killed by SIGKILL" "$(crashed_text "$id")"
check "what its checkpoint holds is reported" \
	wait_until eval '"$FLOWSUP" show --json "$id" | grep -q "\"checkpoint_recovery\":{"'
check "the worker's lock is free" wait_until gone "$worker"
go death

# ---- Stop, restart, death of the supervisor ----
id=$(start survive)
wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
"$FLOWSUP" supervisor stop
check "the worker outlives a stop" alive "$worker"
"$FLOWSUP" supervisor
check "the next supervisor reaches it" wait_until worker_is_ready "$id"
equal "by the same process" "$worker" "$(worker_pid "$id")"

pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
check "the worker outlives a killed supervisor" alive "$worker"
"$FLOWSUP" supervisor
check "it is adopted again" wait_until worker_is_ready "$id"

pid=$(supervisor_pid)
check "restart succeeds" "$FLOWSUP" supervisor restart
check "the process is the same" supervisor_is "$pid"
equal "and still knows the worker" "$worker" "$(worker_pid "$id")"
status_is "$id" running || not_ok "the run is running"
go survive
check "the end is recorded" wait_until status_is "$id" completed

# ---- Exit status across a restart ----
id=$(start known)
wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
"$FLOWSUP" supervisor restart
"$FLOWSUP" supervisor restart
kill -ABRT "$worker" # not SEGV: sanitizers handle that one
check "a death after restarts is seen" wait_until status_is "$id" crashed
matches_soon "and its signal is known" "^the worker was killed by SIGABRT" crashed_text "$id"
go known

# ---- A death nobody saw ----
id=$(start unseen)
wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
kill -KILL "$worker"
wait_until gone "$worker"
"$FLOWSUP" supervisor
check "a death without a supervisor is found by the lock" wait_until status_is "$id" crashed
equal "how is not known" run.crashed.unknown "$(run_fact "$id" reason)"
go unseen

# ---- A death of an adopted worker ----
id=$(start adopted)
wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
"$FLOWSUP" supervisor stop
"$FLOWSUP" supervisor
wait_until worker_is_ready "$id"
kill -KILL "$worker"
check "the death of an adopted worker is seen" wait_until status_is "$id" crashed
go adopted

# ---- A stopped worker is alive ----
id=$(start still)
wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
stop_still "$worker"
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
"$FLOWSUP" supervisor
is_greeted() { "$FLOWSUP" supervisor status --json | grep -qE "\"$id\":\{\"pid\":[0-9]+,\"state\":\"greeted\""; }
check "a stopped worker is greeted and waited for" wait_until is_greeted
check "its run is not judged" status_is "$id" running
kill -CONT "$worker"
check "going on, it is known again" wait_until worker_is_ready "$id"
go still
check "and its end is recorded" wait_until status_is "$id" completed

# ---- A run that waits is found without a poke ----
pid=$(supervisor_pid)
stop_still "$pid"
(timeout "$LIMIT" "$FLOWSUP" start -- true >"$T/quiet" 2>/dev/null)
equal "a start that nobody answers says so" 5 $?
id=$(cat "$T/quiet")
check "its run is durable" status_is "$id" queued
kill -KILL "$pid"
wait_until gone "$pid"
"$FLOWSUP" supervisor
check "the next supervisor starts it" wait_until status_is "$id" completed

# ---- A worker that cannot be executed ----
"$FLOWSUP" supervisor stop
mkdir -p "$T/alone/bin" "$T/alone/libexec/flowsup"
cp "$FLOWSUP" "$T/alone/bin/flowsup"
: >"$T/alone/libexec/flowsup/flowsup-worker" # no program, although it says so
chmod +x "$T/alone/libexec/flowsup/flowsup-worker"
id=$("$T/alone/bin/flowsup" start -- true)
check "a run whose worker cannot be executed fails" wait_until status_is "$id" failed
equal "with the reason" run.failed.start "$(run_fact "$id" reason)"
"$FLOWSUP" supervisor stop

# ---- The count of a run whose worker died ----
printf 'plan:\n  - {id: first, run: "true"}\n  - {id: second, needs: [first], run: "exec sleep 1000"}\n' >"$T/two.yaml"
id=$("$FLOWSUP" start "$T/two.yaml")
check "the second starts when the first is saved" wait_until eval '"$FLOWSUP" show --json "$id" | grep -q "\"id\":\"second\",\"state\":\"running\""'
kill -KILL "$(worker_pid "$id")"
check "the run has crashed" wait_until status_is "$id" crashed
done_is() { [ "$(run_fact "$1" done)" = "$2" ]; }
check "list counts what the checkpoint holds, however late the row was" wait_until done_is "$id" 1
"$FLOWSUP" kill "$id" >/dev/null 2>&1

# ---- A handover that is none ----
"$FLOWSUP" supervisor --handover-fd 3 3</dev/null 2>/dev/null &
check "a handover that is not understood is done without" wait_until eval '[ -n "$(supervisor_pid)" ]'
"$FLOWSUP" supervisor stop
wait

# ---- It could not be told ----
"$FLOWSUP" supervisor
stopped=$(supervisor_pid)
stop_still "$stopped"
id=$("$FLOWSUP" start -- true 2>/dev/null)
equal "a start says that nobody took the run" 5 $?
kill -CONT "$stopped"
status_by_sql() { [ "$(sql "select status from sessions where run_id = '$id'")" = "$1" ]; }
check "which it finds by itself" wait_until status_by_sql completed

# ---- Descriptors ----
# One that a command above has started may come up only now.
none_left() {
	[ -z "$(supervisors)" ] && return
	"$FLOWSUP" supervisor stop
	false
}
wait_until none_left
(ulimit -n 110 && "$FLOWSUP" supervisor)
ids=()
for i in $(seq 14); do ids+=("$(ulimit -n 110 && start crowd)"); done
has_reason() { "$FLOWSUP" list --json -n 1000 | grep -q '"reason":"run.queued.descriptors"'; }
check "near the limit of descriptors runs stay queued" wait_until has_reason
check "the supervisor still answers" supervisor_answers
go crowd
crowd_completed() {
	local id
	for id in "${ids[@]}"; do status_is "$id" completed || return 1; done
}
check "as others end, all of them run" wait_until crowd_completed
"$FLOWSUP" supervisor stop

# ---- Stop of everything ----
"$FLOWSUP" supervisor
one=$("$FLOWSUP" start -- sh -c "touch '$T/one'; until [ -e '$T/go-drain' ]; do sleep 0.02; done")
wait_until [ -e "$T/one" ]
timeout "$LIMIT" "$FLOWSUP" supervisor stop --all &
stopper=$!
check "stop --all asks every run to stop" wait_until eval '"$FLOWSUP" show --json "$one" | grep -q "\"verb\":\"stop\""'
check "and waits" alive "$stopper"
go drain
wait "$stopper"
equal "it returns when the last has ended" 0 $?
equal "no supervisor is left" 0 "$(supervisors | count)"
check "the run has ended" eval '[[ $(run_status "$one") =~ ^(cancelled|completed)$ ]]'
# ---- Whoever was to wait is ended ----
lost=$("$FLOWSUP" start -- sh -c "touch '$T/lost'; until [ -e '$T/go-lost' ]; do sleep 0.02; done")
wait_until [ -e "$T/lost" ]
timeout "$LIMIT" "$FLOWSUP" supervisor stop --all 2>"$T/said" &
stopper=$!
wait_until eval '"$FLOWSUP" show --json "$lost" | grep -q "\"verb\":\"stop\""'
kill -KILL "$("$FLOWSUP" supervisor status --json | grep -o "\"pid\":[0-9]*" | head -n 1 | cut -d: -f2)"
wait "$stopper"
equal "what it was to wait for still runs: no success" 3 $?
matches "and it is said" "1 run is not at its end: run $lost goes on" "$(cat "$T/said")"
go lost
check "the next supervisor sees to its end" wait_until eval '[[ $(run_status "$lost") =~ ^(cancelled|completed)$ ]]'
later=$("$FLOWSUP" start --restart 3 -- sh -c "echo >>'$T/later'; exec sleep 1000")
wait_until [ -e "$T/later" ]
kill -KILL "$(run_fact "$later" worker_pid)"
wait_until eval '"$FLOWSUP" show --json "$later" | grep -q "\"restarting\":true"'
timeout "$LIMIT" "$FLOWSUP" supervisor stop --all --now 2>"$T/said"
equal "a job that would be resumed is given up" 0 $?
two=$("$FLOWSUP" start -- sh -c "touch '$T/two'; exec sleep 1000")
wait_until [ -e "$T/two" ]
check "stop --all --now does not wait for operations" timeout "$LIMIT" "$FLOWSUP" supervisor stop --all --now
equal "that run is cancelled" cancelled "$(run_status "$two")"
nothing_is_ours() { [ -z "$(ours)" ]; }
check "of all homes nothing is left running" wait_until nothing_is_ours
plan
