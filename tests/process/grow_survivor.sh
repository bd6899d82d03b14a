#!/usr/bin/env bash
# An operation that outlives its worker asks for others: what it says meanwhile is kept and done.
. "$(dirname "$0")/lib_grow.sh"

begin <<'Y'
reactive: all
plan:
  - id: a
    run: |
      flowsup emit spawn --run 'echo before' --key before
      flowsup emit spawn --run 'echo equal'
      flowsup emit spawn --run ''
      : > "$T/gates/asked"
      until [ -e "$T/gates/alone" ]; do sleep 0.05; done
      flowsup emit spawn --run 'echo alone' --key alone 2> "$T/said"
      : > "$T/gates/spooled"
      until [ -e "$T/gates/go" ]; do sleep 0.05; done
      flowsup emit spawn --run 'echo after' --key after
      flowsup emit spawn --run 'echo different' --key before 2> "$T/twice"
      flowsup emit spawn --run 'echo equal'
  - {id: b, needs: [a], run: 'true'}
Y
wait_until [ -e "$T/gates/asked" ]
counts_it() { "$FLOWSUP" show "$RUN" --json | grep -q '"rejected":{"null_child":1}'; }
wait_until counts_it
pid=$(worker_pid "$RUN")
kill -KILL "$pid"
wait_until status_is "$RUN" crashed
open_gate alone
wait_until [ -e "$T/gates/spooled" ]
matches "without a worker a request is kept" "is kept in ops/a.1/spool" "$(cat "$T/said")"
RUN=$("$FLOWSUP" resume "$RUN" 2>"$T/resume.err")
both() { [ "$(spawned 'len(s)')" = 3 ]; }
check "the worker that takes it over does what was asked for" wait_until both
open_gate go
wait_until ended
equal "the run completes" completed "$(run_status "$RUN")"
equal "with all that has a key, each once" "after alone before" \
	"$(spawned '" ".join(sorted(e["request_key"] for e in s if "#" not in e["request_key"]))')"
matches "a key that was taken before its worker died is taken" "duplicate" "$(cat "$T/twice")"
matches "as the run counts, with those before" '"rejected":\{"null_child":1,"duplicate":1\}' "$("$FLOWSUP" show "$RUN" --json)"
equal "and the operation's own count" "{'null_child': 1, 'duplicate': 1}" "$(shown 'op["a"]["rejected"]')"
matches "in words too" "asked in vain: 1 null_child, 1 duplicate" "$(shown 'op["a"]["why"]')"
equal "equal requests without one are different ones" "1 2" \
	"$(spawned '" ".join(sorted(e["request_key"].split("#")[1] for e in s if "#" in e["request_key"]))')"
equal "which have run" "completed completed completed completed completed" "$(spawned '" ".join(e["status"] for e in s)')"
equal "the operation itself ran once" 1 "$(shown 'op["a"]["attempt"]')"

# What it said last to nobody and first to the worker that takes it over is heard in this order, although the
# worker had looked before that: a file that comes back is one that comes late.
begin <<'Y'
reactive: all
plan:
  - id: a
    run: |
      : > "$T/gates/asking"
      until [ -e "$T/gates/lonely" ]; do sleep 0.05; done
      flowsup emit spawn --run 'echo first'
      flowsup emit context set /x '"first"'
      mv "$FLOWSUP_HOME/runs/$FLOWSUP_RUN_ID/ops/a.1/spool" "$T/away"
      : > "$T/gates/kept"
      until [ -e "$T/gates/again" ]; do sleep 0.05; done
      mv "$T/away" "$FLOWSUP_HOME/runs/$FLOWSUP_RUN_ID/ops/a.1/spool"
      flowsup emit spawn --run 'echo second'
      flowsup emit context get > "$T/got"
Y
wait_until [ -e "$T/gates/asking" ]
pid=$(worker_pid "$RUN")
kill -KILL "$pid"
wait_until status_is "$RUN" crashed
open_gate lonely
wait_until [ -e "$T/gates/kept" ]
RUN=$("$FLOWSUP" resume "$RUN" 2>"$T/resume.err")
wait_until status_is "$RUN" running
open_gate again
wait_until ended
equal "requests are heard in the order in which they were made" "a.s1 first, a.s2 second" \
	"$(spawned '", ".join(e["spawn_id"] + " " + e["response"].strip() for e in s)')"
equal "and what was changed is seen at once" '{"x":"first"}' "$(cat "$T/got")"

# A further run has them, too; a fork, which is another run, counts its own.
begin <<'Y'
reactive: all
plan:
  - {id: a, run: 'flowsup emit spawn --run ""; :'}
  - {id: b, needs: [a], run: '[ -e "$T/gates/better" ]'}
Y
wait_until ended
RUN=$("$FLOWSUP" resume "$RUN" --retry-failed 2>"$T/resume.err")
wait_until ended
equal "one that made none keeps those before" "{'null_child': 1} {'null_child': 1}" "$(shown 'd["growth"]["rejected"], op["a"]["rejected"]' | tr -d '()' | sed 's/}, /} /')"
open_gate better
RUN=$("$FLOWSUP" resume "$RUN" --retry-failed 2>"$T/resume.err")
wait_until ended
equal "and hands them on" "completed {'null_child': 1}" "$(run_status "$RUN") $(shown 'op["a"]["rejected"]')"
RUN=$("$FLOWSUP" fork "$RUN" --from b 2>"$T/resume.err")
wait_until ended
equal "a fork begins to count" "completed None None" "$(run_status "$RUN") $(shown 'd.get("growth"), op["a"].get("rejected")' | tr -d '(,)')"
plan
