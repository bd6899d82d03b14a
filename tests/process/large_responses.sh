#!/usr/bin/env bash
# A response that is too large for the checkpoint stands in a file: conditions and lists of a foreach look into that,
# and a resume, show and the count of what is done judge as the run does.
. "$(dirname "$0")/lib_resume.sh"

cat >large.py <<'P'
import json, sys
pad = "x" * 1200000
print(json.dumps({"verdict": "ship", "pad": pad, "items": ["one", "two", {"three": 3}]}) if sys.argv[1] == "json"
      else "\n".join(json.dumps({"n": n, "pad": pad[:300000]}) for n in range(5)) if sys.argv[1] == "lines"
      else "begins so " + pad)
P
cat >f.yaml <<'YAML'
name: f
plan:
  - {id: big, response: json, run: "python3 large.py json"}
  - {id: lines, response: jsonl, run: "python3 large.py lines"}
  - {id: text, run: "python3 large.py text"}
  - {id: bad, response: json, run: "python3 large.py json; exit 3"}
  - {id: meets, needs: [{op: big, when: {pointer: /verdict, equals: ship}}], run: "echo meets"}
  - {id: other, needs: [{op: big, when: {pointer: /verdict, equals: hold}}], run: "echo other"}
  - {id: behind, needs: [other], run: "echo behind"}
  - {id: absent, needs: [{op: big, when: {pointer: /file, exists: false}}], run: "echo absent"}
  - {id: line, needs: [{op: lines, when: {pointer: /3/n, equals: 3}}], run: "echo line"}
  - {id: begins, needs: [{op: text, when: {pointer: "", matches: "^begins so x"}}], run: "echo begins"}
  - {id: failed, needs: [{op: bad, on: failure, when: {pointer: /verdict, exists: true}}], run: "echo failed"}
  - {id: both, needs: [{op: big, when: {pointer: /items/0, equals: one}}, {op: text, when: {pointer: "", matches: so}}], run: "echo both"}
  - {id: each, needs: [big], foreach: {op: big, pointer: /items}, run: 'echo "item $1"'}
  - {id: none, needs: [big], foreach: {op: big, pointer: /nothing}, run: 'echo "item $1"'}
  - {id: last, needs: [each], run: "[ -e good ]"}
YAML
said() { "$FLOWSUP" logs "$1" "$2" 2>/dev/null; }
member() { # RUN OP NAME
	"$FLOWSUP" show --json "$1" | python3 -c '
import json, sys
print(next(o[sys.argv[2]] for o in json.load(sys.stdin)["ops"] if o["id"] == sys.argv[1]))' "$2" "$3"
}
right() { # NAME RUN
	local op
	for op in meets absent line begins failed both; do
		equal "$1: $op is met" "completed $op" "$(member "$2" $op state) $(said "$2" $op)"
	done
	equal "$1: one that is not met says so" \
		'skipped its condition on big was not met: /verdict is "ship"' "$(member "$2" other state) $(member "$2" other why)"
	equal "$1: what needs that is skipped" skipped "$(member "$2" behind state)"
	equal "$1: the items are found" 'item one item two item {"three":3}' \
		"$(for n in 0 1 2; do said "$2" each.$n; done | paste -sd' ')"
	matches "$1: where there is no list it fails, and says where" 'no member.*nothing|/nothing' "$(member "$2" none why)"
}
run=$("$FLOWSUP" start f.yaml)
check "it ends" wait_until status_is "$run" failed
right run "$run"
matches "the event says why" '"op":"other".*"why":"its condition on big was not met: /verdict is' \
	"$(grep '"event":"NodeSkipped"' "$(dir_of "$run")/events.jsonl")"
equal "all of it is done" "18 18" "$(run_fact "$run" done) $(run_fact "$run" total)"

# ---- A resume ----

"$FLOWSUP" resume "$run" --retry-failed --dry-run >out 2>&1
matches "a dry run knows what is skipped" 'other +skipped' "$(tr -s '\n' <out)"
touch good
next=$("$FLOWSUP" resume "$run" --keep-failed 2>/dev/null)
wait_until status_is "$next" failed
right resumed "$next"
fork=$("$FLOWSUP" fork "$run" --from meets --from both --keep-failed 2>/dev/null)
wait_until status_is "$fork" failed
right forked "$fork"

# ---- What is counted and shown without a worker ----

cat >crash.yaml <<'YAML'
name: crash
plan:
  - {id: big, response: json, run: "python3 large.py json"}
  - {id: other, needs: [{op: big, when: {pointer: /verdict, equals: hold}}], run: "echo other"}
  - {id: behind, needs: [other], run: "echo behind"}
  - {id: waits, needs: [{op: big, when: {pointer: /verdict, equals: ship}}], run: "touch waits; sleep 1000"}
YAML
run=$("$FLOWSUP" start crash.yaml)
wait_until [ -e waits ]
lose_worker "$run"
equal "show judges as the worker did" "skipped skipped" "$(member "$run" other state) $(member "$run" behind state)"
"$FLOWSUP" kill "$run" 2>/dev/null
equal "so does the count" "3 4" "$(run_fact "$run" done) $(run_fact "$run" total)"

# ---- The file is the one that was recorded, or nothing follows from it ----

cat >gate.yaml <<'YAML'
name: gate
plan:
  - {id: big, response: json, leave: true, run: "python3 large.py json"}
  - {id: first, needs: [big], gate: approve, run: "true"}
  - {id: huge, run: "head -c 67108865 /dev/zero | tr '\\0' y"}
  - {id: beyond, needs: [{op: huge, when: {pointer: "", matches: y}}], run: "true"}
  - {id: asks, needs: [first, {op: big, when: {pointer: /verdict, equals: ship}}], run: "echo asked"}
  - {id: each, needs: [first], foreach: {op: big, pointer: /items}, run: 'echo "item $1"'}
YAML
run=$("$FLOWSUP" start gate.yaml)
wait_until eval '"$FLOWSUP" waiting | grep -q first'
printf ' ' >>"$(dir_of "$run")/ops/big.1.out"
"$FLOWSUP" approve "$run" first >/dev/null 2>&1
check "it ends" wait_until status_is "$run" failed
equal "what is larger than is read answers nothing" "failed response" "$(member "$run" beyond state) $(member "$run" beyond class)"
matches "and says so" 'no more than 64 MiB are looked into' "$(member "$run" beyond why)"
matches "a list in a file that has changed is none" 'has changed since' "$(member "$run" each why)"
plan
