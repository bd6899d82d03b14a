#!/usr/bin/env bash
# foreach over a response: one operation for each item, the same again after a crash, all or none.
. "$(dirname "$0")/lib_grow.sh"

run_flow <<'Y'
plan:
  - {id: list, response: json, run: 'echo "{\"files\": [\"a b\", {\"n\": 1}, 7]}"'}
  - {id: each, needs: [list], foreach: /files, run: 'echo "got $1${FLOWSUP_DEPS+ and FLOWSUP_DEPS}"'}
  - {id: words, needs: [list], foreach: {op: list, pointer: /files}, exec: [echo, "{{item}}", "{{ops.list.response}}"]}
  - {id: all, needs: [each], run: 'cat "$FLOWSUP_DEP_each_0" "$FLOWSUP_DEP_each_1" "$FLOWSUP_DEP_each_2"'}
  - {id: lines, needs: [each], run: 'cut -f 1 "$FLOWSUP_DEPS" && cut -f 2 "$FLOWSUP_DEPS" | xargs cat'}
  - {id: others, needs: [list], run: 'echo ${FLOWSUP_DEPS-unset}'}
  - {id: when, needs: [{op: each, when: {pointer: "", matches: got}}], run: echo yes}
  - {id: fails, needs: [{op: each, on: failure}], run: echo no}
Y
equal "it completes" "completed" "$(run_status "$RUN")"
equal "one for each item, and what needs it waits for all" 'got a b
got {"n":1}
got 7' "$(output all)"
equal "nobody has to know how many there are" 'each.0 each.1 each.2 got a b got {"n":1} got 7' "$(output lines | xargs -d '\n' echo)"
equal "elsewhere there is no such file" unset "$(output others)"
equal "templates have the item and what it needs" '{"n":1} {"files":["a b",{"n":1},7]}' "$(output words.1)"
equal "conditions are asked of each item" "completed skipped" "$(shown 'op["when"]["state"] + " " + op["fails"]["state"]')"
equal "items are recorded with their numbers" "0 1 2" "$(spawned '" ".join(e["request_key"] for e in s if e["spawn_id"].startswith("each."))')"
equal "and say whose and which they are" "item a b of each" "$(shown 'op["each.0"]["why"]')"
equal "the graph draws them as one" 1 "$("$FLOWSUP" show "$RUN" --graph text | grep -cE 'each\.\* \(3\) +3 completed')"

run_flow <<'Y'
roles:
  low: {env: {WHO: low}, escalate_to: high}
  high: {env: {WHO: high}}
plan:
  - {id: list, response: json, run: 'echo "[1,2,3,4]"'}
  - {id: each, needs: [list], assignee: low, foreach: "", run: 'echo $1; test "$WHO" = high -o $(($1 % 2)) = 0'}
  - {id: last, needs: [each], run: 'cut -f 1 "$FLOWSUP_DEPS"; cut -f 2 "$FLOWSUP_DEPS" | xargs cat'}
Y
equal "another try stands where the item does that it was made for" 'each.0 each.1 each.2 each.3 1 2 3 4' "$(output last | xargs)"

run_flow <<'Y'
roles:
  low: {env: {WHO: low}, escalate_to: high}
  high: {env: {WHO: high}}
plan:
  - {id: list, response: json, run: 'echo "[\"a b\"]"'}
  - {id: each, needs: [list], assignee: low, foreach: "", run: 'test "$WHO" = high'}
Y
equal "another try of an item says both" "item a b; another try of each.0" "$(shown 'op["each.0.s1"]["why"]' | cut -d: -f1)"

# ---- Nothing, too much, and what is no list ----
run_flow <<'Y'
plan:
  - {id: list, response: json, run: 'echo "[]"'}
  - {id: each, needs: [list], foreach: "", run: 'echo "$1"'}
  - {id: all, needs: [each], run: echo none}
Y
equal "an empty list is no hindrance" "completed none" "$(run_status "$RUN") $(output all)"
# Neither list has items; one is known at once, the other only later.
run_flow <<'Y'
plan:
  - {id: list, response: json, run: 'echo "[]"'}
  - {id: dynamic, needs: [list], foreach: "", run: 'true'}
  - {id: fixed, foreach: [], run: 'true'}
  - {id: after, needs: [dynamic, fixed, {op: list, on: always}], run: 'true'}
  - {id: any, needs: [{op: dynamic, on: always}, {op: fixed, on: always}], run: 'true'}
  - {id: none, needs: [{op: dynamic, when: {pointer: "", exists: false}}, {op: fixed, when: {pointer: /x, exists: false}}], run: 'true'}
  - {id: repair, needs: [{op: dynamic, on: failure}], run: 'echo alarm'}
  - {id: repair2, needs: [{op: fixed, on: failure}], run: 'echo alarm'}
  - {id: repair3, needs: [list, {op: fixed, on: failure}], run: 'echo alarm'}
  - {id: told, needs: [{op: dynamic, when: {pointer: "", exists: true}}], run: 'echo alarm'}
  - {id: told2, needs: [{op: fixed, when: {pointer: /ok, equals: true}}], run: 'echo alarm'}
  - {id: kept, needs: [told2], run: 'false'}
  - {id: last, run: 'test -e "$T/again"'}
Y
states() { shown '" ".join(op[i]["state"] for i in ("after", "any", "none", "repair", "repair2", "repair3", "told", "told2", "kept"))'; }
empty="completed completed completed skipped skipped skipped skipped skipped skipped"
equal "it has completed, has not failed and has answered nothing" "$empty" "$(states)"
touch "$T/again"
RUN=$("$FLOWSUP" resume "$RUN" --retry-failed)
wait_until ended
equal "also after a resume" "completed $empty" "$(run_status "$RUN") $(states)"
run_flow <<'Y'
max_ops: 5
plan:
  - {id: list, response: json, run: 'seq -s, 4 | sed "s/.*/[&]/"'}
  - {id: each, needs: [list], foreach: "", run: 'echo "$1"'}
Y
equal "a list that max_ops does not allow is not cut" "failed limit 0" \
	"$(run_status "$RUN") $(shown 'op["each"]["class"]') $(spawned 'len(s)')"

# ---- Of several lists none fits, and a resume has the same ones: a new run with room for all is suggested ----
rm -f "$T/good"
run_flow --max-ops 5 <<'Y'
prompt: x
plan:
  - {id: list, response: json, run: 'seq -s, 4 | sed "s/.*/[&]/"'}
  - {id: each, needs: [list], foreach: "", run: 'echo "$1"'}
  - {id: more, needs: [list], foreach: "", run: 'echo "$1"'}
  - {id: bad, run: 'test -e "$T/good"'}
Y
room="flowsup rerun $RUN --max-ops 12"
"$FLOWSUP" watch "$RUN" >"$T/lines" 2>&1
for each in "hint of $(sed -n 's/^hint: \(flowsup rerun[^#]*[^# ]\) *#.*/\1/p' "$T/lines")" "json of $(run_fact "$RUN" resume_command)" \
	"show of $("$FLOWSUP" show "$RUN" | sed -n 's/^next *//p')" "list of $("$FLOWSUP" list -n 1 | grep -o 'flowsup re.*')" \
	"refusal of $("$FLOWSUP" resume "$RUN" 2>&1 | sed -n 's/^hint: //p')" \
	"dry run of $("$FLOWSUP" resume "$RUN" -n 2>&1 | sed -n 's/^hint: //p')"; do
	equal "no room: ${each%% of *}" "$room" "${each#* of }"
done
matches "what would fail again may be kept" "operations each, more, each: it failed: .*; lifted by: flowsup resume $RUN --keep-failed"$'\n' \
	"$("$FLOWSUP" resume "$RUN" 2>&1)"
matches "what may not, may run again" "operation bad: it failed: .*; lifted by: flowsup resume $RUN --retry-failed; or" \
	"$("$FLOWSUP" resume "$RUN" 2>&1)"
first=$RUN
RUN=$("$FLOWSUP" resume "$first" --keep-failed 2>/dev/null)
wait_until ended
equal "kept it is no more than before" "failed flowsup rerun $RUN --max-ops 12" "$(run_status "$RUN") $(run_fact "$RUN" resume_command)"
touch "$T/good"
# shellcheck disable=SC2086 # words are meant
RUN=$("$FLOWSUP" ${room#flowsup })
wait_until ended
equal "the command that is suggested helps" "completed 8" "$(run_status "$RUN") $(spawned 'len(s)')"
# A list that no bound allows: what gave it has to give another one.
for bound in '' 100000; do
	run_flow ${bound:+--max-ops $bound} <<'Y'
plan:
  - {id: list, response: json, run: 'test -e "$T/short" && echo "[1]" || { seq -s, 100000 | sed "s/.*/[&]/"; }'}
  - {id: each, needs: [list], foreach: "", run: 'echo "$1"'}
Y
	fork="flowsup fork $RUN --from list --retry-failed"
	for each in "json of $(run_fact "$RUN" resume_command)" "list of $("$FLOWSUP" list -n 1 | grep -oE 'flowsup (re|fork).*')" \
		"refusal of $("$FLOWSUP" resume "$RUN" 2>&1 | sed -n 's/^hint: //p')"; do
		equal "more than any max_ops${bound:+, with the largest}: ${each%% of *}" "$fork" "${each#* of }"
	done
done
matches "and says so" 'the list has 100000 items, and a run may have at most 100000 operations' "$(shown 'op["each"]["why"]')"
touch "$T/short"
# shellcheck disable=SC2086 # words are meant
RUN=$("$FLOWSUP" ${fork#flowsup })
wait_until ended
equal "the command that is suggested helps" "completed 1" "$(run_status "$RUN") $(spawned 'len(s)')"
# Nor does one that allows each list, and not all of them.
run_flow --max-ops 5 <<'Z'
plan:
  - {id: list, response: json, run: 'seq -s, 60000 | sed "s/.*/[&]/"'}
  - {id: each, needs: [list], foreach: "", run: 'echo "$1"'}
  - {id: other, needs: [{op: each, on: always}], response: json, run: 'seq -s, 60000 | sed "s/.*/[&]/"'}
  - {id: more, needs: [other], foreach: "", run: 'echo "$1"'}
Z
equal "lists that only together are more than any max_ops" "flowsup fork $RUN --from list --from other --retry-failed" \
	"$(run_fact "$RUN" resume_command)"
matches "they say so" 'the list has 60000 items, others for which there was no room have 60000, and a run may have at most 100000 operations' \
	"$(shown 'op["more"]["why"]')"
matches "also where a resume is refused" "^hint: flowsup fork $RUN --from list --from other" "$("$FLOWSUP" resume "$RUN" 2>&1 | grep ^hint)"
matches "and the hint says what for" "# with a new answer of what the list comes from" "$("$FLOWSUP" watch "$RUN" 2>&1 | grep '^hint: flowsup fork')"
rm "$T/good"
run_flow <<'Y'
plan:
  - {id: list, response: json, run: 'test -e "$T/good" && echo "[1]" || echo "{}"'}
  - {id: each, needs: [list], foreach: "", run: 'echo "$1"'}
  - {id: bad, run: 'test -e "$T/good"'}
  - {id: after, needs: [bad], run: 'true'}
Y
fork=$(run_fact "$RUN" resume_command)
matches "no array, and something else has failed: also that is made anew" "^flowsup fork $RUN --from list --retry-failed$" "$fork"
touch "$T/good"
# shellcheck disable=SC2086 # words are meant
RUN=$("$FLOWSUP" ${fork#flowsup })
wait_until ended
equal "with the command that is suggested" "completed completed" "$(run_status "$RUN") $(shown 'op["bad"]["state"]')"
run_flow <<'Y'
plan:
  - {id: list, response: json, run: 'echo "{\"a\": 1}"'}
  - {id: each, needs: [list], foreach: /a, run: 'echo "$1"'}
  - {id: other, needs: [list], foreach: /b, run: 'echo "$1"'}
  - {id: after, needs: [{op: each, on: failure}], run: echo repaired}
Y
fork="flowsup fork $RUN --from list --retry-failed"
for each in "json of $(run_fact "$RUN" resume_command)" "show of $("$FLOWSUP" show "$RUN" | sed -n 's/^next *//p')" \
	"refusal of $("$FLOWSUP" resume "$RUN" 2>&1 | sed -n 's/^hint: //p')"; do
	equal "no array: a resume would find the same, ${each%% of *}" "$fork" "${each#* of }"
done
# shellcheck disable=SC2086 # words are meant
check "the command that is suggested begins" "$FLOWSUP" ${fork#flowsup }
equal "no array: it fails" "response response repaired" "$(shown 'op["each"]["class"] + " " + op["other"]["class"]') $(output after)"
# What is repeated by it, and what is given up, is asked for in the same command.
rm -f "$T/good"
run_flow <<'Y'
plan:
  - {id: list, response: json, idempotent: false, run: 'test -e "$T/good" && echo "{\"a\": [1], \"b\": [2]}" || echo "{\"a\": [1]}"'}
  - {id: each, needs: [list], foreach: /a, run: 'echo "$1"'}
  - {id: other, needs: [list], foreach: /b, run: 'echo "$1"'}
Y
fork="flowsup fork $RUN --from list --retry-failed --rerun-in-flight --drop-respawned"
for each in "json of $(run_fact "$RUN" resume_command)" "show of $("$FLOWSUP" show "$RUN" | sed -n 's/^next *//p')" \
	"list of $("$FLOWSUP" list -n 1 | grep -oE 'flowsup fork.*')" "refusal of $("$FLOWSUP" resume "$RUN" 2>&1 | sed -n 's/^hint: //p')"; do
	equal "what a fork repeats and drops: ${each%% of *}" "$fork" "${each#* of }"
done
touch "$T/good"
# shellcheck disable=SC2086 # words are meant
RUN=$("$FLOWSUP" ${fork#flowsup } 2>/dev/null)
wait_until ended
equal "as it is printed it goes on" "completed 2" "$(run_status "$RUN") $(spawned 'len(s)')"

# ---- check ----
refused() { ! "$FLOWSUP" check - >"$T/out" 2>&1 && grep -q "$1" "$T/out"; }
refuse() { # text; document on standard input
	check "check refuses: $1" refused "$1"
}
refuse 'is that of an item of the foreach "each"' <<'Y'
plan:
  - {id: list, response: json, run: 'echo "[]"'}
  - {id: each, needs: [list], foreach: "", run: 'true'}
  - {id: each.3, run: 'true'}
Y
refuse 'read the files that FLOWSUP_DEPS names' <<'Y'
plan:
  - {id: list, response: json, run: 'echo "[]"'}
  - {id: each, needs: [list], foreach: "", run: 'true'}
  - {id: x, needs: [each], exec: [echo, "{{ops.each.response}}"]}
Y
refuse 'need not have ended before' <<'Y'
plan:
  - {id: list, response: json, run: 'echo "[]"'}
  - {id: each, foreach: {op: list, pointer: ""}, run: 'true'}
Y

# Valid, and cannot come to a good end: said by check and by start.
warns() { { "$FLOWSUP" check - >/dev/null; } 2>&1; }
matches "a list in a text is warned of" '3:40: warning: operation "each": "foreach" looks for a list in the response of "list", which is a text.*note: give "list" response: json' "$(warns <<'Y'
plan:
  - {id: list, run: 'echo "[]"'}
  - {id: each, needs: [list], foreach: "", run: 'true'}
Y
)"
equal "not of one in JSON, nor in lines of it" "" "$(warns <<'Y'
plan:
  - {id: list, response: json, run: 'echo "[]"'}
  - {id: lines, response: jsonl, run: 'echo 1'}
  - {id: each, needs: [list], foreach: "", run: 'true'}
  - {id: other, needs: [list, lines], foreach: {op: lines, pointer: ""}, run: 'true'}
Y
)"
long() { printf 'x%.0s' $(seq "$1"); }
grows() { # length of the id, reactive, role
	warns <<-Y
		reactive: $2
		roles: {low: {escalate_to: high}, high: {}}
		plan: [{id: $(long "$1"), run: 'true'${3-}}]
	Y
}
matches "an id without room for what is asked for is, too" 'its id has no room for ".s1".*at most 61 characters' "$(grows 62 all)"
matches "also where only another try may come" 'its id has no room' "$(grows 64 off ', assignee: low')"
equal "not where there is room, nor where nothing is asked for" "" "$(grows 61 all)$(grows 64 off)$(grows 64 '[low]')"
items() { # length of the id, more of the document
	warns <<-Y
		${2-}
		plan: [{id: list, response: json, run: 'true'}, {id: $(long "$1"), needs: [list], foreach: "", run: 'true'}]
	Y
}
matches "an id without room for the numbers of many items is, too" 'its id has no room for the numbers of more than 100 items.*at most 58 characters' "$(items 61)"
matches "or of any" 'no room for the numbers of more than 0 items' "$(items 63)"
matches "and for what its items ask for, with max_ops of few" 'its id has no room for "\.0\.s1": what an item asks for.*at most 59 characters' \
	"$(items 60 "$(printf 'reactive: all\nmax_ops: 5')")"
equal "not where they have it" "" "$(items 59 "$(printf 'reactive: all\nmax_ops: 5')")"
tries() { # length of the id, more of the document
	warns <<-Y
		${2-}
		roles: {low: {escalate_to: high}, high: {escalate_to: top}, top: {}}
		plan: [{id: $(long "$1"), assignee: low, run: 'true'}]
	Y
}
matches "nor for the second of two tries" 'no room for more than 1 of 2 further tries.*a shorter id, or escalate_max: 1' "$(tries 59)"
equal "which has it, or is not made" "" "$(tries 58)$(tries 61 'escalate_max: 1')"
equal "not where a list cannot be as long" "" "$(items 58)$(items 61 'max_ops: 100')"
matches "a denial that is tried again is, too" '"denied" is never tried again' "$(warns <<'Y'
plan: [{id: a, gate: approve, retry: {attempts: 3, on: [exit, denied]}, run: 'true'}]
Y
)"

# ---- An id that has no room for the number of each item ----
run_flow 2>/dev/null <<Y
plan:
  - {id: list, response: json, run: 'seq -s, 150 | sed "s/.*/[&]/"'}
  - {id: $(long 61), needs: [list], foreach: "", run: 'true'}
Y
equal "nothing is added where the last items could not be" "failed limit 0" "$(run_status "$RUN") $(shown "op['$(long 61)']['class']") $(spawned 'len(s)')"
matches "which says why" "the list has 150 items, and the id of the last one, x*\.149, would be longer than 64 characters: give x* a shorter id" \
	"$(shown "op['$(long 61)']['why']")"

# ---- A crash in the middle of many ----
begin -j 4 <<'Y'
plan:
  - {id: list, response: json, run: 'seq -s, 500 | sed "s/.*/[&]/"'}
  - {id: each, needs: [list], foreach: "", run: '[ "$1" -le 20 ] || until [ -e "$T/gates/go" ]; do sleep 0.1; done'}
  - {id: all, needs: [each], run: 'env | grep -c ^FLOWSUP_DEP_each_'}
Y
some_saved() { [ "$(grep -c '"status":"pending"' "$(run_dir)/checkpoint.json.journal")" -gt 20 ] || [ "$(spawned 'len(s)')" -gt 100 ]; }
wait_until some_saved
pid=$(worker_pid "$RUN")
kill -KILL "$pid"
wait_until status_is "$RUN" crashed
before=$(spawned '[(e["spawn_id"], e["node_id"]) for e in s]')
open_gate go
RUN=$("$FLOWSUP" resume "$RUN" 2>/dev/null)
LIMIT=120 wait_until ended
equal "it goes on, and there are as many as the list has" "completed 500" "$(run_status "$RUN") $(spawned 'len(s)')"
equal "each once" 500 "$(spawned 'len({e["spawn_id"] for e in s})')"
equal "those recorded before are the same" True "$(spawned "(lambda b: all(n == by[i]['node_id'] for i, n in b))($before)")"
equal "what needs it is given all" 500 "$(output all)"
plan
