#!/usr/bin/env bash
# A crash that a restart policy answers: resumed by itself, with a pause, until it is given up.
. "$(dirname "$0")/lib.sh"

# Of the run itself, not of one that names it.
run_fact() { json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$1\"")" "$2"; }
latest() { "$FLOWSUP" list --json -n 1 | sed -nE 's/^\{"id":"([^"]*)".*/\1/p'; }
successor() { run_fact "$1" resumed_as; }
resumed() { [[ $(successor "$1") =~ ^[0-9] ]]; }
crash() { # RUN: kills its worker
	wait_until worker_is_ready "$1" && kill -KILL "$(worker_pid "$1")"
}
long() { "$FLOWSUP" start --restart 3 -- sh -c 'exec sleep 1000'; }
# crash_late RUN: as after many restarts, the next one comes in a minute.
crash_late() {
	wait_until worker_is_ready "$1"
	sql "UPDATE sessions SET restarts_done = 9 WHERE run_id = '$1'"
	crash "$1"
}
wait_op() { wait_until eval '"$FLOWSUP" show --json '"$1"' | grep -q "\"id\":\"'"$2"'\",\"state\":\"running\""'; }

cat >"$T/twice.yaml" <<END
restart: {on: crash, attempts: 2}
plan:
  - {id: first, run: 'echo first >> "$T/first"'}
  - {id: second, needs: [first], run: 'until [ -e "$T/go" ]; do sleep 0.02; done'}
END
one=$("$FLOWSUP" start "$T/twice.yaml")
"$FLOWSUP" wait "$one" 2>"$T/said" &
waiter=$!
"$FLOWSUP" wait --this-run "$one" 2>/dev/null &
this=$!
# Both know of this run alone so far.
follows() { [ -n "$(find "/proc/$1/fd" -lname 'socket:*')" ]; }
wait_until follows "$waiter"
wait_until follows "$this"
wait_op "$one" second
equal "two restarts are left" 2 "$(run_fact "$one" restarts_left)"
crash "$one"
check "the crash is answered" wait_until resumed "$one"
two=$(successor "$one")
wait "$this"
equal "wait --this-run returns for the crash" 137 $?
check "wait does not" alive "$waiter"
wait_op "$two" second
equal "one restart is left" 1 "$(run_fact "$two" restarts_left)"
touch "$T/go"
wait "$waiter"
equal "wait returns with the job's end" 0 $?
matches "and has said what happened" "resumed by its restart policy, as run $two" "$(cat "$T/said")"
equal "what was saved did not run again" 1 "$(count <"$T/first")"
equal "given the first run, wait is about the latest" 0 \
	"$("$FLOWSUP" wait "$one" 2>"$T/said"; echo $?)"
matches "and says so" "this is about $two" "$(cat "$T/said")"

# ---- Quick deaths ----
rm "$T/go"
cat >"$T/deadly.yaml" <<'END'
plan: [{id: deadly, retry: {attempts: 20, on: [signal], backoff: 1ms}, run: 'kill -KILL $PPID $$'}]
END
one=$("$FLOWSUP" start --restart 9 "$T/deadly.yaml")
"$FLOWSUP" wait "$one" 2>/dev/null
equal "quick deaths end it, and wait returns" 137 $?
last=$(latest)
equal "after two restarts" 2 "$(run_fact "$last" restarts_done)"
matches "the run says why" "died soon after their start" "$("$FLOWSUP" show --json "$last")"
check "the log says how to go on" wait_until logged "run $last is not resumed by itself: .*flowsup resume $last"
"$FLOWSUP" kill "$last" 2>/dev/null

# ---- None left ----
cat >"$T/once.yaml" <<END
restart: {on: crash, attempts: 1}
plan: [{id: once, run: 'until [ -e "$T/go" ]; do sleep 0.02; done'}]
END
one=$("$FLOWSUP" start "$T/once.yaml")
crash "$one"
wait_until resumed "$one"
two=$(successor "$one")
"$FLOWSUP" wait "$two" 2>"$T/said" &
waiter=$!
crash "$two"
wait "$waiter"
equal "none is left: wait returns" 137 $?
over="not resumed by itself: its policy resumed it 1 time, and no resume is left"
matches "wait says so, and how to go on" "run $two crashed: .*; $over.*hint: flowsup resume $two" "$(paste -sd' ' "$T/said")"
matches "show too" "$over" "$("$FLOWSUP" show "$two" | paste -sd' ' | tr -s ' ')"
matches "and its JSON" "\"reason_text\":\"[^\"]*$over\".*\"marks\":\\[\"given up\"" "$("$FLOWSUP" show --json "$two")"
matches "list marks it" "$two .*crashed \\(given up" "$("$FLOWSUP" list)"
equal "and not the one before, which was resumed" 1 "$("$FLOWSUP" list -n 2 | grep -c "given up")"
"$FLOWSUP" kill "$two" 2>/dev/null
one=$(long)
crash_late "$one"
wait_until status_is "$one" crashed
"$FLOWSUP" stop "$one" 2>/dev/null
equal "wait for one that was given up by a person says so as well" 1 "$("$FLOWSUP" wait "$one" 2>&1 | grep -c "not resumed by itself: it was stopped")"

# ---- A refused resume: the log has the command that lifts what refused it ----
cat >"$T/unrepeatable.yaml" <<END
restart: {on: crash, attempts: 3}
plan: [{id: a, idempotent: false, run: 'exec sleep 1000'}]
END
one=$("$FLOWSUP" start "$T/unrepeatable.yaml")
wait_op "$one" a
worker=$(worker_pid "$one")
pid=$(supervisor_pid)
stop_still "$pid"
kill -KILL "$worker"
rm "$FLOWSUP_HOME/runs/$one/attempts.log"
kill -CONT "$pid"
check "its hint can be pasted" wait_until logged "run $one is not resumed by itself: .*; to go on: flowsup resume $one .*--rerun-in-flight$"
matches "as that of show" "next +flowsup resume $one --rerun-in-flight" "$("$FLOWSUP" show "$one")"
"$FLOWSUP" kill "$one" 2>/dev/null

# ---- With a failure before the crash: the log's command is one that is not refused ----
cat >"$T/failed.yaml" <<END
plan:
  - {id: bad, run: 'exit 1'}
  - {id: goes, run: 'until [ -e "$T/go" ]; do sleep 0.02; done'}
END
one=$("$FLOWSUP" start "$T/failed.yaml")
wait_op "$one" goes
has_failed() { [ "$(run_fact "$one" done)" = 1 ]; }
wait_until has_failed
crash "$one"
check "a crash behind a failure: the log's command says what becomes of it" wait_until logged "run $one crashed: .*; to go on: flowsup resume $one --retry-failed$"
"$FLOWSUP" kill "$one" 2>/dev/null

# ---- While there is no supervisor ----
one=$("$FLOWSUP" start --restart 1 -- sh -c "until [ -e '$T/go' ]; do sleep 0.02; done")
wait_until worker_is_ready "$one"
worker=$(worker_pid "$one")
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
kill -KILL "$worker"
wait_until gone "$worker"
check "a command finds the crash, and the next supervisor answers it" wait_until resumed "$one"
two=$(successor "$one")
touch "$T/go"
"$FLOWSUP" wait "$two" 2>/dev/null
equal "it completes" 0 $?

# ---- What no wait mends ----
n=0
for file in flow.json launch.json environ; do
	one=$("$FLOWSUP" start --restart 1 -- sh -c 'exec sleep 1000')
	wait_until worker_is_ready "$one"
	n=$((n + 1))
	if [ $n = 1 ]; then rm "$FLOWSUP_HOME/runs/$one/$file"; else printf '{"a":[' >"$FLOWSUP_HOME/runs/$one/$file"; fi
	kill -KILL "$(worker_pid "$one")"
	check "$file damaged: it is given up" wait_until logged "run $one is not resumed by itself: .*$file"
	check "$file damaged: at once" eval "! logged 'run $one: its resume failed, and is tried again'"
	"$FLOWSUP" kill "$one" 2>/dev/null
done

# ---- Stopped and killed jobs ----
rm "$T/go"
one=$(long)
crash_late "$one"
wait_until status_is "$one" crashed
check "stop ends what waits for its restart" "$FLOWSUP" stop "$one" 2>/dev/null
equal "no restart is left" 0 "$(run_fact "$one" restarts_left)"
one=$(long)
crash_late "$one"
wait_until status_is "$one" crashed
check "kill does too" "$FLOWSUP" kill "$one" 2>/dev/null
equal "it was not resumed" null "$(successor "$one")"

# ---- Stopped while it runs: nothing of it starts any more, however its worker ends ----
cat >"$T/steps.yaml" <<END
restart: {on: crash, attempts: 3}
concurrency: 1
plan:
  - {id: a, run: 'until [ -e "$T/step" ]; do sleep 0.02; done; echo a >> "$T/steps"'}
  - {id: b, needs: [a], run: 'echo b >> "$T/steps"'}
END
has_step() { grep -q "$1" "$T/steps"; }
steps() { # a run of it whose first operation waits
	rm -f "$T/step" "$T/steps"
	one=$("$FLOWSUP" start "$T/steps.yaml")
	wait_op "$one" a
}
# is_over NAME: the job has come to its end with this run.
is_over() {
	"$FLOWSUP" wait "$one" 2>/dev/null
	equal "$1: wait returns for the crash" "$2 crashed" "$? $(run_status "$one")"
	equal "$1: no restart is left, and none was made" "0 null" "$(run_fact "$one" restarts_left) $(successor "$one")"
	matches "$1: whoever waits is told why" "crashed: .*; not resumed by itself: it was being stopped" "$("$FLOWSUP" watch "$one" 2>&1)"
	matches "$1: show too" "crashed.*: .*; not resumed by itself: it was being stopped" "$("$FLOWSUP" show "$one" | paste -sd' ' | tr -s ' ')"
	matches "$1: it says why" "not_restarted.*it was being stopped" "$("$FLOWSUP" show --json "$one")"
}
steps
"$FLOWSUP" stop --wait=60s "$one" 2>/dev/null
equal "a stop is applied" 0 $?
crash "$one"
is_over "killed in the drain" 137
touch "$T/step"
check "what ran ends by itself" wait_until has_step a
two=$("$FLOWSUP" resume "$one" 2>/dev/null)
"$FLOWSUP" wait "$two" 2>/dev/null
equal "by hand it goes on" "0 a b" "$? $(sort -u "$T/steps" | xargs)"
steps
"$FLOWSUP" stop --wait=60s "$one" 2>/dev/null
kill -TERM "$(worker_pid "$one")"
is_over "asked to leave in the drain" 137
touch "$T/step"
wait_until has_step a

# ---- Paused while it runs: who opens the gate is a person ----
steps
"$FLOWSUP" pause --wait=60s "$one" 2>/dev/null
equal "a pause is applied" 0 $?
crash "$one"
wait_until resumed "$one"
two=$(successor "$one")
check "the next run is paused again" wait_until status_is "$two" paused
crash "$two"
wait_until resumed "$two"
three=$(successor "$two")
check "and so is the one after it" wait_until status_is "$three" paused
touch "$T/step"
wait_until has_step a
check "nothing passes the gate" wait_until prints 1 run_fact "$three" done
equal "and nothing has" a "$(xargs <"$T/steps")"
"$FLOWSUP" ctl resume --wait=60s "$three" 2>/dev/null
"$FLOWSUP" wait "$three" 2>/dev/null
equal "opened, it completes" "0 a b" "$? $(xargs <"$T/steps")"
steps
"$FLOWSUP" pause --wait=60s "$one" 2>/dev/null
"$FLOWSUP" ctl resume --wait=60s "$one" 2>/dev/null
crash "$one"
wait_until resumed "$one"
touch "$T/step"
"$FLOWSUP" wait "$one" 2>/dev/null
equal "a gate that was opened again stays open" 0 $?

# ---- What is said to a job between two runs ----
one=$(long)
crash "$one"
wait_until status_is "$one" crashed
check "a control is taken although no run lives" "$FLOWSUP" pause "$one" 2>/dev/null
wait_until resumed "$one"
two=$(successor "$one")
check "and reaches the run that goes on" wait_until status_is "$two" paused
"$FLOWSUP" kill "$two" 2>/dev/null

# ---- By hand ----
one=$(long)
wait_until worker_is_ready "$one"
kill -TERM "$(worker_pid "$one")"
check "a worker that was asked to leave comes back too" wait_until resumed "$one"
two=$(successor "$one")
"$FLOWSUP" kill "$two" 2>/dev/null
three=$("$FLOWSUP" resume "$two" --restart 5 2>/dev/null)
equal "a person's resume gives it everything anew" 5 "$(run_fact "$three" restarts_left)"
equal "and is no restart" 0 "$(run_fact "$three" restarts_done)"
"$FLOWSUP" kill "$three" 2>/dev/null
four=$("$FLOWSUP" resume "$three" --restart 0 2>/dev/null)
equal "0 asks for none" 0 "$(run_fact "$four" restarts_left)"
"$FLOWSUP" kill "$four" 2>/dev/null

# ---- Restart of the supervisor while it waits ----
one=$(long)
crash "$one"
wait_until status_is "$one" crashed
"$FLOWSUP" supervisor restart
check "a supervisor that executes itself anew goes on with it" wait_until resumed "$one"
"$FLOWSUP" kill "$(successor "$one")" 2>/dev/null

# ---- The deadline that had passed has passed for what goes on by itself, and not for a person's resume ----
rm -f "$T/go"
cat >"$T/late.yaml" <<END
timeout: 4s
restart: {on: crash, attempts: 2}
plan:
  - {id: first, run: 'until [ -e "$T/go" ]; do sleep 0.02; done'}
  - {id: second, needs: [first], run: 'true'}
END
one=$("$FLOWSUP" start "$T/late.yaml")
wait_op "$one" first
closed() { grep -q '"event":"DeadlineClosed"' "$FLOWSUP_HOME/runs/$1/events.jsonl"; }
wait_until closed "$one"
crash "$one"
check "a run behind its deadline is resumed by itself" wait_until resumed "$one"
two=$(successor "$one")
wait_op "$two" first
check "which is behind it too" wait_until closed "$two"
touch "$T/go"
"$FLOWSUP" wait "$two" 2>/dev/null
equal "what ran was taken over, nothing was started, and it ends as it would have" "124 1 2" \
	"$? $(json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$two\"")" done) $(run_fact "$two" total)"
three=$("$FLOWSUP" resume "$two" 2>/dev/null)
"$FLOWSUP" wait "$three" 2>/dev/null
equal "by hand the time begins anew" "0" "$?"
plan
