#!/usr/bin/env bash
# Further tries by stronger roles: where they stand in the graph, what sees them, what bounds them.
. "$(dirname "$0")/lib_grow.sh"

# Each role knows who it is; only the last one succeeds.
ROLES='roles:
  junior: {provider: robot, env: {WHO: junior}, escalate_to: senior}
  senior: {provider: robot, env: {WHO: senior}, escalate_to: boss}
  boss: {provider: robot, env: {WHO: boss}}'

# ---- Failures ----
cat >"$T/try.sh" <<'S'
echo "$WHO: $(cat "$FLOWSUP_DEP_before")"
echo "$WHO" > "$FLOWSUP_ARTIFACTS/who"
test "$WHO" = "$GOOD"
S
GOOD=boss
export GOOD
flow() {
	cat <<Y
$1
$ROLES
plan:
  - {id: before, run: echo input}
  - {id: work, needs: [before], assignee: junior, instruction: 'sh "\$T/try.sh"'}
  - {id: after, needs: [work], exec: [echo, "{{ops.work.response}}"]}
  - {id: reads, needs: [{op: work, when: {pointer: "", matches: boss}}], run: 'cat "\$FLOWSUP_DEP_work"'}
  - {id: files, needs: [work], exec: [cat, "{{artifacts.work}}/who"]}
  - {id: never, needs: [{op: work, on: failure}], run: echo never}
Y
}
run_flow < <(flow '')
equal "a run whose last try completed has completed" "completed run.completed.all" \
	"$(run_status "$RUN") $(run_fact "$RUN" reason)"
equal "each try sees what the first saw" "senior: input" "$(output work.s1)"
equal "what needs the operation gets the last response" "boss: input" "$(output after | head -1)"
equal "under the operation's name" "boss: input" "$(output reads)"
equal "and its files" boss "$(output files)"
equal "conditions are kept" "skipped" "$(shown 'op["never"]["state"]')"
equal "who asked, and where it stands" "True True" "$(spawned '(by["work.s1"]["escalated_from"] == by["work.s1"]["parent_id"] == node["work"], by["work.s1.s1"]["escalated_from"] == by["work.s1.s1"]["parent_id"] == by["work.s1"]["node_id"])' | tr -d '(,)')"
equal "the roles of who asked" "junior senior" "$(spawned '" ".join(e["emitter_workload"] for e in s)')"
equal "the first try is still a failure" "failed work.s1.s1" "$(shown 'op["work"]["state"] + " " + op["work"]["replaced_by"]')"
matches "in whose place another was tried: none counts as failed" "8 of 8 done, 1 skipped, 7 saved" \
	"$("$FLOWSUP" show "$RUN" | grep '^progress')"
equal "events" 2 "$(events NodeEscalated)"
"$FLOWSUP" show "$RUN" --graph text >"$T/graph"
check "the graph is spliced" grep -q 'after *completed *needs work.s1.s1$' "$T/graph"
check "and says what the tries are" grep -q 'work.s1.s1 .*\[another try at work\]' "$T/graph"
check "also as mermaid" grep -q '\[\["work.s1<br>' <("$FLOWSUP" show "$RUN" --graph mermaid)

rm -f "$T"/gates/*
begin <<Y
$ROLES
plan:
  - {id: work, assignee: junior, instruction: 'test \$WHO != junior || exit 1; : >"\$T/gates/again"; until [ -e "\$T/gates/go" ]; do sleep 0.05; done'}
Y
wait_until [ -e "$T/gates/again" ]
matches_soon "a try that runs is said to" 'work.s1 is being tried in its place' shown 'op["work"]["why"]'
open_gate go
wait_until ended
matches "and one that has ended" 'work.s1 was tried in its place' "$(shown 'op["work"]["why"]')"
rm -f "$T"/gates/*

# ---- Where nothing may be added ----
run_flow <<'Y'
plan: [{id: a, run: 'flowsup emit spawn --run x; flowsup emit escalate; true'}]
Y
equal "what was asked in vain is counted there too" "completed {'builder_error': 2} 2" \
	"$(run_status "$RUN") $(shown 'd["growth"]["rejected"]') $(events SpawnRejected)"
matches "show says it" "rejected: 2 builder_error" "$("$FLOWSUP" show "$RUN")"

# ---- Bounds ----
GOOD=nobody
run_flow < <(flow 'escalate_max: 1')
equal "escalate_max bounds the tries" "failed 1 1" "$(run_status "$RUN") $(spawned 'len(s)') $(events SpawnRejected)"
equal "that is a reason of its own" "{'escalate_max_reached': 1} escalate_max_reached" \
	"$(shown 'd["growth"]["rejected"]') $(grep SpawnRejected "$FLOWSUP_HOME/runs/$RUN/events.jsonl" | grep -oE '"reason":"[^"]*"' | cut -d'"' -f4)"
matches "show names it" "rejected: 1 escalate_max_reached" "$("$FLOWSUP" show "$RUN")"
matches "and how many there were of how many" "no further try: escalate_max_reached .1 of 1.$" "$(shown 'op["work.s1"]["why"]')"
matches "a line too" "work.s1 gets no further try: escalate: escalate_max_reached: work had 1 further try; escalate_max is 1" \
	"$("$FLOWSUP" start --wait - 2>&1 < <(flow 'escalate_max: 1'))"
equal "the last try decides what runs" "skipped completed" "$(shown 'op["after"]["state"] + " " + op["never"]["state"]')"
check "its failure is the run's" grep -q 'operation work.s1 failed' <("$FLOWSUP" show "$RUN")
run_flow < <(flow 'escalate_max: 0')
equal "none at all" "failed 0" "$(run_status "$RUN") $(spawned 'len(s)')"
run_flow --max-ops 7 < <(flow '')
equal "they count for max_ops" "failed 1" "$(run_status "$RUN") $(spawned 'len(s)')"
matches "which is another reason" "rejected: 1 max_spawn_exceeded" "$("$FLOWSUP" show "$RUN")"
matches "and nobody has asked in vain" "; no further try: max_spawn_exceeded$" "$(shown 'op["work.s1"]["why"]')"
equal "what helps is a run that has room for them" "flowsup rerun $RUN --max-ops 8" "$(shown 'd["resume_command"]')"
GOOD=boss
RUN=$("$FLOWSUP" rerun "$RUN" --max-ops 8 2>"$T/err") || note "$(cat "$T/err")"
wait_until ended
equal "which it has" "completed 2" "$(run_status "$RUN") $(spawned 'len(s)')"
run_flow --max-ops 6 < <(flow '')
equal "and for those that would follow" "flowsup rerun $RUN --max-ops 8" "$(shown 'd["resume_command"]')"
GOOD=nobody

# ---- Asked for ----
run_flow <<Y
reactive: all
$ROLES
plan:
  - id: work
    assignee: junior
    response: json
    instruction: |
      flowsup emit spawn --instruction 'echo child of \$FLOWSUP_DEP_work; cat "\$FLOWSUP_DEP_work"'
      if [ "\$WHO" = junior ]; then echo '{"escalate": {"to": "senior", "reason": "too hard"}}'; else echo '{"by": "senior"}'; fi
  - {id: after, needs: [{op: work, when: {pointer: /by, equals: senior}}], run: 'cat "\$FLOWSUP_DEP_work"'}
Y
check "which is no data" bash -c "! '$FLOWSUP' show '$RUN' | grep -q 'is data'"
equal "a response asks for another try" "completed too hard" "$(run_status "$RUN") $(spawned '[e["reason"] for e in s if "reason" in e][0]')"
equal "the condition is asked of the last one" '{"by": "senior"}' "$(output after)"
matches "what was added waits for it too" '"by": "senior"' "$(output work.s1)"
begin <<Y
reactive: all
$ROLES
plan:
  - {id: work, assignee: junior, instruction: 'flowsup emit escalate; flowsup emit escalate --to boss; cat "\$T/gates/go" 2>/dev/null; echo \$WHO'}
  - {id: after, needs: [work], run: 'cat "\$FLOWSUP_DEP_work"'}
Y
wait_until ended
equal "a second request follows the first try" "True True" "$(spawned '(by["work.s1"]["parent_id"] == node["work"], s[1]["parent_id"] == by["work.s1"]["node_id"] and s[1]["escalated_from"] == node["work"])' | tr -d '(,)')"
equal "and is the last" boss "$(output after)"
begin <<Y
reactive: all
$ROLES
plan:
  - {id: work, assignee: junior, instruction: 'test \$WHO = junior || exit 0; flowsup emit escalate; flowsup emit escalate --reason twice; flowsup emit escalate --to senior; echo \$? \$WHO'}
Y
wait_until ended
equal "a second one for the same role is a duplicate" "completed 1 {'duplicate': 2} 4" \
	"$(run_status "$RUN") $(spawned 'len(s)') $(shown 'd["growth"]["rejected"]') $(output work | cut -d' ' -f1)"
matches "and says so" 'escalate: duplicate: this attempt has asked for another try by senior already' "$(errors work)"
[ "$FAILED" = 0 ] || "$FLOWSUP" show "$RUN" | sed 's/^/# /'
plan
