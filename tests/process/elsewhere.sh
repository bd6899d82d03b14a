#!/usr/bin/env bash
# Runs of another pid namespace, host or boot: shown, never judged; taken over when a person says so.
. "$(dirname "$0")/lib.sh"

db() { sqlite3 "$FLOWSUP_HOME/state.db" "PRAGMA busy_timeout=5000; $1" | grep -v '^5000$'; }
fact() { json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$1\"")" "$2"; }
is() { [ "$(fact "$1" status)" = "$2" ]; }
marked() { [[ $("$FLOWSUP" list --json | grep "^{\"id\":\"$1\"") =~ \"marks\":\[\"$2\" ]]; }
long="until [ -e '$T/go' ]; do sleep 0.02; done"

if unshare --pid --fork --mount-proc true 2>/dev/null; then
	# ---- A container that ends, with a supervisor of its own ----
	unshare --pid --fork --mount-proc --kill-child bash -c \
		"'$FLOWSUP' start -- sh -c \"$long\" >'$T/id'; exec sleep 1000" >/dev/null 2>&1 &
	container=$!
	wait_until [ -s "$T/id" ]
	id=$(cat "$T/id")
	runs() { [ "$(db "SELECT status FROM sessions WHERE run_id = '$id'")" = running ]; }
	wait_until runs
	# The container ends, and everything in it. The home has no supervisor any more.
	kill -KILL "$container"
	wait "$container" 2>/dev/null
	free() { supervisor_answers || "$FLOWSUP" supervisor; }
	wait_until free
	check "its lock is the proof that its worker is dead" wait_until is "$id" crashed
	matches "what else of it may run there a person knows" "flowsup resume $id --take-over" "$("$FLOWSUP" list)"
	out=$("$FLOWSUP" resume "$id" 2>&1)
	equal "a resume is refused" 4 $?
	matches "and says what would allow it" "--take-over" "$out"
	cp -a "$FLOWSUP_HOME/runs/$id" "$T/copy"
	out=$("$FLOWSUP" resume "$T/copy" 2>&1)
	equal "that of a copy too" 4 $?
	matches "with the word" "where its worker may live.*hint: flowsup resume $T/copy --take-over" "$(tr '\n' ' ' <<<"$out")"
	out=$("$FLOWSUP" resume "$T/copy" --take-over -n 2>&1)
	equal "which is taken" 0 $?
	matches "and said" "'$T/copy' is taken over from" "$out"
	out=$("$FLOWSUP" kill "$id" 2>&1)
	equal "kill is refused too" 4 $?
	matches "and says how to go on" "hint: flowsup resume $id --take-over" "$out"
	next=$("$FLOWSUP" resume "$id" --take-over 2>"$T/said")
	equal "--take-over resumes it" 0 $?
	matches "and says so" "is taken over" "$(cat "$T/said")"
	touch "$T/go"
	check "it goes on here" wait_until is "$next" completed
	check "the old one has crashed" is "$id" crashed
	rm "$T/go"
	wait_until supervisor_answers && "$FLOWSUP" supervisor stop

	# What must not be repeated was in flight: every command that is told has all that is asked.
	printf '{"plan": [{"id": "pay", "idempotent": false, "run": "%s"}]}' "touch $T/paying; $long" >"$T/pay.json"
	printf '#!/bin/sh\ncat >"%s"\n' "$T/told" >"$T/tell"
	chmod +x "$T/tell"
	unshare --pid --fork --mount-proc --kill-child bash -c \
		"'$FLOWSUP' start --notify '[\"$T/tell\"]' '$T/pay.json' >'$T/id'; exec sleep 1000" >/dev/null 2>&1 &
	container=$!
	wait_until [ -e "$T/paying" ]
	id=$(cat "$T/id")
	wait_until runs
	kill -KILL "$container"
	wait "$container" 2>/dev/null
	wait_until free
	wait_until is "$id" crashed
	both="flowsup resume .*$id --rerun-in-flight --take-over"
	wait_until logged "run $id crashed"
	matches "the log" "run $id crashed: .*to go on: $both" "$(grep -F "run $id crashed" "$FLOWSUP_HOME/supervisor.log")"
	wait_until [ -s "$T/told" ]
	matches "the command of notify" "\"resume_command\":\"$both\"" "$(cat "$T/told")"
	matches "list" "$both" "$("$FLOWSUP" list | paste -sd' ' | tr -s ' ')"
	matches "a resume tells every reason" \
		"where its worker may live; and what must not be repeated.*hint: flowsup resume $id --rerun-in-flight --take-over" \
		"$("$FLOWSUP" resume "$id" 2>&1 | paste -sd' ')"
	out=$("$FLOWSUP" resume "$id" --rerun-in-flight 2>&1 | paste -sd' ')
	matches "and what was given is given again" "may live hint: flowsup resume $id --rerun-in-flight --take-over" "$out"
	touch "$T/go"
	next=$("$FLOWSUP" resume "$id" --rerun-in-flight --take-over 2>/dev/null)
	check "which is enough" wait_until is "$next" completed
	rm "$T/go"
else
	skip "no pid namespace can be made here"
fi

# ---- A row whose worker nobody here started ----
stranger() { # PLACE: a running run whose place is changed while nobody looks
	id=$("$FLOWSUP" start -- sh -c "$long")
	wait_until worker_is_ready "$id"
	wait_until status_is "$id" running
	worker=$(worker_pid "$id")
	pid=$(supervisor_pid)
	kill -KILL "$pid" "$worker"
	wait_until gone "$pid"
	wait_until gone "$worker"
	db "UPDATE sessions SET place = '$1' WHERE run_id = '$id'"
	"$FLOWSUP" supervisor
}
boot=$(cat /proc/sys/kernel/random/boot_id)
namespace=$(stat -Lc %i /proc/self/ns/pid)
host=$(uname -n)
stranger "another-host 00000000-0000-0000-0000-000000000000 1"
"$FLOWSUP" list >/dev/null
equal "a run of another host is not judged" running "$(db "SELECT status FROM sessions WHERE run_id = '$id'")"
db "UPDATE sessions SET unique_key = 'away' WHERE run_id = '$id'"
out=$("$FLOWSUP" start --unique away -- true 2>&1)
equal "one with its key is not started" 0 $?
matches "and it is said what can be done" "no worker of it is seen.*hint: flowsup resume $id --take-over" "$(tr '\n' ' ' <<<"$out")"
for words in "stop $id" "stop $id --now" "pause $id" "ctl resume $id" "msg $id text"; do
	# shellcheck disable=SC2086 # words are meant
	out=$("$FLOWSUP" $words 2>&1)
	equal "$words: is refused" 4 $?
	matches "$words: with the reason and what can be done" "no worker of it is seen.*hint: flowsup resume $id --take-over" \
		"$(tr '\n' ' ' <<<"$out")"
done
equal "and nothing is queued that nobody would take" 0 \
	"$(db "SELECT count(*) FROM session_controls c, sessions s WHERE c.session_id = s.id AND s.run_id = '$id'")"
matches "doctor names it" "elsewhere +run $id ran on host another-host .*flowsup resume $id --take-over" \
	"$("$FLOWSUP" doctor | tr '\n' ' ')"
for words in "wait --timeout=1s" watch; do
	# shellcheck disable=SC2086 # words are meant
	"$FLOWSUP" $words "$id" >"$T/out" 2>&1 &
	follower=$!
	check "$words says so" wait_until grep -q "run $id ran on host another-host .* no worker of it is seen" "$T/out"
	kill "$follower" 2>/dev/null
	wait "$follower" 2>/dev/null
	equal "$words: once" 1 "$(grep -c 'no worker of it is seen' "$T/out")"
done
stranger "renamed-host $boot $namespace"
check "this machine under another name is this machine" wait_until is "$id" crashed
stranger "$host 00000000-0000-0000-0000-000000000000 1"
check "a run of an earlier boot has crashed" wait_until is "$id" crashed
equal "for that reason" run.crashed.boot "$(fact "$id" reason)"
touch "$T/go"
plan
