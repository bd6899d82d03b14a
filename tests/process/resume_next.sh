#!/usr/bin/env bash
# What would be refused once the options are given that lift what is refused first is told with it, and one
# command lifts all; a dry run says that command too. What is the same of several operations is one line.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

cat >lost.yaml <<-'END'
	name: lost
	reactive: all
	roles:
	  maker: {provider: sh}
	model_commands: true
	plan:
	- {id: boss, assignee: maker, artifacts: [report], instruction: 'echo x >"$FLOWSUP_ARTIFACTS/report"; flowsup emit spawn --run "echo added >>count"'}
	- {id: pay, idempotent: false, needs: [boss], run: "echo pay >>count"}
	- {id: bad, run: "[ -e good ]"}
END
PATH=$BUILD/bin:$PATH
run=$("$FLOWSUP" start lost.yaml --wait 2>"$T/err")
equal "the run fails" failed "$(run_status "$run")"
rm "$FLOWSUP_HOME/runs/$run/artifacts/boss/report"
all="flowsup resume $run --retry-failed --rerun-in-flight --accept-missing-artifacts --drop-respawned"

"$FLOWSUP" resume "$run" >"$T/out" 2>"$T/err"
equal "a lost artifact refuses" 4 $?
matches "with what it lifts alone" "operation boss: its artifact [^;]*; lifted by: flowsup resume $run --accept-missing-artifacts"$'\n' \
	"$(cat "$T/err")"
matches "what was added comes next" "operation boss.s1: boss runs again, .*has an outcome; lifted by: .* --accept-missing-artifacts --drop-respawned"$'\n' \
	"$(cat "$T/err")"
matches "and what must not be repeated" "operation pay: what it needs runs again, .*; lifted by: .* --accept-missing-artifacts --rerun-in-flight"$'\n' \
	"$(cat "$T/err")"
equal "one command lifts all" "hint: $all" "$(grep '^hint' "$T/err")"
"$FLOWSUP" resume "$run" -n >"$T/out" 2>"$T/err"
equal "a dry run refuses too" 4 $?
equal "with the same command" "hint: $all" "$(grep '^hint' "$T/err")"
equal "its table is of what was asked" "boss refused, pay replayed, bad refused, boss.s1 replayed" \
	"$(awk 'NR > 1 { printf "%s%s %s", (NR > 2 ? ", " : ""), $1, $2 }' "$T/out")"
"$FLOWSUP" resume "$run" -n --json >"$T/out" 2>"$T/err"
matches "also where it answers in JSON" "\"hint\":\"$all\"" "$(cat "$T/err")"
matches "which says what stands behind what" \
	'"op":"boss.s1",[^{}]*"flag":"drop-respawned","behind":\[[^]]*"accept-missing-artifacts"[^]]*\]' "$(cat "$T/out")"
touch good
eval "\"\$FLOWSUP\"${all#flowsup} --wait" >"$T/out" 2>"$T/err"
equal "with it the run completes" 0 $?
equal "and each ran as often as was said" "2 2" "$(times added) $(times pay)"

# ---- The same of several is one line ----
cat >many.yaml <<-'END'
	name: many
	plan:
	- {id: one, run: "true"}
	- {id: each, needs: [one], foreach: [1, 2, 3], run: "exit 3"}
END
run=$("$FLOWSUP" start many.yaml --wait 2>"$T/err")
"$FLOWSUP" resume "$run" 2>"$T/err"
equal "one line for failures" 1 "$(grep -c 'it failed' "$T/err")"
matches "with each name" "operations each.0, each.1, each.2, each: it failed: exit status 3; lifted by: [^;]*; or lifted by: " "$(cat "$T/err")"
"$FLOWSUP" fork "$run" --from one >"$T/out" 2>"$T/err"
matches "and for what is lost" "operations each.0, each.1, each.2, each: runs again, because one does" "$(cat "$T/err")"

# ---- What is suggested for what must not be repeated is what a resume asks for ----
# asks NAME RUN OPTIONS: list, show and the refusal of a resume without them say the same command.
asks() {
	local command="flowsup resume $2${3:+ $3}"
	equal "$1: show" "$command" "$(json "$("$FLOWSUP" show "$2" --json)" resume_command)"
	matches "$1: list" "$command"$'\n' "$("$FLOWSUP" list | tr -s ' \n' ' \n')"$'\n'
	"$FLOWSUP" resume "$2" >"$T/out" 2>"$T/err"
	equal "$1: a resume without is refused" 4 $?
	equal "$1: with the same command" "hint: $command" "$(grep '^hint' "$T/err")"
	eval "\"\$FLOWSUP\"${command#flowsup} --dry-run" >"$T/out" 2>"$T/err"
	equal "$1: which is accepted" 0 $?
}
cat >pays.yaml <<-'END'
	name: pays
	plan:
	- {id: first, run: "true"}
	- {id: pay, idempotent: false, needs: [first], run: "echo pay >>paid; until [ -e on ]; do sleep 0.05; done"}
END
paid() { [ -s paid ]; }
run=$("$FLOWSUP" start pays.yaml)
wait_until paid
lose_worker "$run"
equal "while it still runs it is taken over" "flowsup resume $run" "$(json "$("$FLOWSUP" show "$run" --json)" resume_command)"
power_loss "$run"
asks "in flight" "$run" --rerun-in-flight
rm paid
"$FLOWSUP" start --wait pays.yaml >"$T/id" 2>"$T/err" &
waiter=$!
wait_until paid
run=$(cat "$T/id")
"$FLOWSUP" stop --now "$run" >/dev/null 2>&1
wait $waiter
matches "start --wait" "hint: flowsup resume $run --rerun-in-flight"$'\n' "$(cat "$T/err")"$'\n'
asks "ended by a stop" "$run" --rerun-in-flight
cat >behind.yaml <<-'END'
	name: behind
	plan:
	- {id: fails, run: "[ -e fine ]"}
	- {id: once, idempotent: false, run: "exit 3"}
	- {id: pay, idempotent: false, needs: [{op: fails, on: always}], run: "true"}
END
"$FLOWSUP" start behind.yaml --wait >"$T/id" 2>"$T/err"
run=$(cat "$T/id")
matches "behind a failure: start --wait" "hint: flowsup resume $run --retry-failed --rerun-in-flight " "$(cat "$T/err")"
asks "behind a failure" "$run" "--retry-failed --rerun-in-flight"

# ---- An end that somebody may know whom a resume asks: a dry run does not guess ----
rm -f paid
run=$("$FLOWSUP" start pays.yaml)
wait_until paid
line=$(grep '"kind":"start","op":"pay"' "$(dir_of "$run")/attempts.log")
supervisor=$(supervisor_pid) worker=$(worker_pid "$run") pid=$(json "$line" pid)
stop_still "$supervisor"
kill -KILL "$worker" "$(json "$line" reaper)" "$pid"
wait_until gone "$worker" && wait_until gone "$pid"
"$FLOWSUP" resume "$run" --dry-run >"$T/out" 2>"$T/err"
equal "an end that is not known yet refuses no dry run" 0 $?
matches "the row says so" "pay +taken over +its end is not known yet: a resume asks first, and is refused without --rerun-in-flight" "$(cat "$T/out")"
equal "no option is suggested" "" "$(grep -- '--rerun' "$T/err")"
matches "who may know it is" "how operation pay \\(process $pid\\) ended is not written down yet; the supervisor, process $supervisor" "$(cat "$T/err")"
kill -CONT "$supervisor"
out=$("$FLOWSUP" resume "$run" --wait 2>&1)
matches "the resume learns it" "pay taken over.*pay failed: ended by SIGKILL" "$(tr '\n' ' ' <<<"$out")"
equal "and repeats nothing" 1 "$(wc -l <paid)"

# So list and show suggest nothing for it either, once the run is known as crashed.
rm -f paid
run=$("$FLOWSUP" start pays.yaml)
wait_until paid
line=$(grep '"kind":"start","op":"pay"' "$(dir_of "$run")/attempts.log")
pid=$(json "$line" pid)
kill -KILL "$(worker_pid "$run")"
wait_until status_is "$run" crashed
supervisor=$(supervisor_pid)
stop_still "$supervisor"
kill -KILL "$(json "$line" reaper)" "$pid"
wait_until gone "$pid"
equal "list suggests a plain resume" "flowsup resume $run" \
	"$(json "$("$FLOWSUP" list --json | grep -F "\"id\":\"$run\"")" resume_command)"
equal "show too" "flowsup resume $run" "$(json "$("$FLOWSUP" show "$run" --json)" resume_command)"
kill -CONT "$supervisor"
"$FLOWSUP" resume "$run" --wait >"$T/out" 2>&1
equal "which repeats nothing" 1 "$(wc -l <paid)"
plan
