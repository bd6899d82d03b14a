#!/usr/bin/env bash
# start --foreground: worker and supervision in one tree below the command; also as process 1.
. "$(dirname "$0")/lib.sh"

fact() { json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$1\"")" "$2"; }
is() { [ "$(fact "$1" status)" = "$2" ]; }
long="until [ -e '$T/go' ]; do sleep 0.02; done"
last() { ls "$FLOWSUP_HOME/runs" | tail -1; }
# Runs in the background: its id in $T/id, its pid in $pid; waits until the operation runs.
begin() {
	rm -f "$T/id" "$T/began"
	"$FLOWSUP" start --foreground "$@" >"$T/id" 2>"$T/said" &
	pid=$!
	wait_until [ -s "$T/id" ]
	id=$(cat "$T/id")
}

out=$("$FLOWSUP" start --foreground -- sh -c 'echo well' 2>/dev/null)
equal "it ends with the run, by its outcome" 0 $?
equal "standard output holds the id alone" "$(last)" "$out"
equal "a failure is its exit status" 1 "$("$FLOWSUP" start --foreground -- false >/dev/null 2>&1; echo $?)"
equal "no supervisor is needed" 0 "$(supervisors | count)"
# What is said of an end, without the id of the run.
end_of() { "$FLOWSUP" start "$@" 2>&1 >/dev/null | tail -n 2 | sed -E 's/[0-9]{8}T[0-9]{6}-[0-9a-f]{6}/ID/g'; }
equal "which is told as start --wait tells it" "$(end_of --wait -- false)" "$(end_of --foreground -- false)"
for option in --wait --queue=x --restart=2; do
	equal "$option does not go with it" 2 "$("$FLOWSUP" start --foreground "$option" -- true >/dev/null 2>&1; echo $?)"
done
export ITS_TOKEN=value-f-9911
equal "withheld values reach operations" 0 \
	"$("$FLOWSUP" start --foreground -- sh -c 'test ${#ITS_TOKEN} = 12' >/dev/null 2>&1; echo $?)"
equal "and no file" "" "$(grep -rl value-f-9911 "$FLOWSUP_HOME")"

# ---- Another one has the key ----
begin --unique key -- sh -c "$long"
out=$("$FLOWSUP" start --foreground --unique key -- true 2>&1)
equal "one that is skipped is no failure" 0 $?
matches "and says so" "run $id goes on with the key 'key' .*: nothing was started$" "$out"
touch "$T/go"
wait "$pid"
rm -f "$T/go"

# ---- One tree, and other supervisors ----
begin -- sh -c "$long"
"$FLOWSUP" supervisor
check "a supervisor shows it" wait_until is "$id" running
worker=$(fact "$id" worker_pid)
equal "its worker is a child of the command" "$pid" "$(stat_field "$worker" 2)"
check "and is not adopted by it" eval '! "$FLOWSUP" supervisor status --json | grep -q "\"$id\""'
"$FLOWSUP" supervisor restart
touch "$T/go"
wait "$pid"
equal "it ends as if alone" 0 $?
rm "$T/go"

# ---- Signals ----
begin -- sh -c "trap '' TERM; touch '$T/began'; $long"
wait_until [ -e "$T/began" ]
kill -TERM "$pid"
check "a signal is said" wait_until grep -q 'starts nothing more' "$T/said"
check "what runs is waited for" alive "$pid"
touch "$T/go"
wait "$pid"
check "it ends when that has ended" eval '[[ $(fact "$id" status) =~ ^(completed|cancelled)$ ]]'
begin -- sh -c "touch '$T/began'; exec sleep 1000"
wait_until [ -e "$T/began" ]
kill -INT "$pid"
wait_until grep -q 'starts nothing more' "$T/said"
kill -INT "$pid"
wait "$pid"
equal "a second one ends what runs" 143 $?
equal "the run is cancelled" cancelled "$(fact "$id" status)"
rm "$T/go"

# One that comes when the id was said and nobody takes signals yet waits for who does.
if is_sanitized; then
	skip "an early signal (a sanitizer must come first)"
else
	for signal in INT TERM HUP QUIT; do
		LD_PRELOAD=$BUILD/tests/preload/signal_early.so SIGNAL_EARLY=$(kill -l $signal) \
			"$FLOWSUP" start --foreground -- true >"$T/id" 2>"$T/said"
		matches "SIG$signal before all is ready: the command ends by its run's outcome" '^(0|143)$' $?
		check "SIG$signal before all is ready: the run does as it is told" \
			grep -q "SIG$signal: run $(cat "$T/id") starts nothing more" "$T/said"
	done
fi

# ---- Deaths ----
begin -- sh -c "echo \$\$ >'$T/op'; exec sleep 1000"
wait_until [ -s "$T/op" ]
kill -KILL "$(fact "$id" worker_pid)"
wait "$pid"
equal "a dead worker is a crash" 137 $?
equal "which is said as start --wait says it" 1 "$(grep -c '^run ' "$T/said")"
check "with how it came to it" grep -q "^run $id crashed: the worker was killed" "$T/said"
check "whose operations are ended" wait_until gone "$(cat "$T/op")"
equal "it is not restarted" null "$(fact "$id" resumed_as)"
matches "its end was no outcome: it runs again" "will run +was ended when its worker was dead" "$("$FLOWSUP" resume "$id" --dry-run)"
for keeper in true false; do
	cat >"$T/once.yaml" <<END
plan: [{id: once, idempotent: false, keeper: $keeper, run: "touch '$T/began'; exec sleep 1000"}]
END
	begin "$T/once.yaml"
	wait_until [ -e "$T/began" ]
	kill -KILL "$(fact "$id" worker_pid)"
	wait "$pid"
	out=$("$FLOWSUP" resume "$id" 2>&1)
	equal "keeper $keeper: what must not be repeated is refused" 4 $?
	matches "keeper $keeper: with the word for it" "once: it was ended when its worker was dead.*--rerun-in-flight" "$out"
done
begin -- sh -c 'exec sleep 1000'
wait_until is "$id" running
worker=$(fact "$id" worker_pid)
kill -KILL "$pid"
wait "$pid" 2>/dev/null
check "with the command its worker ends" wait_until gone "$worker"
check "and the run has crashed" wait_until is "$id" crashed
"$FLOWSUP" kill "$id" 2>/dev/null
"$FLOWSUP" supervisor stop

# ---- As process 1 ----
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	# Orphans that come to process 1: each loses its parent at once.
	cat >"$T/orphans" <<END
#!/bin/sh
for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'sleep 0.1017' &) ; done
touch "$T/began"
$long
END
	chmod +x "$T/orphans"
	cat >"$T/leave.yaml" <<END
plan: [{id: op, leave: true, exec: ["$T/orphans"]}]
END
	rm -f "$T/began"
	unshare --pid --fork --mount-proc "$FLOWSUP" start --foreground "$T/leave.yaml" >"$T/id" 2>"$T/said" &
	outer=$!
	wait_until [ -e "$T/began" ]
	one=$(cat "/proc/$outer/task/$outer/children")
	equal "it is process 1" 1 "$(sed -nE 's/^NSpid:.*[[:space:]]([0-9]+)$/\1/p' "/proc/${one// /}/status")"
	zombies() { # of its namespace
		local p ns
		ns=$(readlink "/proc/${one// /}/ns/pid")
		for p in /proc/[0-9]*; do
			[ "$(readlink "$p/ns/pid" 2>/dev/null)" = "$ns" ] || continue
			[ "$(stat_field "${p#/proc/}" 1)" = Z ] && return 1
		done
		return 0
	}
	slept() { ! pgrep -f '^sleep 0.1017$' >/dev/null; }
	wait_until slept
	check "it reaps what is left to it" wait_until zombies
	kill -TERM "${one// /}"
	check "it hears TERM" wait_until grep -q 'starts nothing more' "$T/said"
	kill -TERM "${one// /}"
	check "once more: it leaves" wait_until gone "$outer"
	wait "$outer"
	equal "by the run's outcome" 143 $?
	check "the run is cancelled" is "$(cat "$T/id")" cancelled
else
	skip "no pid namespace can be made here"
fi

# ---- How to go on: as to who follows a run of the supervisor ----
hint_of() {
	"$FLOWSUP" start "$@" >"$T/id" 2>"$T/err"
	grep '^hint:' "$T/err" | sed "s/$(cat "$T/id")/RUN/"
}
printf 'plan:\n  - {id: a, run: "exit 3"}\n' >"$T/failed.yaml"
cat >"$T/late.yaml" <<'END'
timeout: 10ms
plan:
  - {id: a, run: 'until grep -q DeadlineClosed "$FLOWSUP_HOME/runs/$FLOWSUP_RUN_ID/events.jsonl"; do sleep 0.02; done'}
  - {id: b, needs: [a], run: 'true'}
END
for how in failed late; do
	hint=$(hint_of --wait "$T/$how.yaml")
	matches "a run that is $how has a hint with which it goes on" "flowsup resume RUN" "$hint"
	equal "the same in the foreground" "$hint" "$(hint_of --foreground "$T/$how.yaml")"
done
plan
