#!/usr/bin/env bash
# A worker that dies while the supervisor has no room to record it: no command shows its run as one
# that runs, and waiting for it ends.
# shellcheck source=lib_disk.sh
. "$(dirname "$0")/lib_disk.sh"

# Until the database has no room left: its files may have some inside.
fill_database() {
	rm -f "$FLOWSUP_HOME/reserve"
	until ! sql 'CREATE TABLE IF NOT EXISTS filler (x); INSERT INTO filler VALUES (zeroblob(4096))' 2>/dev/null; do
		fill
	done
}

have_disk 2000 "no room"
export FLOWSUP_HOME=$T/disk/home

old=$("$FLOWSUP" start -- true)
wait_until status_is "$old" completed
run=$("$FLOWSUP" start -- sleep 600)
wait_until worker_is_ready "$run"
wait_until status_is "$run" running
live=$("$FLOWSUP" start -- sleep 600)
wait_until worker_is_ready "$live"
wait_until status_is "$live" running
worker=$(worker_pid "$run")
fill_database
kill -KILL "$worker"
wait_until gone "$worker"
unrecorded() { logged "run $run: .*(full|I/O|No space)"; }
check "the supervisor cannot record the death" wait_until unrecorded
"$FLOWSUP" list >"$T/list" 2>/dev/null
matches "list marks the run, and says how to go on" "running \(no worker\).*flowsup resume $run" "$(grep "$run" -A2 "$T/list" | tr '\n' ' ')"
matches "and the other runs" "running +0/1" "$(grep "$live" "$T/list")"
line=$("$FLOWSUP" list --json 2>/dev/null | grep "^{\"id\":\"$run\"")
matches "in JSON too" '"marks":\["no worker"\]' "$line"
matches "show says it" "running \(no worker\): its worker is gone; this could not be recorded yet" \
	"$("$FLOWSUP" show "$run" 2>/dev/null)"
"$FLOWSUP" gc --keep-n 0 >"$T/out" 2>"$T/err"
equal "gc that cannot remove a row fails" 74 $?
check "and lets the directory stay" [ -d "$FLOWSUP_HOME/runs/$old" ]
timeout "$LIMIT" "$FLOWSUP" wait "$run" >"$T/out" 2>"$T/err"
equal "wait ends like for a crash" 137 $?
matches "and says why" "run $run: its worker is gone, and the supervisor could not record this" "$(cat "$T/err")"
timeout "$LIMIT" "$FLOWSUP" wait --timeout 300ms "$live" 2>/dev/null
equal "one that runs is waited for" 3 $?
room
check "with room it is recorded" wait_until status_is "$run" crashed
marked() { "$FLOWSUP" list --json | grep "^{\"id\":\"$run\"" | grep -q '"no worker"'; }
check "and the mark is gone" eval '! marked'
"$FLOWSUP" kill "$run" 2>/dev/null
"$FLOWSUP" kill "$live" 2>/dev/null

# How an operation ended is kept until there is room: it does not run twice.
begin_counted
check "its process is known" alive "$op"
kill -KILL "$worker"
wait_until gone "$worker"
check "what still runs of it is known" wait_until known
fill
touch "$T/go"
check "it ends without room" wait_until gone "$op"
# Its record cannot be there: what others freed is filled again.
fill
next=$("$FLOWSUP" supervisor status --json 2>/dev/null)
check "the supervisor lives" [ -n "$next" ]
room
timeout "$LIMIT" "$FLOWSUP" resume --wait "$run" >"$T/out" 2>&1
equal "it is resumed" 0 $?
equal "and its operation ran once" 1 "$(runs)"
"$FLOWSUP" supervisor stop

# A supervisor that is asked to leave tries once more, and says what it takes along.
begin_counted
kill -KILL "$worker"
wait_until gone "$worker"
wait_until known
pid=$(supervisor_pid)
fill
touch "$T/go"
wait_until gone "$op"
fill
kept() { [ ! -e "$FLOWSUP_HOME/runs/$run/ops/sh.1/exit.json" ]; }
check "it has ended without a record" kept
timeout "$LIMIT" "$FLOWSUP" supervisor stop >"$T/out" 2>"$T/err"
equal "a stop that could not write what it kept fails" 74 $?
matches "and says what" "it leaves, and .*end" "$(cat "$T/err")"
check "it has left all the same" gone "$pid"
room

# What is to end with its worker does, also where the death cannot be recorded.
cat >"$T/end.json" <<-END
	{"orphans": "end", "plan": [{"id": "a", "run": "echo \$\$ >'$T/pid'; exec sleep 600"}]}
END
run=$("$FLOWSUP" start "$T/end.json")
wait_until worker_is_ready "$run"
wait_until [ -s "$T/pid" ]
wait_until status_is "$run" running
op=$(cat "$T/pid")
worker=$(worker_pid "$run")
fill_database
kill -KILL "$worker"
check "its operations are ended without room" wait_until gone "$op"
check "while the death is not recorded" wait_until unrecorded
room
check "which is done with room" wait_until status_is "$run" crashed
plan
