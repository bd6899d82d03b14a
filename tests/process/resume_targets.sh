#!/usr/bin/env bash
# resume: which run is meant, and each reason for which there is nothing to resume, with its own words.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

# refused NAME STATUS TEXT TYPE OPERAND...: what a resume says to people, and to programs.
refused() {
	local name=$1 status=$2 text=$3 type=$4 out
	shift 4
	out=$("$FLOWSUP" resume "$@" 2>&1 >"$T/out")
	equal "$name" "$status" $?
	matches "$name: its words" "$text" "$out"
	equal "$name: nothing on standard output" "" "$(cat "$T/out")"
	out=$("$FLOWSUP" resume --json "$@" 2>&1)
	matches "$name: its type" "\"error\":\"$type\"" "$out"
}
# nothing NAME WORD TEXT OPERAND...: exit 0, and what it says.
nothing() {
	local name=$1 word=$2 text=$3 out
	shift 3
	out=$("$FLOWSUP" resume "$@" 2>&1)
	equal "$name" 0 $?
	matches "$name: its words" "$text" "$out"
	out=$("$FLOWSUP" resume --json "$@" 2>/dev/null)
	equal "$name: as JSON" "$word" "$(json "$out" nothing)"
}

refused "before the first run" 2 "no runs yet" NotFoundError @last

# ---- Which run ----
first=$("$FLOWSUP" start --wait -- true 2>"$T/err")
second=$("$FLOWSUP" start --wait -- true 2>"$T/err")
for verb in show logs resume; do
	matches "$verb: where none has failed, the runs are named" "no run has failed.*hint: flowsup list\$" \
		"$("$FLOWSUP" "$verb" @last-failed 2>&1 | paste -sd' ')"
done
refused "no such run" 2 "there is no run '20200101T000000-000000'" NotFoundError 20200101T000000-000000
refused "no such prefix" 2 "there is no run 'fffff0'" NotFoundError fffff0
refused "an ambiguous one" 2 "may be run $first or run $second|may be run $second or run $first" \
	AmbiguousTargetError 20
nothing "a completed one" completed "run $second has completed: there is nothing to resume" @last
nothing "by its session" completed "run $first has completed" \
	"$(json "$("$FLOWSUP" show "$first" --json)" session_id)"
equal "nothing was made" 2 "$("$FLOWSUP" list --json | wc -l)"

# ---- What belongs together, taken apart ----
invocation=$(sql "SELECT invocation_id FROM sessions WHERE run_id = '$first'")
sql "DELETE FROM sessions WHERE run_id = '$first'"
refused "an invocation without a run" 2 "invocation $invocation has no run any more" NotFoundError "$invocation"
refused "and by a prefix" 2 "invocation $invocation has no run any more" NotFoundError "${invocation:0:11}"
refused "a directory without a session" 2 \
	"run $first has a directory, and no session.*flowsup resume $FLOWSUP_HOME/runs/$first" NotFoundError "$first"
mkdir "$T/empty"
refused "a directory without a checkpoint" 2 "there is no checkpoint in '$T/empty'" NotFoundError "$T/empty"
refused "no directory at all" 2 "'$T/none': No such file" NotFoundError "$T/none"

# ---- Alive, paused, being resumed ----
cat >slow.json <<-'END'
	{"name": "slow", "plan": [{"id": "slow", "run": "echo slow >>count; until [ -e go ]; do sleep 0.05; done"}]}
END
run=$("$FLOWSUP" start slow.json)
wait_until has_line slow
nothing "a live one" alive "run $run is alive \(worker process $(worker_pid "$run")\)" "$run"
"$FLOWSUP" pause "$run" --wait 2>"$T/err"
out=$("$FLOWSUP" resume "$run" --dry-run 2>&1)
matches "a dry run opens no gate" "would be opened" "$out"
equal "of a paused one" paused "$(run_status "$run")"
out=$("$FLOWSUP" resume "$run" --json 2>"$T/err")
equal "whose gate is opened by a control" "0 paused" "$? $(json "$out" nothing)"
matches "which is said" "alive and paused: resume queued for it" "$(cat "$T/err")"
is_running() { status_is "$run" running; }
check "so that it goes on" wait_until is_running
lose_worker "$run"
python3 - "$FLOWSUP_HOME/runs/$run/worker.lock" "$T/held" "$T/release" <<-'END' &
	import fcntl, os, struct, sys, time
	fd = os.open(sys.argv[1], os.O_RDWR)
	fcntl.fcntl(fd, 38, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))
	open(sys.argv[2], 'w').close()
	while not os.path.exists(sys.argv[3]):
	    time.sleep(0.02)
END
holder=$!
check "another process holds its lock" wait_until test -e "$T/held"
"$FLOWSUP" resume "$run" >"$T/id" 2>"$T/err" &
resume=$!
check "who does is said" wait_until grep -qF "run $run: process $holder (" "$T/err"
touch "$T/release" go
wait "$resume"
equal "and when it is free the run goes on" 0 $?
new=$(cat "$T/id")
refused "a resumed one" 4 "run $run was already resumed, as run $new" RefusedError "$run"
"$FLOWSUP" wait "$new" 2>"$T/err"
matches "with what shows the latest" "hint: flowsup show $new$" "$("$FLOWSUP" resume "$run" 2>&1)"
rm -f go
long=$("$FLOWSUP" start slow.json)
wait_until status_is "$long" running
lose_worker "$long"
next=$("$FLOWSUP" resume "$long" 2>"$T/err")
wait_until status_is "$next" running
"$FLOWSUP" pause "$next" --wait 2>"$T/err"
matches "and where that is paused, with what has it go on" "hint: flowsup resume $next   # it is paused" \
	"$("$FLOWSUP" resume "$long" 2>&1)"
lose_worker "$next"
matches "or has crashed" "hint: flowsup resume $next   # it has crashed" "$("$FLOWSUP" resume "$long" 2>&1)"
last=$("$FLOWSUP" resume "$next" 2>"$T/err")
touch go
"$FLOWSUP" wait "$last" 2>"$T/err"
nothing "nothing of it crashed" "" "no run waits to be resumed" --all-crashed
wait "$holder"
plan
