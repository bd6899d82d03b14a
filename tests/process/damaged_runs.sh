#!/usr/bin/env bash
# Runs whose directory, or a file in it, was taken away or damaged: each command acts or says what lacks.
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" && cd "$T/work" || exit 1

says_hi() { "$FLOWSUP" logs "$1" 2>/dev/null | grep -q hi; }
start_long() { # -> $id, a run whose operation is in the middle, $worker
	id=$("$FLOWSUP" start -- sh -c 'echo hi; exec sleep 600')
	wait_until says_hi "$id" && wait_until worker_is_ready "$id"
	worker=$(worker_pid "$id")
}
take_away() { rm -rf "$FLOWSUP_HOME/runs/$1"; }
run_command() { # words...: $status, $out, $err
	"$FLOWSUP" "$@" >"$T/out" 2>"$T/err" </dev/null
	status=$?
	out=$(cat "$T/out") err=$(cat "$T/err")
}
sleepers() { grep -lzsx "FLOWSUP_SESSION_ID=$1" /proc/[0-9]*/environ | wc -l; }
no_sleepers() { [ "$(sleepers "$1")" = 0 ]; }

# ---- The directory of a live run ----
start_long
take_away "$id"
matches "list marks a run without directory" "running \(no directory\)" "$("$FLOWSUP" list)"
run_command show "$id"
equal "show exits by the table" 74 $status
matches "what the database knows is shown" "status +running" "$out"
matches "and what lacks is named" "run $id: its directory '$FLOWSUP_HOME/runs/$id' is gone" "$err"
matches "with a command" "hint: flowsup kill $id" "$err"
run_command show --json "$id"
matches "also in JSON" '"problems":\[\{"file":"","error":".*is gone"' "$out"
for words in "logs $id" "logs -f $id" "watch $id" "watch --json $id"; do
	# shellcheck disable=SC2086 # words are meant
	run_command $words
	equal "$words: says it, exit 74" "74 yes" "$status $(case $err in *"is gone"*) echo yes ;; esac)"
done
run_command wait --timeout 100ms "$id"
equal "wait goes by the database" 3 $status
"$FLOWSUP" supervisor stop
kill -KILL "$(supervisors)" 2>/dev/null
run_command wait --timeout 500ms "$id"
equal "the next supervisor does not take a live worker for dead" 3 $status
check "it lives" alive "$worker"
check "and is known by its command line" wait_until logged "run $id: adopted its worker $worker"
session=$(run_fact "$id" session_id)
run_command kill "$id"
equal "kill ends it" 0 $status
check "the worker has ended" wait_until gone "$worker"
check "and its operation" wait_until no_sleepers "$session"
equal "the row says so" cancelled "$(run_status "$id")"
run_command kill "$id"
equal "once more: nothing to do" 0 $status

start_long
take_away "$id"
run_command stop --now --wait=20s "$id"
equal "stop of a live run without directory acts" 0 $status
check "it ends" wait_until status_is "$id" cancelled

start_long
take_away "$id"
kill -KILL "$worker"
run_command wait "$id"
equal "death is seen without the directory" 137 $status
for words in "stop $id" "resume $id" "resume --dry-run $id"; do
	# shellcheck disable=SC2086
	run_command $words
	equal "$words of the dead one: exit 74" 74 $status
done
matches "list offers no resume of it" "crashed \(no directory\)" "$("$FLOWSUP" list -n 1)"
equal "not in JSON either" false "$(run_fact "$id" resumable)"
session=$(run_fact "$id" session_id)
run_command kill "$id"
check "kill finds what it left by its marks" wait_until no_sleepers "$session"

# ---- Of runs that have ended ----
taken_away() { # its worker may still be leaving, and take its own files away beside us
	take_away "$1" 2>/dev/null
	[ ! -e "$FLOWSUP_HOME/runs/$1" ]
}
for words in true false; do
	id=$("$FLOWSUP" start -- $words)
	"$FLOWSUP" wait "$id" 2>/dev/null
	wait_until taken_away "$id"
	matches "list marks one without directory that ended with $words" "(completed|failed) \(no directory\)" \
		"$("$FLOWSUP" list -n 1)"
done

# ---- Files of a dead run ----
damage() { # how file run
	case $1 in
	missing) rm "$FLOWSUP_HOME/runs/$3/$2" ;;
	damaged) printf '{"a":[' >"$FLOWSUP_HOME/runs/$3/$2" ;;
	esac
}
start_long
kill -KILL "$worker"
wait_until status_is "$id" crashed
cp -a "$FLOWSUP_HOME/runs/$id" "$T/whole"
check_damage() { # what, of which run
	what=$1
	file=${what#* }
	damage "${what% *}" "$file" "$id"
	results=
	for words in "show $id" "list --check -n 1" "resume $id" "resume --dry-run $id"; do
		# shellcheck disable=SC2086
		run_command $words
		results="$results $status:$(case $err in *"run $id"*"$file"* | *"$file"*"run $id"*) echo named ;; esac)"
	done
	# What a checkpoint says is no error of its file: it is refused.
	case $what in
	*" checkpoint.json") expected=" 74:named 4:named 4:named 4:named" ;;
	# What was started is not known, and may be repeated with leave.
	*" attempts.log") expected=" 74:named 74:named 4:named 4:named" ;;
	# Nor does a resume wait for a file to be whole again.
	*) expected=" 74:named 74:named 4:named 4:named" ;;
	esac
	equal "$what$2: show, list --check, resume name run and file" "$expected" "$results"
	case $what in
	*" attempts.log")
		matches "$what$2: show offers a resume with leave" "^next +flowsup resume $id --rerun-in-flight$" \
			"$("$FLOWSUP" show "$id" 2>/dev/null | grep ^next)" ;;
	*) equal "$what$2: show offers no resume" "" "$("$FLOWSUP" show "$id" 2>/dev/null | grep ^next)" ;;
	esac
	case $what in missing*)
		matches "$what$2: list marks it" "crashed \(.*no $file\)" "$("$FLOWSUP" list -n 1)" ;;
	esac
	rm -rf "$FLOWSUP_HOME/runs/$id"
	cp -a "$T/whole" "$FLOWSUP_HOME/runs/$id"
}
for what in "missing flow.json" "damaged flow.json" "missing launch.json" "damaged launch.json" \
	"missing environ" "damaged environ" "missing worker.lock" "missing attempts.log" "damaged attempts.log" \
	"missing checkpoint.json" "damaged checkpoint.json"; do
	check_damage "$what" ""
done
# A worker that is killed at once may have started operations before the row says that it began.
if command -v sqlite3 >/dev/null; then
	sql "UPDATE sessions SET started_at = NULL WHERE run_id = '$id'"
	for what in "missing attempts.log" "damaged attempts.log"; do
		check_damage "$what" " of a run that was killed at once"
	done
else
	skip "sqlite3 is not installed"
fi
dead=$id
printf '{' >>"$FLOWSUP_HOME/runs/$dead/checkpoint.json.journal"
run_command list --check -n 1
equal "list --check exits by one that lost its end" 6 $status
newer=$("$FLOWSUP" start -- true)
"$FLOWSUP" wait "$newer" 2>/dev/null
echo >>"$FLOWSUP_HOME/runs/$newer/checkpoint.json.journal"
run_command list --check -n 2
equal "and by the worst of several, whichever comes last" 4 $status
rm -rf "$FLOWSUP_HOME/runs/$dead"
cp -a "$T/whole" "$FLOWSUP_HOME/runs/$dead"
id=$("$FLOWSUP" start -- true)
"$FLOWSUP" wait "$id" 2>/dev/null
echo more >>"$FLOWSUP_HOME/runs/$id/checkpoint.json"
run_command show "$id"
equal "text behind the checkpoint of a completed run: exit 74" "74 yes" \
	"$status $(case $err in *"run $id: "*checkpoint.json*) echo yes ;; esac)"
matches "show does not say that it was not saved" "executed; whether it was saved is not known" "$out"
run_command show --json "$id"
matches "also in JSON" '"problems":\[\{"file":"checkpoint.json",' "$out"
id=$dead
damage missing flow.json "$id"
run_command logs "$id" nothing
equal "logs of an operation that nobody can know: exit 74" "74 yes" \
	"$status $(case $err in *"flow.json"*) echo yes ;; esac)"
run_command logs "$id"
equal "logs needs no document" "0 hi" "$status $out"
damage missing attempts.log "$id"
run_command logs "$id"
equal "logs without the log of attempts: exit 74" "74 yes" \
	"$status $(case $err in *"attempts.log"*) echo yes ;; esac)"
rm -rf "$FLOWSUP_HOME/runs/$id"
cp -a "$T/whole" "$FLOWSUP_HOME/runs/$id"
damage missing worker.lock "$id"
run_command stop "$id"
equal "stop without a lock to take says so" "74 yes" \
	"$status $(case $err in *"worker.lock"*"hint: flowsup kill $id"*) echo yes ;; esac)"
run_command kill "$id"
equal "kill does without" 0 $status

# ---- The log of attempts, as a loss of power leaves it ----
"$FLOWSUP" kill "$id" >/dev/null 2>&1
is_given_up() { ! "$FLOWSUP" list | grep -F "$1" | grep -q restarting; }
for how in emptied zeroed garbage gone; do
	id=$("$FLOWSUP" start --unique "key $how" --restart 2 -- sh -c 'echo hi; exec sleep 600')
	wait_until says_hi "$id" && wait_until worker_is_ready "$id"
	log=$FLOWSUP_HOME/runs/$id/attempts.log session=$(run_fact "$id" session_id) worker=$(worker_pid "$id")
	case $how in
	emptied) : >"$log" ;;
	zeroed) head -c 300 /dev/zero >"$log" ;;
	garbage) printf 'x\ny\n' >"$log" ;;
	gone) rm "$log" ;;
	esac
	kill -KILL "$worker"
	wait_until status_is "$id" crashed
	check "$how: a resume by itself is given up" wait_until is_given_up "$id"
	# Its key is free, as after any resume that is refused.
	matches "$how: it is said why" "not resumed by itself: exit 4: .*attempts\.log is (damaged|gone)" "$(run_fact "$id" reason_text)"
	check "$how: in the log too" wait_until logged "run $id is not resumed by itself: exit 4: .*attempts.log"
	matches "$how: list marks it and what runs, and has the command" \
		"crashed \(given up, 1 running, (no|damaged) attempts\.log\).* flowsup resume $id --rerun-in-flight" "$("$FLOWSUP" list -n 1)"
	matches "$how: an operation is not said to have waited" "whether it was started is not known" "$("$FLOWSUP" show "$id" 2>/dev/null)"
	other=$("$FLOWSUP" start --unique "key $how" -- true 2>&1)
	equal "$how: its key is free" 0 $?
	run_command resume "$id"
	equal "$how: a resume is refused, with the command that lifts it" "4 yes" \
		"$status $(case $err in *"hint: flowsup resume $id --rerun-in-flight"*) echo yes ;; esac)"
	equal "$how: nothing was ended" 1 "$(sleepers "$session")"
	run_command resume --rerun-in-flight "$id"
	equal "$how: with leave it goes on" 0 $status
	equal "$how: and not beside what ran" 0 "$(sleepers "$session")"
	run_command kill "$out"
done

# ---- Of the log only the end is gone, and with it a start ----
torn_run() {
	id=$("$FLOWSUP" start "$@" -- sh -c 'echo hi; exec sleep 600')
	wait_until says_hi "$id" && wait_until worker_is_ready "$id"
	log=$FLOWSUP_HOME/runs/$id/attempts.log session=$(run_fact "$id" session_id) worker=$(worker_pid "$id")
	truncate -s -20 "$log"
	kill -KILL "$worker"
	wait_until status_is "$id" crashed
}
torn_run --restart 2
check "torn: a resume by itself is given up" wait_until is_given_up "$id"
matches "torn: list has the command" " flowsup resume $id --rerun-in-flight" "$("$FLOWSUP" list -n 1)"
matches "torn: whether it began is not known" "whether it was started is not known" "$("$FLOWSUP" show "$id" 2>/dev/null)"
run_command resume "$id"
equal "torn: a resume is refused, with the command that lifts it" "4 yes" \
	"$status $(case $err in *"is torn, so it may have been started"*"hint: flowsup resume $id --rerun-in-flight"*) echo yes ;; esac)"
equal "torn: nothing was ended" 1 "$(sleepers "$session")"
run_command resume --rerun-in-flight "$id"
equal "torn: with leave it goes on" 0 $status
equal "torn: and not beside what ran" 0 "$(sleepers "$session")"
run_command kill "$out"
torn_run
cp -p "$log" "$T/torn"
sed -i '1s/"boot_id":"[^"]*"/"boot_id":"00000000-0000-4000-8000-000000000000"/' "$log"
check "the host was booted since" grep -q '"boot_id":"00000000-' "$log"
run_command resume --dry-run "$id"
equal "torn, and the host was booted since: nothing can run, and it runs again" 0 $status
cp -p "$T/torn" "$log"
run_command kill "$id"
equal "torn: what still runs is ended by its marks" 0 "$(sleepers "$session")"

# ---- The lock of a live run ----
start_long
damage missing worker.lock "$id"
run_command kill "$id"
equal "kill of a live run without lock" 0 $status
check "ends its worker" wait_until gone "$worker"

# ---- One that ends after its directory was removed ----
id=$("$FLOWSUP" start -- sh -c "touch '$T/began'; until test -e '$T/go'; do sleep 0.02; done")
wait_until test -e "$T/began"
take_away "$id"
touch "$T/go"
"$FLOWSUP" wait "$id" 2>/dev/null
equal "it could not be saved: exit 74" 74 $?
run_command show "$id"
matches "show says why" "failed .*: the run's directory was removed; executed and not saved: sh " "$out"
plan
