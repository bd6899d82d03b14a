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
plan
