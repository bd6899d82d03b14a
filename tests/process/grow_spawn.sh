#!/usr/bin/env bash
# Operations ask for further ones: what is accepted, what is rejected and why, and what becomes of it.
. "$(dirname "$0")/lib_grow.sh"

# ---- A planner's work is its answer ----
run_flow <<'Y'
reactive: all
roles: {robot: {provider: robot}}
planner:
  assignee: robot
  instruction: |
    flowsup emit spawn --instruction true 2>"$T/said"
    echo "$?" >>"$T/said"
    echo '[{"id": "a", "assignee": "robot", "instruction": "true", "needs": []}]'
    exit
Y
equal "the plan runs" "completed" "$(run_status "$RUN")"
matches "and a planner that asks for more is told what it may" "a planner asks for work by its answer, which is the plan, alone"$'\n'"4" "$(cat "$T/said")"

# ---- Asked for by emit ----
echo '["echo", "{{item}}"]' >"$T/words"
run_flow <<'Y'
name: grows
reactive: all
plan:
  - id: a
    run: |
      flowsup emit spawn --run 'cat "$FLOWSUP_DEP_a"; echo "$FLOWSUP_SPAWN_CONTEXT"' --context '{"x": 1}' --reason because
      flowsup emit spawn --run 'echo alone $FLOWSUP_DEP_a' --independent --key k
      flowsup emit spawn --exec - < "$T/words"
      flowsup emit spawn --exec - < "$T/words"
      echo said
  - {id: b, needs: [a], run: cat "$FLOWSUP_DEP_a"}
Y
equal "the run completes with what was added" "completed 6" "$(run_status "$RUN") $(run_fact "$RUN" done)"
equal "one runs behind who asked, with its context" 'said
{"x":1}' "$(output a.s1)"
equal "an independent one does not" "alone" "$(output a.s2)"
equal "texts are no templates; equal requests are two" "{{item}} {{item}}" "$(output a.s3) $(output a.s4)"
equal "each has its own node" 6 "$(spawned 'len({e["node_id"] for e in s} | set(node.values()))')"
equal "and says whose it is" True "$(spawned 'all(e["parent_id"] == node["a"] for e in s)')"
equal "provenance of one without a role" "True" \
	"$(spawned 'all(e["emitter_workload"] == "" and e["emitter_contains_user_settings"] is True for e in s)')"
equal "what it was asked for stays with its outcome" "run because {'x': 1} None True" \
	"$(spawned '" ".join(str(v) for v in (by["a.s1"]["operation"], by["a.s1"]["reason"], by["a.s1"]["context"], by["a.s1"].get("independent"), by["a.s2"]["independent"]))')"
equal "the words of an exec" "['echo', '{{item}}']" "$(spawned 'by["a.s3"]["instruction"]')"
equal "each is an event" 4 "$(events NodeSpawned)"
matches "the command says what was added" 'spawn accepted: a.s1' "$(errors a)"
equal "show says where they come from" "spawned a a" \
	"$(shown '" ".join([op["a.s1"]["added"], op["a.s1"]["parent"], op["a.s1"]["needs"][0]])')"
equal "and why" "asked for by a: because, asked for by a" \
	"$(shown 'op["a.s1"]["why"] + ", " + op["a.s2"]["why"]')"
matches "and how many" 'added +4 spawned' "$("$FLOWSUP" show "$RUN")"
"$FLOWSUP" show "$RUN" --graph text >"$T/graph"
check "the graph has them" grep -q 'a.s1 *completed *needs a *\[spawned\]' "$T/graph"
check "also the independent one" grep -q 'a.s2 *completed *\[spawned by a\]' "$T/graph"
matches "dot draws the edge" 'n0 -> n2' "$("$FLOWSUP" show "$RUN" --graph dot)"
# The order in the journal: accepted, then what came of who asked, then of what was added.
check "acceptance is recorded before the emitter's outcome" \
	awk '/"status":"pending"/ {n++} /"agent_id":"a"/ {exit n != 4}' "$(run_dir)/checkpoint.json.journal"

# ---- Allowed, or not, by whoever starts it ----
RUN=$("$FLOWSUP" start --reactive -- sh -c 'flowsup emit spawn --run true')
"$FLOWSUP" wait "$RUN" 2>/dev/null
equal "--reactive: a command may ask for more" "completed 2" "$(run_status "$RUN") $(run_fact "$RUN" total)"
run_flow --reactive=off <<'Y'
reactive: all
plan: [{id: a, run: flowsup emit spawn --run true}]
Y
equal "--reactive=off goes before the document" "failed 1" "$(run_status "$RUN") $(run_fact "$RUN" total)"
matches "an operation is told" "builder_error: .*reactive" "$(errors a)"

# ---- Rejections: what is asked, the reason ----
cat >"$T/asks" <<'R'
flowsup emit spawn --run " "	null_child
flowsup emit spawn	null_child
flowsup emit spawn --exec '[]'	null_child
flowsup emit spawn --exec '{"a": 1}'	builder_error
flowsup emit spawn --run true --exec '["true"]'	builder_error
flowsup emit spawn --instruction 'do it'	builder_error
flowsup emit spawn --run true --assignee nobody	builder_error
flowsup emit spawn --run true --key one	-
flowsup emit spawn --run false --key one	duplicate
flowsup emit escalate	builder_error
R
cat >"$T/ask.sh" <<'S'
while IFS="$(printf '\t')" read -r command reason; do
	sh -c "$command" >"$T/out" 2>"$T/err" </dev/null
	got=$?
	[ "$reason" = - ] && wanted=0 || wanted=4
	[ $got = $wanted ] || echo "$command: exit $got"
	[ $wanted = 0 ] || grep -q ": $reason: " "$T/err" || { echo "$command:"; cat "$T/err"; }
done <"$1"
S
run_flow <<Y
reactive: all
plan: [{id: a, run: 'sh "$T/ask.sh" "$T/asks"'}]
Y
equal "each rejection has its reason and exit status" "" "$(output a)"
equal "rejections are events" "3 5 1" "$(for r in null_child builder_error duplicate; do
	grep '"event":"SpawnRejected"' "$(run_dir)/events.jsonl" | grep -c "\"reason\":\"$r\""; done | xargs)"
equal "and are counted" "{'builder_error': 5, 'null_child': 3, 'duplicate': 1}" \
	"$("$FLOWSUP" show "$RUN" --json | python3 -c 'import json,sys; d=json.load(sys.stdin); print(d.get("run", d)["growth"]["rejected"])')"

# ---- Who may ask: agents, roles, arguments, settings ----
cat >"$T/asks" <<'R'
flowsup emit spawn --run true	builder_error
flowsup emit spawn --exec '["true"]'	builder_error
flowsup emit spawn --instruction 'echo child'	-
flowsup emit spawn --instruction 'echo other' --assignee same	-
flowsup emit spawn --instruction 'echo shell' --assignee shell	builder_error
flowsup emit spawn --instruction 'echo more' --assignee more	builder_error
flowsup emit spawn --instruction 'echo env' --assignee env	builder_error
flowsup emit spawn --instruction 'echo reads' --assignee reads	builder_error
flowsup emit spawn --instruction 'sh "$T/ask.sh" "$T/asks"'	cycle
flowsup emit escalate --to more	builder_error
R
roles='roles:
  agent: {provider: robot, args: [-s]}
  same: {provider: robot, args: [-s]}
  more: {provider: robot, args: [-s, -x]}
  env: {provider: robot, args: [-s], env: {SECRET: x}}
  shell: {provider: sh, args: [-s]}
  reads: {provider: spy, args: [-s]}'
run_flow <<Y
reactive: [agent]
$roles
plan:
  - {id: a, assignee: agent, instruction: 'sh "\$T/ask.sh" "\$T/asks"'}
  - {id: b, assignee: same, instruction: 'flowsup emit spawn --instruction no; echo \$?'}
  - {id: c, run: 'flowsup emit spawn --run no; echo \$?'}
Y
equal "an agent gets no command, no shell, no more authority, and not itself" "" "$(output a)"
equal "what it may ask for is done" "child other" "$(output a.s1) $(output a.s2)"
equal "as its role, with its provenance" "agent agent False" \
	"$(spawned '" ".join(str(v) for v in (by["a.s1"]["assignee"], by["a.s1"]["emitter_workload"], by["a.s1"]["emitter_contains_user_settings"]))')"
equal "others may not ask" "4 4" "$(output b) $(output c)"
matches "and learn why" 'reactive does not name the role same' "$(errors b)"
run_flow <<Y
reactive: all
model_commands: true
$roles
plan: [{id: a, assignee: agent, instruction: 'flowsup emit spawn --run "echo command"; flowsup emit spawn --instruction "echo x" --assignee more'}]
Y
equal "model_commands allows commands" command "$(output a.s1)"

# ---- Asked for by a response ----
cat >"$T/answer" <<'J'
{"spawn": [{"run": "echo one"}, {"operation": "exec", "instruction": ["echo", "two"], "independent": true},
  {"run": "echo emitted"}, {"run": "echo emitted"}, null, {}, {"run": "x", "needs": []}, 7],
 "context": [{"op": "set", "pointer": "/n", "value": 1}]}
J
run_flow <<Y
reactive: all
plan: [{id: a, response: json, run: 'flowsup emit spawn --run "echo emitted"; cat "$T/answer"'}]
Y
equal "members of a response ask too" "one two" "$(output a.s2) $(output a.s3)"
equal "what emit had asked for is asked for once" 4 "$(spawned 'len(s)')"
equal "each rejection has its reason" "2 2 1" "$(for r in null_child builder_error duplicate; do
	grep '"event":"SpawnRejected"' "$(run_dir)/events.jsonl" | grep -c "\"reason\":\"$r\""; done | xargs)"
equal "the run completes all the same" completed "$(run_status "$RUN")"
equal "show counts them for each operation" "{'duplicate': 1, 'null_child': 2, 'builder_error': 2} None" \
	"$(shown 'str(op["a"]["rejected"]) + " " + str(op["a.s1"].get("rejected"))')"
check "one with a member that there is not learns which there are" has_event SpawnRejected \
	'a request has no member \"needs\": it may have instruction, run, exec, assignee, independent, reason, context, key"'
matches "in words too" 'asked in vain: 1 duplicate, 2 null_child, 2 builder_error' "$(shown 'op["a"]["why"]')"
run_flow <<Y
plan: [{id: a, response: json, run: 'cat "$T/answer"'}]
Y
equal "with reactive: off they are data" "completed 0 0" "$(run_status "$RUN") $(spawned 'len(s)') $(events SpawnRejected)"
matches "and show says so" '"spawn" in its response is data: reactive is off' "$(shown 'op["a"]["why"]')"
run_flow <<Y
plan: [{id: a, response: json, run: "echo '{\\"spawn\\": [], \\"escalate\\": true}'"}]
Y
matches "both are named" '"spawn" and "escalate" in its response are data: reactive is off' "$(shown 'op["a"]["why"]')"

run_flow <<Y
reactive: all
roles: {r: {provider: robot}, s: {provider: robot}}
plan:
  - {id: a, response: json, run: 'cat "\$T/answer"; exit 1'}
  - {id: b, response: json, assignee: r, run: 'echo "{\"escalate\": \"s\"}"; exit 1'}
  - {id: c, response: json, run: 'echo "{\"escalate\": false}"; exit 1'}
Y
equal "those of one that fails ask for nothing" "failed 0 0" "$(run_status "$RUN") $(spawned 'len(s)') $(events SpawnRejected)"
matches "and show says so" '"spawn" in its response is no request: it failed' "$(shown 'op["a"]["why"]')"
matches "of both" '"escalate" in its response is no request: it failed' "$(shown 'op["b"]["why"]')"
equal "where there is one" 0 "$(shown 'op["c"]["why"]' | grep -c 'no request')"

# ---- Read from standard input; where there is no run ----
run_flow <<'Y'
reactive: all
plan:
  - id: a
    run: |
      echo 'echo "$FLOWSUP_SPAWN_CONTEXT" read' | flowsup emit spawn --run - --context 5
      for pair in '--exec - --context -' '--run - --context -'; do
        echo '["true"]' | flowsup emit spawn $pair; echo "$?"
      done
      FLOWSUP_SOCK=/nonexistent flowsup emit spawn --run true
      env -u FLOWSUP_TOKEN flowsup emit spawn --run true
      env -u FLOWSUP_SOCK flowsup emit spawn --run true
      flowsup emit spawn --help | grep -e --key >&2
  - id: b
    response: json
    run: |
      printf '{"spawn": [%s{"operation": "other", "instruction": "x"}]}' "$(printf '{"operation": "%s", "instruction": "true", "assignee": "r"}, ' chat operate ReAct communicate)"
  - id: c
    response: json
    run: |
      echo '{"spawn": {"operation": "chat", "run": "x"}}'
roles: {r: {provider: robot}}
Y
equal "a command may come from standard input" "5 read" "$(output a.s1)"
equal "two things may not" "2 2" "$(output a | xargs)"
matches "and that is said" '--exec and --context cannot both read standard input.*--run and --context cannot' "$(errors a | tr '\n' ' ')"
matches "it is told what is wrong with the environment" 'FLOWSUP_SOCK is "/nonexistent", which is no socket.*FLOWSUP_TOKEN is not set.*FLOWSUP_SOCK is not set' 	"$(errors a | tr '\n' ' ')"
equal "nothing says that a second request of one attempt is fine" 0 "$(errors a | grep -c 'asked for twice')"
equal "older words for an instruction are understood" "instruction instruction instruction instruction" 	"$(spawned '" ".join(by["b.s%d" % n]["operation"] for n in (1, 2, 3, 4))')"
equal "no others, and of nothing else" "{'builder_error': 1} {'builder_error': 1}" "$(shown 'str(op["b"]["rejected"]) + " " + str(op["c"]["rejected"])')"

# ---- The notification ----
cat >"$T/notified.sh" <<'S'
cat >"$T/payload.new" && mv "$T/payload.new" "$T/payload"
S
run_flow <<Y
reactive: all
notify: {command: [sh, "$T/notified.sh"], on: all}
plan: [{id: a, run: 'flowsup emit spawn --run true; flowsup emit spawn --run " "; true'}]
Y
check "the notification comes" wait_until [ -s "$T/payload" ]
check "and counts what was added and rejected" \
	grep -q '"growth":{"spawned":1,"escalated":0,"items":0,"rejected":{"null_child":1}}' "$T/payload"

# ---- The cap ----
run_flow <<'Y'
reactive: all
plan: [{id: a, run: 'for i in $(seq 25); do flowsup emit spawn --run true 2>/dev/null && echo y; done | wc -l'}]
Y
equal "without max_ops 20 may be added" "20 5" "$(output a) $(events SpawnRejected)"
run_flow --max-ops 3 <<'Y'
reactive: all
plan: [{id: a, run: 'flowsup emit spawn --run "flowsup emit spawn --run true; flowsup emit spawn --run true; true"'}]
Y
equal "what was added may add, within the same cap" "a.s1 a.s1.s1 1" "$(spawned '" ".join(by)') $(events SpawnRejected)"

# ---- Failures ----
run_flow <<'Y'
reactive: all
plan: [{id: a, run: 'flowsup emit spawn --run "exit 3" --independent'}]
Y
equal "a failure of what was added is one of the run" "failed run.failed.operation" \
	"$(run_status "$RUN") $(run_fact "$RUN" reason)"
run_flow <<'Y'
reactive: all
plan: [{id: a, retry: {attempts: 2, backoff: 10ms}, run: 'flowsup emit spawn --run "echo x" && flowsup emit spawn --run "echo k" --key k && test $FLOWSUP_ATTEMPT = 2'}]
Y
equal "an attempt that asks again gets what there is" "completed 2" "$(run_status "$RUN") $(spawned 'len(s)')"

# ---- What emit says is no cause of a failure ----
run_flow <<'Y'
reactive: all
roles: {r: {provider: robot}}
plan:
  - {id: silent, assignee: r, instruction: 'flowsup emit spawn --instruction true; exit 3'}
  - {id: says, assignee: r, instruction: 'echo that is why >&2; flowsup emit spawn --instruction true; echo "hint: flowsup help" >&2; exit 3'}
  - {id: refused, assignee: r, instruction: 'flowsup emit spawn --run true || exit 3'}
Y
cause() { grep -F '"event":"NodeFailed"' "$(run_dir)/events.jsonl" | grep -F "\"op\":\"$1\"" | sed 's/.*"message":"\([^"]*\)".*/\1/'; }
equal "that it was accepted is none" "exit status 3" "$(cause silent)"
equal "what was said before is" "exit status 3: that is why" "$(cause says)"
matches "a rejection is, and not the hint below it" "^exit status 3: flowsup: spawn: builder_error: " "$(cause refused)"

# ---- The synthesis stands behind all that it waits for ----
run_flow <<'Y'
reactive: all
roles: {r: {provider: robot}}
plan:
  - {id: a, assignee: r, instruction: 'flowsup emit spawn --instruction true --independent && flowsup emit spawn --instruction "flowsup emit spawn --instruction false"'}
  - {id: b, needs: [a], run: 'true'}
synthesis: {assignee: r, instruction: 'flowsup emit spawn --instruction true'}
Y
drawn() { "$FLOWSUP" show "$RUN" --graph "$1"; }
matches "also what was added, but for what it asked for itself" \
	' 4 synthesis +[a-z]+ +needs a always, b always, a\.s1 always, a\.s2\.s1 always'$'\n' "$(drawn text)"
matches "and that stands behind it" ' 5 synthesis.s1 +[a-z]+ +needs synthesis' "$(drawn text)"
equal "so in all pictures" "1 1 1" "$(drawn dot | grep -c 'n5 -> n2 .*always') $(drawn mermaid | grep -c 'n5 .*always.* n2') $(drawn svg | grep -c '<title>a\.s2\.s1 → synthesis, always')"
# ---- What emit says of success is no cause of a failure ----
begin <<'Y'
reactive: all
plan:
  - {id: a, run: 'echo the cause >&2; flowsup emit spawn --run true; exit 3'}
Y
wait_until ended
matches "a command's failure is told by what it said itself" 'a .*exit status 3: the cause' "$("$FLOWSUP" show "$RUN")"
plan
