#!/usr/bin/env bash
# resume when the document has changed since: what was recorded holds and the difference is told; with
# --rerun-changed operations run as they are defined now, and what needs them runs again.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

# start_failing FILE: a run of it, that fails; its id is in $run.
start_failing() {
	rm -f count
	run=$("$FLOWSUP" start "$1" --wait 2>"$T/err")
}
dry() { "$FLOWSUP" resume "$run" --dry-run "$@" 2>"$T/err"; }

# ---- Whatever a document can say is the same when it is read again ----
cat >same.yaml <<-'END'
	name: same
	env: {A: "1"}
	defaults: {grace: 2s}
	roles:
	  reader: {provider: sh, artifacts: [report]}
	plan:
	- {id: one, run: "echo one >>count", response: text}
	- {id: each, foreach: [a, b c, 3], exec: [echo, "{{item}}"]}
	- {id: told, needs: [one, each], assignee: reader, instruction: 'echo x >"$FLOWSUP_ARTIFACTS/report"'}
	- {id: way, needs: [{op: one, on: always, when: {pointer: "", exists: true}}], exec: [echo, "{{prompt}}"]}
	- {id: bad, needs: [way], run: "exit 3", env: {B: x, C: {required: false}}, retry: {attempts: 2, backoff: 10ms}}
END
start_failing same.yaml
equal "the run fails" failed "$(run_status "$run")"
echo '# other bytes, so it is read again' >>same.yaml
out=$(dry --json)
matches "nothing has changed" '"document_changes":\[\]' "$out"
matches "in the document whose path is known" "\"document\":\"$PWD/same.yaml\"" "$out"
dry >/dev/null
equal "and nothing is said" 0 "$(grep -c 'has changed' "$T/err")"

# ---- A file with the bytes that were read then is not read as a document ----
launch() { echo "$FLOWSUP_HOME/runs/$1/launch.json"; }
digest() { grep -o '"document_digest":"[^"]*"' "$(launch "$1")"; }
bytes() { echo "\"document_digest\":\"blake2b:$(b2sum "$1" | cut -d ' ' -f 1)\""; }
cat >bytes.json <<-'END'
	{"name": "bytes", "plan": [{"id": "bad", "run": "[ -e good ]"}, {"id": "beside", "run": "true"}]}
END
cp bytes.json first.json
start_failing bytes.json
equal "the digest of its bytes is recorded" "$(bytes bytes.json)" "$(digest "$run")"
sed -i 's/"true"/"echo more"/' bytes.json
dry >/dev/null
matches "other bytes are compared" "has changed since: other definitions.*: beside" "$(cat "$T/err")"
cp "$(launch "$run")" launch.json
sed -i "s/\"document_digest\":\"[^\"]*\"/$(bytes bytes.json)/" "$(launch "$run")"
dry >/dev/null
equal "those of the digest are not" 0 "$(grep -c 'has changed' "$T/err")"
cp launch.json "$(launch "$run")"
first=$run
run=$("$FLOWSUP" resume "$first" --retry-failed --wait 2>"$T/err")
equal "what goes on has the digest too" "$(bytes first.json)" "$(digest "$run")"
new=$("$FLOWSUP" rerun "$first" --wait 2>"$T/err")
equal "and what is run once more by the record" "$(bytes first.json)" "$(digest "$new")"
run=$("$FLOWSUP" resume "$run" --rerun-changed --retry-failed --wait 2>"$T/err")
equal "what runs in part as the file says now has none" "" "$(digest "$run")"
cp first.json bytes.json
dry >/dev/null
matches "so that the file as it was then is a change" "has changed since: other definitions.*: beside" \
	"$(cat "$T/err")"

# ---- A difference is told and does not matter ----
cat >f.json <<-END
	{"name": "f", "plan": [
	 {"id": "one", "run": "echo one >>count; echo first"},
	 {"id": "left", "needs": ["one"], "run": "echo left >>count"},
	 {"id": "bad", "needs": ["left"], "run": "echo bad >>count; [ -e good ]"},
	 {"id": "last", "needs": ["bad"], "run": "echo last >>count; cat \"\$FLOWSUP_DEP_bad\""},
	 {"id": "side", "run": "echo side >>count"}]}
END
cp f.json as-recorded.json
start_failing f.json
sed -i -e 's/\[ -e good \]/echo mended/' -e 's/"id": "side", /"id": "beside", /' \
	-e 's/"name"/"env": {"NEW": "1"}, "name"/' f.json
out=$(dry --json)
matches "what is defined in another way is listed" '\{"op":"bad","setting":null,"change":"changed"\}' "$out"
matches "and what is new" '\{"op":"beside","setting":null,"change":"added"\}' "$out"
matches "and what is gone" '\{"op":"side","setting":null,"change":"removed"\}' "$out"
matches "and settings for all" '\{"op":null,"setting":"env","change":"changed"\}' "$out"
dry >/dev/null
matches "people are told, too" "has changed since: other definitions.*--rerun-changed.*: bad" "$(cat "$T/err")"
touch good
new=$("$FLOWSUP" resume "$run" --retry-failed --wait 2>"$T/err")
equal "without the flag it does not block" 0 $?
matches "is said all the same" "has changed since" "$(cat "$T/err")"
equal "and runs what was recorded" "" "$("$FLOWSUP" logs "$new" bad 2>/dev/null)"
rm good

# ---- --rerun-changed ----
cp as-recorded.json f.json
start_failing f.json
equal "again the run fails" failed "$(run_status "$run")"
sed -i -e 's/\[ -e good \]/echo mended/' f.json
out=$(dry --rerun-changed)
equal "the new definition lifts the failure of the old one" 0 $?
matches "which is the reason" "bad +will run +runs again: its definition changed" "$out"
new=$("$FLOWSUP" resume "$run" --rerun-changed --wait 2>"$T/err")
equal "with it the run completes" 0 $?
matches "what is lost is named" "bad.*not carried over; by --rerun-changed" "$(cat "$T/err")"
equal "it ran as it is defined now" mended "$("$FLOWSUP" logs "$new" last 2>/dev/null)"
equal "what did not change ran once" "1 1 1" "$(times one) $(times left) $(times side)"
equal "the new run's document is the new one" 1 "$(grep -c mended "$FLOWSUP_HOME/runs/$new/flow.json")"
equal "the old run's stays" 0 "$(grep -c mended "$FLOWSUP_HOME/runs/$run/flow.json")"

# ---- What completed runs again, with all behind it ----
cp as-recorded.json f.json
start_failing f.json
sed -i -e 's/echo first/echo other/' f.json
out=$(dry --rerun-changed --json)
matches "behind it too" '"id":"bad","action":"will run","reason":"runs again, because left does"' "$out"
matches "but not beside it" '"id":"side","action":"replayed"' "$out"
touch good
new=$("$FLOWSUP" resume "$run" --rerun-changed --wait 2>"$T/err")
equal "and completes" 0 $?
equal "each as often as it must" "2 2 1" "$(times one) $(times left) $(times side)"
equal "with the new answer" other "$("$FLOWSUP" logs "$new" one 2>/dev/null)"

# ---- What must not be repeated, what needs what is new, what cannot be read ----
cat >once.json <<-END
	{"name": "once", "plan": [{"id": "pay", "idempotent": false, "run": "echo pay >>count"},
	 {"id": "bad", "needs": ["pay"], "run": "exit 1"}]}
END
start_failing once.json
sed -i -e 's/"echo pay/"true; echo pay/' once.json
out=$("$FLOWSUP" resume "$run" --rerun-changed 2>&1)
equal "what must not be repeated is not" 4 $?
matches "but by a further flag, which is named with what was given" \
	"operation pay: its definition changed.*hint: .*--keep-failed|hint: .*--rerun-changed" "$out"
new=$("$FLOWSUP" resume "$run" --rerun-changed --retry-failed --rerun-in-flight --dry-run 2>"$T/err")
equal "with it it is" 0 $?
sed -i -e 's/\["pay"\], "run": "exit 1"/["new"], "run": "true"/' \
	-e 's/"plan": \[/"plan": [{"id": "new", "run": "true"}, /' once.json
out=$("$FLOWSUP" resume "$run" --rerun-changed 2>&1)
equal "what needs a new one is refused" 4 $?
matches "and says of which" "bad: its new definition needs new, which is new" "$out"
echo '{' >once.json
out=$("$FLOWSUP" resume "$run" --rerun-changed 2>&1)
equal "a document that cannot be read is refused, when it is wanted" 4 $?
matches "with the place" "cannot be read for --rerun-changed: .*once.json:2:1" "$out"
"$FLOWSUP" resume "$run" --retry-failed --dry-run >"$T/out" 2>"$T/err"
equal "else it does not matter" 0 $?
matches "and is told" "cannot be read" "$(cat "$T/err")"
rm once.json
"$FLOWSUP" resume "$run" --retry-failed --dry-run >"$T/out" 2>"$T/err"
equal "nor when it is gone" "0 0" "$? $(wc -l <"$T/err" | tr -d ' ')"
run=$("$FLOWSUP" start --wait -- false 2>"$T/err")
out=$("$FLOWSUP" resume "$run" --rerun-changed 2>&1)
equal "what came from no document has none that changed" 4 $?
matches "and that is said" "not started from a document" "$out"

# ---- A deadline for what goes on ----
cat >late.json <<-END
	{"name": "late", "timeout": "1h", "plan": [{"id": "bad", "run": "[ -e good ] && sleep 0.7"},
	 {"id": "after", "needs": ["bad"], "run": "true"}]}
END
rm -f good
start_failing late.json
touch good
new=$("$FLOWSUP" resume "$run" --retry-failed --timeout 100ms --wait 2>"$T/err")
equal "--timeout takes the place of the recorded one" 124 $?
equal "and that of the run is what it says" timed_out "$(run_status "$new")"

# ---- What still runs by the old definition is ended ----
rm -f count go
cat >slow.json <<-END
	{"name": "slow", "plan": [{"id": "slow", "run": "echo \$\$ >pid; echo slow >>count; until [ -e go ]; do sleep 0.05; done"}]}
END
run=$("$FLOWSUP" start slow.json)
wait_until has_line slow
lose_worker "$run"
sed -i -e 's/echo [^;]*>pid; echo slow .*done/echo quick >>count/' slow.json
left=$(cat pid)
check "an operation outlives its worker" alive "$left"
out=$(dry)
matches "as it is, it is taken over" "slow +taken over" "$out"
new=$("$FLOWSUP" resume "$run" --rerun-changed --wait 2>"$T/err")
equal "by its new definition it completes" 0 $?
check "and the old process is gone" gone "$left"
equal "each ran once" "1 1" "$(times slow) $(times quick)"
plan
