#!/usr/bin/env bash
# fork: a new run that reuses what an earlier one did before some operation; the earlier one stays.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

files() { find "$FLOWSUP_HOME/runs/$1" -type f -o -type l | sort | xargs cksum; }
forked() { "$FLOWSUP" fork "$run" --wait "$@" 2>"$T/err"; }

cat >f.json <<-'END'
	{"name": "f", "plan": [
	 {"id": "data", "artifacts": ["d/x"], "run": "echo data >>count; mkdir -p \"$FLOWSUP_ARTIFACTS/d\"; echo data >\"$FLOWSUP_ARTIFACTS/d/x\"; ln -s d/x \"$FLOWSUP_ARTIFACTS/link\"; head -c 1200000 /dev/zero | tr '\\0' b"},
	 {"id": "left", "needs": ["data"], "run": "echo left >>count; echo answer"},
	 {"id": "right", "needs": ["data"], "run": "echo right >>count; wc -c <\"$FLOWSUP_DEP_data\"", "artifacts": ["y"], "env": {"A": "1"}},
	 {"id": "end", "needs": ["left", "right"], "run": "echo end >>count; cat \"$FLOWSUP_DEP_left\""}]}
END
sed -i -e 's/wc -c <\\"$FLOWSUP_DEP_data\\"/echo y >>\\"$FLOWSUP_ARTIFACTS\/y\\"; wc -c <\\"$FLOWSUP_DEP_data\\"/' f.json

# ---- A completed run ----
run=$("$FLOWSUP" start f.json --label team=a --wait 2>"$T/err")
equal "a run completes" completed "$(run_status "$run")"
before=$(files "$run")
out=$("$FLOWSUP" fork "$run" --from right --dry-run)
equal "a dry run says that it would be accepted" 0 $?
matches "what is before is reused" "data +replayed" "$out"
matches "and what is beside" "left +replayed" "$out"
matches "OP runs" "right +will run +runs again: the fork begins with it" "$out"
matches "and what needs it" "end +will run +runs again, because right does" "$out"
equal "nothing was made" 1 "$("$FLOWSUP" list --json | wc -l)"
new=$(forked --from right)
equal "the fork completes" 0 $?
matches "its id is printed alone" "^[0-9]{8}T[0-9]{6}-[0-9a-f]{6}$" "$new"
equal "each ran as often as it must" "1 1 2 2" "$(times data) $(times left) $(times right) $(times end)"
equal "answers of what is reused are there, long ones too" "1200000 answer" \
	"$("$FLOWSUP" logs "$new" right 2>/dev/null) $("$FLOWSUP" logs "$new" end 2>/dev/null)"
equal "their output is shown" answer "$("$FLOWSUP" logs "$new" left 2>/dev/null)"
equal "the earlier run is as it was, byte for byte" "$before" "$(files "$run")"
equal "artifacts are copies" "data d/x y" "$(cat "$FLOWSUP_HOME/runs/$new/artifacts/data/d/x") $(readlink "$FLOWSUP_HOME/runs/$new/artifacts/data/link") $(cat "$FLOWSUP_HOME/runs/$new/artifacts/right/y")"
out=$("$FLOWSUP" show "$new" --json)
equal "it says where it comes from" "$run" "$(json "$out" forked_from)"
matches "and resumes nothing" '"resumed_from":null' "$out"
matches "with the labels" '"team":"a"' "$out"
matches "people see it, too" "forks +$run" "$("$FLOWSUP" show "$new")"
equal "the earlier one has no successor" null "$(json "$("$FLOWSUP" show "$run" --json)" resumed_as)"
again=$(forked --from end --from left)
equal "it can be forked once more, from several" 0 $?
equal "which run" "1 2 2 3" "$(times data) $(times left) $(times right) $(times end)"
third=$("$FLOWSUP" fork "$new" --from end --wait 2>"$T/err")
equal "and a fork can be forked" "0 4" "$? $(times end)"

# ---- gc keeps what is needed ----
"$FLOWSUP" gc --keep-n 1 >"$T/gone" 2>"$T/err"
equal "what a fork was made from is kept, and what that was made from" "$again" "$(cat "$T/gone")"
equal "so that answers stay" "1200000" "$("$FLOWSUP" logs "$third" right 2>/dev/null)"
"$FLOWSUP" gc --keep-n 0 >"$T/gone" 2>"$T/err"
equal "and goes with the last of them" 3 "$(wc -l <"$T/gone")"

# ---- A failed run, and checks like those of a resume ----
rm -f count
cat >bad.json <<-'END'
	{"name": "bad", "plan": [
	 {"id": "one", "artifacts": ["x"], "run": "echo one >>count; echo x >\"$FLOWSUP_ARTIFACTS/x\""},
	 {"id": "pay", "needs": ["one"], "idempotent": false, "run": "echo pay >>count"},
	 {"id": "bad", "needs": ["pay"], "run": "echo bad >>count; [ -e good ]"},
	 {"id": "worse", "needs": ["one"], "run": "[ -e good ]"}]}
END
run=$("$FLOWSUP" start bad.json --wait 2>"$T/err")
out=$("$FLOWSUP" fork "$run" --from bad 2>&1)
equal "another failure refuses it" 4 $?
matches "with the command that lifts it" "worse.*lifted by: flowsup fork $run --from bad --retry-failed.*or lifted by: flowsup fork $run --from bad --keep-failed" "$out"
touch good
new=$(forked --from bad --from worse)
equal "the failed ones themselves run without a flag" 0 $?
equal "and nothing before them" "1 1 2" "$(times one) $(times pay) $(times bad)"
out=$("$FLOWSUP" fork "$run" --from one --from worse 2>&1)
equal "what must not be repeated is not" 4 $?
matches "without the word for it" "pay.*--from one --from worse --rerun-in-flight" "$out"
new=$(forked --from one --rerun-in-flight)
equal "with it it is" "0 2" "$? $(times pay)"
echo edited >"$FLOWSUP_HOME/runs/$run/artifacts/one/x"
out=$("$FLOWSUP" fork "$run" --from bad --from worse 2>&1)
equal "artifacts are verified" 4 $?
matches "as in a resume" "operation one: its artifact \"x\".*--accept-missing-artifacts" "$out"

# ---- What was added while the run was going ----
rm -f count
PATH=$BUILD/bin:$PATH
cat >grow.json <<-'END'
	{"name": "grow", "reactive": "all", "plan": [{"id": "pre", "run": "echo pre >>count"},
	 {"id": "a", "needs": ["pre"], "run": "echo a >>count; flowsup emit spawn --run 'echo child >>count'"}]}
END
run=$("$FLOWSUP" start grow.json --wait 2>"$T/err")
equal "a run that grew completes" "0 1" "$? $(times child)"
new=$(forked --from a.s1)
equal "a fork may begin with what was added" "0 1 2" "$? $(times a) $(times child)"
out=$("$FLOWSUP" fork "$run" --from a 2>&1)
equal "who adds again leaves out what it had added" 4 $?
matches "with leave" "a.s1: a runs again.*lifted by: flowsup fork $run --from a --drop-respawned" "$out"
new=$(forked --from a --drop-respawned)
equal "then it is added anew" "0 1 2 3" "$? $(times pre) $(times a) $(times child)"

# ---- What cannot be ----
for what in "2:no operation \"nobody\":--from nobody" "2:--from OP is missing:"; do
	args=${what##*:} text=${what#*:} text=${text%:*}
	# shellcheck disable=SC2086
	out=$("$FLOWSUP" fork "$run" $args 2>&1)
	equal "wrong usage: $text" "${what%%:*}" $?
	matches "is said" "$text" "$out"
done
rm -f count go
cat >slow.json <<-'END'
	{"name": "slow", "plan": [{"id": "first", "run": "echo first >>count"},
	 {"id": "slow", "needs": ["first"], "run": "echo slow >>count; until [ -e go ]; do sleep 0.05; done"}]}
END
run=$("$FLOWSUP" start slow.json)
wait_until has_line slow
wait_until status_is "$run" running
out=$("$FLOWSUP" fork "$run" --from slow 2>&1)
equal "a run that goes on is not forked" 4 $?
matches "which is said" "is running: only a run that is at its end" "$out"
kill -KILL "$(worker_pid "$run")"
wait_until is_crashed "$run"
out=$("$FLOWSUP" fork "$run" --from slow 2>&1)
equal "nor while something of it runs" 4 $?
matches "with what to do" "slow of run $run still runs.*flowsup resume $run" "$(echo "$out" | tr '\n' ' ')"
power_loss "$run"
touch go
new=$(forked --from slow)
equal "after that it is" "0 1 2" "$? $(times first) $(times slow)"
new=$("$FLOWSUP" resume "$run" --wait 2>"$T/err")
equal "and the run can still be resumed" "0 3" "$? $(times slow)"
plan
