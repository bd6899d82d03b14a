#!/usr/bin/env bash
# resume: every reason at once with the command that lifts it, what each flag costs, many resumes of
# one run, all that crashed, runs without a checkpoint, reports on torn ones.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

# ---- Every reason, each with its command, and the command for all ----

cat >all.json <<-'DOC'
	{"name": "all", "concurrency": 4, "plan": [
	 {"id": "made", "run": "echo made >>count; echo x >\"$FLOWSUP_ARTIFACTS/x\"", "artifacts": ["x"]},
	 {"id": "bad", "run": "echo bad >>count; [ -e good ]"},
	 {"id": "after", "needs": ["bad"], "run": "echo after >>count"},
	 {"id": "pay", "needs": ["made", {"op": "bad", "on": "failure"}], "idempotent": false, "grace": "1s",
	  "run": "echo pay >>count; until [ -e go ]; do sleep 0.05; done"}]}
DOC
run=$("$FLOWSUP" start all.json)
wait_until has_line pay
crash "$run"
rm "$(dir_of "$run")/artifacts/made/x"
"$FLOWSUP" resume "$run" 2>"$T/err"
equal "it is refused" 4 $?
matches "for the failure" "bad: .*flowsup resume $run --retry-failed.*or lifted by: flowsup resume $run --keep-failed" "$(cat "$T/err")"
matches "for the artifact" "made: .*flowsup resume $run --accept-missing-artifacts" "$(cat "$T/err")"
matches "for what was in flight" "pay: .*flowsup resume $run --rerun-in-flight" "$(cat "$T/err")"
command=$(sed -n 's/^hint: flowsup //p' "$T/err")
equal "with one command for all" \
	"resume $run --retry-failed --rerun-in-flight --accept-missing-artifacts" "$command"
"$FLOWSUP" resume "$run" --json >"$T/out" 2>"$T/err"
equal "as JSON three commands" 3 "$(sed "s/.*\"failures\"://" "$T/out" | grep -o '"command":"flowsup resume' | wc -l)"
"$FLOWSUP" resume "$run" --keep-failed --rerun-in-flight 2>"$T/err"
equal "two flags leave the third" 4 $?
matches "and are repeated in the command" \
	"resume $run --keep-failed --rerun-in-flight --accept-missing-artifacts" "$(grep ^hint "$T/err")"
touch go
new=$("$FLOWSUP" resume "$run" --keep-failed --rerun-in-flight --accept-missing-artifacts --wait \
	2>"$T/err")
equal "all three lift it" 1 $?
matches "saying what is kept" 'operation bad: failed .*by --keep-failed' "$(cat "$T/err")"
matches "what is not run for it" 'operation after: bad failed: it is not run' "$(cat "$T/err")"
matches "what is lost" 'operation made: .*not carried over; by --accept-missing-artifacts' \
	"$(cat "$T/err")"
matches "what is repeated" 'operation pay: .*by --rerun-in-flight' "$(cat "$T/err")"
equal "and so it ran" "2 1 2 0" "$(times made) $(times bad) $(times pay) $(times after)"

# ---- What must not be repeated behind what must not be repeated ----

rm -f count good
cat >dear.json <<-'DOC'
	{"name": "dear", "plan": [
	 {"id": "i", "idempotent": false, "artifacts": ["x"], "run": "echo i >>count; echo x >\"$FLOWSUP_ARTIFACTS/x\""},
	 {"id": "k", "needs": ["i"], "idempotent": false, "run": "echo k >>count"},
	 {"id": "m", "needs": ["k"], "run": "echo m >>count"},
	 {"id": "bad", "needs": ["m"], "run": "[ -e good ]"}]}
DOC
run=$("$FLOWSUP" start dear.json --wait 2>"$T/err")
rm "$(dir_of "$run")/artifacts/i/x"
"$FLOWSUP" resume "$run" --retry-failed --accept-missing-artifacts -n >"$T/out" 2>"$T/err"
equal "all that one flag would repeat is refused" "4 i refused, k refused, m will, bad will" \
	"$? $(awk 'NR > 1 { printf "%s%s %s", (NR > 2 ? ", " : ""), $1, $2 }' "$T/out")"
matches "each with its reason" "operation k: what it needs runs again, .*--rerun-in-flight" "$(cat "$T/err")"
"$FLOWSUP" fork "$run" --from i -n >"$T/out" 2>"$T/err"
matches "in a fork, too" "operation k: what it needs runs again, .*--rerun-in-flight" "$(cat "$T/err")"
touch good
"$FLOWSUP" resume "$run" --retry-failed --accept-missing-artifacts --rerun-in-flight --wait >/dev/null 2>"$T/err"
equal "what was said is what runs" "0 2 2 2" "$? $(times i) $(times k) $(times m)"

# ---- What has seen that another one was skipped ----

rm -f count good
cat >seen.json <<-'DOC'
	{"name": "seen", "plan": [
	 {"id": "bad", "run": "[ -e good ]"},
	 {"id": "skipped", "needs": ["bad"], "run": "echo skipped >>count; echo answer"},
	 {"id": "also", "needs": ["skipped"], "run": "echo also >>count"},
	 {"id": "last", "needs": [{"op": "also", "on": "always"}, {"op": "skipped", "on": "always"}],
	  "run": "echo last >>count; cat $FLOWSUP_DEP_skipped </dev/null"},
	 {"id": "behind", "needs": ["last"], "run": "echo behind >>count"}]}
DOC
run=$("$FLOWSUP" start seen.json --wait 2>"$T/err")
equal "what runs always ran" "0 1 1" "$(times skipped) $(times last) $(times behind)"
"$FLOWSUP" resume "$run" --keep-failed --dry-run >"$T/out" 2>"$T/err"
matches "with the failure kept it stays so" "last +replayed" "$(cat "$T/out")"
touch good
"$FLOWSUP" resume "$run" --retry-failed --dry-run >"$T/out" 2>"$T/err"
matches "else it is said why it runs again" "last +will run +runs again, because (also|skipped) does" "$(cat "$T/out")"
new=$("$FLOWSUP" resume "$run" --retry-failed --wait 2>"$T/err")
equal "it runs again, after what was skipped before" "0 1 1 2 2" \
	"$? $(times skipped) $(times also) $(times last) $(times behind)"
equal "and is given its response" answer "$("$FLOWSUP" logs "$new" last 2>/dev/null)"

# ---- A failure that is kept does not end the rest for having been the first ----
rm -f count good
cat >fast.yaml <<-'DOC'
	name: fast
	fail_fast: true
	concurrency: 1
	plan:
	- {id: bad, run: "echo bad >>count; exit 3"}
	- {id: skipped, needs: [bad], run: "echo skipped >>count"}
	- {id: one, run: "echo one >>count"}
	- {id: worse, needs: [one], run: "echo worse >>count; [ -e good ]"}
	- {id: last, needs: [one], run: "echo last >>count"}
DOC
states() { "$FLOWSUP" show "$1" | awk '$1 ~ /^(bad|skipped|one|worse|last)$/ { printf "%s%s", (n++ ? " " : ""), $2 }'; }
run=$("$FLOWSUP" start fast.yaml --wait 2>"$T/err")
equal "with fail_fast nothing is started behind a failure" "1 failed skipped pending pending pending" "$? $(states "$run")"
matches "the run says so" "failed: operation bad failed; nothing was started any more: 3 of 5 operations have no outcome" "$(cat "$T/err")"
matches "and what goes on without it" "hint: flowsup resume $run --keep-failed +# to leave what failed" "$(cat "$T/err")"
matches "and why is said" "one +pending +not started: the run ended with its first failure" "$("$FLOWSUP" show "$run")"
"$FLOWSUP" resume "$run" --keep-failed --dry-run >"$T/out" 2>"$T/err"
equal "a dry run of what keeps it says that the rest runs" "stays skipped will will will" \
	"$(awk 'NR > 1 { printf "%s%s", (NR > 2 ? " " : ""), $2 }' "$T/out")"
new=$("$FLOWSUP" resume "$run" --keep-failed --wait 2>"$T/err")
equal "and so it does, until something else fails" "1 failed skipped completed failed pending" "$? $(states "$new")"
last=$("$FLOWSUP" resume "$new" --keep-failed --wait 2>"$T/err")
equal "which may be kept as well" "1 failed skipped completed failed completed" "$? $(states "$last")"
equal "each has run once" "1 0 1 1 1" "$(times bad) $(times skipped) $(times one) $(times worse) $(times last)"
new=$("$FLOWSUP" fork "$last" --from last --keep-failed --wait 2>"$T/err")
equal "a fork with it runs as well" "1 failed skipped completed failed completed 2" "$? $(states "$new") $(times last)"

# What goes on by itself does as the run would have done, for it is asked nothing.
rm -f count
cat >byself.yaml <<-'DOC'
	name: byself
	fail_fast: true
	concurrency: 2
	restart: {on: crash, attempts: 1, failed: keep}
	plan:
	- {id: bad, run: "until [ -e go ]; do sleep 0.05; done; exit 3"}
	- {id: slow, run: "until [ -e end ]; do sleep 0.05; done"}
	- {id: one, run: "echo one >>count"}
DOC
run=$("$FLOWSUP" start byself.yaml)
state_is() { [[ $("$FLOWSUP" show "$1") =~ $'\n'"$2 "+"$3 " ]]; }
wait_until state_is "$run" slow running
touch go
wait_until state_is "$run" bad failed
kill -KILL "$(worker_pid "$run")"
resumed_as() { json "$("$FLOWSUP" show "$run" --json)" resumed_as; }
goes_on() { [[ $(resumed_as) =~ ^2 ]]; }
wait_until goes_on
new=$(resumed_as)
wait_until state_is "$new" slow running
matches "why is said" "one +pending +not started any more: the run ends with its first failure" "$("$FLOWSUP" show "$new")"
touch end
"$FLOWSUP" wait "$new" >/dev/null 2>"$T/err"
equal "by itself nothing is started either" "1 1 " "$? $("$FLOWSUP" show "$new" | grep -c '^one  *pending') $(cat count 2>/dev/null)"
last=$("$FLOWSUP" resume "$new" --wait 2>"$T/err")
equal "by hand, with what the document settles, the rest is" "1 1" "$? $(times one)"

# ---- What the document settles ----

rm -f count good
cat >settled.json <<-'DOC'
	{"name": "settled", "restart": {"failed": "retry"}, "plan": [
	 {"id": "bad", "run": "echo bad >>count; [ -e good ]"}]}
DOC
run=$("$FLOWSUP" start settled.json --wait 2>"$T/err")
touch good
new=$("$FLOWSUP" resume "$run" --wait 2>"$T/err")
equal "restart: {failed: retry} needs no flag" "0 2" "$? $(times bad)"

# ---- Twenty at once ----

rm -f count go
cat >slow.json <<-'DOC'
	{"name": "slow", "plan": [
	 {"id": "first", "run": "echo first >>count"},
	 {"id": "slow", "needs": ["first"], "grace": "1s", "run": "echo slow >>count; until [ -e go ]; do sleep 0.05; done"}]}
DOC
run=$("$FLOWSUP" start slow.json)
wait_until has_line slow
out=$("$FLOWSUP" resume @last 2>&1)
equal "a live run is left alone" 0 $?
matches "and its process named" "alive \(worker process $(worker_pid "$run")\)" "$out"
crash "$run"
pids=()
for i in $(seq 20); do
	"$FLOWSUP" resume "$run" >"$T/many.$i" 2>"$T/many.$i.err" &
	pids+=($!)
done
wins=0 losses=0
for pid in "${pids[@]}"; do
	wait "$pid"
	case $? in
	0) wins=$((wins + 1)) ;;
	4) losses=$((losses + 1)) ;;
	esac
done
new=$(cat "$T"/many.[0-9] "$T"/many.[0-9][0-9])
equal "of twenty one wins" "1 19" "$wins $losses"
equal "and the others name its run" 19 "$(cat "$T"/many.*.err | grep -c "already resumed, as run $new")"

# ---- All that crashed ----

once_more() { [ "$(times slow)" -ge 2 ]; }
wait_until once_more
crash "$new"
once=$("$FLOWSUP" start slow.json)
two_slow() { [ "$(times slow)" -ge 3 ]; }
wait_until two_slow
crash "$once"
rm -f "$(dir_of "$once")/checkpoint.json.journal"
equal "a dry run says which table is whose, oldest first" "run $new:
run $once:" "$("$FLOWSUP" resume --all-crashed --dry-run 2>/dev/null | grep '^run ')"
touch go
ids=$("$FLOWSUP" resume --all-crashed 2>"$T/err")
equal "one that is refused is the command's status" 4 $?
equal "the others go on" 1 "$(wc -w <<<"$ids")"
"$FLOWSUP" wait "$ids" 2>/dev/null
equal "to their end" 0 $?
matches "the refused one is named" "run $once cannot be resumed" "$(cat "$T/err")"
"$FLOWSUP" resume --all-crashed "$run" 2>/dev/null
equal "an operand is one too many" 2 $?
"$FLOWSUP" resume 2>/dev/null
equal "none is one too few" 2 $?
"$FLOWSUP" resume "$ids" 2>"$T/err"
equal "a completed one has nothing to resume" 0 $?

# ---- Reports ----

rm -f count go
run=$("$FLOWSUP" start slow.json)
wait_until has_line slow
crash "$run"
printf '{"version":3,' >>"$(dir_of "$run")/checkpoint.json.journal"
"$FLOWSUP" list --check --json >"$T/out" 2>"$T/err"
matches "list --check reports a torn tail" "run $run: .*torn_tail" "$(cat "$T/err")"
report=$(grep -F "\"id\":\"$run\"" "$T/out" | grep -oE '"checkpoint_recovery":\{[^}]*\}[^}]*\}')
matches "as the whole structure too" '"status":"recovered_prefix"' "$report"
for command in "show $run --json" "checkpoint verify $run --json" "checkpoint show $run --json"; do
	# shellcheck disable=SC2086
	"$FLOWSUP" $command >"$T/out" 2>/dev/null
	equal "$command has the same" "$report" \
		"$(grep -oE '"checkpoint_recovery":\{[^}]*\}[^}]*\}' "$T/out" | head -1)"
done
touch go
new=$("$FLOWSUP" resume "$run" --wait 2>"$T/err")
equal "what is whole is resumed" 0 $?
equal "with one line about the rest" 1 "$(grep -c 'torn_tail' "$T/err")"
matches "which stays with the new run" '"resumed_checkpoint":\{[^}]*"reason":"torn_tail"' \
	"$("$FLOWSUP" show "$new" --json)"

# ---- Without a checkpoint ----

rm -f count go
run=$("$FLOWSUP" start slow.json)
wait_until has_line slow
crash "$run"
rm "$(dir_of "$run")"/checkpoint.json*
"$FLOWSUP" resume "$run" 2>"$T/err"
equal "without a checkpoint, after a start, it is refused" 4 $?
matches "by the log that shows it" 'attempts.log shows that operations were started' "$(cat "$T/err")"
sed -i '/"kind":"worker"/!d' "$(dir_of "$run")/attempts.log"
"$FLOWSUP" kill "$run" 2>/dev/null
rm -rf "$(dir_of "$run")"/ops/* count
touch go
new=$("$FLOWSUP" resume "$run" --wait 2>"$T/err")
equal "before any start it begins anew" 0 $?
matches "and says so" "never started an operation" "$(cat "$T/err")"
equal "from its document" "1 1" "$(times first) $(times slow)"

# ---- A process that may be the run's ----

rm -f count go
cat >stray.json <<-'DOC'
	{"name": "stray", "plan": [{"id": "op", "grace": "1s",
	 "run": "env -i sleep 1000 & echo $! >stray; echo $$ >leader; until [ -e go ]; do sleep 0.05; done"}]}
DOC
run=$("$FLOWSUP" start stray.json)
wait_until [ -s leader ]
# Until then it bears the run's marks.
is_bare() { [ "$(tr -d '\0' <"/proc/$(cat stray)/cmdline")" = sleep1000 ]; }
wait_until is_bare
lose_worker "$run"
kill -KILL "$(cat leader)"
# As long as it is a zombie its group is known to be the operation's.
wait_until [ ! -e "/proc/$(cat leader)" ]
"$FLOWSUP" resume "$run" 2>"$T/err"
equal "a process that nothing proves to be the run's refuses it" 4 $?
matches "by its number and operation" "process $(cat stray) of operation op" "$(cat "$T/err")"
matches "with what to do" "hint: .*kill $(cat stray)" "$(cat "$T/err")"
check "and is left alone" alive "$(cat stray)"
kill "$(cat stray)"
wait_until gone "$(cat stray)"
touch go
"$FLOWSUP" resume "$run" --wait >"$T/id" 2>"$T/err"
equal "once it has ended the run goes on, with the end that its operation had" 1 $?
matches "which is known" '"signal":"SIGKILL"' "$("$FLOWSUP" show "$(cat "$T/id")" --json)"


# ---- What was denied ----

rm -f count
printf '{"name": "gate", "plan": [{"id": "g", "gate": "approve", "run": "echo g >>count"},
 {"id": "no", "needs": [{"op": "g", "on": "failure"}], "run": "echo no >>count"}]}' >gate.json
asks() { "$FLOWSUP" waiting --json | grep -q "\"command\":\"flowsup approve $1 g\""; }
run=$("$FLOWSUP" start gate.json)
wait_until asks "$run"
"$FLOWSUP" deny "$run" g 2>/dev/null
"$FLOWSUP" wait "$run" 2>/dev/null
"$FLOWSUP" resume "$run" 2>"$T/err"
matches "the verdict is kept rather than asked for again" "hint: flowsup resume $run --keep-failed" "$(grep ^hint "$T/err")"
matches "but may be" "or lifted by: flowsup resume $run --retry-failed" "$(cat "$T/err")"
matches "then it asks again, the dry run says" "g +will run +failed \(denied.*\), asks for approval again" \
	"$("$FLOWSUP" resume "$run" --retry-failed --dry-run)"
new=$("$FLOWSUP" resume "$run" --retry-failed 2>/dev/null)
check "and it does" wait_until asks "$new"
"$FLOWSUP" approve "$new" g 2>/dev/null
"$FLOWSUP" wait "$new" 2>/dev/null
equal "so it runs, and what its failure asks for does not again" "0 1 1" "$? $(times g) $(times no)"

# ---- show and resume say the same of what was in flight ----

rm -f count
printf '{"name": "once", "plan": [{"id": "pay", "idempotent": false, "run": "echo pay >>count; exec sleep 600"}]}' >once.json
# What each of them says of it.
both() { printf '%s|%s' "$("$FLOWSUP" show "$run" | grep '^pay ' | grep -oE '(was|has|not) .*')" \
	"$("$FLOWSUP" resume "$run" --dry-run 2>/dev/null | grep '^pay ' | grep -oE 'it (was|has) .*')"; }
run=$("$FLOWSUP" start once.json)
wait_until has_line pay
kill -KILL "$(worker_pid "$run")"
wait_until status_is "$run" crashed
"$FLOWSUP" kill "$run" 2>/dev/null
equal "ended by a command: nobody takes that for its end" \
	"was ended when its worker was dead; no outcome|it was ended when its worker was dead, and is marked idempotent: false" "$(both)"
sed -i '/"kind":"start"/d' "$(dir_of "$run")/attempts.log"
equal "only its mark is there" \
	"was in flight when its worker ended; no outcome|it was in flight when its worker ended, and is marked idempotent: false" "$(both)"
plan
