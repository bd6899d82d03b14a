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

# ---- Its worker has died: what it had started so came to the supervisor, which cannot tell whose it is ----
cat >"$T/astray.yaml" <<'END_OF_FLOW'
defaults: {grace: 500ms}
plan:
  - {id: a, run: '(env -i setsid sh "$T/left" "$T/pid" >/dev/null 2>&1 &); until [ -s "$T/pid" ]; do sleep 0.05; done; sleep 1000'}
END_OF_FLOW
status_of_run() { status_is "$RUN" "$1"; }
astray() { # FLOW: it runs, and its worker dies
	rm -f "$T/pid"
	RUN=$("$FLOWSUP" start "$1")
	wait_until [ -s "$T/pid" ]
	wait_until worker_is_ready "$RUN"
	pid=$(cat "$T/pid")
	kill -KILL "$(worker_pid "$RUN")"
	wait_until status_of_run crashed
}
astray "$T/astray.yaml"
said=$("$FLOWSUP" resume --dry-run "$RUN" 2>&1)
matches "a dry resume names what came to the supervisor unmarked" "may be of it.*: process $pid \(sleep 1000\)" "$said"
check "and leaves it" alive "$pid"
said=$("$FLOWSUP" kill "$RUN" 2>&1)
equal "kill of a crashed run" 0 $?
matches "ends what is known" "run $RUN had already ended \\(crashed\\); processes of operations ended: [1-9]" "$said"
check "what it cannot prove it leaves" alive "$pid"
matches "and names" "may be of it, as of any run whose worker has died: process $pid \(sleep 1000\)" "$said"
said=$("$FLOWSUP" kill "$RUN" 2>&1)
matches "a second one too" "nothing that is known to be of it runs.*may be of it.* process $pid" "$(tr '\n' ' ' <<<"$said")"
matches "also for programs" '"may_be_left":true' "$("$FLOWSUP" kill "$RUN" --json)"
kill -KILL "$pid"
wait_until gone "$pid"
said=$("$FLOWSUP" kill "$RUN" 2>&1)
matches "with that gone nothing is left" "\(crashed\), and nothing of it runs\$" "$said"
matches "which programs are told" '"may_be_left":false' "$("$FLOWSUP" kill "$RUN" --json)"

# A resume names it as well, before it goes on beside it.
astray "$T/astray.yaml"
next=$("$FLOWSUP" resume "$RUN" 2>"$T/said")
matches "a resume names it" "may be of it.*: process $pid \(sleep 1000\)" "$(cat "$T/said")"
equal "once" 1 "$(grep -c 'may be of it' "$T/said")"
"$FLOWSUP" kill "$next" 2>/dev/null
kill -KILL "$pid"
wait_until gone "$pid"

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
pid=$(cat "$T/pid")
if alive "$pid"; then
	matches "its answer is named" "may be of it.*process $pid \(" "$said"
	kill -KILL "$pid"
else
	not_ok "its answer has ended"
fi

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
