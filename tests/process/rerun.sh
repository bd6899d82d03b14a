#!/usr/bin/env bash
# rerun: a new run from the document as it was recorded, with arguments, items, directory and options.
. "$(dirname "$0")/lib.sh"

mkdir "$T/w" "$T/elsewhere"
cd "$T/w" || exit 1
cat >f.yaml <<-'END'
	name: doc
	args: {who: {type: string, default: nobody}, n: {type: integer, default: 1}}
	plan:
	- {id: one, run: 'echo "$WHO $N" >>count; pwd', env: {WHO: "{{args.who}}", N: "{{args.n}}"}}
END

# ---- A document with arguments, whatever has become of it since ----
run=$("$FLOWSUP" start f.yaml --arg who=me=you --arg n=2 --label team=a --label kind=x --queue nightly \
	--compact-records 7 --wait 2>"$T/err")
echo 'plan: []' >f.yaml
out=$("$FLOWSUP" rerun "$run" --dry-run 2>&1)
equal "a dry run shows the plan" 0 $?
matches "of the recorded document" "doc: 1 operation" "$out"
equal "and makes no run" 1 "$("$FLOWSUP" list --json | wc -l)"
cd "$T/elsewhere" || exit 1
new=$("$FLOWSUP" rerun "$run" --arg n=3 --label kind=y --wait 2>"$T/err")
equal "a rerun completes" 0 $?
matches "and prints the id alone" "^[0-9]{8}T[0-9]{6}-[0-9a-f]{6}$" "$new"
check "which is another one" [ "$new" != "$run" ]
equal "with the recorded arguments, but for those given" "me=you 2|me=you 3" "$(paste -sd'|' "$T/w/count")"
equal "in the recorded directory" "$T/w" "$("$FLOWSUP" logs "$new" one 2>/dev/null)"
out=$("$FLOWSUP" show "$new" --json)
matches "with its labels, but for those given" '"labels":\{"(team":"a","kind":"y|kind":"y","team":"a)"\}' "$out"
equal "in its queue" nightly "$(json "$out" queue)"
equal "with its options" 7 "$(json "$(cat "$FLOWSUP_HOME/runs/$new/launch.json")" compact_records)"
equal "it says what it is" "$run" "$(json "$out" rerun_of)"
matches "and resumes nothing" '"resumed_from":null' "$out"
"$FLOWSUP" rerun "$new" --arg other=1 2>"$T/err"
equal "an argument that is not declared is wrong" 2 $?

# ---- Items ----
seq 300 >items
run=$("$FLOWSUP" start --each 'echo "$1" >>each' -j 8 --wait <items 2>"$T/err")
equal "300 items run" 0 $?
new=$("$FLOWSUP" rerun "$run" --wait 2>"$T/err" </dev/null)
equal "and once more" 0 $?
equal "each of them" "2 2 300" "$(sort -n each | uniq -c | awk '{n[$1]++} END {for (k in n) print k, k, n[k]}')"

# ---- The state directory is the one that was named, and is named again only then ----
mkdir elsewhere
run=$(cd elsewhere && "$FLOWSUP" start --wait -- false 2>/dev/null)
new=$("$FLOWSUP" rerun "$run" --wait 2>"$T/err")
matches "the hint of a rerun is that of a start" "hint: flowsup show $new   # to see why
hint: flowsup resume $new --retry-failed   # to go on\$" "$(cat "$T/err")"
new=$(cd "$T" && FLOWSUP_HOME=${FLOWSUP_HOME##*/} "$FLOWSUP" rerun "$run" 2>"$T/err")
equal "a name from another directory leads there" "$run" "$(json "$("$FLOWSUP" show "$new" --json)" rerun_of)"
"$FLOWSUP" wait "$new" 2>/dev/null

# ---- One at a time ----
run=$("$FLOWSUP" start --unique key -- sh -c 'until [ -e go ]; do sleep 0.05; done' 2>"$T/err")
out=$("$FLOWSUP" rerun "$run" 2>&1)
equal "a key holds for the rerun too" 0 $?
matches "which is left out while it goes on" "nothing was started" "$out"
equal "and named where that is an error" 4 "$("$FLOWSUP" rerun "$run" --if-running fail >"$T/out" 2>"$T/err"; echo $?)"
equal "once" 1 "$(grep -c 'nothing was started' "$T/err")"
matches "with the key" "with the key 'key'" "$(cat "$T/err")"
touch go
"$FLOWSUP" wait "$run" 2>"$T/err"
new=$("$FLOWSUP" rerun "$run" --wait 2>"$T/err")
equal "then it runs" 0 $?

# ---- What cannot be ----
"$FLOWSUP" rerun 20200101T000000-000000 2>"$T/err"
equal "an unknown run is unknown" 2 $?
mkdir "$T/gone" && cd "$T/gone" || exit 1
run=$("$FLOWSUP" start --wait -- true 2>"$T/err")
cd "$T" && rmdir "$T/gone"
out=$("$FLOWSUP" rerun "$run" 2>&1)
equal "a directory that is gone is said before anything is made" 78 $?
matches "by its name" "was started in '$T/gone'" "$out"
rm "$FLOWSUP_HOME/runs/$run/flow.json"
out=$("$FLOWSUP" rerun "$run" 2>&1)
equal "and so is a document that is gone" 74 $?
plan
