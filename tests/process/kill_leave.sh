#!/usr/bin/env bash
# What an operation with `leave` has started in a session of its own and without its environment: ended by a kill while
# the run's worker is there, and afterwards known to nobody, which is said.
. "$(dirname "$0")/lib.sh"
cat >"$T/left" <<'END_OF_PROGRAM'
echo $$ >"$1"
exec sleep 1000
END_OF_PROGRAM
cat >"$T/flow.yaml" <<'END_OF_FLOW'
name: leaves
concurrency: 1
defaults: {grace: 500ms}
plan:
  - {id: a, leave: true, run: '(env -i setsid sh "$T/left" "$T/pid" >/dev/null 2>&1 &); until [ -s "$T/pid" ]; do sleep 0.05; done'}
  - {id: b, needs: [a], run: 'until [ -e "$T/go" ]; do sleep 0.05; done'}
END_OF_FLOW
export T
begins() { [ -n "$(ls "$FLOWSUP_HOME/runs/$RUN/ops/b.1.out" 2>/dev/null)" ]; }
RUN=$("$FLOWSUP" start "$T/flow.yaml")
check "the second operation runs" wait_until begins
pid=$(cat "$T/pid")
said=$("$FLOWSUP" kill "$RUN" 2>&1)
matches "the run is killed" "run $RUN: killed" "$said"
check "what was left is ended" wait_until gone "$pid"
equal "and nothing is said of what is not known" 0 "$(grep -c 'known to nobody' <<<"$said")"

rm "$T/pid"
: >"$T/go"
RUN=$("$FLOWSUP" start --wait "$T/flow.yaml" 2>/dev/null | head -1)
pid=$(cat "$T/pid")
said=$("$FLOWSUP" kill "$RUN" 2>&1)
matches "of a run that has ended what is known is told apart" "had already ended \(completed\), and nothing that is known to be of it runs" "$said"
matches "from what is not" "operations with leave: what these have started" "$said"
matches "also for programs" '"may_be_left":true' "$("$FLOWSUP" kill "$RUN" --json)"
kill -KILL "$pid"
RUN=$("$FLOWSUP" start --wait -- true 2>/dev/null | head -1)
matches "without such operations nothing is" "\(completed\), and nothing of it runs\$" "$("$FLOWSUP" kill "$RUN" 2>&1)"

# ---- Its worker has died: what it had started so came to the supervisor, which sees that it is of nobody else ----
cat >"$T/astray.yaml" <<'END_OF_FLOW'
defaults: {grace: 500ms}
plan:
  - {id: a, run: '(env -i setsid sh "$T/left" "$T/pid" >/dev/null 2>&1 &); until [ -s "$T/pid" ]; do sleep 0.05; done; exec sleep 1000'}
END_OF_FLOW
status_of_run() { status_is "$RUN" "$1"; }
begin() { # FLOW: it runs, and has left $pid
	rm -f "$T/pid"
	RUN=$("$FLOWSUP" start "$1")
	wait_until [ -s "$T/pid" ]
	wait_until worker_is_ready "$RUN"
	pid=$(cat "$T/pid")
}
astray() { # FLOW: it runs, and its worker dies
	begin "$1"
	kill -KILL "$(worker_pid "$RUN")"
	wait_until status_of_run crashed
}
says_doctor() { "$FLOWSUP" doctor | tr -s ' ' | grep -E '^(ok|warning) processes'; }
astray "$T/astray.yaml"
matches "doctor names it" "run $RUN has crashed, and process $pid \\(sleep 1000\\) of it goes on" "$(says_doctor)"
said=$("$FLOWSUP" kill "$RUN" 2>&1)
equal "kill of a crashed run" 0 $?
matches "ends it too" "run $RUN had already ended \\(crashed\\); processes of operations ended: [1-9]" "$said"
check "whatever it is called" gone "$pid"
said=$("$FLOWSUP" kill "$RUN" 2>&1)
matches "then nothing is left" "\\(crashed\\), and nothing of it runs\$" "$said"
matches "which programs are told" '"may_be_left":false' "$("$FLOWSUP" kill "$RUN" --json)"
matches "and doctor" "none that" "$(says_doctor)"

# An operation that goes on may need it; it goes on as well, and is ended with the run that has it now.
astray "$T/astray.yaml"
next=$("$FLOWSUP" resume "$RUN" 2>/dev/null)
check "a resume that takes the operation over leaves it" alive "$pid"
wait_until worker_is_ready "$next"
"$FLOWSUP" kill "$next" 2>/dev/null
check "until the new run is killed" gone "$pid"

# The operation has ended: nothing that it left runs beside it when it runs again.
astray "$T/astray.yaml"
leader=$(sed -nE 's/.*"kind":"start".*"pid":([0-9]+).*/\1/p' "$FLOWSUP_HOME/runs/$RUN/attempts.log")
kill -KILL "$leader"
wait_until gone "$leader"
equal "what is left is counted" "crashed (1 running)" "$("$FLOWSUP" list | grep "$RUN" | grep -oE 'crashed( \([^)]*\))?')"
next=$("$FLOWSUP" resume --retry-failed "$RUN" 2>"$T/said")
check "a resume ends it" gone "$pid"
matches "and says so" "ended 1 process that the dead worker had left" "$(cat "$T/said")"
"$FLOWSUP" kill "$next" 2>/dev/null
kill -KILL "$(cat "$T/pid")" 2>/dev/null

# One operation goes on, another one runs again: it may be of either.
cat >"$T/two.yaml" <<'END_OF_FLOW'
defaults: {grace: 500ms}
plan:
  - {id: a, run: '(env -i setsid sh "$T/left" "$T/pid" >/dev/null 2>&1 &); until [ -s "$T/pid" ]; do sleep 0.05; done; exec sleep 1000'}
  - {id: b, run: 'echo $$ >"$T/b"; exec sleep 1000'}
END_OF_FLOW
rm -f "$T/b"
begin "$T/two.yaml"
wait_until [ -s "$T/b" ]
kill -KILL "$(worker_pid "$RUN")"
wait_until status_of_run crashed
kill -KILL "$(cat "$T/b")"
wait_until gone "$(cat "$T/b")"
said=$("$FLOWSUP" resume --retry-failed "$RUN" 2>&1)
equal "that resume is refused" 4 $?
matches "for what is not known" "process $pid \\(sleep 1000\\) may be of what is taken over, or of what is not, .*end it \\(kill $pid\\)" "$said"
matches "with the option that lifts it" "flowsup resume $RUN --retry-failed --rerun-in-flight|flowsup resume $RUN --rerun-in-flight --retry-failed" "$said"
said=$("$FLOWSUP" resume --dry-run --retry-failed "$RUN" 2>&1)
equal "as a dry one says" 4 $?
next=$("$FLOWSUP" resume --retry-failed --rerun-in-flight "$RUN" 2>"$T/said")
matches "with it, that is said" "goes on beside what may be of .*process $pid " "$(cat "$T/said")"
check "and it goes on" alive "$pid"
wait_until worker_is_ready "$next"
"$FLOWSUP" kill "$next" 2>/dev/null
check "until the new run is killed, which has it" gone "$pid"

# ---- Two workers have died at once: nothing tells of which run it is ----
begin "$T/astray.yaml"
OTHER=$("$FLOWSUP" start -- sleep 1000)
wait_until worker_is_ready "$OTHER"
workers="$(worker_pid "$RUN") $(worker_pid "$OTHER")"
supervisor=$(supervisor_pid)
stop_still "$supervisor"
# shellcheck disable=SC2086
kill -KILL $workers
for worker in $workers; do wait_until gone "$worker"; done
kill -CONT "$supervisor"
wait_until status_of_run crashed
wait_until status_is "$OTHER" crashed
named="process $pid \\(sleep 1000\\)"
matches "doctor names it, and both runs" "$named may be of runs? .*($RUN.*$OTHER|$OTHER.*$RUN)" "$(says_doctor)"
said=$("$FLOWSUP" resume "$OTHER" 2>&1)
equal "a resume is refused" 4 $?
matches "names it" "$named may be of it, or of another run" "$said"
matches "and what lifts that" "flowsup resume $OTHER --rerun-in-flight" "$said"
said=$("$FLOWSUP" resume --dry-run "$OTHER" 2>&1)
matches "also a dry one" "$named may be of it" "$said"
said=$("$FLOWSUP" kill "$RUN" 2>&1)
equal "kill of a crashed run" 0 $?
check "leaves what it cannot prove" alive "$pid"
matches "and names it" "may be of it, or of another run.*: $named" "$said"
said=$("$FLOWSUP" kill "$RUN" 2>&1)
matches "a second one too" "nothing that is known to be of it runs.*may be of it.* process $pid" "$(tr '\n' ' ' <<<"$said")"
matches "also for programs" '"may_be_left":true' "$("$FLOWSUP" kill "$RUN" --json)"
"$FLOWSUP" supervisor restart
matches "as after a restart of the supervisor" '"may_be_left":true' "$("$FLOWSUP" kill "$RUN" --json)"
next=$("$FLOWSUP" resume "$OTHER" --rerun-in-flight 2>"$T/said")
matches "a resume that may go on beside it says so" "goes on beside what may be of it.*$named" "$(cat "$T/said")"
said=$("$FLOWSUP" kill "$next" 2>&1)
matches "and what follows from it names it" "may be of it" "$said"
kill -KILL "$pid"
wait_until gone "$pid"
matches "with that gone nothing is left" "\\(crashed\\), and nothing of it runs\$" "$("$FLOWSUP" kill "$RUN" 2>&1)"

# What is started as an answer to TERM comes to the supervisor as well.
cat >"$T/answers.yaml" <<'END_OF_FLOW'
defaults: {grace: 1m}
plan:
  - id: a
    run: |
      answer() { rm "$T/pid"; env -i setsid sh "$T/left" "$T/pid" >/dev/null 2>&1 & until [ -s "$T/pid" ]; do sleep 0.02; done; exit 0; }
      trap answer TERM
      echo $$ >"$T/pid"
      while :; do sleep 0.02; done
END_OF_FLOW
astray "$T/answers.yaml"
said=$("$FLOWSUP" kill "$RUN" 2>&1)
check "the operation is gone" gone "$pid"
check "and its answer" wait_until gone "$(cat "$T/pid")"

# ---- Worker and supervisor have died: it came to nobody of this program ----
rm -f "$T/pid"
RUN=$("$FLOWSUP" start "$T/astray.yaml")
wait_until [ -s "$T/pid" ]
wait_until worker_is_ready "$RUN"
worker=$(worker_pid "$RUN")
# shellcheck disable=SC2046
kill -KILL $(supervisors) "$worker"
wait_until gone "$worker"
"$FLOWSUP" supervisor
wait_until status_of_run crashed
said=$("$FLOWSUP" kill "$RUN" 2>&1)
matches "then that is said" "its worker had died, and the supervisor that had started it: what operations have started" "$said"
kill -KILL "$(cat "$T/pid")"
plan
