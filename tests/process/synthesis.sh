#!/usr/bin/env bash
# A synthesis: the last operation, over all outcomes, and required.
. "$(dirname "$0")/lib_agent.sh"
export T
PATH=$BUILD/bin:$PATH

doc() { # plan lines...; with $TOP at the top
	printf '%s\n' 'name: sum' 'roles: {agent: {provider: claude}, sh: {provider: sh}}' "${TOP:-}" \
		"synthesis: {assignee: ${BY:-agent}, instruction: \"${SAY:-ok sum of {{ops.good.response\}\}}\"}" \
		'plan:' "$@" >"$T/flow.yaml"
}
told() { cat "$(run_dir)/ops/synthesis.1/instruction"; }

# ---- Over all outcomes, however they came out ----
doc '  - {id: good, run: printf fine}' '  - {id: bad, run: "echo broken; exit 3"}' \
	'  - {id: behind, needs: [bad], run: "true"}' '  - {id: big, run: "seq 3000"}'
run_flow
equal "a failed operation does not keep it from running" failed "$(run_status "$RUN")"
matches "it has completed" '"status":"completed"' "$(entry synthesis)"
matches "its templates may name every operation" '^ok sum of fine' "$(told)"
matches "it is told what completed" '
good: completed
fine
' "$(told)"
matches "what failed, with what it said" '
bad: failed
broken' "$(told)"
matches "what was skipped" 'behind: skipped' "$(told)"
matches "and where the rest of a long one is" "the whole stands in $(run_dir)/ops/big.1.out" "$(told)"
matches "the checkpoint's plan has it last" '"agent_id":"synthesis".*"dep_indices":\[0,1,2,3\]' \
	"$("$FLOWSUP" checkpoint export "$RUN" --json | grep -oE '"plan":\[.*\],"config"')"
matches "graph draws it" 'synthesis' "$("$FLOWSUP" graph "$T/flow.yaml")"

# ---- Also of what was added meanwhile, and never before it ----
BY=sh SAY='cat \"$FLOWSUP_DEPS\"' TOP='reactive: all' doc '  - id: good
    run: flowsup emit spawn --run "while [ ! -e $T/go ]; do sleep 0.05; done; echo late" --independent'
RUN=$("$FLOWSUP" start "$T/flow.yaml")
saved_good() { grep -q '"event":"CheckpointSaved".*"op":"good"' "$(run_dir)/events.jsonl"; }
wait_until saved_good
check "it waits for what was added" sh -c "! grep -q 'NodeStarted.*synthesis' '$(run_dir)/events.jsonl'"
: >"$T/go"
wait_until ended
equal "it ends" completed "$(run_status "$RUN")"
equal "all are in its list of files" "good good.s1 " "$(cut -f1 "$(run_dir)/ops/synthesis.1.out" | tr '\n' ' ')"

# ---- Required work ----
"$FLOWSUP" supervisor stop
movable "$FLOWSUP" supervisor
doc '  - {id: good, run: ": >$T/runs; while [ ! -e $T/done ]; do sleep 0.05; done"}'
RUN=$("$FLOWSUP" start "$T/flow.yaml" --timeout 1h)
wait_until [ -e "$T/runs" ]
deadline_passes
closed() { grep -q '"event":"DeadlineClosed"' "$(run_dir)/events.jsonl"; }
wait_until closed
: >"$T/done"
"$FLOWSUP" wait "$RUN" >/dev/null 2>&1
equal "withheld by the deadline, the run is not complete" 124 $?
deadline_is_ahead
OLD=$RUN
RUN=$("$FLOWSUP" resume "$OLD" 2>/dev/null)
"$FLOWSUP" wait "$RUN" >/dev/null 2>&1
equal "a resume does what was withheld" 0 $?
equal "and only that" "synthesis" \
	"$(grep '"event":"NodeStarted"' "$(run_dir)/events.jsonl" | grep -oE '"op":"[^"]*"' | cut -d'"' -f4)"
doc '  - {id: good, run: "exit 1"}'
RUN=$("$FLOWSUP" start "$T/flow.yaml" --fail-fast)
wait_until ended
equal "with --fail-fast it is withheld" "failed 0" \
	"$(run_status "$RUN") $(grep -c 'NodeStarted.*synthesis' "$(run_dir)/events.jsonl")"
said=$("$FLOWSUP" check "$T/flow.yaml" 2>&1)
matches "check counts it" 'sum: 2 operations' "$said"
plan
