#!/usr/bin/env bash
# A state directory that was copied while runs went on: they are the original's. One that was moved goes on.
. "$(dirname "$0")/lib.sh"

z1=$FLOWSUP_HOME z2=$T/z2
long="until [ -e '$T/go' ]; do sleep 0.02; done"
row() { sqlite3 "$1/state.db" "PRAGMA busy_timeout=60000; SELECT status FROM sessions WHERE run_id = '$2'" | tail -1; }
row_is() { [ "$(row "$1" "$2")" = "$3" ]; }
of_copy() { "$FLOWSUP" --home "$z2" "$@"; }
has_judged() { # the supervisor of the copy has looked at all there is: it runs something itself
	out=$(of_copy start --wait -- true 2>&1)
}
refused() { # WHAT COMMAND...
	local what=$1
	shift
	out=$(of_copy "$@" 2>&1)
	equal "$what is refused" 4 $?
	matches "$what: its own home is named" "belongs to the state directory '$z1'.*flowsup show --home $z1 $id" "$(tr '\n' ' ' <<<"$out")"
}

cat >"$T/end.yaml" <<END
orphans: end
plan: [{id: a, run: "echo \$\$ >'$T/op'; $long"}]
END
id=$("$FLOWSUP" start "$T/end.yaml")
wait_until [ -s "$T/op" ]
again=$("$FLOWSUP" start --restart 3 -- sh -c "$long")
wait_until row_is "$z1" "$again" running
"$FLOWSUP" queue set one --slots 1 >/dev/null 2>&1
queued=$("$FLOWSUP" start --queue one -- sh -c "$long")
wait_until row_is "$z1" "$queued" running
behind=$("$FLOWSUP" start --queue one -- sh -c "echo x >>'$T/behind'")
keyed=$("$FLOWSUP" start --unique key -- sh -c "$long")
wait_until row_is "$z1" "$keyed" running
waits=$("$FLOWSUP" start -- sh -c "$long")
wait_until row_is "$z1" "$waits" running
done=$("$FLOWSUP" start --wait -- true 2>/dev/null)
dead=$("$FLOWSUP" start -- sh -c "echo \$\$ >'$T/kept'; $long")
wait_until [ -s "$T/kept" ]
kill -KILL "$(worker_pid "$dead")"
wait_until row_is "$z1" "$dead" crashed
printf 'plan: [{id: a, run: "true"}, {id: b, needs: [a], gate: approve, run: "true"}]' >"$T/gate.yaml"
gate=$("$FLOWSUP" start "$T/gate.yaml")
asks() { "$FLOWSUP" waiting | grep -q "flowsup approve $gate b"; }
wait_until asks
# One that has crashed in the copy, where its policy would resume it.
fails=$("$FLOWSUP" start --restart 3 -- sh -c "$long")
wait_until worker_is_ready "$fails"
cp -a "$z1" "$z2"
sqlite3 "$z2/state.db" "UPDATE sessions SET status = 'crashed', reason_code = 'run.crashed.signal' WHERE run_id = '$fails'"

list=$(of_copy list 2>&1)
matches "a copy's run is shown as one" "$id .*copy of $z1" "$list"
matches "with the command that shows it where it goes on" "flowsup show --home $z1 $id" "$list"
check "a run of the copy's own works" has_judged
advice=$(of_copy doctor 2>&1)
matches "doctor says that it is a copy, and how many of its runs are not its own" \
	"copy .*it is a copy of '$z1', where 10 of its runs were made; 9 of them can go on and be steered there alone, until that directory is moved away or removed" \
	"$(tr -s ' \n' ' ' <<<"$advice")"
matches "and where they are seen to" "flowsup list --home $z1" "$advice"
equal "of the original it says nothing of the kind" 0 "$("$FLOWSUP" doctor 2>&1 | grep -c 'is a copy')"
for one in "$id" "$again" "$queued" "$keyed"; do
	equal "one that runs is not judged" running "$(row "$z2" "$one")"
done
equal "one that waits is not started" queued "$(row "$z2" "$behind")"
check "nothing of it was ended" alive "$(cat "$T/op")"
matches "what ended can be read" "completed" "$(of_copy show "$done" 2>&1)"
refused "stop" stop "$id"
refused "resume" resume "$id"
refused "pause" ctl pause "$id"
refused "waiting for it" wait "$id"
refused "its output" logs -f "$id"
equal "nor is one waited for that its policy would resume" 4 "$(of_copy wait "$fails" >/dev/null 2>&1; echo $?)"
equal "or its output" 4 "$(of_copy logs -f "$fails" >/dev/null 2>&1; echo $?)"
matches "what waits for a person waits there" "nothing waits for a person" "$(of_copy waiting 2>&1)"
equal "no answer is offered that would be refused" null \
	"$(json "$(of_copy list --json | grep "^{\"id\":\"$gate\"")" answer_command)"

# ---- What it holds ----
matches "a copy has no slot" '^one +1 +0 +0$' "$(of_copy queue list | grep '^one ')"
equal "and takes none from a run of the copy's own" 0 "$(of_copy start --queue one --wait -- true >/dev/null 2>&1; echo $?)"
frees="hint: flowsup kill --home $z2 $keyed"
out=$(of_copy start --unique key -- true 2>&1)
equal "its key it has: nothing is started beside it" 0 $?
matches "whose it is, and what became of it there, is said" \
	"run $keyed has the key 'key', here a copy of that of the state directory '$z1', where it goes on \\(running\\): nothing was started" "$out"
matches "with the command that frees the key" "$frees" "$out"
out=$(of_copy start --unique key --if-running fail -- true 2>&1)
equal "fail: refused" 4 $?
matches "with that command, too" "$frees" "$out"
out=$(of_copy start --unique key --if-running replace -- true 2>"$T/said")
equal "replacing it is refused" 4 $?
matches "with that command" "$frees" "$(cat "$T/said")"
new=$out
says() { [[ $(of_copy show --json "$new") == *"$1"* ]]; }
check "the run that waits for it names it and the command" wait_until says \
	"waits for run $keyed, here a copy of that of '$z1', to give up the key: flowsup kill --home $z2 $keyed"
of_copy kill "$keyed" >/dev/null 2>&1
check "which lets it start" wait_until row_is "$z2" "$new" completed
equal "and leaves the original alone" running "$(row "$z1" "$keyed")"

# ---- What is told of it ----
same() { # what gc would do and what it does
	local what=$1
	shift
	of_copy gc "$@" --dry-run 2>&1 | sed 's/would be //' | sort >"$T/would"
	of_copy gc "$@" 2>&1 | sort >"$T/does"
	equal "$what" "$(cat "$T/would")" "$(cat "$T/does")"
}
equal "one that has crashed is not resumed" 4 "$(of_copy resume "$dead" >/dev/null 2>&1; echo $?)"
equal "nor ended" 4 "$(of_copy stop "$dead" >/dev/null 2>&1; echo $?)"
check "what it left lives" alive "$(cat "$T/kept")"
out=$(of_copy kill "$queued" 2>&1)
equal "kill gives its place up" 0 $?
matches "and says what it left alone" "no process was ended" "$out"
equal "nor can it be resumed here" 4 "$(of_copy resume "$queued" >/dev/null 2>&1; echo $?)"
matches "and that it goes on there" "here a copy of that of the state directory '$z1', where it goes on \\(running\\)" "$out"
next=$(json "$(of_copy list --json | grep "^{\"id\":\"$queued\"")" resume_command)
equal "what is offered shows it there" "flowsup show --home $z1 $queued" "$next"
equal "in the copy alone" "cancelled running" "$(row "$z2" "$queued") $(row "$z1" "$queued")"
out=$(of_copy kill "$dead" 2>&1)
check "kill ends nothing of one that has crashed" alive "$(cat "$T/kept")"
matches "and says whose that is" "state directory '$z1'.*\(crashed\); what it left belongs to that directory$" "$(paste -sd' ' <<<"$out")"
same "gc removes what its dry run named" --keep-days 0
check "also of what has crashed: its processes are the original's" [ ! -e "$z2/runs/$dead" ]
check "which lives on there" alive "$(cat "$T/kept")"
of_copy supervisor restart >/dev/null 2>&1
check "the next supervisor does the same" has_judged
equal "and judges nothing" running "$(row "$z2" "$id")"
of_copy supervisor stop --all --now >/dev/null 2>&1
equal "stopping all runs of the copy ends none of them" "running queued" "$(row "$z2" "$id") $(row "$z2" "$behind")"
check "their processes live" alive "$(cat "$T/op")"
touch "$T/go"
"$FLOWSUP" approve "$gate" b 2>/dev/null
for one in "$id" "$again" "$queued" "$keyed" "$behind" "$gate"; do
	check "the original's runs end as they are to" wait_until row_is "$z1" "$one" completed
done
equal "what waited was started once" 1 "$(grep -c x "$T/behind")"
out=$(of_copy kill "$waits" 2>&1)
matches "what has ended there is not said to go on" "where it has ended \\(completed\\)" "$out"
rm "$T/go"

# ---- Moved: the same directory, or its only copy ----
"$FLOWSUP" queue set one --slots 1 >/dev/null 2>&1
id=$("$FLOWSUP" start -- sh -c "$long")
wait_until row_is "$z1" "$id" running
worker=$(worker_pid "$id")
"$FLOWSUP" supervisor stop >/dev/null 2>&1
kill -KILL "$worker"
wait_until gone "$worker"
mv "$z1" "$T/z3"
"$FLOWSUP" --home "$T/z3" list >/dev/null 2>&1
check "one that was moved is judged" wait_until row_is "$T/z3" "$id" crashed
"$FLOWSUP" --home "$T/z3" supervisor stop >/dev/null 2>&1
cp -a "$T/z3" "$T/z4"
rm -rf "$T/z3"
touch "$T/go"
out=$("$FLOWSUP" --home "$T/z4" resume "$id" --wait 2>&1)
equal "one whose original is gone goes on" 0 $?

# ---- What failed belongs to each copy ----
id=$("$FLOWSUP" --home "$T/z4" start --wait -- sh -c "echo x >>$T/failed; exit 1" 2>/dev/null)
"$FLOWSUP" --home "$T/z4" supervisor stop >/dev/null 2>&1
cp -a "$T/z4" "$T/z5"
for home in "$T/z4" "$T/z5"; do
	"$FLOWSUP" --home "$home" resume "$id" --retry-failed --wait >/dev/null 2>&1
	"$FLOWSUP" --home "$home" resume "$id" --retry-failed >"$T/out" 2>&1
	equal "a run that failed is resumed once in ${home##*/}" 4 $?
	matches "as the refusal says" "already resumed" "$(cat "$T/out")"
done
equal "so it ran again in both" 3 "$(wc -l <"$T/failed")"
plan
