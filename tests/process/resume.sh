#!/usr/bin/env bash
# resume after a worker's death: what was saved is replayed, the rest runs, and what would not be
# faithful is refused.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

cat >flow.json <<-END
	{"name": "flow", "plan": [
	 {"id": "one", "run": "echo one >>count; echo answer"},
	 {"id": "two", "needs": ["one"], "artifacts": ["x"],
	  "run": "echo two >>count; echo data >\"\$FLOWSUP_ARTIFACTS/x\""},
	 {"id": "slow", "needs": ["one", "two"], "grace": "1s",
	  "run": "echo \$\$ >pid; echo slow >>count; until [ -e go ]; do sleep 0.05; done; cat \"\$FLOWSUP_DEP_one\""},
	 {"id": "last", "needs": ["slow"], "run": "echo last >>count; cat \"\$FLOWSUP_DEP_slow\""}]}
END

# ---- A live run ----
run=$("$FLOWSUP" start flow.json)
wait_until has_line slow
out=$("$FLOWSUP" resume "$run" 2>&1)
equal "resume of a live run does nothing" 0 $?
matches "and says that it is alive" "alive" "$out"

"$FLOWSUP" resume "$run" --wait --events "$T/live" >"$T/out" 2>&1 &
waiter=$!
wait_until [ -s "$T/live" ]

# ---- After a death ----
lose_worker "$run"
wait "$waiter"
equal "with --wait a live run is followed, and its outcome counts" 137 $?
left=$(cat pid)
check "its operation lives on" alive "$left"
before=$(find "$FLOWSUP_HOME/runs" -type f | sort | xargs cksum)
out=$("$FLOWSUP" resume "$run" --dry-run)
equal "a dry run says that it would be accepted" 0 $?
matches "with the replayed ones" "one +replayed" "$out"
matches "and those that run" "slow +taken over +still runs" "$out"
equal "and changes no file" "$before" "$(find "$FLOWSUP_HOME/runs" -type f | sort | xargs cksum)"
check "nor ends anything" alive "$left"
accepted=$("$FLOWSUP" resume "$run" --dry-run --json)
equal "also as JSON" true "$(json "$accepted" accepted)"

echo changed >>"$FLOWSUP_HOME/runs/$run/artifacts/two/x"
out=$("$FLOWSUP" resume "$run" 2>&1 >"$T/id")
equal "a changed artifact refuses it" 4 $?
matches "and is named with what lifts it" 'two.*"x".*--accept-missing-artifacts' "$out"
equal "and no id is printed" "" "$(cat "$T/id")"
equal "and no run is made" 1 "$("$FLOWSUP" list --json | wc -l)"
echo data >"$FLOWSUP_HOME/runs/$run/artifacts/two/x"

# ---- Two at once ----
"$FLOWSUP" resume "$run" >"$T/a" 2>"$T/a.err" &
first=$!
"$FLOWSUP" resume "$run" >"$T/b" 2>"$T/b.err" &
second=$!
wait "$first"; a=$?
wait "$second"; b=$?
new=$(cat "$T/a" "$T/b")
equal "of two resumes one wins" 4 $((a + b))
matches "and prints the id alone" "^[0-9]{8}T[0-9]{6}-[0-9a-f]{6}$" "$new"
matches "the other is told the run it became" "already resumed, as run $new" "$(cat "$T"/?.err)"
check "what the dead worker left runs on" alive "$left"
touch go
out=$("$FLOWSUP" wait "$new" 2>&1)
equal "the new run completes" 0 $?
equal "what was saved ran once" "1 1" "$(times one) $(times two)"
equal "and so did what outlived the worker" "1 1" "$(times slow) $(times last)"
equal "responses of replayed ones reach the others" answer "$("$FLOWSUP" logs "$new" last 2>/dev/null)"
"$FLOWSUP" resume "$new" >"$T/id" 2>"$T/err"
equal "a completed run has nothing to resume" 0 $?
matches "and that is said" "completed" "$(cat "$T/err")"
"$FLOWSUP" resume "$run" >"$T/id" 2>"$T/err"
equal "a resumed run is not resumed again" 4 $?
"$FLOWSUP" resume 20200101T000000-000000 2>"$T/err"
equal "an unknown run is unknown" 2 $?

# ---- A failed operation ----
rm -f count go
cat >fails.json <<-END
	{"name": "fails", "plan": [
	 {"id": "bad", "run": "echo bad >>count; [ -e good ]"},
	 {"id": "after", "needs": ["bad"], "run": "echo after >>count"},
	 {"id": "else", "needs": [{"op": "bad", "on": "failure"}], "run": "echo else >>count"}]}
END
run=$("$FLOWSUP" start fails.json --wait 2>"$T/err")
equal "a failed operation fails the run" 1 $?
out=$("$FLOWSUP" resume "$run" 2>&1)
equal "its resume is refused" 4 $?
matches "with both ways out" "lifted by: flowsup resume [^ ]* --retry-failed.*or lifted by: flowsup resume [^ ]* --keep-failed" "$out"
"$FLOWSUP" resume "$run" --retry-failed --keep-failed 2>"$T/err"
equal "which exclude each other" 2 $?
"$FLOWSUP" resume "$run" --keep-failed --events "$T/events" >"$T/err" 2>&1
equal "events want --wait" 2 $?
kept=$("$FLOWSUP" resume "$run" --keep-failed --wait --events "$T/events" 2>"$T/err")
equal "a kept failure fails the new run" 1 $?
equal "its end is the last event" RunEnded "$(json "$(tail -1 "$T/events")" event)"
equal "and nothing runs again" "1 1" "$(times bad) $(times else)"
touch good
new=$("$FLOWSUP" resume "$kept" --retry-failed --wait 2>"$T/err")
equal "a retried one completes" 0 $?
equal "with what waited for it" "2 1" "$(times bad) $(times after)"
check "in a run of its own" [ "$new" != "$kept" ]

# ---- Not to be repeated ----
rm -f count
cat >once.json <<-END
	{"name": "once", "plan": [{"id": "pay", "idempotent": false,
	 "run": "echo pay >>count; until [ -e go ]; do sleep 0.05; done"}]}
END
run=$("$FLOWSUP" start once.json)
wait_until has_line pay
lose_worker "$run"
power_loss "$run"
out=$("$FLOWSUP" resume "$run" 2>&1)
equal "what must not be repeated is not" 4 $?
matches "without the word for it" "pay.*--rerun-in-flight" "$out"
touch go
new=$("$FLOWSUP" resume "$run" --rerun-in-flight --wait 2>"$T/err")
equal "with it, it is" "0 2" "$? $(times pay)"

plan
